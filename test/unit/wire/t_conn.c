#include "wire/conn.h"

#include "unit/wire/wire_check.h"
#include "wire/imm.h"

#define COMM_AT FR_CONN_FIXED_BYTES
#define SET_AT (COMM_AT + 4 + 16)
#define SCRATCH_AT (SET_AT + 4 + 16)
#define RAIL_AT (SCRATCH_AT + 4 + 8 + 8)
#define STATUS_AT (RAIL_AT + 4 + 45 + 4)
#define GOLDEN_BYTES (STATUS_AT + 4 + 4)

/* A response with one rail. */
/* clang-format off */
static const uint8_t golden[GOLDEN_BYTES] = {
	0x12, 0x11, 0x03, 0x00, 0xff, 0xff, 0x03, 0x00,
	8, 7, 6, 5, 4, 3, 2, 1,
	[16] = 2, 0, 0x1f, 0x90, 10, 77, 0, 1,
	[72] = 16,
	[272] = 2, 0, 0x1f, 0x91, 10, 77, 0, 1,
	[328] = 16,
	[COMM_AT] = 5, 0, 16, 0,
		0x0d, 0xf0, 0xad, 0xde, 1, 8, 0, 0,
		0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
	[SET_AT] = 2, 0, 16, 0,
		0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,
		64, 0, 0, 0, 0x00, 0x20, 0, 0,
	[SCRATCH_AT] = 3, 0, 16, 0,
		0, 0x10, 0, 0, 0, 0x7f, 0, 0,
		0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0,
	[RAIL_AT] = 1, 0, 49, 0,
		0, 120, 0xb7, 0x12, 0x10, 0x27, 0, 0, 1, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1,
		4, 'e', 't', 'h', '0',
	[STATUS_AT] = 6, 0, 4, 0, 0, 0, 0, 0,
};
/* clang-format on */

static void set_name(struct fr_name *name, size_t len, uint8_t first)
{
	name->len = (uint16_t)len;
	for (size_t i = 0; i < len; i++) {
		name->bytes[i] = (uint8_t)(first + i);
	}
}

static void set_golden(struct fr_conn_msg *m)
{
	static const uint8_t net[16] = {[10] = 0xff, 0xff, 10, 77, 0, 0};
	static const uint8_t addr[16] = {[10] = 0xff, 0xff, 10, 77, 0, 1};
	struct fr_conn_rail *rail = &m->rails[0];

	memset(m, 0, sizeof(*m));
	m->type = FR_CONN_RESPONSE;
	m->version = FR_CONN_VERSION;
	m->features = FR_FEAT_FENCE | FR_FEAT_BLIND;
	m->comm = FR_IMM_COMM_CNT - 1;
	m->cookie = 0x0102030405060708;
	m->prov = FR_WIRE_PROV_NET;
	m->cq_data_bytes = 8;
	m->nonce = 0xdeadf00d;
	m->connect_id = 0x1112131415161718;
	m->set_id = 0x2122232425262728;
	m->window = 64;
	m->eager_max_bytes = 8192;
	m->scratch_addr = 0x7f0000001000;
	m->scratch_key[0] = 0x11223344;
	m->rail_cnt = 1;
	rail->data = (struct fr_name){16, {2, 0, 0x1f, 0x90, 10, 77, 0, 1}};
	rail->ctrl = (struct fr_name){16, {2, 0, 0x1f, 0x91, 10, 77, 0, 1}};
	memcpy(rail->subnet, net, sizeof(net));
	memcpy(rail->knock_addr, addr, sizeof(addr));
	rail->prefix = 120;
	rail->speed_mbps = 10000;
	rail->incarnation = 1;
	rail->knock_port = 4791;
	memcpy(rail->iface, "eth0", 5);
}

