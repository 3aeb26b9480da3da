/*
 * Messages come before there is a receive comm: the sender is connected, and
 * sends, while the receiver does not call accept for two seconds and only looks
 * after another comm. What came is there when it accepts and receives.
 */
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

#define BYTES (300u << 10)
#define LATE_MS 2000u
#define SENDER 0u
#define RECEIVER 1u

/* A sender does not wait for the receiver with these; shm has room for no more
 * than 4 KiB. */
#define SHM_MAX 3000u
static const size_t early[] = {0, 1, 900, 8192, 0, 8191, 17, 4096};
#define EARLY FR_ARRAY_LEN(early)
#define ALL (EARLY + 2u)

static size_t size_of(const struct pair_member *me, unsigned i)
{
	if (i >= EARLY) {
		return i == EARLY ? BYTES : 5;
	}
	return strcmp(me->pc->provider, "shm") == 0 ? FR_MIN(early[i], SHM_MAX)
						    : early[i];
}

/* -- the sender -------------------------------------------------------------*/

static void run_sender(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	struct pair_buf out[ALL], other_buf;
	void *other, *comm, *req[ALL];

	other = pair_connect(me, RECEIVER);
	pair_get(me, RECEIVER, handle, sizeof(handle));
	pair_at(me, "connecting to who does not accept");
	comm = pair_connect_wait(me, handle);
	pair_at(me, "sending to who does not accept");
	for (unsigned i = 0; i < ALL; i++) {
		pair_buf_open(me, comm, BYTES, &out[i]);
		pair_fill(out[i].mem, size_of(me, i), i);
		if (i == EARLY) {
			pair_tell(me, RECEIVER);
		}
		req[i] = pair_isend_wait(me, &out[i], size_of(me, i));
	}
	for (unsigned i = 0; i < ALL; i++) {
		PAIR_OK(pair_test_wait(me, req[i], 20000, NULL));
	}
	pair_at(me, "the other comm");
	pair_buf_open(me, other, BYTES, &other_buf);
	pair_send(me, &other_buf, 100);
	pair_buf_close(me, &other_buf);
	for (unsigned i = 0; i < ALL; i++) {
		pair_buf_close(me, &out[i]);
	}
	pair_meet(me, RECEIVER);
	PAIR_OK(fr_plugin_close_send(me->plugin, comm));
	PAIR_OK(fr_plugin_close_send(me->plugin, other));
}

/* -- the receiver -----------------------------------------------------------*/

/* Of another comm, until the sender has said so and @ms are over. */
static void look_elsewhere(struct pair_member *me, void *req, unsigned ms)
{
	uint64_t end = pair_now_ms() + ms;

	while (pair_now_ms() < end) {
		PAIR_CHECK(!pair_test(me, req, NULL), "nothing was sent there");
	}
}

/* From the oldest table on a listener answers before accept is called; of a
 * newer one the first call answers, and what it gives is not looked at. */
static void *accept_late(struct pair_member *me, void *listen, void *req)
{
	void *comm = NULL;

	if (me->pc->abi == 4) {
		look_elsewhere(me, req, LATE_MS);
		PAIR_CHECK(pair_told(me, SENDER),
			   "the sender did not get rid of early messages");
		return pair_accept_wait(me, listen);
	}
	look_elsewhere(me, req, LATE_MS / 4);
	PAIR_CHECK(!pair_told(me, SENDER), "connected without an accept");
	while (!pair_told(me, SENDER)) {
		if (comm == NULL) {
			PAIR_OK(fr_plugin_accept(me->plugin, listen, &comm));
		}
		look_elsewhere(me, req, 20);
	}
	look_elsewhere(me, req, LATE_MS / 2);
	return comm != NULL ? comm : pair_accept_wait(me, listen);
}

static void take(struct pair_member *me, void *comm)
{
	struct pair_buf in;

	pair_buf_open(me, comm, BYTES, &in);
	for (unsigned i = 0; i < ALL; i++) {
		int size = -1;

		PAIR_OK(pair_test_wait(me, pair_irecv_wait(me, &in, BYTES),
				       20000, &size));
		PAIR_CHECK(size == (int)size_of(me, i) &&
				   pair_is_filled(in.mem, size_of(me, i), i),
			   "message %u: %d bytes of %zu, or wrong ones", i,
			   size, size_of(me, i));
	}
	pair_buf_close(me, &in);
}

static void run_receiver(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *other, *listen, *comm, *req;
	struct pair_buf buf;

	other = pair_accept(me, SENDER);
	pair_buf_open(me, other, BYTES, &buf);
	req = pair_irecv_wait(me, &buf, BYTES);
	listen = pair_listen(me, handle);
	pair_put(me, SENDER, handle, sizeof(handle));
	pair_at(me, "looking after the other comm");
	comm = accept_late(me, listen, req);
	pair_hear(me, SENDER);
	pair_at(me, "receiving what came early");
	take(me, comm);
	PAIR_OK(pair_test_wait(me, req, 20000, NULL));
	pair_buf_close(me, &buf);
	pair_meet(me, SENDER);
	PAIR_OK(fr_plugin_close_recv(me->plugin, comm));
	PAIR_OK(fr_plugin_close_recv(me->plugin, other));
	PAIR_OK(fr_plugin_close_listen(me->plugin, listen));
}

static void run(struct pair_member *me)
{
	if (me->index == SENDER) {
		run_sender(me);
	} else {
		run_receiver(me);
	}
}

int main(int argc, char **argv)
{
	static const char *const providers[] = {"net", "tcp;ofi_rxm", "sockets",
						"shm"};
	static const unsigned abis[] = {4, 12};

	pair_main(argc, argv, "messages before accept", 10);
	for (unsigned i = 0; i < FR_ARRAY_LEN(providers); i++) {
		const char *provider = pair_provider(providers[i]);

		for (unsigned k = 0; provider != NULL && k < FR_ARRAY_LEN(abis);
		     k++) {
			struct pair_case pc = {
				.name = k == 0 ? "not accepted at all"
					       : "half accepted",
				.provider = provider,
				.rails = 1 + i % 2,
				.members = 2,
				.limit_s = 40,
				.run = run,
				.abi = abis[k],
			};

			pair_spawn(&pc);
		}
	}
	return pair_end();
}
