#include "unit/fabric/fabric_unit.h"

#include <netinet/in.h>

#include "fabric/addr.h"
#include "fabric/nic.h"
#include "fabric/route.h"

static const struct fr_fi *fi;

static void setup(void)
{
	unit_fake_setup();
	ck_assert_int_eq(fr_fi_get(&fi), 0);
}

/* The first offer of the fake as libfabric would give it. */
static struct fi_info *offer_info(const char *addr)
{
	struct fi_info *hints = fi->dupinfo(NULL), *list = NULL;

	fake_fi.offer[0].addr = addr;
	fake_fi.offer[1].prov = NULL;
	hints->fabric_attr->prov_name = strdup("net");
	ck_assert_int_eq(fr_fi_getinfo(fi, hints, &list), 0);
	fi->freeinfo(hints);
	return list;
}

START_TEST(an_ip_source_address_is_found_in_both_families)
{
	const char *text[] = {"10.1.2.3", "fd00::7"};
	struct fi_info *info = offer_info(text[_i]);
	uint8_t addr[16];
	char back[64];

	ck_assert(fr_info_addr(info, addr));
	fr_addr_text(addr, back);
	ck_assert_str_eq(back, text[_i]);
	info->src_addrlen -= 1;
	ck_assert(!fr_info_addr(info, addr));
	fi->freeinfo(info);
}
END_TEST

START_TEST(other_address_formats_are_no_ip)
{
	struct fi_info *info = offer_info(NULL);
	uint8_t addr[16];

	ck_assert(!fr_info_addr(info, addr));
	fi->freeinfo(info);
}
END_TEST

START_TEST(a_nic_says_what_the_interface_is)
{
	struct fr_iface iface = fake_iface("nosuch7", "10.77.3.9", 24);
	struct fi_info *info = offer_info("10.77.3.9");
	struct fr_nic nic;
	char text[64];

	ck_assert_int_eq(fr_nic_init(&nic, fi, info, &iface, NULL), 0);
	fi->freeinfo(info);
	ck_assert_str_eq(nic.name, "nosuch7");
	ck_assert_str_eq(nic.addr_text, "10.77.3.9");
	fr_addr_text(nic.subnet, text);
	ck_assert_str_eq(text, "10.77.3.0");
	ck_assert_uint_eq(nic.prefix, 120);
	ck_assert_uint_eq(nic.speed_mbps, 10000);
	ck_assert(!nic.speed_known && !nic.loopback);
	ck_assert_ptr_null(nic.pci_path);
	ck_assert_int_eq(nic.numa, -1);
	ck_assert_uint_ne(nic.guid, 0);
	fr_nic_fini(&nic, fi);
	ck_assert_uint_eq(fake_fi_live(), 0);
}
END_TEST

START_TEST(hardware_that_names_its_speed_is_believed)
{
	struct fi_link_attr link = {.speed = 100000000000ull};
	struct fid_nic hw = {.link_attr = &link};
	struct fi_info *info = offer_info(NULL);
	struct fr_nic nic;

	info->nic = &hw;
	ck_assert_int_eq(fr_nic_init(&nic, fi, info, NULL, NULL), 0);
	ck_assert_str_eq(nic.name, info->domain_attr->name);
	ck_assert_uint_eq(nic.speed_mbps, 100000);
	ck_assert(nic.speed_known);
	ck_assert_uint_eq(nic.prefix, 0);
	info->nic = NULL;
	fi->freeinfo(info);
	fr_nic_fini(&nic, fi);
}
END_TEST

/* The loop index: as a driver that has no link says it. */
START_TEST(a_speed_that_no_link_has_is_unknown)
{
	const size_t speed[] = {0, 999999, SIZE_MAX, 20000000000000000ull};
	struct fi_link_attr link = {.speed = speed[_i]};
	struct fid_nic hw = {.link_attr = &link};
	struct fi_info *info = offer_info(NULL);
	struct fr_nic nic;

	info->nic = &hw;
	ck_assert_int_eq(fr_nic_init(&nic, fi, info, NULL, NULL), 0);
	ck_assert_uint_eq(nic.speed_mbps, 10000);
	ck_assert(!nic.speed_known);
	info->nic = NULL;
	fi->freeinfo(info);
	fr_nic_fini(&nic, fi);
}
END_TEST

