/*
 * Rounds of everything at random: providers, rails, ranks, parameters, tables,
 * faults that must be survived, pauses, stops, and in some rounds a rank that
 * is killed, or a fault that must end all in time. Ranks form a ring;
 * neighbours have several lanes (soak_lane.h) each way; every byte is checked.
 * All of a round follows from its seed, which is printed:
 *
 *   soak [PLUGIN] [--seconds N] [--seed N]     --seed: that one round
 *
 * FR_SOAK_S: seconds (120). FR_SOAK_FIRST: seed of the first round; each has
 * the next one. Without it they begin somewhere else each time.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "fake/fake_cuda.h"
#include "functional/life.h"
#include "functional/pair.h"
#include "functional/soak_lane.h"
#include "shim/use.h"

#define MOST_LANES 3u /* of two ranks */
#define LANES (2u * MOST_LANES)
#define STALL_MS 60000u
#define ERROR_MS 10000u /* from the first error to the last */

/* How a round may end before its time. */
enum soak_end { END_WELL, END_KILLED, END_FATAL };

struct round {
	unsigned long seed;
	unsigned rails;
	unsigned members;
	unsigned lanes;
	unsigned steps;
	bool stops; /* a rank is stopped now and then */
	bool gpu;
	enum soak_end end;
	const char *spec;
	char fatal[64]; /* what else the last rank's stand-in does */
	const char *param;
	const char *value;
};

/* What ranks tell each other. */
struct word {
	enum { WORD_HANDLE, WORD_ERROR, WORD_OVER } what;
	unsigned lane;
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
};

struct rank {
	struct pair_member *me;
	const struct round *round;
	struct lane lane[LANES];
	unsigned lane_cnt;
	bool gone[PAIR_MAX];
	uint64_t trouble_ms; /* a neighbour's error or death; 0: none */
	bool armed;	     /* the fatal fault */
	uint64_t dice;	     /* its own */
};

static const struct fr_shim_api *shim; /* of a rank */

static const char *const specs[] = {
	"",
	"garbage",
	"shuffle",
	"again=post:0.5",
	"again=send+write:0.9;garbage",
	"again=write@0:0.5:300",
	"keys=0,4294967301,18446744073709551614;garbage",
	"fail=setopt:1:92:0",
};

static const char *const params[][2] = {
	{"OFI_NCCL_YIELD_AFTER", "32"},
	{"OFI_NCCL_MIN_STRIPE_SIZE", "4K"},
	{"OFI_NCCL_EAGER_MAX_SIZE", "-1"},
	{"OFI_NCCL_SEND_COMPLETION", "local"},
	{"OFI_NCCL_CQ_READ_COUNT", "1"},
	{"OFI_NCCL_TEST_FIRST_SEQ", "4294967290"},
	{"OFI_NCCL_TEST_MAX_MSG_SIZE", "100001"},
	{"OFI_NCCL_MR_CACHE_DISABLE", "1"},
	{"OFI_NCCL_ENDPOINT_PER_COMM", "1"},
};

/* A message that was lost on its way in is repeated, so this one ends. */
static const struct {
	const char *kind;
	const char *calls;
} fatals[] = {
	{"sent", "1"},	   {"sent", "0"}, {"written", "1"}, {"written", "0"},
	{"received", "3"}, {"send", "1"}, {"send", "0"},    {"write", "1"},
	{"write", "0"},	   {"recv", "1"}, {"recv", "0"},    {"read", "1"},
	{"read", "0"},	   {"reg", "1"},  {"fetch", "1"},   {"fetched", "1"},
};

static bool is_last(unsigned index, const struct round *r)
{
	return index == r->members - 1;
}

static int set_spec(unsigned i, const struct round *r, const char *more)
{
	char spec[256];

	(void)snprintf(spec, sizeof(spec), "seed=%lu;%s;%s;%s", r->seed + i,
		       r->spec, r->gpu ? "gpu" : "", more);
	if (shim == NULL) {
		shim = shim_load(spec);
		return shim == NULL ? -1 : 0;
	}
	return shim->set(spec);
}

