/*
 * The host program aborts with requests in flight: it deregisters, gives the
 * memory to something else at once, and closes. Nobody may touch that memory
 * any more although the peer goes on writing; the peer gets its error in time;
 * a new connection of the same two processes works.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "functional/pair.h"

#define MSGS 4
#define MSG_BYTES (4u << 20)
#define BUF_BYTES ((size_t)MSGS * MSG_BYTES)
#define CANARY 0xa5
#define ERROR_MS 5000
#define DEREG_MS 1000
#define CLOSE_MS 1200
#define KEPT 4
#define GO_ON 200 /* looks */

struct plan {
	unsigned first; /* number of the first round */
	unsigned rounds;
	/* What goes from the aborting side to the other one, and back. */
	bool out;
	bool back;
};

struct side {
	struct pair_buf out;
	struct pair_buf in;
	void *req[2 * MSGS]; /* sends, then receives */
	bool done[2 * MSGS];
};

static uint64_t worst_error, worst_dereg, worst_close;

/* The other side may have aborted before all of them are posted. */
static void post_sends(struct pair_member *me, struct side *side, bool may_fail)
{
	for (int i = 0; i < MSGS; i++) {
		struct pair_buf part = side->out;
		int ret = 0;

		part.mem += (size_t)i * MSG_BYTES;
		while (ret == 0 && side->req[i] == NULL) {
			ret = pair_isend(me, &part, MSG_BYTES, &side->req[i]);
		}
		PAIR_CHECK(ret == 0 || (may_fail && ret == PAIR_REMOTE),
			   "isend: %s", fr_plugin_result_text(ret));
	}
}

static void begin(struct pair_member *me, struct side *side, bool aborts,
		  bool sends, bool receives)
{
	void *send, *recv;

	memset(side, 0, sizeof(*side));
	pair_join(me, 1 - me->index, &send, &recv);
	pair_buf_open(me, send, BUF_BYTES, &side->out);
	pair_buf_open(me, recv, BUF_BYTES, &side->in);
	pair_fill(side->out.mem, BUF_BYTES, me->index);
	for (int i = 0; i < MSGS && receives; i++) {
		struct pair_buf part = side->in;

		part.mem += (size_t)i * MSG_BYTES;
		side->req[MSGS + i] = pair_irecv_wait(me, &part, MSG_BYTES);
	}
	pair_meet(me, 1 - me->index);
	if (sends) {
		post_sends(me, side, !aborts);
	}
}

static void check_message(const struct pair_member *me, const struct side *side,
			  int i)
{
	const uint8_t *mem = side->in.mem + (size_t)i * MSG_BYTES;
	uint8_t *want = malloc(BUF_BYTES);

	PAIR_CHECK(want != NULL, "malloc");
	pair_fill(want, BUF_BYTES, 1 - me->index);
	PAIR_CHECK(memcmp(mem, want + (size_t)i * MSG_BYTES, MSG_BYTES) == 0,
		   "message %d was done and is wrong", i);
	free(want);
}

/* Return: requests that are outstanding. */
static unsigned look(struct pair_member *me, struct side *side, bool may_fail)
{
	unsigned left = 0;

	for (int i = 0; i < 2 * MSGS; i++) {
		int done = 0, ret;

		if (side->req[i] == NULL) {
			continue;
		}
		ret = fr_plugin_test(me->plugin, side->req[i], &done, NULL);
		PAIR_CHECK(ret == 0 || (may_fail && ret == PAIR_REMOTE),
			   "test: %s", fr_plugin_result_text(ret));
		if (done != 0 || ret != 0) {
			side->req[i] = NULL;
			side->done[i] = done != 0;
		}
		left += side->req[i] != NULL;
	}
	return left;
}

static void took(const char *what, uint64_t began, unsigned limit_ms,
		 uint64_t *worst)
{
	uint64_t ms = pair_now_ms() - began;

	PAIR_CHECK(ms <= pair_stretch(limit_ms), "%s took %llu ms", what,
		   (unsigned long long)ms);
	*worst = FR_MAX(*worst, ms);
}

/* -- the side that aborts ---------------------------------------------------
 */

/* Memory of former rounds that something else has now. */
struct kept {
	uint8_t *mem[KEPT];
	unsigned next;
};

