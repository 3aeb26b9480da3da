#include "unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/files.h"

#define LIMIT 40u

static void limit_to(rlim_t files)
{
	const struct rlimit limit = {files, LIMIT};

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(tells_what_may_still_be_opened)
{
	struct fr_files files;
	unsigned long long left;
	int fd[LIMIT];

	limit_to(LIMIT);
	ck_assert_int_eq(fr_files_look(&files), 0);
	ck_assert_uint_eq(files.limit, LIMIT);
	left = files.left;
	ck_assert_uint_gt(left, 2);
	for (unsigned i = 0; i < left; i++) {
		fd[i] = open("/dev/null", O_RDONLY);
		ck_assert_int_ge(fd[i], 0);
		ck_assert_int_eq(fr_files_look(&files), 0);
		ck_assert_uint_eq(files.left, left - i - 1);
	}
	ck_assert_int_eq(open("/dev/null", O_RDONLY), -1);
	ck_assert_int_eq(errno, EMFILE);
	for (unsigned i = 0; i < left; i++) {
		close(fd[i]);
	}
}
END_TEST

/* A limit that was lowered later. */
START_TEST(says_none_where_more_are_open_than_allowed)
{
	struct fr_files files;
	int fd;

	limit_to(LIMIT);
	fd = fcntl(0, F_DUPFD, 30);
	ck_assert_int_ge(fd, 30);
	limit_to(3);
	ck_assert_int_eq(fr_files_look(&files), 0);
	ck_assert_uint_eq(files.limit, 3);
	ck_assert_uint_eq(files.left, 0);
	/* A sanitizer opens files when the process ends. */
	limit_to(LIMIT);
	close(fd);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("files");

	tcase_add_test(tc, tells_what_may_still_be_opened);
	tcase_add_test(tc, says_none_where_more_are_open_than_allowed);
	return unit_run(tc, "base/files");
}
