/* A GPU sees what was written to it, at the latest when a flush is done. The
 * GPUs here see nothing before. */
#include "unit/net/net_unit.h"

#include "fake/fake_gpu.h"
#include "net/gpu.h"

#define LONG (512u * 1024u)

static struct net_pair *pair;
static struct net_buf from, to;

static void lagging_open(void)
{
	net_init();
	net_has_gpu = true;
	net_conf.gpu_lags = true;
	net_open();
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, LONG, &from);
	net_gpu_open(pair->recv, LONG, &to);
}

/* One message that is done, and not seen by the GPU. */
static void receive(size_t offset, size_t bytes, uint32_t seed)
{
	struct net_buf part = to;
	struct fr_req *recv;

	part.mem += offset;
	net_fill(from.mem, bytes, seed);
	recv = net_irecv(&part, bytes);
	ck_assert_int_eq(net_wait(net_isend(&from, bytes), NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	ck_assert(bytes < 2 || !net_is_filled(part.mem, bytes, seed));
}

static int flush_at(size_t offset, int bytes, struct fr_req **out)
{
	void *data = to.mem + offset;

	*out = NET_UNTOUCHED;
	return fr_net_iflush(pair->recv, 1, &data, &bytes, &to.mr, out);
}

static struct fr_req *flush(size_t offset, size_t bytes)
{
	struct fr_req *req;

	ck_assert_int_eq(flush_at(offset, (int)bytes, &req), 0);
	return req;
}

static unsigned bits(uint32_t mask)
{
	return (unsigned)__builtin_popcount(mask);
}

START_TEST(what_came_is_seen_when_the_flush_is_done)
{
	static const size_t sizes[] = {1, 7, 8, 9, 1000, 8192, 200000, LONG};

	lagging_open();
	for (unsigned i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		struct fr_req *req;

		receive(0, sizes[i], 1 + i);
		req = flush(0, sizes[i]);
		ck_assert_ptr_nonnull(req);
		ck_assert_int_eq(net_wait(req, NULL), 0);
		ck_assert(net_is_filled(to.mem, sizes[i], 1 + i));
	}
	ck_assert_uint_eq(pair->recv->req_cnt, 0);
	ck_assert_uint_eq(to.mr->flying, 0);
}
END_TEST

/* The same in every shape of provider, and for early messages. */
START_TEST(every_provider_flushes)
{
	struct fr_req *send, *recv;
	size_t got;

	net_has_gpu = true;
	net_shapes[_i].setup();
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, LONG, &from);
	net_gpu_open(pair->recv, LONG, &to);
	receive(0, 0, 1);
	for (size_t bytes = 1; bytes <= LONG; bytes *= 8) {
		send = NULL;
		net_fill(from.mem, bytes, 3);
		ck_assert_int_eq(net_try_send(&from, bytes, &send), 0);
		net_settle();
		recv = net_irecv(&to, LONG);
		if (send == NULL) {
			send = net_isend(&from, bytes);
		}
		ck_assert_int_eq(net_wait(recv, &got), 0);
		ck_assert_int_eq(net_wait(send, NULL), 0);
		net_wire.reads = 0;
		recv = flush(0, got);
		ck_assert_ptr_nonnull(recv);
		ck_assert_int_eq(net_wait(recv, &got), 0);
		ck_assert_uint_ge(net_wire.reads, 1);
		ck_assert(net_is_filled(to.mem, bytes, 3));
	}
}
END_TEST

START_TEST(it_reads_through_the_rails_that_brought_something)
{
	lagging_open();
	receive(0, LONG, 1);
	ck_assert_int_eq(net_wait(flush(0, LONG), NULL), 0);
	ck_assert_uint_eq(net_wire.reads, 2);
	ck_assert_uint_eq(bits(net_wire.read_rails), 2);
	/* Too short to be striped. */
	net_wire.reads = 0;
	receive(0, 20000, 2);
	ck_assert_int_eq(net_wait(flush(0, 20000), NULL), 0);
	ck_assert_uint_eq(net_wire.reads, 1);
	/* Nothing came since. */
	ck_assert_ptr_null(flush(0, 20000));
	ck_assert_uint_eq(net_wire.reads, 1);
}
END_TEST

/* Two messages are done, then each is flushed, and the reads of the first take
 * their time. */
START_TEST(a_second_flush_does_not_count_on_reads_that_are_not_back)
{
	struct fr_req *first, *second;
	bool done;

	lagging_open();
	receive(0, 20000, 1);
	receive(20000, 20000, 2);
	for (unsigned i = 0; i < 2; i++) {
		fr_fake_hold(fr_rail_name(net_b.set->rail[i], FR_EP_DATA),
			     true);
	}
	first = flush(0, 20000);
	second = flush(20000, 20000);
	ck_assert_ptr_nonnull(second);
	net_assert_pending(first);
	net_assert_pending(second);
	ck_assert_uint_ge(net_wire.reads, 2);
	for (unsigned i = 0; i < 2; i++) {
		fr_fake_hold(fr_rail_name(net_b.set->rail[i], FR_EP_DATA),
			     false);
	}
	ck_assert_int_eq(net_wait(second, NULL), 0);
	ck_assert(net_is_filled(to.mem + 20000, 20000, 2));
	ck_assert_int_eq(fr_net_test(first, &done, NULL), 0);
	ck_assert(done);
	ck_assert_ptr_null(flush(0, 20000));
}
END_TEST

START_TEST(nothing_is_read_for_nothing)
{
	void *data[2] = {to.mem, NULL};
	struct fr_net_mr *mrs[2] = {NULL, NULL};
	int none[2] = {0, 0};
	struct net_buf host;
	struct fr_req *req = NET_UNTOUCHED;

	lagging_open();
	receive(0, 1000, 1);
	ck_assert_ptr_null(flush(0, 0));
	ck_assert_int_eq(fr_net_iflush(pair->recv, 2, data, none, mrs, &req),
			 0);
	ck_assert_ptr_null(req);
	/* Of the host's memory either. */
	net_buf_open(pair->recv, 100, &host);
	data[0] = host.mem;
	none[0] = 100;
	ck_assert_int_eq(
		fr_net_iflush(pair->recv, 1, data, none, &host.mr, &req), 0);
	ck_assert_ptr_null(req);
	ck_assert_uint_eq(net_wire.reads, 0);
	/* In a group the last one with bytes is what is read. */
	data[0] = to.mem;
	none[0] = 1000;
	mrs[0] = to.mr;
	ck_assert_int_eq(fr_net_iflush(pair->recv, 2, data, none, mrs, &req),
			 0);
	ck_assert_int_eq(net_wait(req, NULL), 0);
	ck_assert(net_is_filled(to.mem, 1000, 1));
}
END_TEST

START_TEST(a_range_beside_the_registration_is_refused)
{
	struct fr_req *req;

	lagging_open();
	receive(0, 1000, 1);
	ck_assert_int_eq(flush_at(LONG - 10, 11, &req), -EINVAL);
	ck_assert_ptr_null(req);
	ck_assert_int_eq(flush_at(LONG, 1, &req), -EINVAL);
	ck_assert_uint_eq(net_wire.reads, 0);
}
END_TEST

START_TEST(a_user_can_do_without)
{
	struct fr_req *req;

	setenv("OFI_NCCL_GDR_FLUSH_DISABLE", "1", 1);
	lagging_open();
	receive(0, 1000, 1);
	ck_assert_int_eq(flush_at(0, 1000, &req), 0);
	ck_assert_ptr_null(req);
	ck_assert_uint_eq(net_wire.reads, 0);
	unsetenv("OFI_NCCL_GDR_FLUSH_DISABLE");
}
END_TEST

START_TEST(a_rail_that_is_full_takes_the_read_later)
{
	struct fr_req *req;

	lagging_open();
	receive(0, LONG, 1);
	fr_fake_again(FR_FAKE_READ, FR_FAKE_FOREVER);
	req = flush(0, LONG);
	net_assert_pending(req);
	fr_fake_fault_clear();
	ck_assert_int_eq(net_wait(req, NULL), 0);
	ck_assert(net_is_filled(to.mem, LONG, 1));
}
END_TEST

/* A tick is 110 ms here. Nothing else is in flight, or other messages pass. */
START_TEST(a_rail_that_refuses_for_good_fails_the_flush)
{
	struct fr_req *req;

	lagging_open();
	receive(0, LONG, 1);
	net_expect("cannot read back from a GPU: rail 1 takes no");
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_READ,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .rails = 1u << 1});
	req = flush(0, LONG);
	for (unsigned i = 0; i < 90; i++) {
		net_tick(1);
		if (_i == 1) {
			receive(LONG / 2, 1000, i);
		}
	}
	net_assert_pending(req);
	net_tick(20);
	ck_assert_int_eq(net_wait(req, NULL), -EIO);
	ck_assert_uint_eq(net_logged("cannot read back"), 1);
	ck_assert_uint_eq(to.mr->flying, 0);
	/* What came is still to be flushed. */
	fr_fake_fault_clear();
	req = flush(0, LONG / 2);
	ck_assert_ptr_nonnull(req);
	ck_assert_int_eq(net_wait(req, NULL), 0);
	ck_assert(net_is_filled(to.mem, LONG / 2, 1));
}
END_TEST

