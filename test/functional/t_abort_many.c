/*
 * A thousand aborts. Each comm has endpoints of its own here, so that an abort
 * ends one comm and many can be had at a time; or all share a thread's, where
 * nothing is fenced and the next comm comes at once under the same endpoints,
 * or where the first abort ends all comms, each with requests under way.
 *
 * Memory that was deregistered is somebody else's: canaries find what is
 * written to it, a page without access what is read or copied. The other side
 * learns in bounded time, and what it was told to be done is right.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "functional/life.h"

#define BATCH 8
#define MSGS 8
#define PLANS 5
#define LARGE (512u << 10)
#define SMALL 600u
#define CANARY 0xa5
#define DEREG_MS 1000
#define ERROR_MS 5000
#define WARM 2
/* libfabric keeps a few KiB of each set. */
#define SLACK_KIB 2048

struct plan {
	unsigned rounds; /* of BATCH aborts each */
	bool receiver;	 /* it aborts, else the sender */
	bool small;	 /* messages are short */
	bool own;	 /* each comm has endpoints of its own */
	bool fences;	 /* what is under way must be stopped */
	bool leaves;	 /* the provider's endpoints are left, not closed */
	bool warm;	 /* all connections of libfabric's are up before */
};

struct line {
	struct pair_buf buf;
	void *req[MSGS];
	bool done[MSGS];
};

static struct line lines[BATCH];
static uint64_t worst_error, worst_dereg;

static const struct plan *plan_of(const struct pair_member *me)
{
	return me->arg;
}

/* Member 0 sends. */
static bool aborts(const struct pair_member *me)
{
	return plan_of(me)->receiver == (me->index == 1);
}

static size_t size_of(const struct pair_member *me)
{
	return plan_of(me)->small ? SMALL : LARGE;
}

static unsigned long seed_of(unsigned round, unsigned i, unsigned msg)
{
	return ((unsigned long)round * BATCH + i) * MSGS + msg;
}

static struct pair_buf part_of(const struct pair_member *me,
			       const struct line *line, unsigned msg)
{
	struct pair_buf part = line->buf;

	part.mem += msg * size_of(me);
	return part;
}

/* -- setting up -------------------------------------------------------------
 */

static void connect_batch(struct pair_member *me, void *comm[BATCH])
{
	uint8_t handle[BATCH][FR_PLUGIN_HANDLE_BYTES];
	unsigned left = BATCH;

	memset(comm, 0, BATCH * sizeof(*comm));
	pair_get(me, 1, handle, sizeof(handle));
	while (left != 0) {
		for (unsigned i = 0; i < BATCH; i++) {
			int ret;

			if (comm[i] != NULL) {
				continue;
			}
			ret = fr_plugin_connect(me->plugin, me->ctx, 0,
						handle[i], &comm[i]);
			PAIR_CHECK(ret == 0, "connect: %s",
				   fr_plugin_result_text(ret));
			left -= comm[i] != NULL;
		}
		pair_nap_us(50);
	}
}

static void accept_batch(struct pair_member *me, void *comm[BATCH])
{
	uint8_t handle[BATCH][FR_PLUGIN_HANDLE_BYTES] = {{0}};
	void *listen[BATCH];
	unsigned left = BATCH;

	memset(comm, 0, BATCH * sizeof(*comm));
	for (unsigned i = 0; i < BATCH; i++) {
		listen[i] = pair_listen(me, handle[i]);
	}
	pair_put(me, 0, handle, sizeof(handle));
	while (left != 0) {
		for (unsigned i = 0; i < BATCH; i++) {
			int ret;

			if (comm[i] != NULL) {
				continue;
			}
			ret = fr_plugin_accept(me->plugin, listen[i], &comm[i]);
			PAIR_CHECK(ret == 0, "accept: %s",
				   fr_plugin_result_text(ret));
			left -= comm[i] != NULL;
		}
		pair_nap_us(50);
	}
	for (unsigned i = 0; i < BATCH; i++) {
		life_close_listen(me, listen[i]);
	}
}

static void open_batch(struct pair_member *me)
{
	void *comm[BATCH];

	memset(lines, 0, sizeof(lines));
	if (me->index == 0) {
		connect_batch(me, comm);
	} else {
		accept_batch(me, comm);
	}
	for (unsigned i = 0; i < BATCH; i++) {
		pair_buf_open(me, comm[i], MSGS * size_of(me), &lines[i].buf);
	}
}

