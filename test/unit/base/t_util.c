#include "unit/base/unit.h"

#include "base/util.h"

struct outer {
	char before;
	int inner;
};

START_TEST(rounding_up_stops_at_the_next_multiple)
{
	ck_assert_uint_eq(fr_round_up(0, 8), 0);
	ck_assert_uint_eq(fr_round_up(1, 8), 8);
	ck_assert_uint_eq(fr_round_up(8, 8), 8);
	ck_assert_uint_eq(fr_round_up(9, 8), 16);
	ck_assert_uint_eq(fr_round_up(5, 1), 5);
	ck_assert_uint_eq(fr_round_up((1ull << 40) + 1, 4096),
			  (1ull << 40) + 4096);
}
END_TEST

START_TEST(a_member_leads_back_to_its_struct)
{
	struct outer outer = {.inner = 3};

	ck_assert_ptr_eq(FR_CONTAINER_OF(&outer.inner, struct outer, inner),
			 &outer);
}
END_TEST

START_TEST(small_macros_do_what_they_say)
{
	int three[3];

	ck_assert_uint_eq(FR_ARRAY_LEN(three), 3);
	ck_assert_uint_eq(FR_BIT(31), 0x80000000u);
	ck_assert_int_eq(FR_MIN(-1, 2), -1);
	ck_assert_int_eq(FR_MAX(-1, 2), 2);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("util");

	tcase_add_test(t, rounding_up_stops_at_the_next_multiple);
	tcase_add_test(t, a_member_leads_back_to_its_struct);
	tcase_add_test(t, small_macros_do_what_they_say);
	return unit_run(t, "base/util");
}
