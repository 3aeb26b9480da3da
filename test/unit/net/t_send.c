/* Sends: every size, every refusal of a rail, every way to be wrong. */
#include <sys/mman.h>

#include "fake/fake_clock.h"
#include "unit/net/net_unit.h"
#include "wire/imm.h"

#define BIG (1u << 20)

static struct net_pair *pair;
static struct net_buf from, to;

static void connected(void)
{
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, BIG, &from);
	net_buf_open(pair->recv, BIG, &to);
}

static const size_t sizes[] = {0,      1,      63,     64,   65,   1023,
			       1024,   1025,   4096,   8191, 8192, 8193,
			       131071, 131072, 131073, BIG};

/* The loop index: whether the send comes before its receive. */
START_TEST(messages_of_every_size_arrive)
{
	connected();
	for (unsigned i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		struct fr_req *send = NULL, *recv;
		size_t got = 0;

		net_fill(from.mem, sizes[i], i);
		if (_i == 1) {
			ck_assert_int_eq(net_try_send(&from, sizes[i], &send),
					 0);
			net_settle();
		}
		recv = net_irecv(&to, sizes[i]);
		if (send == NULL) {
			send = net_isend(&from, sizes[i]);
		}
		ck_assert_int_eq(net_wait(send, NULL), 0);
		ck_assert_int_eq(net_wait(recv, &got), 0);
		ck_assert_uint_eq(got, sizes[i]);
		ck_assert(net_is_filled(to.mem, sizes[i], i));
	}
}
END_TEST

START_TEST(a_receive_may_be_longer_than_its_message)
{
	connected();
	for (unsigned i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		net_exchange(&from, &to, sizes[i], 40 + i);
	}
}
END_TEST

#define PARTS 24u
#define PART_BYTES (BIG / PARTS / 256 * 256)

/* PARTS receives and sends of @bytes in flight at once, each in its place. */
static void exchange_parts(size_t bytes)
{
	struct fr_req *send[PARTS] = {NULL}, *recv[PARTS];
	unsigned sent = 0;

	for (unsigned i = 0; i < PARTS; i++) {
		struct net_buf part = to;

		part.mem += i * (size_t)PART_BYTES;
		memset(part.mem, 0, PART_BYTES);
		net_fill(from.mem + i * (size_t)PART_BYTES, bytes, 100 + i);
		recv[i] = net_irecv(&part, bytes);
	}
	for (unsigned step = 0; sent < PARTS; step++) {
		struct net_buf part = from;

		ck_assert_uint_lt(step, NET_STEPS);
		part.mem += sent * (size_t)PART_BYTES;
		ck_assert_int_eq(net_try_send(&part, bytes, &send[sent]), 0);
		sent += send[sent] != NULL;
		net_pass();
	}
	for (unsigned i = 0; i < PARTS; i++) {
		ck_assert_int_eq(net_wait(send[i], NULL), 0);
		ck_assert_int_eq(net_wait(recv[i], NULL), 0);
		ck_assert(net_is_filled(to.mem + i * (size_t)PART_BYTES, bytes,
					100 + i));
	}
}

static void storm(void)
{
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_WRITE,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .percent = 70});
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .percent = 60});
}

START_TEST(a_storm_of_eagain_loses_nothing)
{
	connected();
	storm();
	exchange_parts(PART_BYTES);
	exchange_parts(700);
	exchange_parts(0);
}
END_TEST

START_TEST(any_order_of_the_rails_will_do)
{
	connected();
	fr_fake_shuffle(true);
	fr_fake_unordered(true);
	for (unsigned seed = 1; seed < 6; seed++) {
		fr_fake_seed(seed);
		exchange_parts(PART_BYTES);
		exchange_parts(300);
	}
}
END_TEST

static void striped_setup(void)
{
	net_init();
	setenv("OFI_NCCL_MIN_STRIPE_SIZE", "1024", 1);
	net_open();
}

