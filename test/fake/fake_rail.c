/* rail.h over the network in memory. */
#include "fake/fake_world.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

#define FAKE_POLL_BATCHES 16u

int fr_rail_open(const struct fr_rail_attr *attr, struct fr_rail **out)
{
	struct fr_rail *rail = fr_calloc(1, sizeof(*rail));
	int err;

	if (rail == NULL) {
		return -ENOMEM;
	}
	rail->attr = *attr;
	rail->conf = attr->fabric->conf;
	fr_list_init(&rail->recvs);
	fr_list_init(&rail->posts);
	fr_list_init(&rail->cq);
	fr_list_init(&rail->regs);
	fr_list_init(&rail->unseen);

	fake_lock();
	err = fake_call_locked(rail, FR_FAKE_RAIL_OPEN);
	if (err == 0) {
		rail->id = ++fake_world.next_rail_id;
		rail->key_half = (uint64_t)fake_random_locked() << 32;
		rail->ctrl = fake_ep_open_locked(rail);
		rail->data = rail->conf.quirks.split_ep
				     ? fake_ep_open_locked(rail)
				     : rail->ctrl;
		fr_list_push(&fake_world.rails, &rail->node);
	}
	fake_unlock();
	if (err != 0) {
		fr_error("rail %s: endpoint: %s",
			 attr->fabric->conf.nics[attr->nic].name,
			 strerror(-err));
		fr_free(rail);
		return err;
	}
	*out = rail;
	return 0;
}

static void fake_rail_drain_locked(struct fr_rail *rail)
{
	struct fr_list *node;

	while ((node = fr_list_pop(&rail->recvs)) != NULL) {
		free(FR_CONTAINER_OF(node, struct fake_recv, node));
	}
	while ((node = fr_list_pop(&rail->posts)) != NULL) {
		free(FR_CONTAINER_OF(node, struct fake_post, node));
	}
	while ((node = fr_list_pop(&rail->cq)) != NULL) {
		free(FR_CONTAINER_OF(node, struct fake_cqe, node));
	}
	while ((node = fr_list_pop(&rail->unseen)) != NULL) {
		free(FR_CONTAINER_OF(node, struct fake_unseen, node));
	}
	while ((node = fr_list_pop(&rail->regs)) != NULL) {
		free(FR_CONTAINER_OF(node, struct fake_reg, node));
	}
}

void fake_rail_free_locked(struct fr_rail *rail)
{
	fake_ep_close_locked(rail->ctrl);
	if (rail->data != rail->ctrl) {
		fake_ep_close_locked(rail->data);
	}
	/* After its endpoints, which may hold what it sent to itself. */
	fake_conns_leave_locked(rail);
	fake_rail_drain_locked(rail);
	fr_list_del(&rail->node);
	fr_free(rail->peers);
	fr_free(rail);
}

void fr_rail_close(struct fr_rail *rail)
{
	if (rail == NULL) {
		return;
	}
	fake_lock();
	assert(fr_list_empty(&rail->regs));
	fake_rail_free_locked(rail);
	fake_unlock();
}

/* Its records stay until the close, so that it still has its names. */
static void fake_ep_fence_locked(struct fake_ep *ep)
{
	fr_list_for_each (node, &ep->conns) {
		fake_conn_cut_locked(
			FR_CONTAINER_OF(node, struct fake_conn, node),
			-ECANCELED);
	}
	fr_list_del(&ep->node);
}

void fr_rail_fence(struct fr_rail *rail)
{
	fake_lock();
	rail->fenced = true;
	fake_ep_fence_locked(rail->ctrl);
	fake_ep_fence_locked(rail->data);
	fake_conns_leave_locked(rail);
	fake_unlock();
}

int fr_rail_renew_data(struct fr_rail *rail)
{
	int ret;

	fake_lock();
	fake_check_alive_locked(rail);
	assert(rail->data != rail->ctrl);
	ret = fake_call_locked(rail, FR_FAKE_RENEW);
	if (ret == 0) {
		struct fake_ep *old = rail->data;

		rail->data = fake_ep_open_locked(rail);
		fake_ep_close_locked(old);
	}
	fake_unlock();
	while (ret == 0 && (ret = fr_rail_poll(rail)) > 0) {
		ret = 0;
	}
	return ret;
}

