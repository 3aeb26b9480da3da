#include "unit/fabric/fabric_unit.h"

#include "fabric/reasons.h"

START_TEST(the_same_reason_is_kept_once)
{
	struct fr_reasons reasons = {0};

	unit_log_clear();
	ck_assert_int_eq(fr_reasons_add(&reasons, "nic %d: down", 1), 0);
	ck_assert_int_eq(fr_reasons_add(&reasons, "nic %d: down", 2), 0);
	ck_assert_int_eq(fr_reasons_add(&reasons, "nic %d: down", 1), 0);
	ck_assert_uint_eq(reasons.cnt, 2);
	fr_reasons_log(&reasons, FR_LOG_ERROR, "no rail");
	ck_assert_str_eq(unit_log.text[FR_LOG_ERROR],
			 "no rail: nic 1: down\nno rail: nic 2: down\n");
	fr_reasons_clear(&reasons);
	ck_assert_uint_eq(reasons.cnt, 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(an_endless_reason_is_cut)
{
	struct fr_reasons reasons = {0};

	ck_assert_int_eq(fr_reasons_add(&reasons, "%01000d", 0), 0);
	ck_assert_uint_lt(strlen(reasons.line[0]), 300);
	fr_reasons_clear(&reasons);
}
END_TEST

/* The loop index picks the allocation that fails. */
START_TEST(without_memory_the_earlier_lines_stay)
{
	struct fr_reasons reasons = {0};

	ck_assert_int_eq(fr_reasons_add(&reasons, "first"), 0);
	fr_fault_alloc_at((unsigned)_i);
	ck_assert_int_eq(fr_reasons_add(&reasons, "second"), -ENOMEM);
	fr_fault_alloc_at(0);
	ck_assert_uint_eq(reasons.cnt, 1);
	ck_assert_str_eq(reasons.line[0], "first");
	fr_reasons_clear(&reasons);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("reasons");

	tcase_add_test(t, the_same_reason_is_kept_once);
	tcase_add_test(t, an_endless_reason_is_cut);
	tcase_add_loop_test(t, without_memory_the_earlier_lines_stay, 1, 3);
	return unit_run(t, "fabric/reasons");
}
