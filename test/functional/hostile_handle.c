/* Handles that are none, or lead to nobody. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "base/util.h"
#include "functional/hostile.h"
#include "wire/handle.h"

#define BAD_MAX 700u
#define TIMEOUT_MS 3000u /* OFI_NCCL_CONNECT_TIMEOUT of the attacker */
#define AT_ONCE_MS 1500u
#define TAIL_AT 80u /* the connecting side's own part */

enum fate {
	ANY,	/* an error, or a comm; never nothing for ever */
	ERROR,	/* an error, within the time limit */
	AT_ONCE /* an error, without a timeout */
};

struct bad {
	const char *what;
	unsigned at;
	enum fate fate;
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	void *comm;
	int ret;
	unsigned took_ms;
};

static struct bad bad[BAD_MAX];
static unsigned bad_cnt;

static struct bad *add(const char *what, unsigned at, enum fate fate,
		       const uint8_t *handle)
{
	struct bad *b = &bad[bad_cnt++];

	PAIR_CHECK(bad_cnt < BAD_MAX, "too many handles");
	b->what = what;
	b->at = at;
	b->fate = fate;
	memcpy(b->handle, handle, FR_PLUGIN_HANDLE_BYTES);
	return b;
}

static enum fate fate_of(const struct fr_handle *h, unsigned at)
{
	unsigned name = at - 16, names = h->name_cnt * h->names[0].len;

	if (at >= TAIL_AT) {
		return ANY; /* the plugin's own, and not its own yet */
	}
	if (at < 8) {
		return AT_ONCE; /* magic, version, counts, slot */
	}
	if (at < 16) {
		return AT_ONCE; /* a cookie that is no listener's: refused */
	}
	if (name < names) {
		/* Family; port and address lead elsewhere; padding is nothing.
		 */
		return name < 8 && h->name_cnt == 1 ? ERROR : ANY;
	}
	if (name < names + 2) {
		return ANY; /* the knock port: only asked when in doubt */
	}
	return AT_ONCE; /* provider, and what must be zero */
}

static void add_flip(const uint8_t *good, const struct fr_handle *h,
		     unsigned at, uint8_t mask)
{
	struct bad *b = add("flipped byte", at, fate_of(h, at), good);

	b->handle[at] ^= mask;
	if (at == 16 + h->name_cnt * h->names[0].len + 2 &&
	    b->handle[at] == 0) {
		b->fate = ANY; /* the provider: one that is not told */
	}
}

static void add_flips(const uint8_t *good, const struct fr_handle *h)
{
	for (unsigned at = 0; at < FR_PLUGIN_HANDLE_BYTES; at++) {
		add_flip(good, h, at, 0x01);
		add_flip(good, h, at, 0xff);
	}
	for (unsigned len = 0; len < 256; len += 17) {
		if (len != h->names[0].len) {
			add("name length", len, AT_ONCE, good)->handle[6] =
				(uint8_t)len;
		}
	}
}

static void add_nonsense(void)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};

	add("all zero", 0, AT_ONCE, handle);
	memset(handle, 0xff, sizeof(handle));
	add("all ones", 0, AT_ONCE, handle);
	for (unsigned i = 0; i < 16; i++) {
		PAIR_CHECK(fr_random(handle, sizeof(handle)) == 0, "random");
		if (i >= 8) {
			memcpy(handle, "FRNH\1\1\20\0", 8);
		}
		add("random bytes", i, i < 8 ? AT_ONCE : ERROR, handle);
	}
}

/* -- handles of what is no more ---------------------------------------------*/

/* Listens with a plugin of its own and dies. */
static void handle_of_the_dead(struct pair_member *me, uint8_t *handle)
{
	int two[2], status;
	pid_t pid;

	PAIR_CHECK(pipe(two) == 0, "pipe");
	pid = fork();
	if (pid == 0) {
		hostile_open(me);
		(void)pair_listen(me, handle);
		if (write(two[1], handle, FR_PLUGIN_HANDLE_BYTES) !=
		    FR_PLUGIN_HANDLE_BYTES) {
			_exit(1);
		}
		pair_die();
	}
	PAIR_CHECK(pid > 0 &&
			   read(two[0], handle, FR_PLUGIN_HANDLE_BYTES) ==
				   FR_PLUGIN_HANDLE_BYTES &&
			   waitpid(pid, &status, 0) == pid,
		   "a process that dies");
	close(two[0]);
	close(two[1]);
}

/* A plain listener on @port; -1: somebody has it already. */
static int squat(uint16_t port)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	PAIR_CHECK(fd >= 0, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    listen(fd, 64) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void add_the_dead(struct pair_member *me, int *squatter)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct fr_handle h;
	const char *why;
	uint16_t port;

	handle_of_the_dead(me, handle);
	add("a dead process", 0, ERROR, handle);

	handle_of_the_dead(me, handle);
	PAIR_CHECK(fr_handle_decode(&h, handle, sizeof(handle), &why) == 0,
		   "its handle");
	memcpy(&port, h.names[0].bytes + 2, sizeof(port));
	squatter[0] = squat(ntohs(port));
	squatter[1] = squat(h.knock_port);
	add("a dead process whose ports others have", 0, ERROR, handle);
}

