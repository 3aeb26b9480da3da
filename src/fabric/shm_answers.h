/*
 * What peers answer to our posts, of the shm provider in libfabric 1.17.
 *
 * A write that its target copies takes the next place of a ring in our
 * endpoint's file, where the target says that it has. The provider completes
 * in the ring's order:
 *
 *	| read: of A, waits | of B, copied | of B, copied | written
 *
 * If A has died this ends here, for B too, and for good. So we note whose each
 * place is, and answer ourselves for a peer that will not. The post then
 * completes with an error.
 *
 * Threads: the rail's owner.
 */
#ifndef FR_FABRIC_SHM_ANSWERS_H
#define FR_FABRIC_SHM_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/rail.h"

#define FR_SHM_ANSWERS_FIRST UINT64_MAX

struct fr_shm_answers;

/* @fd, @header: of our endpoint's file, and a map of its first page that
 * outlives this. Return: 0, with NULL where the file is not as we know it;
 * -ENOMEM. */
int fr_shm_answers_open(int fd, void *header, struct fr_shm_answers **out);
void fr_shm_answers_close(struct fr_shm_answers *answers);
/* After each post that the provider took. */
void fr_shm_answers_posted(struct fr_shm_answers *answers, unsigned peer,
			   struct fr_op *op);
/* From the one that completes next on. @nth: begins as FR_SHM_ANSWERS_FIRST.
 * False: no more, or none that may be cut. */
bool fr_shm_answers_next(const struct fr_shm_answers *answers, uint64_t *nth,
			 unsigned *peer);
/* Answers for the peer, or for a piece of it: call it again until it has
 * completed. */
void fr_shm_answers_cut(struct fr_shm_answers *answers, uint64_t nth);

#endif
