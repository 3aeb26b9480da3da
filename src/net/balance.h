/*
 * The weights of a link's paths follow what its stripes are measured at: rate.h
 * between the data path and sched.h.
 *
 * Only stripes of messages that are long enough to be striped count, and only
 * where a completion means that the peer has the data: any other is our own
 * kernel's word, at the speed of a copy. Without them the weights stay equal.
 *
 * Guarded by the set's lock.
 */
#ifndef FR_NET_BALANCE_H
#define FR_NET_BALANCE_H

#include "net/link.h"

/* Equal weights; fr_failover_init() comes next. */
void fr_balance_init(struct fr_link *link);
/* Every 100 ms, for what no arrival tells. */
void fr_balance_tick(struct fr_link *link, uint64_t now_ns);
/* New weights, if there is anything new. */
void fr_balance_look(struct fr_link *link, uint64_t now_ns);

/* Of a new message: whether its stripes are told of below. */
static inline bool fr_balance_measures(const struct fr_link *link,
				       uint64_t bytes)
{
	return bytes >= link->measure_from;
}

/* A stripe, or a part of one, was posted; *@now_ns: 0 until it was needed. */
static inline void fr_balance_posted(struct fr_link *link, unsigned path,
				     uint64_t bytes, uint64_t *now_ns)
{
	if (fr_rate_rests(&link->rate, path) && *now_ns == 0) {
		*now_ns = fr_now_ns();
	}
	fr_rate_posted(&link->rate, path, bytes, *now_ns);
}

/* It arrived; @bytes 0: it failed. */
static inline void fr_balance_arrived(struct fr_link *link, unsigned path,
				      uint64_t bytes)
{
	uint64_t now = fr_set_pass_ns(link->set);

	if (fr_unlikely(fr_rate_arrived(&link->rate, path, bytes, now))) {
		fr_balance_look(link, now);
	}
}

#endif
