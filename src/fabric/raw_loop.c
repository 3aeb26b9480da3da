#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "fabric/raw_priv.h"

#define STRIPE_FROM_BYTES (128u << 10)
#define BATCH 16

static int cq_failed(struct raw_rail *rail)
{
	union fr_fi_cq_err_entry e = {.room = {0}};

	(void)fi_cq_readerr(rail->cq, &e.entry, 0);
	fr_error("raw rail on %s: %s", rail->info->domain_attr->name,
		 fr_fi_text(e.entry.err));
	return -EIO;
}

static void count(struct fr_raw *raw, const struct fi_cq_data_entry *e)
{
	struct raw_op *op = e->op_context;

	if (op == NULL || ((e->flags & FI_REMOTE_CQ_DATA) != 0 &&
			   (e->flags & (FI_RECV | FI_SEND | FI_WRITE)) == 0)) {
		raw->write_done++;
	} else if (op->kind == RAW_RX) {
		raw->rx_done++;
	} else if (--op->left == 0) {
		raw->tx_done++;
	}
}

int fr_raw_poll(struct fr_raw *raw)
{
	struct fi_cq_data_entry e[BATCH];
	int seen = 0;
	ssize_t n;

	for (unsigned i = 0; i < raw->rail_cnt; i++) {
		n = fi_cq_read(raw->rail[i].cq, e, BATCH);
		if (n < 0 && n != -FI_EAGAIN) {
			return cq_failed(&raw->rail[i]);
		}
		for (ssize_t k = 0; k < n; k++) {
			count(raw, &e[k]);
		}
		seen += n > 0 ? (int)n : 0;
	}
	return seen;
}

int fr_raw_idle(int seen, uint64_t *since_ns)
{
	if (seen > 0) {
		*since_ns = 0;
		return 0;
	}
	(void)sched_yield();
	if (*since_ns == 0) {
		*since_ns = fr_now_ns();
	} else if (fr_now_ns() - *since_ns > FR_RAW_TIMEOUT_S * FR_NS_PER_S) {
		fr_error("raw: no progress for %u s", FR_RAW_TIMEOUT_S);
		return -ETIMEDOUT;
	}
	return 0;
}

/* Polls until *@counter is @want. */
static int wait_for(struct fr_raw *raw, const uint64_t *counter, uint64_t want)
{
	uint64_t since_ns = 0;
	int ret = 0;

	while (*counter < want && ret >= 0) {
		ret = fr_raw_poll(raw);
		if (ret >= 0) {
			ret = fr_raw_idle(ret, &since_ns);
		}
	}
	return ret < 0 ? ret : 0;
}

/* After a post: 1 when it has to be repeated, 0, or -errno. */
static int posted(struct fr_raw *raw, const struct raw_rail *rail, ssize_t ret,
		  uint64_t *since_ns)
{
	int seen;

	if (ret == 0) {
		return 0;
	}
	if (ret != -FI_EAGAIN) {
		fr_error("raw rail on %s: post: %s",
			 rail->info->domain_attr->name, fr_fi_text(ret));
		return -EIO;
	}
	seen = fr_raw_poll(raw);
	if (seen >= 0) {
		seen = fr_raw_idle(seen, since_ns);
	}
	return seen < 0 ? seen : 1;
}

int fr_raw_send(struct fr_raw *raw, unsigned i, const void *buf, size_t bytes,
		struct raw_op *op)
{
	struct raw_rail *rail = &raw->rail[i];
	struct iovec iov = {(void *)(uintptr_t)buf, bytes};
	struct fi_msg msg = {.msg_iov = &iov,
			     .desc = &rail->desc,
			     .iov_count = 1,
			     .addr = rail->peer,
			     .context = op,
			     .data = 1};
	uint64_t since_ns = 0;
	ssize_t ret;
	int again;

	do {
		ret = raw->deliver
			      ? fi_sendmsg(rail->ep, &msg,
					   FI_REMOTE_CQ_DATA | FI_COMPLETION |
						   FI_DELIVERY_COMPLETE)
			      : fi_senddata(rail->ep, buf, bytes, rail->desc, 1,
					    rail->peer, op);
		again = posted(raw, rail, ret, &since_ns);
	} while (again > 0);
	return again;
}

int fr_raw_write(struct fr_raw *raw, unsigned i, size_t at, size_t bytes,
		 struct raw_op *op)
{
	struct raw_rail *rail = &raw->rail[i];
	struct iovec iov = {raw->mem + at, bytes};
	struct fi_rma_iov rma = {rail->remote_addr + at, bytes,
				 rail->remote_key};
	struct fi_msg_rma msg = {.msg_iov = &iov,
				 .desc = &rail->desc,
				 .iov_count = 1,
				 .addr = rail->peer,
				 .rma_iov = &rma,
				 .rma_iov_count = 1,
				 .context = op,
				 .data = 1};
	uint64_t since_ns = 0;
	ssize_t ret;
	int again;

	do {
		ret = raw->deliver
			      ? fi_writemsg(rail->ep, &msg,
					    FI_REMOTE_CQ_DATA | FI_COMPLETION |
						    FI_DELIVERY_COMPLETE)
			      : fi_writedata(rail->ep, iov.iov_base, bytes,
					     rail->desc, 1, rail->peer,
					     rma.addr, rma.key, op);
		again = posted(raw, rail, ret, &since_ns);
	} while (again > 0);
	return again;
}

int fr_raw_recv(struct fr_raw *raw, unsigned i, void *buf, size_t bytes)
{
	struct raw_rail *rail = &raw->rail[i];
	uint64_t since_ns = 0;
	int again;

	do {
		again = posted(raw, rail,
			       fi_recv(rail->ep, buf, bytes, rail->desc,
				       FI_ADDR_UNSPEC, &raw->rx),
			       &since_ns);
	} while (again > 0);
	return again;
}

