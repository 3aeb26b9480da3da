/*
 * Endpoints, connections and what travels on them.
 *
 *   world.eps -> ep -> conn (one a source rail) -> pkt, pkt, ...
 *
 * A packet leaves its connection when its target polls; a post waits for that
 * only where its completion does.
 */
#include "fake/fake_world.h"

#include "fake/fake_gpu.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static uint16_t fake_port_take_locked(void)
{
	uint16_t port = fake_world.forced_port;

	fake_world.forced_port = 0;
	return port != 0 ? port : fake_world.next_port++;
}

static void fake_name_make(const struct fr_rail *rail, uint16_t port,
			   struct fr_name *name)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const struct fr_nic *nic = fr_rail_nic(rail);
	struct sockaddr_in v4 = {.sin_family = AF_INET,
				 .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
				  .sin6_port = htons(port)};

	memset(name, 0, sizeof(*name));
	if (rail->conf.name_bytes != 0) {
		name->len = (uint16_t)rail->conf.name_bytes;
		memset(name->bytes, 0xa5, name->len);
		memcpy(name->bytes, &port, sizeof(port));
	} else if (memcmp(nic->addr, mapped, sizeof(mapped)) == 0) {
		memcpy(&v4.sin_addr, nic->addr + sizeof(mapped), 4);
		name->len = sizeof(v4);
		memcpy(name->bytes, &v4, sizeof(v4));
	} else {
		memcpy(&v6.sin6_addr, nic->addr, 16);
		name->len = sizeof(v6);
		memcpy(name->bytes, &v6, sizeof(v6));
	}
}

struct fake_ep *fake_ep_open_locked(struct fr_rail *rail)
{
	struct fake_ep *ep = fake_zalloc(sizeof(*ep));

	ep->rail = rail;
	fr_list_init(&ep->conns);
	fake_name_make(rail, fake_port_take_locked(), &ep->name);
	fr_list_push(&fake_world.eps, &ep->node);
	return ep;
}

void fake_ep_close_locked(struct fake_ep *ep)
{
	struct fr_list *node;

	while ((node = fr_list_pop(&ep->conns)) != NULL) {
		struct fake_conn *conn =
			FR_CONTAINER_OF(node, struct fake_conn, node);

		fake_conn_cut_locked(conn, -ECANCELED);
		free(conn);
	}
	fr_list_del(&ep->node);
	free(ep);
}

struct fake_conn *fake_conn_get_locked(struct fake_ep *ep, struct fr_rail *src)
{
	uint64_t id = src == NULL ? 0 : src->id;
	struct fake_conn *conn;

	fr_list_for_each (node, &ep->conns) {
		conn = FR_CONTAINER_OF(node, struct fake_conn, node);
		if (conn->src_id == id) {
			return conn;
		}
	}
	conn = fake_zalloc(sizeof(*conn));
	conn->src_id = id;
	conn->src = src;
	fr_list_init(&conn->pkts);
	fr_list_init(&conn->lost);
	fr_list_push(&ep->conns, &conn->node);
	return conn;
}

void fake_conn_push_locked(struct fake_conn *conn, struct fake_pkt *pkt)
{
	pkt->seq = fake_world.next_seq++;
	fr_list_push(&conn->pkts, &pkt->node);
	conn->cnt++;
}

static void fake_pkt_free(struct fake_pkt *pkt)
{
	fr_list_del(&pkt->node);
	free(pkt->copy);
	free(pkt);
}

void fake_pkt_del_locked(struct fake_conn *conn, struct fake_pkt *pkt)
{
	conn->cnt--;
	fake_pkt_free(pkt);
}

static void fake_count_lost(struct fake_conn *conn)
{
	fake_world.counts.lost++;
	if (conn->src != NULL) {
		conn->src->counts.lost++;
	}
}

