/* Receives: groups, what ends them, and writes that nobody asked for. */
#include "net/xfer.h"
#include "unit/net/net_unit.h"
#include "wire/imm.h"

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
}

/* -- groups -- */

#define PART 4096u

/* @cnt receives of @bytes each, tags counting up from @tag. */
static struct fr_req *group_post(unsigned cnt, size_t bytes, int tag)
{
	void *data[FR_NET_MAX_GROUP];
	size_t lens[FR_NET_MAX_GROUP];
	int tags[FR_NET_MAX_GROUP];
	struct fr_net_mr *mrs[FR_NET_MAX_GROUP];
	struct fr_req *req = NULL;

	for (unsigned i = 0; i < cnt; i++) {
		data[i] = to.mem + i * PART;
		lens[i] = bytes;
		tags[i] = tag + (int)i;
		mrs[i] = to.mr;
	}
	ck_assert_int_eq(
		fr_net_irecv(pair->recv, cnt, data, lens, tags, mrs, &req), 0);
	return req;
}

/* The first group goes over the end of the numbers. */
static void late(void)
{
	net_init();
	setenv("OFI_NCCL_TEST_FIRST_SEQ", "4294967293", 1);
	net_open();
}

static struct fr_req *tagged_send(size_t bytes, int tag)
{
	struct fr_req *req = NULL;

	net_fill(from.mem + tag * (int)PART, bytes, (uint32_t)tag);
	for (unsigned i = 0; req == NULL; i++) {
		ck_assert_uint_lt(i, NET_STEPS);
		ck_assert_int_eq(fr_net_isend(pair->send,
					      from.mem + tag * (int)PART, bytes,
					      tag, from.mr, &req),
				 0);
		net_pass();
	}
	return req;
}

/* The loop index: 0: short, receive first; 1: short, receive last; 2: long. */
START_TEST(a_group_gives_each_message_the_receive_of_its_tag)
{
	static const int order[FR_NET_MAX_GROUP] = {5, 0, 7, 2, 1, 6, 4, 3};
	struct fr_req *send[FR_NET_MAX_GROUP], *group = NULL;
	size_t sizes[FR_NET_MAX_GROUP] = {0};
	size_t base = _i == 2 ? 3000 : 100;

	connected();
	if (_i != 1) {
		group = group_post(8, PART, 0);
		net_settle();
	}
	for (unsigned i = 0; i < 8; i++) {
		send[i] = tagged_send(base + (size_t)order[i], order[i]);
		if (group != NULL && i < 7) {
			net_assert_pending(group);
		}
	}
	group = group != NULL ? group : group_post(8, PART, 0);
	ck_assert_int_eq(net_wait(group, sizes), 0);
	for (unsigned i = 0; i < 8; i++) {
		ck_assert_int_eq(net_wait(send[i], NULL), 0);
		ck_assert_uint_eq(sizes[i], base + i);
		ck_assert(net_is_filled(to.mem + i * PART, base + i, i));
	}
}
END_TEST

START_TEST(the_oldest_group_is_filled_first)
{
	struct fr_req *first, *second, *send;
	size_t sizes[2];

	connected();
	first = group_post(2, PART, 0);
	second = group_post(2, PART, 0);
	net_settle();
	send = tagged_send(10, 1);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	send = tagged_send(20, 1);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	net_assert_pending(first);
	net_assert_pending(second);
	send = tagged_send(30, 0);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(first, sizes), 0);
	ck_assert_uint_eq(sizes[0], 30);
	ck_assert_uint_eq(sizes[1], 10);
	net_assert_pending(second);
	send = tagged_send(40, 0);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(second, sizes), 0);
	ck_assert_uint_eq(sizes[0], 40);
	ck_assert_uint_eq(sizes[1], 20);
}
END_TEST

START_TEST(a_younger_group_can_be_filled_first)
{
	struct fr_req *first, *second;
	size_t sizes[2];

	connected();
	first = group_post(2, PART, 0);
	second = group_post(2, PART, 2);
	net_settle();
	ck_assert_int_eq(net_wait(tagged_send(30, 3), NULL), 0);
	net_assert_pending(second);
	ck_assert_int_eq(net_wait(tagged_send(20, 2), NULL), 0);
	ck_assert_int_eq(net_wait(second, sizes), 0);
	ck_assert_uint_eq(sizes[0], 20);
	ck_assert_uint_eq(sizes[1], 30);
	net_assert_pending(first);
	ck_assert_int_eq(net_wait(tagged_send(11, 1), NULL), 0);
	ck_assert_int_eq(net_wait(tagged_send(10, 0), NULL), 0);
	ck_assert_int_eq(net_wait(first, sizes), 0);
	ck_assert_uint_eq(sizes[0], 10);
	ck_assert_uint_eq(sizes[1], 11);
}
END_TEST

