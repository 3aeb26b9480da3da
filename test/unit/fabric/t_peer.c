#include "unit/fabric/fabric_unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static struct fr_fabric *fabric;
static struct unit_owner owner;
static struct fr_rail *rail;

static void setup(void)
{
	unit_fake_setup();
	fabric = unit_fabric("net");
	rail = unit_rail(fabric, 0, &owner);
}

START_TEST(a_peers_name_enters_and_leaves)
{
	uint64_t a = 0, b = 0;

	ck_assert_int_eq(
		fr_rail_peer_add(rail, fr_rail_name(rail, FR_EP_CTRL), &a), 0);
	ck_assert_int_eq(
		fr_rail_peer_add(rail, fr_rail_name(rail, FR_EP_DATA), &b), 0);
	ck_assert_uint_ne(a, b);
	fr_rail_peer_del(rail, b);
	ck_assert_uint_eq(fake_fi.av_removed, b);
	unit_assert_quiet();
}
END_TEST

/* The loop index picks what is wrong with the name. */
START_TEST(a_name_that_cannot_be_of_this_provider_is_refused)
{
	struct fr_name name = *fr_rail_name(rail, FR_EP_CTRL);
	struct sockaddr_in in;
	uint64_t addr = 77;

	memcpy(&in, name.bytes, sizeof(in));
	switch (_i) {
	case 0:
		name.len = 0;
		break;
	case 1:
		name.len = 15;
		break;
	case 2:
		name.len = 56;
		break;
	case 3:
		in.sin_family = AF_INET6;
		break;
	case 4:
		in.sin_port = 0;
		break;
	case 5:
		in.sin_addr.s_addr = 0;
		break;
	default:
		in.sin_addr.s_addr = INADDR_BROADCAST;
		break;
	}
	memcpy(name.bytes, &in, sizeof(in));
	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), -EINVAL);
	ck_assert_uint_eq(addr, 77);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
	unit_assert_said(FR_LOG_ERROR, "none of provider net");
}
END_TEST

START_TEST(a_name_of_text_must_end)
{
	struct fr_name name;
	uint64_t addr;

	fr_rail_close(rail);
	fr_fabric_close(fabric);
	fake_fi.offer[0].addr = NULL;
	fake_fi.offer[1].addr = NULL;
	fabric = unit_fabric("shm");
	rail = unit_rail(fabric, 0, &owner);
	name = *fr_rail_name(rail, FR_EP_CTRL);
	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), 0);
	name.len--;
	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), -EINVAL);
	name.len = FR_NAME_MAX + 1;
	ck_assert_int_eq(fr_rail_peer_add(rail, &name, &addr), -EINVAL);
}
END_TEST

START_TEST(what_the_provider_refuses_is_refused)
{
	const int av_ret[] = {-ENOMEM, -EINVAL, INT32_MAX};
	const int want[] = {-ENOMEM, -EINVAL, -EINVAL};
	uint64_t addr;

	fake_fi.av_ret = av_ret[_i];
	ck_assert_int_eq(
		fr_rail_peer_add(rail, fr_rail_name(rail, FR_EP_CTRL), &addr),
		want[_i]);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("peer");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, a_peers_name_enters_and_leaves);
	tcase_add_loop_test(
		t, a_name_that_cannot_be_of_this_provider_is_refused, 0, 7);
	tcase_add_test(t, a_name_of_text_must_end);
	tcase_add_loop_test(t, what_the_provider_refuses_is_refused, 0, 3);
	return unit_run(t, "fabric/peer");
}
