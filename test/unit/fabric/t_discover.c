#include "unit/fabric/fabric_unit.h"

static struct fr_fabric *const untouched = (struct fr_fabric *)0x1;

/* Opens with these parameters; the fabric or NULL with *@err. */
static struct fr_fabric *open_with(const char *provider, const char *tcp_if,
				   const char *exclude, int *err)
{
	struct fr_fabric *fabric = untouched;
	struct fr_conf conf = unit_conf();

	conf.provider = (char *)(uintptr_t)provider;
	conf.tcp_if = (char *)(uintptr_t)tcp_if;
	conf.exclude_tcp_if = (char *)(uintptr_t)exclude;
	*err = fr_fabric_open(&conf, &fabric);
	if (*err != 0) {
		ck_assert_ptr_eq(fabric, untouched);
		ck_assert_uint_eq(fr_live_allocs(), 0);
		ck_assert_uint_eq(fake_fi_live(), 0);
		return NULL;
	}
	return fabric;
}

static void close_all(struct fr_fabric *fabric)
{
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	ck_assert_uint_eq(fake_fi_live(), 0);
	ck_assert_uint_eq(fake_fi.misuses, 0);
}

static void offer(unsigned i, const char *prov, const char *domain,
		  const char *addr)
{
	fake_fi.offer[i] = (struct fake_offer){prov, domain, addr};
	fake_fi.offer[i + 1].prov = NULL;
}

START_TEST(each_interface_becomes_one_nic_in_natural_order)
{
	const struct fr_iface rows[] = {
		fake_iface("rail10", "10.0.10.1", 24),
		fake_iface("rail2", "10.0.2.1", 24),
	};
	struct fr_fabric *fabric;
	int err;

	fake_fi_set_ifaces(rows, 2);
	offer(0, "net", "rail10", "10.0.10.1");
	offer(1, "net", "rail10", "10.0.10.1");
	offer(2, "net", "rail2", "10.0.2.1");
	offer(3, "net", "rail3", "10.0.3.1");
	fabric = open_with("", "", "", &err);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(fr_fabric_nic_cnt(fabric), 2);
	ck_assert_str_eq(fr_fabric_nic(fabric, 0)->name, "rail2");
	ck_assert_str_eq(fr_fabric_nic(fabric, 1)->name, "rail10");
	ck_assert_str_eq(fr_fabric_text(fabric), "net, libfabric 1.17.0");
	ck_assert_uint_eq(fr_fabric_cq_data_bytes(fabric), 8);
	ck_assert_uint_eq(fr_fabric_max_msg_bytes(fabric), 1ull << 40);
	ck_assert_str_eq(fr_fabric_quirks(fabric)->name, "net");
	unit_assert_said(FR_LOG_INFO, "provider net, libfabric 1.17.0, 2 NICs");
	unit_assert_said(FR_LOG_INFO, "NIC 1: rail10 10.0.10.1");
	unit_assert_quiet();
	close_all(fabric);
}
END_TEST

