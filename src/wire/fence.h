/*
 * Rail repair on the link channel: FENCE, FENCED, RAIL.
 *
 * FENCE:  rail u8, pad u8, n u16, inc u32, n x {comm u32, seq u32, acked u32}
 * FENCED: rail u8, pad u8, n u16, inc u32, new inc u32, data name, control
 * name, n x {comm u32, seq u32, count u32}     count: or RETIRED, or GONE RAIL:
 * rail u8, pad u8, pad u16, inc u32, control name, data name A name: length
 * u16, pad u16, 56 bytes.
 */
#ifndef FR_WIRE_FENCE_H
#define FR_WIRE_FENCE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/name.h"

#define FR_FENCE_MAX_ITEMS 128u
#define FR_FENCED_RETIRED 0xffffffffu
#define FR_FENCED_GONE 0xfffffffeu

struct fr_fence_item {
	uint32_t comm;
	uint32_t seq;
	uint32_t value; /* acked, or count */
};

struct fr_fence {
	uint8_t type; /* FR_LINK_FENCE, FR_LINK_FENCED or FR_LINK_RAIL */
	uint8_t rail; /* below 8 */
	uint32_t inc;
	uint32_t new_inc;	   /* FENCED */
	struct fr_name data, ctrl; /* FENCED, RAIL */
	unsigned item_cnt;	   /* FENCE, FENCED */
	struct fr_fence_item items[FR_FENCE_MAX_ITEMS];
};

int fr_fence_encode(const struct fr_fence *m, void *buf, size_t bytes);
int fr_fence_decode(uint8_t type, struct fr_fence *m, const void *buf,
		    size_t bytes, const char **why);

#endif
