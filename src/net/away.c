#include "net/away.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/balance.h"
#include "net/xfer.h"

/* A write that is refused wherever it goes is no matter of paths. */
#define LOSSES_MAX 4u

enum away_state { AWAY_UNKNOWN, AWAY_TO_POST, AWAY_FLYING };

struct fr_away {
	struct fr_list node;	 /* in link.away, or set.strays */
	struct fr_send_req *req; /* NULL: a stray */
	struct fr_net_mr *mr;	 /* of @req; NULL: no bytes */
	struct fr_path *path;	 /* of the last post of @op */
	uint8_t stripe;
	uint8_t state; /* enum away_state */
	bool first;    /* what is unknown is the stripe's own op */
	bool out;      /* @op is in a provider */
	struct fr_op op;
};

static struct fr_away *away_of(struct fr_list *pos)
{
	return FR_CONTAINER_OF(pos, struct fr_away, node);
}

static struct fr_stripe *stripe_of(const struct fr_away *away)
{
	return &away->req->stripe[away->stripe];
}

/* A path counts the writes that it is still trusted to bring home. */
static void away_set_state(struct fr_away *away, enum away_state to)
{
	if (away->state == AWAY_FLYING) {
		away->path->flying--;
	}
	away->state = (uint8_t)to;
	if (to == AWAY_FLYING) {
		away->path->flying++;
	}
}

static bool away_make(struct fr_send_req *req, unsigned i,
		      enum away_state state, bool first)
{
	struct fr_away *away = fr_calloc(1, sizeof(*away));

	if (away == NULL) {
		return false;
	}
	away->req = req;
	away->mr = req->mr;
	away->stripe = (uint8_t)i;
	away_set_state(away, state);
	away->first = first;
	req->away |= (uint8_t)FR_BIT(i);
	fr_list_push(&req->link->away, &away->node);
	return true;
}

/* Nobody waits for it any more. */
static void away_drop(struct fr_away *away)
{
	struct fr_set *set = away->req->link->set;

	away_set_state(away, AWAY_UNKNOWN);
	fr_list_del(&away->node);
	away->req->away &= (uint8_t)~FR_BIT(away->stripe);
	away->req = NULL;
	if (away->out) {
		fr_list_push(&set->strays, &away->node);
	} else {
		fr_free(away);
	}
}

/* Its write, or a part of it, has landed. */
static void away_landed(struct fr_away *away)
{
	struct fr_send_req *req = away->req;
	struct fr_stripe *stripe = stripe_of(away);

	stripe->offset += stripe->part;
	stripe->bytes -= stripe->part;
	if (fr_unlikely(stripe->bytes != 0)) {
		away_set_state(away, AWAY_TO_POST);
		away->first = false;
		fr_link_owe(req->link);
		return;
	}
	away_drop(away);
	if (fr_send_is_over(req) && req->base.state == FR_REQ_ACTIVE) {
		fr_req_set_state(&req->base, FR_REQ_DONE);
	}
}

/* -- a path is lost ----------------------------------------------------------
 */

/* What of @req has to do with the path. One that failed, or that nobody waits
 * for, has nothing to be repeated. */
static bool stripes_from(struct fr_send_req *req, unsigned path)
{
	bool wanted = req->base.state == FR_REQ_ACTIVE && req->base.err == 0 &&
		      !req->base.orphan;

	for (unsigned i = 0; i < req->stripe_cnt; i++) {
		uint8_t bit = (uint8_t)FR_BIT(i);
		bool posted = (req->flying & bit) != 0;

		if (req->stripe[i].path != path ||
		    ((req->flying | req->to_post) & bit) == 0) {
			continue;
		}
		req->to_post &= (uint8_t)~bit;
		if (posted) {
			req->flying &= (uint8_t)~bit;
			req->stale |= bit;
			req->link->path[path].flying--;
			if (fr_unlikely(req->measured)) {
				fr_balance_arrived(req->link, path, 0);
			}
		}
		if (wanted &&
		    !away_make(req, i, posted ? AWAY_UNKNOWN : AWAY_TO_POST,
			       posted)) {
			return false;
		}
	}
	return true;
}

static bool list_from(struct fr_list *reqs, const struct fr_link *link,
		      unsigned path)
{
	fr_list_for_each (pos, reqs) {
		struct fr_req *req = FR_CONTAINER_OF(pos, struct fr_req, node);

		if (req->kind == FR_REQ_SEND &&
		    fr_send_req_of(req)->link == link &&
		    !stripes_from(fr_send_req_of(req), path)) {
			return false;
		}
	}
	return true;
}

