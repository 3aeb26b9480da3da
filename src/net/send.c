#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "net/away.h"
#include "net/balance.h"
#include "net/failover.h"
#include "net/progress.h"
#include "net/xfer.h"

/* Older ones first: no overtaking on a link. */
static void send_go(struct fr_send_req *req)
{
	struct fr_link *link = req->link;
	uint32_t blocked = 0;

	if (!fr_list_empty(&link->deferred) || !fr_send_post(req, &blocked)) {
		req->deferred = true;
		fr_list_push(&link->deferred, &req->deferred_node);
		fr_link_owe(link);
	}
}

/* The target has a part of the stripe: on to the next one. */
static void stripe_go_on(struct fr_send_req *req, struct fr_stripe *stripe)
{
	stripe->offset += stripe->part;
	stripe->bytes -= stripe->part;
	req->to_post |= (uint8_t)FR_BIT(stripe - req->stripe);
	if (!req->deferred) {
		send_go(req);
	}
}

/* Another path may take over what this one did not bring. */
static FR_NOINLINE void stripe_failed(struct fr_send_req *req, unsigned i,
				      struct fr_rail *rail, int err)
{
	struct fr_link *link = req->link;
	unsigned path = req->stripe[i].path;
	bool was_up = link->path[path].state == FR_PATH_UP;

	fr_link_path_fail(link, path, fr_rail_error_text(rail));
	if ((req->stale & FR_BIT(i)) != 0) {
		/* A connection that was given up says nothing of the write. */
		if (was_up) {
			fr_away_failed(req, fr_rail_error_text(rail));
		}
		fr_away_first_home(req, i, err);
		return;
	}
	req->flying &= (uint8_t)~FR_BIT(i);
	link->path[path].flying--;
	if (fr_unlikely(req->measured)) {
		fr_balance_arrived(link, path, 0);
	}
	fr_req_fail(&req->base, -ECONNRESET);
}

static void stripe_done(struct fr_op *op, struct fr_rail *rail, int err,
			size_t bytes)
{
	struct fr_stripe *stripe = FR_CONTAINER_OF(op, struct fr_stripe, op);
	struct fr_send_req *req = stripe->req;
	struct fr_link *link = req->link;
	unsigned i = (unsigned)(stripe - req->stripe);

	(void)bytes;
	if (fr_unlikely((req->stale & FR_BIT(i)) != 0)) {
		fr_away_first_home(req, i, err);
		return;
	}
	if (fr_unlikely(err != 0)) {
		stripe_failed(req, i, rail, err);
		return;
	}
	req->flying &= (uint8_t)~FR_BIT(i);
	link->path[stripe->path].flying--;
	link->path[stripe->path].moved++;
	if (fr_unlikely(req->measured)) {
		fr_balance_arrived(link, stripe->path, stripe->part);
	}
	/* Anything less is our own kernel's word, not the peer's. */
	if (link->set->conf->completion == FR_COMPLETION_DELIVERY) {
		link->activity++;
	}
	if (fr_unlikely(req->base.err != 0 || req->base.orphan)) {
		fr_req_fail(&req->base, -ECONNRESET);
	} else if (fr_unlikely(stripe->part != stripe->bytes &&
			       link->err != 0)) {
		fr_req_fail(&req->base, link->err);
	} else if (fr_unlikely(stripe->part != stripe->bytes)) {
		stripe_go_on(req, stripe);
	} else if (fr_send_is_over(req)) {
		fr_req_set_state(&req->base, FR_REQ_DONE);
	}
}

/*
 * A stripe that is longer than a write may be goes in parts, one after the
 * other. The last one carries the immediate, and is posted when the others have
 * arrived: what is told then is whole, whatever the order of writes.
 */
int fr_send_stripe(struct fr_send_req *req, struct fr_stripe *stripe,
		   struct fr_op *op)
{
	struct fr_link *link = req->link;
	struct fr_path *path = &link->path[stripe->path];
	uint64_t remote = req->remote_addr + stripe->offset;
	uint64_t key = req->keys[path->peer_rail];
	void *desc = NULL;