static void check_canaries(const struct kept *kept)
{
	for (unsigned k = 0; k < KEPT; k++) {
		const uint8_t *mem = kept->mem[k];

		PAIR_CHECK(mem == NULL ||
				   (mem[0] == CANARY &&
				    memcmp(mem, mem + 1, BUF_BYTES - 1) == 0),
			   "memory was written to after its deregistration");
	}
}

static void keep(struct kept *kept, uint8_t *mem)
{
	uint8_t **slot = &kept->mem[kept->next++ % KEPT];

	if (*slot != NULL) {
		munmap(*slot, BUF_BYTES);
	}
	*slot = mem;
}

/* Canaries find what the kernel writes for us; a page that is not there finds
 * what we copy. */
static void reuse(struct kept *kept, uint8_t *mem, bool unmap)
{
	if (unmap) {
		PAIR_CHECK(mprotect(mem, BUF_BYTES, PROT_NONE) == 0,
			   "mprotect: %s", strerror(errno));
	} else {
		memset(mem, CANARY, BUF_BYTES);
		keep(kept, mem);
	}
}

static void dereg(struct pair_member *me, struct pair_buf *buf)
{
	uint64_t began = pair_now_ms();
	int ret = fr_plugin_dereg_mr(me->plugin, buf->comm, buf->mh);

	PAIR_CHECK(ret == 0, "deregMr: %s", fr_plugin_result_text(ret));
	took("deregMr", began, DEREG_MS, &worst_dereg);
}

static void close_both(struct pair_member *me, struct side *side)
{
	uint64_t began = pair_now_ms();

	PAIR_CHECK(fr_plugin_close_send(me->plugin, side->out.comm) == 0,
		   "closeSend");
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, side->in.comm) == 0,
		   "closeRecv");
	took("close", began, CLOSE_MS, &worst_close);
}

/* Other comms of the endpoints are polled all the while: a listener stands for
 * them. It ends with its endpoints where these had to be fenced. */
static void poll_on(struct pair_member *me, void *listen)
{
	/* Until the other side went on for a while. */
	while (!pair_told(me, 1 - me->index)) {
		void *comm = NULL;
		int ret = fr_plugin_accept(me->plugin, listen, &comm);

		PAIR_CHECK(comm == NULL && (ret == 0 || ret == PAIR_REMOTE),
			   "accept: %s", fr_plugin_result_text(ret));
	}
}

/* Until a page has come that is another one in each round: most likely the rest
 * of its message is under way then. Sometimes nothing has begun. One pass over
 * the queues at a time, which is what a call of accept does. */
static void wait_for_the_middle(struct pair_member *me, struct side *side,
				void *listen, unsigned round)
{
	size_t at = (round * 37 + 1) % 64 * (BUF_BYTES / 64);
	const volatile uint64_t *word =
		(const volatile uint64_t *)(side->in.mem + at);
	uint64_t until = pair_now_ms() + 200;

	while (round % 8 != 7 && *word == 0 && pair_now_ms() < until) {
		void *comm = NULL;

		PAIR_CHECK(fr_plugin_accept(me->plugin, listen, &comm) == 0,
			   "accept");
	}
}

static void abort_round(struct pair_member *me, struct side *side,
			struct kept *kept, unsigned round)
{
	bool unmap = round % 4 >= 2;
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen = pair_listen(me, handle);

	pair_at(me, "aborting");
	wait_for_the_middle(me, side, listen, round);
	pair_tell(me, 1 - me->index);
	dereg(me, &side->in);
	reuse(kept, side->in.mem, unmap);
	dereg(me, &side->out);
	reuse(kept, side->out.mem, unmap);
	poll_on(me, listen);
	pair_hear(me, 1 - me->index);
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
	close_both(me, side);
	pair_hear(me, 1 - me->index); /* it has seen its errors */
	check_canaries(kept);
	if (unmap) {
		munmap(side->in.mem, BUF_BYTES);
		munmap(side->out.mem, BUF_BYTES);
	}
}

/* -- the other one ----------------------------------------------------------
 */

