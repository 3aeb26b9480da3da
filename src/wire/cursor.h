/*
 * Reads and writes little-endian integers at any address. A cursor that ran
 * past its end goes bad and stays bad: reads give 0, writes go nowhere, and one
 * check at the end of a codec suffices.
 */
#ifndef FR_WIRE_CURSOR_H
#define FR_WIRE_CURSOR_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

struct fr_wcur { /* writes */
	uint8_t *pos;
	uint8_t *end;
	bool bad;
};

struct fr_rcur { /* reads */
	const uint8_t *pos;
	const uint8_t *end;
	bool bad;
};

static inline void fr_wcur_init(struct fr_wcur *c, void *buf, size_t bytes)
{
	c->pos = buf;
	c->end = c->pos + bytes;
	c->bad = false;
}

/* There is no room for @bytes, and for nothing from now on. */
static inline bool fr_wcur_ends(struct fr_wcur *c, size_t bytes)
{
	if (fr_likely((size_t)(c->end - c->pos) >= bytes)) {
		return false;
	}
	c->bad = true;
	c->end = c->pos;
	return true;
}

static inline void fr_put_bytes(struct fr_wcur *c, const void *src,
				size_t bytes)
{
	if (bytes != 0 && !fr_wcur_ends(c, bytes)) {
		memcpy(c->pos, src, bytes);
		c->pos += bytes;
	}
}

static inline void fr_put_zeros(struct fr_wcur *c, size_t bytes)
{
	if (bytes != 0 && !fr_wcur_ends(c, bytes)) {
		memset(c->pos, 0, bytes);
		c->pos += bytes;
	}
}

static inline void fr_put_u8(struct fr_wcur *c, uint8_t v)
{
	fr_put_bytes(c, &v, sizeof(v));
}

static inline void fr_put_u16(struct fr_wcur *c, uint16_t v)
{
	v = htole16(v);
	fr_put_bytes(c, &v, sizeof(v));
}

static inline void fr_put_u32(struct fr_wcur *c, uint32_t v)
{
	v = htole32(v);
	fr_put_bytes(c, &v, sizeof(v));
}

static inline void fr_put_u64(struct fr_wcur *c, uint64_t v)
{
	v = htole64(v);
	fr_put_bytes(c, &v, sizeof(v));
}

static inline void fr_rcur_init(struct fr_rcur *c, const void *buf,
				size_t bytes)
{
	c->pos = buf;
	c->end = c->pos + bytes;
	c->bad = false;
}

static inline size_t fr_rcur_left(const struct fr_rcur *c)
{
	return (size_t)(c->end - c->pos);
}

/* Steps over @bytes and returns where they start; NULL when short, or bad. */
static inline const uint8_t *fr_get_view(struct fr_rcur *c, size_t bytes)
{
	const uint8_t *at = c->pos;

	if (fr_unlikely((size_t)(c->end - c->pos) < bytes ||
			(bytes == 0 && c->bad))) {
		c->bad = true;
		c->end = c->pos; /* what is shorter is gone too */
		return NULL;
	}
	c->pos += bytes;
	return at;
}

static inline void fr_get_bytes(struct fr_rcur *c, void *dst, size_t bytes)
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

static inline uint8_t fr_get_u8(struct fr_rcur *c)
{
	uint8_t v;

	fr_get_bytes(c, &v, sizeof(v));
	return v;
}

static inline uint16_t fr_get_u16(struct fr_rcur *c)
{
	uint16_t v;

	fr_get_bytes(c, &v, sizeof(v));
	return le16toh(v);
}

static inline uint32_t fr_get_u32(struct fr_rcur *c)
{
	uint32_t v;

	fr_get_bytes(c, &v, sizeof(v));
	return le32toh(v);
}

static inline uint64_t fr_get_u64(struct fr_rcur *c)
{
	uint64_t v;

	fr_get_bytes(c, &v, sizeof(v));
	return le64toh(v);
}

#endif
