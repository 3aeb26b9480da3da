#include "unit/base/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "tools/output.h"
#include "tools/plog.h"
#include "tools/rails.h"

static struct fr_perf_opts opts;
static struct fr_perf_report report;
static char *text;

static void setup(void)
{
	static struct fr_perf_result result;

	memset(&opts, 0, sizeof(opts));
	memset(&report, 0, sizeof(report));
	opts.plugin = "./x.so";
	opts.ranks = 2;
	opts.type = FR_HALF;
	result = (struct fr_perf_result){.size_bytes = 1024,
					 .count = 512,
					 .time_us = 2,
					 .algbw_gbytes = 0.512,
					 .busbw_gbytes = 0.768,
					 .checked = true,
					 .wrong = 3,
					 .p50_us = 1.5,
					 .p99_us = 2.5,
					 .msgs_per_s = 1000,
					 .cpu_us = 0.25};
	report.opts = &opts;
	report.plugin = "a \"b\"\\\n";
	report.abi = 9;
	report.provider = "net";
	report.rails[0] = (struct fr_perf_rail){"lo#0", 10, 20};
	report.rails[1] = (struct fr_perf_rail){"lo#1", 30, 40};
	report.rail_cnt = 2;
	report.results = &result;
	report.result_cnt = 1;
}

static void teardown(void)
{
	free(text);
	text = NULL;
}

static const char *written(void (*write)(FILE *out,
					 const struct fr_perf_report *report))
{
	size_t bytes;
	FILE *out;

	free(text);
	out = open_memstream(&text, &bytes);
	write(out, &report);
	fclose(out);
	return text;
}

START_TEST(json_has_the_published_keys_in_order)
{
	opts.cmd = FR_PERF_ALL_REDUCE;
	ck_assert_str_eq(
		written(fr_json_write),
		"{\"version\":1,\"command\":\"all_reduce\",\"plugin\":"
		"\"a \\\"b\\\"\\\\\\u000a\",\"abi\":\"v9\",\"provider\":"
		"\"net\",\"ranks\":2,\n"
		"\"rails\":[{\"name\":\"lo#0\",\"tx_bytes\":10,"
		"\"rx_bytes\":20},{\"name\":\"lo#1\",\"tx_bytes\":30,"
		"\"rx_bytes\":40}],\n"
		"\"results\":[\n"
		"{\"size_bytes\":1024,\"count\":512,\"type\":\"half\","
		"\"redop\":\"sum\",\"time_us\":2.0000,\"algbw_gbytes\":"
		"0.512000,\"busbw_gbytes\":0.768000,\"wrong\":3,"
		"\"raw_ratio\":null}\n]}\n");
}
END_TEST

START_TEST(json_of_messages_has_their_own_keys_too)
{
	opts.cmd = FR_PERF_PINGPONG;
	report.results[0].has_raw = true;
	report.results[0].raw_ratio = 1.25;
	written(fr_json_write);
	ck_assert(strstr(text, "\"redop\":\"none\"") != NULL);
	ck_assert(strstr(text, "\"raw_ratio\":1.250000,\"p50_us\":1.5000,"
			       "\"p99_us\":2.5000}") != NULL);
	opts.cmd = FR_PERF_STREAM;
	report.results[0].checked = false;
	written(fr_json_write);
	ck_assert(strstr(text, "\"wrong\":null,") != NULL);
	ck_assert(strstr(text, "\"msgs_per_s\":1000.000,"
			       "\"cpu_us\":0.2500}") != NULL);
	ck_assert(strstr(text, "p50_us") == NULL);
}
END_TEST

static unsigned count(const char *line, char c)
{
	unsigned n = 0;

	for (; *line != '\n' && *line != '\0'; line++) {
		n += *line == c;
	}
	return n;
}

START_TEST(csv_has_a_field_for_each_name)
{
	for (int cmd = 0; cmd < FR_PERF_CMD_CNT; cmd++) {
		opts.cmd = cmd;
		report.plugin = "x";
		written(fr_csv_write);
		ck_assert_uint_eq(count(text, ','),
				  count(strchr(text, '\n') + 1, ','));
	}
}
END_TEST

static void row(FILE *out, const struct fr_perf_report *r)
{
	fr_text_row(out, r, &r->results[0]);
}

