#include "wire/link.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "wire/cursor.h"
#include "wire/field.h"
#include "wire/imm.h"

#define CTS_HDR_BYTES 24u
#define CTS_ENTRY_BYTES 24u /* without its keys */
#define CTS_ENTRY_GROUP_OFFSET 4u
#define KEY_BYTES 8u
#define MAX_GROUP 8u
#define NACK_FLAGS 0x00000001u

/* Flags that a message of this type may carry. */
static uint8_t link_flags(uint8_t type)
{
	return type == FR_LINK_EAGER ? FR_LINK_F_ACK_NOW | FR_LINK_F_AT
				     : FR_LINK_F_ACK_NOW;
}

static bool link_is_bare(uint8_t type)
{
	return type == FR_LINK_ACK || type == FR_LINK_RESET;
}

void fr_link_hdr_encode(const struct fr_link_hdr *h, void *buf)
{
	struct fr_wcur c;

	assert(h->type >= FR_LINK_ACK && h->type <= FR_LINK_RESET);
	assert((h->flags & ~link_flags(h->type)) == 0);
	assert(!link_is_bare(h->type) || (h->seq == 0 && h->len == 0));

	fr_wcur_init(&c, buf, FR_LINK_HDR_BYTES);
	fr_put_u8(&c, h->type);
	fr_put_u8(&c, h->flags);
	fr_put_u16(&c, h->len);
	fr_put_u32(&c, h->seq);
	fr_put_u32(&c, h->ack);
	fr_put_u32(&c, h->dst_set);
	fr_put_u64(&c, h->src_set);
}

int fr_link_hdr_decode(struct fr_link_hdr *h, const void *buf, size_t bytes,
		       const char **why)
{
	struct fr_link_hdr got;
	struct fr_rcur c;

	fr_rcur_init(&c, buf, bytes);
	got.type = fr_get_u8(&c);
	got.flags = fr_get_u8(&c);
	got.len = fr_get_u16(&c);
	got.seq = fr_get_u32(&c);
	got.ack = fr_get_u32(&c);
	got.dst_set = fr_get_u32(&c);
	got.src_set = fr_get_u64(&c);
	if (c.bad || fr_rcur_left(&c) != got.len) {
		return fr_wire_bad(why, "length");
	}
	if (got.type < FR_LINK_ACK || got.type > FR_LINK_RESET) {
		return fr_wire_bad(why, "type");
	}
	if ((got.flags & ~link_flags(got.type)) != 0) {
		return fr_wire_bad(why, "flags");
	}
	if (link_is_bare(got.type) && (got.seq != 0 || got.len != 0)) {
		return fr_wire_bad(why, "a number or a body where none is");
	}
	*h = got;
	return 0;
}

static bool cts_is_sane(const struct fr_cts *m)
{
	if (m->comm >= FR_IMM_COMM_CNT || m->entry_cnt > FR_CTS_MAX_ENTRIES ||
	    m->key_cnt > FR_LINK_MAX_KEYS ||
	    (m->entry_cnt == 0) != (m->key_cnt == 0)) {
		return false;
	}
	for (unsigned i = 0; i < m->entry_cnt; i++) {
		const struct fr_cts_entry *e = &m->entries[i];

		if (e->group == 0 || e->group > MAX_GROUP ||
		    e->index >= e->group) {
			return false;
		}
	}
	return true;
}

int fr_cts_encode(const struct fr_cts *m, void *buf, size_t bytes)
{
	struct fr_wcur c;

	if (!cts_is_sane(m)) {
		return -EINVAL;
	}
	fr_wcur_init(&c, buf, bytes);
	fr_put_u32(&c, m->comm);
	fr_put_u32(&c, m->nonce);
	fr_put_u32(&c, m->done32);
	fr_put_u32(&c, m->prev32);
	fr_put_u32(&c, m->first32);
	fr_put_u8(&c, m->entry_cnt);
	fr_put_u8(&c, m->key_cnt);
	fr_put_u16(&c, 0);
	for (unsigned i = 0; i < m->entry_cnt; i++) {
		const struct fr_cts_entry *e = &m->entries[i];

		fr_put_u32(&c, (uint32_t)e->tag);
		fr_put_u8(&c, e->group);
		fr_put_u8(&c, e->index);
		fr_put_u16(&c, 0);
		fr_put_u64(&c, e->addr);
		fr_put_u64(&c, e->len);
		for (unsigned k = 0; k < m->key_cnt; k++) {
			fr_put_u64(&c, e->keys[k]);
		}
	}
	return c.bad ? -EMSGSIZE : (int)(c.pos - (uint8_t *)buf);
}

