#include "unit/fabric/fabric_unit.h"

#include <signal.h>

static const struct {
	const char *prov;
	bool split;
	bool delivers;
	const char *closed;
} prov_case[] = {
	{"net", true, false, "eeqadf"},
	{"tcp;ofi_rxm", false, true, "eqadf"},
	{"sockets", true, true, "eeqadf"},
	{"shm", false, true, "eqadf"},
};

START_TEST(a_rail_opens_and_closes_in_order)
{
	struct fr_fabric *fabric = unit_fabric(prov_case[_i].prov);
	struct unit_owner owner = {0};
	struct fr_rail *rail = unit_rail(fabric, 1, &owner);

	ck_assert_uint_eq(fake_fi.live[FAKE_EP], prov_case[_i].split ? 2 : 1);
	ck_assert_uint_eq(fake_fi.ep_op_flags,
			  prov_case[_i].delivers ? FI_DELIVERY_COMPLETE : 0);
	ck_assert_uint_eq(fr_rail_index(rail), 1);
	ck_assert_ptr_eq(fr_rail_owner(rail), &owner);
	ck_assert_str_eq(fr_rail_nic(rail)->name, "rail1");
	ck_assert_str_eq(fr_rail_quirks(rail)->name, prov_case[_i].prov);
	ck_assert_uint_ge(fr_rail_name(rail, FR_EP_CTRL)->len, 16);
	ck_assert_uint_eq(fr_rail_name(rail, FR_EP_DATA)->len,
			  fr_rail_name(rail, FR_EP_CTRL)->len);
	ck_assert_uint_eq(fr_stats_get(fr_rail_stats(rail), FR_STAT_TX_MSGS),
			  0);
	fr_rail_close(rail);
	ck_assert_str_eq(fake_fi.closed, prov_case[_i].closed);
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi.misuses, 0);
	ck_assert_uint_eq(fake_fi_live(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	fr_rail_close(NULL);
	unit_assert_quiet();
}
END_TEST

START_TEST(local_completion_opens_without_delivery)
{
	struct fr_fabric *fabric = unit_fabric("tcp;ofi_rxm");
	struct unit_owner owner = {0};
	struct fr_rail_attr attr = unit_rail_attr(fabric, 0, &owner);
	struct fr_rail *rail;

	attr.local_completion = true;
	ck_assert_int_eq(fr_rail_open(&attr, &rail), 0);
	ck_assert_uint_eq(fake_fi.ep_op_flags, 0);
	fr_rail_close(rail);
	fr_fabric_close(fabric);
}
END_TEST

/* The byte of an IP header is the DSCP and two bits more. */
START_TEST(a_traffic_class_reaches_the_provider_as_dscp)
{
	static const struct {
		bool has;
		uint8_t tclass;
		uint32_t prov;
	} rows[] = {
		{false, 0, FI_TC_UNSPEC},     {false, 96, FI_TC_UNSPEC},
		{true, 0, FI_TC_DSCP | 0},    {true, 3, FI_TC_DSCP | 0},
		{true, 96, FI_TC_DSCP | 24},  {true, 184, FI_TC_DSCP | 46},
		{true, 255, FI_TC_DSCP | 63},
	};
	struct fr_fabric *fabric = unit_fabric("net");
	struct unit_owner owner = {0};
	struct fr_rail_attr attr = unit_rail_attr(fabric, 0, &owner);
	struct fr_rail *rail;

	for (size_t i = 0; i < FR_ARRAY_LEN(rows); i++) {
		attr.has_tclass = rows[i].has;
		attr.tclass = rows[i].tclass;
		ck_assert_int_eq(fr_rail_open(&attr, &rail), 0);
		ck_assert_uint_eq(fake_fi.ep_tclass, rows[i].prov);
		fr_rail_close(rail);
	}
	fr_fabric_close(fabric);
	unit_assert_quiet();
}
END_TEST

START_TEST(a_refused_traffic_class_is_said_once_and_left_out)
{
	struct fr_fabric *fabric = unit_fabric("net");
	struct unit_owner owner = {0};
	struct fr_rail_attr attr = unit_rail_attr(fabric, 1, &owner);
	struct fr_rail *rail[3];

	fake_fi.no_tclass = true;
	attr.has_tclass = true;
	attr.tclass = 96;
	for (size_t i = 0; i < FR_ARRAY_LEN(rail); i++) {
		ck_assert_int_eq(fr_rail_open(&attr, &rail[i]), 0);
		ck_assert_uint_eq(fake_fi.ep_tclass, FI_TC_UNSPEC);
	}
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 0);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 1);
	unit_assert_said(FR_LOG_WARN,
			 "rail 1 on rail1 (net, libfabric 1.17.0): does not "
			 "open with traffic class 96: Operation not supported; "
			 "it goes on without");
	for (size_t i = 0; i < FR_ARRAY_LEN(rail); i++) {
		fr_rail_close(rail[i]);
	}
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi.misuses, 0);
	ck_assert_uint_eq(fake_fi_live(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

/* What else is wrong is not blamed on the class alone. */
START_TEST(a_rail_that_opens_neither_way_fails_with_its_own_error)
{
	struct fr_fabric *fabric = unit_fabric("net");
	struct unit_owner owner = {0};
	struct fr_rail_attr attr = unit_rail_attr(fabric, 1, &owner);
	struct fr_rail *rail = NULL;

	fake_fi.name_len = FR_NAME_MAX + 1;
	attr.has_tclass = true;
	attr.tclass = 96;
	ck_assert_int_eq(fr_rail_open(&attr, &rail), -EIO);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
	unit_assert_said(FR_LOG_ERROR, "endpoint name");
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi_live(), 0);
}
END_TEST

START_TEST(open_leaks_nothing_wherever_memory_ends)
{
	struct fr_fabric *fabric = unit_fabric("net");
	struct fr_rail *const untouched = (struct fr_rail *)0x1;
	struct unit_owner owner = {0};
	struct fr_rail_attr attr = unit_rail_attr(fabric, 0, &owner);
	struct fr_rail *rail = untouched;
	size_t live = fr_live_allocs();
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), live);
		ck_assert_ptr_eq(rail, untouched);
		fr_fault_alloc_at(++nth);
		ret = fr_rail_open(&attr, &rail);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	ck_assert_uint_eq(nth, 3); /* rail and entries can fail */
	fr_fault_alloc_at(0);
	fr_rail_close(rail);
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(open_leaks_nothing_wherever_libfabric_fails)
{
	struct fr_fabric *fabric = unit_fabric("net");
	struct fr_rail *const untouched = (struct fr_rail *)0x1;
	struct unit_owner owner = {0};
	struct fr_rail_attr attr = unit_rail_attr(fabric, 0, &owner);
	struct fr_rail *rail = untouched;
	unsigned live = fake_fi_live();
	size_t allocs = fr_live_allocs();
	unsigned nth = 0, said = 0;
	int ret;

	do {
		ck_assert_uint_eq(fake_fi_live(), live);
		ck_assert_uint_eq(fr_live_allocs(), allocs);
		ck_assert_ptr_eq(rail, untouched);
		unit_log_clear();
		fake_fi.calls = 0;
		fake_fi.fail_at = ++nth;
		ret = fr_rail_open(&attr, &rail);
		ck_assert_int_le(ret, 0);
		said += unit_log.cnt[FR_LOG_ERROR];
		ck_assert_uint_le(unit_log.cnt[FR_LOG_ERROR], 1);
	} while (ret != 0);
	/* info; fabric, domain, av, cq; twice endpoint, 2 binds, enable, name
	 */
	ck_assert_uint_eq(nth, 1 + 4 + 2 * 5 + 1);
	ck_assert_uint_eq(said, 4 + 2 * 5);
	fr_rail_close(rail);
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi.misuses, 0);
	ck_assert_uint_eq(fake_fi_live(), 0);
}
END_TEST

