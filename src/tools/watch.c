#include "tools/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

#define LOOK_EVERY_NS (200 * FR_NS_PER_MS)

struct fr_watch {
	const struct fr_status *status;
	const struct fr_oob *oob;
	unsigned rank, timeout_s;
	pthread_t thread;
	pthread_mutex_t lock; /* guards stop */
	pthread_cond_t stopped;
	bool stop;
};

void fr_status_set(struct fr_status *status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(status->phase, sizeof(status->phase), fmt, args);
	va_end(args);
	fr_status_tick(status);
}

/* True when the watch is to end. */
static bool nap(struct fr_watch *w)
{
	struct timespec until;
	bool stop;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)LOOK_EVERY_NS;
	if (until.tv_nsec >= (long)FR_NS_PER_S) {
		until.tv_nsec -= (long)FR_NS_PER_S;
		until.tv_sec++;
	}
	(void)pthread_mutex_lock(&w->lock);
	while (!w->stop && pthread_cond_timedwait(&w->stopped, &w->lock,
						  &until) != ETIMEDOUT) {
	}
	stop = w->stop;
	(void)pthread_mutex_unlock(&w->lock);
	return stop;
}

static void *watch_main(void *arg)
{
	struct fr_watch *w = arg;
	uint64_t seen = 0, since = fr_now_ns(), ticks;
	int gone;

	while (!nap(w)) {
		gone = w->oob != NULL ? fr_oob_gone(w->oob) : -1;
		if (gone >= 0) {
			fr_error("rank %d has gone; rank %u ends in: %s", gone,
				 w->rank, w->status->phase);
			_exit(FR_EXIT_BECAUSE_OF_PEER);
		}
		ticks = atomic_load_explicit(&w->status->ticks,
					     memory_order_relaxed);
		if (ticks != seen) {
			seen = ticks;
			since = fr_now_ns();
		} else if (fr_now_ns() - since > w->timeout_s * FR_NS_PER_S) {
			fr_error("rank %u: no progress for %u s in: %s",
				 w->rank, w->timeout_s, w->status->phase);
			_exit(1);
		}
	}
	return NULL;
}

int fr_watch_start(const struct fr_status *status, unsigned rank,
		   unsigned timeout_s, const struct fr_oob *oob,
		   struct fr_watch **out)
{
	pthread_condattr_t attr;
	struct fr_watch *w;
	int ret;

	w = fr_calloc(1, sizeof(*w));
	if (w == NULL) {
		return -ENOMEM;
	}
	w->status = status;
	w->rank = rank;
	w->timeout_s = timeout_s;
	w->oob = oob;
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&w->stopped, &attr);
	(void)pthread_condattr_destroy(&attr);
	ret = pthread_create(&w->thread, NULL, watch_main, w);
	if (ret != 0) {
		(void)pthread_cond_destroy(&w->stopped);
		(void)pthread_mutex_destroy(&w->lock);
		fr_free(w);
		return -ret;
	}
	(void)pthread_setname_np(w->thread, "perf watch");
	*out = w;
	return 0;
}

void fr_watch_stop(struct fr_watch *w)
{
	if (w == NULL) {
		return;
	}
	(void)pthread_mutex_lock(&w->lock);
	w->stop = true;
	(void)pthread_cond_broadcast(&w->stopped);
	(void)pthread_mutex_unlock(&w->lock);
	(void)pthread_join(w->thread, NULL);
	(void)pthread_cond_destroy(&w->stopped);
	(void)pthread_mutex_destroy(&w->lock);
	fr_free(w);
}