/* Sequence numbers of the writes that went over @rail, in their order. */
static unsigned writes_of_rail(unsigned rail, uint16_t seq[NET_WRITES])
{
	unsigned cnt = 0;

	ck_assert_uint_le(net_wire.writes, NET_WRITES);
	for (unsigned i = 0; i < net_wire.writes; i++) {
		struct fr_imm imm;

		ck_assert(fr_imm_unpack(net_wire.write[i].imm, 8, &imm));
		ck_assert_uint_eq(imm.nseg, 2);
		if (net_wire.write[i].rail == rail) {
			seq[cnt++] = imm.seq;
		}
	}
	return cnt;
}

START_TEST(each_stripe_is_posted_once_and_in_order)
{
	uint16_t seq[NET_WRITES];

	connected();
	fr_fake_seed((unsigned)_i + 1);
	storm();
	exchange_parts(PART_BYTES);
	ck_assert_uint_gt(net_counts().again[FR_FAKE_WRITE], 0);
	ck_assert_uint_eq(net_wire.writes, 2 * PARTS);
	for (unsigned rail = 0; rail < 2; rail++) {
		ck_assert_uint_eq(writes_of_rail(rail, seq), PARTS);
		for (unsigned i = 0; i < PARTS; i++) {
			ck_assert_uint_eq(seq[i], i);
		}
	}
}
END_TEST

START_TEST(a_rail_that_is_full_holds_back_its_link_only)
{
	struct net_pair *other;
	struct fr_req *send, *recv;

	connected();
	net_side_open(&net_c);
	other = net_connect(&net_c, &net_b);
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_WRITE,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .rails = FR_BIT(1),
					      .owner = net_a.set});
	net_fill(from.mem, BIG, 9);
	recv = net_irecv(&to, BIG);
	send = net_isend(&from, BIG);
	net_assert_pending(send);
	net_assert_pending(recv);
	ck_assert_uint_eq(net_wire.writes, 1);
	net_assert_works(other);
	fr_fake_fault_clear();
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	ck_assert(net_is_filled(to.mem, BIG, 9));
}
END_TEST

/* The first message begins on the rail that is full, the last one on the other:
 * there the first one's stripe goes first, and does not wait for the full rail.
 */
START_TEST(a_rail_that_is_full_lets_nothing_overtake_on_another)
{
	static const size_t bytes[] = {BIG, 9000, BIG};
	struct fr_req *send[3], *recv[3];
	uint16_t before = 0;
	unsigned on_other = 0;

	connected();
	for (unsigned i = 0; i < 3; i++) {
		recv[i] = net_irecv(&to, bytes[i]);
	}
	net_settle();
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_WRITE,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .rails = FR_BIT(0),
					      .owner = net_a.set});
	for (unsigned i = 0; i < 3; i++) {
		send[i] = net_isend(&from, bytes[i]);
	}
	for (unsigned i = 0; i < 20; i++) {
		net_pass();
	}
	ck_assert_uint_eq(net_wire.writes, 2); /* one of each striped message */
	fr_fake_fault_clear();
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(net_wait(send[i], NULL), 0);
		ck_assert_int_eq(net_wait(recv[i], NULL), 0);
	}
	for (unsigned i = 0; i < net_wire.writes; i++) {
		struct fr_imm imm;

		ck_assert(fr_imm_unpack(net_wire.write[i].imm, 8, &imm));
		if (net_wire.write[i].rail == 1) {
			ck_assert(on_other == 0 || imm.seq > before);
			before = imm.seq;
			on_other++;
		}
	}
	ck_assert_uint_eq(on_other, 2);
	ck_assert_uint_eq(net_wire.writes, 5);
}
END_TEST

static void assert_dead(void)
{
	struct fr_req *req;

	ck_assert_int_eq(net_try_send(&from, 10, &req), -ECONNRESET);
	ck_assert_ptr_null(req);
	ck_assert_int_eq(net_try_send(&from, 0, &req), -ECONNRESET);
	ck_assert_int_eq(net_try_send(&from, BIG, &req), -ECONNRESET);
}

/* The loop index: a post that is refused for good (0: the first stripe, 1: the
 * second), or one that ends in an error (2: and did not land, 3: landed). */
