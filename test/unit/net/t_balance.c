/* Which messages a link measures its paths by, and that it knows the end of
 * each that it began to measure. */
#include "net/balance.h"

#include "fake/fake_clock.h"
#include "unit/net/net_unit.h"

#define BYTES (256u << 10)
#define WINDOW 8u
#define ENOUGH 40u /* messages, for a rest */

static struct net_pair *pair;
static struct net_buf from, to;
static struct fr_link *link_ab;

static void with_weights(void)
{
	net_init();
	setenv("OFI_NCCL_RAIL_WEIGHTS", "1", 1);
	setenv("OFI_NCCL_FAILOVER", "1", 1);
	net_open();
}

static void without_weights(void)
{
	net_init();
	net_open();
}

static void with_local_completion(void)
{
	net_init();
	setenv("OFI_NCCL_RAIL_WEIGHTS", "1", 1);
	setenv("OFI_NCCL_SEND_COMPLETION", "local", 1);
	net_open();
}

/* The clock is the test's: no tick comes by itself, and all paths are equally
 * fast. */
#define FLIGHT_NS (20 * FR_NS_PER_US)

static void connected(void)
{
	fr_fake_clock_freeze(true);
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, BYTES, &from);
	net_buf_open(pair->recv, BYTES, &to);
	link_ab = pair->send->link;
}

/* Up to WINDOW messages at once. */
static void exchange_some(unsigned cnt, bool tick)
{
	struct fr_req *send[WINDOW], *recv[WINDOW];

	for (unsigned i = 0; i < cnt; i++) {
		recv[i] = net_irecv(&to, BYTES);
	}
	for (unsigned i = 0; i < cnt; i++) {
		send[i] = net_isend(&from, BYTES);
		if (tick && i == cnt / 2) {
			net_tick(1);
		}
	}
	net_advance(FLIGHT_NS * cnt);
	for (unsigned i = 0; i < cnt; i++) {
		ck_assert_int_eq(net_wait(send[i], NULL), 0);
		ck_assert_int_eq(net_wait(recv[i], NULL), 0);
	}
}

static void exchange(unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		exchange_some(1, false);
	}
}

static unsigned measured_in_flight(void)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < link_ab->path_cnt; i++) {
		ck_assert_uint_le(link_ab->rate.path[i].flying,
				  link_ab->path[i].flying);
		cnt += link_ab->rate.path[i].flying;
	}
	return cnt;
}

START_TEST(long_messages_are_measured_until_it_rests)
{
	struct fr_req *send, *recv;

	connected();
	ck_assert(!fr_balance_measures(link_ab, 1024));
	ck_assert(fr_balance_measures(link_ab, BYTES));
	recv = net_irecv(&to, BYTES);
	send = net_isend(&from, BYTES);
	ck_assert_uint_eq(measured_in_flight(), 2);
	net_advance(FLIGHT_NS);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	exchange(ENOUGH);
	ck_assert(!fr_balance_measures(link_ab, BYTES));
	ck_assert_uint_eq(measured_in_flight(), 0);
	exchange(ENOUGH);
	ck_assert(!fr_balance_measures(link_ab, BYTES));
}
END_TEST

START_TEST(a_tick_ends_the_rest)
{
	connected();
	for (unsigned i = 0; i < 3; i++) {
		exchange(ENOUGH);
		ck_assert(!fr_balance_measures(link_ab, BYTES));
		net_tick(1);
		ck_assert(fr_balance_measures(link_ab, BYTES));
	}
}
END_TEST

/* Some are in flight when a rest begins, others when it ends. */
START_TEST(each_measured_message_is_counted_to_its_end)
{
	unsigned rests = 0;

	connected();
	for (unsigned round = 0; round < ENOUGH; round++) {
		exchange_some(WINDOW, link_ab->rate.rests);
		ck_assert_uint_eq(measured_in_flight(), 0);
		rests += link_ab->rate.rests;
	}
	ck_assert_uint_ge(rests, ENOUGH / 4);
	ck_assert_uint_le(rests, ENOUGH / 2);
	ck_assert(link_ab->rate.even);
}
END_TEST

static bool all_up(void)
{
	return link_ab->up_cnt == link_ab->path_cnt;
}

/* The loop index: while it measures, or rests. */
START_TEST(a_message_that_loses_its_rail_is_counted_to_its_end)
{
	struct fr_req *send, *recv;

	connected();
	net_expect("paths go on");
	exchange(_i == 0 ? 1 : ENOUGH);
	ck_assert_int_eq(fr_balance_measures(link_ab, BYTES), _i == 0);
	fr_fake_fault(&(struct fr_fake_fault){
		.call = FR_FAKE_WRITE_DONE, .err = -EIO, .cnt = 1});
	net_fill(from.mem, BYTES, 7);
	recv = net_irecv(&to, BYTES);
	send = net_isend(&from, BYTES);
	NET_UNTIL_IN_TIME(send->state == FR_REQ_DONE &&
			  recv->state == FR_REQ_DONE);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	ck_assert(net_is_filled(to.mem, BYTES, 7));
	NET_UNTIL_IN_TIME(all_up());
	exchange(ENOUGH);
	ck_assert_uint_eq(measured_in_flight(), 0);
}
END_TEST

/* The same where nothing would be learnt. */
START_TEST(nothing_is_measured_in_vain)
{
	connected();
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(!fr_balance_measures(link_ab, BYTES));
		exchange(WINDOW);
		net_tick(1);
	}
}
END_TEST

int main(void)
{
	TCase *cases[3];

	cases[0] = net_case("weights", with_weights);
	tcase_add_test(cases[0], long_messages_are_measured_until_it_rests);
	tcase_add_test(cases[0], a_tick_ends_the_rest);
	tcase_add_test(cases[0], each_measured_message_is_counted_to_its_end);
	tcase_add_loop_test(cases[0],
			    a_message_that_loses_its_rail_is_counted_to_its_end,
			    0, 2);
	cases[1] = net_case("no weights", without_weights);
	tcase_add_test(cases[1], nothing_is_measured_in_vain);
	cases[2] = net_case("local completion", with_local_completion);
	tcase_add_test(cases[2], nothing_is_measured_in_vain);
	return net_main("net balance", cases, FR_ARRAY_LEN(cases));
}
