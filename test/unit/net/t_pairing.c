/* Our rails and a peer's: who talks to whom, and what is said of the rest. */
#include "net/pairing.h"
#include "unit/net/net_unit.h"

static struct fr_rail_pair pair[FR_RAILMAP_MAX_RAILS];

static void with_rails(unsigned nics, const char *max_rails)
{
	net_init();
	net_conf.nic_cnt = nics;
	setenv("OFI_NCCL_MAX_RAILS", max_rails, 1);
	net_open();
}

static void four_rails(void)
{
	with_rails(4, "4");
}

/* fabrail0 with rails 0 to 3, fabrail1 with 4 and 5. */
static void two_devices(void)
{
	net_init();
	net_conf.nic_cnt = 6;
	net_expect("unequal devices");
	net_open();
}

static void swap_rails(struct fr_set *set)
{
	struct fr_rail *first = set->rail[0];

	set->rail[0] = set->rail[2];
	set->rail[2] = first;
}

static struct fr_conn_msg peer(void)
{
	return net_conn_msg(&net_b, FR_CONN_REQUEST, 1, 2);
}

static struct fr_conn_msg peer_with(unsigned rails)
{
	struct fr_conn_msg msg = peer();

	msg.rail_cnt = rails;
	return msg;
}

static unsigned plan(const struct fr_conn_msg *msg)
{
	return fr_pairing_plan(net_a.set, msg, pair);
}

static void say(const struct fr_conn_msg *msg)
{
	fr_pairing_say(net_a.set, msg, pair, plan(msg));
}

START_TEST(equal_sides_meet_one_to_one_in_silence)
{
	struct fr_conn_msg msg = peer();

	ck_assert_uint_eq(plan(&msg), 4);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_eq(pair[i].ours, i);
		ck_assert_uint_eq(pair[i].theirs, i);
	}
	say(&msg);
	ck_assert_uint_eq(net_logged("its peer at"), 0);
}
END_TEST

/* The loop index: which side's set id is lower. */
START_TEST(both_sides_list_the_same_paths)
{
	struct fr_conn_msg msg = peer_with(3), mine;
	struct fr_rail_pair there[FR_RAILMAP_MAX_RAILS];
	struct fr_conn_rail swap = msg.rails[0];
	uint64_t low = FR_MIN(net_a.set->id, net_b.set->id);
	uint64_t high = FR_MAX(net_a.set->id, net_b.set->id);

	msg.rails[0] = msg.rails[2];
	msg.rails[2] = swap;
	net_a.set->id = _i == 0 ? low : high;
	net_b.set->id = _i == 0 ? high : low;
	msg.set_id = net_b.set->id;
	mine = net_conn_msg(&net_a, FR_CONN_REQUEST, 1, 2);
	ck_assert_uint_eq(plan(&msg), 3);

	/* The peer, as it is: three rails, two of them swapped. */
	net_b.set->rail_cnt = 3;
	swap_rails(net_b.set);
	ck_assert_uint_eq(fr_pairing_plan(net_b.set, &mine, there), 3);
	swap_rails(net_b.set);
	net_b.set->rail_cnt = 4;
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(pair[i].ours, there[i].theirs);
		ck_assert_uint_eq(pair[i].theirs, there[i].ours);
	}
}
END_TEST

START_TEST(another_number_of_rails_is_warned_of_once)
{
	struct fr_conn_msg msg = peer_with(3);

	net_expect("its peer at");
	ck_assert_uint_eq(plan(&msg), 3);
	say(&msg);
	say(&msg);
	ck_assert_uint_eq(net_logged("fabrail0 at 127.77.0.1 has 4 rails, its "
				     "peer at 127.77.0.1 (fake0) has 3"),
			  1);
	ck_assert_uint_eq(net_logged("not used between them here: fake3"), 1);
	ck_assert_uint_eq(net_logged("between them there"), 0);
	ck_assert_uint_eq(net_logged("its peer at"), 1);
}
END_TEST

START_TEST(more_rails_in_our_subnets_are_all_used)
{
	struct fr_conn_msg msg = peer();

	net_expect("its peer at");
	for (unsigned i = 0; i < 4; i++) {
		msg.rails[4 + i] = msg.rails[i];
	}
	msg.rail_cnt = 8;
	ck_assert_uint_eq(plan(&msg), 8);
	say(&msg);
	ck_assert_uint_eq(net_logged("has 4 rails, its peer at"), 1);
	ck_assert_uint_eq(net_logged("not used"), 0);
}
END_TEST

START_TEST(a_rail_in_a_subnet_of_its_own_is_told)
{
	struct fr_conn_msg msg = peer();

	net_expect("its peer at");
	msg.rails[1].subnet[14] = 99;
	ck_assert_uint_eq(plan(&msg), 3);
	say(&msg);
	ck_assert_uint_eq(net_logged("not used between them here: fake1; not "
				     "used between them there: fake1"),
			  1);
}
END_TEST

START_TEST(hosts_that_are_joined_by_routers_are_no_cause_for_a_warning)
{
	struct fr_conn_msg msg = peer();

	for (unsigned i = 0; i < 4; i++) {
		msg.rails[i].subnet[14] = (uint8_t)(100 + i);
	}
	ck_assert_uint_eq(plan(&msg), 4);
	say(&msg);
	ck_assert_uint_eq(net_logged("its peer at"), 0);
}
END_TEST

START_TEST(a_rail_that_another_device_has_here_is_told_as_such)
{
	struct fr_conn_msg msg = peer_with(3);

	net_expect("its peer at");
	msg.rails[2].subnet[14] = 5;
	snprintf(msg.rails[2].iface, sizeof(msg.rails[2].iface), "eth5");
	ck_assert_uint_eq(plan(&msg), 2);
	say(&msg);
	ck_assert_uint_eq(net_logged("not used between them there: eth5; a "
				     "subnet of these is in fabrail1 here"),
			  1);
}
END_TEST

/* As much of it as the log of this test keeps. */
START_TEST(the_longest_line_comes_whole)
{
	struct fr_conn_msg msg = peer_with(8);

	net_expect("its peer at");
	for (unsigned i = 1; i < 8; i++) {
		msg.rails[i] = msg.rails[0];
		msg.rails[i].subnet[14] = (uint8_t)(100 + i);
		snprintf(msg.rails[i].iface, sizeof(msg.rails[i].iface),
			 "%015u", i);
	}
	ck_assert_uint_eq(plan(&msg), 1);
	say(&msg);
	ck_assert_uint_eq(net_logged("here: fake1, fake2, fake3; not"), 1);
	ck_assert_uint_eq(net_logged("there: 000000000000001"), 1);
}
END_TEST

int main(void)
{
	TCase *tc[2] = {net_case("four rails", four_rails),
			net_case("two devices", two_devices)};

	tcase_add_test(tc[0], equal_sides_meet_one_to_one_in_silence);
	tcase_add_loop_test(tc[0], both_sides_list_the_same_paths, 0, 2);
	tcase_add_test(tc[0], another_number_of_rails_is_warned_of_once);
	tcase_add_test(tc[0], more_rails_in_our_subnets_are_all_used);
	tcase_add_test(tc[0], a_rail_in_a_subnet_of_its_own_is_told);
	tcase_add_test(
		tc[0],
		hosts_that_are_joined_by_routers_are_no_cause_for_a_warning);
	tcase_add_test(tc[0], the_longest_line_comes_whole);
	tcase_add_test(tc[1],
		       a_rail_that_another_device_has_here_is_told_as_such);
	return net_main("pairing", tc, 2);
}
