#include "net/knock.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/knock_sock.h"
#include "unit/run.h"

#define SET_ID 0x1122334455667788ull
#define S FR_NS_PER_S

static const struct fr_knock_addr any_local;
static struct fr_knock_server *server;
static struct fr_knock knock;
static struct fr_knock_addr addr;
static struct fr_knock_refusal heard;
static _Atomic unsigned heard_cnt;
static _Atomic unsigned warnings;

static void on_refused(void *arg, const struct fr_knock_refusal *refusal)
{
	ck_assert_ptr_eq(arg, &heard);
	heard = *refusal;
	heard_cnt++;
}

static void on_log(enum fr_log_level level, const char *file, int line,
		   const char *text)
{
	(void)file;
	(void)line;
	if (level <= FR_LOG_WARN) {
		ck_assert_ptr_nonnull(strstr(text, "knock"));
		warnings++;
	}
}

static struct fr_knock_addr v4(uint16_t port)
{
	return (struct fr_knock_addr){
		.addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
		.port = port,
	};
}

static void setup(void)
{
	fr_log_set_sink(on_log);
	addr = v4(0);
	ck_assert_int_eq(fr_knock_server_open(&addr, SET_ID, on_refused, &heard,
					      &server),
			 0);
	addr.port = fr_knock_server_port(server);
	ck_assert_uint_ne(addr.port, 0);
}

static void teardown(void)
{
	fr_knock_stop(&knock);
	fr_knock_server_close(server);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

static unsigned open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned cnt = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir) != NULL) {
		cnt++;
	}
	closedir(dir);
	return cnt;
}

static void nap(void)
{
	usleep(1000);
}

/* Steps the knock, and the server when @serve, until the state is left. */
static enum fr_knock_state wait_change(enum fr_knock_state from, bool serve)
{
	for (unsigned i = 0; i < 5000 && knock.state == from; i++) {
		if (serve) {
			fr_knock_server_step(server, 0);
		}
		fr_knock_step(&knock, 0);
		nap();
	}
	return knock.state;
}

static enum fr_knock_state knock_whole(const struct fr_knock_addr *peer,
				       uint64_t set_id)
{
	fr_knock_start(&knock, &any_local, peer, set_id, 0);
	wait_change(FR_KNOCK_WAITING, true);
	return wait_change(FR_KNOCK_OPEN, true);
}

