#include "net/sched.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unit/run.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

static struct fr_sched sched;
static struct fr_sched_cursor cursor;
static struct fr_stripe_plan plan[FR_SCHED_MAX_PATHS];

static void setup(void)
{
	sched = (struct fr_sched){.small_bytes = 64,
				  .stripe_bytes = 128 * KIB,
				  .path_cnt = 4,
				  .weight = {1, 1, 1, 1}};
	memset(&cursor, 0, sizeof(cursor));
	memset(plan, 0xee, sizeof(plan));
}

/* Plans, and checks what holds for every plan. */
static unsigned sound_plan(uint64_t bytes)
{
	uint64_t offset = 0;
	unsigned used = 0;
	unsigned cnt;

	fr_sched_prepare(&sched);
	cnt = fr_sched_plan(&sched, &cursor, bytes, plan);
	ck_assert_uint_ge(cnt, 1);
	ck_assert_uint_le(cnt, sched.path_cnt);
	for (unsigned i = 0; i < cnt; i++) {
		ck_assert_uint_eq(plan[i].offset, offset);
		ck_assert_uint_eq(plan[i].offset % FR_STRIPE_ALIGN, 0);
		ck_assert_uint_lt(plan[i].path, sched.path_cnt);
		ck_assert_uint_ne(sched.weight[plan[i].path], 0);
		ck_assert_uint_eq(used & 1u << plan[i].path, 0);
		ck_assert(plan[i].bytes != 0 || bytes == 0);
		if (cnt > 1) {
			ck_assert_uint_ge(plan[i].bytes,
					  sched.stripe_bytes / 8);
		}
		used |= 1u << plan[i].path;
		offset += plan[i].bytes;
	}
	ck_assert_uint_eq(offset, bytes);
	if (bytes <= sched.small_bytes || bytes < sched.stripe_bytes) {
		ck_assert_uint_eq(cnt, 1);
	}
	return cnt;
}

START_TEST(an_empty_message_is_one_empty_stripe)
{
	ck_assert_uint_eq(sound_plan(0), 1);
	ck_assert_uint_eq(plan[0].bytes, 0);
}
END_TEST

START_TEST(small_and_middling_messages_go_round_by_cursors_of_their_own)
{
	for (unsigned i = 0; i < 9; i++) {
		ck_assert_uint_eq(sound_plan(64), 1);
		ck_assert_uint_eq(plan[0].path, i % 4);
		ck_assert_uint_eq(sound_plan(65), 1);
		ck_assert_uint_eq(plan[0].path, i % 4);
	}
	sound_plan(1);
	ck_assert_uint_eq(plan[0].path, 1);
	sound_plan(128 * KIB - 1);
	ck_assert_uint_eq(plan[0].path, 1);
}
END_TEST

START_TEST(a_large_message_is_spread_evenly)
{
	ck_assert_uint_eq(sound_plan(4 * MIB), 4);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_eq(plan[i].path, i);
		ck_assert_uint_eq(plan[i].bytes, MIB);
	}
}
END_TEST

START_TEST(no_path_gets_less_than_half_of_the_threshold)
{
	static const struct {
		uint64_t bytes;
		unsigned cnt;
	} row[] = {
		{128 * KIB, 2},	     {192 * KIB - 1, 2}, {192 * KIB, 3},
		{256 * KIB - 1, 3},  {256 * KIB, 4},	 {1 * MIB + 1, 4},
		{UINT64_MAX / 2, 4}, {UINT64_MAX, 4},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		ck_assert_uint_eq(sound_plan(row[i].bytes), row[i].cnt);
	}
}
END_TEST

START_TEST(messages_that_use_some_paths_take_turns_over_all)
{
	uint64_t carried[4] = {0};

	for (unsigned i = 0; i < 8; i++) {
		unsigned cnt = sound_plan(128 * KIB);

		for (unsigned k = 0; k < cnt; k++) {
			carried[plan[k].path] += plan[k].bytes;
		}
	}
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_eq(carried[i], 256 * KIB);
	}
}
END_TEST

START_TEST(a_path_of_weight_zero_carries_nothing)
{
	sched.weight[0] = 0;
	sched.weight[2] = 0;
	for (unsigned i = 0; i < 6; i++) {
		sound_plan(8);
		ck_assert_uint_eq(plan[0].path, i % 2 == 0 ? 1 : 3);
		sound_plan(4096);
		ck_assert_uint_eq(plan[0].path, i % 2 == 0 ? 1 : 3);
	}
	ck_assert_uint_eq(sound_plan(MIB), 2);
	sched.weight[3] = 0;
	ck_assert_uint_eq(sound_plan(MIB), 1);
	ck_assert_uint_eq(plan[0].path, 1);
}
END_TEST

