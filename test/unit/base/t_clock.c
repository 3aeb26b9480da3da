#include "unit/base/unit.h"

#include <time.h>

#include "base/clock.h"

START_TEST(time_never_goes_back)
{
	uint64_t last = fr_now_ns();

	for (int i = 0; i < 10000; i++) {
		uint64_t now = fr_now_ns();

		ck_assert_uint_ge(now, last);
		last = now;
	}
}
END_TEST

START_TEST(a_sleep_shows_in_nanoseconds)
{
	const struct timespec nap = {.tv_nsec = 20 * FR_NS_PER_MS};
	uint64_t start = fr_now_ns();

	while (nanosleep(&nap, NULL) != 0) {
	}
	ck_assert_uint_ge(fr_now_ns() - start, 20 * FR_NS_PER_MS);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("clock");

	tcase_add_test(t, time_never_goes_back);
	tcase_add_test(t, a_sleep_shows_in_nanoseconds);
	return unit_run(t, "base/clock");
}
