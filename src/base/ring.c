#include "base/ring.h"

#include <errno.h>

#include "base/alloc.h"

#define RING_FIRST_SIZE 16u
#define RING_MAX_SIZE (1u << 31)

void fr_ring_init(struct fr_ring *ring)
{
	*ring = (struct fr_ring){0};
}

void fr_ring_fini(struct fr_ring *ring)
{
	fr_free(ring->slot);
	*ring = (struct fr_ring){0};
}

static int ring_grow(struct fr_ring *ring)
{
	uint32_t cnt = fr_ring_cnt(ring);
	uint32_t size;
	void **slot;

	if (ring->size >= RING_MAX_SIZE) {
		return -ENOMEM;
	}
	size = ring->size == 0 ? RING_FIRST_SIZE : 2 * ring->size;
	slot = fr_calloc(size, sizeof(*slot));
	if (slot == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		slot[i] = ring->slot[(ring->head + i) & (ring->size - 1)];
	}
	fr_free(ring->slot);
	ring->slot = slot;
	ring->size = size;
	ring->head = 0;
	ring->tail = cnt;
	return 0;
}

int fr_ring_push(struct fr_ring *ring, void *item)
{
	if (fr_ring_cnt(ring) == ring->size) {
		int ret = ring_grow(ring);

		if (ret != 0) {
			return ret;
		}
	}
	ring->slot[ring->tail++ & (ring->size - 1)] = item;
	return 0;
}

void *fr_ring_peek(const struct fr_ring *ring)
{
	if (fr_ring_empty(ring)) {
		return NULL;
	}
	return ring->slot[ring->head & (ring->size - 1)];
}

void *fr_ring_pop(struct fr_ring *ring)
{
	if (fr_ring_empty(ring)) {
		return NULL;
	}
	return ring->slot[ring->head++ & (ring->size - 1)];
}
