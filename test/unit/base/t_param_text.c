#include "unit/base/unit.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/param.h"
#include "base/util.h"

struct values {
	bool on;
	uint32_t cnt;
	int64_t limit;
	uint64_t bytes;
	uint64_t wait_ns;
	int colour;
	const char *name;
};

static const char *const colours[] = {"red", "green", NULL};

#define ROW(_name, _kind, _field, ...)                                         \
	{                                                                      \
		.name = (_name), .kind = FR_PARAM_##_kind,                     \
		.offset = offsetof(struct values, _field), __VA_ARGS__         \
	}

enum {
	ON,
	CNT,
	LIMIT,
	BYTES,
	WAIT,
	COLOUR,
	NAME,
	AT_LEAST,
	FREE_BYTES,
	HOOK,
	END
};

/* clang-format off */
static const struct fr_param table[] = {
	[ON] = ROW("ON", BOOL, on, .dflt = "0", .unit = "", .help = "Switch."),
	[CNT] = ROW("CNT", U32, cnt, .dflt = "4", .min = 1, .max = 4096,
		    .unit = "count", .help = "Things."),
	[LIMIT] = ROW("LIMIT", I64, limit, .dflt = "8192", .min = -1,
		      .max = 65536, .unit = "bytes", .help = "Limit."),
	[BYTES] = ROW("BYTES", BYTES, bytes, .dflt = "128K", .min = 1,
		      .max = 1 << 30, .unit = "bytes", .help = "Size."),
	[WAIT] = ROW("WAIT", TIME, wait_ns, .dflt = "3s", .max = 1500000000,
		     .unit = "time", .help = "Wait."),
	[COLOUR] = ROW("COLOUR", ENUM, colour, .dflt = "green", .unit = "",
		       .names = colours, .help = "This | that."),
	[NAME] = ROW("NAME", TEXT, name, .dflt = "", .unit = "",
		     .help = "Name."),
	[AT_LEAST] = ROW("AT_LEAST", BYTES, bytes, .dflt = "1", .min = 1,
			 .max = INT64_MAX, .unit = "bytes", .help = "More."),
	[FREE_BYTES] = ROW("FREE_BYTES", BYTES, bytes, .dflt = "1",
			   .unit = "bytes", .help = "Any."),
	[HOOK] = ROW("HOOK", U32, cnt, .dflt = "0", .unit = "count",
		     .for_tests = true, .help = "Limit."),
	[END] = { .name = NULL },
};
/* clang-format on */

struct format_case {
	int row;
	struct values values;
	const char *want;
};

static const struct format_case formats[] = {
	{ON, {.on = false}, "0"},
	{ON, {.on = true}, "1"},
	{CNT, {.cnt = 2048}, "2048"},
	{CNT, {.cnt = UINT32_MAX}, "4294967295"},
	{LIMIT, {.limit = -1}, "-1"},
	{LIMIT, {.limit = -2048}, "-2K"},
	{LIMIT, {.limit = INT64_MIN}, "-8589934592G"},
	{LIMIT, {.limit = 8192}, "8K"},
	{LIMIT, {.limit = 0}, "0"},
	{BYTES, {.bytes = 1000}, "1000"},
	{BYTES, {.bytes = 128 << 10}, "128K"},
	{BYTES, {.bytes = 3 << 20}, "3M"},
	{BYTES, {.bytes = 1 << 30}, "1G"},
	{BYTES, {.bytes = INT64_MAX}, "9223372036854775807"},
	{WAIT, {.wait_ns = 0}, "0"},
	{WAIT, {.wait_ns = 3000000000}, "3s"},
	{WAIT, {.wait_ns = 1500000000}, "1500ms"},
	{WAIT, {.wait_ns = 20000}, "20us"},
	{WAIT, {.wait_ns = 7}, "7ns"},
	{COLOUR, {.colour = 1}, "green"},
	{NAME, {.name = ""}, ""},
	{NAME, {.name = "eth0,eth1"}, "eth0,eth1"},
};

START_TEST(a_value_is_shown_as_a_user_would_write_it)
{
	const struct format_case *c = &formats[_i];
	char text[64];

	fr_param_format(&table[c->row], &c->values, text, sizeof(text));
	ck_assert_str_eq(text, c->want);
}
END_TEST

