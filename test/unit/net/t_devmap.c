#include "net/devmap.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unit/run.h"

#define MAX 16u

static struct fr_devmap_nic nic[FR_DEVMAP_MAX_NICS + 10];
static unsigned nic_cnt;

/* An interface whose place nobody knows. */
static void nowhere(unsigned cnt)
{
	for (; cnt > 0; cnt--) {
		nic[nic_cnt++] = (struct fr_devmap_nic){.numa = -1};
	}
}

static void at(int numa, const char *pci_path)
{
	nic[nic_cnt++] = (struct fr_devmap_nic){numa, pci_path};
}

/* "0 1 2 3|4": the interfaces of each group. */
static const char *plan(unsigned width)
{
	static char text[1024];
	struct fr_devmap_group group[MAX];
	unsigned cnt = fr_devmap_plan(nic, nic_cnt, width, group, MAX);
	size_t len = 0;

	text[0] = '\0';
	for (unsigned g = 0; g < cnt; g++) {
		for (unsigned i = 0; i < group[g].cnt; i++) {
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s%u",
						i > 0	? " "
						: g > 0 ? "|"
							: "",
						group[g].nic[i]);
		}
	}
	return text;
}

static void setup(void)
{
	nic_cnt = 0;
}

START_TEST(what_fits_into_one_device_makes_one)
{
	ck_assert_str_eq(plan(4), "");
	at(1, "/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0");
	ck_assert_str_eq(plan(4), "0");
	at(0, "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0");
	nowhere(2);
	ck_assert_str_eq(plan(4), "0 1 2 3");
}
END_TEST

START_TEST(interfaces_of_no_known_place_go_in_their_order)
{
	nowhere(5);
	ck_assert_str_eq(plan(4), "0 1 2 3|4");
	ck_assert_str_eq(plan(2), "0 1|2 3|4");
	ck_assert_str_eq(plan(1), "0|1|2|3|4");
	nowhere(3);
	ck_assert_str_eq(plan(4), "0 1 2 3|4 5 6 7");
	ck_assert_str_eq(plan(8), "0 1 2 3 4 5 6 7");
	nowhere(1);
	ck_assert_str_eq(plan(4), "0 1 2 3|4 5 6 7|8");
}
END_TEST

START_TEST(interfaces_of_one_node_stay_together)
{
	for (unsigned i = 0; i < 6; i++) {
		at(i % 2 == 0, "/sys/devices/pci0000:00/0000:00:01.0");
	}
	ck_assert_str_eq(plan(4), "0 2 4|1 3 5");
	ck_assert_str_eq(plan(3), "0 2 4|1 3 5");
	ck_assert_str_eq(plan(2), "0 5|1 3|2 4");
}
END_TEST

/* 5 on one node and 1 on the other: the rest goes with the one. */
START_TEST(a_device_is_filled_up_before_the_next_one_begins)
{
	for (unsigned i = 0; i < 5; i++) {
		at(0, "/sys/devices/pci0000:00/0000:00:01.0");
	}
	at(1, "/sys/devices/pci0000:80/0000:80:01.0");
	ck_assert_str_eq(plan(4), "0 1 2 3|4 5");
}
END_TEST

START_TEST(four_nodes_of_two_make_two_devices_of_four)
{
	for (int i = 0; i < 8; i++) {
		at(i / 2, "/sys/devices/pci0000:00/0000:00:01.0");
	}
	ck_assert_str_eq(plan(4), "0 1 2 3|4 5 6 7");
	ck_assert_str_eq(plan(2), "0 1|2 3|4 5|6 7");
	ck_assert_str_eq(plan(3), "0 1|2 3|4 5|6 7");
}
END_TEST

/* Two switches below the bridges of one node, named as the host happens to. */
START_TEST(interfaces_below_one_bridge_stay_together)
{
	at(0, "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:00.0");
	at(0, "/sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0");
	at(0, "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:01.0");
	at(0, "/sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0");
	at(0, "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:02.0");
	at(0, "/sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:02.0");
	ck_assert_str_eq(plan(4), "0 2 4|1 3 5");
	ck_assert_str_eq(plan(2), "0 5|1 3|2 4");
	ck_assert_str_eq(plan(8), "0 1 2 3 4 5");
}
END_TEST

/* Below different ports of one root each: that alone must not part them. */
START_TEST(interfaces_with_a_port_of_their_own_are_not_devices_of_their_own)
{
	static char path[6][80];

	for (unsigned i = 0; i < 6; i++) {
		snprintf(path[i], sizeof(path[i]),
			 "/sys/devices/pci0000:00/0000:00:0%u.0/0000:0%u:00.0",
			 i + 1, i + 1);
		at(0, path[i]);
	}
	ck_assert_str_eq(plan(4), "0 1 2 3|4 5");
}
END_TEST

START_TEST(two_functions_of_one_card_stay_together)
{
	static char path[6][80];

	for (unsigned i = 0; i < 6; i++) {
		snprintf(path[i], sizeof(path[i]),
			 "/sys/devices/pci0000:00/0000:00:0%u.0/0000:0%u:00.%u",
			 i / 2, i / 2, i % 2);
		at(0, path[i]);
	}
	ck_assert_str_eq(plan(3), "0 1|2 3|4 5");
}
END_TEST

