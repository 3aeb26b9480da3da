/* Is a quiet peer alive? Its kernel is asked, through real sockets. */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "net/knock.h"
#include "net/link.h"
#include "unit/net/net_unit.h"

#define LONG 9000u

static struct net_pair *pair;
static struct net_buf from, to;
static struct fr_req *recv_req;

/* Side b waits for a message of side a. */
static void b_waits(void)
{
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, LONG, &from);
	net_buf_open(pair->recv, LONG, &to);
	recv_req = net_irecv(&to, LONG);
	net_settle();
}

static bool is_lost(void)
{
	return pair->recv->link->err != 0;
}

/* Ticks of b alone, @n at most, until its peer is lost. Return: how many. */
static unsigned b_ticks(unsigned n)
{
	unsigned i = 0;

	while (i < n && !is_lost()) {
		net_advance(FR_TICK_NS + 10 * FR_NS_PER_MS);
		net_pass_of(&net_b);
		i++;
	}
	return i;
}

START_TEST(a_peer_that_polls_is_waited_for)
{
	b_waits();
	net_tick(600); /* a minute */
	ck_assert(!is_lost());
	ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
	ck_assert_int_eq(net_wait(recv_req, NULL), 0);
}
END_TEST

START_TEST(a_peer_that_is_gone_is_known_in_seconds)
{
	struct fr_req *req;
	unsigned ticks;

	b_waits();
	net_expect("is lost: its process is gone");
	net_die(&net_a);
	ticks = b_ticks(600);
	ck_assert(is_lost());
	ck_assert_uint_ge(ticks, 5); /* not before it was quiet for long */
	ck_assert_uint_le(ticks, 40);
	ck_assert_int_eq(net_wait(recv_req, NULL), -ECONNRESET);
	ck_assert_int_eq(net_try_recv(&to, 10, &req), -ECONNRESET);
	ck_assert_uint_eq(net_logged("its process is gone"), 1);
	net_expect("endpoints fenced");
}
END_TEST

START_TEST(only_the_dead_peer_is_lost)
{
	struct net_pair *other;

	b_waits();
	net_side_open(&net_c);
	other = net_connect(&net_c, &net_b);
	net_expect("is lost: its process is gone");
	net_die(&net_a);
	for (unsigned i = 0; i < 100 && !is_lost(); i++) {
		net_tick(1);
	}
	ck_assert(is_lost());
	net_assert_works(other);
	ck_assert_int_eq(net_wait(recv_req, NULL), -ECONNRESET);
}
END_TEST

START_TEST(a_peer_from_which_nothing_is_wanted_is_not_asked)
{
	pair = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, LONG, &from);
	net_buf_open(pair->recv, LONG, &to);
	net_exchange(&from, &to, 10, 1);
	net_settle();
	net_die(&net_a);
	b_ticks(300);
	ck_assert(!is_lost());
	net_expect("is lost: its process is gone");
	recv_req = net_irecv(&to, LONG); /* now it is */
	b_ticks(100);
	ck_assert(is_lost());
	net_expect("endpoints fenced");
}
END_TEST

/* A port that takes connections and never says a word. */
static uint16_t mute_port(const struct fr_nic *nic)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	memcpy(&addr.sin_addr, nic->addr + 12, 4);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(listen(fd, 16), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	return ntohs(addr.sin_port);
}

START_TEST(a_stranger_at_one_of_its_ports_does_not_hide_that_it_is_gone)
{
	uint16_t port;

	b_waits();
	port = mute_port(fr_rail_nic(net_a.set->rail[_i]));
	net_expect("is lost: its process is gone");
	net_die(&net_a);
	pair->recv->link->path[_i].knock_peer.port = port;
	ck_assert_uint_le(b_ticks(600), 60);
	ck_assert(is_lost());
	ck_assert_int_eq(net_wait(recv_req, NULL), -ECONNRESET);
	net_expect("endpoints fenced");
}
END_TEST