/* -- trying them all at once ------------------------------------------------*/

static void step_all(struct pair_member *me, uint64_t began)
{
	for (unsigned i = 0; i < bad_cnt; i++) {
		struct bad *b = &bad[i];

		if (b->ret != 0 || b->comm != NULL) {
			continue;
		}
		b->ret = fr_plugin_connect(me->plugin, me->ctx, 0, b->handle,
					   &b->comm);
		b->took_ms = (unsigned)(pair_now_ms() - began);
	}
}

static void try_all(struct pair_member *me)
{
	uint64_t began = pair_now_ms();
	uint64_t end = began + pair_stretch(TIMEOUT_MS + 3000);
	unsigned left = bad_cnt, comms = 0, slowest = 0;

	while (left != 0 && pair_now_ms() < end) {
		step_all(me, began);
		left = 0;
		for (unsigned i = 0; i < bad_cnt; i++) {
			left += bad[i].ret == 0 && bad[i].comm == NULL;
		}
		pair_nap_us(200);
	}
	for (unsigned i = 0; i < bad_cnt; i++) {
		const struct bad *b = &bad[i];

		PAIR_CHECK(b->ret != 0 || b->comm != NULL,
			   "%s, %u: neither a comm nor an error", b->what,
			   b->at);
		PAIR_CHECK(b->ret != 0 || b->fate == ANY, "%s, %u: gave a comm",
			   b->what, b->at);
		PAIR_CHECK(b->fate != AT_ONCE ||
				   b->took_ms < pair_stretch(AT_ONCE_MS),
			   "%s, %u: its error took %u ms", b->what, b->at,
			   b->took_ms);
		comms += b->comm != NULL;
		slowest = FR_MAX(slowest, b->took_ms);
	}
	pair_say("    %u handles: %u led to a comm, the last error after %u ms",
		 bad_cnt, comms, slowest);
}

static void close_all(struct pair_member *me)
{
	for (unsigned i = 0; i < bad_cnt; i++) {
		if (bad[i].comm != NULL) {
			PAIR_CHECK(fr_plugin_close_send(me->plugin,
							bad[i].comm) == 0,
				   "closeSend");
		}
	}
}

static void one_handle_two_comms(struct pair_member *me, const uint8_t *good)
{
	uint8_t one[FR_PLUGIN_HANDLE_BYTES], two[FR_PLUGIN_HANDLE_BYTES];
	void *first = NULL, *second = NULL;
	int ret = 0;

	memcpy(one, good, sizeof(one));
	memcpy(two, good, sizeof(two));
	while (ret == 0 && (first == NULL || second == NULL)) {
		if (first == NULL) {
			ret = fr_plugin_connect(me->plugin, me->ctx, 0, one,
						&first);
		}
		if (ret == 0 && second == NULL) {
			ret = fr_plugin_connect(me->plugin, me->ctx, 0, two,
						&second);
		}
	}
	PAIR_CHECK(ret == 0 && first != second, "one handle, two comms: %d",
		   ret);
	PAIR_CHECK(fr_plugin_close_send(me->plugin, first) == 0 &&
			   fr_plugin_close_send(me->plugin, second) == 0,
		   "closeSend");
}

void hostile_handle_attack(struct pair_member *me)
{
	uint8_t good[FR_PLUGIN_HANDLE_BYTES] = {0};
	uint8_t closed[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct hostile_answer begin, end;
	struct fr_handle h;
	const char *why;
	int squatter[2];

	pair_at(me, "handles of the dead");
	add_the_dead(me, squatter);
	hostile_open(me);
	(void)hostile_listen(me, good);
	(void)hostile_ask(me, HOSTILE_UNLISTEN, hostile_listen(me, closed));
	PAIR_CHECK(fr_handle_decode(&h, good, sizeof(good), &why) == 0,
		   "the victim's handle");
	(void)hostile_ask(me, HOSTILE_SWALLOW, 1);
	one_handle_two_comms(me, good);
	begin = hostile_ask(me, HOSTILE_LOOK, 0);

	add_flips(good, &h);
	add_nonsense();
	add("a listener that was closed", 0, AT_ONCE, closed);
	pair_at(me, "bad handles");
	try_all(me);
	pair_at(me, "a good handle");
	one_handle_two_comms(me, good);
	close_all(me);
	end = hostile_ask(me, HOSTILE_SWALLOW, 0);
	PAIR_CHECK(end.value >= 4, "the victim accepted %u", end.value);
	/* libfabric keeps a few connections that it was asked for in vain. */
	(void)hostile_settle(me, begin.value + 8);
	close(squatter[0]);
	close(squatter[1]);
	pair_close(me);
}
