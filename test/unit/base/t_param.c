#include "unit/base/unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/param.h"
#include "base/util.h"

struct values {
	bool on;
	uint32_t cnt;
	uint32_t any_cnt;
	int64_t limit;
	uint64_t bytes;
	uint64_t any_bytes;
	uint64_t wait_ns;
	int colour;
	char *name;
	char *path;
};

static const char *const colours[] = {"red", "green", "blue", NULL};

#define ROW(_name, _kind, _field, ...)                                         \
	{                                                                      \
		.name = (_name), .kind = FR_PARAM_##_kind,                     \
		.offset = offsetof(struct values, _field), .unit = "",         \
		.help = "", __VA_ARGS__                                        \
	}

/* clang-format off */
static const struct fr_param table[] = {
	ROW("ON", BOOL, on, .dflt = "0"),
	ROW("CNT", U32, cnt, .dflt = "4", .min = 1, .max = 20),
	ROW("ANY_CNT", U32, any_cnt, .dflt = "0"),
	ROW("LIMIT", I64, limit, .dflt = "-1", .min = -1024, .max = 65536),
	ROW("BYTES", BYTES, bytes, .dflt = "128K", .min = 1, .max = 1 << 30),
	ROW("ANY_BYTES", BYTES, any_bytes, .dflt = "0"),
	ROW("WAIT", TIME, wait_ns, .dflt = "3s", .max = 10000000000),
	ROW("COLOUR", ENUM, colour, .dflt = "green", .names = colours),
	ROW("NAME", TEXT, name, .dflt = ""),
	ROW("PATH", TEXT, path, .dflt = "a,b"),
	{ .name = NULL },
};
/* clang-format on */

static const char *env_name;
static const char *env_text;

/* An environment of one variable. */
static const char *env_of_one(const char *name)
{
	return env_name != NULL && strcmp(name, env_name) == 0 ? env_text
							       : NULL;
}

static struct values values;
static enum fr_param_origin origin[FR_ARRAY_LEN(table)];

static int load(const char *name, const char *text)
{
	env_name = name;
	env_text = text;
	return fr_param_load(table, "T_", env_of_one, &values, origin);
}

static void param_setup(void)
{
	unit_log_setup();
	memset(&values, 0, sizeof(values));
	memset(origin, 0x7f, sizeof(origin));
}

static void param_teardown(void)
{
	fr_param_unload(table, &values);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

START_TEST(defaults_take_the_same_road)
{
	ck_assert_int_eq(load(NULL, NULL), 0);
	ck_assert(!values.on);
	ck_assert_uint_eq(values.cnt, 4);
	ck_assert_int_eq(values.limit, -1);
	ck_assert_uint_eq(values.bytes, 128 * 1024);
	ck_assert_uint_eq(values.wait_ns, 3000000000u);
	ck_assert_int_eq(values.colour, 1);
	ck_assert_str_eq(values.name, "");
	ck_assert_str_eq(values.path, "a,b");
	for (size_t i = 0; i + 1 < FR_ARRAY_LEN(table); i++) {
		ck_assert_int_eq(origin[i], FR_PARAM_DEFAULT);
	}
}
END_TEST

START_TEST(only_the_variable_that_is_set_has_another_origin)
{
	ck_assert_int_eq(load("T_CNT", "7"), 0);
	ck_assert_uint_eq(values.cnt, 7);
	for (size_t i = 0; i + 1 < FR_ARRAY_LEN(table); i++) {
		ck_assert_int_eq(origin[i],
				 i == 1 ? FR_PARAM_ENV : FR_PARAM_DEFAULT);
	}
}
END_TEST

START_TEST(an_empty_value_counts_as_unset)
{
	char name[32];

	snprintf(name, sizeof(name), "T_%s", table[_i].name);
	ck_assert_int_eq(load(name, ""), 0);
	ck_assert_int_eq(origin[_i], FR_PARAM_DEFAULT);
	ck_assert_uint_eq(values.cnt, 4);
	ck_assert_str_eq(values.path, "a,b");
}
END_TEST

START_TEST(without_a_getter_the_environment_is_read)
{
	setenv("T_PATH", "from here", 1);
	ck_assert_int_eq(fr_param_load(table, "T_", NULL, &values, NULL), 0);
	ck_assert_str_eq(values.path, "from here");
}
END_TEST

struct number_case {
	const char *name;
	const char *text;
	int64_t want;
};

static const struct number_case numbers[] = {
	{"CNT", "1", 1},
	{"CNT", "20", 20},
	{"CNT", "0x10", 16},
	{"CNT", "0XA", 10},
	{"CNT", "010", 10},
	{"ANY_CNT", "4294967295", UINT32_MAX},
	{"ANY_CNT", "0xffffffff", UINT32_MAX},
	{"ANY_CNT", "0000000000000000000000000001", 1},
	{"LIMIT", "-1", -1},
	{"LIMIT", "+5", 5},
	{"LIMIT", "-1k", -1024},
	{"LIMIT", "-0x10", -16},
	{"LIMIT", "64K", 65536},
	{"LIMIT", "0", 0},
	{"LIMIT", "-0", 0},
	{"BYTES", "4k", 4096},
	{"BYTES", "4K", 4096},
	{"BYTES", "1", 1},
	{"BYTES", "0x10k", 16384},
	{"BYTES", "2m", 2 << 20},
	{"BYTES", "1G", 1 << 30},
	{"ANY_BYTES", "0", 0},
	{"ANY_BYTES", "9223372036854775807", INT64_MAX},
	{"ANY_BYTES", "8589934591G", 8589934591ll << 30},
	{"WAIT", "0", 0},
	{"WAIT", "3", 3000000000},
	{"WAIT", "3s", 3000000000},
	{"WAIT", "500ms", 500000000},
	{"WAIT", "20US", 20000},
	{"WAIT", "7ns", 7},
	{"WAIT", "10s", 10000000000},
};

static int64_t number_of(const char *name)
{
	switch (name[0]) {
	case 'C':
		return values.cnt;
	case 'L':
		return values.limit;
	case 'B':
		return (int64_t)values.bytes;
	case 'W':
		return (int64_t)values.wait_ns;
	default:
		return name[4] == 'C' ? (int64_t)values.any_cnt
				      : (int64_t)values.any_bytes;
	}
}

START_TEST(a_number_of_the_grammar_is_taken)
{
	const struct number_case *c = &numbers[_i];
	char name[32];

	snprintf(name, sizeof(name), "T_%s", c->name);
	ck_assert_msg(load(name, c->text) == 0, "%s '%s'", name, c->text);
	ck_assert_msg(number_of(c->name) == c->want, "%s '%s': %" PRId64, name,
		      c->text, number_of(c->name));
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 0);
}
END_TEST

