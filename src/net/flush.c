/* iflush: a GPU sees what was written to its memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "net/gpu.h"
#include "net/xfer.h"

static void flush_settle(struct fr_flush_req *req)
{
	if (req->flying != 0) {
		return;
	}
	if (req->base.err != 0 || req->base.orphan) {
		fr_req_fail(&req->base, req->base.err);
	} else if (req->todo == 0) {
		fr_req_set_state(&req->base, FR_REQ_DONE);
	}
}

/* Later reads of it are not posted any more. */
static void flush_fail(struct fr_flush_req *req, const char *why)
{
	if (req->base.err == 0 && !req->base.orphan) {
		fr_error("cannot read back from a GPU: %s", why);
		req->base.err = -EIO;
		req->base.comm->rx.unflushed |= req->rails;
	}
	req->todo = 0;
	fr_list_del(&req->waiting);
	flush_settle(req);
}

static void read_done(struct fr_op *op, struct fr_rail *rail, int err,
		      size_t bytes)
{
	struct fr_flush_read *read =
		FR_CONTAINER_OF(op, struct fr_flush_read, op);
	struct fr_flush_req *req = read->req;

	(void)bytes;
	req->flying--;
	req->mr->flying--;
	if (req->base.comm != NULL) {
		req->base.comm->rx.flushing[fr_rail_index(rail)]--;
	}
	if (fr_unlikely(err != 0)) {
		flush_fail(req, fr_rail_error_text(rail));
	} else {
		flush_settle(req);
	}
}

static int read_post(struct fr_flush_req *req, unsigned i)
{
	struct fr_set *set = req->base.set;
	const struct fr_gpu *gpu = set->gpu;
	struct fr_flush_read *read = &req->read[i];

	read->req = req;
	read->op.done = read_done;
	return fr_rail_read(set->rail[i], gpu->self[i],
			    gpu->mem + (size_t)i * FR_FLUSH_BYTES, req->bytes,
			    fr_mr_desc(gpu->mem_mr, i),
			    fr_mr_remote_addr(req->mr->mr, req->at),
			    fr_mr_key(req->mr->mr, i), &read->op);
}

void fr_flush_post(struct fr_flush_req *req)
{
	for (unsigned i = 0; req->todo != 0 && i < FR_MAX_RAILS; i++) {
		int ret;

		if ((req->todo & FR_BIT(i)) == 0) {
			continue;
		}
		ret = read_post(req, i);
		if (ret == -EAGAIN) {
			continue;
		}
		if (ret != 0) {
			flush_fail(req, strerror(-ret));
			return;
		}
		req->todo &= (uint8_t)~FR_BIT(i);
		req->flying++;
		req->mr->flying++;
		req->base.comm->rx.flushing[i]++;
	}
	if (req->todo == 0) {
		fr_list_del(&req->waiting);
	}
}

void fr_flush_tick(struct fr_flush_req *req, uint32_t room)
{
	uint32_t refuse = req->todo & room;
	char why[64];

	if (refuse == 0 || ++req->refused < FR_GPU_REFUSED_TICKS) {
		return;
	}
	snprintf(why, sizeof(why), FR_GPU_REFUSES,
		 (unsigned)__builtin_ctz(refuse));
	flush_fail(req, why);
}

bool fr_flush_flies(struct fr_req *req)
{
	return fr_flush_req_of(req)->flying != 0;
}

void fr_flush_forget(struct fr_req *req)
{
	fr_flush_req_of(req)->todo = 0;
	fr_list_del(&fr_flush_req_of(req)->waiting);
}

void fr_flush_put(struct fr_req *req)
{
	fr_freelist_put(req->set->gpu->flush_pool, fr_flush_req_of(req));
}

/* Rails that a flush must read through now. */
static uint8_t flush_rails(struct fr_comm *comm)
{
	uint8_t rails = comm->rx.unflushed;

	for (unsigned i = 0; i < comm->set->rail_cnt; i++) {
		if (comm->rx.flushing[i] != 0) {
			rails |= (uint8_t)FR_BIT(i);
		}
	}
	return rails;
}

static int flush_start(struct fr_comm *comm, struct fr_net_mr *mr,
		       const uint8_t *data, size_t bytes, struct fr_req **out)
{
	uint8_t rails = flush_rails(comm);
	struct fr_flush_req *req;

	if (rails == 0) {
		return 0; /* all that came was flushed already */
	}
	req = fr_freelist_get(comm->set->gpu->flush_pool);
	if (req == NULL) {
		return -ENOMEM;
	}
	fr_req_init(&req->base, comm, FR_REQ_FLUSH);
	req->mr = mr;
	req->bytes = (uint8_t)FR_MIN(bytes, FR_FLUSH_BYTES);
	req->at = data + (bytes - req->bytes);
	req->rails = rails;
	req->todo = rails;
	req->flying = 0;
	req->refused = 0;
	comm->rx.unflushed = 0;
	fr_list_push(&comm->set->gpu->flushes, &req->waiting);
	fr_flush_post(req);
	*out = &req->base;
	return 0;
}

/* The last message that has bytes in a GPU; -1: none. */
static int flush_last(const struct fr_comm *comm, unsigned cnt,
		      const int *bytes, struct fr_net_mr *const *mrs)
{
	int last = (int)cnt - 1;

	while (last >= 0 && (bytes[last] <= 0 || mrs[last] == NULL ||
			     mrs[last]->comm != comm || !mrs[last]->gpu)) {
		last--;
	}
	return last;
}

/* What the host's memory needs: an error, if there is one. */
static int flush_nothing(struct fr_comm *comm)
{
	int ret;

	if (!fr_lock_try(&comm->set->lock)) {
		return 0; /* an error shows at the next call */
	}
	ret = fr_comm_error(comm);
	fr_lock_drop(&comm->set->lock);
	return ret;
}

int fr_net_iflush(struct fr_comm *comm, unsigned cnt, void *const *data,
		  const int *bytes, struct fr_net_mr *const *mrs,
		  struct fr_req **out)
{
	int last, ret;

	*out = NULL;
	if (comm == NULL || comm->is_send || cnt > FR_NET_MAX_GROUP) {
		return -EINVAL;
	}
	last = flush_last(comm, cnt, bytes, mrs);
	if (last < 0 || comm->set->conf->disable_flush) {
		return flush_nothing(comm);
	}
	if (!fr_net_mr_holds(mrs[last], data[last], (size_t)bytes[last])) {
		return -EINVAL;
	}
	/* NULL would say that it is done: the lock is waited for. The peer may
	 * be gone, what it wrote is here. */
	fr_lock_take(&comm->set->lock);
	ret = comm->err != 0 ? comm->err : comm->set->dead;
	if (ret == 0) {
		ret = flush_start(comm, mrs[last], data[last],
				  (size_t)bytes[last], out);
	}
	fr_lock_drop(&comm->set->lock);
	return ret;
}
