/* mr.h over the network in memory: one registration a rail, shared while it
 * lives. */
#include "fake/fake_world.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/conf.h"
#include "base/log.h"
#include "fake/fake_gpu.h"

#define FAKE_PAGE_BYTES 4096u

struct fr_mr {
	struct fr_list node; /* in its cache */
	char *base;
	size_t bytes;
	unsigned access;
	unsigned refs;
	bool virt_addr;
	bool exact;		  /* serves nobody else */
	struct fake_gpu_info gpu; /* zero: the host's */
	struct fake_reg *regs[FR_MAX_RAILS];
};

/* Guarded by the world's lock. */
struct fr_mr_cache {
	struct fr_rail *rails[FR_MAX_RAILS];
	unsigned cnt;
	bool share;
	struct fr_list mrs;
	unsigned live;
};

int fr_mr_cache_create(struct fr_rail *const *rails, unsigned cnt, bool share,
		       struct fr_mr_cache **out)
{
	struct fr_mr_cache *cache;

	assert(cnt >= 1 && cnt <= FR_MAX_RAILS);
	cache = fr_calloc(1, sizeof(*cache));
	if (cache == NULL) {
		return -ENOMEM;
	}
	memcpy(cache->rails, rails, cnt * sizeof(rails[0]));
	cache->cnt = cnt;
	cache->share = share;
	fr_list_init(&cache->mrs);
	*out = cache;
	return 0;
}

static void fake_reg_del_locked(struct fake_reg *reg)
{
	if (reg != NULL) {
		fr_list_del(&reg->node);
		free(reg);
	}
}

static void fake_mr_free_locked(struct fr_mr_cache *cache, struct fr_mr *mr,
				bool close)
{
	for (unsigned i = 0; close && i < cache->cnt; i++) {
		fake_reg_del_locked(mr->regs[i]);
	}
	fr_list_del(&mr->node);
	cache->live--;
	fr_free(mr);
}

static void fake_cache_free(struct fr_mr_cache *cache, bool close)
{
	if (cache == NULL) {
		return;
	}
	fake_lock();
	while (!fr_list_empty(&cache->mrs)) {
		fake_mr_free_locked(
			cache,
			FR_CONTAINER_OF(cache->mrs.next, struct fr_mr, node),
			close);
	}
	fake_unlock();
	fr_free(cache);
}

void fr_mr_cache_destroy(struct fr_mr_cache *cache)
{
	fake_cache_free(cache, true);
}

void fr_mr_cache_abandon(struct fr_mr_cache *cache)
{
	fake_cache_free(cache, false);
}

static struct fr_mr *fake_mr_find_locked(const struct fr_mr_cache *cache,
					 const struct fr_mr *want)
{
	fr_list_for_each (node, &cache->mrs) {
		struct fr_mr *mr = FR_CONTAINER_OF(node, struct fr_mr, node);

		if (!mr->exact && mr->access == want->access &&
		    mr->gpu.id == want->gpu.id && want->base >= mr->base &&
		    want->base + want->bytes <= mr->base + mr->bytes) {
			return mr;
		}
	}
	return NULL;
}

static struct fake_reg *fake_reg_new_locked(struct fr_rail *rail,
					    const struct fr_mr *mr)
{
	struct fake_reg *reg = fake_zalloc(sizeof(*reg));

	reg->rail = rail;
	reg->key = ++rail->key_next;
	if (!rail->conf.prov_keys) {
		reg->key |= rail->key_half;
	}
	reg->base = mr->base;
	reg->bytes = mr->bytes;
	reg->access = mr->access;
	fr_list_push(&rail->regs, &reg->node);
	return reg;
}

static int fake_mr_open_locked(struct fr_mr_cache *cache, struct fr_mr *mr)
{
	for (unsigned i = 0; i < cache->cnt; i++) {
		int err = fake_call_locked(cache->rails[i], FR_FAKE_MR_REG);

		if (err != 0) {
			while (i-- > 0) {
				fake_reg_del_locked(mr->regs[i]);
			}
			return err;
		}
		mr->regs[i] = fake_reg_new_locked(cache->rails[i], mr);
	}
	mr->virt_addr = cache->rails[0]->conf.virt_addr;
	mr->refs = 1;
	fr_list_push(&cache->mrs, &mr->node);
	cache->live++;
	return 0;
}

