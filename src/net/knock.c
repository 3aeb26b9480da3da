#include "net/knock.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "net/knock_sock.h"

#define SILENT_NS (10 * FR_NS_PER_S)
#define REFUSE_NS (200 * FR_NS_PER_MS)
/* Of a hello from any set: magic, version, padding. */
#define HELLO_MARK_BYTES 8u

/* The kernel of a frozen peer answers these probes too; a host that is gone
 * fails them after 1 + 3 * 3 = 10 s. */
#define KEEP_IDLE_S 1
#define KEEP_INTVL_S 3
#define KEEP_CNT 3

static struct fr_log_limit start_limit;

/* clang-format off */
static const struct {
	const char *name;
	uint32_t next;
} knock_fsm[] = {
	[FR_KNOCK_IDLE] = { "idle",
		FR_BIT(FR_KNOCK_WAITING) | FR_BIT(FR_KNOCK_REFUSED) |
		FR_BIT(FR_KNOCK_SILENT) },
	[FR_KNOCK_WAITING] = { "waiting",
		FR_BIT(FR_KNOCK_OPEN) | FR_BIT(FR_KNOCK_REFUSED) |
		FR_BIT(FR_KNOCK_SILENT) | FR_BIT(FR_KNOCK_IDLE) },
	[FR_KNOCK_OPEN] = { "open",
		FR_BIT(FR_KNOCK_ALIVE) | FR_BIT(FR_KNOCK_REFUSED) |
		FR_BIT(FR_KNOCK_SILENT) | FR_BIT(FR_KNOCK_IDLE) },
	[FR_KNOCK_ALIVE] = { "alive", FR_BIT(FR_KNOCK_IDLE) },
	[FR_KNOCK_REFUSED] = { "refused", FR_BIT(FR_KNOCK_IDLE) },
	[FR_KNOCK_SILENT] = { "silent", FR_BIT(FR_KNOCK_IDLE) },
};
/* clang-format on */

/* The only writer of state. Closes the descriptor where none is held. */
static enum fr_knock_state knock_set_state(struct fr_knock *knock,
					   enum fr_knock_state to)
{
	bool held = knock->state == FR_KNOCK_WAITING ||
		    knock->state == FR_KNOCK_OPEN;

	assert(knock_fsm[knock->state].next & FR_BIT(to));
	if (held && to != FR_KNOCK_WAITING && to != FR_KNOCK_OPEN) {
		close(knock->fd);
		knock->fd = -1;
	}
	fr_debug("knock: %s -> %s", knock_fsm[knock->state].name,
		 knock_fsm[to].name);
	knock->state = to;
	return to;
}

/* What a failed connect, or a connection that broke, says of the peer. */
static enum fr_knock_state verdict(int err)
{
	switch (err) {
	case ECONNREFUSED:
	case ENOENT: /* its socket went with it */
		return FR_KNOCK_REFUSED;
	case ECONNRESET:
	case EPIPE:
		return FR_KNOCK_IDLE;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
	case EAGAIN: /* no free local port */
		/* Our own shortage says nothing of the peer. */
		return FR_KNOCK_IDLE;
	default:
		return FR_KNOCK_SILENT;
	}
}

void fr_knock_start(struct fr_knock *knock, const struct fr_knock_addr *local,
		    const struct fr_knock_addr *peer, uint64_t set_id,
		    uint64_t now_ns)
{
	int fd;

	fr_knock_stop(knock);
	knock->started_ns = now_ns;
	knock->set_id = set_id;
	knock->got = 0;
	knock->was_open = false;
	fd = fr_knock_sock_dial(local, peer);
	if (fd >= 0) {
		knock->fd = fd;
		knock_set_state(knock, FR_KNOCK_WAITING);
	} else if (verdict(-fd) != FR_KNOCK_IDLE) {
		knock_set_state(knock, verdict(-fd));
	} else {
		fr_log_limited(&start_limit, FR_LOG_WARN,
			       "knock: no socket: %s", strerror(-fd));
	}
}

void fr_knock_stop(struct fr_knock *knock)
{
	if (knock->state != FR_KNOCK_IDLE) {
		knock_set_state(knock, FR_KNOCK_IDLE);
	}
}

/* Return: 0; -EAGAIN while it is not decided; -errno. */
static int connect_result(int fd, int timeout_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int err = 0;
	int ret = poll(&pfd, 1, timeout_ms);

	if (ret <= 0) {
		return ret == 0 || errno == EINTR ? -EAGAIN : -errno;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0) {
		return -errno;
	}
	if (err == 0 && fr_knock_sock_is_self(fd)) {
		return -ECONNREFUSED;
	}
	return -err;
}