static struct sockaddr_in sockaddr_of(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

/* A stranger's connection to the server. */
static int dial(void)
{
	struct sockaddr_in sa = sockaddr_of(addr.port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void say(int fd, const void *bytes, size_t cnt)
{
	ck_assert_int_eq(send(fd, bytes, cnt, MSG_NOSIGNAL), (ssize_t)cnt);
}

/* Another program's listener. */
static int strange_listener(struct fr_knock_addr *where, int backlog)
{
	struct sockaddr_in sa = sockaddr_of(0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(fd, backlog), 0);
	*where = v4(fr_knock_sock_port(fd));
	return fd;
}

/* The tests wait for what must come; only what must not come is looked for
 * after a nap. */
#define TRIES 5000u

/* The other end closes. */
static bool is_closed(int fd)
{
	uint8_t scrap[64];
	ssize_t got;

	for (unsigned i = 0; i < TRIES; i++) {
		do {
			got = recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT);
		} while (got > 0);
		if (got == 0 || errno != EAGAIN) {
			return true;
		}
		nap();
	}
	return false;
}

/* Steps the server at @now_ns until so many descriptors are open. */
static void step_until_fds(uint64_t now_ns, unsigned want)
{
	for (unsigned i = 0; i < TRIES && open_fds() != want; i++) {
		fr_knock_server_step(server, now_ns);
		nap();
	}
	ck_assert_uint_eq(open_fds(), want);
}

static void step_until_heard(uint64_t now_ns)
{
	for (unsigned i = 0; i < TRIES && heard_cnt == 0; i++) {
		fr_knock_server_step(server, now_ns);
		nap();
	}
	ck_assert_uint_eq(heard_cnt, 1);
}

START_TEST(open_leaks_nothing_wherever_it_fails)
{
	struct fr_knock_server *const untouched = (void *)1;
	struct fr_knock_server *other = untouched;
	struct fr_knock_addr at = v4(0);
	size_t before = fr_live_allocs();
	unsigned fds = open_fds();

	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_knock_server_open(&at, 1, NULL, NULL, &other),
			 -ENOMEM);
	fr_fault_alloc_at(0);
	/* The port is taken; the address is not ours. */
	ck_assert_int_eq(fr_knock_server_open(&addr, 1, NULL, NULL, &other),
			 -EADDRINUSE);
	at.addr[12] = 203;
	ck_assert_int_eq(fr_knock_server_open(&at, 1, NULL, NULL, &other),
			 -EADDRNOTAVAIL);
	ck_assert_ptr_eq(other, untouched);
	ck_assert_uint_eq(fr_live_allocs(), before);
	ck_assert_uint_eq(open_fds(), fds);
	ck_assert_uint_eq(warnings, 0);
	fr_knock_server_close(NULL);
}
END_TEST

START_TEST(a_peer_that_steps_is_alive)
{
	ck_assert_int_eq(knock_whole(&addr, SET_ID), FR_KNOCK_ALIVE);
	ck_assert(knock.was_open);
	ck_assert_int_eq(knock_whole(&addr, 0), FR_KNOCK_ALIVE);
}
END_TEST

START_TEST(ipv6_works_as_well)
{
	struct fr_knock_addr at = {.addr = {[15] = 1}};
	struct fr_knock_server *six;
	int ret = fr_knock_server_open(&at, SET_ID, NULL, NULL, &six);

	if (ret == -EAFNOSUPPORT || ret == -EADDRNOTAVAIL) {
		printf("skipped in part: no IPv6 on loopback\n");
		return;
	}
	ck_assert_int_eq(ret, 0);
	at.port = fr_knock_server_port(six);
	fr_knock_start(&knock, &at, &at, SET_ID, 0);
	for (unsigned i = 0; i < 5000 && knock.state != FR_KNOCK_ALIVE; i++) {
		fr_knock_server_step(six, 0);
		fr_knock_step(&knock, 0);
		nap();
	}
	ck_assert_int_eq(knock.state, FR_KNOCK_ALIVE);
	fr_knock_server_close(six);
}
END_TEST

/* Where rails have no addresses the port is a file. */
static struct fr_knock_addr by_path(const char *dir, char last)
{
	struct fr_knock_addr at = {.port = 1};

	snprintf(at.path, sizeof(at.path), "%s/set-%c", dir, last);
	return at;
}

static bool is_there(const struct fr_knock_addr *at)
{
	return access(at->path, F_OK) == 0;
}

START_TEST(a_unix_socket_answers_as_a_port_does)
{
	char dir[] = "/tmp/fabrail-t_knock-XXXXXX";
	struct fr_knock_addr at, early;
	struct fr_knock_server *tcp = server;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	at = by_path(dir, 'k');
	early = by_path(dir, 't');
	ck_assert_int_eq(
		fr_knock_server_open(&at, SET_ID, on_refused, &heard, &server),
		0);
	ck_assert_uint_eq(fr_knock_server_port(server), 1);
	ck_assert(is_there(&at) && !is_there(&early));
	ck_assert_int_eq(knock_whole(&at, SET_ID), FR_KNOCK_ALIVE);
	ck_assert_int_eq(knock_whole(&at, 0), FR_KNOCK_ALIVE);
	ck_assert_int_eq(knock_whole(&at, SET_ID + 1), FR_KNOCK_REFUSED);
	/* Frozen: its kernel answers. */
	fr_knock_start(&knock, &any_local, &at, SET_ID, 0);
	ck_assert_int_eq(wait_change(FR_KNOCK_WAITING, false), FR_KNOCK_OPEN);
	ck_assert_int_eq(fr_knock_step(&knock, 60 * S), FR_KNOCK_OPEN);
	fr_knock_stop(&knock);
	fr_knock_server_close(server);
	ck_assert(!is_there(&at));
	ck_assert_int_eq(knock_whole(&at, SET_ID), FR_KNOCK_REFUSED);
	server = tcp;
	ck_assert_int_eq(rmdir(dir), 0);
	ck_assert_uint_eq(warnings, 0);
}
END_TEST

START_TEST(the_socket_of_a_dead_process_refuses)
{
	char dir[] = "/tmp/fabrail-t_knock-XXXXXX";
	struct fr_knock_addr at;
	struct fr_knock_server *other;
	int status;
	pid_t pid;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	at = by_path(dir, 'k');
	pid = fork();
	if (pid == 0) {
		_exit(fr_knock_server_open(&at, SET_ID, NULL, NULL, &other) == 0
			      ? 0
			      : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(is_there(&at));
	ck_assert_int_eq(knock_whole(&at, SET_ID), FR_KNOCK_REFUSED);
	unlink(at.path);
	rmdir(dir);
}
END_TEST

START_TEST(a_refusal_goes_by_a_unix_socket_too)
{
	const struct fr_knock_refusal refusal = {
		.cookie = 7, .text_len = 4, .text = "nope"};
	char dir[] = "/tmp/fabrail-t_knock-XXXXXX";
	struct fr_knock_server *tcp = server;
	struct fr_knock_addr at;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	at = by_path(dir, 'k');
	ck_assert_int_eq(
		fr_knock_server_open(&at, SET_ID, on_refused, &heard, &server),
		0);
	ck_assert_int_eq(fr_knock_refuse_wait(&any_local, &at, &refusal), 0);
	step_until_heard(0);
	ck_assert_uint_eq(heard.cookie, 7);
	ck_assert_str_eq(heard.text, "nope");
	fr_knock_server_close(server);
	server = tcp;
	rmdir(dir);
}
END_TEST

START_TEST(a_path_that_cannot_be_is_an_error)
{
	struct fr_knock_addr at = by_path("/nowhere/at/all", 'k');
	struct fr_knock_server *other;
	unsigned fds = open_fds();

	ck_assert_int_eq(fr_knock_server_open(&at, 1, NULL, NULL, &other),
			 -ENOENT);
	ck_assert_uint_eq(open_fds(), fds);
}
END_TEST

START_TEST(a_peer_that_does_not_step_stays_open_however_long)
{
	int on = 0;
	socklen_t len = sizeof(on);

	fr_knock_start(&knock, &addr, &addr, SET_ID, 0);
	ck_assert_int_eq(knock.state, FR_KNOCK_WAITING);
	ck_assert_int_ne(fcntl(knock.fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_ne(fcntl(knock.fd, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_eq(wait_change(FR_KNOCK_WAITING, false), FR_KNOCK_OPEN);
	ck_assert_int_eq(fr_knock_step(&knock, 3600 * S), FR_KNOCK_OPEN);
	ck_assert_int_eq(
		getsockopt(knock.fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len), 0);
	ck_assert_int_ne(on, 0);
	ck_assert_int_eq(wait_change(FR_KNOCK_OPEN, true), FR_KNOCK_ALIVE);
}
END_TEST

START_TEST(another_set_behind_the_port_means_dead)
{
	ck_assert_int_eq(knock_whole(&addr, SET_ID + 1), FR_KNOCK_REFUSED);
}
END_TEST

START_TEST(a_closed_port_means_dead)
{
	struct fr_knock_addr peer;
	int fd = strange_listener(&peer, 1);

	close(fd);
	ck_assert_int_eq(knock_whole(&peer, SET_ID), FR_KNOCK_REFUSED);
	ck_assert(!knock.was_open);
}
END_TEST

START_TEST(a_peer_that_dies_before_its_hello_is_dead_at_the_next_knock)
{
	fr_knock_start(&knock, &any_local, &addr, SET_ID, 0);
	ck_assert_int_eq(wait_change(FR_KNOCK_WAITING, false), FR_KNOCK_OPEN);
	fr_knock_server_close(server);
	server = NULL;
	ck_assert_int_eq(wait_change(FR_KNOCK_OPEN, false), FR_KNOCK_IDLE);
	ck_assert(knock.was_open);
	fr_knock_start(&knock, &any_local, &addr, SET_ID, 0);
	ck_assert_int_eq(wait_change(FR_KNOCK_WAITING, false),
			 FR_KNOCK_REFUSED);
}
END_TEST

/* What a stranger says when we knock, and what we make of it. */
static const struct {
	const char *bytes;
	size_t cnt;
	enum fr_knock_state want;
} replies[] = {
	{"SSH-2.0-x\r\n", 11, FR_KNOCK_REFUSED},
	{"F", 1, FR_KNOCK_IDLE},
	{"", 0, FR_KNOCK_IDLE},
	{"FRKN\2\0\0\0", 8, FR_KNOCK_REFUSED},
	{"FRKN\1\0\0\0\x88\x77\x66\x55\x44\x33\x22\x10", 16, FR_KNOCK_REFUSED},
	{"FRKN\1\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11", 16, FR_KNOCK_ALIVE},
};

START_TEST(what_a_strangers_listener_says_decides)
{
	struct fr_knock_addr peer;
	int fd = strange_listener(&peer, 1);
	int guest;

	fr_knock_start(&knock, &any_local, &peer, SET_ID, 0);
	ck_assert_int_eq(wait_change(FR_KNOCK_WAITING, false), FR_KNOCK_OPEN);
	guest = accept(fd, NULL, NULL);
	ck_assert_int_ge(guest, 0);
	/* In two pieces: one read need not give all. */
	say(guest, replies[_i].bytes, replies[_i].cnt / 2);
	nap();
	fr_knock_step(&knock, 0);
	if (knock.state == FR_KNOCK_OPEN) {
		say(guest, replies[_i].bytes + replies[_i].cnt / 2,
		    replies[_i].cnt - replies[_i].cnt / 2);
	}
	close(guest);
	ck_assert_int_eq(wait_change(FR_KNOCK_OPEN, false), replies[_i].want);
	close(fd);
}
END_TEST

/* Fills the backlog of a listener, so that the kernel answers no more. */
static void fill(const struct fr_knock_addr *peer, int *fd, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		fd[i] = fr_knock_sock_dial(&any_local, peer);
		ck_assert_int_ge(fd[i], 0);
		nap();
	}
}

START_TEST(a_host_that_does_not_answer_is_silent_after_ten_seconds)
{
	struct fr_knock_addr peer;
	int fd = strange_listener(&peer, 0);
	int full[4];

	fill(&peer, full, 4);
	fr_knock_start(&knock, &any_local, &peer, SET_ID, 5 * S);
	for (unsigned i = 0; i < 20; i++) {
		ck_assert_int_eq(fr_knock_step(&knock, 15 * S - 1),
				 FR_KNOCK_WAITING);
		nap();
	}
	ck_assert_int_eq(fr_knock_step(&knock, 15 * S), FR_KNOCK_SILENT);
	ck_assert(!knock.was_open);
	for (unsigned i = 0; i < 4; i++) {
		close(full[i]);
	}
	close(fd);
}
END_TEST

START_TEST(a_rail_that_lost_its_address_is_silent)
{
	struct fr_knock_addr gone = v4(0);

	gone.addr[12] = 203;
	fr_knock_start(&knock, &gone, &addr, SET_ID, 0);
	ck_assert_int_eq(knock.state, FR_KNOCK_SILENT);
}
END_TEST

START_TEST(no_descriptor_left_says_nothing_of_the_peer)
{
	struct rlimit old, none;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){0, old.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	fr_knock_start(&knock, &any_local, &addr, SET_ID, 0);
	ck_assert_int_eq(knock.state, FR_KNOCK_IDLE);
	ck_assert_uint_eq(warnings, 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_int_eq(knock_whole(&addr, SET_ID), FR_KNOCK_ALIVE);
}
END_TEST

START_TEST(stop_and_restart_leak_no_descriptor)
{
	unsigned fds = open_fds();

	for (unsigned i = 0; i < 3; i++) {
		fr_knock_start(&knock, &any_local, &addr, SET_ID, 0);
	}
	wait_change(FR_KNOCK_WAITING, false);
	ck_assert_uint_eq(open_fds(), fds + 1);
	fr_knock_stop(&knock);
	ck_assert_int_eq(knock.state, FR_KNOCK_IDLE);
	fr_knock_stop(&knock);
	ck_assert_uint_eq(open_fds(), fds);
	ck_assert_int_eq(knock_whole(&addr, SET_ID), FR_KNOCK_ALIVE);
	step_until_fds(0, fds);
}
END_TEST

START_TEST(a_socket_that_met_itself_is_told)
{
	struct fr_knock_addr self = v4(0);
	int fd = fr_knock_sock_open(&self);
	int other = dial();

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fr_knock_sock_bind(fd, &self, 0), 0);
	self.port = fr_knock_sock_port(fd);
	fr_knock_sock_connect(fd, &self);
	for (unsigned i = 0; i < TRIES && !fr_knock_sock_is_self(fd); i++) {
		nap();
	}
	ck_assert(fr_knock_sock_is_self(fd));
	ck_assert(!fr_knock_sock_is_self(other));
	close(fd);
	close(other);
}
END_TEST

START_TEST(silent_guests_are_sixteen_at_most_and_leave_after_a_second)
{
	unsigned fds = open_fds();
	int guest[64];

	for (unsigned i = 0; i < 64; i++) {
		guest[i] = dial();
	}
	for (unsigned step = 0; step < 4; step++) {
		/* Those of the step before leave, as many come in. */
		fr_knock_server_step(server, step * S);
		step_until_fds(step * S, fds + 64 + 16);
		fr_knock_server_step(server, step * S + S - 1);
		ck_assert_uint_eq(open_fds(), fds + 64 + 16);
	}
	step_until_fds(4 * S, fds + 64);
	for (unsigned i = 0; i < 64; i++) {
		ck_assert(is_closed(guest[i]));
		close(guest[i]);
	}
	ck_assert_int_eq(knock_whole(&addr, SET_ID), FR_KNOCK_ALIVE);
	ck_assert_uint_eq(warnings, 0);
}
END_TEST

START_TEST(strange_guests_leave_at_once)
{
	int web = dial();
	int gone = dial();
	int reset = dial();
	struct linger now = {.l_onoff = 1};
	unsigned fds;

	say(web, "GET / HTTP/1.0\r\n\r\n", 18);
	close(gone);
	ck_assert_int_eq(
		setsockopt(reset, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(reset);
	fds = open_fds();
	/* Accepted or not, all three are gone in the end, at time 0. */
	for (unsigned i = 0; i < 100; i++) {
		fr_knock_server_step(server, 0);
		nap();
	}
	step_until_fds(0, fds);
	ck_assert(is_closed(web));
	ck_assert_uint_eq(heard_cnt, 0);
	close(web);
}
END_TEST

START_TEST(a_refusal_may_come_byte_by_byte)
{
	static const char frame[] = "FRKR\1\0\2\0\x08\7\6\5\4\3\2\1no";
	int fd = dial();

	for (size_t i = 0; i < sizeof(frame) - 1; i++) {
		ck_assert_uint_eq(heard_cnt, 0);
		say(fd, frame + i, 1);
		nap();
		if (i + 1 < sizeof(frame) - 1) {
			fr_knock_server_step(server, i * FR_NS_PER_MS);
		}
	}
	step_until_heard(18 * FR_NS_PER_MS);
	ck_assert_uint_eq(heard.cookie, 0x0102030405060708);
	ck_assert_str_eq(heard.text, "no");
	ck_assert(is_closed(fd));
	close(fd);
}
END_TEST

START_TEST(half_a_refusal_is_none)
{
	unsigned fds = open_fds();
	int fd = dial();

	say(fd, "FRKR\1\0\2\0", 8);
	step_until_fds(0, fds + 2); /* ours, and the accepted one */
	close(fd);
	step_until_fds(0, fds);
	ck_assert_uint_eq(heard_cnt, 0);
}
END_TEST

static const struct fr_knock_refusal no_thanks = {
	.cookie = 42, .text_len = 9, .text = "no thanks"};

START_TEST(a_refusal_arrives_though_the_listener_looks_later)
{
	uint64_t start = fr_now_ns();

	ck_assert_int_eq(fr_knock_refuse_wait(&any_local, &addr, &no_thanks),
			 0);
	ck_assert_uint_ge(fr_now_ns() - start, 150 * FR_NS_PER_MS);
	step_until_heard(0);
	ck_assert_uint_eq(heard.cookie, 42);
	ck_assert_str_eq(heard.text, "no thanks");
}
END_TEST

static _Atomic bool serving;

static void *serve(void *arg)
{
	(void)arg;
	while (serving) {
		fr_knock_server_step(server, fr_now_ns());
		nap();
	}
	return NULL;
}

START_TEST(refusals_arrive_at_a_listener_that_looks)
{
	pthread_t thread;

	serving = true;
	ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
	for (unsigned i = 0; i < 20; i++) {
		ck_assert_int_eq(fr_knock_refuse_wait(&addr, &addr, &no_thanks),
				 0);
	}
	for (unsigned i = 0; i < TRIES && heard_cnt < 20; i++) {
		nap();
	}
	serving = false;
	pthread_join(thread, NULL);
	ck_assert_uint_eq(heard_cnt, 20);
}
END_TEST

START_TEST(a_refusal_to_nobody_says_so_soon)
{
	struct fr_knock_refusal long_text = {.text_len = FR_KNOCK_TEXT_MAX + 1};
	struct fr_knock_addr peer;
	int fd = strange_listener(&peer, 0);
	uint64_t start = fr_now_ns();
	int full[4];

	fill(&peer, full, 4);
	ck_assert_int_eq(fr_knock_refuse_wait(&any_local, &peer, &no_thanks),
			 -ETIMEDOUT);
	ck_assert_uint_lt(fr_now_ns() - start, 10 * S);
	for (unsigned i = 0; i < 4; i++) {
		close(full[i]);
	}
	close(fd);
	ck_assert_int_eq(fr_knock_refuse_wait(&any_local, &peer, &no_thanks),
			 -ECONNREFUSED);
	ck_assert_int_eq(fr_knock_refuse_wait(&any_local, &addr, &long_text),
			 -EMSGSIZE);
}
END_TEST

START_TEST(running_out_of_descriptors_is_told_and_survived)
{
	struct rlimit old, tight;
	int fd = dial();

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = (struct rlimit){(rlim_t)fd + 1, old.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
	for (unsigned i = 0; i < TRIES && warnings == 0; i++) {
		fr_knock_server_step(server, 0);
		nap();
	}
	ck_assert_uint_eq(warnings, 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_int_eq(knock_whole(&addr, SET_ID), FR_KNOCK_ALIVE);
	ck_assert_uint_eq(warnings, 1);
	close(fd);
}
END_TEST

static TCase *client_case(void)
{
	TCase *t = tcase_create("knocking");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_peer_that_steps_is_alive);
	tcase_add_test(t, ipv6_works_as_well);
	tcase_add_test(t, a_unix_socket_answers_as_a_port_does);
	tcase_add_test(t, the_socket_of_a_dead_process_refuses);
	tcase_add_test(t, a_refusal_goes_by_a_unix_socket_too);
	tcase_add_test(t, a_path_that_cannot_be_is_an_error);
	tcase_add_test(t, a_peer_that_does_not_step_stays_open_however_long);
	tcase_add_test(t, another_set_behind_the_port_means_dead);
	tcase_add_test(t, a_closed_port_means_dead);
	tcase_add_test(
		t, a_peer_that_dies_before_its_hello_is_dead_at_the_next_knock);
	tcase_add_loop_test(t, what_a_strangers_listener_says_decides, 0,
			    (int)(sizeof(replies) / sizeof(replies[0])));
	tcase_add_test(t,
		       a_host_that_does_not_answer_is_silent_after_ten_seconds);
	tcase_add_test(t, a_rail_that_lost_its_address_is_silent);
	tcase_add_test(t, no_descriptor_left_says_nothing_of_the_peer);
	tcase_add_test(t, stop_and_restart_leak_no_descriptor);
	tcase_add_test(t, a_socket_that_met_itself_is_told);
	return t;
}

static TCase *server_case(void)
{
	TCase *t = tcase_create("answering");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, open_leaks_nothing_wherever_it_fails);
	tcase_add_test(
		t, silent_guests_are_sixteen_at_most_and_leave_after_a_second);
	tcase_add_test(t, strange_guests_leave_at_once);
	tcase_add_test(t, a_refusal_may_come_byte_by_byte);
	tcase_add_test(t, half_a_refusal_is_none);
	tcase_add_test(t, a_refusal_arrives_though_the_listener_looks_later);
	tcase_add_test(t, refusals_arrive_at_a_listener_that_looks);
	tcase_add_test(t, a_refusal_to_nobody_says_so_soon);
	tcase_add_test(t, running_out_of_descriptors_is_told_and_survived);
	return t;
}

int main(void)
{
	Suite *suite = suite_create("net knock");

	suite_add_tcase(suite, client_case());
	suite_add_tcase(suite, server_case());
	return unit_run_suite(suite);
}
