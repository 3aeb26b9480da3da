#include "unit/base/unit.h"

#include <pthread.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/util.h"

static void *take_malloc(void)
{
	return fr_malloc(40);
}

static void *take_calloc(void)
{
	return fr_calloc(4, 10);
}

static void *take_strdup(void)
{
	return fr_strdup("text");
}

static void *take_aligned(void)
{
	return fr_aligned_calloc(64, 40);
}

static void *take_realloc(void)
{
	return fr_realloc(NULL, 40);
}

static void *(*const takers[])(void) = {
	take_malloc, take_calloc, take_strdup, take_aligned, take_realloc,
};

START_TEST(every_kind_counts_while_it_lives)
{
	void *block = takers[_i]();

	ck_assert_ptr_nonnull(block);
	ck_assert_uint_eq(fr_live_allocs(), 1);
	fr_free(block);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(every_kind_fails_once_at_the_armed_call)
{
	void *first, *third;

	fr_fault_alloc_at(2);
	first = takers[_i]();
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_null(takers[_i]());
	ck_assert_uint_eq(fr_live_allocs(), 1);
	third = takers[_i]();
	ck_assert_ptr_nonnull(third);
	fr_free(first);
	fr_free(third);
}
END_TEST

START_TEST(disarming_takes_the_fault_back)
{
	void *block;

	fr_fault_alloc_at(1);
	fr_fault_alloc_at(0);
	block = fr_malloc(1);
	ck_assert_ptr_nonnull(block);
	fr_free(block);
}
END_TEST

START_TEST(freeing_null_changes_nothing)
{
	fr_free(NULL);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(no_bytes_are_still_a_block)
{
	void *blocks[] = {fr_malloc(0), fr_calloc(0, 8),
			  fr_aligned_calloc(16, 0), fr_realloc(NULL, 0)};

	for (size_t i = 0; i < FR_ARRAY_LEN(blocks); i++) {
		ck_assert_ptr_nonnull(blocks[i]);
		blocks[i] = fr_realloc(blocks[i], 0);
		ck_assert_ptr_nonnull(blocks[i]);
		fr_free(blocks[i]);
	}
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(calloc_and_aligned_calloc_give_zeros)
{
	static const unsigned char zeros[100];
	void *plain = fr_calloc(10, 10);
	void *aligned = fr_aligned_calloc(32, 100);

	ck_assert_mem_eq(plain, zeros, 100);
	ck_assert_mem_eq(aligned, zeros, 100);
	fr_free(plain);
	fr_free(aligned);
}
END_TEST

START_TEST(calloc_refuses_a_product_that_overflows)
{
	/* volatile: the compiler would see that it cannot work. */
	volatile size_t half = SIZE_MAX / 2;

	ck_assert_ptr_null(fr_calloc(half, 3));
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

/* The loop index is the power of two. */
START_TEST(aligned_calloc_keeps_its_alignment)
{
	size_t align = (size_t)1 << _i;
	void *block = fr_aligned_calloc(align, 24);

	ck_assert_ptr_nonnull(block);
	ck_assert_uint_eq((uintptr_t)block % align, 0);
	fr_free(block);
}
END_TEST

START_TEST(realloc_keeps_the_old_block_when_it_fails)
{
	char *block = fr_strdup("kept");
	char *grown;

	fr_fault_alloc_at(1);
	ck_assert_ptr_null(fr_realloc(block, 1000));
	ck_assert_str_eq(block, "kept");
	grown = fr_realloc(block, 1000);
	ck_assert_str_eq(grown, "kept");
	ck_assert_uint_eq(fr_live_allocs(), 1);
	fr_free(grown);
}
END_TEST

#define THREADS 4
#define ROUNDS 2000

static void *take_and_free(void *arg)
{
	uintptr_t failed = 0;

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		void *block = fr_malloc(8);

		failed += block == NULL;
		fr_free(block);
	}
	return (void *)failed;
}

START_TEST(threads_share_one_count_and_meet_one_fault)
{
	pthread_t thread[THREADS];
	uintptr_t failed = 0;

	fr_fault_alloc_at(THREADS * ROUNDS / 2);
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, take_and_free, NULL),
			0);
	}
	for (int i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(thread[i], &result);
		failed += (uintptr_t)result;
	}
	ck_assert_uint_eq(failed, 1);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("alloc");
	const int kinds = (int)FR_ARRAY_LEN(takers);

	tcase_add_loop_test(t, every_kind_counts_while_it_lives, 0, kinds);
	tcase_add_loop_test(t, every_kind_fails_once_at_the_armed_call, 0,
			    kinds);
	tcase_add_test(t, disarming_takes_the_fault_back);
	tcase_add_test(t, freeing_null_changes_nothing);
	tcase_add_test(t, no_bytes_are_still_a_block);
	tcase_add_test(t, calloc_and_aligned_calloc_give_zeros);
	tcase_add_test(t, calloc_refuses_a_product_that_overflows);
	tcase_add_loop_test(t, aligned_calloc_keeps_its_alignment, 0, 13);
	tcase_add_test(t, realloc_keeps_the_old_block_when_it_fails);
	tcase_add_test(t, threads_share_one_count_and_meet_one_fault);
	return unit_run(t, "base/alloc");
}
