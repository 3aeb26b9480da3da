#include "unit/fabric/rail_contract.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

#define PAGE_BYTES 4096u
#define WINDOW_BYTES (4u * PAGE_BYTES)
#define GUARD 0xee

struct fr_fabric *contract_fabric;
struct contract_side contract_a, contract_b;
static contract_open_fn open_fabric;

static void on_write(void *owner, struct fr_rail *rail, uint64_t imm,
		     size_t bytes)
{
	struct contract_side *side = owner;

	(void)bytes;
	ck_assert_ptr_eq(rail, side->rail);
	ck_assert_uint_lt(side->imm_cnt, CONTRACT_MAX_EVENTS);
	side->imm[side->imm_cnt++] = imm;
}

static void on_error(void *owner, struct fr_rail *rail, int err)
{
	struct contract_side *side = owner;

	(void)rail;
	ck_assert_int_lt(err, 0);
	side->error_cnt++;
}

static const struct fr_rail_ops ops = {.remote_write = on_write,
				       .remote_error = on_error};

static void on_done(struct fr_op *op, struct fr_rail *rail, int err,
		    size_t bytes)
{
	struct contract_op *mine = FR_CONTAINER_OF(op, struct contract_op, op);

	mine->calls++;
	mine->err = err;
	mine->bytes = bytes;
	mine->said = err != 0 && fr_rail_error_text(rail)[0] != '\0';
}

void contract_op_init(struct contract_op *op)
{
	memset(op, 0, sizeof(*op));
	op->op.done = on_done;
}

static uint8_t *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

void contract_side_open(struct contract_side *side, unsigned index)
{
	struct fr_rail_attr attr = {.fabric = contract_fabric,
				    .index = index,
				    .cq_size = 1024,
				    .cq_read_cnt = 16,
				    .ops = &ops,
				    .owner = side};

	memset(side, 0, sizeof(*side));
	ck_assert_int_eq(fr_rail_open(&attr, &side->rail), 0);
	ck_assert_int_eq(fr_mr_cache_create(&side->rail, 1, true, &side->cache),
			 0);
	side->buf = map(CONTRACT_BUF_BYTES);
	side->window = map(WINDOW_BYTES + PAGE_BYTES);
	memset(side->window, GUARD, WINDOW_BYTES + PAGE_BYTES);
	ck_assert_int_eq(fr_mr_get(side->cache, side->buf, CONTRACT_BUF_BYTES,
				   FR_MR_LOCAL, &side->local),
			 0);
	ck_assert_int_eq(fr_mr_get(side->cache, side->window, WINDOW_BYTES,
				   FR_MR_REMOTE_WRITE, &side->remote),
			 0);
}

void contract_side_close(struct contract_side *side)
{
	if (side->rail == NULL) {
		return;
	}
	fr_mr_put(side->cache, side->local);
	fr_mr_put(side->cache, side->remote);
	fr_mr_cache_destroy(side->cache);
	fr_rail_close(side->rail);
	munmap(side->buf, CONTRACT_BUF_BYTES);
	munmap(side->window, WINDOW_BYTES + PAGE_BYTES);
	side->rail = NULL;
}

void contract_introduce(struct contract_side *from,
			const struct contract_side *to)
{
	ck_assert_int_eq(fr_rail_peer_add(from->rail,
					  fr_rail_name(to->rail, FR_EP_CTRL),
					  &from->to_ctrl),
			 0);
	ck_assert_int_eq(fr_rail_peer_add(from->rail,
					  fr_rail_name(to->rail, FR_EP_DATA),
					  &from->to_data),
			 0);
}

void contract_setup(void)
{
	ck_assert_int_eq(open_fabric(&contract_fabric), 0);
	contract_side_open(&contract_a, 0);
	contract_side_open(&contract_b, 1);
	contract_introduce(&contract_a, &contract_b);
	contract_introduce(&contract_b, &contract_a);
}

