#include "net/regtable.h"

#include "base/lock.h"

#define TABLE_BITS 12

static struct fr_lock table_lock = FR_LOCK_INIT;
static struct fr_net_mr *table[1u << TABLE_BITS]; /* guarded by table_lock */

static struct fr_net_mr **table_at(const struct fr_net_mr *mr)
{
	uint64_t mixed = (uintptr_t)mr * UINT64_C(0x9e3779b97f4a7c15);

	return &table[mixed >> (64 - TABLE_BITS)];
}

void fr_regtable_add(struct fr_net_mr *mr)
{
	struct fr_net_mr **at = table_at(mr);

	fr_lock_take(&table_lock);
	mr->table_next = *at;
	*at = mr;
	fr_lock_drop(&table_lock);
}

bool fr_regtable_take(const struct fr_comm *comm, struct fr_net_mr *mr)
{
	struct fr_net_mr **at = table_at(mr);
	bool ours;

	fr_lock_take(&table_lock);
	while (*at != NULL && *at != mr) {
		at = &(*at)->table_next;
	}
	ours = *at != NULL && mr->comm == comm;
	if (ours) {
		*at = mr->table_next;
	}
	fr_lock_drop(&table_lock);
	return ours;
}
