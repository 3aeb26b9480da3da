#include "net/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "net/conn.h"
#include "net/progress.h"

#define KEEPER_PERIOD_NS (100 * FR_NS_PER_MS)

static struct {
	struct fr_lock life; /* starts and joins; the thread never takes it */
	unsigned cnt;
	pthread_t thread;
	pthread_mutex_t mutex; /* guards stop */
	pthread_cond_t wake;
	bool stop;
} keeper = {
	.life = FR_LOCK_OWNED_INIT,
	.mutex = PTHREAD_MUTEX_INITIALIZER,
};

static void keeper_visit(struct fr_set *set)
{
	uint32_t passes;

	passes = atomic_load_explicit(&set->passes, memory_order_relaxed);
	if (passes != set->keeper_seen) {
		set->keeper_seen = passes;
		return;
	}
	if (!fr_lock_try(&set->lock)) {
		return; /* somebody is at it */
	}
	fr_progress_keeper_locked(set);
	fr_lock_drop(&set->lock);
}

/* Only tries: whoever holds core.lock may be waiting to join this thread. */
static void keeper_round(void)
{
	if (!fr_lock_try(&fr_core.lock)) {
		return;
	}
	fr_list_for_each (pos, &fr_core.sets) {
		keeper_visit(FR_CONTAINER_OF(pos, struct fr_set, node));
	}
	fr_conn_reap_locked();
	fr_lock_drop(&fr_core.lock);
}

/* Return: false when the thread shall end. */
static bool keeper_sleep(void)
{
	struct timespec until;
	uint64_t ns = fr_now_ns() + KEEPER_PERIOD_NS;
	bool stop;

	until.tv_sec = (time_t)(ns / FR_NS_PER_S);
	until.tv_nsec = (long)(ns % FR_NS_PER_S);
	pthread_mutex_lock(&keeper.mutex);
	while (!keeper.stop &&
	       pthread_cond_timedwait(&keeper.wake, &keeper.mutex, &until) ==
		       0) {
	}
	stop = keeper.stop;
	pthread_mutex_unlock(&keeper.mutex);
	return !stop;
}

static void *keeper_main(void *arg)
{
	(void)arg;
	while (keeper_sleep()) {
		keeper_round();
	}
	return NULL;
}

static int keeper_start(void)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	int ret;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&keeper.wake, &attr);
	pthread_condattr_destroy(&attr);
	keeper.stop = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&keeper.thread, NULL, keeper_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret != 0) {
		pthread_cond_destroy(&keeper.wake);
		fr_error("cannot start the keeper thread: %s", strerror(ret));
	}
	return -ret;
}

int fr_keeper_get(void)
{
	int ret = 0;

	fr_lock_take(&keeper.life);
	if (keeper.cnt == 0) {
		ret = keeper_start();
	}
	if (ret == 0) {
		keeper.cnt++;
	}
	fr_lock_drop(&keeper.life);
	return ret;
}

static void keeper_end(void)
{
	pthread_mutex_lock(&keeper.mutex);
	keeper.stop = true;
	pthread_cond_signal(&keeper.wake);
	pthread_mutex_unlock(&keeper.mutex);
	pthread_join(keeper.thread, NULL);
	pthread_cond_destroy(&keeper.wake);
}

void fr_keeper_put(void)
{
	fr_lock_take(&keeper.life);
	if (keeper.cnt != 0 && --keeper.cnt == 0) {
		keeper_end();
	}
	fr_lock_drop(&keeper.life);
}

void fr_keeper_halt(void)
{
	if (fr_lock_is_mine(&keeper.life)) {
		return; /* interrupted in a start or a join */
	}
	fr_lock_take(&keeper.life);
	if (keeper.cnt != 0) {
		keeper.cnt = 0;
		keeper_end();
	}
	fr_lock_drop(&keeper.life);
}
