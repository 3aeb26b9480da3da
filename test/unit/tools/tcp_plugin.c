/*
 * A net plugin over one plain TCP connection a comm, as simple as can be: for
 * tests of what drives plugins, and a peer to compare with. Tables v4 to v12,
 * see tcp_tables.c. Says "later" now and then, as a plugin may.
 *
 * FR_TCP_PLUGIN_IF:    interface whose address is used (loopback)
 * FR_TCP_PLUGIN_FAULT: KIND:N of the N-th message sent by this process:
 *                      corrupt (a byte), shorten (by one byte), error (isend
 *                      fails), die, hang (never done)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_plugin.h"

#define HANDLE_MAGIC 0x74637031u
#define REQUESTS 32u

struct handle {
	uint32_t magic;
	uint32_t tries; /* of the connecting side */
	struct sockaddr_in addr;
};

struct comm;

struct request {
	struct comm *comm;
	char *data;
	uint64_t bytes; /* send: to send; recv: room, then received */
	uint64_t moved; /* header included */
	uint64_t header;
	bool done, hangs;
};

/* Requests [tested, posted) are in use; those below @moving are done. */
struct comm {
	int fd;
	bool sends;
	unsigned posted, moving;
	unsigned calls;
	struct request request[REQUESTS];
};

static logger_fn logger;
static char fault_kind[16];
static unsigned long fault_at, messages;

static void log_info(const char *text)
{
	if (logger != NULL) {
		logger(3, ~0ul, __FILE__, __LINE__, "%s", text);
	}
}

int tcp_init(logger_fn fn)
{
	const char *fault = getenv("FR_TCP_PLUGIN_FAULT");

	logger = fn;
	messages = 0;
	fault_kind[0] = 0;
	if (fault != NULL &&
	    sscanf(fault, "%15[^:]:%lu", fault_kind, &fault_at) != 2) {
		return INTERNAL_ERROR;
	}
	log_info("using provider sockets-api, plain TCP");
	return OK;
}

int tcp_devices(int *cnt)
{
	*cnt = 1;
	return OK;
}

static struct in_addr own_address(void)
{
	const char *name = getenv("FR_TCP_PLUGIN_IF");
	struct in_addr addr = {.s_addr = htonl(INADDR_LOOPBACK)};
	struct ifaddrs *list, *i;

	if (name == NULL || getifaddrs(&list) != 0) {
		return addr;
	}
	for (i = list; i != NULL; i = i->ifa_next) {
		if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET &&
		    strcmp(i->ifa_name, name) == 0) {
			addr = ((struct sockaddr_in *)(void *)i->ifa_addr)
				       ->sin_addr;
		}
	}
	freeifaddrs(list);
	return addr;
}

int tcp_listen(int dev, void *opaque, void **listen_comm)
{
	struct handle handle = {.magic = HANDLE_MAGIC,
				.addr = {.sin_family = AF_INET}};
	socklen_t len = sizeof(handle.addr);
	struct comm *comm = calloc(1, sizeof(*comm));

	if (comm == NULL || dev != 0) {
		free(comm);
		return SYSTEM_ERROR;
	}
	handle.addr.sin_addr = own_address();
	comm->fd =
		socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (comm->fd < 0 ||
	    bind(comm->fd, (struct sockaddr *)&handle.addr, len) != 0 ||
	    listen(comm->fd, 64) != 0 ||
	    getsockname(comm->fd, (struct sockaddr *)&handle.addr, &len) != 0) {
		free(comm);
		return SYSTEM_ERROR;
	}
	memcpy(opaque, &handle, sizeof(handle));
	*listen_comm = comm;
	return OK;
}

static int comm_create(int fd, bool sends, void **out)
{
	struct comm *comm = calloc(1, sizeof(*comm));
	int on = 1;

	if (comm == NULL) {
		(void)close(fd);
		return SYSTEM_ERROR;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	comm->fd = fd;
	comm->sends = sends;
	for (unsigned i = 0; i < REQUESTS; i++) {
		comm->request[i].comm = comm;
		comm->request[i].done = true;
	}
	*out = comm;
	return OK;
}

int tcp_connect(int dev, void *opaque, void **send_comm)
{
	struct handle handle;
	int fd;

	(void)dev;
	*send_comm = NULL;
	memcpy(&handle, opaque, sizeof(handle));
	if (handle.magic != HANDLE_MAGIC) {
		return INTERNAL_ERROR;
	}
	handle.tries++;
	memcpy(opaque, &handle, sizeof(handle));
	if (handle.tries < 3) {
		return OK; /* later */
	}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&handle.addr,
			      sizeof(handle.addr)) != 0) {
		if (fd >= 0) {
			(void)close(fd);
		}
		return REMOTE_ERROR;
	}
	return comm_create(fd, true, send_comm);
}

