/* Comms: who may name them, and how their ids come to rest. */
#include "net/link.h"
#include "unit/net/net_unit.h"

static struct net_pair *pair;

static void connected(void)
{
	pair = net_connect(&net_a, &net_b);
	net_settle();
	memset(net_wire.seen, 0, sizeof(net_wire.seen));
}

static unsigned comms_of(const struct net_side *side)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < FR_SET_COMM_PAGE; i++) {
		cnt += fr_set_comm(side->set, i) != NULL;
	}
	return cnt;
}

START_TEST(a_comm_is_found_by_its_link_id_nonce_and_direction)
{
	struct net_pair *other;
	struct fr_comm *comm;

	connected();
	net_side_open(&net_c);
	other = net_connect(&net_c, &net_b);
	comm = pair->recv;
	ck_assert_ptr_eq(fr_comm_of(comm->link, comm->id, comm->nonce, false),
			 comm);
	ck_assert_ptr_null(fr_comm_of(comm->link, comm->id, comm->nonce, true));
	ck_assert_ptr_null(
		fr_comm_of(comm->link, comm->id, comm->nonce ^ 1, false));
	ck_assert_ptr_null(
		fr_comm_of(other->recv->link, comm->id, comm->nonce, false));
	ck_assert_ptr_null(fr_comm_of(comm->link, 999, comm->nonce, false));
	ck_assert_ptr_null(fr_comm_of(comm->link, 99999, comm->nonce, false));
	ck_assert_ptr_null(
		fr_comm_of(comm->link, FR_IMM_COMM_CNT, comm->nonce, false));
	ck_assert_ptr_null(
		fr_comm_of(comm->link, UINT32_MAX, comm->nonce, false));
}
END_TEST

/* The loop index: who closes first. */
START_TEST(an_id_rests_until_both_sides_have_closed)
{
	struct net_side *first = _i == 0 ? &net_a : &net_b;
	struct net_side *last = _i == 0 ? &net_b : &net_a;

	connected();
	if (_i == 0) {
		net_close_send(pair);
	} else {
		net_close_recv(pair);
	}
	ck_assert_uint_eq(comms_of(first), 1); /* the peer may still write */
	ck_assert(!fr_list_empty(&first->set->zombies));
	net_settle();
	ck_assert_uint_eq(comms_of(first), 1);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CLOSE], 1);
	net_hangup(pair);
	ck_assert_uint_eq(comms_of(last), 0);
	NET_UNTIL(comms_of(first) == 0);
	ck_assert(fr_list_empty(&first->set->zombies));
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CLOSED], 1);
}
END_TEST

START_TEST(closes_that_cross_end_both)
{
	connected();
	net_hangup(pair);
	NET_UNTIL(comms_of(&net_a) == 0 && comms_of(&net_b) == 0);
	ck_assert_uint_eq(net_wire.seen[FR_LINK_CLOSE], 2);
}
END_TEST

START_TEST(a_close_says_how_much_was_sent)
{
	struct fr_link_note note;
	struct net_buf from;
	const uint8_t *msg;
	const char *why;
	size_t bytes;

	connected();
	net_buf_open(pair->send, 64, &from);
	for (unsigned i = 0; i < 7; i++) {
		ck_assert_int_eq(net_wait(net_isend(&from, 10), NULL), 0);
	}
	net_close_send(pair);
	net_settle();
	msg = net_last(FR_LINK_CLOSE, &bytes);
	ck_assert_int_eq(fr_link_note_decode(FR_LINK_CLOSE, &note,
					     msg + FR_LINK_HDR_BYTES,
					     bytes - FR_LINK_HDR_BYTES, &why),
			 0);
	ck_assert_uint_eq(note.comm, pair->recv->id);
	ck_assert_uint_eq(note.nonce, pair->recv->nonce);
	ck_assert_uint_eq(note.seq, 7);
	ck_assert_uint_eq(pair->recv->peer_final, 7);
}
END_TEST

