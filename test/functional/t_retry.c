/*
 * A handle came damaged: one byte of the peer's address, or of its length, is
 * another one. Each connect with it fails, and so do the second and the third
 * with the same memory; a sound handle then leads to a connection that works,
 * and nothing of the failures is left.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "functional/life.h"
#include "wire/handle.h"

#define CONNECTS 0u
#define LISTENS 1u
#define TRIES 3u
#define NAMES_AT 16u
#define LENGTH_AT 6u
#define STATE_AT 80u /* from here on they are the connecting side's */
#define BAD_MAX 256u
#define TIMEOUT "300ms"
#define ERRORS_MS 6000u /* for all tries of all, side by side */
#define BYTES (200u << 10)
#define SLACK_KIB 256u

struct bad {
	unsigned at;
	bool maybe; /* it may lead to the listener all the same */
	unsigned tries;
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	void *comm;
};

struct bads {
	unsigned cnt;
	struct bad bad[BAD_MAX];
};

static void add(struct bads *bads, const uint8_t *good, unsigned at,
		uint8_t value, bool maybe)
{
	struct bad *bad = &bads->bad[bads->cnt++];

	PAIR_CHECK(bads->cnt < BAD_MAX, "too many handles");
	memset(bad, 0, sizeof(*bad));
	bad->at = at;
	bad->maybe = maybe;
	memcpy(bad->handle, good, sizeof(bad->handle));
	bad->handle[at] = value;
}

/* An IPv4 address begins with family and port; whoever is behind the rest of it
 * may be the same one, on loopback, and its padding says nothing. A name of shm
 * is a file that is not there. */
static void damage(const uint8_t *good, struct bads *bads)
{
	struct fr_handle h;
	const char *why;

	PAIR_CHECK(fr_handle_decode(&h, good, FR_PLUGIN_HANDLE_BYTES, &why) ==
			   0,
		   "handle: %s", why);
	bads->cnt = 0;
	for (unsigned at = 0; at < h.names[0].len; at++) {
		bool maybe = h.names[0].len == 16 && at >= 4;

		add(bads, good, NAMES_AT + at, good[NAMES_AT + at] ^ 1, maybe);
		add(bads, good, NAMES_AT + at, good[NAMES_AT + at] ^ 0x80,
		    maybe);
	}
	add(bads, good, LENGTH_AT, 0, false);
	add(bads, good, LENGTH_AT, 255, false);
}

/* Return: whether it has come to an end. */
static bool step(struct pair_member *me, struct bad *bad)
{
	int ret;

	if (bad->comm != NULL || bad->tries == TRIES) {
		return true;
	}
	ret = fr_plugin_connect(me->plugin, me->ctx, 0, bad->handle,
				&bad->comm);
	PAIR_CHECK(bad->comm == NULL || (ret == 0 && bad->maybe),
		   "byte %u: try %u gave a comm", bad->at, bad->tries + 1);
	bad->tries += ret != 0;
	PAIR_CHECK(ret == 0 || bad->handle[STATE_AT] == 0,
		   "byte %u: state is left in the handle", bad->at);
	return false;
}

static void try_all(struct pair_member *me, struct bads *bads)
{
	uint64_t end = pair_now_ms() + pair_stretch(ERRORS_MS);
	bool ended = false;

	while (!ended) {
		ended = true;
		for (unsigned i = 0; i < bads->cnt; i++) {
			struct bad *bad = &bads->bad[i];

			ended = step(me, bad) && ended;
			PAIR_CHECK(ended || pair_now_ms() < end,
				   "byte %u: no error at try %u", bad->at,
				   bad->tries + 1);
		}
	}
	for (unsigned i = 0; i < bads->cnt; i++) {
		if (bads->bad[i].comm != NULL) {
			life_close_send(me, bads->bad[i].comm);
		}
	}
}