START_TEST(an_error_of_a_stripe_ends_the_link_and_no_other)
{
	struct net_pair *sister, *back, *other;
	struct net_buf sister_buf, back_buf;
	struct fr_req *send, *waits, *req;
	int err;

	connected();
	net_side_open(&net_c);
	sister = net_connect(&net_a, &net_b);
	back = net_connect(&net_b, &net_a);
	other = net_connect(&net_a, &net_c);
	net_buf_open(sister->send, 64, &sister_buf);
	net_buf_open(back->recv, 64, &back_buf);
	waits = net_irecv(&back_buf, 64);
	net_irecv(&to, BIG);
	net_settle();
	net_expect("is lost");
	net_expect("endpoints fenced"); /* a receive is open at the end */
	if (_i < 2) {
		fr_fake_fail_at(FR_FAKE_WRITE, _i + 1, -ENETUNREACH);
	} else {
		fr_fake_fault(
			&(struct fr_fake_fault){.call = FR_FAKE_WRITE_DONE,
						.err = -EIO,
						.cnt = 1,
						.landed = _i == 3});
	}
	send = net_isend(&from, BIG);
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	ck_assert_uint_eq(net_logged("is lost"), 1);
	assert_dead();
	ck_assert_int_eq(net_try_send(&sister_buf, 5, &req), -ECONNRESET);
	ck_assert_int_eq(net_wait(waits, NULL), -ECONNRESET);
	ck_assert_int_eq(net_try_recv(&back_buf, 64, &req), -ECONNRESET);
	ck_assert_int_eq(fr_net_iflush(back->recv, 0, NULL, NULL, NULL, &req),
			 -ECONNRESET);
	net_assert_works(other);
	err = pair->recv->link->err;
	ck_assert_int_eq(err, 0); /* that side did not see it */
	net_forsake(&net_b);
}
END_TEST

/* Some fly, some wait for a rail, some for the ones before them. */
START_TEST(sends_under_way_end_with_their_link)
{
	struct fr_req *send[PARTS];

	connected();
	for (unsigned i = 0; i < PARTS; i++) {
		net_irecv(&to, PART_BYTES);
	}
	net_settle();
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_WRITE,
					      .err = -EAGAIN,
					      .skip = 5,
					      .cnt = FR_FAKE_FOREVER});
	for (unsigned i = 0; i < PARTS; i++) {
		send[i] = net_isend(&from, PART_BYTES);
	}
	ck_assert(!fr_list_empty(&pair->send->link->deferred));
	net_fail_link(pair->send->link);
	ck_assert(fr_list_empty(&pair->send->link->deferred));
	for (unsigned i = 0; i < PARTS; i++) {
		int ret = net_wait(send[i], NULL);

		ck_assert(ret == -ECONNRESET || (ret == 0 && i < 5));
	}
	fr_fake_fault_clear();
	ck_assert_uint_eq(net_wire.writes, 5);
	ck_assert_uint_eq(pair->send->req_cnt, 0);
	net_expect("endpoints fenced");
	net_expect("is lost");
	net_forsake(&net_b);
}
END_TEST

START_TEST(a_send_without_memory_can_be_tried_again)
{
	struct fr_req *send, *recv;
	unsigned failed = 0;

	connected();
	for (unsigned kind = 0; kind < 3; kind++) {
		size_t bytes = kind == 0 ? 100 : kind == 1 ? 5000 : BIG;
		int ret = -ENOMEM;

		recv = kind == 1 ? NULL : net_irecv(&to, bytes);
		net_settle();
		for (unsigned nth = 1; ret != 0; nth++) {
			ck_assert_uint_lt(nth, NET_FAULTS);
			send = (struct fr_req *)0x1;
			fr_fault_alloc_at(nth);
			ret = net_try_send(&from, bytes, &send);
			fr_fault_alloc_at(0);
			if (ret != 0) {
				ck_assert_int_eq(ret, -ENOMEM);
				ck_assert_ptr_null(send);
				failed++;
			}
		}
		recv = recv != NULL ? recv : net_irecv(&to, bytes);
		ck_assert_ptr_nonnull(send);
		ck_assert_int_eq(net_wait(send, NULL), 0);
		ck_assert_int_eq(net_wait(recv, NULL), 0);
	}
	ck_assert_uint_gt(failed, 3);
	net_exchange(&from, &to, 5, 1);
}
END_TEST

