#include "unit/fabric/fabric_unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "fabric/sysfs.h"

static char root[] = "/tmp/fr-sysfs-XXXXXX";

/* Makes folders up to @path's last slash, and the file unless @text is NULL. */
static void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *p = full + sizeof(root); (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	if (text != NULL) {
		f = fopen(full, "w");
		ck_assert_ptr_nonnull(f);
		fputs(text, f);
		fclose(f);
	}
}

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(root));
	fr_sysfs_set_root(root);
}

static void teardown(void)
{
	char command[600];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	ck_assert_int_eq(system(command), 0);
}

static const struct {
	const char *text;
	uint32_t mbps;
} speed_case[] = {
	{"100000\n", 100000},
	{"10\n", 10},
	{"-1\n", 0},
	{"0\n", 0},
	{"", 0},
	{"fast\n", 0},
	{"10x\n", 0},
	{"10000000\n", 10000000},
	{"10000001\n", 0},
	{"2147483647\n", 0},
	{"4294967295\n", 0},
	{"99999999999999999999\n", 0},
};

START_TEST(a_speed_is_a_positive_number_or_unknown)
{
	put("class/net/eth0/speed", speed_case[_i].text);
	ck_assert_uint_eq(fr_sysfs_speed_mbps("eth0"), speed_case[_i].mbps);
	ck_assert_uint_eq(fr_sysfs_speed_mbps("eth1"), 0);
}
END_TEST

START_TEST(a_sysfs_without_interfaces_is_none)
{
	ck_assert(!fr_sysfs_is_there());
	put("class/net/", NULL);
	ck_assert(fr_sysfs_is_there());
}
END_TEST

START_TEST(a_guid_is_stable_and_tells_interfaces_apart)
{
	uint64_t guid;

	put("class/net/eth0/address", "02:00:00:00:00:01\n");
	put("class/net/eth0.7/address", "02:00:00:00:00:01\n");
	put("class/net/eth1/address", "02:00:00:00:00:02\n");
	guid = fr_sysfs_guid("eth0");
	ck_assert_uint_ne(guid, 0);
	ck_assert_uint_eq(fr_sysfs_guid("eth0"), guid);
	ck_assert_uint_ne(fr_sysfs_guid("eth0.7"), guid);
	ck_assert_uint_ne(fr_sysfs_guid("eth1"), guid);
	ck_assert_uint_ne(fr_sysfs_guid("none0"), fr_sysfs_guid("none1"));
}
END_TEST

START_TEST(a_pci_path_is_the_resolved_one)
{
	char link[512], target[512], want[512];
	char *path = NULL;

	put("devices/pci0000:00/0000:00:03.0/x", NULL);
	put("bus/pci/devices/x", NULL);
	snprintf(link, sizeof(link), "%s/bus/pci/devices/0000:00:03.0", root);
	snprintf(target, sizeof(target),
		 "../../../devices/pci0000:00/0000:00:03.0");
	ck_assert_int_eq(symlink(target, link), 0);
	ck_assert_int_eq(fr_sysfs_pci_path("0000:00:03.0", &path), 0);
	snprintf(want, sizeof(want), "%s/devices/pci0000:00/0000:00:03.0",
		 root);
	ck_assert_str_eq(path, want);
	fr_free(path);
	path = NULL;
	ck_assert_int_eq(fr_sysfs_pci_path("0000:00:04.0", &path), -ENOENT);
	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_sysfs_pci_path("0000:00:03.0", &path), -ENOMEM);
	ck_assert_ptr_null(path);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("sysfs");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, a_speed_is_a_positive_number_or_unknown, 0,
			    (int)FR_ARRAY_LEN(speed_case));
	tcase_add_test(t, a_sysfs_without_interfaces_is_none);
	tcase_add_test(t, a_guid_is_stable_and_tells_interfaces_apart);
	tcase_add_test(t, a_pci_path_is_the_resolved_one);
	return unit_run(t, "fabric/sysfs");
}
