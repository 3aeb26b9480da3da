/*
 * Mixed traffic under all pairs of values of what changes the way of a message:
 * provider, rails, early messages, completion, registrations, endpoints,
 * keeper, ranks and table. A greedy search, the same in each run, finds few
 * combinations in which each two values of two axes meet.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

#define AXES 9u
#define VALUES 4u
#define MAX_RANKS 4u
#define LARGE (1u << 20)
#define GROUP 3
#define TAG 40
#define MAX_COMBINATIONS 64u

enum axis {
	PROVIDER,
	RAILS,
	EAGER,
	COMPLETION,
	MR_CACHE,
	EP_PER_COMM,
	KEEPER,
	RANKS,
	TABLE
};

static const struct {
	const char *variable; /* NULL: not by the environment */
	unsigned cnt;
	const char *value[VALUES];
} axes[AXES] = {
	[PROVIDER] = {NULL, 4, {"net", "tcp;ofi_rxm", "sockets", "shm"}},
	[RAILS] = {NULL, 4, {"1", "2", "3", "4"}},
	[EAGER] = {"OFI_NCCL_EAGER_MAX_SIZE", 2, {"8192", "-1"}},
	[COMPLETION] = {"OFI_NCCL_SEND_COMPLETION", 2, {"delivery", "local"}},
	[MR_CACHE] = {"OFI_NCCL_MR_CACHE_DISABLE", 2, {"0", "1"}},
	[EP_PER_COMM] = {"OFI_NCCL_ENDPOINT_PER_COMM", 2, {"0", "1"}},
	[KEEPER] = {"OFI_NCCL_KEEPER", 2, {"1", "0"}},
	[RANKS] = {NULL, 3, {"2", "3", "4"}},
	[TABLE] = {NULL, 3, {"6", "9", "12"}},
};

struct combination {
	unsigned pick[AXES];
};

/* -- which combinations -----------------------------------------------------*/

static bool met[AXES][VALUES][AXES][VALUES];
static bool provider_here[VALUES];

/*
 * Without a keeper a peer waits until this process calls. Of a receiving comm
 * that has endpoints of its own nothing is called any more once its last
 * message is there.
 */
static bool is_possible(unsigned a, unsigned i, unsigned b, unsigned k)
{
	if ((a == PROVIDER && !provider_here[i]) ||
	    (b == PROVIDER && !provider_here[k])) {
		return false;
	}
	return !(a == EP_PER_COMM && i == 1 && b == KEEPER && k == 1);
}

static bool fits(const struct combination *c, unsigned cnt, unsigned axis,
		 unsigned value)
{
	for (unsigned a = 0; a < cnt; a++) {
		if (!is_possible(a, c->pick[a], axis, value)) {
			return false;
		}
	}
	return axis != PROVIDER || provider_here[value];
}

static unsigned gain(const struct combination *c, unsigned axis, unsigned value)
{
	unsigned fresh = 0;

	for (unsigned a = 0; a < axis; a++) {
		fresh += !met[a][c->pick[a]][axis][value];
	}
	return fresh;
}

/* Begins with the first pair that has not met, then takes for each axis what
 * meets most that is new. Return: false when all have met. */
