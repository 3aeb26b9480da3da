/*
 * Counters of one rail. One writer (the set's lock holder), readers anywhere:
 * relaxed atomics, plain load, add and store on the writer's side.
 */
#ifndef FR_BASE_STATS_H
#define FR_BASE_STATS_H

#include <stdatomic.h>
#include <stdint.h>

enum fr_stat {
	FR_STAT_TX_BYTES,   /* payload handed to the provider and completed */
	FR_STAT_TX_MSGS,    /* stripes and control messages posted */
	FR_STAT_RX_BYTES,   /* payload landed here */
	FR_STAT_RX_MSGS,    /* stripes and control messages that arrived */
	FR_STAT_DEFERRED,   /* posts that the provider refused with EAGAIN */
	FR_STAT_TX_ERRORS,  /* error completions of our posts */
	FR_STAT_RX_DROPPED, /* arrivals that matched nothing live */
	FR_STAT_CNT
};

struct fr_stats {
	_Atomic uint64_t v[FR_STAT_CNT];
};

/* Machine-readable name, e.g. "tx_bytes". */
const char *fr_stat_name(enum fr_stat stat);

static inline void fr_stats_add(struct fr_stats *s, enum fr_stat stat,
				uint64_t n)
{
	uint64_t v = atomic_load_explicit(&s->v[stat], memory_order_relaxed);

	atomic_store_explicit(&s->v[stat], v + n, memory_order_relaxed);
}

static inline uint64_t fr_stats_get(const struct fr_stats *s, enum fr_stat stat)
{
	return atomic_load_explicit(&s->v[stat], memory_order_relaxed);
}

#endif