static void set_env(unsigned i, const void *arg)
{
	const struct round *r = arg;

	if (r->gpu) {
		(void)fake_cuda_load();
	}
	if (set_spec(i, r, "") != 0) {
		pair_say("FAILED: no shim");
		_exit(1);
	}
	setenv(r->param, r->value, 1);
}

/* -- a rank -----------------------------------------------------------------
 */

/* The stand-in may have refused what GPUs need: to all ranks alike. */
static bool has_gpu(const struct rank *rank)
{
	struct fr_plugin_props props;

	PAIR_OK(fr_plugin_props(rank->me->plugin, 0, &props));
	return rank->round->gpu && (props.ptr_support & LANE_PTR_CUDA) != 0;
}

/* Neighbours in a ring, those of two once. */
static void ring_open(struct rank *rank)
{
	bool gpu = has_gpu(rank);
	struct pair_member *me = rank->me;
	unsigned with[2] = {(me->index + 1) % me->cnt,
			    (me->index + me->cnt - 1) % me->cnt};
	unsigned sides = me->cnt == 2 ? 1 : 2;

	for (unsigned i = 0; i < sides * rank->round->lanes; i++) {
		struct lane *l = &rank->lane[i];
		unsigned low, high;

		l->me = me;
		l->with = with[i % sides];
		l->id = i / sides;
		low = FR_MIN(me->index, l->with);
		high = FR_MAX(me->index, l->with);
		l->dice = rank->round->seed * 1000 + low * 100 + high * 10 +
			  l->id;
		l->steps = rank->round->steps;
		l->reopens = rank->round->end == END_WELL;
		lane_init(l, gpu);
		rank->lane_cnt++;
	}
}

static void tell(struct rank *rank, unsigned with, const struct word *word)
{
	ssize_t ret;

	if (rank->gone[with]) {
		return;
	}
	ret = send(rank->me->oob[with], word, sizeof(*word), MSG_NOSIGNAL);
	PAIR_CHECK(ret == (ssize_t)sizeof(*word) ||
			   rank->round->end != END_WELL,
		   "cannot tell rank %u: %s", with, strerror(errno));
}

/* It will not go on: where something is left to do with it there is trouble. */
static void hear_end(struct rank *rank, unsigned from)
{
	rank->gone[from] = true;
	for (unsigned i = 0; i < rank->lane_cnt; i++) {
		const struct lane *l = &rank->lane[i];

		if (l->with == from && l->state != LANE_OVER &&
		    rank->trouble_ms == 0) {
			rank->trouble_ms = pair_now_ms();
		}
	}
}

static void hear_handle(struct rank *rank, unsigned from,
			const struct word *word)
{
	for (unsigned i = 0; i < rank->lane_cnt; i++) {
		struct lane *l = &rank->lane[i];

		if (l->with == from && l->id == word->lane) {
			memcpy(l->inbox, word->handle, sizeof(l->inbox));
			l->has_mail = true;
		}
	}
}

static void hear(struct rank *rank, unsigned from)
{
	struct word word;
	ssize_t ret;

	while (!rank->gone[from] && pair_told(rank->me, from)) {
		ret = recv(rank->me->oob[from], &word, sizeof(word),
			   MSG_WAITALL);
		if (ret != (ssize_t)sizeof(word) || word.what == WORD_ERROR) {
			hear_end(rank, from);
		} else if (word.what == WORD_OVER) {
			rank->gone[from] = true;
		} else {
			hear_handle(rank, from, &word);
		}
	}
}

static bool is_over(const struct rank *rank)
{
	for (unsigned i = 0; i < rank->lane_cnt; i++) {
		if (rank->lane[i].state != LANE_OVER) {
			return false;
		}
	}
	return true;
}

/* Each lane that is not through moves within the time; behind a neighbour's
 * error this rank has one, too. */
