/* Sets: whose they are, how they open, and how they end. */
#include <limits.h>
#include <pthread.h>

#include "base/idpool.h"
#include "net/core.h"
#include "net/link.h"
#include "net/progress.h"
#include "unit/net/net_unit.h"

#define LONG 9000u

static uint8_t handle[FR_HANDLE_BYTES];

START_TEST(a_thread_has_one_set_a_device)
{
	struct fr_listen *again = NULL;

	net_as(&net_a);
	ck_assert_int_eq(fr_net_listen(0, FR_NET_TCLASS_UNSET, handle,
				       sizeof(handle), &again),
			 0);
	ck_assert_ptr_eq(again->set, net_a.set);
	ck_assert_uint_eq(net_a.set->users, 2);
	fr_net_close_listen(again);
	ck_assert_uint_eq(net_a.set->users, 1);
	ck_assert_ptr_ne(net_a.set, net_b.set);
	ck_assert_uint_ne(net_a.set->id, net_b.set->id);
}
END_TEST

static void *listen_beside(void *arg)
{
	struct fr_listen **out = arg;

	ck_assert_int_eq(fr_net_listen(0, FR_NET_TCLASS_UNSET, handle,
				       sizeof(handle), out),
			 0);
	return NULL;
}

START_TEST(another_thread_has_another_set)
{
	struct fr_listen *beside = NULL;
	pthread_t thread;

	net_as(&net_a);
	ck_assert_int_eq(pthread_create(&thread, NULL, listen_beside, &beside),
			 0);
	pthread_join(thread, NULL);
	ck_assert_ptr_ne(beside->set, net_a.set);
	ck_assert_ptr_ne(beside->set, net_b.set);
	fr_net_close_listen(beside);
}
END_TEST

static struct fr_set *set_of_class(int tclass, struct fr_listen **listen)
{
	ck_assert_int_eq(
		fr_net_listen(0, tclass, handle, sizeof(handle), listen), 0);
	return (*listen)->set;
}

START_TEST(each_traffic_class_of_a_thread_has_its_set)
{
	static const int classes[] = {96, 0, 255, 96, FR_NET_TCLASS_UNSET};
	struct fr_listen *listen[FR_ARRAY_LEN(classes)];
	struct fr_set *set[FR_ARRAY_LEN(classes)];

	net_as(&net_a);
	for (size_t i = 0; i < FR_ARRAY_LEN(classes); i++) {
		set[i] = set_of_class(classes[i], &listen[i]);
		for (unsigned r = 0; r < set[i]->rail_cnt; r++) {
			ck_assert_int_eq(fr_fake_rail_tclass(set[i]->rail[r]),
					 classes[i]);
		}
	}
	ck_assert_ptr_eq(set[0], set[3]);
	ck_assert_ptr_ne(set[0], set[1]);
	ck_assert_ptr_ne(set[1], set[2]);
	ck_assert_ptr_ne(set[0], set[2]);
	ck_assert_ptr_eq(set[4], net_a.set);
	for (size_t i = 0; i < FR_ARRAY_LEN(classes); i++) {
		fr_net_close_listen(listen[i]);
	}
}
END_TEST

/* INT_MIN is what one host's configuration has where nothing is set. */
START_TEST(a_traffic_class_that_cannot_be_is_said_once_and_counts_as_none)
{
	static const int classes[] = {INT_MIN, 256, -2, INT_MAX, 256};
	struct fr_listen *listen;

	net_as(&net_a);
	ck_assert_ptr_eq(set_of_class(INT_MIN, &listen), net_a.set);
	fr_net_close_listen(listen);
	ck_assert_uint_eq(net_logged("traffic class"), 0);
	net_expect("traffic class 256 is not between 0 and 255");
	for (size_t i = 0; i < FR_ARRAY_LEN(classes); i++) {
		ck_assert_ptr_eq(set_of_class(classes[i], &listen), net_a.set);
		fr_net_close_listen(listen);
	}
	ck_assert_uint_eq(net_logged("traffic class"), 1);
}
END_TEST

