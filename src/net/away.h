/*
 * Stripes that lost their path: what is unknown, what is to be repeated, and
 * the repeats that are out. The states of failover.h are those of paths; these
 * are those of stripes:
 *
 *   UNKNOWN --landed--> gone          FLYING --arrived--> gone
 *      |                                ^  |
 *      +--not landed--> TO_POST --------+  +--path lost--> UNKNOWN
 *
 * An op that hangs in a provider when its stripe is posted again stays behind
 * as a stray until it comes home, or its rail closes.
 *
 * Guarded by the set's lock.
 */
#ifndef FR_NET_AWAY_H
#define FR_NET_AWAY_H

#include "net/req.h"
#include "wire/fence.h"

/* All that was out on, or to go by, path @i is away. Return: false: out of
 * memory. */
bool fr_away_from(struct fr_link *link, unsigned i);
/* Names at most @max stripes that are unknown on @path. Return: how many. */
unsigned fr_away_unknown(const struct fr_link *link, const struct fr_path *path,
			 struct fr_fence_item *items, unsigned max);
/* A peer says what of those has landed. */
void fr_away_resolve(struct fr_link *link, const struct fr_fence *msg);
/* Posts what is to be repeated. Return: false: something is left. */
bool fr_away_post(struct fr_link *link);

/* The write that stripe @i was first posted with has come home, but its path
 * was given up meanwhile. */
void fr_away_first_home(struct fr_send_req *req, unsigned i, int err);
/* A stripe of @req met an error, and not only silence. Ends the link when that
 * happens on path after path: it is the write that nobody takes. */
void fr_away_failed(struct fr_send_req *req, const char *cause);
/* The host program does not wait for @req any more. */
void fr_away_forget(struct fr_send_req *req);
/* A write of ours that hangs, or repeats, may still read from @mr. */
bool fr_away_reads(const struct fr_comm *comm, const struct fr_net_mr *mr);
/* The link failed: nothing is repeated any more. */
void fr_away_end(struct fr_link *link);
/* The set closes. First, with its rails open; then, with them closed: the
 * memory. */
void fr_away_drop_all(struct fr_link *link);
void fr_away_free(struct fr_set *set);

#endif
