#include "unit/base/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "base/alloc.h"
#include "fake/fake_rail.h"
#include "unit/fabric/rail_contract.h"

static int open_fake(struct fr_fabric **out)
{
	struct fr_conf conf = {.provider = NULL};

	return fr_fabric_open(&conf, out);
}

/* The contract under each configuration that a test may choose. */
static void conf_setup(void (*change)(struct fr_fake_conf *conf))
{
	struct fr_fake_conf conf;

	ck_assert_uint_eq(fr_fake_reset(), 0);
	fr_fake_conf_default(&conf);
	change(&conf);
	fr_fake_set_conf(&conf);
	contract_setup();
}

static void as_net(struct fr_fake_conf *conf)
{
	(void)conf;
}

static void as_efa(struct fr_fake_conf *conf)
{
	conf->quirks.split_ep = false;
	conf->quirks.has_write_len = true;
	conf->cq_data_bytes = 4;
	conf->virt_addr = true;
	conf->prov_keys = true;
	conf->name_bytes = 32;
}

static void as_slow(struct fr_fake_conf *conf)
{
	fr_fake_nic_default(&conf->nics[0], 0, true);
	conf->lazy_connect = true;
	conf->local_waits = true;
}

static void net_setup(void)
{
	conf_setup(as_net);
}

static void efa_setup(void)
{
	conf_setup(as_efa);
}

static void slow_setup(void)
{
	conf_setup(as_slow);
}

static struct fr_fake_counts counts_of(const struct fr_rail *rail)
{
	struct fr_fake_counts counts;

	fr_fake_counts(rail, &counts);
	return counts;
}

static void fake_teardown(void)
{
	ck_assert_uint_eq(counts_of(NULL).violations, 0);
	contract_teardown();
	ck_assert_uint_eq(fr_fake_reset(), 0);
}

static int try_send(size_t bytes, struct contract_op *op)
{
	contract_op_init(op);
	return fr_rail_send(contract_a.rail, contract_a.to_ctrl, contract_a.buf,
			    bytes, fr_mr_desc(contract_a.local, 0), &op->op);
}

static int try_write(uint64_t imm, struct contract_op *op)
{
	contract_op_init(op);
	return fr_rail_write(
		contract_a.rail, contract_a.to_data, contract_a.buf, 64,
		fr_mr_desc(contract_a.local, 0),
		fr_mr_remote_addr(contract_b.remote, contract_b.window),
		fr_mr_key(contract_b.remote, 0), imm, true, &op->op);
}

static const struct fr_name *name_b(enum fr_rail_ep ep)
{
	return fr_rail_name(contract_b.rail, ep);
}

static void poll_n(unsigned n)
{
	while (n-- > 0) {
		contract_poll_both();
	}
}

START_TEST(again_is_said_as_often_as_asked)
{
	struct contract_op op;

	fr_fake_again(FR_FAKE_SEND, 3);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(try_send(8, &op), -EAGAIN);
	}
	ck_assert_int_eq(try_send(8, &op), 0);
	ck_assert_uint_eq(counts_of(NULL).calls[FR_FAKE_SEND], 4);
	ck_assert_uint_eq(counts_of(contract_a.rail).again[FR_FAKE_SEND], 3);
	ck_assert_uint_eq(counts_of(contract_b.rail).calls[FR_FAKE_SEND], 0);
}
END_TEST

START_TEST(the_nth_call_fails_once)
{
	struct contract_op op[3];

	fr_fake_fail_at(FR_FAKE_WRITE, 2, -ENETUNREACH);
	ck_assert_int_eq(try_write(1, &op[0]), 0);
	ck_assert_int_eq(try_write(2, &op[1]), -ENETUNREACH);
	ck_assert_int_eq(try_write(3, &op[2]), 0);
	contract_wait(&contract_b.imm_cnt, 2);
	ck_assert_uint_eq(contract_b.imm[1], 3);
}
END_TEST

START_TEST(a_fault_can_be_bound_to_a_rail_and_an_owner)
{
	struct contract_op op, other;

	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EIO,
					      .cnt = FR_FAKE_FOREVER,
					      .rails = 1u << 1});
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EPERM,
					      .cnt = FR_FAKE_FOREVER,
					      .owner = &contract_b});
	ck_assert_int_eq(try_send(8, &op), 0);
	fr_fake_fault_clear();
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EPERM,
					      .cnt = 1,
					      .owner = &contract_a});
	ck_assert_int_eq(try_send(8, &other), -EPERM);
}
END_TEST