bool fr_away_from(struct fr_link *link, unsigned i)
{
	struct fr_set *set = link->set;
	struct fr_comm *comm;
	uint32_t id = 0;

	fr_list_for_each (pos, &link->away) {
		struct fr_away *away = away_of(pos);

		if (away->state == AWAY_FLYING &&
		    away->path == &link->path[i]) {
			away_set_state(away, AWAY_UNKNOWN);
		}
	}
	if (!list_from(&set->orphans, link, i)) {
		return false;
	}
	while ((comm = fr_set_next_comm(set, &id)) != NULL) {
		if (!list_from(&comm->reqs, link, i)) {
			return false;
		}
	}
	return true;
}

/* -- asking ------------------------------------------------------------------
 */

static bool is_out(const struct fr_away *away)
{
	return away->state != AWAY_TO_POST;
}

static unsigned lane_of(const struct fr_link *link,
			const struct fr_stripe *stripe)
{
	return link->path[stripe->path].lane;
}

/* Stripes of @req that have landed in @lane. */
static uint32_t acked_in(const struct fr_send_req *req, unsigned lane)
{
	uint32_t cnt = 0;

	for (unsigned i = 0; i < req->stripe_cnt; i++) {
		bool open = ((req->flying | req->to_post | req->away) &
			     FR_BIT(i)) != 0;

		cnt += !open && lane_of(req->link, &req->stripe[i]) == lane;
	}
	return cnt;
}

unsigned fr_away_unknown(const struct fr_link *link, const struct fr_path *path,
			 struct fr_fence_item *items, unsigned max)
{
	unsigned cnt = 0;

	fr_list_for_each (pos, &link->away) {
		const struct fr_away *away = away_of(pos);

		if (away->state != AWAY_UNKNOWN ||
		    stripe_of(away)->path != path - link->path) {
			continue;
		}
		if (cnt == max) {
			break;
		}
		items[cnt++] = (struct fr_fence_item){
			.comm = away->req->base.comm->peer_id,
			.seq = away->req->seq,
			.value = acked_in(away->req, path->lane),
		};
	}
	return cnt;
}

/* -- being told --------------------------------------------------------------
 */

/* It is to be posted again, with another op while the one in use hangs. Return:
 * false: out of memory. */
static bool away_again(struct fr_away *away)
{
	struct fr_send_req *req = away->req;
	unsigned i = away->stripe;

	away_set_state(away, AWAY_TO_POST);
	away->first = false;
	if (!away->out) {
		return true;
	}
	away_drop(away);
	return away_make(req, i, AWAY_TO_POST, false);
}

static void comm_is_gone(struct fr_comm *comm)
{
	if (comm->err == 0) {
		fr_warn("send to %s: the peer closed its receive comm",
			comm->link->peer_text);
		comm->err = -ECONNRESET;
	}
}

static bool resolve_one(struct fr_away *away, const struct fr_fence_item *item)
{
	struct fr_send_req *req = away->req;
	unsigned lane = lane_of(req->link, stripe_of(away));

	if (item->value == FR_FENCED_GONE) {
		comm_is_gone(req->base.comm);
		away_drop(away);
		req->to_post = 0;
		fr_req_fail(&req->base, -ECONNRESET);
		return true;
	}
	if (item->value == FR_FENCED_RETIRED ||
	    item->value > acked_in(req, lane)) {
		away_landed(away);
		return true;
	}
	return away_again(away);
}

static bool is_named(const struct fr_link *link, const struct fr_away *away,
		     const struct fr_fence *msg,
		     const struct fr_fence_item *item)
{
	const struct fr_path *path = &link->path[stripe_of(away)->path];

	return away->state == AWAY_UNKNOWN && path->peer_rail == msg->rail &&
	       path->state == FR_PATH_ASK && path->repair.inc == msg->inc &&
	       away->req->seq == item->seq &&
	       away->req->base.comm->peer_id == item->comm;
}

void fr_away_resolve(struct fr_link *link, const struct fr_fence *msg)
{
	for (unsigned i = 0; i < msg->item_cnt; i++) {
		fr_list_for_each (pos, &link->away) {
			struct fr_away *away = away_of(pos);

			if (!is_named(link, away, msg, &msg->items[i])) {
				continue;
			}
			if (!resolve_one(away, &msg->items[i])) {
				fr_link_fail(link, -ENOMEM,
					     "out of memory for its repeats");
				return;
			}
			break;
		}
	}
	fr_link_owe(link);
}

/* -- repeating ---------------------------------------------------------------
 */

/* Something of @req is out in @lane, or about to be. */
static bool lane_is_taken(const struct fr_send_req *req, unsigned lane)
{
	const struct fr_link *link = req->link;

	for (unsigned i = 0; i < req->stripe_cnt; i++) {
		if (((req->flying | req->to_post) & FR_BIT(i)) != 0 &&
		    lane_of(link, &req->stripe[i]) == lane) {
			return true;
		}
	}
	fr_list_for_each (pos, &link->away) {
		const struct fr_away *away = away_of(pos);

		if (away->req == req && is_out(away) &&
		    lane_of(link, stripe_of(away)) == lane) {
			return true;
		}
	}
	return false;
}