void fr_rail_abandon(struct fr_rail *rail)
{
	if (rail == NULL) {
		return;
	}
	fake_lock();
	rail->abandoned = true;
	/* What waits for a target would be read from memory that is the
	 * caller's again. */
	fake_conns_leave_locked(rail);
	fake_unlock();
}

int fr_fake_rail_tclass(const struct fr_rail *rail)
{
	return rail->attr.has_tclass ? rail->attr.tclass : -1;
}

unsigned fr_rail_index(const struct fr_rail *rail)
{
	return rail->attr.index;
}

void *fr_rail_owner(const struct fr_rail *rail)
{
	return rail->attr.owner;
}

const struct fr_nic *fr_rail_nic(const struct fr_rail *rail)
{
	return &rail->conf.nics[rail->attr.nic];
}

const struct fr_quirks *fr_rail_quirks(const struct fr_rail *rail)
{
	return &rail->conf.quirks;
}

struct fr_stats *fr_rail_stats(struct fr_rail *rail)
{
	return &rail->stats;
}

const struct fr_name *fr_rail_name(const struct fr_rail *rail,
				   enum fr_rail_ep ep)
{
	return ep == FR_EP_DATA ? &rail->data->name : &rail->ctrl->name;
}

const char *fr_rail_error_text(const struct fr_rail *rail)
{
	return rail->error_text;
}

static int fake_peer_slot_locked(struct fr_rail *rail, unsigned *slot)
{
	unsigned cnt = rail->peer_cnt == 0 ? 8 : 2 * rail->peer_cnt;
	struct fake_peer *peers;

	for (unsigned i = 0; i < rail->peer_cnt; i++) {
		if (!rail->peers[i].used) {
			*slot = i;
			return 0;
		}
	}
	peers = fr_realloc(rail->peers, cnt * sizeof(*peers));
	if (peers == NULL) {
		return -ENOMEM;
	}
	memset(peers + rail->peer_cnt, 0,
	       (cnt - rail->peer_cnt) * sizeof(*peers));
	*slot = rail->peer_cnt;
	rail->peers = peers;
	rail->peer_cnt = cnt;
	return 0;
}

int fr_rail_peer_add(struct fr_rail *rail, const struct fr_name *name,
		     uint64_t *addr)
{
	unsigned slot = 0;
	int err;

	fake_lock();
	fake_check_alive_locked(rail);
	err = fake_call_locked(rail, FR_FAKE_PEER_ADD);
	if (err == 0 && (name->len != rail->ctrl->name.len ||
			 (rail->conf.name_bytes == 0 &&
			  memcmp(name->bytes, rail->ctrl->name.bytes, 2)))) {
		err = -EINVAL;
	}
	if (err == 0) {
		err = fake_peer_slot_locked(rail, &slot);
	}
	if (err == 0) {
		rail->peers[slot].used = true;
		rail->peers[slot].name = *name;
		*addr = slot;
	}
	fake_unlock();
	return err;
}

bool fr_rail_peer_revoked(const struct fr_rail *rail, uint64_t addr)
{
	(void)rail;
	(void)addr;
	return false;
}

/* Nothing here is shared by peers. */
void fr_rail_peer_gone(struct fr_rail *rail, uint64_t addr)
{
	(void)rail;
	(void)addr;
}

/* Connections here do not hang by themselves. */
bool fr_rail_peer_cut(struct fr_rail *rail, uint64_t addr)
{
	(void)rail;
	(void)addr;
	return false;
}

void fr_rail_peer_closed(struct fr_rail *rail, uint64_t addr)
{
	(void)rail;
	(void)addr;
}

bool fr_rail_is_stuck(const struct fr_rail *rail)
{
	(void)rail;
	return false;
}

void fr_rail_peer_del(struct fr_rail *rail, uint64_t addr)
{
	fake_lock();
	fake_check_alive_locked(rail);
	if (addr >= rail->peer_cnt || !rail->peers[addr].used) {
		fake_violation_locked(rail, "removes a peer that is not in");
	} else {
		rail->peers[addr].used = false;
	}
	fake_unlock();
}

