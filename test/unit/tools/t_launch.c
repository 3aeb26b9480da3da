/* Which of several ranks that end is named as the cause. */
#include "unit/base/unit.h"

#include <time.h>

#include "base/alloc.h"
#include "tools/launch.h"

#define RANKS 3u

/* What each rank does: its exit status, or -1 to be killed, after @ms. */
struct end {
	int st;
	unsigned ms;
};

static void setup(void)
{
	unit_log_setup();
}

static void teardown(void)
{
	ck_assert_uint_eq(fr_live_allocs(), 0);
	fr_log_set_sink(NULL);
}

static int end_as_told(unsigned rank, struct fr_oob *oob,
		       struct fr_status *status, void *arg)
{
	const struct end *end = (const struct end *)arg + rank;
	struct timespec nap = {.tv_sec = end->ms / 1000,
			       .tv_nsec = (long)(end->ms % 1000) * 1000000};

	fr_status_set(status, "phase of %u", rank);
	(void)nanosleep(&nap, NULL);
	if (end->st < 0) {
		(void)raise(SIGKILL);
	}
	fr_oob_destroy(oob);
	return end->st;
}

static const struct {
	struct end end[RANKS];
	const char *told;
} cases[] = {
	{{{1, 0}, {-1, 150}, {0, 0}}, "rank 1 was killed by signal 9"},
	{{{1, 0}, {-1, 150}, {1, 20}}, "rank 1 was killed by signal 9"},
	{{{FR_EXIT_BECAUSE_OF_PEER, 0}, {-1, 150}, {1, 50}},
	 "rank 1 was killed by signal 9"},
	{{{FR_EXIT_BECAUSE_OF_PEER, 0}, {1, 150}, {0, 0}},
	 "rank 1 failed (exit status 1) in: phase of 1"},
	{{{0, 0}, {1, 0}, {FR_EXIT_BECAUSE_OF_PEER, 150}},
	 "rank 1 failed (exit status 1) in: phase of 1"},
	{{{FR_EXIT_WRONG, 150}, {2, 0}, {0, 0}},
	 "rank 1 failed (exit status 2) in: phase of 1"},
	{{{0, 0}, {1, 0}, {0, 60000}},
	 "rank 1 failed (exit status 1) in: phase of 1"},
};

START_TEST(the_cause_is_named_in_whatever_order_ranks_end)
{
	struct end end[RANKS];

	memcpy(end, cases[_i].end, sizeof(end));
	ck_assert_int_eq(fr_launch_wait(RANKS, end_as_told, end), 1);
	unit_assert_logged(cases[_i].told);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
}
END_TEST

START_TEST(wrong_results_alone_are_told_by_who_saw_them)
{
	struct end end[RANKS] = {{FR_EXIT_WRONG, 0}, {0, 20}, {0, 0}};

	ck_assert_int_eq(fr_launch_wait(RANKS, end_as_told, end), 1);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 0);
}
END_TEST

START_TEST(all_well_is_0)
{
	struct end end[RANKS] = {{0, 0}, {0, 20}, {0, 0}};

	ck_assert_int_eq(fr_launch_wait(RANKS, end_as_told, end), 0);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("launch");

	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, the_cause_is_named_in_whatever_order_ranks_end,
			    0, sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(t, wrong_results_alone_are_told_by_who_saw_them);
	tcase_add_test(t, all_well_is_0);
	return unit_run(t, "launch");
}
