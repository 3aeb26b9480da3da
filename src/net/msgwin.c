#include "net/msgwin.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

void fr_msgwin_init(struct fr_msgwin *mw, size_t elem_bytes, uint32_t first)
{
	fr_window_init(&mw->win, FR_MSGWIN_MAX, first);
	mw->elem_bytes = elem_bytes;
	mw->slots = 0;
	mw->mem = NULL;
}

void fr_msgwin_fini(struct fr_msgwin *mw)
{
	fr_free(mw->mem);
	mw->mem = NULL;
	mw->slots = 0;
}

static FR_NOINLINE int msgwin_grow(struct fr_msgwin *mw, uint32_t need)
{
	uint32_t slots = mw->slots == 0 ? FR_MSGWIN_FIRST : mw->slots;
	struct fr_msgwin old = *mw;

	while (slots < need) {
		slots *= 2;
	}
	mw->mem = fr_calloc(slots, mw->elem_bytes);
	if (mw->mem == NULL) {
		mw->mem = old.mem;
		return -ENOMEM;
	}
	mw->slots = slots;
	for (uint32_t seq = old.win.base; seq != old.win.next; seq++) {
		memcpy(fr_msgwin_at(mw, seq), fr_msgwin_at(&old, seq),
		       mw->elem_bytes);
	}
	fr_free(old.mem);
	return 0;
}

int fr_msgwin_reach(struct fr_msgwin *mw, uint32_t seq)
{
	uint32_t need = seq - mw->win.base + 1;

	if (need > FR_MSGWIN_MAX) {
		return -ENOSPC;
	}
	if (fr_unlikely(need > mw->slots)) {
		int ret = msgwin_grow(mw, need);

		if (ret != 0) {
			return ret;
		}
	}
	while (need > fr_window_used(&mw->win)) {
		memset(fr_msgwin_at(mw, mw->win.next), 0, mw->elem_bytes);
		mw->win.next++;
	}
	return 0;
}
