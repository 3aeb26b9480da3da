#include "wire/handle.h"

#include "unit/wire/wire_check.h"

/* Four IPv4 names fill their 64 bytes: port and provider lie in the padding of
 * the first. */
/* clang-format off */
static const uint8_t golden4[FR_HANDLE_BYTES] = {
	'F', 'R', 'N', 'H', 1, 4, 16, 24,
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	2, 0, 0x1f, 0x90, 10, 0, 0, 1, 0x34, 0x12, 1, 0, 0, 0, 0, 0,
	2, 0, 0x1f, 0x91, 10, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0,
	2, 0, 0x1f, 0x92, 10, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0,
	2, 0, 0x1f, 0x93, 10, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0,
};
/* clang-format on */

static struct fr_handle four_v4(void)
{
	struct fr_handle h = {.version = 1,
			      .prov = FR_WIRE_PROV_NET,
			      .knock_port = 0x1234,
			      .cookie = 0x1122334455667788,
			      .name_cnt = 4};

	for (unsigned i = 0; i < 4; i++) {
		uint8_t name[16] = {2, 0, 0x1f, 0x90 + i, 10, 0, (uint8_t)i, 1};

		h.names[i].len = sizeof(name);
		memcpy(h.names[i].bytes, name, sizeof(name));
	}
	return h;
}

static struct fr_handle with_names(unsigned cnt, unsigned len)
{
	struct fr_handle h = {.version = 1,
			      .prov = FR_WIRE_PROV_EFA,
			      .knock_port = 4791,
			      .cookie = 7,
			      .name_cnt = cnt};

	for (unsigned i = 0; i < cnt; i++) {
		h.names[i].len = (uint16_t)len;
		memset(h.names[i].bytes, (int)(0xa0 + i), len);
	}
	return h;
}

static void assert_same(const struct fr_handle *a, const struct fr_handle *b)
{
	ck_assert_uint_eq(a->version, b->version);
	ck_assert_uint_eq(a->prov, b->prov);
	ck_assert_uint_eq(a->knock_port, b->knock_port);
	ck_assert_uint_eq(a->cookie, b->cookie);
	ck_assert_uint_eq(a->name_cnt, b->name_cnt);
	for (unsigned i = 0; i < a->name_cnt; i++) {
		ck_assert_uint_eq(a->names[i].len, b->names[i].len);
		ck_assert_mem_eq(a->names[i].bytes, b->names[i].bytes,
				 FR_NAME_MAX);
	}
}

static int decode(const uint8_t *buf, size_t bytes)
{
	struct fr_handle h;
	const char *why = NULL;
	int ret = fr_handle_decode(&h, buf, bytes, &why);

	ck_assert(ret == 0 || ret == -EBADMSG || ret == -EPROTONOSUPPORT);
	ck_assert_int_eq(why != NULL, ret != 0);
	if (ret == 0) {
		ck_assert_uint_ge(h.name_cnt, 1);
		ck_assert_uint_le(h.name_cnt, FR_HANDLE_MAX_NAMES);
		for (unsigned i = 0; i < h.name_cnt; i++) {
			ck_assert_uint_ge(h.names[i].len, 1);
			ck_assert_uint_le(h.names[i].len, FR_NAME_MAX);
		}
	}
	return ret;
}

static struct fr_handle there_and_back(const struct fr_handle *h, size_t bytes)
{
	uint8_t buf[FR_HANDLE_BYTES];
	struct fr_handle got;
	const char *why;

	memset(buf, 0xee, sizeof(buf));
	ck_assert_int_eq(fr_handle_encode(h, buf, bytes), 0);
	for (size_t i = FR_HANDLE_STATE_OFFSET; i < bytes; i++) {
		ck_assert_uint_eq(buf[i], 0);
	}
	ck_assert_int_eq(fr_handle_decode(&got, buf, bytes, &why), 0);
	return got;
}

START_TEST(four_ipv4_names_give_the_golden_bytes)
{
	struct fr_handle h = four_v4();
	uint8_t buf[FR_HANDLE_BYTES];

	ck_assert_int_eq(fr_handle_encode(&h, buf, sizeof(buf)), 0);
	ck_assert_mem_eq(buf, golden4, sizeof(buf));
}
END_TEST

START_TEST(the_golden_bytes_decode_with_clean_padding)
{
	struct fr_handle want = four_v4();
	uint8_t *copy = noise_odd_copy(golden4, sizeof(golden4));
	struct fr_handle got;
	const char *why;

	ck_assert_int_eq(fr_handle_decode(&got, copy, sizeof(golden4), &why),
			 0);
	assert_same(&got, &want);
	noise_odd_free(copy);
}
END_TEST

