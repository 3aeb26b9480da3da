/* The listening side: who waits at it, and who is sent away. */
#include "net/link.h"
#include "unit/net/net_unit.h"

static uint8_t handle[FR_HANDLE_BYTES];
static struct fr_comm *sent, *got;

static void fresh(void)
{
	memcpy(handle, net_b.handle, sizeof(handle));
	sent = NET_UNTOUCHED;
	got = NET_UNTOUCHED;
}

static int try_connect(void)
{
	int ret;

	net_as(&net_a);
	ret = fr_net_connect(0, FR_NET_TCLASS_UNSET, handle, &sent);
	net_as(NULL);
	return ret;
}

static int try_accept(void)
{
	int ret = fr_net_accept(net_b.listen, &got);

	if (ret != 0) {
		ck_assert_ptr_eq(got, NET_UNTOUCHED);
	}
	return ret;
}

static void finish(void)
{
	struct net_pair pair;
	int a = -EAGAIN, b = -EAGAIN;

	for (unsigned i = 0; a != 0 || b != 0; i++) {
		ck_assert_uint_lt(i, NET_STEPS);
		if (a != 0) {
			a = try_connect();
			ck_assert(a == 0 || a == -EAGAIN);
		}
		if (b != 0) {
			b = try_accept();
			ck_assert(b == 0 || b == -EAGAIN);
		}
		net_tick(i > 20);
	}
	pair = (struct net_pair){.send = sent, .recv = got};
	net_assert_works(&pair);
	net_hangup(&pair);
	net_settle_in_time();
	fresh();
}

/* A request of @side's that its set knows nothing of. */
static struct fr_conn_msg request_of(const struct net_side *side, uint64_t id)
{
	return net_conn_msg(side, FR_CONN_REQUEST, net_b.listen->cookie, id);
}

static int accept_in_time(void)
{
	int ret = try_accept();

	for (unsigned i = 0; ret == -EAGAIN && i < 400; i++) {
		net_tick(1);
		ret = try_accept();
	}
	return ret;
}

START_TEST(nobody_is_there_at_first)
{
	fresh();
	for (unsigned i = 0; i < 10; i++) {
		ck_assert_int_eq(try_accept(), -EAGAIN);
	}
	ck_assert_int_eq(fr_net_accept(NULL, &got), -EINVAL);
	finish();
}
END_TEST

START_TEST(peers_are_taken_one_by_one_in_their_order)
{
	struct net_pair pairs[3];
	uint8_t handles[3][FR_HANDLE_BYTES];

	net_side_open(&net_c);
	fresh();
	for (unsigned i = 0; i < 3; i++) {
		memcpy(handles[i], net_b.handle, sizeof(handles[i]));
		net_as(i == 1 ? &net_c : &net_a);
		ck_assert_int_eq(fr_net_connect(0, FR_NET_TCLASS_UNSET,
						handles[i], &pairs[i].send),
				 -EAGAIN);
	}
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(accept_in_time(), 0);
		pairs[i].recv = got;
		got = NET_UNTOUCHED;
	}
	for (unsigned i = 0; i < 3; i++) {
		net_as(i == 1 ? &net_c : &net_a);
		ck_assert_int_eq(fr_net_connect(0, FR_NET_TCLASS_UNSET,
						handles[i], &pairs[i].send),
				 0);
		net_assert_works(&pairs[i]);
	}
	net_as(NULL);
	for (unsigned i = 0; i < 3; i++) {
		net_hangup(&pairs[i]);
	}
}
END_TEST

START_TEST(a_request_that_is_repeated_waits_once)
{
	struct fr_conn_msg msg;

	fresh();
	msg = request_of(&net_a, 77);
	for (unsigned i = 0; i < 5; i++) {
		net_inject_conn(&net_b, &msg);
	}
	net_pass();
	ck_assert_uint_eq(net_b.listen->pending_cnt, 1);
	ck_assert_int_eq(accept_in_time(), 0);
	ck_assert_uint_eq(net_wire.seen[NET_RESPONSE_TYPE], 1);
	/* Now it may be that our response was lost. */
	net_inject_conn(&net_b, &msg);
	net_pass();
	net_settle_in_time();
	ck_assert_uint_eq(net_wire.seen[NET_RESPONSE_TYPE], 2);
	ck_assert_uint_eq(net_last_response().comm, got->id);
	ck_assert_uint_eq(net_last_response().connect_id, 77);
	ck_assert_uint_eq(net_b.listen->pending_cnt, 0);
	fr_net_close_recv(got);
	net_forsake(&net_b); /* its sender does not exist */
	net_tick(1);
}
END_TEST

