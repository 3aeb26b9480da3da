/*
 * The order in which libfabric's objects are closed, by whatever way a process
 * ends: each of them once, with success and behind its parts. The shim's log of
 * a process is read when the process has ended.
 *
 * A signal's handler that calls exit() may find the plugin at work in its own
 * thread, locks taken: nothing can be closed then, and nothing may hang.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/life.h"
#include "functional/trail.h"
#include "shim/use.h"

#define ROUNDS 6u
#define ONCE 7u /* scenes at the end of the table */
#define BYTES (256u << 10)

enum step { INIT, LISTEN, CONNECT, REG, PASS, DEREG, CLOSE, FINALIZE };

struct scene {
	const char *name;
	void (*leave)(struct pair_member *me); /* member 0 does */
	unsigned members;
	bool whole; /* nothing is left open */
	/* A call of this kind is interrupted, in this step. */
	const char *kind;
	enum step step;
};

static const struct fr_shim_api *shim; /* of a member */
static long family;		       /* PID of the parent */

static void log_path(unsigned member, char *path, size_t bytes)
{
	(void)snprintf(path, bytes, "t_teardown.%ld.%u.log", family, member);
}

static void leave_connecting(struct pair_member *me);

/* The one that is connected to does not poll: libfabric's shm does not survive
 * the first message of a peer whose endpoint is closed as it is read. */
static void set_env(unsigned i, const void *arg)
{
	const struct scene *scene = arg;
	char path[64], spec[96];

	if (i == 1 && scene->leave == leave_connecting) {
		setenv("OFI_NCCL_KEEPER", "0", 1);
	}
	log_path(i, path, sizeof(path));
	(void)snprintf(spec, sizeof(spec), "log=%s", path);
	shim = shim_must_load(spec);
}

/* -- two processes ----------------------------------------------------------
 */

static void *home; /* listener of member 0 */

static void traffic(struct pair_member *me, struct pair_echo *echo)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];

	pair_open(me);
	home = pair_listen(me, handle);
	pair_echo_open(me, 1, echo);
	while (echo->rounds < ROUNDS) {
		PAIR_OK(pair_echo_ask(me, echo));
	}
}

static void leave_in_order(struct pair_member *me)
{
	struct pair_echo echo;

	traffic(me, &echo);
	pair_echo_end(me, &echo);
	pair_tell(me, 1);
	pair_echo_close(me, &echo);
	PAIR_OK(fr_plugin_close_listen(me->plugin, home));
	pair_close(me);
}

/* What was opened first goes first; memory is not given back. */
static void leave_backwards(struct pair_member *me)
{
	struct pair_echo echo;

	traffic(me, &echo);
	pair_echo_end(me, &echo);
	pair_tell(me, 1);
	PAIR_OK(fr_plugin_finalize(me->plugin, me->ctx));
	PAIR_OK(fr_plugin_close_listen(me->plugin, home));
	PAIR_OK(fr_plugin_close_send(me->plugin, echo.send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, echo.recv));
	fr_plugin_close(me->plugin);
}

static void leave_at_once(struct pair_member *me)
{
	struct pair_echo echo;

	traffic(me, &echo);
	exit(0);
}

static void *exit_soon(void *arg)
{
	(void)arg;
	pair_nap_us(20000);
	exit(0);
}

static void leave_by_another(struct pair_member *me)
{
	struct pair_echo echo;
	pthread_t thread;

	traffic(me, &echo);
	PAIR_CHECK(pthread_create(&thread, NULL, exit_soon, NULL) == 0,
		   "no thread");
	for (;;) {
		/* Refused once the plugin has ended. */
		(void)pair_echo_ask(me, &echo);
	}
}

/* No comm is there yet, so all can be closed. */
static void leave_connecting(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	void *comm = NULL;

	pair_open(me);
	pair_get(me, 1, handle, sizeof(handle));
	for (unsigned i = 0; i < 200; i++) {
		PAIR_OK(fr_plugin_connect(me->plugin, me->ctx, 0, handle,
					  &comm));
		PAIR_CHECK(comm == NULL, "connected to nobody");
		pair_nap_us(100);
	}
	exit(0);
}

/* The other one of two, which closes all in order. */
static void stay(struct pair_member *me)
{
	const struct scene *scene = me->arg;
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct pair_echo echo;
	void *listen;

	pair_open(me);
	if (scene->leave == leave_connecting) {
		listen = pair_listen(me, handle);
		pair_put(me, 0, handle, sizeof(handle));
		while (!pair_told(me, 0)) {
			pair_nap_us(1000);
		}
		PAIR_OK(fr_plugin_close_listen(me->plugin, listen));
	} else {
		pair_expect("is lost");
		pair_expect("closed its ");
		pair_expect("endpoints fenced");
		pair_echo_open(me, 0, &echo);
		while (!echo.ended && pair_echo_answer(me, &echo) == 0) {
		}
		if (echo.ended) {
			pair_hear(me, 0);
		}
		pair_echo_close(me, &echo);
	}
	pair_close(me);
}

/* -- a signal's handler -----------------------------------------------------
 */