START_TEST(a_short_handle_takes_three_ipv4_names_and_the_port)
{
	struct fr_handle h = four_v4();
	struct fr_handle got = there_and_back(&h, FR_HANDLE_BYTES_V4);

	h.name_cnt = 3;
	assert_same(&got, &h);
}
END_TEST

START_TEST(the_first_half_of_a_handle_suffices_alone)
{
	struct fr_handle want = four_v4();
	struct fr_handle got;
	const char *why;

	ck_assert_int_eq(
		fr_handle_decode(&got, golden4, FR_HANDLE_BYTES_V4, &why), 0);
	want.name_cnt = 3;
	assert_same(&got, &want);
}
END_TEST

START_TEST(names_that_fit_come_back_with_the_port_behind_them)
{
	static const struct {
		unsigned cnt, len;
		size_t bytes;
		unsigned fit;
		bool port;
	} row[] = {
		{4, 28, FR_HANDLE_BYTES, 2, true},
		{4, 28, FR_HANDLE_BYTES_V4, 1, true},
		{1, 32, FR_HANDLE_BYTES_V4, 1, true},
		{2, 32, FR_HANDLE_BYTES, 2, false}, /* no room, no padding */
		{1, 48, FR_HANDLE_BYTES_V4, 1, false},
		{1, 45, FR_HANDLE_BYTES_V4, 1, true},
		{1, 56, FR_HANDLE_BYTES, 1, true},
		{4, 1, FR_HANDLE_BYTES_V4, 4, true},
		{4, 16, FR_HANDLE_BYTES, 4, false}, /* 16, but no IPv4 */
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct fr_handle h = with_names(row[i].cnt, row[i].len);
		struct fr_handle got = there_and_back(&h, row[i].bytes);

		h.name_cnt = row[i].fit;
		if (!row[i].port) {
			h.knock_port = 0;
			h.prov = 0;
		}
		assert_same(&got, &h);
	}
}
END_TEST

START_TEST(names_of_another_length_stay_at_home)
{
	struct fr_handle h = with_names(3, 16);
	struct fr_handle got;

	h.names[1].len = 28;
	got = there_and_back(&h, FR_HANDLE_BYTES);
	ck_assert_uint_eq(got.name_cnt, 2);
	ck_assert_uint_eq(got.names[1].bytes[0], 0xa2);
}
END_TEST

START_TEST(a_handle_that_knows_no_port_has_no_slot)
{
	struct fr_handle h = with_names(1, 16);
	uint8_t buf[FR_HANDLE_BYTES];

	h.prov = 0;
	h.knock_port = 0;
	ck_assert_int_eq(fr_handle_encode(&h, buf, sizeof(buf)), 0);
	ck_assert_uint_eq(buf[7], 0);
}
END_TEST

START_TEST(encode_refuses_what_does_not_fit)
{
	uint8_t buf[FR_HANDLE_BYTES + 1];
	struct fr_handle h = with_names(1, 56);

	ck_assert_int_eq(fr_handle_encode(&h, buf, FR_HANDLE_BYTES_V4),
			 -EINVAL);
	ck_assert_int_eq(fr_handle_encode(&h, buf, FR_HANDLE_BYTES + 1),
			 -EINVAL);
	h.names[0].len = FR_NAME_MAX + 1;
	ck_assert_int_eq(fr_handle_encode(&h, buf, FR_HANDLE_BYTES), -EINVAL);
	h.names[0].len = 0;
	ck_assert_int_eq(fr_handle_encode(&h, buf, FR_HANDLE_BYTES), -EINVAL);
	h = with_names(1, 16);
	h.name_cnt = 0;
	ck_assert_int_eq(fr_handle_encode(&h, buf, FR_HANDLE_BYTES), -EINVAL);
	h.name_cnt = FR_HANDLE_MAX_NAMES + 1;
	ck_assert_int_eq(fr_handle_encode(&h, buf, FR_HANDLE_BYTES), -EINVAL);
}
END_TEST

START_TEST(every_other_size_is_refused)
{
	uint8_t buf[FR_HANDLE_BYTES + 1] = {0};

	memcpy(buf, golden4, sizeof(golden4));
	for (size_t n = 0; n <= sizeof(buf); n++) {
		int want = n == FR_HANDLE_BYTES || n == FR_HANDLE_BYTES_V4
				   ? 0
				   : -EBADMSG;

		ck_assert_int_eq(wire_decode_copy(decode, buf, n), want);
	}
}
END_TEST

START_TEST(fields_out_of_range_are_refused)
{
	static const struct wire_flip flip[] = {
		{0, 'f'}, {3, 0},		       /* magic */
		{5, 0},	  {5, 5},  {5, 255},	       /* names */
		{6, 0},	  {6, 17}, {6, 57},  {6, 255}, /* length */
		{7, 1},	  {7, 16}, {7, 25},  {7, 79},  {7, 127}, {7, 0xff},
	};

	wire_check_flips(decode, golden4, sizeof(golden4), flip,
			 sizeof(flip) / sizeof(flip[0]));
}
END_TEST

