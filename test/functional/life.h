/*
 * What the tests of comms' and processes' lives share: which providers they run
 * on, what a process holds, and connections whose ends are both in one process
 * or are closed against the clock.
 *
 * Threads: as in pair.h. A helper that cannot do its work fails the test.
 */
#ifndef FR_TEST_LIFE_H
#define FR_TEST_LIFE_H

#include "functional/pair.h"

/* Closing may wait a second for what was not acknowledged, and some noise. */
#define LIFE_CLOSE_MS 1200
#define LIFE_RSS_SLACK_KIB 65536

/* net keeps, for good, a socket that was about to say for whom it came when the
 * endpoint closed. Of many endpoints that close a few may meet that. */
#define LIFE_HALF_FDS 8

/* Calls @run for net and tcp;ofi_rxm. pair_all_providers() is for all. */
void life_each(void (*run)(const char *provider));

/* -- what this process holds -- */

struct life_held {
	unsigned fds;
	unsigned threads;
	unsigned long used_kib; /* of the C library's heap, and mapped for it */
	unsigned long rss_kib;
	uint64_t cpu_ms; /* of all threads, since it began */
};

void life_look(struct life_held *held);
/* Fails if there are more descriptors or threads than @then, or more than
 * @slack_kib of memory. Pages that the heap does not give back count only from
 * LIFE_RSS_SLACK_KIB on. Waits up to 3 s for what the kernel or a provider
 * gives back late; under a sanitizer memory is not looked at. */
void life_flat(const struct life_held *then, unsigned long slack_kib,
	       const char *what);
/* CPU time of another process, by its stat file. */
uint64_t life_cpu_ms(int pid);

/* -- calls against the clock: LIFE_CLOSE_MS, stretched -- */

void life_close_send(struct pair_member *me, void *comm);
void life_close_recv(struct pair_member *me, void *comm);
void life_close_listen(struct pair_member *me, void *listen);
void life_in_time(uint64_t began_ms, unsigned limit_ms, const char *what);

/* -- both ends in one process, called in turn by one thread -- */

void life_join_self(struct pair_member *me, void **send, void **recv);
/* @send to @recv, whole, checked. */
void life_pass(struct pair_member *me, const struct pair_buf *send,
	       const struct pair_buf *recv, size_t bytes, unsigned long seed);
/* A connection to itself that carries one message of each size: all works. */
void life_use(struct pair_member *me, unsigned long seed);

#endif
