/*
 * A link: (our set, a peer's set), shared by their comms. Owns the paths, the
 * reliable control channel, and the queue of stripes a rail did not take yet.
 *
 *   tx: acked ..... unacked (kept in slots) ..... next | wait queue
 *                   at most FR_LINK_WINDOW
 *   rx: all below rx_next were received; rx_mask marks what came ahead of it
 *
 * Part of the window is kept for control: EAGER messages use FR_LINK_EAGER_MAX.
 * A link lives as long as its set, also with no comm on it: both sides count
 * their messages on, and a side that began anew would not be understood. A link
 * that failed stays failed.
 *
 * Guarded by the set's lock.
 */
#ifndef FR_NET_LINK_H
#define FR_NET_LINK_H

#include "net/railmap.h"
#include "net/rate.h"
#include "net/sched.h"
#include "net/set.h"
#include "net/slot.h"
#include "net/witness.h"
#include "wire/link.h"

#define FR_LINK_WINDOW 64u
#define FR_LINK_EAGER_MAX 48u
#define FR_LINK_ACK_AFTER 16u

/* As a sender of data, see failover.h. */
enum fr_path_state {
	FR_PATH_UP,   /* writes go by it */
	FR_PATH_ASK,  /* given up; what of the writes has landed is asked */
	FR_PATH_DOWN, /* nothing of ours is out there; it may come back */
	FR_PATH_STATE_CNT
};

/* The way of a path from its loss to its return, see failover.c. */
struct fr_repair {
	bool asked;		  /* a FENCE is out and has no answer */
	bool untold;		  /* the peer does not know of the loss */
	uint32_t inc;		  /* incarnation that data_addr is of */
	uint32_t newest;	  /* incarnation that the peer told last */
	uint32_t name_seq;	  /* the link message that told it */
	struct fr_name data_name; /* of newest */
	uint64_t lost_ns;
	uint64_t try_ns; /* no try before */
	unsigned good_tries;
	bool trying; /* op is in its rail */
	struct fr_op op;
	struct fr_path *path;
	struct fr_link *link;
};

struct fr_path {
	struct fr_rail *rail;
	uint8_t local_rail;
	uint8_t peer_rail;
	uint64_t ctrl_addr;
	uint64_t data_addr;
	struct fr_knock_addr knock_local;
	struct fr_knock_addr knock_peer; /* port 0: none */
	struct fr_knock knock;
	/* whether anything gets through, see health.c */
	uint32_t flying; /* writes of ours */
	uint32_t moved;	 /* bumped when one lands, or a message is acknowledged
			  */
	uint32_t moved_seen;
	uint64_t stuck_since_ns;
	uint64_t silent_since_ns; /* 0: the last probe was answered */
	uint64_t alive_ns; /* something came through, or a probe's answer */
	struct fr_knock probe;
	struct fr_witness witness;
	/* failover */
	uint8_t state;	 /* enum fr_path_state, by path_set_state() */
	uint8_t lane;	 /* the first path to the same rail of the peer */
	bool ctrl_stuck; /* its connection may take messages and bring none */
	uint32_t slots_out; /* control messages in its rail */
	struct fr_repair repair;
};

struct fr_link {
	/* hot */
	struct fr_set *set;
	int err; /* 0, or final -errno */
	unsigned path_cnt;
	struct fr_path path[FR_SCHED_MAX_PATHS];
	struct fr_sched sched; /* its weights: those of paths that are UP */
	uint32_t weight[FR_SCHED_MAX_PATHS]; /* as measured */
	struct fr_rate rate;		     /* see balance.h */
	uint64_t measure_from;		     /* bytes of a message */
	uint32_t eager_max;		     /* what both sides take */
	uint32_t tx_next;		     /* next sequence number */
	uint32_t tx_acked; /* lowest that is not acknowledged */
	struct fr_slot *unacked[FR_LINK_WINDOW];
	uint32_t rx_next;
	uint64_t rx_mask; /* bit i: rx_next + 1 + i was received */
	uint32_t ack_owed;
	bool ack_now;
	struct fr_list owing;	 /* in set.owing while anything is to post */
	struct fr_list wait;	 /* slots not taken by a rail yet, in order */
	struct fr_list deferred; /* send requests with unposted stripes */
	struct fr_list cts_owed; /* receive comms with receives to announce */
	struct fr_list away;	 /* fr_away: stripes that lost their path */
	unsigned up_cnt;	 /* paths that are UP */
	bool lanes_shared;	 /* two paths lead to one rail of the peer */
	uint32_t activity;	 /* bumped by every sign of the peer's life */