static void names_are_ports(void)
{
	net_init();
	net_conf.quirks.names_are_tcp = true;
	net_open();
}

START_TEST(strangers_at_all_its_ports_do_not_hide_that_it_is_gone)
{
	uint16_t port[2];

	b_waits();
	for (unsigned i = 0; i < 2; i++) {
		port[i] = mute_port(fr_rail_nic(net_a.set->rail[i]));
	}
	net_expect("a stranger has its knock port");
	net_die(&net_a);
	for (unsigned i = 0; i < 2; i++) {
		pair->recv->link->path[i].knock_peer.port = port[i];
	}
	ck_assert_uint_le(b_ticks(600), 80);
	ck_assert(is_lost());
	ck_assert_int_eq(net_wait(recv_req, NULL), -ECONNRESET);
	net_expect("endpoints fenced");
}
END_TEST

/* Its endpoints, mere names here, as ports that are open. */
static void open_endpoints(const struct net_side *side)
{
	for (unsigned i = 0; i < side->set->rail_cnt; i++) {
		const struct fr_name *name =
			fr_rail_name(side->set->rail[i], FR_EP_CTRL);
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		struct sockaddr_in at;

		memcpy(&at, name->bytes, sizeof(at));
		ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)),
				 0);
		ck_assert_int_eq(listen(fd, 16), 0);
	}
}

START_TEST(a_frozen_peer_whose_endpoints_are_open_is_waited_for)
{
	open_endpoints(&net_a);
	b_waits();
	b_ticks(3000);
	ck_assert(!is_lost());
	ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
	ck_assert_int_eq(net_wait(recv_req, NULL), 0);
}
END_TEST

/* What we have sent and nobody acknowledged is wanted as well. */
START_TEST(a_message_that_nobody_takes_is_asked_after)
{
	pair = net_connect(&net_b, &net_a);
	net_buf_open(pair->send, LONG, &from);
	net_settle();
	net_expect("is lost: its process is gone");
	fr_fake_drop(fr_rail_name(net_a.set->rail[0], FR_EP_CTRL),
		     FR_FAKE_FOREVER);
	fr_fake_drop(fr_rail_name(net_a.set->rail[1], FR_EP_CTRL),
		     FR_FAKE_FOREVER);
	net_wait(net_isend(&from, 10), NULL); /* done, but not there */
	for (unsigned i = 0; i < net_a.set->rail_cnt; i++) {
		fr_knock_server_close(net_a.set->knock[i]);
		net_a.set->knock[i] = NULL;
	}
	for (unsigned i = 0; i < 100 && pair->send->link->err == 0; i++) {
		net_advance(FR_TICK_NS + 10 * FR_NS_PER_MS);
		net_pass_of(&net_b);
	}
	ck_assert_int_eq(pair->send->link->err, -ECONNRESET);
	net_forsake(&net_a);
}
END_TEST

START_TEST(a_frozen_peer_is_waited_for)
{
	b_waits();
	b_ticks(3000); /* five minutes; its kernel takes the knocks */
	ck_assert(!is_lost());
	ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
	ck_assert_int_eq(net_wait(recv_req, NULL), 0);
}
END_TEST

static void impatient(void)
{
	net_init();
	setenv("OFI_NCCL_PEER_TIMEOUT", "5s", 1);
	net_open();
}

START_TEST(a_frozen_peer_is_lost_after_the_users_time)
{
	unsigned ticks;

	b_waits();
	net_expect("frozen for");
	ticks = b_ticks(600);
	ck_assert(is_lost());
	ck_assert_uint_ge(ticks, 45);
	ck_assert_uint_le(ticks, 90);
	ck_assert_uint_eq(net_logged("OFI_NCCL_PEER_TIMEOUT"), 1);
	ck_assert_int_eq(net_wait(recv_req, NULL), -ECONNRESET);
	net_expect("endpoints fenced");
	net_forsake(&net_a);
}
END_TEST