static int fake_mr_get(struct fr_mr_cache *cache, const struct fr_mr *want,
		       struct fr_mr **out)
{
	struct fr_mr *mr = NULL;
	int err = 0;

	fake_lock();
	if (!want->exact) {
		mr = fake_mr_find_locked(cache, want);
	}
	if (mr != NULL) {
		mr->refs++;
		goto unlock;
	}
	mr = fr_calloc(1, sizeof(*mr));
	if (mr == NULL) {
		err = -ENOMEM;
		goto unlock;
	}
	*mr = *want;
	fr_list_init(&mr->node);
	err = fake_mr_open_locked(cache, mr);
	if (err != 0) {
		fr_free(mr);
	}
unlock:
	fake_unlock();
	if (err != 0 && err != -ENOMEM) {
		fr_error("registration of %zu bytes at %p: %s", want->bytes,
			 (void *)want->base, strerror(-err));
	}
	if (err == 0) {
		*out = mr;
	}
	return err;
}

int fr_mr_get(struct fr_mr_cache *cache, void *addr, size_t bytes,
	      unsigned access, struct fr_mr **out)
{
	uintptr_t first = (uintptr_t)addr;
	uintptr_t past = first + bytes;
	struct fr_mr want = {.access = access, .exact = !cache->share};

	if (bytes == 0 || past < first || access == 0) {
		return -EINVAL;
	}
	if (cache->share &&
	    (access & (FR_MR_REMOTE_WRITE | FR_MR_REMOTE_READ)) == 0) {
		first &= ~(uintptr_t)(FAKE_PAGE_BYTES - 1);
		past = (uintptr_t)fr_round_up(past, FAKE_PAGE_BYTES);
	}
	want.base = (char *)first;
	want.bytes = past - first;
	return fake_mr_get(cache, &want, out);
}

static bool fake_takes_gpu(const struct fr_mr_cache *cache, bool as_dmabuf)
{
	for (unsigned i = 0; i < cache->cnt; i++) {
		const struct fr_nic *nic = fr_rail_nic(cache->rails[i]);

		if (as_dmabuf ? !nic->gpu_dmabuf : !nic->gpu) {
			return false;
		}
	}
	return true;
}

int fr_mr_get_gpu(struct fr_mr_cache *cache, void *addr, size_t bytes,
		  unsigned access, const struct fr_mr_dmabuf *dmabuf,
		  struct fr_mr **out)
{
	struct fr_mr want = {
		.base = addr,
		.bytes = bytes,
		.access = access,
		.exact = !cache->share || dmabuf != NULL,
	};

	if (bytes == 0 || (uintptr_t)addr + bytes < (uintptr_t)addr ||
	    access == 0) {
		return -EINVAL;
	}
	if (!fake_takes_gpu(cache, dmabuf != NULL)) {
		fr_error("no memory of a GPU here");
		return -EOPNOTSUPP;
	}
	if (dmabuf != NULL && fcntl(dmabuf->fd, F_GETFD) == -1) {
		fr_error("no descriptor: %d", dmabuf->fd);
		return -EBADF;
	}
	if (fake_gpu_find(addr, &want.gpu) != 0) {
		fr_error("no memory of a GPU: %p", addr);
		return -EINVAL;
	}
	return fake_mr_get(cache, &want, out);
}

void fr_mr_put(struct fr_mr_cache *cache, struct fr_mr *mr)
{
	if (mr == NULL) {
		return;
	}
	fake_lock();
	for (unsigned i = 0; i < cache->cnt; i++) {
		fake_check_owner_locked(cache->rails[i], FR_FAKE_MR_REG);
	}
	if (--mr->refs == 0) {
		fake_mr_free_locked(cache, mr, true);
	}
	fake_unlock();
}

void *fr_mr_desc(const struct fr_mr *mr, unsigned rail)
{
	return mr->regs[rail];
}

uint64_t fr_mr_key(const struct fr_mr *mr, unsigned rail)
{
	return mr->regs[rail]->key;
}

uint64_t fr_mr_remote_addr(const struct fr_mr *mr, const void *ptr)
{
	const char *p = ptr;

	return mr->virt_addr ? (uintptr_t)p : (uint64_t)(p - mr->base);
}

unsigned fr_mr_cache_live(struct fr_mr_cache *cache)
{
	unsigned live;

	fake_lock();
	live = cache->live;
	fake_unlock();
	return live;
}