void fake_pkt_lose_locked(struct fake_conn *conn, struct fake_pkt *pkt)
{
	fake_count_lost(conn);
	fr_list_init(&pkt->node);
	if (pkt->post != NULL) {
		fr_list_push(&conn->lost, &pkt->node);
	} else {
		fake_pkt_free(pkt);
	}
}

void fake_conn_cut_locked(struct fake_conn *conn, int err)
{
	conn->connected = false;
	fr_list_for_each_safe (node, &conn->pkts) {
		struct fake_pkt *pkt =
			FR_CONTAINER_OF(node, struct fake_pkt, node);

		fr_list_del(&pkt->node);
		conn->cnt--;
		fake_pkt_lose_locked(conn, pkt);
	}
	fr_list_for_each_safe (node, &conn->lost) {
		struct fake_pkt *pkt =
			FR_CONTAINER_OF(node, struct fake_pkt, node);

		fake_post_done_locked(pkt->post, err);
		fake_pkt_free(pkt);
	}
}

static void fake_conn_leave_locked(struct fake_conn *conn)
{
	conn->src = NULL;
	fr_list_for_each_safe (node, &conn->pkts) {
		struct fake_pkt *pkt =
			FR_CONTAINER_OF(node, struct fake_pkt, node);

		if (pkt->post != NULL) {
			fake_pkt_del_locked(conn, pkt);
		}
	}
	fr_list_for_each_safe (node, &conn->lost) {
		fake_pkt_free(FR_CONTAINER_OF(node, struct fake_pkt, node));
	}
	if (conn->cnt == 0) {
		fr_list_del(&conn->node);
		free(conn);
	}
}

void fake_conns_leave_locked(struct fr_rail *src)
{
	fr_list_for_each (node, &fake_world.eps) {
		struct fake_ep *ep =
			FR_CONTAINER_OF(node, struct fake_ep, node);

		fr_list_for_each_safe (pos, &ep->conns) {
			struct fake_conn *conn =
				FR_CONTAINER_OF(pos, struct fake_conn, node);

			if (conn->src == src) {
				fake_conn_leave_locked(conn);
			}
		}
	}
}

void fake_cq_push_locked(struct fr_rail *rail, struct fake_cqe cqe)
{
	struct fake_cqe *entry = fake_zalloc(sizeof(*entry));

	*entry = cqe;
	fr_list_push(&rail->cq, &entry->node);
	rail->cq_cnt++;
	rail->counts.cq_peak = FR_MAX(rail->counts.cq_peak, rail->cq_cnt);
	fake_world.counts.cq_peak =
		FR_MAX(fake_world.counts.cq_peak, rail->cq_cnt);
}

void fake_post_done_locked(struct fake_post *post, int err)
{
	post->pkt = NULL;
	fake_cq_push_locked(post->rail, (struct fake_cqe){.kind = FAKE_CQE_POST,
							  .post = post,
							  .op = post->op,
							  .err = err});
}

/* The post of a packet that was taken, if it waits. */
static void fake_pkt_settle_locked(struct fake_pkt *pkt, int err)
{
	if (pkt->post != NULL) {
		fake_post_done_locked(pkt->post, err);
		pkt->post = NULL;
	}
}

static const void *fake_pkt_source_locked(struct fake_pkt *pkt)
{
	if (pkt->post != NULL &&
	    fake_hash(pkt->post->buf, pkt->bytes) != pkt->post->hash) {
		fake_violation_locked(pkt->post->rail,
				      "a source changed while it was posted");
	}
	return pkt->copy != NULL ? pkt->copy : fake_gpu_alias(pkt->post->buf);
}

static void fake_msg_land_locked(struct fr_rail *rail, struct fake_pkt *pkt,
				 struct fake_recv *recv)
{
	struct fake_cqe cqe = {.kind = FAKE_CQE_RECV, .op = recv->op};
	bool landed = false;

