#include "unit/fabric/fabric_unit.h"

#include <signal.h>

#include <rdma/fi_errno.h>

#include "fabric/fi.h"
#include "fabric/provider.h"

static void setup(void)
{
	unit_log_clear();
}

static void on_signal(int sig)
{
	(void)sig;
}

START_TEST(it_is_known_whether_libfabric_was_loaded)
{
	const struct fr_fi *fi = NULL;

	ck_assert(!fr_fabric_is_there());
	fr_fi_set(NULL);
	ck_assert_int_eq(fr_fi_get(&fi), 0);
	ck_assert(fr_fabric_is_there());
	unit_assert_quiet();
}
END_TEST

START_TEST(loading_leaves_the_signal_handlers_alone)
{
	const int sigs[] = {SIGSEGV, SIGBUS,  SIGILL, SIGABRT,
			    SIGINT,  SIGTERM, SIGUSR1};
	struct sigaction mine = {.sa_handler = on_signal,
				 .sa_flags = SA_RESTART};
	struct fi_info *hints, *list = NULL;
	const struct fr_fi *fi = NULL;
	struct sigaction before[FR_ARRAY_LEN(sigs)], now;

	/* Every second one is left as it is. */
	for (size_t i = 0; i < FR_ARRAY_LEN(sigs); i += 2) {
		ck_assert_int_eq(sigaction(sigs[i], &mine, NULL), 0);
	}
	for (size_t i = 0; i < FR_ARRAY_LEN(sigs); i++) {
		ck_assert_int_eq(sigaction(sigs[i], NULL, &before[i]), 0);
	}
	unsetenv("IPATH_NO_BACKTRACE"); /* else PSM installs none */
	fr_fi_set(NULL);
	ck_assert_int_eq(fr_fi_get(&fi), 0);
	hints = fi->dupinfo(NULL);
	if (fr_fi_getinfo(fi, hints, &list) == 0) {
		fi->freeinfo(list);
	}
	fi->freeinfo(hints);
	for (size_t i = 0; i < FR_ARRAY_LEN(sigs); i++) {
		ck_assert_int_eq(sigaction(sigs[i], NULL, &now), 0);
		ck_assert_ptr_eq((void *)now.sa_handler,
				 (void *)before[i].sa_handler);
		/* A flag of libc's own tells nothing. */
		ck_assert_int_eq(now.sa_flags & ~0x04000000,
				 before[i].sa_flags & ~0x04000000);
	}
	unit_assert_quiet();
}
END_TEST

START_TEST(an_old_libfabric_is_refused_in_one_line)
{
	const struct fr_fi *fi = NULL;

	fake_fi_install();
	fake_fi.version = FI_VERSION(1, 16);
	ck_assert_int_eq(fr_fi_get(&fi), -ELIBACC);
	ck_assert_ptr_null(fi);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
	unit_assert_said(FR_LOG_ERROR,
			 "needs libfabric 1.17 or newer, found 1.16 at lib");
}
END_TEST

START_TEST(the_version_asked_for_is_one_that_both_sides_know)
{
	const uint32_t built = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
	const struct fr_fi *fi;

	fake_fi_install();
	ck_assert_int_eq(fr_fi_get(&fi), 0);
	fake_fi.version = FI_VERSION(99, 0);
	ck_assert_uint_eq(fr_fi_api_version(fi),
			  FR_MAX(built, FI_VERSION(1, 20)));
	fake_fi.version = FI_VERSION(1, 19);
	ck_assert_uint_eq(fr_fi_api_version(fi), FI_VERSION(1, 19));
	fake_fi.version = FI_VERSION(1, 0);
	ck_assert_uint_eq(fr_fi_api_version(fi), FI_VERSION(1, 0));
}
END_TEST

START_TEST(the_environment_is_tamed_unless_the_user_set_it)
{
	struct fi_info *hints, *list = NULL;
	const struct fr_fi *fi;

	fake_fi_install();
	unsetenv("FI_OFI_RXM_BUFFER_SIZE");
	setenv("FI_OFI_RXM_MSG_RX_SIZE", "77", 1);
	ck_assert_int_eq(fr_fi_get(&fi), 0);
	hints = fi->dupinfo(NULL);
	hints->fabric_attr->prov_name = strdup("net");
	ck_assert_int_eq(fr_fi_getinfo(fi, hints, &list), 0);
	fi->freeinfo(list);
	fi->freeinfo(hints);
	ck_assert_str_eq(getenv("FI_OFI_RXM_MSG_RX_SIZE"), "77");
	/* A message of 8 KiB and its header must stay eager. */
	ck_assert_int_ge(strtol(getenv("FI_OFI_RXM_BUFFER_SIZE"), NULL, 10),
			 9 * 1024);
	ck_assert_str_eq(getenv("FI_SOCKETS_PE_WAITTIME"), "0");
	/* A post must not wait for a connection. */
	ck_assert_int_le(
		strtol(getenv("FI_SOCKETS_CONN_TIMEOUT"), NULL, 10) *
			strtol(getenv("FI_SOCKETS_MAX_CONN_RETRY"), NULL, 10),
		9);
	ck_assert_uint_eq(fake_fi.infos, 0);
}
END_TEST

START_TEST(errors_of_libfabrics_own_range_become_eio)
{
	ck_assert_int_eq(fr_fi_errno(0), 0);
	ck_assert_int_eq(fr_fi_errno(3), 0);
	ck_assert_int_eq(fr_fi_errno(-EAGAIN), -EAGAIN);
	ck_assert_int_eq(fr_fi_errno(-FI_ECANCELED), -ECANCELED);
	ck_assert_int_eq(fr_fi_errno(-FI_ENOKEY), -EIO);
	ck_assert_int_eq(fr_fi_errno(-FI_ETRUNC), -EIO);
	fake_fi_install();
	ck_assert_str_eq(fr_fi_text(-FI_ENOKEY), "a libfabric error");
	ck_assert_str_eq(fr_fi_text(-EINVAL), strerror(EINVAL));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("fi");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, it_is_known_whether_libfabric_was_loaded);
	tcase_add_test(t, loading_leaves_the_signal_handlers_alone);
	tcase_add_test(t, an_old_libfabric_is_refused_in_one_line);
	tcase_add_test(t, the_version_asked_for_is_one_that_both_sides_know);
	tcase_add_test(t, the_environment_is_tamed_unless_the_user_set_it);
	tcase_add_test(t, errors_of_libfabrics_own_range_become_eio);
	return unit_run(t, "fabric/fi");
}
