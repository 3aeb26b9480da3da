#include "net/sched.h"

#include <assert.h>
#include <string.h>

#include "base/util.h"

/* Up to here a number of units times a part of 2^32 fits in 64 bits. */
#define FAST_UNITS ((uint64_t)1 << 31)
#define ALL_PARTS ((uint64_t)1 << 32)
/* The golden ratio of 2^32: steps of it visit every part of a circle evenly,
 * however few they are. */
#define TURN_STEP 0x9e3779b9u
#define LEFT_OUT_BELOW 4u /* of min_units: one of so many */

/* Weights below this add up to less than 2^32 over all paths, so that a
 * remainder times a weight fits in 64 bits. */
#define WEIGHT_BITS 29u

/* The paths of one plan, in the order of their stripes. */
struct share {
	uint8_t path[FR_SCHED_MAX_PATHS];
	uint64_t weight[FR_SCHED_MAX_PATHS];
	uint64_t total;
	unsigned cnt;
};

/* The first usable path from *@cursor on; *@cursor goes to the one after. */
static unsigned next_path(const struct fr_sched *sched, uint32_t *cursor)
{
	unsigned path = *cursor < sched->path_cnt ? *cursor : 0;

	for (unsigned i = 0; sched->weight[path] == 0; i++) {
		assert(i < sched->path_cnt);
		path = path + 1 < sched->path_cnt ? path + 1 : 0;
	}
	*cursor = path + 1 < sched->path_cnt ? path + 1 : 0;
	return path;
}

static unsigned plan_single(unsigned path, uint64_t bytes,
			    struct fr_stripe_plan *plan)
{
	plan[0] = (struct fr_stripe_plan){
		.path = (uint8_t)path,
		.bytes = bytes,
	};
	return 1;
}

/* Whose part of the circle the next turn falls in. */
static unsigned turn_path(const struct fr_sched *sched, uint32_t *turn)
{
	uint64_t sum = 0;
	unsigned path = 0;

	*turn += TURN_STEP;
	for (unsigned i = 0; i < sched->path_cnt && sum <= *turn; i++) {
		if (sched->weight[i] != 0) {
			sum += sched->part[i];
			path = i;
		}
	}
	return path;
}

/* Largest shift that any weight needs to stay below 2^WEIGHT_BITS. */
static unsigned weight_shift(const struct fr_sched *sched)
{
	uint32_t all = 0;
	unsigned shift = 0;

	for (unsigned i = 0; i < sched->path_cnt; i++) {
		all |= sched->weight[i];
	}
	while (all >> shift >= 1u << WEIGHT_BITS) {
		shift++;
	}
	return shift;
}

static void share_add(struct share *share, unsigned path, uint64_t weight)
{
	share->path[share->cnt] = (uint8_t)path;
	share->weight[share->cnt] = weight;
	share->total += weight;
	share->cnt++;
}

static void share_drop(struct share *share, unsigned idx)
{
	share->total -= share->weight[idx];
	share->cnt--;
	for (unsigned i = idx; i < share->cnt; i++) {
		share->path[i] = share->path[i + 1];
		share->weight[i] = share->weight[i + 1];
	}
}

static unsigned share_lightest(const struct share *share)
{
	unsigned idx = 0;

	for (unsigned i = 1; i < share->cnt; i++) {
		if (share->weight[i] < share->weight[idx]) {
			idx = i;
		}
	}
	return idx;
}

/* @units * @weight / total without overflow, rounded down. */
static uint64_t share_part(const struct share *share, uint64_t units,
			   uint64_t weight)
{
	return units / share->total * weight +
	       units % share->total * weight / share->total;
}

/* Takes usable paths from the cursor on, while each can have its minimum. */
static void share_fill(struct share *share, const struct fr_sched *sched,
		       uint32_t *cursor, uint64_t units)
{
	uint64_t min_units = sched->min_units;

	unsigned shift = weight_shift(sched);

	do {
		unsigned path = next_path(sched, cursor);
		uint64_t weight = sched->weight[path] >> shift;

		share_add(share, path, FR_MAX(weight, 1u));
	} while (share->cnt < sched->usable &&
		 (share->cnt + 1) * min_units <= units);
}

/* Takes out paths that are too slow for a stripe of @min_units. */
static void share_thin(struct share *share, uint64_t units, uint64_t min_units)
{
	while (share->cnt > 1) {
		unsigned idx = share_lightest(share);
		uint64_t part = share_part(share, units, share->weight[idx]);

		if (part >= min_units) {
			return;
		}
		share_drop(share, idx);
	}
}

/* Less than this is not worth a stripe. */
static uint64_t least_units(const struct fr_sched *sched)
{
	return (sched->min_units - 1) / LEFT_OUT_BELOW + 1;
}

/* A message so short, or so long, that its paths are chosen anew. */
static unsigned plan_some(const struct fr_sched *sched, uint32_t *cursor,
			  uint64_t bytes, struct fr_stripe_plan *plan)
{
	uint64_t units = bytes / FR_STRIPE_ALIGN;
	struct share share = {.cnt = 0};
	uint64_t weight_sum = 0;
	uint64_t offset = 0;

	share_fill(&share, sched, cursor, units);
	share_thin(&share, units, least_units(sched));
	for (unsigned i = 0; i < share.cnt; i++) {
		uint64_t end = bytes;

		weight_sum += share.weight[i];
		if (i + 1 < share.cnt) {
			end = share_part(&share, units, weight_sum) *
			      FR_STRIPE_ALIGN;
		}
		plan[i] = (struct fr_stripe_plan){
			.path = share.path[i],
			.offset = offset,
			.bytes = end - offset,
		};
		offset = end;
	}
	return share.cnt;
}

