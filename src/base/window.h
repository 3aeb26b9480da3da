/*
 * Sliding window over 32-bit sequence numbers, held in a ring of slots.
 *
 *     retired | base ... live ... next | not yet handed out
 *             |<------- <= size ------>|
 *
 * Pure arithmetic on a struct the caller owns; numbers run over 2^32 and are
 * masked at use, so full and empty never look alike. All calls are O(1).
 */
#ifndef FR_BASE_WINDOW_H
#define FR_BASE_WINDOW_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct fr_window {
	uint32_t base; /* lowest number that is not retired */
	uint32_t next; /* number the next push gets */
	uint32_t size; /* slots, a power of two, at most 512 */
};

static inline void fr_window_init(struct fr_window *w, uint32_t size,
				  uint32_t first)
{
	assert(size != 0 && (size & (size - 1)) == 0 && size <= 512);
	w->base = first;
	w->next = first;
	w->size = size;
}

static inline uint32_t fr_window_used(const struct fr_window *w)
{
	return w->next - w->base;
}

static inline uint32_t fr_window_room(const struct fr_window *w)
{
	return w->size - fr_window_used(w);
}

static inline uint32_t fr_window_slot(const struct fr_window *w, uint32_t seq)
{
	return seq & (w->size - 1);
}

static inline bool fr_window_holds(const struct fr_window *w, uint32_t seq)
{
	return seq - w->base < fr_window_used(w);
}

/* The caller has checked that there is room. */
static inline uint32_t fr_window_push(struct fr_window *w)
{
	assert(fr_window_room(w) != 0);
	return w->next++;
}

/*
 * Finds the live number whose low @bits bits equal @low. The window must be
 * narrower than 2^@bits, else two live numbers could look alike.
 */
static inline bool fr_window_expand(const struct fr_window *w, uint32_t low,
				    unsigned bits, uint32_t *seq)
{
	uint32_t mask = (1u << bits) - 1;
	uint32_t full = w->base + ((low - w->base) & mask);

	if (!fr_window_holds(w, full)) {
		return false;
	}
	*seq = full;
	return true;
}

#endif