START_TEST(no_more_than_1024_wait)
{
	struct fr_conn_msg msg;

	fresh();
	msg = request_of(&net_a, 0);
	for (unsigned i = 0; i < 1030; i++) {
		msg.connect_id = 1000 + i;
		net_inject_conn(&net_b, &msg);
		net_pass_of(&net_b);
	}
	ck_assert_uint_eq(net_b.listen->pending_cnt, 1024);
}
END_TEST

static void other_provider(struct fr_conn_msg *msg)
{
	msg->prov = FR_WIRE_PROV_SHM;
}

static void other_immediates(struct fr_conn_msg *msg)
{
	msg->cq_data_bytes = 4;
}

static void no_set(struct fr_conn_msg *msg)
{
	msg->set_id = 0;
}

static void other_names(struct fr_conn_msg *msg)
{
	msg->rails[1].data.bytes[0] ^= 0x55;
}

static const struct {
	void (*spoil)(struct fr_conn_msg *msg);
	const char *why;
} misfits[] = {
	{other_provider, "another provider"},
	{other_immediates, "another size of remote CQ data"},
	{no_set, "set id is 0"},
	{other_names, "an endpoint name is not usable here"},
};

START_TEST(a_peer_that_does_not_fit_is_told_why)
{
	struct fr_conn_msg msg, answer;

	fresh();
	msg = request_of(&net_a, 5);
	misfits[_i].spoil(&msg);
	net_expect("accept: refused a peer (fake0)");
	net_inject_conn(&net_b, &msg);
	ck_assert_int_eq(accept_in_time(), -EPROTO);
	net_settle_in_time();
	answer = net_last_response();
	ck_assert_int_eq(answer.status, EPROTO);
	ck_assert_ptr_nonnull(strstr(answer.text, misfits[_i].why));
	ck_assert_uint_eq(answer.connect_id, 5);
	ck_assert_uint_eq(net_logged(misfits[_i].why), 1);
	ck_assert_uint_eq(net_b.set->users, 1);
	finish(); /* the listener goes on */
}
END_TEST

START_TEST(a_peer_without_rails_has_no_address_to_be_told)
{
	struct fr_conn_msg msg;

	fresh();
	msg = request_of(&net_a, 5);
	msg.rail_cnt = 0;
	net_expect("accept: refused a peer");
	net_inject_conn(&net_b, &msg);
	ck_assert_int_eq(accept_in_time(), -EPROTO);
	net_settle_in_time();
	ck_assert_uint_eq(net_wire.seen[NET_RESPONSE_TYPE], 0);
	finish();
}
END_TEST

START_TEST(a_request_for_no_listener_is_refused)
{
	struct fr_conn_msg msg;

	fresh();
	msg = request_of(&net_a, 5);
	msg.cookie ^= 1;
	net_inject_conn(&net_b, &msg);
	ck_assert_int_eq(try_accept(), -EAGAIN);
	net_settle_in_time();
	ck_assert_int_eq(net_last_response().status, ECONNREFUSED);
	ck_assert_str_eq(net_last_response().text, "the listener is closed");
	ck_assert_uint_eq(net_logged("asks for a listener that is closed"), 1);
	finish();
}
END_TEST

/* Strangers get answers, but not without end. */
START_TEST(a_flood_of_strangers_costs_a_bounded_number_of_answers)
{
	struct fr_conn_msg msg;
	size_t base;

	fresh();
	finish();
	base = fr_live_allocs();
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .owner = net_b.set});
	msg = request_of(&net_a, 5);
	msg.cookie ^= 1;
	for (unsigned i = 0; i < 500; i++) {
		msg.connect_id = i;
		net_inject_conn(&net_b, &msg);
		net_pass_of(&net_b);
	}
	ck_assert_uint_le(fr_live_allocs(), base + 100);
	net_tick(40); /* they are given up */
	ck_assert(fr_list_empty(&net_b.set->replies));
	fr_fake_fault_clear();
	finish();
}
END_TEST

