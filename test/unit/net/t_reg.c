/* Registrations: shared, refused, and given back with transfers under way. */
#include "net/link.h"
#include "unit/net/net_unit.h"

#define BIG (1u << 20)
#define LONG 9000u

static struct net_pair *pair;
static struct net_buf from, to;

static void connected(void)
{
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, BIG, &from);
	net_buf_open(pair->recv, BIG, &to);
	net_settle();
}

/* Data endpoints of side b take nothing for now. */
static void hold_data_b(bool on)
{
	for (unsigned i = 0; i < net_b.set->rail_cnt; i++) {
		fr_fake_hold(fr_rail_name(net_b.set->rail[i], FR_EP_DATA), on);
	}
}

static void dereg(struct net_buf *buf)
{
	ck_assert_int_eq(fr_net_dereg_mr(buf->comm, buf->mr), 0);
	buf->mr = NULL;
}

START_TEST(a_registration_of_nothing_is_legal)
{
	struct fr_net_mr *mr = NULL;
	struct fr_req *req;

	connected();
	ck_assert_int_eq(fr_net_reg_mr(pair->send, NULL, 0, FR_MEM_HOST, &mr),
			 0);
	ck_assert_ptr_nonnull(mr);
	ck_assert_int_eq(fr_net_isend(pair->send, from.mem, 1, 0, mr, &req),
			 -EINVAL);
	ck_assert_int_eq(fr_net_isend(pair->send, from.mem, 0, 0, mr, &req), 0);
	ck_assert_ptr_nonnull(req);
	ck_assert_int_eq(net_wait(req, NULL), 0);
	ck_assert_int_eq(net_wait(net_irecv(&to, 10), NULL), 0);
	ck_assert_int_eq(fr_net_dereg_mr(pair->send, mr), 0);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
	struct fr_net_mr *mr = NET_UNTOUCHED;
	struct net_pair *sister;

	connected();
	net_expect("no registration of this comm");
	sister = net_connect(&net_a, &net_b);
	ck_assert_int_eq(fr_net_reg_mr(NULL, from.mem, 1, FR_MEM_HOST, &mr),
			 -EINVAL);
	ck_assert_int_eq(fr_net_reg_mr(pair->send, NULL, 1, FR_MEM_HOST, &mr),
			 -EINVAL);
	ck_assert_int_eq(
		fr_net_reg_mr(pair->send, from.mem, SIZE_MAX, FR_MEM_HOST, &mr),
		-EINVAL);
	ck_assert_int_eq(fr_net_reg_mr(pair->send, from.mem, 1,
				       (enum fr_mem_kind)7, &mr),
			 -EINVAL);
	ck_assert_ptr_eq(mr, NET_UNTOUCHED);
	ck_assert_int_eq(fr_net_dereg_mr(NULL, NULL), 0);
	ck_assert_int_eq(fr_net_dereg_mr(pair->send, NULL), 0);
	ck_assert_int_eq(fr_net_dereg_mr(NULL, from.mr), -EINVAL);
	ck_assert_int_eq(fr_net_dereg_mr(sister->send, from.mr), -EINVAL);
	mr = from.mr;
	dereg(&from);
	ck_assert_int_eq(fr_net_dereg_mr(pair->send, mr), -EINVAL);
}
END_TEST

START_TEST(registrations_share_what_is_below_them)
{
	struct fr_mr_cache *cache;
	struct fr_net_mr *mr[3];
	unsigned live;

	connected();
	cache = net_a.set->mrs;
	live = fr_mr_cache_live(cache);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(fr_net_reg_mr(pair->send, from.mem + 100 * i,
					       1000, FR_MEM_HOST, &mr[i]),
				 0);
	}
	ck_assert_uint_eq(fr_mr_cache_live(cache), live);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(fr_net_dereg_mr(pair->send, mr[i]), 0);
	}
	dereg(&from);
	ck_assert_uint_eq(fr_mr_cache_live(cache), live - 1);
}
END_TEST

START_TEST(a_registration_without_memory_leaves_nothing)
{
	struct fr_net_mr *mr = NET_UNTOUCHED;
	static uint8_t mem[8192];
	unsigned failed = 0;
	size_t base;
	int ret = -ENOMEM;

	connected();
	base = fr_live_allocs();
	for (unsigned nth = 1; ret != 0; nth++) {
		ck_assert_uint_lt(nth, NET_FAULTS);
		fr_fault_alloc_at(nth);
		ret = fr_net_reg_mr(pair->send, mem, sizeof(mem), FR_MEM_HOST,
				    &mr);
		fr_fault_alloc_at(0);
		if (ret != 0) {
			ck_assert_int_eq(ret, -ENOMEM);
			ck_assert_ptr_eq(mr, NET_UNTOUCHED);
			ck_assert_uint_eq(fr_live_allocs(), base);
			failed++;
		}
	}
	ck_assert_uint_ge(failed, 2);
	ck_assert_int_eq(fr_net_dereg_mr(pair->send, mr), 0);
	ck_assert_uint_eq(fr_live_allocs(), base);
}
END_TEST