struct refused_case {
	const char *name;
	const char *text;
	const char *why;
};

static const struct refused_case refused[] = {
	{"CNT", " 4", "bad value"},
	{"CNT", "4 ", "bad value"},
	{"CNT", " ", "bad value"},
	{"CNT", "-1", "bad value"},
	{"CNT", "+4", "bad value"},
	{"CNT", "1e6", "bad value"},
	{"CNT", "4.0", "bad value"},
	{"CNT", "abc", "bad value"},
	{"CNT", "true", "bad value"},
	{"CNT", "4k", "bad value"},
	{"CNT", "0x", "bad value"},
	{"CNT", "0xg", "bad value"},
	{"CNT", "x10", "bad value"},
	{"CNT", "1,2", "bad value"},
	{"CNT", "4\n", "bad value"},
	{"CNT", "4,", "bad value"},
	{"CNT", "\xd9\xa4", "bad value"},
	{"CNT", "99999999999999999999", "bad value"},
	{"CNT", "0", "out of bounds"},
	{"CNT", "21", "out of bounds"},
	{"CNT", "4294967300", "out of bounds"},
	{"ANY_CNT", "4294967296", "out of bounds"},
	{"ANY_CNT", "-0", "bad value"},
	{"LIMIT", "-1025", "out of bounds"},
	{"LIMIT", "65537", "out of bounds"},
	{"LIMIT", "--1", "bad value"},
	{"LIMIT", "+-1", "bad value"},
	{"LIMIT", "-", "bad value"},
	{"LIMIT", "- 1", "bad value"},
	{"BYTES", "0", "out of bounds"},
	{"BYTES", "k", "bad value"},
	{"BYTES", "4kb", "bad value"},
	{"BYTES", "4 k", "bad value"},
	{"BYTES", "4T", "bad value"},
	{"BYTES", "1e6", "bad value"},
	{"BYTES", "2G", "out of bounds"},
	{"BYTES", "99999999999999999999", "bad value"},
	{"ANY_BYTES", "9223372036854775808", "bad value"},
	{"ANY_BYTES", "18446744073709551616", "bad value"},
	{"ANY_BYTES", "17179869184G", "bad value"},
	{"ANY_BYTES", "0x10000000000000000", "bad value"},
	{"WAIT", "0x10", "bad value"},
	{"WAIT", "1.5s", "bad value"},
	{"WAIT", "3 s", "bad value"},
	{"WAIT", "3m", "bad value"},
	{"WAIT", "s", "bad value"},
	{"WAIT", "-1", "bad value"},
	{"WAIT", "11s", "out of bounds"},
	{"WAIT", "99999999999999999999", "bad value"},
	{"ON", "2", "bad value"},
	{"ON", "yes ", "bad value"},
	{"ON", "t", "bad value"},
	{"ON", "enable", "bad value"},
	{"ON", "00", "bad value"},
	{"COLOUR", "pink", "bad value"},
	{"COLOUR", "gree", "bad value"},
	{"COLOUR", "1", "bad value"},
	{"COLOUR", "red,blue", "bad value"},
};

