/* One pass over a set: what it does, and what it survives. */
#include "net/progress.h"
#include "unit/net/net_unit.h"

#define LONG 9000u

static struct net_pair *pair;
static struct net_buf from, to;

static void connected(void)
{
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, LONG, &from);
	net_buf_open(pair->recv, LONG, &to);
	net_settle();
}

static bool pass_a(void)
{
	bool yield;

	net_lock(net_a.set);
	yield = fr_progress_locked(net_a.set);
	net_unlock(net_a.set);
	return yield;
}

static void yielding(void)
{
	net_init();
	setenv("OFI_NCCL_YIELD_AFTER", "4", 1);
	net_open();
}

START_TEST(every_so_many_empty_passes_give_the_core_away)
{
	unsigned yields = 0;

	connected();
	net_isend(&from, 10);
	net_pass_of(&net_b);
	pass_a(); /* finds its send complete: not empty */
	for (unsigned i = 1; i <= 16; i++) {
		bool yield = pass_a();

		ck_assert_int_eq(yield, i % 4 == 0);
		yields += yield;
	}
	ck_assert_uint_eq(yields, 4);
}
END_TEST

START_TEST(with_0_the_core_is_kept)
{
	for (unsigned i = 0; i < 200; i++) {
		ck_assert(!pass_a());
	}
}
END_TEST

START_TEST(a_queue_that_breaks_ends_its_set_and_no_other)
{
	struct net_pair *other;
	struct fr_req *req, *waits;

	connected();
	net_side_open(&net_c);
	other = net_connect(&net_c, &net_b);
	waits = net_isend(&from, 10);
	net_expect("completion queue");
	net_expect("is lost");
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_POLL,
					      .err = -EIO,
					      .cnt = 1,
					      .rails = FR_BIT(1),
					      .owner = net_a.set});
	pass_a();
	ck_assert_int_eq(net_a.set->dead, -ECONNRESET);
	ck_assert(pass_a()); /* there is nothing to poll for */
	ck_assert_int_eq(net_try_send(&from, 10, &req), -ECONNRESET);
	ck_assert_int_eq(net_wait(waits, NULL), 0); /* was done before */
	net_assert_works(other);
	net_forsake(&net_b);
}
END_TEST

/* A response waits for its rail while the queue breaks. */
START_TEST(nothing_is_posted_after_the_queue_broke)
{
	struct fr_comm *sent, *got;
	uint8_t handle[FR_HANDLE_BYTES];

	memcpy(handle, net_b.handle, sizeof(handle));
	net_as(&net_a);
	ck_assert_int_eq(fr_net_connect(0, FR_NET_TCLASS_UNSET, handle, &sent),
			 -EAGAIN);
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .owner = net_b.set});
	ck_assert_int_eq(fr_net_accept(net_b.listen, &got), -EAGAIN);
	ck_assert(!fr_list_empty(&net_b.set->replies));
	fr_fake_fault_clear();
	net_expect("completion queue");
	fr_fake_fail_at(FR_FAKE_POLL, 1, -EIO);
	net_advance(FR_NS_PER_S); /* timers are due as well */
	net_pass_of(&net_b);
	ck_assert_int_eq(net_b.set->dead, -ECONNRESET);
	ck_assert_uint_eq(net_counts().violations, 0);
	ck_assert_int_eq(fr_net_accept(net_b.listen, &got), -ECONNRESET);
	ck_assert_uint_eq(net_wire.seen[NET_RESPONSE_TYPE], 0);
}
END_TEST

START_TEST(a_keepers_pass_acknowledges_at_once)
{
	connected();
	memset(net_wire.seen, 0, sizeof(net_wire.seen));
	net_isend(&from, 10);
	net_lock(net_b.set);
	fr_progress_keeper_locked(net_b.set);
	net_unlock(net_b.set);
	net_pass_of(&net_a);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_ACK], 1);
	ck_assert_uint_eq(pair->send->link->tx_acked,
			  pair->send->link->tx_next);
	net_expect("endpoints fenced");
	net_lock(net_b.set);
	fr_set_kill_locked(net_b.set, "a test says so");
	fr_progress_keeper_locked(net_b.set); /* leaves it alone */
	net_unlock(net_b.set);
	net_expect("is lost");
	net_forsake(&net_a);
}
END_TEST

START_TEST(a_keepers_pass_survives_a_queue_that_breaks)
{
	net_expect("completion queue");
	fr_fake_fail_at(FR_FAKE_POLL, 1, -EIO);
	net_lock(net_b.set);
	fr_progress_keeper_locked(net_b.set);
	net_unlock(net_b.set);
	ck_assert_int_eq(net_b.set->dead, -ECONNRESET);
}
END_TEST

/* Nobody can say whose write it was, so nothing follows but a line. */
START_TEST(a_write_that_was_cut_is_told_and_no_more)
{
	connected();
	for (unsigned i = 0; i < 40; i++) {
		ck_assert_int_eq(
			fr_fake_inject_error(
				fr_rail_name(net_b.set->rail[0], FR_EP_DATA),
				-ECONNRESET),
			0);
	}
	net_pass();
	ck_assert_uint_eq(net_logged("an incoming write was cut"),
			  FR_LOG_BURST);
	net_assert_works(pair);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("progress", net_setup);
	TCase *yields = net_case("yield", yielding);
	TCase *const cases[] = {tc, yields};

	tcase_add_test(yields, every_so_many_empty_passes_give_the_core_away);
	tcase_add_test(tc, with_0_the_core_is_kept);
	tcase_add_test(tc, a_queue_that_breaks_ends_its_set_and_no_other);
	tcase_add_test(tc, nothing_is_posted_after_the_queue_broke);
	tcase_add_test(tc, a_keepers_pass_acknowledges_at_once);
	tcase_add_test(tc, a_keepers_pass_survives_a_queue_that_breaks);
	tcase_add_test(tc, a_write_that_was_cut_is_told_and_no_more);
	return net_main("progress", cases, FR_ARRAY_LEN(cases));
}