START_TEST(a_request_of_another_version_is_told_to_the_host)
{
	uint8_t buf[FR_CONN_MAX_BYTES];
	struct fr_conn_msg msg;
	int len;

	fresh();
	msg = request_of(&net_a, 5);
	len = fr_conn_encode(&msg, buf, sizeof(buf));
	ck_assert_int_gt(len, 0);
	buf[0] = 0x91;
	net_expect("accept: a peer refuses to connect");
	net_expect("version 9");
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_int_eq(
			fr_fake_inject_msg(
				fr_rail_name(net_b.set->rail[0], FR_EP_CTRL),
				buf, (size_t)len),
			0);
	}
	ck_assert_int_eq(accept_in_time(), -EPROTO);
	ck_assert_uint_eq(net_logged("version 9"), 1);
	finish();
}
END_TEST

/* The loop index: whether the listener has begun to answer. */
START_TEST(a_listener_that_closes_sends_away_who_waits)
{
	struct fr_listen *listen = net_b.listen;
	int ret = -EAGAIN;

	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	net_pass_of(&net_b);
	if (_i == 1) {
		net_wire.lose[NET_RESPONSE_TYPE] = 1;
		ck_assert_int_eq(try_accept(), -EAGAIN);
	} else {
		net_expect("the listener was closed");
		ck_assert_uint_eq(listen->pending_cnt, 1);
	}
	net_as(&net_b);
	ck_assert_int_eq(fr_net_listen(0, FR_NET_TCLASS_UNSET, net_b.handle,
				       sizeof(net_b.handle), &net_b.listen),
			 0);
	net_as(NULL);
	fr_net_close_listen(listen);
	for (unsigned i = 0; ret == -EAGAIN && i < 100; i++) {
		ret = try_connect();
		net_tick(1);
	}
	if (_i == 0) {
		ck_assert_int_eq(ret, -EPROTO);
	} else if (ret == 0) {
		/* It was taken, and is closed at the other end. */
		for (unsigned i = 0; !sent->peer_closed; i++) {
			ck_assert_uint_lt(i, 200);
			net_tick(1);
		}
		fr_net_close_send(sent);
	} else {
		ck_assert_int_eq(ret, -EPROTO);
	}
	net_expect("refused");
	net_settle_in_time();
	fresh();
	finish();
}
END_TEST

START_TEST(a_listener_of_a_fenced_set_says_nothing_more)
{
	struct fr_conn_msg msg;

	net_side_open(&net_c);
	msg = net_conn_msg(&net_a, FR_CONN_REQUEST, net_c.listen->cookie, 5);
	net_inject_conn(&net_c, &msg);
	net_pass();
	ck_assert_uint_eq(net_c.listen->pending_cnt, 1);
	net_expect("a test says so");
	net_lock(net_c.set);
	fr_set_kill_locked(net_c.set, "a test says so");
	net_unlock(net_c.set);
	net_side_close(&net_c); /* the rails see no call: see the teardown */
}
END_TEST

/* A listener of @b's whose host waits inside of its connects. */
static struct fr_listen *early_listener(void)
{
	struct fr_listen *listen = NULL;

	net_as(&net_b);
	memset(handle, 0, sizeof(handle));
	ck_assert_int_eq(fr_net_listen(0, FR_NET_TCLASS_UNSET, handle,
				       FR_HANDLE_BYTES_V4, &listen),
			 0);
	net_as(NULL);
	sent = NET_UNTOUCHED;
	got = NET_UNTOUCHED;
	return listen;
}

static int connect_in_time(void)
{
	int ret = try_connect();

	for (unsigned i = 0; ret == -EAGAIN && i < 100; i++) {
		net_pass();
		ret = try_connect();
	}
	return ret;
}

/* Ranks in a ring connect to the next before they accept the one before. */
START_TEST(a_host_that_waits_in_connect_is_answered_before_accept)
{
	struct fr_listen *listen = early_listener();
	struct net_pair pair;

	ck_assert_int_eq(connect_in_time(), 0);
	ck_assert_ptr_nonnull(listen->accepting);
	ck_assert_int_eq(fr_net_accept(listen, &got), 0);
	ck_assert_ptr_null(listen->accepting);
	pair = (struct net_pair){.send = sent, .recv = got};
	net_assert_works(&pair);
	net_hangup(&pair);
	fr_net_close_listen(listen);
	fresh();
	finish();
}
END_TEST