void contract_teardown(void)
{
	contract_side_close(&contract_a);
	contract_side_close(&contract_b);
	fr_fabric_close(contract_fabric);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

void contract_poll_both(void)
{
	if (contract_a.rail != NULL) {
		ck_assert_int_ge(fr_rail_poll(contract_a.rail), 0);
	}
	if (contract_b.rail != NULL) {
		ck_assert_int_ge(fr_rail_poll(contract_b.rail), 0);
	}
}

void contract_wait(const unsigned *count, unsigned target)
{
	uint64_t deadline = fr_now_ns() + 10 * FR_NS_PER_S;

	while (*count < target) {
		ck_assert_msg(fr_now_ns() < deadline, "%u of %u after 10 s",
			      *count, target);
		contract_poll_both();
		sched_yield();
	}
}

void contract_send(struct contract_side *from, size_t offset, size_t bytes,
		   struct contract_op *op)
{
	uint64_t deadline = fr_now_ns() + 10 * FR_NS_PER_S;
	int ret;

	contract_op_init(op);
	do {
		ret = fr_rail_send(from->rail, from->to_ctrl,
				   from->buf + offset, bytes,
				   fr_mr_desc(from->local, 0), &op->op);
		if (ret == -EAGAIN) {
			ck_assert_uint_lt(fr_now_ns(), deadline);
			contract_poll_both();
			sched_yield();
		}
	} while (ret == -EAGAIN);
	ck_assert_int_eq(ret, 0);
}

static int write_once(struct contract_side *from, size_t offset, size_t bytes,
		      uint64_t remote_addr, uint64_t key, uint64_t imm,
		      bool deliver, struct contract_op *op)
{
	return fr_rail_write(from->rail, from->to_data, from->buf + offset,
			     bytes, fr_mr_desc(from->local, 0), remote_addr,
			     key, imm, deliver, &op->op);
}

static void write_to(struct contract_side *from, size_t offset, size_t bytes,
		     uint64_t remote_addr, uint64_t key, uint64_t imm,
		     bool deliver, struct contract_op *op)
{
	uint64_t deadline = fr_now_ns() + 10 * FR_NS_PER_S;
	int ret;

	contract_op_init(op);
	do {
		ret = write_once(from, offset, bytes, remote_addr, key, imm,
				 deliver, op);
		if (ret == -EAGAIN) {
			ck_assert_uint_lt(fr_now_ns(), deadline);
			contract_poll_both();
			sched_yield();
		}
	} while (ret == -EAGAIN);
	ck_assert_int_eq(ret, 0);
}

void contract_write(struct contract_side *from, const struct contract_side *to,
		    size_t offset, size_t bytes, uint64_t imm, bool deliver,
		    struct contract_op *op)
{
	write_to(from, offset, bytes,
		 fr_mr_remote_addr(to->remote, to->window + offset),
		 fr_mr_key(to->remote, 0), imm, deliver, op);
}

void contract_recv(struct contract_side *side, size_t offset, size_t bytes,
		   struct contract_op *op)
{
	contract_op_init(op);
	ck_assert_int_eq(fr_rail_recv(side->rail, side->buf + offset, bytes,
				      fr_mr_desc(side->local, 0), &op->op),
			 0);
}

static void poll_only(struct fr_rail *rail, unsigned ms)
{
	uint64_t end = fr_now_ns() + ms * FR_NS_PER_MS;

	while (fr_now_ns() < end) {
		ck_assert_int_ge(fr_rail_poll(rail), 0);
	}
}

static void assert_guarded(const struct contract_side *side, size_t first,
			   size_t past)
{
	for (size_t i = first; i < past; i++) {
		ck_assert_msg(side->window[i] == GUARD, "byte %zu was written",
			      i);
	}
}

START_TEST(a_rail_knows_what_it_was_opened_with)
{
	struct fr_rail *rail = contract_b.rail;

	ck_assert_uint_eq(fr_rail_index(rail), 1);
	ck_assert_ptr_eq(fr_rail_owner(rail), &contract_b);
	ck_assert_str_eq(fr_rail_nic(rail)->name,
			 fr_fabric_nic(contract_fabric, 0)->name);
	ck_assert_str_eq(fr_rail_quirks(rail)->name,
			 fr_fabric_quirks(contract_fabric)->name);
	ck_assert_uint_eq(fr_rail_inflight(rail), 0);
	ck_assert_int_eq(fr_rail_poll(rail), 0);
}
END_TEST

START_TEST(endpoint_names_are_whole_and_unique)
{
	const struct fr_name *names[4] = {
		fr_rail_name(contract_a.rail, FR_EP_CTRL),
		fr_rail_name(contract_b.rail, FR_EP_CTRL),
		fr_rail_name(contract_a.rail, FR_EP_DATA),
		fr_rail_name(contract_b.rail, FR_EP_DATA),
	};
	bool split = fr_rail_quirks(contract_a.rail)->split_ep;

	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_gt(names[i]->len, 0);
		ck_assert_uint_le(names[i]->len, FR_NAME_MAX);
		for (unsigned j = 0; j < i; j++) {
			bool same = names[i]->len == names[j]->len &&
				    memcmp(names[i]->bytes, names[j]->bytes,
					   names[i]->len) == 0;

			ck_assert(same == (!split && i - j == 2));
		}
	}
}
END_TEST

