/* test: how the host program learns of a request's end. */
#include <errno.h>

#include "net/progress.h"
#include "net/xfer.h"

static void report_sizes(struct fr_req *req, size_t *sizes)
{
	if (sizes == NULL) {
		return;
	}
	if (req->kind == FR_REQ_FLUSH) {
		return;
	}
	if (req->kind == FR_REQ_SEND) {
		sizes[0] = fr_send_req_of(req)->bytes;
		return;
	}
	for (unsigned i = 0; i < fr_recv_req_of(req)->cnt; i++) {
		sizes[i] = fr_recv_req_of(req)->bytes[i];
	}
}

/* Why nothing more becomes of it. What is left to do between us and ourselves
 * needs no peer. */
static int req_error(const struct fr_req *req)
{
	const struct fr_comm *comm = req->comm;
	bool alone = req->kind == FR_REQ_FLUSH ||
		     (req->kind == FR_REQ_RECV && comm->rx.copying != 0);

	return alone && comm->err == 0 ? req->set->dead : fr_comm_error(comm);
}

static int test_locked(struct fr_req *req, bool *done, size_t *sizes,
		       bool *yield)
{
	int err;

	if (req->state == FR_REQ_ACTIVE && req_error(req) == 0) {
		*yield = fr_progress_locked(req->set);
	}
	if (req->state == FR_REQ_DONE) {
		report_sizes(req, sizes);
		*done = true;
		fr_req_release(req);
		return 0;
	}
	err = req->state == FR_REQ_FAILED ? req->err : req_error(req);
	if (fr_unlikely(err != 0)) {
		fr_req_release(req);
	}
	return err;
}

int fr_net_test(struct fr_req *req, bool *done, size_t *sizes)
{
	struct fr_set *set;
	bool yield = false;
	int ret;

	*done = false;
	if (fr_unlikely(req == NULL)) {
		return -EINVAL;
	}
	set = req->set;
	if (!fr_lock_try(&set->lock)) {
		return 0;
	}
	ret = test_locked(req, done, sizes, &yield);
	fr_lock_drop(&set->lock);
	if (yield) {
		fr_yield();
	}
	return ret;
}
