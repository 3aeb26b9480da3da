/*
 * Closing in every order and phase: listeners nobody came to, connects that are
 * abandoned, data the other side has not read, either end of a comm first. No
 * call hangs, nothing that was reported sent is lost, what can never come is an
 * error.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

#define SMALL 600
#define MSGS 20
#define LARGE (1u << 20)
#define CLOSE_MS 3000 /* 1 s for what was not acknowledged; a busy machine */
#define ERROR_MS 10000

static void timed(uint64_t began, unsigned limit_ms, const char *what)
{
	uint64_t ms = pair_now_ms() - began;

	PAIR_CHECK(ms <= pair_stretch(limit_ms), "%s took %llu ms", what,
		   (unsigned long long)ms);
}

static void close_send(struct pair_member *me, void *comm)
{
	uint64_t began = pair_now_ms();

	PAIR_CHECK(fr_plugin_close_send(me->plugin, comm) == 0, "closeSend");
	timed(began, CLOSE_MS, "closeSend");
}

static void close_recv(struct pair_member *me, void *comm)
{
	uint64_t began = pair_now_ms();

	PAIR_CHECK(fr_plugin_close_recv(me->plugin, comm) == 0, "closeRecv");
	timed(began, CLOSE_MS, "closeRecv");
}

static void close_listen(struct pair_member *me, void *listen)
{
	uint64_t began = pair_now_ms();

	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
	timed(began, CLOSE_MS, "closeListen");
}

/* The state that must be left: everything works. */
static void works_still(struct pair_member *me)
{
	struct pair_echo echo;

	pair_at(me, "a connection afterwards");
	pair_echo_open(me, 1 - me->index, &echo);
	if (me->index == 0) {
		while (echo.rounds < 4) {
			PAIR_CHECK(pair_echo_ask(me, &echo) == 0, "traffic");
		}
		pair_echo_end(me, &echo);
	} else {
		pair_echo_serve(me, &echo);
	}
	pair_echo_close(me, &echo);
}

/* -- listeners and connects -------------------------------------------------
 */

/* Nobody comes; or somebody waits, and learns that the listener is closed. */
static void listen_then_close(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	uint64_t began;
	void *listen, *comm = NULL;
	int ret = 0;

	if (me->index == 0) {
		close_listen(me, pair_listen(me, handle));
		listen = pair_listen(me, handle);
		PAIR_CHECK(fr_plugin_accept(me->plugin, listen, &comm) == 0 &&
				   comm == NULL,
			   "accept of nobody");
		close_listen(me, listen);

		listen = pair_listen(me, handle);
		pair_put(me, 1, handle, sizeof(handle));
		pair_hear(me, 1);
		close_listen(me, listen);
		pair_meet(me, 1);
	} else {
		pair_expect("the listener was closed");
		pair_expect("the listener is closed");
		pair_expect("is gone");
		pair_get(me, 0, handle, sizeof(handle));
		for (int i = 0; i < 500; i++) {
			ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle,
						&comm);
			PAIR_CHECK(ret == 0 && comm == NULL, "connect: %d",
				   ret);
			pair_nap_us(100);
		}
		pair_tell(me, 0);
		began = pair_now_ms();
		while (ret == 0) {
			ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle,
						&comm);
			PAIR_CHECK(comm == NULL, "connected to nobody");
			timed(began, ERROR_MS, "the connect's error");
			pair_nap_us(100);
		}
		PAIR_CHECK(ret == PAIR_REMOTE, "%s",
			   fr_plugin_result_text(ret));
		pair_meet(me, 0);
	}
	works_still(me);
}

