#include "unit/base/unit.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/conf.h"
#include "base/util.h"

static const char *env_name;
static const char *env_text;

static const char *env_of_one(const char *name)
{
	return env_name != NULL && strcmp(name, env_name) == 0 ? env_text
							       : NULL;
}

static struct fr_conf conf;

static int load(const char *name, const char *text)
{
	env_name = name;
	env_text = text;
	return fr_param_load(fr_conf_table, FR_CONF_PREFIX, env_of_one, &conf,
			     NULL);
}

static void conf_setup(void)
{
	unit_log_setup();
	memset(&conf, 0, sizeof(conf));
}

static void conf_teardown(void)
{
	fr_param_unload(fr_conf_table, &conf);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

START_TEST(the_defaults_are_the_documented_ones)
{
	ck_assert_int_eq(load(NULL, NULL), 0);
	ck_assert_str_eq(conf.provider, "");
	ck_assert_str_eq(conf.tcp_if, "");
	ck_assert_str_eq(conf.exclude_tcp_if, "=lo,docker,virbr");
	ck_assert(!conf.use_ipv6);
	ck_assert_uint_eq(conf.max_rails, 4);
	ck_assert_uint_eq(conf.force_rails, 0);
	ck_assert_uint_eq(conf.min_stripe_bytes, 131072);
	ck_assert_uint_eq(conf.small_msg_bytes, 64);
	ck_assert_int_eq(conf.eager_max_bytes, 8192);
	ck_assert_uint_eq(conf.cq_read_cnt, 16);
	ck_assert_uint_eq(conf.cq_size, 12288);
	ck_assert_uint_eq(conf.yield_after, 32);
	ck_assert(conf.keeper);
	ck_assert_int_eq(conf.completion, FR_COMPLETION_DELIVERY);
	ck_assert(!conf.mr_cache_disable);
	ck_assert(!conf.ep_per_comm);
	ck_assert_uint_eq(conf.peer_timeout_ns, 0);
	ck_assert_uint_eq(conf.connect_timeout_ns, 0);
	ck_assert_str_eq(conf.stats_file, "");
	ck_assert_uint_eq(conf.test.first_seq, 0);
	ck_assert_uint_eq(conf.test.max_write_bytes, 0);
	ck_assert_uint_eq(conf.test.comm_ids, FR_MAX_COMM_IDS);
	ck_assert_uint_eq(conf.test.max_reqs, FR_MAX_REQS);
	ck_assert_uint_eq(conf.test.fail_alloc, 0);
}
END_TEST

static const struct {
	const char *name;
	const char *text;
	int ret;
} bounds[] = {
	{"MAX_RAILS", "8", 0},
	{"MAX_RAILS", "9", -EINVAL},
	{"MAX_RAILS", "0", -EINVAL},
	{"FORCE_NUM_RAILS", "0", 0},
	{"FORCE_NUM_RAILS", "8", 0},
	{"FORCE_NUM_RAILS", "9", -EINVAL},
	{"MIN_STRIPE_SIZE", "0", -EINVAL},
	{"MIN_STRIPE_SIZE", "1", 0},
	{"MIN_STRIPE_SIZE", "1G", 0},
	{"SCHED_MAX_SMALL_MSG_SIZE", "0", 0},
	{"EAGER_MAX_SIZE", "-1", 0},
	{"EAGER_MAX_SIZE", "-2", -EINVAL},
	{"EAGER_MAX_SIZE", "63K", 0},
	{"EAGER_MAX_SIZE", "64513", -EINVAL},
	{"CQ_READ_COUNT", "0", -EINVAL},
	{"CQ_READ_COUNT", "256", 0},
	{"CQ_READ_COUNT", "257", -EINVAL},
	{"CQ_SIZE", "15", -EINVAL},
	{"CQ_SIZE", "16", 0},
	{"YIELD_AFTER", "0", 0},
	{"YIELD_AFTER", "4294967295", 0},
	{"SEND_COMPLETION", "local", 0},
	{"SEND_COMPLETION", "transmit", -EINVAL},
	{"PEER_TIMEOUT", "500ms", 0},
	{"PEER_TIMEOUT", "86400", 0},
	{"PEER_TIMEOUT", "86401", -EINVAL},
	{"CONNECT_TIMEOUT", "86400s", 0},
	{"CONNECT_TIMEOUT", "86401s", -EINVAL},
	{"TEST_FIRST_SEQ", "4294967295", 0},
	{"TEST_FIRST_SEQ", "4294967296", -EINVAL},
	{"TEST_COMM_IDS", "0", -EINVAL},
	{"TEST_COMM_IDS", "262144", 0},
	{"TEST_COMM_IDS", "262145", -EINVAL},
	{"TEST_MAX_REQUESTS", "0", -EINVAL},
	{"TEST_MAX_REQUESTS", "257", -EINVAL},
	{"TEST_MAX_MSG_SIZE", "1M", 0},
};

START_TEST(the_bounds_hold)
{
	char name[64];

	snprintf(name, sizeof(name), FR_CONF_PREFIX "%s", bounds[_i].name);
	ck_assert_int_eq(load(name, bounds[_i].text), bounds[_i].ret);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR],
			  bounds[_i].ret == 0 ? 0 : 1);
}
END_TEST