static void away_done(struct fr_op *op, struct fr_rail *rail, int err,
		      size_t bytes)
{
	struct fr_away *away = FR_CONTAINER_OF(op, struct fr_away, op);
	struct fr_path *path = away->path;
	struct fr_link *link = path->repair.link;

	(void)bytes;
	path->moved++;
	if (err != 0 && link->err == 0) {
		bool was_up = path->state == FR_PATH_UP;

		fr_link_path_fail(link, (unsigned)(path - link->path),
				  fr_rail_error_text(rail));
		if (was_up && away->req != NULL) {
			fr_away_failed(away->req, fr_rail_error_text(rail));
		}
	}
	away->out = false; /* not before: it would have been freed */
	if (away->req == NULL) {
		fr_list_del(&away->node);
		fr_free(away);
	} else if (err == 0) {
		link->activity++;
		away_landed(away);
	}
}

/* Return: 0; -EAGAIN; -errno: the path, or the link, is lost. */
static int away_post_on(struct fr_away *away, unsigned i)
{
	struct fr_link *link = away->req->link;
	int ret;

	stripe_of(away)->path = (uint8_t)i;
	away->path = &link->path[i];
	away->op.done = away_done;
	ret = fr_send_stripe(away->req, stripe_of(away), &away->op);
	if (ret == 0) {
		away_set_state(away, AWAY_FLYING);
		away->out = true;
	} else if (ret != -EAGAIN) {
		fr_link_path_fail(link, i, strerror(-ret));
	}
	return ret;
}

/* Return: false: no path takes it now. */
static bool away_try(struct fr_away *away)
{
	struct fr_link *link = away->req->link;

	for (unsigned n = 0; n < link->path_cnt; n++) {
		unsigned i = (away->stripe + n) % link->path_cnt;

		if (link->path[i].state != FR_PATH_UP ||
		    lane_is_taken(away->req, link->path[i].lane)) {
			continue;
		}
		if (away_post_on(away, i) == 0) {
			return true;
		}
		if (link->err != 0) {
			return false;
		}
	}
	return false;
}

bool fr_away_post(struct fr_link *link)
{
	bool done = true;

	fr_list_for_each_safe (pos, &link->away) {
		struct fr_away *away = away_of(pos);

		if (away->state == AWAY_TO_POST && !away_try(away)) {
			done = false;
		}
		if (link->err != 0) {
			return true; /* the list is empty */
		}
	}
	return done;
}

/* -- what ends otherwise -----------------------------------------------------
 */

void fr_away_failed(struct fr_send_req *req, const char *cause)
{
	char text[256];

	if (++req->losses < LOSSES_MAX || req->link->err != 0) {
		return;
	}
	snprintf(text, sizeof(text), "a write failed %u times: %s", LOSSES_MAX,
		 cause);
	fr_link_fail(req->link, -ECONNRESET, text);
}

void fr_away_first_home(struct fr_send_req *req, unsigned i, int err)
{
	req->stale &= (uint8_t)~FR_BIT(i);
	fr_list_for_each (pos, &req->link->away) {
		struct fr_away *away = away_of(pos);

		if (away->req == req && away->stripe == i) {
			if (err == 0 && away->first &&
			    away->state == AWAY_UNKNOWN) {
				away_landed(away);
			}
			return;
		}
	}
	if (req->base.orphan || req->base.err != 0) {
		fr_req_fail(&req->base, -ECONNRESET);
	}
}

void fr_away_forget(struct fr_send_req *req)
{
	fr_list_for_each_safe (pos, &req->link->away) {
		struct fr_away *away = away_of(pos);

		if (away->req == req) {
			away_drop(away);
		}
	}
}

static bool one_reads(struct fr_list *list, const struct fr_net_mr *mr)
{
	fr_list_for_each (pos, list) {
		if (away_of(pos)->out && away_of(pos)->mr == mr) {
			return true;
		}
	}
	return false;
}

bool fr_away_reads(const struct fr_comm *comm, const struct fr_net_mr *mr)
{
	return one_reads(&comm->link->away, mr) ||
	       one_reads(&comm->set->strays, mr);
}

void fr_away_end(struct fr_link *link)
{
	while (!fr_list_empty(&link->away)) {
		struct fr_away *away = away_of(link->away.next);
		struct fr_send_req *req = away->req;

		away_drop(away);
		fr_req_fail(&req->base, link->err);
	}
}

void fr_away_drop_all(struct fr_link *link)
{
	while (!fr_list_empty(&link->away)) {
		away_drop(away_of(link->away.next));
	}
}

void fr_away_free(struct fr_set *set)
{
	for (struct fr_list *pos; (pos = fr_list_pop(&set->strays)) != NULL;) {
		fr_free(away_of(pos));
	}
}
