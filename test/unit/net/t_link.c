/* Links: found or made by what a peer says of itself, and failed as one. */
#include "net/link.h"
#include "unit/net/net_unit.h"

static unsigned links_of(const struct net_side *side)
{
	unsigned cnt = 0;

	fr_list_for_each (pos, &side->set->links) {
		cnt++;
	}
	return cnt;
}

static struct fr_conn_msg from_b(void)
{
	return net_conn_msg(&net_b, FR_CONN_REQUEST, 1, 2);
}

static int try_get(const struct fr_conn_msg *msg, struct fr_link **link,
		   const char **why)
{
	int ret;

	*link = NET_UNTOUCHED;
	net_lock(net_a.set);
	ret = fr_link_get(net_a.set, msg, link, why);
	net_unlock(net_a.set);
	return ret;
}

START_TEST(comms_between_two_sets_share_a_link)
{
	struct net_pair *one = net_connect(&net_a, &net_b);
	struct net_pair *two = net_connect(&net_a, &net_b);
	struct net_pair *back = net_connect(&net_b, &net_a);

	ck_assert_ptr_eq(one->send->link, two->send->link);
	ck_assert_ptr_eq(one->send->link, back->recv->link);
	ck_assert_ptr_ne(one->send->link, one->recv->link);
	ck_assert_uint_eq(links_of(&net_a), 1);
	ck_assert_uint_eq(links_of(&net_b), 1);
	ck_assert_uint_eq(one->send->link->open_comms, 3);
	ck_assert_uint_eq(one->send->link->peer_open, 3);
	ck_assert_uint_eq(net_logged("make 2 paths"), 2);
	ck_assert_ptr_eq(fr_link_find(net_a.set, net_b.set->id),
			 one->send->link);
	ck_assert_ptr_null(fr_link_find(net_a.set, net_b.set->id ^ 1));
}
END_TEST

START_TEST(control_messages_spread_over_the_paths)
{
	struct net_pair *one = net_connect(&net_a, &net_b);
	struct net_pair *two = net_connect(&net_a, &net_b);

	ck_assert_uint_ne(one->send->ctrl_path, two->send->ctrl_path);
	ck_assert_uint_eq(one->send->ctrl_path, one->recv->ctrl_path);
	ck_assert_uint_eq(two->send->ctrl_path, two->recv->ctrl_path);
	net_assert_works(one);
	net_assert_works(two);
}
END_TEST

