/*
 * Message window: what is known about the messages around the current one,
 * found in O(1) by the 32-bit message number or its low 10 bits.
 *
 * At most FR_MSGWIN_MAX numbers are live at once, so 10 bits tell them apart.
 * The ring starts small and doubles when it must: an idle comm stays cheap.
 */
#ifndef FR_NET_MSGWIN_H
#define FR_NET_MSGWIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "base/window.h"

#define FR_MSGWIN_MAX 256u
#define FR_MSGWIN_FIRST 16u

struct fr_msgwin {
	struct fr_window
		win; /* base: lowest live; next: one past the highest */
	size_t elem_bytes;
	uint32_t slots; /* allocated, a power of two, 0 before first use */
	uint8_t *mem;
};

/* @first: the number that is reached first. */
void fr_msgwin_init(struct fr_msgwin *mw, size_t elem_bytes, uint32_t first);
void fr_msgwin_fini(struct fr_msgwin *mw);
/* Makes @seq live (and all between); fresh elements are zero. Return: 0;
 * -ENOSPC: beyond FR_MSGWIN_MAX from the base; -ENOMEM. */
int fr_msgwin_reach(struct fr_msgwin *mw, uint32_t seq);

/* @seq is live. */
static inline void *fr_msgwin_at(const struct fr_msgwin *mw, uint32_t seq)
{
	return mw->mem + (size_t)(seq & (mw->slots - 1)) * mw->elem_bytes;
}

/* NULL when @seq is not live. */
static inline void *fr_msgwin_find(const struct fr_msgwin *mw, uint32_t seq)
{
	return fr_window_holds(&mw->win, seq) ? fr_msgwin_at(mw, seq) : NULL;
}

/* Retires the lowest number, which exists. */
static inline void fr_msgwin_retire(struct fr_msgwin *mw)
{
	mw->win.base++;
}

#endif