START_TEST(a_chance_repeats_under_its_seed)
{
	unsigned hits[2] = {0};
	uint64_t pattern[2] = {0};

	unit_log_setup();
	for (unsigned round = 0; round < 2; round++) {
		fr_fake_seed(77);
		fr_fake_fault_clear();
		fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_POLL,
						      .err = -EIO,
						      .cnt = FR_FAKE_FOREVER,
						      .percent = 40});
		for (unsigned i = 0; i < 64; i++) {
			bool hit = fr_rail_poll(contract_a.rail) != 0;

			hits[round] += hit;
			pattern[round] = pattern[round] << 1 | hit;
		}
	}
	fr_fake_fault_clear();
	fr_log_set_sink(NULL);
	ck_assert_uint_eq(pattern[0], pattern[1]);
	ck_assert_uint_gt(hits[0], 10);
	ck_assert_uint_lt(hits[0], 45);
}
END_TEST

/* The loop index: whether the bytes arrive although their sender is told that
 * they failed. */
START_TEST(an_error_completion_leaves_open_what_landed)
{
	struct contract_op op;

	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_WRITE_DONE,
					      .err = -ECANCELED,
					      .cnt = 1,
					      .landed = _i == 1});
	ck_assert_int_eq(try_write(9, &op), 0);
	contract_wait(&op.calls, 1);
	poll_n(3);
	ck_assert_int_eq(op.err, -ECANCELED);
	ck_assert(op.said);
	ck_assert_uint_eq(contract_b.imm_cnt, (unsigned)_i);
	ck_assert_uint_eq(
		fr_stats_get(fr_rail_stats(contract_a.rail), FR_STAT_TX_ERRORS),
		1);
}
END_TEST

START_TEST(a_receive_can_end_in_an_error)
{
	struct contract_op recv, op;

	fr_fake_fail_at(FR_FAKE_RECV_DONE, 1, -EIO);
	contract_recv(&contract_b, 0, 64, &recv);
	ck_assert_int_eq(try_send(8, &op), 0);
	contract_wait(&recv.calls, 1);
	ck_assert_int_eq(recv.err, -EIO);
}
END_TEST

START_TEST(a_message_longer_than_its_buffer_is_an_error)
{
	struct contract_op recv, op;

	memset(contract_b.buf, 5, 128);
	contract_recv(&contract_b, 0, 64, &recv);
	ck_assert_int_eq(try_send(65, &op), 0);
	contract_wait(&recv.calls, 1);
	ck_assert_int_eq(recv.err, -EMSGSIZE);
	ck_assert_uint_eq(contract_b.buf[0], 5);
	ck_assert_uint_eq(contract_b.buf[64], 5);
}
END_TEST

START_TEST(a_connection_without_receive_buffers_fills_up)
{
	static struct contract_op op[65];
	struct contract_op recv;

	for (unsigned i = 0; i < 64; i++) {
		ck_assert_int_eq(try_send(8, &op[i]), 0);
	}
	ck_assert_int_eq(try_send(8, &op[64]), -EAGAIN);
	contract_recv(&contract_b, 0, 64, &recv);
	contract_wait(&recv.calls, 1);
	ck_assert_int_eq(try_send(8, &op[64]), 0);
}
END_TEST

START_TEST(a_rail_takes_no_more_posts_than_its_provider_can)
{
	static struct contract_op op[257];

	for (unsigned i = 0; i < 256; i++) {
		ck_assert_int_eq(try_write(i & 1, &op[i]), 0);
	}
	ck_assert_int_eq(try_write(0, &op[256]), -EAGAIN);
	ck_assert_uint_eq(fr_rail_inflight(contract_a.rail), 256);
	contract_wait(&contract_b.imm_cnt, 256);
	contract_wait(&op[255].calls, 1);
	ck_assert_uint_eq(fr_rail_inflight(contract_a.rail), 0);
	contract_b.imm_cnt = 0;
	ck_assert_int_eq(try_write(0, &op[256]), 0);
}
END_TEST