START_TEST(links_in_one_bucket_are_told_apart)
{
	struct fr_conn_msg msg = from_b();
	struct fr_link *links[3];
	const char *why = "";

	for (unsigned i = 0; i < 3; i++) {
		msg.set_id = 1000 + i * FR_SET_LINK_BUCKETS;
		ck_assert_int_eq(try_get(&msg, &links[i], &why), 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_ptr_eq(
			fr_link_find(net_a.set, 1000 + i * FR_SET_LINK_BUCKETS),
			links[i]);
	}
	ck_assert_ptr_null(
		fr_link_find(net_a.set, 1000 + 3 * FR_SET_LINK_BUCKETS));
}
END_TEST

static void no_rails(struct fr_conn_msg *msg)
{
	msg->rail_cnt = 0;
}

static void other_provider(struct fr_conn_msg *msg)
{
	msg->prov ^= 1;
}

static void other_immediates(struct fr_conn_msg *msg)
{
	msg->cq_data_bytes = 4;
}

static void no_set(struct fr_conn_msg *msg)
{
	msg->set_id = 0;
}

static const struct {
	void (*spoil)(struct fr_conn_msg *msg);
	const char *why;
} refusals[] = {
	{no_rails, "0 rails"},
	{other_provider, "another provider"},
	{other_immediates, "another size of remote CQ data"},
	{no_set, "set id is 0"},
};

START_TEST(a_peer_that_does_not_fit_is_refused_with_a_reason)
{
	struct fr_conn_msg msg = from_b();
	struct fr_link *link;
	const char *why = "";

	refusals[_i].spoil(&msg);
	ck_assert_int_eq(try_get(&msg, &link, &why), -EPROTO);
	ck_assert_ptr_eq(link, NET_UNTOUCHED);
	ck_assert_msg(strstr(why, refusals[_i].why) != NULL, "%s", why);
	ck_assert_uint_eq(links_of(&net_a), 0);
}
END_TEST

START_TEST(names_that_a_rail_cannot_use_are_refused)
{
	const char *why = "";
	struct fr_link *link;

	for (unsigned i = 0; i < 4; i++) {
		struct fr_conn_msg msg = from_b();
		struct fr_conn_rail *rail = &msg.rails[i / 2];

		(i % 2 == 0 ? &rail->data : &rail->ctrl)->bytes[0] ^= 0x7f;
		ck_assert_int_eq(try_get(&msg, &link, &why), -EPROTO);
		ck_assert_ptr_eq(link, NET_UNTOUCHED);
		ck_assert_ptr_nonnull(strstr(why, "endpoint name"));
	}
	ck_assert_uint_eq(links_of(&net_a), 0);
}
END_TEST

/* The loop index: allocations, or entries of the address vectors. */
START_TEST(a_link_that_cannot_be_made_leaves_nothing)
{
	struct fr_conn_msg msg = from_b();
	unsigned failed = 0;
	struct fr_link *link;
	const char *why = "";
	int ret = -1;

	ck_assert_int_eq(try_get(&msg, &link, &why), 0); /* warms the rails */
	msg.set_id ^= 1;
	for (unsigned nth = 1; ret != 0; nth++) {
		size_t base = fr_live_allocs();

		ck_assert_uint_lt(nth, NET_FAULTS);
		if (_i == 0) {
			fr_fault_alloc_at(nth);
		} else {
			fr_fake_fail_at(FR_FAKE_PEER_ADD, nth, -ENOMEM);
		}
		ret = try_get(&msg, &link, &why);
		fr_fault_alloc_at(0);
		fr_fake_fault_clear();
		if (ret != 0) {
			ck_assert_int_eq(ret, -ENOMEM);
			ck_assert_ptr_eq(link, NET_UNTOUCHED);
			ck_assert_uint_eq(fr_live_allocs(), base);
			ck_assert_uint_eq(links_of(&net_a), 1);
			failed++;
		}
	}
	ck_assert_uint_ge(failed, _i == 0 ? 1 : 4);
	ck_assert_uint_eq(links_of(&net_a), 2);
}
END_TEST

START_TEST(both_ends_find_the_same_paths)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	struct net_pair *back = net_connect(&net_b, &net_a);
	const struct fr_link *a = pair->send->link, *b = pair->recv->link;

	ck_assert_uint_eq(a->path_cnt, 2);
	ck_assert_uint_eq(b->path_cnt, 2);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(a->path[i].local_rail, b->path[i].peer_rail);
		ck_assert_uint_eq(a->path[i].peer_rail, b->path[i].local_rail);
		ck_assert_uint_ne(a->path[i].knock_peer.port, 0);
	}
	net_assert_works(pair);
	net_assert_works(back);
}
END_TEST

/* The loop index: 0: more rails in our subnets; 1: more in others. */
START_TEST(rails_of_a_bigger_peer_are_used_where_we_reach_them)
{
	struct fr_conn_msg msg = net_conn_msg(&net_b, FR_CONN_REQUEST, 1, 2);
	bool used[FR_CONN_MAX_RAILS] = {false};
	struct fr_link *link;
	const char *why = "";

	for (unsigned i = 2; i < 5; i++) {
		msg.rails[i] = msg.rails[i % 2];
		msg.rails[i].subnet[14] ^= (uint8_t)(_i * (100 + (int)i));
	}
	msg.rail_cnt = 5;
	net_expect("its peer at");
	ck_assert_int_eq(try_get(&msg, &link, &why), 0);
	ck_assert_uint_eq(link->path_cnt, _i == 0 ? 5 : 2);
	for (unsigned i = 0; i < link->path_cnt; i++) {
		used[link->path[i].peer_rail] = true;
		ck_assert_uint_lt(link->path[i].local_rail, 2);
	}
	for (unsigned i = 0; i < link->path_cnt; i++) {
		ck_assert(used[i]);
	}
	ck_assert_uint_eq(net_logged("2 of our rails and 5 of theirs make "),
			  1);
	ck_assert_uint_eq(net_logged("has 2 rails, its peer at"), 1);
}
END_TEST

START_TEST(a_peer_of_the_other_ip_version_is_refused)
{
	struct fr_conn_msg msg = net_conn_msg(&net_b, FR_CONN_REQUEST, 1, 2);
	struct fr_link *link;
	const char *why = "";

	for (unsigned i = 0; i < msg.rail_cnt; i++) {
		memset(msg.rails[i].subnet, 0xfd, 8);
	}
	ck_assert_int_eq(try_get(&msg, &link, &why), -EPROTO);
	ck_assert_ptr_nonnull(strstr(why, "IP version"));
	ck_assert_uint_eq(links_of(&net_a), 0);
}
END_TEST

