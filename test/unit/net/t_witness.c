/* Behind a knock port that is open and silent, through real sockets. */
#include "net/witness.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "unit/run.h"

#define TICK_NS (100 * FR_NS_PER_MS)
#define TICKS 600u

static const struct fr_knock_addr any_local;
static const struct fr_quirks over_tcp = {.names_are_tcp = true};
static struct fr_witness witness;
static struct fr_name ctrl;
static int fd; /* the endpoint */
static uint64_t now;

static void silent(enum fr_log_level level, const char *file, int line,
		   const char *text)
{
	(void)file;
	(void)line;
	ck_assert_msg(level > FR_LOG_WARN, "%s", text);
}

static void setup(void)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	socklen_t len = sizeof(at);

	fr_log_set_sink(silent);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, len), 0);
	ck_assert_int_eq(listen(fd, 16), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	ctrl.len = sizeof(at);
	memcpy(ctrl.bytes, &at, sizeof(at));
	fr_witness_init(&witness, &over_tcp, &any_local, &ctrl);
	now = FR_NS_PER_S;
}

static void teardown(void)
{
	fr_witness_rest(&witness);
	close(fd);
}

/* Ticks until it denies, @n at most. */
static unsigned ticks(unsigned n)
{
	unsigned i = 0;

	while (i < n && !fr_witness_denies(&witness, now)) {
		now += TICK_NS;
		usleep(200);
		i++;
	}
	return i;
}

static unsigned guests(void)
{
	unsigned cnt = 0;

	while (accept(fd, NULL, NULL) >= 0) {
		cnt++;
	}
	return cnt;
}

START_TEST(an_endpoint_that_is_open_is_asked_once)
{
	ck_assert_uint_eq(ticks(TICKS), TICKS);
	ck_assert_uint_eq(guests(), 1);
}
END_TEST

START_TEST(one_that_is_closed_is_gone_after_a_while)
{
	unsigned took;

	close(fd);
	took = ticks(TICKS);
	ck_assert_uint_ge(took, 30);
	ck_assert_uint_le(took, 45);
}
END_TEST

START_TEST(one_that_closes_later_is_gone_then)
{
	int guest;

	ck_assert_uint_eq(ticks(100), 100);
	guest = accept(fd, NULL, NULL);
	ck_assert_int_ge(guest, 0);
	close(guest);
	close(fd);
	ck_assert_uint_le(ticks(TICKS), 20);
}
END_TEST

START_TEST(one_that_hangs_up_or_speaks_is_not_gone)
{
	for (unsigned i = 0; i < 300; i++) {
		int guest = accept(fd, NULL, NULL);

		ck_assert(!fr_witness_denies(&witness, now));
		now += TICK_NS;
		usleep(100);
		if (guest >= 0) {
			ck_assert(i % 2 == 0 || write(guest, "x", 1) == 1);
			close(guest);
		}
	}
	ck_assert_uint_le(guests(), 1);
}
END_TEST

START_TEST(the_end_of_a_doubt_is_the_end_of_its_time)
{
	close(fd);
	for (unsigned i = 0; i < 20; i++) {
		ck_assert_uint_eq(ticks(25), 25);
		fr_witness_rest(&witness);
	}
	ck_assert_uint_lt(ticks(TICKS), 45);
}
END_TEST

/* The loop index: another provider; a name without a port; none at all. */
START_TEST(who_has_no_port_is_never_gone)
{
	static const struct fr_quirks other;

	close(fd);
	if (_i == 1) {
		memset(ctrl.bytes, 'x', sizeof(ctrl.bytes));
	} else if (_i == 2) {
		ctrl.len = 0;
	}
	fr_witness_init(&witness, _i == 0 ? &other : &over_tcp, &any_local,
			&ctrl);
	ck_assert_uint_eq(ticks(TICKS), TICKS);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("witness");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_endpoint_that_is_open_is_asked_once);
	tcase_add_test(tc, one_that_is_closed_is_gone_after_a_while);
	tcase_add_test(tc, one_that_closes_later_is_gone_then);
	tcase_add_test(tc, one_that_hangs_up_or_speaks_is_not_gone);
	tcase_add_test(tc, the_end_of_a_doubt_is_the_end_of_its_time);
	tcase_add_loop_test(tc, who_has_no_port_is_never_gone, 0, 3);
	return unit_run(tc, "witness");
}
