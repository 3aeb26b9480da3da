#include "wire/fence.h"

#include "unit/wire/wire_check.h"
#include "wire/imm.h"
#include "wire/link.h"

#define NAME_BYTES 60u
#define FENCED_ITEMS (12u + 2 * NAME_BYTES)

/* clang-format off */
static const uint8_t fence_golden[8 + 2 * 12] = {
	3, 0, 2, 0, 0x44, 0x33, 0x22, 0x11,
	5, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0,
	0xff, 0xff, 3, 0, 7, 0, 0, 0, 0, 0, 0, 0,
};
static const uint8_t fenced_golden[FENCED_ITEMS + 12] = {
	7, 0, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0,
	[12] = 4, 0, 0, 0, 'd', 'a', 't', 'a',
	[12 + NAME_BYTES] = 2, 0, 0, 0, 'c', 't',
	[FENCED_ITEMS] = 5, 0, 0, 0, 6, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff,
};
static const uint8_t rail_golden[8 + 2 * NAME_BYTES] = {
	0, 0, 0, 0, 9, 0, 0, 0,
	[8] = 2, 0, 0, 0, 'c', 't',
	[8 + NAME_BYTES] = 4, 0, 0, 0, 'd', 'a', 't', 'a',
};
/* clang-format on */

static const struct fr_fence fence_msg = {
	.type = FR_LINK_FENCE,
	.rail = 3,
	.inc = 0x11223344,
	.item_cnt = 2,
	.items = {{5, 6, 1}, {FR_IMM_COMM_CNT - 1, 7, 0}},
};
static const struct fr_fence fenced_msg = {
	.type = FR_LINK_FENCED,
	.rail = 7,
	.inc = 1,
	.new_inc = 2,
	.data = {4, "data"},
	.ctrl = {2, "ct"},
	.item_cnt = 1,
	.items = {{5, 6, FR_FENCED_GONE}},
};
static const struct fr_fence rail_msg = {
	.type = FR_LINK_RAIL,
	.inc = 9,
	.data = {4, "data"},
	.ctrl = {2, "ct"},
};

static int decode_as(uint8_t type, const uint8_t *buf, size_t bytes)
{
	static struct fr_fence m;
	const char *why = NULL;
	uint8_t again[2048];
	int ret = fr_fence_decode(type, &m, buf, bytes, &why);

	ck_assert(ret == 0 || ret == -EBADMSG);
	ck_assert_int_eq(why != NULL, ret != 0);
	if (ret == 0) {
		ck_assert_int_eq(fr_fence_encode(&m, again, sizeof(again)),
				 (int)bytes);
		ck_assert_mem_eq(again, buf, bytes);
	}
	return ret;
}

static int decode_fence(const uint8_t *buf, size_t bytes)
{
	return decode_as(FR_LINK_FENCE, buf, bytes);
}

static int decode_fenced(const uint8_t *buf, size_t bytes)
{
	return decode_as(FR_LINK_FENCED, buf, bytes);
}

static int decode_rail(const uint8_t *buf, size_t bytes)
{
	return decode_as(FR_LINK_RAIL, buf, bytes);
}

static const struct {
	const struct fr_fence *msg;
	const uint8_t *golden;
	size_t bytes;
	wire_decode_fn decode;
} kinds[] = {
	{&fence_msg, fence_golden, sizeof(fence_golden), decode_fence},
	{&fenced_msg, fenced_golden, sizeof(fenced_golden), decode_fenced},
	{&rail_msg, rail_golden, sizeof(rail_golden), decode_rail},
};

START_TEST(a_message_is_the_golden_one)
{
	uint8_t buf[512];

	ck_assert_int_eq(fr_fence_encode(kinds[_i].msg, buf, sizeof(buf)),
			 (int)kinds[_i].bytes);
	ck_assert_mem_eq(buf, kinds[_i].golden, kinds[_i].bytes);
	for (size_t n = 0; n < kinds[_i].bytes; n++) {
		ck_assert_int_eq(fr_fence_encode(kinds[_i].msg, buf, n),
				 -EMSGSIZE);
	}
}
END_TEST

START_TEST(the_fields_come_back)
{
	static struct fr_fence got;
	const struct fr_fence *want = kinds[_i].msg;
	const char *why;

	ck_assert_int_eq(fr_fence_decode(want->type, &got, kinds[_i].golden,
					 kinds[_i].bytes, &why),
			 0);
	ck_assert_uint_eq(got.type, want->type);
	ck_assert_uint_eq(got.rail, want->rail);
	ck_assert_uint_eq(got.inc, want->inc);
	ck_assert_uint_eq(got.new_inc, want->new_inc);
	ck_assert_uint_eq(got.data.len, want->data.len);
	ck_assert_uint_eq(got.ctrl.len, want->ctrl.len);
	ck_assert_mem_eq(got.data.bytes, want->data.bytes, FR_NAME_MAX);
	ck_assert_mem_eq(got.ctrl.bytes, want->ctrl.bytes, FR_NAME_MAX);
	ck_assert_uint_eq(got.item_cnt, want->item_cnt);
	ck_assert_mem_eq(got.items, want->items, sizeof(got.items));
}
END_TEST

START_TEST(another_length_is_refused)
{
	wire_check_length(kinds[_i].decode, kinds[_i].golden, kinds[_i].bytes);
}
END_TEST

