/*
 * Registrations as a host makes them: many small ones in a page, the same range
 * many times, a hundred thousand of them, given back in every order, twice, by
 * the wrong comm, or behind a close. Each one works until it is given back
 * itself, and reaches its own bytes and no others. Both ends are one process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/life.h"
#include "functional/trail.h"
#include "shim/use.h"

#define PAGE 4096u
#define PARTS 64u
#define PART 32u
#define STRIDE 120u /* number 34 lies on a page's edge */
#define STEPS 1500u
#define GROWN 8u
#define SAME 4u
#define MANY 100000u
#define WAVE 10000u
#define CELL 64u
#define USES 50u
#define MANY_MS 20000u

struct plan {
	const char *name;
	void (*run)(struct pair_member *me);
	bool written; /* no message is so short that it is copied */
	bool apart;   /* each comm has a domain of its own */
};

static const struct fr_shim_api *shim;
static char log_path[64];

static void set_env(unsigned i, const void *arg)
{
	const struct plan *plan = arg;

	(void)i;
	(void)snprintf(log_path, sizeof(log_path), "t_reg.%ld.log",
		       (long)getpid());
	shim = shim_must_load(NULL);
	setenv("OFI_NCCL_EAGER_MAX_SIZE", plan->written ? "0" : "8192", 1);
	setenv("OFI_NCCL_ENDPOINT_PER_COMM", plan->apart ? "1" : "0", 1);
}

/* The ends of a connection to oneself, and memory for both. */
struct ends {
	void *send;
	void *recv;
	uint8_t *out;
	uint8_t *in;
};

static uint8_t *map(size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	PAIR_CHECK(mem != MAP_FAILED, "mmap");
	return mem;
}

static void ends_open(struct pair_member *me, size_t bytes, struct ends *ends)
{
	life_join_self(me, &ends->send, &ends->recv);
	ends->out = map(bytes);
	ends->in = map(bytes);
}

static void ends_close(struct pair_member *me, size_t bytes, struct ends *ends)
{
	PAIR_OK(fr_plugin_close_send(me->plugin, ends->send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, ends->recv));
	munmap(ends->out, bytes);
	munmap(ends->in, bytes);
}

static struct pair_buf reg(struct pair_member *me, void *comm, uint8_t *mem,
			   size_t bytes)
{
	struct pair_buf buf = {.mem = mem, .bytes = bytes, .comm = comm};

	PAIR_OK(fr_plugin_reg_mr(me->plugin, comm, mem, bytes,
				 FR_PLUGIN_PTR_HOST, &buf.mh));
	PAIR_CHECK(buf.mh != NULL, "no registration");
	return buf;
}

static void dereg(struct pair_member *me, struct pair_buf *buf)
{
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, buf->comm, buf->mh));
	buf->mh = NULL;
}

/* ---- parts of pages ---- */

struct parts {
	struct ends ends;
	struct pair_buf out[PARTS];
	struct pair_buf in[PARTS];
	uint8_t shadow[PARTS * STRIDE]; /* what in must be */
};

/* Whichever it is, it is registered afterwards or is not any more. */
static void parts_toggle(struct pair_member *me, struct parts *p, unsigned at)
{
	bool sends = at < PARTS;
	struct pair_buf *buf = sends ? &p->out[at] : &p->in[at - PARTS];
	uint8_t *mem = sends ? p->ends.out : p->ends.in;

	if (buf->mh != NULL) {
		dereg(me, buf);
		return;
	}
	*buf = reg(me, sends ? p->ends.send : p->ends.recv,
		   mem + STRIDE * (at % PARTS), PART);
}

static void parts_use(struct pair_member *me, struct parts *p, unsigned out,
		      unsigned in, unsigned long seed)
{
	if (p->out[out].mh == NULL || p->in[in].mh == NULL) {
		return;
	}
	life_pass(me, &p->out[out], &p->in[in], PART, seed);
	memcpy(p->shadow + STRIDE * in, p->out[out].mem, PART);
	PAIR_CHECK(memcmp(p->ends.in, p->shadow, sizeof(p->shadow)) == 0,
		   "a message touched its neighbours");
}

static void run_parts(struct pair_member *me)
{
	static struct parts p;
	uint64_t dice = 20250607;

	ends_open(me, 2 * PAGE, &p.ends);
	for (unsigned step = 0; step < STEPS; step++) {
		parts_toggle(me, &p, pair_pick(&dice, 2 * PARTS));
		parts_use(me, &p, pair_pick(&dice, PARTS),
			  pair_pick(&dice, PARTS), step);
	}
	for (unsigned at = 0; at < 2 * PARTS; at++) {
		if ((at < PARTS ? &p.out[at] : &p.in[at - PARTS])->mh != NULL) {
			parts_toggle(me, &p, at);
		}
	}
	ends_close(me, 2 * PAGE, &p.ends);
}

