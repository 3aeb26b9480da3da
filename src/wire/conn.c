#include "wire/conn.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"
#include "wire/field.h"
#include "wire/imm.h"

#define FIXED_RAILS 4u
#define STATUS_MAX 4095

enum tlv {
	TLV_RAIL = 1,
	TLV_SET = 2,
	TLV_SCRATCH = 3,
	TLV_TEXT = 4,
	TLV_COMM = 5,
	TLV_STATUS = 6,
	TLV_CNT
};

#define TLV_HDR_BYTES 4u
#define RAIL_BYTES 45u /* without interface and names */
#define SET_BYTES 16u
#define COMM_BYTES 16u
#define STATUS_BYTES 4u

/* The longest message that encode can write fits: see fr_conn_encode. */
_Static_assert(FR_CONN_FIXED_BYTES +
			       FR_CONN_MAX_RAILS *
				       (TLV_HDR_BYTES + RAIL_BYTES + 15) +
			       (FR_CONN_MAX_RAILS - FIXED_RAILS) *
				       (2 + 2 * FR_NAME_MAX) +
			       (TLV_HDR_BYTES + SET_BYTES) +
			       (TLV_HDR_BYTES + 8 + 8 * FR_CONN_MAX_RAILS) +
			       (TLV_HDR_BYTES + FR_CONN_TEXT_MAX - 1) +
			       (TLV_HDR_BYTES + COMM_BYTES) +
			       (TLV_HDR_BYTES + STATUS_BYTES) <=
		       FR_CONN_MAX_BYTES,
	       "a connect message outgrows its limit");

static bool host_bits_zero(const uint8_t subnet[16], unsigned prefix)
{
	for (unsigned bit = prefix; bit < 128; bit++) {
		if ((subnet[bit / 8] & (0x80u >> bit % 8)) != 0) {
			return false;
		}
	}
	return true;
}

static const char *rail_fault(const struct fr_conn_rail *rail)
{
	if (rail->data.len == 0 || rail->data.len > FR_NAME_MAX) {
		return "data name";
	}
	if (rail->ctrl.len > FR_NAME_MAX) {
		return "control name";
	}
	if (rail->prefix > 128 || !host_bits_zero(rail->subnet, rail->prefix)) {
		return "subnet";
	}
	if (memchr(rail->iface, '\0', sizeof(rail->iface)) == NULL) {
		return "interface name";
	}
	if (rail->incarnation == 0) {
		return "incarnation";
	}
	return NULL;
}

/* What is wrong with @m; NULL when it may travel. A refusal may be without
 * rails, and then leaves unsaid what only matters with them. */
static const char *conn_fault(const struct fr_conn_msg *m)
{
	const char *fault = NULL;

	if (m->type != FR_CONN_REQUEST && m->type != FR_CONN_RESPONSE) {
		return "type";
	}
	if (m->comm >= FR_IMM_COMM_CNT) {
		return "comm id";
	}
	if (m->rail_cnt > FR_CONN_MAX_RAILS) {
		return "rail count";
	}
	if (m->status < 0 || m->status > STATUS_MAX ||
	    (m->status != 0 && m->type == FR_CONN_REQUEST)) {
		return "status";
	}
	if (memchr(m->text, '\0', sizeof(m->text)) == NULL) {
		return "text";
	}
	if (m->cq_data_bytes != 4 && m->cq_data_bytes != 8 &&
	    (m->cq_data_bytes != 0 || m->rail_cnt != 0)) {
		return "size of completion data";
	}
	if (m->window == 0 && m->rail_cnt != 0) {
		return "window";
	}
	for (unsigned i = 0; i < m->rail_cnt && fault == NULL; i++) {
		fault = rail_fault(&m->rails[i]);
	}
	return fault;
}

static unsigned ctrl_cnt(const struct fr_conn_msg *m)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < m->rail_cnt; i++) {
		cnt += m->rails[i].ctrl.len != 0;
	}
	return cnt;
}

static void put_fixed_name(struct fr_wcur *c, const struct fr_name *name)
{
	fr_put_name(c, name);
	fr_put_u64(c, name->len);
}