static void keep_alive(int fd)
{
	int on = 1;
	int idle = KEEP_IDLE_S;
	int intvl = KEEP_INTVL_S;
	int cnt = KEEP_CNT;

	/* Without them only the news of a host's death comes later. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &intvl, sizeof(intvl));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &cnt, sizeof(cnt));
}

static enum fr_knock_state step_waiting(struct fr_knock *knock, uint64_t now_ns)
{
	int ret = connect_result(knock->fd, 0);

	if (ret == 0) {
		keep_alive(knock->fd);
		knock->was_open = true;
		return knock_set_state(knock, FR_KNOCK_OPEN);
	}
	if (ret != -EAGAIN) {
		return knock_set_state(knock, verdict(-ret));
	}
	if (now_ns - knock->started_ns >= SILENT_NS) {
		return knock_set_state(knock, FR_KNOCK_SILENT);
	}
	return knock->state;
}

/* The bytes so far are not the beginning of the hello we expect. */
static bool is_stranger(const struct fr_knock *knock)
{
	uint8_t expected[FR_KNOCK_HELLO_BYTES];
	unsigned bytes = knock->got;

	fr_knock_hello_encode(knock->set_id, expected);
	if (knock->set_id == 0) {
		bytes = FR_MIN(bytes, HELLO_MARK_BYTES);
	}
	return memcmp(knock->hello, expected, bytes) != 0;
}

static enum fr_knock_state step_open(struct fr_knock *knock)
{
	ssize_t got = recv(knock->fd, knock->hello + knock->got,
			   sizeof(knock->hello) - knock->got, MSG_DONTWAIT);

	if (got < 0) {
		if (errno == EAGAIN || errno == EINTR) {
			return knock->state;
		}
		return knock_set_state(knock, verdict(errno));
	}
	if (got == 0) {
		return knock_set_state(knock, FR_KNOCK_IDLE);
	}
	knock->got += (unsigned)got;
	if (is_stranger(knock)) {
		return knock_set_state(knock, FR_KNOCK_REFUSED);
	}
	if (knock->got == sizeof(knock->hello)) {
		return knock_set_state(knock, FR_KNOCK_ALIVE);
	}
	return knock->state;
}

enum fr_knock_state fr_knock_step(struct fr_knock *knock, uint64_t now_ns)
{
	if (knock->state == FR_KNOCK_WAITING) {
		step_waiting(knock, now_ns);
	}
	if (knock->state == FR_KNOCK_OPEN) {
		step_open(knock);
	}
	return knock->state;
}

static int left_ms(uint64_t deadline_ns)
{
	uint64_t now_ns = fr_now_ns();

	if (now_ns >= deadline_ns) {
		return 0;
	}
	return (int)((deadline_ns - now_ns + FR_NS_PER_MS - 1) / FR_NS_PER_MS);
}

/*
 * The peer's hello must be read before we close: a close over unread bytes is a
 * reset, which could overtake the refusal. Ends when the peer has closed too,
 * or at the deadline; until then the refusal is in the peer's kernel anyway.
 */
static void drain_wait(int fd, uint64_t deadline_ns)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	uint8_t scrap[FR_KNOCK_HELLO_BYTES];
	ssize_t got;
	int ms;

	while ((ms = left_ms(deadline_ns)) > 0) {
		if (poll(&pfd, 1, ms) <= 0) {
			continue;
		}
		got = recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT);
		if (got == 0 ||
		    (got < 0 && errno != EAGAIN && errno != EINTR)) {
			return;
		}
	}
}

static int refuse_wait(int fd, const void *frame, size_t bytes)
{
	uint64_t deadline_ns = fr_now_ns() + REFUSE_NS;
	ssize_t sent;
	int ret, ms;

	do {
		ms = left_ms(deadline_ns);
		ret = connect_result(fd, ms);
	} while (ret == -EAGAIN && ms > 0);
	if (ret != 0) {
		return ret == -EAGAIN ? -ETIMEDOUT : ret;
	}
	/* A fresh socket takes so few bytes whole. */
	sent = send(fd, frame, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent != (ssize_t)bytes) {
		return sent < 0 ? -errno : -EIO;
	}
	shutdown(fd, SHUT_WR);
	drain_wait(fd, deadline_ns);
	return 0;
}

int fr_knock_refuse_wait(const struct fr_knock_addr *local,
			 const struct fr_knock_addr *peer,
			 const struct fr_knock_refusal *refusal)
{
	uint8_t frame[FR_KNOCK_REFUSAL_HDR_BYTES + FR_KNOCK_TEXT_MAX];
	int bytes = fr_knock_refusal_encode(refusal, frame, sizeof(frame));
	int fd, ret;

	if (bytes < 0) {
		return bytes;
	}
	fd = fr_knock_sock_dial(local, peer);
	if (fd < 0) {
		return fd;
	}
	ret = refuse_wait(fd, frame, (size_t)bytes);
	close(fd);
	return ret;
}
