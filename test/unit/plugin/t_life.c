#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "fake/fake_net.h"
#include "plugin/life.h"
#include "plugin/tables.h"
#include "table.h"
#include "unit/run.h"

static unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];

START_TEST(init_takes_a_reference_for_each_context_or_once)
{
	const struct table *t = &tables[_i];
	void *ctx[3] = {NULL};

	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(t->init(host_logger, &ctx[i]), ncclSuccess);
	}
	ck_assert_uint_eq(fake_net.refs, t->has_ctx ? 3 : 1);
}
END_TEST

START_TEST(several_tables_hold_references_of_their_own)
{
	void *ctx;
	int n;

	for (int i = 0; i < TABLE_CNT; i++) {
		ck_assert_int_eq(tables[i].devices(&n), ncclInvalidUsage);
		ck_assert_int_eq(tables[i].init(host_logger, &ctx),
				 ncclSuccess);
		ck_assert_uint_eq(fake_net.refs, (unsigned)i + 1);
		ck_assert_int_eq(tables[i].devices(&n), ncclSuccess);
	}
}
END_TEST

START_TEST(a_failed_init_leaves_nothing_and_the_next_starts_afresh)
{
	static const struct {
		int ret;
		ncclResult_t res;
	} rows[] = {{-EINVAL, ncclInvalidArgument}, {-ENOENT, ncclSystemError}};
	const struct table *t = &tables[_i];
	void *ctx;
	int n;

	for (size_t i = 0; i < FR_ARRAY_LEN(rows); i++) {
		ctx = &n;
		fake_net.ret = rows[i].ret;
		ck_assert_int_eq(t->init(host_logger, &ctx), rows[i].res);
		ck_assert_ptr_null(ctx);
		ck_assert_uint_eq(fr_live_allocs(), 0);
		fake_net.ret = 0;
		ck_assert_int_eq(t->devices(&n), ncclInvalidUsage);
	}
	ck_assert_int_eq(t->init(host_logger, &ctx), ncclSuccess);
	ck_assert_int_eq(t->devices(&n), ncclSuccess);
}
END_TEST

START_TEST(init_leaks_nothing_wherever_memory_ends)
{
	const struct table *t = &tables[_i];
	unsigned nth = 0;
	ncclResult_t res;
	void *ctx;

	do {
		ck_assert_uint_eq(fr_live_allocs(), 0);
		fr_fault_alloc_at(++nth);
		res = t->init(host_logger, &ctx);
		ck_assert(res == ncclSuccess || res == ncclSystemError);
	} while (res != ncclSuccess);
	ck_assert_uint_eq(nth, 3); /* ours, and the fake's */
}
END_TEST

START_TEST(lines_reach_the_host_at_its_levels)
{
	void *ctx;

	ck_assert_int_eq(tables[_i].init(host_logger, &ctx), ncclSuccess);
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_INFO], 1);

	fr_log_line(FR_LOG_ERROR, "a.c", 11, "rail %d died", 2);
	ck_assert_int_eq(host_log.level, NCCL_LOG_WARN);
	ck_assert_uint_eq(host_log.flags, NCCL_ALL);
	ck_assert_str_eq(host_log.file, "a.c");
	ck_assert_int_eq(host_log.line, 11);
	ck_assert_str_eq(host_log.text, "NET/fabrail: rail 2 died");
	fr_log_line(FR_LOG_WARN, "a.c", 12, "worse");
	ck_assert_int_eq(host_log.level, NCCL_LOG_WARN);
	fr_log_line(FR_LOG_INFO, "a.c", 13, "100 %%s");
	ck_assert_int_eq(host_log.level, NCCL_LOG_INFO);
	ck_assert_uint_eq(host_log.flags, 0x11);
	ck_assert_str_eq(host_log.text, "NET/fabrail: 100 %s");
	fr_log_line(FR_LOG_DEBUG, "a.c", 14, "detail");
	ck_assert_int_eq(host_log.level, NCCL_LOG_TRACE);
	ck_assert_uint_eq(host_log.flags, 0x11);
}
END_TEST

START_TEST(the_line_of_init_names_the_interface)
{
	char expected[64];
	void *ctx;

	snprintf(expected, sizeof(expected), "net interface v%d, 2 devices",
		 tables[_i].abi);
	ck_assert_int_eq(tables[_i].init(host_logger, &ctx), ncclSuccess);
	ck_assert_ptr_nonnull(strstr(host_log.text, expected));
}
END_TEST

