/*
 * A peer is killed in the middle of messages and started again at once, on the
 * very same ports. The comms of the old one end, in time; what it left on its
 * way and what is sent to it does not reach the new one, nor the other way
 * round; a handle of the old one leads to nobody; the new one is a peer like
 * any other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/life.h"

#define OLD 1u
#define NEW 2u
#define MSGS 6
#define BYTES (1u << 20)
#define ERROR_MS 10000
#define TRIES 200
#define PORTS 20000u /* below those that the kernel gives to anybody */
#define PORT_AT 18u  /* in a handle: of the first name, a socket address */

static unsigned port_of(const uint8_t *handle)
{
	return (unsigned)handle[PORT_AT] << 8 | handle[PORT_AT + 1];
}

/* Two, which is what the endpoints of a rail need at most. */
static void same_ports(unsigned i, const void *arg)
{
	static const char *const low[] = {"FI_NET_PORT_LOW_RANGE",
					  "FI_TCP_PORT_LOW_RANGE"};
	static const char *const high[] = {"FI_NET_PORT_HIGH_RANGE",
					   "FI_TCP_PORT_HIGH_RANGE"};
	unsigned port = PORTS + (unsigned)getppid() % 5000 * 2;
	char text[16];

	(void)arg;
	for (unsigned k = 0; i != 0 && k < FR_ARRAY_LEN(low); k++) {
		(void)snprintf(text, sizeof(text), "%u", port);
		setenv(low[k], text, 1);
		(void)snprintf(text, sizeof(text), "%u", port + 1);
		setenv(high[k], text, 1);
	}
}

/* Each endpoint has the port that its forerunner had: which of the two ports a
 * control endpoint gets is chance. */
static void *listen_as_before(struct pair_member *me, uint8_t *handle)
{
	uint8_t before[FR_PLUGIN_HANDLE_BYTES];
	void *listen = pair_listen(me, handle);

	if (me->index == OLD) {
		return listen;
	}
	pair_get(me, 0, before, sizeof(before));
	for (int i = 0; port_of(handle) != port_of(before); i++) {
		PAIR_CHECK(i < TRIES, "port %u is not given again",
			   port_of(before));
		life_close_listen(me, listen);
		listen = pair_listen(me, handle);
	}
	return listen;
}

/* Both have this: two comms, a listener nobody comes to, and messages. */
static void serve(struct pair_member *me, unsigned long seed)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen, *send, *recv, *req[2 * MSGS];
	struct pair_buf out, in;

	pair_open(me);
	listen = listen_as_before(me, handle);
	pair_put(me, 0, handle, sizeof(handle));
	recv = pair_accept(me, 0);
	send = pair_connect(me, 0);
	pair_buf_open(me, send, BYTES, &out);
	pair_buf_open(me, recv, (size_t)MSGS * BYTES, &in);
	pair_fill(out.mem, BYTES, seed);
	for (int i = 0; i < MSGS; i++) {
		struct pair_buf part = in;

		part.mem += (size_t)i * BYTES;
		req[i] = pair_irecv_wait(me, &part, BYTES);
	}
	for (int i = 0; i < MSGS; i++) {
		req[MSGS + i] = pair_isend_wait(me, &out, BYTES);
		if (i == MSGS / 2 && me->index == OLD) {
			pair_die();
		}
	}
	for (int i = 0; i < 2 * MSGS; i++) {
		PAIR_CHECK(pair_test_wait(me, req[i], 20000, NULL) == 0,
			   "request %d", i);
		PAIR_CHECK(i >= MSGS ||
				   pair_is_filled(in.mem + (size_t)i * BYTES,
						  BYTES, seed + 1),
			   "message %d is wrong", i);
	}
	pair_hear(me, 0);
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	life_close_send(me, send);
	life_close_recv(me, recv);
	life_close_listen(me, listen);
	pair_close(me);
}

/* -- the one that stays -----------------------------------------------------
 */

struct side {
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	struct pair_buf out;
	struct pair_buf in;
	void *req[2 * MSGS];
	int ret[2 * MSGS];
	unsigned left;
};

static void begin(struct pair_member *me, unsigned with, struct side *side,
		  unsigned long seed)
{
	void *send, *recv;

	pair_get(me, with, side->handle, sizeof(side->handle));
	send = pair_connect(me, with);
	recv = pair_accept(me, with);
	pair_buf_open(me, send, BYTES, &side->out);
	pair_buf_open(me, recv, (size_t)MSGS * BYTES, &side->in);
	pair_fill(side->out.mem, BYTES, seed + 1);
	for (int i = 0; i < MSGS; i++) {
		struct pair_buf part = side->in;

		part.mem += (size_t)i * BYTES;
		side->req[i] = pair_irecv_wait(me, &part, BYTES);
	}
	side->left = MSGS;
}

