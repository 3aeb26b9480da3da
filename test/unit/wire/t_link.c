#include "wire/link.h"

#include "unit/wire/wire_check.h"
#include "wire/imm.h"

#define FLIPS(decode, good, ...)                                               \
	do {                                                                   \
		static const struct wire_flip flip_[] = {__VA_ARGS__};         \
		wire_check_flips((decode), (good), sizeof(good), flip_,        \
				 sizeof(flip_) / sizeof(flip_[0]));            \
	} while (0)

/* clang-format off */
static const uint8_t hdr_golden[FR_LINK_HDR_BYTES + 2] = {
	0xc8, 0x01, 0x02, 0x00, 0x44, 0x33, 0x22, 0x11,
	0x88, 0x77, 0x66, 0x55, 0xcc, 0xbb, 0xaa, 0x99,
	8, 7, 6, 5, 4, 3, 2, 1, 'h', 'i',
};
static const uint8_t cts_golden[24 + 2 * (24 + 2 * 8)] = {
	0xff, 0xff, 0x03, 0x00, 0x0d, 0xf0, 0xad, 0xde,
	0x01, 0, 0, 0, 0x02, 0, 0, 0, 0x04, 0, 0, 0, 2, 2, 0, 0,
	0xfe, 0xff, 0xff, 0xff, 2, 0, 0, 0, /* tag -2, group 2, index 0 */
	0x00, 0x10, 0, 0, 0, 0x7f, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0,
	0x11, 0, 0, 0, 0, 0, 0, 0, 0x22, 0, 0, 0, 0, 0, 0, 0,
	0x07, 0, 0, 0, 2, 1, 0, 0,
	0x00, 0x20, 0, 0, 0, 0x7f, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
	0x33, 0, 0, 0, 0, 0, 0, 0, 0x44, 0, 0, 0, 0, 0, 0, 0x80,
};
static const uint8_t eager_golden[FR_EAGER_HDR_BYTES + 3] = {
	0x05, 0, 0, 0, 0x0d, 0xf0, 0xad, 0xde,
	0x09, 0, 0, 0, 0x08, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0,
	'a', 'b', 'c',
};
/* Every note begins with this, but for PING and PONG. */
static const uint8_t nack_golden[32] = {
	0x05, 0, 0, 0, 0x0d, 0xf0, 0xad, 0xde, 0x09, 0, 0, 0, 1, 0, 0, 0,
	0x00, 0x10, 0, 0, 0, 0, 0, 0, 0x00, 0x08, 0, 0, 0, 0, 0, 0,
};
static const uint8_t length_golden[24] = {
	0x05, 0, 0, 0, 0x0d, 0xf0, 0xad, 0xde, 0x09, 0, 0, 0, 0, 0, 0, 0,
	0x00, 0x10, 0, 0, 0, 0, 0, 0,
};
static const uint8_t ping_golden[8] = { 8, 7, 6, 5, 4, 3, 2, 1 };
/* clang-format on */

static const struct fr_link_hdr hdr_msg = {
	.type = FR_LINK_PING,
	.flags = FR_LINK_F_ACK_NOW,
	.len = 2,
	.seq = 0x11223344,
	.ack = 0x55667788,
	.dst_set = 0x99aabbcc,
	.src_set = 0x0102030405060708,
};
static const struct fr_cts cts_msg = {
	.comm = FR_IMM_COMM_CNT - 1,
	.nonce = 0xdeadf00d,
	.done32 = 1,
	.prev32 = 2,
	.first32 = 4,
	.entry_cnt = 2,
	.key_cnt = 2,
	.entries = {{.tag = -2,
		     .group = 2,
		     .index = 0,
		     .addr = 0x7f0000001000,
		     .len = 64,
		     .keys = {0x11, 0x22}},
		    {.tag = 7,
		     .group = 2,
		     .index = 1,
		     .addr = 0x7f0000002000,
		     .len = 1ull << 32,
		     .keys = {0x33, 1ull << 63 | 0x44}}},
};
static const struct fr_eager eager_msg = {.comm = 5,
					  .nonce = 0xdeadf00d,
					  .index = 9,
					  .base32 = 8,
					  .tag = -1,
					  .len = 3};
