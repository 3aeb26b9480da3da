#include "unit/fabric/fabric_unit.h"

#include "base/conf.h"
#include "fabric/addr.h"
#include "fabric/iface.h"

static struct fr_reasons reasons;

static void setup(void)
{
	unit_log_clear();
}

static bool reason_has(const char *part)
{
	for (unsigned i = 0; i < reasons.cnt; i++) {
		if (strstr(reasons.line[i], part) != NULL) {
			return true;
		}
	}
	return false;
}

/* The names that were chosen, "a,b", with "?" after a fallback. */
static const char *chosen(struct fr_iface *rows, unsigned cnt,
			  const struct fr_iface_filter *filter, bool v6_first)
{
	static char text[512];
	unsigned kept = 99;

	ck_assert_int_eq(
		fr_iface_select(rows, cnt, filter, v6_first, &reasons, &kept),
		0);
	text[0] = '\0';
	for (unsigned i = 0; i < kept; i++) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%s%s",
			 i == 0 ? "" : ",", rows[i].name,
			 rows[i].fallback ? "?" : "");
	}
	return text;
}

static const struct {
	const char *include, *exclude, *nccl;
	const char *want;
} filter_case[] = {
	{"", "", NULL, "docker0,eth0,eth1,eth10,lo?,rail2"},
	{"", "lo,docker", NULL, "eth0,eth1,eth10,lo?,rail2"},
	{"eth", "lo,docker", NULL, "eth0,eth1,eth10"},
	{"=eth1", "lo,docker", NULL, "eth1"},
	{"eth1", "", NULL, "eth1,eth10"},
	{"eth,rail", "=eth1", NULL, "eth0,eth10,rail2"},
	{"lo", "lo,docker", NULL, "lo"},
	{"=lo", "=lo", NULL, "lo"},
	{"docker0", "lo,docker", NULL, "docker0"},
	{"eth0", "eth0", NULL, ""},
	{",,rail2,,rail2,", ",", NULL, "rail2"},
	{"=", "", NULL, ""},
	{"", "", "rail", "rail2"},
	{"", "", "=eth1,rail2", "eth1,rail2"},
	{"", "", "^docker,eth", "lo?,rail2"},
	{"", "", "^=eth1", "docker0,eth0,eth10,lo?,rail2"},
	{"eth0", "", "rail", "eth0"},
	{"docker", "docker", NULL, ""},
	{"docker0", "docker", NULL, "docker0"},
	{"=docker0", "docker0", NULL, "docker0"},
	{"d,eth1", "docker", NULL, "eth1,eth10"},
	{" eth0", "", NULL, ""},
	{"eth0 ", "", NULL, ""},
	{"\xc3\xa9th0,\xe2\x82\xac", "", NULL, ""},
	{"=eth1,=eth1,eth1", "", NULL, "eth1,eth10"},
	{"==eth1", "", NULL, ""},
	{"^eth1", "", NULL, ""},
	{"nothing", "", NULL, ""},
};

START_TEST(lists_choose_by_prefix_or_exact_name)
{
	struct fr_iface rows[] = {
		fake_iface("rail2", "10.0.2.1", 24),
		fake_iface("eth10", "10.0.10.1", 24),
		fake_iface("lo", "127.0.0.1", 8),
		fake_iface("eth1", "10.0.1.1", 24),
		fake_iface("docker0", "172.17.0.1", 16),
		fake_iface("eth0", "10.0.0.1", 24),
	};
	struct fr_conf conf = unit_conf();
	struct fr_iface_filter filter;

	conf.tcp_if = (char *)(uintptr_t)filter_case[_i].include;
	conf.exclude_tcp_if = (char *)(uintptr_t)filter_case[_i].exclude;
	filter = fr_iface_filter_of(&conf, filter_case[_i].nccl);
	ck_assert_str_eq(chosen(rows, FR_ARRAY_LEN(rows), &filter, false),
			 filter_case[_i].want);
	fr_reasons_clear(&reasons);
}
END_TEST