START_TEST(init_without_a_logger_leaves_the_log_as_it_is)
{
	void *ctx;

	ck_assert_int_eq(tables[_i].init(NULL, &ctx), ncclSuccess);
	fr_log_line(FR_LOG_WARN, "a.c", 1, "still here");
	ck_assert_str_eq(host_log.text, "still here");
}
END_TEST

/* Exits with the number of the first thing that is not as it should be. */
static void __attribute__((noreturn)) child_of(const struct table *t, void *ctx)
{
	void *comm = handle;
	unsigned puts = fake_net.calls;
	int n;

	host_log_reset();
	if (t->devices(&n) != ncclInvalidUsage) {
		_exit(1);
	}
	if (t->listen(ctx, 0, handle, &comm) != ncclInvalidUsage ||
	    comm != NULL) {
		_exit(2);
	}
	comm = handle;
	if (t->connect(ctx, 0, handle, &comm, NULL) != ncclInvalidUsage ||
	    comm != NULL) {
		_exit(3);
	}
	if (t->has_ctx && t->finalize(ctx) != ncclInvalidUsage) {
		_exit(4);
	}
	if (t->init(host_logger, &ctx) != ncclInvalidUsage) {
		_exit(5);
	}
	if (strstr(host_log.warning, "forked") == NULL) {
		_exit(6);
	}
	if (host_log.lines[NCCL_LOG_WARN] != (t->has_ctx ? 5u : 4u)) {
		_exit(7);
	}
	fr_shell_unload();
	_exit(fake_net.calls == puts ? 0 : 8);
}

static void expect_exit(pid_t pid, int status)
{
	int got;

	ck_assert_int_eq(waitpid(pid, &got, 0), pid);
	ck_assert(WIFEXITED(got));
	ck_assert_int_eq(WEXITSTATUS(got), status);
}

START_TEST(a_forked_child_is_told_and_touches_nothing)
{
	void *ctx;
	pid_t pid;
	int n;

	ck_assert_int_eq(tables[_i].init(host_logger, &ctx), ncclSuccess);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		child_of(&tables[_i], ctx);
	}
	expect_exit(pid, 0);
	ck_assert_int_eq(tables[_i].devices(&n), ncclSuccess);
}
END_TEST

START_TEST(a_child_may_start_where_the_parent_is_done)
{
	void *ctx;
	pid_t pid;

	ck_assert_int_eq(
		ncclNetPlugin_v12.init(&ctx, 1, NULL, host_logger, NULL),
		ncclSuccess);
	ck_assert_int_eq(ncclNetPlugin_v12.finalize(ctx), ncclSuccess);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		ncclResult_t res = ncclNetPlugin_v12.init(&ctx, 1, NULL,
							  host_logger, NULL);

		_exit(res == ncclSuccess && fake_net.refs == 1 ? 0 : 1);
	}
	expect_exit(pid, 0);
}
END_TEST

START_TEST(unload_ends_everything_and_init_starts_afresh)
{
	char *name, *path;
	unsigned refs = 0;
	void *ctx;
	int n;

	for (int i = 0; i < TABLE_CNT; i++) {
		refs += tables[i].has_ctx ? 2 : 1;
	}
	for (int round = 1; round <= 3; round++) {
		for (int i = 0; i < TABLE_CNT; i++) {
			const struct table *t = &tables[i];

			ck_assert_int_eq(t->init(host_logger, &ctx),
					 ncclSuccess);
			ck_assert_int_eq(t->init(host_logger, &ctx),
					 ncclSuccess);
			ck_assert_int_eq(t->props(0, &name, &path),
					 ncclSuccess);
		}
		ck_assert_uint_eq(fake_net.refs, refs);
		fr_shell_unload();
		ck_assert_uint_eq(fake_net.refs, 0);
		ck_assert_uint_eq(fake_net.unloads, (unsigned)round);
		ck_assert_uint_eq(fr_live_allocs(), 0);
	}
	shells_setup();
	for (int i = 0; i < TABLE_CNT; i++) {
		ck_assert_int_eq(tables[i].devices(&n), ncclInvalidUsage);
	}
}
END_TEST

