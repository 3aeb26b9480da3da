/* Posts on a rail in memory, and what a hostile neighbour would post. */
#include "fake/fake_world.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake/fake_gpu.h"

/* A send, a write or a read on its way in. */
struct fake_want {
	enum fr_fake_call call;
	enum fr_fake_call done_call;
	uint64_t addr;
	const void *buf;
	void *into; /* of a read, and @buf NULL */
	size_t bytes;
	void *desc;
	struct fr_op *op;
	bool waits; /* completes only when the target has it */
	struct fake_pkt pkt;
};

static bool fake_op_flies_locked(const struct fr_rail *rail,
				 const struct fr_op *op)
{
	fr_list_for_each (node, &rail->posts) {
		if (FR_CONTAINER_OF(node, struct fake_post, node)->op == op) {
			return true;
		}
	}
	fr_list_for_each (node, &rail->recvs) {
		if (FR_CONTAINER_OF(node, struct fake_recv, node)->op == op) {
			return true;
		}
	}
	return false;
}

static bool fake_desc_covers_locked(const struct fr_rail *rail,
				    const void *desc, const void *buf,
				    size_t bytes)
{
	if (bytes == 0 || rail->conf.lax_desc) {
		return true;
	}
	fr_list_for_each (node, &rail->regs) {
		const struct fake_reg *reg =
			FR_CONTAINER_OF(node, struct fake_reg, node);

		if (reg == desc) {
			size_t offset = (size_t)((const char *)buf - reg->base);

			return offset <= reg->bytes &&
			       bytes <= reg->bytes - offset;
		}
	}
	return false;
}

static int fake_post_check_locked(struct fr_rail *rail, const void *buf,
				  size_t bytes, const void *desc,
				  const struct fr_op *op)
{
	if (rail->abandoned || rail->fenced) {
		fake_check_alive_locked(rail);
		return -EINVAL;
	}
	if (op->done == NULL) {
		return fake_violation_locked(rail, "a post with no done");
	}
	if (fake_op_flies_locked(rail, op)) {
		return fake_violation_locked(rail, "an operation posted twice");
	}
	if (bytes > rail->conf.max_msg_bytes) {
		return fake_violation_locked(rail, "a post that is too long");
	}
	if (!fake_desc_covers_locked(rail, desc, buf, bytes)) {
		return fake_violation_locked(
			rail, "a descriptor that does not hold its buffer");
	}
	return 0;
}

/* Where a post to @addr goes now. Return: 0; -EAGAIN: connecting, dead, full;
 * -EINVAL. */
static int fake_route_locked(struct fr_rail *rail, const struct fake_want *want,
			     struct fake_ep **out_ep, struct fake_conn **out)
{
	const struct fr_fake_conf *conf = &rail->conf;
	struct fake_conn *conn;
	struct fake_ep *ep;

	if (want->addr >= rail->peer_cnt || !rail->peers[want->addr].used) {
		return fake_violation_locked(rail, "a post to no peer");
	}
	ep = fake_ep_find_locked(&rail->peers[want->addr].name);
	if (ep == NULL || ep->killed || rail->ctrl->killed) {
		return -EAGAIN;
	}
	if (conf->quirks.tx_cap != 0 && rail->post_cnt >= conf->quirks.tx_cap) {
		return -EAGAIN;
	}
	if (rail->attr.cq_size != 0 && rail->post_cnt >= rail->attr.cq_size) {
		return -EAGAIN;
	}
	conn = fake_conn_get_locked(ep, rail);
	if ((conf->lazy_connect && !conn->connected) ||
	    (want->call == FR_FAKE_SEND && conn->cnt >= conf->queue_max)) {
		return -EAGAIN;
	}
	*out_ep = ep;
	*out = conn;
	return 0;
}

static bool fake_drop_take(struct fake_ep *ep)
{
	if (ep->drop_cnt == 0) {
		return false;
	}
	if (ep->drop_cnt != FR_FAKE_FOREVER) {
		ep->drop_cnt--;
	}
	return true;
}

static enum fr_fake_verdict fake_judge_locked(struct fr_rail *rail,
					      struct fake_ep *ep,
					      struct fake_pkt *pkt)
{
	struct fr_fake_seen seen = {
		.src = rail,
		.dst = ep->rail,
		.name = &ep->name,
		.write = pkt->kind == FAKE_PKT_WRITE,
		.untold = pkt->untold,
		.read = pkt->kind == FAKE_PKT_READ,
		.data = pkt->kind == FAKE_PKT_MSG ? pkt->copy : NULL,
		.bytes = pkt->bytes,
		.imm = pkt->imm,
		.remote_addr = pkt->remote_addr,
		.key = pkt->key,
	};
	enum fr_fake_verdict verdict = FR_FAKE_PASS;

