#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/copy.h"
#include "base/log.h"
#include "net/gpu.h"
#include "net/progress.h"
#include "net/xfer.h"

enum fr_rx_state {
	FR_RX_EMPTY,
	FR_RX_OPEN,
	FR_RX_DONE, /* or failed: nothing more may come */
};

/* EMPTY -> OPEN -> DONE; a number that comes again begins with zeros. */
static void rx_set_state(struct fr_rx_entry *entry, enum fr_rx_state to)
{
	assert((unsigned)to == entry->state + 1u);
	entry->state = (uint8_t)to;
}

bool fr_rx_open(const struct fr_rx_entry *entry)
{
	return entry->state == FR_RX_OPEN;
}

bool fr_rx_is_free(const struct fr_rx_entry *entry)
{
	return entry->state == FR_RX_OPEN && entry->nseg == 0 &&
	       !entry->copying;
}

static void rx_end(struct fr_comm *comm, struct fr_rx_entry *entry)
{
	rx_set_state(entry, FR_RX_DONE);
	if (fr_unlikely(entry->copying)) {
		entry->copying = false;
		comm->rx.copying--;
	}
}

void fr_recv_peer_closed(struct fr_comm *comm)
{
	struct fr_recv_state *rx = &comm->rx;
	struct fr_window *win = &rx->win.win;

	if (!comm->peer_closed || !fr_comm_is_spent(comm)) {
		return; /* what is under way comes first */
	}
	for (uint32_t seq = win->base; seq != win->next; seq++) {
		struct fr_rx_entry *entry = fr_msgwin_at(&rx->win, seq);

		if (entry->state == FR_RX_OPEN) {
			fr_recv_fail(comm, entry, -ECONNRESET);
		}
	}
}

/* What the peer was not told stays, so that the CTS can name it: the peer gives
 * its early messages to receives by what the CTS says of them. */
void fr_recv_retire(struct fr_comm *comm)
{
	struct fr_msgwin *win = &comm->rx.win;

	while (fr_window_used(&win->win) != 0) {
		const struct fr_rx_entry *entry =
			fr_msgwin_at(win, win->win.base);

		if (entry->state != FR_RX_DONE ||
		    (!entry->announced && !entry->blind)) {
			break;
		}
		fr_msgwin_retire(win);
	}
}

void fr_recv_complete(struct fr_comm *comm, struct fr_rx_entry *entry,
		      uint64_t bytes)
{
	struct fr_req *req = entry->req;

	rx_end(comm, entry);
	if (entry->mr != NULL && entry->mr->gpu) {
		comm->rx.unflushed |= entry->rails;
	}
	if (fr_likely(req != NULL)) {
		struct fr_recv_req *recv = fr_recv_req_of(req);

		recv->bytes[entry->index] = bytes;
		if (--recv->pending == 0 && req->state == FR_REQ_ACTIVE) {
			fr_req_set_state(req, FR_REQ_DONE);
		}
	}
	comm->rx.completed++;
	fr_recv_retire(comm);
	if (fr_unlikely(comm->peer_closed)) {
		fr_recv_peer_closed(comm);
	}
}

void fr_recv_fail(struct fr_comm *comm, struct fr_rx_entry *entry, int err)
{
	rx_end(comm, entry);
	if (entry->req != NULL) {
		fr_req_fail(entry->req, err);
	}
}

void fr_recv_detach(struct fr_comm *comm, const struct fr_req *req)
{
	const struct fr_window *win = &comm->rx.win.win;

	for (uint32_t seq = win->base; seq != win->next; seq++) {
		struct fr_rx_entry *entry = fr_msgwin_at(&comm->rx.win, seq);

		if (entry->req == req) {
			entry->req = NULL;
		}
	}
}

struct fr_rx_entry *fr_recv_find(struct fr_comm *comm, uint32_t base, int tag)
{
	const struct fr_window *win = &comm->rx.win.win;
	uint32_t seq = (int32_t)(base - win->base) < 0 ? win->base : base;

	for (; fr_window_holds(win, seq); seq++) {
		struct fr_rx_entry *entry = fr_msgwin_at(&comm->rx.win, seq);

		if (fr_rx_is_free(entry) &&
		    (entry->group == 1 || entry->tag == tag)) {
			return entry;
		}
	}
	return NULL;
}

