/* The reliable channel of a link: numbered messages from slots, acknowledged
 * and repeated. See link.h for the windows. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "net/failover.h"
#include "net/fence.h"
#include "net/link.h"
#include "net/xfer.h"

#define RESEND_NS (500 * FR_NS_PER_MS)
#define RESEND_MAX_SHIFT 4u

void fr_link_owe(struct fr_link *link)
{
	if (fr_list_empty(&link->owing) && link->err == 0) {
		fr_list_push(&link->set->owing, &link->owing);
	}
}

struct fr_slot *fr_link_slot(struct fr_link *link, size_t payload)
{
	struct fr_slot *slot;

	slot = fr_slot_get(link->set, FR_LINK_HDR_BYTES + payload);
	if (slot != NULL) {
		slot->link = link;
	}
	return slot;
}

static void slot_done(struct fr_op *op, struct fr_rail *rail, int err,
		      size_t bytes)
{
	struct fr_slot *slot = FR_CONTAINER_OF(op, struct fr_slot, op);
	struct fr_link *link = slot->link;
	uint8_t path = slot->path;

	(void)bytes;
	slot->in_flight = false;
	link->path[path].slots_out--;
	if (slot->settled) {
		fr_slot_put(slot); /* another one's from here on */
	}
	if (err != 0) {
		fr_link_path_fail(link, path, fr_rail_error_text(rail));
	}
}

/* Return: 0; -EAGAIN; a final -errno after which the link has failed. */
static int slot_post(struct fr_link *link, struct fr_slot *slot)
{
	struct fr_path *path = &link->path[slot->path];
	struct fr_link_hdr hdr = {
		.type = slot->type,
		.flags = slot->flags,
		.len = (uint16_t)(slot->len - FR_LINK_HDR_BYTES),
		.seq = slot->has_seq ? slot->seq : 0,
		.ack = link->rx_next,
		.dst_set = (uint32_t)link->peer_set,
		.src_set = link->set->id,
	};
	int ret;

	fr_link_hdr_encode(&hdr, slot->bytes);
	slot->op.done = slot_done;
	ret = fr_rail_send(path->rail, path->ctrl_addr, slot->bytes, slot->len,
			   fr_mr_desc(slot->mr, path->local_rail), &slot->op);
	if (ret == 0) {
		slot->in_flight = true;
		path->slots_out++;
		slot->sent_ns = link->set->last_tick_ns;
		link->ack_owed = 0;
		link->ack_now = false;
	} else if (ret != -EAGAIN) {
		fr_link_path_fail(link, slot->path, strerror(-ret));
	}
	return ret;
}

/* A few acknowledgements wait for a ride, or for the next tick. */
static bool ack_is_due(const struct fr_link *link)
{
	return link->ack_owed != 0 &&
	       (link->ack_now || link->ack_owed >= FR_LINK_ACK_AFTER ||
		link->set->closing);
}

static bool window_full(const struct fr_link *link)
{
	return link->tx_next - link->tx_acked >= FR_LINK_WINDOW;
}

/* In order on each path; a path that takes nothing does not stop the others. */
static void link_post_waiting(struct fr_link *link)
{
	uint32_t blocked = 0;

	fr_list_for_each_safe (pos, &link->wait) {
		struct fr_slot *slot =
			FR_CONTAINER_OF(pos, struct fr_slot, node);
		int ret;

		/* In the order of their making, also where a path takes
		 * nothing: the newest of two names is told by it. */
		if (!slot->has_seq) {
			if (window_full(link)) {
				return;
			}
			slot->seq = link->tx_next++;
			slot->has_seq = true;
			link->unacked[slot->seq % FR_LINK_WINDOW] = slot;
		}
		slot->path = fr_failover_detour(link, slot->path);
		if ((blocked & FR_BIT(slot->path)) != 0) {
			continue;
		}
		ret = slot_post(link, slot);
		if (ret == 0) {
			fr_list_del(&slot->node);
		} else if (ret == -EAGAIN) {
			blocked |= FR_BIT(slot->path);
		} else if (link->err != 0) {
			return; /* its queue is gone */
		} else {
			/* It waits at the head now. */
			fr_link_owe(link);
			return;
		}
	}
}