START_TEST(an_open_that_failed_says_what_and_where)
{
	struct fr_fabric *fabric = unit_fabric("net");
	struct unit_owner owner = {0};
	struct fr_rail_attr attr = unit_rail_attr(fabric, 1, &owner);
	struct fr_rail *rail = NULL;

	fake_fi.fail_at = 5;
	ck_assert_int_eq(fr_rail_open(&attr, &rail), -EINVAL);
	unit_assert_said(FR_LOG_ERROR,
			 "rail 1 on rail1 (net, libfabric 1.17.0): cannot open "
			 "its completion queue: Invalid argument");
	fr_fabric_close(fabric);
}
END_TEST

START_TEST(an_endpoint_name_that_cannot_travel_fails_the_open)
{
	struct fr_fabric *fabric = unit_fabric("net");
	struct unit_owner owner = {0};
	struct fr_rail_attr attr = unit_rail_attr(fabric, 0, &owner);
	struct fr_rail *rail = NULL;

	fake_fi.name_len = FR_NAME_MAX + 1;
	ck_assert_int_eq(fr_rail_open(&attr, &rail), -EIO);
	unit_assert_said(FR_LOG_ERROR, "endpoint name");
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi_live(), 0);
}
END_TEST

START_TEST(an_abandoned_rail_is_never_touched)
{
	struct fr_fabric *fabric = unit_fabric("tcp;ofi_rxm");
	struct unit_owner owner = {0};

	fr_rail_abandon(unit_rail(fabric, 0, &owner));
	fr_rail_abandon(unit_rail(fabric, 1, &owner));
	ck_assert_str_eq(fake_fi.closed, "");
	ck_assert_uint_eq(fake_fi.live[FAKE_EP], 2);
	unit_assert_quiet();
}
END_TEST

