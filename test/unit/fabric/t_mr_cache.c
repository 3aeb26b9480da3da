#include "unit/fabric/fabric_unit.h"

#include <pthread.h>
#include <sys/mman.h>

#define PAGE 4096u
#define PAGES 64u

static struct fr_fabric *fabric;
static struct unit_owner owner;
static struct fr_rail *rail[2];
static struct fr_mr_cache *cache;
static char *mem; /* PAGES pages */

static void create(bool share)
{
	ck_assert_int_eq(fr_mr_cache_create(rail, 2, share, &cache), 0);
}

static void setup(void)
{
	unit_fake_setup();
	fabric = unit_fabric("net");
	rail[0] = unit_rail(fabric, 0, &owner);
	rail[1] = unit_rail(fabric, 1, &owner);
	mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
}

/* Whatever the test did, nothing may be left. */
static void teardown(void)
{
	fr_mr_cache_destroy(cache);
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
	fr_rail_close(rail[0]);
	fr_rail_close(rail[1]);
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi_live(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

static struct fr_mr *get(size_t offset, size_t bytes, unsigned access)
{
	struct fr_mr *mr = NULL;

	ck_assert_int_eq(fr_mr_get(cache, mem + offset, bytes, access, &mr), 0);
	return mr;
}

START_TEST(what_lies_inside_a_live_registration_shares_it)
{
	struct fr_mr *a, *b, *c;

	create(true);
	a = get(PAGE + 100, 2 * PAGE, FR_MR_LOCAL);
	ck_assert_ptr_eq(fake_fi.reg_iov.iov_base, mem + PAGE);
	ck_assert_uint_eq(fake_fi.reg_iov.iov_len, 3 * PAGE);
	b = get(PAGE, 1, FR_MR_LOCAL);
	c = get(4 * PAGE - 1, 1, FR_MR_LOCAL);
	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_eq(a, c);
	ck_assert_uint_eq(fr_mr_cache_live(cache), 1);
	ck_assert_uint_eq(fr_mr_remote_addr(a, mem + PAGE + 7), 7);
	fr_mr_put(cache, a);
	fr_mr_put(cache, b);
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 2);
	fr_mr_put(cache, c);
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
	ck_assert_uint_eq(fr_mr_cache_live(cache), 0);
}
END_TEST

START_TEST(a_peer_may_write_to_no_byte_beside_the_range)
{
	struct fr_mr *a, *b, *c;

	create(true);
	a = get(PAGE + 100, 200, FR_MR_REMOTE_WRITE);
	ck_assert_ptr_eq(fake_fi.reg_iov.iov_base, mem + PAGE + 100);
	ck_assert_uint_eq(fake_fi.reg_iov.iov_len, 200);
	b = get(PAGE + 150, 150, FR_MR_REMOTE_WRITE);
	c = get(PAGE + 150, 151, FR_MR_REMOTE_WRITE);
	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_ne(a, c);
	ck_assert_uint_eq(fr_mr_remote_addr(b, mem + PAGE + 150), 50);
	fr_mr_put(cache, a);
	fr_mr_put(cache, b);
	fr_mr_put(cache, c);
}
END_TEST

START_TEST(a_dropped_registration_is_not_remembered)
{
	struct fr_mr *mr;

	create(true);
	fr_mr_put(cache, get(0, PAGE, FR_MR_REMOTE_WRITE));
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
	mr = get(0, PAGE, FR_MR_REMOTE_WRITE);
	ck_assert_uint_eq(fake_fi.regs, 4);
	fr_mr_put(cache, mr);
	fr_mr_put(cache, NULL);
}
END_TEST

START_TEST(another_access_or_a_byte_too_much_registers_anew)
{
	struct fr_mr *mr[4];

	create(true);
	mr[0] = get(PAGE, PAGE, FR_MR_LOCAL);
	mr[1] = get(PAGE, PAGE, FR_MR_LOCAL | FR_MR_REMOTE_WRITE);
	mr[2] = get(PAGE, PAGE + 1, FR_MR_LOCAL);
	mr[3] = get(PAGE - 1, PAGE, FR_MR_LOCAL);
	ck_assert_uint_eq(fr_mr_cache_live(cache), 4);
	for (size_t i = 0; i < 4; i++) {
		fr_mr_put(cache, mr[i]);
	}
}
END_TEST

START_TEST(without_sharing_each_one_is_exact_and_its_own)
{
	struct fr_mr *a, *b;

	create(false);
	a = get(10, 20, FR_MR_LOCAL);
	ck_assert_ptr_eq(fake_fi.reg_iov.iov_base, mem + 10);
	ck_assert_uint_eq(fake_fi.reg_iov.iov_len, 20);
	b = get(10, 20, FR_MR_LOCAL);
	ck_assert_ptr_ne(a, b);
	ck_assert_uint_eq(fr_mr_cache_live(cache), 2);
	fr_mr_put(cache, a);
	fr_mr_put(cache, b);
}
END_TEST

START_TEST(bad_ranges_and_accesses_are_refused)
{
	struct fr_mr *mr = (struct fr_mr *)0x1;
	char *top = (char *)UINTPTR_MAX;

	create(true);
	ck_assert_int_eq(fr_mr_get(cache, mem, 0, FR_MR_LOCAL, &mr), -EINVAL);
	ck_assert_int_eq(fr_mr_get(cache, mem, SIZE_MAX, FR_MR_LOCAL, &mr),
			 -EINVAL);
	ck_assert_int_eq(fr_mr_get(cache, top, 2, FR_MR_LOCAL, &mr), -EINVAL);
	ck_assert_int_eq(fr_mr_get(cache, mem, 1, 0, &mr), -EINVAL);
	ck_assert_int_eq(fr_mr_get(cache, mem, 1, 0x10, &mr), -EINVAL);
	ck_assert_ptr_eq(mr, (struct fr_mr *)0x1);
	ck_assert_uint_eq(fake_fi.regs, 0);
}
END_TEST

struct held {
	size_t first, last; /* pages that @mr covers */
	struct fr_mr *mr;
};

static struct held *held_around(struct held *held, unsigned cnt, size_t first,
				size_t last)
{
	for (unsigned i = 0; i < cnt; i++) {
		if (held[i].first <= first && held[i].last >= last) {
			return &held[i];
		}
	}
	return NULL;
}

/* Random intervals against a plain list: a get shares exactly when a live one
 * contains it, and then shares one that does. */
START_TEST(lookup_agrees_with_a_plain_search)
{
	struct held held[128];
	unsigned cnt = 0;

	create(true);
	srand((unsigned)_i);
	for (unsigned step = 0; step < 1000; step++) {
		size_t first = (size_t)rand() % PAGES;
		size_t last = first + (size_t)rand() % (PAGES - first);
		unsigned live = fr_mr_cache_live(cache);
		struct held now = {first, last, NULL};
		bool inside;

		if (cnt == FR_ARRAY_LEN(held) || (cnt > 0 && rand() % 3 == 0)) {
			unsigned at = (unsigned)rand() % cnt;

			fr_mr_put(cache, held[at].mr);
			held[at] = held[--cnt];
			continue;
		}
		inside = held_around(held, cnt, first, last) != NULL;
		now.mr = get(first * PAGE + 1, (last - first) * PAGE + 2,
			     FR_MR_LOCAL);
		ck_assert_uint_eq(fr_mr_cache_live(cache),
				  live + (inside ? 0 : 1));
		for (unsigned i = 0; i < cnt; i++) {
			if (held[i].mr == now.mr) {
				ck_assert_uint_le(held[i].first, first);
				ck_assert_uint_ge(held[i].last, last);
				now = held[i];
			}
		}
		held[cnt++] = now;
	}
	while (cnt > 0) {
		fr_mr_put(cache, held[--cnt].mr);
	}
	ck_assert_uint_eq(fr_mr_cache_live(cache), 0);
}
END_TEST

START_TEST(get_leaks_nothing_wherever_memory_ends)
{
	struct fr_mr *mr = NULL;
	size_t live;
	unsigned nth = 0;
	int ret;

	create(true);
	live = fr_live_allocs();
	do {
		ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
		ck_assert_uint_le(fr_live_allocs(), live + 1); /* the vector */
		fr_fault_alloc_at(++nth);
		ret = fr_mr_get(cache, mem, 1, FR_MR_LOCAL, &mr);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	ck_assert_uint_ge(nth, 2);
	fr_fault_alloc_at(0);
	fr_mr_put(cache, mr);
}
END_TEST

START_TEST(create_leaks_nothing_wherever_memory_ends)
{
	size_t live = fr_live_allocs();
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), live);
		ck_assert_ptr_null(cache);
		fr_fault_alloc_at(++nth);
		ret = fr_mr_cache_create(rail, 2, true, &cache);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	fr_fault_alloc_at(0);
	ck_assert_uint_ge(nth, 3);
}
END_TEST

