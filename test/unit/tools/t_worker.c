#include "unit/base/unit.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "tools/worker.h"

static int order[100];
static atomic_int runs;

static int note(void *arg)
{
	int i = (int)(intptr_t)arg;

	order[atomic_fetch_add(&runs, 1)] = i;
	return i == 40 ? -EIO : i == 41 ? -EAGAIN : 0;
}

START_TEST(jobs_run_in_order_and_the_first_error_is_kept)
{
	struct fr_worker *w;

	ck_assert_int_eq(fr_worker_start("test", &w), 0);
	for (intptr_t i = 0; i < 100; i++) {
		fr_worker_post(w, note, (void *)i);
	}
	ck_assert_int_eq(fr_worker_drain_wait(w), -EIO);
	ck_assert_int_eq(atomic_load(&runs), 100);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(order[i], i);
	}
	ck_assert_int_eq(fr_worker_drain_wait(w), 0);
	fr_worker_stop(w);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(stop_waits_for_what_is_queued)
{
	struct fr_worker *w;

	ck_assert_int_eq(fr_worker_start("test", &w), 0);
	for (intptr_t i = 0; i < 10; i++) {
		fr_worker_post(w, note, (void *)i);
	}
	fr_worker_stop(w);
	ck_assert_int_eq(atomic_load(&runs), 10);
	fr_worker_stop(NULL);
}
END_TEST

START_TEST(start_leaks_nothing_without_memory)
{
	struct fr_worker *w;

	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_worker_start("test", &w), -ENOMEM);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("worker");

	tcase_add_test(t, jobs_run_in_order_and_the_first_error_is_kept);
	tcase_add_test(t, stop_waits_for_what_is_queued);
	tcase_add_test(t, start_leaks_nothing_without_memory);
	return unit_run(t, "tools/worker");
}