int tcp_accept(void *listen_comm, void **recv_comm)
{
	struct comm *listener = listen_comm;
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);

	*recv_comm = NULL;
	if (fd < 0) {
		return errno == EAGAIN ? OK : SYSTEM_ERROR;
	}
	return comm_create(fd, false, recv_comm);
}

int tcp_close(void *opaque)
{
	struct comm *comm = opaque;

	if (comm != NULL) {
		(void)close(comm->fd);
		free(comm);
	}
	return OK;
}

int tcp_reg_mr(void *comm, void *data, size_t bytes, int type, void **mhandle)
{
	(void)comm;
	(void)bytes;
	*mhandle = data;
	return type == 1 ? OK : INTERNAL_ERROR;
}

int tcp_dereg_mr(void *comm, void *mhandle)
{
	(void)comm;
	(void)mhandle;
	return OK;
}

/* Moves bytes [from, from + n) of a request's header and data. */
static ssize_t move(struct comm *comm, struct request *rq)
{
	uint64_t head = sizeof(rq->header);
	char *at = rq->moved < head ? (char *)&rq->header + rq->moved
				    : rq->data + (rq->moved - head);
	size_t n = rq->moved < head ? head - rq->moved
				    : rq->header - (rq->moved - head);

	return comm->sends ? send(comm->fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL)
			   : recv(comm->fd, at, n, MSG_DONTWAIT);
}

static int progress(struct comm *comm)
{
	while (comm->moving != comm->posted) {
		struct request *rq = &comm->request[comm->moving % REQUESTS];
		ssize_t n;

		if (rq->moved >= sizeof(rq->header)) {
			if (!comm->sends && rq->header > rq->bytes) {
				return INTERNAL_ERROR;
			}
			if (rq->moved == sizeof(rq->header) + rq->header) {
				rq->bytes = rq->header;
				rq->done = true;
				comm->moving++;
				continue;
			}
		}
		n = move(comm, rq);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			break;
		}
		if (n <= 0) {
			return REMOTE_ERROR;
		}
		rq->moved += (uint64_t)n;
	}
	return OK;
}

/* NULL: all are in use, or it is one of the calls that are refused. */
static struct request *take(struct comm *comm, void *data, size_t bytes)
{
	struct request *rq = &comm->request[comm->posted % REQUESTS];

	if (++comm->calls % 7 == 3 || rq->comm == NULL || !rq->done ||
	    comm->posted - comm->moving == REQUESTS) {
		return NULL;
	}
	*rq = (struct request){
		.comm = comm, .data = data, .bytes = bytes, .header = bytes};
	comm->posted++;
	return rq;
}

static int apply_fault(struct request *rq)
{
	if (fault_kind[0] == 0 || ++messages != fault_at) {
		return OK;
	}
	if (strcmp(fault_kind, "corrupt") == 0 && rq->bytes > 0) {
		rq->data[rq->bytes / 2] ^= 0x10;
	} else if (strcmp(fault_kind, "shorten") == 0 && rq->bytes > 0) {
		rq->header = --rq->bytes;
	} else if (strcmp(fault_kind, "error") == 0) {
		return REMOTE_ERROR;
	} else if (strcmp(fault_kind, "die") == 0) {
		(void)raise(SIGKILL);
	} else if (strcmp(fault_kind, "hang") == 0) {
		rq->hangs = true;
	}
	return OK;
}

int tcp_isend(void *opaque, void *data, size_t bytes, void **request)
{
	struct comm *comm = opaque;
	struct request *rq = take(comm, data, bytes);
	int ret;

	*request = rq;
	ret = rq != NULL ? apply_fault(rq) : OK;
	return ret != OK ? ret : progress(comm);
}

int tcp_irecv(void *opaque, void *data, size_t bytes, void **request)
{
	struct comm *comm = opaque;

	*request = take(comm, data, bytes);
	return progress(comm);
}

int tcp_test(void *opaque, int *done, int *sizes)
{
	struct request *rq = opaque;
	int ret = progress(rq->comm);

	*done = rq->done && !rq->hangs;
	if (*done != 0 && sizes != NULL) {
		*sizes = (int)rq->bytes;
	}
	return ret;
}
