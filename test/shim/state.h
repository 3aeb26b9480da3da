/*
 * What all parts of the shim share: the rules with their counts, random bits,
 * the log. One lock of its own guards it all; it is never held over a call of
 * the real library.
 */
#ifndef FR_TEST_SHIM_STATE_H
#define FR_TEST_SHIM_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/spec.h"

/* Return: 0; -EINVAL: *@bad begins what is wrong, nothing has changed. */
int shim_state_set(const char *text, const char **bad);
/* Of the kinds in @kinds together. */
uint64_t shim_state_calls(uint32_t kinds);
uint64_t shim_state_faults(uint32_t kinds);

/* In the room that each thread has anyhow. The leak sanitizer takes a block of
 * the heap for such variables, at some addresses, for what it is not. */
#define SHIM_TLS __attribute__((tls_model("initial-exec")))

/*
 * A provider built from parts calls its own objects through the same tables.
 * What happens inside a call of the real library is its own affair: it is not
 * counted, never refused, and what it opens there stays as it is.
 */
extern _Thread_local unsigned shim_inside SHIM_TLS;

#define SHIM_REAL(ret, call)                                                   \
	do {                                                                   \
		shim_inside++;                                                 \
		(ret) = (call);                                                \
		shim_inside--;                                                 \
	} while (0)

/* Counts a call of @kind and says what becomes of it. @rail: SHIM_ANY_RAIL when
 * it has none. Return: 0: it goes on; -errno: it is refused with that. */
int shim_refuse(enum shim_kind kind, int rail);

uint64_t shim_random(void);
bool shim_wants_garbage(void);
bool shim_wants_shuffle(void);
bool shim_wants_posts(void);
bool shim_wants_gpu(void);
unsigned shim_cq_data(void);
/* A message of @bytes is about to be sent, or was refused (@undo). */
void shim_spoil(const void *buf, size_t bytes, bool undo);
/* Key number @i of the list. False: there are no more. */
bool shim_key(unsigned i, uint64_t *key);

/* A line of the log, if there is one. */
void shim_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