static void recv_truncated(struct fr_comm *comm, struct fr_rx_entry *entry,
			   uint64_t bytes)
{
	struct fr_link_note note = {
		.comm = comm->peer_id,
		.nonce = comm->peer_nonce,
		.a = bytes,
		.b = entry->len,
	};

	fr_error("message from %s: the send has %llu bytes, its receive only "
		 "%llu",
		 comm->link->peer_text, (unsigned long long)bytes,
		 (unsigned long long)entry->len);
	comm->err = -EMSGSIZE;
	(void)fr_link_send_note(comm->link, FR_LINK_NACK, &note,
				comm->ctrl_path);
	fr_recv_fail(comm, entry, -EMSGSIZE);
}

void fr_recv_deliver(struct fr_comm *comm, struct fr_rx_entry *entry,
		     const void *payload, uint32_t bytes)
{
	if (fr_unlikely(bytes > entry->len)) {
		recv_truncated(comm, entry, bytes);
		return;
	}
	if (bytes != 0 && entry->mr->gpu) {
		fr_gpu_copy(comm, entry, payload, bytes);
		return;
	}
	if (bytes != 0) {
		fr_copy_ascending(entry->buf, payload, bytes);
	}
	fr_recv_complete(comm, entry, bytes);
}

void fr_nack_arrived(struct fr_link *link, const struct fr_link_note *note)
{
	bool by_sender = note->flags != 0;
	struct fr_comm *comm;
	struct fr_rx_entry *entry;

	comm = fr_comm_of(link, note->comm, note->nonce, !by_sender);
	if (comm == NULL || comm->err != 0) {
		return;
	}
	fr_error("peer %s: a send has %llu bytes, its receive only %llu",
		 link->peer_text, (unsigned long long)note->a,
		 (unsigned long long)note->b);
	comm->err = -EMSGSIZE;
	if (by_sender) {
		entry = fr_msgwin_find(&comm->rx.win, note->seq);
		if (entry != NULL && entry->state == FR_RX_OPEN) {
			fr_recv_fail(comm, entry, -EMSGSIZE);
		}
	}
}

void fr_recv_length(struct fr_link *link, const struct fr_link_note *note)
{
	struct fr_comm *comm = fr_comm_of(link, note->comm, note->nonce, false);
	struct fr_rx_entry *entry;

	if (comm == NULL) {
		return;
	}
	entry = fr_msgwin_find(&comm->rx.win, note->seq);
	if (entry == NULL || entry->state != FR_RX_OPEN ||
	    note->a > entry->len) {
		return;
	}
	entry->aside = note->a + 1;
	if (entry->nseg != 0 && entry->count == entry->nseg) {
		fr_recv_complete(comm, entry, note->a);
	}
}

static FR_NOINLINE void drop_write(struct fr_set *set, struct fr_rail *rail,
				   uint64_t word, const char *why)
{
	fr_stats_add(fr_rail_stats(rail), FR_STAT_RX_DROPPED, 1);
	fr_log_limited(&set->strange, FR_LOG_WARN,
		       "rail %u: dropped a write with immediate %llx: %s",
		       fr_rail_index(rail), (unsigned long long)word, why);
}

/* The receive that the immediate names, if it may be written to. */
static struct fr_rx_entry *written_entry(struct fr_set *set,
					 const struct fr_imm *imm,
					 struct fr_comm **out, const char **why)
{
	struct fr_comm *comm = fr_set_comm(set, imm->comm);
	struct fr_rx_entry *entry;
	uint32_t seq;

	*why = "no such comm";
	if (comm == NULL || comm->is_send || comm->state != FR_COMM_OPEN) {
		return NULL;
	}
	*why = "no such message";
	if (!fr_window_expand(&comm->rx.win.win, imm->seq, FR_IMM_SEQ_BITS,
			      &seq)) {
		return NULL;
	}
	entry = fr_msgwin_at(&comm->rx.win, seq);
	/* What we write ourselves needs no CTS. */
	if (entry->state != FR_RX_OPEN || entry->blind ||
	    (!entry->announced && !entry->copying)) {
		return NULL;
	}
	*why = "wrong grant";
	if (set->imm_bytes == 8 &&
	    imm->rkey != fr_imm_grant(entry->mr == NULL || entry->mr->mr == NULL
					      ? 0
					      : fr_mr_key(entry->mr->mr, 0),
				      seq)) {
		return NULL;
	}
	*why = "wrong number of stripes";
	if (entry->nseg != 0 && entry->nseg != imm->nseg) {
		return NULL;
	}
	*out = comm;
	return entry;
}

