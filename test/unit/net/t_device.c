/* Devices out of interfaces, and what is said of them. */
#include <limits.h>

#include "net/core.h"
#include "unit/net/net_unit.h"

#define PATH(text) ((char *)(uintptr_t)(text))

static struct fr_net *net;

static void fixture(void)
{
	net_init();
}

static void get(unsigned nics)
{
	net_conf.nic_cnt = nics;
	fr_fake_set_conf(&net_conf);
	ck_assert_int_eq(fr_net_get(&net), 0);
}

static struct fr_net_props props(unsigned dev)
{
	struct fr_net_props p;

	ck_assert_int_eq(fr_net_device_props(dev, &p), 0);
	return p;
}

/* "0 1|2": the interfaces of the rails of each device. */
static const char *rails(void)
{
	static char text[256];
	size_t len = 0;

	text[0] = '\0';
	for (unsigned d = 0; d < fr_core.dev_cnt; d++) {
		for (unsigned i = 0; i < fr_core.dev[d].rail_cnt; i++) {
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s%u",
						i > 0	? " "
						: d > 0 ? "|"
							: "",
						fr_core.dev[d].nic[i]);
		}
	}
	return text;
}

START_TEST(one_device_is_no_matter_for_a_count)
{
	get(4);
	ck_assert_str_eq(rails(), "0 1 2 3");
	ck_assert_uint_eq(net_logged("device fabrail0: 4 rails, 40000 Mbit/s: "
				     "fake0 (127.77.0.1), fake1 (127.77.1.1)"),
			  1);
	ck_assert_uint_eq(net_logged("every rank"), 0);
	fr_net_put(net);
}
END_TEST

START_TEST(two_devices_of_four_are_counted)
{
	get(8);
	ck_assert_str_eq(rails(), "0 1 2 3|4 5 6 7");
	ck_assert_uint_eq(net_logged("2 devices of 4 and 4 rails; every rank "
				     "needs as many"),
			  1);
	ck_assert_uint_eq(net_logged("unequal"), 0);
	fr_net_put(net);
}
END_TEST

static const struct {
	unsigned nics;
	const char *max_rails;
	const char *count, *warning, *advice;
} uneven[] = {
	{5, "4", "2 devices of 4 and 1 rails",
	 "5 interfaces make 2 unequal devices (4+1 rails)",
	 "OFI_NCCL_MAX_RAILS=5 makes equal ones, or leave out"},
	{7, "4", "2 devices of 4 and 3 rails", "(4+3 rails)",
	 "OFI_NCCL_MAX_RAILS=7"},
	{9, "4", "3 devices of 4, 4 and 1 rails", "(4+4+1 rails)",
	 "OFI_NCCL_MAX_RAILS=3"},
	{11, "8", "2 devices of 8 and 3 rails", "(8+3 rails)",
	 "over all of them; leave out interfaces"},
};

START_TEST(unequal_devices_are_warned_of_with_a_way_out)
{
	net_expect("unequal devices");
	setenv("OFI_NCCL_MAX_RAILS", uneven[_i].max_rails, 1);
	get(uneven[_i].nics);
	ck_assert_uint_eq(net_logged(uneven[_i].count), 1);
	ck_assert_uint_eq(net_logged(uneven[_i].warning), 1);
	ck_assert_uint_eq(net_logged(uneven[_i].advice), 1);
	fr_net_put(net);
}
END_TEST

START_TEST(interfaces_of_a_node_make_a_device)
{
	for (unsigned i = 0; i < 6; i++) {
		net_conf.nics[i].numa = i % 2 == 0;
		net_conf.nics[i].pci_path = PATH(i % 2 == 0 ? "/a/b" : "/c/d");
	}
	get(6);
	ck_assert_str_eq(rails(), "0 2 4|1 3 5");
	ck_assert_str_eq(props(0).pci_path, "/a/b");
	ck_assert_str_eq(props(1).pci_path, "/c/d");
	ck_assert_uint_eq(props(1).guid, net_conf.nics[1].guid);
	fr_net_put(net);
}
END_TEST