static void private_sets(void)
{
	net_init();
	setenv("OFI_NCCL_ENDPOINT_PER_COMM", "1", 1);
	net_open();
}

START_TEST(each_object_can_have_a_set_of_its_own)
{
	struct net_pair *pair;

	pair = net_connect(&net_a, &net_b);
	ck_assert_ptr_ne(pair->send->set, net_a.set);
	ck_assert_ptr_eq(pair->recv->set, net_b.set);
	ck_assert_uint_eq(fr_fake_rail_cnt(), 6);
	for (unsigned i = 0; i < 10; i++) {
		struct fr_set *set = pair->send->set;

		net_lock(set);
		fr_progress_locked(set);
		net_unlock(set);
		net_pass();
	}
	net_close_recv(pair);
	net_pass();
	net_close_send(pair);
	ck_assert_uint_eq(fr_fake_rail_cnt(), 4);
}
END_TEST

/* -- opening -- */

static int try_listen(struct fr_listen **listen)
{
	uint8_t before[FR_HANDLE_BYTES];
	int ret;

	*listen = NET_UNTOUCHED;
	memset(handle, 0x5a, sizeof(handle));
	memcpy(before, handle, sizeof(before));
	net_as(NULL);
	ret = fr_net_listen(0, FR_NET_TCLASS_UNSET, handle, sizeof(handle),
			    listen);
	if (ret != 0) {
		ck_assert_ptr_eq(*listen, NET_UNTOUCHED);
		ck_assert_mem_eq(handle, before, sizeof(before));
	}
	return ret;
}

START_TEST(a_listen_without_memory_leaves_nothing)
{
	size_t base = fr_live_allocs();
	struct fr_listen *listen;
	unsigned failed = 0;
	int ret = -ENOMEM;

	net_expect("cannot open its rails: Cannot allocate memory");
	net_expect("no knock ports: Cannot allocate memory");
	for (unsigned nth = 1; ret != 0; nth++) {
		ck_assert_uint_lt(nth, NET_FAULTS);
		fr_fault_alloc_at(nth);
		ret = try_listen(&listen);
		fr_fault_alloc_at(0);
		if (ret != 0) {
			ck_assert_int_eq(ret, -ENOMEM);
			ck_assert_uint_eq(fr_live_allocs(), base);
			ck_assert_uint_eq(fr_fake_rail_cnt(), 4);
			failed++;
		}
	}
	ck_assert_uint_ge(failed, 10);
	fr_net_close_listen(listen);
	ck_assert_uint_eq(fr_live_allocs(), base);
}
END_TEST

/* The loop index: the kind of call. */
START_TEST(a_listen_whose_rail_fails_leaves_nothing)
{
	static const enum fr_fake_call calls[] = {FR_FAKE_RAIL_OPEN,
						  FR_FAKE_MR_REG, FR_FAKE_RECV};
	size_t base = fr_live_allocs();
	struct fr_listen *listen;
	unsigned failed = 0;
	int ret = -EIO;

	net_expect("Input/output error");
	for (unsigned nth = 1; ret != 0; nth++) {
		ck_assert_uint_lt(nth, NET_FAULTS);
		fr_fake_fail_at(calls[_i], nth, -EIO);
		ret = try_listen(&listen);
		fr_fake_fault_clear();
		if (ret != 0) {
			ck_assert_int_eq(ret, -EIO);
			ck_assert_uint_eq(fr_live_allocs(), base);
			ck_assert_uint_eq(fr_fake_rail_cnt(), 4);
			failed++;
		}
	}
	ck_assert_uint_ge(failed, 2);
	fr_net_close_listen(listen);
	ck_assert_uint_eq(fr_live_allocs(), base);
}
END_TEST

