/* Clear-to-send: what the receiver tells, when, and what the sender believes.
 */
#include "net/link.h"
#include "net/xfer.h"
#include "unit/net/net_unit.h"

#define MAX_BYTES 40000u
#define LONG 9000u /* too long to go without a CTS */

static struct net_pair *pair, *sister;
static struct net_buf from, to;

static void connected(void)
{
	pair = net_connect(&net_a, &net_b);
	sister = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, MAX_BYTES, &from);
	net_buf_open(pair->recv, MAX_BYTES, &to);
	net_settle();
}

static struct fr_cts last_cts(void)
{
	const char *why = "";
	struct fr_cts cts;
	size_t bytes;
	const uint8_t *msg = net_last(FR_LINK_CTS, &bytes);

	ck_assert_uint_gt(bytes, FR_LINK_HDR_BYTES);
	ck_assert_msg(fr_cts_decode(&cts, msg + FR_LINK_HDR_BYTES,
				    bytes - FR_LINK_HDR_BYTES, &why) == 0,
		      "%s", why);
	return cts;
}

START_TEST(a_receive_is_told_with_all_that_a_write_needs)
{
	void *data = to.mem + 100;
	size_t bytes = LONG;
	int tag = 7;
	struct fr_req *req;
	struct fr_cts cts;

	connected();
	data = to.mem + 100;
	ck_assert_int_eq(
		fr_net_irecv(pair->recv, 1, &data, &bytes, &tag, &to.mr, &req),
		0);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CTS], 1);
	cts = last_cts();
	ck_assert_uint_eq(cts.comm, pair->send->id);
	ck_assert_uint_eq(cts.nonce, pair->send->nonce);
	ck_assert_uint_eq(cts.prev32, 0);
	ck_assert_uint_eq(cts.first32, 0);
	ck_assert_uint_eq(cts.entry_cnt, 1);
	ck_assert_uint_eq(cts.key_cnt, 2);
	ck_assert_int_eq(cts.entries[0].tag, 7);
	ck_assert_uint_eq(cts.entries[0].group, 1);
	ck_assert_uint_eq(cts.entries[0].len, LONG);
	ck_assert_uint_eq(cts.entries[0].addr,
			  fr_mr_remote_addr(to.mr->mr, data));
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(cts.entries[0].keys[i],
				  fr_mr_key(to.mr->mr, i));
	}
	net_wait(net_isend(&from, 5), NULL);
	ck_assert_int_eq(net_wait(req, NULL), 0);
}
END_TEST

START_TEST(short_receives_are_told_by_the_half_window)
{
	struct fr_req *req[32];
	struct fr_cts cts;

	connected();
	for (unsigned i = 0; i < 31; i++) {
		req[i] = net_irecv(&to, 100);
	}
	net_settle();
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CTS], 0);
	req[31] = net_irecv(&to, 100);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CTS], 1);
	cts = last_cts();
	ck_assert_uint_eq(cts.prev32, 0);
	ck_assert_uint_eq(cts.first32, 32);
	ck_assert_uint_eq(cts.entry_cnt, 0);
	NET_UNTIL(pair->send->tx.known == 32);
	for (unsigned i = 0; i < 32; i++) {
		ck_assert_int_eq(net_wait(net_isend(&from, 50), NULL), 0);
		ck_assert_int_eq(net_wait(req[i], NULL), 0);
	}
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CTS], 1);
	ck_assert_uint_eq(net_wire.writes, 0);
}
END_TEST

START_TEST(receives_that_had_to_wait_share_a_cts)
{
	struct fr_req *req[40];

	connected();
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .owner = net_b.set});
	for (unsigned i = 0; i < 40; i++) {
		req[i] = net_irecv(&to, LONG);
	}
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CTS], 0);
	fr_fake_fault_clear();
	NET_UNTIL(pair->send->tx.known == 40);
	/* The first had its message already; 39 more at 16 each. */
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CTS], 4);
	for (unsigned i = 0; i < 40; i++) {
		ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
		ck_assert_int_eq(net_wait(req[i], NULL), 0);
	}
}
END_TEST

/* An early message fills a receive whose CTS waits; its memory is taken back
 * then, and the CTS names none. */