/* Of a message that is complete. Where its length does not depend on its
 * stripes' ones, the queue's word for those is not asked: each counts for an
 * even share; the sum is exact. */
static void count_stripes(struct fr_set *set, struct fr_rail *last,
			  const struct fr_rx_entry *entry)
{
	uint64_t share, rest = entry->bytes;

	if (entry->nseg != 1) {
		share = entry->bytes / entry->nseg;
		for (unsigned i = 0; i < set->rail_cnt; i++) {
			fr_stats_add(fr_rail_stats(set->rail[i]),
				     FR_STAT_RX_BYTES,
				     share * entry->on_rail[i]);
		}
		rest -= share * entry->nseg;
	}
	fr_stats_add(fr_rail_stats(last), FR_STAT_RX_BYTES, rest);
}

/* Of a message that is complete, where its bytes may have been read just now:
 * were they there still? */
static bool is_revoked(struct fr_link *link)
{
	const struct fr_path *path = &link->path[0];

	if (fr_likely(!fr_rail_peer_revoked(path->rail, path->data_addr))) {
		return false;
	}
	fr_link_fail(link, -ECONNRESET,
		     "it gave up memory that it was sending from");
	return true;
}

void fr_recv_written(struct fr_set *set, struct fr_rail *rail, uint64_t word,
		     size_t bytes)
{
	unsigned index = fr_rail_index(rail);
	struct fr_imm imm;
	struct fr_comm *comm;
	struct fr_rx_entry *entry;
	const char *why = "more stripes than there can be";

	if (fr_unlikely(!fr_imm_unpack(word, set->imm_bytes, &imm)) ||
	    fr_unlikely((entry = written_entry(set, &imm, &comm, &why)) ==
			NULL)) {
		drop_write(set, rail, word, why);
		return;
	}
	if (set->imm_bytes != 8) {
		if (fr_unlikely(bytes > entry->len - entry->bytes)) {
			drop_write(set, rail, word, "longer than its receive");
			return;
		}
		entry->bytes += bytes;
		fr_stats_add(fr_rail_stats(rail), FR_STAT_RX_BYTES, bytes);
	} else if (imm.len == FR_IMM_LEN_FULL) {
		entry->bytes = entry->len;
	} else if (imm.len == FR_IMM_LEN_ASIDE) {
		entry->bytes = entry->aside == 0 ? 0 : entry->aside - 1;
	} else if (imm.len <= entry->len) {
		entry->bytes = imm.len;
	} else {
		drop_write(set, rail, word, "longer than its receive");
		return;
	}
	comm->link->activity++;
	entry->rails |= (uint8_t)FR_BIT(index);
	entry->nseg = imm.nseg;
	entry->count++;
	entry->on_rail[index]++;
	if (entry->count != entry->nseg) {
		return;
	}
	if (set->imm_bytes == 8) {
		count_stripes(set, rail, entry);
	}
	if (fr_unlikely(set->quirks->reads_late) && is_revoked(comm->link)) {
		return;
	}
	if (fr_unlikely(set->imm_bytes == 8 && imm.len == FR_IMM_LEN_ASIDE)) {
		if (entry->aside != 0) {
			fr_recv_complete(comm, entry, entry->aside - 1);
		}
		return;
	}
	fr_recv_complete(comm, entry, entry->bytes);
}

static int recv_check(const struct fr_comm *comm, unsigned cnt,
		      void *const *data, const size_t *bytes,
		      struct fr_net_mr *const *mrs)
{
	if (comm == NULL || comm->is_send || cnt == 0 ||
	    cnt > FR_NET_MAX_GROUP) {
		return -EINVAL;
	}
	for (unsigned i = 0; i < cnt; i++) {
		if (bytes[i] != 0 &&
		    (data[i] == NULL || mrs[i] == NULL ||
		     mrs[i]->comm != comm ||
		     !fr_net_mr_holds(mrs[i], data[i], bytes[i]))) {
			return -EINVAL;
		}
	}
	return 0;
}

/* A peer that may not write sends its message, and that we cannot copy to a
 * GPU. */
