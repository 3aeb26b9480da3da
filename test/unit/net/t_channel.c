/* The reliable channel of a link: windows, acknowledgements, repeats. */
#include "fake/fake_clock.h"
#include "net/link.h"
#include "unit/net/net_unit.h"

#define LONG 9000u
#define REPEAT_NS (500 * FR_NS_PER_MS)

static struct net_pair *pair;
static struct net_buf from, to;
static struct fr_link *link_a, *link_b; /* the two ends of it */
static uint32_t arrived_before;

static void connected(void)
{
	/* Timers run when a test moves the clock, however slow its machine. */
	fr_fake_clock_freeze(true);
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, LONG, &from);
	net_buf_open(pair->recv, LONG, &to);
	link_a = pair->send->link;
	link_b = pair->recv->link;
	net_settle();
	memset(net_wire.seen, 0, sizeof(net_wire.seen));
	arrived_before = link_b->rx_next;
}

static void ping(unsigned cnt)
{
	struct fr_link_note note = {.a = 1};

	while (cnt-- > 0) {
		net_say_note(link_a, FR_LINK_PING, &note);
	}
}

static void hold_b(bool on)
{
	for (unsigned i = 0; i < net_b.set->rail_cnt; i++) {
		fr_fake_hold(fr_rail_name(net_b.set->rail[i], FR_EP_CTRL), on);
	}
}

static unsigned pings(void)
{
	return net_wire.seen[FR_LINK_PING];
}

static unsigned pongs(void)
{
	return net_wire.seen[FR_LINK_PONG];
}

/* Messages at b, without a gap. */
static uint32_t arrived(void)
{
	return link_b->rx_next - arrived_before;
}

static uint32_t unacked(const struct fr_link *link)
{
	return link->tx_next - link->tx_acked;
}

START_TEST(sixty_four_messages_may_be_unacknowledged)
{
	connected();
	hold_b(true);
	ping(100);
	ck_assert_uint_eq(pings(), FR_LINK_WINDOW);
	ck_assert_uint_eq(unacked(link_a), FR_LINK_WINDOW);
	ck_assert(!fr_link_has_room(link_a, FR_LINK_WINDOW));
	for (unsigned i = 0; i < 10; i++) {
		net_pass();
	}
	ck_assert_uint_eq(pings(), FR_LINK_WINDOW);
	hold_b(false);
	net_settle();
	ck_assert_uint_eq(pings(), 100);
	ck_assert_uint_eq(arrived(), 100);
	ck_assert_uint_eq(unacked(link_a), 0);
	ck_assert(fr_link_has_room(link_a, 1));
}
END_TEST

START_TEST(sixteen_messages_are_acknowledged_at_once_fewer_later)
{
	struct fr_req *recv[FR_LINK_ACK_AFTER];

	connected();
	for (unsigned i = 0; i < FR_LINK_ACK_AFTER - 1; i++) {
		recv[i] = net_irecv(&to, LONG);
		net_pass();
	}
	for (unsigned i = 0; i < 20; i++) {
		net_pass();
	}
	ck_assert_uint_eq(net_wire.seen[FR_LINK_ACK], 0);
	ck_assert_uint_eq(link_a->ack_owed, FR_LINK_ACK_AFTER - 1);
	recv[FR_LINK_ACK_AFTER - 1] = net_irecv(&to, LONG);
	net_pass();
	ck_assert_uint_eq(net_wire.seen[FR_LINK_ACK], 1);
	ck_assert_uint_eq(link_a->ack_owed, 0);
	net_pass();
	ck_assert_uint_eq(unacked(link_b), 0);
	for (unsigned i = 0; i < FR_LINK_ACK_AFTER; i++) {
		net_wait(net_isend(&from, LONG), NULL);
		ck_assert_int_eq(net_wait(recv[i], NULL), 0);
	}
	/* One alone waits for the next tick. */
	recv[0] = net_irecv(&to, LONG);
	net_pass();
	ck_assert_uint_eq(net_wire.seen[FR_LINK_ACK], 1);
	net_tick(2);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_ACK], 2);
	net_wait(net_isend(&from, LONG), NULL);
	ck_assert_int_eq(net_wait(recv[0], NULL), 0);
}
END_TEST

