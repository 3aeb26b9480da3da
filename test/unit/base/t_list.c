#include "unit/base/unit.h"

#include "base/list.h"

static struct fr_list head;
static struct fr_list node[4];

static void list_setup(void)
{
	fr_list_init(&head);
	for (size_t i = 0; i < FR_ARRAY_LEN(node); i++) {
		fr_list_init(&node[i]);
		fr_list_push(&head, &node[i]);
	}
}

START_TEST(nodes_come_off_in_the_order_they_went_on)
{
	for (size_t i = 0; i < FR_ARRAY_LEN(node); i++) {
		ck_assert(!fr_list_empty(&head));
		ck_assert_ptr_eq(fr_list_pop(&head), &node[i]);
	}
	ck_assert(fr_list_empty(&head));
	ck_assert_ptr_null(fr_list_pop(&head));
}
END_TEST

/* The loop index is the node that leaves. */
START_TEST(a_node_may_leave_from_any_place_and_twice)
{
	size_t left = 0;

	fr_list_del(&node[_i]);
	fr_list_del(&node[_i]);
	ck_assert(fr_list_empty(&node[_i]));
	fr_list_for_each (pos, &head) {
		left += left == (size_t)_i;
		ck_assert_ptr_eq(pos, &node[left]);
		left++;
	}
	ck_assert_uint_eq(left + (_i == 3), FR_ARRAY_LEN(node));
}
END_TEST

START_TEST(a_walk_sees_every_node_in_both_directions)
{
	size_t i = 0;

	fr_list_for_each (pos, &head) {
		ck_assert_ptr_eq(pos, &node[i++]);
	}
	ck_assert_uint_eq(i, FR_ARRAY_LEN(node));
	for (struct fr_list *pos = head.prev; pos != &head; pos = pos->prev) {
		ck_assert_ptr_eq(pos, &node[--i]);
	}
	ck_assert_uint_eq(i, 0);
}
END_TEST

START_TEST(a_safe_walk_may_take_its_node_away)
{
	size_t seen = 0;

	fr_list_for_each_safe (pos, &head) {
		ck_assert_ptr_eq(pos, &node[seen++]);
		fr_list_del(pos);
	}
	ck_assert_uint_eq(seen, FR_ARRAY_LEN(node));
	ck_assert(fr_list_empty(&head));
}
END_TEST

START_TEST(a_node_that_left_can_go_to_the_end)
{
	fr_list_del(&node[1]);
	fr_list_push(&head, &node[1]);
	ck_assert_ptr_eq(head.prev, &node[1]);
	ck_assert_ptr_eq(node[0].next, &node[2]);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("list");

	tcase_add_checked_fixture(t, list_setup, NULL);
	tcase_add_test(t, nodes_come_off_in_the_order_they_went_on);
	tcase_add_loop_test(t, a_node_may_leave_from_any_place_and_twice, 0, 4);
	tcase_add_test(t, a_walk_sees_every_node_in_both_directions);
	tcase_add_test(t, a_safe_walk_may_take_its_node_away);
	tcase_add_test(t, a_node_that_left_can_go_to_the_end);
	return unit_run(t, "base/list");
}