START_TEST(a_receive_that_is_full_is_told_without_its_memory)
{
	struct fr_req *recv[2], *send[2];
	struct net_buf gone;
	struct fr_cts cts;

	connected();
	net_buf_open(pair->recv, LONG, &gone);
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .owner = net_b.set});
	recv[0] = net_irecv(&to, LONG);
	recv[1] = net_irecv(&gone, LONG);
	for (unsigned i = 0; i < 2; i++) {
		send[i] = net_isend(&from, 100);
		ck_assert_int_eq(net_wait(recv[i], NULL), 0);
	}
	ck_assert_uint_eq(pair->send->tx.known, 0);
	net_buf_close(&gone);
	fr_fake_fault_clear();
	NET_UNTIL(pair->send->tx.known == 2);
	cts = last_cts();
	ck_assert_uint_eq(cts.entry_cnt, 1);
	ck_assert_uint_eq(cts.entries[0].len, LONG);
	ck_assert_uint_eq(cts.entries[0].addr, 0);
	ck_assert_uint_eq(cts.entries[0].keys[0], 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(net_wait(send[i], NULL), 0);
	}
	net_exchange(&from, &to, LONG, 3);
}
END_TEST

START_TEST(a_cts_without_memory_goes_later)
{
	struct fr_req *req;
	struct fr_freelist *slots = net_b.set->small_slots;
	void *taken[4096];
	unsigned cnt = 0;

	connected();
	/* An empty pool, so that the next slot needs memory. */
	net_lock(net_b.set);
	do {
		fr_fault_alloc_at(1);
		taken[cnt] = fr_freelist_get(slots);
		fr_fault_alloc_at(0);
	} while (taken[cnt] != NULL && ++cnt < FR_ARRAY_LEN(taken));
	net_unlock(net_b.set);
	ck_assert_uint_lt(cnt, FR_ARRAY_LEN(taken));
	req = net_irecv(&to, LONG);
	fr_fault_alloc_at(1);
	net_pass_of(&net_b);
	fr_fault_alloc_at(0);
	net_lock(net_b.set);
	while (cnt > 0) {
		fr_freelist_put(slots, taken[--cnt]);
	}
	net_unlock(net_b.set);
	ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
	ck_assert_int_eq(net_wait(req, NULL), 0);
}
END_TEST

/* A sender that waits asks for what it may have missed. */
START_TEST(a_long_send_to_a_short_receive_is_asked_for)
{
	struct fr_req *recv, *send = NULL;
	int ret = 0;

	connected();
	recv = net_irecv(&to, 1000);
	net_settle();
	net_expect("receive only");
	for (unsigned i = 0; i < 2 && ret == 0; i++) {
		ck_assert_uint_eq(net_wire.seen[FR_LINK_WANT], 0);
		ret = net_try_send(&from, LONG, &send);
		ck_assert_ptr_null(send);
		net_tick(1);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_WANT], 1);
	net_settle();
	ck_assert_int_eq(net_try_send(&from, LONG, &send), -EMSGSIZE);
	ck_assert_int_eq(net_wait(recv, NULL), -EMSGSIZE);
}
END_TEST

START_TEST(a_send_with_no_receive_asks_seldom_and_goes_when_there_is_one)
{
	struct fr_req *recv, *send = NULL;

	connected();
	for (unsigned i = 0; i < 50; i++) {
		ck_assert_int_eq(net_try_send(&from, LONG, &send), 0);
		ck_assert_ptr_null(send);
		net_tick(1);
	}
	ck_assert_uint_ge(net_wire.seen[FR_LINK_WANT], 4);
	ck_assert_uint_le(net_wire.seen[FR_LINK_WANT], 7);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CTS], 0);
	recv = net_irecv(&to, LONG);
	ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	net_settle();
	net_tick(30);
	ck_assert_uint_le(net_wire.seen[FR_LINK_WANT], 8);
}
END_TEST