static const struct {
	int row;
	const char *want;
} allowed[] = {
	{ON, "0 or 1 (n/y, no/yes, false/true, off/on)"},
	{CNT, "1 to 4096"},
	{LIMIT, "-1 to 64K; K, M, G are powers of 1024"},
	{BYTES, "1 to 1G; K, M, G are powers of 1024"},
	{WAIT, "0 to 1500ms; ns, us, ms, s; bare is seconds"},
	{COLOUR, "red or green"},
	{NAME, "text"},
	{AT_LEAST, "1 or more; K, M, G are powers of 1024"},
	{FREE_BYTES, "0 or more; K, M, G are powers of 1024"},
};

START_TEST(what_is_allowed_is_said_for_every_kind)
{
	char text[128];

	fr_param_allowed(&table[allowed[_i].row], text, sizeof(text));
	ck_assert_str_eq(text, allowed[_i].want);
}
END_TEST

/* The loop index is the row. */
START_TEST(a_small_buffer_is_not_overrun)
{
	struct values values = {.cnt = 123456,
				.limit = 1234567,
				.bytes = 1234567,
				.wait_ns = 1234567,
				.name = "a long name"};
	char text[8];

	for (size_t bytes = 1; bytes < sizeof(text); bytes++) {
		memset(text, '#', sizeof(text));
		fr_param_format(&table[_i], &values, text, bytes);
		ck_assert_uint_lt(strlen(text), bytes);
		ck_assert_uint_eq((unsigned char)text[bytes], '#');
		memset(text, '#', sizeof(text));
		fr_param_allowed(&table[_i], text, bytes);
		ck_assert_uint_eq(strlen(text), FR_MIN(bytes - 1, 7));
		ck_assert_uint_eq((unsigned char)text[bytes], '#');
	}
}
END_TEST

START_TEST(the_manual_has_a_line_for_each_row)
{
	char text[4096];
	FILE *out = fmemopen(text, sizeof(text), "w");

	ck_assert_ptr_nonnull(out);
	fr_param_print_markdown(table, "T_", false, out);
	fclose(out);
	ck_assert_ptr_eq(
		strstr(text, "| Name | Default | Allowed | Meaning |\n"
			     "|------|---------|---------|---------|\n"
			     "| `T_ON` | 0 | 0 or 1 (n/y, no/yes, false/true, "
			     "off/on) | Switch. |\n"
			     "| `T_CNT` | 4 | 1 to 4096 (count) | Things. |\n"),
		text);
	ck_assert_ptr_nonnull(strstr(
		text, "| `T_WAIT` | 3s | 0 to 1500ms; ns, us, ms, s; bare is "
		      "seconds | Wait. |\n"));
	ck_assert_ptr_nonnull(strstr(text, "| This \\| that. |\n"));
	ck_assert_ptr_nonnull(
		strstr(text, "| `T_NAME` | (empty) | text | Name. |\n"));
	ck_assert_ptr_nonnull(strstr(text, "| `T_FREE_BYTES` |"));
	ck_assert_ptr_null(strstr(text, "T_HOOK"));
}
END_TEST

START_TEST(rows_for_tests_have_a_table_of_their_own)
{
	char text[4096];
	FILE *out = fmemopen(text, sizeof(text), "w");

	ck_assert_ptr_nonnull(out);
	fr_param_print_markdown(table, "T_", true, out);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, "| `T_HOOK` | 0 |"));
	ck_assert_ptr_null(strstr(text, "T_ON"));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("param_text");

	tcase_add_loop_test(t, a_value_is_shown_as_a_user_would_write_it, 0,
			    (int)FR_ARRAY_LEN(formats));
	tcase_add_loop_test(t, what_is_allowed_is_said_for_every_kind, 0,
			    (int)FR_ARRAY_LEN(allowed));
	tcase_add_loop_test(t, a_small_buffer_is_not_overrun, 0, COLOUR);
	tcase_add_test(t, the_manual_has_a_line_for_each_row);
	tcase_add_test(t, rows_for_tests_have_a_table_of_their_own);
	return unit_run(t, "base/param_text");
}
