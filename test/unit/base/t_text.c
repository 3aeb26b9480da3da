#include "unit/base/unit.h"

#include "base/text.h"

START_TEST(pieces_follow_each_other)
{
	struct fr_text text = {.len = 0};

	ck_assert_str_eq(text.buf, "");
	fr_text_add(&text, "%s%u", "rail", 0u);
	fr_text_add(&text, "%s", "");
	fr_text_add(&text, ", %s%u", "rail", 1u);
	ck_assert_str_eq(text.buf, "rail0, rail1");
	ck_assert_uint_eq(text.len, 12);
}
END_TEST

START_TEST(what_does_not_fit_is_cut)
{
	struct fr_text text = {.len = 0};

	for (unsigned i = 0; i < FR_TEXT_BYTES; i++) {
		fr_text_add(&text, "%c", 'a' + (int)(i % 26));
		ck_assert_uint_eq(strlen(text.buf), text.len);
	}
	ck_assert_uint_eq(text.len, FR_TEXT_BYTES - 1);
	fr_text_add(&text, "more");
	ck_assert_uint_eq(text.len, FR_TEXT_BYTES - 1);
	for (unsigned i = 0; i < FR_TEXT_BYTES - 1; i++) {
		ck_assert_int_eq(text.buf[i], 'a' + (int)(i % 26));
	}
}
END_TEST

START_TEST(a_piece_that_is_longer_than_the_rest_fills_it)
{
	struct fr_text text = {.len = 0};

	fr_text_add(&text, "%*s", FR_TEXT_BYTES - 3, "x");
	fr_text_add(&text, "yyyyy");
	ck_assert_uint_eq(text.len, FR_TEXT_BYTES - 1);
	ck_assert_str_eq(text.buf + FR_TEXT_BYTES - 4, "xyy");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("text");

	tcase_add_test(t, pieces_follow_each_other);
	tcase_add_test(t, what_does_not_fit_is_cut);
	tcase_add_test(t, a_piece_that_is_longer_than_the_rest_fills_it);
	return unit_run(t, "base/text");
}
