#include "unit/base/unit.h"

#include "base/util.h"
#include "base/window.h"

/* Where a window starts: at zero, at the wrap of the 10-bit field, at the wrap
 * of the number itself, and inside. */
static const uint32_t firsts[] = {
	0,
	1,
	255,
	1000,
	1023,
	1024,
	UINT32_MAX,
	UINT32_MAX - 100,
	UINT32_MAX - 1023,
	0x80000000u,
};

START_TEST(a_new_window_is_empty)
{
	struct fr_window w;

	fr_window_init(&w, 256, firsts[_i]);
	ck_assert_uint_eq(fr_window_used(&w), 0);
	ck_assert_uint_eq(fr_window_room(&w), 256);
	ck_assert(!fr_window_holds(&w, firsts[_i]));
	ck_assert(!fr_window_holds(&w, firsts[_i] - 1));
}
END_TEST

START_TEST(numbers_count_up_until_the_window_is_full)
{
	struct fr_window w;

	fr_window_init(&w, 256, firsts[_i]);
	for (uint32_t i = 0; i < 256; i++) {
		ck_assert_uint_eq(fr_window_push(&w), firsts[_i] + i);
		ck_assert_uint_eq(fr_window_used(&w), i + 1);
	}
	ck_assert_uint_eq(fr_window_room(&w), 0);
	ck_assert(fr_window_holds(&w, firsts[_i]));
	ck_assert(fr_window_holds(&w, firsts[_i] + 255));
	ck_assert(!fr_window_holds(&w, firsts[_i] + 256));
	ck_assert(!fr_window_holds(&w, firsts[_i] - 1));
}
END_TEST

START_TEST(live_numbers_never_share_a_slot)
{
	bool taken[512] = {false};
	struct fr_window w;

	fr_window_init(&w, 512, firsts[_i]);
	while (fr_window_room(&w) != 0) {
		uint32_t slot = fr_window_slot(&w, fr_window_push(&w));

		ck_assert_uint_lt(slot, 512);
		ck_assert(!taken[slot]);
		taken[slot] = true;
	}
}
END_TEST

START_TEST(every_live_number_is_found_by_its_low_bits)
{
	struct fr_window w;
	uint32_t seq;

	fr_window_init(&w, 512, firsts[_i]);
	for (uint32_t live = 1; live <= 512; live++) {
		fr_window_push(&w);
		for (uint32_t k = 0; k < live; k += 17) {
			uint32_t full = firsts[_i] + k;

			ck_assert(fr_window_expand(&w, full & 0x3ff, 10, &seq));
			ck_assert_uint_eq(seq, full);
		}
	}
}
END_TEST

START_TEST(low_bits_of_dead_numbers_find_nothing)
{
	uint32_t seq = 12345;
	struct fr_window w;

	fr_window_init(&w, 256, firsts[_i]);
	for (int i = 0; i < 200; i++) {
		fr_window_push(&w);
	}
	w.base += 50;
	for (uint32_t k = 0; k < 1024; k++) {
		uint32_t low = (firsts[_i] + k) & 0x3ff;
		bool live = k >= 50 && k < 200;

		seq = 12345;
		ck_assert_int_eq(fr_window_expand(&w, low, 10, &seq), live);
		ck_assert_uint_eq(seq, live ? firsts[_i] + k : 12345);
	}
}
END_TEST

START_TEST(a_window_slides_over_the_end_of_the_numbers)
{
	struct fr_window w;

	fr_window_init(&w, 8, UINT32_MAX - 3);
	for (int i = 0; i < 6; i++) {
		fr_window_push(&w);
	}
	ck_assert_uint_eq(w.next, 2);
	ck_assert(fr_window_holds(&w, 1));
	w.base += 5;
	ck_assert_uint_eq(w.base, 1);
	ck_assert_uint_eq(fr_window_used(&w), 1);
	ck_assert(!fr_window_holds(&w, 0));
	ck_assert(!fr_window_holds(&w, UINT32_MAX));
}
END_TEST

#ifndef NDEBUG
START_TEST(pushing_into_a_full_window_aborts)
{
	struct fr_window w;

	fr_window_init(&w, 1, 0);
	fr_window_push(&w);
	fr_window_push(&w);
}
END_TEST

static const uint32_t bad_sizes[] = {0, 3, 1024};

START_TEST(a_size_that_cannot_work_aborts)
{
	struct fr_window w;

	fr_window_init(&w, bad_sizes[_i], 0);
}
END_TEST
#endif

int main(void)
{
	TCase *t = tcase_create("window");
	const int cnt = (int)FR_ARRAY_LEN(firsts);

	tcase_add_loop_test(t, a_new_window_is_empty, 0, cnt);
	tcase_add_loop_test(t, numbers_count_up_until_the_window_is_full, 0,
			    cnt);
	tcase_add_loop_test(t, live_numbers_never_share_a_slot, 0, cnt);
	tcase_add_loop_test(t, every_live_number_is_found_by_its_low_bits, 0,
			    cnt);
	tcase_add_loop_test(t, low_bits_of_dead_numbers_find_nothing, 0, cnt);
	tcase_add_test(t, a_window_slides_over_the_end_of_the_numbers);
#ifndef NDEBUG
	tcase_add_test_raise_signal(t, pushing_into_a_full_window_aborts,
				    SIGABRT);
	tcase_add_loop_test_raise_signal(t, a_size_that_cannot_work_aborts,
					 SIGABRT, 0, 3);
#endif
	return unit_run(t, "base/window");
}