	if (fake_world.snoop != NULL) {
		verdict = fake_world.snoop(fake_world.snoop_arg, &seen);
	}
	if (fake_drop_take(ep) || fake_drop_take(rail->ctrl)) {
		verdict = FR_FAKE_LOSE;
	}
	return verdict;
}

static void *fake_copy(const void *buf, size_t bytes)
{
	void *copy = fake_zalloc(bytes + 1);

	if (bytes != 0) {
		memcpy(copy, fake_gpu_alias(buf), bytes);
	}
	return copy;
}

static struct fake_post *fake_post_new_locked(struct fr_rail *rail,
					      const struct fake_want *want)
{
	struct fake_post *post = fake_zalloc(sizeof(*post));

	post->rail = rail;
	post->op = want->op;
	post->buf = want->buf;
	post->into = want->into;
	post->bytes = want->into == NULL ? want->bytes : 0;
	post->hash = fake_hash(want->buf, post->bytes);
	fr_list_push(&rail->posts, &post->node);
	rail->post_cnt++;
	return post;
}

static void fake_count_accepted(struct fr_rail *rail,
				const struct fake_want *want)
{
	if (want->call == FR_FAKE_SEND) {
		rail->counts.send_bytes += want->bytes;
		fake_world.counts.send_bytes += want->bytes;
	} else if (want->call == FR_FAKE_WRITE) {
		rail->counts.write_bytes += want->bytes;
		fake_world.counts.write_bytes += want->bytes;
	}
}

/*
 * The post is accepted: decides what becomes of it. A message is copied at
 * once even where its completion waits, since a snoop may change the copy.
 */
static void fake_launch_locked(struct fr_rail *rail, struct fake_want *want,
			       struct fake_ep *ep, struct fake_conn *conn)
{
	struct fake_post *post = fake_post_new_locked(rail, want);
	bool by_ref = want->waits && want->call != FR_FAKE_SEND;
	enum fr_fake_verdict verdict;
	struct fake_pkt *pkt;
	bool landed = false;
	int err;

	pkt = fake_zalloc(sizeof(*pkt));
	*pkt = want->pkt;
	pkt->bytes = want->bytes;
	if (!by_ref) {
		pkt->copy = fake_copy(want->buf, want->bytes);
	}
	err = fake_done_fault_locked(rail, want->done_call, &landed);
	verdict = fake_judge_locked(rail, ep, pkt);
	if (err != 0 && !landed) {
		fake_post_done_locked(post, err);
		verdict = FR_FAKE_LOSE;
	} else if (want->waits) {
		pkt->post = post;
		pkt->err = err;
		post->pkt = pkt;
	} else {
		fake_post_done_locked(post, err);
	}
	if (verdict == FR_FAKE_LOSE) {
		fake_pkt_lose_locked(conn, pkt);
		return;
	}
	fake_conn_push_locked(conn, pkt);
	if (verdict == FR_FAKE_TWICE && want->call == FR_FAKE_SEND) {
		struct fake_pkt *twin = fake_zalloc(sizeof(*twin));

		twin->kind = pkt->kind;
		twin->bytes = pkt->bytes;
		twin->copy = fake_copy(pkt->copy, pkt->bytes);
		fake_conn_push_locked(conn, twin);
	}
}

static int fake_post(struct fr_rail *rail, struct fake_want *want)
{
	struct fake_conn *conn = NULL;
	struct fake_ep *ep = NULL;
	int err;

	fake_lock();
	err = fake_post_check_locked(
		rail, want->into != NULL ? want->into : want->buf, want->bytes,
		want->desc, want->op);
	if (err == 0) {
		err = fake_call_locked(rail, want->call);
	}
	if (err == 0) {
		err = fake_route_locked(rail, want, &ep, &conn);
		if (err == -EAGAIN) {
			fake_again_locked(rail, want->call);
		}
	}
	if (err == 0) {
		fake_count_accepted(rail, want);
		fake_launch_locked(rail, want, ep, conn);
	}
	fake_unlock();
	return err;
}

int fr_rail_send(struct fr_rail *rail, uint64_t addr, const void *buf,
		 size_t bytes, void *desc, struct fr_op *op)
{
	struct fake_want want = {
		.call = FR_FAKE_SEND,
		.done_call = FR_FAKE_SEND_DONE,
		.addr = addr,
		.buf = buf,
		.bytes = bytes,
		.desc = desc,
		.op = op,
		.waits = rail->conf.local_waits,
		.pkt = {.kind = FAKE_PKT_MSG},
	};

	return fake_post(rail, &want);
}

