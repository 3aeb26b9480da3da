#include "fabric/mr.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/util.h"
#include "fabric/dmabuf.h"
#include "fabric/mr_priv.h"

#define MR_ACCESS_ALL                                                          \
	(FR_MR_LOCAL | FR_MR_REMOTE_WRITE | FR_MR_READ | FR_MR_REMOTE_READ)

/*
 * Shared registrations in a vector sorted by base. Intervals may overlap and
 * nest; max_end, the largest end up to and including a slot, says where a walk
 * to the left can stop.
 */
struct mr_slot {
	uintptr_t base;
	uintptr_t last; /* last byte */
	uintptr_t max_last;
	struct fr_mr *mr;
};

struct fr_mr_cache {
	struct fr_lock lock; /* guards all below, and opening and closing */
	struct mr_slot *slot;
	unsigned slot_cnt;
	unsigned slot_room;
	unsigned live;
	struct fr_list all; /* fr_mr.node */
	struct fr_mr_keys keys;
	uintptr_t page;
	bool share;
	unsigned rail_cnt;
	struct fr_rail *rail[FR_MAX_RAILS];
};

int fr_mr_cache_create(struct fr_rail *const *rails, unsigned cnt, bool share,
		       struct fr_mr_cache **out)
{
	struct fr_mr_cache *cache;
	int ret;

	assert(cnt > 0 && cnt <= FR_MAX_RAILS);
	cache = fr_calloc(1, sizeof(*cache));
	if (cache == NULL) {
		return -ENOMEM;
	}
	memcpy(cache->rail, rails, cnt * sizeof(*rails));
	cache->rail_cnt = cnt;
	cache->share = share;
	cache->page = (uintptr_t)sysconf(_SC_PAGESIZE);
	ret = fr_mr_keys_init(&cache->keys, rails, cnt);
	if (ret != 0) {
		fr_free(cache);
		return ret;
	}
	fr_list_init(&cache->all);
	fr_lock_init(&cache->lock);
	*out = cache;
	return 0;
}

static void cache_free(struct fr_mr_cache *cache, bool unregister)
{
	struct fr_list *node;

	while ((node = fr_list_pop(&cache->all)) != NULL) {
		struct fr_mr *mr = FR_CONTAINER_OF(node, struct fr_mr, node);

		if (unregister) {
			fr_mr_unregister(&cache->keys, cache->rail,
					 cache->rail_cnt, mr);
		}
		fr_free(mr);
	}
	fr_mr_keys_fini(&cache->keys);
	fr_lock_fini(&cache->lock);
	fr_free(cache->slot);
	fr_free(cache);
}

void fr_mr_cache_destroy(struct fr_mr_cache *cache)
{
	if (cache != NULL) {
		cache_free(cache, true);
	}
}

void fr_mr_cache_abandon(struct fr_mr_cache *cache)
{
	if (cache != NULL) {
		cache_free(cache, false);
	}
}