START_TEST(an_acknowledgement_rides_on_what_goes_anyway)
{
	struct net_pair *back;
	struct net_buf back_buf;
	struct fr_req *recv;

	connected();
	back = net_connect(&net_b, &net_a);
	net_buf_open(back->recv, LONG, &back_buf);
	net_settle();
	net_wire.seen[FR_LINK_ACK] = 0;
	recv = net_irecv(&to, LONG);
	net_pass();
	ck_assert_uint_eq(unacked(link_b), 1);
	net_irecv(&back_buf, LONG); /* its CTS goes the other way */
	net_pass();
	ck_assert_uint_eq(unacked(link_b), 0);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_ACK], 0);
	net_wait(net_isend(&from, LONG), NULL);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	net_expect("endpoints fenced"); /* the other one is still open */
}
END_TEST

/* From the loss on: 0.5 s, then twice as long each time, 8 s at most. */
START_TEST(what_is_lost_is_repeated_ever_more_seldom)
{
	static const uint64_t waits_ms[] = {500, 1000, 2000, 4000, 8000, 8000};

	connected();
	net_wire.lose[FR_LINK_PING] = FR_ARRAY_LEN(waits_ms);
	ping(1);
	for (unsigned i = 0; i < FR_ARRAY_LEN(waits_ms); i++) {
		ck_assert_uint_eq(pings(), i + 1);
		net_advance((waits_ms[i] - 250) * FR_NS_PER_MS);
		net_pass();
		net_pass();
		ck_assert_uint_eq(pings(), i + 1);
		net_advance(350 * FR_NS_PER_MS);
		net_pass();
		net_pass();
		ck_assert_uint_eq(pings(), i + 2);
	}
	net_settle();
	ck_assert_uint_eq(pongs(), 1);
	net_assert_works(pair);
}
END_TEST

START_TEST(a_lost_acknowledgement_costs_a_repeat_and_no_more)
{
	connected();
	net_wire.lose[FR_LINK_PONG] = 1;
	net_wire.lose[FR_LINK_ACK] = 1;
	ping(1);
	for (unsigned i = 0; i < 5; i++) {
		net_pass();
	}
	ck_assert_uint_eq(pings(), 1);
	net_settle_in_time();
	ck_assert_uint_eq(pings(), 2);
	ck_assert_uint_ge(pongs(), 2); /* the lost one and its repeat */
	ck_assert_uint_eq(arrived(), 1);
	ck_assert_uint_eq(link_b->rx_next, link_a->tx_next);
	ck_assert_uint_eq(link_a->rx_next, link_b->tx_next);
}
END_TEST

START_TEST(what_comes_twice_counts_once)
{
	connected();
	net_wire.twice[FR_LINK_PING] = 200;
	net_wire.twice[FR_LINK_PONG] = 200;
	net_wire.twice[FR_LINK_ACK] = 200;
	ping(200);
	net_settle();
	ck_assert_uint_eq(pings(), 200);
	ck_assert_uint_eq(arrived(), 200);
	ck_assert_uint_le(pongs(), 200);
}
END_TEST

/* The loop index: where the numbers begin. */
START_TEST(any_order_and_any_loss_will_do)
{
	static const uint32_t first[] = {0, UINT32_MAX - 100};

	connected();
	if (_i == 1) {
		link_a->tx_next = link_a->tx_acked = first[_i];
		link_b->rx_next = first[_i];
		link_b->tx_next = link_b->tx_acked = first[_i];
		link_a->rx_next = first[_i];
	}
	fr_fake_unordered(true);
	fr_fake_shuffle(true);
	for (unsigned seed = 1; seed < 20; seed++) {
		fr_fake_seed(seed);
		net_wire.lose[FR_LINK_PING] = seed % 4;
		net_wire.lose[FR_LINK_PONG] = seed % 3;
		net_wire.lose[FR_LINK_ACK] = seed % 2;
		net_wire.seen[FR_LINK_PING] = 0;
		ping(60);
		net_settle_in_time();
		ck_assert_uint_ge(pings(), 60);
	}
	ck_assert_uint_eq(link_b->rx_next, link_a->tx_next);
	ck_assert_uint_eq(link_a->rx_next, link_b->tx_next);
	ck_assert_uint_eq(link_b->rx_mask, 0);
	net_assert_works(pair);
}
END_TEST