	/* cold */
	struct fr_list node; /* in set.links */
	struct fr_link *hash_next;
	uint64_t peer_set;
	unsigned open_comms; /* comms that are not closed by us */
	unsigned peer_open;  /* comms that the peer has not closed */
	bool was_used;	     /* there has been a comm */
	unsigned peer_rails;
	uint16_t features;
	uint64_t scratch_addr;
	uint64_t scratch_key[FR_CONN_MAX_RAILS];
	uint64_t reset_ns;   /* tick of the last RESET that we sent */
	unsigned fence_jobs; /* FENCE of the peer that have no answer */
	uint32_t turn;	     /* of the paths that share a lane */
	uint64_t none_up_ns; /* when the last path that was UP was lost */
	struct fr_log_limit balance_log;
	/* liveness, see health.c */
	bool wanted; /* a request of ours waits for the peer */
	uint32_t activity_seen;
	uint64_t quiet_since_ns;
	uint64_t frozen_since_ns; /* its kernel answers, the process does not */
	uint64_t round_ns;	  /* when this round of knocks began */
	uint64_t silent_since_ns; /* 0: the last round was answered */
	bool knocking;
	bool gone;  /* its process, or its set, is no more: nobody writes */
	bool quiet; /* and nothing of it is on its way any more */
	uint8_t refusals;   /* rounds in a row */
	char peer_text[96]; /* "10.77.0.2 (rail0)" for log lines */
};

/* Finds the link to @peer_set; NULL when there is none, or it failed. */
struct fr_link *fr_link_find(struct fr_set *set, uint64_t peer_set);
/* Finds or makes the link that @msg (connect or response) asks for; it belongs
 * to the set. Return: 0; -EPROTO when the message cannot be served, with @why;
 * -errno. */
int fr_link_get(struct fr_set *set, const struct fr_conn_msg *msg,
		struct fr_link **out, const char **why);
/* The set closes. First, with its rails open: no timers, queues and addresses
 * any more. Then, with them closed so that no post can come home: the memory.
 */
void fr_links_close(struct fr_set *set);
void fr_links_free(struct fr_set *set);

/* The peer is lost: one line, then every call on its comms says @err. Quiet
 * when no comm of ours is open on it. */
void fr_link_fail(struct fr_link *link, int err, const char *cause);
/* Something failed on path @i: the others go on without it, or the link fails,
 * -ECONNRESET. */
void fr_link_path_fail(struct fr_link *link, unsigned i, const char *cause);
/* The peer sent what none of ours sends. It counts as received, so whatever it
 * stood for is lost, and the connection with it. */
void fr_link_violated(struct fr_link *link, const char *what, const char *why);

/* A slot with room for a message of @payload bytes after the link header; NULL:
 * out of memory. Fill bytes + FR_LINK_HDR_BYTES, then send it. */
struct fr_slot *fr_link_slot(struct fr_link *link, size_t payload);
/* Queues or posts a numbered message; takes the slot. */
void fr_link_send(struct fr_link *link, struct fr_slot *slot, uint8_t type,
		  uint8_t flags, size_t payload, uint8_t path);
/* Room for one more EAGER, or CTS, without waiting in the queue. */
bool fr_link_has_room(const struct fr_link *link, uint32_t limit);
int fr_link_send_note(struct fr_link *link, uint8_t type,
		      const struct fr_link_note *note, uint8_t path);

/* A message of the link channel arrived. */
void fr_link_arrived(struct fr_set *set, const uint8_t *buf, size_t bytes);
/* Acknowledges what has come, now. */
void fr_link_ack(struct fr_link *link);
/* The same, by @path and no other. Return: whether it takes messages. */
bool fr_link_ack_by(struct fr_link *link, uint8_t path);
/* Tells the peer that the link ends, when there is no time to hear whether it
 * has understood: a rail that cannot take it at once loses it. */
void fr_link_give_up(struct fr_link *link);
/* Posts what is owed: queue, stripes, CTS, acknowledgements. */
void fr_link_flush(struct fr_link *link);
/* Timers: late acknowledgements. Every 100 ms. */
void fr_link_tick(struct fr_link *link, uint64_t now_ns);
/* Marks that flush has something to do. */
void fr_link_owe(struct fr_link *link);
/* Nothing of ours is unacknowledged or unposted that the peer still wants. */
bool fr_link_drained(const struct fr_link *link);
/* Unacknowledged messages that went by path @i go by others. Return: 0;
 * -ENOMEM. */
int fr_link_reroute(struct fr_link *link, unsigned i);
/* Path of a comm's control messages. */
uint8_t fr_link_ctrl_path(const struct fr_link *link, uint32_t comm_id);

#endif