START_TEST(messages_fill_the_receives_in_order)
{
	struct contract_op recv[3], send[3];

	for (unsigned i = 0; i < 3; i++) {
		contract_recv(&contract_b, 4096 * i, 4096, &recv[i]);
	}
	for (unsigned i = 0; i < 3; i++) {
		memset(contract_a.buf + 4096 * i, 'a' + (int)i, 100 + i);
		contract_send(&contract_a, 4096 * i, 100 + i, &send[i]);
	}
	for (unsigned i = 0; i < 3; i++) {
		contract_wait(&recv[i].calls, 1);
		contract_wait(&send[i].calls, 1);
		ck_assert_int_eq(recv[i].err, 0);
		ck_assert_int_eq(send[i].err, 0);
		ck_assert_uint_eq(recv[i].bytes, 100 + i);
		ck_assert_uint_eq(send[i].bytes, 0);
		ck_assert_mem_eq(contract_b.buf + 4096 * i,
				 contract_a.buf + 4096 * i, 100 + i);
	}
	ck_assert_uint_eq(contract_b.imm_cnt, 0);
}
END_TEST

START_TEST(a_message_of_no_bytes_arrives)
{
	struct contract_op recv, send;

	contract_recv(&contract_b, 0, 64, &recv);
	contract_send(&contract_a, 0, 0, &send);
	contract_wait(&recv.calls, 1);
	ck_assert_int_eq(recv.err, 0);
	ck_assert_uint_eq(recv.bytes, 0);
	contract_wait(&send.calls, 1);
}
END_TEST

START_TEST(a_message_waits_for_a_receive_buffer)
{
	struct contract_op recv, send;

	memset(contract_a.buf, 'w', 300);
	contract_send(&contract_a, 0, 300, &send);
	for (unsigned i = 0; i < 100; i++) {
		contract_poll_both();
	}
	contract_recv(&contract_b, 0, 4096, &recv);
	contract_wait(&recv.calls, 1);
	contract_wait(&send.calls, 1);
	ck_assert_uint_eq(recv.bytes, 300);
	ck_assert_mem_eq(contract_b.buf, contract_a.buf, 300);
}
END_TEST

static struct contract_op again;

static void on_done_again(struct fr_op *op, struct fr_rail *rail, int err,
			  size_t bytes)
{
	on_done(op, rail, err, bytes);
	ck_assert_int_eq(fr_rail_recv(rail, contract_b.buf, 64,
				      fr_mr_desc(contract_b.local, 0), op),
			 0);
}

START_TEST(a_done_function_may_post_its_receive_again)
{
	struct contract_op send;

	contract_op_init(&again);
	again.op.done = on_done_again;
	ck_assert_int_eq(fr_rail_recv(contract_b.rail, contract_b.buf, 64,
				      fr_mr_desc(contract_b.local, 0),
				      &again.op),
			 0);
	for (unsigned i = 1; i <= 50; i++) {
		contract_send(&contract_a, 0, 8, &send);
		contract_wait(&send.calls, 1);
		contract_wait(&again.calls, i);
		ck_assert_int_eq(again.err, 0);
		ck_assert_uint_eq(again.bytes, 8);
	}
}
END_TEST

/* The loop index: whether the completion waits for the target. */
START_TEST(a_write_lands_before_its_immediate_is_told)
{
	const uint64_t imm = fr_fabric_cq_data_bytes(contract_fabric) == 8
				     ? 0xfedcba9876543210ull
				     : 0x76543210ull;
	struct contract_op op;

	memset(contract_a.buf + 100, 'd', 5000);
	contract_write(&contract_a, &contract_b, 100, 5000, imm, _i == 1, &op);
	contract_wait(&contract_b.imm_cnt, 1);
	ck_assert_mem_eq(contract_b.window + 100, contract_a.buf + 100, 5000);
	ck_assert_uint_eq(contract_b.imm[0], imm);
	contract_wait(&op.calls, 1);
	ck_assert_int_eq(op.err, 0);
	assert_guarded(&contract_b, 0, 100);
	assert_guarded(&contract_b, 5100, WINDOW_BYTES + PAGE_BYTES);
	ck_assert_uint_eq(contract_b.error_cnt, 0);
}
END_TEST

START_TEST(a_write_of_no_bytes_carries_its_immediate)
{
	struct contract_op op;

	contract_write(&contract_a, &contract_b, 0, 0, 7, true, &op);
	contract_wait(&contract_b.imm_cnt, 1);
	contract_wait(&op.calls, 1);
	ck_assert_int_eq(op.err, 0);
	ck_assert_uint_eq(contract_b.imm[0], 7);
	assert_guarded(&contract_b, 0, WINDOW_BYTES);
}
END_TEST

