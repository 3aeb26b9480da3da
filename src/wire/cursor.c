#include "wire/cursor.h"

#include <string.h>

void fr_wcur_init(struct fr_wcur *c, void *buf, size_t bytes)
{
	c->pos = buf;
	c->end = c->pos + bytes;
	c->bad = false;
}

/* Where the next @bytes go; NULL, and bad from now on, when there is no room.
 */
static uint8_t *wcur_take(struct fr_wcur *c, size_t bytes)
{
	uint8_t *at = c->pos;

	if (c->bad || (size_t)(c->end - c->pos) < bytes) {
		c->bad = true;
		return NULL;
	}
	c->pos += bytes;
	return at;
}

static void wcur_put_int(struct fr_wcur *c, uint64_t v, size_t bytes)
{
	uint8_t *at = wcur_take(c, bytes);

	if (at == NULL) {
		return;
	}
	for (size_t i = 0; i < bytes; i++) {
		at[i] = (uint8_t)(v >> (8 * i));
	}
}

void fr_put_u8(struct fr_wcur *c, uint8_t v)
{
	wcur_put_int(c, v, 1);
}

void fr_put_u16(struct fr_wcur *c, uint16_t v)
{
	wcur_put_int(c, v, 2);
}

void fr_put_u32(struct fr_wcur *c, uint32_t v)
{
	wcur_put_int(c, v, 4);
}

void fr_put_u64(struct fr_wcur *c, uint64_t v)
{
	wcur_put_int(c, v, 8);
}

void fr_put_bytes(struct fr_wcur *c, const void *src, size_t bytes)
{
	uint8_t *at = wcur_take(c, bytes);

	if (at != NULL && bytes != 0) {
		memcpy(at, src, bytes);
	}
}

void fr_put_zeros(struct fr_wcur *c, size_t bytes)
{
	uint8_t *at = wcur_take(c, bytes);

	if (at != NULL && bytes != 0) {
		memset(at, 0, bytes);
	}
}

void fr_rcur_init(struct fr_rcur *c, const void *buf, size_t bytes)
{
	c->pos = buf;
	c->end = c->pos + bytes;
	c->bad = false;
}

size_t fr_rcur_left(const struct fr_rcur *c)
{
	return c->bad ? 0 : (size_t)(c->end - c->pos);
}

const uint8_t *fr_get_view(struct fr_rcur *c, size_t bytes)
{
	const uint8_t *at = c->pos;

	if (c->bad || (size_t)(c->end - c->pos) < bytes) {
		c->bad = true;
		return NULL;
	}
	c->pos += bytes;
	return at;
}

static uint64_t rcur_get_int(struct fr_rcur *c, size_t bytes)
{
	const uint8_t *at = fr_get_view(c, bytes);
	uint64_t v = 0;

	if (at == NULL) {
		return 0;
	}
	for (size_t i = 0; i < bytes; i++) {
		v |= (uint64_t)at[i] << (8 * i);
	}
	return v;
}

uint8_t fr_get_u8(struct fr_rcur *c)
{
	return (uint8_t)rcur_get_int(c, 1);
}

uint16_t fr_get_u16(struct fr_rcur *c)
{
	return (uint16_t)rcur_get_int(c, 2);
}

uint32_t fr_get_u32(struct fr_rcur *c)
{
	return (uint32_t)rcur_get_int(c, 4);
}

uint64_t fr_get_u64(struct fr_rcur *c)
{
	return rcur_get_int(c, 8);
}

void fr_get_bytes(struct fr_rcur *c, void *dst, size_t bytes)
{
	const uint8_t *at = fr_get_view(c, bytes);

	if (bytes == 0) {
		return;
	}
	if (at == NULL) {
		memset(dst, 0, bytes);
		return;
	}
	memcpy(dst, at, bytes);
}