START_TEST(a_nic_without_memory_holds_nothing)
{
	struct fi_info *info = offer_info(NULL);
	struct fr_nic nic;

	fake_fi.fail_at = fake_fi.calls + 1;
	ck_assert_int_eq(fr_nic_init(&nic, fi, info, NULL, NULL), -ENOMEM);
	fi->freeinfo(info);
	ck_assert_uint_eq(fake_fi_live(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

static void nic_of(struct fr_nic *nic, const char *name, const char *addr,
		   unsigned prefix)
{
	struct fr_iface iface = fake_iface(name, addr, prefix);
	struct fi_info *info = offer_info(addr);

	ck_assert_int_eq(fr_nic_init(nic, fi, info, &iface, NULL), 0);
	fi->freeinfo(info);
}

static const char *leaves_by[2]; /* what 10.1.0.1 and 10.1.9.1 send; NULL: ? */

static bool route_told(const uint8_t addr[16], uint8_t prefix,
		       char name[FR_ROUTE_NAME_BYTES])
{
	const char *told = leaves_by[addr[14] != 0];

	ck_assert_uint_eq(prefix, 96 + 16);
	if (told != NULL) {
		snprintf(name, FR_ROUTE_NAME_BYTES, "%s", told);
	}
	return told != NULL;
}

static const struct {
	const char *leaves_by[2];
	const char *warning; /* NULL: none */
} route_case[] = {
	{{"rail0", "rail2"}, NULL},
	{{"rail0", "rail0"},
	 "the kernel sends what leaves 10.1.9.1 through rail0; give"},
	{{"eth7", "eth7"},
	 "the kernel sends what leaves 10.1.0.1 through eth7, the kernel sends "
	 "what leaves 10.1.9.1 through eth7; give"},
	{{"rail0", NULL}, "the kernel may send everything through one of them"},
	{{NULL, "rail2"}, "the kernel may send everything through one of them"},
	{{"eth7", NULL},
	 "in one subnet: the kernel may send everything through one of them"},
};

START_TEST(a_route_of_its_own_makes_a_warning_needless)
{
	struct fr_nic nic[2];

	leaves_by[0] = route_case[_i].leaves_by[0];
	leaves_by[1] = route_case[_i].leaves_by[1];
	nic_of(&nic[0], "rail0", "10.1.0.1", 16);
	nic_of(&nic[1], "rail2", "10.1.9.1", 16);
	fr_route_set_out(route_told);
	fr_nic_warn_subnets(nic, 2);
	if (route_case[_i].warning == NULL) {
		ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 0);
		unit_assert_said(FR_LOG_INFO, "each with a route of its own");
	} else {
		ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 1);
		unit_assert_said(FR_LOG_WARN, route_case[_i].warning);
	}
	fr_nic_fini(&nic[0], fi);
	fr_nic_fini(&nic[1], fi);
}
END_TEST

START_TEST(nics_in_one_subnet_draw_a_warning_a_pair)
{
	struct fr_nic nic[5];

	nic_of(&nic[0], "rail0", "10.1.0.1", 16);
	nic_of(&nic[1], "rail1", "10.2.0.1", 16);
	nic_of(&nic[2], "rail2", "10.1.9.1", 16);
	nic_of(&nic[3], "lo", "127.0.0.1", 8);
	nic_of(&nic[4], "lo", "127.0.0.2", 8);
	fr_nic_warn_subnets(nic, 2);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 0);
	fr_nic_warn_subnets(nic, 5);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 1);
	unit_assert_said(FR_LOG_WARN, "rail0 (10.1.0.1) and rail2 (10.1.9.1)");
	unit_assert_said(FR_LOG_WARN, "its own subnet");
	for (size_t i = 0; i < FR_ARRAY_LEN(nic); i++) {
		fr_nic_fini(&nic[i], fi);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("nic");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, an_ip_source_address_is_found_in_both_families,
			    0, 2);
	tcase_add_test(t, other_address_formats_are_no_ip);
	tcase_add_test(t, a_nic_says_what_the_interface_is);
	tcase_add_test(t, hardware_that_names_its_speed_is_believed);
	tcase_add_loop_test(t, a_speed_that_no_link_has_is_unknown, 0, 4);
	tcase_add_test(t, a_nic_without_memory_holds_nothing);
	tcase_add_loop_test(t, a_route_of_its_own_makes_a_warning_needless, 0,
			    (int)FR_ARRAY_LEN(route_case));
	tcase_add_test(t, nics_in_one_subnet_draw_a_warning_a_pair);
	return unit_run(t, "fabric/nic");
}