START_TEST(a_peer_that_wakes_in_time_is_kept)
{
	b_waits();
	for (unsigned i = 0; i < 10; i++) {
		b_ticks(35);
		net_tick(10);
	}
	ck_assert(!is_lost());
	ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
	ck_assert_int_eq(net_wait(recv_req, NULL), 0);
}
END_TEST

static void portless(void)
{
	net_init();
	for (unsigned i = 0; i < net_conf.nic_cnt; i++) {
		memset(net_conf.nics[i].subnet, 0,
		       sizeof(net_conf.nics[i].subnet));
		net_conf.nics[i].prefix = 0;
	}
	net_open();
}

START_TEST(without_a_port_nobody_can_be_asked)
{
	b_waits();
	ck_assert_uint_eq(pair->recv->link->path[0].knock_peer.port, 0);
	b_ticks(300);
	ck_assert(!is_lost());
	ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
	ck_assert_int_eq(net_wait(recv_req, NULL), 0);
}
END_TEST

static unsigned descriptors(void)
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

START_TEST(a_set_that_closes_while_it_asks_leaves_no_socket)
{
	unsigned before = descriptors(), with_ports;

	net_side_open(&net_c);
	with_ports = descriptors();
	pair = net_connect(&net_a, &net_c);
	net_buf_open(pair->recv, LONG, &to);
	recv_req = net_irecv(&to, 100); /* not told: needs no fence */
	for (unsigned i = 0; i < 30; i++) {
		net_advance(FR_TICK_NS + 10 * FR_NS_PER_MS);
		net_pass_of(&net_c); /* its peer does not answer */
	}
	ck_assert_uint_gt(descriptors(), with_ports);
	net_close_recv(pair);
	net_side_close(&net_c);
	net_tick(3);
	net_forsake(&net_a);
	ck_assert_uint_eq(descriptors(), before);
}
END_TEST

/* A port whose queue is full: its kernel drops what comes, as a broken path
 * does. The descriptors stay open until the end of the test's process. */
static uint16_t silent_port(const struct fr_nic *nic)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	memcpy(&addr.sin_addr, nic->addr + 12, 4);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	for (unsigned i = 0; i < 4; i++) {
		int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		ck_assert_int_ge(client, 0);
		connect(client, (struct sockaddr *)&addr, len);
	}
	return ntohs(addr.sin_port);
}

/* The loop index: whether one of the two paths is well. */
START_TEST(a_host_that_no_path_reaches_is_lost_after_ten_seconds)
{
	struct fr_link *link;
	unsigned ticks;

	b_waits();
	link = pair->recv->link;
	for (int i = 0; i < 2 - _i; i++) {
		link->path[i].knock_peer.port =
			silent_port(fr_rail_nic(net_a.set->rail[i]));
	}
	if (_i == 1) {
		net_tick(400);
		ck_assert(!is_lost());
		ck_assert_int_eq(net_wait(net_isend(&from, LONG), NULL), 0);
		ck_assert_int_eq(net_wait(recv_req, NULL), 0);
		return;
	}
	net_expect("no path to its host answers a knock");
	ticks = b_ticks(600);
	ck_assert(is_lost());
	ck_assert_uint_ge(ticks, 90);
	ck_assert_uint_le(ticks, 350);
	ck_assert_int_eq(net_wait(recv_req, NULL), -ECONNRESET);
	net_expect("endpoints fenced");
	net_forsake(&net_a);
}
END_TEST

#define STRIPED (1u << 20)

static struct fr_req *send_req;

/* Side a sends to side b by both paths, and nothing gets through to b on path
 * 1: neither what the loop index of the tests says (0: writes, 1: messages)
 * nor, if @silent, a knock. */