START_TEST(early_answers_come_one_by_one_too)
{
	struct fr_listen *listen = early_listener();
	uint8_t second[FR_HANDLE_BYTES];
	struct net_pair pair;
	struct fr_comm *later;

	memcpy(second, handle, sizeof(second));
	ck_assert_int_eq(connect_in_time(), 0);
	net_as(&net_a);
	ck_assert_int_eq(fr_net_connect(0, FR_NET_TCLASS_UNSET, second, &later),
			 -EAGAIN);
	net_as(NULL);
	net_pass();
	ck_assert_uint_eq(listen->pending_cnt, 1);
	ck_assert_int_eq(fr_net_accept(listen, &got), 0);
	ck_assert_uint_eq(listen->pending_cnt, 0);
	pair = (struct net_pair){.send = sent, .recv = got};
	net_assert_works(&pair);
	net_hangup(&pair);
	memcpy(handle, second, sizeof(handle));
	ck_assert_int_eq(connect_in_time(), 0);
	ck_assert_int_eq(fr_net_accept(listen, &got), 0);
	pair = (struct net_pair){.send = sent, .recv = got};
	net_hangup(&pair);
	fr_net_close_listen(listen);
}
END_TEST

START_TEST(an_early_answer_that_nobody_accepts_ends_with_the_listener)
{
	struct fr_listen *listen = early_listener();

	ck_assert_int_eq(connect_in_time(), 0);
	fr_net_close_listen(listen);
	for (unsigned i = 0; !sent->peer_closed; i++) {
		ck_assert_uint_lt(i, 200);
		net_tick(1);
	}
	fr_net_close_send(sent);
	net_settle_in_time();
	fresh();
	finish();
}
END_TEST

START_TEST(an_early_answer_that_fails_is_said_by_the_next_accept)
{
	struct fr_listen *listen = early_listener();
	struct fr_conn_msg msg =
		net_conn_msg(&net_a, FR_CONN_REQUEST, listen->cookie, 77);

	net_expect("refused a peer");
	net_expect("refused:");
	msg.prov = (uint8_t)(msg.prov + 1);
	net_inject_conn(&net_b, &msg);
	net_pass();
	ck_assert_ptr_null(listen->accepting);
	ck_assert_int_eq(fr_net_accept(listen, &got), -EPROTO);
	ck_assert_int_eq(fr_net_accept(listen, &got), -EAGAIN);
	ck_assert_int_eq(connect_in_time(), 0);
	ck_assert_int_eq(fr_net_accept(listen, &got), 0);
	net_hangup(&(struct net_pair){.send = sent, .recv = got});
	fr_net_close_listen(listen);
}
END_TEST

START_TEST(a_link_that_fails_under_an_accept_ends_it)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);

	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .owner = net_b.set});
	ck_assert_int_eq(try_accept(), -EAGAIN);
	net_forsake(&net_b);
	ck_assert_int_eq(try_accept(), -ECONNRESET);
	fr_fake_fault_clear();
	ck_assert_int_eq(try_accept(), -EAGAIN);
	ck_assert_int_eq(fr_comm_error(pair->recv), -ECONNRESET);
	net_forsake(&net_a);
}
END_TEST

/* Its request waits here, its process is gone. */
START_TEST(a_peer_that_died_meanwhile_is_not_waited_for)
{
	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	net_pass_of(&net_b);
	ck_assert_uint_eq(net_b.listen->pending_cnt, 1);
	for (unsigned i = 0; i < net_a.set->rail_cnt; i++) {
		struct fr_rail *rail = net_a.set->rail[i];

		fr_fake_kill(fr_rail_name(rail, FR_EP_CTRL));
		fr_fake_kill(fr_rail_name(rail, FR_EP_DATA));
		fr_knock_server_close(net_a.set->knock[i]);
		net_a.set->knock[i] = NULL;
	}
	net_expect("its process is gone");
	net_expect("accept: cannot answer");
	ck_assert_int_eq(accept_in_time(), -ECONNRESET);
	ck_assert_uint_eq(net_b.set->users, 1);
}
END_TEST