START_TEST(a_completion_is_chosen_by_its_name)
{
	ck_assert_int_eq(load("OFI_NCCL_SEND_COMPLETION", "local"), 0);
	ck_assert_int_eq(conf.completion, FR_COMPLETION_LOCAL);
}
END_TEST

START_TEST(load_leaks_nothing_wherever_it_fails)
{
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), 0);
		fr_fault_alloc_at(++nth);
		ret = load(NULL, NULL);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);

	ck_assert_uint_eq(nth, 5); /* four texts */
	fr_fault_alloc_at(0);
}
END_TEST

static unsigned count_rows(void)
{
	unsigned cnt = 0;

	while (fr_conf_table[cnt].name != NULL) {
		cnt++;
	}
	return cnt;
}

START_TEST(every_row_is_fit_for_the_manual)
{
	ck_assert_uint_eq(fr_conf_rows, count_rows());
	for (unsigned i = 0; i < fr_conf_rows; i++) {
		const struct fr_param *row = &fr_conf_table[i];
		size_t len = strlen(row->help);

		ck_assert_ptr_nonnull(row->dflt);
		ck_assert_ptr_nonnull(row->unit);
		ck_assert_uint_gt(len, 20);
		ck_assert_int_eq(row->help[len - 1], '.');
		ck_assert_ptr_null(strchr(row->help, '\n'));
		ck_assert_int_eq(row->kind == FR_PARAM_ENUM,
				 row->names != NULL);
	}
}
END_TEST

START_TEST(a_shown_value_is_read_back_as_the_same)
{
	char shown[128], again[128], name[64];

	for (unsigned i = 0; i < fr_conf_rows; i++) {
		const struct fr_param *row = &fr_conf_table[i];

		ck_assert_int_eq(load(NULL, NULL), 0);
		fr_param_format(row, &conf, shown, sizeof(shown));
		fr_param_unload(fr_conf_table, &conf);
		snprintf(name, sizeof(name), FR_CONF_PREFIX "%s", row->name);
		ck_assert_int_eq(load(name, shown), 0);
		fr_param_format(row, &conf, again, sizeof(again));
		fr_param_unload(fr_conf_table, &conf);
		ck_assert_str_eq(again, shown);
	}
}
END_TEST

START_TEST(no_name_is_ours_and_foreign)
{
	for (unsigned i = 0; i < fr_conf_rows; i++) {
		const struct fr_param_foreign *foreign = fr_conf_foreign;

		for (; foreign->name != NULL; foreign++) {
			ck_assert_str_ne(fr_conf_table[i].name, foreign->name);
		}
		for (unsigned k = 0; k < i; k++) {
			ck_assert_str_ne(fr_conf_table[i].name,
					 fr_conf_table[k].name);
		}
	}
}
END_TEST

START_TEST(names_of_scripts_for_other_plugins_draw_no_warning)
{
	const char *const env[] = {"OFI_NCCL_PROTOCOL=RDMA",
				   "OFI_NCCL_NIC_DUP_CONNS=0",
				   "OFI_NCCL_EAGER_MAX_SIZE=0",
				   "OFI_NCCL_TUNER_TYPE=REGION", NULL};

	fr_param_check_names(fr_conf_table, FR_CONF_PREFIX, fr_conf_foreign,
			     (char *const *)env);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 0);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_INFO], 3);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("conf");

	tcase_add_checked_fixture(t, conf_setup, conf_teardown);
	tcase_add_test(t, the_defaults_are_the_documented_ones);
	tcase_add_loop_test(t, the_bounds_hold, 0, (int)FR_ARRAY_LEN(bounds));
	tcase_add_test(t, a_completion_is_chosen_by_its_name);
	tcase_add_test(t, load_leaks_nothing_wherever_it_fails);
	tcase_add_test(t, every_row_is_fit_for_the_manual);
	tcase_add_test(t, a_shown_value_is_read_back_as_the_same);
	tcase_add_test(t, no_name_is_ours_and_foreign);
	tcase_add_test(t, names_of_scripts_for_other_plugins_draw_no_warning);
	return unit_run(t, "base/conf");
}