/* The loop index picks an order of libfabric's list. */
START_TEST(the_order_of_the_list_does_not_matter)
{
	const struct fr_iface rows[] = {
		fake_iface("rail2", "10.0.2.1", 24),
		fake_iface("rail10", "10.0.10.1", 24),
		fake_iface("rail0", "10.0.0.1", 24),
	};
	const char *addr[] = {"10.0.10.1", "10.0.0.1", "10.0.2.1"};
	const unsigned order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
				      {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	struct fr_fabric *fabric;
	int err;

	fake_fi_set_ifaces(rows, 3);
	for (unsigned i = 0; i < 3; i++) {
		offer(i, "net", "domain", addr[order[_i][i]]);
	}
	fabric = open_with("", "", "", &err);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(fr_fabric_nic_cnt(fabric), 3);
	ck_assert_str_eq(fr_fabric_nic(fabric, 0)->addr_text, "10.0.0.1");
	ck_assert_str_eq(fr_fabric_nic(fabric, 1)->addr_text, "10.0.2.1");
	ck_assert_str_eq(fr_fabric_nic(fabric, 2)->addr_text, "10.0.10.1");
	ck_assert_str_eq(fr_fabric_nic(fabric, 2)->name, "rail10");
	close_all(fabric);
}
END_TEST

START_TEST(only_what_is_used_is_asked_for)
{
	struct fr_conf conf = unit_conf();
	struct fr_fabric *fabric;

	conf.completion =
		_i == 0 ? FR_COMPLETION_DELIVERY : FR_COMPLETION_LOCAL;
	ck_assert_int_eq(fr_fabric_open(&conf, &fabric), 0);
	ck_assert_uint_eq(fake_fi.hint.caps & (FI_REMOTE_COMM | FI_LOCAL_COMM),
			  0);
	ck_assert_uint_eq(fake_fi.hint.mode, 0);
	ck_assert_uint_eq(fake_fi.hint_mr_mode,
			  FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				  FI_MR_PROV_KEY | FI_MR_ENDPOINT);
	ck_assert_uint_eq(fake_fi.hint_op_flags,
			  _i == 0 ? FI_DELIVERY_COMPLETE : 0);
	close_all(fabric);
}
END_TEST

static const struct {
	uint32_t version;
	const char *user;
	const char *offers[4];
	const char *want; /* NULL: refused */
	const char *said;
} provider_case[] = {
	{FI_VERSION(1, 17), "", {"net", "tcp;ofi_rxm"}, "net", ""},
	{FI_VERSION(1, 17),
	 "",
	 {"tcp;ofi_rxm", "net;ofi_rxm"},
	 "tcp;ofi_rxm",
	 "provider net: no usable interface"},
	{FI_VERSION(1, 17),
	 "",
	 {"shm", "sockets"},
	 NULL,
	 "provider net: libfabric offers none"},
	{FI_VERSION(1, 18),
	 "",
	 {"tcp", "tcp;ofi_rxm"},
	 "tcp",
	 "net: became tcp"},
	{FI_VERSION(1, 17),
	 "tcp",
	 {"tcp;ofi_rxm", "net"},
	 "tcp;ofi_rxm",
	 "from libfabric 1.18 on"},
	{FI_VERSION(1, 17), "sockets", {"net", "sockets"}, "sockets", ""},
	{FI_VERSION(1, 17), "efa", {"efa"}, NULL, "efa: needs libfabric 1.22"},
	{FI_VERSION(1, 22), "efa", {"efa"}, "efa", ""},
	{FI_VERSION(1, 17), "verbs", {"verbs;ofi_rxm"}, "verbs;ofi_rxm", ""},
	{FI_VERSION(1, 17),
	 "net;ofi_rxm",
	 {"net;ofi_rxm"},
	 NULL,
	 "net;ofi_rxm: crashes"},
	{FI_VERSION(1, 17),
	 "bogus",
	 {"net"},
	 NULL,
	 "bogus: not a provider known here"},
	{FI_VERSION(1, 18), "net", {"tcp", "tcp;ofi_rxm"}, "tcp", ""},
	{FI_VERSION(2, 1), "NET", {"tcp"}, "tcp", ""},
	{FI_VERSION(2, 1),
	 "tcp;ofi_rxm",
	 {"tcp", "tcp;ofi_rxm"},
	 NULL,
	 "tcp;ofi_rxm: crashes when a peer dies"},
};

START_TEST(the_provider_is_chosen_by_order_name_and_version)
{
	struct fr_fabric *fabric;
	int err;

	fake_fi.version = provider_case[_i].version;
	for (unsigned i = 0; provider_case[_i].offers[i] != NULL; i++) {
		offer(i, provider_case[_i].offers[i], "rail0", "10.77.0.1");
	}
	fabric = open_with(provider_case[_i].user, "rail0", "", &err);
	if (provider_case[_i].want == NULL) {
		ck_assert_int_eq(err, -ENOENT);
		unit_assert_said(FR_LOG_ERROR, provider_case[_i].said);
		return;
	}
	ck_assert_int_eq(err, 0);
	ck_assert_str_eq(fr_fabric_quirks(fabric)->name,
			 provider_case[_i].want);
	unit_assert_said(FR_LOG_INFO, provider_case[_i].said);
	unit_assert_quiet();
	close_all(fabric);
}
END_TEST

START_TEST(every_refusal_is_said_when_nothing_is_left)
{
	const struct fr_iface rows[] = {
		fake_iface("docker0", "172.17.0.1", 16),
		fake_iface("rail0", "fe80::1", 64),
		fake_iface("rail1", "10.0.1.1", 24),
	};
	int err;

	fake_fi_set_ifaces(rows, 3);
	setenv("FI_PROVIDER", "psm2", 1);
	open_with("", "", "docker", &err);
	ck_assert_int_eq(err, -ENOENT);
	unit_assert_said(FR_LOG_ERROR, "interface docker0: excluded");
	unit_assert_said(FR_LOG_ERROR, "interface rail0: has only link-local");
	unit_assert_said(FR_LOG_ERROR, "provider net: offers nothing on rail1");
	unit_assert_said(FR_LOG_ERROR, "provider tcp:");
	unit_assert_said(FR_LOG_ERROR, "provider tcp;ofi_rxm: libfabric offers "
				       "none");
	unit_assert_said(FR_LOG_ERROR, "FI_PROVIDER in the environment, "
				       "\"psm2\"");
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 6);
}
END_TEST

