/*
 * What a rank is doing, in memory that the parent sees too, and a thread that
 * ends the process when it does nothing for too long.
 */
#ifndef FR_TOOLS_WATCH_H
#define FR_TOOLS_WATCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/util.h"
#include "tools/oob.h"

struct fr_status {
	_Atomic uint64_t ticks; /* counts up whenever something moved */
	char phase[112];	/* for people; torn reads do no harm */
};

/* Threads: the rank's main thread sets phases, any thread ticks. */
void fr_status_set(struct fr_status *status, const char *fmt, ...)
	FR_PRINTF(2, 3);

static inline void fr_status_tick(struct fr_status *status)
{
	atomic_fetch_add_explicit(&status->ticks, 1, memory_order_relaxed);
}

/* Exit status of a rank that fails because of another one. */
#define FR_EXIT_BECAUSE_OF_PEER 3
/* Of rank 0 when all went well but for wrong results, which it has told. */
#define FR_EXIT_WRONG 4

struct fr_watch;

/* @oob: its sockets are watched too, unless NULL. When nothing ticks for
 * @timeout_s, or a rank has gone: one error line, and _exit(). */
int fr_watch_start(const struct fr_status *status, unsigned rank,
		   unsigned timeout_s, const struct fr_oob *oob,
		   struct fr_watch **out);
/* NULL is a no-op. */
void fr_watch_stop(struct fr_watch *watch);

#endif
