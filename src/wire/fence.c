#include "wire/fence.h"

#include <errno.h>
#include <string.h>

#include "wire/cursor.h"
#include "wire/field.h"
#include "wire/imm.h"
#include "wire/link.h"

#define MAX_RAILS 8u
#define ITEM_BYTES 12u

/* What is wrong with @m; NULL when it may travel. */
static const char *fence_fault(const struct fr_fence *m)
{
	if (m->rail >= MAX_RAILS) {
		return "rail";
	}
	if (m->inc == 0) {
		return "incarnation";
	}
	if (m->type == FR_LINK_FENCED && m->new_inc == 0) {
		return "new incarnation";
	}
	if (m->type != FR_LINK_FENCE &&
	    (m->data.len == 0 || m->data.len > FR_NAME_MAX)) {
		return "data name";
	}
	if (m->type != FR_LINK_FENCE && m->ctrl.len > FR_NAME_MAX) {
		return "control name";
	}
	if (m->type == FR_LINK_RAIL) {
		return NULL;
	}
	if (m->item_cnt > FR_FENCE_MAX_ITEMS) {
		return "item count";
	}
	for (unsigned i = 0; i < m->item_cnt; i++) {
		if (m->items[i].comm >= FR_IMM_COMM_CNT) {
			return "comm id";
		}
	}
	return NULL;
}

static void put_named(struct fr_wcur *c, const struct fr_name *name)
{
	fr_put_u16(c, name->len);
	fr_put_u16(c, 0);
	fr_put_name(c, name);
}

static void put_items(struct fr_wcur *c, const struct fr_fence *m)
{
	for (unsigned i = 0; i < m->item_cnt; i++) {
		fr_put_u32(c, m->items[i].comm);
		fr_put_u32(c, m->items[i].seq);
		fr_put_u32(c, m->items[i].value);
	}
}

int fr_fence_encode(const struct fr_fence *m, void *buf, size_t bytes)
{
	struct fr_wcur c;

	if ((m->type != FR_LINK_FENCE && m->type != FR_LINK_FENCED &&
	     m->type != FR_LINK_RAIL) ||
	    fence_fault(m) != NULL) {
		return -EINVAL;
	}
	fr_wcur_init(&c, buf, bytes);
	fr_put_u8(&c, m->rail);
	fr_put_u8(&c, 0);
	fr_put_u16(&c, m->type == FR_LINK_RAIL ? 0 : (uint16_t)m->item_cnt);
	fr_put_u32(&c, m->inc);
	switch (m->type) {
	case FR_LINK_FENCED:
		fr_put_u32(&c, m->new_inc);
		put_named(&c, &m->data);
		put_named(&c, &m->ctrl);
		put_items(&c, m);
		break;
	case FR_LINK_RAIL:
		put_named(&c, &m->ctrl);
		put_named(&c, &m->data);
		break;
	default:
		put_items(&c, m);
		break;
	}
	return c.bad ? -EMSGSIZE : (int)(c.pos - (uint8_t *)buf);
}

static bool get_named(struct fr_rcur *c, struct fr_name *name)
{
	uint16_t len = fr_get_u16(c);
	uint16_t pad = fr_get_u16(c);
	const uint8_t *field = fr_get_view(c, FR_NAME_MAX);

	return pad == 0 && fr_name_load(name, field, len);
}

/* The rest must be exactly the items. */
static bool get_items(struct fr_rcur *c, struct fr_fence *m)
{
	if (m->item_cnt > FR_FENCE_MAX_ITEMS ||
	    fr_rcur_left(c) != (size_t)m->item_cnt * ITEM_BYTES) {
		return false;
	}
	for (unsigned i = 0; i < m->item_cnt; i++) {
		m->items[i].comm = fr_get_u32(c);
		m->items[i].seq = fr_get_u32(c);
		m->items[i].value = fr_get_u32(c);
	}
	return true;
}

static const char *get_body(struct fr_rcur *c, struct fr_fence *m)
{
	switch (m->type) {
	case FR_LINK_FENCED:
		m->new_inc = fr_get_u32(c);
		if (!get_named(c, &m->data)) {
			return "data name";
		}
		if (!get_named(c, &m->ctrl)) {
			return "control name";
		}
		return get_items(c, m) ? NULL : "item count";
	case FR_LINK_RAIL:
		if (!get_named(c, &m->ctrl)) {
			return "control name";
		}
		if (!get_named(c, &m->data)) {
			return "data name";
		}
		return m->item_cnt == 0 && fr_rcur_left(c) == 0 ? NULL
								: "length";
	default:
		return get_items(c, m) ? NULL : "item count";
	}
}

int fr_fence_decode(uint8_t type, struct fr_fence *m, const void *buf,
		    size_t bytes, const char **why)
{
	struct fr_fence got;
	const char *fault;
	struct fr_rcur c;
	uint8_t pad;

	if (type != FR_LINK_FENCE && type != FR_LINK_FENCED &&
	    type != FR_LINK_RAIL) {
		return fr_wire_bad(why, "type");
	}
	memset(&got, 0, sizeof(got));
	fr_rcur_init(&c, buf, bytes);
	got.type = type;
	got.rail = fr_get_u8(&c);
	pad = fr_get_u8(&c);
	got.item_cnt = fr_get_u16(&c);
	got.inc = fr_get_u32(&c);
	if (pad != 0) {
		return fr_wire_bad(why, "padding");
	}
	fault = get_body(&c, &got);
	if (fault == NULL && c.bad) {
		fault = "length";
	}
	if (fault == NULL) {
		fault = fence_fault(&got);
	}
	if (fault != NULL) {
		return fr_wire_bad(why, fault);
	}
	*m = got;
	return 0;
}
