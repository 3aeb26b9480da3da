/* Rails that fail under messages, which go on by the others: whole, once, and
 * never late. The rails in memory call each misuse a violation. */
#include "net/away.h"
#include "net/failover.h"
#include "unit/net/net_unit.h"
#include "wire/fence.h"

#define BIG (1u << 20)
#define MSGS 24u

static struct net_pair *pair;
static struct net_buf from, to;

static void setup(void)
{
	net_init();
	setenv("OFI_NCCL_FAILOVER", "1", 1);
	net_open();
}

static struct fr_link *link_of_send(void)
{
	return pair->send->link;
}

static void connected(void)
{
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, BIG, &from);
	net_buf_open(pair->recv, BIG, &to);
	net_expect("paths go on");
}

static bool all_up(void)
{
	return link_of_send()->up_cnt == link_of_send()->path_cnt;
}

static void comes_back(void)
{
	NET_UNTIL_IN_TIME(all_up());
	ck_assert_uint_ge(net_logged("is back after"), 1);
	ck_assert(fr_list_empty(&link_of_send()->away));
}

static void write_fails(unsigned nth, bool landed, unsigned cnt)
{
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_WRITE_DONE,
					      .err = -EIO,
					      .skip = nth,
					      .cnt = cnt,
					      .landed = landed});
}

