/* How the host program learns of a request's end. */
#include "unit/net/net_unit.h"

#define LONG 9000u

static struct net_pair *pair;
static struct net_buf from, to;

static void connected(void)
{
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, LONG, &from);
	net_buf_open(pair->recv, LONG, &to);
}

START_TEST(what_is_under_way_is_not_done)
{
	struct fr_req *recv, *send;
	size_t size = 77;
	bool done = true;

	connected();
	recv = net_irecv(&to, LONG);
	ck_assert_int_eq(fr_net_test(recv, &done, &size), 0);
	ck_assert(!done);
	ck_assert_uint_eq(size, 77);
	send = net_isend(&from, 8500);
	ck_assert_int_eq(net_wait(send, &size), 0);
	ck_assert_uint_eq(size, 8500);
	ck_assert_int_eq(net_wait(recv, NULL), 0); /* sizes are not needed */
	ck_assert_uint_eq(pair->recv->req_cnt, 0);
	ck_assert_uint_eq(pair->send->req_cnt, 0);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
	struct fr_req *req = NET_UNTOUCHED;
	bool done = true;

	connected();
	ck_assert_int_eq(fr_net_test(NULL, &done, NULL), -EINVAL);
	ck_assert(!done);
	ck_assert_int_eq(fr_net_iflush(NULL, 0, NULL, NULL, NULL, &req),
			 -EINVAL);
	ck_assert_ptr_null(req);
	ck_assert_int_eq(fr_net_iflush(pair->send, 0, NULL, NULL, NULL, &req),
			 -EINVAL);
	ck_assert_int_eq(fr_net_iflush(pair->recv, 9, NULL, NULL, NULL, &req),
			 -EINVAL);
}
END_TEST

START_TEST(a_set_that_is_busy_means_try_again)
{
	struct fr_req *recv, *req = NET_UNTOUCHED;
	bool done = true;

	connected();
	recv = net_irecv(&to, 10);
	net_wait(net_isend(&from, 10), NULL);
	net_settle();
	net_lock(net_b.set);
	ck_assert_int_eq(fr_net_test(recv, &done, NULL), 0);
	ck_assert(!done);
	ck_assert_int_eq(fr_net_iflush(pair->recv, 0, NULL, NULL, NULL, &req),
			 0);
	ck_assert_ptr_null(req);
	net_unlock(net_b.set);
	ck_assert_int_eq(fr_net_test(recv, &done, NULL), 0);
	ck_assert(done);
}
END_TEST

START_TEST(a_flush_of_host_memory_is_done_at_once)
{
	struct fr_req *req = NET_UNTOUCHED;
	void *data = to.mem;
	int bytes = 10;

	connected();
	net_exchange(&from, &to, LONG, 1);
	ck_assert_int_eq(
		fr_net_iflush(pair->recv, 1, &data, &bytes, &to.mr, &req), 0);
	ck_assert_ptr_null(req);
	net_forsake(&net_b);
	ck_assert_int_eq(
		fr_net_iflush(pair->recv, 1, &data, &bytes, &to.mr, &req),
		-ECONNRESET);
	net_forsake(&net_a);
}
END_TEST

/* A test of one request moves all of its set. */
START_TEST(a_test_makes_progress)
{
	struct fr_req *recv, *send;
	bool sent = false, got = false;

	connected();
	recv = net_irecv(&to, LONG);
	for (send = NULL; send == NULL;) {
		ck_assert_int_eq(net_try_send(&from, LONG, &send), 0);
	}
	for (unsigned i = 0; !sent || !got; i++) {
		ck_assert_uint_lt(i, 100);
		if (!sent) {
			ck_assert_int_eq(fr_net_test(send, &sent, NULL), 0);
		}
		if (!got) {
			ck_assert_int_eq(fr_net_test(recv, &got, NULL), 0);
		}
	}
}
END_TEST

START_TEST(what_ended_well_before_the_peer_was_lost_ended_well)
{
	struct fr_req *recv[2], *send;
	size_t size = 0;

	connected();
	recv[0] = net_irecv(&to, LONG);
	recv[1] = net_irecv(&to, LONG);
	send = net_isend(&from, LONG);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	net_settle();
	net_forsake(&net_b);
	ck_assert_int_eq(net_wait(recv[0], &size), 0);
	ck_assert_uint_eq(size, LONG);
	ck_assert_int_eq(net_wait(recv[1], NULL), -ECONNRESET);
	ck_assert_uint_eq(pair->recv->req_cnt, 0);
	net_expect("endpoints fenced"); /* it may still be written to */
	net_forsake(&net_a);
}
END_TEST

START_TEST(requests_that_nobody_tests_end_with_their_comm)
{
	struct net_pair *sister;

	connected();
	sister = net_connect(&net_a, &net_b);
	for (unsigned i = 0; i < 20; i++) {
		net_irecv(&to, 100);
		net_isend(&from, 100);
	}
	net_settle();
	net_hangup(pair);
	net_settle();
	net_assert_works(sister);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("test", net_setup);

	tcase_add_test(tc, what_is_under_way_is_not_done);
	tcase_add_test(tc, wrong_arguments_are_refused);
	tcase_add_test(tc, a_set_that_is_busy_means_try_again);
	tcase_add_test(tc, a_flush_of_host_memory_is_done_at_once);
	tcase_add_test(tc, a_test_makes_progress);
	tcase_add_test(tc, what_ended_well_before_the_peer_was_lost_ended_well);
	tcase_add_test(tc, requests_that_nobody_tests_end_with_their_comm);
	return net_main("test", &tc, 1);
}
