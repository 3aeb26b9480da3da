/* The destructor, in processes that end with tables in use. */
#include <check.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake/fake_net.h"
#include "table.h"
#include "unit/run.h"

static int pipe_fd[2];

static void setup(void)
{
	shells_setup();
	ck_assert_int_eq(pipe(pipe_fd), 0);
}

static void teardown(void)
{
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	shells_teardown();
}

static void start_all(void)
{
	void *ctx;

	fake_net.unload_fd = pipe_fd[1];
	for (int i = 0; i < TABLE_CNT; i++) {
		if (tables[i].init(host_logger, &ctx) != ncclSuccess) {
			_exit(1);
		}
	}
}

static void reap(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* Unloads that were reported until every writer had gone. */
static int unloads_seen(void)
{
	char byte;
	int cnt = 0;

	close(pipe_fd[1]);
	while (read(pipe_fd[0], &byte, 1) == 1) {
		cnt++;
	}
	return cnt;
}

START_TEST(the_end_of_the_process_unloads_the_core_once)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		start_all();
		exit(0);
	}
	reap(pid);
	ck_assert_int_eq(unloads_seen(), 1);
}
END_TEST

START_TEST(an_end_from_within_a_call_unloads_nothing)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		start_all();
		fake_net.interrupted = true;
		exit(0);
	}
	reap(pid);
	ck_assert_int_eq(unloads_seen(), 0);
}
END_TEST

START_TEST(a_process_that_never_called_init_unloads_nothing)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		fake_net.unload_fd = pipe_fd[1];
		exit(0);
	}
	reap(pid);
	ck_assert_int_eq(unloads_seen(), 0);
}
END_TEST

START_TEST(a_forked_child_ends_without_touching_its_parents_core)
{
	pid_t pid;

	start_all();
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		exit(0);
	}
	reap(pid);
	fake_net.unload_fd = -1;
	ck_assert_int_eq(unloads_seen(), 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("module");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, the_end_of_the_process_unloads_the_core_once);
	tcase_add_test(tcase, an_end_from_within_a_call_unloads_nothing);
	tcase_add_test(tcase, a_process_that_never_called_init_unloads_nothing);
	tcase_add_test(tcase,
		       a_forked_child_ends_without_touching_its_parents_core);
	return unit_run(tcase, "plugin_module");
}
