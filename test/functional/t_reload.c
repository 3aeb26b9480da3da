/*
 * The plugin is loaded, used, unloaded and loaded again, as hosts do that
 * try plugins or make communicators one after the other. Nothing of it stays:
 * no descriptor, no thread, no memory, no signal handler. A failing init leaves
 * the next one a clean start, which reads the environment anew.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/life.h"

#define LOADS 100
#define INITS 100
#define WARM 5 /* the libraries below have their own one-time costs */
#define BYTES (1u << 20)
/* Providers keep a few KiB for good at each load. */
#define SLACK_KIB 2048

static const int signals[] = {SIGSEGV, SIGINT, SIGTERM,
			      SIGABRT, SIGBUS, SIGILL};

static void handler_a(int sig)
{
	(void)sig;
}

static void handler_b(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
}

/* The default, a plain handler and one with flags and a mask, in turn. */
static void install(void)
{
	for (size_t i = 0; i < FR_ARRAY_LEN(signals); i++) {
		struct sigaction act = {.sa_handler = SIG_DFL};

		if (i % 3 == 1) {
			act.sa_handler = handler_a;
		} else if (i % 3 == 2) {
			act.sa_sigaction = handler_b;
			act.sa_flags = SA_SIGINFO | SA_RESTART;
			sigaddset(&act.sa_mask, SIGUSR1);
		}
		PAIR_CHECK(sigaction(signals[i], &act, NULL) == 0, "sigaction");
	}
}

static void check_handlers(const char *when)
{
	for (size_t i = 0; i < FR_ARRAY_LEN(signals); i++) {
		struct sigaction act;

		PAIR_CHECK(sigaction(signals[i], NULL, &act) == 0, "sigaction");
		if (i % 3 == 2) {
			PAIR_CHECK(act.sa_sigaction == handler_b &&
					   (act.sa_flags & SA_SIGINFO) != 0 &&
					   (act.sa_flags & SA_RESTART) != 0 &&
					   sigismember(&act.sa_mask, SIGUSR1),
				   "the handler of signal %d %s", signals[i],
				   when);
		} else {
			PAIR_CHECK(act.sa_handler ==
					   (i % 3 == 1 ? handler_a : SIG_DFL),
				   "the handler of signal %d %s", signals[i],
				   when);
		}
	}
}

static void run_loads(struct pair_member *me)
{
	struct life_held before, warm = {0}, after;

	install();
	life_look(&before);
	for (unsigned i = 0; i < LOADS; i++) {
		pair_at(me, "loading");
		pair_open(me);
		check_handlers("is another one after init");
		pair_at(me, "using");
		life_use(me, i);
		check_handlers("is another one after use");
		pair_at(me, "unloading");
		pair_close(me);
		check_handlers("is another one after unload");
		if (i == WARM) {
			life_look(&warm);
			PAIR_CHECK(warm.threads == before.threads,
				   "a thread stays after unload");
		}
		if (i > WARM) {
			life_flat(&warm, SLACK_KIB, "unloaded");
		}
	}
	life_look(&after);
	pair_say("    %u descriptors, %lu KiB after load %u, %lu KiB after "
		 "load %u",
		 after.fds, warm.used_kib, WARM, after.used_kib, LOADS - 1);
}

/* Host programs that keep the library make communicators one after the other:
 * everything of the last one is given back before the next. */
static void run_inits(struct pair_member *me)
{
	struct life_held warm = {0}, after;

	pair_open(me);
	for (unsigned i = 0; i < INITS; i++) {
		int ret;

		pair_at(me, "using");
		life_use(me, i);
		pair_at(me, "finalizing");
		PAIR_CHECK(fr_plugin_finalize(me->plugin, me->ctx) == 0,
			   "finalize");
		if (i == WARM) {
			life_look(&warm);
		}
		if (i > WARM) {
			life_flat(&warm, SLACK_KIB, "finalized");
		}
		pair_at(me, "initialising");
		ret = fr_plugin_init(me->plugin, 1, -1, &me->ctx);
		PAIR_CHECK(ret == 0, "init: %s", fr_plugin_result_text(ret));
	}
	life_look(&after);
	pair_say("    %u descriptors, %lu KiB after init %u, %lu KiB after "
		 "init %u",
		 after.fds, warm.used_kib, WARM, after.used_kib, INITS - 1);
	pair_close(me);
}