/* The loop index: 0: the sender knows the receive; 1: the message goes blind;
 * 2: it is too long to go blind. */
START_TEST(a_message_that_is_too_long_ends_both_comms)
{
	static const size_t posted[] = {9000, 100, 100};
	static const size_t sent[] = {9001, 200, 10000};
	struct fr_req *send = NULL, *recv, *req;
	struct net_pair *sister;
	int ret = 0;

	connected();
	sister = net_connect(&net_a, &net_b);
	recv = net_irecv(&to, posted[_i]);
	net_settle();
	memset(to.mem, 0x5a, 20000);
	net_expect("receive only");
	for (unsigned i = 0; ret == 0 && i < 100; i++) {
		ret = net_try_send(&from, sent[_i], &send);
		if (send != NULL) {
			ret = net_wait(send, NULL);
		}
		net_tick(1);
	}
	ck_assert_int_eq(ret, -EMSGSIZE);
	net_settle();
	ck_assert_int_eq(net_wait(recv, NULL), -EMSGSIZE);
	ck_assert_int_eq(net_try_send(&from, 1, &req), -EMSGSIZE);
	ck_assert_int_eq(net_try_recv(&to, 1, &req), -EMSGSIZE);
	ck_assert_uint_eq(net_logged("receive only"), 2);
	ck_assert(net_is_all(to.mem, 20000, 0x5a));
	net_assert_works(sister);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
	struct net_pair *sister;
	struct net_buf other;
	struct fr_req *req = (struct fr_req *)0x1;

	connected();
	sister = net_connect(&net_a, &net_b);
	net_buf_open(sister->send, 64, &other);
	ck_assert_int_eq(fr_net_isend(NULL, from.mem, 1, 0, from.mr, &req),
			 -EINVAL);
	ck_assert_ptr_null(req);
	ck_assert_int_eq(
		fr_net_isend(pair->recv, from.mem, 1, 0, from.mr, &req),
		-EINVAL);
	ck_assert_int_eq(fr_net_isend(pair->send, NULL, 1, 0, from.mr, &req),
			 -EINVAL);
	ck_assert_int_eq(fr_net_isend(pair->send, from.mem, 1, 0, NULL, &req),
			 -EINVAL);
	ck_assert_int_eq(
		fr_net_isend(pair->send, other.mem, 1, 0, other.mr, &req),
		-EINVAL);
	ck_assert_int_eq(
		fr_net_isend(pair->send, from.mem + 1, BIG, 0, from.mr, &req),
		-EINVAL);
	ck_assert_int_eq(
		fr_net_isend(pair->send, from.mem - 1, 1, 0, from.mr, &req),
		-EINVAL);
	ck_assert_uint_eq(pair->send->req_cnt, 0);
}
END_TEST

START_TEST(a_set_that_is_busy_means_try_again)
{
	struct fr_req *req = (struct fr_req *)0x1;

	connected();
	net_lock(net_a.set);
	ck_assert_int_eq(net_try_send(&from, 8, &req), 0);
	net_unlock(net_a.set);
	ck_assert_ptr_null(req);
	net_exchange(&from, &to, 8, 2);
}
END_TEST

/* The loop index: 0 eager, 1 by a write. */
START_TEST(a_message_of_no_bytes_needs_no_memory)
{
	void *const foreign = (void *)0xdead0000;
	struct fr_net_mr *mrs[1] = {NULL};
	void *data[1] = {foreign};
	size_t bytes[1] = {0}, got = 5;
	int tags[1] = {3};
	struct fr_req *send = NULL, *recv = NULL;

	if (_i == 1) {
		net_teardown();
		setenv("OFI_NCCL_EAGER_MAX_SIZE", "-1", 1);
		net_setup();
	}
	connected();
	ck_assert_int_eq(
		fr_net_irecv(pair->recv, 1, data, bytes, tags, mrs, &recv), 0);
	ck_assert_ptr_nonnull(recv);
	net_settle();
	ck_assert_int_eq(fr_net_isend(pair->send, foreign, 0, 3, NULL, &send),
			 0);
	ck_assert_ptr_nonnull(send);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, &got), 0);
	ck_assert_uint_eq(got, 0);
	ck_assert_uint_eq(net_wire.writes, (unsigned)_i);
}
END_TEST

