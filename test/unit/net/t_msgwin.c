#include "unit/base/unit.h"

#include <errno.h>

#include "base/alloc.h"
#include "net/msgwin.h"

struct elem {
	uint32_t seq;
	uint8_t rest[20];
};

static struct fr_msgwin mw;

static void setup(void)
{
	ck_assert_uint_eq(fr_live_allocs(), 0);
	fr_msgwin_init(&mw, sizeof(struct elem), 0);
}

static void teardown(void)
{
	fr_msgwin_fini(&mw);
	fr_msgwin_fini(&mw);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

static struct elem *at(uint32_t seq)
{
	return fr_msgwin_at(&mw, seq);
}

START_TEST(an_idle_window_costs_nothing)
{
	ck_assert_uint_eq(fr_live_allocs(), 0);
	ck_assert_ptr_null(fr_msgwin_find(&mw, 0));
	ck_assert_uint_eq(fr_window_used(&mw.win), 0);
}
END_TEST

START_TEST(reaching_a_number_makes_all_up_to_it_live_and_zero)
{
	static const uint8_t zero[sizeof(struct elem)];

	ck_assert_int_eq(fr_msgwin_reach(&mw, 4), 0);
	for (uint32_t seq = 0; seq < 5; seq++) {
		ck_assert_ptr_eq(fr_msgwin_find(&mw, seq), at(seq));
		ck_assert_mem_eq(at(seq), zero, sizeof(zero));
		at(seq)->seq = seq + 100;
	}
	ck_assert_ptr_null(fr_msgwin_find(&mw, 5));
	ck_assert_ptr_null(fr_msgwin_find(&mw, UINT32_MAX));
	ck_assert_int_eq(fr_msgwin_reach(&mw, 2), 0); /* is there already */
	ck_assert_uint_eq(at(2)->seq, 102);
	ck_assert_uint_eq(fr_window_used(&mw.win), 5);
}
END_TEST

START_TEST(a_number_comes_back_as_zero)
{
	for (uint32_t seq = 0; seq < 5 * FR_MSGWIN_MAX; seq++) {
		ck_assert_int_eq(fr_msgwin_reach(&mw, seq), 0);
		ck_assert_uint_eq(at(seq)->seq, 0);
		at(seq)->seq = seq;
		fr_msgwin_retire(&mw);
		ck_assert_ptr_null(fr_msgwin_find(&mw, seq));
	}
	ck_assert_uint_eq(mw.slots, FR_MSGWIN_FIRST);
}
END_TEST

/* The loop index: where the numbers begin; once they wrap on the way. */
START_TEST(growing_keeps_what_is_live)
{
	uint32_t first = _i == 0 ? 0 : _i == 1 ? 12345 : UINT32_MAX - 20;

	mw.win.base = first;
	mw.win.next = first;
	for (uint32_t i = 0; i < FR_MSGWIN_MAX; i++) {
		ck_assert_int_eq(fr_msgwin_reach(&mw, first + i), 0);
		at(first + i)->seq = first + i;
		at(first + i)->rest[19] = (uint8_t)i;
	}
	ck_assert_uint_eq(mw.slots, FR_MSGWIN_MAX);
	for (uint32_t i = 0; i < FR_MSGWIN_MAX; i++) {
		ck_assert_uint_eq(at(first + i)->seq, first + i);
		ck_assert_uint_eq(at(first + i)->rest[19], (uint8_t)i);
	}
	ck_assert_uint_eq(fr_live_allocs(), 1);
}
END_TEST

START_TEST(beyond_the_window_is_refused_and_changes_nothing)
{
	ck_assert_int_eq(fr_msgwin_reach(&mw, FR_MSGWIN_MAX), -ENOSPC);
	ck_assert_uint_eq(fr_window_used(&mw.win), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	ck_assert_int_eq(fr_msgwin_reach(&mw, FR_MSGWIN_MAX - 1), 0);
	ck_assert_int_eq(fr_msgwin_reach(&mw, FR_MSGWIN_MAX), -ENOSPC);
	fr_msgwin_retire(&mw);
	ck_assert_int_eq(fr_msgwin_reach(&mw, FR_MSGWIN_MAX), 0);
}
END_TEST

START_TEST(growing_without_memory_changes_nothing)
{
	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_msgwin_reach(&mw, 0), -ENOMEM);
	ck_assert_uint_eq(fr_window_used(&mw.win), 0);
	ck_assert_int_eq(fr_msgwin_reach(&mw, 3), 0);
	at(3)->seq = 77;
	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_msgwin_reach(&mw, 200), -ENOMEM);
	ck_assert_uint_eq(fr_window_used(&mw.win), 4);
	ck_assert_uint_eq(at(3)->seq, 77);
	ck_assert_int_eq(fr_msgwin_reach(&mw, 200), 0);
	ck_assert_uint_eq(at(3)->seq, 77);
	ck_assert_uint_eq(at(200)->seq, 0);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("msgwin");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_idle_window_costs_nothing);
	tcase_add_test(tc, reaching_a_number_makes_all_up_to_it_live_and_zero);
	tcase_add_test(tc, a_number_comes_back_as_zero);
	tcase_add_loop_test(tc, growing_keeps_what_is_live, 0, 3);
	tcase_add_test(tc, beyond_the_window_is_refused_and_changes_nothing);
	tcase_add_test(tc, growing_without_memory_changes_nothing);
	return unit_run(tc, "msgwin");
}
