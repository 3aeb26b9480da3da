/*
 * The data path's parts, as they call each other: send, recv, cts, eager,
 * flush; what memory of a GPU needs is in gpu.h.
 * All under the set's lock.
 */
#ifndef FR_NET_XFER_H
#define FR_NET_XFER_H

#include "net/req.h"
#include "net/reg.h"

/* send.c: posts what is to post, but not on paths in *@blocked, a mask; a path
 * whose rail says EAGAIN enters it. False: something is left, and the request
 * waits in link.deferred. */
bool fr_send_post(struct fr_send_req *req, uint32_t *blocked);
/* Posts @stripe, or its next part, on its path with @op, whose done function is
 * set. Return: as fr_rail_write(). */
int fr_send_stripe(struct fr_send_req *req, struct fr_stripe *stripe,
		   struct fr_op *op);
/* A mask: what is to post goes there. */
uint32_t fr_send_paths(const struct fr_send_req *req);
/* The entry's receive is shorter than the send: told to both sides. */
void fr_send_truncated(struct fr_comm *comm, uint32_t seq, uint64_t bytes,
		       uint64_t posted);

/* recv.c */
void fr_recv_written(struct fr_set *set, struct fr_rail *rail, uint64_t word,
		     size_t bytes);
/* Message @seq of @comm is complete with @bytes. */
void fr_recv_complete(struct fr_comm *comm, struct fr_rx_entry *entry,
		      uint64_t bytes);
void fr_recv_fail(struct fr_comm *comm, struct fr_rx_entry *entry, int err);
void fr_recv_length(struct fr_link *link, const struct fr_link_note *note);
/* @req is forgotten: entries still open have no request any more. */
void fr_recv_detach(struct fr_comm *comm, const struct fr_req *req);
/* Nothing has come for it yet, nor is on its way through ourselves. */
bool fr_rx_is_free(const struct fr_rx_entry *entry);
/* Lets numbers go that are complete and told. */
void fr_recv_retire(struct fr_comm *comm);
bool fr_rx_open(const struct fr_rx_entry *entry);
/* The oldest receive from @base on that takes @tag; NULL: none is posted. */
struct fr_rx_entry *fr_recv_find(struct fr_comm *comm, uint32_t base, int tag);
/* An EAGER's payload meets its receive. */
void fr_recv_deliver(struct fr_comm *comm, struct fr_rx_entry *entry,
		     const void *payload, uint32_t bytes);
/* Receives that can never be filled, since the peer closed, fail. */
void fr_recv_peer_closed(struct fr_comm *comm);

/* cts.c */
/* Receives were posted: announces them, or keeps short ones for later. */
void fr_cts_posted(struct fr_comm *comm);
/* Announces what is not announced; true when nothing is left. */
bool fr_cts_flush(struct fr_comm *comm);
void fr_cts_arrived(struct fr_link *link, const uint8_t *buf, size_t bytes);
void fr_cts_want(struct fr_link *link, const struct fr_link_note *want);
/* The entry for the next send; NULL: none yet. *@seq: its number. */
struct fr_tx_entry *fr_cts_match(struct fr_comm *comm, int tag, uint32_t *seq);
void fr_cts_take(struct fr_comm *comm, struct fr_tx_entry *entry);

/* The next send cannot take a blind receive: asks for an entry, once. */
void fr_cts_ask(struct fr_comm *comm);
/* Timers of all comms of a set: who waits, and for a CTS too long. */
void fr_cts_tick(struct fr_set *set);

/* eager.c */
/* An EAGER may go although no receive is known. */
bool fr_eager_allowed(const struct fr_comm *comm, size_t bytes);
/* Sends one; @at: the number of its receive, which the caller takes, or NULL.
 * Return: 0; -EAGAIN: no room on the link; -ENOMEM. */
int fr_eager_send(struct fr_comm *comm, const void *data, size_t bytes, int tag,
		  const uint32_t *at);
/* A CTS came: give unsettled EAGER sends their entries. */
void fr_eager_settle(struct fr_comm *comm);
void fr_eager_arrived(struct fr_link *link, uint8_t flags, const uint8_t *buf,
		      size_t bytes);
/* Receives were posted: give held messages to them. */
void fr_eager_match(struct fr_comm *comm);
void fr_eager_free(struct fr_comm *comm);

/* flush.c: of a request of kind FLUSH */
bool fr_flush_flies(struct fr_req *req);
/* No more reads are posted. */
void fr_flush_forget(struct fr_req *req);
/* Back to its pool. */
void fr_flush_put(struct fr_req *req);

void fr_nack_arrived(struct fr_link *link, const struct fr_link_note *note);

#endif
