/* The connecting side: its steps, its patience, and all that can go wrong. */
#include <pthread.h>
#include <time.h>

#include "net/core.h"
#include "net/link.h"
#include "net/progress.h"
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
	if (ret != 0) {
		ck_assert_ptr_eq(sent, NET_UNTOUCHED);
	}
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

/* Until connect has an answer; @ms of the clock go by with each step. */
static int connect_wait(unsigned ms, unsigned steps)
{
	int ret = -EAGAIN;

	for (unsigned i = 0; ret == -EAGAIN && i < steps; i++) {
		net_advance(ms * FR_NS_PER_MS);
		ret = try_connect();
		net_pass();
	}
	return ret;
}

/* Both, which must come to an end, and then carry messages. */
static void finish(void)
{
	struct net_pair pair;
	int a = -EAGAIN, b = -EAGAIN;

	for (unsigned i = 0; a != 0 || b != 0; i++) {
		ck_assert_uint_lt(i, NET_STEPS);
		net_advance(FR_NS_PER_MS); /* a refused reply pauses */
		if (a != 0) {
			a = try_connect();
			ck_assert(a == 0 || a == -EAGAIN);
		}
		if (b != 0) {
			b = try_accept();
			ck_assert(b == 0 || b == -EAGAIN);
		}
	}
	pair = (struct net_pair){.send = sent, .recv = got};
	net_assert_works(&pair);
	/* A set that closes with this comm has nothing to wait for then. */
	net_close_recv(&pair);
	while (!pair.send->peer_closed) {
		net_pass();
		net_lock(pair.send->set);
		fr_progress_locked(pair.send->set);
		net_unlock(pair.send->set);
	}
	net_close_send(&pair);
	net_settle_in_time();
}

START_TEST(a_handle_serves_many_connections)
{
	for (unsigned i = 0; i < 20; i++) {
		fresh();
		finish();
	}
	ck_assert_uint_eq(net_wire.seen[NET_CONNECT_TYPE], 20);
	ck_assert_uint_eq(net_wire.seen[NET_RESPONSE_TYPE], 20);
}
END_TEST

START_TEST(a_set_can_connect_to_itself)
{
	struct net_pair *pair = net_connect(&net_a, &net_a);

	net_assert_works(pair);
	net_hangup(pair);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
	fresh();
	net_expect("not a handle of ours");
	ck_assert_int_eq(fr_net_connect(0, FR_NET_TCLASS_UNSET, NULL, &sent),
			 -EINVAL);
	ck_assert_int_eq(fr_net_connect(1, FR_NET_TCLASS_UNSET, handle, &sent),
			 -EINVAL);
	ck_assert_int_eq(
		fr_net_connect(UINT32_MAX, FR_NET_TCLASS_UNSET, handle, &sent),
		-EINVAL);
	handle[0] ^= 1;
	ck_assert_int_eq(try_connect(), -EINVAL);
	ck_assert_uint_eq(net_logged("not a handle of ours"), 1);
	fresh();
	handle[5] = 200;
	ck_assert_int_eq(try_connect(), -EINVAL);
}
END_TEST

START_TEST(a_lost_request_or_response_is_repeated_after_a_second)
{
	struct fr_comm *other;

	fresh();
	net_wire.lose[NET_CONNECT_TYPE] = 1;
	ck_assert_int_eq(try_connect(), -EAGAIN);
	ck_assert_int_eq(try_accept(), -EAGAIN);
	net_advance(900 * FR_NS_PER_MS);
	ck_assert_int_eq(try_connect(), -EAGAIN);
	ck_assert_uint_eq(net_wire.seen[NET_CONNECT_TYPE], 1);
	net_advance(200 * FR_NS_PER_MS);
	ck_assert_int_eq(try_connect(), -EAGAIN);
	ck_assert_uint_eq(net_wire.seen[NET_CONNECT_TYPE], 2);
	net_wire.lose[NET_RESPONSE_TYPE] = 2;
	ck_assert_int_eq(try_accept(), -EAGAIN);
	ck_assert_int_eq(try_accept(), 0);
	ck_assert_int_eq(connect_wait(100, 40), 0);
	ck_assert_uint_eq(net_wire.seen[NET_RESPONSE_TYPE], 3);
	net_settle();
	/* One connection, not three. */
	ck_assert_int_eq(fr_net_accept(net_b.listen, &other), -EAGAIN);
	{
		struct net_pair pair = {.send = sent, .recv = got};

		net_assert_works(&pair);
		net_hangup(&pair);
	}
}
END_TEST

