#include "unit/base/unit.h"

#include <errno.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/freelist.h"
#include "base/util.h"

#if defined(__SANITIZE_ADDRESS__) && defined(__has_include)
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#define HAVE_POISON 1
#endif
#endif

/* What the hooks saw. */
static struct {
	unsigned blocks; /* added and not deleted */
	unsigned elems;	 /* initialised and not finalised */
	unsigned added;	 /* blocks, ever */
	unsigned inits;	 /* calls of elem_init, ever */
	unsigned fail_init_at;
	int block_ret;
	unsigned char *base;
	size_t bytes;
} seen;

static int cookie_of_block;

static int on_block_add(void *arg, void *base, size_t bytes, void **cookie)
{
	ck_assert_ptr_eq(arg, &seen);
	if (seen.block_ret != 0) {
		return seen.block_ret;
	}
	seen.blocks++;
	seen.added++;
	seen.base = base;
	seen.bytes = bytes;
	*cookie = &cookie_of_block;
	return 0;
}

static void on_block_del(void *arg, void *cookie)
{
	ck_assert_ptr_eq(arg, &seen);
	ck_assert_ptr_eq(cookie, &cookie_of_block);
	/* Elements go before their block. */
	ck_assert_uint_eq(seen.elems % 4, 0);
	seen.blocks--;
}

static int on_elem_init(void *arg, void *elem, void *cookie)
{
	unsigned char *at = elem;

	ck_assert_ptr_eq(arg, &seen);
	ck_assert_ptr_eq(cookie, &cookie_of_block);
	ck_assert(at >= seen.base && at + 40 <= seen.base + seen.bytes);
	if (++seen.inits == seen.fail_init_at) {
		return -EIO;
	}
	seen.elems++;
	memset(elem, 0x5a, 40);
	return 0;
}

static void on_elem_fini(void *arg, void *elem)
{
	ck_assert_ptr_eq(arg, &seen);
	ck_assert_uint_eq(*(unsigned char *)elem, 0x5a);
	seen.elems--;
}

static const struct fr_freelist_attr hooked = {
	.elem_bytes = 40,
	.grow_cnt = 4,
	.arg = &seen,
	.block_add = on_block_add,
	.block_del = on_block_del,
	.elem_init = on_elem_init,
	.elem_fini = on_elem_fini,
};

static const struct fr_freelist_attr plain = {
	.elem_bytes = 40,
	.grow_cnt = 4,
};

static struct fr_freelist *open_list(const struct fr_freelist_attr *attr)
{
	struct fr_freelist *fl = NULL;

	ck_assert_int_eq(fr_freelist_create(attr, &fl), 0);
	return fl;
}

static void close_list(struct fr_freelist *fl)
{
	fr_freelist_destroy(fl);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	ck_assert_uint_eq(seen.blocks, 0);
	ck_assert_uint_eq(seen.elems, 0);
}

START_TEST(create_leaks_nothing_where_it_fails)
{
	struct fr_freelist *const untouched = (struct fr_freelist *)0x8;
	struct fr_freelist *fl = untouched;

	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_freelist_create(&plain, &fl), -ENOMEM);
	ck_assert_ptr_eq(fl, untouched);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	fl = open_list(&plain);
	ck_assert_uint_eq(fr_live_allocs(), 1); /* no block yet */
	close_list(fl);
}
END_TEST

static const struct fr_freelist_attr senseless[] = {
	{.elem_bytes = 0, .grow_cnt = 4},
	{.elem_bytes = 8, .grow_cnt = 0},
	{.elem_bytes = 8, .grow_cnt = 4, .align = 24},
	{.elem_bytes = SIZE_MAX, .grow_cnt = 1},
	{.elem_bytes = SIZE_MAX / 16, .grow_cnt = 1000},
	{.elem_bytes = 8, .grow_cnt = 4, .align = SIZE_MAX / 2 + 1},
};

