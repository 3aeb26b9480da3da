/* Stripes that are longer than a write may be. */
#include "unit/net/net_unit.h"
#include "wire/imm.h"

#define BIG (1u << 20)
#define MOST 10000u

static struct net_pair *pair;
static struct net_buf from, to;

static void connected(void)
{
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, BIG, &from);
	net_buf_open(pair->recv, BIG, &to);
	net_wire.writes = 0;
}

static void setup(void)
{
	net_init();
	net_conf.max_msg_bytes = MOST;
	net_open();
}

static unsigned told_writes(void)
{
	unsigned cnt = 0;

	ck_assert_uint_le(net_wire.writes, NET_WRITES);
	for (unsigned i = 0; i < net_wire.writes; i++) {
		cnt += !net_wire.write[i].untold;
	}
	return cnt;
}

/* The loop index: bytes beyond the longest single write. */
START_TEST(one_more_byte_takes_one_more_write)
{
	size_t bytes = MOST + (size_t)_i;

	connected();
	net_exchange(&from, &to, bytes, 3);
	ck_assert_uint_eq(net_wire.writes, _i == 0 ? 1 : 2);
	ck_assert_uint_eq(told_writes(), 1);
	ck_assert(!net_wire.write[net_wire.writes - 1].untold);
	ck_assert_uint_eq(net_wire.write[0].bytes, MOST);
	ck_assert_uint_eq(net_wire.write[net_wire.writes - 1].bytes,
			  _i == 0 ? MOST : (size_t)_i);
}
END_TEST

START_TEST(each_stripe_is_told_once_and_last)
{
	unsigned stripes = 0, bytes = 0;
	bool told[FR_MAX_RAILS] = {false};

	connected();
	net_exchange(&from, &to, BIG - 1, 5);
	for (unsigned i = 0; i < net_wire.writes; i++) {
		const struct net_write *w = &net_wire.write[i];

		ck_assert_uint_le(w->bytes, MOST);
		ck_assert(!told[w->rail]);
		told[w->rail] = !w->untold;
		stripes += !w->untold;
		bytes += (unsigned)w->bytes;
	}
	ck_assert_uint_eq(bytes, BIG - 1);
	ck_assert_uint_eq(stripes, net_a.set->rail_cnt);
}
END_TEST

/* A part is posted when the one before it has arrived, and not earlier. */
START_TEST(parts_wait_for_each_other)
{
	struct fr_req *recv, *send;

	connected();
	recv = net_irecv(&to, 3 * MOST);
	net_settle();
	send = net_isend(&from, 3 * MOST);
	ck_assert_uint_eq(net_wire.writes, 1);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	ck_assert_uint_eq(net_wire.writes, 3);
}
END_TEST

/* The loop index: which of the posts is refused for good; 0 to 3 are the first
 * ones of their stripes. */
START_TEST(a_part_that_is_refused_ends_the_link)
{
	struct fr_req *send;

	connected();
	net_irecv(&to, BIG);
	net_settle();
	net_expect("is lost");
	net_expect("endpoints fenced");
	fr_fake_fail_at(FR_FAKE_WRITE, (unsigned)_i + 1, -ENETUNREACH);
	send = net_isend(&from, BIG);
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	ck_assert_uint_eq(net_logged("is lost"), 1);
}
END_TEST

START_TEST(a_part_that_fails_ends_the_link)
{
	struct fr_req *send;

	connected();
	net_irecv(&to, BIG);
	net_settle();
	net_expect("is lost");
	net_expect("endpoints fenced");
	fr_fake_fail_at(FR_FAKE_WRITE_DONE, (unsigned)_i + 1, -EIO);
	send = net_isend(&from, BIG);
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	ck_assert_uint_eq(net_logged("is lost"), 1);
}
END_TEST

/* The link fails beside it, by another comm's message. */
START_TEST(a_link_that_failed_gets_no_further_part)
{
	struct fr_req *send;
	unsigned writes;

	connected();
	net_irecv(&to, 20 * MOST);
	net_settle();
	net_expect("is lost");
	net_expect("endpoints fenced");
	send = net_isend(&from, 20 * MOST);
	writes = net_wire.writes;
	fr_lock_take(&net_a.set->lock);
	fr_link_fail(pair->send->link, -ECONNRESET, "a test says so");
	fr_lock_drop(&net_a.set->lock);
	for (unsigned i = 0; i < 10; i++) {
		net_pass();
	}
	ck_assert_uint_eq(net_wire.writes, writes);
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
}
END_TEST

START_TEST(a_close_between_parts_leaves_nothing_behind)
{
	connected();
	net_irecv(&to, BIG);
	net_settle();
	net_expect("endpoints fenced");
	net_expect("is lost");
	net_isend(&from, BIG);
	net_pass();
	net_close_send(pair);
	net_settle_in_time();
	ck_assert_uint_lt(told_writes(), net_a.set->rail_cnt);
}
END_TEST

static void efa_like(void)
{
	net_init();
	net_conf.quirks.has_write_len = true;
	net_conf.cq_data_bytes = 4;
	net_conf.max_msg_bytes = MOST;
	net_open();
}

START_TEST(without_room_for_a_length_a_long_stripe_is_refused)
{
	struct fr_net_props props;
	struct fr_req *send, *recv;

	ck_assert_int_eq(fr_net_device_props(0, &props), 0);
	ck_assert_uint_eq(props.max_msg_bytes, MOST);
	connected();
	net_expect("a rail takes at most");
	recv = net_irecv(&to, BIG);
	net_settle();
	ck_assert_int_eq(net_try_send(&from, MOST + 1, &send), -EINVAL);
	ck_assert_ptr_null(send);
	ck_assert_uint_eq(net_logged("send of 10001 bytes to"), 1);
	ck_assert_uint_eq(net_wire.writes, 0);
	/* The receive is there still. */
	send = net_isend(&from, MOST);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	net_exchange(&from, &to, MOST, 4);
}
END_TEST

START_TEST(a_message_may_be_longer_than_a_write)
{
	struct fr_net_props props;

	ck_assert_int_eq(fr_net_device_props(0, &props), 0);
	ck_assert_uint_eq(props.max_msg_bytes, UINT64_MAX);
}
END_TEST

int main(void)
{
	TCase *cases[2];
	TCase *tc = net_case("parts", setup);

	tcase_add_loop_test(tc, one_more_byte_takes_one_more_write, 0, 3);
	tcase_add_test(tc, each_stripe_is_told_once_and_last);
	tcase_add_test(tc, parts_wait_for_each_other);
	tcase_add_loop_test(tc, a_part_that_is_refused_ends_the_link, 0, 10);
	tcase_add_loop_test(tc, a_part_that_fails_ends_the_link, 0, 10);
	tcase_add_test(tc, a_link_that_failed_gets_no_further_part);
	tcase_add_test(tc, a_close_between_parts_leaves_nothing_behind);
	tcase_add_test(tc, a_message_may_be_longer_than_a_write);
	cases[0] = tc;
	tc = net_case("short immediate", efa_like);
	tcase_add_test(tc, without_room_for_a_length_a_long_stripe_is_refused);
	cases[1] = tc;
	return net_main("parts", cases, 2);
}