START_TEST(a_registration_that_a_rail_refuses_leaves_nothing)
{
	struct fr_net_mr *mr = NET_UNTOUCHED;
	static uint8_t mem[8192];
	size_t base;

	connected();
	net_expect("registration of");
	base = fr_live_allocs();
	for (unsigned nth = 1; nth < 3; nth++) {
		fr_fake_fail_at(FR_FAKE_MR_REG, nth, -EACCES);
		ck_assert_int_eq(fr_net_reg_mr(pair->recv, mem, sizeof(mem),
					       FR_MEM_HOST, &mr),
				 -EACCES);
		ck_assert_ptr_eq(mr, NET_UNTOUCHED);
		ck_assert_uint_eq(fr_live_allocs(), base);
	}
	ck_assert_int_eq(
		fr_net_reg_mr(pair->recv, mem, sizeof(mem), FR_MEM_HOST, &mr),
		0);
	ck_assert_int_eq(fr_net_dereg_mr(pair->recv, mr), 0);
}
END_TEST

START_TEST(idle_memory_goes_without_a_fence)
{
	connected();
	net_exchange(&from, &to, LONG, 1);
	net_exchange(&from, &to, BIG, 2);
	dereg(&from);
	dereg(&to);
	ck_assert_int_eq(net_a.set->dead, 0);
	ck_assert_int_eq(net_b.set->dead, 0);
	net_assert_works(pair);
}
END_TEST