/* What is under way to it cannot end meanwhile. */
START_TEST(a_peer_that_stands_still_lets_the_flush_wait)
{
	struct net_buf back, there;
	struct net_pair *other;
	struct fr_req *req, *send;

	lagging_open();
	other = net_connect(&net_b, &net_a);
	net_buf_open(other->send, LONG, &back);
	net_buf_open(other->recv, LONG, &there);
	net_irecv(&there, LONG);
	net_settle();
	receive(0, LONG, 1);
	for (unsigned i = 0; i < 2; i++) {
		fr_fake_hold(fr_rail_name(net_a.set->rail[i], FR_EP_DATA),
			     true);
	}
	send = net_isend(&back, LONG);
	fr_fake_again(FR_FAKE_READ, FR_FAKE_FOREVER);
	req = flush(0, LONG);
	net_tick(2 * FR_GPU_REFUSED_TICKS);
	net_assert_pending(req);
	fr_fake_fault_clear();
	ck_assert_int_eq(net_wait(req, NULL), 0);
	ck_assert(net_is_filled(to.mem, LONG, 1));
	for (unsigned i = 0; i < 2; i++) {
		fr_fake_hold(fr_rail_name(net_a.set->rail[i], FR_EP_DATA),
			     false);
	}
	ck_assert_int_eq(net_wait(send, NULL), 0);
}
END_TEST