/* Two communicators: the first one's end is not the second one's. */
static void run_twice(struct pair_member *me)
{
	void *first, *second = NULL;
	struct pair_buf out, in;
	void *send, *recv;
	int ret;

	pair_open(me);
	first = me->ctx;
	ret = fr_plugin_init(me->plugin, 2, -1, &second);
	PAIR_CHECK(ret == 0, "a second init: %s", fr_plugin_result_text(ret));
	life_join_self(me, &send, &recv);
	pair_buf_open(me, send, BYTES, &out);
	pair_buf_open(me, recv, BYTES, &in);
	life_pass(me, &out, &in, BYTES, 1);
	PAIR_CHECK(fr_plugin_finalize(me->plugin, first) == 0, "finalize");
	life_pass(me, &out, &in, BYTES, 2);
	me->ctx = second;
	life_use(me, 3);
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	PAIR_CHECK(fr_plugin_close_send(me->plugin, send) == 0, "closeSend");
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, recv) == 0, "closeRecv");
	pair_close(me);
}

static void init_must_fail(struct pair_member *me, const char *name,
			   const char *value)
{
	struct life_held before;
	void *ctx = NULL;
	int ret, devices = -1;

	life_look(&before);
	setenv(name, value, 1);
	ret = fr_plugin_init(me->plugin, 1, -1, &ctx);
	PAIR_CHECK(ret != 0 && ctx == NULL, "init with %s=%s works", name,
		   value);
	PAIR_CHECK(pair_logged(name) != 0, "no line names %s", name);
	PAIR_CHECK(fr_plugin_devices(me->plugin, &devices) != 0 || devices == 0,
		   "devices without an init");
	life_flat(&before, SLACK_KIB, "a failed init");
	unsetenv(name);
}

static void run_failing(struct pair_member *me)
{
	int ret;

	install();
	pair_open(me);
	life_use(me, 0);
	PAIR_CHECK(fr_plugin_finalize(me->plugin, me->ctx) == 0, "finalize");
	/* The one that fails is told of as a warning, which is what we want. */
	pair_expect("OFI_NCCL_CQ_READ_COUNT");
	pair_expect("OFI_NCCL_SEND_COMPLETION");
	pair_expect("called before init");
	init_must_fail(me, "OFI_NCCL_CQ_READ_COUNT", "many");
	init_must_fail(me, "OFI_NCCL_SEND_COMPLETION", "never");
	check_handlers("is another one after a failed init");

	/* The environment is read at each first init. */
	setenv("OFI_NCCL_FORCE_NUM_RAILS", "3", 1);
	ret = fr_plugin_init(me->plugin, 1, -1, &me->ctx);
	PAIR_CHECK(ret == 0, "a good init: %s", fr_plugin_result_text(ret));
	PAIR_CHECK(pair_logged("3 rails") != 0, "3 rails were asked for");
	life_use(me, 1);
	pair_close(me);
}

/* Ends without a word, comms open: the destructor's work. */
static void run_untidy(struct pair_member *me)
{
	struct life_held before, after;
	struct pair_buf out, in;
	void *send, *recv;

	life_look(&before);
	pair_open(me);
	life_join_self(me, &send, &recv);
	pair_buf_open(me, send, BYTES, &out);
	pair_buf_open(me, recv, BYTES, &in);
	(void)pair_irecv_wait(me, &in, BYTES);
	fr_plugin_close(me->plugin);
	life_look(&after);
	PAIR_CHECK(after.threads == before.threads,
		   "a thread stays after unload");
	/* What open comms hold ends with the process: no leaks are sought. */
	_exit(0);
}

static void run_case(const char *provider, unsigned rails, const char *name,
		     void (*run)(struct pair_member *me))
{
	const struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = rails,
		.members = 1,
		.limit_s = 40,
		.run = run,
		.plugin_late = true,
		.unloads = true,
	};

	if (provider != NULL) {
		pair_spawn(&pc);
	}
}

static void run_all(const char *provider)
{
	run_case(provider, 2, "loaded again and again", run_loads);
	run_case(provider, 2, "initialised again and again", run_inits);
	run_case(provider, 2, "initialised twice", run_twice);
	run_case(provider, 2, "failing inits", run_failing);
	run_case(provider, 2, "unloaded with comms open", run_untidy);
}

int main(int argc, char **argv)
{
	const char *sanitizer = getenv("FR_SANITIZER");

	pair_main(argc, argv, "t_reload", 20);
	if (sanitizer != NULL && strcmp(sanitizer, "tsan") == 0) {
		pair_say("skipped: the thread sanitizer ends a process that "
			 "unloads a library named in its suppressions");
		return PAIR_SKIP;
	}
	life_each(run_all);
	return pair_end();
}