/* One message on rail 0. */
static int ping(struct fr_raw *raw, size_t bytes)
{
	raw->tx[0].left = 1;
	return fr_raw_send(raw, 0, fr_raw_tx_mem(raw, 0), bytes, &raw->tx[0]);
}

int fr_raw_pingpong_wait(struct fr_raw *raw, bool initiator, size_t bytes,
			 unsigned warmup, unsigned iters, double *ns)
{
	uint64_t rounds = (uint64_t)warmup + iters, start_ns = 0;
	int ret;

	raw->tx_done = raw->rx_done = 0;
	ret = fr_raw_recv(raw, 0, fr_raw_rx_mem(raw, 0), bytes);
	for (uint64_t i = 0; i < rounds && ret == 0; i++) {
		if (initiator) {
			start_ns = fr_now_ns();
			ret = ping(raw, bytes);
		}
		if (ret == 0) {
			ret = wait_for(raw, &raw->rx_done, i + 1);
		}
		if (initiator && i >= warmup) {
			ns[i - warmup] = (double)(fr_now_ns() - start_ns) / 2;
		}
		if (ret == 0 && i + 1 < rounds) {
			ret = fr_raw_recv(raw, 0, fr_raw_rx_mem(raw, 0), bytes);
		}
		if (ret == 0 && !initiator) {
			ret = ping(raw, bytes);
		}
		if (ret == 0) {
			ret = wait_for(raw, &raw->tx_done, i + 1);
		}
	}
	return ret;
}

static unsigned stripes_of(const struct fr_raw *raw, bool message, size_t bytes)
{
	return message || bytes < STRIPE_FROM_BYTES ? 1 : raw->rail_cnt;
}

static int post_message(struct fr_raw *raw, bool message, uint64_t i,
			size_t bytes)
{
	unsigned stripes = stripes_of(raw, message, bytes);
	struct raw_op *op = &raw->tx[i % raw->window];
	size_t at = (i % raw->window) * raw->stride, part, off = 0, n;
	int ret = 0;

	op->left = stripes;
	if (message) {
		return fr_raw_send(raw, 0, raw->mem + at, bytes, op);
	}
	part = (size_t)fr_round_up((bytes + stripes - 1) / stripes, 128);
	for (unsigned s = 0; s < stripes && ret == 0; s++, off += n) {
		n = FR_MIN(part, bytes - off);
		ret = fr_raw_write(raw, (unsigned)((i + s) % raw->rail_cnt),
				   at + off, n, op);
	}
	return ret;
}

/* The receiver's last word, so that the sender polls until all has landed. */
static int stream_send(struct fr_raw *raw, bool message, size_t bytes,
		       uint64_t total)
{
	uint64_t since_ns = 0;
	int ret;

	ret = fr_raw_recv(raw, 0, fr_raw_rx_mem(raw, 0), 8);
	for (uint64_t i = 0; i < total && ret >= 0; i++) {
		while (raw->tx[i % raw->window].left > 0 && ret >= 0) {
			ret = fr_raw_poll(raw);
			if (ret >= 0) {
				ret = fr_raw_idle(ret, &since_ns);
			}
		}
		if (ret >= 0) {
			ret = post_message(raw, message, i, bytes);
		}
	}
	if (ret == 0) {
		ret = wait_for(raw, &raw->tx_done, total);
	}
	return ret != 0 ? ret : wait_for(raw, &raw->rx_done, 1);
}

static int stream_recv(struct fr_raw *raw, bool message, size_t bytes,
		       unsigned warmup, uint64_t total, uint64_t *ns)
{
	unsigned stripes = stripes_of(raw, message, bytes);
	const uint64_t *counter = message ? &raw->rx_done : &raw->write_done;
	uint64_t start_ns = fr_now_ns(), start = 0, landed = 0, recvs = 0;
	uint64_t since_ns = 0;
	int ret = 0;

	while (landed < total && ret >= 0) {
		while (message && recvs < total &&
		       recvs < landed + raw->window && ret >= 0) {
			ret = fr_raw_recv(raw, 0, fr_raw_rx_mem(raw, recvs++),
					  bytes);
		}
		if (ret >= 0) {
			ret = fr_raw_poll(raw);
		}
		if (ret >= 0) {
			ret = fr_raw_idle(ret, &since_ns);
		}
		landed = *counter / stripes;
		if (start == 0 && landed >= warmup) {
			start = landed; /* a batch may bring more than that */
			start_ns = fr_now_ns();
		}
	}
	if (ret < 0) {
		return ret;
	}
	*ns = (fr_now_ns() - start_ns) * (total - warmup) /
	      FR_MAX(total - start, 1);
	raw->tx[0].left = 1;
	ret = fr_raw_send(raw, 0, fr_raw_tx_mem(raw, 0), 8, &raw->tx[0]);
	return ret != 0 ? ret : wait_for(raw, &raw->tx_done, 1);
}

int fr_raw_stream_wait(struct fr_raw *raw, bool sender, bool message,
		       size_t bytes, unsigned warmup, unsigned iters,
		       uint64_t *ns)
{
	uint64_t total = (uint64_t)warmup + iters;

	raw->tx_done = raw->rx_done = raw->write_done = 0;
	memset(raw->tx, 0, raw->window * sizeof(*raw->tx));
	return sender ? stream_send(raw, message, bytes, total)
		      : stream_recv(raw, message, bytes, warmup, total, ns);
}