START_TEST(requests_and_responses_that_come_twice_count_once)
{
	fresh();
	net_wire.twice[NET_CONNECT_TYPE] = 10;
	net_wire.twice[NET_RESPONSE_TYPE] = 10;
	finish();
	fresh();
	ck_assert_int_eq(try_accept(), -EAGAIN);
	ck_assert_uint_eq(net_a.set->users, 1);
}
END_TEST

START_TEST(a_storm_of_eagain_ends_in_a_connection)
{
	fresh();
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .percent = 90});
	finish();
}
END_TEST

START_TEST(a_rail_that_is_dead_leaves_the_next_name)
{
	fresh();
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .rails = FR_BIT(0),
					      .owner = net_a.set});
	ck_assert_int_eq(connect_wait(100, 28), -EAGAIN);
	ck_assert_uint_eq(net_wire.seen[NET_CONNECT_TYPE], 0);
	ck_assert_int_eq(connect_wait(100, 5), -EAGAIN);
	ck_assert_uint_eq(net_wire.seen[NET_CONNECT_TYPE], 1);
	fr_fake_fault_clear();
	finish();
}
END_TEST

/* The loop index: a post that is refused for good on one rail, or on both. */
START_TEST(a_rail_that_refuses_leaves_the_next_name)
{
	fresh();
	fr_fake_fault(
		&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					.err = -EHOSTUNREACH,
					.cnt = _i == 0 ? 1 : FR_FAKE_FOREVER,
					.owner = net_a.set});
	ck_assert_int_eq(try_connect(), -EAGAIN);
	if (_i == 1) {
		net_expect("no address of the listener can be reached");
		ck_assert_int_eq(connect_wait(100, 90), -EAGAIN);
		ck_assert_int_eq(connect_wait(100, 20), -ECONNRESET);
		fr_fake_fault_clear();
		ck_assert_uint_eq(net_a.set->users, 1);
		fresh();
	}
	finish();
}
END_TEST

START_TEST(a_listener_that_is_gone_is_a_dead_peer)
{
	fresh();
	net_side_close(&net_b);
	net_expect("the listener at 127.77.0.1 is gone");
	ck_assert_int_eq(connect_wait(50, 400), -ECONNRESET);
	ck_assert_uint_eq(net_a.set->users, 1);
	ck_assert_uint_eq(net_logged("is gone"), 1);
}
END_TEST

/* The set is there for another listener. */
START_TEST(a_listener_that_is_closed_refuses)
{
	struct fr_listen *listen = net_b.listen;

	fresh();
	net_as(&net_b);
	ck_assert_int_eq(fr_net_listen(0, FR_NET_TCLASS_UNSET, net_b.handle,
				       sizeof(net_b.handle), &net_b.listen),
			 0);
	net_as(NULL);
	fr_net_close_listen(listen);
	net_expect("the peer refused: the listener is closed");
	ck_assert_int_eq(connect_wait(10, 400), -EPROTO);
	fresh();
	finish();
}
END_TEST

START_TEST(a_peer_that_does_not_poll_is_waited_for)
{
	fresh();
	for (unsigned i = 0; i < 300; i++) { /* the kernel takes its knocks */
		net_advance(200 * FR_NS_PER_MS);
		ck_assert_int_eq(try_connect(), -EAGAIN);
	}
	finish();
}
END_TEST

static void with_timeout(void)
{
	net_init();
	setenv("OFI_NCCL_CONNECT_TIMEOUT", "5s", 1);
	net_open();
}

START_TEST(a_timeout_ends_the_wait)
{
	fresh();
	net_expect("no answer within OFI_NCCL_CONNECT_TIMEOUT");
	for (unsigned i = 0; i < 48; i++) {
		net_advance(100 * FR_NS_PER_MS);
		ck_assert_int_eq(try_connect(), -EAGAIN);
	}
	net_advance(400 * FR_NS_PER_MS);
	ck_assert_int_eq(try_connect(), -ECONNRESET);
	ck_assert_uint_eq(net_a.set->users, 1);
	/* The request is there still: whoever accepts it finds nobody. */
	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
}
END_TEST