/* All that is behind the hole is here; only its repeat opens the window. */
START_TEST(a_repeat_goes_before_what_waits_for_the_window)
{
	connected();
	net_wire.lose[FR_LINK_PING] = 1;
	ping(FR_LINK_WINDOW + 10);
	for (unsigned i = 0; i < 10; i++) {
		net_pass();
	}
	ck_assert_uint_eq(unacked(link_a), FR_LINK_WINDOW);
	net_advance(REPEAT_NS + FR_TICK_NS);
	net_settle();
	ck_assert_uint_eq(pings(), 2 * FR_LINK_WINDOW + 10);
	ck_assert_uint_eq(arrived(), FR_LINK_WINDOW + 10);
}
END_TEST

START_TEST(eagain_keeps_the_order)
{
	connected();
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .percent = 80});
	ping(150);
	net_settle();
	ck_assert_uint_eq(pings(), 150);
	ck_assert_uint_eq(arrived(), 150);
}
END_TEST

/* -- errors of the rails -- */

static void assert_lost(void)
{
	struct fr_link_note note = {.a = 1};
	struct fr_req *req;

	ck_assert_int_eq(link_a->err, -ECONNRESET);
	ck_assert_int_eq(net_try_send(&from, 1, &req), -ECONNRESET);
	net_lock(net_a.set);
	ck_assert_int_eq(fr_link_send_note(link_a, FR_LINK_PING, &note, 0),
			 -ECONNRESET);
	net_unlock(net_a.set);
	ck_assert_uint_eq(net_logged("is lost"), 1);
	net_forsake(&net_b);
}

/* The loop index: how many messages fly and wait then. */
START_TEST(an_error_completion_ends_the_link)
{
	static const unsigned cnt[] = {1, 30, 100};

	connected();
	net_expect("is lost: rail 0 (fake0) to 127.77.0.1: fake");
	fr_fake_fail_at(FR_FAKE_SEND_DONE, cnt[_i] / 2 + 1, -EIO);
	hold_b(true);
	ping(cnt[_i]);
	NET_UNTIL(link_a->err != 0);
	assert_lost();
	hold_b(false);
}
END_TEST

/* The first error ends the link, which lets go of what is still in flight. */
START_TEST(errors_after_the_end_of_the_link_touch_nothing)
{
	const struct fr_fake_fault fault = {
		.call = FR_FAKE_SEND_DONE, .err = -EIO, .cnt = 40};

	connected();
	net_expect("is lost: rail 0 (fake0) to 127.77.0.1: fake");
	fr_fake_fault(&fault);
	hold_b(true);
	ping(40);
	NET_UNTIL(link_a->err != 0 &&
		  fr_rail_inflight(net_a.set->rail[0]) == 0);
	assert_lost();
	hold_b(false);
}
END_TEST

START_TEST(a_post_that_fails_for_good_ends_the_link)
{
	connected();
	net_expect("127.77.0.1: Network is unreachable");
	hold_b(true);
	fr_fake_fail_at(FR_FAKE_SEND, 10, -ENETUNREACH);
	ping(9);
	net_lock(net_a.set);
	struct fr_link_note note = {.a = 1};
	/* It was taken before the post: what it stood for fails with the link.
	 */
	ck_assert_int_eq(fr_link_send_note(link_a, FR_LINK_PING, &note, 0), 0);
	net_unlock(net_a.set);
	assert_lost();
	hold_b(false);
}
END_TEST

START_TEST(an_acknowledgement_that_cannot_go_ends_the_link)
{
	connected();
	net_expect("is lost");
	net_irecv(&to, LONG);
	net_pass();
	ck_assert_uint_eq(link_a->ack_owed, 1);
	fr_fake_fail_at(FR_FAKE_SEND, 1, -EHOSTUNREACH);
	net_tick(2);
	assert_lost();
	net_expect("endpoints fenced");
}
END_TEST

