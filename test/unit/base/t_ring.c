#include "unit/base/unit.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/ring.h"

static struct fr_ring ring;

static void ring_setup(void)
{
	fr_ring_init(&ring);
}

static void ring_teardown(void)
{
	fr_ring_fini(&ring);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

static void *item(uintptr_t n)
{
	return (void *)(n + 1);
}

static void push_range(uintptr_t from, uintptr_t to)
{
	for (; from < to; from++) {
		ck_assert_int_eq(fr_ring_push(&ring, item(from)), 0);
	}
}

static void pop_range(uintptr_t from, uintptr_t to)
{
	for (; from < to; from++) {
		ck_assert_ptr_eq(fr_ring_peek(&ring), item(from));
		ck_assert_ptr_eq(fr_ring_pop(&ring), item(from));
	}
}

START_TEST(an_empty_ring_gives_nothing_and_owns_nothing)
{
	ck_assert(fr_ring_empty(&ring));
	ck_assert_uint_eq(fr_ring_cnt(&ring), 0);
	ck_assert_ptr_null(fr_ring_peek(&ring));
	ck_assert_ptr_null(fr_ring_pop(&ring));
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(items_come_out_in_order_through_growth)
{
	push_range(0, 1000);
	ck_assert_uint_eq(fr_ring_cnt(&ring), 1000);
	pop_range(0, 1000);
	ck_assert(fr_ring_empty(&ring));
}
END_TEST

/* The loop index is how far the ring has turned when it must grow. */
START_TEST(growth_unrolls_a_wrapped_ring)
{
	uintptr_t turned = (uintptr_t)_i;

	push_range(0, turned);
	pop_range(0, turned);
	push_range(turned, turned + 40);
	pop_range(turned, turned + 40);
}
END_TEST

START_TEST(a_steady_ring_does_not_grow)
{
	push_range(0, 10);
	for (uintptr_t i = 0; i < 500; i++) {
		push_range(10 + i, 11 + i);
		pop_range(i, i + 1);
	}
	ck_assert_uint_eq(ring.size, 16);
	ck_assert_uint_eq(fr_live_allocs(), 1);
}
END_TEST

START_TEST(order_holds_where_the_indices_run_over)
{
	push_range(0, 1);
	pop_range(0, 1);
	ring.head = ring.tail = UINT32_MAX - 5;
	push_range(0, 16);
	ck_assert_uint_eq(fr_ring_cnt(&ring), 16);
	push_range(16, 100);
	pop_range(0, 100);
}
END_TEST

START_TEST(a_push_that_cannot_grow_changes_nothing)
{
	push_range(0, 5);
	pop_range(0, 5);
	push_range(5, 21);
	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_ring_push(&ring, item(99)), -ENOMEM);
	ck_assert_uint_eq(fr_ring_cnt(&ring), 16);
	push_range(21, 22);
	pop_range(5, 22);
}
END_TEST

START_TEST(a_first_push_that_cannot_allocate_leaves_it_empty)
{
	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_ring_push(&ring, item(0)), -ENOMEM);
	ck_assert(fr_ring_empty(&ring));
	ck_assert_ptr_null(fr_ring_pop(&ring));
}
END_TEST

START_TEST(a_ring_is_usable_after_fini)
{
	push_range(0, 3);
	fr_ring_fini(&ring);
	ck_assert(fr_ring_empty(&ring));
	push_range(0, 3);
	pop_range(0, 3);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("ring");

	tcase_add_checked_fixture(t, ring_setup, ring_teardown);
	tcase_add_test(t, an_empty_ring_gives_nothing_and_owns_nothing);
	tcase_add_test(t, items_come_out_in_order_through_growth);
	tcase_add_loop_test(t, growth_unrolls_a_wrapped_ring, 0, 17);
	tcase_add_test(t, a_steady_ring_does_not_grow);
	tcase_add_test(t, order_holds_where_the_indices_run_over);
	tcase_add_test(t, a_push_that_cannot_grow_changes_nothing);
	tcase_add_test(t, a_first_push_that_cannot_allocate_leaves_it_empty);
	tcase_add_test(t, a_ring_is_usable_after_fini);
	return unit_run(t, "base/ring");
}