START_TEST(no_more_than_256_requests_fly)
{
	struct fr_req *send[FR_NET_MAX_REQS], *recv[FR_NET_MAX_REQS], *req;

	connected();
	for (unsigned i = 0; i < FR_NET_MAX_REQS; i++) {
		recv[i] = net_irecv(&to, 9000);
	}
	ck_assert_int_eq(net_try_recv(&to, 9000, &req), 0);
	ck_assert_ptr_null(req);
	for (unsigned i = 0; i < FR_NET_MAX_REQS; i++) {
		send[i] = net_isend(&from, 9000);
	}
	ck_assert_int_eq(net_try_send(&from, 9000, &req), 0);
	ck_assert_ptr_null(req);
	for (unsigned i = 0; i < FR_NET_MAX_REQS; i++) {
		ck_assert_int_eq(net_wait(recv[i], NULL), 0);
		ck_assert_int_eq(net_wait(send[i], NULL), 0);
	}
	ck_assert_uint_eq(pair->send->req_cnt, 0);
	ck_assert_uint_eq(pair->recv->req_cnt, 0);
	net_exchange(&from, &to, 9000, 4);
}
END_TEST

START_TEST(a_peer_that_closed_takes_no_more)
{
	struct fr_req *req;

	connected();
	net_close_recv(pair);
	NET_UNTIL(pair->send->peer_closed);
	net_expect("the peer closed its receive comm");
	ck_assert_int_eq(net_try_send(&from, 8, &req), -ECONNRESET);
	ck_assert_int_eq(net_try_send(&from, 8, &req), -ECONNRESET);
	ck_assert_uint_eq(net_logged("the peer closed its receive comm"), 1);
}
END_TEST

#define HUGE_BYTES ((size_t)1 << 30)

static void *map_huge(size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(mem, MAP_FAILED);
	return mem;
}

/* The writes are kept from landing, and their immediates told one by one. The
 * loop index: whether the length comes after the last of them. */
START_TEST(a_length_beyond_the_immediate_is_told_aside)
{
	const size_t posted = HUGE_BYTES + 4096;
	const struct fr_name *ctrl, *data;
	struct fr_req *send, *recv;
	struct net_buf src, dst;
	size_t got = 0;

	connected();
	fr_fake_clock_freeze(true); /* nothing is repeated for its lateness */
	src = (struct net_buf){.mem = map_huge(HUGE_BYTES), .comm = pair->send};
	dst = (struct net_buf){.mem = map_huge(posted), .comm = pair->recv};
	ck_assert_int_eq(fr_net_reg_mr(pair->send, src.mem, HUGE_BYTES,
				       FR_MEM_HOST, &src.mr),
			 0);
	ck_assert_int_eq(fr_net_reg_mr(pair->recv, dst.mem, posted, FR_MEM_HOST,
				       &dst.mr),
			 0);
	recv = net_irecv(&dst, posted);
	net_settle();
	data = fr_rail_name(net_b.set->rail[0], FR_EP_DATA);
	ctrl = fr_rail_name(net_b.set->rail[pair->recv->ctrl_path], FR_EP_CTRL);
	fr_fake_hold(ctrl, _i == 1);
	net_wire.lose_writes = 2;
	send = net_isend(&src, HUGE_BYTES);
	ck_assert_uint_eq(net_wire.writes, 2);
	net_assert_pending(recv);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(fr_fake_inject_imm(data, net_wire.write[i].imm,
						    net_wire.write[i].bytes),
				 0);
		if (i == 0 || _i == 1) {
			net_assert_pending(recv);
		}
	}
	fr_fake_hold(ctrl, false);
	ck_assert_int_eq(net_wait(recv, &got), 0);
	ck_assert_uint_eq(got, HUGE_BYTES);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_LENGTH], 1);
	/* Its writes never end: what was lost was no fault of the link. */
	net_expect("is lost");
	net_break(&net_a, 0);
	net_break(&net_a, 1);
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	net_forsake(&net_b);
	ck_assert_int_eq(fr_net_dereg_mr(pair->send, src.mr), 0);
	ck_assert_int_eq(fr_net_dereg_mr(pair->recv, dst.mr), 0);
	munmap(src.mem, HUGE_BYTES);
	munmap(dst.mem, posted);
}
END_TEST