/* A fence may have to wait for the one before. */
static void in_time(struct fr_req *send, struct fr_req *recv)
{
	NET_UNTIL_IN_TIME(
		(send->state == FR_REQ_DONE && recv->state == FR_REQ_DONE) ||
		link_of_send()->err != 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	ck_assert_int_eq(net_wait(send, NULL), 0);
}

/* While no path is UP there is no request. */
static struct fr_req *isend(const struct net_buf *buf, size_t bytes)
{
	struct fr_req *req = NULL;

	NET_UNTIL_IN_TIME(net_try_send(buf, bytes, &req) != 0 || req != NULL);
	ck_assert_ptr_nonnull(req);
	return req;
}

static void exchange(const struct net_buf *a, const struct net_buf *b,
		     size_t bytes, uint32_t seed)
{
	struct fr_req *recv = net_irecv(b, bytes);

	net_fill(a->mem, bytes, seed);
	in_time(isend(a, bytes), recv);
	ck_assert(net_is_filled(b->mem, bytes, seed));
}

/* The loop index: which stripe fails, and whether it had landed. */
START_TEST(a_message_outlives_an_error_of_its_stripe)
{
	connected();
	write_fails((unsigned)_i / 2, _i % 2 != 0, 1);
	net_exchange(&from, &to, BIG, 7);
	ck_assert_uint_eq(net_logged("is lost: fake"), 1);
	ck_assert_uint_eq(net_logged("is lost: the peer has given it up"), 1);
	comes_back();
	net_exchange(&from, &to, BIG, 8);
	ck_assert_int_eq(link_of_send()->err, 0);
}
END_TEST

/* Where all is closed on one side its endpoints may close too: an error then is
 * no rail's death, and nobody is warned. The loop index: who closes. */
START_TEST(an_error_when_all_is_closed_loses_no_rail)
{
	struct fr_link *link;

	connected();
	link = _i == 0 ? link_of_send() : pair->recv->link;
	ck_assert(fr_failover_is_possible(link));
	net_close_send(pair);
	net_settle();
	ck_assert(!fr_failover_is_possible(link));
	net_lock(link->set);
	fr_link_path_fail(link, 1, "gone");
	net_unlock(link->set);
	ck_assert_int_eq(link->err, -ECONNRESET);
	ck_assert_uint_eq(net_logged("is lost"), 0);
}
END_TEST

START_TEST(a_message_outlives_a_post_that_is_refused)
{
	connected();
	fr_fake_fail_at(FR_FAKE_WRITE, (unsigned)_i + 1, -ENETUNREACH);
	net_exchange(&from, &to, BIG, 7);
	ck_assert_uint_eq(net_logged("is lost: Network"), 1);
	comes_back();
	net_exchange(&from, &to, BIG, 8);
}
END_TEST

/* A write that waits when its rail is given up never lands, however late it
 * comes: the buffer is the host program's again. */
START_TEST(nothing_comes_late)
{
	const struct fr_name data =
		*fr_rail_name(net_b.set->rail[1], FR_EP_DATA);
	struct fr_req *send, *recv;
	size_t got = 0;

	connected();
	recv = net_irecv(&to, BIG);
	net_settle();
	fr_fake_hold(&data, true);
	net_fill(from.mem, BIG, 3);
	send = net_isend(&from, BIG);
	net_lock(net_a.set);
	ck_assert(fr_failover_lose(link_of_send(), 1, "the test says so"));
	net_unlock(net_a.set);
	ck_assert_int_eq(net_wait(recv, &got), 0);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_uint_eq(got, BIG);
	ck_assert(net_is_filled(to.mem, BIG, 3));
	memset(to.mem, 0x5a, BIG);
	fr_fake_hold(&data, false);
	comes_back();
	ck_assert(net_is_all(to.mem, BIG, 0x5a));
}
END_TEST

/* The rail is back, but the connection of its messages is not: a provider may
 * refuse a new one while the peer still has the old. */
START_TEST(messages_go_by_others_until_the_path_takes_them)
{
	struct fr_path *path;
	struct fr_req *send, *recv;
	struct fr_name data;

	connected();
	path = &link_of_send()->path[pair->send->ctrl_path];
	data = *fr_rail_name(net_b.set->rail[path->peer_rail], FR_EP_DATA);
	recv = net_irecv(&to, BIG);
	net_settle();
	fr_fake_hold(&data, true);
	net_fill(from.mem, BIG, 3);
	send = net_isend(&from, BIG);
	net_lock(net_a.set);
	ck_assert(fr_failover_lose(link_of_send(), pair->send->ctrl_path,
				   "the test says so"));
	net_unlock(net_a.set);
	fr_fake_kill(
		fr_rail_name(net_b.set->rail[path->peer_rail], FR_EP_CTRL));
	in_time(send, recv);
	comes_back();
	for (unsigned i = 0; i < 8; i++) {
		exchange(&from, &to, 100, i);
	}
	ck_assert(path->ctrl_stuck);
	ck_assert_int_eq(link_of_send()->err, 0);
}
END_TEST

/* What hangs on the rail that was given up still reads the buffer. */
START_TEST(a_write_that_hangs_is_ended_before_its_memory_goes)
{
	struct fr_req *send;

	connected();
	net_expect("endpoints fenced");
	net_expect("deregistered with a transfer under way");
	net_irecv(&to, BIG);
	net_settle();
	fr_fake_hold(fr_rail_name(net_b.set->rail[1], FR_EP_DATA), true);
	send = net_isend(&from, BIG);
	net_lock(net_a.set);
	ck_assert(fr_failover_lose(link_of_send(), 1, "it is silent"));
	net_unlock(net_a.set);
	ck_assert_int_eq(fr_net_dereg_mr(pair->send, from.mr), 0);
	from.mr = NULL;
	ck_assert_int_eq(net_a.set->dead, -ECONNRESET);
	memset(from.mem, 0, BIG);
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	net_forsake(&net_b);
}
END_TEST

/* Doubted without any cause, at every moment: nothing is lost or doubled. */
START_TEST(doubt_costs_a_repeat_and_no_more)
{
	struct fr_req *send, *recv;

	connected();
	for (unsigned step = 0; step < 40; step++) {
		size_t got = 0;

		NET_UNTIL_IN_TIME(all_up());
		recv = net_irecv(&to, BIG);
		net_fill(from.mem, BIG, step);
		send = isend(&from, BIG);
		for (unsigned n = 0; n < step; n++) {
			net_pass_of(n % 2 == 0 ? &net_a : &net_b);
		}
		net_lock(net_a.set);
		ck_assert(fr_failover_lose(link_of_send(), step % 2, "doubt"));
		net_unlock(net_a.set);
		NET_UNTIL_IN_TIME(recv->state == FR_REQ_DONE &&
				  send->state == FR_REQ_DONE);
		ck_assert_int_eq(net_wait(recv, &got), 0);
		ck_assert_int_eq(net_wait(send, NULL), 0);
		ck_assert_uint_eq(got, BIG);
		ck_assert(net_is_filled(to.mem, BIG, step));
	}
	ck_assert_uint_eq(net_dropped(&net_b), 0);
}
END_TEST

/* Who writes to the rail that is fenced for another is told, and goes on. */
START_TEST(a_third_party_outlives_the_fence)
{
	struct net_pair *third;
	struct net_buf third_from, third_to;
	struct fr_req *send, *recv;

	connected();
	net_side_open(&net_c);
	third = net_connect(&net_c, &net_b);
	net_buf_open(third->send, BIG, &third_from);
	net_buf_open(third->recv, BIG, &third_to);
	for (unsigned i = 0; i < 6; i++) {
		NET_UNTIL_IN_TIME(all_up());
		recv = net_irecv(&third_to, BIG);
		net_fill(third_from.mem, BIG, i);
		send = isend(&third_from, BIG);
		write_fails(i % 2, i % 3 == 0, 1);
		exchange(&from, &to, BIG, 7);
		in_time(send, recv);
		ck_assert(net_is_filled(third_to.mem, BIG, i));
	}
	ck_assert_int_eq(third->send->link->err, 0);
	ck_assert_int_eq(third->recv->link->err, 0);
}
END_TEST

/* Nothing was out there, so there is nothing to ask; the peer is told. */
START_TEST(both_ends_give_up_a_path_that_carried_nothing)
{
	struct fr_link *back;

	connected();
	back = pair->recv->link;
	net_lock(net_a.set);
	ck_assert(fr_failover_lose(link_of_send(), 1, "the test says so"));
	net_unlock(net_a.set);
	NET_UNTIL_IN_TIME(back->up_cnt != back->path_cnt);
	NET_UNTIL_IN_TIME(back->up_cnt == back->path_cnt);
	comes_back();
	ck_assert_uint_eq(net_logged("the peer has given it up"), 1);
	ck_assert_uint_eq(net_b.set->inc[1], 1);
	net_exchange(&from, &to, BIG, 8);
}
END_TEST

static void ask_again(uint32_t inc)
{
	struct fr_fence fence = {.type = FR_LINK_FENCE, .inc = inc};
	uint8_t buf[64];
	int bytes = fr_fence_encode(&fence, buf, sizeof(buf));

	ck_assert_int_gt(bytes, 0);
	net_say(link_of_send(), FR_LINK_FENCE, 0, buf, (size_t)bytes);
}

/* It has lost writes to a fence that another peer asked for. */
START_TEST(who_asks_of_an_old_fence_has_not_lost_the_rail)
{
	const struct fr_link *back;

	connected();
	back = pair->recv->link;
	ask_again(1);
	NET_UNTIL(net_b.set->inc[0] == 2);
	NET_UNTIL_IN_TIME(all_up() && back->up_cnt == back->path_cnt);
	ck_assert_uint_eq(net_logged("the peer has given it up"), 1);
	ask_again(1);
	net_settle();
	net_exchange(&from, &to, BIG, 8);
	ck_assert_uint_eq(net_logged("the peer has given it up"), 1);
	ask_again(2);
	NET_UNTIL_IN_TIME(net_b.set->inc[0] == 3);
	ck_assert_uint_eq(net_logged("the peer has given it up"), 2);
	NET_UNTIL_IN_TIME(all_up() && back->up_cnt == back->path_cnt);
}
END_TEST

/* A rail is fenced for one peer, and another peer has no other rail. */
START_TEST(a_link_of_one_path_outlives_the_fence_of_another)
{
	struct fr_fence fence = {.type = FR_LINK_FENCE, .inc = 1};
	struct net_pair *third;
	struct net_buf third_from, third_to;
	uint8_t buf[64];
	int bytes;

	setenv("OFI_NCCL_FORCE_NUM_RAILS", "1", 1);
	net_open();
	connected();
	net_side_open(&net_c);
	third = net_connect(&net_c, &net_b);
	net_buf_open(third->send, BIG, &third_from);
	net_buf_open(third->recv, BIG, &third_to);
	exchange(&third_from, &third_to, BIG, 1);
	bytes = fr_fence_encode(&fence, buf, sizeof(buf));
	ck_assert_int_gt(bytes, 0);
	net_say(link_of_send(), FR_LINK_FENCE, 0, buf, (size_t)bytes);
	NET_UNTIL(net_b.set->inc[0] == 2);
	exchange(&third_from, &third_to, BIG, 2);
	ck_assert_int_eq(third->send->link->err, 0);
	ck_assert_int_eq(third->recv->link->err, 0);
	exchange(&from, &to, BIG, 3);
}
END_TEST

/* The target refuses the write, but not what the paths are tried with. */
static void spoil_keys(void)
{
	struct fr_msgwin *win = &pair->send->tx.win;
	struct fr_tx_entry *entry = fr_msgwin_at(win, win->win.base);

	for (unsigned i = 0; i < FR_MAX_RAILS; i++) {
		entry->keys[i] ^= 0x55;
	}
}

/* No rail takes it: that is no matter of rails, and must not go on for ever. */
START_TEST(a_write_that_nobody_takes_ends_the_link)
{
	struct fr_req *send;

	connected();
	net_expect(_i == 0 ? "is lost: a write failed 4 times"
			   : "is lost: no rail has worked for 10 s");
	net_expect("endpoints fenced");
	net_irecv(&to, BIG);
	net_settle();
	if (_i == 0) {
		spoil_keys();
	} else {
		write_fails(0, false, FR_FAKE_FOREVER);
	}
	send = net_isend(&from, BIG);
	NET_UNTIL_IN_TIME(link_of_send()->err != 0);
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	fr_fake_fault_clear();
	net_forsake(&net_b);
}
END_TEST

/* Many messages, both ways, under errors that come by chance. */
START_TEST(messages_in_both_directions_outlive_many_errors)
{
	struct net_pair *back;
	struct net_buf back_from, back_to;

	connected();
	back = net_connect(&net_b, &net_a);
	net_buf_open(back->send, BIG, &back_from);
	net_buf_open(back->recv, BIG, &back_to);
	fr_fake_seed((uint32_t)_i + 1);
	for (unsigned i = 0; i < MSGS; i++) {
		size_t bytes = i % 3 == 0 ? 100 : BIG - 1000 * (size_t)i;

		for (unsigned landed = 0; landed < 2; landed++) {
			fr_fake_fault(&(struct fr_fake_fault){
				.call = FR_FAKE_WRITE_DONE,
				.err = -EIO,
				.cnt = 1,
				.percent = 30,
				.landed = landed != 0});
		}
		fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND_DONE,
						      .err = -EIO,
						      .cnt = 1,
						      .percent = 5});
		exchange(&from, &to, bytes, i);
		exchange(&back_from, &back_to, bytes, i + 100);
		fr_fake_fault_clear();
		NET_UNTIL_IN_TIME(all_up() &&
				  back->send->link->up_cnt ==
					  back->send->link->path_cnt);
	}
}
END_TEST

