#include "fabric/rail.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "base/util.h"
#include "fabric/rail_priv.h"
#include "fabric/shm_priv.h"

#define POLL_BATCHES 16

static FR_NOINLINE void op_cut(struct fr_rail *rail, struct fr_op *op)
{
	snprintf(rail->error_text, sizeof(rail->error_text),
		 "the target is no more");
	fr_stats_add(&rail->stats, FR_STAT_TX_ERRORS, 1);
	op->done(op, rail, -ECONNRESET, 0);
}

static void op_complete(struct fr_rail *rail, struct fr_op *op, size_t len)
{
	if (fr_op_is(op, FR_OP_RX)) {
		fr_stats_add(&rail->stats, FR_STAT_RX_MSGS, 1);
		fr_stats_add(&rail->stats, FR_STAT_RX_BYTES, len);
		op->done(op, rail, 0, len);
		return;
	}
	assert(rail->inflight > 0);
	rail->inflight--;
	if (fr_likely(fr_op_is(op, FR_OP_TX))) {
		fr_stats_add(&rail->stats, FR_STAT_TX_MSGS, 1);
		fr_stats_add(&rail->stats, FR_STAT_TX_BYTES, fr_op_bytes(op));
	} else if (fr_op_is(op, FR_OP_CUT)) {
		op_cut(rail, op);
		return;
	}
	op->done(op, rail, 0, 0);
}

static void rail_harvest(struct fr_rail *rail,
			 const struct fi_cq_data_entry *entry)
{
	/* Providers do not agree on FI_RMA here, and sockets repeats the flag
	 * on the writer's own side. */
	if ((entry->flags & FI_REMOTE_CQ_DATA) != 0 &&
	    (entry->flags & (FI_RECV | FI_SEND | FI_WRITE)) == 0) {
		fr_stats_add(&rail->stats, FR_STAT_RX_MSGS, 1);
		rail->ops->remote_write(rail->owner, rail, entry->data,
					entry->len);
		return;
	}
	if (fr_likely(entry->op_context != NULL)) {
		op_complete(rail, entry->op_context, entry->len);
	}
}

static void rail_keep_text(struct fr_rail *rail,
			   const struct fi_cq_err_entry *entry)
{
	char words[128];
	const char *text;

	text = fi_cq_strerror(rail->cq, entry->prov_errno, entry->err_data,
			      words, sizeof(words));
	snprintf(rail->error_text, sizeof(rail->error_text), "%s (%s)",
		 fr_fi_text(entry->err), text == NULL ? "no detail" : text);
}

static FR_NOINLINE int rail_harvest_error(struct fr_rail *rail)
{
	union fr_fi_cq_err_entry room = {.room = {0}};
	const struct fi_cq_err_entry *entry = &room.entry;
	struct fr_op *op;
	ssize_t ret;
	int err;

	ret = fi_cq_readerr(rail->cq, &room.entry, 0);
	if (ret != 1) {
		return ret == -FI_EAGAIN ? 0 : (int)ret;
	}
	rail_keep_text(rail, entry);
	/* Completions were lost: whose they were nobody can say, and no more
	 * will come. */
	if (fr_unlikely(entry->err == FI_EOVERRUN)) {
		return -FI_EOVERRUN;
	}
	err = fr_fi_errno(entry->err > 0 ? -entry->err : -FI_EOTHER);
	op = entry->op_context;
	if (op == NULL || (entry->flags & FI_REMOTE_WRITE) != 0) {
		rail->ops->remote_error(rail->owner, rail, err);
		return 1;
	}
	if (!fr_op_is(op, FR_OP_RX)) {
		assert(rail->inflight > 0);
		rail->inflight--;
		fr_stats_add(&rail->stats, FR_STAT_TX_ERRORS, 1);
	}
	op->done(op, rail, err, 0);
	return 1;
}

static FR_NOINLINE int poll_broken(const struct fr_rail *rail, ssize_t ret)
{
	fr_error("rail %u on %s (%s): cannot read its completion queue: %s",
		 rail->index, rail->nic->name, rail->fabric->text,
		 fr_fi_text(ret));
	return fr_fi_errno(ret);
}

/* One read. Return: entries handled; -FI_EAGAIN: empty; other -errno. @last:
 * out: a short read said that the queue is empty now, or that an error is next,
 * which the next poll finds as well. */
static ssize_t poll_batch(struct fr_rail *rail, bool *last)
{
	ssize_t ret = fi_cq_read(rail->cq, rail->entries, rail->cq_read_cnt);

	if (fr_unlikely(ret == -FI_EAVAIL)) {
		return rail_harvest_error(rail);
	}
	for (ssize_t i = 0; i < ret; i++) {
		rail_harvest(rail, &rail->entries[i]);
	}
	*last = ret < (ssize_t)rail->cq_read_cnt;
	return ret;
}

/* At most @batches reads. Return: entries handled; -errno, said. */
static int poll_batches(struct fr_rail *rail, unsigned batches)
{
	bool last = false;
	int handled = 0;
	ssize_t ret = 0;

	assert(!rail->polling);
	rail->polling = true;
	while (batches-- > 0 && !last) {
		ret = poll_batch(rail, &last);
		handled += ret > 0 ? (int)ret : 0;
		last = last || ret < 0;
	}
	rail->polling = false;
	if (fr_likely(ret >= 0 || ret == -FI_EAGAIN)) {
		return handled;
	}
	return poll_broken(rail, ret);
}

int fr_rail_poll(struct fr_rail *rail)
{
	if (fr_unlikely(rail->shm != NULL)) {
		if (!fr_shm_may_poll(rail->shm)) {
			return 0;
		}
		fr_shm_answer_for_lost(rail->shm);
	}
	return poll_batches(rail, POLL_BATCHES);
}

/* An error entry may stand between the others: EAGAIN alone says empty. */
int fr_rail_poll_out(struct fr_rail *rail)
{
	int ret;

	do {
		ret = poll_batches(rail, 1);
	} while (ret > 0);
	return ret;
}