START_TEST(a_message_that_is_too_long_for_its_tag_fails_the_group)
{
	struct fr_req *group, *req;

	connected();
	group = group_post(2, 64, 0);
	net_settle();
	net_expect("receive only");
	ck_assert_int_eq(
		fr_net_isend(pair->send, from.mem, 65, 1, from.mr, &req),
		-EMSGSIZE);
	net_settle();
	ck_assert_int_eq(net_wait(group, NULL), -EMSGSIZE);
	ck_assert_uint_eq(pair->recv->req_cnt, 0);
}
END_TEST

START_TEST(the_window_of_receives_has_an_end)
{
	struct fr_req *group[FR_MSGWIN_MAX / 8], *send;

	connected();
	for (unsigned i = 0; i < FR_ARRAY_LEN(group); i++) {
		group[i] = group_post(8, PART, 0);
		ck_assert_ptr_nonnull(group[i]);
	}
	ck_assert_ptr_null(group_post(8, PART, 0));
	ck_assert_ptr_null(group_post(1, PART, 0));
	for (unsigned i = 0; i < FR_ARRAY_LEN(group); i++) {
		for (int tag = 7; tag >= 0; tag--) {
			send = tagged_send(100, tag);
			ck_assert_int_eq(net_wait(send, NULL), 0);
		}
		ck_assert_int_eq(net_wait(group[i], NULL), 0);
	}
	ck_assert_ptr_nonnull(group_post(1, PART, 0));
	net_expect("endpoints fenced"); /* it is still open at the end */
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
	void *data[9] = {NULL};
	size_t bytes[9] = {1};
	int tags[9] = {0};
	struct fr_net_mr *mrs[9];
	struct fr_req *req = (struct fr_req *)0x1;

	connected();
	data[0] = to.mem;
	mrs[0] = to.mr;
#define TRY(comm, cnt)                                                         \
	ck_assert_int_eq(                                                      \
		fr_net_irecv(comm, cnt, data, bytes, tags, mrs, &req),         \
		-EINVAL);                                                      \
	ck_assert_ptr_null(req)
	TRY(NULL, 1);
	TRY(pair->send, 1);
	TRY(pair->recv, 0);
	TRY(pair->recv, 9);
	TRY(sister->recv, 1); /* registered on another comm */
	bytes[0] = MAX_BYTES + 1;
	TRY(pair->recv, 1);
	bytes[0] = 1;
	data[0] = NULL;
	TRY(pair->recv, 1);
	data[0] = to.mem;
	mrs[0] = NULL;
	TRY(pair->recv, 1);
#undef TRY
	ck_assert_uint_eq(pair->recv->req_cnt, 0);
}
END_TEST

START_TEST(a_set_that_is_busy_means_try_again)
{
	struct fr_req *req = (struct fr_req *)0x1;

	connected();
	net_lock(net_b.set);
	ck_assert_int_eq(net_try_recv(&to, 8, &req), 0);
	ck_assert_ptr_null(req);
	net_unlock(net_b.set);
	net_exchange(&from, &to, 8, 2);
}
END_TEST

START_TEST(a_receive_without_memory_can_be_tried_again)
{
	unsigned failed = 0;

	connected();
	for (unsigned kind = 0; kind < 2; kind++) {
		size_t bytes = kind == 0 ? 100 : LONG;
		struct fr_req *recv = NULL, *send;
		int ret = -ENOMEM;

		for (unsigned nth = 1; ret != 0; nth++) {
			ck_assert_uint_lt(nth, NET_FAULTS);
			recv = (struct fr_req *)0x1;
			fr_fault_alloc_at(nth);
			ret = net_try_recv(&to, bytes, &recv);
			fr_fault_alloc_at(0);
			if (ret != 0) {
				ck_assert_int_eq(ret, -ENOMEM);
				ck_assert_ptr_null(recv);
				ck_assert_uint_eq(pair->recv->req_cnt, 0);
				failed++;
			}
		}
		send = net_isend(&from, bytes);
		ck_assert_int_eq(net_wait(recv, NULL), 0);
		ck_assert_int_eq(net_wait(send, NULL), 0);
	}
	ck_assert_uint_ge(failed, 2);
}
END_TEST

