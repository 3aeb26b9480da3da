#include "unit/base/unit.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"

static char long_text[3000];

static void log_setup(void)
{
	unit_log_setup();
	memset(long_text, 'x', sizeof(long_text) - 1);
}

START_TEST(a_line_reaches_the_sink_with_its_place)
{
	int line = __LINE__ + 1;
	fr_info("rail %d of %s", 2, "eth0");

	ck_assert_str_eq(unit_log.text, "rail 2 of eth0");
	ck_assert_str_eq(unit_log.file, __FILE__);
	ck_assert_int_eq(unit_log.line, line);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_INFO], 1);
}
END_TEST

/* The loop index is the level that is set. */
START_TEST(lines_above_the_level_are_dropped)
{
	fr_log_set_level((enum fr_log_level)_i);
	fr_error("one");
	fr_warn("two");
	fr_info("three");
	fr_debug("four");
	for (int level = FR_LOG_ERROR; level <= FR_LOG_DEBUG; level++) {
		ck_assert_uint_eq(unit_log.cnt[level], level <= _i ? 1 : 0);
	}
}
END_TEST

START_TEST(a_text_of_1023_bytes_passes_whole)
{
	long_text[1023] = '\0';
	fr_warn("%s", long_text);
	ck_assert_str_eq(unit_log.text, long_text);
}
END_TEST

START_TEST(a_longer_text_is_cut_and_says_so)
{
	fr_warn("%s", long_text);
	ck_assert_uint_eq(strlen(unit_log.text), 1023);
	ck_assert_str_eq(unit_log.text + 1019, "x...");
}
END_TEST

START_TEST(control_characters_do_not_break_the_line)
{
	fr_warn("%s", "a\nb\r\tc\033[1m\177 \xc3\xa9");
	ck_assert_str_eq(unit_log.text, "a b  c [1m  \xc3\xa9");
}
END_TEST

START_TEST(errno_survives_a_line)
{
	errno = EXDEV;
	fr_warn("text");
	ck_assert_int_eq(errno, EXDEV);
}
END_TEST

/* What the default sink writes to standard error while @write runs. */
static void capture_stderr(void (*write_lines)(void), char *buf, size_t bytes)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t len;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
	write_lines();
	ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
	close(saved);
	rewind(file);
	len = fread(buf, 1, bytes - 1, file);
	buf[len] = '\0';
	fclose(file);
}

static void write_each_level(void)
{
	fr_error("broken");
	fr_warn("worse");
	fr_info("once");
	fr_debug("detail");
}

START_TEST(standard_error_takes_errors_and_warnings_only)
{
	char text[200];

	fr_log_set_sink(NULL);
	capture_stderr(write_each_level, text, sizeof(text));
	ck_assert_str_eq(text,
			 "fabrail: error: broken\nfabrail: warn: worse\n");
}
END_TEST

START_TEST(a_limit_lets_a_burst_pass_and_drops_the_rest)
{
	struct fr_log_limit limit = {0};
	uint32_t suppressed = 77;

	for (unsigned i = 0; i < FR_LOG_BURST; i++) {
		ck_assert(fr_log_limit_pass(&limit, &suppressed));
		ck_assert_uint_eq(suppressed, 0);
	}
	suppressed = 77;
	ck_assert(!fr_log_limit_pass(&limit, &suppressed));
	ck_assert_uint_eq(suppressed, 77);
}
END_TEST

static void let_ten_seconds_pass(struct fr_log_limit *limit)
{
	limit->last_ns = fr_now_ns() - 10 * FR_NS_PER_S;
}

START_TEST(after_ten_seconds_one_passes_with_the_count)
{
	struct fr_log_limit limit = {.passed = FR_LOG_BURST, .suppressed = 3};
	uint32_t suppressed;

	let_ten_seconds_pass(&limit);
	ck_assert(fr_log_limit_pass(&limit, &suppressed));
	ck_assert_uint_eq(suppressed, 3);
	ck_assert(!fr_log_limit_pass(&limit, &suppressed));
	let_ten_seconds_pass(&limit);
	ck_assert(fr_log_limit_pass(&limit, &suppressed));
	ck_assert_uint_eq(suppressed, 1);
}
END_TEST

START_TEST(a_limited_line_says_what_was_dropped)
{
	struct fr_log_limit limit = {0};

	for (unsigned i = 0; i < FR_LOG_BURST + 5; i++) {
		fr_log_limited(&limit, FR_LOG_WARN, "bad word %u", i);
	}
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], FR_LOG_BURST);
	ck_assert_str_eq(unit_log.text, "bad word 9");
	let_ten_seconds_pass(&limit);
	fr_log_limited(&limit, FR_LOG_WARN, "bad word");
	ck_assert_str_eq(unit_log.text, "bad word (5 more suppressed)");
}
END_TEST

