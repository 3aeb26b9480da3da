/*
 * The receiver's half of failover: closes the endpoint that a peer gave up, and
 * tells it what has landed there. doc/failover.md has the states.
 *
 * A fence must not run inside a poll, whose entries are not all counted yet: a
 * FENCE is kept and answered at the end of the pass. One rail is fenced once a
 * second at most, and more rarely when it happens again and again: the answer
 * waits as long.
 *
 * Guarded by the set's lock.
 */
#ifndef FR_NET_FENCE_H
#define FR_NET_FENCE_H

#include "net/link.h"
#include "wire/fence.h"

/* This set's rails can be fenced one by one. */
bool fr_fence_is_possible(const struct fr_set *set);
/* Queues or posts FENCE, FENCED or RAIL. Return: 0; -ENOMEM; -EINVAL: it is
 * none of them. */
int fr_fence_send(struct fr_link *link, const struct fr_fence *msg,
		  uint8_t path);
/* Tells the peer that our rail @rail is lost to it, with a RAIL. Return: 0;
 * -ENOMEM. */
int fr_fence_tell(struct fr_link *link, unsigned rail, uint8_t path);
/* FENCE of the peer. */
void fr_fence_arrived(struct fr_link *link, const uint8_t *buf, size_t bytes);
/* Fences and answers what is due. Outside of polls. */
void fr_fence_work(struct fr_set *set, uint64_t now_ns);
/* Drops what waits for an answer, of @link or, NULL, of all. */
void fr_fence_drop(struct fr_set *set, const struct fr_link *link);

#endif