/* The connecting side forgets its connect; the listener accepts or does not. */
static void connect_then_forget(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen[2], *comm = NULL;

	pair_expect("the listener was closed");
	for (int i = 0; i < 2; i++) {
		if (me->index == 0) {
			listen[i] = pair_listen(me, handle);
			pair_put(me, 1, handle, sizeof(handle));
			pair_hear(me, 1);
		} else {
			pair_get(me, 0, handle, sizeof(handle));
			for (int n = 0; n < 4000 && comm == NULL; n++) {
				PAIR_CHECK(fr_plugin_connect(me->plugin,
							     me->ctx, 0, handle,
							     &comm) == 0,
					   "connect");
				pair_nap_us(100);
			}
			PAIR_CHECK(comm == NULL, "connected to nobody");
			pair_tell(me, 0);
		}
	}
	if (me->index == 0) {
		uint64_t until = pair_now_ms() + 1000;

		/* Its request may not have left before it was forgotten. */
		while (comm == NULL && pair_now_ms() < until) {
			PAIR_CHECK(fr_plugin_accept(me->plugin, listen[0],
						    &comm) == 0,
				   "accept");
		}
		close_recv(me, comm);
		close_listen(me, listen[0]);
		close_listen(me, listen[1]);
	}
	works_still(me);
}

/* -- data that is not read yet ----------------------------------------------
 */

static void sender_leaves(struct pair_member *me)
{
	struct pair_buf buf;
	void *comm, *req;
	uint64_t began;
	int ret;

	if (me->index == 0) {
		comm = pair_connect(me, 1);
		pair_buf_open(me, comm, SMALL, &buf);
		for (unsigned i = 0; i < MSGS; i++) {
			pair_fill(buf.mem, SMALL, i);
			pair_send(me, &buf, SMALL - i);
		}
		pair_buf_close(me, &buf);
		close_send(me, comm);
		return; /* and ends its process */
	}
	comm = pair_accept(me, 0);
	pair_buf_open(me, comm, SMALL, &buf);
	pair_at(me, "waiting for the sender's end");
	while (!pair_told(me, 0)) {
		pair_nap_us(1000);
	}
	pair_nap_us(200000);
	pair_at(me, "reading what it left");
	for (unsigned i = 0; i < MSGS; i++) {
		pair_recv(me, &buf, SMALL - i);
		PAIR_CHECK(pair_is_filled(buf.mem, SMALL - i, i),
			   "message %u is wrong", i);
	}
	pair_at(me, "reading beyond the last");
	pair_expect("is lost");
	began = pair_now_ms();
	ret = 0;
	while (ret == 0) {
		ret = pair_irecv(me, &buf, SMALL, &req);
		if (ret == 0 && req != NULL) {
			ret = pair_test_wait(me, req, ERROR_MS, NULL);
			PAIR_CHECK(ret != 0, "a message that nobody sent");
		}
		timed(began, ERROR_MS, "the error beyond the last message");
	}
	PAIR_CHECK(ret == PAIR_REMOTE, "%d", ret);
	pair_buf_close(me, &buf);
	close_recv(me, comm);
}

/* Receives are posted, fewer messages come: the rest must not hang. */
static void fewer_than_posted(struct pair_member *me)
{
	struct pair_buf buf;
	void *req[4], *comm;

	if (me->index == 0) {
		comm = pair_connect(me, 1);
		pair_buf_open(me, comm, LARGE, &buf);
		pair_meet(me, 1);
		pair_send(me, &buf, LARGE);
		pair_send(me, &buf, SMALL);
		pair_buf_close(me, &buf);
		close_send(me, comm);
	} else {
		comm = pair_accept(me, 0);
		pair_buf_open(me, comm, LARGE, &buf);
		for (int i = 0; i < 4; i++) {
			req[i] = pair_irecv_wait(me, &buf, LARGE);
		}
		pair_meet(me, 0);
		for (int i = 0; i < 4; i++) {
			int ret = pair_test_wait(me, req[i], ERROR_MS, NULL);

			PAIR_CHECK(ret == (i < 2 ? 0 : PAIR_REMOTE),
				   "receive %d ended with %d", i, ret);
		}
		PAIR_CHECK(pair_irecv(me, &buf, SMALL, &req[0]) == PAIR_REMOTE,
			   "a receive after the sender closed");
		pair_buf_close(me, &buf);
		close_recv(me, comm);
	}
	works_still(me);
}