/* Two stripes of 3 GiB each, from and to addresses far into their memory. */
START_TEST(stripes_of_a_message_beyond_4_gib_keep_their_offsets)
{
	const size_t bytes = 6 * HUGE_BYTES, skip = 3 * HUGE_BYTES + 64;
	struct net_buf src, dst;
	struct fr_req *send;

	connected();
	src = (struct net_buf){.mem = map_huge(bytes), .comm = pair->send};
	dst = (struct net_buf){.mem = map_huge(bytes + skip),
			       .comm = pair->recv};
	ck_assert_int_eq(
		fr_net_reg_mr(pair->send, src.mem, bytes, FR_MEM_HOST, &src.mr),
		0);
	ck_assert_int_eq(fr_net_reg_mr(pair->recv, dst.mem, bytes + skip,
				       FR_MEM_HOST, &dst.mr),
			 0);
	dst.mem += skip;
	net_irecv(&dst, bytes);
	net_settle();
	net_wire.lose_writes = 2;
	send = net_isend(&src, bytes);
	ck_assert_uint_eq(net_wire.writes, 2);
	ck_assert_uint_eq(net_wire.write[0].addr, skip);
	ck_assert_uint_eq(net_wire.write[0].bytes, bytes / 2);
	ck_assert_uint_eq(net_wire.write[1].addr, skip + bytes / 2);
	ck_assert_uint_eq(net_wire.write[1].bytes, bytes / 2);
	net_expect("is lost");
	net_expect("endpoints fenced");
	net_break(&net_a, 0);
	net_break(&net_a, 1);
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	net_forsake(&net_b);
	ck_assert_int_eq(fr_net_dereg_mr(pair->send, src.mr), 0);
	ck_assert_int_eq(fr_net_dereg_mr(pair->recv, dst.mr), 0);
	munmap(src.mem, bytes);
	munmap(dst.mem - skip, bytes + skip);
}
END_TEST

/* Both ends of a comm go to number @at, as if so much had passed already. */
static void jump_to(uint32_t at)
{
	struct fr_send_state *tx = &pair->send->tx;
	struct fr_recv_state *rx = &pair->recv->rx;

	tx->ordinal = at;
	tx->known = at;
	tx->win.win.base = at;
	tx->win.win.next = at;
	tx->eager_next = at;
	tx->eager_floor = at;
	rx->win.win.base = at;
	rx->win.win.next = at;
	rx->announced = at;
	rx->completed = at;
	rx->eager_next = at;
	rx->eager_floor = at;
}

START_TEST(numbers_run_over_the_end)
{
	connected();
	jump_to(UINT32_MAX - 40);
	for (unsigned i = 0; i < 30; i++) {
		net_exchange(&from, &to, i * 300, i);
		net_exchange(&from, &to, 9000, i);
	}
	exchange_parts(500);
	exchange_parts(PART_BYTES);
	ck_assert_uint_lt(pair->send->tx.ordinal, 200);
	ck_assert_uint_eq(pair->send->tx.ordinal, pair->recv->rx.completed);
}
END_TEST

