#include "net/knock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "net/knock_sock.h"

#define BACKLOG 1024
#define MAX_GUESTS 16u
#define GUEST_NS FR_NS_PER_S
/* Bounds one step while strangers sweep the ports. */
#define MAX_ACCEPTS 64u
#define MAX_REFUSAL (FR_KNOCK_REFUSAL_HDR_BYTES + FR_KNOCK_TEXT_MAX)

struct guest {
	int fd;
	uint64_t since_ns;
	unsigned got;
	/* One byte more than any refusal: what overflows it is a stranger. */
	uint8_t buf[MAX_REFUSAL + 1];
};

/* guest[0 .. guest_cnt) are in use. */
struct fr_knock_server {
	struct fr_list node; /* in forks.servers */
	int fd;
	uint16_t port;
	char path[FR_KNOCK_PATH_MAX]; /* empty: none */
	uint8_t hello[FR_KNOCK_HELLO_BYTES];
	fr_knock_refused_fn refused;
	void *arg;
	unsigned guest_cnt;
	struct guest guest[MAX_GUESTS];
};

static struct fr_log_limit accept_limit;

/*
 * A child of a fork has the ports too, and would answer for its parent after
 * that one's death: it closes them before it does anything else. The lock is
 * held over each fork, so that the child finds the list whole.
 */
static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	struct fr_list servers;
} forks = {
	.once = PTHREAD_ONCE_INIT,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.servers = {&forks.servers, &forks.servers},
};

static void fork_begins(void)
{
	pthread_mutex_lock(&forks.lock);
}

static void fork_ends(void)
{
	pthread_mutex_unlock(&forks.lock);
}

static void fork_closes(void)
{
	fr_list_for_each (pos, &forks.servers) {
		close(FR_CONTAINER_OF(pos, struct fr_knock_server, node)->fd);
	}
	pthread_mutex_unlock(&forks.lock);
}

static void forks_watch(void)
{
	int ret = pthread_atfork(fork_begins, fork_ends, fork_closes);

	if (ret != 0) {
		fr_warn("knock port: children of a fork will answer for us "
			"after our death: %s",
			strerror(ret));
	}
}

static void server_enter(struct fr_knock_server *server)
{
	pthread_once(&forks.once, forks_watch);
	pthread_mutex_lock(&forks.lock);
	fr_list_push(&forks.servers, &server->node);
	pthread_mutex_unlock(&forks.lock);
}

static void server_leave(struct fr_knock_server *server)
{
	pthread_mutex_lock(&forks.lock);
	fr_list_del(&server->node);
	pthread_mutex_unlock(&forks.lock);
}

/* Who finds the socket can connect to it: else it would look like one whose
 * owner has died. */
static int server_listen_path(struct fr_knock_server *server,
			      const struct fr_knock_addr *addr)
{
	struct fr_knock_addr early = *addr;
	int fd = fr_knock_sock_open(addr);
	int ret;

	if (fd < 0) {
		return fd;
	}
	early.path[strlen(early.path) - 1] = 't';
	ret = fr_knock_sock_bind(fd, &early, 0);
	if (ret != 0) {
		goto err_close;
	}
	if (listen(fd, BACKLOG) != 0 || rename(early.path, addr->path) != 0) {
		ret = -errno;
		goto err_unlink;
	}
	memcpy(server->path, addr->path, sizeof(server->path));
	server->port = addr->port;
	server->fd = fd;
	return 0;

err_unlink:
	unlink(early.path);
err_close:
	close(fd);
	return ret;
}