START_TEST(a_close_of_a_foreign_comm_is_ignored)
{
	struct net_pair *other;
	struct fr_link_note note;

	connected();
	net_side_open(&net_c);
	other = net_connect(&net_c, &net_b);
	note = (struct fr_link_note){.comm = pair->recv->id,
				     .nonce = pair->recv->nonce};
	net_say_note(other->send->link, FR_LINK_CLOSE, &note);
	note.nonce ^= 1;
	net_say_note(pair->send->link, FR_LINK_CLOSE, &note);
	note.comm = 12345;
	net_say_note(pair->send->link, FR_LINK_CLOSED, &note);
	net_settle();
	ck_assert(!pair->recv->peer_closed);
	net_assert_works(pair);
	net_assert_works(other);
}
END_TEST

START_TEST(a_second_close_changes_nothing)
{
	struct fr_link_note note;

	connected();
	note = (struct fr_link_note){
		.comm = pair->recv->id, .nonce = pair->recv->nonce, .seq = 0};
	net_close_send(pair);
	net_settle();
	ck_assert(pair->recv->peer_closed);
	note.seq = 5;
	net_say_note(
		FR_CONTAINER_OF(net_a.set->links.next, struct fr_link, node),
		FR_LINK_CLOSE, &note);
	net_settle();
	ck_assert_uint_eq(pair->recv->peer_final, 0);
	ck_assert_uint_eq(pair->recv->link->peer_open, 0);
}
END_TEST

START_TEST(a_lost_link_lets_ids_go)
{
	connected();
	net_close_recv(pair);
	net_pass_of(&net_b);
	ck_assert_uint_eq(comms_of(&net_b), 1);
	net_forsake(&net_b);
	net_tick(1);
	ck_assert_uint_eq(comms_of(&net_b), 0);
	ck_assert(fr_list_empty(&net_b.set->zombies));
	net_forsake(&net_a);
	net_close_send(pair);
	ck_assert_uint_eq(comms_of(&net_a),
			  0); /* there is nobody to wait for */
}
END_TEST

START_TEST(a_close_without_memory_ends_the_link)
{
	void *taken[4096];
	unsigned cnt = 0;

	connected();
	net_lock(net_a.set);
	do {
		fr_fault_alloc_at(1);
		taken[cnt] = fr_freelist_get(net_a.set->small_slots);
	} while (taken[cnt] != NULL && ++cnt < FR_ARRAY_LEN(taken));
	net_unlock(net_a.set);
	net_expect("out of memory for a close message");
	fr_fault_alloc_at(1);
	net_close_send(pair);
	fr_fault_alloc_at(0);
	net_lock(net_a.set);
	while (cnt > 0) {
		fr_freelist_put(net_a.set->small_slots, taken[--cnt]);
	}
	net_unlock(net_a.set);
	ck_assert_uint_eq(comms_of(&net_a), 0);
	net_forsake(&net_b);
}
END_TEST

START_TEST(no_two_comms_have_id_and_nonce_in_common)
{
	uint32_t id, nonce;

	connected();
	id = pair->recv->id;
	nonce = pair->recv->nonce;
	net_hangup(pair);
	NET_UNTIL(comms_of(&net_a) == 0 && comms_of(&net_b) == 0);
	pair = net_connect(&net_a, &net_b);
	ck_assert(pair->recv->id != id || pair->recv->nonce != nonce);
	net_assert_works(pair);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("comm", net_setup);

	tcase_add_test(tc, a_comm_is_found_by_its_link_id_nonce_and_direction);
	tcase_add_loop_test(tc, an_id_rests_until_both_sides_have_closed, 0, 2);
	tcase_add_test(tc, closes_that_cross_end_both);
	tcase_add_test(tc, a_close_says_how_much_was_sent);
	tcase_add_test(tc, a_close_of_a_foreign_comm_is_ignored);
	tcase_add_test(tc, a_second_close_changes_nothing);
	tcase_add_test(tc, a_lost_link_lets_ids_go);
	tcase_add_test(tc, a_close_without_memory_ends_the_link);
	tcase_add_test(tc, no_two_comms_have_id_and_nonce_in_common);
	return net_main("comm", &tc, 1);
}