/* First slot whose base is above @base. */
static unsigned slot_after_locked(const struct fr_mr_cache *cache,
				  uintptr_t base)
{
	unsigned lo = 0, hi = cache->slot_cnt;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;

		if (cache->slot[mid].base <= base) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

/* Equal access only: who holds a registration for sending must not keep the
 * peer's right to write alive. Device memory may be another allocation's by now
 * although its registration lives. */
static bool mr_serves(const struct fr_mr *mr, const struct fr_mr *want)
{
	return mr->access == want->access && mr->kind == want->kind &&
	       mr->gpu.device == want->gpu.device &&
	       mr->gpu.alloc_id == want->gpu.alloc_id;
}

static struct fr_mr *cache_find_locked(const struct fr_mr_cache *cache,
				       const struct fr_mr *want)
{
	uintptr_t last = want->base + (want->bytes - 1);
	unsigned i = slot_after_locked(cache, want->base);

	while (i > 0 && cache->slot[i - 1].max_last >= last) {
		const struct mr_slot *slot = &cache->slot[--i];

		if (slot->last >= last && mr_serves(slot->mr, want)) {
			return slot->mr;
		}
	}
	return NULL;
}

/* The slot at @from is another one than before. Whatever follows one that keeps
 * its maximum keeps it, too. */
static void cache_fix_max_locked(struct fr_mr_cache *cache, unsigned from)
{
	for (unsigned i = from; i < cache->slot_cnt; i++) {
		struct mr_slot *slot = &cache->slot[i];
		uintptr_t max = i == 0 ? slot->last
				       : FR_MAX(slot->last,
						cache->slot[i - 1].max_last);

		if (i > from && slot->max_last == max) {
			return;
		}
		slot->max_last = max;
	}
}

static int cache_reserve_locked(struct fr_mr_cache *cache)
{
	unsigned room = cache->slot_room == 0 ? 16 : 2 * cache->slot_room;
	struct mr_slot *grown;

	if (cache->slot_cnt < cache->slot_room) {
		return 0;
	}
	grown = fr_realloc(cache->slot, room * sizeof(*grown));
	if (grown == NULL) {
		return -ENOMEM;
	}
	cache->slot = grown;
	cache->slot_room = room;
	return 0;
}

/* The room was reserved. */
static void cache_insert_locked(struct fr_mr_cache *cache, struct fr_mr *mr)
{
	unsigned at = slot_after_locked(cache, mr->base);

	memmove(&cache->slot[at + 1], &cache->slot[at],
		(cache->slot_cnt - at) * sizeof(*cache->slot));
	cache->slot[at].base = mr->base;
	cache->slot[at].last = mr->base + (mr->bytes - 1);
	cache->slot[at].mr = mr;
	cache->slot_cnt++;
	cache_fix_max_locked(cache, at);
}

static void cache_remove_locked(struct fr_mr_cache *cache,
				const struct fr_mr *mr)
{
	unsigned at = slot_after_locked(cache, mr->base);

	while (cache->slot[at - 1].mr != mr) {
		at--;
		assert(at > 0);
	}
	at--;
	cache->slot_cnt--;
	memmove(&cache->slot[at], &cache->slot[at + 1],
		(cache->slot_cnt - at) * sizeof(*cache->slot));
	cache_fix_max_locked(cache, at);
}

static int cache_register_locked(struct fr_mr_cache *cache,
				 const struct fr_mr *want, struct fr_mr **out)
{
	struct fr_mr *mr;
	int ret;

	fr_lock_assert(&cache->lock);
	ret = cache_reserve_locked(cache);
	if (ret != 0) {
		return ret;
	}
	mr = fr_calloc(1, sizeof(*mr));
	if (mr == NULL) {
		return -ENOMEM;
	}
	*mr = *want;
	mr->refs = 1;
	ret = fr_mr_register(&cache->keys, cache->rail, cache->rail_cnt, mr);
	if (ret != 0) {
		fr_free(mr);
		return ret;
	}
	if (mr->shared) {
		cache_insert_locked(cache, mr);
	}
	fr_list_push(&cache->all, &mr->node);
	cache->live++;
	*out = mr;
	return 0;
}

/* Finds or makes what @want describes. */
static int cache_get(struct fr_mr_cache *cache, const struct fr_mr *want,
		     struct fr_mr **out)
{
	struct fr_mr *mr = NULL;
	int ret = 0;

	fr_lock_take(&cache->lock);
	if (want->shared) {
		mr = cache_find_locked(cache, want);
	}
	if (mr != NULL) {
		mr->refs++;
	} else {
		ret = cache_register_locked(cache, want, &mr);
	}
	fr_lock_drop(&cache->lock);
	if (ret == 0) {
		*out = mr;
	}
	return ret;
}

static bool range_is_bad(const void *addr, size_t bytes, unsigned access)
{
	return bytes == 0 || (uintptr_t)addr + (bytes - 1) < (uintptr_t)addr ||
	       (access & ~MR_ACCESS_ALL) != 0 || access == 0;
}

int fr_mr_get(struct fr_mr_cache *cache, void *addr, size_t bytes,
	      unsigned access, struct fr_mr **out)
{
	uintptr_t base = (uintptr_t)addr;
	uintptr_t last = base + (bytes - 1);
	struct fr_mr want = {.access = access, .shared = cache->share};

	if (range_is_bad(addr, bytes, access)) {
		return -EINVAL;
	}
	/* What a peer may reach ends where its owner said. */
	if (cache->share &&
	    (access & (FR_MR_REMOTE_WRITE | FR_MR_REMOTE_READ)) == 0) {
		base &= ~(cache->page - 1);
		last |= cache->page - 1;
	}
	want.base = base;
	want.bytes = last - base + 1;
	return cache_get(cache, &want, out);
}

static int cache_check_gpu(const struct fr_mr_cache *cache, bool as_dmabuf)
{
	for (unsigned i = 0; i < cache->rail_cnt; i++) {
		const struct fr_nic *nic = cache->rail[i]->nic;

		if (as_dmabuf ? !nic->gpu_dmabuf : !nic->gpu) {
			fr_error_limited(
				"%s does not take memory of a GPU%s: %s",
				nic->name, as_dmabuf ? " as a dma-buf" : "",
				fr_fabric_gpu_why(cache->rail[i]->fabric));
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

int fr_mr_get_gpu(struct fr_mr_cache *cache, void *addr, size_t bytes,
		  unsigned access, const struct fr_mr_dmabuf *dmabuf,
		  struct fr_mr **out)
{
	struct fr_mr want = {
		.base = (uintptr_t)addr,
		.bytes = bytes,
		.access = access,
		.kind = dmabuf != NULL ? FR_MR_DMABUF : FR_MR_GPU,
		.shared = cache->share && dmabuf == NULL,
	};
	int ret;

	if (range_is_bad(addr, bytes, access)) {
		return -EINVAL;
	}
	ret = cache_check_gpu(cache, dmabuf != NULL);
	if (ret == 0 && dmabuf != NULL) {
		want.dmabuf = *dmabuf;
		ret = fr_dmabuf_check(dmabuf->fd, dmabuf->offset, bytes);
	}
	if (ret != 0) {
		return ret;
	}
	ret = fr_cuda_find(addr, bytes, &want.gpu);
	if (ret == -EINVAL) {
		fr_error_limited("%zu bytes at %p are not memory of one GPU",
				 bytes, addr);
	}
	return ret != 0 ? ret : cache_get(cache, &want, out);
}

void fr_mr_put(struct fr_mr_cache *cache, struct fr_mr *mr)
{
	if (mr == NULL) {
		return;
	}
	fr_lock_take(&cache->lock);
	assert(mr->refs > 0);
	if (--mr->refs > 0) {
		fr_lock_drop(&cache->lock);
		return;
	}
	if (mr->shared) {
		cache_remove_locked(cache, mr);
	}
	fr_list_del(&mr->node);
	cache->live--;
	fr_mr_unregister(&cache->keys, cache->rail, cache->rail_cnt, mr);
	fr_lock_drop(&cache->lock);
	fr_free(mr);
}

unsigned fr_mr_cache_live(struct fr_mr_cache *cache)
{
	unsigned live;

	fr_lock_take(&cache->lock);
	live = cache->live;
	fr_lock_drop(&cache->lock);
	return live;
}