START_TEST(a_full_completion_queue_holds_the_sender_back)
{
	struct fr_rail_attr attr = {.fabric = contract_fabric,
				    .cq_size = 4,
				    .cq_read_cnt = 1,
				    .owner = &contract_b};
	static struct contract_op op[10];
	struct contract_side small;
	static struct contract_op recv[10];

	memset(&small, 0, sizeof(small));
	ck_assert_int_eq(fr_rail_open(&attr, &small.rail), 0);
	ck_assert_int_eq(fr_rail_peer_add(contract_a.rail,
					  fr_rail_name(small.rail, FR_EP_CTRL),
					  &contract_a.to_ctrl),
			 0);
	ck_assert_int_eq(fr_mr_cache_create(&small.rail, 1, true, &small.cache),
			 0);
	ck_assert_int_eq(fr_mr_get(small.cache, contract_b.buf, 4096,
				   FR_MR_LOCAL, &small.local),
			 0);
	small.buf = contract_b.buf;
	for (unsigned i = 0; i < 10; i++) {
		contract_recv(&small, i * 64, 64, &recv[i]);
		ck_assert_int_eq(try_send(8, &op[i]), 0);
	}
	ck_assert_int_eq(fr_rail_poll(small.rail), 10);
	ck_assert_uint_eq(counts_of(small.rail).cq_peak, 4);
	for (unsigned i = 0; i < 10; i++) {
		ck_assert_uint_eq(recv[i].calls, 1);
	}
	fr_mr_cache_destroy(small.cache);
	fr_rail_close(small.rail);
}
END_TEST

START_TEST(a_refused_write_takes_down_what_is_behind_it)
{
	struct contract_op bad, waits, told;
	uint64_t addr = fr_mr_remote_addr(contract_b.remote, contract_b.window);

	contract_op_init(&bad);
	contract_op_init(&told);
	ck_assert_int_eq(fr_rail_write(contract_a.rail, contract_a.to_data,
				       contract_a.buf, 8,
				       fr_mr_desc(contract_a.local, 0), addr,
				       12345, 1, true, &bad.op),
			 0);
	ck_assert_int_eq(fr_rail_write(contract_a.rail, contract_a.to_data,
				       contract_a.buf, 8,
				       fr_mr_desc(contract_a.local, 0), addr,
				       fr_mr_key(contract_b.remote, 0), 2,
				       false, &told.op),
			 0);
	ck_assert_int_eq(try_write(3, &waits), 0);
	contract_wait(&bad.calls, 1);
	contract_wait(&waits.calls, 1);
	contract_wait(&told.calls, 1);
	ck_assert_int_eq(bad.err, -ECANCELED);
	ck_assert_int_eq(waits.err, -ECANCELED);
	ck_assert_int_eq(told.err, 0); /* and lost in silence */
	ck_assert_uint_eq(contract_b.imm_cnt, 0);
	ck_assert_uint_eq(counts_of(contract_b.rail).refused, 1);
	ck_assert_uint_eq(counts_of(contract_a.rail).lost, 3);
}
END_TEST

START_TEST(what_is_dropped_never_arrives)
{
	struct contract_op recv, sent, op;

	contract_recv(&contract_b, 0, 64, &recv);
	fr_fake_drop(name_b(FR_EP_CTRL), 1);
	fr_fake_drop(name_b(FR_EP_DATA), 1);
	ck_assert_int_eq(try_send(8, &sent), 0);
	ck_assert_int_eq(try_write(1, &op), 0);
	poll_n(5);
	ck_assert_uint_eq(sent.calls, 1);
	ck_assert_int_eq(sent.err, 0);
	ck_assert_uint_eq(op.calls, 0);
	ck_assert_uint_eq(recv.calls, 0);
	ck_assert_int_eq(try_send(9, &sent), 0);
	contract_wait(&recv.calls, 1);
	ck_assert_uint_eq(recv.bytes, 9);
	fr_fake_break(name_b(FR_EP_DATA));
	contract_wait(&op.calls, 1);
	ck_assert_int_eq(op.err, -ECANCELED);
}
END_TEST

START_TEST(what_is_held_arrives_later)
{
	struct contract_op op;

	fr_fake_hold(name_b(FR_EP_DATA), true);
	ck_assert_int_eq(try_write(1, &op), 0);
	poll_n(5);
	ck_assert_uint_eq(op.calls, 0);
	fr_fake_hold(name_b(FR_EP_DATA), false);
	contract_wait(&op.calls, 1);
	ck_assert_int_eq(op.err, 0);
	ck_assert_uint_eq(contract_b.imm_cnt, 1);
}
END_TEST

