/* How a program of libcheck tests ends: its cases run, and what main() returns.
 */
#ifndef TEST_UNIT_RUN_H
#define TEST_UNIT_RUN_H

#include <check.h>
#include <stdlib.h>

static inline int unit_run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int unit_run_all(TCase *const *tcase, unsigned cnt,
			       const char *name)
{
	Suite *suite = suite_create(name);

	for (unsigned i = 0; i < cnt; i++) {
		suite_add_tcase(suite, tcase[i]);
	}
	return unit_run_suite(suite);
}

static inline int unit_run(TCase *tcase, const char *name)
{
	return unit_run_all(&tcase, 1, name);
}

#endif