/* The receiver leaves with messages of the sender unread. */
static void receiver_leaves(struct pair_member *me)
{
	struct pair_buf buf;
	void *comm, *req;
	uint64_t began;
	int ret = 0;

	if (me->index == 0) {
		pair_expect("closed its receive comm");
		comm = pair_connect(me, 1);
		pair_buf_open(me, comm, SMALL, &buf);
		for (unsigned i = 0; i < MSGS; i++) {
			pair_send(me, &buf, SMALL);
		}
		pair_meet(me, 1);
		began = pair_now_ms();
		while (ret == 0) {
			ret = pair_isend(me, &buf, SMALL, &req);
			if (ret == 0 && req != NULL) {
				ret = pair_test_wait(me, req, ERROR_MS, NULL);
			}
			timed(began, ERROR_MS, "the error of isend");
		}
		PAIR_CHECK(ret == PAIR_REMOTE, "%d", ret);
		pair_buf_close(me, &buf);
		close_send(me, comm);
	} else {
		comm = pair_accept(me, 0);
		pair_buf_open(me, comm, SMALL, &buf);
		pair_recv(me, &buf, SMALL);
		pair_meet(me, 0);
		pair_buf_close(me, &buf);
		close_recv(me, comm);
	}
	works_still(me);
}

/* -- both ends, either first ------------------------------------------------
 */

/* Who closes what first: bit 0 member, bit 1 kind of comm. */
static void one_order(struct pair_member *me, unsigned order)
{
	bool first = (order & 1) == me->index;
	void *send, *recv;
	struct pair_buf out, in;

	pair_join(me, 1 - me->index, &send, &recv);
	pair_buf_open(me, send, SMALL, &out);
	pair_buf_open(me, recv, SMALL, &in);
	for (int i = 0; i < 2; i++) {
		if ((me->index + (unsigned)i) % 2 == 0) {
			pair_send(me, &out, SMALL);
		} else {
			pair_recv(me, &in, SMALL);
		}
	}
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	if (!first) {
		pair_hear(me, 1 - me->index);
	}
	if ((order & 2) != 0) {
		close_send(me, send);
		close_recv(me, recv);
	} else {
		close_recv(me, recv);
		close_send(me, send);
	}
	if (first) {
		pair_tell(me, 1 - me->index);
	}
}

static void every_order(struct pair_member *me)
{
	for (unsigned order = 0; order < 4; order++) {
		one_order(me, order);
	}
	works_still(me);
}

/* NULL is no error anywhere; a comm that never carried anything closes too. */
static void nothing_at_all(struct pair_member *me)
{
	void *send, *recv;

	close_send(me, NULL);
	close_recv(me, NULL);
	close_listen(me, NULL);
	PAIR_CHECK(fr_plugin_dereg_mr(me->plugin, NULL, NULL) == 0,
		   "deregMr of nothing");
	pair_join(me, 1 - me->index, &send, &recv);
	close_send(me, send);
	close_recv(me, recv);
	works_still(me);
}

static void run_case(const char *provider, unsigned rails, const char *name,
		     void (*run)(struct pair_member *me))
{
	const struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = rails,
		.members = 2,
		.limit_s = 40,
		.run = run,
	};

	pair_spawn(&pc);
}

static void run_all(const char *provider, unsigned rails)
{
	if (provider == NULL) {
		return;
	}
	run_case(provider, rails, "a listener is closed", listen_then_close);
	run_case(provider, rails, "a connect is abandoned",
		 connect_then_forget);
	run_case(provider, rails, "the sender leaves first", sender_leaves);
	run_case(provider, rails, "fewer messages than receives",
		 fewer_than_posted);
	run_case(provider, rails, "the receiver leaves first", receiver_leaves);
	run_case(provider, rails, "every order", every_order);
	run_case(provider, rails, "nothing to close", nothing_at_all);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "t_close", 20);
	run_all(pair_provider("net"), 2);
	run_all(pair_provider("tcp;ofi_rxm"), 1);
	run_all(pair_provider("sockets"), 1);
	run_all(pair_provider("shm"), 2);
	return pair_end();
}