void fr_link_send(struct fr_link *link, struct fr_slot *slot, uint8_t type,
		  uint8_t flags, size_t payload, uint8_t path)
{
	fr_lock_assert(&link->set->lock);
	slot->type = type;
	slot->flags = flags;
	slot->len = (uint16_t)(FR_LINK_HDR_BYTES + payload);
	slot->path = path;
	fr_list_push(&link->wait, &slot->node);
	link_post_waiting(link);
	if (!fr_list_empty(&link->wait)) {
		fr_link_owe(link);
	}
}

bool fr_link_has_room(const struct fr_link *link, uint32_t limit)
{
	return fr_list_empty(&link->wait) &&
	       link->tx_next - link->tx_acked < limit;
}

int fr_link_send_note(struct fr_link *link, uint8_t type,
		      const struct fr_link_note *note, uint8_t path)
{
	struct fr_slot *slot;
	int ret;

	if (link->err != 0) {
		return link->err;
	}
	slot = fr_link_slot(link, FR_SLOT_SMALL - FR_LINK_HDR_BYTES);
	if (slot == NULL) {
		return -ENOMEM;
	}
	ret = fr_link_note_encode(type, note, slot->bytes + FR_LINK_HDR_BYTES,
				  FR_SLOT_SMALL - FR_LINK_HDR_BYTES);
	if (ret < 0) {
		fr_slot_put(slot);
		return ret;
	}
	fr_link_send(link, slot, type, FR_LINK_F_ACK_NOW, (size_t)ret, path);
	return 0;
}

/* Return: a message without number; NULL: out of memory. */
static struct fr_slot *bare_slot(struct fr_link *link, uint8_t type)
{
	struct fr_slot *slot = fr_link_slot(link, 0);

	if (slot != NULL) {
		slot->type = type;
		slot->flags = 0;
		slot->len = FR_LINK_HDR_BYTES;
		slot->settled = true;
	}
	return slot;
}

/* Goes by any path that takes it, or not at all. */
static void link_post_bare(struct fr_link *link, uint8_t type)
{
	struct fr_slot *slot = bare_slot(link, type);
	int ret = -EAGAIN;

	if (slot == NULL) {
		return;
	}
	for (unsigned i = 0; i < link->path_cnt && ret != 0; i++) {
		slot->path = fr_failover_detour(link, (uint8_t)i);
		ret = slot_post(link, slot);
	}
	if (ret != 0) {
		fr_slot_put(slot);
	}
}

bool fr_link_ack_by(struct fr_link *link, uint8_t path)
{
	struct fr_slot *slot = bare_slot(link, FR_LINK_ACK);

	if (slot == NULL) {
		return false;
	}
	slot->path = path;
	if (slot_post(link, slot) != 0) {
		fr_slot_put(slot);
		return false;
	}
	return true;
}

/* Stays owed when it cannot go. */
void fr_link_ack(struct fr_link *link)
{
	link_post_bare(link, FR_LINK_ACK);
}

void fr_link_give_up(struct fr_link *link)
{
	/* Where we have closed all comms it could overtake the word of that. */
	if (link->open_comms != 0 && link->peer_open != 0) {
		link_post_bare(link, FR_LINK_RESET);
	}
}

/* The peer still counts on a link that failed here: tell it, once a tick. */
static void link_reset(struct fr_link *link)
{
	if (link->reset_ns != link->set->last_tick_ns) {
		link->reset_ns = link->set->last_tick_ns;
		link_post_bare(link, FR_LINK_RESET);
	}
}

/* Everything below @ack was received. A number we never sent is a lie. */
static void link_take_ack(struct fr_link *link, uint32_t ack)
{
	if (ack - link->tx_acked > link->tx_next - link->tx_acked) {
		return;
	}
	while (link->tx_acked != ack) {
		struct fr_slot *slot;

		slot = link->unacked[link->tx_acked % FR_LINK_WINDOW];
		link->path[slot->path].moved++;
		link->tx_acked++;
		slot->settled = true;
		fr_list_del(&slot->node); /* it may wait for a repeat */
		if (!slot->in_flight) {
			fr_slot_put(slot);
		}
	}
}

