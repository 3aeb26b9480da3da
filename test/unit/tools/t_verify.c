#include "unit/base/unit.h"

#include "base/util.h"
#include "tools/verify.h"

#define RANKS 3
#define CNT 2500 /* more than is checked at a time */

static uint8_t in[RANKS][CNT * 8];
static uint8_t out[CNT * 8];

static struct fr_shape shape_of(int cmd, unsigned rank)
{
	return (struct fr_shape){
		.cmd = cmd, .rank = rank, .ranks = RANKS, .cnt = CNT};
}

/* What all_reduce must give, by the reduction itself. */
static void reduce_all(const struct fr_pattern *p)
{
	for (unsigned r = 0; r < RANKS; r++) {
		struct fr_shape s = shape_of(FR_PERF_ALL_REDUCE, r);

		fr_pattern_fill(p, &s, in[r]);
	}
	fr_reduce(p->type, p->op, out, in[2], in[0], CNT);
	fr_reduce(p->type, p->op, out, out, in[1], CNT);
	fr_reduce_finish(p->type, p->op, out, CNT, RANKS);
}

/* The loop index is type and operation. */
START_TEST(the_expectation_is_the_reduction_in_every_type)
{
	struct fr_pattern p = {_i / FR_REDOP_CNT, _i % FR_REDOP_CNT, 9};
	struct fr_shape s = shape_of(FR_PERF_ALL_REDUCE, 1);

	reduce_all(&p);
	ck_assert_uint_eq(fr_pattern_wrong(&p, &s, out), 0);
}
END_TEST

START_TEST(each_wrong_element_is_counted_once)
{
	struct fr_pattern p = {_i / FR_REDOP_CNT, _i % FR_REDOP_CNT, 10};
	struct fr_shape s = shape_of(FR_PERF_ALL_REDUCE, 1);
	size_t elem = fr_type_bytes(p.type);

	reduce_all(&p);
	out[0] ^= 1;
	out[elem - 1] ^= 2;
	out[1500 * elem] ^= 4;
	out[CNT * elem - 1] ^= 0x80;
	ck_assert_uint_eq(fr_pattern_wrong(&p, &s, out), 3);
}
END_TEST

START_TEST(results_of_another_seed_are_wrong)
{
	struct fr_pattern p = {FR_FLOAT, FR_SUM, 1};
	struct fr_shape s = shape_of(FR_PERF_ALL_REDUCE, 0);

	reduce_all(&p);
	p.seed = 2;
	ck_assert_uint_gt(fr_pattern_wrong(&p, &s, out), CNT * 9 / 10);
}
END_TEST

START_TEST(poison_is_never_right_but_where_nothing_may_be_written)
{
	struct fr_pattern p = {FR_INT32, FR_SUM, 1};
	struct fr_shape s = shape_of(_i, 1);

	s.cnt = 100;
	fr_pattern_poison(out, sizeof(out));
	ck_assert_uint_eq(fr_pattern_wrong(&p, &s, out),
			  _i == FR_PERF_REDUCE ? 0 : fr_shape_out_cnt(&s));
	s.root = 1;
	ck_assert_uint_eq(fr_pattern_wrong(&p, &s, out), fr_shape_out_cnt(&s));
}
END_TEST

START_TEST(filled_bytes_are_right_until_one_changes)
{
	fr_bytes_fill(out, (size_t)_i, 5);
	ck_assert_uint_eq(fr_bytes_wrong(out, (size_t)_i, 5), 0);
	for (int at = 0; at < _i; at += 3) {
		out[at] ^= 0x20;
		ck_assert_uint_eq(fr_bytes_wrong(out, (size_t)_i, 5), 1);
		out[at] ^= 0x20;
	}
	fr_pattern_poison(out, 50);
	ck_assert_uint_eq(fr_poison_wrong(out, 50), 0);
	out[49] = 0;
	ck_assert_uint_eq(fr_poison_wrong(out, 50), 1);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("verify");

	tcase_add_loop_test(t, the_expectation_is_the_reduction_in_every_type,
			    0, FR_TYPE_CNT * FR_REDOP_CNT);
	tcase_add_loop_test(t, each_wrong_element_is_counted_once, 0,
			    FR_TYPE_CNT * FR_REDOP_CNT);
	tcase_add_test(t, results_of_another_seed_are_wrong);
	tcase_add_loop_test(
		t, poison_is_never_right_but_where_nothing_may_be_written, 0,
		FR_PERF_PINGPONG);
	tcase_add_loop_test(t, filled_bytes_are_right_until_one_changes, 0, 40);
	return unit_run(t, "tools/verify");
}
