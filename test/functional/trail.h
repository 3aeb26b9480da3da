/*
 * What the shim's log tells of libfabric's objects: each is closed once, with
 * success, behind its parts; endpoints go before the queues and vectors that
 * they use.
 *
 * Threads: one at a time. What is wrong fails the test.
 */
#ifndef FR_TEST_TRAIL_H
#define FR_TEST_TRAIL_H

#include "functional/pair.h"

struct trail {
	unsigned opened;
	unsigned closed;
	unsigned left; /* open when the log ends */
};

/* Reads all of it. @type: objects of this type are counted; NULL: all. */
void trail_read(const char *path, const char *type, struct trail *out);
/* Nothing is left of what a process opened, which was not little. */
void trail_ends(const char *path);

#endif
