/*
 * The monotonic clock of the program that links this: the real one plus what
 * the test adds. Every part of the program sees it, as clock_gettime() itself
 * is replaced.
 */
#ifndef FR_FAKE_CLOCK_H
#define FR_FAKE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Threads: any. */
void fr_fake_clock_advance(uint64_t ns);
/* It stands still until it is let go, and jumps to where it would be; only
 * fr_fake_clock_advance() moves it in between. */
void fr_fake_clock_freeze(bool on);
/* nanosleep() adds its time to the clock and returns at once. */
void fr_fake_clock_free_naps(bool on);

#endif