/* As large as a message can be. */
static void set_largest(struct fr_conn_msg *m, size_t name_len)
{
	set_golden(m);
	m->rail_cnt = FR_CONN_MAX_RAILS;
	m->status = 4095;
	memset(m->text, 't', FR_CONN_TEXT_MAX - 1);
	for (unsigned i = 0; i < FR_CONN_MAX_RAILS; i++) {
		m->rails[i] = m->rails[0];
		m->rails[i].prefix = 128;
		m->rails[i].subnet[15] = (uint8_t)(i + 1);
		memcpy(m->rails[i].iface, "interface-name0", 16);
		set_name(&m->rails[i].data, name_len, (uint8_t)(16 * i));
		set_name(&m->rails[i].ctrl, name_len, (uint8_t)(16 * i + 8));
		m->scratch_key[i] = UINT64_MAX - i;
	}
}

static void assert_same(const struct fr_conn_msg *a,
			const struct fr_conn_msg *b)
{
	ck_assert_uint_eq(a->type, b->type);
	ck_assert_uint_eq(a->version, b->version);
	ck_assert_uint_eq(a->features, b->features);
	ck_assert_uint_eq(a->comm, b->comm);
	ck_assert_uint_eq(a->cookie, b->cookie);
	ck_assert_uint_eq(a->prov, b->prov);
	ck_assert_uint_eq(a->cq_data_bytes, b->cq_data_bytes);
	ck_assert_uint_eq(a->nonce, b->nonce);
	ck_assert_int_eq(a->status, b->status);
	ck_assert_uint_eq(a->set_id, b->set_id);
	ck_assert_uint_eq(a->window, b->window);
	ck_assert_uint_eq(a->eager_max_bytes, b->eager_max_bytes);
	ck_assert_uint_eq(a->connect_id, b->connect_id);
	ck_assert_uint_eq(a->scratch_addr, b->scratch_addr);
	ck_assert_str_eq(a->text, b->text);
	ck_assert_uint_eq(a->rail_cnt, b->rail_cnt);
	ck_assert_mem_eq(a->scratch_key, b->scratch_key,
			 sizeof(a->scratch_key));
	for (unsigned i = 0; i < a->rail_cnt; i++) {
		const struct fr_conn_rail *x = &a->rails[i];
		const struct fr_conn_rail *y = &b->rails[i];

		ck_assert_mem_eq(x->subnet, y->subnet, 16);
		ck_assert_uint_eq(x->prefix, y->prefix);
		ck_assert_uint_eq(x->speed_mbps, y->speed_mbps);
		ck_assert_str_eq(x->iface, y->iface);
		ck_assert_uint_eq(x->data.len, y->data.len);
		ck_assert_mem_eq(x->data.bytes, y->data.bytes, FR_NAME_MAX);
		ck_assert_uint_eq(x->ctrl.len, y->ctrl.len);
		ck_assert_mem_eq(x->ctrl.bytes, y->ctrl.bytes, FR_NAME_MAX);
		ck_assert_uint_eq(x->incarnation, y->incarnation);
		ck_assert_uint_eq(x->knock_port, y->knock_port);
		ck_assert_mem_eq(x->knock_addr, y->knock_addr, 16);
	}
}

/* What decodes must encode again, and come back the same. */
static int decode(const uint8_t *buf, size_t bytes)
{
	static struct fr_conn_msg m, again;
	uint8_t copy[FR_CONN_MAX_BYTES];
	const char *why = NULL;
	int ret = fr_conn_decode(&m, buf, bytes, &why);
	int n;

	ck_assert(ret == 0 || ret == -EBADMSG || ret == -EPROTONOSUPPORT);
	ck_assert_int_eq(why != NULL, ret != 0);
	if (ret == 0) {
		n = fr_conn_encode(&m, copy, sizeof(copy));
		ck_assert_int_gt(n, 0);
		ck_assert_int_eq(fr_conn_decode(&again, copy, (size_t)n, &why),
				 0);
		assert_same(&again, &m);
	}
	return ret;
}