	if (req->bytes == 0) {
		/* The host program's pointers mean nothing here. */
		remote = link->scratch_addr;
		key = link->scratch_key[path->peer_rail];
	} else {
		desc = fr_mr_desc(req->mr->mr, path->local_rail);
	}
	stripe->part = FR_MIN(stripe->bytes, link->set->max_write);
	if (fr_unlikely(stripe->part != stripe->bytes)) {
		return fr_rail_write_part(path->rail, path->data_addr,
					  req->data + stripe->offset,
					  stripe->part, desc, remote, key, op);
	}
	return fr_rail_write(
		path->rail, path->data_addr, req->data + stripe->offset,
		stripe->bytes, desc, remote, key, req->imm,
		link->set->conf->completion == FR_COMPLETION_DELIVERY, op);
}

uint32_t fr_send_paths(const struct fr_send_req *req)
{
	uint32_t paths = 0;

	for (unsigned i = 0; i < req->stripe_cnt; i++) {
		if ((req->to_post & FR_BIT(i)) != 0) {
			paths |= FR_BIT(req->stripe[i].path);
		}
	}
	return paths;
}

static void stripe_posted(struct fr_send_req *req, unsigned i, uint64_t *now)
{
	struct fr_stripe *stripe = &req->stripe[i];
	struct fr_link *link = req->link;

	link->path[stripe->path].flying++;
	req->to_post &= (uint8_t)~FR_BIT(i);
	req->flying |= (uint8_t)FR_BIT(i);
	if (fr_unlikely(req->measured)) {
		fr_balance_posted(link, stripe->path, stripe->part, now);
	}
}

bool fr_send_post(struct fr_send_req *req, uint32_t *blocked)
{
	uint64_t now = 0;

	for (unsigned i = 0; i < req->stripe_cnt; i++) {
		uint8_t path = req->stripe[i].path;
		int ret;

		if ((req->to_post & FR_BIT(i)) == 0 ||
		    (*blocked & FR_BIT(path)) != 0) {
			continue;
		}
		req->stripe[i].op.done = stripe_done;
		ret = fr_send_stripe(req, &req->stripe[i], &req->stripe[i].op);
		if (ret == -EAGAIN) {
			*blocked |= FR_BIT(path);
			continue;
		}
		if (ret != 0) {
			fr_link_path_fail(req->link, path, strerror(-ret));
			if (req->link->err != 0) {
				req->to_post = 0;
				fr_req_fail(&req->base, -ECONNRESET);
				return true;
			}
			continue; /* the stripe is away now */
		}
		stripe_posted(req, i, &now);
	}
	return req->to_post == 0;
}

static uint64_t send_imm(const struct fr_comm *comm, uint32_t seq,
			 const struct fr_tx_entry *entry, uint64_t bytes,
			 unsigned nseg)
{
	struct fr_imm imm = {
		.comm = comm->peer_id,
		.seq = (uint16_t)(seq & ((1u << FR_IMM_SEQ_BITS) - 1)),
		.nseg = (uint8_t)nseg,
		.rkey = fr_imm_grant(entry->keys[0], seq),
	};

	if (bytes == entry->len) {
		imm.len = FR_IMM_LEN_FULL;
	} else if (bytes <= FR_IMM_LEN_MAX) {
		imm.len = (uint32_t)bytes;
	} else {
		imm.len = FR_IMM_LEN_ASIDE;
	}
	return fr_imm_pack(&imm, comm->set->imm_bytes);
}

static void send_plan(struct fr_comm *comm, struct fr_send_req *req)
{
	struct fr_sched *sched = &comm->link->sched;
	struct fr_stripe_plan plan[FR_SCHED_MAX_PATHS];
	unsigned cnt = fr_sched_plan(sched, &comm->tx.cursor, req->bytes, plan);

	if (req->bytes >= sched->stripe_bytes) {
		sched->probe = 0;
	}
	if (fr_unlikely(comm->link->lanes_shared)) {
		fr_failover_weigh(comm->link);
	}
	req->measured = fr_balance_measures(comm->link, req->bytes);
	req->stripe_cnt = (uint8_t)cnt;
	req->to_post = (uint8_t)(FR_BIT(cnt) - 1);
	for (unsigned i = 0; i < cnt; i++) {
		req->stripe[i].req = req;
		req->stripe[i].path = plan[i].path;
		req->stripe[i].offset = plan[i].offset;
		req->stripe[i].bytes = plan[i].bytes;
	}
}

