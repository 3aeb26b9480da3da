/*
 * A healthy peer is quiet: it does not call, or is stopped, for
 * FR_TEST_QUIET_S seconds (8), with traffic of every kind outstanding with it.
 * Nothing is lost and nothing fails. With OFI_NCCL_PEER_TIMEOUT a stopped peer
 * is an error in bounded time, one that only does not call is none.
 *
 * t_quiet [PLUGIN [SECONDS]]
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "functional/pair.h"

#define SMALL 64
#define LARGE (4u << 20)
#define FEW 4
#define GROUP 3
#define ERROR_MS 6000

enum mode { SLEEPS, NO_KEEPER, STOPPED, SLEEPS_TIMEOUT, STOPPED_TIMEOUT };

/* What the parent must know of the case that runs. */
struct word {
	_Atomic bool quiet; /* the peer is ready to be stopped */
	_Atomic uint64_t stop_ms;
	_Atomic bool go_on;
};

static struct word *word; /* of this case */
static enum mode modes[] = {SLEEPS, NO_KEEPER, STOPPED, SLEEPS_TIMEOUT,
			    STOPPED_TIMEOUT};
static unsigned quiet_s = 8;

static void set_env(unsigned i, const void *arg)
{
	const enum mode *mode = arg;

	if (*mode == NO_KEEPER && i == 1) {
		setenv("OFI_NCCL_KEEPER", "0", 1);
	}
	if (*mode == SLEEPS_TIMEOUT || *mode == STOPPED_TIMEOUT) {
		setenv("OFI_NCCL_PEER_TIMEOUT", "3s", 1);
	}
}

static bool mode_stops(enum mode mode)
{
	return mode == STOPPED || mode == STOPPED_TIMEOUT;
}

/* Stops member 1 when it is ready, and lets it go on when its time is over. */
static void watch(const struct pair_case *pc, const int *pid)
{
	const enum mode *mode = pc->arg;
	uint64_t since = atomic_load(&word->stop_ms);

	if (!mode_stops(*mode) || pid[1] <= 0) {
		return;
	}
	if (since == 0 && atomic_load(&word->quiet)) {
		kill(pid[1], SIGSTOP);
		atomic_store(&word->stop_ms, pair_now_ms());
	} else if (since != 0 && !atomic_load(&word->go_on) &&
		   pair_now_ms() - since > (uint64_t)quiet_s * 1000) {
		atomic_store(&word->go_on, true);
		kill(pid[1], SIGCONT);
	}
}

/* The connections between the two; member 1 has the mirror image. */
struct ends {
	/* 0: small receives wait; 1: large ones, with their CTS out; 2: small
	 * sends; 3: large sends; 4: a send waits for its CTS; 5: a group */
	struct pair_buf a[6]; /* of the side that keeps calling */
};

static bool sends(const struct pair_member *me, unsigned i)
{
	bool first = i == 2 || i == 3 || i == 4;

	return me->index == 0 ? first : !first;
}

static void open_ends(struct pair_member *me, struct ends *ends)
{
	for (unsigned i = 0; i < 6; i++) {
		void *comm = sends(me, i) ? pair_connect(me, 1 - me->index)
					  : pair_accept(me, 1 - me->index);

		pair_buf_open(me, comm, (size_t)LARGE * FEW, &ends->a[i]);
		if (sends(me, i)) {
			pair_fill(ends->a[i].mem, ends->a[i].bytes, i);
		}
	}
}

static void close_ends(struct pair_member *me, struct ends *ends)
{
	for (unsigned i = 0; i < 6; i++) {
		void *comm = ends->a[i].comm;

		pair_buf_close(me, &ends->a[i]);
		PAIR_CHECK((sends(me, i)
				    ? fr_plugin_close_send(me->plugin, comm)
				    : fr_plugin_close_recv(me->plugin, comm)) ==
				   0,
			   "close");
	}
}

static size_t size_of(unsigned i)
{
	return i == 0 || i == 2 || i == 5 ? SMALL : LARGE;
}

/* Part @n of what connection @i carries. */
static void *post(struct pair_member *me, struct ends *ends, unsigned i,
		  unsigned n)
{
	struct pair_buf part = ends->a[i];

	part.mem += n * size_of(i);
	return sends(me, i) ? pair_isend_wait(me, &part, size_of(i))
			    : pair_irecv_wait(me, &part, size_of(i));
}

static void *post_group(struct pair_member *me, struct ends *ends)
{
	void *data[GROUP], *mh[GROUP], *req = NULL;
	size_t bytes[GROUP];
	int tag[GROUP];

	for (int n = 0; n < GROUP; n++) {
		data[n] = ends->a[5].mem + n * SMALL;
		mh[n] = ends->a[5].mh;
		bytes[n] = SMALL;
		tag[n] = 100 + n;
	}
	while (req == NULL) {
		int ret = fr_plugin_irecv(me->plugin, ends->a[5].comm, GROUP,
					  data, bytes, tag, mh, &req);

		PAIR_CHECK(ret == 0, "irecv of a group: %d", ret);
	}
	return req;
}

