/*
 * Messages between two processes that take turns, for cost_callgrind.sh: what
 * each of them does depends on nothing but the messages. Their clock is ours: a
 * turn takes a microsecond, and the messages what four rails of 10 Gbit/s need.
 *
 * Usage: cost_loop PLUGIN BYTES MESSAGES EMPTY. So many messages are sent, 8 of
 * them in flight; then the receiver tests so often one that does not come.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/netplugin.h"

#define WINDOW 8u
#define TURN_NS 1000u
#define BYTES_A_NS 5u
#define READ_NS 30u

static uint64_t clock_ns = 1000000000;

/* Ticks and measured rates would else depend on how slow the emulator is. The
 * plugin finds this one before libc's. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
							 struct timespec *ts)
{
	(void)id;
	clock_ns += READ_NS;
	ts->tv_sec = (time_t)(clock_ns / 1000000000);
	ts->tv_nsec = (long)(clock_ns % 1000000000);
	return 0;
}

struct side {
	struct fr_plugin *plugin;
	bool sends;
	int peer; /* socket */
	void *ctx;
	void *comm;
	uint8_t *mem;
	void *mhandle;
	size_t bytes;
	unsigned total, posted, done;
	unsigned peer_done;
	void *request[WINDOW];
};

static void log_line(int level, unsigned long flags, const char *file, int line,
		     const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static void log_line(int level, unsigned long flags, const char *file, int line,
		     const char *fmt, ...)
{
	va_list args;

	(void)flags;
	if (level != FR_PLUGIN_LOG_WARN) {
		return;
	}
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\n");
}

static void must(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "cost_loop: %s failed\n", what);
		_exit(1);
	}
}

/* The other side's turn, until it is ours again. Return: false: it is no more.
 */
static bool pass_turn(struct side *s)
{
	must(write(s->peer, &s->done, sizeof(s->done)) == sizeof(s->done),
	     "a turn");
	if (read(s->peer, &s->peer_done, sizeof(s->peer_done)) !=
	    sizeof(s->peer_done)) {
		return false;
	}
	clock_ns += TURN_NS;
	return true;
}

static void join(struct side *s)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	ssize_t room = sizeof(handle);
	void *listen = NULL;
	int ret = 0;

	if (s->sends) {
		must(read(s->peer, handle, sizeof(handle)) == room, "a handle");
	} else {
		must(fr_plugin_listen(s->plugin, s->ctx, 0, handle, &listen) ==
			     0,
		     "listen");
		must(write(s->peer, handle, sizeof(handle)) == room,
		     "a handle");
	}
	while (s->comm == NULL) {
		ret = s->sends ? fr_plugin_connect(s->plugin, s->ctx, 0, handle,
						   &s->comm)
			       : fr_plugin_accept(s->plugin, listen, &s->comm);
		must(ret == 0, "connect or accept");
	}
	if (listen != NULL) {
		must(fr_plugin_close_listen(s->plugin, listen) == 0, "close");
	}
	s->mem = mmap(NULL, s->bytes * WINDOW, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(s->mem != MAP_FAILED, "mmap");
	must(fr_plugin_reg_mr(s->plugin, s->comm, s->mem, s->bytes * WINDOW,
			      FR_PLUGIN_PTR_HOST, &s->mhandle) == 0,
	     "regMr");
}

static bool post(struct side *s)
{
	unsigned at = s->posted % WINDOW;
	void *data = s->mem + s->bytes * at;
	void **request = &s->request[at];
	int tag = 0;

	must((s->sends
		      ? fr_plugin_isend(s->plugin, s->comm, data, s->bytes, tag,
					s->mhandle, request)
		      : fr_plugin_irecv(s->plugin, s->comm, 1, &data, &s->bytes,
					&tag, &s->mhandle, request)) == 0,
	     "isend or irecv");
	s->posted += *request != NULL;
	return *request != NULL;
}

static bool test(struct side *s)
{
	int done = 0, size = 0;

	must(fr_plugin_test(s->plugin, s->request[s->done % WINDOW], &done,
			    &size) == 0,
	     "test");
	must(done == 0 || size == (int)s->bytes, "a message");
	if (done != 0) {
		s->done++;
		clock_ns += s->bytes / BYTES_A_NS;
	}
	return done != 0;
}

/* A short send is done before it has arrived: who sends must not run ahead. */
static bool may_post(const struct side *s)
{
	unsigned done =
		s->sends && s->peer_done < s->done ? s->peer_done : s->done;

	return s->posted != s->total && s->posted - done < WINDOW;
}

/* What is counted, and empty_turn() below. */
static __attribute__((noinline)) void turn(struct side *s)
{
	do {
		while (may_post(s) && post(s)) {
		}
	} while (s->done != s->posted && test(s));
}

static void start(struct side *s)
{
	must(fr_plugin_init(s->plugin, 1, -1, &s->ctx) == 0, "init");
	join(s);
}

/* Until the receiver is no more. */
static void run_sender(struct side *s)
{
	start(s);
	must(read(s->peer, &s->peer_done, sizeof(s->peer_done)) ==
		     sizeof(s->peer_done),
	     "the first turn");
	do {
		turn(s);
	} while (pass_turn(s));
}

/* So many tests of a message that does not come. */
static __attribute__((noinline)) void empty_turn(struct side *s, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		must(!test(s), "an empty test");
	}
}

static void run_receiver(struct side *s, unsigned empty)
{
	start(s);
	while (s->done != s->total || s->peer_done != s->total) {
		turn(s);
		must(pass_turn(s), "the sender");
	}
	s->total++;
	must(post(s), "irecv");
	empty_turn(s, empty);
}

/* Nothing is taken down: that costs the same, however many they were. */
int main(int argc, char **argv)
{
	struct side side = {.sends = false};
	int pair[2];
	pid_t child;

	if (argc != 5) {
		fprintf(stderr,
			"usage: cost_loop PLUGIN BYTES MESSAGES EMPTY\n");
		return 2;
	}
	side.bytes = strtoull(argv[2], NULL, 10);
	side.total = (unsigned)strtoul(argv[3], NULL, 10);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
	must(fr_plugin_open(argv[1], 0, log_line, &side.plugin) == 0,
	     "to open the plugin");
	child = fork();
	must(child >= 0, "fork");
	side.sends = child == 0;
	side.peer = pair[side.sends];
	close(pair[!side.sends]);
	if (side.sends) {
		run_sender(&side);
	} else {
		run_receiver(&side, (unsigned)strtoul(argv[4], NULL, 10));
		close(side.peer);
		must(waitpid(child, NULL, 0) == child, "the sender");
	}
	_exit(0);
}