static void check_times(const struct rank *rank)
{
	bool hopeless = rank->round->end != END_WELL && rank->trouble_ms != 0;
	unsigned limit = rank->round->end == END_FATAL ? ERROR_MS : STALL_MS;
	uint64_t now = pair_now_ms();

	PAIR_CHECK(!hopeless || is_over(rank) ||
			   now - rank->trouble_ms < pair_stretch(ERROR_MS),
		   "no error %u ms after a neighbour's", ERROR_MS);
	for (unsigned i = 0; i < rank->lane_cnt; i++) {
		const struct lane *l = &rank->lane[i];

		PAIR_CHECK(l->state == LANE_OVER ||
				   now - l->moved_ms < pair_stretch(limit),
			   "lane %u with rank %u stands still in step %u, "
			   "state %d, sent %d, received %d",
			   l->id, l->with, l->step, l->state, l->tx.over,
			   l->rx.over);
	}
}

/* With all lanes open: what the last rank does to the others. */
static void do_harm(struct rank *rank)
{
	const struct round *r = rank->round;
	unsigned steps = 0;

	if (r->end == END_WELL || rank->armed || !is_last(rank->me->index, r)) {
		return;
	}
	for (unsigned i = 0; i < rank->lane_cnt; i++) {
		if (!rank->lane[i].was_open) {
			return;
		}
		steps += rank->lane[i].step;
	}
	if (r->end == END_FATAL) {
		PAIR_CHECK(set_spec(rank->me->index, r, r->fatal) == 0,
			   "no faults");
		rank->armed = true;
	} else if (steps > rank->lane_cnt * r->steps / 2) {
		pair_die();
	}
}

static int move_all(struct rank *rank)
{
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < rank->lane_cnt; i++) {
		struct lane *l = &rank->lane[i];
		struct word word = {.lane = l->id};
		bool told;

		ret = lane_move(l, word.handle, &told);
		PAIR_CHECK(ret == 0 || rank->round->end != END_WELL,
			   "an error in peace: %s gave %s, lane %u with rank "
			   "%u, step %u, sent %d of %u, received %d",
			   l->at, fr_plugin_result_text(ret), l->id, l->with,
			   l->step, l->tx.ended, l->tx.m.cnt, l->rx.over);
		if (told) {
			tell(rank, l->with, &word);
		}
	}
	return ret;
}

/* Return: 0; the plugin's first error. */
static int play(struct rank *rank)
{
	unsigned long calls = 0;
	int ret = 0;

	while (ret == 0 && !is_over(rank)) {
		for (unsigned i = 0; i < rank->me->cnt; i++) {
			if (i != rank->me->index) {
				hear(rank, i);
			}
		}
		do_harm(rank);
		ret = move_all(rank);
		check_times(rank);
		if (++calls % 16 == 0) {
			pair_nap_us(1);
		}
		if (soak_draw(&rank->dice) % 20000 == 0) {
			pair_nap_us(150000);
		}
	}
	return ret;
}

static void say_end(struct rank *rank, int ret)
{
	const struct word word = {.what = ret == 0 ? WORD_OVER : WORD_ERROR};

	soak_ops[SOAK_ERRORS] += ret != 0;
	for (unsigned i = 0; i < rank->me->cnt; i++) {
		if (i != rank->me->index) {
			tell(rank, i, &word);
		}
	}
}

/* What may be said in a round with this end. */
static void expect_lines(const struct pair_member *me, enum soak_end end)
{
	if (end != END_WELL) {
		pair_expect(""); /* of errors there are many */
	}
	if (strcmp(me->pc->provider, "sockets") == 0) {
		pair_expect("is lost");
		pair_expect("cannot post");
		pair_expect("is gone");
	}
}

