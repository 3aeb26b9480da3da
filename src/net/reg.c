#include "net/reg.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/away.h"
#include "net/gpu.h"
#include "net/health.h"
#include "net/progress.h"
#include "net/regtable.h"
#include "net/req.h"
#include "net/xfer.h"

/* How long our own operations with ourselves may take. */
#define REG_OWN_NS (500 * FR_NS_PER_MS)
/* How long a dead peer's last bytes may take to come from the kernel. */
#define REG_QUIET_NS (500 * FR_NS_PER_MS)
#define REG_QUIET_MAX_NS (1 * FR_NS_PER_S)

static void reg_free_locked(struct fr_net_mr *mr)
{
	fr_list_del(&mr->node);
	if (mr->mr != NULL && mr->comm->set->mrs != NULL) {
		fr_mr_put(mr->comm->set->mrs, mr->mr);
	}
	fr_free(mr);
}

/* What the host program wants to have registered. */
struct reg_want {
	void *addr;
	size_t bytes;
	unsigned access;
	bool gpu;
	const struct fr_mr_dmabuf *dmabuf; /* or NULL */
};

static int reg_get(struct fr_set *set, const struct reg_want *want,
		   struct fr_mr **out)
{
	if (set->dead != 0) {
		return set->dead;
	}
	if (want->gpu) {
		return fr_mr_get_gpu(set->mrs, want->addr, want->bytes,
				     want->access, want->dmabuf, out);
	}
	return fr_mr_get(set->mrs, want->addr, want->bytes, want->access, out);
}

/* Registers outside the set's lock where the provider allows it: pinning takes
 * long on hardware, and the data path must go on. */
static int reg_register(struct fr_set *set, const struct reg_want *want,
			struct fr_mr **out)
{
	bool locked = set->quirks->mr_excludes_poll;
	int ret;

	if (locked) {
		fr_lock_take(&set->lock);
	}
	ret = reg_get(set, want, out);
	if (locked) {
		fr_lock_drop(&set->lock);
	}
	return ret;
}

/* The CPU stays out of such memory: what does its work must be there first. */
static int reg_prepare_gpu(struct fr_set *set)
{
	int ret;

	fr_lock_take(&set->lock);
	ret = set->dead != 0 ? set->dead : fr_gpu_open_locked(set);
	fr_lock_drop(&set->lock);
	return ret;
}

/* A flush reads what a peer wrote. */
static unsigned reg_access(const struct fr_comm *comm, bool gpu)
{
	if (comm->is_send) {
		return FR_MR_LOCAL;
	}
	return gpu && !comm->set->conf->disable_flush
		       ? FR_MR_REMOTE_WRITE | FR_MR_REMOTE_READ
		       : FR_MR_REMOTE_WRITE;
}

static int reg_make(struct fr_comm *comm, struct reg_want *want,
		    struct fr_net_mr **out)
{
	struct fr_net_mr *mr;
	int ret = 0;

	if (comm == NULL || (want->addr == NULL && want->bytes != 0) ||
	    (uintptr_t)want->addr + want->bytes < (uintptr_t)want->addr) {
		return -EINVAL;
	}
	mr = fr_calloc(1, sizeof(*mr));
	if (mr == NULL) {
		return -ENOMEM;
	}
	want->access = reg_access(comm, want->gpu);
	if (want->gpu) {
		ret = reg_prepare_gpu(comm->set);
	}
	if (ret == 0 && want->bytes != 0) {
		ret = reg_register(comm->set, want, &mr->mr);
	}
	if (ret != 0) {
		fr_free(mr);
		return ret;
	}
	mr->comm = comm;
	mr->base = want->addr;
	mr->bytes = want->bytes;
	mr->gpu = want->gpu;
	fr_lock_take(&comm->set->lock);
	fr_list_push(&comm->mrs, &mr->node);
	fr_lock_drop(&comm->set->lock);
	fr_regtable_add(mr);
	*out = mr;
	return 0;
}

int fr_net_reg_mr(struct fr_comm *comm, void *addr, size_t bytes,
		  enum fr_mem_kind kind, struct fr_net_mr **out)
{
	struct reg_want want = {
		.addr = addr,
		.bytes = bytes,
		.gpu = kind == FR_MEM_GPU,
	};

	if (kind != FR_MEM_HOST && kind != FR_MEM_GPU) {
		return -EINVAL;
	}
	return reg_make(comm, &want, out);
}