/* The asked one may be full of the sender's own early message. */
START_TEST(a_want_for_a_complete_receive_is_answered)
{
	struct fr_req *early, *recv[2], *send = NULL;

	connected();
	early = net_isend(&from, 60);
	ck_assert_int_eq(net_wait(early, NULL), 0);
	recv[0] = net_irecv(&to, 100);
	ck_assert_int_eq(net_wait(recv[0], NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(net_try_send(&from, LONG, &send), 0);
		ck_assert_ptr_null(send);
		net_tick(1);
	}
	ck_assert_uint_ge(net_wire.seen[FR_LINK_WANT], 1);
	recv[1] = net_irecv(&to, LONG);
	ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
	ck_assert_int_eq(net_wait(recv[1], NULL), 0);
	net_exchange(&from, &to, 77, 1);
	net_exchange(&from, &to, LONG, 2);
}
END_TEST

static struct fr_req *send_tagged(size_t bytes, int tag)
{
	struct fr_req *req = NULL;

	ck_assert_int_eq(
		fr_net_isend(pair->send, from.mem, bytes, tag, from.mr, &req),
		0);
	return req;
}

static struct fr_req *group_of_three(void)
{
	void *data[3] = {to.mem, to.mem + 10000, to.mem + 20000};
	struct fr_net_mr *mrs[3] = {to.mr, to.mr, to.mr};
	size_t bytes[3] = {LONG, LONG, LONG};
	int tags[3] = {0, 1, 2};
	struct fr_req *req = NULL;

	ck_assert_int_eq(
		fr_net_irecv(pair->recv, 3, data, bytes, tags, mrs, &req), 0);
	ck_assert_ptr_nonnull(req);
	return req;
}

/* Two early messages fill the first and the last of a group whose CTS is lost;
 * the sender asks for the middle one. */
START_TEST(a_want_leaves_early_messages_to_their_tags)
{
	struct fr_req *first, *second, *send;
	size_t sizes[3];

	connected();
	ck_assert_int_eq(net_wait(send_tagged(22, 2), NULL), 0);
	ck_assert_int_eq(net_wait(send_tagged(20, 0), NULL), 0);
	net_settle();
	net_wire.lose[FR_LINK_CTS] = 1;
	first = group_of_three();
	for (send = NULL; send == NULL; net_tick(1)) {
		ck_assert_uint_le(net_wire.seen[FR_LINK_WANT], 2);
		send = send_tagged(LONG, 1);
	}
	ck_assert_uint_ge(net_wire.seen[FR_LINK_WANT], 1);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	second = group_of_three();
	net_settle_in_time();
	for (int tag = 2; tag >= 0; tag--) {
		send = send_tagged(100 + (size_t)tag, tag);
		ck_assert_ptr_nonnull(send);
		ck_assert_int_eq(net_wait(send, NULL), 0);
	}
	ck_assert_int_eq(net_wait(first, sizes), 0);
	ck_assert_uint_eq(sizes[0], 20);
	ck_assert_uint_eq(sizes[1], LONG);
	ck_assert_uint_eq(sizes[2], 22);
	ck_assert_int_eq(net_wait(second, sizes), 0);
	ck_assert_uint_eq(sizes[0], 100);
	ck_assert_uint_eq(sizes[1], 101);
	ck_assert_uint_eq(sizes[2], 102);
}
END_TEST

/* -- strange ones -- */

static struct fr_cts right_cts(uint32_t first)
{
	struct fr_cts cts = {
		.comm = pair->send->id,
		.nonce = pair->send->nonce,
		.prev32 = first,
		.first32 = first,
		.entry_cnt = 1,
		.key_cnt = 2,
		.entries[0] = {.group = 1, .len = LONG},
	};

	return cts;
}

static void say_cts(const struct fr_cts *cts)
{
	uint8_t buf[2000];
	int len = fr_cts_encode(cts, buf, sizeof(buf));

	ck_assert_int_gt(len, 0);
	net_say(pair->recv->link, FR_LINK_CTS, 0, buf, (size_t)len);
	NET_UNTIL_IN_TIME(net_is_quiet() || pair->send->link->err != 0);
}

static void assert_ended(void)
{
	struct fr_req *req;

	net_pass();
	ck_assert_int_eq(net_try_send(&from, 4, &req), -EPROTO);
	ck_assert_int_eq(pair->send->link->err, -EPROTO);
	net_forsake(&net_b);
}

START_TEST(a_cts_for_a_foreign_comm_is_ignored)
{
	struct fr_cts cts;
	struct net_pair *back = net_connect(&net_b, &net_a);

	connected();
	cts = right_cts(0);
	cts.comm = 1000;
	say_cts(&cts);
	cts = right_cts(0);
	cts.nonce++;
	say_cts(&cts);
	cts = right_cts(0);
	cts.comm = back->recv->id; /* receives there itself */
	cts.nonce = back->recv->nonce;
	say_cts(&cts);
	ck_assert_uint_eq(pair->send->tx.known, 0);
	net_assert_works(pair);
	net_assert_works(sister);
	net_assert_works(back);
}
END_TEST

/* The loop index: what is wrong with it. */
START_TEST(a_cts_that_cannot_be_ends_its_link_and_no_other)
{
	struct net_pair *other;
	struct fr_cts cts;

	connected();
	net_side_open(&net_c);
	other = net_connect(&net_a, &net_c);
	net_expect("is lost: it sent a CTS: its receives or keys cannot be");
	cts = right_cts(0);
	switch (_i) {
	case 0:
		cts.key_cnt = 3;
		break;
	case 1:
		cts.prev32 = cts.first32 + 1;
		break;
	case 2:
		cts.first32 = FR_MSGWIN_MAX;
		cts.prev32 = FR_MSGWIN_MAX;
		break;
	default:
		cts.first32 = FR_MSGWIN_MAX + 1;
		break;
	}
	say_cts(&cts);
	assert_ended();
	net_assert_works(other);
}
END_TEST

START_TEST(a_cts_that_is_no_cts_ends_its_link)
{
	connected();
	net_expect("is lost: it sent a bad CTS");
	net_say(pair->recv->link, FR_LINK_CTS, 0, "\1\2\3\4\5", 5);
	assert_ended();
}
END_TEST

START_TEST(what_was_told_once_stays_as_it_was)
{
	struct fr_req *recv, *send;
	struct fr_cts cts;

	connected();
	recv = net_irecv(&to, LONG);
	NET_UNTIL(pair->send->tx.known == 1);
	cts = right_cts(0);
	cts.entries[0].addr = 0x123456;
	cts.entries[0].len = 3;
	say_cts(&cts);
	send = net_isend(&from, LONG);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	say_cts(&cts); /* of a receive that has gone */
	ck_assert_uint_eq(pair->send->tx.open_cnt, 0);
	net_exchange(&from, &to, LONG, 3);
}
END_TEST

START_TEST(receives_told_out_of_order_are_used_in_order)
{
	struct fr_req *recv[2];
	struct fr_cts cts;

	connected();
	recv[0] = net_irecv(&to, LONG);
	cts = right_cts(1);
	say_cts(&cts);
	recv[1] = net_irecv(&to, LONG);
	for (unsigned i = 0; i < 2; i++) {
		net_fill(from.mem, LONG, i);
		/* The false one first: it names no memory. */
		if (i == 1) {
			break;
		}
		ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
		ck_assert_int_eq(net_wait(recv[i], NULL), 0);
		ck_assert(net_is_filled(to.mem, LONG, i));
	}
	net_expect("is lost");
	net_expect("endpoints fenced");
	ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), -ECONNRESET);
	ck_assert_uint_eq(net_counts().refused, 1);
	net_forsake(&net_b);
}
END_TEST