static const struct fr_link_note note_msg = {.comm = 5,
					     .nonce = 0xdeadf00d,
					     .seq = 9,
					     .flags = 1,
					     .a = 4096,
					     .b = 2048};

static void assert_verdict(int ret, const char *why)
{
	ck_assert(ret == 0 || ret == -EBADMSG);
	ck_assert_int_eq(why != NULL, ret != 0);
}

static int decode_hdr(const uint8_t *buf, size_t bytes)
{
	const char *why = NULL;
	struct fr_link_hdr h;
	int ret = fr_link_hdr_decode(&h, buf, bytes, &why);
	uint8_t again[FR_LINK_HDR_BYTES];

	assert_verdict(ret, why);
	if (ret == 0) {
		ck_assert_uint_eq(h.len, bytes - FR_LINK_HDR_BYTES);
		fr_link_hdr_encode(&h, again);
		ck_assert_mem_eq(again, buf, sizeof(again));
	}
	return ret;
}

static int decode_cts(const uint8_t *buf, size_t bytes)
{
	const char *why = NULL;
	struct fr_cts m;
	int ret = fr_cts_decode(&m, buf, bytes, &why);
	uint8_t again[2048];

	assert_verdict(ret, why);
	if (ret == 0) {
		ck_assert_int_eq(fr_cts_encode(&m, again, sizeof(again)),
				 (int)bytes);
		ck_assert_mem_eq(again, buf, bytes);
	}
	return ret;
}

static int decode_eager(const uint8_t *buf, size_t bytes)
{
	const uint8_t *payload = NULL;
	const char *why = NULL;
	struct fr_eager m;
	int ret = fr_eager_decode(&m, buf, bytes, &payload, &why);
	uint8_t again[FR_EAGER_HDR_BYTES];

	assert_verdict(ret, why);
	if (ret == 0) {
		ck_assert_ptr_eq(payload, buf + FR_EAGER_HDR_BYTES);
		ck_assert_uint_eq(m.len, bytes - FR_EAGER_HDR_BYTES);
		fr_eager_hdr_encode(&m, again);
		ck_assert_mem_eq(again, buf, sizeof(again));
	}
	return ret;
}

static int decode_note(uint8_t type, const uint8_t *buf, size_t bytes)
{
	const char *why = NULL;
	struct fr_link_note m;
	int ret = fr_link_note_decode(type, &m, buf, bytes, &why);
	uint8_t again[64];

	assert_verdict(ret, why);
	if (ret == 0) {
		ck_assert_int_eq(
			fr_link_note_encode(type, &m, again, sizeof(again)),
			(int)bytes);
		ck_assert_mem_eq(again, buf, bytes);
	}
	return ret;
}

static int decode_want(const uint8_t *buf, size_t bytes)
{
	return decode_note(FR_LINK_WANT, buf, bytes);
}

static int decode_close(const uint8_t *buf, size_t bytes)
{
	return decode_note(FR_LINK_CLOSE, buf, bytes);
}

static int decode_closed(const uint8_t *buf, size_t bytes)
{
	return decode_note(FR_LINK_CLOSED, buf, bytes);
}

static int decode_nack(const uint8_t *buf, size_t bytes)
{
	return decode_note(FR_LINK_NACK, buf, bytes);
}

static int decode_length(const uint8_t *buf, size_t bytes)
{
	return decode_note(FR_LINK_LENGTH, buf, bytes);
}

static int decode_ping(const uint8_t *buf, size_t bytes)
{
	return decode_note(FR_LINK_PING, buf, bytes);
}

static int decode_pong(const uint8_t *buf, size_t bytes)
{
	return decode_note(FR_LINK_PONG, buf, bytes);
}

static const struct {
	uint8_t type;
	const uint8_t *golden;
	size_t bytes;
	wire_decode_fn decode;
} notes[] = {
	{FR_LINK_WANT, nack_golden, 12, decode_want},
	{FR_LINK_CLOSE, nack_golden, 12, decode_close},
	{FR_LINK_CLOSED, nack_golden, 12, decode_closed},
	{FR_LINK_NACK, nack_golden, 32, decode_nack},
	{FR_LINK_LENGTH, length_golden, 24, decode_length},
	{FR_LINK_PING, ping_golden, 8, decode_ping},
	{FR_LINK_PONG, ping_golden, 8, decode_pong},
};
#define NOTE_CNT ((int)(sizeof(notes) / sizeof(notes[0])))