START_TEST(a_link_fails_once_with_one_line)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	struct net_pair *sister = net_connect(&net_a, &net_b);
	struct fr_link *link = pair->send->link;

	net_expect("is lost: first; its 2 comms fail");
	net_lock(net_a.set);
	fr_link_fail(link, -ECONNRESET, "first");
	fr_link_fail(link, -EPROTO, "second");
	net_unlock(net_a.set);
	ck_assert_int_eq(link->err, -ECONNRESET);
	ck_assert_uint_eq(net_logged("first"), 1);
	ck_assert_uint_eq(net_logged("second"), 0);
	ck_assert_int_eq(fr_comm_error(pair->send), -ECONNRESET);
	ck_assert_int_eq(fr_comm_error(sister->send), -ECONNRESET);
	net_forsake(&net_b);
}
END_TEST

/* Its messages wait for acknowledgements, a rail, and the window. */
START_TEST(a_link_that_fails_gives_all_its_buffers_back)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	struct fr_link *link = pair->send->link;
	struct fr_link_note note = {.a = 1};
	unsigned used;

	net_settle();
	used = fr_freelist_used(net_a.set->small_slots);
	for (unsigned i = 0; i < 40; i++) {
		net_say_note(link, FR_LINK_PING, &note);
	}
	fr_fake_fault(&(struct fr_fake_fault){
		.call = FR_FAKE_SEND, .err = -EAGAIN, .cnt = FR_FAKE_FOREVER});
	for (unsigned i = 0; i < 60; i++) {
		net_say_note(link, FR_LINK_PING, &note);
	}
	ck_assert_uint_eq(fr_freelist_used(net_a.set->small_slots), used + 100);
	net_forsake(&net_a);
	net_pass_of(&net_a); /* those that flew come home */
	ck_assert_uint_eq(fr_freelist_used(net_a.set->small_slots), used);
	fr_fake_fault_clear();
	net_forsake(&net_b);
}
END_TEST

START_TEST(a_failed_link_takes_no_new_comm)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	struct fr_conn_msg msg = from_b();
	struct fr_link *link;
	const char *why = "";

	net_forsake(&net_a);
	ck_assert_int_eq(try_get(&msg, &link, &why), -ECONNRESET);
	ck_assert_ptr_nonnull(strstr(why, "failed before"));
	net_forsake(&net_b);
	net_hangup(pair);
}
END_TEST

START_TEST(a_link_without_open_comms_fails_in_silence)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	struct fr_link *link = pair->send->link;

	net_close_send(pair);
	net_lock(net_a.set);
	fr_link_fail(link, -ECONNRESET, "nobody cares");
	net_unlock(net_a.set);
	ck_assert_uint_eq(net_logged("is lost"), 0);
	net_tick(1);
	ck_assert(fr_list_empty(&net_a.set->zombies));
	net_forsake(&net_b);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("link", net_setup);

	tcase_add_test(tc, comms_between_two_sets_share_a_link);
	tcase_add_test(tc, control_messages_spread_over_the_paths);
	tcase_add_test(tc, links_in_one_bucket_are_told_apart);
	tcase_add_loop_test(tc,
			    a_peer_that_does_not_fit_is_refused_with_a_reason,
			    0, (int)FR_ARRAY_LEN(refusals));
	tcase_add_test(tc, names_that_a_rail_cannot_use_are_refused);
	tcase_add_loop_test(tc, a_link_that_cannot_be_made_leaves_nothing, 0,
			    2);
	tcase_add_test(tc, both_ends_find_the_same_paths);
	tcase_add_loop_test(
		tc, rails_of_a_bigger_peer_are_used_where_we_reach_them, 0, 2);
	tcase_add_test(tc, a_peer_of_the_other_ip_version_is_refused);
	tcase_add_test(tc, a_link_fails_once_with_one_line);
	tcase_add_test(tc, a_link_that_fails_gives_all_its_buffers_back);
	tcase_add_test(tc, a_failed_link_takes_no_new_comm);
	tcase_add_test(tc, a_link_without_open_comms_fails_in_silence);
	return net_main("link", &tc, 1);
}