/* One message on each, so that all connections below are up. */
static void warm_batch(struct pair_member *me)
{
	for (unsigned i = 0; i < BATCH; i++) {
		struct pair_buf part = part_of(me, &lines[i], 0);

		part.bytes = size_of(me);
		if (me->index == 0) {
			pair_send(me, &part, size_of(me));
		} else {
			pair_recv(me, &part, size_of(me));
		}
	}
}

/* Sends may meet the other side's abort already. */
static void post_line(struct pair_member *me, struct line *line)
{
	for (unsigned msg = 0; msg < MSGS; msg++) {
		struct pair_buf part = part_of(me, line, msg);
		int ret = 0;

		while (ret == 0 && line->req[msg] == NULL) {
			ret = me->index == 1
				      ? pair_irecv(me, &part, size_of(me),
						   &line->req[msg])
				      : pair_isend(me, &part, size_of(me),
						   &line->req[msg]);
		}
		PAIR_CHECK(ret == 0 || (ret == PAIR_REMOTE && !aborts(me)),
			   "%s: %s", me->index == 1 ? "irecv" : "isend",
			   fr_plugin_result_text(ret));
	}
}

static void fill_batch(struct pair_member *me, unsigned round)
{
	for (unsigned i = 0; i < BATCH * MSGS; i++) {
		struct pair_buf part = part_of(me, &lines[i / MSGS], i % MSGS);

		pair_fill(part.mem, size_of(me),
			  seed_of(round, i / MSGS, i % MSGS));
	}
}

/* -- the side that aborts ---------------------------------------------------
 */

/* A few looks, so that each comm is in another phase. */
static void look_at_some(struct pair_member *me, struct line *line, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		unsigned msg = k % MSGS;
		int done = 0;

		if (line->req[msg] == NULL) {
			continue;
		}
		PAIR_CHECK(fr_plugin_test(me->plugin, line->req[msg], &done,
					  NULL) == 0,
			   "test before the abort");
		if (done != 0) {
			line->req[msg] = NULL;
		}
	}
}

static void give_away(uint8_t *mem, size_t bytes, bool unmap)
{
	if (unmap) {
		PAIR_CHECK(mprotect(mem, bytes, PROT_NONE) == 0, "mprotect: %s",
			   strerror(errno));
	} else {
		memset(mem, CANARY, bytes);
	}
}

static void check_canary(const uint8_t *mem, size_t bytes)
{
	PAIR_CHECK(mem[0] == CANARY && memcmp(mem, mem + 1, bytes - 1) == 0,
		   "memory was written to after its deregistration");
}

static void abort_line(struct pair_member *me, struct line *line, bool unmap)
{
	uint64_t began = pair_now_ms();
	int ret;

	ret = fr_plugin_dereg_mr(me->plugin, line->buf.comm, line->buf.mh);
	PAIR_CHECK(ret == 0, "deregMr: %s", fr_plugin_result_text(ret));
	give_away(line->buf.mem, line->buf.bytes, unmap);
	worst_dereg = FR_MAX(worst_dereg, pair_now_ms() - began);
	life_in_time(began, DEREG_MS, "deregMr");
	if (me->index == 0) {
		life_close_send(me, line->buf.comm);
	} else {
		life_close_recv(me, line->buf.comm);
	}
}

static void abort_batch(struct pair_member *me, unsigned round)
{
	bool one_fence = plan_of(me)->fences && !plan_of(me)->own;

	pair_at(me, "aborting");
	for (unsigned i = 0; i < BATCH; i++) {
		if (me->index == 0) {
			post_line(me, &lines[i]);
		}
		look_at_some(me, &lines[i], (round + i) % 7 * 5);
		if (!one_fence) {
			abort_line(me, &lines[i], (round + i) % 3 == 0);
		}
	}
	for (unsigned i = 0; i < BATCH && one_fence; i++) {
		abort_line(me, &lines[i], (round + i) % 3 == 0);
	}
}

static void end_batch(unsigned round)
{
	for (unsigned i = 0; i < BATCH; i++) {
		if ((round + i) % 3 != 0) {
			check_canary(lines[i].buf.mem, lines[i].buf.bytes);
		}
		munmap(lines[i].buf.mem, lines[i].buf.bytes);
	}
}

/* -- the other one ----------------------------------------------------------
 */

