#include "wire/handle.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"
#include "wire/field.h"

#define NAMES_OFFSET 16u
#define SLOT_BYTES 3u /* knock port, provider */
/* An IPv4 socket address: family 2, port and address, then 8 unused bytes. */
#define SOCKADDR4_BYTES 16u
#define SOCKADDR4_PAD_OFFSET 8u
#define SOCKADDR4_PAD_BYTES 8u

static const uint8_t magic[4] = {'F', 'R', 'N', 'H'};

/* End of the part that the listener writes. */
static size_t names_end(size_t handle_bytes)
{
	return FR_MIN(handle_bytes, (size_t)FR_HANDLE_STATE_OFFSET);
}

static bool is_sockaddr4(const struct fr_name *name)
{
	return name->len == SOCKADDR4_BYTES && name->bytes[0] == 2 &&
	       name->bytes[1] == 0 &&
	       fr_bytes_zero(name->bytes + SOCKADDR4_PAD_OFFSET,
			     SOCKADDR4_PAD_BYTES);
}

/* Where port and provider go when @used bytes are taken; 0: nowhere. */
static unsigned choose_slot(const struct fr_handle *h, size_t used, size_t end)
{
	if (h->knock_port == 0 && h->prov == 0) {
		return 0;
	}
	if (end - used >= SLOT_BYTES) {
		return (unsigned)used;
	}
	if (is_sockaddr4(&h->names[0])) {
		return NAMES_OFFSET + SOCKADDR4_PAD_OFFSET;
	}
	return 0;
}

static unsigned put_names(struct fr_wcur *c, const struct fr_handle *h)
{
	unsigned len = h->names[0].len;
	unsigned cnt = 0;

	for (unsigned i = 0; i < h->name_cnt; i++) {
		if (h->names[i].len == len &&
		    (size_t)(c->end - c->pos) >= len) {
			fr_put_bytes(c, h->names[i].bytes, len);
			cnt++;
		}
	}
	return cnt;
}

int fr_handle_encode(const struct fr_handle *h, void *buf, size_t bytes)
{
	uint8_t *base = buf;
	size_t end = names_end(bytes);
	struct fr_wcur c;
	unsigned cnt, slot;

	if ((bytes != FR_HANDLE_BYTES && bytes != FR_HANDLE_BYTES_V4) ||
	    h->name_cnt == 0 || h->name_cnt > FR_HANDLE_MAX_NAMES ||
	    h->names[0].len == 0 || h->names[0].len > FR_NAME_MAX ||
	    h->names[0].len > end - NAMES_OFFSET) {
		return -EINVAL;
	}

	memset(buf, 0, bytes);
	fr_wcur_init(&c, base + NAMES_OFFSET, end - NAMES_OFFSET);
	cnt = put_names(&c, h);
	slot = choose_slot(h, (size_t)(c.pos - base), end);

	fr_wcur_init(&c, base, NAMES_OFFSET);
	fr_put_bytes(&c, magic, sizeof(magic));
	fr_put_u8(&c, FR_HANDLE_VERSION);
	fr_put_u8(&c, (uint8_t)cnt);
	fr_put_u8(&c, (uint8_t)h->names[0].len);
	fr_put_u8(&c, (uint8_t)slot);
	fr_put_u64(&c, h->cookie);
	if (slot != 0) {
		fr_wcur_init(&c, base + slot, SLOT_BYTES);
		fr_put_u16(&c, h->knock_port);
		fr_put_u8(&c, h->prov);
	}
	return 0;
}

static void get_slot(struct fr_handle *h, const uint8_t *base, size_t end,
		     unsigned slot)
{
	struct fr_rcur c;

	if (slot < NAMES_OFFSET || slot + SLOT_BYTES > end) {
		return;
	}
	fr_rcur_init(&c, base + slot, SLOT_BYTES);
	h->knock_port = fr_get_u16(&c);
	h->prov = fr_get_u8(&c);
}

/* Takes the names that lie in [NAMES_OFFSET, @end); @slot in the padding of the
 * first is blanked. */
static void get_names(struct fr_handle *h, const uint8_t *base, size_t end,
		      unsigned cnt, unsigned len, unsigned slot)
{
	size_t at = NAMES_OFFSET;

	for (unsigned i = 0; i < cnt && at + len <= end; i++) {
		h->names[i].len = (uint16_t)len;
		memcpy(h->names[i].bytes, base + at, len);
		h->name_cnt++;
		at += len;
	}
	if (slot == NAMES_OFFSET + SOCKADDR4_PAD_OFFSET &&
	    len == SOCKADDR4_BYTES) {
		memset(h->names[0].bytes + SOCKADDR4_PAD_OFFSET, 0,
		       SOCKADDR4_PAD_BYTES);
	}
}

/* The slot lies right after the names, or in the padding of an IPv4 name. */
static bool slot_fits(unsigned slot, unsigned cnt, unsigned len)
{
	if (slot == 0 || slot == NAMES_OFFSET + cnt * len) {
		return true;
	}
	return len == SOCKADDR4_BYTES &&
	       slot == NAMES_OFFSET + SOCKADDR4_PAD_OFFSET;
}

static bool tail_is_zero(const uint8_t *base, size_t end, unsigned cnt,
			 unsigned len, unsigned slot)
{
	size_t at = NAMES_OFFSET + cnt * len;

	if (slot == at) {
		at += SLOT_BYTES;
	}
	return at >= end || fr_bytes_zero(base + at, end - at);
}

int fr_handle_decode(struct fr_handle *h, const void *buf, size_t bytes,
		     const char **why)
{
	const uint8_t *base = buf;
	size_t end = names_end(bytes);
	struct fr_handle got = {0};
	unsigned cnt, len, slot;
	const uint8_t *mark;
	struct fr_rcur c;

	if (bytes != FR_HANDLE_BYTES && bytes != FR_HANDLE_BYTES_V4) {
		return fr_wire_bad(why, "size of the handle");
	}
	fr_rcur_init(&c, buf, NAMES_OFFSET);
	mark = fr_get_view(&c, sizeof(magic));
	got.version = fr_get_u8(&c);
	cnt = fr_get_u8(&c);
	len = fr_get_u8(&c);
	slot = fr_get_u8(&c);
	got.cookie = fr_get_u64(&c);

	if (memcmp(mark, magic, sizeof(magic)) != 0) {
		return fr_wire_bad(why, "magic");
	}
	if (got.version != FR_HANDLE_VERSION) {
		get_slot(&got, base, end, slot);
		if (cnt != 0 && len != 0 && len <= FR_NAME_MAX) {
			get_names(&got, base, end, 1, len, slot);
		}
		*h = got;
		*why = "version";
		return -EPROTONOSUPPORT;
	}
	if (cnt == 0 || cnt > FR_HANDLE_MAX_NAMES) {
		return fr_wire_bad(why, "name count");
	}
	if (len == 0 || len > FR_NAME_MAX || NAMES_OFFSET + len > end ||
	    NAMES_OFFSET + cnt * len > FR_HANDLE_STATE_OFFSET) {
		return fr_wire_bad(why, "name length");
	}
	if (!slot_fits(slot, cnt, len)) {
		return fr_wire_bad(why, "port slot");
	}
	if (!tail_is_zero(base, end, cnt, len, slot)) {
		return fr_wire_bad(why, "bytes behind the names");
	}
	get_slot(&got, base, end, slot);
	get_names(&got, base, end, cnt, len, slot);
	*h = got;
	return 0;
}