/* Its kernel answers, its process takes nothing. */
START_TEST(an_answer_is_tried_for_half_a_minute)
{
	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .owner = net_b.set});
	for (unsigned i = 0; i < 250; i++) {
		ck_assert_int_eq(try_accept(), -EAGAIN);
		net_tick(1);
	}
	net_expect("accept: cannot answer 127.77.0.1 (fake0)");
	ck_assert_int_eq(accept_in_time(), -ECONNRESET);
	ck_assert_uint_eq(net_b.set->users, 1);
	fr_fake_fault_clear();
	finish(); /* the request is repeated, or another comes */
}
END_TEST

START_TEST(an_accept_without_memory_can_be_tried_again)
{
	unsigned failed = 0;
	bool whole = false;

	for (unsigned nth = 1; !whole; nth++) {
		struct fr_conn_msg msg;
		int ret;

		ck_assert_uint_lt(nth, NET_FAULTS);
		fresh();
		msg = request_of(&net_a, 100 + nth);
		net_inject_conn(&net_b, &msg);
		net_pass_of(&net_b);
		fr_fault_alloc_at(nth);
		ret = try_accept();
		fr_fault_alloc_at(0);
		whole = ret == 0 || ret == -EAGAIN;
		if (!whole) {
			ck_assert_int_eq(ret, -ENOMEM);
			ck_assert_uint_eq(net_b.set->users, 1);
			net_inject_conn(&net_b, &msg); /* as it would come */
			failed++;
		}
		ck_assert_int_eq(accept_in_time(), 0);
		fr_net_close_recv(got);
	}
	ck_assert_uint_ge(failed, 2);
	net_forsake(&net_b); /* none of its senders exists */
	net_tick(1);
}
END_TEST

START_TEST(a_request_without_memory_comes_again)
{
	struct fr_conn_msg msg;

	fresh();
	msg = request_of(&net_a, 5);
	net_inject_conn(&net_b, &msg);
	fr_fault_alloc_at(1);
	net_pass_of(&net_b);
	fr_fault_alloc_at(0);
	ck_assert_uint_eq(net_b.listen->pending_cnt, 0);
	net_inject_conn(&net_b, &msg);
	net_pass_of(&net_b);
	ck_assert_uint_eq(net_b.listen->pending_cnt, 1);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("accept", net_setup);

	tcase_add_test(tc, nobody_is_there_at_first);
	tcase_add_test(tc, peers_are_taken_one_by_one_in_their_order);
	tcase_add_test(tc, a_request_that_is_repeated_waits_once);
	tcase_add_test(tc, no_more_than_1024_wait);
	tcase_add_loop_test(tc, a_peer_that_does_not_fit_is_told_why, 0,
			    (int)FR_ARRAY_LEN(misfits));
	tcase_add_test(tc, a_peer_without_rails_has_no_address_to_be_told);
	tcase_add_test(tc, a_request_for_no_listener_is_refused);
	tcase_add_test(tc,
		       a_flood_of_strangers_costs_a_bounded_number_of_answers);
	tcase_add_test(tc, a_request_of_another_version_is_told_to_the_host);
	tcase_add_test(tc, a_listener_of_a_fenced_set_says_nothing_more);
	tcase_add_loop_test(tc, a_listener_that_closes_sends_away_who_waits, 0,
			    2);
	tcase_add_test(tc,
		       a_host_that_waits_in_connect_is_answered_before_accept);
	tcase_add_test(tc, early_answers_come_one_by_one_too);
	tcase_add_test(
		tc, an_early_answer_that_nobody_accepts_ends_with_the_listener);
	tcase_add_test(tc,
		       an_early_answer_that_fails_is_said_by_the_next_accept);
	tcase_add_test(tc, a_link_that_fails_under_an_accept_ends_it);
	tcase_add_test(tc, a_peer_that_died_meanwhile_is_not_waited_for);
	tcase_add_test(tc, an_answer_is_tried_for_half_a_minute);
	tcase_add_test(tc, an_accept_without_memory_can_be_tried_again);
	tcase_add_test(tc, a_request_without_memory_comes_again);
	return net_main("accept", &tc, 1);
}