/* What the default leaves out, and what it does not. */
START_TEST(the_default_leaves_out_loopback_and_bridges_alone)
{
	struct fr_iface rows[] = {
		fake_iface("lo", "127.0.0.1", 8),
		fake_iface("local0", "10.0.1.1", 24),
		fake_iface("lo1", "10.0.2.1", 24),
		fake_iface("docker0", "172.17.0.1", 16),
		fake_iface("docker_gwbridge", "172.18.0.1", 16),
		fake_iface("virbr0", "192.168.122.1", 24),
		fake_iface("eth0", "10.0.0.1", 24),
	};
	enum fr_param_origin origin[64];
	struct fr_conf conf = {0};
	struct fr_iface_filter filter;

	ck_assert_uint_lt(fr_conf_rows, FR_ARRAY_LEN(origin));
	ck_assert_int_eq(
		fr_param_load(fr_conf_table, "T_NONE_", NULL, &conf, origin),
		0);
	filter = fr_iface_filter_of(&conf, NULL);
	ck_assert_str_eq(chosen(rows, FR_ARRAY_LEN(rows), &filter, false),
			 "eth0,lo?,lo1,local0");
	fr_reasons_clear(&reasons);
	fr_param_unload(fr_conf_table, &conf);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

/* The loop index: the list is of 1,000 names, exact or not. */
START_TEST(a_list_may_be_long)
{
	struct fr_iface rows[] = {
		fake_iface("eth998", "10.0.0.1", 24),
		fake_iface("eth9980", "10.0.1.1", 24),
		fake_iface("eth1000", "10.0.2.1", 24),
	};
	static char list[16000];
	struct fr_iface_filter filter = {.include = {.text = list}};
	size_t len = 0;

	for (unsigned i = 100; i < 1100; i++) {
		len += (size_t)snprintf(list + len, sizeof(list) - len,
					"%seth%u,", _i == 1 ? "=" : "", i);
	}
	ck_assert_str_eq(chosen(rows, FR_ARRAY_LEN(rows), &filter, false),
			 _i == 1 ? "eth998,eth1000" : "eth998,eth1000,eth9980");
	fr_reasons_clear(&reasons);
}
END_TEST

START_TEST(ipv4_comes_before_ipv6_unless_told_otherwise)
{
	struct fr_iface rows[] = {
		fake_iface("a", NULL, 0),
		fake_iface("a", "fe80::1", 64),
		fake_iface("a", "fd00::1", 64),
		fake_iface("a", "10.0.0.1", 24),
		fake_iface("a", "10.0.0.2", 24),
	};
	struct fr_iface_filter filter = {0};
	char text[64];

	ck_assert_str_eq(chosen(rows, FR_ARRAY_LEN(rows), &filter, _i == 1),
			 "a");
	fr_addr_text(rows[0].addr, text);
	ck_assert_str_eq(text, _i == 1 ? "fd00::1" : "10.0.0.1");
	ck_assert_uint_eq(rows[0].prefix, _i == 1 ? 64 : 96 + 24);
	ck_assert_uint_eq(reasons.cnt, 0);
}
END_TEST

START_TEST(every_refusal_has_its_reason)
{
	struct fr_iface rows[] = {
		fake_iface("down0", "10.0.1.1", 24),
		fake_iface("bare0", NULL, 0),
		fake_iface("ll0", "fe80::2", 64),
		fake_iface("ll1", "169.254.3.4", 16),
		fake_iface("docker0", "172.17.0.1", 16),
		fake_iface("good0", "10.0.0.1", 24),
	};
	struct fr_iface_filter filter = {.exclude = {{"docker", false}}};

	rows[0].up = false;
	ck_assert_str_eq(chosen(rows, FR_ARRAY_LEN(rows), &filter, false),
			 "good0");
	ck_assert(reason_has("interface down0: down"));
	ck_assert(reason_has("interface bare0: has no IP address"));
	ck_assert(reason_has("interface ll0: has only link-local"));
	ck_assert(reason_has("interface ll1: has only link-local"));
	ck_assert(reason_has("interface docker0: excluded"));
	ck_assert_uint_eq(reasons.cnt, 5);
	fr_reasons_clear(&reasons);
}
END_TEST

START_TEST(no_interface_at_all_is_no_error)
{
	struct fr_iface_filter filter = {0};
	struct fr_iface row;

	ck_assert_str_eq(chosen(&row, 0, &filter, false), "");
}
END_TEST

static const struct {
	const char *less, *more;
} order[] = {
	{"rail2", "rail10"},   {"rail0", "rail00"},
	{"eth0", "rail0"},     {"a", "b"},
	{"a", "aa"},	       {"eth0.9", "eth0.10"},
	{"eth9p2", "eth10p1"}, {"", "a"},
	{"a1b", "a1c"},	       {"eth", "eth0"},
};

START_TEST(numbers_in_names_sort_as_numbers)
{
	ck_assert_int_lt(fr_natural_cmp(order[_i].less, order[_i].more), 0);
	ck_assert_int_gt(fr_natural_cmp(order[_i].more, order[_i].less), 0);
	ck_assert_int_eq(fr_natural_cmp(order[_i].less, order[_i].less), 0);
}
END_TEST

START_TEST(the_kernel_knows_the_loopback_interface)
{
	struct fr_iface *rows = NULL;
	bool seen = false;
	char text[64];
	unsigned cnt;

	ck_assert_int_eq(fr_iface_scan(&rows, &cnt), 0);
	for (unsigned i = 0; i < cnt; i++) {
		if (strcmp(rows[i].name, "lo") != 0 || !rows[i].has_addr ||
		    !fr_addr_is_v4(rows[i].addr)) {
			continue;
		}
		fr_addr_text(rows[i].addr, text);
		seen = seen || (strcmp(text, "127.0.0.1") == 0 &&
				rows[i].prefix == 96 + 8);
		ck_assert(rows[i].loopback && rows[i].up);
	}
	ck_assert(seen);
	fr_free(rows);
	unit_assert_quiet();
}
END_TEST

START_TEST(a_scan_without_memory_leaks_nothing)
{
	struct fr_iface *rows = NULL;
	unsigned cnt = 77;

	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_iface_scan(&rows, &cnt), -ENOMEM);
	ck_assert_ptr_null(rows);
	ck_assert_uint_eq(cnt, 77);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("iface");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, lists_choose_by_prefix_or_exact_name, 0,
			    (int)FR_ARRAY_LEN(filter_case));
	tcase_add_test(t, the_default_leaves_out_loopback_and_bridges_alone);
	tcase_add_loop_test(t, a_list_may_be_long, 0, 2);
	tcase_add_loop_test(t, ipv4_comes_before_ipv6_unless_told_otherwise, 0,
			    2);
	tcase_add_test(t, every_refusal_has_its_reason);
	tcase_add_test(t, no_interface_at_all_is_no_error);
	tcase_add_loop_test(t, numbers_in_names_sort_as_numbers, 0,
			    (int)FR_ARRAY_LEN(order));
	tcase_add_test(t, the_kernel_knows_the_loopback_interface);
	tcase_add_test(t, a_scan_without_memory_leaks_nothing);
	return unit_run(t, "fabric/iface");
}
