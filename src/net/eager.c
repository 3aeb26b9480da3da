/* Small messages that go with their data on the control channel. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/xfer.h"

bool fr_eager_allowed(const struct fr_comm *comm, size_t bytes)
{
	const struct fr_send_state *tx = &comm->tx;

	/* With a receive known and not taken, a message without one could be
	 * given another by the peer than by us. */
	return bytes <= comm->link->eager_max && comm->link->eager_max != 0 &&
	       tx->open_cnt == 0 &&
	       tx->eager_next - tx->eager_floor < FR_COMM_EAGER_AHEAD;
}

static int eager_remember(struct fr_comm *comm, int tag)
{
	struct fr_send_state *tx = &comm->tx;
	struct fr_tx_eager *mine;

	if (tx->eager == NULL) {
		tx->eager = fr_calloc(FR_COMM_EAGER_AHEAD, sizeof(*tx->eager));
		if (tx->eager == NULL) {
			return -ENOMEM;
		}
	}
	mine = &tx->eager[tx->eager_next % FR_COMM_EAGER_AHEAD];
	mine->tag = tag;
	mine->settled = false;
	return 0;
}

int fr_eager_send(struct fr_comm *comm, const void *data, size_t bytes, int tag,
		  const uint32_t *at)
{
	struct fr_link *link = comm->link;
	struct fr_eager hdr = {
		.comm = comm->peer_id,
		.nonce = comm->peer_nonce,
		.index = at != NULL ? 0 : comm->tx.eager_next,
		.base32 = at != NULL ? *at : comm->tx.known,
		.tag = tag,
		.len = (uint32_t)bytes,
	};
	struct fr_slot *slot;
	uint8_t *pos;

	if (!fr_link_has_room(link, FR_LINK_EAGER_MAX)) {
		return -EAGAIN;
	}
	if (at == NULL && eager_remember(comm, tag) != 0) {
		return -ENOMEM;
	}
	slot = fr_link_slot(link, FR_EAGER_HDR_BYTES + bytes);
	if (slot == NULL) {
		return -ENOMEM;
	}
	comm->tx.eager_next += at != NULL ? 0 : 1;
	pos = slot->bytes + FR_LINK_HDR_BYTES;
	fr_eager_hdr_encode(&hdr, pos);
	if (bytes != 0) {
		memcpy(pos + FR_EAGER_HDR_BYTES, data, bytes);
	}
	fr_link_send(link, slot, FR_LINK_EAGER, at != NULL ? FR_LINK_F_AT : 0,
		     FR_EAGER_HDR_BYTES + bytes, comm->ctrl_path);
	return 0;
}

void fr_eager_settle(struct fr_comm *comm)
{
	struct fr_send_state *tx = &comm->tx;

	for (uint32_t i = tx->eager_floor; i != tx->eager_next; i++) {
		struct fr_tx_eager *mine = &tx->eager[i % FR_COMM_EAGER_AHEAD];
		struct fr_tx_entry *entry;
		uint32_t seq;

		if (mine->settled) {
			continue;
		}
		entry = fr_cts_match(comm, mine->tag, &seq);
		if (entry != NULL) {
			fr_cts_take(comm, entry);
			mine->settled = true;
		}
	}
	while (tx->eager_floor != tx->eager_next &&
	       tx->eager[tx->eager_floor % FR_COMM_EAGER_AHEAD].settled) {
		tx->eager_floor++;
	}
}

static struct fr_rx_eager *eager_slot(struct fr_comm *comm, uint32_t index)
{
	return &comm->rx.eager[index % FR_COMM_EAGER_AHEAD];
}

/* Copies a message out of its bounce buffer until its receive is posted. */
static int eager_hold(struct fr_comm *comm, const struct fr_eager *msg,
		      const uint8_t *payload)
{
	struct fr_recv_state *rx = &comm->rx;
	struct fr_rx_eager *held;
	struct fr_slot *copy = NULL;

	if (rx->eager == NULL) {
		rx->eager = fr_calloc(FR_COMM_EAGER_AHEAD, sizeof(*rx->eager));
		if (rx->eager == NULL) {
			return -ENOMEM;
		}
	}
	if (msg->len != 0) {
		copy = fr_slot_get(comm->set, msg->len);
		if (copy == NULL) {
			return -ENOMEM;
		}
		memcpy(copy->bytes, payload, msg->len);
	}
	held = eager_slot(comm, msg->index);
	held->held = true;
	held->tag = msg->tag;
	held->base32 = msg->base32;
	held->len = msg->len;
	held->copy = copy;
	rx->eager_held++;
	return 0;
}