START_TEST(known_places_come_before_unknown_ones_but_keep_their_numbers)
{
	nowhere(2);
	at(0, "/sys/devices/pci0000:00/0000:00:01.0");
	at(0, "/sys/devices/pci0000:00/0000:00:02.0");
	nowhere(1);
	at(-1, "/sys/devices/pci0000:00/0000:00:02.0");
	ck_assert_str_eq(plan(3), "0 1 4|2 3 5");
}
END_TEST

START_TEST(odd_paths_are_no_trouble)
{
	at(0, "");
	at(0, "/");
	at(0, "no-slash");
	at(0, "//a//b/");
	at(0, "//a//c/");
	ck_assert_str_eq(plan(2), "0 1|2|3 4");
}
END_TEST

START_TEST(there_is_an_even_width)
{
	const unsigned want[] = {1, 1, 2, 3, 4, 5, 6, 7, 8, 3, 5, 1, 6, 1};

	for (unsigned i = 0; i < FR_ARRAY_LEN(want); i++) {
		ck_assert_uint_eq(fr_devmap_even_width(nic, nic_cnt), want[i]);
		nowhere(1);
	}
}
END_TEST

START_TEST(even_means_groups_of_one_size)
{
	struct fr_devmap_group group[3] = {{.cnt = 4}, {.cnt = 4}, {.cnt = 1}};

	ck_assert(fr_devmap_is_even(group, 0));
	ck_assert(fr_devmap_is_even(group, 2));
	ck_assert(!fr_devmap_is_even(group, 3));
}
END_TEST

START_TEST(what_is_too_many_is_left_out)
{
	struct fr_devmap_group group[FR_DEVMAP_MAX_NICS];

	nowhere(FR_DEVMAP_MAX_NICS + 10);
	ck_assert_uint_eq(
		fr_devmap_plan(nic, nic_cnt, 1, group, FR_DEVMAP_MAX_NICS),
		FR_DEVMAP_MAX_NICS);
	ck_assert_uint_eq(fr_devmap_plan(nic, nic_cnt, 8, group, 3), 3);
	ck_assert_uint_eq(group[2].nic[0], 16);
}
END_TEST

/* Each interface is in one group, none is empty or too large, order holds. */
START_TEST(any_host_is_cut_into_sound_groups)
{
	static char path[32][64];
	unsigned seed = 1;

	for (unsigned round = 0; round < 3000; round++) {
		struct fr_devmap_group group[32];
		unsigned width = 1 + (unsigned)rand_r(&seed) % 8, cnt;
		bool seen[32] = {false};

		nic_cnt = (unsigned)rand_r(&seed) % 33;
		for (unsigned i = 0; i < nic_cnt; i++) {
			int r = rand_r(&seed);

			snprintf(path[i], sizeof(path[i]), "/%d/%d/%d/%u",
				 r % 2, r / 2 % 3, r / 6 % 3, i);
			nic[i].numa = r / 18 % 4 - 1;
			nic[i].pci_path = r / 72 % 5 == 0 ? NULL : path[i];
		}
		cnt = fr_devmap_plan(nic, nic_cnt, width, group, 32);
		for (unsigned g = 0; g < cnt; g++) {
			ck_assert_uint_ge(group[g].cnt, 1);
			ck_assert_uint_le(group[g].cnt, width);
			ck_assert(g == 0 ||
				  group[g - 1].nic[0] < group[g].nic[0]);
			for (unsigned i = 0; i < group[g].cnt; i++) {
				ck_assert(i == 0 || group[g].nic[i - 1] <
							    group[g].nic[i]);
				ck_assert(!seen[group[g].nic[i]]);
				seen[group[g].nic[i]] = true;
			}
		}
		for (unsigned i = 0; i < nic_cnt; i++) {
			ck_assert(seen[i]);
		}
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("devmap");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, what_fits_into_one_device_makes_one);
	tcase_add_test(t, interfaces_of_no_known_place_go_in_their_order);
	tcase_add_test(t, interfaces_of_one_node_stay_together);
	tcase_add_test(t, a_device_is_filled_up_before_the_next_one_begins);
	tcase_add_test(t, four_nodes_of_two_make_two_devices_of_four);
	tcase_add_test(t, interfaces_below_one_bridge_stay_together);
	tcase_add_test(
		t,
		interfaces_with_a_port_of_their_own_are_not_devices_of_their_own);
	tcase_add_test(t, two_functions_of_one_card_stay_together);
	tcase_add_test(
		t,
		known_places_come_before_unknown_ones_but_keep_their_numbers);
	tcase_add_test(t, odd_paths_are_no_trouble);
	tcase_add_test(t, there_is_an_even_width);
	tcase_add_test(t, even_means_groups_of_one_size);
	tcase_add_test(t, what_is_too_many_is_left_out);
	tcase_add_test(t, any_host_is_cut_into_sound_groups);
	return unit_run(t, "net devmap");
}
