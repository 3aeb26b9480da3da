/* Strangers at every port that the victim listens on: its knock ports and
 * those of libfabric. */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/hostile.h"
#include "wire/knock.h"

#define PORTS_MAX 64u
#define SILENT 64u /* at one knock port */
#define GUESTS 4u  /* that stay, at each port */
#define SWEEPS 20u
#define LISTENING 0x0a
#define IDLE_MS 1500u
#define TIDE_MS 50u /* from one sweep of all ports to the next */
#define TIDE_FOR_MS 1500u
#define CALM_FOR_MS 500u
#define TIDE_DELAY_MS 100u
#define IDLE_CPU_MS 300u /* on one core, beside the healthy peer's traffic */

struct sweep {
	uint16_t port[PORTS_MAX]; /* the knock ports first */
	unsigned cnt;
	unsigned knocks;
};

static bool has_inode(int pid, unsigned long inode)
{
	char path[64];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	PAIR_CHECK(dir != NULL, "%s: %s", path, strerror(errno));
	while (!found && (entry = readdir(dir)) != NULL) {
		char link[320], target[64] = "";

		(void)snprintf(link, sizeof(link), "%s/%s", path,
			       entry->d_name);
		if (readlink(link, target, sizeof(target) - 1) > 0) {
			unsigned long here;

			found = sscanf(target, "socket:[%lu]", &here) == 1 &&
				here == inode;
		}
	}
	closedir(dir);
	return found;
}

static void find_ports(int pid, struct sweep *sweep)
{
	FILE *file = fopen("/proc/net/tcp", "re");
	char line[256];

	PAIR_CHECK(file != NULL, "/proc/net/tcp: %s", strerror(errno));
	sweep->cnt = 0;
	while (fgets(line, sizeof(line), file) != NULL) {
		unsigned port, state;
		unsigned long inode;

		if (sscanf(line,
			   " %*d: %*x:%x %*x:%*x %x %*s %*s %*s %*s %*s %lu",
			   &port, &state, &inode) == 3 &&
		    state == LISTENING && has_inode(pid, inode)) {
			PAIR_CHECK(sweep->cnt < PORTS_MAX, "too many ports");
			sweep->port[sweep->cnt++] = (uint16_t)port;
		}
	}
	fclose(file);
}

static int dial(uint16_t port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	PAIR_CHECK(fd >= 0 &&
			   connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0,
		   "port %u: %s", port, strerror(errno));
	return fd;
}

/* Only a knock port says hello. */
static bool says_hello(uint16_t port)
{
	uint8_t hello[FR_KNOCK_HELLO_BYTES];
	struct pollfd pfd = {.fd = dial(port), .events = POLLIN};
	uint64_t id;
	bool hears;

	hears = poll(&pfd, 1, (int)pair_stretch(1000)) == 1 &&
		recv(pfd.fd, hello, sizeof(hello), MSG_WAITALL) ==
			(ssize_t)sizeof(hello) &&
		fr_knock_hello_decode(&id, hello, sizeof(hello)) == 0;
	close(pfd.fd);
	return hears;
}

static void sort_ports(struct sweep *sweep)
{
	sweep->knocks = 0;
	for (unsigned i = 0; i < sweep->cnt; i++) {
		uint16_t port = sweep->port[i];

		if (says_hello(port)) {
			sweep->port[i] = sweep->port[sweep->knocks];
			sweep->port[sweep->knocks++] = port;
		}
	}
}

static void say(int fd, const void *bytes, size_t cnt)
{
	/* It may have hung up already. */
	(void)!send(fd, bytes, cnt, MSG_NOSIGNAL);
}

static void reset(int fd)
{
	const struct linger now = {.l_onoff = 1};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

static void come_and_go(uint16_t port, unsigned how)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	uint8_t buf[4096];
	int fd = dial(port);

	for (size_t i = 0; i < sizeof(buf); i++) {
		buf[i] = (uint8_t)random();
	}
	switch (how) {
	case 0:
		break;
	case 1:
		say(fd, "\x00\x01\x02", 3);
		break;
	case 2:
		say(fd, http, sizeof(http) - 1);
		break;
	case 3:
		reset(fd);
		break;
	case 4:
		say(fd, buf, sizeof(buf));
		break;
	case 5: /* of a refusal, and then nothing */
		say(fd, "FRKR\1\0\310\0", 8);
		shutdown(fd, SHUT_WR);
		break;
	case 6:
		say(fd, buf, 200);
		reset(fd);
		break;
	default: /* a refusal of a listener that is none */
		memset(buf, 0, 16);
		memcpy(buf, "FRKR\1", 5);
		say(fd, buf, 16);
		break;
	}
	close(fd);
}

static void hold_open(struct pair_member *me, const struct sweep *sweep)
{
	int fd[SILENT + PORTS_MAX * GUESTS];
	struct hostile_answer answer;
	unsigned cnt = 0;

	for (unsigned i = 0; i < SILENT; i++) {
		fd[cnt++] = dial(sweep->port[0]);
	}
	for (unsigned i = 0; i < sweep->cnt * GUESTS; i++) {
		fd[cnt] = dial(sweep->port[i / GUESTS]);
		if (i % GUESTS == 1) {
			say(fd[cnt], "\4", 1);
		}
		cnt++;
	}
	answer = hostile_ask(me, HOSTILE_IDLE, IDLE_MS);
	PAIR_CHECK(answer.value <= pair_stretch(IDLE_CPU_MS),
		   "idle with silent guests: %u ms of CPU", answer.value);
	pair_say("    %u ports, %u silent guests: %u ms of CPU in %u ms",
		 sweep->cnt, cnt, answer.value, IDLE_MS);
	for (unsigned i = 0; i < cnt; i++) {
		close(fd[i]);
	}
}

