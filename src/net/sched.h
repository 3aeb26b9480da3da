/*
 * How one message is spread over the paths of a link: a pure function.
 *
 * Up to @small_bytes: one path, round robin by a cursor of its own. Below
 * @stripe_bytes: one path, each as often as its weight says. From @stripe_bytes
 * on: striped in proportion to the weights over as many paths as give each at
 * least half of @stripe_bytes, if they were equal; a path whose weight gives it
 * less than an eighth of @stripe_bytes is left out. Boundaries lie on multiples
 * of 128; no stripe is empty.
 *
 * Striped messages of one length on all paths go the same ways, byte for byte:
 * what a GPU has not seen of the last one cannot come by another rail and
 * behind this one. With @rotate each begins on the next path instead: who is
 * posted first has no lasting advantage, which would count as speed where paths
 * are measured.
 *
 * A probe is a stripe for a path that would be left out, so that it is measured
 * all the same: twice its part, within an eighth and a half of @stripe_bytes.
 */
#ifndef FR_NET_SCHED_H
#define FR_NET_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_SCHED_MAX_PATHS 8u
#define FR_STRIPE_ALIGN 128u

struct fr_sched {
	uint64_t small_bytes;
	uint64_t stripe_bytes;		     /* at least 1 */
	unsigned path_cnt;		     /* 1..8 */
	uint32_t weight[FR_SCHED_MAX_PATHS]; /* 0: do not use; a path at least
						is not 0 */
	bool rotate;
	uint8_t probe; /* bit a path: the next striped message probes the
			  lowest; the caller clears it */

	/* what fr_sched_prepare() makes of it */
	bool even;	    /* all usable paths have the same weight */
	unsigned usable;    /* their number */
	uint64_t min_units; /* half of @stripe_bytes, of 128 bytes each */
	uint64_t all_units; /* from here on no path is left out */
	uint64_t part[FR_SCHED_MAX_PATHS]; /* of 2^32 */
};

struct fr_sched_cursor {
	uint32_t small; /* next path of a small message */
	uint32_t large; /* first path of the next one */
	uint32_t turn;	/* of messages on one path, by weight: of 2^32 */
};

struct fr_stripe_plan {
	uint8_t path;
	uint64_t offset;
	uint64_t bytes;
};

/* Does the divisions of all plans to come. Call after any change but @probe. */
void fr_sched_prepare(struct fr_sched *sched);

/* Writes 1 to path_cnt stripes in ascending offset, which cover [0, @bytes)
 * exactly; @bytes 0 gives one stripe of 0 bytes. Return: their number. */
unsigned fr_sched_plan(const struct fr_sched *sched,
		       struct fr_sched_cursor *cursor, uint64_t bytes,
		       struct fr_stripe_plan *plan);

#endif
