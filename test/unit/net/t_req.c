/* Requests: their states, and who may forget them when. */
#include "unit/net/net_unit.h"

static struct net_pair *pair;
static struct fr_comm *comm;

static void setup(void)
{
	net_setup();
	pair = net_connect(&net_a, &net_b);
	comm = pair->send;
	net_lock(net_a.set);
}

static void teardown(void)
{
	net_unlock(net_a.set);
	net_teardown();
}

static unsigned free_sends(void)
{
	return fr_freelist_used(net_a.set->send_reqs);
}

START_TEST(a_request_is_its_comms_until_it_is_released)
{
	struct fr_send_req *req = fr_send_req_get(comm);

	ck_assert_int_eq(req->base.state, FR_REQ_ACTIVE);
	ck_assert_int_eq(req->base.kind, FR_REQ_SEND);
	ck_assert_ptr_eq(req->base.comm, comm);
	ck_assert_ptr_eq(req->link, comm->link);
	ck_assert_uint_eq(comm->req_cnt, 1);
	ck_assert_ptr_eq(comm->reqs.next, &req->base.node);
	fr_req_release(&req->base);
	ck_assert_uint_eq(comm->req_cnt, 0);
	ck_assert(fr_list_empty(&comm->reqs));
	ck_assert_uint_eq(free_sends(), 0);
}
END_TEST

START_TEST(the_first_error_stays)
{
	struct fr_send_req *req = fr_send_req_get(comm);

	fr_req_fail(&req->base, -EMSGSIZE);
	ck_assert_int_eq(req->base.state, FR_REQ_FAILED);
	fr_req_fail(&req->base, -ECONNRESET);
	ck_assert_int_eq(req->base.err, -EMSGSIZE);
	fr_req_release(&req->base);
	ck_assert_uint_eq(free_sends(), 0);
}
END_TEST

START_TEST(a_send_fails_when_its_stripes_are_home)
{
	struct fr_send_req *req = fr_send_req_get(comm);

	req->flying = 2;
	fr_req_fail(&req->base, -ECONNRESET);
	ck_assert_int_eq(req->base.state, FR_REQ_ACTIVE);
	req->flying = 1;
	fr_req_fail(&req->base, -ECONNRESET);
	ck_assert_int_eq(req->base.state, FR_REQ_ACTIVE);
	req->flying = 0;
	fr_req_fail(&req->base, -ECONNRESET);
	ck_assert_int_eq(req->base.state, FR_REQ_FAILED);
	fr_req_release(&req->base);
}
END_TEST

START_TEST(a_forgotten_send_is_free_when_its_stripes_are_home)
{
	struct fr_send_req *req = fr_send_req_get(comm);

	req->flying = 1;
	fr_req_release(&req->base);
	ck_assert_uint_eq(comm->req_cnt, 0);
	ck_assert(req->base.orphan);
	ck_assert_uint_eq(free_sends(), 1);
	ck_assert_ptr_eq(net_a.set->orphans.next, &req->base.node);
	req->flying = 0;
	fr_req_fail(&req->base, -ECONNRESET);
	ck_assert_uint_eq(free_sends(), 0);
	ck_assert(fr_list_empty(&net_a.set->orphans));
}
END_TEST

START_TEST(a_forgotten_send_waits_for_no_rail)
{
	struct fr_send_req *req = fr_send_req_get(comm);

	req->deferred = true;
	fr_list_push(&comm->link->deferred, &req->deferred_node);
	fr_req_release(&req->base);
	ck_assert(fr_list_empty(&comm->link->deferred));
	ck_assert_uint_eq(free_sends(), 0);
}
END_TEST

START_TEST(without_memory_there_is_no_request)
{
	struct fr_send_req *reqs[100];
	unsigned cnt = 0, failed = 0;

	while (cnt < FR_ARRAY_LEN(reqs)) {
		fr_fault_alloc_at(1);
		reqs[cnt] = fr_send_req_get(comm);
		fr_fault_alloc_at(0);
		if (reqs[cnt] == NULL) {
			failed++;
			ck_assert_uint_eq(comm->req_cnt, cnt);
			reqs[cnt] = fr_send_req_get(comm);
			ck_assert_ptr_nonnull(reqs[cnt]);
		}
		cnt++;
	}
	ck_assert_uint_ge(failed, 2);
	while (cnt > 0) {
		fr_req_release(&reqs[--cnt]->base);
	}
	fr_fault_alloc_at(1);
	ck_assert_ptr_null(fr_recv_req_get(comm));
	fr_fault_alloc_at(0);
	ck_assert_uint_eq(comm->req_cnt, 0);
}
END_TEST

START_TEST(pools_that_cannot_be_made_leave_nothing)
{
	struct fr_set bare = {.big_bytes = 0};
	size_t base = fr_live_allocs();
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), base);
		fr_fault_alloc_at(++nth);
		ret = fr_reqs_create(&bare);
		fr_fault_alloc_at(0);
	} while (ret == -ENOMEM);
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(nth, 3);
	fr_reqs_destroy(&bare);
	fr_reqs_destroy(&bare);
	ck_assert_uint_eq(fr_live_allocs(), base);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("req");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_request_is_its_comms_until_it_is_released);
	tcase_add_test(tc, the_first_error_stays);
	tcase_add_test(tc, a_send_fails_when_its_stripes_are_home);
	tcase_add_test(tc, a_forgotten_send_is_free_when_its_stripes_are_home);
	tcase_add_test(tc, a_forgotten_send_waits_for_no_rail);
	tcase_add_test(tc, without_memory_there_is_no_request);
	tcase_add_test(tc, pools_that_cannot_be_made_leave_nothing);
	return net_main("req", &tc, 1);
}