START_TEST(a_note_without_memory_can_be_tried_again)
{
	struct fr_link_note note = {.a = 1};
	int ret = 0;
	unsigned cnt = 0;

	connected();
	hold_b(true);
	net_lock(net_a.set);
	while (ret == 0) { /* until the pool is empty */
		ck_assert_uint_lt(cnt, 1000);
		fr_fault_alloc_at(1);
		ret = fr_link_send_note(link_a, FR_LINK_PING, &note, 0);
		cnt += ret == 0;
	}
	fr_fault_alloc_at(0);
	ck_assert_int_eq(ret, -ENOMEM);
	ck_assert_int_eq(fr_link_send_note(link_a, FR_LINK_PING, &note, 0), 0);
	/* None of our own making either. */
	ck_assert_int_eq(fr_link_send_note(link_a, FR_LINK_CTS, &note, 0),
			 -EINVAL);
	net_unlock(net_a.set);
	hold_b(false);
	net_settle();
	ck_assert_uint_eq(arrived(), cnt + 1);
}
END_TEST

START_TEST(an_acknowledgement_without_memory_stays_owed)
{
	void *taken[4096];
	unsigned cnt = 0;

	connected();
	net_irecv(&to, LONG);
	net_pass();
	net_lock(net_a.set);
	do {
		fr_fault_alloc_at(1);
		taken[cnt] = fr_freelist_get(net_a.set->small_slots);
	} while (taken[cnt] != NULL && ++cnt < FR_ARRAY_LEN(taken));
	fr_fault_alloc_at(1);
	fr_link_ack(link_a);
	fr_fault_alloc_at(0);
	ck_assert_uint_eq(link_a->ack_owed, 1);
	while (cnt > 0) {
		fr_freelist_put(net_a.set->small_slots, taken[--cnt]);
	}
	net_unlock(net_a.set);
	net_settle();
	ck_assert_uint_eq(link_a->ack_owed, 0);
	net_expect("endpoints fenced");
}
END_TEST

/* -- strange arrivals -- */

/* Bytes that come to side b from anybody. */
static void inject(const struct fr_link_hdr *hdr, size_t bytes)
{
	uint8_t buf[64] = {0};

	fr_link_hdr_encode(hdr, buf);
	ck_assert_int_eq(
		fr_fake_inject_msg(fr_rail_name(net_b.set->rail[0], FR_EP_CTRL),
				   buf, bytes),
		0);
	net_pass();
}

static struct fr_link_hdr right_hdr(void)
{
	struct fr_link_hdr hdr = {
		.type = FR_LINK_PING,
		.len = 8,
		.seq = link_b->rx_next,
		.ack = link_b->tx_next,
		.dst_set = (uint32_t)net_b.set->id,
		.src_set = net_a.set->id,
	};

	return hdr;
}

START_TEST(what_is_for_another_set_or_from_nobody_is_dropped)
{
	static const uint8_t junk[32] = {0xff, 0x01, 0x02};
	struct fr_link_hdr hdr;
	uint32_t rx_next;

	connected();
	rx_next = link_b->rx_next;
	net_expect("dropped a control message");
	hdr = right_hdr();
	hdr.dst_set ^= 1;
	inject(&hdr, FR_LINK_HDR_BYTES + 8);
	ck_assert_uint_eq(net_logged("for another process"), 1);
	hdr = right_hdr();
	hdr.src_set ^= 1;
	inject(&hdr, FR_LINK_HDR_BYTES + 8);
	hdr = right_hdr();
	hdr.len = 9;
	inject(&hdr, FR_LINK_HDR_BYTES + 8);
	hdr = right_hdr();
	inject(&hdr, 10);
	inject(&hdr, 0);
	ck_assert_int_eq(
		fr_fake_inject_msg(fr_rail_name(net_b.set->rail[0], FR_EP_CTRL),
				   junk, sizeof(junk)),
		0);
	net_pass();
	ck_assert_uint_eq(link_b->rx_next, rx_next);
	ck_assert_uint_eq(pongs(), 0);
	net_assert_works(pair);
}
END_TEST