/* Return: requests that are outstanding. */
static unsigned look(struct pair_member *me, struct line *line)
{
	unsigned left = 0;

	for (unsigned msg = 0; msg < MSGS; msg++) {
		int done = 0, ret;

		if (line->req[msg] == NULL) {
			continue;
		}
		ret = fr_plugin_test(me->plugin, line->req[msg], &done, NULL);
		PAIR_CHECK(ret == 0 || ret == PAIR_REMOTE, "test: %s",
			   fr_plugin_result_text(ret));
		if (done != 0 || ret != 0) {
			line->req[msg] = NULL;
			line->done[msg] = done != 0;
		}
		left += line->req[msg] != NULL;
	}
	return left;
}

static unsigned look_at_all(struct pair_member *me)
{
	unsigned left = 0;

	for (unsigned i = 0; i < BATCH; i++) {
		left += look(me, &lines[i]);
	}
	return left;
}

/* New calls are refused as well, at the latest after what was under way. */
static void no_new_call(struct pair_member *me, struct line *line,
			uint64_t began)
{
	void *req = NULL;
	int ret = 0;

	while (ret == 0) {
		ret = me->index == 0 ? pair_isend(me, &line->buf, 1, &req)
				     : pair_irecv(me, &line->buf, 1, &req);
		if (ret == 0 && req != NULL) {
			ret = pair_test_wait(me, req, ERROR_MS, NULL);
		}
		life_in_time(began, ERROR_MS, "the error of a new call");
	}
	PAIR_CHECK(ret == PAIR_REMOTE, "a new call: %d", ret);
}

static void see_the_end(struct pair_member *me, unsigned round)
{
	uint64_t began;

	pair_at(me, "waiting for the errors");
	while (!pair_told(me, 1 - me->index)) {
		(void)look_at_all(me);
	}
	pair_hear(me, 1 - me->index);
	began = pair_now_ms();
	while (look_at_all(me) != 0) {
		life_in_time(began, ERROR_MS, "the error");
	}
	worst_error = FR_MAX(worst_error, pair_now_ms() - began);
	for (unsigned i = 0; i < BATCH; i++) {
		struct line *line = &lines[i];

		for (unsigned msg = 0; me->index == 1 && msg < MSGS; msg++) {
			struct pair_buf part = part_of(me, line, msg);

			PAIR_CHECK(
				!line->done[msg] ||
					pair_is_filled(part.mem, size_of(me),
						       seed_of(round, i, msg)),
				"a message was done and is wrong");
		}
		no_new_call(me, line, began);
		pair_buf_close(me, &line->buf);
		if (me->index == 0) {
			life_close_send(me, line->buf.comm);
		} else {
			life_close_recv(me, line->buf.comm);
		}
	}
}

/* -- what comes next --------------------------------------------------------
 */

/* At once, on the same device: nothing late may reach it. */
static void next_comm(struct pair_member *me, unsigned round)
{
	unsigned long seed = ~(unsigned long)round;
	struct pair_buf buf;

	pair_at(me, "the next comm");
	if (me->index == 0) {
		pair_buf_open(me, pair_connect(me, 1), size_of(me), &buf);
	} else {
		pair_buf_open(me, pair_accept(me, 0), size_of(me), &buf);
	}
	for (unsigned i = 0; i < 4; i++, seed++) {
		size_t bytes = i % 2 == 0 ? 100 : size_of(me);

		if (me->index == 0) {
			pair_fill(buf.mem, bytes, seed);
			pair_send(me, &buf, bytes);
		} else {
			pair_recv(me, &buf, bytes);
			PAIR_CHECK(pair_is_filled(buf.mem, bytes, seed),
				   "the next comm's message is wrong");
		}
	}
	pair_buf_close(me, &buf);
	if (me->index == 0) {
		life_close_send(me, buf.comm);
	} else {
		life_close_recv(me, buf.comm);
	}
}

/* Where nothing is fenced the next comm comes before the other side looks. */
static void one_round(struct pair_member *me, unsigned round)
{
	bool fences = plan_of(me)->fences;

	pair_at(me, "connecting");
	open_batch(me);
	if (plan_of(me)->warm) {
		warm_batch(me);
	}
	pair_at(me, "posting");
	if (me->index == 0) {
		fill_batch(me, round);
		pair_hear(me, 1);
	}
	for (unsigned i = 0; i < BATCH && (me->index == 1 || !aborts(me));
	     i++) {
		post_line(me, &lines[i]);
	}
	if (me->index == 1) {
		pair_tell(me, 0);
	}
	if (aborts(me)) {
		abort_batch(me, round);
	}
	if (!fences) {
		next_comm(me, round);
	}
	if (aborts(me)) {
		pair_tell(me, 1 - me->index);
	} else {
		see_the_end(me, round);
	}
	if (fences) {
		next_comm(me, round);
	}
	pair_meet(me, 1 - me->index);
	if (aborts(me)) {
		end_batch(round);
	}
}