START_TEST(a_part_lands_and_is_not_told)
{
	struct contract_op part, op;
	int ret = -EAGAIN;

	memset(contract_a.buf, 'p', 300);
	contract_op_init(&part);
	while (ret == -EAGAIN) {
		ret = fr_rail_write_part(
			contract_a.rail, contract_a.to_data, contract_a.buf,
			200, fr_mr_desc(contract_a.local, 0),
			fr_mr_remote_addr(contract_b.remote, contract_b.window),
			fr_mr_key(contract_b.remote, 0), &part.op);
		contract_poll_both();
		sched_yield();
	}
	ck_assert_int_eq(ret, 0);
	contract_wait(&part.calls, 1);
	ck_assert_int_eq(part.err, 0);
	/* Done means that the target has it. */
	ck_assert_mem_eq(contract_b.window, contract_a.buf, 200);
	assert_guarded(&contract_b, 200, 400);
	ck_assert_uint_eq(contract_b.imm_cnt, 0);
	contract_write(&contract_a, &contract_b, 200, 100, 7, true, &op);
	contract_wait(&contract_b.imm_cnt, 1);
	ck_assert_uint_eq(contract_b.imm[0], 7);
	ck_assert_mem_eq(contract_b.window, contract_a.buf, 300);
	contract_wait(&op.calls, 1);
	ck_assert_uint_eq(contract_b.imm_cnt, 1);
	ck_assert_uint_eq(fr_rail_inflight(contract_a.rail), 0);
}
END_TEST

START_TEST(a_write_takes_no_receive_buffer)
{
	struct contract_op recv, op, send;

	contract_recv(&contract_b, 0, 64, &recv);
	contract_write(&contract_a, &contract_b, 0, 8, 1, true, &op);
	contract_wait(&contract_b.imm_cnt, 1);
	ck_assert_uint_eq(recv.calls, 0);
	contract_send(&contract_a, 0, 8, &send);
	contract_wait(&recv.calls, 1);
	contract_wait(&send.calls, 1);
	contract_wait(&op.calls, 1);
}
END_TEST

START_TEST(writes_arrive_in_the_order_of_their_posts)
{
	static struct contract_op op[100];

	for (unsigned i = 0; i < 100; i++) {
		contract_write(&contract_a, &contract_b, i % 7, i % 3 * 4000, i,
			       i % 2 == 0, &op[i]);
	}
	contract_wait(&contract_b.imm_cnt, 100);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_uint_eq(contract_b.imm[i], i);
		contract_wait(&op[i].calls, 1);
		ck_assert_uint_eq(op[i].calls, 1);
	}
}
END_TEST

START_TEST(a_delivered_write_is_done_only_when_its_target_polled)
{
	struct contract_op first, op;

	contract_write(&contract_a, &contract_b, 0, 8, 1, true, &first);
	contract_wait(&first.calls, 1);
	contract_write(&contract_a, &contract_b, 0, 8, 2, true, &op);
	poll_only(contract_a.rail, 50);
	ck_assert_uint_eq(op.calls, 0);
	ck_assert_uint_eq(contract_b.imm_cnt, 1);
	contract_wait(&op.calls, 1);
	ck_assert_int_eq(op.err, 0);
	ck_assert_uint_eq(contract_b.imm_cnt, 2);
}
END_TEST

START_TEST(inflight_counts_posts_and_not_receives)
{
	struct contract_op first, op, recv;

	contract_write(&contract_a, &contract_b, 0, 8, 1, true, &first);
	contract_wait(&first.calls, 1);
	contract_recv(&contract_a, 4096, 64, &recv);
	ck_assert_uint_eq(fr_rail_inflight(contract_a.rail), 0);
	contract_write(&contract_a, &contract_b, 0, 8, 2, true, &op);
	ck_assert_uint_eq(fr_rail_inflight(contract_a.rail), 1);
	contract_wait(&op.calls, 1);
	ck_assert_uint_eq(fr_rail_inflight(contract_a.rail), 0);
}
END_TEST

/* What is wrong: 0 the key, 1 the start, 2 the end, 3 a range that wraps, 4
 * memory that is registered for us alone. */