START_TEST(a_forced_device_goes_round_its_own_interfaces)
{
	setenv("OFI_NCCL_FORCE_NUM_RAILS", "2", 1);
	get(3);
	ck_assert_str_eq(rails(), "0 1|2 2");
	ck_assert_uint_eq(props(0).speed_mbps, 20000);
	ck_assert_uint_eq(props(1).speed_mbps, 10000);
	fr_net_put(net);
}
END_TEST

START_TEST(the_path_is_that_of_the_first_rail_that_has_one)
{
	net_conf.nics[1].pci_path = PATH("/first/card");
	net_conf.nics[2].pci_path = PATH("/second/card");
	get(3);
	ck_assert_str_eq(props(0).pci_path, "/first/card");
	ck_assert_uint_eq(props(0).guid, net_conf.nics[0].guid);
	fr_net_put(net);
}
END_TEST

START_TEST(no_two_devices_share_a_guid)
{
	setenv("OFI_NCCL_MAX_RAILS", "1", 1);
	get(FR_MAX_DEVICES);
	for (unsigned i = 0; i < fr_net_device_cnt(); i++) {
		for (unsigned k = 0; k < i; k++) {
			ck_assert_uint_ne(props(i).guid, props(k).guid);
			ck_assert_str_ne(props(i).name, props(k).name);
		}
	}
	fr_net_put(net);
}
END_TEST

START_TEST(a_sum_of_speeds_fits_an_int)
{
	for (unsigned i = 0; i < 8; i++) {
		net_conf.nics[i].speed_mbps = UINT32_MAX - i;
	}
	setenv("OFI_NCCL_MAX_RAILS", "8", 1);
	get(8);
	ck_assert_uint_eq(props(0).speed_mbps, INT_MAX);
	fr_net_put(net);
}
END_TEST

START_TEST(rails_of_unequal_speed_are_told)
{
	for (unsigned i = 0; i < 3; i++) {
		net_conf.nics[i].speed_mbps = 10000 + 15000 * i;
		net_conf.nics[i].speed_known = i != 2;
	}
	get(3);
	ck_assert_uint_eq(net_logged("its rails have 10000 to 25000 Mbit/s; "
				     "large messages go at 3 times the "
				     "slowest"),
			  1);
	fr_net_put(net);
}
END_TEST

START_TEST(two_calls_give_the_same_strings)
{
	struct fr_net_props p;

	net_conf.nics[0].pci_path = PATH("/some/card");
	get(2);
	p = props(0);
	ck_assert_int_eq(fr_net_device_props(1, &p), -EINVAL);
	ck_assert_ptr_eq(p.name, props(0).name);
	ck_assert_ptr_eq(p.pci_path, props(0).pci_path);
	ck_assert_str_eq(p.name, "fabrail0");
	ck_assert_str_eq(p.pci_path, "/some/card");
	fr_net_put(net);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("device");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture, net_teardown);
	tcase_add_test(tc, one_device_is_no_matter_for_a_count);
	tcase_add_test(tc, two_devices_of_four_are_counted);
	tcase_add_loop_test(tc, unequal_devices_are_warned_of_with_a_way_out, 0,
			    (int)FR_ARRAY_LEN(uneven));
	tcase_add_test(tc, interfaces_of_a_node_make_a_device);
	tcase_add_test(tc, a_forced_device_goes_round_its_own_interfaces);
	tcase_add_test(tc, the_path_is_that_of_the_first_rail_that_has_one);
	tcase_add_test(tc, no_two_devices_share_a_guid);
	tcase_add_test(tc, a_sum_of_speeds_fits_an_int);
	tcase_add_test(tc, rails_of_unequal_speed_are_told);
	tcase_add_test(tc, two_calls_give_the_same_strings);
	return net_main("device", &tc, 1);
}