/* -- the end of the peer -- */

START_TEST(what_was_sent_before_a_close_can_be_read_after_it)
{
	struct fr_req *send, *recv;
	size_t got;

	connected();
	for (unsigned i = 0; i < 3; i++) {
		net_fill(from.mem, 100 + i, i);
		send = net_isend(&from, 100 + i);
		ck_assert_int_eq(net_wait(send, NULL), 0);
	}
	net_close_send(pair);
	NET_UNTIL(pair->recv->peer_closed);
	for (unsigned i = 0; i < 3; i++) {
		recv = net_irecv(&to, 200);
		ck_assert_int_eq(net_wait(recv, &got), 0);
		ck_assert_uint_eq(got, 100 + i);
		ck_assert(net_is_filled(to.mem, got, i));
	}
	ck_assert_int_eq(net_try_recv(&to, 200, &recv), -ECONNRESET);
	ck_assert_int_eq(net_try_recv(&to, 200, &recv), -ECONNRESET);
}
END_TEST

START_TEST(receives_that_nothing_can_fill_fail_at_the_close)
{
	struct fr_req *recv[3], *send;

	connected();
	for (unsigned i = 0; i < 3; i++) {
		recv[i] = net_irecv(&to, LONG);
	}
	send = net_isend(&from, LONG);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	net_close_send(pair);
	ck_assert_int_eq(net_wait(recv[0], NULL), 0);
	ck_assert_int_eq(net_wait(recv[1], NULL), -ECONNRESET);
	ck_assert_int_eq(net_wait(recv[2], NULL), -ECONNRESET);
	net_assert_works(sister);
}
END_TEST

/* The close goes on one rail, the message on the other, held back. */
START_TEST(a_close_that_overtakes_a_message_does_not_cost_it)
{
	const struct fr_name *data;
	struct fr_req *recv, *send;

	connected();
	recv = net_irecv(&to, LONG);
	net_settle();
	data = fr_rail_name(net_b.set->rail[0], FR_EP_DATA);
	fr_fake_hold(data, true);
	send = net_isend(&from, LONG); /* done when it has left us */
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_uint_eq(net_wire.writes, 1);
	net_close_send(pair);
	NET_UNTIL(pair->recv->peer_closed);
	net_assert_pending(recv);
	fr_fake_hold(data, false);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
}
END_TEST

