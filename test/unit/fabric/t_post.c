#include "unit/fabric/fabric_unit.h"

static struct fr_fabric *fabric;
static struct unit_owner owner;
static struct fr_rail *rail;
static char buf[256];

static void open_on(const char *prov, bool local_completion)
{
	struct fr_rail_attr attr;

	fabric = unit_fabric(prov);
	attr = unit_rail_attr(fabric, 0, &owner);
	attr.local_completion = local_completion;
	ck_assert_int_eq(fr_rail_open(&attr, &rail), 0);
}

static void close_it(void)
{
	fr_rail_close(rail);
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi.misuses, 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

static int write_one(bool deliver, struct unit_op *op)
{
	return fr_rail_write(rail, 5, buf, 100, buf + 1, 0x1000, 0x77, 0xabc,
			     deliver, &op->op);
}

static const struct {
	const char *prov;
	bool local;
	bool deliver;
	const char *call;
	uint64_t flags;
} write_case[] = {
	/* net hears of delivery only per call. */
	{"net", false, true, "writemsg",
	 FI_REMOTE_CQ_DATA | FI_COMPLETION | FI_DELIVERY_COMPLETE},
	{"net", false, false, "writedata", 0},
	{"net", true, false, "writedata", 0},
	/* Elsewhere the endpoint delivers, and local is the exception. */
	{"tcp;ofi_rxm", false, true, "writedata", 0},
	{"tcp;ofi_rxm", false, false, "writemsg",
	 FI_REMOTE_CQ_DATA | FI_COMPLETION},
	{"tcp;ofi_rxm", true, false, "writedata", 0},
	{"tcp;ofi_rxm", true, true, "writemsg",
	 FI_REMOTE_CQ_DATA | FI_COMPLETION | FI_DELIVERY_COMPLETE},
};

START_TEST(a_write_completes_at_the_level_asked_for)
{
	struct unit_op op = unit_op();

	open_on(write_case[_i].prov, write_case[_i].local);
	ck_assert_int_eq(write_one(write_case[_i].deliver, &op), 0);
	ck_assert_str_eq(fake_fi.post.call, write_case[_i].call);
	ck_assert_uint_eq(fake_fi.post.flags, write_case[_i].flags);
	ck_assert_ptr_eq(fake_fi.post.buf, buf);
	ck_assert_uint_eq(fake_fi.post.len, 100);
	ck_assert_ptr_eq(fake_fi.post.desc, buf + 1);
	ck_assert_uint_eq(fake_fi.post.data, 0xabc);
	ck_assert_uint_eq(fake_fi.post.addr, 5);
	ck_assert_uint_eq(fake_fi.post.remote_addr, 0x1000);
	ck_assert_uint_eq(fake_fi.post.key, 0x77);
	ck_assert_ptr_eq(fake_fi.post.context, &op.op);
	ck_assert_uint_eq(fr_rail_inflight(rail), 1);
	ck_assert_uint_eq(op.calls, 0);
	close_it();
	unit_assert_quiet();
}
END_TEST

/* shm would never complete it. */
START_TEST(an_empty_write_is_local_where_it_must_be)
{
	struct unit_op op = unit_op();

	open_on(_i == 0 ? "shm" : "tcp;ofi_rxm", false);
	ck_assert_int_eq(
		fr_rail_write(rail, 5, buf, 0, NULL, 0, 1, 2, true, &op.op), 0);
	ck_assert_str_eq(fake_fi.post.call, _i == 0 ? "writemsg" : "writedata");
	ck_assert_uint_eq(fake_fi.post.flags,
			  _i == 0 ? FI_REMOTE_CQ_DATA | FI_COMPLETION : 0);
	close_it();
}
END_TEST

START_TEST(a_message_completes_locally)
{
	struct unit_op op = unit_op();

	open_on(_i == 0 ? "net" : "tcp;ofi_rxm", false);
	ck_assert_int_eq(fr_rail_send(rail, 9, buf, 64, NULL, &op.op), 0);
	ck_assert_str_eq(fake_fi.post.call, _i == 0 ? "send" : "sendmsg");
	ck_assert_uint_eq(fake_fi.post.flags, _i == 0 ? 0 : FI_COMPLETION);
	ck_assert_uint_eq(fake_fi.post.len, 64);
	ck_assert_uint_eq(fake_fi.post.addr, 9);
	ck_assert_uint_eq(fr_rail_inflight(rail), 1);
	close_it();
}
END_TEST

START_TEST(a_read_is_posted_on_c_and_in_flight)
{
	struct unit_op op = unit_op();

	open_on("net", false);
	ck_assert_int_eq(
		fr_rail_read(rail, 5, buf, 8, buf + 1, 0x1000, 0x77, &op.op),
		0);
	ck_assert_str_eq(fake_fi.post.call, "read");
	ck_assert_ptr_eq(fake_fi.post.buf, buf);
	ck_assert_uint_eq(fake_fi.post.len, 8);
	ck_assert_ptr_eq(fake_fi.post.desc, buf + 1);
	ck_assert_uint_eq(fake_fi.post.addr, 5);
	ck_assert_uint_eq(fake_fi.post.remote_addr, 0x1000);
	ck_assert_uint_eq(fake_fi.post.key, 0x77);
	ck_assert_ptr_eq(fake_fi.post.context, &op.op);
	ck_assert_uint_eq(fr_rail_inflight(rail), 1);
	fake_fi.post_ret = -EAGAIN;
	ck_assert_int_eq(fr_rail_read(rail, 5, buf, 8, NULL, 0, 1, &op.op),
			 -EAGAIN);
	unit_assert_quiet();
	fake_fi.post_ret = -EINVAL;
	ck_assert_int_eq(fr_rail_read(rail, 5, buf, 8, NULL, 0, 1, &op.op),
			 -EINVAL);
	unit_assert_said(FR_LOG_ERROR, "cannot post a read");
	ck_assert_uint_eq(fr_rail_inflight(rail), 1);
	close_it();
}
END_TEST

START_TEST(a_receive_buffer_takes_any_sender_and_is_not_in_flight)
{
	struct unit_op op = unit_op();

	open_on("net", false);
	ck_assert_int_eq(fr_rail_recv(rail, buf, 256, buf, &op.op), 0);
	ck_assert_str_eq(fake_fi.post.call, "recv");
	ck_assert_uint_eq(fake_fi.post.addr, FI_ADDR_UNSPEC);
	ck_assert_uint_eq(fake_fi.post.len, 256);
	ck_assert_uint_eq(fr_rail_inflight(rail), 0);
	close_it();
}
END_TEST

/* sockets connects inside of a post; who refuses now may listen in a moment. */
START_TEST(a_refused_connection_is_tried_again_on_sockets)
{
	struct unit_op op = unit_op();

	open_on("sockets", false);
	fake_fi.post_ret = -ENOENT;
	ck_assert_int_eq(write_one(true, &op), -EAGAIN);
	ck_assert_int_eq(fr_rail_send(rail, 1, buf, 1, NULL, &op.op), -EAGAIN);
	close_it();
	unit_assert_quiet();
	open_on("net", false);
	ck_assert_int_eq(write_one(true, &op), -ENOENT);
	close_it();
	unit_assert_said(FR_LOG_ERROR, "cannot post a write");
}
END_TEST

START_TEST(again_is_counted_and_not_logged)
{
	struct unit_op op = unit_op();

	open_on("net", false);
	fake_fi.post_ret = -EAGAIN;
	ck_assert_int_eq(write_one(true, &op), -EAGAIN);
	ck_assert_int_eq(fr_rail_send(rail, 1, buf, 1, NULL, &op.op), -EAGAIN);
	ck_assert_int_eq(fr_rail_recv(rail, buf, 1, NULL, &op.op), -EAGAIN);
	ck_assert_uint_eq(fr_stats_get(fr_rail_stats(rail), FR_STAT_DEFERRED),
			  3);
	ck_assert_uint_eq(fr_rail_inflight(rail), 0);
	ck_assert_uint_eq(op.calls, 0);
	close_it();
	unit_assert_quiet();
}
END_TEST

START_TEST(another_refusal_is_logged_once_with_the_providers_text)
{
	struct unit_op op = unit_op();

	open_on("net", false);
	fake_fi.post_ret = -ENETUNREACH;
	ck_assert_int_eq(write_one(false, &op), -ENETUNREACH);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
	unit_assert_said(FR_LOG_ERROR, "rail 0 on rail0 (net, libfabric "
				       "1.17.0): cannot post a write: Network");
	fake_fi.post_ret = -FI_EOTHER;
	ck_assert_int_eq(fr_rail_send(rail, 1, buf, 1, NULL, &op.op), -EIO);
	unit_assert_said(FR_LOG_ERROR, "post a message: a libfabric error");
	ck_assert_uint_eq(fr_rail_inflight(rail), 0);
	close_it();
}
END_TEST

START_TEST(a_refusal_is_no_warning_where_the_owner_warns)
{
	struct unit_op op = unit_op();
	struct fr_rail_attr attr;

	fabric = unit_fabric("net");
	attr = unit_rail_attr(fabric, 0, &owner);
	attr.owner_warns = true;
	ck_assert_int_eq(fr_rail_open(&attr, &rail), 0);
	fake_fi.post_ret = -ENETUNREACH;
	ck_assert_int_eq(write_one(false, &op), -ENETUNREACH);
	unit_assert_said(FR_LOG_INFO, "cannot post a write: Network");
	close_it();
	unit_assert_quiet();
}
END_TEST

START_TEST(our_own_limit_stops_a_provider_that_has_none)
{
	static struct unit_op op[512];
	unsigned cap, all;

	open_on("net", false);
	cap = fr_rail_quirks(rail)->tx_cap;
	ck_assert_uint_gt(cap, 0);
	for (unsigned i = 0; i < cap; i++) {
		op[i] = unit_op();
		ck_assert_int_eq(write_one(true, &op[i]), 0);
	}
	op[cap] = unit_op();
	ck_assert_int_eq(write_one(true, &op[cap]), -EAGAIN);
	/* Some room is left to messages, so that control goes on. */
	for (all = cap;; all++) {
		ck_assert_uint_lt(all, FR_ARRAY_LEN(op));
		op[all] = unit_op();
		if (fr_rail_send(rail, 1, buf, 1, NULL, &op[all].op) != 0) {
			break;
		}
	}
	ck_assert_uint_gt(all, cap);
	ck_assert_uint_eq(fake_fi.posts, all);
	fake_fi_complete(&op[0].op, FI_RMA | FI_WRITE, 0, 0);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_int_eq(write_one(true, &op[0]), -EAGAIN);
	ck_assert_int_eq(fr_rail_send(rail, 1, buf, 1, NULL, &op[0].op), 0);
	for (unsigned i = cap; i <= all; i++) {
		unsigned at = i == all ? 0 : i;

		fake_fi_complete(&op[at].op, FI_SEND | FI_MSG, 0, 0);
	}
	while (fr_rail_inflight(rail) >= cap) {
		ck_assert_int_gt(fr_rail_poll(rail), 0);
	}
	ck_assert_int_eq(write_one(true, &op[cap]), 0);
	close_it();
	unit_assert_quiet();
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("post");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, unit_fake_setup, NULL);
	tcase_add_loop_test(t, a_write_completes_at_the_level_asked_for, 0,
			    (int)FR_ARRAY_LEN(write_case));
	tcase_add_loop_test(t, an_empty_write_is_local_where_it_must_be, 0, 2);
	tcase_add_loop_test(t, a_message_completes_locally, 0, 2);
	tcase_add_test(t, a_read_is_posted_on_c_and_in_flight);
	tcase_add_test(t,
		       a_receive_buffer_takes_any_sender_and_is_not_in_flight);
	tcase_add_test(t, a_refused_connection_is_tried_again_on_sockets);
	tcase_add_test(t, again_is_counted_and_not_logged);
	tcase_add_test(t,
		       another_refusal_is_logged_once_with_the_providers_text);
	tcase_add_test(t, a_refusal_is_no_warning_where_the_owner_warns);
	tcase_add_test(t, our_own_limit_stops_a_provider_that_has_none);
	return unit_run(t, "fabric/post");
}
