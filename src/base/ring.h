/*
 * FIFO of pointers in a ring that doubles when it is full. Order is kept.
 * push and pop are O(1) (push amortised).
 *
 * Threads: one owner, or the owner's lock.
 */
#ifndef FR_BASE_RING_H
#define FR_BASE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_ring {
	void **slot;
	uint32_t head; /* next to pop; runs freely, masked at use */
	uint32_t tail; /* next to push */
	uint32_t size; /* power of two, 0 before the first push */
};

void fr_ring_init(struct fr_ring *ring);
void fr_ring_fini(struct fr_ring *ring);
/* Return: 0, or -ENOMEM when it had to grow and could not (nothing changed). */
int fr_ring_push(struct fr_ring *ring, void *item);
/* Oldest item; NULL when empty. pop takes it out. */
void *fr_ring_peek(const struct fr_ring *ring);
void *fr_ring_pop(struct fr_ring *ring);

static inline bool fr_ring_empty(const struct fr_ring *ring)
{
	return ring->head == ring->tail;
}

static inline uint32_t fr_ring_cnt(const struct fr_ring *ring)
{
	return ring->tail - ring->head;
}

#endif