/* The loop index: 0: another version; 1: another provider. */
START_TEST(a_handle_of_another_kind_is_refused_on_both_sides)
{
	struct fr_handle h;
	const char *why;
	int ret = -EAGAIN;

	fresh();
	net_expect("connect: the listener");
	net_expect("accept: a peer refuses to connect: the listener");
	if (_i == 0) {
		handle[4] = 9;
	} else {
		ck_assert_int_eq(
			fr_handle_decode(&h, handle, sizeof(handle), &why), 0);
		h.prov = FR_WIRE_PROV_EFA;
		ck_assert_int_eq(fr_handle_encode(&h, handle, sizeof(handle)),
				 0);
	}
	ck_assert_int_eq(try_connect(), -EPROTO);
	for (unsigned i = 0; ret == -EAGAIN && i < 50; i++) {
		net_tick(1);
		ret = try_accept();
	}
	ck_assert_int_eq(ret, -EPROTO);
	ck_assert_int_eq(try_accept(), -EAGAIN);
	ck_assert_uint_eq(net_logged(_i == 0 ? "has version 9" : "provider"),
			  2);
	fresh();
	finish();
}
END_TEST

static struct fr_conn_msg response(void)
{
	struct fr_conn *conn = FR_CONTAINER_OF(net_a.set->conns.next,
					       struct fr_conn, set_node);

	ck_assert(!fr_list_empty(&net_a.set->conns));
	return net_conn_msg(&net_b, FR_CONN_RESPONSE, conn->handle.cookie,
			    conn->connect_id);
}

START_TEST(a_refusal_is_told_with_its_text)
{
	struct fr_conn_msg msg;

	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	msg = response();
	msg.status = EPROTO;
	snprintf(msg.text, sizeof(msg.text), "not with you");
	net_expect("connect: the peer refused: not with you");
	net_inject_conn(&net_a, &msg);
	ck_assert_int_eq(try_connect(), -EPROTO);
	ck_assert_uint_eq(net_logged("not with you"), 1);
}
END_TEST

/* The loop index: what is wrong with it. */
START_TEST(a_response_that_is_of_no_use_fails)
{
	struct fr_conn_msg msg;
	int want = -EPROTO;

	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	net_expect("cannot use the peer's response");
	msg = response();
	switch (_i) {
	case 0:
		msg.prov = FR_WIRE_PROV_EFA;
		break;
	case 1:
		msg.cq_data_bytes = 4;
		break;
	case 2:
		msg.rail_cnt = 0;
		break;
	case 3:
		msg.set_id = 0;
		break;
	default:
		msg.rails[1].ctrl.bytes[0] ^= 0x55; /* another family */
		break;
	}
	net_inject_conn(&net_a, &msg);
	ck_assert_int_eq(try_connect(), want);
	ck_assert_uint_eq(net_a.set->users, 1);
	ck_assert(fr_list_empty(&net_a.set->links));
}
END_TEST

START_TEST(a_response_to_somebody_else_is_ignored)
{
	struct fr_conn_msg msg;

	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	msg = response();
	msg.connect_id ^= 1;
	net_inject_conn(&net_a, &msg);
	msg = response();
	msg.cookie ^= 1;
	net_inject_conn(&net_a, &msg);
	ck_assert_int_eq(try_connect(), -EAGAIN);
	net_expect("dropped a connect message");
	ck_assert_int_eq(
		fr_fake_inject_msg(fr_rail_name(net_a.set->rail[0], FR_EP_CTRL),
				   "\022garbage", 8),
		0);
	ck_assert_int_eq(try_connect(), -EAGAIN);
	finish();
	msg.connect_id = 0; /* nobody connects any more */
	net_inject_conn(&net_a, &msg);
	net_pass();
}
END_TEST