/* Return: true the first time that @seq is seen. */
static bool link_take_seq(struct fr_link *link, uint32_t seq)
{
	uint32_t ahead = seq - link->rx_next;
	uint64_t bit;

	link->ack_owed++;
	if (ahead == 0) {
		link->rx_next++;
		while ((link->rx_mask & 1) != 0) {
			link->rx_mask >>= 1;
			link->rx_next++;
		}
		link->rx_mask >>= 1;
		return true;
	}
	if (ahead > FR_LINK_WINDOW) {
		link->ack_now = true; /* a repeat: our ack was lost */
		return false;
	}
	bit = UINT64_C(1) << (ahead - 1);
	if ((link->rx_mask & bit) != 0) {
		return false;
	}
	link->rx_mask |= bit;
	return true;
}

static void link_note(struct fr_link *link, uint8_t type, const uint8_t *buf,
		      size_t bytes)
{
	struct fr_link_note note;
	const char *why;

	if (fr_link_note_decode(type, &note, buf, bytes, &why) != 0) {
		fr_link_violated(link, "a bad control message", why);
		return;
	}
	switch (type) {
	case FR_LINK_WANT:
		fr_cts_want(link, &note);
		break;
	case FR_LINK_NACK:
		fr_nack_arrived(link, &note);
		break;
	case FR_LINK_LENGTH:
		fr_recv_length(link, &note);
		break;
	case FR_LINK_CLOSE:
	case FR_LINK_CLOSED:
		fr_comm_peer_closed(link, &note);
		break;
	case FR_LINK_PING:
		/* Only its arrival counts, so a flood of them is not heaped
		 * up for a peer that acknowledges nothing. */
		if (fr_link_has_room(link, FR_LINK_WINDOW)) {
			(void)fr_link_send_note(link, FR_LINK_PONG, &note, 0);
		}
		break;
	default:
		break; /* PONG: that it came is all it says */
	}
}

static void link_repaired(struct fr_link *link, const struct fr_link_hdr *hdr,
			  const uint8_t *buf)
{
	bool offered = fr_fence_is_possible(link->set);

	if (offered && hdr->type == FR_LINK_FENCE) {
		fr_fence_arrived(link, buf, hdr->len);
	} else if (offered &&
		   (hdr->type == FR_LINK_FENCED || hdr->type == FR_LINK_RAIL)) {
		fr_failover_told(link, hdr->type, hdr->seq, buf, hdr->len);
	} else {
		fr_link_violated(link, "a control message",
				 "we did not offer its type");
	}
}

static void link_dispatch(struct fr_link *link, const struct fr_link_hdr *hdr,
			  const uint8_t *buf)
{
	switch (hdr->type) {
	case FR_LINK_CTS:
		fr_cts_arrived(link, buf, hdr->len);
		break;
	case FR_LINK_EAGER:
		fr_eager_arrived(link, hdr->flags, buf, hdr->len);
		break;
	case FR_LINK_WANT:
	case FR_LINK_NACK:
	case FR_LINK_LENGTH:
	case FR_LINK_CLOSE:
	case FR_LINK_CLOSED:
	case FR_LINK_PING:
	case FR_LINK_PONG:
		link_note(link, hdr->type, buf, hdr->len);
		break;
	default:
		link_repaired(link, hdr, buf);
		break;
	}
}

void fr_link_arrived(struct fr_set *set, const uint8_t *buf, size_t bytes)
{
	struct fr_link_hdr hdr;
	struct fr_link *link;
	const char *why;

	if (fr_link_hdr_decode(&hdr, buf, bytes, &why) != 0) {
		fr_log_limited(&set->strange, FR_LOG_WARN,
			       "dropped a control message of %zu bytes: %s",
			       bytes, why);
		return;
	}
	if (hdr.dst_set != (uint32_t)set->id) {
		fr_log_limited(&set->strange, FR_LOG_INFO,
			       "dropped a control message for another process "
			       "(set %08x)",
			       hdr.dst_set);
		return;
	}
	link = fr_link_find(set, hdr.src_set);
	if (link == NULL) {
		return; /* it will be repeated if it matters */
	}
	if (hdr.type == FR_LINK_RESET) {
		fr_link_fail(link, -ECONNRESET, "it has given up the link");
		return;
	}
	if (link->err != 0) {
		if (hdr.type != FR_LINK_ACK) {
			link_reset(link);
		}
		return;
	}
	link->activity++;
	link_take_ack(link, hdr.ack);
	if (hdr.type == FR_LINK_ACK) {
		return;
	}
	if ((hdr.flags & FR_LINK_F_ACK_NOW) != 0) {
		link->ack_now = true;
	}
	if (link_take_seq(link, hdr.seq)) {
		link_dispatch(link, &hdr, buf + FR_LINK_HDR_BYTES);
	}
	if (ack_is_due(link)) {
		fr_link_owe(link);
	}
}

