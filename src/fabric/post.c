#include "fabric/rail.h"

#include <errno.h>
#include <sys/uio.h>

#include "base/log.h"
#include "base/util.h"
#include "fabric/rail_priv.h"
#include "fabric/shm_priv.h"

/* Posts that only messages may make once writes have filled the rail: a peer
 * that takes no data must not stop the others' control. */
#define MESSAGE_RESERVE 64u

static bool rail_is_full(const struct fr_rail *rail, uint32_t reserve)
{
	return rail->inflight >= rail->tx_cap &&
	       rail->inflight - rail->tx_cap >= reserve;
}

/* @addr: in: as fr_rail_peer_add() gave it; out: the provider's. */
static inline bool rail_takes(const struct fr_rail *rail, uint32_t reserve,
			      uint64_t *addr)
{
	if (fr_unlikely(rail_is_full(rail, reserve))) {
		return false;
	}
	return fr_likely(rail->shm == NULL) || fr_shm_may_post(rail->shm, addr);
}

/* The provider took it. @peer: as fr_rail_peer_add() gave it. */
static inline void rail_took(struct fr_rail *rail, uint64_t peer,
			     struct fr_op *op)
{
	rail->inflight++;
	if (fr_unlikely(rail->shm != NULL)) {
		fr_shm_posted(rail->shm, peer, op);
	}
}

/* What the provider said to a post. */
static FR_NOINLINE int post_refused(struct fr_rail *rail, ssize_t ret,
				    const char *what)
{
	if (ret == -FI_EAGAIN ||
	    (ret == -FI_ENOENT && rail->enoent_is_eagain)) {
		fr_stats_add(&rail->stats, FR_STAT_DEFERRED, 1);
		return -EAGAIN;
	}
	fr_log_limited(&rail->bad_posts,
		       rail->owner_warns ? FR_LOG_INFO : FR_LOG_ERROR,
		       "rail %u on %s (%s): cannot post a %s: %s", rail->index,
		       rail->nic->name, rail->fabric->text, what,
		       fr_fi_text(ret));
	return fr_fi_errno(ret);
}

int fr_rail_send(struct fr_rail *rail, uint64_t addr, const void *buf,
		 size_t bytes, void *desc, struct fr_op *op)
{
	const uint64_t peer = addr;
	ssize_t ret = -FI_EAGAIN;

	fr_op_arm(op, FR_OP_TX, bytes);
	if (fr_unlikely(!rail_takes(rail, MESSAGE_RESERVE, &addr))) {
		return post_refused(rail, ret, "message");
	}
	if (rail->ep_delivers) {
		/* Flags of a call replace the endpoint's: local completion. */
		struct iovec iov = {(void *)(uintptr_t)buf, bytes};
		struct fi_msg msg = {
			.msg_iov = &iov,
			.desc = &desc,
			.iov_count = 1,
			.addr = addr,
			.context = op,
		};

		ret = fi_sendmsg(rail->ctrl, &msg, FI_COMPLETION);
	} else {
		ret = fi_send(rail->ctrl, buf, bytes, desc, addr, op);
	}
	if (fr_unlikely(ret != 0)) {
		return post_refused(rail, ret, "message");
	}
	rail_took(rail, peer, op);
	return 0;
}

/* Flags of a call replace the endpoint's. */
static ssize_t post_writemsg(struct fr_rail *rail, uint64_t addr,
			     const void *buf, size_t bytes, void *desc,
			     uint64_t remote_addr, uint64_t key, uint64_t imm,
			     uint64_t flags, struct fr_op *op)
{
	struct iovec iov = {(void *)(uintptr_t)buf, bytes};
	struct fi_rma_iov rma = {remote_addr, bytes, key};
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = addr,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = op,
		.data = imm,
	};

	return fi_writemsg(rail->ctrl, &msg, flags | FI_COMPLETION);
}

int fr_rail_write(struct fr_rail *rail, uint64_t addr, const void *buf,
		  size_t bytes, void *desc, uint64_t remote_addr, uint64_t key,
		  uint64_t imm, bool deliver, struct fr_op *op)
{
	const uint64_t peer = addr;
	ssize_t ret = -FI_EAGAIN;

	fr_op_arm(op, FR_OP_TX, bytes);
	if (fr_unlikely(!rail_takes(rail, 0, &addr))) {
		return post_refused(rail, ret, "write");
	}
	deliver = deliver && (bytes > 0 || !rail->empty_is_local);
	if (deliver == rail->ep_delivers) {
		ret = fi_writedata(rail->ctrl, buf, bytes, desc, imm, addr,
				   remote_addr, key, op);
	} else {
		ret = post_writemsg(
			rail, addr, buf, bytes, desc, remote_addr, key, imm,
			FI_REMOTE_CQ_DATA |
				(deliver ? FI_DELIVERY_COMPLETE : 0),
			op);
	}
	if (fr_unlikely(ret != 0)) {
		return post_refused(rail, ret, "write");
	}
	rail_took(rail, peer, op);
	return 0;
}

int fr_rail_write_part(struct fr_rail *rail, uint64_t addr, const void *buf,
		       size_t bytes, void *desc, uint64_t remote_addr,
		       uint64_t key, struct fr_op *op)
{
	const uint64_t peer = addr;
	ssize_t ret = -FI_EAGAIN;

	fr_op_arm(op, FR_OP_TX, bytes);
	if (rail_takes(rail, 0, &addr)) {
		ret = post_writemsg(rail, addr, buf, bytes, desc, remote_addr,
				    key, 0, FI_DELIVERY_COMPLETE, op);
	}
	if (fr_unlikely(ret != 0)) {
		return post_refused(rail, ret, "write");
	}
	rail_took(rail, peer, op);
	return 0;
}

int fr_rail_read(struct fr_rail *rail, uint64_t addr, void *buf, size_t bytes,
		 void *desc, uint64_t remote_addr, uint64_t key,
		 struct fr_op *op)
{
	const uint64_t peer = addr;
	ssize_t ret = -FI_EAGAIN;

	fr_op_arm(op, FR_OP_READ, bytes);
	if (fr_unlikely(!rail_takes(rail, 0, &addr))) {
		return post_refused(rail, ret, "read");
	}
	ret = fi_read(rail->ctrl, buf, bytes, desc, addr, remote_addr, key, op);
	if (fr_unlikely(ret != 0)) {
		return post_refused(rail, ret, "read");
	}
	rail_took(rail, peer, op);
	return 0;
}

int fr_rail_recv(struct fr_rail *rail, void *buf, size_t bytes, void *desc,
		 struct fr_op *op)
{
	ssize_t ret = -FI_EAGAIN;

	fr_op_arm(op, FR_OP_RX, bytes);
	if (fr_unlikely(rail->shm != NULL) && !fr_shm_may_poll(rail->shm)) {
		return post_refused(rail, ret, "receive buffer");
	}
	ret = fi_recv(rail->ctrl, buf, bytes, desc, FI_ADDR_UNSPEC, op);
	if (fr_unlikely(ret != 0)) {
		return post_refused(rail, ret, "receive buffer");
	}
	return 0;
}

unsigned fr_rail_inflight(const struct fr_rail *rail)
{
	return rail->inflight;
}