static void use_good(struct pair_member *me, uint8_t *good)
{
	struct pair_buf buf;
	void *comm;

	pair_tell(me, LISTENS);
	comm = pair_connect_wait(me, good);
	pair_buf_open(me, comm, BYTES, &buf);
	pair_send(me, &buf, 900);
	pair_send(me, &buf, BYTES);
	pair_buf_close(me, &buf);
	life_close_send(me, comm);
}

static void run_connects(struct pair_member *me)
{
	static struct bads bads;
	struct life_held held;

	for (unsigned round = 0; round < 3; round++) {
		uint8_t handle[2][FR_PLUGIN_HANDLE_BYTES];
		uint8_t own[FR_PLUGIN_HANDLE_BYTES] = {0};
		/* Its endpoints, so that not each connect opens some. */
		void *kept = pair_listen(me, own);

		pair_get(me, LISTENS, handle, sizeof(handle));
		damage(handle[0], &bads);
		pair_at(me, "connecting with damaged handles");
		try_all(me, &bads);
		pair_at(me, "connecting with a sound one");
		use_good(me, handle[1]);
		life_close_listen(me, kept);
		/* The first round leaves what the process keeps. */
		if (round == 0) {
			life_look(&held);
			held.fds += LIFE_HALF_FDS;
		} else {
			life_flat(&held, SLACK_KIB, "damaged handles");
		}
	}
	PAIR_CHECK(pair_logged("name length") != 0,
		   "no line names the length as what is wrong");
	PAIR_CHECK(strcmp(me->pc->provider, "shm") == 0 ||
			   pair_logged("from the listener at 127.") != 0,
		   "no line names an address that does not answer");
}

/* Whoever comes with a damaged handle all the same. */
static void take_others(struct pair_member *me, void *listen)
{
	while (!pair_told(me, CONNECTS)) {
		void *comm = NULL;

		PAIR_OK(fr_plugin_accept(me->plugin, listen, &comm));
		if (comm != NULL) {
			life_close_recv(me, comm);
		}
		pair_nap_us(50);
	}
	pair_hear(me, CONNECTS);
}

static void run_listens(struct pair_member *me)
{
	for (unsigned round = 0; round < 3; round++) {
		uint8_t handle[2][FR_PLUGIN_HANDLE_BYTES] = {{0}};
		void *listen[2] = {pair_listen(me, handle[0]),
				   pair_listen(me, handle[1])};
		struct pair_buf buf;
		void *comm;

		pair_put(me, CONNECTS, handle, sizeof(handle));
		take_others(me, listen[0]);
		comm = pair_accept_wait(me, listen[1]);
		pair_buf_open(me, comm, BYTES, &buf);
		pair_recv(me, &buf, 900);
		pair_recv(me, &buf, BYTES);
		pair_buf_close(me, &buf);
		life_close_recv(me, comm);
		life_close_listen(me, listen[0]);
		life_close_listen(me, listen[1]);
	}
}

static void run(struct pair_member *me)
{
	pair_expect("connect: ");
	pair_expect("cannot post a message: Invalid argument");
	pair_expect("endpoint name");
	pair_expect("peer's name");
	pair_expect("no endpoint named");
	pair_expect("has another PID namespace");
	if (me->index == CONNECTS) {
		run_connects(me);
	} else {
		run_listens(me);
	}
}

static void env(unsigned i, const void *arg)
{
	(void)arg;
	if (i == CONNECTS) {
		setenv("OFI_NCCL_CONNECT_TIMEOUT", TIMEOUT, 1);
	}
}

int main(int argc, char **argv)
{
	static const char *const providers[] = {"net", "tcp;ofi_rxm", "sockets",
						"shm"};

	pair_main(argc, argv, "connecting again after a damaged handle", 10);
	for (unsigned i = 0; i < FR_ARRAY_LEN(providers); i++) {
		struct pair_case pc = {
			.name = "damaged handles",
			.provider = pair_provider(providers[i]),
			.rails = 1,
			.members = 2,
			.limit_s = 40,
			.run = run,
			.env = env,
		};

		if (pc.provider != NULL) {
			pair_spawn(&pc);
		}
	}
	return pair_end();
}