	cqe.err = fake_done_fault_locked(rail, FR_FAKE_RECV_DONE, &landed);
	if (cqe.err == 0 && pkt->bytes > recv->bytes) {
		cqe.err = -EMSGSIZE;
	}
	if (cqe.err == 0) {
		if (pkt->bytes != 0) {
			memcpy(recv->buf, fake_pkt_source_locked(pkt),
			       pkt->bytes);
		}
		cqe.bytes = pkt->bytes;
		rail->counts.recv_bytes += pkt->bytes;
		fake_world.counts.recv_bytes += pkt->bytes;
	}
	fake_cq_push_locked(rail, cqe);
	fr_list_del(&recv->node);
	free(recv);
}

/* *@at: where the bytes are, an alias where they are a GPU's. */
static struct fake_reg *fake_reg_find_locked(const struct fr_rail *rail,
					     const struct fake_pkt *pkt,
					     unsigned access, char **at)
{
	fr_list_for_each (node, &rail->regs) {
		struct fake_reg *reg =
			FR_CONTAINER_OF(node, struct fake_reg, node);
		uint64_t offset = pkt->remote_addr;

		if (reg->key != pkt->key) {
			continue;
		}
		if (rail->conf.virt_addr) {
			offset -= (uintptr_t)reg->base;
		}
		if ((reg->access & access) == 0 || offset > reg->bytes ||
		    pkt->bytes > reg->bytes - offset) {
			return NULL;
		}
		*at = fake_gpu_alias(reg->base + offset);
		return reg;
	}
	return NULL;
}

static bool fake_refuse_locked(struct fr_rail *rail)
{
	rail->counts.refused++;
	fake_world.counts.refused++;
	return false;
}

static void fake_store_locked(struct fr_rail *rail, const struct fake_reg *reg,
			      char *at, const void *from, size_t bytes)
{
	struct fake_unseen *unseen;

	if (!rail->conf.gpu_lags || fake_gpu_alias(reg->base) == reg->base) {
		memcpy(at, from, bytes);
		return;
	}
	unseen = fake_zalloc(sizeof(*unseen) + bytes);
	unseen->to = at;
	unseen->bytes = bytes;
	memcpy(unseen->copy, from, bytes);
	fr_list_push(&rail->unseen, &unseen->node);
}

/* Return: false when the target refuses it. */
static bool fake_read_land_locked(struct fr_rail *rail, struct fake_pkt *pkt)
{
	struct fr_list *node;
	char *at = NULL;

	if (fake_reg_find_locked(rail, pkt, FR_MR_REMOTE_READ, &at) == NULL) {
		return fake_refuse_locked(rail);
	}
	while ((node = fr_list_pop(&rail->unseen)) != NULL) {
		struct fake_unseen *unseen =
			FR_CONTAINER_OF(node, struct fake_unseen, node);

		memcpy(unseen->to, unseen->copy, unseen->bytes);
		free(unseen);
	}
	if (pkt->post != NULL) {
		memcpy(pkt->post->into, at, pkt->bytes);
	}
	rail->counts.read_bytes += pkt->bytes;
	fake_world.counts.read_bytes += pkt->bytes;
	return true;
}

/* Return: false when the target refuses it. */
static bool fake_write_land_locked(struct fr_rail *rail, struct fake_pkt *pkt)
{
	/* What a provider without a true length may leave in the field. */
	size_t bytes =
		rail->conf.quirks.has_write_len ? pkt->bytes : (size_t)0xbadbad;
	const struct fake_reg *reg;
	char *at = NULL;

	if (pkt->kind == FAKE_PKT_WRITE) {
		reg = fake_reg_find_locked(rail, pkt, FR_MR_REMOTE_WRITE, &at);
		if (reg == NULL) {
			return fake_refuse_locked(rail);
		}
		if (pkt->bytes != 0) {
			fake_store_locked(rail, reg, at,
					  fake_pkt_source_locked(pkt),
					  pkt->bytes);
		}
		rail->counts.landed_bytes += pkt->bytes;
		fake_world.counts.landed_bytes += pkt->bytes;
	}
	if (pkt->untold) {
		return true;
	}
	if (rail->conf.cq_data_bytes == 4) {
		pkt->imm = (uint32_t)pkt->imm;
	}
	fake_cq_push_locked(rail, (struct fake_cqe){.kind = FAKE_CQE_WRITE,
						    .imm = pkt->imm,
						    .bytes = bytes});
	return true;
}