static void a_sends_in_vain(int what, bool silent)
{
	struct fr_path *path;

	pair = net_connect(&net_a, &net_b);
	while (pair->send->ctrl_path != 1) {
		pair = net_connect(&net_a, &net_b);
	}
	net_buf_open(pair->send, STRIPED, &from);
	net_buf_open(pair->recv, STRIPED, &to);
	net_fill(from.mem, STRIPED, 3);
	path = &pair->send->link->path[1];
	ck_assert_ptr_eq(path->rail, net_a.set->rail[path->local_rail]);
	if (what == 0) {
		recv_req = net_irecv(&to, STRIPED);
	}
	net_settle();
	net_tick(1); /* the last one on which nothing waited */
	fr_fake_hold(fr_rail_name(net_b.set->rail[path->peer_rail],
				  what == 0 ? FR_EP_DATA : FR_EP_CTRL),
		     true);
	send_req = net_isend(&from, what == 0 ? STRIPED : 100);
	if (silent) {
		path->knock_peer.port = silent_port(
			fr_rail_nic(net_b.set->rail[path->peer_rail]));
	}
}

static void it_gets_through(void)
{
	const struct fr_path *path = &pair->send->link->path[1];

	for (unsigned ep = FR_EP_DATA; ep <= FR_EP_CTRL; ep++) {
		fr_fake_hold(fr_rail_name(net_b.set->rail[path->peer_rail],
					  (enum fr_rail_ep)ep),
			     false);
	}
}

static void it_arrives(int what)
{
	size_t got = 0;

	if (what != 0) {
		recv_req = net_irecv(&to, STRIPED);
	}
	ck_assert_int_eq(net_wait(recv_req, &got), 0);
	ck_assert_uint_eq(got, what == 0 ? STRIPED : 100);
	ck_assert(net_is_filled(to.mem, got, 3));
	ck_assert_int_eq(net_wait(send_req, NULL), 0);
}

/* All the while the other path works, and the peer's process answers there. */
START_TEST(a_path_that_is_dead_ends_its_link)
{
	struct net_pair *other;
	uint64_t began, took;

	a_sends_in_vain(_i, true);
	began = fr_now_ns();
	net_side_open(&net_c);
	other = net_connect(&net_a, &net_c);
	net_expect("is lost: rail 1 (fake1) to 127.77.1.1: nothing has ");
	while (pair->send->link->err == 0) {
		ck_assert_uint_lt(fr_now_ns() - began, 30 * FR_NS_PER_S);
		net_tick(1);
	}
	took = fr_now_ns() - began;
	ck_assert_uint_ge(took, 10 * FR_NS_PER_S);
	ck_assert_uint_le(took, 15 * FR_NS_PER_S);
	ck_assert_uint_eq(net_logged("got through for 10 s"), 1);
	net_assert_works(other);
	if (_i == 0) {
		net_expect("endpoints fenced");
	}
	net_forsake(&net_a);
	net_forsake(&net_b);
}
END_TEST

/* The loop index: what is sent; and how long it takes. */
START_TEST(a_path_that_is_dead_is_given_up_after_its_time)
{
	static const char *const limits[] = {"500ms", "3s", "7s"};
	static const uint64_t least_ms[] = {500, 3000, 7000};
	uint64_t began, took;

	net_teardown();
	net_init();
	setenv("OFI_NCCL_FAILOVER", "1", 1);
	setenv("OFI_NCCL_RAIL_TIMEOUT", limits[_i / 2], 1);
	net_open();
	net_expect("paths go on");
	a_sends_in_vain(_i % 2, true);
	began = fr_now_ns();
	while (pair->send->link->path[1].state == FR_PATH_UP) {
		ck_assert_uint_lt(fr_now_ns() - began, 30 * FR_NS_PER_S);
		net_tick(1);
	}
	took = (fr_now_ns() - began) / FR_NS_PER_MS;
	ck_assert_uint_ge(took, least_ms[_i / 2]);
	ck_assert_uint_le(took, least_ms[_i / 2] + 2500);
	ck_assert_int_eq(pair->send->link->err, 0);
	it_gets_through();
	it_arrives(_i % 2);
}
END_TEST