START_TEST(a_fenced_rail_has_no_endpoints_left_to_close)
{
	struct fr_fabric *fabric = unit_fabric(_i == 0 ? "net" : "shm");
	struct unit_owner owner = {0};
	struct fr_rail *rail = unit_rail(fabric, 0, &owner);

	fr_rail_fence(rail);
	ck_assert_str_eq(fake_fi.closed, _i == 0 ? "ee" : "e");
	fr_rail_close(rail);
	ck_assert_str_eq(fake_fi.closed, _i == 0 ? "eeqadf" : "eqadf");
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi.misuses, 0);
	ck_assert_uint_eq(fake_fi_live(), 0);
}
END_TEST

/* The next endpoint is there before the old one goes, or nothing happens. */
START_TEST(renewing_changes_nothing_wherever_libfabric_fails)
{
	struct fr_fabric *fabric = unit_fabric("net");
	struct unit_owner owner = {0};
	struct fr_rail *rail = unit_rail(fabric, 0, &owner);
	struct fr_name before = *fr_rail_name(rail, FR_EP_DATA);
	unsigned nth = 0;
	int ret;

	do {
		unit_log_clear();
		fake_fi.calls = 0;
		fake_fi.fail_at = ++nth;
		ret = fr_rail_renew_data(rail);
		ck_assert_int_le(ret, 0);
		ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], ret != 0);
		ck_assert_uint_eq(fake_fi.live[FAKE_EP], 2);
		ck_assert_int_eq(memcmp(&before, fr_rail_name(rail, FR_EP_DATA),
					sizeof(before)) == 0,
				 ret != 0);
	} while (ret != 0);
	/* endpoint, 2 binds, enable, name */
	ck_assert_uint_eq(nth, 6);
	fr_rail_close(rail);
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi.misuses, 0);
	ck_assert_uint_eq(fake_fi_live(), 0);
}
END_TEST

#ifndef NDEBUG
START_TEST(closing_under_a_registration_is_our_bug)
{
	struct fr_fabric *fabric = unit_fabric("net");
	struct unit_owner owner = {0};
	struct fr_rail *rail = unit_rail(fabric, 0, &owner);
	struct fr_mr_cache *cache;
	struct fr_mr *mr;
	char buf[64];

	ck_assert_int_eq(fr_mr_cache_create(&rail, 1, true, &cache), 0);
	ck_assert_int_eq(fr_mr_get(cache, buf, 64, FR_MR_LOCAL, &mr), 0);
	fr_rail_close(rail);
}
END_TEST
#endif

int main(void)
{
	TCase *t = tcase_create("rail");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, unit_fake_setup, NULL);
	tcase_add_loop_test(t, a_rail_opens_and_closes_in_order, 0,
			    (int)FR_ARRAY_LEN(prov_case));
	tcase_add_test(t, local_completion_opens_without_delivery);
	tcase_add_test(t, a_traffic_class_reaches_the_provider_as_dscp);
	tcase_add_test(t, a_refused_traffic_class_is_said_once_and_left_out);
	tcase_add_test(t,
		       a_rail_that_opens_neither_way_fails_with_its_own_error);
	tcase_add_test(t, open_leaks_nothing_wherever_memory_ends);
	tcase_add_test(t, open_leaks_nothing_wherever_libfabric_fails);
	tcase_add_test(t, an_open_that_failed_says_what_and_where);
	tcase_add_test(t, an_endpoint_name_that_cannot_travel_fails_the_open);
	tcase_add_loop_test(t, a_fenced_rail_has_no_endpoints_left_to_close, 0,
			    2);
	tcase_add_test(t, renewing_changes_nothing_wherever_libfabric_fails);
	tcase_add_test(t, an_abandoned_rail_is_never_touched);
#ifndef NDEBUG
	tcase_add_test_raise_signal(t, closing_under_a_registration_is_our_bug,
				    SIGABRT);
#endif
	return unit_run(t, "fabric/rail");
}