/* The same start, longer each time; all are used to their ends. */
static void run_grown(struct pair_member *me)
{
	struct pair_buf out[GROWN], in[GROWN];
	size_t room = PAGE * GROWN;
	struct ends ends;

	ends_open(me, room, &ends);
	for (unsigned i = 0; i < GROWN; i++) {
		size_t bytes = i * PAGE + 1000;

		out[i] = reg(me, ends.send, ends.out, bytes);
		in[i] = reg(me, ends.recv, ends.in, bytes);
	}
	for (unsigned i = 0; i < GROWN; i++) {
		/* 3 and GROWN have no divisor in common. */
		unsigned gone = i * 3 % GROWN;

		for (unsigned k = i; k < GROWN; k++) {
			unsigned at = k * 3 % GROWN;

			life_pass(me, &out[at], &in[at], out[at].bytes, k);
		}
		dereg(me, &out[gone]);
		dereg(me, &in[gone]);
	}
	ends_close(me, room, &ends);
}

/* ---- the same range ---- */

/* Fails whatever it is given back by, and nothing else is changed. */
static void not_given_back(struct pair_member *me, void *comm, void *mh)
{
	PAIR_CHECK(fr_plugin_dereg_mr(me->plugin, comm, mh) ==
			   FR_PLUGIN_INVALID_ARGUMENT,
		   "deregMr of what is not the comm's");
}

/* Number @order of the orders in which four are given back. */
static void order_of(unsigned order, unsigned at[SAME])
{
	unsigned left[SAME] = {0, 1, 2, 3};

	for (unsigned n = SAME; n > 0; n--) {
		unsigned pick = order % n;

		order /= n;
		at[SAME - n] = left[pick];
		left[pick] = left[n - 1];
	}
}

static unsigned registrations(void)
{
	struct trail trail;

	trail_read(log_path, "mr", &trail);
	return trail.left;
}

/* None of those after it is of its domain. */
static bool is_last(struct pair_member *me, const unsigned at[SAME], unsigned i)
{
	const struct plan *plan = me->arg;

	for (unsigned k = i + 1; k < SAME; k++) {
		if (!plan->apart || at[k] % 2 == at[i] % 2) {
			return false;
		}
	}
	return true;
}

/* Each rail's goes with the last of those that share it. */
static void give_back(struct pair_member *me, struct pair_buf *buf, bool last)
{
	unsigned before = registrations(), after;

	dereg(me, buf);
	after = registrations();
	PAIR_CHECK(after == before - (last ? me->pc->rails : 0),
		   "%u registrations, then %u, with the %s of its users",
		   before, after, last ? "last" : "first");
}

static void same_in_order(struct pair_member *me, struct ends ends[2],
			  unsigned order)
{
	struct pair_buf out[SAME], in;
	unsigned at[SAME];

	order_of(order, at);
	for (unsigned i = 0; i < SAME; i++) {
		out[i] = reg(me, ends[i % 2].send, ends[0].out, 3 * PAGE);
	}
	for (unsigned i = 0; i < SAME; i++) {
		void *gone = out[at[i]].mh;

		for (unsigned k = i; k < SAME; k++) {
			in = reg(me, ends[at[k] % 2].recv, ends[0].in,
				 3 * PAGE);
			life_pass(me, &out[at[k]], &in, 3 * PAGE, order + k);
			dereg(me, &in);
		}
		not_given_back(me, ends[1 - at[i] % 2].send, gone);
		not_given_back(me, ends[at[i] % 2].recv, gone);
		give_back(me, &out[at[i]], is_last(me, at, i));
		not_given_back(me, out[at[i]].comm, gone);
	}
}

static void run_same(struct pair_member *me)
{
	struct ends ends[2];
	char spec[96];
	void *stays;

	(void)snprintf(spec, sizeof(spec), "log=%s", log_path);
	PAIR_OK(fr_plugin_finalize(me->plugin, me->ctx));
	PAIR_CHECK(shim->set(spec) == 0, "%s", spec);
	PAIR_OK(fr_plugin_init(me->plugin, 1, -1, &me->ctx));
	pair_expect("no registration of this comm");
	ends_open(me, 3 * PAGE, &ends[0]);
	ends_open(me, 3 * PAGE, &ends[1]);
	for (unsigned order = 0; order < 24; order++) {
		same_in_order(me, ends, order);
	}
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, ends[0].send, NULL));
	stays = reg(me, ends[0].send, ends[0].out, PAGE).mh;
	ends_close(me, 3 * PAGE, &ends[0]);
	not_given_back(me, ends[0].send, stays);
	ends_close(me, 3 * PAGE, &ends[1]);
	not_given_back(me, ends[0].send, stays);
	PAIR_CHECK(pair_logged("no registration of this comm") <= 11,
		   "a flood of lines");
	PAIR_OK(fr_plugin_finalize(me->plugin, me->ctx));
	trail_ends(log_path);
	PAIR_CHECK(shim->set(NULL) == 0, "no log");
	unlink(log_path);
	PAIR_OK(fr_plugin_init(me->plugin, 1, -1, &me->ctx));
}