START_TEST(a_response_of_another_version_fails)
{
	uint8_t buf[FR_CONN_MAX_BYTES];
	struct fr_conn_msg msg;
	int len;

	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	msg = response();
	len = fr_conn_encode(&msg, buf, sizeof(buf));
	ck_assert_int_gt(len, 0);
	buf[0] = 0x72;
	net_expect("response has version 7");
	ck_assert_int_eq(
		fr_fake_inject_msg(fr_rail_name(net_a.set->rail[0], FR_EP_CTRL),
				   buf, (size_t)len),
		0);
	ck_assert_int_eq(try_connect(), -EPROTO);
}
END_TEST

/* -- the n-th of everything fails -- */

START_TEST(a_connect_without_memory_leaves_nothing)
{
	size_t base = fr_live_allocs();
	unsigned failed = 0;
	int ret = -ENOMEM;

	net_expect("cannot open its rails");
	net_expect("no knock port");
	for (unsigned nth = 1; ret == -ENOMEM; nth++) {
		ck_assert_uint_lt(nth, NET_FAULTS);
		fresh();
		fr_fault_alloc_at(nth);
		net_as(NULL); /* a set of its own */
		ret = fr_net_connect(0, FR_NET_TCLASS_UNSET, handle, &sent);
		fr_fault_alloc_at(0);
		if (ret == -ENOMEM) {
			ck_assert_ptr_eq(sent, NET_UNTOUCHED);
			ck_assert_mem_eq(handle, net_b.handle, sizeof(handle));
			ck_assert_uint_eq(fr_live_allocs(), base);
			failed++;
		}
	}
	ck_assert_uint_gt(failed, 10);
	ck_assert_int_eq(ret, -EAGAIN);
	finish();
	net_forsake(&net_b); /* the other set is gone */
}
END_TEST

/* Wherever it fails, on this side or on that, another try works. */
START_TEST(a_connection_without_memory_can_be_made_again)
{
	unsigned failed = 0;
	bool whole = false;

	net_expect("");
	for (unsigned nth = 1; !whole; nth++) {
		struct net_pair pair;
		int a = -EAGAIN, b = -EAGAIN;

		ck_assert_uint_lt(nth, NET_FAULTS);
		fresh();
		whole = true;
		fr_fault_alloc_at(nth);
		for (unsigned i = 0; a != 0 || b != 0; i++) {
			ck_assert_uint_lt(i, NET_STEPS);
			if (a != 0) {
				a = try_connect();
			}
			if (b != 0) {
				b = try_accept();
			}
			if (a != 0 && a != -EAGAIN) {
				ck_assert_int_eq(a, -ENOMEM);
				whole = false;
				fresh();
				/* What was accepted for it is of no use. */
				if (b == 0) {
					fr_net_close_recv(got);
					got = NET_UNTOUCHED;
					b = -EAGAIN;
				}
			}
			if (b != 0 && b != -EAGAIN) {
				ck_assert_int_eq(b, -ENOMEM);
				whole = false;
			}
			net_tick(i > 20);
		}
		failed += !whole;
		fr_fault_alloc_at(0);
		pair = (struct net_pair){.send = sent, .recv = got};
		net_assert_works(&pair);
		net_hangup(&pair);
		for (unsigned i = 0; i < 50 && !net_is_quiet(); i++) {
			net_pass();
		}
		if (!net_is_quiet()) {
			/* Its peer never knew of it. */
			net_forsake(&net_b);
			net_tick(1);
		}
	}
	ck_assert_uint_ge(failed, 2);
}
END_TEST

/* The loop index: the kind of call. */
START_TEST(a_connect_whose_rail_fails_leaves_nothing)
{
	static const enum fr_fake_call calls[] = {FR_FAKE_RAIL_OPEN,
						  FR_FAKE_MR_REG, FR_FAKE_RECV,
						  FR_FAKE_PEER_ADD};
	size_t base = fr_live_allocs();
	unsigned failed = 0;
	int ret = -EIO;

	net_expect("");
	for (unsigned nth = 1; ret != -EAGAIN; nth++) {
		ck_assert_uint_lt(nth, NET_FAULTS);
		fresh();
		/* A name may be unusable on one rail and good on the next. */
		fr_fake_fault(&(struct fr_fake_fault){
			.call = calls[_i],
			.err = -EIO,
			.skip = nth - 1,
			.cnt = calls[_i] == FR_FAKE_PEER_ADD && nth == 1 ? 3
									 : 1});
		net_as(NULL);
		ret = fr_net_connect(0, FR_NET_TCLASS_UNSET, handle, &sent);
		fr_fake_fault_clear();
		if (ret != -EAGAIN) {
			/* A pool that cannot register is out of memory. */
			ck_assert(ret == -EIO || ret == -ENOMEM);
			ck_assert_ptr_eq(sent, NET_UNTOUCHED);
			ck_assert_mem_eq(handle, net_b.handle, sizeof(handle));
			ck_assert_uint_eq(fr_live_allocs(), base);
			failed++;
		}
	}
	ck_assert_uint_gt(failed, 0);
	finish();
	net_forsake(&net_b); /* the other set is gone */
}
END_TEST