static size_t encode(const struct fr_conn_msg *m, uint8_t *buf)
{
	int n = fr_conn_encode(m, buf, FR_CONN_MAX_BYTES);

	ck_assert_int_gt(n, 0);
	return (size_t)n;
}

START_TEST(a_response_is_the_golden_one)
{
	static struct fr_conn_msg m;
	uint8_t buf[GOLDEN_BYTES];

	set_golden(&m);
	ck_assert_int_eq(fr_conn_encode(&m, buf, sizeof(buf)), GOLDEN_BYTES);
	ck_assert_mem_eq(buf, golden, sizeof(buf));
	for (size_t n = 0; n < GOLDEN_BYTES; n++) {
		ck_assert_int_eq(fr_conn_encode(&m, buf, n), -EMSGSIZE);
	}
}
END_TEST

START_TEST(the_golden_bytes_decode)
{
	static struct fr_conn_msg want, got;
	uint8_t *copy = noise_odd_copy(golden, sizeof(golden));
	const char *why;

	set_golden(&want);
	ck_assert_int_eq(fr_conn_decode(&got, copy, sizeof(golden), &why), 0);
	assert_same(&got, &want);
	noise_odd_free(copy);
}
END_TEST

START_TEST(a_response_of_another_length_is_refused)
{
	wire_check_length(decode, golden, sizeof(golden));
}
END_TEST

START_TEST(a_request_of_another_length_is_refused)
{
	static struct fr_conn_msg m;
	uint8_t buf[FR_CONN_MAX_BYTES];

	set_golden(&m);
	m.type = FR_CONN_REQUEST;
	wire_check_length(decode, buf, encode(&m, buf));
}
END_TEST

START_TEST(a_message_without_rails_decodes_and_is_refused_at_other_lengths)
{
	static struct fr_conn_msg m;
	uint8_t buf[FR_CONN_MAX_BYTES];

	memset(&m, 0, sizeof(m));
	m.type = FR_CONN_RESPONSE;
	m.status = EPROTO;
	memcpy(m.text, "no rails", 9);
	wire_check_length(decode, buf, encode(&m, buf));
}
END_TEST

START_TEST(eight_rails_with_the_longest_names_fit)
{
	static struct fr_conn_msg want, got;
	uint8_t buf[FR_CONN_MAX_BYTES];
	const char *why;
	size_t bytes;

	set_largest(&want, FR_NAME_MAX);
	bytes = encode(&want, buf);
	ck_assert_int_eq(fr_conn_decode(&got, buf, bytes, &why), 0);
	assert_same(&got, &want);
	wire_check_length(decode, buf, bytes);
}
END_TEST

START_TEST(eight_ipv6_rails_come_back)
{
	static struct fr_conn_msg want, got;
	uint8_t buf[FR_CONN_MAX_BYTES];
	const char *why;
	size_t bytes;

	set_largest(&want, 28);
	want.rails[5].ctrl.len = 0;
	memset(want.rails[5].ctrl.bytes, 0, FR_NAME_MAX);
	bytes = encode(&want, buf);
	ck_assert_uint_eq(buf[1], 0x78);
	ck_assert_int_eq(fr_conn_decode(&got, buf, bytes, &why), 0);
	assert_same(&got, &want);
}
END_TEST

