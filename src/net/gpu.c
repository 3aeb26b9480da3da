#include "net/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/xfer.h"

static void gpu_free_parts(struct fr_gpu *gpu)
{
	fr_freelist_destroy(gpu->flush_pool);
	fr_freelist_destroy(gpu->copy_pool);
	fr_free(gpu->mem);
	fr_free(gpu);
}

static int gpu_open_pools(struct fr_gpu *gpu)
{
	struct fr_freelist_attr attr = {
		.elem_bytes = sizeof(struct fr_copy),
		.align = 64,
		.grow_cnt = 16,
	};
	int ret;

	ret = fr_freelist_create(&attr, &gpu->copy_pool);
	if (ret != 0) {
		return ret;
	}
	attr.elem_bytes = sizeof(struct fr_flush_req);
	return fr_freelist_create(&attr, &gpu->flush_pool);
}

static int gpu_open_mem(struct fr_set *set, struct fr_gpu *gpu)
{
	size_t bytes = (size_t)FR_FLUSH_BYTES * FR_MAX_RAILS;

	gpu->mem = fr_aligned_calloc(4096, 4096);
	if (gpu->mem == NULL) {
		return -ENOMEM;
	}
	return fr_mr_get(set->mrs, gpu->mem, bytes, FR_MR_LOCAL | FR_MR_READ,
			 &gpu->mem_mr);
}

/* Last: an address that was entered is there until its rail closes. */
static int gpu_open_self(struct fr_set *set, struct fr_gpu *gpu)
{
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		struct fr_rail *rail = set->rail[i];
		int ret = fr_rail_peer_add(rail, fr_rail_name(rail, FR_EP_DATA),
					   &gpu->self[i]);

		if (ret != 0) {
			while (i-- > 0) {
				fr_rail_peer_del(set->rail[i], gpu->self[i]);
			}
			return ret;
		}
	}
	return 0;
}

int fr_gpu_open_locked(struct fr_set *set)
{
	struct fr_gpu *gpu;
	int ret;

	fr_lock_assert(&set->lock);
	if (set->gpu != NULL) {
		return 0;
	}
	gpu = fr_calloc(1, sizeof(*gpu));
	if (gpu == NULL) {
		return -ENOMEM;
	}
	fr_list_init(&gpu->copies);
	fr_list_init(&gpu->flushes);
	ret = gpu_open_pools(gpu);
	if (ret == 0) {
		ret = gpu_open_mem(set, gpu);
	}
	if (ret == 0) {
		ret = gpu_open_self(set, gpu);
	}
	if (ret != 0) {
		fr_mr_put(set->mrs, gpu->mem_mr);
		gpu_free_parts(gpu);
		return ret;
	}
	set->gpu = gpu;
	return 0;
}

void fr_gpu_free(struct fr_set *set)
{
	if (set->gpu != NULL) {
		gpu_free_parts(set->gpu);
		set->gpu = NULL;
	}
}

/* The receive of @copy, as long as it waits for it. */
static struct fr_rx_entry *copy_entry(const struct fr_copy *copy,
				      struct fr_comm **out)
{
	struct fr_comm *comm = fr_set_comm(copy->set, copy->comm);
	struct fr_rx_entry *entry;

	if (comm == NULL || comm->is_send || comm->nonce != copy->nonce ||
	    comm->state != FR_COMM_OPEN) {
		return NULL;
	}
	entry = fr_msgwin_find(&comm->rx.win, copy->seq);
	if (entry == NULL || !fr_rx_open(entry) || !entry->copying) {
		return NULL;
	}
	*out = comm;
	return entry;
}

static void copy_put(struct fr_copy *copy)
{
	fr_list_del(&copy->node);
	fr_slot_put(copy->slot);
	fr_freelist_put(copy->set->gpu->copy_pool, copy);
}

static void copy_failed(struct fr_copy *copy, const char *why)
{
	struct fr_comm *comm;
	struct fr_rx_entry *entry = copy_entry(copy, &comm);

	if (entry != NULL) {
		fr_error("message %u from %s: cannot be written to the GPU: %s",
			 copy->seq, comm->link->peer_text, why);
		comm->err = -EIO;
		fr_recv_fail(comm, entry, -EIO);
	}
	copy_put(copy);
}

static void copy_done(struct fr_op *op, struct fr_rail *rail, int err,
		      size_t bytes)
{
	struct fr_copy *copy = FR_CONTAINER_OF(op, struct fr_copy, op);

	(void)bytes;
	copy->mr->flying--;
	if (fr_unlikely(err != 0)) {
		copy_failed(copy, fr_rail_error_text(rail));
	} else {
		copy_put(copy);
	}
}

static uint64_t copy_imm(const struct fr_copy *copy,
			 const struct fr_rx_entry *entry)
{
	struct fr_imm imm = {
		.comm = copy->comm,
		.seq = (uint16_t)(copy->seq & ((1u << FR_IMM_SEQ_BITS) - 1)),
		.nseg = 1,
		.rkey = fr_imm_grant(fr_mr_key(entry->mr->mr, 0), copy->seq),
		.len = copy->bytes == entry->len ? FR_IMM_LEN_FULL
						 : copy->bytes,
	};

	return fr_imm_pack(&imm, copy->set->imm_bytes);
}

