/* Inside of the fake fabric: the one network of the process. */
#ifndef FR_FAKE_WORLD_H
#define FR_FAKE_WORLD_H

#include <pthread.h>

#include "base/list.h"
#include "fake/fake_rail.h"

/* Entries of a rail's completion queue. */
enum fake_cqe_kind {
	FAKE_CQE_POST, /* a send or write of ours */
	FAKE_CQE_RECV,
	FAKE_CQE_WRITE, /* remote write */
	FAKE_CQE_ERROR, /* remote error */
};

struct fake_cqe {
	struct fr_list node;
	enum fake_cqe_kind kind;
	struct fake_post *post;
	struct fr_op *op;
	int err;
	size_t bytes;
	uint64_t imm;
};

/* A send or write from its acceptance until its done function is called. */
struct fake_post {
	struct fr_list node; /* in its rail's posts */
	struct fr_rail *rail;
	struct fr_op *op;
	const void *buf;
	void *into;	      /* of a read */
	size_t bytes;	      /* of its source here: 0 for a read */
	uint64_t hash;	      /* of the source when it was posted */
	struct fake_pkt *pkt; /* still waits for the target, or NULL */
};

/* A receive buffer. */
struct fake_recv {
	struct fr_list node;
	void *buf;
	size_t bytes;
	struct fr_op *op;
};

enum fake_pkt_kind {
	FAKE_PKT_MSG,
	FAKE_PKT_WRITE,
	FAKE_PKT_READ,
	FAKE_PKT_IMM,
	FAKE_PKT_ERR
};

/* Written to a GPU, which does not see it yet. */
struct fake_unseen {
	struct fr_list node; /* in its rail */
	void *to;	     /* the alias */
	size_t bytes;
	char copy[];
};

/* Something on its way. It has either a copy of its bytes, or a post whose
 * buffer is read when it lands. */
struct fake_pkt {
	struct fr_list node; /* in its connection */
	enum fake_pkt_kind kind;
	uint64_t seq; /* order of acceptance, over all connections */
	struct fake_post *post;
	void *copy;
	size_t bytes;
	uint64_t imm, remote_addr, key;
	int err;     /* the sender's completion fails although it lands */
	bool untold; /* the target's queue says nothing of it */
};

/* From one rail (0: a stranger) to one endpoint; FIFO. */
struct fake_conn {
	struct fr_list node; /* in its endpoint */
	uint64_t src_id;
	struct fr_rail *src; /* NULL when it is closed, or a stranger */
	struct fr_list pkts;
	struct fr_list lost; /* dropped, but their posts wait */
	unsigned cnt;	     /* of pkts */
	bool connected;
	bool stalled; /* in this poll: its first message finds no buffer */
};

struct fake_ep {
	struct fr_list node; /* in the world */
	struct fr_name name;
	struct fr_rail *rail;
	struct fr_list conns;
	bool killed;
	bool held;
	unsigned drop_cnt;
};

/* What the provider knows of a registration on one rail. */
struct fake_reg {
	struct fr_list node; /* in its rail */
	struct fr_rail *rail;
	uint64_t key;
	char *base;
	size_t bytes;
	unsigned access;
};

struct fake_peer {
	bool used;
	struct fr_name name;
};

struct fr_fabric {
	struct fr_fake_conf conf;
	char text[64];
};

struct fr_rail {
	struct fr_list node; /* in the world */
	struct fr_rail_attr attr;
	struct fr_fake_conf conf; /* of its fabric */
	uint64_t id;		  /* from 1, never used twice */
	bool polling;		  /* fr_rail_poll() runs */
	pthread_t poller;
	bool abandoned;
	bool fenced;
	struct fake_ep *ctrl;
	struct fake_ep *data; /* the same as ctrl unless split */
	struct fake_peer *peers;
	unsigned peer_cnt;
	struct fr_list recvs;
	struct fr_list posts;
	unsigned post_cnt;
	struct fr_list cq;
	unsigned cq_cnt;
	struct fr_list regs;
	struct fr_list unseen;
	uint64_t key_half; /* random half of the keys */
	uint32_t key_next;
	char error_text[96];
	struct fr_stats stats;
	struct fr_fake_counts counts;
};

struct fake_world {
	pthread_mutex_t lock;
	bool ready;
	struct fr_fake_conf conf;
	struct fr_list rails;
	struct fr_list eps;
	struct fr_fake_fault faults[32];
	unsigned fault_cnt;
	uint32_t rng;
	uint64_t next_seq;
	uint64_t next_rail_id;
	uint16_t next_port;
	uint16_t forced_port;
	bool shuffle;
	bool unordered;
	fr_fake_snoop_fn snoop;
	void *snoop_arg;
	struct fr_fake_counts counts;
};

extern struct fake_world fake_world;

void fake_lock(void);
void fake_unlock(void);

/* All below: the lock is held. */

/* 0, or the error that a test asked for this call; counts it either way. */
int fake_call_locked(struct fr_rail *rail, enum fr_fake_call call);
/* Same for completions, which count as calls only when they fail. */
int fake_done_fault_locked(struct fr_rail *rail, enum fr_fake_call call,
			   bool *landed);
/* A rail has one owner; a registration, only where the quirk says so. */
void fake_check_owner_locked(struct fr_rail *rail, enum fr_fake_call call);
/* A rail that was fenced or abandoned is left alone. */
void fake_check_alive_locked(struct fr_rail *rail);
/* Counts and returns -EAGAIN. */
int fake_again_locked(struct fr_rail *rail, enum fr_fake_call call);
int fake_violation_locked(struct fr_rail *rail, const char *what);
uint32_t fake_random_locked(void);
/* Below @n, uniformly enough. */
uint32_t fake_random_below_locked(uint32_t n);
void *fake_zalloc(size_t bytes);
/* Of long buffers only the ends are looked at. */
uint64_t fake_hash(const void *buf, size_t bytes);

struct fake_ep *fake_ep_open_locked(struct fr_rail *rail);
/* What waits in it fails at its sender. */
void fake_ep_close_locked(struct fake_ep *ep);
struct fake_ep *fake_ep_find_locked(const struct fr_name *name);
struct fake_conn *fake_conn_get_locked(struct fake_ep *ep, struct fr_rail *src);
void fake_conn_push_locked(struct fake_conn *conn, struct fake_pkt *pkt);
void fake_pkt_del_locked(struct fake_conn *conn, struct fake_pkt *pkt);
/* Drops all that is in flight on it; waiting posts complete with @err. */
void fake_conn_cut_locked(struct fake_conn *conn, int err);
/* Nobody is told of what @pkt carried, but its post can still fail. */
void fake_pkt_lose_locked(struct fake_conn *conn, struct fake_pkt *pkt);
/* @src goes: what was copied stays on its way, the rest is taken back. */
void fake_conns_leave_locked(struct fr_rail *src);

/* Moves what has arrived to the rail's completion queue. */
void fake_progress_locked(struct fr_rail *rail);
void fake_cq_push_locked(struct fr_rail *rail, struct fake_cqe cqe);
void fake_post_done_locked(struct fake_post *post, int err);

void fake_rail_free_locked(struct fr_rail *rail);

#endif