static bool next_combination(struct combination *c, unsigned turn)
{
	unsigned first[2] = {AXES, 0}, second[2] = {AXES, 0};

	for (unsigned a = 0; a < AXES && first[0] == AXES; a++) {
		for (unsigned b = a + 1; b < AXES && first[0] == AXES; b++) {
			for (unsigned n = 0;
			     n < axes[a].cnt * axes[b].cnt && first[0] == AXES;
			     n++) {
				unsigned i = n / axes[b].cnt;
				unsigned k = n % axes[b].cnt;

				if (is_possible(a, i, b, k) &&
				    !met[a][i][b][k]) {
					first[0] = a;
					first[1] = i;
					second[0] = b;
					second[1] = k;
				}
			}
		}
	}
	for (unsigned a = 0; a < AXES && first[0] != AXES; a++) {
		unsigned best = VALUES, most = 0;

		for (unsigned n = 0; n < axes[a].cnt; n++) {
			unsigned value = (n + turn) % axes[a].cnt;
			unsigned fresh = gain(c, a, value) + 1;

			if (a == first[0]) {
				fresh = value == first[1] ? 100 : 0;
			} else if (a == second[0]) {
				fresh = value == second[1] ? 100 : 0;
			}
			if (fits(c, a, a, value) && fresh > most) {
				most = fresh;
				best = value;
			}
		}
		c->pick[a] = best;
	}
	return first[0] != AXES;
}

static void mark(const struct combination *c)
{
	for (unsigned a = 0; a < AXES; a++) {
		for (unsigned b = a + 1; b < AXES; b++) {
			met[a][c->pick[a]][b][c->pick[b]] = true;
		}
	}
}

/* -- one combination --------------------------------------------------------*/

static const char *value_of(const struct combination *c, enum axis axis)
{
	return axes[axis].value[c->pick[axis]];
}

static unsigned number_of(const struct combination *c, enum axis axis)
{
	return (unsigned)strtoul(value_of(c, axis), NULL, 10);
}

static void env(unsigned i, const void *arg)
{
	const struct combination *c = arg;

	(void)i;
	for (unsigned a = 0; a < AXES; a++) {
		if (axes[a].variable != NULL) {
			setenv(axes[a].variable, value_of(c, a), 1);
		}
	}
}

struct line {
	struct pair_buf out;
	struct pair_buf in;
	void *sreq[GROUP];
	void *rreq;
};

static unsigned long seed_of(unsigned from, unsigned to, unsigned round)
{
	return from * 1000ul + to * 100ul + round;
}

/* Pairs in one order for all, so that nobody waits in a circle. */
static void join_all(struct pair_member *me, struct line *lines)
{
	for (unsigned a = 0; a < me->cnt; a++) {
		for (unsigned b = a + 1; b < me->cnt; b++) {
			unsigned with = me->index == a ? b : a;
			void *send, *recv;

			if (me->index != a && me->index != b) {
				continue;
			}
			pair_join(me, with, &send, &recv);
			pair_buf_open(me, send, LARGE, &lines[with].out);
			pair_buf_open(me, recv, LARGE, &lines[with].in);
		}
	}
}

static bool step(struct pair_member *me, void **req, int *size)
{
	int done = 0, ret;

	if (*req == NULL) {
		return true;
	}
	ret = fr_plugin_test(me->plugin, *req, &done, size);
	PAIR_CHECK(ret == 0, "test: %s", fr_plugin_result_text(ret));
	if (done != 0) {
		*req = NULL;
	}
	return done != 0;
}

/* One message to and from each of the others. */
static void one_round(struct pair_member *me, struct line *lines, size_t bytes,
		      unsigned round)
{
	unsigned left = me->cnt - 1;
	int size[MAX_RANKS] = {0};
	bool sent[MAX_RANKS] = {false};

	for (unsigned p = 0; p < me->cnt; p++) {
		if (p == me->index) {
			sent[p] = true;
			continue;
		}
		pair_fill(lines[p].out.mem, bytes,
			  seed_of(me->index, p, round));
		memset(lines[p].in.mem, 0, bytes + (bytes < LARGE));
		lines[p].rreq = pair_irecv_wait(me, &lines[p].in,
						bytes == 0 ? 64 : bytes);
	}
	while (left != 0) {
		left = 0;
		for (unsigned p = 0; p < me->cnt; p++) {
			if (p == me->index) {
				continue;
			}
			if (!sent[p]) {
				PAIR_CHECK(pair_isend(me, &lines[p].out, bytes,
						      &lines[p].sreq[0]) == 0,
					   "isend");
				sent[p] = lines[p].sreq[0] != NULL;
			}
			left += !sent[p] || !step(me, &lines[p].sreq[0], NULL);
			left += !step(me, &lines[p].rreq, &size[p]);
		}
	}
	for (unsigned p = 0; p < me->cnt; p++) {
		PAIR_CHECK(
			p == me->index ||
				(size[p] == (int)bytes &&
				 pair_is_filled(lines[p].in.mem, bytes,
						seed_of(p, me->index, round))),
			"round %u: %zu bytes of rank %u came wrong (%d)", round,
			bytes, p, size[p]);
		PAIR_CHECK(p == me->index || bytes == LARGE ||
				   lines[p].in.mem[bytes] == 0,
			   "round %u: a byte behind the message", round);
	}
}