static void eager_release(struct fr_comm *comm, struct fr_rx_eager *held)
{
	fr_slot_put(held->copy);
	held->copy = NULL;
	held->held = false;
	comm->rx.eager_held--;
}

/* Messages that were served let the floor rise. */
static void eager_trim(struct fr_comm *comm)
{
	struct fr_recv_state *rx = &comm->rx;

	while (rx->eager_floor != rx->eager_next &&
	       (rx->eager == NULL ||
		!eager_slot(comm, rx->eager_floor)->held)) {
		rx->eager_floor++;
	}
}

void fr_eager_match(struct fr_comm *comm)
{
	struct fr_recv_state *rx = &comm->rx;

	/* Often the only receive is the one that was posted just now. */
	for (uint32_t i = rx->eager_floor;
	     rx->eager_held != 0 && i != rx->eager_next &&
	     fr_window_used(&rx->win.win) != 0;
	     i++) {
		struct fr_rx_eager *held = eager_slot(comm, i);
		struct fr_rx_entry *entry;

		if (!held->held) {
			continue;
		}
		entry = fr_recv_find(comm, held->base32, held->tag);
		if (entry != NULL) {
			const struct fr_slot *copy = held->copy;

			fr_recv_deliver(comm, entry,
					copy == NULL ? NULL : copy->bytes,
					held->len);
			eager_release(comm, held);
		}
	}
	eager_trim(comm);
}

void fr_eager_free(struct fr_comm *comm)
{
	for (uint32_t i = 0; comm->rx.eager != NULL && i < FR_COMM_EAGER_AHEAD;
	     i++) {
		if (comm->rx.eager[i].held) {
			eager_release(comm, &comm->rx.eager[i]);
		}
	}
	fr_free(comm->rx.eager);
	comm->rx.eager = NULL;
}

/* The next index came: it, and what waited behind it, may be served. */
static void eager_in_order(struct fr_comm *comm, const struct fr_eager *msg,
			   const uint8_t *payload)
{
	struct fr_recv_state *rx = &comm->rx;
	struct fr_rx_entry *entry = NULL;

	if (msg->index == rx->eager_next) {
		entry = fr_recv_find(comm, msg->base32, msg->tag);
	}
	if (entry != NULL) {
		fr_recv_deliver(comm, entry, payload, msg->len);
	} else if (eager_hold(comm, msg, payload) != 0) {
		fr_link_fail(comm->link, -ECONNRESET,
			     "out of memory for its early messages");
		return;
	}
	if (msg->index != rx->eager_next) {
		return;
	}
	rx->eager_next++;
	while (rx->eager_held != 0 &&
	       rx->eager_next - rx->eager_floor < FR_COMM_EAGER_AHEAD &&
	       eager_slot(comm, rx->eager_next)->held) {
		rx->eager_next++;
	}
	fr_eager_match(comm);
}

/* @index lies in the window ahead of what has come, and did not come before. */
static bool eager_is_next(const struct fr_recv_state *rx, uint32_t index)
{
	return index - rx->eager_floor < FR_COMM_EAGER_AHEAD &&
	       index - rx->eager_next < FR_COMM_EAGER_AHEAD &&
	       (rx->eager == NULL ||
		!rx->eager[index % FR_COMM_EAGER_AHEAD].held);
}

void fr_eager_arrived(struct fr_link *link, uint8_t flags, const uint8_t *buf,
		      size_t bytes)
{
	struct fr_eager msg;
	struct fr_comm *comm;
	const uint8_t *payload;
	const char *why;

	if (fr_eager_decode(&msg, buf, bytes, &payload, &why) != 0) {
		fr_link_violated(link, "a bad eager message", why);
		return;
	}
	comm = fr_comm_of(link, msg.comm, msg.nonce, false);
	if (comm == NULL || comm->err != 0) {
		return; /* closed meanwhile */
	}
	if ((flags & FR_LINK_F_AT) != 0) {
		struct fr_rx_entry *entry =
			fr_msgwin_find(&comm->rx.win, msg.base32);

		if (entry != NULL && fr_rx_is_free(entry)) {
			fr_recv_deliver(comm, entry, payload, msg.len);
			return;
		}
	} else if (eager_is_next(&comm->rx, msg.index)) {
		eager_in_order(comm, &msg, payload);
		return;
	}
	fr_link_violated(link, "an eager message", "no receive can take it");
}
