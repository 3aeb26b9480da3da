#include "fake/fake_clock.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

#define FREE_NAP_MIN_NS (10 * FR_NS_PER_MS)

static _Atomic uint64_t ahead_ns;
static _Atomic uint64_t frozen_ns; /* 0: it runs */
static _Atomic bool naps_are_free;

/* Both before those of the C library. */

int clock_gettime(clockid_t id, struct timespec *ts)
{
	long ret = syscall(SYS_clock_gettime, id, ts);
	uint64_t ns;

	if (ret == 0 &&
	    (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE)) {
		ns = (uint64_t)ts->tv_nsec + ahead_ns;
		if (frozen_ns != 0) {
			ts->tv_sec = 0;
			ns = frozen_ns + ahead_ns;
		}
		ts->tv_sec += (time_t)(ns / FR_NS_PER_S);
		ts->tv_nsec = (long)(ns % FR_NS_PER_S);
	}
	return (int)ret;
}

int nanosleep(const struct timespec *nap, struct timespec *left)
{
	uint64_t ns;

	if (!naps_are_free) {
		return (int)syscall(SYS_nanosleep, nap, left);
	}
	ns = (uint64_t)nap->tv_sec * FR_NS_PER_S + (uint64_t)nap->tv_nsec;
	ahead_ns += FR_MAX(ns, (uint64_t)FREE_NAP_MIN_NS);
	return 0;
}

void fr_fake_clock_advance(uint64_t ns)
{
	ahead_ns += ns;
}

void fr_fake_clock_freeze(bool on)
{
	struct timespec ts;

	frozen_ns = 0;
	if (on && syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts) == 0) {
		frozen_ns = (uint64_t)ts.tv_sec * FR_NS_PER_S +
			    (uint64_t)ts.tv_nsec;
	}
}

void fr_fake_clock_free_naps(bool on)
{
	naps_are_free = on;
}