static void *post_group(struct pair_member *me, struct line *line, size_t bytes)
{
	void *data[GROUP], *mh[GROUP], *req = NULL;
	size_t sizes[GROUP];
	int tag[GROUP];

	for (int n = 0; n < GROUP; n++) {
		data[n] = line->in.mem + (size_t)n * bytes;
		mh[n] = line->in.mh;
		sizes[n] = bytes;
		tag[n] = TAG + n;
	}
	while (req == NULL) {
		PAIR_CHECK(fr_plugin_irecv(me->plugin, line->in.comm, GROUP,
					   data, sizes, tag, mh, &req) == 0,
			   "irecv of a group");
	}
	return req;
}

/* The sends of a group in another order than its receives. */
static void group_round(struct pair_member *me, struct line *lines,
			size_t bytes, unsigned round)
{
	unsigned left = 1;
	int next[MAX_RANKS], sizes[GROUP];

	for (unsigned p = 0; p < me->cnt; p++) {
		next[p] = p == me->index ? -1 : GROUP - 1;
		if (p != me->index) {
			pair_fill(lines[p].out.mem, GROUP * bytes,
				  seed_of(me->index, p, round));
			memset(lines[p].in.mem, 0, GROUP * bytes);
			lines[p].rreq = post_group(me, &lines[p], bytes);
		}
	}
	while (left != 0) {
		left = 0;
		for (unsigned p = 0; p < me->cnt; p++) {
			struct line *line = &lines[p];
			int n = next[p];

			if (p == me->index) {
				continue;
			}
			if (n >= 0) {
				PAIR_CHECK(fr_plugin_isend(
						   me->plugin, line->out.comm,
						   line->out.mem +
							   (size_t)n * bytes,
						   bytes, TAG + n, line->out.mh,
						   &line->sreq[n]) == 0,
					   "isend to a group");
				next[p] -= line->sreq[n] != NULL;
			}
			for (int k = 0; k < GROUP; k++) {
				left += !step(me, &line->sreq[k], NULL);
			}
			left += next[p] >= 0;
			left += !step(me, &line->rreq, sizes);
		}
	}
	for (unsigned p = 0; p < me->cnt; p++) {
		PAIR_CHECK(p == me->index ||
				   pair_is_filled(lines[p].in.mem,
						  GROUP * bytes,
						  seed_of(p, me->index, round)),
			   "a group of rank %u came wrong", p);
	}
}

/* Ready when all are; calls meanwhile, for others wait for ours. No receive is
 * there for what is offered. */
static void all_done(struct pair_member *me, struct line *lines)
{
	bool heard[MAX_RANKS] = {false};
	unsigned left = 1;

	for (unsigned p = 0; p < me->cnt; p++) {
		if (p != me->index) {
			pair_tell(me, p);
		}
	}
	while (left != 0) {
		left = 0;
		for (unsigned p = 0; p < me->cnt; p++) {
			void *req = NULL;

			if (p == me->index || heard[p]) {
				continue;
			}
			if (pair_told(me, p)) {
				pair_hear(me, p);
				heard[p] = true;
				continue;
			}
			PAIR_CHECK(pair_isend(me, &lines[p].out, LARGE, &req) ==
						   0 &&
					   req == NULL,
				   "a send without a receive");
			left++;
		}
	}
}