int fr_net_reg_dmabuf(struct fr_comm *comm, void *addr, size_t bytes,
		      uint64_t offset, int fd, struct fr_net_mr **out)
{
	struct fr_mr_dmabuf dmabuf = {.fd = fd, .offset = offset};
	struct reg_want want = {
		.addr = addr,
		.bytes = bytes,
		.gpu = true,
		.dmabuf = &dmabuf,
	};

	return reg_make(comm, &want, out);
}

static bool list_reads(const struct fr_list *reqs, const struct fr_net_mr *mr)
{
	fr_list_for_each (pos, reqs) {
		struct fr_req *req = FR_CONTAINER_OF(pos, struct fr_req, node);

		if (req->kind == FR_REQ_SEND && fr_send_req_of(req)->mr == mr &&
		    (fr_send_req_of(req)->flying |
		     fr_send_req_of(req)->stale) != 0) {
			return true;
		}
	}
	return false;
}

/* A post of ours may still read from @mr, whether or not the host program was
 * told of its request's end: an error is told at once. */
static bool reg_is_read(const struct fr_comm *comm, const struct fr_net_mr *mr)
{
	return list_reads(&comm->reqs, mr) || fr_away_reads(comm, mr) ||
	       list_reads(&comm->set->orphans, mr);
}

/* The peer may still write to @mr: a receive in it was announced. */
static bool reg_is_written(const struct fr_comm *comm,
			   const struct fr_net_mr *mr)
{
	const struct fr_window *win = &comm->rx.win.win;

	for (uint32_t seq = win->base; seq != win->next; seq++) {
		const struct fr_rx_entry *entry =
			fr_msgwin_at(&comm->rx.win, seq);

		if (fr_rx_open(entry) && entry->mr == mr && entry->announced &&
		    !entry->blind) {
			return true;
		}
	}
	return false;
}

static void reg_cancel_recvs(struct fr_comm *comm, const struct fr_net_mr *mr)
{
	const struct fr_window *win = &comm->rx.win.win;

	for (uint32_t seq = win->base; seq != win->next; seq++) {
		struct fr_rx_entry *entry = fr_msgwin_at(&comm->rx.win, seq);

		if (fr_rx_open(entry) && entry->mr == mr) {
			fr_recv_fail(comm, entry, -ECONNRESET);
			comm->err = -ECONNRESET;
		}
	}
	fr_list_for_each_safe (pos, &comm->reqs) {
		struct fr_req *req = FR_CONTAINER_OF(pos, struct fr_req, node);

		if (req->kind == FR_REQ_FLUSH && req->state == FR_REQ_ACTIVE &&
		    fr_flush_req_of(req)->mr == mr) {
			fr_flush_forget(req);
			fr_req_fail(req, -ECONNRESET);
		}
	}
}

static void reg_cancel_sends(struct fr_comm *comm, const struct fr_net_mr *mr)
{
	fr_list_for_each_safe (pos, &comm->reqs) {
		struct fr_req *req = FR_CONTAINER_OF(pos, struct fr_req, node);
		struct fr_send_req *send = fr_send_req_of(req);

		if (send->mr == mr && req->state == FR_REQ_ACTIVE) {
			if (send->deferred) {
				send->deferred = false;
				fr_list_del(&send->deferred_node);
			}
			send->to_post = 0;
			fr_away_forget(send);
			fr_req_fail(req, -ECONNRESET);
			comm->err = -ECONNRESET;
		}
	}
}

/* Requests that use @mr end here, whatever becomes of their peers. */
static void reg_cancel(struct fr_comm *comm, const struct fr_net_mr *mr)
{
	if (comm->is_send) {
		reg_cancel_sends(comm, mr);
	} else {
		reg_cancel_recvs(comm, mr);
	}
}

/* Somebody else of the set would suffer from a fence. */
static bool reg_has_neighbours(const struct fr_comm *comm)
{
	fr_list_for_each (pos, &comm->set->links) {
		const struct fr_link *link =
			FR_CONTAINER_OF(pos, struct fr_link, node);

		if (link != comm->link && link->err == 0 &&
		    link->open_comms != 0) {
			return true;
		}
	}
	return false;
}

static bool reg_is_touched(const struct fr_comm *comm,
			   const struct fr_net_mr *mr)
{
	return mr->flying != 0 || (comm->is_send ? reg_is_read(comm, mr)
						 : reg_is_written(comm, mr));
}

