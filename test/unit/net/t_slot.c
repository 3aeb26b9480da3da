/* Registered buffers that control messages are sent from. */
#include "net/slot.h"

#include "unit/net/net_unit.h"

static struct fr_set *set;

static void setup(void)
{
	net_setup();
	set = net_a.set;
	net_lock(set);
}

static void teardown(void)
{
	net_unlock(set);
	net_teardown();
}

START_TEST(a_slot_is_of_the_pool_that_is_big_enough)
{
	struct fr_slot *small = fr_slot_get(set, 1);
	struct fr_slot *edge = fr_slot_get(set, FR_SLOT_SMALL);
	struct fr_slot *big = fr_slot_get(set, FR_SLOT_SMALL + 1);
	struct fr_slot *biggest = fr_slot_get(set, set->big_bytes);

	ck_assert(!small->big && !edge->big && big->big && biggest->big);
	memset(edge->bytes, 1, FR_SLOT_SMALL);
	memset(biggest->bytes, 2, set->big_bytes);
	ck_assert_ptr_null(fr_slot_get(set, set->big_bytes + 1));
	fr_slot_put(small);
	fr_slot_put(edge);
	fr_slot_put(big);
	fr_slot_put(biggest);
	fr_slot_put(NULL);
}
END_TEST

START_TEST(a_fresh_slot_remembers_nothing)
{
	struct fr_slot *slot = fr_slot_get(set, 100);

	slot->has_seq = true;
	slot->in_flight = true;
	slot->settled = true;
	slot->resends = 4;
	slot->path = 3;
	slot->owner = set;
	fr_slot_put(slot);
	ck_assert_ptr_eq(fr_slot_get(set, 100), slot); /* last in, first out */
	ck_assert(!slot->has_seq && !slot->in_flight && !slot->settled);
	ck_assert_uint_eq(slot->resends, 0);
	ck_assert_uint_eq(slot->path, 0);
	ck_assert_ptr_null(slot->owner);
	ck_assert_ptr_null(slot->link);
	ck_assert_ptr_eq(slot->set, set);
	fr_slot_put(slot);
}
END_TEST

START_TEST(a_slot_that_goes_back_leaves_its_queue)
{
	struct fr_list queue;
	struct fr_slot *slot = fr_slot_get(set, 100);

	fr_list_init(&queue);
	fr_list_push(&queue, &slot->node);
	fr_slot_put(slot);
	ck_assert(fr_list_empty(&queue));
}
END_TEST

START_TEST(every_slot_can_be_sent_from_every_rail)
{
	struct fr_slot *slots[200];

	for (unsigned i = 0; i < FR_ARRAY_LEN(slots); i++) {
		slots[i] = fr_slot_get(set, i % 2 == 0 ? 100 : 1000);
		ck_assert_ptr_nonnull(slots[i]);
		for (unsigned rail = 0; rail < set->rail_cnt; rail++) {
			ck_assert_ptr_nonnull(fr_mr_desc(slots[i]->mr, rail));
		}
	}
	for (unsigned i = 0; i < FR_ARRAY_LEN(slots); i++) {
		fr_slot_put(slots[i]);
	}
}
END_TEST

/* The loop index: small or big; the n-th allocation or registration. */
START_TEST(a_pool_that_cannot_grow_gives_none)
{
	size_t bytes = _i % 2 == 0 ? 100 : 1000;
	struct fr_slot *slots[1000];
	unsigned cnt = 0, failed = 0;
	unsigned live = fr_mr_cache_live(set->mrs);
	size_t base = fr_live_allocs();

	net_expect("registration of");
	while (cnt < 300) {
		struct fr_slot *slot;

		if (_i < 2) {
			fr_fault_alloc_at(1 + failed % 2);
		} else {
			fr_fake_fail_at(FR_FAKE_MR_REG, 1 + failed % 2, -EIO);
		}
		slot = fr_slot_get(set, bytes);
		fr_fault_alloc_at(0);
		fr_fake_fault_clear();
		if (slot == NULL) {
			ck_assert_uint_eq(fr_mr_cache_live(set->mrs), live);
			ck_assert_uint_eq(fr_live_allocs(), base);
			failed++;
			slot = fr_slot_get(set, bytes); /* the next try works */
			ck_assert_ptr_nonnull(slot);
			live = fr_mr_cache_live(set->mrs);
			base = fr_live_allocs();
		}
		slots[cnt++] = slot;
	}
	ck_assert_uint_ge(failed, 2);
	while (cnt > 0) {
		fr_slot_put(slots[--cnt]);
	}
}
END_TEST

START_TEST(pools_that_cannot_be_made_leave_nothing)
{
	struct fr_set bare = {.big_bytes = 4096};
	size_t base = fr_live_allocs();
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), base);
		fr_fault_alloc_at(++nth);
		ret = fr_slots_create(&bare);
		fr_fault_alloc_at(0);
		if (ret != 0) {
			ck_assert_int_eq(ret, -ENOMEM);
			ck_assert_ptr_null(bare.small_slots);
		}
	} while (ret != 0);
	ck_assert_uint_eq(nth, 3);
	fr_slots_destroy(&bare);
	fr_slots_destroy(&bare);
	ck_assert_uint_eq(fr_live_allocs(), base);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("slot");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_slot_is_of_the_pool_that_is_big_enough);
	tcase_add_test(tc, a_fresh_slot_remembers_nothing);
	tcase_add_test(tc, a_slot_that_goes_back_leaves_its_queue);
	tcase_add_test(tc, every_slot_can_be_sent_from_every_rail);
	tcase_add_loop_test(tc, a_pool_that_cannot_grow_gives_none, 0, 4);
	tcase_add_test(tc, pools_that_cannot_be_made_leave_nothing);
	return net_main("slot", &tc, 1);
}