START_TEST(a_sender_without_memory_for_receives_gives_up_its_link)
{
	struct fr_req *req, *recv;

	connected();
	net_expect("out of memory for its receives");
	recv = net_irecv(&to, LONG);
	fr_fault_alloc_at(1);
	net_pass_of(&net_a);
	fr_fault_alloc_at(0);
	ck_assert_int_eq(net_try_send(&from, LONG, &req), -ECONNRESET);
	net_forsake(&net_b);
	net_expect("is lost");
	ck_assert_int_eq(net_wait(recv, NULL), -ECONNRESET);
	net_expect("endpoints fenced");
}
END_TEST

START_TEST(a_want_for_a_foreign_comm_or_receive_is_ignored)
{
	struct fr_link_note want;

	connected();
	want = (struct fr_link_note){.comm = pair->recv->id,
				     .nonce = pair->recv->nonce + 1};
	net_say_note(pair->send->link, FR_LINK_WANT, &want);
	want.nonce--;
	want.seq = 5;
	net_say_note(pair->send->link, FR_LINK_WANT, &want);
	want.seq = UINT32_MAX - 1000;
	net_say_note(pair->send->link, FR_LINK_WANT, &want);
	net_settle();
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CTS], 0);
	net_assert_works(pair);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("cts", net_setup);

	tcase_add_test(tc, a_receive_is_told_with_all_that_a_write_needs);
	tcase_add_test(tc, short_receives_are_told_by_the_half_window);
	tcase_add_test(tc, receives_that_had_to_wait_share_a_cts);
	tcase_add_test(tc, a_receive_that_is_full_is_told_without_its_memory);
	tcase_add_test(tc, a_cts_without_memory_goes_later);
	tcase_add_test(tc, a_long_send_to_a_short_receive_is_asked_for);
	tcase_add_test(
		tc,
		a_send_with_no_receive_asks_seldom_and_goes_when_there_is_one);
	tcase_add_test(tc, a_want_for_a_complete_receive_is_answered);
	tcase_add_test(tc, a_want_leaves_early_messages_to_their_tags);
	tcase_add_test(tc, a_cts_for_a_foreign_comm_is_ignored);
	tcase_add_loop_test(tc, a_cts_that_cannot_be_ends_its_link_and_no_other,
			    0, 4);
	tcase_add_test(tc, a_cts_that_is_no_cts_ends_its_link);
	tcase_add_test(tc, what_was_told_once_stays_as_it_was);
	tcase_add_test(tc, receives_told_out_of_order_are_used_in_order);
	tcase_add_test(tc,
		       a_sender_without_memory_for_receives_gives_up_its_link);
	tcase_add_test(tc, a_want_for_a_foreign_comm_or_receive_is_ignored);
	return net_main("cts", &tc, 1);
}
