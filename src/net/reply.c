/* Connect responses and refusals on their way out. */
#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/conn.h"
#include "net/link.h"
#include "net/slot.h"

#define REPLY_NS (30 * FR_NS_PER_S)
/* A request that nobody here waits for is repeated every second, so its answer
 * need not be tried for longer, nor be one of too many. */
#define UNOWNED_NS (2 * FR_NS_PER_S)
#define UNOWNED_MAX 64u
#define PAUSE_MAX_NS (100 * FR_NS_PER_MS)
/* Somebody here waits, and a rail may refuse many times for no deeper reason.
 */
#define OWNED_PAUSE_MAX_NS (10 * FR_NS_PER_MS)

static void reply_free(struct fr_reply *reply)
{
	fr_list_del(&reply->node);
	if (reply->link == NULL) {
		fr_rail_peer_del(reply->rail, reply->addr);
	}
	fr_free(reply);
}

/* No post of it is in flight any more. */
static void reply_end(struct fr_reply *reply, int err)
{
	reply->sent = true;
	reply->err = err;
	fr_list_del(&reply->node);
	reply->set->reply_cnt--;
	fr_slot_put(reply->slot);
	reply->slot = NULL;
	if (reply->closing != NULL) {
		/* Not earlier: the peer ignores a close of what it does not
		 * know yet. */
		fr_comm_set_state(reply->closing, FR_COMM_OPEN);
		fr_comm_close_locked(reply->closing);
		reply->closing = NULL;
	}
	if (!reply->owned) {
		reply_free(reply);
	}
}

static void reply_done(struct fr_op *op, struct fr_rail *rail, int err,
		       size_t bytes)
{
	struct fr_slot *slot = FR_CONTAINER_OF(op, struct fr_slot, op);
	struct fr_reply *reply = slot->owner;

	(void)rail;
	(void)bytes;
	slot->in_flight = false;
	if (err == 0) {
		reply_end(reply, 0);
	}
	/* else it is posted again by the next pass, until the deadline */
}

int fr_reply_create(struct fr_set *set, struct fr_rail *rail, uint64_t addr,
		    struct fr_link *link, const struct fr_conn_msg *msg,
		    struct fr_reply **out)
{
	struct fr_reply *reply;
	int len;

	if (out == NULL && set->reply_cnt >= UNOWNED_MAX) {
		return -ENOBUFS;
	}
	reply = fr_calloc(1, sizeof(*reply));
	if (reply == NULL) {
		return -ENOMEM;
	}
	reply->slot = fr_slot_get(set, FR_CONN_MAX_BYTES);
	if (reply->slot == NULL) {
		fr_free(reply);
		return -ENOMEM;
	}
	len = fr_conn_encode(msg, reply->slot->bytes, FR_CONN_MAX_BYTES);
	if (len < 0) {
		fr_slot_put(reply->slot);
		fr_free(reply);
		return len;
	}
	reply->slot->len = (uint16_t)len;
	reply->slot->owner = reply;
	reply->set = set;
	reply->rail = rail;
	reply->addr = addr;
	reply->link = link;
	reply->begun_ns = fr_now_ns();
	reply->deadline_ns =
		reply->begun_ns + (out == NULL ? UNOWNED_NS : REPLY_NS);
	fr_list_push(&set->replies, &reply->node);
	set->reply_cnt++;
	if (out != NULL) {
		reply->owned = true;
		*out = reply;
	}
	return 0;
}

void fr_reply_disown(struct fr_reply *reply)
{
	if (reply == NULL) {
		return;
	}
	reply->owned = false;
	if (reply->sent) {
		reply_free(reply);
	}
}

/* A try may cost a socket and a connect: the longer it was in vain, the rarer.
 */
static void reply_pause(struct fr_reply *reply, uint64_t began_ns)
{
	uint64_t now = fr_now_ns();

	reply->next_ns =
		now + FR_MIN((now - reply->begun_ns) / 8,
			     reply->owned ? OWNED_PAUSE_MAX_NS : PAUSE_MAX_NS);
	if (!reply->owned) {
		/* All of them together cost a tenth of the time at most. */
		reply->set->strangers_ns = now + 9 * (now - began_ns);
	}
}

static bool reply_is_due(const struct fr_reply *reply, uint64_t now)
{
	return now >= reply->next_ns &&
	       (reply->owned || now >= reply->set->strangers_ns);
}

static void reply_post(struct fr_reply *reply)
{
	struct fr_slot *slot = reply->slot;
	uint64_t now = fr_now_ns();
	int ret;

	if (slot->in_flight) {
		return;
	}
	if (reply->link != NULL && reply->link->err != 0) {
		reply_end(reply, reply->link->err);
		return;
	}
	if (!reply_is_due(reply, now)) {
		return;
	}
	slot->op.done = reply_done;
	ret = fr_rail_send(reply->rail, reply->addr, slot->bytes, slot->len,
			   fr_mr_desc(slot->mr, fr_rail_index(reply->rail)),
			   &slot->op);
	if (ret == 0) {
		slot->in_flight = true;
	} else if (ret == -EAGAIN) {
		reply_pause(reply, now);
	} else {
		reply_end(reply, ret);
	}
}

void fr_conn_flush(struct fr_set *set)
{
	fr_list_for_each_safe (pos, &set->replies) {
		reply_post(FR_CONTAINER_OF(pos, struct fr_reply, node));
	}
}

void fr_reply_tick(struct fr_set *set, uint64_t now_ns)
{
	fr_list_for_each_safe (pos, &set->replies) {
		struct fr_reply *reply =
			FR_CONTAINER_OF(pos, struct fr_reply, node);

		if (now_ns > reply->deadline_ns && !reply->slot->in_flight) {
			reply_end(reply, -ETIMEDOUT);
		}
	}
}

void fr_reply_drop_all(struct fr_set *set)
{
	for (struct fr_list *pos; (pos = fr_list_pop(&set->replies)) != NULL;) {
		fr_free(FR_CONTAINER_OF(pos, struct fr_reply, node));
	}
}
