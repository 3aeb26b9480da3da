#include "wire/imm.h"

#include "unit/wire/wire_check.h"

START_TEST(long_word_has_the_documented_bits)
{
	struct fr_imm imm = {.comm = 0x2abcd,
			     .seq = 0x155,
			     .nseg = 6,
			     .rkey = 3,
			     .len = 0x12345678};

	ck_assert_uint_eq(fr_imm_pack(&imm, 8),
			  0x12345678ull << 34 | 5ull << 31 | 3ull << 28 |
				  0x2abcdull << 10 | 0x155);
	ck_assert_uint_eq(fr_imm_pack(&imm, 8), 0x48d159e2baaf3555ull);
}
END_TEST

START_TEST(short_word_has_the_documented_bits)
{
	struct fr_imm imm = {.comm = 0x2abcd,
			     .seq = 0x155,
			     .nseg = 6,
			     .rkey = 3,
			     .len = 0x12345678};

	ck_assert_uint_eq(fr_imm_pack(&imm, 4), 0x5aaf3555u);
}
END_TEST

static const struct fr_imm edges[] = {
	{.comm = 0, .seq = 0, .nseg = 1, .rkey = 0, .len = 0},
	{.comm = FR_IMM_COMM_CNT - 1, .seq = 0, .nseg = 1},
	{.seq = 1023, .nseg = 1},
	{.nseg = 8},
	{.nseg = 1, .rkey = 7},
	{.nseg = 1, .len = FR_IMM_LEN_MAX},
	{.nseg = 1, .len = FR_IMM_LEN_ASIDE},
	{.nseg = 1, .len = FR_IMM_LEN_FULL},
	{.comm = FR_IMM_COMM_CNT - 1,
	 .seq = 1023,
	 .nseg = 8,
	 .rkey = 7,
	 .len = FR_IMM_LEN_FULL},
};

static void assert_same(const struct fr_imm *a, const struct fr_imm *b)
{
	ck_assert_uint_eq(a->comm, b->comm);
	ck_assert_uint_eq(a->seq, b->seq);
	ck_assert_uint_eq(a->nseg, b->nseg);
}

START_TEST(every_field_survives_the_long_word)
{
	const struct fr_imm *imm = &edges[_i];
	struct fr_imm got;

	ck_assert(fr_imm_unpack(fr_imm_pack(imm, 8), 8, &got));
	assert_same(&got, imm);
	ck_assert_uint_eq(got.rkey, imm->rkey);
	ck_assert_uint_eq(got.len, imm->len);
}
END_TEST

START_TEST(the_short_word_carries_no_grant_and_no_length)
{
	const struct fr_imm *imm = &edges[_i];
	struct fr_imm got;

	ck_assert(fr_imm_unpack(fr_imm_pack(imm, 4), 4, &got));
	assert_same(&got, imm);
	ck_assert_uint_eq(got.rkey, 0);
	ck_assert_uint_eq(got.len, FR_IMM_LEN_FULL);
}
END_TEST

START_TEST(short_word_with_more_than_eight_stripes_is_refused)
{
	struct fr_imm got;

	ck_assert_int_eq(fr_imm_unpack((uint64_t)_i << 28, 4, &got), _i < 8);
	ck_assert_uint_eq(got.nseg, _i + 1);
}
END_TEST

START_TEST(every_long_word_is_the_pack_of_its_unpack)
{
	uint64_t state = 1;
	struct fr_imm got;

	for (unsigned i = 0; i < 10000; i++) {
		uint64_t word = noise_next(&state);

		ck_assert(fr_imm_unpack(word, 8, &got));
		ck_assert_uint_eq(fr_imm_pack(&got, 8), word);
	}
}
END_TEST

START_TEST(the_grant_moves_with_the_turn_of_the_sequence_space)
{
	ck_assert_uint_eq(fr_imm_grant(0, 0), 0);
	ck_assert_uint_eq(fr_imm_grant(0xfffffffffffffffdu, 1023), 5);
	ck_assert_uint_eq(fr_imm_grant(0xfffffffffffffffdu, 1024), 6);
	ck_assert_uint_eq(fr_imm_grant(6, 2 * 1024), 0);
	ck_assert_uint_eq(fr_imm_grant(0, 0xffffffffu), 7);
}
END_TEST

#ifndef NDEBUG
START_TEST(packing_a_field_that_is_out_of_range_aborts)
{
	static const struct fr_imm bad[] = {
		{.nseg = 0},
		{.nseg = 9},
		{.nseg = 1, .seq = 1024},
		{.nseg = 1, .comm = FR_IMM_COMM_CNT},
		{.nseg = 1, .rkey = 8},
		{.nseg = 1, .len = FR_IMM_LEN_FULL + 1},
	};

	fr_imm_pack(&bad[_i], 8);
}
END_TEST
#endif

int main(void)
{
	int edge_cnt = (int)(sizeof(edges) / sizeof(edges[0]));
	TCase *t = tcase_create("imm");

	tcase_add_test(t, long_word_has_the_documented_bits);
	tcase_add_test(t, short_word_has_the_documented_bits);
	tcase_add_loop_test(t, every_field_survives_the_long_word, 0, edge_cnt);
	tcase_add_loop_test(t, the_short_word_carries_no_grant_and_no_length, 0,
			    edge_cnt);
	tcase_add_loop_test(
		t, short_word_with_more_than_eight_stripes_is_refused, 0, 16);
	tcase_add_test(t, every_long_word_is_the_pack_of_its_unpack);
	tcase_add_test(t, the_grant_moves_with_the_turn_of_the_sequence_space);
#ifndef NDEBUG
	tcase_add_loop_test_raise_signal(
		t, packing_a_field_that_is_out_of_range_aborts, SIGABRT, 0, 6);
#endif
	return wire_run(t, "wire imm");
}