static void see_the_end(struct pair_member *me, struct side *side)
{
	uint64_t began;
	void *req;

	while (!pair_told(me, 1 - me->index)) {
		(void)look(me, side, true);
	}
	pair_hear(me, 1 - me->index);
	began = pair_now_ms();
	for (int i = 0; i < GO_ON && look(me, side, true) != 0; i++) {
	}
	pair_tell(me, 1 - me->index);
	while (look(me, side, true) != 0) {
		took("the error", began, ERROR_MS, &worst_error);
	}
	for (int i = 0; i < MSGS; i++) {
		if (side->done[MSGS + i]) {
			check_message(me, side, i);
		}
	}
	/* Whatever was done before: no new call works. */
	while (pair_isend(me, &side->out, 8, &req) == 0) {
		took("the error of isend", began, ERROR_MS, &worst_error);
		PAIR_CHECK(req == NULL || pair_test_wait(me, req, 100, NULL) !=
						  -ETIMEDOUT,
			   "a small send hangs");
	}
	PAIR_CHECK(pair_irecv(me, &side->in, 8, &req) == PAIR_REMOTE,
		   "irecv works still");
	pair_buf_close(me, &side->out);
	pair_buf_close(me, &side->in);
	close_both(me, side);
	pair_tell(me, 1 - me->index);
}

/* -- all rounds -------------------------------------------------------------
 */

/* All of it again, to the end this time. */
static void whole_round(struct pair_member *me)
{
	struct side side;

	begin(me, &side, true, true, true);
	while (look(me, &side, false) != 0) {
	}
	for (int i = 0; i < MSGS; i++) {
		check_message(me, &side, i);
	}
	pair_meet(me, 1 - me->index);
	pair_buf_close(me, &side.out);
	pair_buf_close(me, &side.in);
	close_both(me, &side);
}

static void run(struct pair_member *me)
{
	const struct plan *plan = me->arg;
	struct kept kept = {.next = 0};
	struct side side;

	pair_expect("fenced");
	pair_expect("is lost");
	pair_expect("closed its receive comm");
	/* A repeat for endpoints that are gone, whose port the next ones have.
	 */
	pair_expect("for another process");
	for (unsigned r = plan->first; r < plan->first + plan->rounds; r++) {
		bool aborts = r % 2 == me->index;

		pair_at(me, "connecting");
		begin(me, &side, aborts, aborts ? plan->out : plan->back,
		      aborts ? plan->back : plan->out);
		pair_at(me, aborts ? "aborting" : "waiting for the error");
		if (aborts) {
			abort_round(me, &side, &kept, r);
		} else {
			see_the_end(me, &side);
		}
	}
	pair_at(me, "a connection that is not aborted");
	whole_round(me);
	check_canaries(&kept);
	pair_say("    worst: error %llu ms, deregMr %llu ms, close %llu ms",
		 (unsigned long long)worst_error,
		 (unsigned long long)worst_dereg,
		 (unsigned long long)worst_close);
}

static void run_plan(const char *provider, unsigned rails, const char *name,
		     const struct plan *plan)
{
	const struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = rails,
		.members = 2,
		.limit_s = 60,
		.run = run,
		.arg = plan,
	};

	pair_spawn(&pc);
}

int main(int argc, char **argv)
{
	/* Side by side, as most of a round is waiting for the error. */
	static const struct plan many[] = {
		{0, 6, true, true},
		{6, 6, true, true},
		{12, 6, true, true},
		{18, 7, true, true},
	};
	static const struct plan few = {0, 4, true, true};
	static const struct plan back = {0, 2, false, true};
	static const struct plan out = {0, 2, true, false};
	const char *net, *rxm, *sockets, *shm;

	pair_main(argc, argv, "t_abort", 25);
	net = pair_provider("net");
	rxm = pair_provider("tcp;ofi_rxm");
	sockets = pair_provider("sockets");
	shm = pair_provider("shm");
	for (unsigned i = 0; net != NULL && i < FR_ARRAY_LEN(many); i++) {
		run_plan(net, 1, "aborted in both directions", &many[i]);
		run_plan(net, 4, "aborted in both directions", &many[i]);
	}
	if (net != NULL) {
		run_plan(net, 4, "aborted while it receives", &back);
		run_plan(net, 4, "aborted while it sends", &out);
	}
	if (rxm != NULL) {
		run_plan(rxm, 1, "aborted in both directions", &few);
	}
	if (sockets != NULL) {
		run_plan(sockets, 1, "aborted in both directions", &few);
	}
	if (shm != NULL) {
		run_plan(shm, 1, "aborted in both directions", &many[0]);
		run_plan(shm, 4, "aborted in both directions", &many[3]);
		run_plan(shm, 2, "aborted while it sends", &out);
	}
	return pair_end();
}