/* What is complete, only not read yet, is no transfer under way. */
START_TEST(a_completion_in_the_queue_needs_no_fence)
{
	struct fr_req *recv, *send;

	connected();
	recv = net_irecv(&to, LONG);
	net_settle();
	send = net_isend(&from, LONG);
	net_pass_of(&net_b);
	dereg(&from); /* nobody has asked for the send */
	ck_assert_int_eq(net_a.set->dead, 0);
	ck_assert_int_eq(net_wait(send, NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
}
END_TEST

static void assert_all_dead(struct net_pair *p, struct net_pair *sister)
{
	struct fr_comm *comm = NET_UNTOUCHED;
	struct fr_net_mr *mr = NET_UNTOUCHED;
	struct fr_req *req;
	static uint8_t mem[64];
	void *data = mem;
	size_t bytes = 0;
	int tag = 0;
	struct fr_net_mr *none = NULL;

	ck_assert_int_eq(
		fr_net_irecv(p->recv, 1, &data, &bytes, &tag, &none, &req),
		-ECONNRESET);
	ck_assert_int_eq(
		fr_net_irecv(sister->recv, 1, &data, &bytes, &tag, &none, &req),
		-ECONNRESET);
	ck_assert_int_eq(fr_net_iflush(p->recv, 0, NULL, NULL, NULL, &req),
			 -ECONNRESET);
	ck_assert_int_eq(
		fr_net_reg_mr(p->recv, mem, sizeof(mem), FR_MEM_HOST, &mr),
		-ECONNRESET);
	ck_assert_int_eq(fr_net_accept(net_b.listen, &comm), -ECONNRESET);
	ck_assert_ptr_eq(comm, NET_UNTOUCHED);
	ck_assert_ptr_eq(mr, NET_UNTOUCHED);
}

/* A receive was told: the peer may write at any time. */
START_TEST(memory_that_a_peer_may_write_is_fenced)
{
	struct net_pair *sister;
	struct fr_req *recv, *send;
	uint8_t *mem;

	connected();
	sister = net_connect(&net_a, &net_b);
	recv = net_irecv(&to, BIG);
	net_settle();
	hold_data_b(true);
	net_fill(from.mem, BIG, 5);
	send = net_isend(&from, BIG); /* on its way */
	net_expect("endpoints fenced: memory was deregistered");
	mem = to.mem;
	dereg(&to);
	ck_assert_int_eq(net_b.set->dead, -ECONNRESET);
	hold_data_b(false);
	net_expect("is lost");
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	for (unsigned i = 0; i < 20; i++) {
		net_pass();
	}
	ck_assert(net_is_all(mem, BIG, 0));
	ck_assert_int_eq(net_wait(recv, NULL), -ECONNRESET);
	assert_all_dead(pair, sister);
	/* The thread's next set is a new one. */
	net_forsake(&net_a);
	net_hangup(pair);
	net_hangup(sister);
	net_side_close(&net_b);
	net_side_open(&net_b);
	net_assert_works(net_connect(&net_a, &net_b));
}
END_TEST

START_TEST(memory_that_is_sent_from_is_fenced)
{
	struct fr_req *send;

	connected();
	net_irecv(&to, BIG);
	net_settle();
	hold_data_b(true);
	net_fill(from.mem, BIG, 5);
	send = net_isend(&from, BIG);
	net_expect("endpoints fenced: memory was deregistered");
	dereg(&from);
	ck_assert_int_eq(net_a.set->dead, -ECONNRESET);
	memset(from.mem, 0xee, BIG); /* the fake sees who still reads it */
	hold_data_b(false);
	for (unsigned i = 0; i < 20; i++) {
		net_pass();
	}
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	net_expect("is lost");
	net_forsake(&net_b);
}
END_TEST

/* The error was told, so the request is no more; its stripes fly. */
START_TEST(memory_of_a_send_that_failed_is_fenced_too)
{
	struct fr_req *send;

	connected();
	net_irecv(&to, BIG);
	net_settle();
	hold_data_b(true);
	send = net_isend(&from, BIG);
	net_expect("is lost");
	net_forsake(&net_a);
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	net_expect("endpoints fenced: memory was deregistered");
	dereg(&from);
	memset(from.mem, 0xee, BIG);
	hold_data_b(false);
	for (unsigned i = 0; i < 20; i++) {
		net_pass();
	}
	ck_assert_uint_eq(net_counts().violations, 0);
	ck_assert_int_eq(net_a.set->dead, -ECONNRESET);
	net_forsake(&net_b);
}
END_TEST

/* The set has other peers. The loop index: 0: this one is gone for good, so
 * nobody writes; 1: it lives, whatever became of the link. */
START_TEST(a_dead_peers_memory_costs_its_neighbours_nothing)
{
	struct net_pair *other;

	connected();
	net_side_open(&net_c);
	other = net_connect(&net_c, &net_b);
	net_irecv(&to, BIG);
	net_settle();
	if (_i == 0) {
		net_die(&net_a);
	} else {
		net_expect("endpoints fenced");
		net_expect("is lost");
	}
	net_fail_link(pair->recv->link);
	dereg(&to);
	if (_i == 0) {
		ck_assert_int_eq(net_b.set->dead, 0);
		net_assert_works(other);
	} else {
		ck_assert_int_eq(net_b.set->dead, -ECONNRESET);
		net_forsake(&net_a);
		net_forsake(&net_c);
	}
}
END_TEST

/* The loop index: whether its stripes come home in time. */
START_TEST(a_send_to_a_dead_peer_is_waited_for_before_the_fence)
{
	struct net_pair *other;

	connected();
	net_side_open(&net_c);
	other = net_connect(&net_a, &net_c);
	net_irecv(&to, BIG);
	net_settle();
	hold_data_b(true);
	net_isend(&from, BIG);
	net_fail_link(pair->send->link);
	if (_i == 0) {
		net_die(&net_b); /* cuts what is on its way */
		dereg(&from);
		ck_assert_int_eq(net_a.set->dead, 0);
		net_assert_works(other);
		net_expect("endpoints fenced"); /* the receive at the end */
	} else {
		for (unsigned i = 0; i < net_b.set->rail_cnt; i++) {
			fr_knock_server_close(net_b.set->knock[i]);
			net_b.set->knock[i] = NULL;
		}
		net_expect("endpoints fenced");
		net_expect("is lost");
		dereg(&from);
		ck_assert_int_eq(net_a.set->dead, -ECONNRESET);
		memset(from.mem, 0xee, BIG);
		hold_data_b(false);
		net_pass();
		net_forsake(&net_b);
		net_forsake(&net_c);
	}
}
END_TEST

/* Blind: no address of it was ever told. */
START_TEST(a_receive_that_was_not_told_needs_no_fence)
{
	struct fr_req *recv, *req;

	connected();
	recv = net_irecv(&to, 100);
	net_settle();
	dereg(&to);
	ck_assert_int_eq(net_b.set->dead, 0);
	ck_assert_int_eq(net_wait(recv, NULL), -ECONNRESET);
	/* Its place is gone, so the comm is of no further use. */
	net_wait(net_isend(&from, 100), NULL);
	net_settle();
	to.mr = NULL;
	ck_assert_int_eq(fr_net_irecv(pair->recv, 1, (void *[]){NULL},
				      (size_t[]){0}, (int[]){0},
				      (struct fr_net_mr *[]){NULL}, &req),
			 -ECONNRESET);
	net_assert_works(net_connect(&net_a, &net_b));
}
END_TEST

START_TEST(a_send_that_waits_for_its_rail_needs_no_fence)
{
	struct fr_req *send, *req;

	connected();
	net_irecv(&to, BIG);
	net_settle();
	fr_fake_fault(&(struct fr_fake_fault){
		.call = FR_FAKE_WRITE, .err = -EAGAIN, .cnt = FR_FAKE_FOREVER});
	send = net_isend(&from, BIG);
	dereg(&from);
	fr_fake_fault_clear();
	ck_assert_int_eq(net_a.set->dead, 0);
	ck_assert_int_eq(net_wait(send, NULL), -ECONNRESET);
	ck_assert_int_eq(fr_net_isend(pair->send, NULL, 0, 0, NULL, &req),
			 -ECONNRESET);
	ck_assert_uint_eq(net_wire.writes, 0);
	net_expect("endpoints fenced"); /* the receive is open at the end */
	net_expect("is lost");
	net_assert_works(net_connect(&net_a, &net_b));
}
END_TEST

START_TEST(other_memory_of_the_comm_needs_no_fence)
{
	struct net_buf other;
	struct fr_req *recv;

	connected();
	net_buf_open(pair->recv, LONG, &other);
	recv = net_irecv(&to, LONG);
	net_settle();
	net_buf_close(&other);
	ck_assert_int_eq(net_b.set->dead, 0);
	ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
}
END_TEST

START_TEST(a_close_gives_back_what_was_not_deregistered)
{
	unsigned live;

	live = fr_mr_cache_live(net_a.set->mrs);
	connected();
	net_exchange(&from, &to, LONG, 1);
	ck_assert_uint_gt(fr_mr_cache_live(net_a.set->mrs), live);
	net_close_send(pair);
	net_pass_of(&net_a);
	ck_assert_int_eq(net_a.set->dead, 0);
	ck_assert_uint_le(fr_mr_cache_live(net_a.set->mrs), live + 2);
}
END_TEST

/* Its comm may have been freed by then. */
START_TEST(what_a_comm_registered_ends_with_it)
{
	struct fr_comm *comm;

	connected();
	net_expect("no registration of this comm");
	comm = pair->send;
	net_close_send(pair);
	ck_assert_int_eq(fr_net_dereg_mr(comm, from.mr), -EINVAL);
	net_settle();
	ck_assert_int_eq(fr_net_dereg_mr(comm, from.mr), -EINVAL);
	ck_assert_uint_eq(net_logged("no registration of this comm"), 2);
}
END_TEST

/* As with rxm, where no endpoint can be closed under its peers. */
static void abandoning(void)
{
	net_init();
	net_conf.quirks.fence = FR_FENCE_ABANDON;
	net_open();
}

START_TEST(a_rail_that_cannot_be_closed_is_left_alone)
{
	struct fr_req *recv;

	connected();
	recv = net_irecv(&to, LONG);
	net_settle();
	hold_data_b(true);
	net_expect("endpoints fenced");
	dereg(&to);
	ck_assert_int_eq(net_wait(recv, NULL), -ECONNRESET);
	net_expect("is lost");
	net_forsake(&net_a);
	net_hangup(pair);
	net_side_close(&net_b);
	ck_assert_uint_eq(fr_fake_rail_cnt(), 2); /* those of a */
	net_side_open(&net_b);
	net_assert_works(net_connect(&net_a, &net_b));
}
END_TEST

int main(void)
{
	TCase *tc = net_case("reg", net_setup);
	TCase *abandon = net_case("abandon", abandoning);
	TCase *const cases[] = {tc, abandon};

	tcase_add_test(tc, a_registration_of_nothing_is_legal);
	tcase_add_test(tc, wrong_arguments_are_refused);
	tcase_add_test(tc, registrations_share_what_is_below_them);
	tcase_add_test(tc, a_registration_without_memory_leaves_nothing);
	tcase_add_test(tc, a_registration_that_a_rail_refuses_leaves_nothing);
	tcase_add_test(tc, idle_memory_goes_without_a_fence);
	tcase_add_test(tc, a_completion_in_the_queue_needs_no_fence);
	tcase_add_test(tc, memory_that_a_peer_may_write_is_fenced);
	tcase_add_test(tc, memory_that_is_sent_from_is_fenced);
	tcase_add_test(tc, memory_of_a_send_that_failed_is_fenced_too);
	tcase_add_loop_test(
		tc, a_dead_peers_memory_costs_its_neighbours_nothing, 0, 2);
	tcase_add_loop_test(
		tc, a_send_to_a_dead_peer_is_waited_for_before_the_fence, 0, 2);
	tcase_add_test(tc, a_receive_that_was_not_told_needs_no_fence);
	tcase_add_test(tc, a_send_that_waits_for_its_rail_needs_no_fence);
	tcase_add_test(tc, other_memory_of_the_comm_needs_no_fence);
	tcase_add_test(tc, a_close_gives_back_what_was_not_deregistered);
	tcase_add_test(tc, what_a_comm_registered_ends_with_it);
	tcase_add_test(abandon, a_rail_that_cannot_be_closed_is_left_alone);
	return net_main("reg", cases, FR_ARRAY_LEN(cases));
}