/* Without room for a length in the immediate the receiver adds up what its
 * queue says of each write, and a part is not in its queue. */
static int send_check_parts(struct fr_comm *comm, const struct fr_send_req *req)
{
	const struct fr_set *set = comm->set;

	for (unsigned i = 0; i < req->stripe_cnt; i++) {
		if (fr_unlikely(req->stripe[i].bytes > set->max_write &&
				set->imm_bytes != 8)) {
			fr_log_limited(&comm->set->strange, FR_LOG_ERROR,
				       "send of %llu bytes to %s: a rail takes "
				       "at most %llu of them",
				       (unsigned long long)req->bytes,
				       comm->link->peer_text,
				       (unsigned long long)set->max_write);
			return -EINVAL;
		}
	}
	return 0;
}

static int send_tell_length(struct fr_comm *comm, uint32_t seq, uint64_t bytes)
{
	struct fr_link_note note = {
		.comm = comm->peer_id,
		.nonce = comm->peer_nonce,
		.seq = seq,
		.a = bytes,
	};

	return fr_link_send_note(comm->link, FR_LINK_LENGTH, &note,
				 comm->ctrl_path);
}

void fr_send_truncated(struct fr_comm *comm, uint32_t seq, uint64_t bytes,
		       uint64_t posted)
{
	struct fr_link_note note = {
		.comm = comm->peer_id,
		.nonce = comm->peer_nonce,
		.seq = seq,
		.flags = 1,
		.a = bytes,
		.b = posted,
	};

	fr_error("message %u to %s: the send has %llu bytes, its receive only "
		 "%llu",
		 seq, comm->link->peer_text, (unsigned long long)bytes,
		 (unsigned long long)posted);
	comm->err = -EMSGSIZE;
	(void)fr_link_send_note(comm->link, FR_LINK_NACK, &note,
				comm->ctrl_path);
}

static int send_write(struct fr_comm *comm, uint32_t seq,
		      struct fr_tx_entry *entry, const void *data, size_t bytes,
		      struct fr_net_mr *mr, struct fr_req **out)
{
	struct fr_send_req *req;
	int ret;

	req = fr_send_req_get(comm);
	if (req == NULL) {
		return -ENOMEM;
	}
	req->data = data;
	req->bytes = bytes;
	req->mr = mr;
	req->seq = seq;
	req->remote_addr = entry->addr;
	memcpy(req->keys, entry->keys, sizeof(req->keys));
	send_plan(comm, req);
	req->imm = send_imm(comm, seq, entry, bytes, req->stripe_cnt);
	ret = send_check_parts(comm, req);
	if (ret == 0 &&
	    fr_unlikely(bytes > FR_IMM_LEN_MAX && bytes != entry->len)) {
		ret = send_tell_length(comm, seq, bytes);
	}
	if (fr_unlikely(ret != 0)) {
		/* Nothing was sent: it does not count as lost. */
		fr_req_set_state(&req->base, FR_REQ_DONE);
		fr_req_release(&req->base);
		return ret;
	}
	fr_cts_take(comm, entry);
	comm->tx.ordinal++;
	send_go(req);
	*out = &req->base;
	return 0;
}

/* @entry: the receive that takes it, number @seq, or NULL: none is known. */
static int send_eager(struct fr_comm *comm, uint32_t seq,
		      struct fr_tx_entry *entry, const void *data, size_t bytes,
		      int tag, struct fr_req **out)
{
	struct fr_send_req *req = fr_send_req_get(comm);
	int ret;

	if (req == NULL) {
		return -ENOMEM;
	}
	fr_req_set_state(&req->base, FR_REQ_DONE);
	ret = fr_eager_send(comm, data, bytes, tag,
			    entry == NULL ? NULL : &seq);
	if (ret != 0) {
		fr_req_release(&req->base);
		return ret;
	}
	if (entry != NULL) {
		fr_cts_take(comm, entry);
	}
	comm->tx.ordinal++;
	req->mr = NULL;
	req->bytes = bytes;
	*out = &req->base;
	return 0;
}

/* A receiver leaves out of its CTS what is so short that it may come as a
 * message. This one cannot. */