struct open_reqs {
	void *req[4 * FEW + 1];
	bool done[4 * FEW + 1];
	bool cts_came;
};

static void post_all(struct pair_member *me, struct ends *ends,
		     struct open_reqs *open)
{
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned n = 0; n < FEW; n++) {
			open->req[i * FEW + n] = post(me, ends, i, n);
		}
	}
	open->req[4 * FEW] = post_group(me, ends);
}

/* One look at everything. Return: 0; the first error. */
static int look(struct pair_member *me, struct ends *ends,
		struct open_reqs *open, void **late)
{
	for (unsigned k = 0; k < FR_ARRAY_LEN(open->req); k++) {
		int done = 0, ret;

		if (open->done[k]) {
			continue;
		}
		ret = fr_plugin_test(me->plugin, open->req[k], &done, NULL);
		if (ret != 0) {
			open->done[k] = true;
			return ret;
		}
		open->done[k] = done != 0;
	}
	if (*late == NULL) {
		return pair_isend(me, &ends->a[4], LARGE, late);
	}
	return 0;
}

static unsigned left_of(const struct open_reqs *open)
{
	unsigned left = 0;

	for (unsigned k = 0; k < FR_ARRAY_LEN(open->req); k++) {
		left += open->done[k] ? 0 : 1;
	}
	return left;
}

static void check_data(struct pair_member *me, const struct ends *ends)
{
	for (unsigned i = 0; i < 6; i++) {
		size_t bytes = size_of(i) * (i == 4 ? 1 : i == 5 ? GROUP : FEW);

		PAIR_CHECK(sends(me, i) ||
				   pair_is_filled(ends->a[i].mem, bytes, i),
			   "the data of connection %u is wrong", i);
	}
}

/* The stopped one is given up, in time; it was never dead. */
static void expect_error(struct pair_member *me, struct ends *ends,
			 struct open_reqs *open, void **late)
{
	uint64_t since, took;
	int ret = 0;

	pair_expect("frozen");
	pair_expect("fenced");
	while (atomic_load(&word->stop_ms) == 0) {
		ret = look(me, ends, open, late);
		PAIR_CHECK(ret == 0, "an error too early: %d", ret);
	}
	since = atomic_load(&word->stop_ms);
	while (ret == 0) {
		ret = look(me, ends, open, late);
		took = pair_now_ms() - since;
		PAIR_CHECK(took < pair_stretch(ERROR_MS), "no error in %llu ms",
			   (unsigned long long)took);
		pair_nap_us(500);
	}
	PAIR_CHECK(ret == PAIR_REMOTE, "%s", fr_plugin_result_text(ret));
	PAIR_CHECK(took > 2500, "given up after %llu ms already",
		   (unsigned long long)took);
	while (left_of(open) != 0) {
		ret = look(me, ends, open, late);
		PAIR_CHECK(ret == PAIR_REMOTE || left_of(open) == 0,
			   "a request without an error: %d", ret);
	}
	pair_say("    stopped with OFI_NCCL_PEER_TIMEOUT=3s: error after "
		 "%llu ms",
		 (unsigned long long)took);
}

static void run_caller(struct pair_member *me, enum mode mode)
{
	struct open_reqs open = {0};
	struct ends ends;
	void *late = NULL;
	uint64_t until;

	open_ends(me, &ends);
	pair_meet(me, 1);
	pair_at(me, "posting");
	post_all(me, &ends, &open);
	pair_tell(me, 1);

	pair_at(me, "the peer is quiet");
	if (mode == STOPPED_TIMEOUT) {
		expect_error(me, &ends, &open, &late);
		close_ends(me, &ends);
		return;
	}
	until = pair_now_ms() + (uint64_t)(quiet_s + 10) * 1000;
	while (left_of(&open) != 0 || late == NULL) {
		int ret = look(me, &ends, &open, &late);

		PAIR_CHECK(ret == 0, "an error with a healthy peer: %s",
			   fr_plugin_result_text(ret));
		PAIR_CHECK(pair_now_ms() < until || late != NULL,
			   "the send without a receive never started");
		pair_nap_us(200);
	}
	PAIR_CHECK(pair_test_wait(me, late, 20000, NULL) == 0, "late send");
	check_data(me, &ends);
	pair_meet(me, 1);
	close_ends(me, &ends);
}

/* Receives for the other one's sends are posted before, so that these are under
 * way meanwhile; all else only afterwards. */
