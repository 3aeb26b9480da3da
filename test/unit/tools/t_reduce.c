#include "unit/base/unit.h"

#include <math.h>

#include "base/util.h"
#include "tools/reduce.h"

START_TEST(integers_reduce_and_wrap)
{
	int8_t a[] = {100, -3, 7}, b[] = {100, 5, -7}, d[3];
	uint32_t ua = 0xffffffffu, ub = 2, ud;
	int64_t la = INT64_MAX, lb = 2, ld;

	fr_reduce(FR_INT8, FR_SUM, d, a, b, 3);
	ck_assert_int_eq(d[0], -56);
	ck_assert_int_eq(d[1], 2);
	ck_assert_int_eq(d[2], 0);
	fr_reduce(FR_INT8, FR_PROD, d, a, b, 3);
	ck_assert_int_eq(d[0], 16);
	ck_assert_int_eq(d[1], -15);
	fr_reduce(FR_INT8, FR_MAX, d, a, b, 3);
	ck_assert_int_eq(d[1], 5);
	fr_reduce(FR_INT8, FR_MIN, d, a, b, 3);
	ck_assert_int_eq(d[1], -3);
	fr_reduce(FR_UINT32, FR_SUM, &ud, &ua, &ub, 1);
	ck_assert_uint_eq(ud, 1);
	fr_reduce(FR_UINT32, FR_MAX, &ud, &ua, &ub, 1);
	ck_assert_uint_eq(ud, ua);
	fr_reduce(FR_INT64, FR_SUM, &ld, &la, &lb, 1);
	ck_assert(ld == INT64_MIN + 1);
}
END_TEST

START_TEST(floats_reduce)
{
	float a = 1.5f, b = -2, f;
	double da = 3, db = 0.25, dd;
	uint16_t ha = fr_float_to_half(1.5f), hb = fr_float_to_half(-2), h;

	fr_reduce(FR_FLOAT, FR_SUM, &f, &a, &b, 1);
	ck_assert(f == -0.5f);
	fr_reduce(FR_FLOAT, FR_MIN, &f, &a, &b, 1);
	ck_assert(f == -2);
	fr_reduce(FR_DOUBLE, FR_PROD, &dd, &da, &db, 1);
	ck_assert(dd == 0.75);
	fr_reduce(FR_HALF, FR_PROD, &h, &ha, &hb, 1);
	ck_assert(fr_half_to_float(h) == -3);
	ha = fr_float_to_bfloat(1.5f);
	hb = fr_float_to_bfloat(-2);
	fr_reduce(FR_BFLOAT16, FR_AVG, &h, &ha, &hb, 1);
	fr_reduce_finish(FR_BFLOAT16, FR_AVG, &h, 1, 2);
	ck_assert(fr_bfloat_to_float(h) == -0.25f);
}
END_TEST

static const struct {
	float f;
	uint16_t half;
} halves[] = {
	{0, 0},
	{1, 0x3c00},
	{-2, 0xc000},
	{65504, 0x7bff},
	{65519, 0x7bff},
	{65520, 0x7c00},
	{0x1p-24f, 1},
	{0x1p-25f, 0},
	{0x1.8p-25f, 1},
	{0x1p-14f, 0x400},
	{0x1.ffcp-15f, 0x400},
	{2049, 0x6800},
	{2051, 0x6802},
	{1e9f, 0x7c00},
};

START_TEST(halves_round_to_nearest_even)
{
	ck_assert_uint_eq(fr_float_to_half(halves[_i].f), halves[_i].half);
	ck_assert_uint_eq(fr_float_to_half(-halves[_i].f),
			  halves[_i].half ^ 0x8000u);
}
END_TEST

START_TEST(every_half_and_bfloat_survives_the_way_through_float)
{
	for (uint32_t i = 0; i < 0x10000; i++) {
		float h = fr_half_to_float((uint16_t)i);
		float b = fr_bfloat_to_float((uint16_t)i);

		if (isnan(h)) {
			ck_assert(isnan(fr_half_to_float(fr_float_to_half(h))));
		} else {
			ck_assert_uint_eq(fr_float_to_half(h), i);
		}
		if (isnan(b)) {
			ck_assert(isnan(
				fr_bfloat_to_float(fr_float_to_bfloat(b))));
		} else {
			ck_assert_uint_eq(fr_float_to_bfloat(b), i);
		}
	}
}
END_TEST

START_TEST(bfloats_round_to_nearest_even)
{
	ck_assert_uint_eq(fr_float_to_bfloat(1), 0x3f80);
	ck_assert_uint_eq(fr_float_to_bfloat(257), 0x4380);
	ck_assert_uint_eq(fr_float_to_bfloat(259), 0x4382);
	ck_assert_uint_eq(fr_float_to_bfloat(3.4e38f), 0x7f80);
}
END_TEST

/* The loop index is the type. */
START_TEST(a_stored_number_sums_and_averages_in_every_type)
{
	uint8_t a[8] = {0}, b[8] = {0}, sum[8] = {0}, want[8] = {0};
	size_t n = fr_type_bytes(_i);

	fr_type_store(_i, a, 20, 1);
	fr_type_store(_i, b, 25, 1);
	fr_reduce(_i, FR_SUM, sum, a, b, 1);
	fr_type_store(_i, want, 45, 1);
	ck_assert_mem_eq(sum, want, n);
	fr_reduce_finish(_i, FR_AVG, sum, 1, 2);
	fr_type_store(_i, want, 45, 2);
	ck_assert_mem_eq(sum, want, n);
	fr_reduce_finish(_i, FR_SUM, sum, 1, 7);
	ck_assert_mem_eq(sum, want, n);
	fr_reduce(_i, FR_MAX, sum, a, b, 1);
	ck_assert_mem_eq(sum, b, n);
	fr_reduce(_i, FR_MIN, sum, a, b, 1);
	ck_assert_mem_eq(sum, a, n);
	fr_reduce(_i, FR_PROD, sum, a, a, 1);
	fr_type_store(_i, want,
		      _i == FR_INT8 || _i == FR_UINT8 ? 400 - 256 : 400, 1);
	ck_assert_mem_eq(sum, want, n);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("reduce");

	tcase_add_test(t, integers_reduce_and_wrap);
	tcase_add_test(t, floats_reduce);
	tcase_add_loop_test(t, halves_round_to_nearest_even, 0,
			    (int)FR_ARRAY_LEN(halves));
	tcase_add_test(t, every_half_and_bfloat_survives_the_way_through_float);
	tcase_add_test(t, bfloats_round_to_nearest_even);
	tcase_add_loop_test(t, a_stored_number_sums_and_averages_in_every_type,
			    0, FR_TYPE_CNT);
	return unit_run(t, "tools/reduce");
}
