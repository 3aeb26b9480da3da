#include "unit/base/unit.h"

#include "base/lock.h"

#define THREADS 4
#define ROUNDS 2000

static struct fr_lock lock;
static unsigned shared_cnt; /* guarded by lock */

static void lock_setup(void)
{
	fr_lock_init(&lock);
}

static void lock_teardown(void)
{
	fr_lock_fini(&lock);
}

static void *count_up(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		fr_lock_take(&lock);
		fr_lock_assert(&lock);
		shared_cnt++;
		fr_lock_drop(&lock);
	}
	return NULL;
}

START_TEST(one_thread_at_a_time_is_inside)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, count_up, NULL), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
	}
	ck_assert_uint_eq(shared_cnt, THREADS * ROUNDS);
}
END_TEST

static void *try_once(void *arg)
{
	bool *took = arg;

	*took = fr_lock_try(&lock);
	if (*took) {
		fr_lock_drop(&lock);
	}
	return NULL;
}

static bool other_thread_can_take(void)
{
	pthread_t thread;
	bool took;

	ck_assert_int_eq(pthread_create(&thread, NULL, try_once, &took), 0);
	pthread_join(thread, NULL);
	return took;
}

START_TEST(trying_a_held_lock_fails_at_once)
{
	fr_lock_take(&lock);
	ck_assert(!other_thread_can_take());
	fr_lock_drop(&lock);
	ck_assert(other_thread_can_take());
}
END_TEST

START_TEST(a_lock_taken_by_trying_is_held)
{
	ck_assert(fr_lock_try(&lock));
	fr_lock_assert(&lock);
	ck_assert(!other_thread_can_take());
	fr_lock_drop(&lock);
}
END_TEST

START_TEST(an_owned_lock_knows_its_thread)
{
	static struct fr_lock own = FR_LOCK_OWNED_INIT;

	ck_assert(!fr_lock_is_mine(&own));
	fr_lock_take(&own);
	ck_assert(fr_lock_is_mine(&own));
	fr_lock_drop(&own);
	ck_assert(!fr_lock_is_mine(&own));
	ck_assert(fr_lock_try(&own));
	ck_assert(fr_lock_is_mine(&own));
	fr_lock_drop(&own);
}
END_TEST

#ifndef NDEBUG
START_TEST(asserting_a_free_lock_aborts)
{
	fr_lock_assert(&lock);
}
END_TEST
#endif

int main(void)
{
	TCase *t = tcase_create("lock");

	tcase_add_checked_fixture(t, lock_setup, lock_teardown);
	tcase_add_test(t, one_thread_at_a_time_is_inside);
	tcase_add_test(t, trying_a_held_lock_fails_at_once);
	tcase_add_test(t, a_lock_taken_by_trying_is_held);
	tcase_add_test(t, an_owned_lock_knows_its_thread);
#ifndef NDEBUG
	tcase_add_test_raise_signal(t, asserting_a_free_lock_aborts, SIGABRT);
#endif
	return unit_run(t, "base/lock");
}
