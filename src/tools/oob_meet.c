#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "tools/oob.h"

#define MAGIC 0x66726f62u
#define MAX_RANKS 256

/* The first word of a connection: who calls, and for a run of which size. */
struct hello {
	uint32_t magic, rank, ranks;
};

static void set_nodelay(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static int open_listener(unsigned port)
{
	struct sockaddr_in6 addr = {.sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in addr4 = {.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port)};
	int on = 1, off = 0, fd, ret;

	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off,
				 sizeof(off));
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		ret = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
	} else { /* no IPv6 here */
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			return -errno;
		}
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		ret = bind(fd, (struct sockaddr *)&addr4, sizeof(addr4));
	}
	if (ret != 0 || listen(fd, MAX_RANKS) != 0) {
		ret = -errno;
		(void)close(fd);
		return ret;
	}
	return fd;
}

/* Waits for the first word of a caller; false: not one of this run. */
static bool greet(int fd, unsigned ranks, uint32_t *rank)
{
	struct timeval limit = {.tv_sec = 5};
	struct hello hello;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (recv(fd, &hello, sizeof(hello), MSG_WAITALL) !=
		    (ssize_t)sizeof(hello) ||
	    hello.magic != MAGIC || hello.ranks != ranks || hello.rank == 0 ||
	    hello.rank >= ranks) {
		return false;
	}
	limit.tv_sec = 0;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	set_nodelay(fd);
	*rank = hello.rank;
	return true;
}

static int accept_all(int listener, unsigned ranks, uint64_t deadline_ns,
		      int *fds)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	unsigned missing = ranks - 1;
	uint32_t rank;
	int fd;

	while (missing > 0) {
		if (fr_now_ns() > deadline_ns) {
			fr_error("rank 0: %u of %u ranks did not come", missing,
				 ranks - 1);
			return -ETIMEDOUT;
		}
		if (poll(&p, 1, 100) != 1) {
			continue;
		}
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0) {
			continue;
		}
		if (!greet(fd, ranks, &rank) || fds[rank] >= 0) {
			fr_warn("rank 0: a caller that is no rank of this run "
				"was sent away");
			(void)close(fd);
			continue;
		}
		fds[rank] = fd;
		missing--;
	}
	return 0;
}

static int call_once(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *a;
	int fd = -1;

	if (getaddrinfo(host, port, &hints, &list) != 0) {
		return -1;
	}
	for (a = list; a != NULL && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
			(void)close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	return fd;
}

static int call_master(unsigned rank, unsigned ranks, const char *host,
		       unsigned port, uint64_t deadline_ns, int *out)
{
	struct hello hello = {MAGIC, rank, ranks};
	struct timespec nap = {.tv_nsec = 100000000};
	char text[16];
	int fd;

	(void)snprintf(text, sizeof(text), "%u", port);
	for (;;) {
		fd = call_once(host, text);
		if (fd >= 0) {
			break;
		}
		if (fr_now_ns() > deadline_ns) {
			fr_error("rank %u: rank 0 cannot be reached at %s port "
				 "%u",
				 rank, host, port);
			return -ETIMEDOUT;
		}
		(void)nanosleep(&nap, NULL);
	}
	set_nodelay(fd);
	if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(hello)) {
		fr_error("rank %u: rank 0 at %s port %u hung up", rank, host,
			 port);
		(void)close(fd);
		return -ECONNRESET;
	}
	*out = fd;
	return 0;
}

int fr_oob_meet_wait(unsigned rank, unsigned ranks, const char *host,
		     unsigned port, unsigned timeout_s, struct fr_oob **out)
{
	uint64_t deadline_ns = fr_now_ns() + timeout_s * FR_NS_PER_S;
	int fds[MAX_RANKS], listener, ret;

	for (unsigned i = 0; i < MAX_RANKS; i++) {
		fds[i] = -1;
	}
	if (rank != 0) {
		ret = call_master(rank, ranks, host, port, deadline_ns, fds);
		return ret != 0 ? ret : fr_oob_create(rank, ranks, fds, out);
	}
	listener = open_listener(port);
	if (listener < 0) {
		fr_error("rank 0 cannot listen on port %u: %s", port,
			 strerror(-listener));
		return listener;
	}
	ret = accept_all(listener, ranks, deadline_ns, fds);
	(void)close(listener);
	if (ret == 0) {
		return fr_oob_create(rank, ranks, fds, out);
	}
	for (unsigned i = 0; i < ranks; i++) {
		if (fds[i] >= 0) {
			(void)close(fds[i]);
		}
	}
	return ret;
}