START_TEST(a_handle_has_128_or_64_bytes)
{
	struct fr_listen *listen = NET_UNTOUCHED;
	size_t base = fr_live_allocs();
	struct fr_handle h;
	const char *why;

	net_as(&net_a);
	net_expect("cannot make a handle");
	ck_assert_int_eq(
		fr_net_listen(0, FR_NET_TCLASS_UNSET, NULL, 128, &listen),
		-EINVAL);
	ck_assert_int_eq(
		fr_net_listen(1, FR_NET_TCLASS_UNSET, handle, 128, &listen),
		-EINVAL);
	ck_assert_int_eq(
		fr_net_listen(0, FR_NET_TCLASS_UNSET, handle, 63, &listen),
		-EINVAL);
	ck_assert_ptr_eq(listen, NET_UNTOUCHED);
	ck_assert_uint_eq(fr_live_allocs(), base);
	ck_assert_int_eq(
		fr_net_listen(0, FR_NET_TCLASS_UNSET, handle, 64, &listen), 0);
	ck_assert_int_eq(fr_handle_decode(&h, handle, 64, &why), 0);
	ck_assert_uint_eq(h.cookie, listen->cookie);
	ck_assert_uint_ne(h.knock_port, 0);
	fr_net_close_listen(listen);
}
END_TEST

/* -- the comm table -- */

START_TEST(comm_ids_fill_pages_and_come_back)
{
	static struct fr_comm *comms[FR_SET_COMM_PAGE + 10];
	struct fr_set *set = net_a.set;

	net_lock(set);
	for (unsigned i = 0; i < FR_ARRAY_LEN(comms); i++) {
		ck_assert_int_eq(
			fr_comm_create_locked(set, i % 2 == 0, &comms[i]), 0);
		ck_assert_ptr_eq(fr_set_comm(set, comms[i]->id), comms[i]);
	}
	ck_assert_ptr_nonnull(set->comm_page[1]);
	ck_assert_ptr_null(fr_set_comm(set, FR_IMM_COMM_CNT - 1));
	for (unsigned i = 0; i < FR_ARRAY_LEN(comms); i++) {
		uint32_t id = comms[i]->id;

		fr_comm_destroy_locked(comms[i]);
		ck_assert_ptr_null(fr_set_comm(set, id));
	}
	net_unlock(set);
}
END_TEST

START_TEST(no_more_comms_than_ids)
{
	struct fr_comm *comm = NET_UNTOUCHED;
	struct fr_set *set = net_a.set;
	unsigned cnt = 0;

	net_expect("all 262144 comm ids are in use");
	net_lock(set);
	while (fr_idpool_get(set->comm_ids) >= 0) {
		cnt++;
	}
	ck_assert_uint_eq(cnt, FR_IMM_COMM_CNT);
	ck_assert_int_eq(fr_comm_create_locked(set, true, &comm), -ENOSPC);
	ck_assert_ptr_eq(comm, NET_UNTOUCHED);
	net_unlock(set);
}
END_TEST

START_TEST(a_comm_without_memory_leaves_nothing)
{
	struct fr_comm *comm = NET_UNTOUCHED;
	struct fr_set *set = net_a.set;
	size_t base = fr_live_allocs();
	unsigned nth = 0;
	int ret;

	net_lock(set);
	do {
		ck_assert_uint_eq(fr_live_allocs(), base);
		fr_fault_alloc_at(++nth);
		ret = fr_comm_create_locked(set, false, &comm);
		fr_fault_alloc_at(0);
	} while (ret == -ENOMEM);
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_ge(nth, 3);
	fr_comm_destroy_locked(comm);
	net_unlock(set);
}
END_TEST

/* -- the end -- */