static unsigned plan_all(const struct fr_sched *sched, uint32_t *cursor,
			 uint64_t bytes, struct fr_stripe_plan *plan)
{
	uint64_t units = bytes / FR_STRIPE_ALIGN;
	uint32_t at = sched->rotate ? next_path(sched, cursor) : *cursor;
	uint64_t sum = 0;
	uint64_t offset = 0;

	for (unsigned i = 0; i < sched->usable; i++) {
		unsigned path = next_path(sched, &at);
		uint64_t end = bytes;

		sum += sched->part[path];
		if (i + 1 < sched->usable) {
			end = (units * sum >> 32) * FR_STRIPE_ALIGN;
		}
		plan[i] = (struct fr_stripe_plan){
			.path = (uint8_t)path,
			.offset = offset,
			.bytes = end - offset,
		};
		offset = end;
	}
	return sched->usable;
}

static unsigned plan_striped(const struct fr_sched *sched, uint32_t *cursor,
			     uint64_t bytes, struct fr_stripe_plan *plan)
{
	uint64_t units = bytes / FR_STRIPE_ALIGN;

	return units >= sched->all_units && units < FAST_UNITS
		       ? plan_all(sched, cursor, bytes, plan)
		       : plan_some(sched, cursor, bytes, plan);
}

static unsigned lowest_bit(uint32_t mask)
{
	unsigned bit = 0;

	while ((mask & FR_BIT(bit)) == 0) {
		bit++;
	}
	return bit;
}

static uint64_t probe_units(const struct fr_sched *sched, unsigned path,
			    uint64_t units)
{
	uint64_t twice = units < FAST_UNITS ? units * sched->part[path] >> 31
					    : sched->min_units;

	return FR_MIN(FR_MAX(twice, least_units(sched)), sched->min_units);
}

/* The probe first, and the others share the rest. */
static FR_NOINLINE unsigned plan_probe(const struct fr_sched *sched,
				       uint32_t *cursor, uint64_t bytes,
				       struct fr_stripe_plan *plan)
{
	struct fr_sched others = *sched;
	unsigned path = lowest_bit(sched->probe);
	uint64_t units = probe_units(sched, path, bytes / FR_STRIPE_ALIGN);
	unsigned cnt;

	if (sched->weight[path] == 0 || sched->usable < 2 ||
	    units * FR_STRIPE_ALIGN * 2 > bytes) {
		return plan_striped(sched, cursor, bytes, plan);
	}
	plan[0] = (struct fr_stripe_plan){
		.path = (uint8_t)path,
		.bytes = units * FR_STRIPE_ALIGN,
	};
	others.weight[path] = 0;
	fr_sched_prepare(&others);
	cnt = plan_striped(&others, cursor, bytes - plan[0].bytes, plan + 1);
	for (unsigned i = 1; i <= cnt; i++) {
		plan[i].offset += plan[0].bytes;
	}
	return cnt + 1;
}

/* From where on each path, the lightest too, has what is worth a stripe. */
static uint64_t all_units(const struct fr_sched *sched, uint64_t total,
			  uint64_t lightest)
{
	uint64_t by_weight = (least_units(sched) * total - 1) / lightest + 1;

	return FR_MAX(by_weight, sched->min_units * sched->usable);
}

void fr_sched_prepare(struct fr_sched *sched)
{
	unsigned shift = weight_shift(sched);
	struct share share = {.cnt = 0};
	uint64_t lightest = UINT32_MAX;
	uint64_t heaviest = 0;

	/* Whole units, rounded up: at least 1. */
	sched->min_units =
		(sched->stripe_bytes - 1) / (2 * FR_STRIPE_ALIGN) + 1;
	for (unsigned i = 0; i < sched->path_cnt; i++) {
		if (sched->weight[i] != 0) {
			uint64_t weight = sched->weight[i] >> shift;

			share_add(&share, i, FR_MAX(weight, 1u));
			lightest = FR_MIN(lightest, sched->weight[i]);
			heaviest = FR_MAX(heaviest, sched->weight[i]);
		}
	}
	assert(share.cnt != 0);
	sched->usable = share.cnt;
	sched->even = lightest == heaviest;
	memset(sched->part, 0, sizeof(sched->part));
	for (unsigned i = 0; i < share.cnt; i++) {
		/* Rounded up, so that a whole multiple stays whole. */
		sched->part[share.path[i]] =
			(share.weight[i] * ALL_PARTS - 1) / share.total + 1;
	}
	/* Longer stripes than that are not planned the short way anyway. */
	sched->all_units = sched->min_units < FAST_UNITS / 8
				   ? all_units(sched, share.total,
					       FR_MAX(lightest >> shift, 1u))
				   : UINT64_MAX;
}

unsigned fr_sched_plan(const struct fr_sched *sched,
		       struct fr_sched_cursor *cursor, uint64_t bytes,
		       struct fr_stripe_plan *plan)
{
	assert(sched->path_cnt >= 1 && sched->path_cnt <= FR_SCHED_MAX_PATHS);
	assert(sched->stripe_bytes >= 1 && sched->usable >= 1);

	if (bytes <= sched->small_bytes) {
		return plan_single(next_path(sched, &cursor->small), bytes,
				   plan);
	}
	if (bytes < sched->stripe_bytes) {
		return plan_single(sched->even
					   ? next_path(sched, &cursor->large)
					   : turn_path(sched, &cursor->turn),
				   bytes, plan);
	}
	if (fr_unlikely(sched->probe != 0)) {
		return plan_probe(sched, &cursor->large, bytes, plan);
	}
	return plan_striped(sched, &cursor->large, bytes, plan);
}