static unsigned copy_rail(const struct fr_copy *copy)
{
	return copy->seq % copy->set->rail_cnt;
}

/* False: the rail said EAGAIN, or is full. Else the copy flies, or is gone. */
static bool copy_post(struct fr_copy *copy)
{
	struct fr_set *set = copy->set;
	unsigned i = copy_rail(copy);
	struct fr_comm *comm;
	struct fr_rx_entry *entry = copy_entry(copy, &comm);
	int ret;

	if (entry == NULL) {
		copy_put(copy);
		return true;
	}
	copy->op.done = copy_done;
	copy->mr = entry->mr;
	ret = fr_rail_write(set->rail[i], set->gpu->self[i], copy->slot->bytes,
			    copy->bytes, fr_mr_desc(copy->slot->mr, i),
			    fr_mr_remote_addr(entry->mr->mr, entry->buf),
			    fr_mr_key(entry->mr->mr, i), copy_imm(copy, entry),
			    set->conf->completion == FR_COMPLETION_DELIVERY,
			    &copy->op);
	if (ret == -EAGAIN) {
		return false;
	}
	fr_list_del(&copy->node);
	if (ret != 0) {
		copy_failed(copy, strerror(-ret));
	} else {
		entry->mr->flying++;
	}
	return true;
}

/* The number of the receive, which lies in its comm's window. */
static uint32_t entry_seq(const struct fr_comm *comm,
			  const struct fr_rx_entry *entry)
{
	uint32_t seq = comm->rx.win.win.base;

	while (fr_msgwin_at(&comm->rx.win, seq) != entry) {
		seq++;
	}
	return seq;
}

void fr_gpu_copy(struct fr_comm *comm, struct fr_rx_entry *entry,
		 const void *payload, uint32_t bytes)
{
	struct fr_set *set = comm->set;
	struct fr_copy *copy = fr_freelist_get(set->gpu->copy_pool);
	struct fr_slot *slot = fr_slot_get(set, bytes);

	if (copy == NULL || slot == NULL) {
		if (copy != NULL) {
			fr_freelist_put(set->gpu->copy_pool, copy);
		}
		fr_slot_put(slot);
		fr_link_fail(comm->link, -ECONNRESET,
			     "out of memory for its early messages");
		return;
	}
	memcpy(slot->bytes, payload, bytes);
	copy->set = set;
	copy->slot = slot;
	copy->comm = comm->id;
	copy->nonce = comm->nonce;
	copy->seq = entry_seq(comm, entry);
	copy->bytes = bytes;
	copy->refused = 0;
	entry->copying = true;
	comm->rx.copying++;
	fr_list_push(&set->gpu->copies, &copy->node);
	fr_gpu_post(set);
}

void fr_gpu_post(struct fr_set *set)
{
	struct fr_gpu *gpu = set->gpu;

	while (!fr_list_empty(&gpu->copies) &&
	       copy_post(FR_CONTAINER_OF(gpu->copies.next, struct fr_copy,
					 node))) {
	}
	fr_list_for_each_safe (pos, &gpu->flushes) {
		fr_flush_post(
			FR_CONTAINER_OF(pos, struct fr_flush_req, waiting));
	}
}

/* A mask: these had room for us since the last tick. */
static uint32_t rails_with_room(struct fr_set *set)
{
	uint32_t rails = 0;

	for (unsigned i = 0; i < set->rail_cnt; i++) {
		const struct fr_stats *stats = fr_rail_stats(set->rail[i]);
		uint64_t ended = fr_stats_get(stats, FR_STAT_TX_MSGS) +
				 fr_stats_get(stats, FR_STAT_TX_ERRORS);

		if (ended != set->gpu->ended[i] ||
		    fr_rail_inflight(set->rail[i]) == 0) {
			rails |= FR_BIT(i);
		}
		set->gpu->ended[i] = ended;
	}
	return rails;
}

/* The first one is what was refused: the others wait behind it. With it go
 * those of its rail. */
static void copies_tick(struct fr_gpu *gpu, uint32_t room)
{
	struct fr_copy *first =
		FR_CONTAINER_OF(gpu->copies.next, struct fr_copy, node);
	unsigned rail;
	char why[64];

	if (fr_list_empty(&gpu->copies)) {
		return;
	}
	rail = copy_rail(first);
	if ((room & FR_BIT(rail)) == 0 ||
	    ++first->refused < FR_GPU_REFUSED_TICKS) {
		return;
	}
	snprintf(why, sizeof(why), FR_GPU_REFUSES, rail);
	fr_list_for_each_safe (pos, &gpu->copies) {
		struct fr_copy *copy =
			FR_CONTAINER_OF(pos, struct fr_copy, node);

		if (copy_rail(copy) == rail) {
			copy_failed(copy, why);
		}
	}
}

void fr_gpu_tick(struct fr_set *set)
{
	struct fr_gpu *gpu = set->gpu;
	uint32_t room = rails_with_room(set);

	copies_tick(gpu, room);
	fr_list_for_each_safe (pos, &gpu->flushes) {
		fr_flush_tick(
			FR_CONTAINER_OF(pos, struct fr_flush_req, waiting),
			room);
	}
}