int fr_rail_write(struct fr_rail *rail, uint64_t addr, const void *buf,
		  size_t bytes, void *desc, uint64_t remote_addr, uint64_t key,
		  uint64_t imm, bool deliver, struct fr_op *op)
{
	struct fake_want want = {
		.call = FR_FAKE_WRITE,
		.done_call = FR_FAKE_WRITE_DONE,
		.addr = addr,
		.buf = buf,
		.bytes = bytes,
		.desc = desc,
		.op = op,
		.waits = deliver || rail->conf.local_waits,
		.pkt = {.kind = FAKE_PKT_WRITE,
			.imm = imm,
			.remote_addr = remote_addr,
			.key = key},
	};

	return fake_post(rail, &want);
}

int fr_rail_write_part(struct fr_rail *rail, uint64_t addr, const void *buf,
		       size_t bytes, void *desc, uint64_t remote_addr,
		       uint64_t key, struct fr_op *op)
{
	struct fake_want want = {
		.call = FR_FAKE_WRITE,
		.done_call = FR_FAKE_WRITE_DONE,
		.addr = addr,
		.buf = buf,
		.bytes = bytes,
		.desc = desc,
		.op = op,
		.waits = true,
		.pkt = {.kind = FAKE_PKT_WRITE,
			.remote_addr = remote_addr,
			.key = key,
			.untold = true},
	};

	return fake_post(rail, &want);
}

int fr_rail_read(struct fr_rail *rail, uint64_t addr, void *buf, size_t bytes,
		 void *desc, uint64_t remote_addr, uint64_t key,
		 struct fr_op *op)
{
	struct fake_want want = {
		.call = FR_FAKE_READ,
		.done_call = FR_FAKE_READ_DONE,
		.addr = addr,
		.into = buf,
		.bytes = bytes,
		.desc = desc,
		.op = op,
		.waits = true,
		.pkt = {.kind = FAKE_PKT_READ,
			.remote_addr = remote_addr,
			.key = key},
	};

	return fake_post(rail, &want);
}

int fr_rail_recv(struct fr_rail *rail, void *buf, size_t bytes, void *desc,
		 struct fr_op *op)
{
	struct fake_recv *recv;
	int err;

	fake_lock();
	err = fake_post_check_locked(rail, buf, bytes, desc, op);
	if (err == 0) {
		err = fake_call_locked(rail, FR_FAKE_RECV);
	}
	if (err == 0) {
		recv = fake_zalloc(sizeof(*recv));
		recv->buf = buf;
		recv->bytes = bytes;
		recv->op = op;
		fr_list_push(&rail->recvs, &recv->node);
	}
	fake_unlock();
	return err;
}

static int fake_inject(const struct fr_name *to, struct fake_pkt *pkt)
{
	struct fake_ep *ep;

	fake_lock();
	ep = fake_ep_find_locked(to);
	if (ep != NULL) {
		fake_conn_push_locked(fake_conn_get_locked(ep, NULL), pkt);
	}
	fake_unlock();
	if (ep == NULL) {
		free(pkt->copy);
		free(pkt);
		return -ENOENT;
	}
	return 0;
}

int fr_fake_inject_msg(const struct fr_name *to, const void *data, size_t bytes)
{
	struct fake_pkt *pkt = fake_zalloc(sizeof(*pkt));

	pkt->kind = FAKE_PKT_MSG;
	pkt->copy = fake_copy(data, bytes);
	pkt->bytes = bytes;
	return fake_inject(to, pkt);
}

int fr_fake_inject_write(const struct fr_name *to, uint64_t remote_addr,
			 uint64_t key, const void *data, size_t bytes,
			 uint64_t imm)
{
	struct fake_pkt *pkt = fake_zalloc(sizeof(*pkt));

	pkt->kind = FAKE_PKT_WRITE;
	pkt->copy = fake_copy(data, bytes);
	pkt->bytes = bytes;
	pkt->remote_addr = remote_addr;
	pkt->key = key;
	pkt->imm = imm;
	return fake_inject(to, pkt);
}

int fr_fake_inject_imm(const struct fr_name *to, uint64_t imm, size_t bytes)
{
	struct fake_pkt *pkt = fake_zalloc(sizeof(*pkt));

	pkt->kind = FAKE_PKT_IMM;
	pkt->bytes = bytes;
	pkt->imm = imm;
	return fake_inject(to, pkt);
}

int fr_fake_inject_error(const struct fr_name *to, int err)
{
	struct fake_pkt *pkt = fake_zalloc(sizeof(*pkt));

	pkt->kind = FAKE_PKT_ERR;
	pkt->err = err;
	return fake_inject(to, pkt);
}
