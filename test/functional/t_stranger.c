/*
 * A process dies, and a stranger gets the port at which it answered knocks:
 * one who never says a word, as a process that is stopped, or who hangs up at
 * once. Its peers have an error all the same, those that only wait for a
 * message and those that connect to it; while a process that is really stopped
 * is waited for.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/pair.h"
#include "wire/handle.h"

#define WAITS 0u
#define ENDS 1u
#define OTHER 2u /* the stranger, or who stops and continues the other one */
#define BYTES 5000u
#define ERROR_MS 15000u
#define STOPPED_US 6500000u /* longer than any doubt */

enum kind { MUTE, HANGS_UP, STOPPED };

static const struct scene {
	const char *name;
	enum kind kind;
} scenes[] = {
	{"a stranger that is silent", MUTE},
	{"a stranger that hangs up", HANGS_UP},
	{"a process that is stopped", STOPPED},
};

/* -- the one that ends ------------------------------------------------------*/

static void run_ends(struct pair_member *me, const struct scene *scene)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	const pid_t pid = getpid();
	struct pair_buf buf;
	void *comm;

	comm = pair_connect(me, WAITS);
	(void)pair_listen(me, handle);
	pair_put(me, WAITS, handle, sizeof(handle));
	pair_put(me, OTHER, handle, sizeof(handle));
	pair_put(me, OTHER, &pid, sizeof(pid));
	pair_hear(me, WAITS);
	if (scene->kind != STOPPED) {
		pair_die();
	}
	pair_hear(me, OTHER); /* it was stopped before that */
	pair_buf_open(me, comm, BYTES, &buf);
	pair_fill(buf.mem, BYTES, 1);
	pair_send(me, &buf, BYTES);
	pair_buf_close(me, &buf);
	PAIR_OK(fr_plugin_close_send(me->plugin, comm));
}

/* -- the other one ----------------------------------------------------------*/

/* The port of the one that has died, as soon as it is free. */
static int take_port(const uint8_t *handle)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct fr_handle h;
	const char *why;

	PAIR_CHECK(fr_handle_decode(&h, handle, FR_PLUGIN_HANDLE_BYTES, &why) ==
			   0,
		   "handle: %s", why);
	at.sin_port = htons(h.knock_port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	while (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
		PAIR_CHECK(errno == EADDRINUSE, "bind: %s", strerror(errno));
		pair_nap_us(1000);
	}
	PAIR_CHECK(listen(fd, 64) == 0, "listen: %s", strerror(errno));
	return fd;
}

static void be_strange(struct pair_member *me, const uint8_t *handle,
		       enum kind kind)
{
	int fd = take_port(handle);
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	unsigned guests = 0;

	while (!pair_told(me, WAITS)) {
		int guest;

		if (poll(&pfd, 1, 10) != 1) {
			continue;
		}
		guest = accept(fd, NULL, NULL);
		guests += guest >= 0;
		if (kind == HANGS_UP) {
			close(guest);
		}
	}
	PAIR_CHECK(guests != 0, "nobody has asked the stranger");
	close(fd);
}

static void run_other(struct pair_member *me, const struct scene *scene)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	pid_t pid;

	pair_get(me, ENDS, handle, sizeof(handle));
	pair_get(me, ENDS, &pid, sizeof(pid));
	pair_meet(me, WAITS);
	if (scene->kind != STOPPED) {
		be_strange(me, handle, scene->kind);
	} else {
		PAIR_CHECK(kill(pid, SIGSTOP) == 0, "SIGSTOP");
		pair_nap_us(STOPPED_US);
		PAIR_CHECK(kill(pid, SIGCONT) == 0, "SIGCONT");
		pair_tell(me, ENDS);
	}
	pair_hear(me, WAITS);
}

/* -- the one that waits -----------------------------------------------------*/

static void connect_in_vain(struct pair_member *me, uint8_t *handle)
{
	uint64_t end = pair_now_ms() + pair_stretch(ERROR_MS);
	void *comm = NULL;
	int ret = 0;

	while (ret == 0 && pair_now_ms() < end) {
		ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle, &comm);
		PAIR_CHECK(comm == NULL, "connected to nobody");
		pair_nap_us(200);
	}
	PAIR_CHECK(ret == PAIR_REMOTE, "connect gave %s",
		   fr_plugin_result_text(ret));
}

static void run_waits(struct pair_member *me, const struct scene *scene)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	struct pair_buf buf;
	void *comm, *req;
	int ret;

	comm = pair_accept(me, ENDS);
	pair_get(me, ENDS, handle, sizeof(handle));
	pair_buf_open(me, comm, BYTES, &buf);
	req = pair_irecv_wait(me, &buf, BYTES);
	pair_meet(me, OTHER);
	pair_tell(me, ENDS);
	ret = pair_test_wait(me, req, ERROR_MS, NULL);
	if (scene->kind == STOPPED) {
		PAIR_CHECK(ret == 0 && pair_is_filled(buf.mem, BYTES, 1),
			   "the message of a process that was stopped: %d",
			   ret);
	} else {
		PAIR_CHECK(ret == PAIR_REMOTE, "a receive gave %s",
			   ret < 0 ? "nothing" : fr_plugin_result_text(ret));
		pair_at(me, "connecting to the dead");
		connect_in_vain(me, handle);
	}
	pair_at(me, "closing");
	pair_buf_close(me, &buf);
	PAIR_OK(fr_plugin_close_recv(me->plugin, comm));
	pair_tell(me, OTHER);
}

static void run(struct pair_member *me)
{
	const struct scene *scene = me->arg;

	pair_expect("is lost");
	pair_expect("is gone");
	pair_expect("endpoints fenced");
	if (me->index == WAITS) {
		run_waits(me, scene);
	} else if (me->index == ENDS) {
		run_ends(me, scene);
	} else {
		run_other(me, scene);
	}
}

int main(int argc, char **argv)
{
	static const char *const providers[] = {"net", "tcp;ofi_rxm",
						"sockets"};

	pair_main(argc, argv, "t_stranger", 15);
	for (unsigned i = 0; i < FR_ARRAY_LEN(providers); i++) {
		struct pair_case pc = {
			.provider = pair_provider(providers[i]),
			.rails = 1,
			.members = 3,
			.limit_s = 45,
			.run = run,
		};

		for (unsigned k = 0;
		     pc.provider != NULL && k < FR_ARRAY_LEN(scenes); k++) {
			pc.name = scenes[k].name;
			pc.arg = &scenes[k];
			pc.killed =
				scenes[k].kind == STOPPED ? 0 : FR_BIT(ENDS);
			pair_spawn(&pc);
		}
	}
	return pair_end();
}
