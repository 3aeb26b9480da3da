#include "unit/base/unit.h"

#include <errno.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/idpool.h"
#include "base/util.h"

static struct fr_idpool *open_pool(uint32_t size)
{
	struct fr_idpool *pool = NULL;

	ck_assert_int_eq(fr_idpool_create(size, &pool), 0);
	return pool;
}

static void close_pool(struct fr_idpool *pool)
{
	fr_idpool_destroy(pool);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

static void get_range(struct fr_idpool *pool, int64_t from, int64_t to)
{
	for (; from < to; from++) {
		ck_assert_int_eq(fr_idpool_get(pool), from);
	}
}

START_TEST(create_leaks_nothing_wherever_it_fails)
{
	struct fr_idpool *const untouched = (struct fr_idpool *)0x8;
	struct fr_idpool *pool = untouched;
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), 0);
		ck_assert_ptr_eq(pool, untouched);
		fr_fault_alloc_at(++nth);
		ret = fr_idpool_create(100, &pool);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);

	ck_assert_uint_eq(nth, 4); /* pool, queue, bitmap: three can fail */
	fr_fault_alloc_at(0);
	close_pool(pool);
}
END_TEST

START_TEST(destroying_null_is_harmless)
{
	fr_idpool_destroy(NULL);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(a_pool_of_size_0_never_has_an_id)
{
	struct fr_idpool *pool = open_pool(0);

	ck_assert_int_eq(fr_idpool_get(pool), -1);
	fr_idpool_put(pool, -1);
	ck_assert_int_eq(fr_idpool_get(pool), -1);
	ck_assert_uint_eq(fr_idpool_used(pool), 0);
	close_pool(pool);
}
END_TEST

static const uint32_t sizes[] = {1, 2, 63, 64, 65, 1000, 1u << 18};

START_TEST(each_id_goes_out_once_and_then_none)
{
	struct fr_idpool *pool = open_pool(sizes[_i]);

	get_range(pool, 0, sizes[_i]);
	ck_assert_int_eq(fr_idpool_get(pool), -1);
	ck_assert_uint_eq(fr_idpool_used(pool), sizes[_i]);
	close_pool(pool);
}
END_TEST

START_TEST(ids_come_back_in_the_order_they_returned)
{
	static const int64_t order[] = {7, 0, 9, 3, 1};
	struct fr_idpool *pool = open_pool(10);

	get_range(pool, 0, 10);
	for (size_t i = 0; i < FR_ARRAY_LEN(order); i++) {
		fr_idpool_put(pool, order[i]);
	}
	ck_assert_uint_eq(fr_idpool_used(pool), 5);
	for (size_t i = 0; i < FR_ARRAY_LEN(order); i++) {
		ck_assert_int_eq(fr_idpool_get(pool), order[i]);
	}
	ck_assert_int_eq(fr_idpool_get(pool), -1);
	close_pool(pool);
}
END_TEST

START_TEST(an_id_is_not_reused_while_another_is_free)
{
	struct fr_idpool *pool = open_pool(100);

	for (int64_t i = 0; i < 350; i++) {
		int64_t id = fr_idpool_get(pool);

		ck_assert_int_eq(id, i % 100);
		fr_idpool_put(pool, id);
	}
	close_pool(pool);
}
END_TEST

/* Two ids stay out: the others take turns around them, evenly. */
START_TEST(reuse_is_late_with_long_lived_ids_in_between)
{
	struct fr_idpool *pool = open_pool(16);
	int last_seen[16];

	get_range(pool, 0, 16);
	for (int64_t id = 0; id < 16; id++) {
		last_seen[id] = -14;
		if (id != 3 && id != 11) {
			fr_idpool_put(pool, id);
		}
	}
	for (int turn = 0; turn < 200; turn++) {
		int64_t id = fr_idpool_get(pool);

		ck_assert_int_ge(id, 0);
		ck_assert(id != 3 && id != 11);
		ck_assert_int_ge(turn - last_seen[id],
				 last_seen[id] < 0 ? 0 : 14);
		last_seen[id] = turn;
		fr_idpool_put(pool, id);
	}
	close_pool(pool);
}
END_TEST

#define THREADS 4
#define ROUNDS 2000

static struct fr_idpool *shared_pool;
static _Atomic int holders[8];

static void *get_and_put(void *arg)
{
	uintptr_t doubled = 0;

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		int64_t id = fr_idpool_get(shared_pool);

		if (id < 0 || ++holders[id] != 1) {
			doubled++;
			continue;
		}
		holders[id]--;
		fr_idpool_put(shared_pool, id);
	}
	return (void *)doubled;
}

START_TEST(no_two_threads_hold_one_id)
{
	pthread_t thread[THREADS];
	void *doubled;

	shared_pool = open_pool(8);
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, get_and_put, NULL), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &doubled);
		ck_assert_ptr_null(doubled);
	}
	ck_assert_uint_eq(fr_idpool_used(shared_pool), 0);
	close_pool(shared_pool);
}
END_TEST

#ifndef NDEBUG
static const int64_t bad_ids[] = {0, 1, 2, 1000, -2, 1ll << 32};

START_TEST(returning_an_id_that_is_not_out_aborts)
{
	struct fr_idpool *pool = open_pool(2);

	fr_idpool_put(pool, fr_idpool_get(pool));
	fr_idpool_put(pool, bad_ids[_i]);
}
END_TEST
#endif

int main(void)
{
	TCase *t = tcase_create("idpool");

	tcase_add_test(t, create_leaks_nothing_wherever_it_fails);
	tcase_add_test(t, destroying_null_is_harmless);
	tcase_add_test(t, a_pool_of_size_0_never_has_an_id);
	tcase_add_loop_test(t, each_id_goes_out_once_and_then_none, 0,
			    (int)FR_ARRAY_LEN(sizes));
	tcase_add_test(t, ids_come_back_in_the_order_they_returned);
	tcase_add_test(t, an_id_is_not_reused_while_another_is_free);
	tcase_add_test(t, reuse_is_late_with_long_lived_ids_in_between);
	tcase_add_test(t, no_two_threads_hold_one_id);
#ifndef NDEBUG
	tcase_add_loop_test_raise_signal(
		t, returning_an_id_that_is_not_out_aborts, SIGABRT, 0,
		(int)FR_ARRAY_LEN(bad_ids));
#endif
	return unit_run(t, "base/idpool");
}
