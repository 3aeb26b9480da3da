/*
 * Connection set-up, in bounded steps.
 *
 *   connecting side                         listening side
 *   handle -> resolve, post CONNECT  ---->  kept in the listener
 *   wait                                    accept: make comm and link
 *   comm is open                    <----   RESPONSE; accept returns when sent
 *
 * The response goes the way of the comm's control messages, so that it comes
 * first, and puts the comm on its link when it is read.
 *
 * A listener with a short handle goes first: it answers when the request comes,
 * and accept finds the comm made.
 *
 * CONNECT is repeated until a response comes; repeats are idempotent by the
 * random connect id. A response, or a refusal with its text, is a struct
 * fr_reply that the set's passes send.
 */
#ifndef FR_NET_CONN_H
#define FR_NET_CONN_H

#include "net/comm.h"
#include "net/witness.h"

struct fr_pending {
	struct fr_list node;
	struct fr_conn_msg msg;
};

struct fr_listen {
	struct fr_list node; /* in set.listeners */
	struct fr_set *set;
	uint64_t cookie;
	bool early;		/* answers before accept is called */
	struct fr_list pending; /* fr_pending */
	unsigned pending_cnt;
	struct fr_comm *accepting; /* its response is not out yet */
	struct fr_reply *reply;
	int refused_err; /* for the next accept: a peer of another kind told us
			    through the port, or an early answer failed */
};

struct fr_reply {
	struct fr_list node; /* in set.replies until it is sent */
	struct fr_set *set;
	struct fr_slot *slot; /* NULL once it is sent */
	struct fr_rail *rail;
	uint64_t addr;
	struct fr_link *link; /* whose path it takes; NULL: @addr is its own */
	uint64_t begun_ns;
	uint64_t next_ns; /* not tried before */
	uint64_t deadline_ns;
	struct fr_comm *closing; /* to be closed once the peer has this */
	bool sent;		 /* or given up: err */
	bool owned; /* a listener looks at it; else it frees itself */
	int err;
};

enum fr_conn_state {
	FR_CONN_POSTING, /* CONNECT is not taken by a rail yet */
	FR_CONN_WAITING, /* for the response */
	FR_CONN_READY,	 /* the response came; the comm is on its link */
	FR_CONN_FAILED,
	FR_CONN_STATE_CNT
};

struct fr_conn {
	struct fr_list node;	 /* (core) in core.connects */
	struct fr_list set_node; /* in set.conns */
	uint64_t key;		 /* in the handle: finds us again */
	uint64_t connect_id;
	struct fr_handle handle;
	struct fr_set *set;
	struct fr_comm *comm;
	enum fr_conn_state state; /* by conn_set_state() */
	unsigned name;		  /* which of the handle's names is tried */
	struct fr_rail *rail;
	uint64_t addr;
	bool have_addr;
	struct fr_slot *slot; /* CONNECT; kept for repeats */
	uint64_t begun_ns;
	uint64_t name_ns; /* since when this name is tried */
	uint64_t sent_ns;
	unsigned idle_rounds; /* (core) of the keeper, since the last call */
	bool called;	      /* (core) a thread is in connect with it */
	int err;
	struct fr_knock knock;
	struct fr_knock_addr knock_addr;
	struct fr_knock_addr knock_local;
	struct fr_witness witness;
	uint64_t next_knock_ns;
	uint8_t refusals;
	uint32_t silent_names; /* bit a name that led nowhere */
};

/* A message whose first byte is a connect message's arrived. */
void fr_conn_arrived(struct fr_set *set, const uint8_t *buf, size_t bytes);
/* The knock port was told that a peer will not connect. */
void fr_conn_refused(struct fr_set *set, const struct fr_knock_refusal *r);
/* reply.c. Goes to @addr of a path of @link, or takes @addr when that is NULL;
 * @out NULL: nobody waits for its end.
 * Return: 0; -errno, then @addr stays the caller's. */
int fr_reply_create(struct fr_set *set, struct fr_rail *rail, uint64_t addr,
		    struct fr_link *link, const struct fr_conn_msg *msg,
		    struct fr_reply **out);
void fr_reply_disown(struct fr_reply *reply);
void fr_reply_tick(struct fr_set *set, uint64_t now_ns);
void fr_reply_drop_all(struct fr_set *set);
/* Sends replies that wait. */
void fr_conn_flush(struct fr_set *set);

/* accept.c: a request came. */
void fr_accept_request(struct fr_set *set, const struct fr_conn_msg *msg);
/* One of another version; only its cookie is valid. False: it is no listener's.
 */
bool fr_accept_foreign(struct fr_set *set, const struct fr_conn_msg *msg);

/* Timers: gives up replies, asks after listeners that do not answer. */
void fr_conn_tick_locked(struct fr_set *set, uint64_t now_ns);
/* The keeper, each round: reclaims connects that the host program dropped. */
void fr_conn_reap_locked(void);
/* The last reference goes, or the process: ends what is under way, as a close
 * does, but for what a thread is in a call with. That one ends with its call,
 * or stays; its set stays with it. Waits like a close; no lock is held. */
void fr_conn_drop_all(void);
/* Listeners of a set, and what they hold. */
void fr_listen_drop_all_locked(struct fr_set *set);

#endif
