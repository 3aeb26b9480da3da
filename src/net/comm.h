/*
 * A comm: one direction of one connection.
 *
 * Messages of a comm are numbered twice: the sender counts its sends (ordinal),
 * the receiver its receives (seq, a group taking one number each). Without
 * groups the n-th send meets the n-th receive and both numbers agree. With
 * groups a send takes the oldest receive that is still open and has its tag.
 *
 * Guarded by the set's lock.
 */
#ifndef FR_NET_COMM_H
#define FR_NET_COMM_H

#include "net/link.h"
#include "net/msgwin.h"
#include "net/set.h"

#define FR_COMM_EAGER_AHEAD 64u /* EAGER messages without a known receive */

enum fr_comm_state {
	FR_COMM_OPENING, /* connect or accept is under way */
	FR_COMM_OPEN,
	FR_COMM_ZOMBIE, /* closed by us; its id rests until the peer closes */
	FR_COMM_STATE_CNT
};

/* What the sender knows of one receive. */
enum fr_tx_state {
	FR_TX_UNKNOWN, /* no CTS yet */
	FR_TX_BLIND,   /* posted, short: only EAGER may take it */
	FR_TX_OPEN,    /* announced, not taken */
	FR_TX_TAKEN,   /* a send of ours has it */
};

struct fr_tx_entry {
	uint8_t state; /* enum fr_tx_state */
	uint8_t group;
	int32_t tag;
	uint64_t addr;
	uint64_t len;
	uint64_t keys[FR_MAX_RAILS];
};

/* An EAGER that went without a receive in our books. */
struct fr_tx_eager {
	int32_t tag;
	bool settled; /* a CTS told its receive meanwhile */
};

struct fr_send_state {
	uint32_t ordinal;     /* messages sent */
	uint32_t lost;	      /* of them, given up before they were done */
	uint32_t known;	      /* the entries of all receives below are known */
	uint32_t open_cnt;    /* entries in state OPEN or BLIND below known */
	struct fr_msgwin win; /* fr_tx_entry; base: lowest not taken */
	/* EAGER messages [eager_floor, eager_next), by their own index */
	uint32_t eager_next;
	uint32_t eager_floor;	   /* lowest that is not settled */
	struct fr_tx_eager *eager; /* FR_COMM_EAGER_AHEAD, on first use */
	struct fr_sched_cursor cursor;
	bool waiting; /* the last isend found nothing to do */
	bool asked;   /* for the CTS of asked_ordinal */
	uint32_t asked_ordinal;
	uint32_t waited_ordinal;
	uint32_t waited_ticks;
};

/* One posted receive. */
struct fr_rx_entry {
	uint8_t state; /* enum fr_rx_state in recv.c */
	uint8_t group;
	uint8_t index; /* in the group */
	uint8_t nseg;  /* 0: no stripe arrived yet */
	uint8_t count;
	bool announced;
	bool blind;
	bool copying;  /* an early message is on its way into a GPU's memory */
	uint8_t rails; /* ours that brought data, a bit each */
	uint8_t on_rail[FR_MAX_RAILS]; /* stripes that each of ours brought */
	int32_t tag;
	uint8_t *buf;
	uint64_t len;	/* posted */
	uint64_t bytes; /* arrived length */
	uint64_t aside; /* told by LENGTH, plus 1; 0: not told */
	struct fr_net_mr *mr;
	struct fr_req *req;
};

/* An EAGER message that came before its receive. */
struct fr_rx_eager {
	bool held;
	int32_t tag;
	uint32_t base32; /* its receive has this number or a later one */
	uint32_t len;
	void *copy; /* NULL for length 0 */
};

struct fr_recv_state {
	struct fr_msgwin win; /* fr_rx_entry; base: lowest not done */
	uint32_t announced;   /* next number to tell the peer */
	uint32_t skipped;     /* receives from there to here are blind */
	uint32_t completed;   /* messages */
	/* EAGER messages [eager_floor, eager_next) arrived without a gap; the
	 * held ones among them wait for their receives */
	uint32_t eager_floor;
	uint32_t eager_next;
	uint32_t eager_held;
	struct fr_rx_eager *eager; /* by index, on first use */
	struct fr_list cts_node;   /* in link.cts_owed */
	bool has_wanted; /* the peer asks for an entry of this number, which is
			    not posted yet */
	uint32_t wanted;
	/* of memory of a GPU, see gpu.h */
	uint32_t copying;  /* receives whose message is on its way there */
	uint8_t unflushed; /* our rails that brought what no flush covers */
	uint16_t flushing[FR_MAX_RAILS]; /* reads in flight, on each rail */
};

struct fr_comm {
	enum fr_comm_state state; /* by fr_comm_set_state() */
	bool is_send;
	bool peer_closed;
	uint8_t ctrl_path;
	int err; /* 0, or final -errno of this comm alone */
	struct fr_set *set;
	struct fr_link *link;
	uint32_t id;
	uint32_t nonce;
	uint32_t peer_id;
	uint32_t peer_nonce;
	uint32_t peer_final;
	uint32_t req_cnt;    /* in flight, as the host program sees them */
	struct fr_list reqs; /* fr_req.node */
	struct fr_list mrs;  /* fr_net_mr.node */
	struct fr_list node; /* in set.zombies */
	uint64_t connect_id;
	union {
		struct fr_send_state tx;
		struct fr_recv_state rx;
	};
};

/* Enters the set's comm table, with a fresh id and nonce, state OPENING. */
int fr_comm_create_locked(struct fr_set *set, bool is_send,
			  struct fr_comm **out);
/* Undoes create, for a comm that never was open. */
void fr_comm_destroy_locked(struct fr_comm *comm);
void fr_comm_set_state(struct fr_comm *comm, enum fr_comm_state to);
/* Joins the link that fr_link_get() found or made for it. */
void fr_comm_join_link(struct fr_comm *comm, struct fr_link *link,
		       const struct fr_conn_msg *msg);
/* The host program is through with it: tells the peer, lets its requests go. */
void fr_comm_close_locked(struct fr_comm *comm);
/* Lets a closed comm's id go although the peer never closed: its link failed.
 */
void fr_comm_free_zombie(struct fr_comm *comm);
/* CLOSE or CLOSED came. */
void fr_comm_peer_closed(struct fr_link *link, const struct fr_link_note *note);
/* The comm that a message of @link names by id and nonce; NULL: stale or false.
 */
struct fr_comm *fr_comm_of(struct fr_link *link, uint32_t id, uint32_t nonce,
			   bool is_send);
/* Every message that the closed peer ever completed is here. */
static inline bool fr_comm_is_spent(const struct fr_comm *comm)
{
	return (int32_t)(comm->rx.completed - comm->peer_final) >= 0;
}

/* 0, or why nothing works on it any more. */
static inline int fr_comm_error(const struct fr_comm *comm)
{
	return comm->err != 0 ? comm->err : comm->link->err;
}

#endif
