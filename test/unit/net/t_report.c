/* Counters that are written when a set closes. */
#include <sys/stat.h>
#include <unistd.h>

#include "net/report.h"
#include "unit/net/net_unit.h"

#define LONG 9000u

static char path[64];

static void fixture(void)
{
	int fd;

	net_init();
	snprintf(path, sizeof(path), "t_net_report.XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	setenv("OFI_NCCL_STATS_FILE", path, 1);
	net_open();
}

static void fixture_end(void)
{
	net_teardown();
	unlink(path);
}

static unsigned long long number_at(const char *line, const char *name)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(line, key);
	ck_assert_msg(at != NULL, "no %s in %s", name, line);
	return strtoull(at + strlen(key), NULL, 10);
}

START_TEST(each_rail_is_one_line_with_every_counter)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	unsigned long long landed = 0;
	struct net_buf from, to;
	char line[2048];
	unsigned rail = 0;
	FILE *in;

	net_buf_open(pair->send, LONG, &from);
	net_buf_open(pair->recv, LONG, &to);
	net_exchange(&from, &to, LONG, 1);
	net_exchange(&from, &to, LONG, 2);
	net_hangup(pair);
	net_settle();
	net_side_close(&net_b);
	in = fopen(path, "r");
	ck_assert_ptr_nonnull(in);
	for (; fgets(line, sizeof(line), in) != NULL; rail++) {
		ck_assert_int_eq(line[0], '{');
		ck_assert_str_eq(line + strlen(line) - 2, "}\n");
		ck_assert_uint_eq(number_at(line, "rail"), rail);
		ck_assert_uint_eq(number_at(line, "pid"), (unsigned)getpid());
		ck_assert_ptr_nonnull(strstr(line, "\"device\":\"fabrail0\""));
		ck_assert_ptr_nonnull(
			strstr(line, rail == 0 ? "\"name\":\"fake0\""
					       : "\"name\":\"fake1\""));
		for (int i = 0; i < FR_STAT_CNT; i++) {
			number_at(line, fr_stat_name((enum fr_stat)i));
		}
		landed += number_at(line, "rx_bytes");
	}
	fclose(in);
	ck_assert_uint_eq(rail, 2);
	ck_assert_uint_ge(landed, 2 * LONG);
}
END_TEST

START_TEST(sets_add_to_the_file)
{
	struct stat st;
	off_t first;

	net_side_close(&net_a);
	ck_assert_int_eq(stat(path, &st), 0);
	first = st.st_size;
	ck_assert_int_gt(first, 0);
	net_side_close(&net_b);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_gt(st.st_size, first);
}
END_TEST

static void no_file(void)
{
	net_init();
	setenv("OFI_NCCL_STATS_FILE", "/nonexistent/stats", 1);
	net_open();
}

START_TEST(a_file_that_cannot_be_opened_is_a_warning)
{
	net_expect("OFI_NCCL_STATS_FILE /nonexistent/stats: No such file");
	net_side_close(&net_a);
	ck_assert_uint_eq(net_logged("OFI_NCCL_STATS_FILE"), 1);
}
END_TEST

static void full_file(void)
{
	net_init();
	setenv("OFI_NCCL_STATS_FILE", "/dev/full", 1);
	net_open();
}

START_TEST(a_file_that_is_full_is_one_warning)
{
	net_expect("OFI_NCCL_STATS_FILE /dev/full: short write");
	net_side_close(&net_a);
	ck_assert_uint_eq(net_logged("short write"), 1);
}
END_TEST

START_TEST(without_a_file_nothing_is_written)
{
	net_side_close(&net_a);
	ck_assert_uint_eq(net_logged("STATS_FILE"), 0);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("report");
	TCase *none = net_case("no file", no_file);
	TCase *full = net_case("full file", full_file);
	TCase *off = net_case("off", net_setup);
	TCase *const cases[] = {tc, none, full, off};

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture, fixture_end);
	tcase_add_test(tc, each_rail_is_one_line_with_every_counter);
	tcase_add_test(tc, sets_add_to_the_file);
	tcase_add_test(none, a_file_that_cannot_be_opened_is_a_warning);
	tcase_add_test(full, a_file_that_is_full_is_one_warning);
	tcase_add_test(off, without_a_file_nothing_is_written);
	return net_main("report", cases, FR_ARRAY_LEN(cases));
}
