#include "unit/base/unit.h"

#include "base/util.h"
#include "tools/opts.h"

static struct fr_perf_opts opts;
static char why[512];
static const char *const *env; /* name, value, name, value, ..., NULL */

static char *fake_getenv(const char *name)
{
	for (const char *const *at = env; at != NULL && *at != NULL; at += 2) {
		if (strcmp(at[0], name) == 0) {
			return (char *)(uintptr_t)at[1];
		}
	}
	return NULL;
}

/* Parses a command line given as one text. */
static int parse(const char *line)
{
	static char copy[512];
	char *argv[64] = {(char *)(uintptr_t) "fabrail-perf"};
	char *rest;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &rest); word != NULL;
	     word = strtok_r(NULL, " ", &rest)) {
		argv[argc++] = word;
	}
	why[0] = '\0';
	return fr_perf_opts_parse(argc, argv, fake_getenv, &opts, why,
				  sizeof(why));
}

static void setup(void)
{
	env = NULL;
}

START_TEST(defaults_are_those_of_the_help)
{
	ck_assert_int_eq(parse("all_reduce -p x"), 0);
	ck_assert_int_eq(opts.cmd, FR_PERF_ALL_REDUCE);
	ck_assert_str_eq(opts.plugin, "x");
	ck_assert_uint_eq(opts.abi, 0);
	ck_assert_uint_eq(opts.begin_bytes, 8);
	ck_assert_uint_eq(opts.end_bytes, 64 << 20);
	ck_assert_uint_eq(opts.factor, 4);
	ck_assert_uint_eq(opts.step_bytes, 0);
	ck_assert_uint_eq(fr_perf_iters(&opts, 8), 20);
	ck_assert_uint_eq(opts.warmup, 5);
	ck_assert_uint_eq(opts.check, 1);
	ck_assert_int_eq(opts.type, FR_FLOAT);
	ck_assert_int_eq(opts.op, FR_SUM);
	ck_assert_uint_eq(opts.window, 8);
	ck_assert_uint_eq(opts.channels, 1);
	ck_assert_uint_eq(opts.ranks, 2);
	ck_assert_int_eq(opts.rank, -1);
	ck_assert(!opts.raw && opts.raw_deliver == 1 && opts.json == NULL);
}
END_TEST

START_TEST(long_and_short_names_say_the_same)
{
	ck_assert_int_eq(parse("stream -p a -b 1K -e 2M -f 2 -i 3G -n 7 -w 0 "
			       "-c 0 -d half -o max -r 1 -T 9"),
			 0);
	ck_assert_uint_eq(opts.begin_bytes, 1024);
	ck_assert_uint_eq(opts.end_bytes, 2 << 20);
	ck_assert_uint_eq(opts.step_bytes, (size_t)3 << 30);
	ck_assert_uint_eq(opts.iters, 7);
	ck_assert_int_eq(opts.type, FR_HALF);
	ck_assert_int_eq(parse("stream --plugin=a --minbytes 1K --maxbytes=2M "
			       "--stepfactor 2 --stepbytes 3G --iters 7 "
			       "--warmup_iters 0 --check 0 --datatype half "
			       "--op max --root 1 --timeout 9"),
			 0);
	ck_assert_uint_eq(opts.begin_bytes, 1024);
	ck_assert_uint_eq(opts.end_bytes, 2 << 20);
	ck_assert_uint_eq(opts.step_bytes, (size_t)3 << 30);
	ck_assert_uint_eq(opts.iters, 7);
	ck_assert_uint_eq(opts.warmup, 0);
	ck_assert_uint_eq(opts.check, 0);
	ck_assert_int_eq(opts.type, FR_HALF);
	ck_assert_int_eq(opts.op, FR_MAX);
	ck_assert_uint_eq(opts.root, 1);
	ck_assert_uint_eq(opts.timeout_s, 9);
}
END_TEST

static const struct {
	const char *line, *file;
} json_lines[] = {
	{"reduce -p a --json", "-"},
	{"reduce -p a --json=x.json", "x.json"},
	{"reduce -p a --json x.json", "x.json"},
	{"reduce --json x.json -p a", "x.json"},
	{"--json reduce -p a", "-"},
	{"reduce --json -p a", "-"},
	{"reduce -p a --json -", "-"},
};

START_TEST(json_takes_its_file_in_either_form)
{
	ck_assert_msg(parse(json_lines[_i].line) == 0, "%s", why);
	ck_assert_str_eq(opts.json, json_lines[_i].file);
	ck_assert_int_eq(opts.cmd, FR_PERF_REDUCE);
}
END_TEST