START_TEST(the_header_is_the_golden_one)
{
	uint8_t buf[FR_LINK_HDR_BYTES];
	struct fr_link_hdr got;
	const char *why;

	fr_link_hdr_encode(&hdr_msg, buf);
	ck_assert_mem_eq(buf, hdr_golden, sizeof(buf));
	ck_assert_int_eq(
		fr_link_hdr_decode(&got, hdr_golden, sizeof(hdr_golden), &why),
		0);
	ck_assert_uint_eq(got.type, hdr_msg.type);
	ck_assert_uint_eq(got.flags, hdr_msg.flags);
	ck_assert_uint_eq(got.len, hdr_msg.len);
	ck_assert_uint_eq(got.seq, hdr_msg.seq);
	ck_assert_uint_eq(got.ack, hdr_msg.ack);
	ck_assert_uint_eq(got.dst_set, hdr_msg.dst_set);
	ck_assert_uint_eq(got.src_set, hdr_msg.src_set);
}
END_TEST

START_TEST(the_header_knows_the_length_of_its_message)
{
	wire_check_length(decode_hdr, hdr_golden, sizeof(hdr_golden));
}
END_TEST

START_TEST(a_header_out_of_range_is_refused)
{
	FLIPS(decode_hdr, hdr_golden, {0, 0}, {0, 0xbf}, {0, 0xce}, {0, 0x11},
	      {0, 0xff}, {1, 2}, {1, 0x81}, {2, 1}, {2, 3}, {3, 1},
	      /* these have neither number nor body */
	      {0, FR_LINK_ACK}, {0, FR_LINK_RESET});
}
END_TEST

START_TEST(bare_messages_pass_without_number_and_body)
{
	uint8_t buf[FR_LINK_HDR_BYTES] = {0};
	struct fr_link_hdr h = {.type = FR_LINK_ACK, .ack = 7};

	fr_link_hdr_encode(&h, buf);
	ck_assert_int_eq(decode_hdr(buf, sizeof(buf)), 0);
	buf[0] = FR_LINK_RESET;
	ck_assert_int_eq(decode_hdr(buf, sizeof(buf)), 0);
	buf[4] = 1;
	ck_assert_int_eq(decode_hdr(buf, sizeof(buf)), -EBADMSG);
}
END_TEST

START_TEST(only_an_eager_message_names_its_receive)
{
	uint8_t buf[sizeof(hdr_golden)];

	memcpy(buf, hdr_golden, sizeof(buf));
	buf[1] = FR_LINK_F_AT | FR_LINK_F_ACK_NOW;
	for (unsigned type = FR_LINK_CTS; type <= FR_LINK_RESET; type++) {
		buf[0] = (uint8_t)type;
		ck_assert_int_eq(decode_hdr(buf, sizeof(buf)),
				 type == FR_LINK_EAGER ? 0 : -EBADMSG);
	}
}
END_TEST

START_TEST(the_cts_is_the_golden_one)
{
	uint8_t buf[sizeof(cts_golden)];
	struct fr_cts got;
	const char *why;

	ck_assert_int_eq(fr_cts_encode(&cts_msg, buf, sizeof(buf)),
			 sizeof(buf));
	ck_assert_mem_eq(buf, cts_golden, sizeof(buf));
	ck_assert_int_eq(
		fr_cts_decode(&got, cts_golden, sizeof(cts_golden), &why), 0);
	ck_assert_uint_eq(got.comm, cts_msg.comm);
	ck_assert_uint_eq(got.nonce, cts_msg.nonce);
	ck_assert_uint_eq(got.done32, 1);
	ck_assert_uint_eq(got.prev32, 2);
	ck_assert_uint_eq(got.first32, 4);
	ck_assert_uint_eq(got.entry_cnt, 2);
	ck_assert_uint_eq(got.key_cnt, 2);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(got.entries[i].tag, cts_msg.entries[i].tag);
		ck_assert_uint_eq(got.entries[i].group, 2);
		ck_assert_uint_eq(got.entries[i].index, i);
		ck_assert_uint_eq(got.entries[i].addr, cts_msg.entries[i].addr);
		ck_assert_uint_eq(got.entries[i].len, cts_msg.entries[i].len);
		ck_assert_mem_eq(got.entries[i].keys, cts_msg.entries[i].keys,
				 sizeof(got.entries[i].keys));
	}
}
END_TEST