unsigned fr_rail_inflight(const struct fr_rail *rail)
{
	unsigned cnt;

	fake_lock();
	cnt = rail->post_cnt;
	fake_unlock();
	return cnt;
}

static void fake_rail_said(struct fr_rail *rail, int err)
{
	snprintf(rail->error_text, sizeof(rail->error_text), "fake: %s",
		 strerror(-err));
}

/* Checks what a caller can have broken before the done function runs. */
static void fake_post_retire_locked(struct fr_rail *rail,
				    const struct fake_cqe *cqe)
{
	struct fake_post *post = cqe->post;

	if (cqe->err == 0 && post->bytes != 0 &&
	    fake_hash(post->buf, post->bytes) != post->hash) {
		fake_violation_locked(rail,
				      "a source changed before its completion");
	}
	if (cqe->err == 0 && post->into == NULL) {
		fr_stats_add(&rail->stats, FR_STAT_TX_MSGS, 1);
		fr_stats_add(&rail->stats, FR_STAT_TX_BYTES, post->bytes);
	} else if (cqe->err != 0) {
		fr_stats_add(&rail->stats, FR_STAT_TX_ERRORS, 1);
	}
	fr_list_del(&post->node);
	rail->post_cnt--;
	free(post);
}

static bool fake_cq_pop(struct fr_rail *rail, struct fake_cqe *out)
{
	struct fr_list *node;

	fake_lock();
	node = fr_list_pop(&rail->cq);
	if (node != NULL) {
		struct fake_cqe *cqe =
			FR_CONTAINER_OF(node, struct fake_cqe, node);

		*out = *cqe;
		rail->cq_cnt--;
		free(cqe);
		if (out->kind == FAKE_CQE_POST) {
			fake_post_retire_locked(rail, out);
		}
		if (out->err != 0) {
			fake_rail_said(rail, out->err);
		}
	}
	fake_unlock();
	return node != NULL;
}

static void fake_cqe_dispatch(struct fr_rail *rail, const struct fake_cqe *cqe)
{
	const struct fr_rail_ops *ops = rail->attr.ops;

	switch (cqe->kind) {
	case FAKE_CQE_POST:
		cqe->op->done(cqe->op, rail, cqe->err, 0);
		break;
	case FAKE_CQE_RECV:
		if (cqe->err == 0) {
			fr_stats_add(&rail->stats, FR_STAT_RX_MSGS, 1);
			fr_stats_add(&rail->stats, FR_STAT_RX_BYTES,
				     cqe->bytes);
		}
		cqe->op->done(cqe->op, rail, cqe->err, cqe->bytes);
		break;
	case FAKE_CQE_WRITE:
		fr_stats_add(&rail->stats, FR_STAT_RX_MSGS, 1);
		ops->remote_write(rail->attr.owner, rail, cqe->imm, cqe->bytes);
		break;
	case FAKE_CQE_ERROR:
		ops->remote_error(rail->attr.owner, rail, cqe->err);
		break;
	}
}

int fr_rail_poll(struct fr_rail *rail)
{
	uint32_t batch = rail->attr.cq_read_cnt;
	int total = 0;
	int err;

	fake_lock();
	fake_check_alive_locked(rail);
	err = fake_call_locked(rail, FR_FAKE_POLL);
	rail->polling = err == 0;
	rail->poller = pthread_self();
	fake_unlock();
	if (err != 0) {
		fr_error("rail %s: completion queue: %s",
			 fr_rail_nic(rail)->name, strerror(-err));
		return err;
	}
	for (unsigned i = 0; i < FAKE_POLL_BATCHES; i++) {
		struct fake_cqe cqe;
		uint32_t cnt = 0;

		fake_lock();
		fake_progress_locked(rail);
		fake_unlock();
		while (cnt < batch && fake_cq_pop(rail, &cqe)) {
			fake_cqe_dispatch(rail, &cqe);
			cnt++;
		}
		total += (int)cnt;
		if (cnt == 0) {
			break;
		}
	}
	fake_lock();
	rail->polling = false;
	fake_unlock();
	return total;
}