START_TEST(a_killed_name_fails_what_waits_and_takes_nothing_more)
{
	struct contract_op waits, op, other;

	ck_assert_int_eq(try_write(1, &waits), 0);
	fr_fake_kill(name_b(FR_EP_DATA));
	ck_assert_int_eq(fr_rail_poll(contract_a.rail), 1);
	ck_assert_int_eq(waits.err, -ECANCELED);
	for (unsigned i = 0; i < 20; i++) {
		ck_assert_int_eq(try_write(2, &op), -EAGAIN);
		poll_n(1);
	}
	ck_assert_uint_eq(contract_b.imm_cnt, 0);
	ck_assert_int_eq(try_send(8, &op), 0); /* C lives */
	fr_fake_kill(fr_rail_name(contract_a.rail, FR_EP_CTRL));
	ck_assert_int_eq(try_send(8, &other), -EAGAIN);
}
END_TEST

START_TEST(a_broken_connection_comes_back)
{
	struct contract_op waits, op;

	ck_assert_int_eq(try_write(1, &waits), 0);
	fr_fake_break(fr_rail_name(contract_a.rail, FR_EP_CTRL));
	contract_wait(&waits.calls, 1);
	ck_assert_int_eq(waits.err, -ECANCELED);
	ck_assert_int_eq(try_write(2, &op), 0);
	contract_wait(&contract_b.imm_cnt, 1);
	ck_assert_uint_eq(contract_b.imm[0], 2);
}
END_TEST

struct snooped {
	unsigned sends, writes;
	enum fr_fake_verdict verdict;
	bool flip;
	uint64_t imm;
	size_t bytes;
};

static enum fr_fake_verdict snoop(void *arg, const struct fr_fake_seen *seen)
{
	struct snooped *s = arg;

	ck_assert_ptr_eq(seen->src, contract_a.rail);
	ck_assert_ptr_eq(seen->dst, contract_b.rail);
	s->bytes = seen->bytes;
	if (seen->write) {
		s->writes++;
		s->imm = seen->imm;
		ck_assert_ptr_null(seen->data);
	} else {
		s->sends++;
		if (s->flip) {
			*(uint8_t *)seen->data ^= 0xff;
		}
	}
	return s->verdict;
}

START_TEST(a_snoop_sees_changes_doubles_and_loses)
{
	struct snooped s = {.verdict = FR_FAKE_TWICE, .flip = true};
	struct contract_op recv[3], sent, op;

	fr_fake_set_snoop(snoop, &s);
	for (unsigned i = 0; i < 3; i++) {
		contract_recv(&contract_b, 64 * i, 64, &recv[i]);
	}
	contract_a.buf[0] = 0x0f;
	ck_assert_int_eq(try_send(10, &sent), 0);
	contract_wait(&recv[1].calls, 1);
	contract_wait(&sent.calls, 1);
	ck_assert_uint_eq(contract_b.buf[0], 0xf0);
	ck_assert_uint_eq(contract_b.buf[64], 0xf0);
	ck_assert_uint_eq(recv[1].bytes, 10);
	ck_assert_int_eq(try_write(44, &op), 0);
	contract_wait(&op.calls, 1);
	ck_assert_uint_eq(contract_b.imm_cnt, 1);
	s.verdict = FR_FAKE_LOSE;
	ck_assert_int_eq(try_send(11, &sent), 0);
	poll_n(5);
	ck_assert_uint_eq(recv[2].calls, 0);
	ck_assert_uint_eq(s.sends, 2);
	ck_assert_uint_eq(s.writes, 1);
	ck_assert_uint_eq(s.imm, 44);
	ck_assert_uint_eq(s.bytes, 11);
}
END_TEST

START_TEST(a_stranger_can_say_anything)
{
	const struct fr_name *ctrl = name_b(FR_EP_CTRL);
	const struct fr_name *data = name_b(FR_EP_DATA);
	struct contract_op recv;

	contract_recv(&contract_b, 0, 64, &recv);
	ck_assert_int_eq(fr_fake_inject_msg(ctrl, "garbage", 7), 0);
	ck_assert_int_eq(fr_fake_inject_imm(data, UINT64_MAX, 0), 0);
	ck_assert_int_eq(fr_fake_inject_write(
				 data,
				 fr_mr_remote_addr(contract_b.remote,
						   contract_b.window + 8),
				 fr_mr_key(contract_b.remote, 0), "late", 4, 5),
			 0);
	ck_assert_int_eq(fr_fake_inject_error(data, -ECONNRESET), 0);
	poll_n(3);
	ck_assert_uint_eq(recv.bytes, 7);
	ck_assert_mem_eq(contract_b.buf, "garbage", 7);
	ck_assert_uint_eq(contract_b.imm_cnt, 2);
	ck_assert_uint_eq(contract_b.imm[0], UINT64_MAX);
	ck_assert_mem_eq(contract_b.window + 8, "late", 4);
	ck_assert_uint_eq(contract_b.error_cnt, 1);
	ck_assert_int_eq(fr_fake_inject_write(data, 0, 99, "never", 5, 6), 0);
	poll_n(3);
	ck_assert_uint_eq(contract_b.imm_cnt, 2);
	ck_assert_uint_eq(counts_of(NULL).refused, 1);
}
END_TEST