/* A line, and what the message must name: the option and what is allowed. */
static const struct {
	const char *line, *names, *allowed;
} bad_lines[] = {
	{"all_reduce -p a -b 12x", "--minbytes (-b): '12x'", "64K"},
	{"all_reduce -p a -e -1", "--maxbytes (-e): '-1'", "64K"},
	{"all_reduce -p a -e 2000G", "'2000G'", "at most 1024G"},
	{"all_reduce -p a -f 1", "--stepfactor (-f): '1'", "from 2 to"},
	{"all_reduce -p a -c 2", "--check (-c): '2'", "from 0 to 1"},
	{"all_reduce -p a -d int9", "--datatype (-d): 'int9'", "bfloat16"},
	{"all_reduce -p a -o mean", "--op (-o): 'mean'", "sum, prod, max"},
	{"all_reduce -p a --abi v3", "--abi: 'v3'", "v4 to v12"},
	{"all_reduce -p a --abi v13", "--abi: 'v13'", "v4 to v12"},
	{"all_reduce -p a --ranks 1", "--ranks: '1'", "from 2 to 64"},
	{"all_reduce -p a --ranks 65", "--ranks: '65'", "from 2 to 64"},
	{"all_reduce -p a --channels 0", "--channels: '0'", "from 1 to 32"},
	{"all_reduce -p a --window 0", "--window: '0'", "from 1 to 128"},
	{"all_reduce -p a --netns A", "--netns: 'A'", "comma"},
	{"all_reduce -p a --netns A,", "--netns: 'A,'", "comma"},
	{"all_reduce -p a --netns ../x,B", "--netns: '../x,B'", "names"},
	{"all_reduce -p a --master host", "--master: 'host'", "HOST:PORT"},
	{"all_reduce -p a --master h:70000", "'h:70000'", "65535"},
	{"all_reduce -p a --master fd::340", "'fd::340'", "HOST:PORT"},
	{"all_reduce -p a --master ::1:77", "'::1:77'", "HOST:PORT"},
	{"all_reduce -p a --master [fd::1]", "'[fd::1]'", "HOST:PORT"},
	{"all_reduce -p a --master [fd::1:77", "'[fd::1:77'", "HOST:PORT"},
	{"all_reduce -p a --master fd::1]:77", "'fd::1]:77'", "HOST:PORT"},
	{"all_reduce -p a --master []:77", "'[]:77'", "HOST:PORT"},
	{"all_reduce -p a --master [[::1]]:77", "'[[::1]]:77'", "HOST:PORT"},
	{"all_reduce -p a --completion both", "--completion: 'both'",
	 "local, delivery"},
	{"all_reduce -p a --pairs 3", "--pairs: '3'", "from 5"},
	{"all_reduce -p a --frob", "--frob", "--help"},
	{"all_reduce -p a -z", "-z", "--help"},
	{"all_reduce -p a -b", "-b", "SIZE"},
	{"all_reduce -p a --raw=yes", "--raw", "no value"},
	{"all_reduce -p a -b 2K -e 1K", "-b (--minbytes)", "at most equal"},
	{"all_reduce", "--plugin", "NCCL_NET_PLUGIN"},
	{"broadcast -p a -r 2", "--root", "--ranks"},
	{"pingpong -p a --ranks 3", "--ranks", "2 ranks"},
	{"stream -p a --recv-size 1K", "--recv-size", "--maxbytes"},
	{"-p a", "no command", "all_reduce"},
	{"all_redu -p a", "'all_redu'", "all_reduce"},
	{"all_reduce reduce -p a", "'reduce'", "after the command"},
};

START_TEST(a_bad_option_is_named_with_what_is_allowed)
{
	ck_assert_int_ne(parse(bad_lines[_i].line), 0);
	ck_assert_msg(strstr(why, bad_lines[_i].names) != NULL,
		      "\"%s\" is not in \"%s\"", bad_lines[_i].names, why);
	ck_assert_msg(strstr(why, bad_lines[_i].allowed) != NULL,
		      "\"%s\" is not in \"%s\"", bad_lines[_i].allowed, why);
	ck_assert_ptr_eq(strchr(why, '\n'), NULL);
}
END_TEST

START_TEST(rank_and_size_come_from_either_launcher)
{
	const char *torch[] = {"RANK",	      "1",	     "WORLD_SIZE",
			       "4",	      "MASTER_ADDR", "ten",
			       "MASTER_PORT", "1000",	     NULL};
	const char *mpi[] = {"OMPI_COMM_WORLD_RANK", "2",
			     "OMPI_COMM_WORLD_SIZE", "3", NULL};

	env = torch;
	ck_assert_int_eq(parse("all_reduce -p a"), 0);
	ck_assert_int_eq(opts.rank, 1);
	ck_assert_uint_eq(opts.ranks, 4);
	ck_assert_str_eq(opts.master_host, "ten");
	ck_assert_uint_eq(opts.master_port, 1001);
	ck_assert_int_eq(parse("all_reduce -p a --master [fd::1]:77"), 0);
	ck_assert_str_eq(opts.master_host, "fd::1");
	ck_assert_uint_eq(opts.master_port, 77);
	ck_assert_int_eq(parse("all_reduce -p a --ranks 3"), 0);
	ck_assert_int_eq(opts.rank, -1);
	ck_assert_uint_eq(opts.ranks, 3);
	env = mpi;
	ck_assert_int_eq(parse("all_reduce -p a --master h:5"), 0);
	ck_assert_int_eq(opts.rank, 2);
	ck_assert_uint_eq(opts.ranks, 3);
	ck_assert_int_ne(parse("all_reduce -p a"), 0);
	ck_assert(strstr(why, "--master") != NULL);
}
END_TEST

