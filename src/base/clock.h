/* Monotonic time. Deadlines of ours never look at the wall clock. */
#ifndef FR_BASE_CLOCK_H
#define FR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define FR_NS_PER_US 1000ull
#define FR_NS_PER_MS 1000000ull
#define FR_NS_PER_S 1000000000ull

/* Nanoseconds since an arbitrary point; never goes back. */
static inline uint64_t fr_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * FR_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* The same, a few ms late at most, for a few ns on any machine. */
static inline uint64_t fr_coarse_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * FR_NS_PER_S + (uint64_t)ts.tv_nsec;
}

#endif
