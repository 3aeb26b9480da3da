/*
 * Inputs whose results can be computed exactly, whatever the order of the
 * reduction, and the check of every element against them.
 */
#ifndef FR_TOOLS_VERIFY_H
#define FR_TOOLS_VERIFY_H

#include "tools/program.h"

struct fr_pattern {
	int type, op;
	uint64_t seed; /* another seed, other data */
};

/* Fills the input of the shape's rank. */
void fr_pattern_fill(const struct fr_pattern *pattern,
		     const struct fr_shape *shape, void *in);
/* Fills memory with what no result is. */
void fr_pattern_poison(void *out, size_t bytes);
/* Bytes that are no longer what fr_pattern_poison() left. */
uint64_t fr_poison_wrong(const void *buf, size_t bytes);
/* Elements of the output of the shape's rank that are not as they must be; what
 * must stay as it was (output of reduce beside the root) counts too. */
uint64_t fr_pattern_wrong(const struct fr_pattern *pattern,
			  const struct fr_shape *shape, const void *out);

/* Any bytes, by (seed, position), for messages that nobody reduces. */
void fr_bytes_fill(void *buf, size_t bytes, uint64_t seed);
uint64_t fr_bytes_wrong(const void *buf, size_t bytes, uint64_t seed);

#endif