/* A write of our own to @mr may be out that its receive has not heard of. */
static bool reg_is_copied(const struct fr_comm *comm,
			  const struct fr_net_mr *mr)
{
	const struct fr_window *win = &comm->rx.win.win;

	for (uint32_t seq = win->base; !comm->is_send && seq != win->next;
	     seq++) {
		const struct fr_rx_entry *entry =
			fr_msgwin_at(&comm->rx.win, seq);

		if (fr_rx_open(entry) && entry->mr == mr && entry->copying) {
			return true;
		}
	}
	return false;
}

/* What we have under way with ourselves ends soon, whatever peers do. */
static void reg_await_own(const struct fr_comm *comm,
			  const struct fr_net_mr *mr)
{
	uint64_t end = fr_now_ns() + REG_OWN_NS;
	struct fr_set *set = comm->set;

	while ((mr->flying != 0 || reg_is_copied(comm, mr)) && set->dead == 0 &&
	       fr_now_ns() < end) {
		fr_progress_locked(set);
		fr_lock_drop(&set->lock);
		fr_yield();
		fr_lock_take(&set->lock);
	}
}

/*
 * The peer is gone. What its kernel still had on the way lands, or fails, now:
 * polls until nothing of it came for REG_QUIET_NS, once a link. The lock is
 * free in between, for the neighbours. Return: true when nothing of the peer
 * can touch the memory any more.
 */
static bool reg_await_quiet(struct fr_comm *comm, const struct fr_net_mr *mr)
{
	struct fr_link *link = comm->link;
	uint64_t now = fr_now_ns(), end = now + REG_QUIET_MAX_NS;
	uint64_t quiet_since = now;
	uint32_t seen = link->activity;

	while (comm->set->dead == 0 && now < end && !link->quiet) {
		fr_progress_locked(comm->set);
		fr_lock_drop(&comm->set->lock);
		fr_yield();
		fr_lock_take(&comm->set->lock);
		now = fr_now_ns();
		if (link->activity != seen) {
			seen = link->activity;
			quiet_since = now;
		}
		if (comm->is_send && !reg_is_read(comm, mr)) {
			return true;
		}
		link->quiet = now - quiet_since > REG_QUIET_NS;
	}
	return link->quiet && mr->flying == 0 &&
	       !(comm->is_send && reg_is_read(comm, mr));
}

static void reg_revoke_locked(struct fr_comm *comm, struct fr_net_mr *mr)
{
	struct fr_set *set = comm->set;

	if (set->dead == 0) {
		/* What is complete in the queues needs no fence. */
		fr_progress_locked(set);
	}
	reg_await_own(comm, mr);
	if (set->dead == 0 && reg_is_touched(comm, mr) &&
	    !(comm->link->err != 0 && reg_has_neighbours(comm) &&
	      fr_health_is_gone(comm->link) && reg_await_quiet(comm, mr)) &&
	    set->dead == 0) {
		fr_set_kill_locked(set, "memory was deregistered with a "
					"transfer under way");
	}
	reg_cancel(comm, mr);
}

/* Which of the three it is cannot be told from an address. */
static int reg_not_ours(const struct fr_net_mr *mr)
{
	fr_error_limited("deregMr: %p is no registration of this comm, was "
			 "deregistered, or ended with its comm",
			 (const void *)mr);
	return -EINVAL;
}

int fr_net_dereg_mr(struct fr_comm *comm, struct fr_net_mr *mr)
{
	if (mr == NULL) {
		return 0;
	}
	if (!fr_regtable_take(comm, mr)) {
		return reg_not_ours(mr);
	}
	fr_lock_take(&comm->set->lock);
	if (mr->mr != NULL) {
		reg_revoke_locked(comm, mr);
	}
	reg_free_locked(mr);
	fr_lock_drop(&comm->set->lock);
	return 0;
}

void fr_reg_drop_all(struct fr_comm *comm)
{
	while (!fr_list_empty(&comm->mrs)) {
		struct fr_net_mr *mr =
			FR_CONTAINER_OF(comm->mrs.next, struct fr_net_mr, node);

		(void)fr_regtable_take(comm, mr);
		if (mr->mr != NULL) {
			reg_revoke_locked(comm, mr);
		}
		reg_free_locked(mr);
	}
}