START_TEST(nobody_hears_what_is_said_to_nobody)
{
	struct fr_name name = *name_b(FR_EP_CTRL);

	name.bytes[2] ^= 0x55;
	ck_assert_int_eq(fr_fake_inject_msg(&name, "x", 1), -ENOENT);
	ck_assert_int_eq(fr_fake_inject_imm(&name, 1, 1), -ENOENT);
}
END_TEST

START_TEST(a_shuffle_keeps_the_order_of_each_connection)
{
	struct contract_op op[60];
	unsigned next[2] = {0, 100};
	bool mixed = false;

	fr_fake_shuffle(true);
	fr_fake_seed(5);
	contract_b.to_data = contract_a.to_data;
	ck_assert_int_eq(fr_rail_peer_add(contract_b.rail, name_b(FR_EP_DATA),
					  &contract_b.to_data),
			 0);
	for (unsigned i = 0; i < 30; i++) {
		contract_write(&contract_a, &contract_b, 0, 8, i, false,
			       &op[2 * i]);
		contract_write(&contract_b, &contract_b, 8, 8, 100 + i, false,
			       &op[2 * i + 1]);
	}
	contract_wait(&contract_b.imm_cnt, 60);
	for (unsigned i = 0; i < 60; i++) {
		unsigned from = contract_b.imm[i] >= 100;

		ck_assert_uint_eq(contract_b.imm[i], next[from]++);
		mixed |= from != i % 2;
	}
	ck_assert(mixed);
}
END_TEST

START_TEST(without_order_all_still_arrive_once)
{
	static struct contract_op op[50];
	uint64_t seen = 0;
	bool mixed = false;

	fr_fake_unordered(true);
	for (unsigned i = 0; i < 50; i++) {
		contract_write(&contract_a, &contract_b, 0, 8, i, true, &op[i]);
	}
	contract_wait(&contract_b.imm_cnt, 50);
	poll_n(2);
	for (unsigned i = 0; i < 50; i++) {
		seen |= 1ull << contract_b.imm[i];
		mixed |= contract_b.imm[i] != i;
		ck_assert_uint_eq(op[i].calls, 1);
	}
	ck_assert_uint_eq(seen, (1ull << 50) - 1);
	ck_assert(mixed);
}
END_TEST

START_TEST(a_port_can_come_back_after_a_restart)
{
	struct fr_name old = *name_b(FR_EP_CTRL);
	struct contract_op recv, op;
	uint16_t port;

	memcpy(&port, old.bytes + 2, sizeof(port));
	contract_side_close(&contract_b);
	ck_assert_int_eq(try_send(8, &op), -EAGAIN);
	fr_fake_next_port((uint16_t)(port << 8 | port >> 8));
	contract_side_open(&contract_b, 1);
	ck_assert_mem_eq(name_b(FR_EP_CTRL)->bytes, old.bytes, old.len);
	contract_recv(&contract_b, 0, 64, &recv);
	ck_assert_int_eq(try_send(8, &op), 0);
	contract_wait(&recv.calls, 1);
}
END_TEST

START_TEST(rails_are_listed_while_they_are_open)
{
	ck_assert_uint_eq(fr_fake_rail_cnt(), 2);
	ck_assert_ptr_eq(fr_fake_rail(0), contract_a.rail);
	ck_assert_ptr_eq(fr_fake_rail(1), contract_b.rail);
	ck_assert_ptr_null(fr_fake_rail(2));
	ck_assert_uint_eq(fr_fake_reset(), 2 + 4);
}
END_TEST