static void put_fixed(struct fr_wcur *c, const struct fr_conn_msg *m)
{
	static const struct fr_name none;

	fr_put_u8(c, (uint8_t)(m->type | FR_CONN_VERSION << 4));
	fr_put_u8(c, (uint8_t)(m->rail_cnt | ctrl_cnt(m) << 4));
	fr_put_u16(c, m->features);
	fr_put_u32(c, m->comm);
	fr_put_u64(c, m->cookie);
	for (unsigned i = 0; i < FIXED_RAILS; i++) {
		put_fixed_name(c, i < m->rail_cnt ? &m->rails[i].data : &none);
	}
	for (unsigned i = 0; i < FIXED_RAILS; i++) {
		put_fixed_name(c, i < m->rail_cnt ? &m->rails[i].ctrl : &none);
	}
}

static void put_tlv_hdr(struct fr_wcur *c, enum tlv type, size_t bytes)
{
	fr_put_u16(c, (uint16_t)type);
	fr_put_u16(c, (uint16_t)bytes);
}

static void put_rail(struct fr_wcur *c, const struct fr_conn_rail *rail,
		     unsigned idx)
{
	size_t iface_len = strlen(rail->iface);
	size_t bytes = RAIL_BYTES + iface_len;

	if (idx >= FIXED_RAILS) {
		bytes += 2u + rail->data.len + rail->ctrl.len;
	}
	put_tlv_hdr(c, TLV_RAIL, bytes);
	fr_put_u8(c, (uint8_t)idx);
	fr_put_u8(c, rail->prefix);
	fr_put_u16(c, rail->knock_port);
	fr_put_u32(c, rail->speed_mbps);
	fr_put_u32(c, rail->incarnation);
	fr_put_bytes(c, rail->subnet, sizeof(rail->subnet));
	fr_put_bytes(c, rail->knock_addr, sizeof(rail->knock_addr));
	fr_put_u8(c, (uint8_t)iface_len);
	fr_put_bytes(c, rail->iface, iface_len);
	if (idx >= FIXED_RAILS) {
		fr_put_u8(c, (uint8_t)rail->data.len);
		fr_put_bytes(c, rail->data.bytes, rail->data.len);
		fr_put_u8(c, (uint8_t)rail->ctrl.len);
		fr_put_bytes(c, rail->ctrl.bytes, rail->ctrl.len);
	}
}

/* A field that every message has comes last, so that no truncation passes. */
static void put_tlvs(struct fr_wcur *c, const struct fr_conn_msg *m)
{
	size_t text_len = strlen(m->text);

	if (text_len != 0) {
		put_tlv_hdr(c, TLV_TEXT, text_len);
		fr_put_bytes(c, m->text, text_len);
	}

	put_tlv_hdr(c, TLV_COMM, COMM_BYTES);
	fr_put_u32(c, m->nonce);
	fr_put_u8(c, m->prov);
	fr_put_u8(c, m->cq_data_bytes);
	fr_put_u16(c, 0);
	fr_put_u64(c, m->connect_id);

	put_tlv_hdr(c, TLV_SET, SET_BYTES);
	fr_put_u64(c, m->set_id);
	fr_put_u32(c, m->window);
	fr_put_u32(c, m->eager_max_bytes);

	put_tlv_hdr(c, TLV_SCRATCH, 8 + 8 * (size_t)m->rail_cnt);
	fr_put_u64(c, m->scratch_addr);
	for (unsigned i = 0; i < m->rail_cnt; i++) {
		fr_put_u64(c, m->scratch_key[i]);
	}

	for (unsigned i = 0; i < m->rail_cnt; i++) {
		put_rail(c, &m->rails[i], i);
	}
	if (m->type == FR_CONN_RESPONSE) {
		put_tlv_hdr(c, TLV_STATUS, STATUS_BYTES);
		fr_put_u32(c, (uint32_t)m->status);
	}
}

int fr_conn_encode(const struct fr_conn_msg *m, void *buf, size_t bytes)
{
	struct fr_wcur c;

	if (conn_fault(m) != NULL) {
		return -EINVAL;
	}
	fr_wcur_init(&c, buf, bytes);
	put_fixed(&c, m);
	put_tlvs(&c, m);
	return c.bad ? -EMSGSIZE : (int)(c.pos - (uint8_t *)buf);
}