/* Return: true when it is posted, or never will be. */
static bool post_send(struct pair_member *me, struct side *side, int i)
{
	void **req = &side->req[MSGS + i];

	side->ret[MSGS + i] = pair_isend(me, &side->out, BYTES, req);
	side->left += *req != NULL;
	return *req != NULL || side->ret[MSGS + i] != 0;
}

/* Return: true while anything is outstanding. */
static bool look(struct pair_member *me, struct side *side)
{
	for (int i = 0; i < 2 * MSGS; i++) {
		int done = 0;

		if (side->req[i] == NULL) {
			continue;
		}
		side->ret[i] =
			fr_plugin_test(me->plugin, side->req[i], &done, NULL);
		if (done != 0 || side->ret[i] != 0) {
			side->req[i] = NULL;
			side->left--;
		}
	}
	return side->left != 0;
}

static void close_side(struct pair_member *me, struct side *side)
{
	pair_buf_close(me, &side->out);
	pair_buf_close(me, &side->in);
	life_close_send(me, side->out.comm);
	life_close_recv(me, side->in.comm);
}

/* It was killed while it sent; some of our sends may be under way as well. */
static void lose(struct pair_member *me, struct side *old)
{
	char word;

	for (int i = 0; i < MSGS / 2; i++) {
		while (!post_send(me, old, i)) {
			(void)look(me, old);
		}
	}
	PAIR_CHECK(recv(me->oob[OLD], &word, 1, 0) <= 0, "the old one lives");
}

static void ends_in_time(struct pair_member *me, struct side *old,
			 uint64_t began)
{
	void *req;
	int ret = 0;

	while (look(me, old)) {
		life_in_time(began, ERROR_MS, "the error");
	}
	while (ret == 0) {
		ret = pair_irecv(me, &old->in, 8, &req);
		life_in_time(began, ERROR_MS, "the error of irecv");
	}
	PAIR_CHECK(ret == PAIR_REMOTE, "%s", fr_plugin_result_text(ret));
	for (int i = 0; i < 2 * MSGS; i++) {
		PAIR_CHECK(old->ret[i] == 0 || old->ret[i] == PAIR_REMOTE,
			   "request %d: %d", i, old->ret[i]);
	}
}

static void old_handle_is_stale(struct pair_member *me, struct side *old)
{
	uint64_t began = pair_now_ms();
	void *comm = NULL;
	int ret = 0;

	while (ret == 0) {
		ret = fr_plugin_connect(me->plugin, me->ctx, 0, old->handle,
					&comm);
		PAIR_CHECK(comm == NULL, "connected by the old one's handle");
		life_in_time(began, ERROR_MS, "the error of connect");
	}
	PAIR_CHECK(ret == PAIR_REMOTE, "%s", fr_plugin_result_text(ret));
}

static void run_survivor(struct pair_member *me)
{
	static struct side old, new;
	uint64_t began;

	pair_open(me);
	pair_expect("is lost");
	pair_expect("fenced");
	pair_expect("the listener");
	pair_expect("for another process");
	pair_at(me, "with the old one");
	begin(me, OLD, &old, 100);
	lose(me, &old);
	began = pair_now_ms();
	pair_tell(me, NEW);
	pair_put(me, NEW, old.handle, sizeof(old.handle));
	pair_at(me, "with the new one");
	begin(me, NEW, &new, 200);
	pair_say("    ports: %u, then %u", port_of(old.handle),
		 port_of(new.handle));
	PAIR_CHECK(port_of(old.handle) == port_of(new.handle),
		   "the new one has other ports");
	for (int i = 0; i < MSGS; i++) {
		while (!post_send(me, &new, i)) {
			(void)look(me, &old);
			(void)look(me, &new);
		}
	}
	while (look(me, &new)) {
		(void)look(me, &old);
	}
	for (int i = 0; i < 2 * MSGS; i++) {
		PAIR_CHECK(new.ret[i] == 0, "request %d: %d", i, new.ret[i]);
		PAIR_CHECK(i >= MSGS ||
				   pair_is_filled(new.in.mem + (size_t)i *BYTES,
						  BYTES, 200),
			   "message %d of the new one is wrong", i);
	}
	pair_at(me, "the old one's end");
	ends_in_time(me, &old, began);
	old_handle_is_stale(me, &old);
	pair_tell(me, NEW);
	close_side(me, &new);
	close_side(me, &old);
	pair_close(me);
}

static void run(struct pair_member *me)
{
	if (me->index == 0) {
		run_survivor(me);
	} else {
		if (me->index == NEW) {
			pair_hear(me, 0);
		}
		serve(me, me->index == OLD ? 100 : 200);
	}
}

static void run_all(const char *provider)
{
	const struct pair_case pc = {
		.name = "killed and started again",
		.provider = provider,
		.rails = 1,
		.members = 3,
		.limit_s = 40,
		.killed = FR_BIT(OLD),
		.run = run,
		.env = same_ports,
		.plugin_late = true,
	};

	for (unsigned i = 0; i < 5; i++) {
		pair_run(&pc);
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "t_restart", 15);
	life_each(run_all);
	return pair_end();
}
