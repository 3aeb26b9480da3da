/*
 * The sender's half of failover: what becomes of a path that fails, and of the
 * stripes that it carried. doc/failover.md has the states and why it is right.
 *
 *   UP --fails--> ASK --FENCED, nothing unknown--> DOWN --works again--> UP
 *
 * A stripe that was out on such a path is *away*: unknown until the peer says
 * what landed, then done, or posted again on a path that is UP. Of one message
 * at most one write is out on a lane: the paths to one rail of the peer.
 *
 * Guarded by the set's lock.
 */
#ifndef FR_NET_FAILOVER_H
#define FR_NET_FAILOVER_H

#include "net/req.h"

/* A new link: its paths are UP, @peer says under which incarnations. */
void fr_failover_init(struct fr_link *link, const struct fr_conn_msg *peer);
/* Weights of the next message: paths that are UP, one of each lane. */
void fr_failover_weigh(struct fr_link *link);
/* The provider and the peer are such that paths can be given up one by one. */
bool fr_failover_is_possible(const struct fr_link *link);
/* Path @i does not work. Return: true: the others go on without it, or it was
 * given up before; false: the link cannot do without, @link is unchanged. */
bool fr_failover_lose(struct fr_link *link, unsigned i, const char *cause);
/* The peer does not use our rail @rail any more: what it gave up in one
 * direction will hardly work in the other. */
void fr_failover_peer_left(struct fr_link *link, unsigned rail);
/* The path that a control message meant for @path goes by. */
uint8_t fr_failover_detour(const struct fr_link *link, uint8_t path);
/* FENCED or RAIL of the peer, link message @seq. */
void fr_failover_told(struct fr_link *link, uint8_t type, uint32_t seq,
		      const uint8_t *buf, size_t bytes);
/* Posts what is to be asked and to be repeated. Return: false: something is
 * left for the next pass. */
bool fr_failover_flush(struct fr_link *link);
/* Tries paths that are DOWN. Every 100 ms. */
void fr_failover_tick(struct fr_link *link, uint64_t now_ns);

#endif
