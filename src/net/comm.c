#include "net/comm.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/random.h"
#include "net/req.h"
#include "net/xfer.h"

/* clang-format off */
static const uint8_t comm_next[] = {
	[FR_COMM_OPENING] = FR_BIT(FR_COMM_OPEN),
	[FR_COMM_OPEN]    = FR_BIT(FR_COMM_ZOMBIE),
	[FR_COMM_ZOMBIE]  = 0,
};
/* clang-format on */
_Static_assert(FR_ARRAY_LEN(comm_next) == FR_COMM_STATE_CNT,
	       "a state has no row");

void fr_comm_set_state(struct fr_comm *comm, enum fr_comm_state to)
{
	bool legal = fr_fsm_allows(comm_next, comm->state, to);

	assert(legal);
	(void)legal;
	comm->state = to;
}

static void send_state_init(struct fr_send_state *tx, uint32_t first)
{
	fr_msgwin_init(&tx->win, sizeof(struct fr_tx_entry), first);
	tx->ordinal = first;
	tx->known = first;
	tx->eager_next = first;
	tx->eager_floor = first;
}

static void recv_state_init(struct fr_recv_state *rx, uint32_t first)
{
	fr_msgwin_init(&rx->win, sizeof(struct fr_rx_entry), first);
	rx->announced = first;
	rx->skipped = first;
	rx->completed = first;
	rx->eager_next = first;
	rx->eager_floor = first;
	fr_list_init(&rx->cts_node);
}

static void comm_init(struct fr_comm *comm, struct fr_set *set, bool is_send)
{
	comm->set = set;
	comm->is_send = is_send;
	fr_list_init(&comm->reqs);
	fr_list_init(&comm->mrs);
	fr_list_init(&comm->node);
	if (is_send) {
		send_state_init(&comm->tx, set->conf->test.first_seq);
	} else {
		recv_state_init(&comm->rx, set->conf->test.first_seq);
	}
}

int fr_comm_create_locked(struct fr_set *set, bool is_send,
			  struct fr_comm **out)
{
	struct fr_comm *comm;
	int ret;

	fr_lock_assert(&set->lock);
	comm = fr_calloc(1, sizeof(*comm));
	if (comm == NULL) {
		return -ENOMEM;
	}
	comm_init(comm, set, is_send);
	ret = fr_random(&comm->nonce, sizeof(comm->nonce));
	if (ret != 0) {
		goto err_free;
	}
	ret = fr_set_comm_add_locked(set, comm, &comm->id);
	if (ret != 0) {
		goto err_free;
	}
	*out = comm;
	return 0;

err_free:
	fr_free(comm);
	return ret;
}

static void comm_free_parts(struct fr_comm *comm)
{
	if (comm->is_send) {
		fr_msgwin_fini(&comm->tx.win);
		fr_free(comm->tx.eager);
		comm->tx.eager = NULL;
	} else {
		fr_list_del(&comm->rx.cts_node);
		fr_eager_free(comm);
		fr_msgwin_fini(&comm->rx.win);
	}
}

static void comm_free(struct fr_comm *comm)
{
	fr_list_del(&comm->node);
	fr_set_comm_del_locked(comm->set, comm->id);
	fr_free(comm);
}

void fr_comm_free_zombie(struct fr_comm *comm)
{
	comm->link->peer_open--;
	comm_free(comm);
}

void fr_comm_destroy_locked(struct fr_comm *comm)
{
	if (comm == NULL) {
		return;
	}
	fr_lock_assert(&comm->set->lock);
	if (comm->link != NULL) {
		comm->link->open_comms -= comm->state != FR_COMM_ZOMBIE;
		comm->link->peer_open -= !comm->peer_closed;
	}
	comm_free_parts(comm);
	comm_free(comm);
}

void fr_comm_join_link(struct fr_comm *comm, struct fr_link *link,
		       const struct fr_conn_msg *msg)
{
	comm->link = link;
	comm->peer_id = msg->comm;
	comm->peer_nonce = msg->nonce;
	comm->ctrl_path =
		fr_link_ctrl_path(link, comm->is_send ? comm->id : msg->comm);
	link->open_comms++;
	link->peer_open++;
	link->was_used = true;
}

/* CLOSE while the peer is there, CLOSED when it went first. */
static void comm_tell_close(struct fr_comm *comm)
{
	struct fr_link_note note = {
		.comm = comm->peer_id,
		.nonce = comm->peer_nonce,
		.seq = comm->is_send ? comm->tx.ordinal - comm->tx.lost
				     : comm->rx.win.win.next,
	};

	if (comm->link->err != 0) {
		return;
	}
	if (fr_link_send_note(comm->link,
			      comm->peer_closed ? FR_LINK_CLOSED
						: FR_LINK_CLOSE,
			      &note, comm->ctrl_path) == -ENOMEM) {
		fr_link_fail(comm->link, -ECONNRESET,
			     "out of memory for a close message");
	}
}

void fr_comm_close_locked(struct fr_comm *comm)
{
	struct fr_link *link = comm->link;

	fr_lock_assert(&comm->set->lock);
	while (!fr_list_empty(&comm->reqs)) {
		fr_req_release(
			FR_CONTAINER_OF(comm->reqs.next, struct fr_req, node));
	}
	comm_tell_close(comm);
	fr_reg_drop_all(comm);
	comm_free_parts(comm);
	fr_comm_set_state(comm, FR_COMM_ZOMBIE);
	link->open_comms--;
	/* A peer that does not know yet may still write under this id. */
	if (comm->peer_closed || link->err != 0) {
		if (!comm->peer_closed) {
			link->peer_open--;
		}
		comm_free(comm);
	} else {
		fr_list_push(&comm->set->zombies, &comm->node);
	}
}

/* What the peer says to have sent is done, or meets a receive of ours, or came
 * early: more cannot be under way. It is less than what is done by those it
 * gave up, which had receives of ours. */
static bool comm_final_can_be(const struct fr_comm *comm, uint32_t final)
{
	return comm->is_send || final - comm->rx.completed + FR_MSGWIN_MAX <=
					2 * FR_MSGWIN_MAX + FR_COMM_EAGER_AHEAD;
}

void fr_comm_peer_closed(struct fr_link *link, const struct fr_link_note *note)
{
	struct fr_comm *comm;

	if (note->comm >= FR_IMM_COMM_CNT) {
		return;
	}
	comm = fr_set_comm(link->set, note->comm);
	if (comm == NULL || comm->link != link || comm->nonce != note->nonce ||
	    comm->peer_closed) {
		return;
	}
	if (comm->state == FR_COMM_OPEN && comm->err == 0 &&
	    !comm_final_can_be(comm, note->seq)) {
		fr_link_violated(link, "a close",
				 "it counts more messages than can be");
		return;
	}
	comm->peer_closed = true;
	comm->peer_final = note->seq;
	link->peer_open--;
	if (comm->state == FR_COMM_ZOMBIE) {
		comm_free(comm);
	} else if (!comm->is_send) {
		fr_recv_peer_closed(comm);
	}
}

struct fr_comm *fr_comm_of(struct fr_link *link, uint32_t id, uint32_t nonce,
			   bool is_send)
{
	struct fr_comm *comm;

	if (id >= FR_IMM_COMM_CNT) {
		return NULL;
	}
	comm = fr_set_comm(link->set, id);
	if (comm == NULL || comm->link != link || comm->nonce != nonce ||
	    comm->is_send != is_send || comm->state == FR_COMM_ZOMBIE) {
		return NULL;
	}
	return comm;
}