START_TEST(destroy_closes_what_is_left)
{
	create(_i == 0);
	get(0, PAGE, FR_MR_LOCAL);
	get(PAGE, PAGE, FR_MR_LOCAL);
	fr_mr_cache_destroy(cache);
	cache = NULL;
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
	fr_mr_cache_destroy(NULL);
	fr_mr_cache_abandon(NULL);
}
END_TEST

START_TEST(abandoning_leaves_libfabrics_objects_alone)
{
	size_t live;

	live = fr_live_allocs();
	create(true);
	get(0, PAGE, FR_MR_LOCAL);
	fr_mr_cache_abandon(cache);
	cache = NULL;
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 2);
	ck_assert_uint_eq(fr_live_allocs(), live);
	ck_assert_str_eq(fake_fi.closed, "");
	fr_rail_abandon(rail[0]);
	fr_rail_abandon(rail[1]);
}
END_TEST

static void *get_and_put(void *arg)
{
	size_t page = (size_t)(uintptr_t)arg;

	for (unsigned i = 0; i < 2000; i++) {
		struct fr_mr *mr = NULL;

		if (fr_mr_get(cache, mem + (i + page) % PAGES * PAGE, PAGE,
			      FR_MR_LOCAL, &mr) != 0) {
			return arg;
		}
		fr_mr_put(cache, mr);
	}
	return NULL;
}