static void setup_one_rail(void)
{
	net_init();
	setenv("OFI_NCCL_FAILOVER", "1", 1);
}

int main(void)
{
	TCase *tc = net_case("failover", setup);
	TCase *one = net_case("one rail", setup_one_rail);

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, a_message_outlives_an_error_of_its_stripe, 0,
			    4);
	tcase_add_loop_test(tc, an_error_when_all_is_closed_loses_no_rail, 0,
			    2);
	tcase_add_loop_test(tc, a_message_outlives_a_post_that_is_refused, 0,
			    2);
	tcase_add_test(tc, nothing_comes_late);
	tcase_add_test(tc, messages_go_by_others_until_the_path_takes_them);
	tcase_add_test(tc, a_write_that_hangs_is_ended_before_its_memory_goes);
	tcase_add_test(tc, doubt_costs_a_repeat_and_no_more);
	tcase_add_test(tc, a_third_party_outlives_the_fence);
	tcase_add_test(tc, who_asks_of_an_old_fence_has_not_lost_the_rail);
	tcase_add_test(tc, both_ends_give_up_a_path_that_carried_nothing);
	tcase_add_loop_test(tc, a_write_that_nobody_takes_ends_the_link, 0, 2);
	tcase_add_loop_test(tc, messages_in_both_directions_outlive_many_errors,
			    0, 4);
	tcase_add_test(one, a_link_of_one_path_outlives_the_fence_of_another);
	return net_main("failover", (TCase *[]){tc, one}, 2);
}