/* What decode has seen so far. */
struct seen {
	uint32_t tlvs;	/* bit a type */
	uint32_t rails; /* bit a RAIL index */
};

static const char *get_rail_names(struct fr_rcur *c, struct fr_conn_rail *rail)
{
	rail->data.len = fr_get_u8(c);
	if (rail->data.len > FR_NAME_MAX) {
		return "data name";
	}
	fr_get_bytes(c, rail->data.bytes, rail->data.len);
	rail->ctrl.len = fr_get_u8(c);
	if (rail->ctrl.len > FR_NAME_MAX) {
		return "control name";
	}
	fr_get_bytes(c, rail->ctrl.bytes, rail->ctrl.len);
	return NULL;
}

static const char *get_rail(struct fr_rcur *c, struct fr_conn_msg *m,
			    struct seen *seen)
{
	unsigned idx = fr_get_u8(c);
	struct fr_conn_rail *rail;
	const char *fault = NULL;
	size_t iface_len;

	if (idx >= m->rail_cnt || (seen->rails & FR_BIT(idx)) != 0) {
		return "rail index";
	}
	seen->rails |= FR_BIT(idx);
	rail = &m->rails[idx];
	rail->prefix = fr_get_u8(c);
	rail->knock_port = fr_get_u16(c);
	rail->speed_mbps = fr_get_u32(c);
	rail->incarnation = fr_get_u32(c);
	fr_get_bytes(c, rail->subnet, sizeof(rail->subnet));
	fr_get_bytes(c, rail->knock_addr, sizeof(rail->knock_addr));
	iface_len = fr_get_u8(c);
	if (iface_len >= sizeof(rail->iface)) {
		return "interface name";
	}
	fr_get_bytes(c, rail->iface, iface_len);
	fr_text_clean(rail->iface, iface_len);
	if (idx >= FIXED_RAILS) {
		fault = get_rail_names(c, rail);
	}
	return fault;
}

static const char *get_comm(struct fr_rcur *c, struct fr_conn_msg *m)
{
	m->nonce = fr_get_u32(c);
	m->prov = fr_get_u8(c);
	m->cq_data_bytes = fr_get_u8(c);
	if (fr_get_u16(c) != 0) {
		return "padding";
	}
	m->connect_id = fr_get_u64(c);
	return NULL;
}

static const char *get_status(struct fr_rcur *c, struct fr_conn_msg *m)
{
	uint32_t status = fr_get_u32(c);

	if (status > STATUS_MAX) {
		return "status";
	}
	m->status = (int32_t)status;
	return m->type == FR_CONN_RESPONSE ? NULL : "status in a request";
}

static const char *get_text(struct fr_rcur *c, struct fr_conn_msg *m)
{
	size_t len = fr_rcur_left(c);

	if (len == 0 || len >= sizeof(m->text)) {
		return "text length";
	}
	fr_get_bytes(c, m->text, len);
	fr_text_clean(m->text, len);
	return NULL;
}

/* @c holds exactly the value. */
static const char *get_tlv(struct fr_rcur *c, unsigned type,
			   struct fr_conn_msg *m, struct seen *seen)
{
	if (type < TLV_CNT && type != TLV_RAIL) {
		if ((seen->tlvs & FR_BIT(type)) != 0) {
			return "repeated field";
		}
		seen->tlvs |= FR_BIT(type);
	}
	switch (type) {
	case TLV_RAIL:
		return get_rail(c, m, seen);
	case TLV_SET:
		m->set_id = fr_get_u64(c);
		m->window = fr_get_u32(c);
		m->eager_max_bytes = fr_get_u32(c);
		return NULL;
	case TLV_SCRATCH:
		m->scratch_addr = fr_get_u64(c);
		for (unsigned i = 0; i < m->rail_cnt; i++) {
			m->scratch_key[i] = fr_get_u64(c);
		}
		return NULL;
	case TLV_TEXT:
		return get_text(c, m);
	case TLV_COMM:
		return get_comm(c, m);
	case TLV_STATUS:
		return get_status(c, m);
	default:
		fr_get_view(c, fr_rcur_left(c));
		return NULL;
	}
}