START_TEST(a_write_that_must_not_land_touches_nothing)
{
	uint64_t addr = fr_mr_remote_addr(contract_b.remote, contract_b.window);
	uint64_t key = fr_mr_key(contract_b.remote, 0);
	struct contract_op op;

	memset(contract_a.buf, 'x', 2 * PAGE_BYTES);
	memset(contract_b.buf, GUARD, CONTRACT_BUF_BYTES);
	switch (_i) {
	case 0:
		key ^= 0x5a5a5a5a5aull;
		break;
	case 1:
		addr += WINDOW_BYTES + 8;
		break;
	case 2:
		addr += WINDOW_BYTES - PAGE_BYTES - 8;
		break;
	case 3:
		addr -= 64;
		break;
	default:
		addr = fr_mr_remote_addr(contract_b.local, contract_b.buf);
		key = fr_mr_key(contract_b.local, 0);
		break;
	}
	write_to(&contract_a, 0, 2 * PAGE_BYTES, addr, key, 1, true, &op);
	contract_wait(&op.calls, 1);
	ck_assert_int_lt(op.err, 0);
	ck_assert(op.said);
	ck_assert_uint_eq(contract_b.imm_cnt, 0);
	assert_guarded(&contract_b, 0, WINDOW_BYTES + PAGE_BYTES);
	for (unsigned i = 0; i < CONTRACT_BUF_BYTES; i++) {
		ck_assert_uint_eq(contract_b.buf[i], GUARD);
	}
}
END_TEST

START_TEST(a_registration_that_was_put_back_takes_no_more_writes)
{
	uint64_t addr = fr_mr_remote_addr(contract_b.remote, contract_b.window);
	uint64_t key = fr_mr_key(contract_b.remote, 0);
	struct contract_op op;

	fr_mr_put(contract_b.cache, contract_b.remote);
	contract_b.remote = NULL;
	write_to(&contract_a, 0, 64, addr, key, 1, true, &op);
	contract_wait(&op.calls, 1);
	ck_assert_int_lt(op.err, 0);
	assert_guarded(&contract_b, 0, WINDOW_BYTES);
}
END_TEST

START_TEST(nothing_is_delivered_to_a_rail_that_was_closed)
{
	uint64_t end = fr_now_ns() + 200 * FR_NS_PER_MS;
	uint64_t addr = fr_mr_remote_addr(contract_b.remote, contract_b.window);
	uint64_t key = fr_mr_key(contract_b.remote, 0);
	struct contract_op op;

	contract_side_close(&contract_b);
	contract_op_init(&op);
	while (fr_now_ns() < end && op.calls == 0) {
		if (fr_rail_inflight(contract_a.rail) == 0) {
			int ret = write_once(&contract_a, 0, 64, addr, key, 1,
					     true, &op);

			ck_assert_int_le(ret, 0);
		}
		ck_assert_int_ge(fr_rail_poll(contract_a.rail), 0);
	}
	ck_assert(op.calls == 0 || op.err < 0);
}
END_TEST

static bool can_renew(void)
{
	const struct fr_quirks *quirks = fr_rail_quirks(contract_a.rail);

	return quirks->split_ep && quirks->fence == FR_FENCE_EP;
}

/* A write that is under way when its endpoint is renewed, and one that comes
 * later under the old name: neither lands nor is told. */
START_TEST(a_renewed_data_endpoint_leaves_the_old_name_dead)
{
	uint64_t addr = fr_mr_remote_addr(contract_b.remote, contract_b.window);
	uint64_t key = fr_mr_key(contract_b.remote, 0);
	struct contract_op first, under_way, late;

	if (!can_renew()) {
		return;
	}
	contract_write(&contract_a, &contract_b, 0, 8, 1, true, &first);
	contract_wait(&contract_b.imm_cnt, 1);
	memset(contract_b.window, GUARD, WINDOW_BYTES);
	contract_op_init(&under_way);
	ck_assert_int_eq(write_once(&contract_a, 0, WINDOW_BYTES, addr, key, 2,
				    true, &under_way),
			 0);
	ck_assert_int_eq(fr_rail_renew_data(contract_b.rail), 0);
	ck_assert_uint_eq(contract_b.imm_cnt, 1);
	for (uint64_t end = fr_now_ns() + 100 * FR_NS_PER_MS;
	     fr_now_ns() < end;) {
		contract_poll_both();
	}
	contract_op_init(&late);
	(void)write_once(&contract_a, 0, 64, addr, key, 3, true, &late);
	for (uint64_t end = fr_now_ns() + 100 * FR_NS_PER_MS;
	     fr_now_ns() < end;) {
		contract_poll_both();
	}
	ck_assert_uint_eq(contract_b.imm_cnt, 1);
	ck_assert(under_way.calls == 0 || under_way.err < 0);
	ck_assert(late.calls == 0 || late.err < 0);
	assert_guarded(&contract_b, 0, WINDOW_BYTES + PAGE_BYTES);
}
END_TEST

