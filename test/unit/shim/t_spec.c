#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "shim/spec.h"
#include "unit/run.h"

static struct shim_spec spec;
static const char *bad;

START_TEST(no_text_asks_for_nothing)
{
	static const char *const none[] = {NULL, "", ";", ";;"};

	for (size_t i = 0; i < FR_ARRAY_LEN(none); i++) {
		ck_assert_int_eq(shim_spec_parse(none[i], &spec, &bad), 0);
		ck_assert_uint_eq(spec.seed, 1);
		ck_assert_uint_eq(spec.rule_cnt, 0);
		ck_assert_uint_eq(spec.key_cnt, 0);
		ck_assert(!spec.garbage && !spec.shuffle && !spec.posts);
		ck_assert_str_eq(spec.log, "");
	}
}
END_TEST

START_TEST(every_item_is_read)
{
	const char *text = "seed=7;garbage;shuffle;posts;gpu;cqdata=4;"
			   "spoil=0xc1:56:18446744073709551615;"
			   "keys=0,4294967301,18446744073709551614;"
			   "log=/tmp/a b";

	ck_assert_int_eq(shim_spec_parse(text, &spec, &bad), 0);
	ck_assert_uint_eq(spec.seed, 7);
	ck_assert(spec.garbage && spec.shuffle && spec.posts && spec.gpu);
	ck_assert_uint_eq(spec.cq_data, 4);
	ck_assert(spec.spoils);
	ck_assert_uint_eq(spec.spoil_first, 0xc1);
	ck_assert_uint_eq(spec.spoil_at, 56);
	ck_assert_uint_eq(spec.spoil_add, UINT64_MAX);
	ck_assert_uint_eq(spec.key_cnt, 3);
	ck_assert_uint_eq(spec.key[0], 0);
	ck_assert_uint_eq(spec.key[1], 4294967301u);
	ck_assert_uint_eq(spec.key[2], 18446744073709551614u);
	ck_assert_str_eq(spec.log, "/tmp/a b");
}
END_TEST

START_TEST(a_failure_has_defaults)
{
	const struct shim_rule *rule = spec.rule;

	ck_assert_int_eq(
		shim_spec_parse("fail=reg:3;fail=send@2:1:12:0", &spec, &bad),
		0);
	ck_assert_uint_eq(spec.rule_cnt, 2);
	ck_assert_uint_eq(rule[0].kinds, FR_BIT(SHIM_REG));
	ck_assert_int_eq(rule[0].rail, SHIM_ANY_RAIL);
	ck_assert_uint_eq(rule[0].at, 3);
	ck_assert_int_eq(rule[0].err, EIO);
	ck_assert_uint_eq(rule[0].cnt, 1);
	ck_assert_int_eq(rule[1].rail, 2);
	ck_assert_int_eq(rule[1].err, 12);
	ck_assert_uint_eq(rule[1].cnt, 0);
}
END_TEST

START_TEST(a_signal_is_the_one_that_asks_to_end)
{
	ck_assert_int_eq(
		shim_spec_parse("raise=reg:3;raise=read@1:2:10", &spec, &bad),
		0);
	ck_assert_uint_eq(spec.rule_cnt, 2);
	ck_assert_int_eq(spec.rule[0].sig, SIGTERM);
	ck_assert_uint_eq(spec.rule[0].at, 3);
	ck_assert_uint_eq(spec.rule[0].cnt, 0);
	ck_assert_int_eq(spec.rule[0].err, 0);
	ck_assert_int_eq(spec.rule[1].sig, 10);
	ck_assert_int_eq(spec.rule[1].rail, 1);
}
END_TEST

START_TEST(a_refusal_has_a_probability_and_maybe_a_burst)
{
	ck_assert_int_eq(shim_spec_parse("again=post:0.25;again=write@0:1:1000",
					 &spec, &bad),
			 0);
	ck_assert(spec.rule[0].is_again);
	ck_assert_double_eq(spec.rule[0].chance, 0.25);
	ck_assert_uint_eq(spec.rule[0].burst, 0);
	ck_assert_uint_eq(spec.rule[1].burst, 1000);
	ck_assert_int_eq(spec.rule[1].rail, 0);
}
END_TEST