START_TEST(a_queue_that_breaks_ends_the_connect)
{
	int ret;

	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	net_expect("a completion queue broke");
	net_expect("completion queue: Input/output error");
	fr_fake_fail_at(FR_FAKE_POLL, 1, -EIO);
	ck_assert_int_eq(try_connect(), -ECONNRESET);
	ck_assert_int_eq(fr_net_accept(net_a.listen, &got), -ECONNRESET);
	net_side_close(&net_a);
	net_side_open(&net_a);
	/* The old request is there, but nobody who could be answered. */
	net_expect("its process is gone");
	net_expect("cannot answer");
	ret = try_accept();
	for (unsigned i = 0; ret == -EAGAIN && i < 200; i++) {
		net_tick(1);
		ret = try_accept();
	}
	ck_assert_int_eq(ret, -ECONNRESET);
	fresh();
	finish();
}
END_TEST

/* It was refused while another call polled; then the set dies. */
START_TEST(a_connect_that_has_failed_says_so_when_the_set_is_dead_too)
{
	struct fr_conn_msg msg;

	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	msg = response();
	msg.status = EPROTO;
	net_expect("the peer refused");
	net_expect("endpoints fenced");
	net_inject_conn(&net_a, &msg);
	net_pass();
	net_lock(net_a.set);
	fr_set_kill_locked(net_a.set, "a test says so");
	net_unlock(net_a.set);
	ck_assert_int_lt(try_connect(), 0);
}
END_TEST

/* -- dropped ones -- */

static void keeper_rounds(unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		fr_lock_take(&fr_core.lock);
		fr_conn_reap_locked();
		fr_lock_drop(&fr_core.lock);
	}
}

START_TEST(a_connect_that_nobody_calls_is_reclaimed)
{
	size_t base;

	fresh();
	finish(); /* what the sets keep for good is there */
	base = fr_live_allocs();
	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	ck_assert_uint_eq(net_a.set->users, 2);
	keeper_rounds(1);
	/* The time that a stopped process lost is not the host's silence. */
	net_advance(100 * FR_NS_PER_S);
	keeper_rounds(1);
	ck_assert_uint_eq(net_a.set->users, 2);
	keeper_rounds(300);
	ck_assert_uint_eq(net_a.set->users, 1);
	ck_assert_uint_eq(net_logged("reclaimed a connect"), 1);
	ck_assert_uint_eq(fr_live_allocs(), base);
	keeper_rounds(1);
	/* The state in the handle is of no use now, but the handle is. */
	ck_assert_int_eq(try_connect(), -EAGAIN);
	ck_assert_uint_eq(net_a.set->users, 2);
}
END_TEST

START_TEST(the_last_reference_ends_connects_under_way)
{
	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	net_settle();
	fr_conn_drop_all();
	ck_assert_uint_eq(net_a.set->users, 1);
	ck_assert(fr_list_empty(&net_a.set->conns));
}
END_TEST

/* -- the end of a process, as a thread is in connect ------------------------
 */

static void *drop_all(void *arg)
{
	(void)arg;
	fr_conn_drop_all();
	return NULL;
}

/* In the middle of the call that will be the last one, as its request goes out
 * once more. */
static enum fr_fake_verdict end_begins(void *arg,
				       const struct fr_fake_seen *seen)
{
	const struct timespec nap = {.tv_nsec = 50 * FR_NS_PER_MS};
	pthread_t *ender = arg;

	(void)seen;
	if (*ender == pthread_self()) {
		ck_assert_int_eq(pthread_create(ender, NULL, drop_all, NULL),
				 0);
		nanosleep(&nap, NULL);
	}
	return FR_FAKE_PASS;
}