START_TEST(fields_out_of_range_are_refused)
{
	static const struct wire_flip flip[] = {
		/* type; comm id; rails, one more and one less; control rails */
		{0, 0x10},
		{0, 0x13},
		{6, 4},
		{7, 0x80},
		{1, 0x10},
		{1, 0x12},
		{1, 0x19},
		{1, 0x01},
		{1, 0x21},
		{1, 0x99},
		{1, 0xff},
		/* name lengths, bytes behind a name, a name too many */
		{72, 0},
		{72, 57},
		{72, 7},
		{72, 0xff},
		{73, 0xff},
		{75, 0x80},
		{329, 0xff},
		{79, 1},
		{71, 1},
		{136, 1},
		{328, 57},
		{335, 0x80},
		{392, 1},
		/* COMM: length, size of completion data, padding */
		{COMM_AT + 2, 15},
		{COMM_AT + 2, 17},
		{COMM_AT + 3, 1},
		{COMM_AT + 9, 0},
		{COMM_AT + 9, 16},
		{COMM_AT + 10, 1},
		/* SET: length, window */
		{SET_AT + 2, 12},
		{SET_AT + 12, 0},
		/* SCRATCH: length */
		{SCRATCH_AT + 2, 8},
		{SCRATCH_AT + 2, 24},
		/* RAIL: length, index, prefix, incarnation, host bits */
		{RAIL_AT + 2, 48},
		{RAIL_AT + 2, 50},
		{RAIL_AT + 2, 0xff},
		{RAIL_AT + 3, 0xff},
		{RAIL_AT + 4, 1},
		{RAIL_AT + 4, 8},
		{RAIL_AT + 5, 129},
		{RAIL_AT + 5, 119 - 16},
		{RAIL_AT + 12, 0},
		{RAIL_AT + 31, 1},
		/* interface name */
		{RAIL_AT + 48, 3},
		{RAIL_AT + 48, 16},
		/* STATUS: too big, negative */
		{STATUS_AT + 5, 0x10},
		{STATUS_AT + 7, 0x80},
		/* a field that must be there becomes unknown, or another */
		{COMM_AT, 99},
		{SET_AT + 1, 1},
		{SCRATCH_AT, 0},
		{RAIL_AT, 7},
		{STATUS_AT, 4},
		{SET_AT, 5},
	};

	wire_check_flips(decode, golden, sizeof(golden), flip,
			 sizeof(flip) / sizeof(flip[0]));
}
END_TEST

/* Puts @extra between the fixed part and the first field. */
static size_t insert(uint8_t *buf, const uint8_t *extra, size_t bytes)
{
	memcpy(buf, golden, FR_CONN_FIXED_BYTES);
	memcpy(buf + FR_CONN_FIXED_BYTES, extra, bytes);
	memcpy(buf + FR_CONN_FIXED_BYTES + bytes, golden + FR_CONN_FIXED_BYTES,
	       GOLDEN_BYTES - FR_CONN_FIXED_BYTES);
	return GOLDEN_BYTES + bytes;
}

START_TEST(unknown_fields_are_skipped)
{
	static const uint8_t extra[] = {0x39, 0x30, 3, 0, 'a', 'b',
					'c',  7,    0, 0, 0};
	static struct fr_conn_msg want, got;
	uint8_t buf[FR_CONN_MAX_BYTES];
	size_t bytes = insert(buf, extra, sizeof(extra));
	const char *why;

	set_golden(&want);
	ck_assert_int_eq(fr_conn_decode(&got, buf, bytes, &why), 0);
	assert_same(&got, &want);
	wire_check_length(decode, buf, bytes);
}
END_TEST

START_TEST(an_unknown_field_that_reaches_beyond_the_end_is_refused)
{
	static const uint8_t extra[] = {99, 0, 0xff, 0xff};
	uint8_t buf[FR_CONN_MAX_BYTES];
	size_t bytes = insert(buf, extra, sizeof(extra));

	ck_assert_int_eq(wire_decode_copy(decode, buf, bytes), -EBADMSG);
}
END_TEST

START_TEST(a_repeated_field_is_refused)
{
	static const struct {
		size_t at, bytes;
	} field[] = {{COMM_AT, 20},
		     {SET_AT, 20},
		     {SCRATCH_AT, 20},
		     {RAIL_AT, 53},
		     {STATUS_AT, 8}};
	uint8_t buf[FR_CONN_MAX_BYTES];
	size_t bytes = insert(buf, golden + field[_i].at, field[_i].bytes);

	ck_assert_int_eq(wire_decode_copy(decode, buf, bytes), -EBADMSG);
}
END_TEST

