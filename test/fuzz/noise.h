/*
 * Bytes for decoders that must survive anything: whole random ones, and good
 * messages with a few bytes changed, cut off or added. The same seed gives the
 * same bytes.
 */
#ifndef TEST_FUZZ_NOISE_H
#define TEST_FUZZ_NOISE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t noise_next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	uint64_t v = *state;

	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

static inline size_t noise_below(uint64_t *state, size_t limit)
{
	return (size_t)(noise_next(state) % limit);
}

/* Edge values meet a limit more often than random ones. */
static inline uint8_t noise_byte(uint64_t *state)
{
	static const uint8_t edge[] = {0,  1,	2,     4,     8,    9,
				       16, 127, 0x80u, 0xfeu, 0xffu};
	uint64_t v = noise_next(state);

	return v & 1 ? edge[(v >> 1) % sizeof(edge)] : (uint8_t)(v >> 1);
}

/* Fills @buf, which holds @max bytes. @good: NULL, or a message to start from
 * half of the time. Return: length. */
static inline size_t noise_fill(uint64_t *state, const uint8_t *good,
				size_t good_bytes, uint8_t *buf, size_t max)
{
	size_t bytes = noise_below(state, max + 1);

	for (size_t i = 0; i < bytes; i++) {
		buf[i] = noise_byte(state);
	}
	if (good == NULL || good_bytes > max || noise_below(state, 2) == 0) {
		return bytes;
	}
	memcpy(buf, good, good_bytes);
	switch (noise_below(state, 4)) {
	case 0:
		bytes = noise_below(state, good_bytes + 1);
		break;
	case 1: /* what lies behind the message is noise already */
		bytes = bytes < good_bytes ? good_bytes : bytes;
		break;
	default:
		bytes = good_bytes;
		break;
	}
	for (size_t i = noise_below(state, 4); i > 0 && bytes != 0; i--) {
		buf[noise_below(state, bytes)] = noise_byte(state);
	}
	return bytes;
}

/* A copy at an odd address whose last byte ends its heap block, so that a
 * sanitizer sees the first byte read behind it. */
static inline uint8_t *noise_odd_copy(const void *src, size_t bytes)
{
	uint8_t *block = calloc(1, bytes + 1);

	if (block == NULL) {
		abort();
	}
	if (bytes != 0) {
		memcpy(block + 1, src, bytes);
	}
	return block + 1;
}

static inline void noise_odd_free(uint8_t *copy)
{
	free(copy - 1);
}

#endif