START_TEST(what_a_thread_is_in_connect_with_is_not_dropped)
{
	pthread_t ender = pthread_self();

	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	net_advance(6 * FR_NS_PER_S);
	net_expect("no answer within OFI_NCCL_CONNECT_TIMEOUT");
	fr_fake_set_snoop(end_begins, &ender);
	ck_assert_int_eq(try_connect(), -ECONNRESET);
	fr_fake_set_snoop(NULL, NULL);
	ck_assert_int_eq(pthread_join(ender, NULL), 0);
	ck_assert(fr_list_empty(&fr_core.connects));
}
END_TEST

/* By a signal's handler that calls exit(). */
START_TEST(what_a_thread_was_interrupted_in_is_not_waited_for)
{
	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	fr_core.ending = true;
	fr_lock_take(&net_a.set->lock);
	fr_conn_drop_all();
	fr_lock_drop(&net_a.set->lock);
	ck_assert(!fr_list_empty(&fr_core.connects));
	fr_conn_drop_all();
	ck_assert(fr_list_empty(&fr_core.connects));
	fr_core.ending = false;
}
END_TEST

START_TEST(what_no_thread_is_in_connect_with_is_dropped)
{
	fresh();
	ck_assert_int_eq(try_connect(), -EAGAIN);
	ck_assert(!fr_list_empty(&fr_core.connects));
	fr_conn_drop_all();
	ck_assert(fr_list_empty(&fr_core.connects));
}
END_TEST

int main(void)
{
	TCase *tc = net_case("conn", net_setup);
	TCase *limit = net_case("timeout", with_timeout);
	TCase *const cases[] = {tc, limit};

	tcase_add_test(tc, a_handle_serves_many_connections);
	tcase_add_test(tc, a_set_can_connect_to_itself);
	tcase_add_test(tc, wrong_arguments_are_refused);
	tcase_add_test(tc,
		       a_lost_request_or_response_is_repeated_after_a_second);
	tcase_add_test(tc, requests_and_responses_that_come_twice_count_once);
	tcase_add_test(tc, a_storm_of_eagain_ends_in_a_connection);
	tcase_add_test(tc, a_rail_that_is_dead_leaves_the_next_name);
	tcase_add_loop_test(tc, a_rail_that_refuses_leaves_the_next_name, 0, 2);
	tcase_add_test(tc, a_listener_that_is_gone_is_a_dead_peer);
	tcase_add_test(tc, a_listener_that_is_closed_refuses);
	tcase_add_test(tc, a_peer_that_does_not_poll_is_waited_for);
	tcase_add_test(limit, a_timeout_ends_the_wait);
	tcase_add_loop_test(
		tc, a_handle_of_another_kind_is_refused_on_both_sides, 0, 2);
	tcase_add_test(tc, a_refusal_is_told_with_its_text);
	tcase_add_loop_test(tc, a_response_that_is_of_no_use_fails, 0, 5);
	tcase_add_test(tc, a_response_to_somebody_else_is_ignored);
	tcase_add_test(tc, a_response_of_another_version_fails);
	tcase_add_test(tc, a_connect_without_memory_leaves_nothing);
	tcase_add_test(tc, a_connection_without_memory_can_be_made_again);
	tcase_add_loop_test(tc, a_connect_whose_rail_fails_leaves_nothing, 0,
			    4);
	tcase_add_test(tc, a_queue_that_breaks_ends_the_connect);
	tcase_add_test(
		tc, a_connect_that_has_failed_says_so_when_the_set_is_dead_too);
	tcase_add_test(tc, a_connect_that_nobody_calls_is_reclaimed);
	tcase_add_test(tc, the_last_reference_ends_connects_under_way);
	tcase_add_test(limit, what_a_thread_is_in_connect_with_is_not_dropped);
	tcase_add_test(tc, what_a_thread_was_interrupted_in_is_not_waited_for);
	tcase_add_test(tc, what_no_thread_is_in_connect_with_is_dropped);
	return net_main("conn", cases, FR_ARRAY_LEN(cases));
}