static void run(struct pair_member *me)
{
	const struct round *r = me->arg;
	static struct rank rank;
	struct life_held then;
	int ret;

	rank.me = me;
	rank.round = r;
	rank.dice = r->seed * 31 + me->index;
	expect_lines(me, r->end);
	life_look(&then);
	ring_open(&rank);
	pair_at(me, "messages");
	ret = play(&rank);
	say_end(&rank, ret);
	pair_at(me, "closing");
	then.fds += LIFE_HALF_FDS;
	for (unsigned i = 0; i < rank.lane_cnt; i++) {
		/* Its comms may have had endpoints of their own. */
		then.fds += 2 * rank.lane[i].reopened;
		lane_close(&rank.lane[i]);
		lane_free(&rank.lane[i]);
	}
	if (ret == 0) {
		life_flat(&then, 32768, "a round");
	}
}

/* -- rounds -----------------------------------------------------------------
 */

static unsigned long stop_cnt, death_cnt, fatal_cnt;
static const char *running; /* what repeats the round that goes on */
static pid_t parent;

static void watch(const struct pair_case *pc, const int *pid)
{
	const struct round *r = pc->arg;
	static unsigned ticks;

	ticks++;
	if (!r->stops || pid[0] <= 0) {
		return;
	}
	if (ticks % 40 == 20) {
		kill(pid[0], SIGSTOP);
		stop_cnt++;
	} else if (ticks % 40 == 30) {
		kill(pid[0], SIGCONT);
	}
}

static enum soak_end draw_end(uint64_t *state)
{
	static const enum soak_end ends[] = {END_WELL,	 END_WELL,  END_WELL,
					     END_KILLED, END_FATAL, END_FATAL};

	return ends[soak_draw(state) % FR_ARRAY_LEN(ends)];
}

static void draw_fatal(uint64_t *state, struct round *r)
{
	size_t i = soak_draw(state) % FR_ARRAY_LEN(fatals);

	if (r->end == END_FATAL) {
		(void)snprintf(r->fatal, sizeof(r->fatal), "fail=%s:%u:5:%s",
			       fatals[i].kind,
			       1 + (unsigned)(soak_draw(state) % 60),
			       fatals[i].calls);
	}
}

static void draw_round(uint64_t *state, const char *provider, struct round *r)
{
	bool shm = strcmp(provider, "shm") == 0;
	bool sockets = strcmp(provider, "sockets") == 0;
	size_t p = soak_draw(state) % FR_ARRAY_LEN(params);

	r->rails = shm ? 1 : 1 + (unsigned)(soak_draw(state) % 4);
	r->members = 2 + (unsigned)(soak_draw(state) % 3);
	r->lanes = 1 + (unsigned)(soak_draw(state) % MOST_LANES);
	r->steps = 4 + (unsigned)(soak_draw(state) % 20);
	r->spec = specs[soak_draw(state) % FR_ARRAY_LEN(specs)];
	r->gpu = soak_draw(state) % 2 == 0 && !shm && !sockets;
	r->param = params[p][0];
	r->value = params[p][1];
	r->end = draw_end(state);
	r->stops = soak_draw(state) % 3 == 0 && r->end != END_FATAL;
	draw_fatal(state, r);
}

static void say_round(const struct round *r, const struct pair_case *pc)
{
	pair_say("round --seed %lu: %s, %u ranks of %u lanes, %u steps, tables "
		 "%u and %u, %s=%s, faults \"%s\"%s%s%s%s",
		 r->seed, pc->provider, r->members, r->lanes, r->steps, pc->abi,
		 pc->odd_abi, r->param, r->value, r->spec,
		 r->gpu ? ", GPUs" : "", r->stops ? ", stops" : "",
		 r->end == END_KILLED ? ", a death" : "",
		 r->end == END_FATAL ? ", an end by " : "");
	if (r->end == END_FATAL) {
		pair_say("  %s", r->fatal);
	}
}