START_TEST(an_abandoned_rail_stays_until_the_reset)
{
	struct contract_op op;

	ck_assert_int_eq(try_write(1, &op), 0);
	fr_mr_cache_abandon(contract_b.cache);
	fr_rail_abandon(contract_b.rail);
	contract_b.rail = NULL;
	poll_n(5);
	ck_assert_uint_eq(op.calls, 0);
	ck_assert_uint_eq(fr_fake_rail_cnt(), 1);
	contract_side_close(&contract_a);
	fr_fabric_close(contract_fabric);
	contract_fabric = NULL;
	ck_assert_uint_gt(fr_live_allocs(), 0);
	ck_assert_uint_eq(fr_fake_reset(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

/* Its own writes that wait, and those of its peer, end with it. */
START_TEST(a_fenced_rail_is_out_of_the_world)
{
	struct contract_op in, out;

	contract_b.to_data = contract_a.to_data;
	ck_assert_int_eq(
		fr_rail_peer_add(contract_b.rail,
				 fr_rail_name(contract_a.rail, FR_EP_DATA),
				 &contract_b.to_data),
		0);
	ck_assert_int_eq(try_write(1, &in), 0);
	contract_write(&contract_b, &contract_a, 8, 8, 2, true, &out);
	fr_rail_fence(contract_b.rail);
	for (unsigned i = 0; i < 5; i++) {
		fr_rail_poll(contract_a.rail);
	}
	ck_assert_uint_eq(in.calls, 1);
	ck_assert_int_eq(in.err, -ECANCELED);
	ck_assert_uint_eq(out.calls, 0);
	ck_assert_uint_eq(contract_a.imm_cnt, 0);
	ck_assert_int_eq(try_write(3, &in), -EAGAIN);
	ck_assert_uint_eq(counts_of(NULL).violations, 0);
	fr_rail_poll(contract_b.rail);
	ck_assert_uint_eq(counts_of(NULL).violations, 1);
	fr_fake_reset();
}
END_TEST

START_TEST(opening_fails_when_asked_to)
{
	struct fr_rail *rail = (struct fr_rail *)0x1;
	struct fr_rail_attr attr = {.fabric = contract_fabric};
	struct fr_fabric *fabric = NULL;
	struct fr_mr *mr = NULL;
	uint64_t addr = 5;

	fr_fake_fail_at(FR_FAKE_FABRIC_OPEN, 1, -ENOENT);
	fr_fake_fail_at(FR_FAKE_RAIL_OPEN, 1, -EMFILE);
	fr_fake_fail_at(FR_FAKE_PEER_ADD, 1, -ENOMEM);
	fr_fake_fail_at(FR_FAKE_MR_REG, 1, -EACCES);
	unit_log_setup();
	ck_assert_int_eq(open_fake(&fabric), -ENOENT);
	ck_assert_int_eq(fr_rail_open(&attr, &rail), -EMFILE);
	unit_assert_logged("fake0");
	ck_assert_int_eq(
		fr_rail_peer_add(contract_a.rail, name_b(FR_EP_CTRL), &addr),
		-ENOMEM);
	ck_assert_int_eq(fr_mr_get(contract_a.cache, contract_b.buf, 64,
				   FR_MR_REMOTE_WRITE, &mr),
			 -EACCES);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 3);
	fr_log_set_sink(NULL);
	ck_assert_ptr_eq(rail, (struct fr_rail *)0x1);
	ck_assert_uint_eq(addr, 5);
	ck_assert_ptr_null(fabric);
	ck_assert_ptr_null(mr);
}
END_TEST

START_TEST(a_registration_that_fails_on_one_rail_leaves_none)
{
	struct fr_rail *rails[2] = {contract_a.rail, contract_b.rail};
	struct fr_mr_cache *cache;
	struct fr_mr *mr = NULL;

	ck_assert_int_eq(fr_mr_cache_create(rails, 2, true, &cache), 0);
	fr_fake_fail_at(FR_FAKE_MR_REG, 2, -EIO);
	unit_log_setup();
	ck_assert_int_eq(fr_mr_get(cache, contract_a.buf, 64, FR_MR_LOCAL, &mr),
			 -EIO);
	fr_log_set_sink(NULL);
	ck_assert_uint_eq(fr_mr_cache_live(cache), 0);
	ck_assert_int_eq(fr_mr_get(cache, contract_a.buf, 64, FR_MR_LOCAL, &mr),
			 0);
	ck_assert_ptr_ne(fr_mr_desc(mr, 0), fr_mr_desc(mr, 1));
	fr_mr_put(cache, mr);
	fr_mr_cache_destroy(cache);
}
END_TEST

static void expect_violations(unsigned cnt)
{
	ck_assert_uint_eq(counts_of(NULL).violations, cnt);
	contract_teardown();
	fr_fake_reset();
	contract_setup(); /* for the fixture's end */
}

START_TEST(an_operation_posted_twice_is_a_violation)
{
	struct contract_op op;

	ck_assert_int_eq(try_write(1, &op), 0);
	ck_assert_int_eq(fr_rail_recv(contract_a.rail, contract_a.buf, 8,
				      fr_mr_desc(contract_a.local, 0), &op.op),
			 -EINVAL);
	expect_violations(1);
}
END_TEST

START_TEST(a_descriptor_must_hold_its_buffer)
{
	struct contract_op op;

	contract_op_init(&op);
	ck_assert_int_eq(fr_rail_send(contract_a.rail, contract_a.to_ctrl,
				      contract_a.buf, 8, NULL, &op.op),
			 -EINVAL);
	ck_assert_int_eq(fr_rail_send(contract_a.rail, contract_a.to_ctrl,
				      contract_a.buf + CONTRACT_BUF_BYTES - 4,
				      8, fr_mr_desc(contract_a.local, 0),
				      &op.op),
			 -EINVAL);
	ck_assert_int_eq(fr_rail_send(contract_a.rail, contract_a.to_ctrl,
				      contract_a.buf, 8,
				      fr_mr_desc(contract_b.local, 0), &op.op),
			 -EINVAL);
	expect_violations(3);
}
END_TEST

/* The loop index: whether the completion waits for the target. */
START_TEST(a_source_must_stay_as_it_is_until_its_completion)
{
	struct contract_op op;

	contract_op_init(&op);
	ck_assert_int_eq(
		fr_rail_write(
			contract_a.rail, contract_a.to_data, contract_a.buf, 64,
			fr_mr_desc(contract_a.local, 0),
			fr_mr_remote_addr(contract_b.remote, contract_b.window),
			fr_mr_key(contract_b.remote, 0), 1, _i == 1, &op.op),
		0);
	contract_a.buf[3] ^= 1;
	contract_wait(&op.calls, 1);
	poll_n(1);
	ck_assert_uint_ge(counts_of(NULL).violations, 1);
	expect_violations(_i == 1 ? 2 : 1);
}
END_TEST

START_TEST(a_post_to_a_peer_that_was_removed_is_a_violation)
{
	struct contract_op op;

	fr_rail_peer_del(contract_a.rail, contract_a.to_ctrl);
	ck_assert_int_eq(try_send(8, &op), -EINVAL);
	fr_rail_peer_del(contract_a.rail, contract_a.to_ctrl);
	expect_violations(2);
}
END_TEST

struct intruder {
	struct contract_op recv;
	int ret;
};

static void *poll_beside(void *arg)
{
	struct intruder *in = arg;

	in->ret = fr_rail_poll(contract_b.rail);
	return NULL;
}

static void on_done_intrude(struct fr_op *op, struct fr_rail *rail, int err,
			    size_t bytes)
{
	struct intruder *in = FR_CONTAINER_OF(op, struct intruder, recv.op);
	pthread_t thread;

	(void)rail;
	(void)err;
	(void)bytes;
	in->recv.calls++;
	ck_assert_int_eq(pthread_create(&thread, NULL, poll_beside, in), 0);
	pthread_join(thread, NULL);
}

START_TEST(two_threads_in_one_rail_are_a_violation)
{
	static struct intruder in;
	struct contract_op op;

	contract_op_init(&in.recv);
	in.recv.op.done = on_done_intrude;
	ck_assert_int_eq(fr_rail_recv(contract_b.rail, contract_b.buf, 64,
				      fr_mr_desc(contract_b.local, 0),
				      &in.recv.op),
			 0);
	ck_assert_int_eq(try_send(8, &op), 0);
	contract_wait(&in.recv.calls, 1);
	expect_violations(1);
}
END_TEST

/* Each thread owns one rail and plays one half of a ping-pong. */
#define PINGS 2000u

struct player {
	struct contract_side *side;
	struct contract_op recv, send;
	bool first;
};

static void player_post(struct player *p)
{
	struct contract_side *side = p->side;
	int ret;

	contract_op_init(&p->recv);
	ck_assert_int_eq(fr_rail_recv(side->rail, side->buf, 64,
				      fr_mr_desc(side->local, 0), &p->recv.op),
			 0);
	contract_op_init(&p->send);
	do {
		ret = fr_rail_send(side->rail, side->to_ctrl, side->buf + 64, 8,
				   fr_mr_desc(side->local, 0), &p->send.op);
		fr_rail_poll(side->rail);
	} while (ret == -EAGAIN);
	ck_assert_int_eq(ret, 0);
}

static void *player_run(void *arg)
{
	struct player *p = arg;

	for (unsigned i = 0; i < PINGS; i++) {
		memcpy(p->side->buf + 64, &i, sizeof(i));
		player_post(p);
		while (p->recv.calls == 0 || p->send.calls == 0) {
			if (fr_rail_poll(p->side->rail) == 0) {
				sched_yield();
			}
		}
		ck_assert_mem_eq(p->side->buf, &i, sizeof(i));
	}
	return NULL;
}

START_TEST(rails_of_two_threads_talk)
{
	struct player a = {.side = &contract_a}, b = {.side = &contract_b};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, player_run, &b), 0);
	player_run(&a);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(counts_of(contract_a.rail).recv_bytes, 8 * PINGS);
	ck_assert_uint_eq(counts_of(NULL).send_bytes, 2 * 8 * PINGS);
}
END_TEST

