/* Clear-to-send: the receiver announces posted receives, the sender keeps them
 * until its sends take them. */
#include <assert.h>
#include <errno.h>

#include "base/log.h"
#include "net/xfer.h"

/* Blind receives that are posted until the peer must hear of them. */
#define CREDIT_STEP (FR_COMM_EAGER_AHEAD / 2)
#define WANT_TICKS 2u
/* Receives that a full window of CTS can tell of: an older one cannot come. */
#define CTS_AGE_MAX                                                            \
	((FR_LINK_WINDOW + 1) * (FR_MSGWIN_MAX + FR_CTS_MAX_ENTRIES))
#define WANT_TICKS_AGAIN 10u
#define WANT_ROOM 8u

static void cts_owe(struct fr_comm *comm)
{
	if (fr_list_empty(&comm->rx.cts_node)) {
		fr_list_push(&comm->link->cts_owed, &comm->rx.cts_node);
	}
	fr_link_owe(comm->link);
}

static void cts_entry_fill(const struct fr_comm *comm,
			   const struct fr_rx_entry *entry,
			   struct fr_cts_entry *out)
{
	out->tag = entry->tag;
	out->group = entry->group;
	out->index = entry->index;
	out->len = entry->len;
	out->addr = 0;
	for (unsigned i = 0; i < comm->set->rail_cnt; i++) {
		out->keys[i] = 0;
	}
	if (!fr_rx_open(entry)) {
		return; /* full: the peer must know it, and not its memory */
	}
	if (entry->mr == NULL || entry->mr->mr == NULL) {
		return; /* length 0: goes to the scratch region */
	}
	out->addr = fr_mr_remote_addr(entry->mr->mr, entry->buf);
	for (unsigned i = 0; i < comm->set->rail_cnt; i++) {
		out->keys[i] = fr_mr_key(entry->mr->mr, i);
	}
}

static int cts_send(struct fr_comm *comm, struct fr_cts *cts)
{
	struct fr_link *link = comm->link;
	size_t room = comm->set->big_bytes - FR_LINK_HDR_BYTES;
	size_t need = 24 + cts->entry_cnt * (24 + 8 * (size_t)cts->key_cnt);
	struct fr_slot *slot = fr_link_slot(link, FR_MIN(need, room));
	int len;

	if (slot == NULL) {
		return -ENOMEM;
	}
	len = fr_cts_encode(cts, slot->bytes + FR_LINK_HDR_BYTES, need);
	if (len < 0) {
		fr_slot_put(slot);
		return len;
	}
	fr_link_send(link, slot, FR_LINK_CTS, 0, (size_t)len, comm->ctrl_path);
	return 0;
}

static void cts_start(const struct fr_comm *comm, struct fr_cts *cts,
		      uint32_t prev, uint32_t first)
{
	cts->comm = comm->peer_id;
	cts->nonce = comm->peer_nonce;
	cts->done32 = comm->rx.win.win.base;
	cts->prev32 = prev;
	cts->first32 = first;
	cts->entry_cnt = 0;
	cts->key_cnt = (uint8_t)comm->set->rail_cnt;
}

/* Steps over the blind receives that follow what was announced, each of them
 * once; the complete ones among them are retired. */
static uint32_t cts_skip_blind(struct fr_comm *comm)
{
	struct fr_recv_state *rx = &comm->rx;
	uint32_t next = rx->win.win.next;
	uint32_t seq = rx->announced;

	if (rx->skipped - seq <= next - seq) {
		seq = rx->skipped;
	}
	while (seq != next) {
		struct fr_rx_entry *entry = fr_msgwin_find(&rx->win, seq);

		if (entry != NULL && !entry->blind) {
			break;
		}
		if (entry != NULL) {
			entry->announced = true;
		}
		seq++;
	}
	rx->skipped = seq;
	return seq;
}