static void exit_now(int sig)
{
	(void)sig;
	exit(0);
}

/* Before the call in which it is to come. */
static void arm(struct pair_member *me, enum step step)
{
	const struct scene *scene = me->arg;
	char path[64], spec[128];

	log_path(0, path, sizeof(path));
	if (scene->step == step) {
		pair_at(me, scene->name);
		(void)snprintf(spec, sizeof(spec), "log=%s;raise=%s:1", path,
			       scene->kind);
		PAIR_CHECK(shim->set(spec) == 0, "%s", spec);
	}
}

/* One that nobody accepts, and that keeps the endpoints open to the end. */
static void connect_on(struct pair_member *me, uint8_t *handle)
{
	void *comm = NULL;

	PAIR_OK(fr_plugin_connect(me->plugin, me->ctx, 0, handle, &comm));
	PAIR_CHECK(comm == NULL, "connected to nobody");
}

static void live(struct pair_member *me)
{
	const struct scene *scene = me->arg;
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct pair_buf out, in;
	void *send, *recv;

	arm(me, LISTEN);
	home = pair_listen(me, handle);
	arm(me, CONNECT);
	if (scene->step != CLOSE) {
		connect_on(me, handle);
	}
	life_join_self(me, &send, &recv);
	arm(me, REG);
	pair_buf_open(me, send, BYTES, &out);
	pair_buf_open(me, recv, BYTES, &in);
	arm(me, PASS);
	for (unsigned i = 0; i < ROUNDS; i++) {
		life_pass(me, &out, &in, i % 2 == 0 ? BYTES : 100, i);
	}
	arm(me, DEREG);
	pair_buf_close(me, &in);
	pair_buf_close(me, &out);
	PAIR_OK(fr_plugin_close_send(me->plugin, send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, recv));
	arm(me, CLOSE);
	PAIR_OK(fr_plugin_close_listen(me->plugin, home));
}

static void leave_by_signal(struct pair_member *me)
{
	PAIR_CHECK(signal(SIGTERM, exit_now) != SIG_ERR, "no handler");
	arm(me, INIT);
	pair_open(me);
	live(me);
	arm(me, FINALIZE);
	pair_close(me);
	PAIR_FAIL("no signal came");
}

/* -- all --------------------------------------------------------------------
 */

static void run(struct pair_member *me)
{
	const struct scene *scene = me->arg;

	pair_at(me, scene->name);
	if (me->index == 0) {
		scene->leave(me);
	} else {
		stay(me);
	}
}

static const struct scene scenes[] = {
	{"closed in order", leave_in_order, 2, true, NULL, INIT},
	{"closed as it was opened", leave_backwards, 2, true, NULL, INIT},
	{"exit", leave_at_once, 2, false, NULL, INIT},
	{"exit by another thread", leave_by_another, 2, false, NULL, INIT},
	{"exit with a connect", leave_connecting, 2, true, NULL, INIT},
	{"signal in test", leave_by_signal, 1, false, "read", PASS},
	{"signal in a close", leave_by_signal, 1, false, "close", CLOSE},
	/* once: */
	{"signal in init", leave_by_signal, 1, false, "getinfo", INIT},
	{"signal in listen", leave_by_signal, 1, false, "ep", LISTEN},
	{"signal in connect", leave_by_signal, 1, false, "insert", CONNECT},
	{"signal in regMr", leave_by_signal, 1, false, "reg", REG},
	{"signal in a post", leave_by_signal, 1, false, "send+write", PASS},
	{"signal in deregMr", leave_by_signal, 1, false, "close", DEREG},
	{"signal in finalize", leave_by_signal, 1, false, "close", FINALIZE},
};

/* Of each member, in the parent. A peer whose other side just left may have to
 * abandon its endpoints, where closing them is not safe then. */
static void look(const struct scene *scene)
{
	struct trail trail;
	char path[64];

	for (unsigned i = 0; i < scene->members; i++) {
		log_path(i, path, sizeof(path));
		if (scene->whole) {
			trail_ends(path);
		} else if (scene->step != INIT || scene->kind == NULL) {
			trail_read(path, NULL, &trail);
			PAIR_CHECK(trail.opened >= 3, "only %u objects",
				   trail.opened);
		}
		unlink(path);
	}
}

static void over(const char *provider, unsigned nth)
{
	/* What the plugin does with its own locks is the same for all. */
	size_t cnt = FR_ARRAY_LEN(scenes) - (nth == 0 ? 0 : ONCE);

	for (size_t i = 0; i < cnt; i++) {
		const struct pair_case pc = {
			.name = scenes[i].name,
			.provider = provider,
			.rails = 1 + nth % 2,
			.members = scenes[i].members,
			.limit_s = 20,
			.run = run,
			.env = set_env,
			.arg = &scenes[i],
			.plugin_late = true,
		};

		pair_run(&pc);
		look(&scenes[i]);
	}
}

int main(int argc, char **argv)
{
	family = getpid();
	pair_main(argc, argv, "the order of closing", 10);
	pair_all_providers(over);
	return pair_end();
}
