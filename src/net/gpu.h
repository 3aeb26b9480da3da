/*
 * Memory of a GPU: our CPU must not touch it, a rail may. What a set does
 * between its rails and themselves:
 *
 *   copies    an early message whose receive lies in a GPU is kept in a slot
 *             and written from there, through our own endpoint, with the
 *             immediate that its sender would have used. So it ends as any
 *             other receive does.
 *   flushes   a GPU may see what was written to it later than we are told so.
 *             A read of the memory, through the rail that wrote there, comes
 *             back behind all that this rail wrote before.
 *
 * Which rails a flush must read through: a message that is done marks the rails
 * that brought it (rx.unflushed). A flush takes the marks, and reads through
 * these rails and through those whose earlier reads are not back yet; what no
 * mark and no such read stands for was flushed before.
 *
 * Neither depends on a peer, so neither waits for ever for a rail to take it. A
 * rail that is full of what peers do not complete says nothing about itself: a
 * tick counts when the rail completed something since the last one, or has
 * nothing in flight. With FR_GPU_REFUSED_TICKS of them it is an error. Ticks
 * and not time: a process that was stopped has asked once.
 *
 * Guarded by the set's lock.
 */
#ifndef FR_NET_GPU_H
#define FR_NET_GPU_H

#include "net/req.h"
#include "net/slot.h"

#define FR_FLUSH_BYTES 8u /* of the last message, read back from each rail */
#define FR_GPU_REFUSED_TICKS 100u /* about 10 s */
#define FR_GPU_REFUSES "rail %u takes no operation with itself"

struct fr_gpu {
	struct fr_list copies;	/* fr_copy.node: no rail took them yet */
	struct fr_list flushes; /* fr_flush_req.waiting: with reads to post */
	uint64_t self[FR_MAX_RAILS];  /* our own D, in our own AV */
	uint64_t ended[FR_MAX_RAILS]; /* posts, when the last tick came */
	struct fr_freelist *copy_pool;
	struct fr_freelist *flush_pool;
	uint8_t *mem; /* where reads go, FR_FLUSH_BYTES a rail */
	struct fr_mr *mem_mr;
};

struct fr_copy {
	struct fr_op op;
	struct fr_list node;
	struct fr_set *set;
	struct fr_slot *slot; /* the payload */
	struct fr_net_mr *mr; /* while it flies */
	uint32_t comm;	      /* of the receive, which may be gone by now: */
	uint32_t nonce;
	uint32_t seq;
	uint32_t bytes;
	unsigned refused; /* ticks */
};

struct fr_flush_req;

struct fr_flush_read {
	struct fr_op op;
	struct fr_flush_req *req;
};

struct fr_flush_req {
	struct fr_req base;
	struct fr_list waiting; /* in gpu.flushes while todo is not 0 */
	struct fr_net_mr *mr;
	const uint8_t *at; /* what is read, in @mr */
	uint8_t bytes;
	uint8_t rails; /* a bit for each one that is read through */
	uint8_t todo;  /* of them: whose read is not posted */
	uint8_t flying;
	unsigned refused; /* ticks */
	struct fr_flush_read read[FR_MAX_RAILS];
};

/* Makes what the set needs, once. Return: 0; -errno, logged. */
int fr_gpu_open_locked(struct fr_set *set);
/* With the rails closed: the memory. */
void fr_gpu_free(struct fr_set *set);

static inline bool fr_gpu_owes(const struct fr_set *set)
{
	return set->gpu != NULL && (!fr_list_empty(&set->gpu->copies) ||
				    !fr_list_empty(&set->gpu->flushes));
}

/* Posts what waits, as far as the rails take it. */
void fr_gpu_post(struct fr_set *set);
/* With each tick of the set: what a rail refused for too long fails. */
void fr_gpu_tick(struct fr_set *set);
/* @entry's message came early: brings it there. Its link fails when there is no
 * memory for that. */
void fr_gpu_copy(struct fr_comm *comm, struct fr_rx_entry *entry,
		 const void *payload, uint32_t bytes);
/* flush.c: posts the reads that rails take. */
void fr_flush_post(struct fr_flush_req *req);
/* flush.c: a tick came, and rails in @room, a mask, could have taken reads. */
void fr_flush_tick(struct fr_flush_req *req, uint32_t room);

static inline struct fr_flush_req *fr_flush_req_of(struct fr_req *req)
{
	return FR_CONTAINER_OF(req, struct fr_flush_req, base);
}

#endif