START_TEST(a_row_has_the_columns_of_nccl_tests)
{
	char type[16], op[16];
	double time, alg, bus;
	size_t size, cnt;
	int root, wrong;

	opts.cmd = FR_PERF_BROADCAST;
	opts.root = 1;
	ck_assert_int_eq(sscanf(written(row),
				"%zu %zu %15s %15s %d %lf %lf "
				"%lf %d",
				&size, &cnt, type, op, &root, &time, &alg, &bus,
				&wrong),
			 9);
	ck_assert_uint_eq(size, 1024);
	ck_assert_uint_eq(cnt, 512);
	ck_assert_str_eq(type, "half");
	ck_assert_str_eq(op, "none");
	ck_assert_int_eq(root, 1);
	ck_assert_int_eq(wrong, 3);
	report.results[0].checked = false;
	ck_assert(strstr(written(row), "N/A") != NULL);
}
END_TEST

START_TEST(the_end_tells_rails_and_verdict)
{
	opts.check = 1;
	written(fr_text_tail);
	ck_assert(strstr(text, "rail lo#1") != NULL);
	ck_assert(strstr(text, "wrong elements: 3: FAILED") != NULL);
	report.results[0].wrong = 0;
	ck_assert(strstr(written(fr_text_tail), "all is well") != NULL);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_an_error)
{
	unit_log_setup();
	ck_assert_int_eq(
		fr_output_file("/nonexistent/x", &report, fr_csv_write),
		-ENOENT);
	unit_assert_logged("/nonexistent/x");
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
	fr_log_set_sink(NULL);
}
END_TEST

START_TEST(rails_of_this_process_are_summed_by_name)
{
	static const char lines[] =
		"{\"pid\":7,\"device\":\"fabrail0\",\"rail\":0,\"name\":\"lo\","
		"\"tx_bytes\":5,\"rx_bytes\":6,\"errors\":0}\n"
		"{\"pid\":8,\"device\":\"fabrail0\",\"rail\":0,\"name\":\"lo\","
		"\"tx_bytes\":500,\"rx_bytes\":600}\n"
		"nonsense\n\n"
		"{\"pid\":7,\"device\":\"fabrail0\",\"rail\":1,\"name\":\"lo\","
		"\"tx_bytes\":7,\"rx_bytes\":8}\n"
		"{\"pid\":7,\"rail\":2,\"name\":\"eth0\",\"tx_bytes\":1,"
		"\"rx_bytes\":2}\n"
		"{\"pid\":7,\"device\":\"fabrail0\",\"rail\":1,\"name\":\"lo\","
		"\"tx_bytes\":100,\"rx_bytes\":200}";
	struct fr_perf_rail sum[FR_PERF_MAX_RAILS];
	unsigned cnt = 0;

	fr_rails_parse(lines, 7, sum, &cnt);
	ck_assert_uint_eq(cnt, 3);
	ck_assert_str_eq(sum[0].name, "lo#0");
	ck_assert_uint_eq(sum[0].tx_bytes, 5);
	ck_assert_str_eq(sum[1].name, "lo#1");
	ck_assert_uint_eq(sum[1].tx_bytes, 107);
	ck_assert_uint_eq(sum[1].rx_bytes, 208);
	ck_assert_str_eq(sum[2].name, "eth0");
	cnt = 0;
	fr_rails_parse(lines, 8, sum, &cnt);
	ck_assert_uint_eq(cnt, 1);
	ck_assert_str_eq(sum[0].name, "lo");
}
END_TEST

static const struct {
	const char *line, *name; /* NULL: none */
} providers[] = {
	{"provider net, libfabric 1.17.0, 2 NICs", "net"},
	{"using provider tcp;ofi_rxm", "tcp;ofi_rxm"},
	{"NET/OFI Selected provider is efa, fabric is efa (found 4 nics)",
	 "efa"},
	{"NET/X : Using provider 'shm'", "shm"},
	{"not used: provider tcp: became net", NULL},
	{"no interface", NULL},
	{"the provider refuses this", NULL},
};

START_TEST(the_provider_is_read_from_the_plugins_lines)
{
	char name[32];
	bool found =
		fr_plog_find_provider(providers[_i].line, name, sizeof(name));

	ck_assert_int_eq(found, providers[_i].name != NULL);
	if (found) {
		ck_assert_str_eq(name, providers[_i].name);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("output");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, json_has_the_published_keys_in_order);
	tcase_add_test(t, json_of_messages_has_their_own_keys_too);
	tcase_add_test(t, csv_has_a_field_for_each_name);
	tcase_add_test(t, a_row_has_the_columns_of_nccl_tests);
	tcase_add_test(t, the_end_tells_rails_and_verdict);
	tcase_add_test(t, a_file_that_cannot_be_written_is_an_error);
	tcase_add_test(t, rails_of_this_process_are_summed_by_name);
	tcase_add_loop_test(t, the_provider_is_read_from_the_plugins_lines, 0,
			    (int)FR_ARRAY_LEN(providers));
	return unit_run(t, "tools/output");
}