START_TEST(a_renewed_data_endpoint_works_under_its_new_name)
{
	struct fr_name old = *fr_rail_name(contract_b.rail, FR_EP_DATA);
	struct contract_op op, recv;

	if (!can_renew()) {
		return;
	}
	contract_write(&contract_a, &contract_b, 0, 8, 1, true, &op);
	contract_wait(&op.calls, 1);
	ck_assert_int_eq(fr_rail_renew_data(contract_b.rail), 0);
	ck_assert_mem_ne(&old, fr_rail_name(contract_b.rail, FR_EP_DATA),
			 sizeof(old));
	ck_assert_int_eq(
		fr_rail_peer_add(contract_a.rail,
				 fr_rail_name(contract_b.rail, FR_EP_DATA),
				 &contract_a.to_data),
		0);
	memset(contract_a.buf, 'n', 4096);
	contract_write(&contract_a, &contract_b, 0, 4096, 2, true, &op);
	contract_wait(&op.calls, 1);
	ck_assert_int_eq(op.err, 0);
	contract_wait(&contract_b.imm_cnt, 2);
	ck_assert_mem_eq(contract_b.window, contract_a.buf, 4096);
	contract_recv(&contract_b, 4096, 64, &recv);
	contract_send(&contract_a, 0, 64, &op);
	contract_wait(&recv.calls, 1);
	ck_assert_int_eq(recv.err, 0);
}
END_TEST

/* Whatever has landed is told before the call returns. */
START_TEST(a_renewed_data_endpoint_has_told_all_that_landed)
{
	struct contract_op ops[64];
	unsigned told;

	if (!can_renew()) {
		return;
	}
	for (unsigned i = 0; i < 64; i++) {
		contract_write(&contract_a, &contract_b, 8 * i, 8, i, true,
			       &ops[i]);
	}
	ck_assert_int_eq(fr_rail_renew_data(contract_b.rail), 0);
	told = contract_b.imm_cnt;
	for (uint64_t end = fr_now_ns() + 100 * FR_NS_PER_MS;
	     fr_now_ns() < end;) {
		contract_poll_both();
	}
	ck_assert_uint_eq(contract_b.imm_cnt, told);
	for (unsigned i = 0; i < 64; i++) {
		bool landed = contract_b.window[8 * (size_t)i] != GUARD;

		ck_assert_int_eq(landed, i < told);
		/* One that was acknowledged was told. */
		ck_assert(ops[i].calls == 0 || ops[i].err != 0 || i < told);
	}
}
END_TEST

/* What is posted through C goes on: peers notice nothing but on this rail. */
START_TEST(renewing_leaves_our_own_posts_alone)
{
	struct contract_op first, op;

	if (!can_renew()) {
		return;
	}
	contract_write(&contract_b, &contract_a, 0, 8, 1, true, &first);
	contract_wait(&first.calls, 1);
	for (unsigned i = 0; i < 20; i++) {
		contract_write(&contract_b, &contract_a, 0, WINDOW_BYTES, 2 + i,
			       true, &op);
		ck_assert_int_eq(fr_rail_renew_data(contract_b.rail), 0);
		contract_wait(&op.calls, 1);
		ck_assert_int_eq(op.err, 0);
	}
}
END_TEST

START_TEST(closing_a_rail_calls_no_done_function)
{
	struct contract_op recv, first, op;

	contract_recv(&contract_a, 0, 64, &recv);
	contract_write(&contract_a, &contract_b, 0, 8, 1, true, &first);
	contract_wait(&first.calls, 1);
	contract_write(&contract_a, &contract_b, 0, 8, 2, true, &op);
	contract_side_close(&contract_a);
	ck_assert_uint_eq(recv.calls, 0);
	ck_assert_uint_eq(op.calls, 0);
}
END_TEST

START_TEST(a_name_that_the_provider_cannot_read_is_refused)
{
	struct fr_name name = *fr_rail_name(contract_b.rail, FR_EP_CTRL);
	uint64_t addr = 77;

	name.len = 0;
	ck_assert_int_eq(fr_rail_peer_add(contract_a.rail, &name, &addr),
			 -EINVAL);
	ck_assert_uint_eq(addr, 77);
}
END_TEST

START_TEST(a_peer_can_be_added_again_after_it_was_removed)
{
	struct contract_op op;

	fr_rail_peer_del(contract_a.rail, contract_a.to_ctrl);
	fr_rail_peer_del(contract_a.rail, contract_a.to_data);
	contract_introduce(&contract_a, &contract_b);
	contract_write(&contract_a, &contract_b, 0, 8, 3, true, &op);
	contract_wait(&op.calls, 1);
	ck_assert_int_eq(op.err, 0);
	ck_assert_uint_eq(contract_b.imm[0], 3);
}
END_TEST