START_TEST(an_acknowledgement_of_what_was_never_sent_is_ignored)
{
	struct fr_link_hdr hdr;

	connected();
	net_irecv(&to, LONG);
	net_irecv(&to, LONG);
	ck_assert_uint_eq(unacked(link_b), 2);
	hdr = right_hdr();
	hdr.type = FR_LINK_ACK;
	hdr.len = 0;
	hdr.seq = 0;
	hdr.ack = link_b->tx_next + 1;
	inject(&hdr, FR_LINK_HDR_BYTES);
	hdr.ack = link_b->tx_acked - 1;
	inject(&hdr, FR_LINK_HDR_BYTES);
	hdr.ack = link_b->tx_acked + 0x80000000u;
	inject(&hdr, FR_LINK_HDR_BYTES);
	ck_assert_uint_eq(unacked(link_b), 2);
	net_settle();
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
	}
}
END_TEST

/* Of later parts of the protocol; we said that we do not know them. */
START_TEST(a_type_that_was_not_offered_ends_its_link_and_no_other)
{
	struct net_pair *other;
	uint8_t body[16] = {0};
	struct fr_req *req;

	connected();
	net_side_open(&net_c);
	other = net_connect(&net_c, &net_b);
	net_expect("is lost: it sent a control message");
	net_say(link_a, (uint8_t)_i, 0, body, sizeof(body));
	NET_UNTIL(link_b->err != 0);
	ck_assert_int_eq(net_try_recv(&to, 5, &req), -EPROTO);
	net_assert_works(other);
	net_forsake(&net_a);
}
END_TEST

START_TEST(a_note_that_is_too_short_ends_its_link)
{
	connected();
	net_expect("is lost: it sent a bad control message");
	net_say(link_a, FR_LINK_WANT, 0, "\0\0\0\0", 4);
	NET_UNTIL(link_b->err != 0);
	ck_assert_int_eq(link_b->err, -EPROTO);
	/* What comes on a link that has failed is answered by a reset alone. */
	net_expect("it has given up the link");
	ping(3);
	NET_UNTIL(link_a->err != 0);
	ck_assert_int_eq(link_a->err, -ECONNRESET);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_RESET], 1);
	ck_assert_uint_eq(pongs(), 0);
	net_forsake(&net_a);
}
END_TEST

START_TEST(two_links_have_numbers_of_their_own)
{
	struct net_pair *other;

	connected();
	net_side_open(&net_c);
	other = net_connect(&net_a, &net_c);
	hold_b(true);
	ping(FR_LINK_WINDOW + 1);
	net_assert_works(other);
	hold_b(false);
	net_settle();
	net_assert_works(pair);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("channel", net_setup);

	tcase_add_test(tc, sixty_four_messages_may_be_unacknowledged);
	tcase_add_test(tc,
		       sixteen_messages_are_acknowledged_at_once_fewer_later);
	tcase_add_test(tc, an_acknowledgement_rides_on_what_goes_anyway);
	tcase_add_test(tc, what_is_lost_is_repeated_ever_more_seldom);
	tcase_add_test(tc, a_lost_acknowledgement_costs_a_repeat_and_no_more);
	tcase_add_test(tc, what_comes_twice_counts_once);
	tcase_add_loop_test(tc, any_order_and_any_loss_will_do, 0, 2);
	tcase_add_test(tc, a_repeat_goes_before_what_waits_for_the_window);
	tcase_add_test(tc, eagain_keeps_the_order);
	tcase_add_loop_test(tc, an_error_completion_ends_the_link, 0, 3);
	tcase_add_test(tc, errors_after_the_end_of_the_link_touch_nothing);
	tcase_add_test(tc, a_post_that_fails_for_good_ends_the_link);
	tcase_add_test(tc, an_acknowledgement_that_cannot_go_ends_the_link);
	tcase_add_test(tc, a_note_without_memory_can_be_tried_again);
	tcase_add_test(tc, an_acknowledgement_without_memory_stays_owed);
	tcase_add_test(tc, what_is_for_another_set_or_from_nobody_is_dropped);
	tcase_add_test(tc,
		       an_acknowledgement_of_what_was_never_sent_is_ignored);
	tcase_add_loop_test(
		tc, a_type_that_was_not_offered_ends_its_link_and_no_other,
		FR_LINK_FENCE, FR_LINK_RAIL + 1);
	tcase_add_test(tc, a_note_that_is_too_short_ends_its_link);
	tcase_add_test(tc, two_links_have_numbers_of_their_own);
	return net_main("channel", &tc, 1);
}