START_TEST(without_limits_each_line_passes)
{
	struct fr_log_limit limit = {0};

	fr_log_set_unlimited(true);
	for (unsigned i = 0; i < 3 * FR_LOG_BURST; i++) {
		fr_log_limited(&limit, FR_LOG_WARN, "bad word");
	}
	fr_log_set_unlimited(false);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 3 * FR_LOG_BURST);
	ck_assert_str_eq(unit_log.text, "bad word");
}
END_TEST

/* A flood of one cause hides no other; texts are compared, not addresses. */
START_TEST(each_cause_has_a_limit_of_its_own)
{
	char again[] = "isend";
	char other[70][8];

	for (unsigned i = 0; i < 2 * FR_LOG_BURST; i++) {
		fr_error_limited_by("isend", "isend: %u", i);
	}
	fr_error_limited_by(again, "isend again");
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], FR_LOG_BURST);
	fr_error_limited_by("test", "test");
	ck_assert_str_eq(unit_log.text, "test");
	for (unsigned i = 0; i < 70; i++) {
		snprintf(other[i], sizeof(other[i]), "c%u", i);
	}
	ck_assert_ptr_ne(fr_log_limit_of(other[0]), fr_log_limit_of(other[1]));
	for (unsigned i = 2; i < 70; i++) {
		(void)fr_log_limit_of(other[i]);
	}
	ck_assert_ptr_eq(fr_log_limit_of(other[68]),
			 fr_log_limit_of(other[69]));
	ck_assert_ptr_ne(fr_log_limit_of("isend"), fr_log_limit_of(other[69]));
}
END_TEST

START_TEST(a_place_has_a_limit_of_its_own)
{
	for (unsigned i = 0; i < 2 * FR_LOG_BURST; i++) {
		fr_error_limited("one place");
	}
	fr_error_limited("another");
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], FR_LOG_BURST + 1);
}
END_TEST

START_TEST(a_cut_line_still_says_what_was_dropped)
{
	struct fr_log_limit limit = {.passed = FR_LOG_BURST, .suppressed = 3};
	const char *tail = "x... (3 more suppressed)";

	let_ten_seconds_pass(&limit);
	fr_log_limited(&limit, FR_LOG_WARN, "%s", long_text);
	ck_assert_uint_eq(strlen(unit_log.text), 1023);
	ck_assert_str_eq(unit_log.text + 1023 - strlen(tail), tail);
}
END_TEST

START_TEST(lines_below_the_level_do_not_use_up_the_limit)
{
	struct fr_log_limit limit = {0};

	fr_log_set_level(FR_LOG_ERROR);
	fr_log_limited(&limit, FR_LOG_WARN, "text");
	ck_assert_uint_eq(limit.passed, 0);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 0);
}
END_TEST

#define THREADS 4
#define ROUNDS 500

static struct fr_log_limit shared_limit;

static void *pass_often(void *arg)
{
	uint32_t suppressed;
	uintptr_t passed = 0;

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		passed += fr_log_limit_pass(&shared_limit, &suppressed);
	}
	return (void *)passed;
}

START_TEST(threads_together_get_one_burst)
{
	pthread_t thread[THREADS];
	uintptr_t passed = 0;

	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, pass_often, NULL), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(thread[i], &result);
		passed += (uintptr_t)result;
	}
	ck_assert_uint_eq(passed, FR_LOG_BURST);
	ck_assert_uint_eq(shared_limit.suppressed,
			  THREADS * ROUNDS - FR_LOG_BURST);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("log");

	tcase_add_checked_fixture(t, log_setup, NULL);
	tcase_add_test(t, a_line_reaches_the_sink_with_its_place);
	tcase_add_loop_test(t, lines_above_the_level_are_dropped, FR_LOG_ERROR,
			    FR_LOG_DEBUG + 1);
	tcase_add_test(t, a_text_of_1023_bytes_passes_whole);
	tcase_add_test(t, a_longer_text_is_cut_and_says_so);
	tcase_add_test(t, control_characters_do_not_break_the_line);
	tcase_add_test(t, errno_survives_a_line);
	tcase_add_test(t, standard_error_takes_errors_and_warnings_only);
	tcase_add_test(t, a_limit_lets_a_burst_pass_and_drops_the_rest);
	tcase_add_test(t, after_ten_seconds_one_passes_with_the_count);
	tcase_add_test(t, a_limited_line_says_what_was_dropped);
	tcase_add_test(t, without_limits_each_line_passes);
	tcase_add_test(t, each_cause_has_a_limit_of_its_own);
	tcase_add_test(t, a_place_has_a_limit_of_its_own);
	tcase_add_test(t, a_cut_line_still_says_what_was_dropped);
	tcase_add_test(t, lines_below_the_level_do_not_use_up_the_limit);
	tcase_add_test(t, threads_together_get_one_burst);
	return unit_run(t, "base/log");
}