static bool cts_flush_one(struct fr_comm *comm)
{
	struct fr_recv_state *rx = &comm->rx;
	struct fr_cts cts;
	uint32_t seq = cts_skip_blind(comm);

	cts_start(comm, &cts, rx->announced, seq);
	while (seq != rx->win.win.next && cts.entry_cnt < FR_CTS_MAX_ENTRIES) {
		struct fr_rx_entry *entry = fr_msgwin_find(&rx->win, seq);

		if (entry == NULL || entry->blind) {
			break;
		}
		cts_entry_fill(comm, entry, &cts.entries[cts.entry_cnt++]);
		seq++;
	}
	if (cts.entry_cnt == 0) {
		cts.key_cnt = 0;
		if (seq - rx->announced < CREDIT_STEP) {
			return true; /* nothing the peer must know now */
		}
	}
	if (cts_send(comm, &cts) != 0) {
		return false;
	}
	for (uint32_t s = cts.first32; s != seq; s++) {
		((struct fr_rx_entry *)fr_msgwin_at(&rx->win, s))->announced =
			true;
	}
	rx->announced = seq;
	fr_recv_retire(comm);
	return true;
}

bool fr_cts_flush(struct fr_comm *comm)
{
	struct fr_recv_state *rx = &comm->rx;
	uint32_t before;

	if (comm->err != 0 || comm->link->err != 0 || comm->peer_closed) {
		return true;
	}
	do {
		if (!fr_link_has_room(comm->link, FR_LINK_WINDOW)) {
			return false;
		}
		before = rx->announced;
		if (!cts_flush_one(comm)) {
			return false;
		}
	} while (rx->announced != before && rx->announced != rx->win.win.next);
	return true;
}

/* There are but blind receives, and not so many that the peer must know. */
static bool cts_can_wait(struct fr_comm *comm)
{
	const struct fr_recv_state *rx = &comm->rx;
	uint32_t next = rx->win.win.next;

	return cts_skip_blind(comm) == next &&
	       next - rx->announced < CREDIT_STEP;
}

void fr_cts_posted(struct fr_comm *comm)
{
	if (cts_can_wait(comm)) {
		return;
	}
	if (fr_list_empty(&comm->rx.cts_node) && !fr_cts_flush(comm)) {
		cts_owe(comm);
	}
}

/* The first blind receive of [@seq, @end) that is still open; @end when there
 * is none. */
static uint32_t cts_open_blind(struct fr_comm *comm, uint32_t seq, uint32_t end)
{
	const struct fr_window *win = &comm->rx.win.win;

	if ((int32_t)(seq - win->base) < 0) {
		seq = win->base;
	}
	for (; (int32_t)(seq - end) < 0; seq++) {
		const struct fr_rx_entry *entry =
			fr_msgwin_at(&comm->rx.win, seq);

		if (fr_rx_open(entry) && entry->blind) {
			return seq;
		}
	}
	return end;
}

/*
 * The sender knows of nothing that it could use from @want->seq on. Whatever
 * has an entry was told, or will be as soon as there is room; what is left are
 * blind receives. The first one that is open gets an entry; those before it are
 * full of EAGER messages of the sender's own, which it settles then.
 */
