#include "wire/knock.h"

#include "unit/wire/wire_check.h"

static const uint8_t hello[FR_KNOCK_HELLO_BYTES] = {
	'F', 'R', 'K', 'N', 1, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
static const uint8_t refusal[] = {'F', 'R', 'K', 'R', 1,   0,	5,
				  0,   8,   7,	 6,   5,   4,	3,
				  2,   1,   'w', 'r', 'o', 'n', 'g'};

static int decode_hello(const uint8_t *buf, size_t bytes)
{
	uint64_t id;
	int ret = fr_knock_hello_decode(&id, buf, bytes);

	ck_assert(ret == 0 || ret == -EBADMSG);
	return ret;
}

static int decode_refusal(const uint8_t *buf, size_t bytes)
{
	struct fr_knock_refusal m;
	int ret = fr_knock_refusal_decode(&m, buf, bytes);

	ck_assert(ret == 0 || ret == -EBADMSG || ret == -EAGAIN);
	if (ret == 0) {
		ck_assert_uint_le(m.text_len, FR_KNOCK_TEXT_MAX);
		ck_assert_uint_eq(strlen(m.text), m.text_len);
	}
	return ret;
}

START_TEST(the_hello_is_the_golden_one)
{
	uint8_t buf[FR_KNOCK_HELLO_BYTES];
	uint64_t id = 0;

	fr_knock_hello_encode(0x0102030405060708, buf);
	ck_assert_mem_eq(buf, hello, sizeof(hello));
	ck_assert_int_eq(fr_knock_hello_decode(&id, hello, sizeof(hello)), 0);
	ck_assert_uint_eq(id, 0x0102030405060708);
}
END_TEST

START_TEST(a_hello_of_another_length_is_a_strangers)
{
	wire_check_length(decode_hello, hello, sizeof(hello));
}
END_TEST

START_TEST(a_hello_of_another_kind_is_a_strangers)
{
	static const struct wire_flip flip[] = {
		{0, 'H'}, {3, 'R'}, {4, 2}, {5, 1}, {6, 1}, {7, 0x80},
	};

	wire_check_flips(decode_hello, hello, sizeof(hello), flip,
			 sizeof(flip) / sizeof(flip[0]));
}
END_TEST

START_TEST(the_refusal_is_the_golden_one)
{
	struct fr_knock_refusal m = {
		.cookie = 0x0102030405060708, .text_len = 5, .text = "wrong"};
	struct fr_knock_refusal got;
	uint8_t buf[sizeof(refusal)];

	ck_assert_int_eq(fr_knock_refusal_encode(&m, buf, sizeof(buf)),
			 sizeof(refusal));
	ck_assert_mem_eq(buf, refusal, sizeof(refusal));
	ck_assert_int_eq(
		fr_knock_refusal_decode(&got, refusal, sizeof(refusal)), 0);
	ck_assert_uint_eq(got.cookie, m.cookie);
	ck_assert_uint_eq(got.text_len, 5);
	ck_assert_str_eq(got.text, "wrong");
}
END_TEST

START_TEST(a_refusal_that_is_under_way_asks_for_more)
{
	uint8_t longer[sizeof(refusal) + 1] = {0};

	for (size_t n = 0; n < sizeof(refusal); n++) {
		ck_assert_int_eq(wire_decode_copy(decode_refusal, refusal, n),
				 -EAGAIN);
	}
	memcpy(longer, refusal, sizeof(refusal));
	ck_assert_int_eq(
		wire_decode_copy(decode_refusal, longer, sizeof(longer)),
		-EBADMSG);
}
END_TEST

START_TEST(a_stranger_is_known_by_his_first_byte)
{
	ck_assert_int_eq(
		wire_decode_copy(decode_refusal, (const uint8_t *)"GET /", 1),
		-EBADMSG);
	ck_assert_int_eq(
		wire_decode_copy(decode_refusal, (const uint8_t *)"FRKN", 4),
		-EBADMSG);
}
END_TEST

START_TEST(a_refusal_out_of_range_is_refused)
{
	static const struct wire_flip flip[] = {
		{0, 'f'}, {4, 2}, {5, 1}, {6, 201}, {7, 1}, {6, 4}, {6, 0},
	};

	wire_check_flips(decode_refusal, refusal, sizeof(refusal), flip,
			 sizeof(flip) / sizeof(flip[0]));
}
END_TEST

START_TEST(the_longest_text_fits_and_a_longer_one_does_not)
{
	struct fr_knock_refusal m = {.text_len = FR_KNOCK_TEXT_MAX};
	struct fr_knock_refusal got;
	uint8_t buf[FR_KNOCK_REFUSAL_HDR_BYTES + FR_KNOCK_TEXT_MAX];

	memset(m.text, 'x', FR_KNOCK_TEXT_MAX);
	ck_assert_int_eq(fr_knock_refusal_encode(&m, buf, sizeof(buf)),
			 sizeof(buf));
	ck_assert_int_eq(fr_knock_refusal_decode(&got, buf, sizeof(buf)), 0);
	ck_assert_str_eq(got.text, m.text);
	for (size_t n = 0; n < sizeof(buf); n++) {
		ck_assert_int_eq(fr_knock_refusal_encode(&m, buf, n),
				 -EMSGSIZE);
	}
	m.text_len++;
	ck_assert_int_eq(fr_knock_refusal_encode(&m, buf, sizeof(buf)),
			 -EMSGSIZE);
}
END_TEST

START_TEST(bytes_that_no_log_should_see_become_question_marks)
{
	struct fr_knock_refusal m = {.text_len = 6, .text = "a\n\x1b\0\xc3~"};
	struct fr_knock_refusal got;
	uint8_t buf[64];
	int bytes = fr_knock_refusal_encode(&m, buf, sizeof(buf));

	ck_assert_int_eq(bytes, 22);
	ck_assert_int_eq(fr_knock_refusal_decode(&got, buf, (size_t)bytes), 0);
	ck_assert_str_eq(got.text, "a????~");
}
END_TEST

START_TEST(noise_never_crashes)
{
	ck_assert_uint_ne(
		wire_check_noise(decode_hello, hello, sizeof(hello), 64), 0);
	ck_assert_uint_ne(
		wire_check_noise(decode_refusal, refusal, sizeof(refusal), 256),
		0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("knock");

	tcase_add_test(t, the_hello_is_the_golden_one);
	tcase_add_test(t, a_hello_of_another_length_is_a_strangers);
	tcase_add_test(t, a_hello_of_another_kind_is_a_strangers);
	tcase_add_test(t, the_refusal_is_the_golden_one);
	tcase_add_test(t, a_refusal_that_is_under_way_asks_for_more);
	tcase_add_test(t, a_stranger_is_known_by_his_first_byte);
	tcase_add_test(t, a_refusal_out_of_range_is_refused);
	tcase_add_test(t, the_longest_text_fits_and_a_longer_one_does_not);
	tcase_add_test(t, bytes_that_no_log_should_see_become_question_marks);
	tcase_add_test(t, noise_never_crashes);
	return wire_run(t, "wire knock");
}