START_TEST(a_cts_of_another_length_is_refused)
{
	wire_check_length(decode_cts, cts_golden, sizeof(cts_golden));
}
END_TEST

START_TEST(a_cts_out_of_range_is_refused)
{
	FLIPS(decode_cts, cts_golden, {2, 4}, {3, 1}, {20, 0}, {20, 1},
	      {20, 17}, {20, 255}, {21, 0}, {21, 1}, {21, 9}, {21, 255},
	      {22, 1}, {23, 1},
	      /* group, index, padding of both entries */
	      {28, 0}, {28, 9}, {29, 2}, {30, 1}, {31, 1}, {68, 0}, {68, 1},
	      {69, 2}, {71, 0x80});
}
END_TEST

START_TEST(a_cts_without_entries_says_what_is_done)
{
	struct fr_cts m = {.comm = 1, .done32 = 5, .prev32 = 3, .first32 = 9};
	uint8_t buf[24];

	ck_assert_int_eq(fr_cts_encode(&m, buf, sizeof(buf)), sizeof(buf));
	wire_check_length(decode_cts, buf, sizeof(buf));
	buf[21] = 1; /* keys of no entry */
	ck_assert_int_eq(decode_cts(buf, sizeof(buf)), -EBADMSG);
}
END_TEST

START_TEST(the_largest_cts_passes_and_a_larger_one_does_not)
{
	static struct fr_cts m;
	uint8_t buf[24 + FR_CTS_MAX_ENTRIES * (24 + FR_LINK_MAX_KEYS * 8)];

	m.entry_cnt = FR_CTS_MAX_ENTRIES;
	m.key_cnt = FR_LINK_MAX_KEYS;
	for (unsigned i = 0; i < FR_CTS_MAX_ENTRIES; i++) {
		m.entries[i].group = 8;
		m.entries[i].index = i % 8;
		m.entries[i].keys[7] = UINT64_MAX;
	}
	ck_assert_int_eq(fr_cts_encode(&m, buf, sizeof(buf)), sizeof(buf));
	ck_assert_int_eq(wire_decode_copy(decode_cts, buf, sizeof(buf)), 0);
	for (size_t n = 0; n < sizeof(buf); n++) {
		ck_assert_int_eq(fr_cts_encode(&m, buf, n), -EMSGSIZE);
	}
}
END_TEST

START_TEST(a_cts_that_cannot_be_is_not_encoded)
{
	struct fr_cts bad[8];
	uint8_t buf[2048];

	for (unsigned i = 0; i < 8; i++) {
		bad[i] = cts_msg;
	}
	bad[0].comm = FR_IMM_COMM_CNT;
	bad[1].entry_cnt = FR_CTS_MAX_ENTRIES + 1;
	bad[2].key_cnt = FR_LINK_MAX_KEYS + 1;
	bad[3].key_cnt = 0;
	bad[4].entry_cnt = 0;
	bad[5].entries[0].group = 0;
	bad[6].entries[1].group = 9;
	bad[7].entries[1].index = 2;
	for (unsigned i = 0; i < 8; i++) {
		ck_assert_int_eq(fr_cts_encode(&bad[i], buf, sizeof(buf)),
				 -EINVAL);
	}
}
END_TEST