static const char *const bad_env[][5] = {
	{"RANK", "4", "WORLD_SIZE", "4", NULL},
	{"RANK", "x", "WORLD_SIZE", "4", NULL},
	{"RANK", "0", "WORLD_SIZE", "1", NULL},
	{"RANK", "0", "WORLD_SIZE", "2", NULL},
};

START_TEST(a_bad_rank_or_size_is_refused)
{
	env = bad_env[_i];
	ck_assert_int_ne(parse("all_reduce -p a"), 0);
	ck_assert(why[0] != '\0');
}
END_TEST

START_TEST(the_plugin_comes_from_the_environment_unless_given)
{
	const char *named[] = {"NCCL_NET_PLUGIN", "fabrail", NULL};

	env = named;
	ck_assert_int_eq(parse("all_reduce"), 0);
	ck_assert_str_eq(opts.plugin, "fabrail");
	ck_assert_int_eq(parse("all_reduce --plugin other"), 0);
	ck_assert_str_eq(opts.plugin, "other");
}
END_TEST

START_TEST(sizes_know_their_suffixes_and_limits)
{
	size_t v = 1;

	ck_assert_int_eq(fr_perf_parse_size("0", &v), 0);
	ck_assert_uint_eq(v, 0);
	ck_assert_int_eq(fr_perf_parse_size("3k", &v), 0);
	ck_assert_uint_eq(v, 3 << 10);
	ck_assert_int_eq(fr_perf_parse_size("1024G", &v), 0);
	ck_assert_uint_eq(v, (size_t)1 << 40);
	v = 5;
	ck_assert_int_ne(fr_perf_parse_size("1025G", &v), 0);
	ck_assert_int_ne(fr_perf_parse_size("", &v), 0);
	ck_assert_int_ne(fr_perf_parse_size("K", &v), 0);
	ck_assert_int_ne(fr_perf_parse_size("1KB", &v), 0);
	ck_assert_int_ne(fr_perf_parse_size(" 1", &v), 0);
	ck_assert_int_ne(fr_perf_parse_size("99999999999999999999", &v), 0);
	ck_assert_uint_eq(v, 5);
}
END_TEST

START_TEST(point_to_point_runs_more_iterations_of_small_messages)
{
	ck_assert_int_eq(parse("stream -p a"), 0);
	ck_assert_uint_eq(fr_perf_iters(&opts, 0), 1000);
	ck_assert_uint_eq(fr_perf_iters(&opts, 1 << 20), 256);
	ck_assert_uint_eq(fr_perf_iters(&opts, 1 << 30), 20);
	ck_assert_int_eq(parse("stream -p a -n 3"), 0);
	ck_assert_uint_eq(fr_perf_iters(&opts, 8), 3);
}
END_TEST

START_TEST(help_lists_every_option_with_its_default)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	fr_perf_opts_help(out);
	fclose(out);
	ck_assert(strstr(text, "-b, --minbytes SIZE") != NULL);
	ck_assert(strstr(text, "(default 64M)") != NULL);
	ck_assert(strstr(text, "--json[=FILE]") != NULL);
	ck_assert(strstr(text, "--completion NAME") != NULL);
	ck_assert(strstr(text, "pingpong") != NULL);
	free(text);
	ck_assert_int_eq(parse("--help"), 0);
	ck_assert(opts.help);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("opts");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, defaults_are_those_of_the_help);
	tcase_add_test(t, long_and_short_names_say_the_same);
	tcase_add_loop_test(t, json_takes_its_file_in_either_form, 0,
			    (int)FR_ARRAY_LEN(json_lines));
	tcase_add_loop_test(t, a_bad_option_is_named_with_what_is_allowed, 0,
			    (int)FR_ARRAY_LEN(bad_lines));
	tcase_add_test(t, rank_and_size_come_from_either_launcher);
	tcase_add_loop_test(t, a_bad_rank_or_size_is_refused, 0,
			    (int)FR_ARRAY_LEN(bad_env));
	tcase_add_test(t, the_plugin_comes_from_the_environment_unless_given);
	tcase_add_test(t, sizes_know_their_suffixes_and_limits);
	tcase_add_test(t,
		       point_to_point_runs_more_iterations_of_small_messages);
	tcase_add_test(t, help_lists_every_option_with_its_default);
	return unit_run(t, "tools/opts");
}