static int server_listen(struct fr_knock_server *server,
			 const struct fr_knock_addr *addr)
{
	int fd = fr_knock_sock_open(addr);
	int on = 1;
	int ret;

	if (fd < 0) {
		return fd;
	}
	/* A fixed port is usable again at once after its owner has died. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) {
		ret = -errno;
		goto err_close;
	}
	ret = fr_knock_sock_bind(fd, addr, addr->port);
	if (ret != 0) {
		goto err_close;
	}
	if (listen(fd, BACKLOG) != 0) {
		ret = -errno;
		goto err_close;
	}
	server->port = fr_knock_sock_port(fd);
	if (server->port == 0) {
		ret = -EADDRNOTAVAIL;
		goto err_close;
	}
	server->fd = fd;
	return 0;

err_close:
	close(fd);
	return ret;
}

int fr_knock_server_open(const struct fr_knock_addr *addr, uint64_t set_id,
			 fr_knock_refused_fn refused, void *arg,
			 struct fr_knock_server **out)
{
	struct fr_knock_server *server = fr_calloc(1, sizeof(*server));
	int ret;

	if (server == NULL) {
		return -ENOMEM;
	}
	server->refused = refused;
	server->arg = arg;
	fr_knock_hello_encode(set_id, server->hello);
	ret = addr->path[0] != '\0' ? server_listen_path(server, addr)
				    : server_listen(server, addr);
	if (ret != 0) {
		fr_free(server);
		return ret;
	}
	server_enter(server);
	*out = server;
	return 0;
}

void fr_knock_server_close(struct fr_knock_server *server)
{
	if (server == NULL) {
		return;
	}
	server_leave(server);
	for (unsigned i = 0; i < server->guest_cnt; i++) {
		close(server->guest[i].fd);
	}
	if (server->path[0] != '\0') {
		unlink(server->path);
	}
	close(server->fd);
	fr_free(server);
}

uint16_t fr_knock_server_port(const struct fr_knock_server *server)
{
	return server->port;
}

/* Reads what is there. Return: true while the guest may stay. */
static bool guest_read(struct fr_knock_server *server, struct guest *guest)
{
	struct fr_knock_refusal refusal;
	ssize_t got;
	int ret;

	do {
		got = recv(guest->fd, guest->buf + guest->got,
			   sizeof(guest->buf) - guest->got, MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	if (got < 0) {
		return errno == EAGAIN;
	}
	if (got == 0) {
		return false;
	}
	guest->got += (unsigned)got;
	ret = fr_knock_refusal_decode(&refusal, guest->buf, guest->got);
	if (ret == 0 && server->refused != NULL) {
		server->refused(server->arg, &refusal);
	}
	return ret == -EAGAIN;
}

static void reap_guests(struct fr_knock_server *server, uint64_t now_ns)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < server->guest_cnt; i++) {
		struct guest *guest = &server->guest[i];

		if (!guest_read(server, guest) ||
		    now_ns - guest->since_ns >= GUEST_NS) {
			close(guest->fd);
			continue;
		}
		if (kept != i) {
			server->guest[kept] = *guest;
		}
		kept++;
	}
	server->guest_cnt = kept;
}

/*
 * Reads first: a hello sent to someone who has closed already would be answered
 * by a reset, and the refusal that waits to be read must not depend on what the
 * kernel does with it then.
 */
static void greet(struct fr_knock_server *server, int fd, uint64_t now_ns)
{
	struct guest *guest = &server->guest[server->guest_cnt];

	guest->fd = fd;
	guest->since_ns = now_ns;
	guest->got = 0;
	/* A fresh socket has room for 16 bytes, or it is broken. */
	if (!guest_read(server, guest) ||
	    send(fd, server->hello, sizeof(server->hello),
		 MSG_NOSIGNAL | MSG_DONTWAIT) !=
		    (ssize_t)sizeof(server->hello)) {
		close(fd);
		return;
	}
	server->guest_cnt++;
}

/* Return: true when the next accept may work. */
static bool accept_failed(int err)
{
	switch (err) {
	case EAGAIN:
		return false;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		fr_log_limited(&accept_limit, FR_LOG_WARN,
			       "knock port: cannot accept: %s", strerror(err));
		return false;
	default:
		/* EINTR, or an error of the connection that went away. */
		return true;
	}
}

void fr_knock_server_step(struct fr_knock_server *server, uint64_t now_ns)
{
	reap_guests(server, now_ns);
	/* Who finds the table full waits in the backlog. */
	for (unsigned i = 0; i < MAX_ACCEPTS && server->guest_cnt < MAX_GUESTS;
	     i++) {
		int fd = accept4(server->fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			greet(server, fd, now_ns);
		} else if (!accept_failed(errno)) {
			return;
		}
	}
}