START_TEST(a_set_that_is_killed_takes_all_its_comms_along)
{
	struct net_pair *out, *in, *other;
	struct net_buf out_buf, in_buf;
	struct fr_listen *listen = NULL;
	struct fr_req *req, *waits;

	out = net_connect(&net_a, &net_b);
	in = net_connect(&net_b, &net_a);
	net_side_open(&net_c);
	other = net_connect(&net_c, &net_b);
	net_buf_open(out->send, LONG, &out_buf);
	net_buf_open(in->recv, LONG, &in_buf);
	waits = net_irecv(&in_buf, LONG);
	net_expect("endpoints fenced: a test says so");
	net_expect("is lost: a test says so");
	net_expect("is lost: it has given up the link");
	net_lock(net_a.set);
	fr_set_kill_locked(net_a.set, "a test says so");
	fr_set_kill_locked(net_a.set, "again");
	net_unlock(net_a.set);
	ck_assert_uint_eq(net_logged("endpoints fenced"), 1);
	ck_assert_int_eq(net_try_send(&out_buf, 10, &req), -ECONNRESET);
	ck_assert_int_eq(net_try_recv(&in_buf, 10, &req), -ECONNRESET);
	ck_assert_int_eq(net_wait(waits, NULL), -ECONNRESET);
	/* The peer knows at the same moment; its other peers go on. */
	NET_UNTIL(out->recv->link->err != 0);
	net_assert_works(other);
	net_tick(2);
	/* The thread's next object gets a set that lives. */
	net_as(&net_a);
	ck_assert_int_eq(fr_net_listen(0, FR_NET_TCLASS_UNSET, handle,
				       sizeof(handle), &listen),
			 0);
	ck_assert_ptr_ne(listen->set, net_a.set);
	fr_net_close_listen(listen);
}
END_TEST

START_TEST(a_close_waits_for_the_peers_word_a_second_at_most)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	uint64_t begun = fr_now_ns();

	net_side_close(&net_a); /* the comm is its last user */
	net_close_send(pair);	/* and nobody polls b */
	ck_assert_uint_ge(fr_now_ns() - begun, FR_NS_PER_S);
	ck_assert_uint_le(fr_now_ns() - begun, 5 * FR_NS_PER_S);
	ck_assert_uint_eq(net_logged("closed before every peer"), 1);
	net_pass(); /* its close has come all the same */
	ck_assert(pair->recv->peer_closed);
	net_close_recv(pair);
	net_forsake(&net_b);
}
END_TEST

START_TEST(a_close_without_peers_is_quick)
{
	uint64_t begun = fr_now_ns();

	net_side_close(&net_a);
	ck_assert_uint_le(fr_now_ns() - begun, FR_NS_PER_S);
	ck_assert_uint_eq(net_logged("closed before every peer"), 0);
}
END_TEST

START_TEST(a_message_that_was_sent_survives_the_close_of_its_set)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	struct net_buf from, to;
	struct fr_req *recv;

	net_buf_open(pair->send, 100, &from);
	net_buf_open(pair->recv, 100, &to);
	net_settle();
	net_fill(from.mem, 100, 3);
	net_wait(net_isend(&from, 100), NULL);
	net_side_close(&net_a);
	net_close_send(pair);
	recv = net_irecv(&to, 100);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	ck_assert(net_is_filled(to.mem, 100, 3));
	net_close_recv(pair);
	net_forsake(&net_b);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("set", net_setup);
	TCase *own = net_case("private", private_sets);
	TCase *const cases[] = {tc, own};

	tcase_add_test(tc, a_thread_has_one_set_a_device);
	tcase_add_test(tc, another_thread_has_another_set);
	tcase_add_test(tc, each_traffic_class_of_a_thread_has_its_set);
	tcase_add_test(
		tc,
		a_traffic_class_that_cannot_be_is_said_once_and_counts_as_none);
	tcase_add_test(own, each_object_can_have_a_set_of_its_own);
	tcase_add_test(tc, a_listen_without_memory_leaves_nothing);
	tcase_add_loop_test(tc, a_listen_whose_rail_fails_leaves_nothing, 0, 3);
	tcase_add_test(tc, a_handle_has_128_or_64_bytes);
	tcase_add_test(tc, comm_ids_fill_pages_and_come_back);
	tcase_add_test(tc, no_more_comms_than_ids);
	tcase_add_test(tc, a_comm_without_memory_leaves_nothing);
	tcase_add_test(tc, a_set_that_is_killed_takes_all_its_comms_along);
	tcase_add_test(tc, a_close_waits_for_the_peers_word_a_second_at_most);
	tcase_add_test(tc, a_close_without_peers_is_quick);
	tcase_add_test(tc,
		       a_message_that_was_sent_survives_the_close_of_its_set);
	return net_main("set", cases, FR_ARRAY_LEN(cases));
}
