/*
 * A rail: one path through one NIC. Own domain, AV, CQ, and two endpoints:
 *
 *      C (control): posts everything; receives messages into posted buffers
 *      D (data):    only ever the target of writes; the same as C unless the
 *                   provider's quirk says that closing D is the fence
 *
 * Threads: one owner, or the owner's lock, for every call on one rail, except
 * where a call says otherwise. Blocking: never, open and close apart.
 */
#ifndef FR_FABRIC_RAIL_H
#define FR_FABRIC_RAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stats.h"
#include "fabric/provider.h"

struct fr_rail;
struct fr_op;

enum fr_rail_ep { FR_EP_DATA, FR_EP_CTRL };

/* @err: 0 or -errno. @bytes: received bytes for a receive, else 0. Called from
 * fr_rail_poll() only. On error fr_rail_error_text() has the provider's words.
 */
typedef void (*fr_op_done_fn)(struct fr_op *op, struct fr_rail *rail, int err,
			      size_t bytes);

/*
 * One posted operation; lives inside its owner's struct from the post until its
 * done function is called (or the rail is closed or abandoned). The first
 * member belongs to the provider.
 */
struct fr_op {
	void *prov[8];
	fr_op_done_fn done;
};

struct fr_rail_ops {
	/* A write with immediate landed on this rail. @bytes is valid only if
	 * the quirk has_write_len is set; the owner counts the bytes. */
	void (*remote_write)(void *owner, struct fr_rail *rail, uint64_t imm,
			     size_t bytes);
	/* An error entry that belongs to no post of ours: an incoming write was
	 * cut. Nobody can say whose. */
	void (*remote_error)(void *owner, struct fr_rail *rail, int err);
};

struct fr_rail_attr {
	struct fr_fabric *fabric; /* outlives the rail */
	unsigned nic;		  /* index in @fabric */
	unsigned index;		  /* of the rail in its set, for the owner */
	uint32_t cq_size;	  /* entries asked for */
	uint32_t cq_read_cnt;	  /* entries a read, 1..256 */
	bool local_completion;	  /* op_flags without delivery completion */
	/* The byte of an IP header, DSCP in its upper six bits. A provider that
	 * refuses it is warned of once a fabric, and the rail has none. */
	bool has_tclass;
	uint8_t tclass;
	bool trial; /* that it cannot be opened is no error */
	/* Whoever posts says what a refusal means: here it is no warning. */
	bool owner_warns;
	uint64_t set_id; /* in names of ours, where the provider allows them */
	const struct fr_rail_ops *ops;
	void *owner; /* first argument of @ops */
};

/* Return: 0; -errno, logged with object, interface and provider text. */
int fr_rail_open(const struct fr_rail_attr *attr, struct fr_rail **out);
/* Posts in flight are dropped: their done functions are not called. All MRs on
 * the rail are closed before (asserted). NULL is a no-op. */
void fr_rail_close(struct fr_rail *rail);
/*
 * Fence kind EP: opens the next data endpoint, which has another name, closes
 * the one that peers write to, and hands out all that has landed there. When it
 * returns nothing that a peer sent to the old name touches memory any more, and
 * the owner has heard of all that did. What is posted on C goes on. Not from a
 * done function or an owner's: their entries are counted by the caller first.
 * Return: 0; -errno: the endpoint did not open, and all is as before (logged);
 * or the queue broke.
 */
int fr_rail_renew_data(struct fr_rail *rail);
/* For fence kind EP, MR and NONE: closes both endpoints for good, so that no
 * write of a peer and no post of ours touches memory any more. Nothing but
 * close may be called afterwards. */
void fr_rail_fence(struct fr_rail *rail);
/* For fence kind ABANDON: the rail is never touched again and stays allocated
 * until the process ends. */
void fr_rail_abandon(struct fr_rail *rail);