/* Looks at all entries before one is written to the caller's struct. */
static bool cts_entries_are_sane(const uint8_t *entries, unsigned entry_cnt,
				 size_t stride)
{
	for (unsigned i = 0; i < entry_cnt; i++) {
		const uint8_t *at =
			entries + i * stride + CTS_ENTRY_GROUP_OFFSET;
		uint8_t group = at[0];
		uint8_t index = at[1];

		if (group == 0 || group > MAX_GROUP || index >= group ||
		    at[2] != 0 || at[3] != 0) {
			return false;
		}
	}
	return true;
}

static void cts_get_entry(struct fr_rcur *c, unsigned key_cnt,
			  struct fr_cts_entry *e)
{
	e->tag = (int32_t)fr_get_u32(c);
	e->group = fr_get_u8(c);
	e->index = fr_get_u8(c);
	fr_get_view(c, 2);
	e->addr = fr_get_u64(c);
	e->len = fr_get_u64(c);
	memset(e->keys, 0, sizeof(e->keys));
	for (unsigned k = 0; k < key_cnt; k++) {
		e->keys[k] = fr_get_u64(c);
	}
}

int fr_cts_decode(struct fr_cts *m, const void *buf, size_t bytes,
		  const char **why)
{
	uint32_t comm, nonce, done32, prev32, first32;
	uint8_t entry_cnt, key_cnt;
	uint16_t flags;
	struct fr_rcur c;
	size_t stride;

	fr_rcur_init(&c, buf, bytes);
	comm = fr_get_u32(&c);
	nonce = fr_get_u32(&c);
	done32 = fr_get_u32(&c);
	prev32 = fr_get_u32(&c);
	first32 = fr_get_u32(&c);
	entry_cnt = fr_get_u8(&c);
	key_cnt = fr_get_u8(&c);
	flags = fr_get_u16(&c);
	stride = CTS_ENTRY_BYTES + (size_t)key_cnt * KEY_BYTES;
	if (c.bad || fr_rcur_left(&c) != entry_cnt * stride) {
		return fr_wire_bad(why, "cts length");
	}
	if (comm >= FR_IMM_COMM_CNT) {
		return fr_wire_bad(why, "cts comm id");
	}
	if (entry_cnt > FR_CTS_MAX_ENTRIES) {
		return fr_wire_bad(why, "cts entry count");
	}
	if (key_cnt > FR_LINK_MAX_KEYS || (entry_cnt == 0) != (key_cnt == 0)) {
		return fr_wire_bad(why, "cts key count");
	}
	if (flags != 0) {
		return fr_wire_bad(why, "cts flags");
	}
	if (!cts_entries_are_sane(c.pos, entry_cnt, stride)) {
		return fr_wire_bad(why, "cts group");
	}
	m->comm = comm;
	m->nonce = nonce;
	m->done32 = done32;
	m->prev32 = prev32;
	m->first32 = first32;
	m->entry_cnt = entry_cnt;
	m->key_cnt = key_cnt;
	for (unsigned i = 0; i < entry_cnt; i++) {
		cts_get_entry(&c, key_cnt, &m->entries[i]);
	}
	return 0;
}

void fr_eager_hdr_encode(const struct fr_eager *m, void *buf)
{
	struct fr_wcur c;

	assert(m->comm < FR_IMM_COMM_CNT);
	fr_wcur_init(&c, buf, FR_EAGER_HDR_BYTES);
	fr_put_u32(&c, m->comm);
	fr_put_u32(&c, m->nonce);
	fr_put_u32(&c, m->index);
	fr_put_u32(&c, m->base32);
	fr_put_u32(&c, (uint32_t)m->tag);
	fr_put_u32(&c, m->len);
}