START_TEST(the_eager_message_is_the_golden_one)
{
	uint8_t buf[FR_EAGER_HDR_BYTES];
	const uint8_t *payload;
	struct fr_eager got;
	const char *why;

	fr_eager_hdr_encode(&eager_msg, buf);
	ck_assert_mem_eq(buf, eager_golden, sizeof(buf));
	ck_assert_int_eq(fr_eager_decode(&got, eager_golden,
					 sizeof(eager_golden), &payload, &why),
			 0);
	ck_assert_uint_eq(got.comm, 5);
	ck_assert_uint_eq(got.nonce, eager_msg.nonce);
	ck_assert_uint_eq(got.index, 9);
	ck_assert_uint_eq(got.base32, 8);
	ck_assert_int_eq(got.tag, -1);
	ck_assert_uint_eq(got.len, 3);
	ck_assert_mem_eq(payload, "abc", 3);
}
END_TEST

START_TEST(an_eager_message_of_another_length_is_refused)
{
	wire_check_length(decode_eager, eager_golden, sizeof(eager_golden));
}
END_TEST

START_TEST(an_eager_message_out_of_range_is_refused)
{
	FLIPS(decode_eager, eager_golden, {2, 4}, {3, 0xff}, {20, 2}, {20, 4},
	      {21, 1}, {23, 0xff});
}
END_TEST

START_TEST(an_eager_message_may_be_empty)
{
	struct fr_eager m = {.comm = 1};
	uint8_t buf[FR_EAGER_HDR_BYTES];

	fr_eager_hdr_encode(&m, buf);
	wire_check_length(decode_eager, buf, sizeof(buf));
}
END_TEST

START_TEST(a_note_is_the_golden_one)
{
	struct fr_link_note m = note_msg;
	uint8_t buf[64];

	if (notes[_i].golden == ping_golden) {
		m.a = 0x0102030405060708;
	}
	ck_assert_int_eq(
		fr_link_note_encode(notes[_i].type, &m, buf, sizeof(buf)),
		(int)notes[_i].bytes);
	ck_assert_mem_eq(buf, notes[_i].golden, notes[_i].bytes);
	for (size_t n = 0; n < notes[_i].bytes; n++) {
		ck_assert_int_eq(
			fr_link_note_encode(notes[_i].type, &m, buf, n),
			-EMSGSIZE);
	}
}
END_TEST

START_TEST(a_note_of_another_length_is_refused)
{
	wire_check_length(notes[_i].decode, notes[_i].golden, notes[_i].bytes);
}
END_TEST

START_TEST(the_fields_of_a_note_come_back)
{
	struct fr_link_note got;
	const char *why;

	ck_assert_int_eq(fr_link_note_decode(FR_LINK_NACK, &got, nack_golden,
					     sizeof(nack_golden), &why),
			 0);
	ck_assert_uint_eq(got.comm, 5);
	ck_assert_uint_eq(got.nonce, 0xdeadf00d);
	ck_assert_uint_eq(got.seq, 9);
	ck_assert_uint_eq(got.flags, 1);
	ck_assert_uint_eq(got.a, 4096);
	ck_assert_uint_eq(got.b, 2048);
	ck_assert_int_eq(fr_link_note_decode(FR_LINK_PONG, &got, ping_golden,
					     sizeof(ping_golden), &why),
			 0);
	ck_assert_uint_eq(got.a, 0x0102030405060708);
	ck_assert_uint_eq(got.comm, 0);
}
END_TEST

START_TEST(a_note_out_of_range_is_refused)
{
	FLIPS(decode_nack, nack_golden, {2, 4}, {3, 1}, {12, 2}, {13, 1},
	      {15, 0x80});
	FLIPS(decode_length, length_golden, {2, 4}, {12, 1}, {15, 1});
}
END_TEST

START_TEST(a_note_that_cannot_be_is_not_encoded)
{
	struct fr_link_note m = note_msg;
	uint8_t buf[64];

	m.flags = 2;
	ck_assert_int_eq(
		fr_link_note_encode(FR_LINK_NACK, &m, buf, sizeof(buf)),
		-EINVAL);
	m = note_msg;
	m.comm = FR_IMM_COMM_CNT;
	ck_assert_int_eq(
		fr_link_note_encode(FR_LINK_WANT, &m, buf, sizeof(buf)),
		-EINVAL);
	ck_assert_int_eq(
		fr_link_note_encode(FR_LINK_CTS, &note_msg, buf, sizeof(buf)),
		-EINVAL);
	ck_assert_int_eq(decode_note(FR_LINK_CTS, nack_golden, 12), -EBADMSG);
}
END_TEST