/* The oldest tables take one receive at a time. */
static bool takes_groups(struct pair_member *me)
{
	struct fr_plugin_props props;

	PAIR_CHECK(fr_plugin_props(me->plugin, 0, &props) == 0, "properties");
	return props.max_recvs >= GROUP;
}

static void run(struct pair_member *me)
{
	static const size_t sizes[] = {1,    0,	    128,    4000,
				       8192, 70001, 131072, LARGE};
	struct line lines[MAX_RANKS];
	unsigned round = 0;

	memset(lines, 0, sizeof(lines));
	join_all(me, lines);
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < FR_ARRAY_LEN(sizes); i++) {
			one_round(me, lines, sizes[i], round++);
		}
		if (takes_groups(me)) {
			group_round(me, lines, turn == 0 ? 64 : 100000,
				    round++);
		}
	}
	all_done(me, lines);
	for (unsigned p = 0; p < me->cnt; p++) {
		void *send = lines[p].out.comm, *recv = lines[p].in.comm;

		if (p == me->index) {
			continue;
		}
		pair_buf_close(me, &lines[p].out);
		pair_buf_close(me, &lines[p].in);
		PAIR_CHECK(fr_plugin_close_send(me->plugin, send) == 0 &&
				   fr_plugin_close_recv(me->plugin, recv) == 0,
			   "close");
	}
}

static void run_combination(const struct combination *c)
{
	char name[160] = "";
	struct pair_case pc = {
		.name = name,
		.provider = value_of(c, PROVIDER),
		.rails = number_of(c, RAILS),
		.members = number_of(c, RANKS),
		.limit_s = 60,
		.run = run,
		.env = env,
		.arg = c,
		.abi = number_of(c, TABLE),
	};

	(void)snprintf(name, sizeof(name),
		       "%s ranks, table v%s, early %s, %s, cache %s, %s, "
		       "keeper %s",
		       value_of(c, RANKS), value_of(c, TABLE),
		       c->pick[EAGER] == 0 ? "on" : "off",
		       value_of(c, COMPLETION),
		       c->pick[MR_CACHE] == 0 ? "on" : "off",
		       c->pick[EP_PER_COMM] == 0 ? "endpoints shared"
						 : "endpoints a comm",
		       c->pick[KEEPER] == 0 ? "on" : "off");
	pair_run(&pc);
}

/* Return: pairs that could meet and did not. */
static unsigned missing(void)
{
	unsigned cnt = 0;

	for (unsigned a = 0; a < AXES; a++) {
		for (unsigned b = a + 1; b < AXES; b++) {
			for (unsigned n = 0; n < axes[a].cnt * axes[b].cnt;
			     n++) {
				unsigned i = n / axes[b].cnt;
				unsigned k = n % axes[b].cnt;

				cnt += is_possible(a, i, b, k) &&
				       !met[a][i][b][k];
			}
		}
	}
	return cnt;
}

int main(int argc, char **argv)
{
	struct combination c;
	unsigned cnt = 0;

	if (argc > 1) {
		setenv("FR_PLUGIN", argv[1], 1);
	}
	pair_main(argc, argv, "pairs of all that can be chosen", 25);
	for (unsigned i = 0; i < axes[PROVIDER].cnt; i++) {
		provider_here[i] =
			pair_provider(axes[PROVIDER].value[i]) != NULL;
	}
	while (cnt < MAX_COMBINATIONS && next_combination(&c, cnt)) {
		mark(&c);
		cnt++;
		run_combination(&c);
	}
	if (missing() != 0) {
		pair_say("FAILED: %u pairs have not met in %u combinations",
			 missing(), cnt);
		return 1;
	}
	return pair_end();
}