START_TEST(loopback_serves_when_named_or_when_nothing_else_does)
{
	const struct fr_iface rows[] = {
		fake_iface("lo", "127.0.0.1", 8),
		fake_iface("rail0", "10.0.0.1", 24),
	};
	struct fr_fabric *fabric;
	int err;

	fake_fi_set_ifaces(rows, 2);
	offer(0, "net", "lo", "127.0.0.1");
	offer(1, "net", "rail0", "10.0.0.1");
	fabric = open_with("", "", "lo,docker", &err);
	ck_assert_uint_eq(fr_fabric_nic_cnt(fabric), 1);
	ck_assert_str_eq(fr_fabric_nic(fabric, 0)->name, "rail0");
	unit_assert_said(FR_LOG_INFO, "interface lo: loopback");
	close_all(fabric);

	fabric = open_with("", "lo", "lo,docker", &err);
	ck_assert_str_eq(fr_fabric_nic(fabric, 0)->name, "lo");
	ck_assert(fr_fabric_nic(fabric, 0)->loopback);
	close_all(fabric);

	fake_fi.offer[1].prov = NULL;
	fabric = open_with("", "", "lo,docker", &err);
	ck_assert_uint_eq(fr_fabric_nic_cnt(fabric), 1);
	ck_assert_str_eq(fr_fabric_nic(fabric, 0)->name, "lo");
	close_all(fabric);
	unit_assert_quiet();
}
END_TEST

START_TEST(two_nics_in_one_subnet_are_warned_of)
{
	const struct fr_iface rows[] = {
		fake_iface("rail0", "10.77.0.1", 16),
		fake_iface("rail1", "10.77.1.1", 16),
	};
	struct fr_fabric *fabric;
	int err;

	fake_fi_set_ifaces(rows, 2);
	fabric = open_with("", "", "", &err);
	ck_assert_uint_eq(fr_fabric_nic_cnt(fabric), 2);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 1);
	unit_assert_said(FR_LOG_WARN, "one subnet");
	close_all(fabric);
}
END_TEST

START_TEST(a_provider_without_ip_makes_a_nic_of_each_domain)
{
	struct fr_fabric *fabric;
	int err;

	offer(0, "shm", "shm", NULL);
	offer(1, "shm", "shm", NULL);
	fabric = open_with("shm", "nosuch", "", &err);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(fr_fabric_nic_cnt(fabric), 1);
	ck_assert_str_eq(fr_fabric_nic(fabric, 0)->name, "shm");
	ck_assert_uint_eq(fr_fabric_nic(fabric, 0)->prefix, 0);
	unit_assert_quiet();
	close_all(fabric);
}
END_TEST

