/*
 * Limits that lie far away, brought near by parameters for tests: numbers that
 * run over their ends, writes that are longer than a rail takes, communicators
 * and requests that are all in use.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

#define MANY 5000u
#define FLY 16u
#define SLOT 20000u
#define LONG ((10u << 20) - 1)
#define COMMS 4u
#define REQS 5u

static void set_first(unsigned i, const void *arg)
{
	(void)i;
	setenv("OFI_NCCL_TEST_FIRST_SEQ", arg, 1);
}

static size_t bytes_of(unsigned n)
{
	static const size_t sizes[] = {8, 3000, 12000, 0, 20000, 900};

	return sizes[n % FR_ARRAY_LEN(sizes)];
}

static void send_many(struct pair_member *me)
{
	void *comm = pair_connect(me, 1), *req[FLY];
	struct pair_buf out[FLY];

	for (unsigned i = 0; i < FLY; i++) {
		pair_buf_open(me, comm, SLOT, &out[i]);
	}
	for (unsigned n = 0; n < MANY + FLY; n++) {
		unsigned at = n % FLY;

		if (n >= FLY) {
			PAIR_OK(pair_test_wait(me, req[at], 30000, NULL));
		}
		if (n < MANY) {
			pair_fill(out[at].mem, bytes_of(n), n);
			req[at] = pair_isend_wait(me, &out[at], bytes_of(n));
		}
	}
	for (unsigned i = 0; i < FLY; i++) {
		pair_buf_close(me, &out[i]);
	}
	PAIR_OK(fr_plugin_close_send(me->plugin, comm));
}

static void recv_many(struct pair_member *me)
{
	void *comm = pair_accept(me, 0), *req[FLY];
	struct pair_buf in[FLY];

	for (unsigned i = 0; i < FLY; i++) {
		pair_buf_open(me, comm, SLOT, &in[i]);
	}
	for (unsigned n = 0; n < MANY + FLY; n++) {
		unsigned at = n % FLY;
		int got = -1;

		if (n >= FLY) {
			size_t want = bytes_of(n - FLY);

			PAIR_OK(pair_test_wait(me, req[at], 30000, &got));
			PAIR_CHECK(got == (int)want &&
					   pair_is_filled(in[at].mem, want,
							  n - FLY),
				   "message %u came wrong", n - FLY);
		}
		if (n < MANY) {
			req[at] = pair_irecv_wait(me, &in[at], SLOT);
		}
	}
	for (unsigned i = 0; i < FLY; i++) {
		pair_buf_close(me, &in[i]);
	}
	PAIR_OK(fr_plugin_close_recv(me->plugin, comm));
}

static void run_many(struct pair_member *me)
{
	pair_at(me, "5000 messages");
	if (me->index == 0) {
		send_many(me);
	} else {
		recv_many(me);
	}
}

static void set_cap(unsigned i, const void *arg)
{
	(void)i;
	(void)arg;
	setenv("OFI_NCCL_TEST_MAX_MSG_SIZE", "1M", 1);
}

static void run_long(struct pair_member *me)
{
	struct pair_buf buf;
	void *comm;

	pair_at(me, "a message of many writes");
	comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);
	pair_buf_open(me, comm, LONG, &buf);
	if (me->index == 0) {
		pair_fill(buf.mem, LONG, 3);
		pair_send(me, &buf, LONG);
	} else {
		pair_recv(me, &buf, LONG);
		PAIR_CHECK(pair_is_filled(buf.mem, LONG, 3), "it came wrong");
	}
	pair_buf_close(me, &buf);
	PAIR_OK(me->index == 0 ? fr_plugin_close_send(me->plugin, comm)
			       : fr_plugin_close_recv(me->plugin, comm));
}

static void set_reqs(unsigned i, const void *arg)
{
	(void)i;
	(void)arg;
	setenv("OFI_NCCL_TEST_MAX_REQUESTS", "5", 1);
}

/* More than there is room for is not taken, and comes through afterwards. */
static void run_reqs(struct pair_member *me)
{
	void *comm, *req[REQS + 1] = {NULL};
	struct pair_buf buf;

	comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);
	pair_buf_open(me, comm, SLOT, &buf);
	if (me->index == 0) {
		pair_hear(me, 1);
		for (unsigned i = 0; i < REQS + 1; i++) {
			req[i] = pair_isend_wait(me, &buf, SLOT);
			if (i == 0) {
				PAIR_OK(pair_test_wait(me, req[i], 20000,
						       NULL));
			}
		}
		for (unsigned i = 1; i < REQS + 1; i++) {
			PAIR_OK(pair_test_wait(me, req[i], 20000, NULL));
		}
	} else {
		for (unsigned i = 0; i < REQS; i++) {
			req[i] = pair_irecv_wait(me, &buf, SLOT);
		}
		PAIR_OK(pair_irecv(me, &buf, SLOT, &req[REQS]));
		PAIR_CHECK(req[REQS] == NULL, "a sixth receive was taken");
		pair_tell(me, 0);
		for (unsigned i = 0; i < REQS; i++) {
			PAIR_OK(pair_test_wait(me, req[i], 20000, NULL));
		}
		pair_recv(me, &buf, SLOT);
	}
	pair_buf_close(me, &buf);
	PAIR_OK(me->index == 0 ? fr_plugin_close_send(me->plugin, comm)
			       : fr_plugin_close_recv(me->plugin, comm));
}