START_TEST(garbage_behind_the_names_is_refused_but_not_in_the_state)
{
	struct fr_handle h = with_names(1, 16);
	uint8_t buf[FR_HANDLE_BYTES];

	ck_assert_int_eq(fr_handle_encode(&h, buf, sizeof(buf)), 0);
	for (size_t i = 16 + 16 + 3; i < sizeof(buf); i++) {
		buf[i] = 1;
		ck_assert_int_eq(wire_decode_copy(decode, buf, sizeof(buf)),
				 i < FR_HANDLE_STATE_OFFSET ? -EBADMSG : 0);
		buf[i] = 0;
	}
}
END_TEST

START_TEST(another_version_still_tells_who_to_refuse)
{
	struct fr_handle got;
	const char *why = NULL;
	uint8_t buf[FR_HANDLE_BYTES];

	memcpy(buf, golden4, sizeof(buf));
	buf[4] = 2;
	buf[5] = 200;
	ck_assert_int_eq(fr_handle_decode(&got, buf, sizeof(buf), &why),
			 -EPROTONOSUPPORT);
	ck_assert_str_eq(why, "version");
	ck_assert_uint_eq(got.version, 2);
	ck_assert_uint_eq(got.cookie, 0x1122334455667788);
	ck_assert_uint_eq(got.knock_port, 0x1234);
	ck_assert_uint_eq(got.prov, FR_WIRE_PROV_NET);
	ck_assert_uint_eq(got.name_cnt, 1);
	ck_assert_uint_eq(got.names[0].len, 16);
	ck_assert_mem_eq(got.names[0].bytes, golden4 + 16, 8);
	buf[6] = 57;
	ck_assert_int_eq(fr_handle_decode(&got, buf, sizeof(buf), &why),
			 -EPROTONOSUPPORT);
	ck_assert_uint_eq(got.name_cnt, 0);
}
END_TEST

START_TEST(another_version_with_a_wild_slot_tells_no_port)
{
	static const uint8_t wild[] = {0, 1, 15, 78, 79, 80, 127, 128, 255};
	struct fr_handle got;
	const char *why;
	uint8_t buf[FR_HANDLE_BYTES];

	memset(buf, 0xff, sizeof(buf));
	memcpy(buf, golden4, 8);
	buf[4] = 9;
	for (size_t i = 0; i < sizeof(wild); i++) {
		buf[7] = wild[i];
		ck_assert_int_eq(fr_handle_decode(&got, buf, sizeof(buf), &why),
				 -EPROTONOSUPPORT);
		ck_assert_uint_eq(got.knock_port, 0);
		ck_assert_uint_eq(got.prov, 0);
	}
}
END_TEST

START_TEST(noise_never_crashes)
{
	uint64_t state = 3;
	uint8_t buf[FR_HANDLE_BYTES];

	ck_assert_uint_ne(wire_check_noise(decode, golden4, sizeof(golden4),
					   FR_HANDLE_BYTES),
			  0);
	/* Of the right size more often than the general noise is. */
	for (unsigned i = 0; i < 20000; i++) {
		memset(buf, 0, sizeof(buf));
		noise_fill(&state, golden4, sizeof(golden4), buf, sizeof(buf));
		memcpy(buf, golden4, 4);
		wire_decode_copy(decode, buf, FR_HANDLE_BYTES >> (i & 1));
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("handle");

	tcase_add_test(t, four_ipv4_names_give_the_golden_bytes);
	tcase_add_test(t, the_golden_bytes_decode_with_clean_padding);
	tcase_add_test(t, a_short_handle_takes_three_ipv4_names_and_the_port);
	tcase_add_test(t, the_first_half_of_a_handle_suffices_alone);
	tcase_add_test(t, names_that_fit_come_back_with_the_port_behind_them);
	tcase_add_test(t, names_of_another_length_stay_at_home);
	tcase_add_test(t, a_handle_that_knows_no_port_has_no_slot);
	tcase_add_test(t, encode_refuses_what_does_not_fit);
	tcase_add_test(t, every_other_size_is_refused);
	tcase_add_test(t, fields_out_of_range_are_refused);
	tcase_add_test(
		t, garbage_behind_the_names_is_refused_but_not_in_the_state);
	tcase_add_test(t, another_version_still_tells_who_to_refuse);
	tcase_add_test(t, another_version_with_a_wild_slot_tells_no_port);
	tcase_add_test(t, noise_never_crashes);
	return wire_run(t, "wire handle");
}