void fr_cts_want(struct fr_link *link, const struct fr_link_note *want)
{
	struct fr_comm *comm;
	struct fr_rx_entry *entry = NULL;
	struct fr_cts cts;
	uint32_t told, end, first;

	comm = fr_comm_of(link, want->comm, want->nonce, false);
	if (comm == NULL || comm->state != FR_COMM_OPEN) {
		return;
	}
	if (comm->rx.win.win.next - want->seq - 1 >= FR_MSGWIN_MAX) {
		comm->rx.has_wanted = true; /* when it is posted */
		comm->rx.wanted = want->seq;
		return;
	}
	if (!fr_link_has_room(comm->link, FR_LINK_WINDOW)) {
		return; /* it will ask again */
	}
	told = comm->rx.announced;
	end = cts_skip_blind(comm);
	first = cts_open_blind(comm, want->seq, end);
	if (first == told && first == end) {
		return;
	}
	/* Of one that was told already nothing is said but its entry. */
	cts_start(comm, &cts, (int32_t)(first - told) < 0 ? first : told,
		  first);
	if (first != end) {
		entry = fr_msgwin_at(&comm->rx.win, first);
		cts_entry_fill(comm, entry, &cts.entries[cts.entry_cnt++]);
	} else {
		cts.key_cnt = 0;
	}
	if (cts_send(comm, &cts) != 0) {
		return;
	}
	if (entry != NULL) {
		entry->announced = true;
		entry->blind = false; /* a write may come now */
		first++;
	}
	if ((int32_t)(first - told) > 0) {
		comm->rx.announced = first;
	}
}

static void cts_send_want(struct fr_comm *comm)
{
	struct fr_send_state *tx = &comm->tx;
	struct fr_link_note want = {
		.comm = comm->peer_id,
		.nonce = comm->peer_nonce,
		.seq = tx->open_cnt != 0 ? tx->win.win.base : tx->known,
	};

	(void)fr_link_send_note(comm->link, FR_LINK_WANT, &want,
				comm->ctrl_path);
}

void fr_cts_ask(struct fr_comm *comm)
{
	struct fr_send_state *tx = &comm->tx;

	if ((tx->asked && tx->asked_ordinal == tx->ordinal) ||
	    !fr_link_has_room(comm->link, WANT_ROOM)) {
		return;
	}
	tx->asked = true;
	tx->asked_ordinal = tx->ordinal;
	cts_send_want(comm);
}

static void tick_send_comm(struct fr_comm *comm)
{
	struct fr_send_state *tx = &comm->tx;

	if (!tx->waiting || tx->waited_ordinal != tx->ordinal) {
		tx->waited_ordinal = tx->ordinal;
		tx->waited_ticks = 0;
		return;
	}
	tx->waited_ticks++;
	if (!fr_link_has_room(comm->link, WANT_ROOM)) {
		return; /* the peer has not taken what it was told before */
	}
	if (tx->waited_ticks == WANT_TICKS ||
	    tx->waited_ticks % WANT_TICKS_AGAIN == 0) {
		cts_send_want(comm);
	}
}

void fr_cts_tick(struct fr_set *set)
{
	struct fr_comm *comm;
	uint32_t id = 0;

	while ((comm = fr_set_next_comm(set, &id)) != NULL) {
		if (comm->state != FR_COMM_OPEN || fr_comm_error(comm) != 0) {
			continue;
		}
		if (comm->is_send) {
			tick_send_comm(comm);
		}
		if (comm->req_cnt != 0 || (comm->is_send && comm->tx.waiting)) {
			comm->link->wanted = true;
		}
	}
}

/* UNKNOWN -> BLIND -> OPEN -> TAKEN; any step may be left out. */
static void tx_set_state(struct fr_tx_entry *entry, enum fr_tx_state to)
{
	assert((unsigned)to > entry->state);
	entry->state = (uint8_t)to;
}

static void cts_learn(struct fr_tx_entry *entry, const struct fr_cts_entry *in,
		      unsigned key_cnt)
{
	if (entry->state == FR_TX_TAKEN || entry->state == FR_TX_OPEN) {
		return;
	}
	tx_set_state(entry, FR_TX_OPEN);
	entry->tag = in->tag;
	entry->group = in->group;
	entry->addr = in->addr;
	entry->len = in->len;
	for (unsigned i = 0; i < key_cnt; i++) {
		entry->keys[i] = in->keys[i];
	}
}