static void set_ids(unsigned i, const void *arg)
{
	(void)arg;
	if (i == 0) {
		setenv("OFI_NCCL_TEST_COMM_IDS", "4", 1);
	}
}

/* The one too many is an error, and when one was closed there is room. */
static void run_ids(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	void *comm[COMMS + 1] = {NULL};

	pair_expect("comm ids are in use");
	for (unsigned i = 0; i < COMMS; i++) {
		comm[i] = me->index == 0 ? pair_connect(me, 1)
					 : pair_accept(me, 0);
	}
	pair_at(me, "one too many");
	if (me->index == 0) {
		pair_get(me, 1, handle, sizeof(handle));
		PAIR_CHECK(fr_plugin_connect(me->plugin, me->ctx, 0, handle,
					     &comm[COMMS]) ==
				   FR_PLUGIN_SYSTEM_ERROR,
			   "a fifth comm of four");
		PAIR_OK(fr_plugin_close_send(me->plugin, comm[0]));
		pair_tell(me, 1);
		pair_at(me, "again");
		/* The id rests until the peer has closed its end. */
		while (fr_plugin_connect(me->plugin, me->ctx, 0, handle,
					 &comm[COMMS]) != 0 ||
		       comm[COMMS] == NULL) {
			pair_nap_us(1000);
		}
	} else {
		void *listen = pair_listen(me, handle);

		pair_put(me, 0, handle, sizeof(handle));
		pair_hear(me, 0);
		PAIR_OK(fr_plugin_close_recv(me->plugin, comm[0]));
		comm[COMMS] = pair_accept_wait(me, listen);
		PAIR_OK(fr_plugin_close_listen(me->plugin, listen));
	}
	for (unsigned i = 1; i < COMMS + 1; i++) {
		PAIR_OK(me->index == 0
				? fr_plugin_close_send(me->plugin, comm[i])
				: fr_plugin_close_recv(me->plugin, comm[i]));
	}
}

static void over(const char *provider)
{
	static const char *const firsts[] = {"0", "1000", "1023", "4294967286"};
	struct pair_case pc = {
		.provider = provider,
		.members = 2,
		.limit_s = 60,
	};

	pc.name = "numbers run over their ends";
	pc.run = run_many;
	pc.env = set_first;
	for (size_t i = 0; i < FR_ARRAY_LEN(firsts); i++) {
		pc.arg = firsts[i];
		pc.rails = i % 2 == 0 ? 1 : 3;
		pair_run(&pc);
	}
	pc.name = "10 MiB - 1 over writes of 1 MiB";
	pc.run = run_long;
	pc.env = set_cap;
	for (pc.rails = 1; pc.rails <= 3; pc.rails++) {
		pair_run(&pc);
	}
	pc.rails = 1;
	pc.name = "all requests in use";
	pc.run = run_reqs;
	pc.env = set_reqs;
	pair_run(&pc);
	pc.name = "all comm ids in use";
	pc.run = run_ids;
	pc.env = set_ids;
	pair_run(&pc);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"net", "tcp;ofi_rxm"};

	pair_main(argc, argv, "t_limits", 30);
	for (size_t i = 0; i < FR_ARRAY_LEN(names); i++) {
		const char *provider = pair_provider(names[i]);

		if (provider != NULL) {
			over(provider);
		}
	}
	return pair_end();
}