static void run_quiet(struct pair_member *me, enum mode mode)
{
	void *req[2 * FEW], *group[GROUP], *mine[2 * FEW], *late;
	struct ends ends;

	open_ends(me, &ends);
	pair_meet(me, 0);
	for (unsigned n = 0; n < FEW; n++) {
		req[n] = post(me, &ends, 2, n);
		req[FEW + n] = post(me, &ends, 3, n);
	}
	pair_hear(me, 0);
	if (mode == STOPPED_TIMEOUT) {
		pair_expect("is lost"); /* told as soon as it goes on */
		pair_expect("fenced");
	}
	pair_at(me, "quiet");
	if (mode_stops(mode)) {
		atomic_store(&word->quiet, true);
		while (!atomic_load(&word->go_on)) {
			pair_nap_us(1000);
		}
	} else {
		pair_nap_us(quiet_s * 1000000);
	}
	pair_at(me, "back again");
	if (mode == STOPPED_TIMEOUT) {
		/* It was given up. Nothing of it may hang. */
		close_ends(me, &ends);
		return;
	}
	for (unsigned n = 0; n < FEW; n++) {
		mine[n] = post(me, &ends, 0, n);
		mine[FEW + n] = post(me, &ends, 1, n);
	}
	for (int n = GROUP - 1; n >= 0; n--) {
		group[n] = NULL;
		while (group[n] == NULL) {
			PAIR_CHECK(fr_plugin_isend(me->plugin, ends.a[5].comm,
						   ends.a[5].mem + n * SMALL,
						   SMALL, 100 + n, ends.a[5].mh,
						   &group[n]) == 0,
				   "isend to a group");
		}
	}
	late = post(me, &ends, 4, 0);
	for (unsigned k = 0; k < 2 * FEW; k++) {
		PAIR_CHECK(pair_test_wait(me, req[k], 20000, NULL) == 0 &&
				   pair_test_wait(me, mine[k], 20000, NULL) ==
					   0,
			   "request %u", k);
	}
	for (int n = 0; n < GROUP; n++) {
		PAIR_CHECK(pair_test_wait(me, group[n], 20000, NULL) == 0,
			   "send %d to the group", n);
	}
	PAIR_CHECK(pair_test_wait(me, late, 20000, NULL) == 0, "late receive");
	check_data(me, &ends);
	pair_meet(me, 0);
	close_ends(me, &ends);
}

static void run(struct pair_member *me)
{
	const enum mode *mode = me->arg;

	if (me->index == 0) {
		run_caller(me, *mode);
	} else {
		run_quiet(me, *mode);
	}
}

static void run_mode(const char *provider, unsigned rails, const char *name,
		     enum mode mode)
{
	struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = rails,
		.members = 2,
		.limit_s = quiet_s + 30,
		.run = run,
		.env = set_env,
		.watch = watch,
		.arg = &modes[mode],
	};

	word = mmap(NULL, sizeof(*word), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (word == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	pair_spawn(&pc);
}

int main(int argc, char **argv)
{
	const char *net, *rxm, *sockets, *shm,
		*text = getenv("FR_TEST_QUIET_S");

	if (argc > 2) {
		text = argv[2];
	}
	if (text != NULL) {
		quiet_s = (unsigned)strtoul(text, NULL, 10);
	}
	if (quiet_s < 7) {
		pair_say("less than 7 s is too short for what is tested");
		return 1;
	}
	pair_main(argc, argv, "t_quiet", quiet_s + 12);
	net = pair_provider("net");
	rxm = pair_provider("tcp;ofi_rxm");
	sockets = pair_provider("sockets");
	shm = pair_provider("shm");
	if (net != NULL) {
		run_mode(net, 4, "the peer does not call", SLEEPS);
		run_mode(net, 2, "nor has it a keeper", NO_KEEPER);
		run_mode(net, 2, "the peer is stopped", STOPPED);
		run_mode(net, 2, "it does not call, with a limit",
			 SLEEPS_TIMEOUT);
		run_mode(net, 2, "it is stopped, with a limit",
			 STOPPED_TIMEOUT);
	}
	if (rxm != NULL) {
		run_mode(rxm, 1, "the peer does not call", SLEEPS);
		run_mode(rxm, 1, "the peer is stopped", STOPPED);
	}
	if (sockets != NULL) {
		run_mode(sockets, 1, "the peer does not call", SLEEPS);
		run_mode(sockets, 1, "the peer is stopped", STOPPED);
	}
	if (shm != NULL) {
		run_mode(shm, 4, "the peer does not call", SLEEPS);
		run_mode(shm, 1, "nor has it a keeper", NO_KEEPER);
		run_mode(shm, 2, "the peer is stopped", STOPPED);
		run_mode(shm, 1, "it is stopped, with a limit",
			 STOPPED_TIMEOUT);
	}
	return pair_end();
}