START_TEST(sizes_that_make_no_sense_are_refused)
{
	struct fr_freelist *const untouched = (struct fr_freelist *)0x8;
	struct fr_freelist *fl = untouched;

	ck_assert_int_eq(fr_freelist_create(&senseless[_i], &fl), -EINVAL);
	ck_assert_ptr_eq(fl, untouched);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(null_is_no_element_and_no_list)
{
	struct fr_freelist *fl = open_list(&plain);

	fr_freelist_put(fl, NULL);
	ck_assert_uint_eq(fr_freelist_used(fl), 0);
	close_list(fl);
	fr_freelist_destroy(NULL);
}
END_TEST

/* The loop index is the failing allocation of the block. */
START_TEST(get_survives_a_failed_allocation)
{
	struct fr_freelist *fl = open_list(&hooked);
	void *elem;

	fr_fault_alloc_at((unsigned)_i);
	ck_assert_ptr_null(fr_freelist_get(fl));
	ck_assert_uint_eq(fr_live_allocs(), 1);
	ck_assert_uint_eq(seen.added, 0);
	ck_assert_uint_eq(fr_freelist_used(fl), 0);
	elem = fr_freelist_get(fl);
	ck_assert_ptr_nonnull(elem);
	fr_freelist_put(fl, elem);
	close_list(fl);
}
END_TEST

START_TEST(a_full_block_stays_usable_when_the_next_cannot_grow)
{
	struct fr_freelist *fl = open_list(&plain);
	void *elem[4];

	for (int i = 0; i < 4; i++) {
		elem[i] = fr_freelist_get(fl);
		ck_assert_ptr_nonnull(elem[i]);
	}
	fr_fault_alloc_at(2);
	ck_assert_ptr_null(fr_freelist_get(fl));
	fr_freelist_put(fl, elem[2]);
	ck_assert_ptr_eq(fr_freelist_get(fl), elem[2]);
	close_list(fl);
}
END_TEST

START_TEST(a_block_that_its_hook_refuses_is_given_back)
{
	struct fr_freelist *fl = open_list(&hooked);

	seen.block_ret = -EIO;
	ck_assert_ptr_null(fr_freelist_get(fl));
	ck_assert_uint_eq(fr_live_allocs(), 1);
	ck_assert_uint_eq(seen.inits, 0);
	seen.block_ret = 0;
	ck_assert_ptr_nonnull(fr_freelist_get(fl));
	close_list(fl);
}
END_TEST

/* The loop index is the element whose hook fails: in the first block or the
 * second. */
START_TEST(a_failing_element_undoes_its_block_only)
{
	struct fr_freelist *fl = open_list(&hooked);
	int got = 0;

	seen.fail_init_at = (unsigned)_i;
	while (fr_freelist_get(fl) != NULL) {
		got++;
	}
	ck_assert_int_eq(got, _i <= 4 ? 0 : 4);
	ck_assert_uint_eq(seen.blocks, _i <= 4 ? 0 : 1);
	ck_assert_uint_eq(seen.elems, (unsigned)got);
	ck_assert_ptr_nonnull(fr_freelist_get(fl));
	close_list(fl);
}
END_TEST

START_TEST(hooks_see_each_element_once_however_often_it_is_used)
{
	struct fr_freelist *fl = open_list(&hooked);

	for (int i = 0; i < 100; i++) {
		void *elem = fr_freelist_get(fl);

		ck_assert_ptr_nonnull(elem);
		fr_freelist_put(fl, elem);
	}
	ck_assert_uint_eq(seen.added, 1);
	ck_assert_uint_eq(seen.inits, 4);
	close_list(fl);
}
END_TEST

START_TEST(elements_keep_what_was_written_into_them)
{
	struct fr_freelist *fl = open_list(&hooked);
	unsigned char *elem[4];
	unsigned char want[40];

	memset(want, 0x5a, sizeof(want));
	for (int i = 0; i < 4; i++) {
		elem[i] = fr_freelist_get(fl);
		ck_assert_mem_eq(elem[i], want, sizeof(want));
		elem[i][39] = (unsigned char)i;
	}
	for (int i = 0; i < 4; i++) {
		fr_freelist_put(fl, elem[i]);
	}
	for (int i = 3; i >= 0; i--) {
		unsigned char *again = fr_freelist_get(fl);

		ck_assert_ptr_eq(again, elem[i]);
		ck_assert_mem_eq(again, want, 39);
		ck_assert_uint_eq(again[39], (unsigned char)i);
	}
	close_list(fl);
}
END_TEST

START_TEST(the_last_one_back_goes_out_first)
{
	struct fr_freelist *fl = open_list(&plain);
	void *a = fr_freelist_get(fl);
	void *b = fr_freelist_get(fl);

	fr_freelist_put(fl, a);
	fr_freelist_put(fl, b);
	ck_assert_ptr_eq(fr_freelist_get(fl), b);
	ck_assert_ptr_eq(fr_freelist_get(fl), a);
	close_list(fl);
}
END_TEST

START_TEST(a_limit_holds_though_no_multiple_of_a_block)
{
	struct fr_freelist_attr attr = plain;
	struct fr_freelist *fl;
	void *elem = NULL;

	attr.max_cnt = 6;
	fl = open_list(&attr);
	for (unsigned i = 0; i < 6; i++) {
		ck_assert_uint_eq(fr_freelist_used(fl), i);
		elem = fr_freelist_get(fl);
		ck_assert_ptr_nonnull(elem);
	}
	ck_assert_ptr_null(fr_freelist_get(fl));
	ck_assert_uint_eq(fr_freelist_used(fl), 6);
	fr_freelist_put(fl, elem);
	ck_assert_uint_eq(fr_freelist_used(fl), 5);
	ck_assert_ptr_eq(fr_freelist_get(fl), elem);
	close_list(fl);
}
END_TEST

/* The loop index is the power of two, 0 to 12. */
START_TEST(elements_are_aligned_and_do_not_overlap)
{
	struct fr_freelist_attr attr = {.grow_cnt = 3};
	unsigned char *elem[7];
	struct fr_freelist *fl;

	attr.align = (size_t)1 << _i;
	attr.elem_bytes = attr.align + 5;
	fl = open_list(&attr);
	for (size_t i = 0; i < FR_ARRAY_LEN(elem); i++) {
		elem[i] = fr_freelist_get(fl);
		ck_assert_ptr_nonnull(elem[i]);
		ck_assert_uint_eq((uintptr_t)elem[i] % FR_MAX(attr.align, 16),
				  0);
		memset(elem[i], (int)i, attr.elem_bytes);
	}
	for (size_t i = 0; i < FR_ARRAY_LEN(elem); i++) {
		for (size_t k = 0; k < attr.elem_bytes; k++) {
			ck_assert_uint_eq(elem[i][k], i);
		}
		fr_freelist_put(fl, elem[i]);
	}
	close_list(fl);
}
END_TEST

START_TEST(new_elements_are_zero_without_a_hook)
{
	static const unsigned char zeros[40];
	struct fr_freelist *fl = open_list(&plain);

	ck_assert_mem_eq(fr_freelist_get(fl), zeros, sizeof(zeros));
	close_list(fl);
}
END_TEST

#ifdef HAVE_POISON
START_TEST(a_free_element_is_poisoned)
{
	struct fr_freelist *fl = open_list(&plain);
	unsigned char *elem = fr_freelist_get(fl);

	ck_assert(!__asan_address_is_poisoned(elem));
	ck_assert(!__asan_address_is_poisoned(elem + 39));
	fr_freelist_put(fl, elem);
	ck_assert(__asan_address_is_poisoned(elem));
	ck_assert(__asan_address_is_poisoned(elem + 39));
	close_list(fl);
}
END_TEST
#endif

#ifndef NDEBUG
START_TEST(putting_twice_aborts)
{
	struct fr_freelist *fl = open_list(&plain);
	void *elem = fr_freelist_get(fl);

	ck_assert_ptr_nonnull(fr_freelist_get(fl));
	fr_freelist_put(fl, elem);
	fr_freelist_put(fl, elem);
}
END_TEST
#endif

static void freelist_setup(void)
{
	memset(&seen, 0, sizeof(seen));
}

int main(void)
{
	TCase *t = tcase_create("freelist");

	tcase_add_checked_fixture(t, freelist_setup, NULL);
	tcase_add_test(t, create_leaks_nothing_where_it_fails);
	tcase_add_loop_test(t, sizes_that_make_no_sense_are_refused, 0,
			    (int)FR_ARRAY_LEN(senseless));
	tcase_add_test(t, null_is_no_element_and_no_list);
	tcase_add_loop_test(t, get_survives_a_failed_allocation, 1, 3);
	tcase_add_test(t, a_full_block_stays_usable_when_the_next_cannot_grow);
	tcase_add_test(t, a_block_that_its_hook_refuses_is_given_back);
	tcase_add_loop_test(t, a_failing_element_undoes_its_block_only, 1, 9);
	tcase_add_test(t, hooks_see_each_element_once_however_often_it_is_used);
	tcase_add_test(t, elements_keep_what_was_written_into_them);
	tcase_add_test(t, the_last_one_back_goes_out_first);
	tcase_add_test(t, a_limit_holds_though_no_multiple_of_a_block);
	tcase_add_loop_test(t, elements_are_aligned_and_do_not_overlap, 0, 13);
	tcase_add_test(t, new_elements_are_zero_without_a_hook);
#ifdef HAVE_POISON
	tcase_add_test(t, a_free_element_is_poisoned);
#endif
#ifndef NDEBUG
	tcase_add_test_raise_signal(t, putting_twice_aborts, SIGABRT);
#endif
	return unit_run(t, "base/freelist");
}