START_TEST(stripes_follow_the_weights)
{
	sched.path_cnt = 2;
	sched.weight[0] = 100;
	sched.weight[1] = 300;
	ck_assert_uint_eq(sound_plan(4 * MIB), 2);
	ck_assert_uint_eq(plan[0].bytes, MIB);
	ck_assert_uint_eq(plan[1].bytes, 3 * MIB);
}
END_TEST

START_TEST(a_path_too_slow_for_its_half_is_left_out)
{
	sched.path_cnt = 3;
	sched.weight[0] = 100;
	sched.weight[1] = 1;
	sched.weight[2] = 100;
	ck_assert_uint_eq(sound_plan(MIB), 2);
	ck_assert_uint_eq(plan[0].path, 0);
	ck_assert_uint_eq(plan[1].path, 2);
	ck_assert_uint_eq(sound_plan(64 * MIB), 3);
}
END_TEST

START_TEST(the_largest_weights_and_lengths_do_not_overflow)
{
	for (unsigned i = 0; i < 4; i++) {
		sched.weight[i] = UINT32_MAX;
	}
	ck_assert_uint_eq(sound_plan(UINT64_MAX), 4);
	ck_assert_uint_ge(plan[0].bytes, UINT64_MAX / 4 - FR_STRIPE_ALIGN);
	sched.weight[1] = 1;
	ck_assert_uint_eq(sound_plan(UINT64_MAX), 4);
	sched.stripe_bytes = UINT64_MAX;
	ck_assert_uint_eq(sound_plan(UINT64_MAX - 1), 1);
	sound_plan(UINT64_MAX);
}
END_TEST

START_TEST(an_eighth_of_the_threshold_is_the_least_of_a_slow_path)
{
	sched.path_cnt = 2;
	sched.weight[0] = 63;
	ck_assert_uint_eq(sound_plan(MIB), 2);
	ck_assert_uint_eq(plan[1].bytes, 16 * KIB);
	ck_assert_uint_eq(sound_plan(MIB - 128), 1);
	ck_assert_uint_eq(plan[0].path, 0);
}
END_TEST

START_TEST(rotated_each_striped_message_begins_on_the_next_path)
{
	sched.rotate = true;
	for (unsigned i = 0; i < 9; i++) {
		ck_assert_uint_eq(sound_plan(4 * MIB), 4);
		ck_assert_uint_eq(plan[0].path, i % 4);
	}
}
END_TEST

START_TEST(a_striped_message_goes_the_ways_of_the_last_one)
{
	struct fr_stripe_plan last[FR_SCHED_MAX_PATHS];

	ck_assert_uint_eq(sound_plan(4096), 1);
	ck_assert_uint_eq(sound_plan(4 * MIB), 4);
	memcpy(last, plan, sizeof(last));
	for (unsigned i = 0; i < 9; i++) {
		ck_assert_uint_eq(sound_plan(4 * MIB), 4);
		for (unsigned k = 0; k < 4; k++) {
			ck_assert_uint_eq(plan[k].path, last[k].path);
			ck_assert_uint_eq(plan[k].offset, last[k].offset);
		}
	}
}
END_TEST

START_TEST(messages_on_one_path_take_turns_by_weight)
{
	unsigned cnt[4] = {0};

	sched.weight[1] = 3;
	sched.weight[2] = 0;
	sched.weight[3] = 6;
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert_uint_eq(sound_plan(4096), 1);
		cnt[plan[0].path]++;
		/* Evenly, not in runs. */
		ck_assert_uint_le(cnt[0], i / 10 + 2);
		ck_assert_uint_ge(cnt[0] + 2, i / 10);
		ck_assert_uint_le(cnt[3], i * 6 / 10 + 3);
		ck_assert_uint_ge(cnt[3] + 3, i * 6 / 10);
	}
}
END_TEST

/* The loop index: what the path would have had, of 1024. */
START_TEST(a_probe_is_twice_the_part_within_bounds)
{
	static const struct {
		uint32_t weight;
		uint64_t bytes;
	} row[] = {
		{1, 16 * KIB}, {10, 20 * KIB}, {15, 30 * KIB}, {64, 64 * KIB}};

	sched.weight[0] = 512;
	sched.weight[1] = 512 - row[_i].weight;
	sched.weight[2] = row[_i].weight;
	sched.path_cnt = 3;
	sched.probe = 1u << 2;
	ck_assert_uint_eq(sound_plan(MIB), 3);
	ck_assert_uint_eq(plan[0].path, 2);
	ck_assert_uint_eq(plan[0].bytes, row[_i].bytes);
	/* Others do not wait for it. */
	ck_assert_uint_eq(sound_plan(4096), 1);
	sched.weight[0] = 0;
	sched.weight[1] = 0;
	ck_assert_uint_eq(sound_plan(MIB), 1);
	ck_assert_uint_eq(plan[0].path, 2);
}
END_TEST