static void link_post_deferred(struct fr_link *link)
{
	uint32_t blocked = 0;

	fr_list_for_each_safe (pos, &link->deferred) {
		struct fr_send_req *req =
			FR_CONTAINER_OF(pos, struct fr_send_req, deferred_node);

		if (!fr_send_post(req, &blocked)) {
			continue;
		}
		if (link->err != 0) {
			return; /* the list is empty */
		}
		req->deferred = false;
		fr_list_del(&req->deferred_node);
	}
}

static void link_flush_cts(struct fr_link *link)
{
	while (!fr_list_empty(&link->cts_owed)) {
		struct fr_comm *comm = FR_CONTAINER_OF(
			link->cts_owed.next, struct fr_comm, rx.cts_node);

		if (!fr_cts_flush(comm)) {
			return;
		}
		fr_list_del(&comm->rx.cts_node);
	}
}

/* Return: nothing of it is left to do. */
static bool link_repair(struct fr_link *link)
{
	return fr_likely(link->up_cnt == link->path_cnt &&
			 fr_list_empty(&link->away)) ||
	       fr_failover_flush(link);
}

void fr_link_flush(struct fr_link *link)
{
	bool whole = true;

	if (link->err == 0) {
		link_post_waiting(link);
		link_post_deferred(link);
		link_flush_cts(link);
		whole = link_repair(link);
	}
	if (link->err == 0 && ack_is_due(link)) {
		fr_link_ack(link);
	}
	if (link->err != 0 ||
	    (whole && fr_list_empty(&link->wait) &&
	     fr_list_empty(&link->deferred) && fr_list_empty(&link->cts_owed) &&
	     !ack_is_due(link))) {
		fr_list_del(&link->owing);
	}
}

/* The provider still has the old one. */
static struct fr_slot *slot_twin(struct fr_link *link, struct fr_slot *slot)
{
	struct fr_slot *twin =
		fr_link_slot(link, slot->len - FR_LINK_HDR_BYTES);

	if (twin == NULL) {
		return NULL;
	}
	memcpy(twin->bytes, slot->bytes, slot->len);
	twin->type = slot->type;
	twin->flags = slot->flags;
	twin->len = slot->len;
	twin->path = slot->path;
	twin->seq = slot->seq;
	twin->has_seq = true;
	slot->settled = true;
	link->unacked[slot->seq % FR_LINK_WINDOW] = twin;
	return twin;
}

int fr_link_reroute(struct fr_link *link, unsigned i)
{
	struct fr_list *waiting = link->wait.next;

	for (uint32_t seq = link->tx_acked; seq != link->tx_next; seq++) {
		struct fr_slot *slot = link->unacked[seq % FR_LINK_WINDOW];

		if (slot->path != i || !fr_list_empty(&slot->node)) {
			continue;
		}
		if (slot->in_flight) {
			slot = slot_twin(link, slot);
		}
		if (slot == NULL) {
			return -ENOMEM;
		}
		fr_list_push(waiting, &slot->node);
	}
	fr_link_owe(link);
	return 0;
}

/* Repeats go before what waits: it may wait for the room that only they can
 * make. */
void fr_link_tick(struct fr_link *link, uint64_t now_ns)
{
	struct fr_list *waiting = link->wait.next;

	if (link->err != 0) {
		return;
	}
	if (link->ack_owed != 0) {
		fr_link_ack(link);
	}
	for (uint32_t seq = link->tx_acked; seq != link->tx_next; seq++) {
		struct fr_slot *slot = link->unacked[seq % FR_LINK_WINDOW];

		if (slot->in_flight || !fr_list_empty(&slot->node) ||
		    now_ns - slot->sent_ns < RESEND_NS << slot->resends) {
			continue;
		}
		slot->resends = FR_MIN(slot->resends + 1, RESEND_MAX_SHIFT);
		fr_list_push(waiting, &slot->node);
		fr_link_owe(link);
	}
}

bool fr_link_drained(const struct fr_link *link)
{
	return link->err != 0 || link->peer_open == 0 ||
	       (fr_list_empty(&link->wait) && link->tx_acked == link->tx_next &&
		fr_list_empty(&link->deferred) && fr_list_empty(&link->away));
}