/* A sanitizer finds nothing new in the later ones. */
static unsigned rounds_of(const struct plan *plan)
{
	return plan->rounds > 60 ? plan->rounds / pair_stretch(1)
				 : plan->rounds;
}

static void run(struct pair_member *me)
{
	const struct plan *plan = plan_of(me);
	const unsigned rounds = rounds_of(plan);
	struct life_held warm = {0};

	pair_expect("closed its receive comm");
	pair_expect("for another process");
	if (plan->fences) {
		pair_expect("fenced");
		pair_expect("is lost");
	}
	for (unsigned round = 0; round < rounds; round++) {
		one_round(me, round);
		if (round == WARM) {
			life_look(&warm);
			warm.fds += LIFE_HALF_FDS;
		}
	}
	if (!plan->leaves && plan->warm) {
		life_flat(&warm, SLACK_KIB, "aborts");
	}
	pair_say("    %s: %u aborts; worst: error %llu ms, deregMr %llu ms",
		 me->index == 0 ? "sender" : "receiver", rounds * BATCH,
		 (unsigned long long)worst_error,
		 (unsigned long long)worst_dereg);
}

static void one_set_a_comm(unsigned i, const void *arg)
{
	const struct plan *plan = arg;

	(void)i;
	if (plan->own) {
		setenv("OFI_NCCL_ENDPOINT_PER_COMM", "1", 1);
	}
}

static void run_plan(const char *provider, const char *name,
		     const struct plan *plan)
{
	const struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = 1,
		.members = 2,
		.limit_s = 90,
		.run = run,
		.env = one_set_a_comm,
		.arg = plan,
	};

	/* Many threads, or pages to be cleared: one after the other. */
	if (pair_traits(provider)->writes_all) {
		pair_run(&pc);
	} else {
		pair_spawn(&pc);
	}
}

/* Of each provider a thousand, from both sides. */
/* clang-format off */
static const struct plan plans[][PLANS] = {
	{
		{.rounds = 16, .receiver = true, .own = true, .fences = true},
		{.rounds = 24, .receiver = true, .own = true, .fences = true,
		 .warm = true},
		{.rounds = 24, .own = true, .fences = true, .warm = true},
		{.rounds = 32, .receiver = true, .small = true, .warm = true},
		{.rounds = 32, .small = true, .warm = true},
	},
	/* An endpoint that is left costs megabytes. */
	{
		{.rounds = 2, .receiver = true, .own = true, .fences = true,
		 .leaves = true},
		{.rounds = 2, .receiver = true, .own = true, .fences = true,
		 .leaves = true, .warm = true},
		{.rounds = 2, .own = true, .fences = true, .leaves = true,
		 .warm = true},
		{.rounds = 60, .receiver = true, .small = true, .warm = true},
		{.rounds = 60, .small = true, .warm = true},
	},
	/* Endpoints that take long to open; and messages are never so short that
	 * they are not written, so that one fence ends a batch. A receiver
	 * learns of that by a knock as a rule, within a second or so. */
	{
		{.rounds = 2, .receiver = true, .own = true, .fences = true},
		{.rounds = 4, .receiver = true, .own = true, .fences = true,
		 .warm = true},
		{.rounds = 4, .own = true, .fences = true, .warm = true},
		{.rounds = 106, .receiver = true, .small = true, .fences = true,
		 .warm = true},
		{.rounds = 10, .small = true, .fences = true, .warm = true},
	},
};
/* clang-format on */

static const struct plan *plans_of(const char *provider)
{
	if (strcmp(provider, "tcp;ofi_rxm") == 0) {
		return plans[1];
	}
	return plans[pair_traits(provider)->writes_all ? 2 : 0];
}

static void run_all(const char *provider, unsigned nth)
{
	static const char *const names[PLANS] = {
		"the receiver aborts while it connects",
		"the receiver aborts",
		"the sender aborts",
		"the receiver leaves",
		"the sender leaves",
	};
	const struct plan *plan = plans_of(provider);

	(void)nth;
	for (unsigned i = 0; i < PLANS; i++) {
		run_plan(provider, names[i], &plan[i]);
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "t_abort_many", 80);
	pair_all_providers(run_all);
	return pair_end();
}