START_TEST(a_process_that_was_stopped_does_not_give_up)
{
	struct fr_req *req;

	lagging_open();
	receive(0, LONG, 1);
	fr_fake_again(FR_FAKE_READ, FR_FAKE_FOREVER);
	req = flush(0, LONG);
	net_tick(1);
	net_advance(600 * FR_NS_PER_S);
	net_tick(2);
	net_assert_pending(req);
	fr_fake_fault_clear();
	ck_assert_int_eq(net_wait(req, NULL), 0);
	ck_assert(net_is_filled(to.mem, LONG, 1));
}
END_TEST

/* At once, or later; one line either way, and the next flush works. */
START_TEST(a_read_that_fails_fails_the_flush)
{
	struct fr_req *req;

	lagging_open();
	receive(0, LONG, 1);
	net_expect("cannot read back from a GPU");
	fr_fake_fail_at(_i == 0 ? FR_FAKE_READ : FR_FAKE_READ_DONE, 2, -EIO);
	req = flush(0, LONG);
	ck_assert_int_eq(net_wait(req, NULL), -EIO);
	ck_assert_uint_eq(net_logged("cannot read back"), 1);
	net_settle();
	ck_assert_uint_eq(to.mr->flying, 0);
	receive(0, LONG, 2);
	ck_assert_int_eq(net_wait(flush(0, LONG), NULL), 0);
	ck_assert(net_is_filled(to.mem, LONG, 2));
}
END_TEST

START_TEST(what_a_lost_peer_wrote_can_be_flushed)
{
	struct fr_req *req;

	lagging_open();
	receive(0, 1000, 1);
	net_expect("is lost");
	net_fail_link(pair->recv->link);
	req = flush(0, 1000);
	ck_assert_int_eq(net_wait(req, NULL), 0);
	ck_assert(net_is_filled(to.mem, 1000, 1));
}
END_TEST