START_TEST(fields_out_of_range_are_refused)
{
	static const struct wire_flip fence[] = {
		{0, 8},
		{0, 255},
		{1, 1},
		{2, 1},
		{2, 3},
		{3, 1},
		{10, 4} /* comm id */,
	};
	static const struct wire_flip fenced[] = {
		{0, 8},
		{1, 1},
		{2, 0},
		{4, 0} /* incarnation */,
		{8, 0},
		{12, 0} /* data name */,
		{12, 3},
		{12, 57},
		{13, 1},
		{14, 1},
		{71, 1} /* padding of the name */,
		{72, 1},
		{72, 0},
		{75, 1},
		{131, 1},
		{134, 4},
	};
	static const struct wire_flip rail[] = {
		{0, 8},	 {1, 1},  {2, 1},  {3, 1},   {4, 0},  {8, 57},
		{10, 1}, {68, 0}, {68, 2}, {68, 57}, {70, 1}, {127, 1},
	};

	wire_check_flips(decode_fence, fence_golden, sizeof(fence_golden),
			 fence, sizeof(fence) / sizeof(fence[0]));
	wire_check_flips(decode_fenced, fenced_golden, sizeof(fenced_golden),
			 fenced, sizeof(fenced) / sizeof(fenced[0]));
	wire_check_flips(decode_rail, rail_golden, sizeof(rail_golden), rail,
			 sizeof(rail) / sizeof(rail[0]));
}
END_TEST

START_TEST(the_longest_list_passes_and_a_longer_one_does_not)
{
	static struct fr_fence m, got;
	uint8_t buf[FENCED_ITEMS + 12 * (FR_FENCE_MAX_ITEMS + 1)];
	const char *why;
	int bytes;

	m = fenced_msg;
	m.item_cnt = FR_FENCE_MAX_ITEMS;
	for (unsigned i = 0; i < FR_FENCE_MAX_ITEMS; i++) {
		m.items[i] = (struct fr_fence_item){i, i, FR_FENCED_RETIRED};
	}
	memset(buf, 0, sizeof(buf));
	bytes = fr_fence_encode(&m, buf, sizeof(buf));
	ck_assert_int_eq(bytes, sizeof(buf) - 12);
	ck_assert_int_eq(wire_decode_copy(decode_fenced, buf, (size_t)bytes),
			 0);
	buf[2] = FR_FENCE_MAX_ITEMS + 1;
	ck_assert_int_eq(
		fr_fence_decode(FR_LINK_FENCED, &got, buf, sizeof(buf), &why),
		-EBADMSG);
	m.item_cnt++;
	ck_assert_int_eq(fr_fence_encode(&m, buf, sizeof(buf)), -EINVAL);
}
END_TEST

START_TEST(a_rail_whose_data_endpoint_is_its_control_endpoint_has_one_name)
{
	struct fr_fence m = rail_msg;
	uint8_t buf[sizeof(rail_golden)];

	m.ctrl.len = 0;
	memset(m.ctrl.bytes, 0, sizeof(m.ctrl.bytes));
	ck_assert_int_eq(fr_fence_encode(&m, buf, sizeof(buf)), sizeof(buf));
	ck_assert_int_eq(decode_rail(buf, sizeof(buf)), 0);
}
END_TEST

START_TEST(what_cannot_be_is_not_encoded)
{
	struct fr_fence bad[8];
	uint8_t buf[2048];

	for (unsigned i = 0; i < 8; i++) {
		bad[i] = fenced_msg;
	}
	bad[0].type = FR_LINK_CTS;
	bad[1].rail = 8;
	bad[2].inc = 0;
	bad[3].new_inc = 0;
	bad[4].data.len = 0;
	bad[5].data.len = FR_NAME_MAX + 1;
	bad[6].ctrl.len = FR_NAME_MAX + 1;
	bad[7].items[0].comm = FR_IMM_COMM_CNT;
	for (unsigned i = 0; i < 8; i++) {
		ck_assert_int_eq(fr_fence_encode(&bad[i], buf, sizeof(buf)),
				 -EINVAL);
	}
	ck_assert_int_eq(
		decode_as(FR_LINK_PING, fence_golden, sizeof(fence_golden)),
		-EBADMSG);
}
END_TEST

START_TEST(noise_never_crashes)
{
	ck_assert_uint_ne(wire_check_noise(kinds[_i].decode, kinds[_i].golden,
					   kinds[_i].bytes, 1800),
			  0);
}
END_TEST

int main(void)
{
	int cnt = (int)(sizeof(kinds) / sizeof(kinds[0]));
	TCase *t = tcase_create("fence");

	tcase_add_loop_test(t, a_message_is_the_golden_one, 0, cnt);
	tcase_add_loop_test(t, the_fields_come_back, 0, cnt);
	tcase_add_loop_test(t, another_length_is_refused, 0, cnt);
	tcase_add_test(t, fields_out_of_range_are_refused);
	tcase_add_test(t, the_longest_list_passes_and_a_longer_one_does_not);
	tcase_add_test(
		t,
		a_rail_whose_data_endpoint_is_its_control_endpoint_has_one_name);
	tcase_add_test(t, what_cannot_be_is_not_encoded);
	tcase_add_loop_test(t, noise_never_crashes, 0, cnt);
	return wire_run(t, "wire fence");
}