START_TEST(unload_stops_calling_the_host)
{
	void *ctx;

	ck_assert_int_eq(tables[_i].init(host_logger, &ctx), ncclSuccess);
	fr_shell_unload();
	host_log_reset();
	fr_log_line(FR_LOG_INFO, "a.c", 1, "nobody listens");
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_INFO], 0);
}
END_TEST

static unsigned said;

static void count_lines(enum fr_log_level level, const char *file, int line,
			const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	(void)text;
	said++;
}

/* At exit a thread of the host may go on calling, without end. */
START_TEST(calls_after_unload_fail_in_silence)
{
	void *ctx, *comm = NULL;
	int n;

	ck_assert_int_eq(tables[_i].init(host_logger, &ctx), ncclSuccess);
	fr_shell_unload();
	said = 0;
	fr_log_set_sink(count_lines);
	ck_assert_int_eq(tables[_i].devices(&n), ncclInvalidUsage);
	ck_assert_int_eq(ncclNetPlugin_v8.connect(0, &n, &comm, NULL),
			 ncclInvalidUsage);
	fr_log_set_sink(NULL);
	ck_assert_uint_eq(said, 0);
}
END_TEST

START_TEST(unload_without_init_does_nothing)
{
	fr_shell_unload();
	ck_assert_uint_eq(fake_net.calls, 0);
}
END_TEST

START_TEST(unload_after_a_failed_init_reaches_the_core)
{
	void *ctx;

	fake_net.ret = -ENOENT;
	ck_assert_int_eq(tables[_i].init(host_logger, &ctx), ncclSystemError);
	fr_shell_unload();
	ck_assert_uint_eq(fake_net.unloads, 1);
}
END_TEST

#define THREADS 4
#define ROUNDS 200

static void quiet_logger(ncclDebugLogLevel level, unsigned long flags,
			 const char *file, int line, const char *fmt, ...)
{
	(void)level;
	(void)flags;
	(void)file;
	(void)line;
	(void)fmt;
}

static void *init_and_ask(void *arg)
{
	const struct table *v12 = table_of(12);
	char *name, *path;
	void *ctx;
	int n;

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		if (v12->init(quiet_logger, &ctx) != ncclSuccess ||
		    v12->devices(&n) != ncclSuccess || n != 2 ||
		    v12->props(0, &name, &path) != ncclSuccess ||
		    strcmp(name, "fabrail0") != 0 ||
		    v12->finalize(ctx) != ncclSuccess) {
			return NULL;
		}
	}
	return &handle;
}

START_TEST(contexts_come_and_go_on_several_threads)
{
	pthread_t thread[THREADS];
	void *ret;

	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, init_and_ask, NULL),
			0);
	}
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(thread[i], &ret), 0);
		ck_assert_ptr_nonnull(ret);
	}
	ck_assert_uint_eq(fake_net.refs, 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("life");

	tcase_add_checked_fixture(tcase, shells_setup, shells_teardown);
	tcase_add_loop_test(tcase,
			    init_takes_a_reference_for_each_context_or_once, 0,
			    TABLE_CNT);
	tcase_add_test(tcase, several_tables_hold_references_of_their_own);
	tcase_add_loop_test(
		tcase, a_failed_init_leaves_nothing_and_the_next_starts_afresh,
		0, TABLE_CNT);
	tcase_add_loop_test(tcase, init_leaks_nothing_wherever_memory_ends, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, lines_reach_the_host_at_its_levels, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, the_line_of_init_names_the_interface, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase,
			    init_without_a_logger_leaves_the_log_as_it_is, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, a_forked_child_is_told_and_touches_nothing,
			    0, TABLE_CNT);
	tcase_add_test(tcase, a_child_may_start_where_the_parent_is_done);
	tcase_add_test(tcase, unload_ends_everything_and_init_starts_afresh);
	tcase_add_loop_test(tcase, unload_stops_calling_the_host, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, calls_after_unload_fail_in_silence, 0,
			    TABLE_CNT);
	tcase_add_test(tcase, unload_without_init_does_nothing);
	tcase_add_loop_test(tcase, unload_after_a_failed_init_reaches_the_core,
			    0, TABLE_CNT);
	tcase_add_test(tcase, contexts_come_and_go_on_several_threads);
	return unit_run(tcase, "plugin_life");
}