static void run_round(unsigned long seed, const char *const *providers,
		      unsigned cnt)
{
	/* Those with groups; 0: the newest. */
	static const unsigned abis[] = {0, 9, 10, 11};
	static char again[64];
	uint64_t state = seed;
	struct round r = {.seed = seed};
	struct pair_case pc = {
		.name = "round",
		.limit_s = 120,
		.run = run,
		.env = set_env,
		.watch = watch,
		.arg = &r,
	};

	pc.provider = providers[soak_draw(&state) % cnt];
	draw_round(&state, pc.provider, &r);
	pc.abi = abis[soak_draw(&state) % FR_ARRAY_LEN(abis)];
	pc.odd_abi = abis[soak_draw(&state) % FR_ARRAY_LEN(abis)];
	say_round(&r, &pc);
	pc.rails = r.rails;
	pc.members = r.members;
	pc.killed = r.end == END_KILLED ? 1u << (r.members - 1) : 0;
	(void)snprintf(again, sizeof(again), "soak --seed %lu", seed);
	running = again;
	pair_run(&pc);
	running = NULL;
	death_cnt += r.end == END_KILLED;
	fatal_cnt += r.end == END_FATAL;
}

/* pair_run() leaves the process when a round fails. */
static void say_again(void)
{
	if (running != NULL && getpid() == parent) {
		pair_say("to run this round again: %s", running);
	}
}

static void say_done(void)
{
	static const char *const names[] = {
		[SOAK_MESSAGES] = "messages",
		[SOAK_KIB] = "KiB",
		[SOAK_GROUPS] = "grouped receives",
		[SOAK_GPU_SENDS] = "sends from a GPU",
		[SOAK_GPU_RECVS] = "receives into a GPU",
		[SOAK_FLUSHES] = "flushes with reads",
		[SOAK_EMPTY_FLUSHES] = "flushes without",
		[SOAK_CHURNS] = "registrations for one message",
		[SOAK_RECONNECTS] = "lanes closed and opened anew",
		[SOAK_ERRORS] = "ranks that ended with an error",
	};

	_Static_assert(FR_ARRAY_LEN(names) == SOAK_OP_CNT, "a count unnamed");
	for (unsigned i = 0; i < SOAK_OP_CNT; i++) {
		pair_say("  %9lu %s", (unsigned long)soak_ops[i], names[i]);
	}
	pair_say("  %9lu stops, %lu deaths, %lu fatal faults", stop_cnt,
		 death_cnt, fatal_cnt);
}

static unsigned long number(const char *text)
{
	return strtoul(text, NULL, 0);
}

/* Takes "--seconds N" and "--seed N" from the end. */
static void take_options(int *argc, char **argv, const char **seconds,
			 const char **seed)
{
	while (*argc > 2) {
		const char *name = argv[*argc - 2];

		if (strcmp(name, "--seconds") == 0) {
			*seconds = argv[*argc - 1];
		} else if (strcmp(name, "--seed") == 0) {
			*seed = argv[*argc - 1];
		} else {
			return;
		}
		*argc -= 2;
	}
}

static void share_ops(void)
{
	soak_ops =
		mmap(NULL, SOAK_OP_CNT * sizeof(*soak_ops),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (soak_ops == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"net", "tcp;ofi_rxm", "sockets",
					    "shm"};
	const char *seconds = getenv("FR_SOAK_S"), *one = NULL;
	const char *here[FR_ARRAY_LEN(names)];
	unsigned cnt = 0;
	const char *first = getenv("FR_SOAK_FIRST");
	unsigned long seed = first != NULL
				     ? number(first)
				     : (unsigned long)pair_now_ms() * 1000 +
					       (unsigned long)getpid() % 1000;
	uint64_t end;

	take_options(&argc, argv, &seconds, &one);
	pair_main(argc, argv, "soak", 180);
	share_ops();
	parent = getpid();
	atexit(say_again);
	for (size_t i = 0; i < FR_ARRAY_LEN(names); i++) {
		here[cnt] = pair_provider(names[i]);
		cnt += here[cnt] != NULL;
	}
	if (cnt == 0) {
		return pair_end();
	}
	end = pair_now_ms() + 1000 * (seconds == NULL ? 120 : number(seconds));
	do {
		run_round(one != NULL ? number(one) : seed++, here, cnt);
	} while (one == NULL && pair_now_ms() < end);
	say_done();
	return pair_end();
}