static void send_ask(struct fr_comm *comm, size_t bytes)
{
	const struct fr_link *link = comm->link;

	if ((link->features & FR_FEAT_BLIND) != 0 && bytes <= link->eager_max &&
	    bytes <= comm->set->quirks->inline_max_bytes) {
		fr_cts_ask(comm);
	}
}

/* Return: -EAGAIN when neither a CTS is here nor the message path serves. */
static int send_start(struct fr_comm *comm, const void *data, size_t bytes,
		      int tag, struct fr_net_mr *mr, struct fr_req **out)
{
	struct fr_tx_entry *entry;
	uint32_t seq = 0;
	/* A CPU cannot copy from a GPU. */
	bool copies = bytes == 0 || !mr->gpu;
	bool eager = copies && bytes <= comm->link->eager_max &&
		     comm->link->eager_max != 0;

	entry = fr_cts_match(comm, tag, &seq);
	if (entry == NULL && !copies) {
		send_ask(comm, bytes);
		return -EAGAIN;
	}
	if (entry == NULL) {
		return fr_eager_allowed(comm, bytes)
			       ? send_eager(comm, 0, NULL, data, bytes, tag,
					    out)
			       : -EAGAIN;
	}
	if (entry->state == FR_TX_BLIND) {
		if (!eager) {
			fr_cts_ask(comm);
			return -EAGAIN;
		}
		return send_eager(comm, seq, entry, data, bytes, tag, out);
	}
	if (bytes > entry->len) {
		fr_send_truncated(comm, seq, bytes, entry->len);
		return -EMSGSIZE;
	}
	if (eager && bytes <= comm->set->quirks->inline_max_bytes) {
		int ret = send_eager(comm, seq, entry, data, bytes, tag, out);

		if (ret != -EAGAIN) {
			return ret;
		}
	}
	if (fr_unlikely(comm->link->up_cnt == 0)) {
		return -EAGAIN;
	}
	return send_write(comm, seq, entry, data, bytes, mr, out);
}

static int send_check(const struct fr_comm *comm, const void *data,
		      size_t bytes, const struct fr_net_mr *mr)
{
	if (comm == NULL || !comm->is_send) {
		return -EINVAL;
	}
	if (bytes != 0 && (data == NULL || mr == NULL || mr->comm != comm ||
			   !fr_net_mr_holds(mr, data, bytes))) {
		return -EINVAL;
	}
	return 0;
}

static int send_locked(struct fr_comm *comm, const void *data, size_t bytes,
		       int tag, struct fr_net_mr *mr, struct fr_req **out,
		       bool *yield)
{
	int ret = fr_comm_error(comm);

	if (fr_unlikely(ret != 0)) {
		return ret;
	}
	if (comm->peer_closed) {
		fr_log_limited(&comm->set->strange, FR_LOG_WARN,
			       "send to %s: the peer closed its receive comm",
			       comm->link->peer_text);
		comm->err = -ECONNRESET;
		return comm->err;
	}
	if (comm->req_cnt < comm->set->max_reqs) {
		ret = send_start(comm, data, bytes, tag, mr, out);
		if (ret != -EAGAIN) {
			comm->tx.waiting = false;
			return ret;
		}
	}
	comm->tx.waiting = true;
	*yield = fr_progress_locked(comm->set);
	if (comm->req_cnt < comm->set->max_reqs && fr_comm_error(comm) == 0) {
		ret = send_start(comm, data, bytes, tag, mr, out);
		comm->tx.waiting = ret == -EAGAIN;
		return ret;
	}
	return -EAGAIN;
}

int fr_net_isend(struct fr_comm *comm, const void *data, size_t bytes, int tag,
		 struct fr_net_mr *mr, struct fr_req **out)
{
	bool yield = false;
	int ret;

	*out = NULL;
	ret = send_check(comm, data, bytes, mr);
	if (fr_unlikely(ret != 0)) {
		return ret;
	}
	if (!fr_lock_try(&comm->set->lock)) {
		return 0;
	}
	ret = send_locked(comm, data, bytes, tag, mr, out, &yield);
	fr_lock_drop(&comm->set->lock);
	if (yield) {
		fr_yield();
	}
	return ret == -EAGAIN ? 0 : ret;
}