static void add_fault_tests(TCase *tcase)
{
	tcase_add_test(tcase, again_is_said_as_often_as_asked);
	tcase_add_test(tcase, the_nth_call_fails_once);
	tcase_add_test(tcase, a_fault_can_be_bound_to_a_rail_and_an_owner);
	tcase_add_test(tcase, a_chance_repeats_under_its_seed);
	tcase_add_loop_test(tcase, an_error_completion_leaves_open_what_landed,
			    0, 2);
	tcase_add_test(tcase, a_receive_can_end_in_an_error);
	tcase_add_test(tcase, a_message_longer_than_its_buffer_is_an_error);
	tcase_add_test(tcase, a_connection_without_receive_buffers_fills_up);
	tcase_add_test(tcase, a_rail_takes_no_more_posts_than_its_provider_can);
	tcase_add_test(tcase, a_full_completion_queue_holds_the_sender_back);
	tcase_add_test(tcase, a_refused_write_takes_down_what_is_behind_it);
	tcase_add_test(tcase, opening_fails_when_asked_to);
	tcase_add_test(tcase,
		       a_registration_that_fails_on_one_rail_leaves_none);
}

static void add_wire_tests(TCase *tcase)
{
	tcase_add_test(tcase, what_is_dropped_never_arrives);
	tcase_add_test(tcase, what_is_held_arrives_later);
	tcase_add_test(tcase,
		       a_killed_name_fails_what_waits_and_takes_nothing_more);
	tcase_add_test(tcase, a_broken_connection_comes_back);
	tcase_add_test(tcase, a_snoop_sees_changes_doubles_and_loses);
	tcase_add_test(tcase, a_stranger_can_say_anything);
	tcase_add_test(tcase, nobody_hears_what_is_said_to_nobody);
	tcase_add_test(tcase, a_shuffle_keeps_the_order_of_each_connection);
	tcase_add_test(tcase, without_order_all_still_arrive_once);
	tcase_add_test(tcase, a_port_can_come_back_after_a_restart);
	tcase_add_test(tcase, rails_are_listed_while_they_are_open);
	tcase_add_test(tcase, rails_of_two_threads_talk);
	tcase_add_test(tcase, a_fenced_rail_is_out_of_the_world);
}