START_TEST(any_other_value_is_refused_by_name)
{
	const struct refused_case *c = &refused[_i];
	char name[32];

	snprintf(name, sizeof(name), "T_%s", c->name);
	ck_assert_msg(load(name, c->text) == -EINVAL, "%s '%s'", name, c->text);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
	unit_assert_logged(name);
	unit_assert_logged(c->why);
	unit_assert_logged("allowed: ");
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(the_error_line_names_value_bounds_and_default)
{
	ck_assert_int_eq(load("T_CNT", "21"), -EINVAL);
	ck_assert_str_eq(unit_log.text,
			 "T_CNT: value out of bounds '21'; allowed: 1 to 20; "
			 "default 4");
	ck_assert_int_eq(load("T_COLOUR", "pink"), -EINVAL);
	unit_assert_logged("'pink'; allowed: red or green or blue");
}
END_TEST

START_TEST(an_endless_value_does_not_hide_what_is_allowed)
{
	static char text[5000];

	memset(text, '7', sizeof(text) - 1);
	ck_assert_int_eq(load("T_CNT", text), -EINVAL);
	unit_assert_logged("allowed: 1 to 20");
}
END_TEST

static const char *const words[] = {"0",  "1",	 "n",	"Y",	 "no",
				    "On", "off", "YES", "FALSE", "true"};
static const bool word_on[] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1};

START_TEST(a_word_of_either_truth_is_taken_in_any_case)
{
	values.on = !word_on[_i];
	ck_assert_int_eq(load("T_ON", words[_i]), 0);
	ck_assert_int_eq(values.on, word_on[_i]);
}
END_TEST

START_TEST(a_name_of_the_list_is_taken_in_any_case)
{
	ck_assert_int_eq(load("T_COLOUR", "BLUE"), 0);
	ck_assert_int_eq(values.colour, 2);
}
END_TEST

static const char *const texts[] = {"eth0", " a b ", "=eth0,,lo,lo,",
				    "caf\xc3\xa9", "^tcp;ofi_rxm"};

START_TEST(text_is_taken_as_it_is)
{
	ck_assert_int_eq(load("T_NAME", texts[_i]), 0);
	ck_assert_str_eq(values.name, texts[_i]);
}
END_TEST

START_TEST(load_leaks_nothing_wherever_it_fails)
{
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), 0);
		ck_assert_ptr_null(values.name);
		ck_assert_ptr_null(values.path);
		fr_fault_alloc_at(++nth);
		ret = load(NULL, NULL);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);

	ck_assert_uint_eq(nth, 3); /* two texts */
	fr_fault_alloc_at(0);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 0);
}
END_TEST

START_TEST(unloading_twice_is_harmless)
{
	ck_assert_int_eq(load(NULL, NULL), 0);
	fr_param_unload(table, &values);
	ck_assert_ptr_null(values.name);
	fr_param_unload(table, &values);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("param");

	tcase_add_checked_fixture(t, param_setup, param_teardown);
	tcase_add_test(t, defaults_take_the_same_road);
	tcase_add_test(t, only_the_variable_that_is_set_has_another_origin);
	tcase_add_loop_test(t, an_empty_value_counts_as_unset, 0,
			    (int)FR_ARRAY_LEN(table) - 1);
	tcase_add_test(t, without_a_getter_the_environment_is_read);
	tcase_add_loop_test(t, a_number_of_the_grammar_is_taken, 0,
			    (int)FR_ARRAY_LEN(numbers));
	tcase_add_loop_test(t, any_other_value_is_refused_by_name, 0,
			    (int)FR_ARRAY_LEN(refused));
	tcase_add_test(t, the_error_line_names_value_bounds_and_default);
	tcase_add_test(t, an_endless_value_does_not_hide_what_is_allowed);
	tcase_add_loop_test(t, a_word_of_either_truth_is_taken_in_any_case, 0,
			    (int)FR_ARRAY_LEN(words));
	tcase_add_test(t, a_name_of_the_list_is_taken_in_any_case);
	tcase_add_loop_test(t, text_is_taken_as_it_is, 0,
			    (int)FR_ARRAY_LEN(texts));
	tcase_add_test(t, load_leaks_nothing_wherever_it_fails);
	tcase_add_test(t, unloading_twice_is_harmless);
	return unit_run(t, "base/param");
}
