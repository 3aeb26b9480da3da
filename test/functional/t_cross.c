/*
 * Two processes connect to each other at the same moment, over endpoints that
 * have never met, and each sends as soon as it can. Whoever's connection the
 * provider gives up then, all arrives, both ways and soon.
 */
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

#define BYTES (64u << 10)
#define SMALL 900u
#define ROUND_MS 5000u
#define AHEAD_MS 3u

struct cross {
	const char *provider;
	unsigned rails;
	unsigned rounds;
};

static const struct cross crosses[] = {
	{"net", 1, 200},	{"net", 4, 60},	    {"tcp;ofi_rxm", 1, 60},
	{"tcp;ofi_rxm", 4, 20}, {"sockets", 1, 20}, {"sockets", 4, 6},
	{"shm", 1, 20},		{"shm", 4, 6},
};

/* One side of a round. */
struct side {
	void *listen;
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES]; /* of the other one */
	void *send, *recv;
	struct pair_buf out, in;
	void *out_req, *in_req;
	bool sent, got;
};

/* Both begin when the same clock says so. */
static void begin_at_once(struct pair_member *me)
{
	uint64_t at = pair_now_ms() + AHEAD_MS;

	if (me->index == 0) {
		pair_hear(me, 1);
		pair_put(me, 1, &at, sizeof(at));
	} else {
		pair_tell(me, 0);
		pair_get(me, 0, &at, sizeof(at));
	}
	while (pair_now_ms() < at) {
	}
}

static void step_send(struct pair_member *me, struct side *side, size_t bytes,
		      unsigned long seed)
{
	if (side->send == NULL) {
		PAIR_OK(fr_plugin_connect(me->plugin, me->ctx, 0, side->handle,
					  &side->send));
		if (side->send == NULL) {
			return;
		}
		pair_buf_open(me, side->send, BYTES, &side->out);
		pair_fill(side->out.mem, bytes, seed + me->index);
	}
	if (side->out_req == NULL) {
		PAIR_OK(pair_isend(me, &side->out, bytes, &side->out_req));
	} else {
		side->sent = pair_test(me, side->out_req, NULL);
	}
}

static void step_recv(struct pair_member *me, struct side *side, size_t bytes,
		      unsigned long seed)
{
	int size = -1;

	if (side->recv == NULL) {
		PAIR_OK(fr_plugin_accept(me->plugin, side->listen,
					 &side->recv));
		if (side->recv == NULL) {
			return;
		}
		pair_buf_open(me, side->recv, BYTES, &side->in);
	}
	if (side->in_req == NULL) {
		PAIR_OK(pair_irecv(me, &side->in, BYTES, &side->in_req));
	} else if (pair_test(me, side->in_req, &size)) {
		side->got = true;
		PAIR_CHECK(size == (int)bytes &&
				   pair_is_filled(side->in.mem, bytes,
						  seed + 1 - me->index),
			   "%d bytes of %zu, or wrong ones", size, bytes);
	}
}

static void side_close(struct pair_member *me, struct side *side)
{
	pair_buf_close(me, &side->out);
	pair_buf_close(me, &side->in);
	PAIR_OK(fr_plugin_close_send(me->plugin, side->send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, side->recv));
	PAIR_OK(fr_plugin_close_listen(me->plugin, side->listen));
}

/* Nothing of the round before is open any more: these are new endpoints.
 * Return: how long it took. */
static uint64_t cross_once(struct pair_member *me, unsigned long seed)
{
	size_t bytes = seed % 2 == 0 ? SMALL : BYTES;
	uint8_t mine[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct side side = {.send = NULL};
	uint64_t began, took;

	side.listen = pair_listen(me, mine);
	pair_put(me, 1 - me->index, mine, sizeof(mine));
	pair_get(me, 1 - me->index, side.handle, sizeof(side.handle));
	begin_at_once(me);
	began = pair_now_ms();
	while (!side.sent || !side.got) {
		if (!side.sent) {
			step_send(me, &side, bytes, seed);
		}
		if (!side.got) {
			step_recv(me, &side, bytes, seed);
		}
		PAIR_CHECK(pair_now_ms() - began < pair_stretch(ROUND_MS),
			   "round %lu: %s, %s, %s, %s after %u ms", seed,
			   side.send == NULL ? "not connected" : "connected",
			   side.recv == NULL ? "not accepted" : "accepted",
			   side.sent ? "sent" : "not sent",
			   side.got ? "received" : "nothing received",
			   pair_stretch(ROUND_MS));
	}
	took = pair_now_ms() - began;
	pair_meet(me, 1 - me->index);
	side_close(me, &side);
	return took;
}

static void run(struct pair_member *me)
{
	const struct cross *cross = me->arg;
	uint64_t worst = 0, sum = 0;

	for (unsigned i = 0; i < cross->rounds; i++) {
		uint64_t took = cross_once(me, i);

		worst = FR_MAX(worst, took);
		sum += took;
	}
	if (me->index == 0) {
		pair_say("    %u rounds: %.1f ms on average, %u ms at worst",
			 cross->rounds, (double)sum / cross->rounds,
			 (unsigned)worst);
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "two who connect to each other at once", 15);
	for (unsigned i = 0; i < FR_ARRAY_LEN(crosses); i++) {
		struct pair_case pc = {
			.name = "crossing",
			.provider = pair_provider(crosses[i].provider),
			.rails = crosses[i].rails,
			.members = 2,
			.limit_s = 60,
			.run = run,
			.arg = &crosses[i],
		};

		if (pc.provider != NULL) {
			pair_run(&pc);
		}
	}
	return pair_end();
}
