/*
 * A process with comms forks: the child leaves by exit, _exit, abort or exec,
 * calls the plugin, or writes to memory that it shares with its parent until
 * then. The parent's messages go on and are right, the child is refused. A
 * child that outlives its parent does not hide the parent's death from the
 * peers.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/life.h"

#define ROUNDS 6u
#define ERROR_MS 10000

static struct pair_echo echo;

/* -- what children do -------------------------------------------------------
 */

static void child_exits(struct pair_member *me)
{
	(void)me;
	exit(0);
}

static void child_leaves(struct pair_member *me)
{
	(void)me;
	_exit(0);
}

static void child_aborts(struct pair_member *me)
{
	const struct rlimit none = {0, 0};

	(void)me;
	setrlimit(RLIMIT_CORE, &none);
	abort();
}

static void child_execs(struct pair_member *me)
{
	(void)me;
	execl("/bin/true", "true", (char *)NULL);
	_exit(2);
}

static void child_calls(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *ctx = NULL, *comm = NULL;
	bool refused;

	refused = fr_plugin_init(me->plugin, 3, -1, &ctx) ==
			  FR_PLUGIN_INVALID_USAGE &&
		  fr_plugin_listen(me->plugin, me->ctx, 0, handle, &comm) ==
			  FR_PLUGIN_INVALID_USAGE &&
		  fr_plugin_connect(me->plugin, me->ctx, 0, handle, &comm) ==
			  FR_PLUGIN_INVALID_USAGE &&
		  fr_plugin_finalize(me->plugin, me->ctx) ==
			  FR_PLUGIN_INVALID_USAGE;
	_exit(refused && pair_logged("was forked off process") >= 4 ? 0 : 3);
}

/* Each page that one of the two writes to becomes two. */
static void child_writes(struct pair_member *me)
{
	(void)me;
	memset(echo.in.mem, 0xee, echo.in.bytes);
	memset(echo.out.mem, 0xee, echo.out.bytes);
	_exit(0);
}

static const struct {
	const char *name;
	void (*run)(struct pair_member *me);
	int sig;
} children[] = {
	{"a child exits", child_exits, 0},
	{"a child leaves", child_leaves, 0},
	{"a child aborts", child_aborts, SIGABRT},
	{"a child execs", child_execs, 0},
	{"a child calls", child_calls, 0},
	{"a child writes", child_writes, 0},
};

/* Messages are under way when it is born and all the while it lives. */
static void with_child(struct pair_member *me, unsigned i)
{
	unsigned long until = echo.rounds + ROUNDS;
	int status;
	pid_t pid, ended = 0;

	pair_at(me, children[i].name);
	pid = fork();
	PAIR_CHECK(pid >= 0, "fork");
	if (pid == 0) {
		children[i].run(me);
	}
	while (ended == 0 || echo.rounds < until) {
		int ret = pair_echo_ask(me, &echo);

		PAIR_CHECK(ret == 0, "traffic: %s", fr_plugin_result_text(ret));
		if (ended == 0) {
			ended = waitpid(pid, &status, WNOHANG);
		}
	}
	PAIR_CHECK(ended == pid && (children[i].sig != 0
					    ? WIFSIGNALED(status) &&
						      WTERMSIG(status) ==
							      children[i].sig
					    : WIFEXITED(status) &&
						      WEXITSTATUS(status) == 0),
		   "%s: it ended with status %#x", children[i].name,
		   (unsigned)status);
}

static void run_children(struct pair_member *me)
{
	pair_echo_open(me, 1 - me->index, &echo);
	if (me->index == 1) {
		pair_echo_serve(me, &echo);
		pair_echo_close(me, &echo);
		return;
	}
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < FR_ARRAY_LEN(children); i++) {
			with_child(me, i);
		}
	}
	pair_echo_end(me, &echo);
	pair_echo_close(me, &echo);
}

/* -- a child that outlives its parent ---------------------------------------
 */

static void die_with_a_child(struct pair_member *me, bool execs)
{
	pid_t pid = fork();

	PAIR_CHECK(pid >= 0, "fork");
	if (pid == 0) {
		if (execs) {
			execl("/bin/sleep", "sleep", "8", (char *)NULL);
			_exit(1);
		}
		sleep(8);
		_exit(0);
	}
	pair_nap_us(100000);
	pair_put(me, 0, &pid, sizeof(pid));
	pair_die();
}

static void orphaned(struct pair_member *me, bool execs)
{
	struct pair_buf buf;
	uint64_t began;
	void *req;
	pid_t pid;
	int ret;

	if (me->index == 1) {
		(void)pair_connect(me, 0);
		die_with_a_child(me, execs);
	}
	pair_expect("is lost");
	pair_expect("fenced");
	pair_buf_open(me, pair_accept(me, 1), 1 << 20, &buf);
	req = pair_irecv_wait(me, &buf, 1 << 20);
	pair_get(me, 1, &pid, sizeof(pid));
	began = pair_now_ms();
	pair_at(me, "waiting for the error");
	ret = pair_test_wait(me, req, ERROR_MS, NULL);
	pair_say("    its child lives%s: error after %llu ms",
		 execs ? ", another program" : "",
		 (unsigned long long)(pair_now_ms() - began));
	kill(pid, SIGKILL);
	PAIR_CHECK(ret == PAIR_REMOTE, "%d", ret);
	pair_buf_close(me, &buf);
	life_close_recv(me, buf.comm);
}

static void run_orphan(struct pair_member *me)
{
	orphaned(me, false);
}

static void run_orphan_exec(struct pair_member *me)
{
	orphaned(me, true);
}

static void run_case(const char *provider, const char *name,
		     void (*run)(struct pair_member *me))
{
	const struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = 2,
		.members = 2,
		.limit_s = 30,
		.killed = run == run_children ? 0 : FR_BIT(1),
		.run = run,
	};

	pair_spawn(&pc);
}

static void run_all(const char *provider, unsigned nth)
{
	(void)nth;
	run_case(provider, "children of all kinds", run_children);
	run_case(provider, "a child outlives its parent", run_orphan);
	run_case(provider, "a program outlives its parent", run_orphan_exec);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "t_fork", 15);
	pair_all_providers(run_all);
	return pair_end();
}