static void sweep_ports(const struct sweep *sweep, unsigned from, unsigned to)
{
	for (unsigned k = 0; k < SWEEPS; k++) {
		for (unsigned i = from; i < to; i++) {
			come_and_go(sweep->port[i], k % 8);
		}
	}
}

/* Sweeps that come again and again, as connections are made. */
struct tide {
	const struct sweep *sweep; /* NULL: none come */
	uint64_t next_ms;
	unsigned sweeps;
};

static void tide_step(struct tide *tide)
{
	if (tide->sweep == NULL || pair_now_ms() < tide->next_ms) {
		return;
	}
	tide->next_ms = pair_now_ms() + TIDE_MS;
	for (unsigned i = 0; i < tide->sweep->cnt; i++) {
		come_and_go(tide->sweep->port[i], (tide->sweeps + i) % 8);
	}
	tide->sweeps++;
}

/* A handle still leads to a connection. */
static void good_connect(struct pair_member *me, const uint8_t *good,
			 struct tide *tide)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	const struct hostile_word word = {HOSTILE_ACCEPT, 0};
	struct hostile_answer answer;
	void *comm = NULL;

	memcpy(handle, good, sizeof(handle));
	pair_put(me, VICTIM, &word, sizeof(word));
	while (comm == NULL) {
		PAIR_OK(fr_plugin_connect(me->plugin, me->ctx, 0, handle,
					  &comm));
		tide_step(tide);
		pair_nap_us(50);
	}
	pair_get(me, VICTIM, &answer, sizeof(answer));
	PAIR_CHECK(answer.result == 0, "accept after the sweep");
	PAIR_CHECK(fr_plugin_close_send(me->plugin, comm) == 0, "closeSend");
	(void)hostile_ask(me, HOSTILE_DROP, 0);
}

/* Return: ms a connection, in which it is made, accepted and closed. */
static unsigned connects(struct pair_member *me, const uint8_t *good,
			 struct tide *tide, unsigned for_ms)
{
	uint64_t began = pair_now_ms(), took;
	unsigned cnt = 0;

	do {
		good_connect(me, good, tide);
		cnt++;
		took = pair_now_ms() - began;
	} while (took < for_ms);
	return (unsigned)(took / cnt);
}

/* Return: how often each port was visited. */
static unsigned ride_tides(struct pair_member *me, const uint8_t *good,
			   const struct sweep *sweep)
{
	struct tide calm = {.sweep = NULL}, tide = {.sweep = sweep};
	struct hostile_answer begin, end;
	unsigned before, during;

	before = connects(me, good, &calm, CALM_FOR_MS);
	begin = hostile_ask(me, HOSTILE_LOOK, 0);
	during = connects(me, good, &tide, TIDE_FOR_MS);
	end = hostile_ask(me, HOSTILE_LOOK, 0);
	pair_say("    %u sweeps: %u ms a connection, %u without; %u rounds of "
		 "traffic",
		 tide.sweeps, during, before,
		 (unsigned)(end.rounds - begin.rounds));
	PAIR_CHECK(during <= before + pair_stretch(TIDE_DELAY_MS),
		   "a connection takes %u ms under sweeps, %u without", during,
		   before);
	PAIR_CHECK(end.rounds - begin.rounds > tide.sweeps,
		   "%u rounds of traffic beside %u sweeps",
		   (unsigned)(end.rounds - begin.rounds), tide.sweeps);
	return tide.sweeps;
}

void hostile_port_attack(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct hostile_answer begin, end;
	struct tide calm = {.sweep = NULL};
	struct sweep sweep;
	unsigned guests, tides;

	hostile_open(me);
	(void)hostile_listen(me, handle);
	good_connect(me, handle, &calm);
	begin = hostile_ask(me, HOSTILE_LOOK, 0);
	find_ports(begin.pid, &sweep);
	sort_ports(&sweep);
	PAIR_CHECK(sweep.knocks != 0 && sweep.cnt > sweep.knocks,
		   "%u ports, %u of them to knock at", sweep.cnt, sweep.knocks);
	begin = hostile_ask(me, HOSTILE_LOOK, 0);
	pair_at(me, "knock ports");
	sweep_ports(&sweep, 0, sweep.knocks);
	(void)hostile_settle(me, begin.value);
	pair_at(me, "all ports");
	sweep_ports(&sweep, sweep.knocks, sweep.cnt);
	pair_at(me, "a sweep of all ports every 50 ms");
	tides = ride_tides(me, handle, &sweep);
	pair_at(me, "silent guests at all ports");
	hold_open(me, &sweep);
	good_connect(me, handle, &calm);
	/* libfabric's net keeps some whose guest left before it said anything.
	 */
	guests = (sweep.cnt - sweep.knocks) * (SWEEPS + GUESTS + tides);
	end = hostile_settle(me, begin.value + guests);
	PAIR_CHECK(end.lines - begin.lines <= 12, "%u lines",
		   end.lines - begin.lines);
	pair_close(me);
}
