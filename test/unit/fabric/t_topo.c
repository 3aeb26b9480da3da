#include "unit/fabric/fabric_unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "fabric/sysfs.h"
#include "fabric/topo.h"

/* Two NUMA nodes; eth5 on a PCI function below the second one, veth0 nowhere.
 */
static const char two_nodes[] =
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	"<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
	"<topology version=\"2.0\">\n"
	"<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\""
	" complete_cpuset=\"0x3\" allowed_cpuset=\"0x3\" nodeset=\"0x3\""
	" complete_nodeset=\"0x3\" allowed_nodeset=\"0x3\" gp_index=\"1\">\n"
	"<object type=\"Package\" os_index=\"0\" cpuset=\"0x1\""
	" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
	" gp_index=\"2\">\n"
	"<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\""
	" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
	" gp_index=\"3\" local_memory=\"1024\"/>\n"
	"<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\""
	" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
	" gp_index=\"4\"/>\n"
	"</object>\n"
	"<object type=\"Package\" os_index=\"1\" cpuset=\"0x2\""
	" complete_cpuset=\"0x2\" nodeset=\"0x2\" complete_nodeset=\"0x2\""
	" gp_index=\"5\">\n"
	"<object type=\"NUMANode\" os_index=\"1\" cpuset=\"0x2\""
	" complete_cpuset=\"0x2\" nodeset=\"0x2\" complete_nodeset=\"0x2\""
	" gp_index=\"6\" local_memory=\"1024\"/>\n"
	"<object type=\"PU\" os_index=\"1\" cpuset=\"0x2\""
	" complete_cpuset=\"0x2\" nodeset=\"0x2\" complete_nodeset=\"0x2\""
	" gp_index=\"7\"/>\n"
	"<object type=\"Bridge\" gp_index=\"8\" bridge_type=\"0-1\""
	" depth=\"0\" bridge_pci=\"0000:[3a-3b]\">\n"
	"<object type=\"PCIDev\" gp_index=\"9\" pci_busid=\"0000:3b:00.1\""
	" pci_type=\"0200 [15b3:1017] [15b3:0008] 00\""
	" pci_link_speed=\"0.000000\">\n"
	"<object type=\"OSDev\" gp_index=\"10\" name=\"eth5\""
	" osdev_type=\"2\"/>\n"
	"</object>\n"
	"</object>\n"
	"</object>\n"
	"<object type=\"OSDev\" gp_index=\"11\" name=\"veth0\""
	" osdev_type=\"2\"/>\n"
	"</object>\n"
	"</topology>\n";

/* Below one machine whose second node is memory alone: hwloc gives both nodes
 * all the CPUs. */
static const char memory_node[] =
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	"<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
	"<topology version=\"2.0\">\n"
	"<object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\""
	" complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" nodeset=\"0x3\""
	" complete_nodeset=\"0x3\" allowed_nodeset=\"0x3\" gp_index=\"1\">\n"
	"<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\""
	" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
	" gp_index=\"3\" local_memory=\"1024\"/>\n"
	"<object type=\"NUMANode\" os_index=\"1\" cpuset=\"0x0\""
	" complete_cpuset=\"0x0\" nodeset=\"0x2\" complete_nodeset=\"0x2\""
	" gp_index=\"6\" local_memory=\"1024\"/>\n"
	"<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\""
	" complete_cpuset=\"0x1\" nodeset=\"0x3\" complete_nodeset=\"0x3\""
	" gp_index=\"4\"/>\n"
	"<object type=\"Bridge\" gp_index=\"8\" bridge_type=\"0-1\""
	" depth=\"0\" bridge_pci=\"0000:[3a-3b]\">\n"
	"<object type=\"PCIDev\" gp_index=\"9\" pci_busid=\"0000:3b:00.1\""
	" pci_type=\"0200 [15b3:1017] [15b3:0008] 00\""
	" pci_link_speed=\"0.000000\">\n"
	"<object type=\"OSDev\" gp_index=\"10\" name=\"eth5\""
	" osdev_type=\"2\"/>\n"
	"</object>\n"
	"</object>\n"
	"</object>\n"
	"</topology>\n";

static const char empty_machine[] =
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	"<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
	"<topology version=\"2.0\">\n"
	"<object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\""
	" complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" nodeset=\"0x1\""
	" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" gp_index=\"1\">\n"
	"<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\""
	" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
	" gp_index=\"3\"/>\n"
	"<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\""
	" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
	" gp_index=\"4\"/>\n"
	"</object>\n"
	"</topology>\n";

static char root[] = "/tmp/fr-topo-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void setup(void)
{
	char path[256];

	unit_log_clear();
	ck_assert_ptr_nonnull(mkdtemp(root));
	put("topo.xml", two_nodes);
	snprintf(path, sizeof(path), "%s/topo.xml", root);
	setenv("HWLOC_XMLFILE", path, 1);
	for (const char *dir = "bus\0bus/pci\0bus/pci/devices\0"
			       "bus/pci/devices/0000:3b:00.1\0";
	     *dir != '\0'; dir += strlen(dir) + 1) {
		snprintf(path, sizeof(path), "%s/%s", root, dir);
		ck_assert_int_eq(mkdir(path, 0755), 0);
	}
	fr_sysfs_set_root(root);
}