/* The loop index: paths, less one. Every byte beyond 2^32 is in some stripe,
 * and no offset was cut to 32 bits. */
START_TEST(stripes_lie_beyond_32_bits)
{
	static const uint64_t sizes[] = {INT32_MAX, UINT32_MAX,
					 (UINT64_C(1) << 32) + 1,
					 (UINT64_C(5) << 40) + 77};

	sched.path_cnt = (unsigned)_i + 1;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned cnt = sound_plan(sizes[i]);

		ck_assert_uint_eq(cnt, sched.path_cnt);
		for (unsigned k = 0; k < cnt; k++) {
			uint64_t share = sizes[i] / cnt;

			ck_assert_uint_ge(plan[k].bytes + 256, share);
			ck_assert_uint_le(plan[k].bytes, share + 1024);
		}
	}
}
END_TEST

START_TEST(tiny_thresholds_still_give_whole_lines)
{
	sched.small_bytes = 0;
	sched.stripe_bytes = 1;
	ck_assert_uint_eq(sound_plan(1), 1);
	ck_assert_uint_eq(sound_plan(255), 1);
	ck_assert_uint_eq(sound_plan(256), 2);
	ck_assert_uint_eq(plan[0].bytes, 128);
	ck_assert_uint_eq(sound_plan(513), 4);
	ck_assert_uint_eq(plan[3].bytes, 129);
}
END_TEST

START_TEST(a_cursor_from_a_link_with_more_paths_starts_again)
{
	cursor.small = 7;
	cursor.large = UINT32_MAX;
	sound_plan(1);
	ck_assert_uint_eq(plan[0].path, 0);
	sound_plan(4096);
	ck_assert_uint_eq(plan[0].path, 0);
}
END_TEST

static uint32_t any(unsigned *seed)
{
	return (uint32_t)rand_r(seed);
}

START_TEST(every_plan_is_sound)
{
	unsigned seed = (unsigned)_i + 1;

	for (unsigned round = 0; round < 3000; round++) {
		sched.path_cnt = 1 + any(&seed) % 8;
		sched.small_bytes = any(&seed) % 4096;
		sched.stripe_bytes = 1 + any(&seed) % (256 * 1024);
		for (unsigned i = 0; i < 8; i++) {
			sched.weight[i] =
				any(&seed) % 3 == 0
					? 0
					: any(&seed) >> any(&seed) % 31;
		}
		sched.weight[any(&seed) % sched.path_cnt] = 1 + any(&seed) % 99;
		sched.probe =
			any(&seed) % 4 != 0
				? 0
				: (uint8_t)(1u << any(&seed) % sched.path_cnt);
		sound_plan(any(&seed) >> any(&seed) % 31);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("sched");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, an_empty_message_is_one_empty_stripe);
	tcase_add_test(
		t,
		small_and_middling_messages_go_round_by_cursors_of_their_own);
	tcase_add_test(t, a_large_message_is_spread_evenly);
	tcase_add_test(t, no_path_gets_less_than_half_of_the_threshold);
	tcase_add_test(t, messages_that_use_some_paths_take_turns_over_all);
	tcase_add_test(t, a_path_of_weight_zero_carries_nothing);
	tcase_add_test(t, stripes_follow_the_weights);
	tcase_add_test(t, a_path_too_slow_for_its_half_is_left_out);
	tcase_add_test(t, the_largest_weights_and_lengths_do_not_overflow);
	tcase_add_test(t,
		       an_eighth_of_the_threshold_is_the_least_of_a_slow_path);
	tcase_add_test(t, rotated_each_striped_message_begins_on_the_next_path);
	tcase_add_test(t, a_striped_message_goes_the_ways_of_the_last_one);
	tcase_add_test(t, messages_on_one_path_take_turns_by_weight);
	tcase_add_loop_test(t, a_probe_is_twice_the_part_within_bounds, 0, 4);
	tcase_add_loop_test(t, stripes_lie_beyond_32_bits, 0, 4);
	tcase_add_test(t, tiny_thresholds_still_give_whole_lines);
	tcase_add_test(t, a_cursor_from_a_link_with_more_paths_starts_again);
	tcase_add_loop_test(t, every_plan_is_sound, 0, 4);
	return unit_run(t, "net sched");
}
