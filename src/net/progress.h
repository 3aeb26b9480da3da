/*
 * One pass over a set: reads every rail's CQ, posts what was deferred, looks at
 * the clock now and then. Never waits.
 */
#ifndef FR_NET_PROGRESS_H
#define FR_NET_PROGRESS_H

#include <sched.h>

#include "net/set.h"

extern const struct fr_rail_ops fr_progress_ops;

/* Return: true when the caller should yield the core after it has dropped the
 * lock. */
bool fr_progress_locked(struct fr_set *set);
/* Polling without a result for long: lets the peer have the core. */
static inline void fr_yield(void)
{
	sched_yield();
}

/* The keeper's pass: also acknowledges at once and runs the timers. */
void fr_progress_keeper_locked(struct fr_set *set);
/* Posts the receive buffers of a fresh set. */
int fr_bounce_open(struct fr_set *set);
/* Posts what could not be posted before. */
void fr_bounce_refill(struct fr_set *set);
void fr_bounce_close(struct fr_set *set);

#endif
