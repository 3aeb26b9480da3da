/*
 * Reads and writes little-endian integers byte by byte. A cursor that ran past
 * its end goes bad and stays bad: reads give 0, writes go nowhere, and one
 * check at the end of a codec suffices.
 */
#ifndef FR_WIRE_CURSOR_H
#define FR_WIRE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

void fr_wcur_init(struct fr_wcur *c, void *buf, size_t bytes);
void fr_put_u8(struct fr_wcur *c, uint8_t v);
void fr_put_u16(struct fr_wcur *c, uint16_t v);
void fr_put_u32(struct fr_wcur *c, uint32_t v);
void fr_put_u64(struct fr_wcur *c, uint64_t v);
void fr_put_bytes(struct fr_wcur *c, const void *src, size_t bytes);
void fr_put_zeros(struct fr_wcur *c, size_t bytes);

void fr_rcur_init(struct fr_rcur *c, const void *buf, size_t bytes);
size_t fr_rcur_left(const struct fr_rcur *c);
uint8_t fr_get_u8(struct fr_rcur *c);
uint16_t fr_get_u16(struct fr_rcur *c);
uint32_t fr_get_u32(struct fr_rcur *c);
uint64_t fr_get_u64(struct fr_rcur *c);
void fr_get_bytes(struct fr_rcur *c, void *dst, size_t bytes);
/* Steps over @bytes and returns where they start; NULL when short. */
const uint8_t *fr_get_view(struct fr_rcur *c, size_t bytes);

#endif
