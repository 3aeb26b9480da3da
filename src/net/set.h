/*
 * A set: the rails opened for one device by one calling thread, once for each
 * traffic class that it uses, and all that the thread's comms share:
 * registrations, control slots, the comm table, the links to peers' sets.
 *
 *   set --- rails[] ----------------- one domain, AV, CQ, C and D each
 *    |  --- links --- paths[] ------- (our rail, peer's rail), addresses
 *    |  --- comms[id] --------------- what the immediate's comm id indexes
 *    |  --- slots ------------------- buffers of control messages, registered
 *
 * fr_set.lock guards everything in the set, its rails, links, comms and
 * requests. The data path takes it by trylock: contended means try later. The
 * fields marked (core) belong to core.lock.
 */
#ifndef FR_NET_SET_H
#define FR_NET_SET_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/freelist.h"
#include "base/idpool.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "fabric/mr.h"
#include "fabric/rail.h"
#include "net/core.h"
#include "net/knock.h"
#include "wire/conn.h"
#include "wire/imm.h"

#define FR_SET_COMM_PAGE 1024u
#define FR_SET_COMM_PAGES (FR_IMM_COMM_CNT / FR_SET_COMM_PAGE)
#define FR_SET_LINK_BUCKETS 256u
#define FR_SET_BOUNCE_CNT 64u /* receive buffers a rail */
#define FR_SCRATCH_BYTES 128u
#define FR_TICK_NS (100 * FR_NS_PER_MS)

struct fr_bounce;
struct fr_gpu;
struct fr_link;

struct fr_set {
	struct fr_lock lock;

	/* hot: every pass */
	unsigned rail_cnt;
	struct fr_rail *rail[FR_MAX_RAILS];
	struct fr_list owing; /* links with something to post: fr_link.owing */
	struct fr_list replies; /* connect answers not sent yet */
	unsigned reply_cnt;
	uint64_t strangers_ns; /* replies nobody waits for: not before */
	uint32_t empty_passes; /* in a row */
	uint32_t yield_after;
	uint32_t max_reqs;	 /* in flight a comm */
	_Atomic uint32_t passes; /* the keeper looks whether it moves */
	uint64_t pass_ns;	 /* when this pass first asked; 0: not yet */
	bool bounce_short;	 /* a receive buffer could not be posted */
	_Atomic int dead; /* 0, or -ECONNRESET: fenced for good; also read by
			     registrations outside the lock */

	/* lookup */
	uint64_t id;
	struct fr_comm **comm_page[FR_SET_COMM_PAGES];
	struct fr_link *link_bucket[FR_SET_LINK_BUCKETS];
	struct fr_log_limit strange; /* arrivals that make no sense */

	/* pools */
	struct fr_freelist *small_slots; /* fr_slot, FR_SLOT_SMALL bytes */
	struct fr_freelist *big_slots;	 /* fr_slot, big_bytes */
	struct fr_freelist *send_reqs;
	struct fr_freelist *recv_reqs;
	struct fr_gpu *gpu; /* with the first registration of such memory */
	size_t big_bytes;   /* largest message of ours or of a peer's */
	uint64_t max_write; /* bytes of one write */
	struct fr_bounce *bounce[FR_MAX_RAILS];
	void *bounce_mem[FR_MAX_RAILS];
	struct fr_mr *bounce_mr[FR_MAX_RAILS];

	/* cold */
	struct fr_list node; /* (core) in core.sets */
	unsigned users;	     /* (core) comms, listeners, connects */
	pthread_t thread;    /* (core) who it was opened for */
	bool private_set;    /* (core) never shared */
	int tclass;	     /* (core) traffic class it was opened for */
	struct fr_device *dev;
	const struct fr_conf *conf;
	const struct fr_quirks *quirks;
	unsigned imm_bytes;
	uint32_t eager_max; /* payload bytes of an EAGER, 0: off */
	struct fr_idpool *comm_ids;
	struct fr_mr_cache *mrs;
	struct fr_list links;	    /* fr_link.node */
	struct fr_list listeners;   /* fr_listen.node */
	struct fr_list conns;	    /* fr_conn.set_node */
	struct fr_list zombies;	    /* closed comms whose id must rest */
	struct fr_list orphans;	    /* sends nobody waits for that fly still */
	struct fr_list strays;	    /* fr_away whose stripe is settled */
	struct fr_list fences;	    /* fr_fence_job, in the order of arrival */
	uint32_t inc[FR_MAX_RAILS]; /* incarnation of each D */
	uint64_t fenced_ns[FR_MAX_RAILS];
	uint64_t fence_pause_ns[FR_MAX_RAILS];
	uint64_t last_tick_ns;
	void *scratch; /* where zero-length writes go */
	struct fr_mr *scratch_mr;
	struct fr_knock_server *knock[FR_MAX_RAILS]; /* one an address */
	uint16_t knock_port[FR_MAX_RAILS];
	uint32_t keeper_seen; /* (core) passes when the keeper last looked */
	bool closing;	      /* last user gone: acknowledge at once */
};

/* Finds or opens the calling thread's set for @dev and @tclass, and takes a use
 * of it. Return: 0; -errno, logged. */
int fr_set_get_locked(struct fr_device *dev, int tclass, struct fr_set **out);
/* Drops a use. The last one drains (at most 1 s) and closes the set; call
 * without any lock. */
void fr_set_put(struct fr_set *set);
/* One more use of a set that has one. Takes core.lock. */
void fr_set_hold(struct fr_set *set);
/* For unload: closes without draining. core.lock is not held. */
void fr_set_destroy(struct fr_set *set);

/* The calling thread finished with the set's memory for ever: closes endpoints
 * by the provider's kind of fence and fails every comm. @why is logged. */
void fr_set_kill_locked(struct fr_set *set, const char *why);

/* Comm table. */
int fr_set_comm_add_locked(struct fr_set *set, struct fr_comm *comm,
			   uint32_t *id);
void fr_set_comm_del_locked(struct fr_set *set, uint32_t id);

static inline struct fr_comm *fr_set_comm(const struct fr_set *set, uint32_t id)
{
	struct fr_comm **page = set->comm_page[id / FR_SET_COMM_PAGE];

	return page == NULL ? NULL : page[id % FR_SET_COMM_PAGE];
}

/* The first comm whose id is *@id or higher, *@id then its id and one more;
 * NULL: none. All of them, from *@id 0 on; the one in hand may go. */
static inline struct fr_comm *fr_set_next_comm(const struct fr_set *set,
					       uint32_t *id)
{
	while (*id < FR_IMM_COMM_CNT) {
		struct fr_comm *const *page =
			set->comm_page[*id / FR_SET_COMM_PAGE];
		struct fr_comm *comm;

		if (page == NULL) {
			*id = (*id / FR_SET_COMM_PAGE + 1) * FR_SET_COMM_PAGE;
			continue;
		}
		comm = page[(*id)++ % FR_SET_COMM_PAGE];
		if (comm != NULL) {
			return comm;
		}
	}
	return NULL;
}

/* What time it is, to what a pass harvests: asked for once a pass. */
static inline uint64_t fr_set_pass_ns(struct fr_set *set)
{
	if (set->pass_ns == 0) {
		set->pass_ns = fr_now_ns();
	}
	return set->pass_ns;
}

/* Fills rails, SET and SCRATCH of a connect message or response of ours. */
void fr_set_describe(const struct fr_set *set, struct fr_conn_msg *msg);

#endif
