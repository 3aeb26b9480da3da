/*
 * Requests. States: FREE -> ACTIVE -> DONE or FAILED -> FREE. A request goes
 * back to its pool when the host program heard of its end, or closed its comm,
 * and nothing of it is in flight in a provider.
 *
 * Guarded by the set's lock.
 */
#ifndef FR_NET_REQ_H
#define FR_NET_REQ_H

#include "net/comm.h"

enum fr_req_state {
	FR_REQ_FREE,
	FR_REQ_ACTIVE, /* something is to happen or in flight */
	FR_REQ_DONE,
	FR_REQ_FAILED, /* err is final */
	FR_REQ_STATE_CNT
};

enum fr_req_kind { FR_REQ_SEND, FR_REQ_RECV, FR_REQ_FLUSH };

struct fr_send_req;

struct fr_stripe {
	struct fr_op op;
	struct fr_send_req *req;
	uint64_t offset;
	uint64_t bytes; /* that have not arrived */
	uint64_t part;	/* of them, posted last */
	uint8_t path;
};

struct fr_req {
	enum fr_req_state state; /* by fr_req_set_state() */
	enum fr_req_kind kind;
	bool orphan; /* the host program forgot it; free when nothing flies */
	int err;
	struct fr_comm *comm;
	struct fr_set *set;
	struct fr_list node; /* in comm.reqs, or set.orphans */
};

struct fr_send_req {
	struct fr_req base;
	const uint8_t *data;
	uint64_t bytes;
	struct fr_net_mr *mr;
	struct fr_link *link; /* outlives the comm while stripes fly */
	uint64_t imm;
	uint32_t seq;
	uint64_t remote_addr;
	uint64_t keys[FR_MAX_RAILS];
	uint8_t stripe_cnt;
	uint8_t to_post; /* bit a stripe: its rail is to take it, or more of it
			  */
	uint8_t flying;	 /* bit a stripe: posted and not completed */
	uint8_t away;	 /* bit a stripe: lost its path, see failover.h */
	uint8_t stale;	 /* bit a stripe: its op is in a provider for nothing */
	uint8_t losses;	 /* errors that its stripes met */
	bool measured;	 /* balance.h is told of its stripes */
	bool deferred;	 /* in link.deferred */
	struct fr_list deferred_node;
	struct fr_stripe stripe[FR_SCHED_MAX_PATHS];
};

struct fr_recv_req {
	struct fr_req base;
	uint8_t cnt;
	uint8_t pending; /* messages not complete */
	uint64_t bytes[FR_NET_MAX_GROUP];
};

int fr_reqs_create(struct fr_set *set);
void fr_reqs_destroy(struct fr_set *set);
/* NULL: out of memory. State ACTIVE, on the comm's list. */
struct fr_send_req *fr_send_req_get(struct fr_comm *comm);
struct fr_recv_req *fr_recv_req_get(struct fr_comm *comm);
void fr_req_set_state(struct fr_req *req, enum fr_req_state to);
/* First error wins; a send with stripes in flight fails when they are home. */
void fr_req_fail(struct fr_req *req, int err);
/* The host program is through with it. */
void fr_req_release(struct fr_req *req);
/* For who has a pool of its own: @req is @kind's now, ACTIVE and on the comm's
 * list. */
void fr_req_init(struct fr_req *req, struct fr_comm *comm,
		 enum fr_req_kind kind);

/* Nothing of it is to happen any more. */
static inline bool fr_send_is_over(const struct fr_send_req *req)
{
	return (req->flying | req->to_post | req->away) == 0;
}

static inline struct fr_send_req *fr_send_req_of(struct fr_req *req)
{
	return FR_CONTAINER_OF(req, struct fr_send_req, base);
}

static inline struct fr_recv_req *fr_recv_req_of(struct fr_req *req)
{
	return FR_CONTAINER_OF(req, struct fr_recv_req, base);
}

#endif