/* A second comm to the same peer adds the same names. */
START_TEST(a_peer_added_twice_outlives_one_removal)
{
	uint64_t ctrl, data;
	struct contract_op recv, send, op;

	ck_assert_int_eq(
		fr_rail_peer_add(contract_a.rail,
				 fr_rail_name(contract_b.rail, FR_EP_CTRL),
				 &ctrl),
		0);
	ck_assert_int_eq(
		fr_rail_peer_add(contract_a.rail,
				 fr_rail_name(contract_b.rail, FR_EP_DATA),
				 &data),
		0);
	fr_rail_peer_del(contract_a.rail, ctrl);
	fr_rail_peer_del(contract_a.rail, data);
	contract_recv(&contract_b, 0, 64, &recv);
	contract_send(&contract_a, 0, 8, &send);
	contract_write(&contract_a, &contract_b, 0, 8, 5, true, &op);
	contract_wait(&recv.calls, 1);
	contract_wait(&op.calls, 1);
	ck_assert_int_eq(recv.err, 0);
	ck_assert_int_eq(op.err, 0);
	contract_wait(&send.calls, 1);
}
END_TEST

START_TEST(a_range_inside_a_live_registration_shares_it)
{
	struct fr_mr *inside;
	unsigned live = fr_mr_cache_live(contract_a.cache);

	ck_assert_int_eq(fr_mr_get(contract_a.cache, contract_a.buf + 100, 50,
				   FR_MR_LOCAL, &inside),
			 0);
	ck_assert_uint_eq(fr_mr_cache_live(contract_a.cache), live);
	ck_assert_uint_eq(fr_mr_key(inside, 0), fr_mr_key(contract_a.local, 0));
	fr_mr_put(contract_a.cache, inside);
	ck_assert_uint_eq(fr_mr_cache_live(contract_a.cache), live);
	fr_mr_put(contract_a.cache, contract_a.local);
	ck_assert_uint_eq(fr_mr_cache_live(contract_a.cache), live - 1);
	contract_a.local = NULL;
}
END_TEST

START_TEST(access_to_a_peer_is_never_shared_into_being)
{
	struct fr_mr *mr;
	unsigned live = fr_mr_cache_live(contract_b.cache);

	ck_assert_int_eq(fr_mr_get(contract_b.cache, contract_b.buf, 50,
				   FR_MR_REMOTE_WRITE, &mr),
			 0);
	ck_assert_uint_eq(fr_mr_cache_live(contract_b.cache), live + 1);
	ck_assert_uint_ne(fr_mr_key(mr, 0), fr_mr_key(contract_b.local, 0));
	fr_mr_put(contract_b.cache, mr);
}
END_TEST

START_TEST(without_sharing_each_registration_is_its_own)
{
	struct fr_mr_cache *cache;
	struct fr_mr *one, *two;

	ck_assert_int_eq(fr_mr_cache_create(&contract_a.rail, 1, false, &cache),
			 0);
	ck_assert_int_eq(
		fr_mr_get(cache, contract_a.buf, 64, FR_MR_LOCAL, &one), 0);
	ck_assert_int_eq(
		fr_mr_get(cache, contract_a.buf, 64, FR_MR_LOCAL, &two), 0);
	ck_assert_uint_eq(fr_mr_cache_live(cache), 2);
	ck_assert_uint_ne(fr_mr_key(one, 0), fr_mr_key(two, 0));
	fr_mr_cache_destroy(cache);
}
END_TEST

START_TEST(remote_addresses_grow_with_the_pointer)
{
	const struct fr_mr *mr = contract_b.remote;

	ck_assert_uint_eq(fr_mr_remote_addr(mr, contract_b.window + 1234) -
				  fr_mr_remote_addr(mr, contract_b.window),
			  1234);
}
END_TEST

START_TEST(a_range_that_makes_no_sense_is_refused)
{
	struct fr_mr *const untouched = (struct fr_mr *)0x1;
	struct fr_mr *mr = untouched;

	ck_assert_int_eq(fr_mr_get(contract_a.cache, contract_a.buf, 0,
				   FR_MR_LOCAL, &mr),
			 -EINVAL);
	ck_assert_int_eq(fr_mr_get(contract_a.cache, contract_a.buf,
				   SIZE_MAX - 100, FR_MR_LOCAL, &mr),
			 -EINVAL);
	ck_assert_ptr_eq(mr, untouched);
}
END_TEST

START_TEST(nothing_is_a_harmless_argument)
{
	fr_rail_close(NULL);
	fr_mr_put(contract_a.cache, NULL);
	fr_mr_cache_destroy(NULL);
	ck_assert_ptr_nonnull(contract_a.rail);
}
END_TEST

