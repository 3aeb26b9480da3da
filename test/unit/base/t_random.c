#include "unit/base/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/random.h"

/* Stands before the C library's getrandom(). */
static struct {
	bool short_calls; /* at most 10 bytes a call: 1, 2, 3, ... */
	unsigned fail_at; /* this call fails with err; 0: none */
	int err;
	unsigned calls;
	unsigned given_bytes;
} fake;

ssize_t getrandom(void *buf, size_t bytes, unsigned flags)
{
	size_t len = bytes < 10 ? bytes : 10;

	if (++fake.calls == fake.fail_at) {
		errno = fake.err;
		return -1;
	}
	if (!fake.short_calls) {
		return syscall(SYS_getrandom, buf, bytes, flags);
	}
	for (size_t i = 0; i < len; i++) {
		((unsigned char *)buf)[i] = (unsigned char)++fake.given_bytes;
	}
	return (ssize_t)len;
}

START_TEST(no_bytes_are_no_error)
{
	unsigned char byte = 0x5a;

	ck_assert_int_eq(fr_random(&byte, 0), 0);
	ck_assert_uint_eq(byte, 0x5a);
}
END_TEST

START_TEST(only_the_bytes_asked_for_change)
{
	unsigned char buf[64];

	memset(buf, 0x5a, sizeof(buf));
	ck_assert_int_eq(fr_random(buf + 16, 32), 0);
	for (int i = 0; i < 16; i++) {
		ck_assert_uint_eq(buf[i], 0x5a);
		ck_assert_uint_eq(buf[48 + i], 0x5a);
	}
}
END_TEST

/* 1 MiB: more than the kernel must give in one call. */
START_TEST(a_large_request_is_filled_to_its_end)
{
	static unsigned char buf[1 << 20];
	static const unsigned char zeros[64];

	ck_assert_int_eq(fr_random(buf, sizeof(buf)), 0);
	for (size_t at = 0; at < sizeof(buf); at += sizeof(zeros)) {
		ck_assert_mem_ne(buf + at, zeros, sizeof(zeros));
	}
}
END_TEST

START_TEST(two_values_differ)
{
	uint64_t a[2], b[2];

	ck_assert_int_eq(fr_random(a, sizeof(a)), 0);
	ck_assert_int_eq(fr_random(b, sizeof(b)), 0);
	ck_assert_mem_ne(a, b, sizeof(a));
}
END_TEST

/* The loop index is the call that a signal interrupts. */
START_TEST(an_interrupted_and_a_short_call_go_on)
{
	unsigned char buf[100], guard;

	fake.short_calls = true;
	fake.fail_at = (unsigned)_i;
	fake.err = EINTR;
	memset(buf, 0, sizeof(buf));
	guard = buf[99];
	ck_assert_int_eq(fr_random(buf, 99), 0);
	ck_assert_uint_eq(fake.given_bytes, 99);
	ck_assert_uint_eq(fake.calls, 10 + (_i <= 10));
	for (unsigned i = 0; i < 99; i++) {
		ck_assert_uint_eq(buf[i], i + 1);
	}
	ck_assert_uint_eq(buf[99], guard);
}
END_TEST

START_TEST(an_error_of_the_kernel_is_returned)
{
	unsigned char buf[100];

	fake.short_calls = true;
	fake.fail_at = (unsigned)_i;
	fake.err = ENOSYS;
	ck_assert_int_eq(fr_random(buf, sizeof(buf)), -ENOSYS);
	ck_assert_uint_eq(fake.calls, (unsigned)_i);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("random");

	tcase_add_test(t, no_bytes_are_no_error);
	tcase_add_test(t, only_the_bytes_asked_for_change);
	tcase_add_test(t, a_large_request_is_filled_to_its_end);
	tcase_add_test(t, two_values_differ);
	tcase_add_loop_test(t, an_interrupted_and_a_short_call_go_on, 1, 12);
	tcase_add_loop_test(t, an_error_of_the_kernel_is_returned, 1, 10);
	return unit_run(t, "base/random");
}