START_TEST(a_status_in_a_request_is_refused)
{
	static struct fr_conn_msg m;
	uint8_t buf[FR_CONN_MAX_BYTES];
	uint8_t copy[GOLDEN_BYTES];

	memcpy(copy, golden, sizeof(copy));
	copy[0] = 0x11;
	ck_assert_int_eq(wire_decode_copy(decode, copy, sizeof(copy)),
			 -EBADMSG);
	set_golden(&m);
	m.type = FR_CONN_REQUEST;
	m.status = 1;
	ck_assert_int_eq(fr_conn_encode(&m, buf, sizeof(buf)), -EINVAL);
}
END_TEST

START_TEST(a_text_carries_nothing_that_a_log_should_not_see)
{
	static const uint8_t extra[] = {4,    0, 6,    0,   'a',
					'\n', 0, 0x1b, 'b', 0xff};
	static const uint8_t empty[] = {4, 0, 0, 0};
	static struct fr_conn_msg got;
	uint8_t buf[FR_CONN_MAX_BYTES];
	uint8_t longest[4 + FR_CONN_TEXT_MAX] = {4, 0, FR_CONN_TEXT_MAX, 0};
	size_t bytes = insert(buf, extra, sizeof(extra));
	const char *why;

	ck_assert_int_eq(fr_conn_decode(&got, buf, bytes, &why), 0);
	ck_assert_str_eq(got.text, "a???b?");
	bytes = insert(buf, empty, sizeof(empty));
	ck_assert_int_eq(wire_decode_copy(decode, buf, bytes), -EBADMSG);
	bytes = insert(buf, longest, sizeof(longest));
	ck_assert_int_eq(wire_decode_copy(decode, buf, bytes), -EBADMSG);
	longest[2]--;
	bytes = insert(buf, longest, sizeof(longest) - 1);
	ck_assert_int_eq(wire_decode_copy(decode, buf, bytes), 0);
}
END_TEST

START_TEST(an_interface_name_is_cleaned)
{
	static struct fr_conn_msg got;
	uint8_t buf[GOLDEN_BYTES];
	const char *why;

	memcpy(buf, golden, sizeof(buf));
	buf[RAIL_AT + 50] = 0;
	ck_assert_int_eq(fr_conn_decode(&got, buf, sizeof(buf), &why), 0);
	ck_assert_str_eq(got.rails[0].iface, "e?h0");
}
END_TEST

START_TEST(another_version_tells_type_comm_and_cookie)
{
	static struct fr_conn_msg got;
	const char *why = NULL;

	for (unsigned version = 0; version < 16; version++) {
		uint8_t buf[16];

		if (version == FR_CONN_VERSION) {
			continue;
		}
		memcpy(buf, golden, sizeof(buf));
		buf[0] = (uint8_t)(version << 4 | FR_CONN_RESPONSE);
		ck_assert_int_eq(fr_conn_decode(&got, buf, sizeof(buf), &why),
				 -EPROTONOSUPPORT);
		ck_assert_str_eq(why, "version");
		ck_assert_uint_eq(got.type, FR_CONN_RESPONSE);
		ck_assert_uint_eq(got.version, version);
		ck_assert_uint_eq(got.comm, FR_IMM_COMM_CNT - 1);
		ck_assert_uint_eq(got.cookie, 0x0102030405060708);
		ck_assert_int_eq(fr_conn_decode(&got, buf, 15, &why), -EBADMSG);
	}
}
END_TEST

START_TEST(a_message_beyond_the_limit_is_refused)
{
	static const uint8_t extra[1500] = {99, 0, 1496 & 0xff, 1496 >> 8};
	uint8_t buf[FR_CONN_MAX_BYTES + 256];
	size_t bytes = insert(buf, extra, sizeof(extra));

	ck_assert_uint_gt(bytes, FR_CONN_MAX_BYTES);
	ck_assert_int_eq(wire_decode_copy(decode, buf, bytes), -EBADMSG);
}
END_TEST