/* Counts what has become known without a gap, and settles EAGER sends by it. */
static void cts_advance(struct fr_comm *comm)
{
	struct fr_send_state *tx = &comm->tx;

	for (;;) {
		struct fr_tx_entry *entry = fr_msgwin_find(&tx->win, tx->known);

		if (entry == NULL || entry->state == FR_TX_UNKNOWN) {
			break;
		}
		tx->open_cnt++;
		tx->known++;
	}
	fr_eager_settle(comm);
}

static bool cts_is_sane(const struct fr_comm *comm, const struct fr_cts *cts)
{
	uint32_t base = comm->tx.win.win.base;
	uint32_t end = cts->first32 + cts->entry_cnt;

	/* One that was repeated can be old, but not ahead of what is open. */
	return (cts->entry_cnt == 0 ||
		cts->key_cnt == comm->link->peer_rails) &&
	       cts->first32 - cts->prev32 <= FR_MSGWIN_MAX &&
	       (end - base <= FR_MSGWIN_MAX || base - end <= CTS_AGE_MAX);
}

static void cts_take_in(struct fr_comm *comm, const struct fr_cts *cts)
{
	struct fr_send_state *tx = &comm->tx;
	uint32_t end = cts->first32 + cts->entry_cnt;

	if (end - tx->win.win.base - 1 < FR_MSGWIN_MAX &&
	    fr_msgwin_reach(&tx->win, end - 1) != 0) {
		fr_link_fail(comm->link, -ECONNRESET,
			     "out of memory for its receives");
		return;
	}
	for (uint32_t seq = cts->prev32; seq != cts->first32; seq++) {
		struct fr_tx_entry *entry = fr_msgwin_find(&tx->win, seq);

		if (entry != NULL && entry->state == FR_TX_UNKNOWN) {
			tx_set_state(entry, FR_TX_BLIND);
			entry->group = 1;
		}
	}
	for (unsigned i = 0; i < cts->entry_cnt; i++) {
		struct fr_tx_entry *entry =
			fr_msgwin_find(&tx->win, cts->first32 + i);

		if (entry != NULL) {
			cts_learn(entry, &cts->entries[i], cts->key_cnt);
		}
	}
	cts_advance(comm);
}

void fr_cts_arrived(struct fr_link *link, const uint8_t *buf, size_t bytes)
{
	struct fr_cts cts;
	struct fr_comm *comm;
	const char *why;

	if (fr_cts_decode(&cts, buf, bytes, &why) != 0) {
		fr_link_violated(link, "a bad CTS", why);
		return;
	}
	comm = fr_comm_of(link, cts.comm, cts.nonce, true);
	if (comm == NULL) {
		return; /* closed meanwhile */
	}
	if (!cts_is_sane(comm, &cts)) {
		fr_link_violated(link, "a CTS",
				 "its receives or keys cannot be");
		return;
	}
	cts_take_in(comm, &cts);
}

struct fr_tx_entry *fr_cts_match(struct fr_comm *comm, int tag, uint32_t *seq)
{
	struct fr_send_state *tx = &comm->tx;

	if (tx->open_cnt == 0) {
		return NULL;
	}
	for (uint32_t s = tx->win.win.base; s != tx->known; s++) {
		struct fr_tx_entry *entry = fr_msgwin_at(&tx->win, s);

		if ((entry->state == FR_TX_OPEN ||
		     entry->state == FR_TX_BLIND) &&
		    (entry->group == 1 || entry->tag == tag)) {
			*seq = s;
			return entry;
		}
	}
	return NULL;
}

/* A message has the entry: the next ordinal is spent. */
void fr_cts_take(struct fr_comm *comm, struct fr_tx_entry *entry)
{
	struct fr_send_state *tx = &comm->tx;

	tx_set_state(entry, FR_TX_TAKEN);
	tx->open_cnt--;
	while (tx->win.win.base != tx->known) {
		entry = fr_msgwin_at(&tx->win, tx->win.win.base);
		if (entry->state != FR_TX_TAKEN) {
			break;
		}
		fr_msgwin_retire(&tx->win);
	}
}
