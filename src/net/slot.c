#include "net/slot.h"

#include <errno.h>

#include "base/util.h"
#include "net/link.h"

#define SLOT_BYTES_OFFSET fr_round_up(sizeof(struct fr_slot), 64)

static int slot_block_add(void *arg, void *base, size_t bytes, void **cookie)
{
	struct fr_set *set = arg;

	return fr_mr_get(set->mrs, base, bytes, FR_MR_LOCAL,
			 (struct fr_mr **)cookie);
}

static void slot_block_del(void *arg, void *cookie)
{
	struct fr_set *set = arg;

	if (set->mrs != NULL) { /* else the cache went first and closed it */
		fr_mr_put(set->mrs, cookie);
	}
}

static int slot_init(void *arg, void *elem, void *cookie)
{
	struct fr_slot *slot = elem;

	slot->set = arg;
	slot->mr = cookie;
	slot->bytes = (uint8_t *)elem + SLOT_BYTES_OFFSET;
	fr_list_init(&slot->node);
	return 0;
}

static int pool_create(struct fr_set *set, size_t bytes, unsigned grow_cnt,
		       struct fr_freelist **out)
{
	struct fr_freelist_attr attr = {
		.elem_bytes = SLOT_BYTES_OFFSET + bytes,
		.align = 64,
		.grow_cnt = grow_cnt,
		.arg = set,
		.block_add = slot_block_add,
		.block_del = slot_block_del,
		.elem_init = slot_init,
	};

	return fr_freelist_create(&attr, out);
}

int fr_slots_create(struct fr_set *set)
{
	int ret;

	ret = pool_create(set, FR_SLOT_SMALL, 64, &set->small_slots);
	if (ret != 0) {
		return ret;
	}
	ret = pool_create(set, set->big_bytes, 16, &set->big_slots);
	if (ret != 0) {
		fr_freelist_destroy(set->small_slots);
		set->small_slots = NULL;
	}
	return ret;
}

void fr_slots_destroy(struct fr_set *set)
{
	fr_freelist_destroy(set->big_slots);
	fr_freelist_destroy(set->small_slots);
	set->big_slots = NULL;
	set->small_slots = NULL;
}

struct fr_slot *fr_slot_get(struct fr_set *set, size_t bytes)
{
	bool big = bytes > FR_SLOT_SMALL;
	struct fr_slot *slot;

	if (bytes > set->big_bytes) {
		return NULL;
	}
	slot = fr_freelist_get(big ? set->big_slots : set->small_slots);
	if (slot == NULL) {
		return NULL;
	}
	slot->big = big;
	slot->link = NULL;
	slot->owner = NULL;
	slot->has_seq = false;
	slot->in_flight = false;
	slot->settled = false;
	slot->resends = 0;
	slot->path = 0;
	return slot;
}

void fr_slot_put(struct fr_slot *slot)
{
	struct fr_set *set;

	if (slot == NULL) {
		return;
	}
	set = slot->set;
	fr_list_del(&slot->node);
	fr_freelist_put(slot->big ? set->big_slots : set->small_slots, slot);
}