START_TEST(threads_may_get_and_put_at_once)
{
	pthread_t thread[4];
	void *bad;

	create(true);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(pthread_create(&thread[i], NULL, get_and_put,
						(void *)(i + 1)),
				 0);
	}
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(pthread_join(thread[i], &bad), 0);
		ck_assert_ptr_null(bad);
	}
	ck_assert_uint_eq(fr_mr_cache_live(cache), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("mr_cache");
	TCase *odd = tcase_create("abandon");
	Suite *suite = suite_create("fabric/mr_cache");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, what_lies_inside_a_live_registration_shares_it);
	tcase_add_test(t, a_peer_may_write_to_no_byte_beside_the_range);
	tcase_add_test(t, a_dropped_registration_is_not_remembered);
	tcase_add_test(t, another_access_or_a_byte_too_much_registers_anew);
	tcase_add_test(t, without_sharing_each_one_is_exact_and_its_own);
	tcase_add_test(t, bad_ranges_and_accesses_are_refused);
	tcase_add_loop_test(t, lookup_agrees_with_a_plain_search, 0, 5);
	tcase_add_test(t, get_leaks_nothing_wherever_memory_ends);
	tcase_add_test(t, create_leaks_nothing_wherever_memory_ends);
	tcase_add_loop_test(t, destroy_closes_what_is_left, 0, 2);
	tcase_add_test(t, threads_may_get_and_put_at_once);
	tcase_set_timeout(odd, 30);
	tcase_add_checked_fixture(odd, setup, NULL);
	tcase_add_test(odd, abandoning_leaves_libfabrics_objects_alone);
	suite_add_tcase(suite, t);
	suite_add_tcase(suite, odd);
	return unit_run_suite(suite);
}