START_TEST(rail_open_leaks_nothing_wherever_it_fails)
{
	struct fr_rail *const untouched = (struct fr_rail *)0x1;
	struct fr_rail_attr attr = {.fabric = contract_fabric,
				    .cq_size = 64,
				    .cq_read_cnt = 4,
				    .ops = &ops};
	struct fr_rail *rail = untouched;
	size_t before = fr_live_allocs();
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), before);
		ck_assert_ptr_eq(rail, untouched);
		fr_fault_alloc_at(++nth);
		ret = fr_rail_open(&attr, &rail);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	fr_fault_alloc_at(0);
	ck_assert_uint_gt(nth, 1);
	fr_rail_close(rail);
	ck_assert_uint_eq(fr_live_allocs(), before);
}
END_TEST

START_TEST(registering_leaks_nothing_wherever_it_fails)
{
	struct fr_mr *const untouched = (struct fr_mr *)0x1;
	struct fr_mr_cache *cache = NULL;
	struct fr_mr *mr = untouched;
	size_t before = fr_live_allocs();
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), before);
		fr_fault_alloc_at(++nth);
		ret = fr_mr_cache_create(&contract_a.rail, 1, true, &cache);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	fr_fault_alloc_at(0);
	ck_assert_uint_gt(nth, 1);
	nth = 0;
	do {
		ck_assert_ptr_eq(mr, untouched);
		ck_assert_uint_eq(fr_mr_cache_live(cache), 0);
		fr_fault_alloc_at(++nth);
		ret = fr_mr_get(cache, contract_a.buf, 64, FR_MR_LOCAL, &mr);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	fr_fault_alloc_at(0);
	ck_assert_uint_gt(nth, 1);
	fr_mr_put(cache, mr);
	fr_mr_cache_destroy(cache);
	ck_assert_uint_eq(fr_live_allocs(), before);
}
END_TEST

void contract_add_tests(TCase *tcase, contract_open_fn open)
{
	open_fabric = open;
	tcase_add_test(tcase, a_rail_knows_what_it_was_opened_with);
	tcase_add_test(tcase, endpoint_names_are_whole_and_unique);
	tcase_add_test(tcase, messages_fill_the_receives_in_order);
	tcase_add_test(tcase, a_message_of_no_bytes_arrives);
	tcase_add_test(tcase, a_message_waits_for_a_receive_buffer);
	tcase_add_test(tcase, a_done_function_may_post_its_receive_again);
	tcase_add_loop_test(tcase, a_write_lands_before_its_immediate_is_told,
			    0, 2);
	tcase_add_test(tcase, a_write_of_no_bytes_carries_its_immediate);
	tcase_add_test(tcase, a_part_lands_and_is_not_told);
	tcase_add_test(tcase, a_write_takes_no_receive_buffer);
	tcase_add_test(tcase, writes_arrive_in_the_order_of_their_posts);
	tcase_add_test(tcase,
		       a_delivered_write_is_done_only_when_its_target_polled);
	tcase_add_test(tcase, inflight_counts_posts_and_not_receives);
	tcase_add_loop_test(tcase, a_write_that_must_not_land_touches_nothing,
			    0, 5);
	tcase_add_test(tcase,
		       a_registration_that_was_put_back_takes_no_more_writes);
	tcase_add_test(tcase, nothing_is_delivered_to_a_rail_that_was_closed);
	tcase_add_test(tcase, a_renewed_data_endpoint_leaves_the_old_name_dead);
	tcase_add_test(tcase, a_renewed_data_endpoint_works_under_its_new_name);
	tcase_add_test(tcase, a_renewed_data_endpoint_has_told_all_that_landed);
	tcase_add_test(tcase, renewing_leaves_our_own_posts_alone);
	tcase_add_test(tcase, closing_a_rail_calls_no_done_function);
	tcase_add_test(tcase, a_name_that_the_provider_cannot_read_is_refused);
	tcase_add_test(tcase, a_peer_can_be_added_again_after_it_was_removed);
	tcase_add_test(tcase, a_peer_added_twice_outlives_one_removal);
	tcase_add_test(tcase, a_range_inside_a_live_registration_shares_it);
	tcase_add_test(tcase, access_to_a_peer_is_never_shared_into_being);
	tcase_add_test(tcase, without_sharing_each_registration_is_its_own);
	tcase_add_test(tcase, remote_addresses_grow_with_the_pointer);
	tcase_add_test(tcase, a_range_that_makes_no_sense_is_refused);
	tcase_add_test(tcase, nothing_is_a_harmless_argument);
	tcase_add_test(tcase, rail_open_leaks_nothing_wherever_it_fails);
	tcase_add_test(tcase, registering_leaks_nothing_wherever_it_fails);
}