/* @total messages of @bytes; what is in them tells a stale or doubled one. */
static void pass_many(unsigned total, size_t bytes)
{
	enum { FLY = 32 };
	struct fr_req *send[FLY] = {NULL}, *recv[FLY] = {NULL};
	unsigned sent = 0, posted = 0, done = 0;

	for (unsigned idle = 0; done < total; idle++) {
		bool ended = false;
		struct net_buf part;

		ck_assert_uint_lt(idle, NET_STEPS);
		part = to;
		part.mem += (posted % FLY) * bytes;
		if (posted < total && recv[posted % FLY] == NULL) {
			memset(part.mem, 0, bytes);
			ck_assert_int_eq(
				net_try_recv(&part, bytes, &recv[posted % FLY]),
				0);
			posted += recv[posted % FLY] != NULL;
		}
		part = from;
		part.mem += (sent % FLY) * bytes;
		if (sent < total && send[sent % FLY] == NULL) {
			memcpy(part.mem, &sent, sizeof(sent));
			ck_assert_int_eq(
				net_try_send(&part, bytes, &send[sent % FLY]),
				0);
			sent += send[sent % FLY] != NULL;
		}
		for (unsigned i = 0; i < FLY; i++) {
			if (send[i] != NULL) {
				ck_assert_int_eq(
					fr_net_test(send[i], &ended, NULL), 0);
				send[i] = ended ? NULL : send[i];
			}
		}
		if (recv[done % FLY] != NULL) {
			ck_assert_int_eq(
				fr_net_test(recv[done % FLY], &ended, NULL), 0);
			if (ended) {
				ck_assert_mem_eq(to.mem + (done % FLY) * bytes,
						 &done, sizeof(done));
				recv[done % FLY] = NULL;
				done++;
				idle = 0;
			}
		}
	}
}

START_TEST(more_messages_than_any_number_field_holds_pass)
{
	connected();
	pass_many(66000, 8);
	ck_assert_uint_eq(pair->recv->rx.completed, 66000);
	pass_many(4000, 10000);
	ck_assert_uint_ge(net_wire.writes, 4000);
}
END_TEST

int main(void)
{
	TCase *cases[NET_SHAPES + 2];
	unsigned cnt = 0;
	TCase *tc;

	for (; cnt < NET_SHAPES; cnt++) {
		tc = net_case(net_shapes[cnt].name, net_shapes[cnt].setup);
		tcase_add_loop_test(tc, messages_of_every_size_arrive, 0, 2);
		tcase_add_test(tc, a_receive_may_be_longer_than_its_message);
		tcase_add_test(tc, a_storm_of_eagain_loses_nothing);
		tcase_add_test(tc, any_order_of_the_rails_will_do);
		cases[cnt] = tc;
	}
	tc = net_case("striped", striped_setup);
	tcase_add_loop_test(tc, each_stripe_is_posted_once_and_in_order, 0, 8);
	cases[cnt++] = tc;
	tc = net_case("send", net_setup);
	tcase_add_test(tc, a_rail_that_is_full_holds_back_its_link_only);
	tcase_add_test(tc,
		       a_rail_that_is_full_lets_nothing_overtake_on_another);
	tcase_add_loop_test(tc, an_error_of_a_stripe_ends_the_link_and_no_other,
			    0, 4);
	tcase_add_test(tc, sends_under_way_end_with_their_link);
	tcase_add_test(tc, a_send_without_memory_can_be_tried_again);
	tcase_add_loop_test(tc, a_message_that_is_too_long_ends_both_comms, 0,
			    3);
	tcase_add_test(tc, wrong_arguments_are_refused);
	tcase_add_test(tc, a_set_that_is_busy_means_try_again);
	tcase_add_loop_test(tc, a_message_of_no_bytes_needs_no_memory, 0, 2);
	tcase_add_test(tc, no_more_than_256_requests_fly);
	tcase_add_test(tc, a_peer_that_closed_takes_no_more);
	tcase_add_loop_test(tc, a_length_beyond_the_immediate_is_told_aside, 0,
			    2);
	tcase_add_test(tc,
		       stripes_of_a_message_beyond_4_gib_keep_their_offsets);
	tcase_add_test(tc, numbers_run_over_the_end);
	tcase_add_test(tc, more_messages_than_any_number_field_holds_pass);
	cases[cnt++] = tc;
	return net_main("send", cases, cnt);
}