/* The loop index picks what is wrong with every offer. */
START_TEST(an_endpoint_that_cannot_carry_a_rail_is_refused)
{
	const char *said[] = {"lacks messages or remote writes", "a mode",
			      "4 bytes of remote CQ data", "longer than 8"};
	int err;

	switch (_i) {
	case 0:
		fake_fi.caps &= ~FI_REMOTE_WRITE;
		break;
	case 1:
		fake_fi.mode = FI_CONTEXT2;
		break;
	case 2:
		fake_fi.cq_data_size = 2;
		break;
	default:
		fake_fi.mr_key_size = 16;
		break;
	}
	open_with("net", "", "", &err);
	ck_assert_int_eq(err, -ENOENT);
	unit_assert_said(FR_LOG_ERROR, said[_i]);
	unit_assert_said(FR_LOG_ERROR, "provider net on rail1");
}
END_TEST

START_TEST(four_bytes_of_cq_data_are_read_back)
{
	struct fr_fabric *fabric;
	int err;

	fake_fi.cq_data_size = 4;
	fake_fi.max_msg_size = 1 << 20;
	fabric = open_with("net", "", "", &err);
	ck_assert_uint_eq(fr_fabric_cq_data_bytes(fabric), 4);
	ck_assert_uint_eq(fr_fabric_max_msg_bytes(fabric), 1 << 20);
	close_all(fabric);
}
END_TEST

START_TEST(opening_leaks_nothing_wherever_memory_ends)
{
	struct fr_fabric *fabric = NULL;
	unsigned nth = 0;
	int err;

	do {
		fr_fault_alloc_at(++nth);
		fabric = open_with("", "", "", &err);
		ck_assert(err == 0 || err == -ENOMEM);
	} while (err != 0);
	ck_assert_uint_ge(nth, 6); /* fabric, scan, topo, two NICs fail */
	fr_fault_alloc_at(0);
	close_all(fabric);
}
END_TEST

START_TEST(opening_leaks_nothing_wherever_libfabric_fails)
{
	struct fr_fabric *fabric = NULL;
	unsigned nth = 0;
	int err;

	do {
		fake_fi.calls = 0;
		fake_fi.fail_at = ++nth;
		fabric = open_with("", "", "", &err);
		ck_assert(err == 0 || err == -ENOMEM);
	} while (err != 0);
	ck_assert_uint_eq(nth, 5); /* hints, getinfo, two copies can fail */
	close_all(fabric);
	fr_fabric_close(NULL);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("discover");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, unit_fake_setup, NULL);
	tcase_add_test(t, each_interface_becomes_one_nic_in_natural_order);
	tcase_add_loop_test(t, the_order_of_the_list_does_not_matter, 0, 6);
	tcase_add_loop_test(t, only_what_is_used_is_asked_for, 0, 2);
	tcase_add_loop_test(t, the_provider_is_chosen_by_order_name_and_version,
			    0, (int)FR_ARRAY_LEN(provider_case));
	tcase_add_test(t, every_refusal_is_said_when_nothing_is_left);
	tcase_add_test(t, loopback_serves_when_named_or_when_nothing_else_does);
	tcase_add_test(t, two_nics_in_one_subnet_are_warned_of);
	tcase_add_test(t, a_provider_without_ip_makes_a_nic_of_each_domain);
	tcase_add_loop_test(t, an_endpoint_that_cannot_carry_a_rail_is_refused,
			    0, 4);
	tcase_add_test(t, four_bytes_of_cq_data_are_read_back);
	tcase_add_test(t, opening_leaks_nothing_wherever_memory_ends);
	tcase_add_test(t, opening_leaks_nothing_wherever_libfabric_fails);
	return unit_run(t, "fabric/discover");
}
