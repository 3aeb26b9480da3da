#include "unit/base/unit.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/util.h"
#include "tools/metric.h"

static bool near(double a, double b)
{
	return a - b < 1e-9 && b - a < 1e-9;
}

START_TEST(bus_factors_are_those_of_nccl_tests)
{
	ck_assert(near(fr_metric_bus_factor(FR_PERF_ALL_REDUCE, 4), 1.5));
	ck_assert(near(fr_metric_bus_factor(FR_PERF_ALL_GATHER, 4), 0.75));
	ck_assert(near(fr_metric_bus_factor(FR_PERF_REDUCE_SCATTER, 4), 0.75));
	ck_assert(near(fr_metric_bus_factor(FR_PERF_ALLTOALL, 4), 0.75));
	ck_assert(near(fr_metric_bus_factor(FR_PERF_BROADCAST, 4), 1));
	ck_assert(near(fr_metric_bus_factor(FR_PERF_REDUCE, 4), 1));
	ck_assert(near(fr_metric_bus_factor(FR_PERF_SENDRECV, 4), 1));
	ck_assert(near(fr_metric_bus_factor(FR_PERF_ALL_REDUCE, 2), 1));
}
END_TEST

START_TEST(counts_are_a_ranks_share_and_at_least_one)
{
	struct fr_shape s = {.cmd = FR_PERF_ALL_GATHER, .ranks = 4};

	s.cnt = fr_metric_cnt(s.cmd, 4096, FR_FLOAT, 4);
	ck_assert_uint_eq(s.cnt, 256);
	ck_assert_uint_eq(fr_metric_size_bytes(&s, FR_FLOAT), 4096);
	ck_assert_uint_eq(fr_metric_cnt(s.cmd, 8, FR_DOUBLE, 4), 1);
	ck_assert_uint_eq(fr_metric_cnt(s.cmd, 0, FR_DOUBLE, 4), 0);
	s.cmd = FR_PERF_ALL_REDUCE;
	s.cnt = fr_metric_cnt(s.cmd, 4099, FR_HALF, 4);
	ck_assert_uint_eq(s.cnt, 2049);
	ck_assert_uint_eq(fr_metric_size_bytes(&s, FR_HALF), 4098);
}
END_TEST

START_TEST(sizes_step_by_factor_or_by_bytes)
{
	struct fr_perf_opts o = {.end_bytes = 100, .factor = 4};

	ck_assert_uint_eq(fr_metric_next_size(&o, 8), 32);
	ck_assert_uint_eq(fr_metric_next_size(&o, 32), 0);
	ck_assert_uint_eq(fr_metric_next_size(&o, 25), 100);
	ck_assert_uint_eq(fr_metric_next_size(&o, 0), 1);
	o.step_bytes = 50;
	ck_assert_uint_eq(fr_metric_next_size(&o, 0), 50);
	ck_assert_uint_eq(fr_metric_next_size(&o, 51), 0);
}
END_TEST

START_TEST(bandwidth_is_bytes_over_time)
{
	struct fr_perf_result r = {.size_bytes = 3000};

	fr_metric_rate(&r, FR_PERF_ALL_REDUCE, 4, 2);
	ck_assert(near(r.algbw_gbytes, 1.5));
	ck_assert(near(r.busbw_gbytes, 2.25));
	fr_metric_rate(&r, FR_PERF_ALL_REDUCE, 4, 0);
	ck_assert(near(r.algbw_gbytes, 0));
}
END_TEST

START_TEST(quantiles_do_not_need_sorted_values)
{
	double v[] = {5, 1, 4, 2, 3}, w[] = {4, 1, 3, 2};

	ck_assert(near(fr_metric_quantile(v, 5, 0.5), 3));
	ck_assert(near(fr_metric_quantile(v, 5, 0.99), 5));
	ck_assert(near(fr_metric_quantile(w, 4, 0.5), 2.5));
	ck_assert(near(fr_metric_quantile(w, 0, 0.5), 0));
}
END_TEST

START_TEST(a_report_grows_and_fails_without_a_leak)
{
	struct fr_perf_report report = {0};
	struct fr_perf_result r = {0};

	for (unsigned i = 0; i < 100; i++) {
		r.count = i;
		ck_assert_int_eq(fr_report_add(&report, &r), 0);
	}
	ck_assert_uint_eq(report.results[99].count, 99);
	fr_report_fini(&report);
	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_report_add(&report, &r), -ENOMEM);
	ck_assert_uint_eq(report.result_cnt, 0);
	fr_report_fini(&report);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("metric");

	tcase_add_test(t, bus_factors_are_those_of_nccl_tests);
	tcase_add_test(t, counts_are_a_ranks_share_and_at_least_one);
	tcase_add_test(t, sizes_step_by_factor_or_by_bytes);
	tcase_add_test(t, bandwidth_is_bytes_over_time);
	tcase_add_test(t, quantiles_do_not_need_sorted_values);
	tcase_add_test(t, a_report_grows_and_fails_without_a_leak);
	return unit_run(t, "tools/metric");
}
