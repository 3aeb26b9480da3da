/* Connect responses and refusals on their way out. */
#include "net/link.h"
#include "unit/net/net_unit.h"

static struct fr_rail *rail;
static uint64_t addr;
static struct fr_reply *reply;

static void setup(void)
{
	net_setup();
	rail = net_b.set->rail[0];
	ck_assert_int_eq(
		fr_rail_peer_add(rail,
				 fr_rail_name(net_a.set->rail[0], FR_EP_CTRL),
				 &addr),
		0);
	reply = NET_UNTOUCHED;
}

/* To side a, that waits for nothing. The reply takes the address. */
static int create(struct fr_reply **out)
{
	struct fr_conn_msg msg = net_conn_msg(&net_b, FR_CONN_RESPONSE, 1, 2);
	int ret;

	msg.status = ECONNREFUSED;
	net_lock(net_b.set);
	ret = fr_reply_create(net_b.set, rail, addr, NULL, &msg, out);
	net_unlock(net_b.set);
	return ret;
}

static void disown(void)
{
	net_lock(net_b.set);
	fr_reply_disown(reply);
	net_unlock(net_b.set);
}

static unsigned responses(void)
{
	return net_wire.seen[NET_RESPONSE_TYPE];
}

START_TEST(a_reply_that_nobody_waits_for_ends_by_itself)
{
	size_t base = 0;

	for (unsigned i = 1; i < 4; i++) {
		ck_assert_int_eq(create(NULL), 0);
		net_settle();
		ck_assert_uint_eq(responses(), i);
		ck_assert(fr_list_empty(&net_b.set->replies));
		ck_assert(i == 1 || fr_live_allocs() == base);
		base = fr_live_allocs();
		ck_assert_int_eq(
			fr_rail_peer_add(
				rail,
				fr_rail_name(net_a.set->rail[0], FR_EP_CTRL),
				&addr),
			0);
	}
}
END_TEST

START_TEST(a_reply_tells_its_owner_that_it_is_out)
{
	ck_assert_int_eq(create(&reply), 0);
	ck_assert(!reply->sent);
	net_settle();
	ck_assert(reply->sent);
	ck_assert_int_eq(reply->err, 0);
	ck_assert(fr_list_empty(&net_b.set->replies));
	disown();
	net_lock(net_b.set);
	fr_reply_disown(NULL);
	net_unlock(net_b.set);
}
END_TEST

START_TEST(a_reply_that_is_disowned_goes_out_all_the_same)
{
	ck_assert_int_eq(create(&reply), 0);
	disown();
	ck_assert(!fr_list_empty(&net_b.set->replies));
	net_settle();
	ck_assert_uint_eq(responses(), 1);
}
END_TEST

START_TEST(a_reply_waits_for_its_rail)
{
	ck_assert_int_eq(create(&reply), 0);
	fr_fake_again(FR_FAKE_SEND, 5);
	for (unsigned i = 0; i < 400 && !reply->sent; i++) {
		net_tick(1);
	}
	ck_assert(reply->sent);
	ck_assert_int_eq(reply->err, 0);
	ck_assert_uint_eq(responses(), 1);
	disown();
}
END_TEST

START_TEST(a_reply_that_a_rail_refuses_has_failed)
{
	ck_assert_int_eq(create(&reply), 0);
	fr_fake_fail_at(FR_FAKE_SEND, 1, -EHOSTUNREACH);
	net_pass_of(&net_b);
	ck_assert(reply->sent);
	ck_assert_int_eq(reply->err, -EHOSTUNREACH);
	disown();
}
END_TEST

START_TEST(an_error_completion_is_one_more_try)
{
	ck_assert_int_eq(create(&reply), 0);
	fr_fake_fail_at(FR_FAKE_SEND_DONE, 1, -EIO);
	net_pass_of(&net_b);
	net_pass_of(&net_b);
	for (unsigned i = 0; i < 50 && !reply->sent; i++) {
		net_tick(1);
	}
	ck_assert(reply->sent);
	ck_assert_int_eq(reply->err, 0);
	disown();
}
END_TEST

/* The loop index: whether somebody waits for it. */
START_TEST(a_reply_that_cannot_go_is_given_up)
{
	fr_fake_fault(&(struct fr_fake_fault){
		.call = FR_FAKE_SEND, .err = -EAGAIN, .cnt = FR_FAKE_FOREVER});
	ck_assert_int_eq(create(_i == 0 ? NULL : &reply), 0);
	if (_i == 1) {
		net_tick(100);
		ck_assert(!reply->sent);
		net_tick(250);
		ck_assert(reply->sent);
		ck_assert_int_eq(reply->err, -ETIMEDOUT);
		disown();
	} else {
		net_tick(40);
	}
	ck_assert(fr_list_empty(&net_b.set->replies));
	ck_assert_uint_eq(responses(), 0);
}
END_TEST

START_TEST(a_reply_without_memory_leaves_the_address)
{
	size_t base = fr_live_allocs();
	unsigned failed = 0;
	int ret = -ENOMEM;

	for (unsigned nth = 1; ret != 0; nth++) {
		ck_assert_uint_lt(nth, NET_FAULTS);
		fr_fault_alloc_at(nth);
		ret = create(&reply);
		fr_fault_alloc_at(0);
		if (ret != 0) {
			ck_assert_int_eq(ret, -ENOMEM);
			ck_assert_ptr_eq(reply, NET_UNTOUCHED);
			ck_assert_uint_eq(fr_live_allocs(), base);
			failed++;
		}
	}
	ck_assert_uint_ge(failed, 2);
	net_settle();
	disown(); /* removes the address, once: the fake would see twice */
}
END_TEST

START_TEST(what_cannot_be_said_is_no_reply)
{
	struct fr_conn_msg msg = net_conn_msg(&net_b, FR_CONN_RESPONSE, 1, 2);
	int ret;

	msg.comm = UINT32_MAX;
	net_lock(net_b.set);
	ret = fr_reply_create(net_b.set, rail, addr, NULL, &msg, &reply);
	net_unlock(net_b.set);
	ck_assert_int_eq(ret, -EINVAL);
	ck_assert_ptr_eq(reply, NET_UNTOUCHED);
	ck_assert(fr_list_empty(&net_b.set->replies));
}
END_TEST

START_TEST(replies_under_way_end_with_their_set)
{
	fr_fake_fault(&(struct fr_fake_fault){
		.call = FR_FAKE_SEND, .err = -EAGAIN, .cnt = FR_FAKE_FOREVER});
	ck_assert_int_eq(create(NULL), 0);
	net_side_close(&net_b);
	ck_assert_uint_eq(fr_fake_rail_cnt(), 2);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("reply", setup);

	tcase_add_test(tc, a_reply_that_nobody_waits_for_ends_by_itself);
	tcase_add_test(tc, a_reply_tells_its_owner_that_it_is_out);
	tcase_add_test(tc, a_reply_that_is_disowned_goes_out_all_the_same);
	tcase_add_test(tc, a_reply_waits_for_its_rail);
	tcase_add_test(tc, a_reply_that_a_rail_refuses_has_failed);
	tcase_add_test(tc, an_error_completion_is_one_more_try);
	tcase_add_loop_test(tc, a_reply_that_cannot_go_is_given_up, 0, 2);
	tcase_add_test(tc, a_reply_without_memory_leaves_the_address);
	tcase_add_test(tc, what_cannot_be_said_is_no_reply);
	tcase_add_test(tc, replies_under_way_end_with_their_set);
	return net_main("reply", &tc, 1);
}