static bool recv_is_blind(const struct fr_comm *comm, unsigned cnt,
			  size_t bytes, const struct fr_net_mr *mr)
{
	const struct fr_link *link = comm->link;

	return cnt == 1 && (bytes == 0 || !mr->gpu) &&
	       (link->features & FR_FEAT_BLIND) != 0 && link->eager_max != 0 &&
	       bytes <= link->eager_max &&
	       bytes <= comm->set->quirks->inline_max_bytes;
}

/* The peer asked for its entry before it was posted. */
static bool recv_is_wanted(struct fr_recv_state *rx, uint32_t seq)
{
	if (!rx->has_wanted || rx->wanted != seq) {
		return false;
	}
	rx->has_wanted = false;
	return true;
}

/* Return: 0; -EAGAIN: no room; -ENOMEM. */
static int recv_post(struct fr_comm *comm, unsigned cnt, void *const *data,
		     const size_t *bytes, const int *tags,
		     struct fr_net_mr *const *mrs, struct fr_recv_req **out)
{
	struct fr_msgwin *win = &comm->rx.win;
	uint32_t first = win->win.next;
	struct fr_recv_req *req;
	int ret;

	if (comm->req_cnt >= comm->set->max_reqs ||
	    fr_window_room(&win->win) < cnt) {
		return -EAGAIN;
	}
	req = fr_recv_req_get(comm);
	if (req == NULL) {
		return -ENOMEM;
	}
	ret = fr_msgwin_reach(win, first + cnt - 1);
	if (ret != 0) {
		fr_req_release(&req->base);
		return ret;
	}
	req->cnt = (uint8_t)cnt;
	req->pending = (uint8_t)cnt;
	for (unsigned i = 0; i < cnt; i++) {
		struct fr_rx_entry *entry = fr_msgwin_at(win, first + i);

		rx_set_state(entry, FR_RX_OPEN);
		entry->group = (uint8_t)cnt;
		entry->index = (uint8_t)i;
		entry->tag = tags == NULL ? 0 : tags[i];
		entry->buf = data[i];
		entry->len = bytes[i];
		entry->mr = bytes[i] == 0 ? NULL : mrs[i];
		entry->req = &req->base;
		entry->blind = !recv_is_wanted(&comm->rx, first + i) &&
			       recv_is_blind(comm, cnt, bytes[i], mrs[i]);
	}
	*out = req;
	return 0;
}

static int recv_locked(struct fr_comm *comm, unsigned cnt, void *const *data,
		       const size_t *bytes, const int *tags,
		       struct fr_net_mr *const *mrs, struct fr_req **out,
		       bool *yield)
{
	struct fr_recv_req *req;
	int ret = comm->err;

	if (fr_unlikely(comm->link->err != 0 && comm->rx.eager_held == 0)) {
		ret = comm->link->err;
	} else if (fr_unlikely(comm->peer_closed && fr_comm_is_spent(comm))) {
		ret = -ECONNRESET;
	}
	if (fr_unlikely(ret != 0)) {
		return ret;
	}
	ret = recv_post(comm, cnt, data, bytes, tags, mrs, &req);
	if (ret == -EAGAIN) {
		*yield = fr_progress_locked(comm->set);
		ret = recv_post(comm, cnt, data, bytes, tags, mrs, &req);
	}
	if (ret != 0) {
		return ret;
	}
	*out = &req->base;
	if (comm->rx.eager_held != 0) {
		fr_eager_match(comm);
	}
	if (comm->link->err == 0) {
		fr_cts_posted(comm);
	}
	return 0;
}

int fr_net_irecv(struct fr_comm *comm, unsigned cnt, void *const *data,
		 const size_t *bytes, const int *tags,
		 struct fr_net_mr *const *mrs, struct fr_req **out)
{
	bool yield = false;
	int ret;

	*out = NULL;
	ret = recv_check(comm, cnt, data, bytes, mrs);
	if (fr_unlikely(ret != 0)) {
		return ret;
	}
	if (!fr_lock_try(&comm->set->lock)) {
		return 0;
	}
	ret = recv_locked(comm, cnt, data, bytes, tags, mrs, out, &yield);
	fr_lock_drop(&comm->set->lock);
	if (yield) {
		fr_yield();
	}
	return ret == -EAGAIN ? 0 : ret;
}