START_TEST(a_refused_message_leaves_the_callers_struct_alone)
{
	static struct fr_conn_msg got, before;
	const char *why;

	memset(&got, 0xee, sizeof(got));
	memcpy(&before, &got, sizeof(got));
	ck_assert_int_eq(fr_conn_decode(&got, golden, sizeof(golden) - 1, &why),
			 -EBADMSG);
	ck_assert_mem_eq(&got, &before, sizeof(got));
}
END_TEST

START_TEST(what_cannot_be_is_not_encoded)
{
	static struct fr_conn_msg bad[16];
	uint8_t buf[FR_CONN_MAX_BYTES];

	for (unsigned i = 0; i < 16; i++) {
		set_golden(&bad[i]);
	}
	bad[0].type = 3;
	bad[1].comm = FR_IMM_COMM_CNT;
	bad[2].rail_cnt = FR_CONN_MAX_RAILS + 1;
	bad[3].status = -1;
	bad[4].status = 4096;
	memset(bad[5].text, 'x', sizeof(bad[5].text));
	bad[6].cq_data_bytes = 0;
	bad[7].cq_data_bytes = 5;
	bad[8].window = 0;
	bad[9].rails[0].data.len = 0;
	bad[10].rails[0].data.len = FR_NAME_MAX + 1;
	bad[11].rails[0].ctrl.len = FR_NAME_MAX + 1;
	bad[12].rails[0].prefix = 129;
	bad[13].rails[0].subnet[15] = 1;
	memset(bad[14].rails[0].iface, 'x', sizeof(bad[14].rails[0].iface));
	bad[15].rails[0].incarnation = 0;
	for (unsigned i = 0; i < 16; i++) {
		ck_assert_msg(fr_conn_encode(&bad[i], buf, sizeof(buf)) ==
				      -EINVAL,
			      "case %u was encoded", i);
	}
}
END_TEST

START_TEST(noise_never_crashes)
{
	static struct fr_conn_msg m;
	uint8_t buf[FR_CONN_MAX_BYTES];

	ck_assert_uint_ne(wire_check_noise(decode, golden, sizeof(golden), 900),
			  0);
	set_largest(&m, 28);
	ck_assert_uint_ne(wire_check_noise(decode, buf, encode(&m, buf), 2100),
			  0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("conn");

	tcase_add_test(t, a_response_is_the_golden_one);
	tcase_add_test(t, the_golden_bytes_decode);
	tcase_add_test(t, a_response_of_another_length_is_refused);
	tcase_add_test(t, a_request_of_another_length_is_refused);
	tcase_add_test(
		t,
		a_message_without_rails_decodes_and_is_refused_at_other_lengths);
	tcase_add_test(t, eight_rails_with_the_longest_names_fit);
	tcase_add_test(t, eight_ipv6_rails_come_back);
	tcase_add_test(t, fields_out_of_range_are_refused);
	tcase_add_test(t, unknown_fields_are_skipped);
	tcase_add_test(t,
		       an_unknown_field_that_reaches_beyond_the_end_is_refused);
	tcase_add_loop_test(t, a_repeated_field_is_refused, 0, 5);
	tcase_add_test(t, a_status_in_a_request_is_refused);
	tcase_add_test(t, a_text_carries_nothing_that_a_log_should_not_see);
	tcase_add_test(t, an_interface_name_is_cleaned);
	tcase_add_test(t, another_version_tells_type_comm_and_cookie);
	tcase_add_test(t, a_message_beyond_the_limit_is_refused);
	tcase_add_test(t, a_refused_message_leaves_the_callers_struct_alone);
	tcase_add_test(t, what_cannot_be_is_not_encoded);
	tcase_add_test(t, noise_never_crashes);
	return wire_run(t, "wire conn");
}