START_TEST(kinds_can_be_joined_and_grouped)
{
	uint32_t posts = FR_BIT(SHIM_SEND) | FR_BIT(SHIM_WRITE) |
			 FR_BIT(SHIM_RECV) | FR_BIT(SHIM_FETCH);

	ck_assert_uint_eq(shim_kinds_parse("write+reg", 9),
			  FR_BIT(SHIM_WRITE) | FR_BIT(SHIM_REG));
	ck_assert_uint_eq(shim_kinds_parse("post", 4), posts);
	ck_assert_uint_eq(shim_kinds_parse("any", 3),
			  shim_kinds_parse("open+post", 9));
	ck_assert_uint_eq(shim_kinds_parse("any", 3) & FR_BIT(SHIM_READ), 0);
	ck_assert_uint_eq(shim_kinds_parse("wri", 3), 0);
	ck_assert_uint_eq(shim_kinds_parse("write+", 6), 0);
	for (unsigned i = 0; i < SHIM_KIND_CNT; i++) {
		const char *name = shim_kind_name((enum shim_kind)i);

		ck_assert_uint_eq(shim_kinds_parse(name, strlen(name)),
				  FR_BIT(i));
	}
}
END_TEST

static const char *const wrong[] = {
	"nonsense",
	"seed",
	"seed=",
	"seed=x",
	"seed=1x",
	"fail=write",
	"fail=write:0",
	"fail=:1",
	"fail=nobody:1",
	"fail=write@:1",
	"fail=write@x:1",
	"fail=write:1:0",
	"fail=write:1:5000",
	"fail=write:1:5:x",
	"fail=write:1:5:1:1",
	"raise=write",
	"raise=write:0",
	"raise=write:1:0",
	"raise=write:1:999",
	"raise=write:1:15:1",
	"again=write",
	"again=write:2",
	"again=write:x",
	"again=write:0.5:",
	"keys=",
	"keys=1,",
	"keys=1,,2",
	"log=",
	"spoil=1",
	"spoil=256:8:1",
	"spoil=1:0:1",
	"spoil=1:65537:1",
	"spoil=1:8",
	"spoil=1:8:",
	"spoil=1:8:x",
	"cqdata=0",
	"cqdata=9",
	"garbage=1",
	"shuffle=",
	"seed=99999999999999999999999",
};

START_TEST(what_is_wrong_is_refused_where_it_begins)
{
	char text[128] = "garbage;";

	strncat(text, wrong[_i], sizeof(text) - strlen(text) - 1);
	bad = NULL;
	ck_assert_int_eq(shim_spec_parse(text, &spec, &bad), -EINVAL);
	ck_assert_ptr_eq(bad, text + strlen("garbage;"));
}
END_TEST

START_TEST(more_than_there_is_room_for_is_refused)
{
	char text[64 * SHIM_RULES] = "";

	for (unsigned i = 0; i < SHIM_RULES; i++) {
		strncat(text, "fail=write:1;", sizeof(text) - strlen(text) - 1);
	}
	ck_assert_int_eq(shim_spec_parse(text, &spec, &bad), 0);
	strncat(text, "again=write:1", sizeof(text) - strlen(text) - 1);
	ck_assert_int_eq(shim_spec_parse(text, &spec, &bad), -EINVAL);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("spec");

	tcase_add_test(t, no_text_asks_for_nothing);
	tcase_add_test(t, every_item_is_read);
	tcase_add_test(t, a_failure_has_defaults);
	tcase_add_test(t, a_signal_is_the_one_that_asks_to_end);
	tcase_add_test(t, a_refusal_has_a_probability_and_maybe_a_burst);
	tcase_add_test(t, kinds_can_be_joined_and_grouped);
	tcase_add_loop_test(t, what_is_wrong_is_refused_where_it_begins, 0,
			    (int)FR_ARRAY_LEN(wrong));
	tcase_add_test(t, more_than_there_is_room_for_is_refused);
	return unit_run(t, "shim/spec");
}