START_TEST(what_came_before_the_peer_was_lost_can_still_be_read)
{
	struct fr_req *send, *recv;

	connected();
	send = net_isend(&from, 50);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	net_settle();
	net_forsake(&net_b);
	net_expect("is lost");
	recv = NULL;
	ck_assert_int_eq(net_try_recv(&to, 50, &recv), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	ck_assert_int_eq(net_try_recv(&to, 50, &recv), -ECONNRESET);
	net_forsake(&net_a);
}
END_TEST

/* -- strange arrivals -- */

/* A receive that a forged write completed is in no count of the sender's. */
#define FORGED "more messages than can be"

/* What a right sender would say of the receive that is posted next. */
static struct fr_imm right_imm(void)
{
	struct fr_comm *comm = pair->recv;
	uint32_t seq = comm->rx.win.win.base;
	struct fr_imm imm = {
		.comm = comm->id,
		.seq = seq & 1023,
		.nseg = 1,
		.len = FR_IMM_LEN_FULL,
		.rkey = fr_imm_grant(fr_mr_key(to.mr->mr, 0), seq),
	};

	return imm;
}

static void assert_dropped(const struct fr_imm *imm, const char *why,
			   struct fr_req *recv)
{
	uint64_t before = net_dropped(&net_b);

	net_inject_imm(&net_b, imm, 100);
	net_assert_pending(recv);
	ck_assert_uint_eq(net_dropped(&net_b), before + 1);
	ck_assert_msg(net_logged(why) != 0, "nobody said \"%s\"", why);
}

START_TEST(a_write_that_no_receive_asked_for_is_dropped)
{
	struct fr_req *recv, *send;
	struct fr_imm imm;

	connected();
	net_expect("dropped a write");
	recv = net_irecv(&to, LONG);
	net_settle();
	imm = right_imm();
	imm.comm = 77;
	assert_dropped(&imm, "no such comm", recv);
	imm = right_imm();
	imm.comm = FR_IMM_COMM_CNT - 1;
	assert_dropped(&imm, "no such comm", recv);
	imm = right_imm();
	imm.seq = (imm.seq + 1) & 1023;
	assert_dropped(&imm, "no such message", recv);
	imm.seq = (imm.seq - 2) & 1023;
	assert_dropped(&imm, "no such message", recv);
	imm = right_imm();
	imm.rkey ^= 1;
	assert_dropped(&imm, "wrong grant", recv);
	imm = right_imm();
	imm.len = LONG + 1;
	assert_dropped(&imm, "longer than its receive", recv);
	send = net_isend(&from, LONG);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	net_assert_works(sister);
}
END_TEST

START_TEST(a_write_to_a_send_comm_is_dropped)
{
	struct net_pair *back = net_connect(&net_b, &net_a);
	struct fr_imm imm;

	connected();
	net_expect("dropped a write");
	imm = right_imm();
	imm.comm = back->send->id;
	net_inject_imm(&net_b, &imm, 0);
	net_settle();
	net_pass();
	ck_assert_uint_eq(net_dropped(&net_b), 1);
	net_assert_works(back);
}
END_TEST

START_TEST(a_message_has_one_number_of_stripes)
{
	struct fr_req *recv;
	struct fr_imm imm;

	connected();
	net_expect(FORGED);
	net_expect("dropped a write");
	recv = net_irecv(&to, LONG);
	net_settle();
	imm = right_imm();
	imm.nseg = 2;
	net_inject_imm(&net_b, &imm, 10);
	net_assert_pending(recv);
	ck_assert_uint_eq(net_dropped(&net_b), 0);
	imm.nseg = 3;
	assert_dropped(&imm, "wrong number of stripes", recv);
	imm.nseg = 2;
	net_inject_imm(&net_b, &imm, 10);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	/* Complete is complete. */
	net_inject_imm(&net_b, &imm, 10);
	net_pass();
	ck_assert_uint_eq(net_dropped(&net_b), 2);
}
END_TEST

/* Again and again at once, and once more when its 10 bits are another's. */
START_TEST(a_duplicate_of_a_write_is_dropped)
{
	struct fr_req *recv, *send;
	struct fr_imm late;
	unsigned warned;

	connected();
	net_expect("dropped a write");
	recv = net_irecv(&to, LONG);
	net_settle();
	late = right_imm();
	send = net_isend(&from, LONG);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	for (unsigned i = 0; i < 300; i++) {
		net_inject_imm(&net_b, &late, LONG);
		net_pass();
	}
	ck_assert_uint_eq(net_dropped(&net_b), 300);
	warned = net_logged("dropped a write");
	ck_assert_uint_ge(warned, 1);
	ck_assert_uint_lt(warned, 20);
	for (unsigned i = 1; i < 1024; i++) {
		net_exchange(&from, &to, LONG, i);
	}
	recv = net_irecv(&to, LONG);
	net_settle();
	ck_assert_uint_eq(right_imm().seq, late.seq);
	/* Its grant is of another turn. The limit keeps that line back. */
	net_inject_imm(&net_b, &late, LONG);
	net_assert_pending(recv);
	ck_assert_uint_eq(net_dropped(&net_b), 301);
	send = net_isend(&from, LONG);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	net_assert_works(sister);
}
END_TEST

/* 9 to 16 in a word of 4 bytes, for a receive that waits. */
START_TEST(more_stripes_than_there_can_be_are_dropped)
{
	struct fr_req *recv, *send;
	struct fr_imm imm;

	connected();
	ck_assert_uint_eq(net_b.set->imm_bytes, 4);
	net_expect("dropped a write");
	recv = net_irecv(&to, LONG);
	net_settle();
	imm = right_imm();
	imm.rkey = 0;
	for (uint64_t more = 8; more < 16; more++) {
		uint64_t word = fr_imm_pack(&imm, 4) | more << 28;

		ck_assert_int_eq(
			fr_fake_inject_imm(
				fr_rail_name(net_b.set->rail[0], FR_EP_DATA),
				word, 10),
			0);
		net_assert_pending(recv);
	}
	ck_assert_uint_eq(net_dropped(&net_b), 8);
	ck_assert_uint_ge(net_logged("more stripes than there can be"), 1);
	send = net_isend(&from, LONG);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
}
END_TEST

START_TEST(a_receive_that_was_not_announced_is_not_written_to)
{
	struct fr_req *recv, *send;
	struct fr_imm imm;

	connected();
	net_expect("dropped a write");
	recv = net_irecv(&to, 100); /* blind */
	imm = right_imm();
	assert_dropped(&imm, "no such message", recv);
	send = net_isend(&from, 100);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
}
END_TEST

START_TEST(a_closed_comm_takes_nothing_more)
{
	struct fr_imm imm;

	connected();
	net_expect("dropped a write");
	net_exchange(&from, &to, LONG, 1);
	imm = right_imm();
	net_close_recv(pair);
	net_inject_imm(&net_b, &imm, 10);
	net_settle();
	ck_assert_uint_eq(net_dropped(&net_b), 1);
	ck_assert_uint_eq(net_logged("no such comm"), 1);
}
END_TEST

/* The immediates of 4 bytes tell no length: the provider does. */
START_TEST(lengths_of_the_provider_are_not_believed_beyond_the_receive)
{
	struct fr_req *recv;
	struct fr_imm imm;
	size_t got;

	connected();
	net_expect(FORGED);
	ck_assert_uint_eq(net_b.set->imm_bytes, 4);
	net_expect("dropped a write");
	recv = net_irecv(&to, LONG);
	net_settle();
	imm = right_imm();
	net_inject_imm(&net_b, &imm, LONG + 1);
	net_assert_pending(recv);
	ck_assert_uint_eq(net_dropped(&net_b), 1);
	imm.nseg = 2;
	net_inject_imm(&net_b, &imm, LONG);
	net_inject_imm(&net_b, &imm, 1);
	net_assert_pending(recv);
	ck_assert_uint_eq(net_dropped(&net_b), 2);
	net_inject_imm(&net_b, &imm, 0);
	ck_assert_int_eq(net_wait(recv, &got), 0);
	ck_assert_uint_eq(got, LONG);
	ck_assert_int_eq(
		fr_fake_inject_imm(fr_rail_name(net_b.set->rail[0], FR_EP_DATA),
				   UINT32_C(0xf0000000), 0),
		0);
	net_pass();
	ck_assert_uint_eq(net_logged("more stripes than there can be"), 1);
}
END_TEST

static void efa_like(void)
{
	net_init();
	net_conf.quirks.has_write_len = true;
	net_conf.cq_data_bytes = 4;
	net_open();
}

static struct fr_link_note note_of(const struct fr_comm *comm, uint32_t seq)
{
	struct fr_link_note note = {
		.comm = comm->id, .nonce = comm->nonce, .seq = seq};

	return note;
}

START_TEST(a_length_that_cannot_be_is_ignored)
{
	struct fr_link *hostile;
	struct fr_link_note note;
	struct fr_req *recv;
	struct fr_imm imm;
	size_t got;

	connected();
	net_expect(FORGED);
	hostile = pair->send->link;
	recv = net_irecv(&to, LONG);
	net_settle();
	note = note_of(pair->recv, 0);
	note.a = LONG + 1;
	net_say_note(hostile, FR_LINK_LENGTH, &note);
	note = note_of(pair->recv, 1);
	note.a = 5;
	net_say_note(hostile, FR_LINK_LENGTH, &note);
	note = note_of(pair->recv, 0);
	note.nonce ^= 1;
	note.a = 5;
	net_say_note(hostile, FR_LINK_LENGTH, &note);
	imm = right_imm();
	imm.len = FR_IMM_LEN_ASIDE;
	net_inject_imm(&net_b, &imm, 10);
	net_assert_pending(recv);
	note = note_of(pair->recv, 0);
	note.a = 7;
	net_say_note(hostile, FR_LINK_LENGTH, &note);
	ck_assert_int_eq(net_wait(recv, &got), 0);
	ck_assert_uint_eq(got, 7);
	net_assert_works(sister);
}
END_TEST

START_TEST(a_nack_for_another_comm_is_ignored)
{
	struct fr_link *hostile;
	struct fr_link_note note;
	struct fr_req *recv;

	connected();
	hostile = pair->send->link;
	recv = net_irecv(&to, LONG);
	net_settle();
	note = note_of(pair->recv, 0);
	note.flags = 0; /* by a receiver: that is no send comm */
	net_say_note(hostile, FR_LINK_NACK, &note);
	note.nonce++;
	note.flags = 1;
	net_say_note(hostile, FR_LINK_NACK, &note);
	net_say_note(hostile, FR_LINK_NACK, &note);
	net_settle();
	net_expect("receive only");
	note = note_of(pair->recv, 5); /* a receive that is not there */
	note.flags = 1;
	net_say_note(hostile, FR_LINK_NACK, &note);
	net_say_note(hostile, FR_LINK_NACK, &note);
	ck_assert_int_eq(net_wait(recv, NULL), -EMSGSIZE);
	ck_assert_uint_eq(net_logged("receive only"), 1);
	net_assert_works(sister);
	net_expect("endpoints fenced");
}
END_TEST

/* Counters say what landed, told by the provider or not. */
START_TEST(every_byte_that_landed_is_counted_once)
{
	uint64_t sum = 0;

	connected();
	net_exchange(&from, &to, LONG, 1);
	net_exchange(&from, &to, 39999, 2);
	net_settle();
	for (unsigned i = 0; i < net_b.set->rail_cnt; i++) {
		struct fr_fake_counts counts;

		fr_fake_counts(net_b.set->rail[i], &counts);
		sum += fr_stats_get(fr_rail_stats(net_b.set->rail[i]),
				    FR_STAT_RX_BYTES) -
		       counts.recv_bytes;
	}
	ck_assert_uint_eq(sum, LONG + 39999);
}
END_TEST

static void striped(void)
{
	net_init();
	setenv("OFI_NCCL_MIN_STRIPE_SIZE", "1024", 1);
	net_open();
}

static void local_completion(void)
{
	net_init();
	setenv("OFI_NCCL_SEND_COMPLETION", "local", 1);
	net_open();
}

int main(void)
{
	TCase *tc = net_case("recv", net_setup);
	TCase *efa = net_case("4-byte immediates", efa_like);
	TCase *local = net_case("local completion", local_completion);
	TCase *split = net_case("striped", striped);
	TCase *end = net_case("end of the numbers", late);
	TCase *const cases[] = {tc, efa, split, local, end};

	tcase_add_loop_test(
		tc, a_group_gives_each_message_the_receive_of_its_tag, 0, 3);
	tcase_add_loop_test(
		end, a_group_gives_each_message_the_receive_of_its_tag, 0, 3);
	tcase_add_test(tc, the_oldest_group_is_filled_first);
	tcase_add_test(tc, a_younger_group_can_be_filled_first);
	tcase_add_test(tc,
		       a_message_that_is_too_long_for_its_tag_fails_the_group);
	tcase_add_test(tc, the_window_of_receives_has_an_end);
	tcase_add_test(tc, wrong_arguments_are_refused);
	tcase_add_test(tc, a_set_that_is_busy_means_try_again);
	tcase_add_test(tc, a_receive_without_memory_can_be_tried_again);
	tcase_add_test(tc, what_was_sent_before_a_close_can_be_read_after_it);
	tcase_add_test(tc, receives_that_nothing_can_fill_fail_at_the_close);
	tcase_add_test(local,
		       a_close_that_overtakes_a_message_does_not_cost_it);
	tcase_add_test(tc,
		       what_came_before_the_peer_was_lost_can_still_be_read);
	tcase_add_test(tc, a_write_that_no_receive_asked_for_is_dropped);
	tcase_add_test(tc, a_write_to_a_send_comm_is_dropped);
	tcase_add_test(tc, a_message_has_one_number_of_stripes);
	tcase_add_test(tc, a_duplicate_of_a_write_is_dropped);
	tcase_add_test(efa, more_stripes_than_there_can_be_are_dropped);
	tcase_add_test(tc, a_receive_that_was_not_announced_is_not_written_to);
	tcase_add_test(tc, a_closed_comm_takes_nothing_more);
	tcase_add_test(tc, a_length_that_cannot_be_is_ignored);
	tcase_add_test(tc, a_nack_for_another_comm_is_ignored);
	tcase_add_test(
		efa,
		lengths_of_the_provider_are_not_believed_beyond_the_receive);
	tcase_add_test(efa, every_byte_that_landed_is_counted_once);
	tcase_add_test(split, every_byte_that_landed_is_counted_once);
	return net_main("recv", cases, FR_ARRAY_LEN(cases));
}
