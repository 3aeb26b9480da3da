/*
 * Rings of 3 and 5 processes with one thread each: everybody sends to the next
 * one, then receives, then tests both, and a message is a thousand times what a
 * socket holds. Somebody whose calls waited for the socket would wait for ever.
 * And no call takes long, whatever is under way.
 */
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "functional/pair.h"

#define MTU 1500
#define CALL_MS 10u

struct ring {
	size_t bytes;
	const char *buffers; /* of each socket: least, first and most bytes */
};

/* The second has the least that a kernel gives, and is slow. */
static const struct ring large = {64u << 20, "65536 65536 65536"};
static const struct ring least = {4u << 20, "4096 4096 4096"};

/* -- a loopback interface of our own, with small buffers --------------------*/

static bool own; /* the namespace */

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0) {
		pair_say("FAILED: cannot write %s", path);
		exit(1);
	}
}

/* Members inherit it. Without root the buffers are as large as ever. */
static void own_network(void)
{
	struct ifreq ifr = {.ifr_name = "lo"};
	int fd;

	if (unshare(CLONE_NEWNET) != 0) {
		pair_say("  no namespace of its own: sockets as they are");
		return;
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	ifr.ifr_mtu = MTU;
	if (fd < 0 || ioctl(fd, SIOCSIFMTU, &ifr) != 0) {
		pair_say("FAILED: cannot set the MTU of lo");
		exit(1);
	}
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) != 0) {
		pair_say("FAILED: cannot bring lo up");
		exit(1);
	}
	close(fd);
	own = true;
}

static void set_buffers(const struct ring *ring)
{
	if (own) {
		put("/proc/sys/net/ipv4/tcp_rmem", ring->buffers);
		put("/proc/sys/net/ipv4/tcp_wmem", ring->buffers);
	}
}

/* -- what a call takes --------------------------------------------------------
 * Waiting for a processor does not count: the machine has other things to do.
 * Nor does what a hypervisor takes from under us, which nobody here can see: a
 * call that only works is given ten times as long as one that blocks.
 */

#define WORKS_TIMES 10u

struct watch {
	int fd;
	uint64_t began_ns, waited_ns;
	long blocked; /* times that this thread gave up its processor */
	uint64_t worst_ns;
	const char *worst;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* How long this thread was ready to run, and did not. */
static uint64_t waited_ns(const struct watch *watch)
{
	unsigned long long run = 0, waited = 0;
	char text[96];
	ssize_t got =
		watch->fd < 0 ? 0 : pread(watch->fd, text, sizeof(text) - 1, 0);

	if (got > 0) {
		text[got] = '\0';
		(void)sscanf(text, "%llu %llu", &run, &waited);
	}
	return waited;
}

static long times_blocked(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

static void call_begins(struct watch *watch)
{
	watch->blocked = times_blocked();
	watch->waited_ns = waited_ns(watch);
	watch->began_ns = now_ns();
}

static void call_ends(struct watch *watch, const char *what)
{
	uint64_t took = now_ns() - watch->began_ns;
	uint64_t waited;

	if (took <= watch->worst_ns) {
		return;
	}
	waited = waited_ns(watch) - watch->waited_ns;
	took -= took < waited ? took : waited;
	if (times_blocked() == watch->blocked) {
		took /= WORKS_TIMES;
	}
	if (took > watch->worst_ns) {
		watch->worst_ns = took;
		watch->worst = what;
	}
}

/* -- the ring
 * -----------------------------------------------------------------*/

static void ring_step(struct pair_member *me, struct watch *watch,
		      const struct pair_buf *out, const struct pair_buf *in,
		      void **req, bool *done)
{
	const struct ring *ring = me->arg;
	int size = -1;

	call_begins(watch);
	if (req[0] == NULL && !done[0]) {
		PAIR_OK(pair_isend(me, out, ring->bytes, &req[0]));
		call_ends(watch, "isend");
	} else if (!done[0]) {
		done[0] = pair_test(me, req[0], NULL);
		call_ends(watch, "test of a send");
	}
	call_begins(watch);
	if (req[1] == NULL) {
		PAIR_OK(pair_irecv(me, in, ring->bytes, &req[1]));
		call_ends(watch, "irecv");
	} else if (!done[1]) {
		done[1] = pair_test(me, req[1], &size);
		call_ends(watch, "test of a receive");
		PAIR_CHECK(!done[1] || size == (int)ring->bytes, "size %d",
			   size);
	}
}

static void run(struct pair_member *me)
{
	unsigned next = (me->index + 1) % me->cnt;
	unsigned prev = (me->index + me->cnt - 1) % me->cnt;
	struct watch watch = {.worst = "none"};
	void *send = NULL, *recv = NULL, *req[2] = {NULL, NULL};
	bool done[2] = {false, false};
	const struct ring *ring = me->arg;
	struct pair_buf out, in;

	watch.fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (me->index == 0) {
		send = pair_connect(me, next);
		recv = pair_accept(me, prev);
	} else {
		recv = pair_accept(me, prev);
		send = pair_connect(me, next);
	}
	pair_buf_open(me, send, ring->bytes, &out);
	pair_buf_open(me, recv, ring->bytes, &in);
	pair_fill(out.mem, ring->bytes, me->index);
	pair_tell(me, next);
	pair_tell(me, prev);
	pair_hear(me, next);
	pair_hear(me, prev);
	pair_at(me, "in the ring");
	while (!done[0] || !done[1]) {
		ring_step(me, &watch, &out, &in, req, done);
	}
	PAIR_CHECK(pair_is_filled(in.mem, ring->bytes, prev), "wrong data");
	pair_say("    member %u: the longest call took %.1f ms (%s)", me->index,
		 (double)watch.worst_ns / 1e6, watch.worst);
	PAIR_CHECK(watch.worst_ns <= (uint64_t)pair_stretch(CALL_MS) * 1000000,
		   "a call took %.1f ms", (double)watch.worst_ns / 1e6);
	if (watch.fd >= 0) {
		close(watch.fd);
	}
	pair_tell(me, prev);
	pair_hear(me, next);
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	PAIR_OK(fr_plugin_close_send(me->plugin, send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, recv));
}

static void run_provider(const char *provider, unsigned nth)
{
	struct pair_case pc = {
		.name = "a ring of large messages",
		.provider = provider,
		.rails = 2,
		.members = 3,
		.limit_s = 60,
		.run = run,
		.arg = &large,
	};

	set_buffers(&large);
	pair_run(&pc);
	if (nth == 0) {
		pc.name = "a ring over the least of sockets";
		pc.rails = 1;
		pc.members = 5;
		pc.arg = &least;
		set_buffers(&least);
		pair_run(&pc);
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "rings over small sockets", 20);
	own_network();
	pair_each_provider(run_provider);
	return pair_end();
}