static void teardown(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(an_interface_has_its_pci_path_and_node)
{
	struct fr_topo *topo = NULL;
	char *path = NULL;
	char want[256];
	int numa = 77;

	ck_assert_int_eq(fr_topo_open(&topo), 0);
	ck_assert_int_eq(fr_topo_find(topo, "eth5", &path, &numa), 0);
	snprintf(want, sizeof(want), "%s/bus/pci/devices/0000:3b:00.1", root);
	ck_assert_str_eq(path, want);
	ck_assert_int_eq(numa, 1);
	fr_free(path);
	fr_topo_close(topo);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	unit_assert_quiet();
}
END_TEST

START_TEST(a_virtual_or_unknown_interface_has_neither)
{
	const char *name[] = {"veth0", "nosuch0"};
	struct fr_topo *topo = NULL;
	char *path = (char *)(uintptr_t)1;
	int numa = 77;

	ck_assert_int_eq(fr_topo_open(&topo), 0);
	ck_assert_int_eq(fr_topo_find(topo, name[_i], &path, &numa), 0);
	ck_assert_ptr_null(path);
	ck_assert_int_eq(numa, -1);
	fr_topo_close(topo);
	ck_assert_int_eq(fr_topo_find(NULL, name[_i], &path, &numa), 0);
	ck_assert_ptr_null(path);
	unit_assert_quiet();
}
END_TEST

static int numa_of_eth5(void)
{
	struct fr_topo *topo = NULL;
	char *path = NULL;
	int numa = 77;

	ck_assert_int_eq(fr_topo_open(&topo), 0);
	ck_assert_int_eq(fr_topo_find(topo, "eth5", &path, &numa), 0);
	fr_free(path);
	fr_topo_close(topo);
	return numa;
}

START_TEST(beside_a_node_without_cpus_the_kernel_knows_the_node)
{
	put("topo.xml", memory_node);
	ck_assert_int_eq(numa_of_eth5(), -1);
	put("bus/pci/devices/0000:3b:00.1/numa_node", "0\n");
	ck_assert_int_eq(numa_of_eth5(), 0);
	put("bus/pci/devices/0000:3b:00.1/numa_node", "-1\n");
	ck_assert_int_eq(numa_of_eth5(), -1);
	put("topo.xml", two_nodes);
	ck_assert_int_eq(numa_of_eth5(), 1);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(an_empty_machine_has_no_place_for_an_interface)
{
	struct fr_topo *topo = NULL;
	char *path = (char *)(uintptr_t)1;
	int numa = 77;

	put("topo.xml", empty_machine);
	ck_assert_int_eq(fr_topo_open(&topo), 0);
	ck_assert_int_eq(fr_topo_find(topo, "eth5", &path, &numa), 0);
	ck_assert_ptr_null(path);
	ck_assert_int_eq(numa, -1);
	fr_topo_close(topo);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

/* The loop index: what is in the file. */
START_TEST(a_file_that_is_no_topology_is_named)
{
	static const char whole[] = "<?xml version=\"1.0\"?>\n"
				    "<topology version=\"2.0\">\n"
				    "</topology>\n";
	const char *const text[] = {"", "garbage", "<topology version=\"2.0\">",
				    whole};
	struct fr_topo *topo = NULL;

	put("topo.xml", text[_i]);
	setenv("HWLOC_HIDE_ERRORS", "2", 1);
	ck_assert_int_eq(fr_topo_open(&topo), -ENODATA);
	ck_assert_ptr_null(topo);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_INFO], 1);
	unit_assert_said(FR_LOG_INFO, "no topology in HWLOC_XMLFILE, ");
	unit_assert_said(FR_LOG_INFO, "topo.xml");
	unit_assert_quiet();
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(a_topology_that_cannot_be_read_is_said_once)
{
	struct fr_topo *topo = NULL;

	setenv("HWLOC_HIDE_ERRORS", "2", 1);
	setenv("HWLOC_COMPONENTS", "stop", 1);
	ck_assert_int_eq(fr_topo_open(&topo), -ENODATA);
	ck_assert_ptr_null(topo);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_INFO], 1);
	unit_assert_quiet();
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(without_memory_nothing_is_open)
{
	struct fr_topo *topo = NULL;

	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_topo_open(&topo), -ENOMEM);
	ck_assert_ptr_null(topo);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	fr_topo_close(NULL);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("topo");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, an_interface_has_its_pci_path_and_node);
	tcase_add_loop_test(t, a_virtual_or_unknown_interface_has_neither, 0,
			    2);
	tcase_add_test(t, beside_a_node_without_cpus_the_kernel_knows_the_node);
	tcase_add_test(t, an_empty_machine_has_no_place_for_an_interface);
	tcase_add_loop_test(t, a_file_that_is_no_topology_is_named, 0, 4);
	tcase_add_test(t, a_topology_that_cannot_be_read_is_said_once);
	tcase_add_test(t, without_memory_nothing_is_open);
	return unit_run(t, "fabric/topo");
}