/* ---- no registration at all ---- */

/* The provider needs none of us to send, but the plugin does: it is asked for a
 * handle, and says so. */
static void run_none(struct pair_member *me)
{
	struct pair_buf out, in, twice;
	struct ends ends;
	void *mh;

	ends_open(me, PAGE, &ends);
	out = reg(me, ends.send, ends.out, PAGE);
	twice = reg(me, ends.send, ends.out, PAGE);
	in = reg(me, ends.recv, ends.in, PAGE);
	life_pass(me, &out, &in, PAGE, 1);
	dereg(me, &out);
	life_pass(me, &twice, &in, PAGE, 2);
	mh = twice.mh;
	for (unsigned i = 0; i < 2; i++) {
		void *req = (void *)0x1;

		twice.mh = NULL;
		PAIR_CHECK(pair_isend(me, &twice, i == 0 ? 8 : PAGE, &req) ==
					   FR_PLUGIN_INVALID_ARGUMENT &&
				   req == NULL,
			   "a send of what is not registered");
		twice.mh = mh;
		life_pass(me, &twice, &in, PAGE, 3 + i);
	}
	dereg(me, &twice);
	dereg(me, &in);
	ends_close(me, PAGE, &ends);
}

/* ---- very many ---- */

static struct pair_buf cells[WAVE];

static void wave(struct pair_member *me, struct ends *ends, uint64_t *dice)
{
	struct pair_buf out = reg(me, ends->send, ends->out, CELL);

	memset(ends->in, 0x5a, (size_t)CELL * WAVE);
	for (unsigned i = 0; i < WAVE; i++) {
		cells[i] =
			reg(me, ends->recv, ends->in + (size_t)CELL * i, CELL);
	}
	for (unsigned n = 0; n < USES; n++) {
		unsigned at = pair_pick(dice, WAVE - 2) + 1;

		life_pass(me, &out, &cells[at], CELL, n);
		PAIR_CHECK(pair_is_all(cells[at - 1].mem, CELL, 0x5a) &&
				   pair_is_all(cells[at + 1].mem, CELL, 0x5a),
			   "a message went to its neighbour, too");
		memset(cells[at].mem, 0x5a, CELL);
	}
	PAIR_CHECK(pair_is_all(ends->in, (size_t)CELL * WAVE, 0x5a),
		   "a message went astray");
	for (unsigned i = WAVE; i > 0; i--) {
		unsigned at = pair_pick(dice, i);

		dereg(me, &cells[at]);
		cells[at] = cells[i - 1];
	}
	dereg(me, &out);
}

static void run_many(struct pair_member *me)
{
	/* All of them where most hosts will be. */
	unsigned many = strcmp(me->pc->provider, "net") == 0 ? MANY : MANY / 5;
	uint64_t dice = 20250608, began = pair_now_ms();
	size_t bytes = (size_t)CELL * WAVE;
	struct ends ends[2];

	ends_open(me, bytes, &ends[0]);
	ends_open(me, bytes, &ends[1]);
	for (unsigned i = 0; i < many / WAVE; i++) {
		wave(me, &ends[i % 2], &dice);
	}
	life_in_time(began, MANY_MS, "registering so many");
	ends_close(me, bytes, &ends[0]);
	ends_close(me, bytes, &ends[1]);
}

static const struct plan plans[] = {
	{"parts of a page, copied", run_parts, false, false},
	{"parts of a page, written", run_parts, true, false},
	{"the same start, and longer each time", run_grown, true, false},
	{"the same range, given back in every order", run_same, true, false},
	{"the same range in two domains", run_same, true, true},
	{"no registration", run_none, false, false},
	{"a hundred thousand", run_many, true, true},
};

/* sockets lets a close wait for a peer of the same process that is not called
 * meanwhile. */
static bool plan_suits(const struct plan *plan, const char *provider)
{
	return !plan->apart || plan->run != run_same ||
	       strcmp(provider, "sockets") != 0;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"net", "tcp;ofi_rxm", "sockets",
					    "shm"};
	struct pair_case pc = {.members = 1, .limit_s = 40, .env = set_env};

	pair_main(argc, argv, "registrations", 25);
	for (size_t i = 0; i < FR_ARRAY_LEN(names); i++) {
		pc.provider = pair_provider(names[i]);
		for (size_t k = 0;
		     pc.provider != NULL && k < FR_ARRAY_LEN(plans); k++) {
			if (!plan_suits(&plans[k], names[i])) {
				continue;
			}
			pc.rails = i == 0 && k % 2 == 0 ? 2 : 1;
			pc.name = plans[k].name;
			pc.run = plans[k].run;
			pc.arg = &plans[k];
			pair_run(&pc);
		}
	}
	return pair_end();
}