START_TEST(a_path_that_is_dead_for_some_seconds_is_waited_for)
{
	a_sends_in_vain(_i, true);
	net_tick(80);
	ck_assert_int_eq(pair->send->link->err, 0);
	it_gets_through();
	it_arrives(_i);
	net_tick(200);
	ck_assert_int_eq(pair->send->link->err, 0);
}
END_TEST

/* The other end's kernel answers: slow, frozen, or busy. */
START_TEST(a_path_that_stands_still_is_waited_for)
{
	a_sends_in_vain(_i, false);
	net_tick(600);
	ck_assert_int_eq(pair->send->link->err, 0);
	it_gets_through();
	it_arrives(_i);
}
END_TEST

/* A fenced set is as good as dead to its peers, though its process lives; what
 * it says of that may not have left. */
START_TEST(a_set_that_was_killed_is_gone)
{
	b_waits();
	net_expect("endpoints fenced");
	net_expect("is lost");
	for (unsigned i = 0; i < net_b.set->rail_cnt; i++) {
		fr_fake_drop(fr_rail_name(net_b.set->rail[i], FR_EP_CTRL),
			     FR_FAKE_FOREVER);
	}
	net_lock(net_a.set);
	fr_set_kill_locked(net_a.set, "a test says so");
	net_unlock(net_a.set);
	b_ticks(100);
	ck_assert(is_lost());
	ck_assert_uint_eq(net_logged("its process is gone"), 1);
	ck_assert_int_eq(net_wait(recv_req, NULL), -ECONNRESET);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("health", net_setup);
	TCase *timeout = net_case("timeout", impatient);
	TCase *none = net_case("no port", portless);
	TCase *ports = net_case("endpoints are ports", names_are_ports);
	TCase *const cases[] = {tc, timeout, none, ports};

	tcase_add_test(tc, a_peer_that_polls_is_waited_for);
	tcase_add_test(tc, a_peer_that_is_gone_is_known_in_seconds);
	tcase_add_loop_test(
		tc,
		a_stranger_at_one_of_its_ports_does_not_hide_that_it_is_gone, 0,
		2);
	tcase_add_test(tc, only_the_dead_peer_is_lost);
	tcase_add_test(tc, a_peer_from_which_nothing_is_wanted_is_not_asked);
	tcase_add_test(tc, a_message_that_nobody_takes_is_asked_after);
	tcase_add_test(tc, a_frozen_peer_is_waited_for);
	tcase_add_loop_test(
		tc, a_host_that_no_path_reaches_is_lost_after_ten_seconds, 0,
		2);
	tcase_add_loop_test(tc, a_path_that_is_dead_ends_its_link, 0, 2);
	tcase_add_loop_test(tc, a_path_that_is_dead_is_given_up_after_its_time,
			    0, 6);
	tcase_add_loop_test(
		tc, a_path_that_is_dead_for_some_seconds_is_waited_for, 0, 2);
	tcase_add_loop_test(tc, a_path_that_stands_still_is_waited_for, 0, 2);
	tcase_add_test(tc, a_set_that_was_killed_is_gone);
	tcase_add_test(tc, a_set_that_closes_while_it_asks_leaves_no_socket);
	tcase_add_test(timeout, a_frozen_peer_is_lost_after_the_users_time);
	tcase_add_test(timeout, a_peer_that_wakes_in_time_is_kept);
	tcase_add_test(none, without_a_port_nobody_can_be_asked);
	tcase_add_test(ports,
		       strangers_at_all_its_ports_do_not_hide_that_it_is_gone);
	tcase_add_test(ports,
		       a_frozen_peer_whose_endpoints_are_open_is_waited_for);
	return net_main("health", cases, FR_ARRAY_LEN(cases));
}
