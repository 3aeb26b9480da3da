#include "unit/base/unit.h"

#include "base/param.h"
#include "base/util.h"

static const struct fr_param table[] = {
	{.name = "EAGER_MAX_SIZE"},
	{.name = "MIN_STRIPE_SIZE"},
	{.name = "KEEPER"},
	{.name = "IF"},
	{.name = NULL},
};

static const struct fr_param_foreign foreign[] = {
	{"PROTOCOL"},
	{NULL},
};

static void check(const char *variable)
{
	const char *const env[] = {"HOME=/", variable, "OFI_NCCL=1", NULL};

	fr_param_check_names(table, "OFI_NCCL_", foreign, (char *const *)env);
}

static const char *const silent[] = {
	"OFI_NCCL_KEEPER=1",
	"OFI_NCCL_KEEPER=",
	"OFI_NCCL_EAGER_MAX_SIZE=OFI_NCCL_WRONG=1",
	"NCCL_KEEPR=1",
	"ofi_nccl_KEEPR=1",
	"X_OFI_NCCL_KEEPR=1",
	"",
};

START_TEST(known_names_and_other_prefixes_draw_nothing)
{
	check(silent[_i]);
	for (int level = FR_LOG_ERROR; level <= FR_LOG_DEBUG; level++) {
		ck_assert_uint_eq(unit_log.cnt[level], 0);
	}
}
END_TEST

static const char *const near[][2] = {
	{"OFI_NCCL_KEEPR=1", "OFI_NCCL_KEEPER meant"},
	{"OFI_NCCL_KEPPER=1", "OFI_NCCL_KEEPER meant"},
	{"OFI_NCCL_KEEPERS=1", "OFI_NCCL_KEEPER meant"},
	{"OFI_NCCL_AGER_MAX_SIZ=1", "OFI_NCCL_EAGER_MAX_SIZE meant"},
	{"OFI_NCCL_MINSTRIPESIZE=1", "OFI_NCCL_MIN_STRIPE_SIZE meant"},
	{"OFI_NCCL_EAGER_MAX_SIZE_KB=1", "OFI_NCCL_EAGER_MAX_SIZE meant"},
	{"OFI_NCCL_KEEPR", "OFI_NCCL_KEEPER meant"},
};

START_TEST(a_slip_of_the_pen_draws_the_nearest_name)
{
	check(near[_i][0]);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 1);
	unit_assert_logged(near[_i][1]);
}
END_TEST

/* Four letters too many, four missing, and what resembles nothing. */
static const char *const far[] = {
	"OFI_NCCL_EAGER_MAX_SIZE_ALL=1",
	"OFI_NCCL_KE=1",
	"OFI_NCCL_SOMETHING=1",
	"OFI_NCCL_XY=1",
	"OFI_NCCL_=1",
};

START_TEST(a_name_unlike_any_draws_no_guess)
{
	check(far[_i]);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 1);
	ck_assert_ptr_null(strstr(unit_log.text, "meant"));
}
END_TEST

START_TEST(a_foreign_name_draws_an_info_line)
{
	check("OFI_NCCL_PROTOCOL=RDMA");
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 0);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_INFO], 1);
	unit_assert_logged("OFI_NCCL_PROTOCOL");
}
END_TEST

START_TEST(a_name_without_end_draws_one_short_line)
{
	static char variable[5000] = "OFI_NCCL_";

	memset(variable + 9, 'X', sizeof(variable) - 10);
	check(variable);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 1);
	ck_assert_uint_lt(strlen(unit_log.text), 200);
}
END_TEST

START_TEST(every_wrong_variable_draws_its_own_line)
{
	const char *const env[] = {"OFI_NCCL_KEEPR=1", "OFI_NCCL_NONE=1", NULL};

	fr_param_check_names(table, "OFI_NCCL_", foreign, (char *const *)env);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 2);
}
END_TEST

START_TEST(without_a_list_the_environment_is_read)
{
	clearenv();
	setenv("OFI_NCCL_KEEPR", "1", 1);
	fr_param_check_names(table, "OFI_NCCL_", foreign, NULL);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 1);
	clearenv();
	fr_param_check_names(table, "OFI_NCCL_", foreign, NULL);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_WARN], 1);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("param_names");

	tcase_add_checked_fixture(t, unit_log_setup, NULL);
	tcase_add_loop_test(t, known_names_and_other_prefixes_draw_nothing, 0,
			    (int)FR_ARRAY_LEN(silent));
	tcase_add_loop_test(t, a_slip_of_the_pen_draws_the_nearest_name, 0,
			    (int)FR_ARRAY_LEN(near));
	tcase_add_loop_test(t, a_name_unlike_any_draws_no_guess, 0,
			    (int)FR_ARRAY_LEN(far));
	tcase_add_test(t, a_foreign_name_draws_an_info_line);
	tcase_add_test(t, a_name_without_end_draws_one_short_line);
	tcase_add_test(t, every_wrong_variable_draws_its_own_line);
	tcase_add_test(t, without_a_list_the_environment_is_read);
	return unit_run(t, "base/param_names");
}