static void add_violation_tests(TCase *tcase)
{
	tcase_add_test(tcase, an_operation_posted_twice_is_a_violation);
	tcase_add_test(tcase, a_descriptor_must_hold_its_buffer);
	tcase_add_loop_test(
		tcase, a_source_must_stay_as_it_is_until_its_completion, 0, 2);
	tcase_add_test(tcase, a_post_to_a_peer_that_was_removed_is_a_violation);
	tcase_add_test(tcase, two_threads_in_one_rail_are_a_violation);
}

static TCase *case_new(const char *name, void (*setup)(void))
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, 30);
	tcase_add_checked_fixture(tcase, setup, fake_teardown);
	return tcase;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*setup)(void);
	} shapes[] = {
		{"net", net_setup},
		{"efa", efa_setup},
		{"slow", slow_setup},
	};
	Suite *suite = suite_create("fake_rail");
	TCase *tcase;

	for (unsigned i = 0; i < FR_ARRAY_LEN(shapes); i++) {
		tcase = case_new(shapes[i].name, shapes[i].setup);
		contract_add_tests(tcase, open_fake);
		suite_add_tcase(suite, tcase);
	}
	tcase = case_new("faults", net_setup);
	add_fault_tests(tcase);
	add_wire_tests(tcase);
	add_violation_tests(tcase);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("abandon");
	tcase_add_checked_fixture(tcase, net_setup, NULL);
	tcase_add_test(tcase, an_abandoned_rail_stays_until_the_reset);
	suite_add_tcase(suite, tcase);
	return unit_run_suite(suite);
}
