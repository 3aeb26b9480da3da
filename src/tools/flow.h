/*
 * One direction of a connection as the progress thread drives it: a ring of
 * slots in the staging buffer, filled and posted in order, tested oldest first,
 * as many receives posted ahead as there are slots.
 *
 * SIMPLE: a slot is one or two steps; the receive is posted with the whole
 * slot, the send is as long as the data. LL: four bytes of data and four of
 * flag in each word, so that the receiver sees in the memory itself what has
 * arrived; from v9 on the receive is posted with the hint that says so.
 *
 * Threads: the progress thread. Blocking: never.
 */
#ifndef FR_TOOLS_FLOW_H
#define FR_TOOLS_FLOW_H

#include "tools/conns.h"

#define FR_LL_SLOT_DATA (FR_LL_STEP_BYTES / 2)

struct fr_flow_slot {
	void *request; /* stale when the slot is not in flight */
	size_t bytes;
};

struct fr_flow {
	struct fr_conn *conn;
	bool ll;
	unsigned slots;
	size_t slot_bytes; /* of memory */
	/*
	 * Messages, counted from the start of the operation.
	 * send: done <= posted <= filled <= done + slots
	 * recv: done <= posted <= taken + slots; taken <= posted
	 */
	uint64_t total;	 /* recv: to be posted in this operation */
	uint64_t filled; /* send: by us; recv: taken by us */
	uint64_t posted, done;
	struct fr_flow_slot slot[FR_STEPS];
	char *scratch; /* LL: the slot's data without flags */
};

/* @slice_bytes: of SIMPLE: FR_STEP_BYTES or twice that. @total: of a receiving
 * flow. Return: 0 or -ENOMEM. */
int fr_flow_init(struct fr_flow *flow, struct fr_conn *conn, bool ll,
		 size_t slice_bytes, uint64_t total);
void fr_flow_fini(struct fr_flow *flow);
/* Posts and tests what can be; *@moved is set when anything did. Return: 0, or
 * -EIO after an error line. */
int fr_flow_progress(struct fr_flow *flow, bool *moved);

/* A send slot to fill, or NULL. Then fr_flow_commit(). */
void *fr_flow_send_slot(struct fr_flow *flow);
void fr_flow_commit(struct fr_flow *flow, size_t bytes);
/* The next message if all of its @bytes are here, else NULL; -EIO in *@ret
 * when it has another length. Then fr_flow_release(). */
const void *fr_flow_recv_slot(struct fr_flow *flow, size_t bytes, int *ret);
void fr_flow_release(struct fr_flow *flow);
/* Nothing of it is in flight and nothing left to do. */
bool fr_flow_idle(const struct fr_flow *flow);

#endif
