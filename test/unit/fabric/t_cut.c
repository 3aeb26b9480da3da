/* Connections over loopback that are cut by their addresses, and those beside
 * them that are not. */
#include "unit/fabric/fabric_unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/cut.h"

/* A connection: both ends are ours here. */
struct pair {
	int out; /* made */
	int in;	 /* taken */
};

static int listen_at(const char *ip, struct fr_name *name)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(inet_pton(AF_INET, ip, &in.sin_addr), 1);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	memset(name, 0, sizeof(*name));
	name->len = sizeof(in);
	memcpy(name->bytes, &in, sizeof(in));
	return fd;
}

static struct pair dial(const char *from, const struct fr_name *to,
			int listener)
{
	struct sockaddr_in in = {.sin_family = AF_INET}, there;
	struct pair pair = {.out = socket(AF_INET, SOCK_STREAM, 0)};

	ck_assert_int_eq(inet_pton(AF_INET, from, &in.sin_addr), 1);
	ck_assert_int_eq(bind(pair.out, (struct sockaddr *)&in, sizeof(in)), 0);
	memcpy(&there, to->bytes, sizeof(there));
	ck_assert_int_eq(
		connect(pair.out, (struct sockaddr *)&there, sizeof(there)), 0);
	pair.in = accept(listener, NULL, NULL);
	ck_assert_int_ge(pair.in, 0);
	return pair;
}

/* Ended, by whichever of its ends. */
static bool is_cut(const struct pair *pair)
{
	struct pollfd fds[] = {{.fd = pair->out, .events = POLLIN},
			       {.fd = pair->in, .events = POLLIN}};

	return poll(fds, 2, 0) != 0;
}

static void hang_up(struct pair *pair)
{
	close(pair->out);
	close(pair->in);
}

START_TEST(connections_to_a_port_are_cut_and_no_others)
{
	struct fr_name name, other_name;
	int listener = listen_at("127.0.0.1", &name);
	int other = listen_at("127.0.0.1", &other_name);
	struct pair one = dial("127.0.0.2", &name, listener);
	struct pair two = dial("127.0.0.3", &name, listener);
	struct pair stranger = dial("127.0.0.2", &other_name, other);

	ck_assert_uint_eq(fr_cut(&name, NULL, FR_CUT_ALL), 2);
	ck_assert(is_cut(&one));
	ck_assert(is_cut(&two));
	ck_assert(!is_cut(&stranger));
	hang_up(&one);
	hang_up(&two);
	hang_up(&stranger);
	close(listener);
	close(other);
}
END_TEST

/* Where the peer connected to us, its port says nothing. */
START_TEST(connections_that_came_from_a_host_are_cut)
{
	struct fr_name name, peer, nobody;
	int listener = listen_at("127.0.0.1", &name);
	int there = listen_at("127.0.0.2", &peer);
	struct pair ours = dial("127.0.0.2", &name, listener);
	struct pair stranger = dial("127.0.0.3", &name, listener);
	int nowhere = listen_at("127.0.0.4", &nobody);

	ck_assert_uint_eq(fr_cut(&nobody, &name, FR_CUT_ALL), 0);
	ck_assert_uint_eq(fr_cut(&peer, NULL, FR_CUT_ALL), 0);
	ck_assert(!is_cut(&ours));
	ck_assert_uint_eq(fr_cut(&peer, &name, FR_CUT_ALL), 1);
	ck_assert(is_cut(&ours));
	ck_assert(!is_cut(&stranger));
	hang_up(&ours);
	hang_up(&stranger);
	close(listener);
	close(there);
	close(nowhere);
}
END_TEST

START_TEST(what_does_not_hang_is_left_alone)
{
	struct fr_name name;
	int listener = listen_at("127.0.0.1", &name);
	struct pair pair = dial("127.0.0.1", &name, listener);
	char byte = 'x';

	ck_assert_int_eq(send(pair.out, &byte, 1, 0), 1);
	ck_assert_int_eq(recv(pair.in, &byte, 1, 0), 1);
	ck_assert_uint_eq(fr_cut(&name, &name, FR_CUT_STUCK), 0);
	ck_assert(!is_cut(&pair));
	hang_up(&pair);
	close(listener);
}
END_TEST

START_TEST(what_is_no_address_cuts_nothing)
{
	struct fr_name name, odd;
	int listener = listen_at("127.0.0.1", &name);
	struct pair pair = dial("127.0.0.1", &name, listener);

	odd = name;
	odd.len = 7;
	ck_assert_uint_eq(fr_cut(&odd, NULL, FR_CUT_ALL), 0);
	odd.len = 0;
	ck_assert_uint_eq(fr_cut(&odd, NULL, FR_CUT_ALL), 0);
	memset(&odd, 'f', sizeof(odd));
	odd.len = FR_NAME_MAX;
	ck_assert_uint_eq(fr_cut(&odd, NULL, FR_CUT_ALL), 0);
	ck_assert_uint_eq(fr_cut(&name, &odd, FR_CUT_ALL), 0);
	ck_assert(!is_cut(&pair));
	hang_up(&pair);
	close(listener);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("cut");

	tcase_add_test(tc, connections_to_a_port_are_cut_and_no_others);
	tcase_add_test(tc, connections_that_came_from_a_host_are_cut);
	tcase_add_test(tc, what_does_not_hang_is_left_alone);
	tcase_add_test(tc, what_is_no_address_cuts_nothing);
	return unit_run(tc, "fabric/cut");
}