START_TEST(a_refused_message_leaves_the_callers_struct_alone)
{
	struct fr_link_note note, note_before;
	struct fr_cts cts, cts_before;
	struct fr_eager eager, eager_before;
	const uint8_t *const untouched = hdr_golden;
	const uint8_t *payload = untouched;
	const char *why;

	memset(&note, 0xee, sizeof(note));
	memset(&cts, 0xee, sizeof(cts));
	memset(&eager, 0xee, sizeof(eager));
	memcpy(&note_before, &note, sizeof(note));
	memcpy(&cts_before, &cts, sizeof(cts));
	memcpy(&eager_before, &eager, sizeof(eager));
	ck_assert_int_eq(
		fr_link_note_decode(FR_LINK_NACK, &note, nack_golden, 31, &why),
		-EBADMSG);
	ck_assert_int_eq(fr_cts_decode(&cts, cts_golden, 103, &why), -EBADMSG);
	ck_assert_int_eq(
		fr_eager_decode(&eager, eager_golden, 26, &payload, &why),
		-EBADMSG);
	ck_assert_mem_eq(&note, &note_before, sizeof(note));
	ck_assert_mem_eq(&cts, &cts_before, sizeof(cts));
	ck_assert_mem_eq(&eager, &eager_before, sizeof(eager));
	ck_assert_ptr_eq(payload, untouched);
}
END_TEST

START_TEST(noise_in_a_message_never_crashes)
{
	static const struct {
		wire_decode_fn decode;
		const uint8_t *golden;
		size_t bytes, max;
	} row[] = {
		{decode_hdr, hdr_golden, sizeof(hdr_golden), 64},
		{decode_cts, cts_golden, sizeof(cts_golden), 1600},
		{decode_eager, eager_golden, sizeof(eager_golden), 64},
	};

	ck_assert_uint_ne(wire_check_noise(row[_i].decode, row[_i].golden,
					   row[_i].bytes, row[_i].max),
			  0);
}
END_TEST

START_TEST(noise_in_a_note_never_crashes)
{
	ck_assert_uint_ne(wire_check_noise(notes[_i].decode, notes[_i].golden,
					   notes[_i].bytes, 40),
			  0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("link");

	tcase_add_test(t, the_header_is_the_golden_one);
	tcase_add_test(t, the_header_knows_the_length_of_its_message);
	tcase_add_test(t, a_header_out_of_range_is_refused);
	tcase_add_test(t, bare_messages_pass_without_number_and_body);
	tcase_add_test(t, only_an_eager_message_names_its_receive);
	tcase_add_test(t, the_cts_is_the_golden_one);
	tcase_add_test(t, a_cts_of_another_length_is_refused);
	tcase_add_test(t, a_cts_out_of_range_is_refused);
	tcase_add_test(t, a_cts_without_entries_says_what_is_done);
	tcase_add_test(t, the_largest_cts_passes_and_a_larger_one_does_not);
	tcase_add_test(t, a_cts_that_cannot_be_is_not_encoded);
	tcase_add_test(t, the_eager_message_is_the_golden_one);
	tcase_add_test(t, an_eager_message_of_another_length_is_refused);
	tcase_add_test(t, an_eager_message_out_of_range_is_refused);
	tcase_add_test(t, an_eager_message_may_be_empty);
	tcase_add_loop_test(t, a_note_is_the_golden_one, 0, NOTE_CNT);
	tcase_add_loop_test(t, a_note_of_another_length_is_refused, 0,
			    NOTE_CNT);
	tcase_add_test(t, the_fields_of_a_note_come_back);
	tcase_add_test(t, a_note_out_of_range_is_refused);
	tcase_add_test(t, a_note_that_cannot_be_is_not_encoded);
	tcase_add_test(t, a_refused_message_leaves_the_callers_struct_alone);
	tcase_add_loop_test(t, noise_in_a_message_never_crashes, 0, 3);
	tcase_add_loop_test(t, noise_in_a_note_never_crashes, 0, NOTE_CNT);
	return wire_run(t, "wire link");
}