int fr_eager_decode(struct fr_eager *m, const void *buf, size_t bytes,
		    const uint8_t **payload, const char **why)
{
	struct fr_eager got;
	struct fr_rcur c;

	fr_rcur_init(&c, buf, bytes);
	got.comm = fr_get_u32(&c);
	got.nonce = fr_get_u32(&c);
	got.index = fr_get_u32(&c);
	got.base32 = fr_get_u32(&c);
	got.tag = (int32_t)fr_get_u32(&c);
	got.len = fr_get_u32(&c);
	if (c.bad || fr_rcur_left(&c) != got.len) {
		return fr_wire_bad(why, "eager length");
	}
	if (got.comm >= FR_IMM_COMM_CNT) {
		return fr_wire_bad(why, "eager comm id");
	}
	*m = got;
	*payload = c.pos;
	return 0;
}

int fr_link_note_encode(uint8_t type, const struct fr_link_note *m, void *buf,
			size_t bytes)
{
	bool ping = type == FR_LINK_PING || type == FR_LINK_PONG;
	struct fr_wcur c;

	if (!ping && m->comm >= FR_IMM_COMM_CNT) {
		return -EINVAL;
	}
	fr_wcur_init(&c, buf, bytes);
	if (!ping) {
		fr_put_u32(&c, m->comm);
		fr_put_u32(&c, m->nonce);
		fr_put_u32(&c, m->seq);
	}
	switch (type) {
	case FR_LINK_WANT:
	case FR_LINK_CLOSE:
	case FR_LINK_CLOSED:
		break;
	case FR_LINK_NACK:
		if ((m->flags & ~NACK_FLAGS) != 0) {
			return -EINVAL;
		}
		fr_put_u32(&c, m->flags);
		fr_put_u64(&c, m->a);
		fr_put_u64(&c, m->b);
		break;
	case FR_LINK_LENGTH:
		fr_put_u32(&c, 0);
		fr_put_u64(&c, m->a);
		break;
	case FR_LINK_PING:
	case FR_LINK_PONG:
		fr_put_u64(&c, m->a);
		break;
	default:
		return -EINVAL;
	}
	return c.bad ? -EMSGSIZE : (int)(c.pos - (uint8_t *)buf);
}

int fr_link_note_decode(uint8_t type, struct fr_link_note *m, const void *buf,
			size_t bytes, const char **why)
{
	bool ping = type == FR_LINK_PING || type == FR_LINK_PONG;
	struct fr_link_note got = {0};
	struct fr_rcur c;

	fr_rcur_init(&c, buf, bytes);
	if (!ping) {
		got.comm = fr_get_u32(&c);
		got.nonce = fr_get_u32(&c);
		got.seq = fr_get_u32(&c);
	}
	switch (type) {
	case FR_LINK_WANT:
	case FR_LINK_CLOSE:
	case FR_LINK_CLOSED:
		break;
	case FR_LINK_NACK:
	case FR_LINK_LENGTH:
		got.flags = fr_get_u32(&c);
		got.a = fr_get_u64(&c);
		got.b = type == FR_LINK_NACK ? fr_get_u64(&c) : 0;
		break;
	case FR_LINK_PING:
	case FR_LINK_PONG:
		got.a = fr_get_u64(&c);
		break;
	default:
		return fr_wire_bad(why, "type");
	}
	if (c.bad || fr_rcur_left(&c) != 0) {
		return fr_wire_bad(why, "length");
	}
	if (got.comm >= FR_IMM_COMM_CNT) {
		return fr_wire_bad(why, "comm id");
	}
	if ((got.flags & ~(type == FR_LINK_NACK ? NACK_FLAGS : 0u)) != 0) {
		return fr_wire_bad(why, "flags");
	}
	*m = got;
	return 0;
}