static const char *get_tlvs(struct fr_rcur *c, struct fr_conn_msg *m)
{
	uint32_t need =
		FR_BIT(TLV_COMM) | FR_BIT(TLV_SET) | FR_BIT(TLV_SCRATCH);
	struct seen seen = {0};

	if (m->type == FR_CONN_RESPONSE) {
		need |= FR_BIT(TLV_STATUS);
	}
	while (fr_rcur_left(c) != 0) {
		unsigned type = fr_get_u16(c);
		size_t bytes = fr_get_u16(c);
		const uint8_t *value = fr_get_view(c, bytes);
		const char *fault;
		struct fr_rcur v;

		if (value == NULL) {
			return "length of a field";
		}
		fr_rcur_init(&v, value, bytes);
		fault = get_tlv(&v, type, m, &seen);
		if (fault != NULL) {
			return fault;
		}
		if (v.bad || fr_rcur_left(&v) != 0) {
			return "length of a field";
		}
	}
	if ((seen.tlvs & need) != need ||
	    seen.rails != FR_BIT(m->rail_cnt) - 1) {
		return "missing field";
	}
	return NULL;
}

static bool get_fixed_name(struct fr_rcur *c, struct fr_name *name)
{
	const uint8_t *field = fr_get_view(c, FR_NAME_MAX);
	uint64_t len = fr_get_u64(c);

	return fr_name_load(name, field, len);
}

static const char *get_fixed_names(struct fr_rcur *c, struct fr_conn_msg *m)
{
	struct fr_name name;

	for (unsigned i = 0; i < 2 * FIXED_RAILS; i++) {
		unsigned idx = i % FIXED_RAILS;

		if (!get_fixed_name(c, &name)) {
			return "name";
		}
		if (idx >= m->rail_cnt) {
			if (name.len != 0) {
				return "name of a missing rail";
			}
		} else if (i < FIXED_RAILS) {
			m->rails[idx].data = name;
		} else {
			m->rails[idx].ctrl = name;
		}
	}
	return NULL;
}

static const char *get_body(struct fr_rcur *c, struct fr_conn_msg *m,
			    unsigned ctrl_rails)
{
	const char *fault;

	if (m->rail_cnt > FR_CONN_MAX_RAILS) {
		return "rail count";
	}
	fault = get_fixed_names(c, m);
	if (fault != NULL) {
		return fault;
	}
	fault = get_tlvs(c, m);
	if (fault != NULL) {
		return fault;
	}
	if (ctrl_rails != ctrl_cnt(m)) {
		return "control rail count";
	}
	return conn_fault(m);
}

int fr_conn_decode(struct fr_conn_msg *m, const void *buf, size_t bytes,
		   const char **why)
{
	struct fr_conn_msg got;
	const char *fault;
	uint8_t first, rails;
	struct fr_rcur c;

	memset(&got, 0, sizeof(got));
	fr_rcur_init(&c, buf, bytes);
	first = fr_get_u8(&c);
	rails = fr_get_u8(&c);
	got.type = first & 0x0f;
	got.version = first >> 4;
	got.rail_cnt = rails & 0x0f;
	got.features = fr_get_u16(&c);
	got.comm = fr_get_u32(&c);
	got.cookie = fr_get_u64(&c);
	if (c.bad || bytes > FR_CONN_MAX_BYTES) {
		return fr_wire_bad(why, "length");
	}
	if (got.type != FR_CONN_REQUEST && got.type != FR_CONN_RESPONSE) {
		return fr_wire_bad(why, "type");
	}
	if (got.comm >= FR_IMM_COMM_CNT) {
		return fr_wire_bad(why, "comm id");
	}
	if (got.version != FR_CONN_VERSION) {
		m->type = got.type;
		m->version = got.version;
		m->comm = got.comm;
		m->cookie = got.cookie;
		*why = "version";
		return -EPROTONOSUPPORT;
	}
	if (bytes < FR_CONN_FIXED_BYTES) {
		return fr_wire_bad(why, "length");
	}
	fault = get_body(&c, &got, rails >> 4);
	if (fault != NULL) {
		return fr_wire_bad(why, fault);
	}
	*m = got;
	return 0;
}
