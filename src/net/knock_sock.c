#include "net/knock_sock.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

union sock_addr {
	struct sockaddr any;
	struct sockaddr_un un;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == FR_KNOCK_PATH_MAX,
	       "the longest path of a unix socket");

static bool is_v4(const struct fr_knock_addr *addr)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(addr->addr, mapped, sizeof(mapped)) == 0;
}

static bool is_path(const struct fr_knock_addr *addr)
{
	return addr->path[0] != '\0';
}

static bool is_unset(const struct fr_knock_addr *addr)
{
	static const uint8_t zero[16];

	return !is_path(addr) && memcmp(addr->addr, zero, sizeof(zero)) == 0;
}

static socklen_t to_sockaddr(const struct fr_knock_addr *addr, uint16_t port,
			     union sock_addr *sa)
{
	memset(sa, 0, sizeof(*sa));
	if (is_path(addr)) {
		sa->un.sun_family = AF_UNIX;
		memcpy(sa->un.sun_path, addr->path, sizeof(sa->un.sun_path));
		return sizeof(sa->un);
	}
	if (is_v4(addr)) {
		sa->v4.sin_family = AF_INET;
		sa->v4.sin_port = htons(port);
		memcpy(&sa->v4.sin_addr, addr->addr + 12, 4);
		return sizeof(sa->v4);
	}
	sa->v6.sin6_family = AF_INET6;
	sa->v6.sin6_port = htons(port);
	memcpy(&sa->v6.sin6_addr, addr->addr, 16);
	if (addr->scope_lo) {
		sa->v6.sin6_scope_id = if_nametoindex("lo");
	}
	return sizeof(sa->v6);
}

int fr_knock_sock_open(const struct fr_knock_addr *addr)
{
	int family = is_path(addr) ? AF_UNIX : is_v4(addr) ? AF_INET : AF_INET6;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;
	int ret;

	if (fd < 0) {
		return -errno;
	}
	if (family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

int fr_knock_sock_bind(int fd, const struct fr_knock_addr *addr, uint16_t port)
{
	union sock_addr sa;
	socklen_t len = to_sockaddr(addr, port, &sa);

	return bind(fd, &sa.any, len) == 0 ? 0 : -errno;
}

int fr_knock_sock_connect(int fd, const struct fr_knock_addr *peer)
{
	union sock_addr sa;
	socklen_t len = to_sockaddr(peer, peer->port, &sa);

	return connect(fd, &sa.any, len) == 0 ? 0 : -errno;
}

int fr_knock_sock_dial(const struct fr_knock_addr *local,
		       const struct fr_knock_addr *peer)
{
	int fd = fr_knock_sock_open(peer);
	int on = 1;
	int ret;

	if (fd < 0) {
		return fd;
	}
	/* The port is then chosen at connect, for the pair of ends: many knocks
	 * do not use up the ports. Failure costs nothing but that. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	ret = is_unset(local) || is_path(peer)
		      ? 0
		      : fr_knock_sock_bind(fd, local, 0);
	if (ret != 0) {
		goto err_close;
	}
	ret = fr_knock_sock_connect(fd, peer);
	if (ret == -EADDRNOTAVAIL) {
		/* After a good bind: no free port, and not a lost address. */
		ret = -EAGAIN;
	}
	if (ret != 0 && ret != -EINPROGRESS) {
		goto err_close;
	}
	return fd;

err_close:
	close(fd);
	return ret;
}

uint16_t fr_knock_sock_port(int fd)
{
	union sock_addr sa;
	socklen_t len = sizeof(sa);

	if (getsockname(fd, &sa.any, &len) != 0) {
		return 0;
	}
	return ntohs(sa.any.sa_family == AF_INET ? sa.v4.sin_port
						 : sa.v6.sin6_port);
}

bool fr_knock_sock_is_self(int fd)
{
	union sock_addr here, there;
	socklen_t here_len = sizeof(here);
	socklen_t there_len = sizeof(there);

	memset(&here, 0, sizeof(here));
	memset(&there, 0, sizeof(there));
	return getsockname(fd, &here.any, &here_len) == 0 &&
	       getpeername(fd, &there.any, &there_len) == 0 &&
	       here_len == there_len && memcmp(&here, &there, here_len) == 0;
}
