#include "net/req.h"

#include <assert.h>

#include "net/away.h"
#include "net/xfer.h"

/* clang-format off */
static const uint8_t req_next[] = {
	[FR_REQ_FREE]   = FR_BIT(FR_REQ_ACTIVE),
	[FR_REQ_ACTIVE] = FR_BIT(FR_REQ_DONE) | FR_BIT(FR_REQ_FAILED) | FR_BIT(FR_REQ_FREE),
	[FR_REQ_DONE]   = FR_BIT(FR_REQ_FREE),
	[FR_REQ_FAILED] = FR_BIT(FR_REQ_FREE),
};
/* clang-format on */
_Static_assert(FR_ARRAY_LEN(req_next) == FR_REQ_STATE_CNT,
	       "a state has no row");

int fr_reqs_create(struct fr_set *set)
{
	struct fr_freelist_attr attr = {
		.elem_bytes = sizeof(struct fr_send_req),
		.align = 64,
		.grow_cnt = 32,
	};
	int ret;

	ret = fr_freelist_create(&attr, &set->send_reqs);
	if (ret != 0) {
		return ret;
	}
	attr.elem_bytes = sizeof(struct fr_recv_req);
	ret = fr_freelist_create(&attr, &set->recv_reqs);
	if (ret != 0) {
		fr_freelist_destroy(set->send_reqs);
		set->send_reqs = NULL;
	}
	return ret;
}

void fr_reqs_destroy(struct fr_set *set)
{
	fr_freelist_destroy(set->recv_reqs);
	fr_freelist_destroy(set->send_reqs);
	set->recv_reqs = NULL;
	set->send_reqs = NULL;
}

void fr_req_set_state(struct fr_req *req, enum fr_req_state to)
{
	bool legal = fr_fsm_allows(req_next, req->state, to);

	assert(legal);
	(void)legal;
	req->state = to;
}

void fr_req_init(struct fr_req *req, struct fr_comm *comm,
		 enum fr_req_kind kind)
{
	req->state = FR_REQ_FREE;
	fr_req_set_state(req, FR_REQ_ACTIVE);
	req->kind = kind;
	req->orphan = false;
	req->err = 0;
	req->comm = comm;
	req->set = comm->set;
	comm->req_cnt++;
	fr_list_push(&comm->reqs, &req->node);
}

struct fr_send_req *fr_send_req_get(struct fr_comm *comm)
{
	struct fr_send_req *req = fr_freelist_get(comm->set->send_reqs);

	if (fr_likely(req != NULL)) {
		fr_req_init(&req->base, comm, FR_REQ_SEND);
		req->stripe_cnt = 0;
		req->to_post = 0;
		req->flying = 0;
		req->away = 0;
		req->stale = 0;
		req->losses = 0;
		req->deferred = false;
		req->link = comm->link;
		fr_list_init(&req->deferred_node);
	}
	return req;
}

struct fr_recv_req *fr_recv_req_get(struct fr_comm *comm)
{
	struct fr_recv_req *req = fr_freelist_get(comm->set->recv_reqs);

	if (fr_likely(req != NULL)) {
		fr_req_init(&req->base, comm, FR_REQ_RECV);
	}
	return req;
}

static void req_free(struct fr_req *req)
{
	fr_req_set_state(req, FR_REQ_FREE);
	fr_list_del(&req->node);
	switch (req->kind) {
	case FR_REQ_SEND:
		fr_freelist_put(req->set->send_reqs, fr_send_req_of(req));
		break;
	case FR_REQ_RECV:
		fr_freelist_put(req->set->recv_reqs, fr_recv_req_of(req));
		break;
	case FR_REQ_FLUSH:
		fr_flush_put(req);
		break;
	}
}

/* A provider still has something of it. */
static bool req_flies(struct fr_req *req)
{
	switch (req->kind) {
	case FR_REQ_SEND:
		return (fr_send_req_of(req)->flying |
			fr_send_req_of(req)->stale) != 0;
	case FR_REQ_FLUSH:
		return fr_flush_flies(req);
	case FR_REQ_RECV:
		break;
	}
	return false;
}

/*
 * A send settles when nothing of it can still read the user's buffer: after an
 * error the stripes that fly are waited for, the unposted ones are dropped. So
 * do the reads of a flush.
 */
void fr_req_fail(struct fr_req *req, int err)
{
	if (req->err == 0) {
		req->err = err;
	}
	if (req_flies(req)) {
		return;
	}
	if (req->orphan) {
		req_free(req);
	} else if (req->state == FR_REQ_ACTIVE) {
		fr_req_set_state(req, FR_REQ_FAILED);
	}
}

/* What only an end that nobody saw leaves to do. */
static void req_forget(struct fr_req *req)
{
	struct fr_comm *comm = req->comm;

	if (req->kind == FR_REQ_SEND) {
		struct fr_send_req *send = fr_send_req_of(req);

		comm->tx.lost++;
		if (send->deferred) {
			send->deferred = false;
			fr_list_del(&send->deferred_node);
		}
		if (fr_unlikely(send->away != 0)) {
			fr_away_forget(send);
		}
	} else if (req->kind == FR_REQ_RECV) {
		fr_recv_detach(comm, req);
	} else {
		fr_flush_forget(req);
	}
}

void fr_req_release(struct fr_req *req)
{
	fr_list_del(&req->node);
	req->comm->req_cnt--;
	if (req->state != FR_REQ_DONE) {
		req_forget(req);
	}
	req->comm = NULL;
	if (req_flies(req)) {
		req->orphan = true;
		fr_list_push(&req->set->orphans, &req->node);
		return;
	}
	req_free(req);
}
