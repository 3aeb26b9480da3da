#include "fabric/cut.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

#define STUCK_MS 1000u
#define STUCK_TRIES 2u

union end {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	uint8_t bytes[sizeof(struct sockaddr_in6)];
};

/* Return: false: it is no address of TCP. */
static bool end_of_name(const struct fr_name *name, union end *end)
{
	memset(end, 0, sizeof(*end));
	memcpy(end->bytes, name->bytes,
	       name->len < sizeof(end->bytes) ? name->len : sizeof(end->bytes));
	return (end->any.sa_family == AF_INET &&
		name->len >= sizeof(end->in)) ||
	       (end->any.sa_family == AF_INET6 &&
		name->len >= sizeof(end->in6));
}

static bool same_host(const union end *a, const union end *b)
{
	if (a->any.sa_family != b->any.sa_family) {
		return false;
	}
	if (a->any.sa_family == AF_INET) {
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	}
	return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr,
		      sizeof(a->in6.sin6_addr)) == 0;
}

/* The port is at the same place in both versions. */
static bool same_port(const union end *a, const union end *b)
{
	return a->in.sin_port == b->in.sin_port;
}

static bool is_between(int fd, const union end *peer, const union end *own)
{
	union end there, here;
	socklen_t there_len = sizeof(there), here_len = sizeof(here);

	memset(&there, 0, sizeof(there));
	memset(&here, 0, sizeof(here));
	if (getpeername(fd, &there.any, &there_len) != 0 ||
	    getsockname(fd, &here.any, &here_len) != 0 ||
	    !same_host(&there, peer)) {
		return false;
	}
	return same_port(&there, peer) ||
	       (own != NULL && same_host(&here, own) && same_port(&here, own));
}

/* The peer's own tries may come through while ours do not: then the kernel has
 * news of it, and none of what we sent. And where our own interface drops what
 * we send, it does not count that as a try. */
static bool is_stuck(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       info.tcpi_unacked != 0 &&
	       (info.tcpi_retransmits >= STUCK_TRIES ||
		info.tcpi_last_ack_recv >= STUCK_MS);
}

/* Holds the connection by a descriptor of its own: the number could be that of
 * another one in the next moment. */
static bool cut_one(int number, const union end *peer, const union end *own,
		    enum fr_cut_what what)
{
	int fd = fcntl(number, F_DUPFD_CLOEXEC, 0);
	bool cut = false;

	if (fd < 0) {
		return false;
	}
	if (is_between(fd, peer, own) && (what == FR_CUT_ALL || is_stuck(fd))) {
		cut = shutdown(fd, SHUT_RDWR) == 0;
	}
	close(fd);
	return cut;
}

unsigned fr_cut(const struct fr_name *peer, const struct fr_name *own,
		enum fr_cut_what what)
{
	union end there, here;
	const struct dirent *entry;
	unsigned cnt = 0;
	DIR *dir;

	if (!end_of_name(peer, &there) ||
	    (own != NULL && !end_of_name(own, &here))) {
		return 0;
	}
	dir = opendir("/proc/self/fd");
	if (dir == NULL) {
		fr_info("cannot look for connections that hang: %s",
			strerror(errno));
		return 0;
	}
	while ((entry = readdir(dir)) != NULL) {
		char *end;
		long number = strtol(entry->d_name, &end, 10);

		if (end != entry->d_name && number != dirfd(dir)) {
			cnt += cut_one((int)number, &there,
				       own == NULL ? NULL : &here, what);
		}
	}
	closedir(dir);
	return cnt;
}
