/* Receive buffers of the control endpoints. */
#include "net/link.h"
#include "unit/net/net_unit.h"
#include "wire/link.h"

static struct net_pair *pair;
static struct net_buf from, to;

static void connected(void)
{
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, 9000, &from);
	net_buf_open(pair->recv, 9000, &to);
	net_settle();
}

static const struct fr_name *ctrl_b(void)
{
	return fr_rail_name(net_b.set->rail[0], FR_EP_CTRL);
}

START_TEST(buffers_are_posted_again_as_they_are_read)
{
	connected();
	for (unsigned i = 0; i < 10 * FR_SET_BOUNCE_CNT; i++) {
		net_exchange(&from, &to, i % 1000, i);
	}
	ck_assert(!net_b.set->bounce_short);
}
END_TEST

/* The loop index: a receive that fails, or a message that is too long. */
START_TEST(a_receive_that_fails_costs_a_message_and_no_more)
{
	static uint8_t junk[100000];

	connected();
	if (_i == 0) {
		fr_fake_fail_at(FR_FAKE_RECV_DONE, 1, -EIO);
		net_isend(&from, 10);
	} else {
		memset(junk, 0xc1, sizeof(junk));
		ck_assert_int_eq(
			fr_fake_inject_msg(ctrl_b(), junk, sizeof(junk)), 0);
	}
	net_pass();
	ck_assert_uint_eq(net_logged("a control receive failed"), 1);
	if (_i == 0) { /* its sender repeats it */
		struct fr_req *recv = net_irecv(&to, 10);

		net_tick(8);
		ck_assert_int_eq(net_wait(recv, NULL), 0);
	}
	net_assert_works(pair);
}
END_TEST

/* One that does not fit costs its connection at some providers, and nobody says
 * so: whatever a peer may send must fit, whatever our own limit is. */
START_TEST(buffers_hold_the_longest_message_there_can_be)
{
	static const char *const limits[] = {"-1", "0", "100", "8192", "63K"};
	const size_t cts = FR_LINK_HDR_BYTES + 24 +
			   FR_CTS_MAX_ENTRIES * (24 + 8 * FR_CONN_MAX_RAILS);

	for (unsigned i = 0; i < FR_ARRAY_LEN(limits); i++) {
		net_teardown();
		net_init();
		setenv("OFI_NCCL_EAGER_MAX_SIZE", limits[i], 1);
		net_open();
		ck_assert_uint_ge(net_a.set->big_bytes, FR_CONN_MAX_BYTES);
		ck_assert_uint_ge(net_a.set->big_bytes, cts);
		ck_assert_uint_ge(net_a.set->big_bytes,
				  FR_LINK_HDR_BYTES + FR_EAGER_HDR_BYTES +
					  net_a.set->eager_max);
	}
}
END_TEST

START_TEST(buffers_that_cannot_be_posted_are_posted_later)
{
	connected();
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_RECV,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .owner = net_b.set});
	for (unsigned i = 0; i < FR_COMM_EAGER_AHEAD; i++) {
		struct fr_req *req;

		ck_assert_int_eq(net_try_send(&from, 10, &req), 0);
		net_pass();
	}
	ck_assert(net_b.set->bounce_short);
	net_tick(2);
	ck_assert(net_b.set->bounce_short); /* still refused */
	fr_fake_fault_clear();
	net_tick(2);
	ck_assert(!net_b.set->bounce_short);
	net_settle_in_time();
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_int_eq(net_wait(net_irecv(&to, 10), NULL), 0);
	}
}
END_TEST

/* As long as one buffer is there others may follow; with none left nothing can
 * ever come. */
START_TEST(a_rail_that_takes_no_receive_ends_its_set)
{
	static const uint8_t strange = 0xfe;

	connected();
	net_expect("endpoints fenced: a rail takes no receive");
	net_expect("dropped a control message");
	net_expect("cannot post");
	net_expect("is lost");
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_RECV,
					      .err = -EIO,
					      .cnt = FR_FAKE_FOREVER,
					      .owner = net_b.set});
	for (unsigned i = 1; i <= FR_SET_BOUNCE_CNT; i++) {
		ck_assert_int_eq(net_b.set->dead, 0);
		ck_assert_int_eq(fr_fake_inject_msg(ctrl_b(), &strange, 1), 0);
		net_pass_of(&net_b);
		ck_assert(net_b.set->bounce_short);
	}
	ck_assert_int_eq(net_b.set->dead, -ECONNRESET);
	fr_fake_fault_clear();
	net_forsake(&net_a);
}
END_TEST

START_TEST(empty_and_strange_messages_are_dropped)
{
	static const uint8_t types[] = {0x00, 0x0f, 0x11, 0x12, 0x13,
					0x21, 0x7f, 0xbf, 0xc0, 0xcd};
	uint8_t junk[700];

	connected();
	net_expect("dropped a");
	ck_assert_int_eq(fr_fake_inject_msg(ctrl_b(), "", 0), 0);
	for (unsigned i = 0; i < FR_ARRAY_LEN(types); i++) {
		memset(junk, 0xa5, sizeof(junk));
		junk[0] = types[i];
		ck_assert_int_eq(fr_fake_inject_msg(ctrl_b(), junk, 1), 0);
		ck_assert_int_eq(
			fr_fake_inject_msg(ctrl_b(), junk, sizeof(junk)), 0);
		net_pass();
	}
	ck_assert_uint_ge(net_logged("dropped a"), 5);
	net_assert_works(pair);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("bounce", net_setup);

	tcase_add_test(tc, buffers_are_posted_again_as_they_are_read);
	tcase_add_loop_test(
		tc, a_receive_that_fails_costs_a_message_and_no_more, 0, 2);
	tcase_add_test(tc, buffers_hold_the_longest_message_there_can_be);
	tcase_add_test(tc, buffers_that_cannot_be_posted_are_posted_later);
	tcase_add_test(tc, a_rail_that_takes_no_receive_ends_its_set);
	tcase_add_test(tc, empty_and_strange_messages_are_dropped);
	return net_main("bounce", &tc, 1);
}