START_TEST(a_flush_that_is_under_way_outlives_its_comm)
{
	lagging_open();
	receive(0, 1000, 1);
	if (_i == 1) {
		fr_fake_again(FR_FAKE_READ, FR_FAKE_FOREVER);
	}
	ck_assert_ptr_nonnull(flush(0, 1000));
	net_close_recv(pair);
	fr_fake_fault_clear();
	net_settle();
	ck_assert(!fr_gpu_owes(net_b.set));
	ck_assert(fr_list_empty(&net_b.set->orphans));
}
END_TEST

START_TEST(deregistering_ends_it)
{
	struct fr_req *req;

	lagging_open();
	receive(0, 1000, 1);
	if (_i == 1) {
		fr_fake_again(FR_FAKE_READ, FR_FAKE_FOREVER);
	}
	req = flush(0, 1000);
	ck_assert_int_eq(fr_net_dereg_mr(to.comm, to.mr), 0);
	ck_assert_int_eq(net_b.set->dead, 0);
	/* It came home in time, or was never posted. */
	ck_assert_int_eq(net_wait(req, NULL), _i == 0 ? 0 : -ECONNRESET);
	fr_fake_fault_clear();
}
END_TEST

START_TEST(a_dead_set_says_so)
{
	struct fr_req *req, *later;

	lagging_open();
	receive(0, 1000, 1);
	fr_fake_hold(fr_rail_name(net_b.set->rail[0], FR_EP_DATA), true);
	fr_fake_hold(fr_rail_name(net_b.set->rail[1], FR_EP_DATA), true);
	req = flush(0, 1000);
	net_expect("endpoints fenced");
	net_expect("is lost");
	net_lock(net_b.set);
	fr_set_kill_locked(net_b.set, "the test wants it");
	net_unlock(net_b.set);
	ck_assert_int_eq(net_wait(req, NULL), -ECONNRESET);
	ck_assert_int_eq(flush_at(0, 1000, &later), -ECONNRESET);
	ck_assert_ptr_null(later);
}
END_TEST

START_TEST(without_memory_the_call_fails_and_the_next_works)
{
	struct fr_req *req;

	lagging_open();
	receive(0, 1000, 1);
	fr_fault_alloc_at(1);
	ck_assert_int_eq(flush_at(0, 1000, &req), -ENOMEM);
	ck_assert_ptr_null(req);
	fr_fault_alloc_at(0);
	ck_assert_int_eq(net_wait(flush(0, 1000), NULL), 0);
	ck_assert(net_is_filled(to.mem, 1000, 1));
}
END_TEST

int main(void)
{
	TCase *t = net_case("flush", net_init);

	tcase_add_test(t, what_came_is_seen_when_the_flush_is_done);
	tcase_add_loop_test(t, every_provider_flushes, 0, (int)NET_SHAPES);
	tcase_add_test(t, it_reads_through_the_rails_that_brought_something);
	tcase_add_test(
		t, a_second_flush_does_not_count_on_reads_that_are_not_back);
	tcase_add_test(t, nothing_is_read_for_nothing);
	tcase_add_test(t, a_range_beside_the_registration_is_refused);
	tcase_add_test(t, a_user_can_do_without);
	tcase_add_test(t, a_rail_that_is_full_takes_the_read_later);
	tcase_add_loop_test(t, a_rail_that_refuses_for_good_fails_the_flush, 0,
			    2);
	tcase_add_test(t, a_peer_that_stands_still_lets_the_flush_wait);
	tcase_add_test(t, a_process_that_was_stopped_does_not_give_up);
	tcase_add_loop_test(t, a_read_that_fails_fails_the_flush, 0, 2);
	tcase_add_test(t, what_a_lost_peer_wrote_can_be_flushed);
	tcase_add_loop_test(t, a_flush_that_is_under_way_outlives_its_comm, 0,
			    2);
	tcase_add_loop_test(t, deregistering_ends_it, 0, 2);
	tcase_add_test(t, a_dead_set_says_so);
	tcase_add_test(t, without_memory_the_call_fails_and_the_next_works);
	return net_main("net/flush", &t, 1);
}
