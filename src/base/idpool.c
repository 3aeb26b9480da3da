#include "base/idpool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/util.h"

/*
 * Ids below fresh were out at least once. Those that came back wait in a
 * circular queue, oldest first; it is long enough for all of them, so put
 * cannot fail.
 */
struct fr_idpool {
	pthread_mutex_t lock; /* guards all below */
	uint32_t size;
	uint32_t fresh;
	uint32_t used_cnt;
	uint32_t back_head; /* next to go out */
	uint32_t back_cnt;
	uint32_t *back;
	uint64_t *out; /* one bit an id: it is out */
};

int fr_idpool_create(uint32_t size, struct fr_idpool **out)
{
	size_t words = ((size_t)size + 63) / 64;
	struct fr_idpool *pool;
	int ret;

	pool = fr_calloc(1, sizeof(*pool));
	if (pool == NULL) {
		return -ENOMEM;
	}
	pool->size = size;
	/* Not touched until ids come back: zero pages cost nothing. */
	pool->back = fr_calloc(size, sizeof(*pool->back));
	if (pool->back == NULL) {
		ret = -ENOMEM;
		goto err_free_pool;
	}
	pool->out = fr_calloc(words, sizeof(*pool->out));
	if (pool->out == NULL) {
		ret = -ENOMEM;
		goto err_free_back;
	}
	ret = -pthread_mutex_init(&pool->lock, NULL);
	if (ret != 0) {
		goto err_free_out;
	}
	*out = pool;
	return 0;

err_free_out:
	fr_free(pool->out);
err_free_back:
	fr_free(pool->back);
err_free_pool:
	fr_free(pool);
	return ret;
}

void fr_idpool_destroy(struct fr_idpool *pool)
{
	if (pool == NULL) {
		return;
	}
	pthread_mutex_destroy(&pool->lock);
	fr_free(pool->out);
	fr_free(pool->back);
	fr_free(pool);
}

/* Aborts on an id that is handed out twice or comes back twice. */
static void idpool_flip(struct fr_idpool *pool, uint32_t id, bool out)
{
	uint64_t *word = &pool->out[id / 64];
	uint64_t bit = 1ull << (id % 64);

	assert(((*word & bit) != 0) == !out);
	(void)out;
	*word ^= bit;
}

static int64_t idpool_get_locked(struct fr_idpool *pool)
{
	uint32_t id;

	if (pool->fresh < pool->size) {
		id = pool->fresh++;
	} else if (pool->back_cnt > 0) {
		id = pool->back[pool->back_head];
		pool->back_head = pool->back_head + 1 == pool->size
					  ? 0
					  : pool->back_head + 1;
		pool->back_cnt--;
	} else {
		return -1;
	}
	idpool_flip(pool, id, true);
	pool->used_cnt++;
	return id;
}

int64_t fr_idpool_get(struct fr_idpool *pool)
{
	int64_t id;

	pthread_mutex_lock(&pool->lock);
	id = idpool_get_locked(pool);
	pthread_mutex_unlock(&pool->lock);
	return id;
}

static void idpool_put_locked(struct fr_idpool *pool, uint32_t id)
{
	uint64_t tail = (uint64_t)pool->back_head + pool->back_cnt;

	assert(id < pool->size);
	idpool_flip(pool, id, false);
	pool->back[tail >= pool->size ? tail - pool->size : tail] = id;
	pool->back_cnt++;
	pool->used_cnt--;
}

void fr_idpool_put(struct fr_idpool *pool, int64_t id)
{
	if (id == -1) {
		return;
	}
	assert(id >= 0 && id <= UINT32_MAX);
	pthread_mutex_lock(&pool->lock);
	idpool_put_locked(pool, (uint32_t)id);
	pthread_mutex_unlock(&pool->lock);
}

uint32_t fr_idpool_used(struct fr_idpool *pool)
{
	uint32_t cnt;

	pthread_mutex_lock(&pool->lock);
	cnt = pool->used_cnt;
	pthread_mutex_unlock(&pool->lock);
	return cnt;
}
