#include "wire/cursor.h"

#include "unit/wire/wire_check.h"

static const uint8_t golden[] = {0x01, 0x03, 0x02, 0x07, 0x06, 0x05,
				 0x04, 0x0f, 0x0e, 0x0d, 0x0c, 0x0b,
				 0x0a, 0x09, 0x08, 'a',	 'b',  0x00};

static void put_all(struct fr_wcur *c)
{
	fr_put_u8(c, 0x01);
	fr_put_u16(c, 0x0203);
	fr_put_u32(c, 0x04050607);
	fr_put_u64(c, 0x08090a0b0c0d0e0f);
	fr_put_bytes(c, "ab", 2);
	fr_put_zeros(c, 1);
}

START_TEST(integers_go_out_lowest_byte_first)
{
	uint8_t buf[sizeof(golden)];
	struct fr_wcur c;

	memset(buf, 0xee, sizeof(buf));
	fr_wcur_init(&c, buf, sizeof(buf));
	put_all(&c);
	ck_assert(!c.bad);
	ck_assert_ptr_eq(c.pos, buf + sizeof(buf));
	ck_assert_mem_eq(buf, golden, sizeof(golden));
}
END_TEST

START_TEST(integers_come_back)
{
	uint8_t *copy = noise_odd_copy(golden, sizeof(golden));
	struct fr_rcur c;
	char text[2];

	fr_rcur_init(&c, copy, sizeof(golden));
	ck_assert_uint_eq(fr_get_u8(&c), 0x01);
	ck_assert_uint_eq(fr_get_u16(&c), 0x0203);
	ck_assert_uint_eq(fr_get_u32(&c), 0x04050607);
	ck_assert_uint_eq(fr_get_u64(&c), 0x08090a0b0c0d0e0f);
	fr_get_bytes(&c, text, sizeof(text));
	ck_assert_mem_eq(text, "ab", 2);
	ck_assert_uint_eq(fr_rcur_left(&c), 1);
	ck_assert_ptr_eq(fr_get_view(&c, 1), copy + sizeof(golden) - 1);
	ck_assert_uint_eq(fr_rcur_left(&c), 0);
	ck_assert(!c.bad);
	noise_odd_free(copy);
}
END_TEST

START_TEST(a_writer_without_room_goes_bad_and_writes_nothing_more)
{
	uint8_t buf[sizeof(golden)];
	struct fr_wcur c;

	memset(buf, 0xee, sizeof(buf));
	fr_wcur_init(&c, buf, (size_t)_i);
	put_all(&c);
	ck_assert(c.bad);
	for (size_t i = (size_t)_i; i < sizeof(buf); i++) {
		ck_assert_uint_eq(buf[i], 0xee);
	}
	/* Fits, but the cursor is bad already. */
	buf[0] = 0xee;
	fr_put_bytes(&c, NULL, 0);
	fr_put_u8(&c, 0x11);
	ck_assert_uint_eq(buf[0], 0xee);
}
END_TEST

START_TEST(a_reader_past_its_end_gives_zero_from_then_on)
{
	static const uint8_t bytes[3] = {0xff, 0xff, 0xff};
	uint8_t out[2] = {0xee, 0xee};
	struct fr_rcur c;

	fr_rcur_init(&c, bytes, sizeof(bytes));
	ck_assert_uint_eq(fr_get_u32(&c), 0);
	ck_assert(c.bad);
	ck_assert_uint_eq(fr_get_u8(&c), 0);
	ck_assert_uint_eq(fr_rcur_left(&c), 0);
	ck_assert_ptr_null(fr_get_view(&c, 0));
	fr_get_bytes(&c, out, sizeof(out));
	ck_assert_uint_eq(out[0] | out[1], 0);
}
END_TEST

START_TEST(a_length_near_the_top_of_the_address_space_does_not_wrap)
{
	uint8_t buf[4] = {0};
	struct fr_rcur r;
	struct fr_wcur w;

	fr_rcur_init(&r, buf, sizeof(buf));
	ck_assert_ptr_null(fr_get_view(&r, SIZE_MAX));
	ck_assert(r.bad);
	fr_wcur_init(&w, buf, sizeof(buf));
	fr_put_zeros(&w, SIZE_MAX);
	ck_assert(w.bad);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("cursor");

	tcase_add_test(t, integers_go_out_lowest_byte_first);
	tcase_add_test(t, integers_come_back);
	tcase_add_loop_test(
		t, a_writer_without_room_goes_bad_and_writes_nothing_more, 0,
		(int)sizeof(golden));
	tcase_add_test(t, a_reader_past_its_end_gives_zero_from_then_on);
	tcase_add_test(
		t, a_length_near_the_top_of_the_address_space_does_not_wrap);
	return wire_run(t, "wire cursor");
}