/* Return: false when it must wait for a receive buffer. */
static bool fake_deliver_locked(struct fake_ep *ep, struct fake_conn *conn,
				struct fake_pkt *pkt)
{
	struct fr_rail *rail = ep->rail;

	switch (pkt->kind) {
	case FAKE_PKT_MSG:
		if (fr_list_empty(&rail->recvs)) {
			return false;
		}
		fake_msg_land_locked(rail, pkt,
				     FR_CONTAINER_OF(rail->recvs.next,
						     struct fake_recv, node));
		break;
	case FAKE_PKT_WRITE:
	case FAKE_PKT_IMM:
		if (!fake_write_land_locked(rail, pkt)) {
			fake_conn_cut_locked(conn, -ECANCELED);
			return true;
		}
		break;
	case FAKE_PKT_READ:
		if (!fake_read_land_locked(rail, pkt)) {
			fake_conn_cut_locked(conn, -ECANCELED);
			return true;
		}
		break;
	case FAKE_PKT_ERR:
		fake_cq_push_locked(rail,
				    (struct fake_cqe){.kind = FAKE_CQE_ERROR,
						      .err = pkt->err});
		break;
	}
	fake_pkt_settle_locked(pkt, pkt->err);
	fake_pkt_del_locked(conn, pkt);
	return true;
}

static struct fake_pkt *fake_conn_head_locked(struct fake_conn *conn)
{
	struct fr_list *node = conn->pkts.next;

	if (fake_world.unordered) {
		for (uint32_t n = fake_random_below_locked(conn->cnt); n > 0;
		     n--) {
			node = node->next;
		}
	}
	return FR_CONTAINER_OF(node, struct fake_pkt, node);
}

/* The connection whose turn it is; NULL when all are empty or stalled. */
static struct fake_conn *fake_conn_pick_locked(struct fake_ep *ep)
{
	struct fake_conn *best = NULL;
	uint64_t best_seq = 0;
	uint32_t seen = 0;

	fr_list_for_each (node, &ep->conns) {
		struct fake_conn *conn =
			FR_CONTAINER_OF(node, struct fake_conn, node);
		uint64_t seq;
		bool better;

		if (conn->stalled || conn->cnt == 0) {
			continue;
		}
		seq = FR_CONTAINER_OF(conn->pkts.next, struct fake_pkt, node)
			      ->seq;
		seen++;
		better = fake_world.shuffle
				 ? fake_random_below_locked(seen) == 0
				 : seq < best_seq;
		if (best == NULL || better) {
			best = conn;
			best_seq = seq;
		}
	}
	return best;
}

static void fake_ep_progress_locked(struct fake_ep *ep)
{
	uint32_t cq_size = ep->rail->attr.cq_size;
	struct fake_conn *conn;

	if (ep->killed || ep->held) {
		return;
	}
	fr_list_for_each (node, &ep->conns) {
		conn = FR_CONTAINER_OF(node, struct fake_conn, node);
		conn->connected = true;
		conn->stalled = false;
	}
	while ((conn = fake_conn_pick_locked(ep)) != NULL) {
		if (cq_size != 0 && ep->rail->cq_cnt >= cq_size) {
			return; /* resource management: nothing is lost */
		}
		if (fake_world.shuffle && fake_random_below_locked(4) == 0) {
			return;
		}
		if (!fake_deliver_locked(ep, conn,
					 fake_conn_head_locked(conn))) {
			conn->stalled = true;
		}
	}
}

void fake_progress_locked(struct fr_rail *rail)
{
	fake_ep_progress_locked(rail->data);
	if (rail->ctrl != rail->data) {
		fake_ep_progress_locked(rail->ctrl);
	}
}