unsigned fr_rail_index(const struct fr_rail *rail);
void *fr_rail_owner(const struct fr_rail *rail);
const struct fr_nic *fr_rail_nic(const struct fr_rail *rail);
const struct fr_quirks *fr_rail_quirks(const struct fr_rail *rail);
struct fr_stats *fr_rail_stats(struct fr_rail *rail);
const struct fr_name *fr_rail_name(const struct fr_rail *rail,
				   enum fr_rail_ep ep);
/* Text of the last error completion; valid inside a done function. */
const char *fr_rail_error_text(const struct fr_rail *rail);

/* Enters a peer's endpoint name in the AV. Return: 0; -EINVAL: the provider
 * does not take this name; -ECONNRESET: there is no such endpoint any more;
 * -ENOMEM; -ENOSPC. */
int fr_rail_peer_add(struct fr_rail *rail, const struct fr_name *name,
		     uint64_t *addr);
void fr_rail_peer_del(struct fr_rail *rail, uint64_t addr);

/* The owner of this endpoint has fenced it: what was posted there before, and
 * is read only now, may be anything. */
bool fr_rail_peer_revoked(const struct fr_rail *rail, uint64_t addr);
/* This peer turned out to have died, or to have fenced its endpoint. What it
 * held of what all peers share becomes free, and writes to it that it can no
 * more answer complete with -ECONNRESET, instead of never. */
void fr_rail_peer_gone(struct fr_rail *rail, uint64_t addr);
/*
 * What hangs in connections of C, where they are TCP's, comes home with an
 * error after a poll or two, and the next post makes a new one. Hangs: their
 * kernel does not acknowledge what was sent three times or a second ago. A
 * connection that came to C from another process of that host goes as well when
 * it hangs. Return: there was any.
 */
bool fr_rail_peer_cut(struct fr_rail *rail, uint64_t addr);
/* The same, of an endpoint that its owner has closed, whether it hangs or not.
 */
void fr_rail_peer_closed(struct fr_rail *rail, uint64_t addr);
/* Nothing has come for a second since a peer holds what all share: one that has
 * died, maybe. */
bool fr_rail_is_stuck(const struct fr_rail *rail);

/*
 * Posts. @desc: of the MR that holds @buf on this rail, see mr.h. @op->done is
 * set by the caller. Return: 0: @op is in flight; -EAGAIN: nothing happened
 * (connecting, dead, or full: the caller cannot know), try again after a poll;
 * other -errno: the peer cannot be reached.
 */
int fr_rail_send(struct fr_rail *rail, uint64_t addr, const void *buf,
		 size_t bytes, void *desc, struct fr_op *op);
/* @deliver: complete only when the target has the data. */
int fr_rail_write(struct fr_rail *rail, uint64_t addr, const void *buf,
		  size_t bytes, void *desc, uint64_t remote_addr, uint64_t key,
		  uint64_t imm, bool deliver, struct fr_op *op);
/* Reads @bytes of the peer's memory into @buf; done when they are there. Only
 * where the rail's NIC has gpu or gpu_dmabuf set: else reads were not asked
 * for.
 */
int fr_rail_read(struct fr_rail *rail, uint64_t addr, void *buf, size_t bytes,
		 void *desc, uint64_t remote_addr, uint64_t key,
		 struct fr_op *op);
/* A write that the target is not told of. Completes when the target has the
 * data, whatever the others do. */
int fr_rail_write_part(struct fr_rail *rail, uint64_t addr, const void *buf,
		       size_t bytes, void *desc, uint64_t remote_addr,
		       uint64_t key, struct fr_op *op);
/* Posts a receive buffer on C. */
int fr_rail_recv(struct fr_rail *rail, void *buf, size_t bytes, void *desc,
		 struct fr_op *op);
/* Posts of ours that are in flight, receive buffers not counted. */
unsigned fr_rail_inflight(const struct fr_rail *rail);

/*
 * Reads the CQ until it is empty, bounded (16 batches), and calls the owner.
 * Return: entries handled, 0 when it was empty; -errno when the CQ itself is
 * broken (logged).
 */
int fr_rail_poll(struct fr_rail *rail);

#endif
