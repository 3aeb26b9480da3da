/* The estimator and the scheduler together, on a model of paths: each a pipe
 * with a queue, that some messages in flight fill. */
#include "net/rate.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "net/sched.h"
#include "unit/run.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define STEP_NS (50 * FR_NS_PER_US)
#define TICK_NS (100 * FR_NS_PER_MS)
#define MBIT (1e6 / 8 / 1e9) /* bytes a nanosecond */
#define QUEUE 1024u
#define WINDOW 8u
#define SENDERS 3u

struct stripe {
	unsigned sender;
	unsigned msg;
	double left;
	uint64_t bytes;
	bool measured;
	uint64_t arrives_ns; /* when @left is 0 */
};

struct pipe {
	double rate;
	uint64_t latency_ns;
	double burst; /* bytes that pass at once after a rest, see tokens */
	double tokens;
	double carried;
	unsigned head, sent, tail; /* arrived, left the queue, posted */
	struct stripe queue[QUEUE];
};

/* One set of weights, and a program that keeps messages in flight on it. */
struct sender {
	struct fr_rate rate;
	struct fr_sched sched;
	struct fr_sched_cursor cursor;
	uint64_t bytes; /* of a message */
	unsigned window;
	unsigned posted, done; /* messages, in their order */
	unsigned open[WINDOW]; /* stripes of a message */
	unsigned turns;
	unsigned measured; /* messages */
	double carried;
};

static struct {
	uint64_t now_ns;
	unsigned pipes;
	unsigned senders;
	double shared; /* what all pipes share; 0: nothing */
	double noise;  /* by what part a pipe's rate changes */
	uint64_t stall_from_ns, stall_to_ns;
	unsigned seed;
	struct pipe pipe[FR_RATE_MAX_PATHS];
	struct sender sender[SENDERS];
} sim;

static void add_sender(uint64_t bytes, unsigned window)
{
	struct sender *s = &sim.sender[sim.senders++];

	s->bytes = bytes;
	s->window = window;
	s->sched.small_bytes = 64;
	s->sched.stripe_bytes = 128 * KIB;
	s->sched.path_cnt = sim.pipes;
	s->sched.rotate = true;
	for (unsigned i = 0; i < sim.pipes; i++) {
		s->sched.weight[i] = 1;
	}
	fr_sched_prepare(&s->sched);
	fr_rate_init(&s->rate, sim.pipes, sim.now_ns);
}

/* @mbit: of each pipe, 0 ends them. */
static void start(const double *mbit, uint64_t bytes, unsigned window)
{
	memset(&sim, 0, sizeof(sim));
	sim.now_ns = FR_NS_PER_S;
	sim.seed = 1;
	while (mbit[sim.pipes] != 0) {
		sim.pipe[sim.pipes].rate = mbit[sim.pipes] * MBIT;
		sim.pipes++;
	}
	add_sender(bytes, window);
}

static void look(struct sender *s)
{
	struct fr_rate_shares shares = {.turned = false};

	if (!fr_rate_look(&s->rate, sim.now_ns, &shares)) {
		return;
	}
	s->turns += shares.turned;
	s->sched.probe = shares.probe;
	s->sched.rotate = !s->rate.rests;
	memcpy(s->sched.weight, shares.weight, sizeof(s->sched.weight));
	for (unsigned i = 0; i < sim.pipes; i++) {
		ck_assert_uint_ne(s->sched.weight[i], 0);
	}
	fr_sched_prepare(&s->sched);
}

/* Sees what is in flight, like the owner of the paths. */
static void tick(struct sender *s)
{
	uint32_t busy = 0;

	if (!s->rate.rests) {
		look(s);
		return;
	}
	for (unsigned i = 0; i < sim.pipes; i++) {
		const struct pipe *pipe = &sim.pipe[i];

		for (unsigned j = pipe->head; j != pipe->tail; j++) {
			if (pipe->queue[j % QUEUE].sender == s - sim.sender) {
				busy |= FR_BIT(i);
			}
		}
	}
	fr_rate_wake(&s->rate, busy);
	s->sched.rotate = true;
}

static void post(struct sender *s)
{
	bool measured = s->bytes >= s->sched.stripe_bytes && !s->rate.rests;
	struct fr_stripe_plan plan[FR_SCHED_MAX_PATHS];
	unsigned cnt = fr_sched_plan(&s->sched, &s->cursor, s->bytes, plan);

	s->sched.probe = 0;
	s->measured += measured;
	s->open[s->posted % WINDOW] = cnt;
	for (unsigned i = 0; i < cnt; i++) {
		struct pipe *pipe = &sim.pipe[plan[i].path];

		ck_assert_uint_lt(pipe->tail - pipe->head, QUEUE);
		pipe->queue[pipe->tail++ % QUEUE] = (struct stripe){
			.sender = (unsigned)(s - sim.sender),
			.msg = s->posted,
			.left = (double)plan[i].bytes,
			.bytes = plan[i].bytes,
			.measured = measured,
		};
		if (measured) {
			fr_rate_posted(&s->rate, plan[i].path, plan[i].bytes,
				       sim.now_ns);
		}
	}
	s->posted++;
}

/* The first in the queue move on by @room bytes. */
static void drain(struct pipe *pipe, double room)
{
	while (pipe->sent != pipe->tail && room > 0) {
		struct stripe *stripe = &pipe->queue[pipe->sent % QUEUE];
		double part = FR_MIN(room, stripe->left);

		stripe->left -= part;
		room -= part;
		pipe->carried += part;
		sim.sender[stripe->sender].carried += part;
		if (stripe->left > 0) {
			return;
		}
		stripe->arrives_ns = sim.now_ns + pipe->latency_ns;
		pipe->sent++;
	}
}

static void arrive(unsigned path)
{
	struct pipe *pipe = &sim.pipe[path];

	while (pipe->head != pipe->sent &&
	       pipe->queue[pipe->head % QUEUE].arrives_ns <= sim.now_ns) {
		struct stripe *stripe = &pipe->queue[pipe->head++ % QUEUE];
		struct sender *s = &sim.sender[stripe->sender];

		s->open[stripe->msg % WINDOW]--;
		if (stripe->measured &&
		    fr_rate_arrived(&s->rate, path, stripe->bytes,
				    sim.now_ns)) {
			look(s);
		}
	}
}

static double noisy(void)
{
	double r = (double)rand_r(&sim.seed) / RAND_MAX;

	return 1 + sim.noise * (2 * r - 1);
}

static double room_of(struct pipe *pipe, unsigned busy)
{
	double room = pipe->rate * STEP_NS * noisy();

	if (sim.shared != 0) {
		room = sim.shared * STEP_NS * noisy() / busy;
	}
	if (pipe->burst != 0) {
		pipe->tokens = FR_MIN(pipe->tokens + room, pipe->burst);
		room = pipe->tokens;
		pipe->tokens -=
			FR_MIN(room, pipe->sent == pipe->tail ? 0 : room);
	}
	return room;
}

static bool stalled(void)
{
	return sim.now_ns >= sim.stall_from_ns && sim.now_ns < sim.stall_to_ns;
}

static void step(void)
{
	unsigned busy = 0;

	sim.now_ns += STEP_NS;
	for (unsigned i = 0; i < sim.pipes; i++) {
		busy += sim.pipe[i].sent != sim.pipe[i].tail;
	}
	for (unsigned i = 0; i < sim.pipes && !stalled(); i++) {
		drain(&sim.pipe[i], room_of(&sim.pipe[i], FR_MAX(busy, 1u)));
		arrive(i);
	}
	for (unsigned i = 0; i < sim.senders; i++) {
		struct sender *s = &sim.sender[i];

		while (s->done != s->posted && s->open[s->done % WINDOW] == 0) {
			s->done++;
		}
		while (s->posted - s->done < s->window) {
			post(s);
		}
		if (sim.now_ns % TICK_NS == 0) {
			tick(s);
		}
	}
}

static void run_ms(uint64_t ms)
{
	uint64_t end = sim.now_ns + ms * FR_NS_PER_MS;

	while (sim.now_ns < end) {
		step();
	}
}

static void run_messages(unsigned cnt)
{
	while (sim.sender[0].done < cnt) {
		step();
	}
}

/* In Mbit/s. */
static double speed_over_ms(uint64_t ms)
{
	double before = 0, after = 0;

	for (unsigned i = 0; i < sim.pipes; i++) {
		before += sim.pipe[i].carried;
	}
	run_ms(ms);
	for (unsigned i = 0; i < sim.pipes; i++) {
		after += sim.pipe[i].carried;
	}
	return (after - before) / MBIT / (double)(ms * FR_NS_PER_MS);
}

static double share_of(unsigned path)
{
	return (double)sim.sender[0].sched.part[path] / 4294967296.0;
}

#define RATES(...) ((const double[]){__VA_ARGS__, 0})

/* The loop index: 1 or 8 messages in flight, and with noise of 30 %. */
static unsigned window_of(int loop)
{
	sim.noise = loop / 2 * 0.3;
	return loop % 2 == 0 ? 8 : 1;
}

START_TEST(equal_rails_stay_equal)
{
	start(RATES(100, 100, 100, 100), MIB, window_of(_i));
	sim.noise = _i / 2 * 0.3;
	ck_assert_double_gt(speed_over_ms(20000), 395);
	ck_assert_uint_eq(sim.sender[0].turns, 0);
}
END_TEST

START_TEST(unequal_rails_settle_within_50_messages)
{
	start(RATES(100, 300), MIB, window_of(_i));
	sim.noise = _i / 2 * 0.3;
	run_messages(50);
	ck_assert_double_gt(speed_over_ms(2000), 400 * 0.96);
	ck_assert_double_eq_tol(share_of(0), 0.25, 0.02);
}
END_TEST

START_TEST(one_fast_rail_among_slow_ones)
{
	start(RATES(100, 100, 100, 1000), 2 * MIB, window_of(_i));
	sim.noise = _i / 2 * 0.3;
	run_messages(50);
	ck_assert_double_gt(speed_over_ms(2000), 1300 * 0.92);
}
END_TEST

/* As a shaper lets the first bytes after a rest pass at once. */
START_TEST(bursts_do_not_fool_it)
{
	start(RATES(100, 300), MIB, window_of(_i));
	sim.pipe[0].burst = 128 * KIB;
	sim.pipe[1].burst = 128 * KIB;
	run_messages(50);
	ck_assert_double_gt(speed_over_ms(2000), 400 * 0.95);
}
END_TEST

START_TEST(a_throttled_rail_costs_its_own_share_and_is_found_again)
{
	start(RATES(100, 100, 100, 100), MIB, window_of(_i));
	for (unsigned i = 0; i < 4; i++) {
		sim.pipe[i].burst = 128 * KIB;
	}
	sim.noise = _i / 2 * 0.3;
	run_ms(3000);
	sim.pipe[2].rate = 10 * MBIT;
	run_ms(2000);
	ck_assert_double_gt(speed_over_ms(5000),
			    310 * (_i % 2 == 0 ? 0.93 : 0.88));
	ck_assert_double_lt(share_of(2), 0.05);
	sim.pipe[2].rate = 100 * MBIT;
	run_ms(5000);
	ck_assert_double_gt(speed_over_ms(3000), 400 * 0.95);
	run_ms(10000);
	ck_assert(sim.sender[0].rate.even);
}
END_TEST

/* Too slow to be given a stripe of such messages. */
START_TEST(a_rail_left_out_is_found_again)
{
	start(RATES(100, 100, 100, 100), 256 * KIB, window_of(_i));
	for (unsigned i = 0; i < 4; i++) {
		sim.pipe[i].burst = _i == 0 ? 64 * KIB : 0;
	}
	run_ms(3000);
	sim.pipe[1].rate = 2 * MBIT;
	run_ms(5000);
	ck_assert_double_gt(speed_over_ms(5000), 302 * 0.7);
	sim.pipe[1].rate = 100 * MBIT;
	run_ms(12000);
	ck_assert_double_gt(speed_over_ms(3000), 400 * 0.9);
}
END_TEST

START_TEST(a_rail_that_stands_still_is_found_again)
{
	start(RATES(100, 100), MIB, 8);
	run_ms(1000);
	sim.pipe[1].rate = 0;
	run_ms(20000);
	sim.pipe[1].rate = 100 * MBIT;
	run_ms(5000);
	ck_assert_double_gt(speed_over_ms(2000), 200 * 0.95);
}
END_TEST

/* It pays where messages are in flight one after the other; else the far end
 * gets less, so that both ends meet. */
START_TEST(latency_is_not_slowness_when_messages_queue)
{
	start(RATES(100, 100), MIB, window_of(_i));
	sim.pipe[1].latency_ns = 5 * FR_NS_PER_MS;
	run_messages(50);
	ck_assert_double_gt(speed_over_ms(3000), _i == 0 ? 198 : 175);
}
END_TEST

START_TEST(a_peer_that_stops_tilts_nothing)
{
	start(RATES(100, 100, 100), MIB, window_of(_i));
	for (unsigned i = 0; i < 20; i++) {
		run_ms(300 + 7 * i);
		sim.stall_from_ns = sim.now_ns;
		sim.stall_to_ns = sim.now_ns + 300 * FR_NS_PER_MS;
	}
	run_ms(1000);
	ck_assert_uint_eq(sim.sender[0].turns, 0);
	ck_assert_double_gt(speed_over_ms(1000), 295);
}
END_TEST

START_TEST(small_messages_that_never_fill_a_rail_change_nothing)
{
	start(RATES(100, 300), 4096, 8);
	run_ms(5000);
	ck_assert_uint_eq(sim.sender[0].turns, 0);
	ck_assert(sim.sender[0].sched.even);
}
END_TEST

/* Weights that only mirror themselves go back to where nobody is preferred. */
START_TEST(what_shares_one_limit_returns_to_equal)
{
	start(RATES(100, 300), MIB, 8);
	run_ms(3000);
	ck_assert(!sim.sender[0].rate.even);
	sim.shared = 5000 * MBIT;
	sim.noise = 0.3;
	run_ms(20000);
	ck_assert_double_eq_tol(share_of(0), 0.5, 0.08);
}
END_TEST

START_TEST(several_senders_share_rails)
{
	start(RATES(100, 300), MIB, 8);
	add_sender(2 * MIB, 4);
	add_sender(300 * KIB, 2);
	run_ms(3000);
	ck_assert_double_gt(speed_over_ms(5000), 400 * 0.94);
	for (unsigned i = 0; i < sim.senders; i++) {
		ck_assert_double_gt(sim.sender[i].carried, 8 * MIB);
	}
	/* What queues there is the others' too, in the order of posts. */
	sim.pipe[1].rate = 30 * MBIT;
	run_ms(14000);
	ck_assert_double_gt(speed_over_ms(5000), 130 * 0.92);
}
END_TEST

/* Some 5000 messages a second, and 16 of them, and those that are in flight
 * beside, after each of 10 ticks. */
START_TEST(equal_rails_are_measured_now_and_then)
{
	start(RATES(10000, 10000, 10000, 10000), MIB, 8);
	sim.noise = _i * 0.3;
	run_ms(1000);
	sim.sender[0].measured = 0;
	ck_assert_double_gt(speed_over_ms(10000), 39500);
	ck_assert_uint_eq(sim.sender[0].turns, 0);
	ck_assert_uint_ge(sim.sender[0].measured, 100 * 16);
	ck_assert_uint_le(sim.sender[0].measured, 100 * 24);
}
END_TEST

START_TEST(a_rail_that_slows_down_in_a_rest_is_noticed)
{
	double before;

	start(RATES(10000, 10000, 10000, 10000), MIB, window_of(_i));
	run_ms(50);
	before = speed_over_ms(1000);
	ck_assert(sim.sender[0].rate.rests);
	sim.pipe[2].rate = 1000 * MBIT;
	run_ms(600);
	ck_assert_double_gt(speed_over_ms(1000), before * 3.1 / 4 * 0.85);
	ck_assert(!sim.sender[0].rate.rests);
	sim.pipe[2].rate = 10000 * MBIT;
	run_ms(10000);
	ck_assert_double_gt(speed_over_ms(1000), before * 0.98);
}
END_TEST

/* What was posted in the rest goes first: that time is nobody's. */
START_TEST(what_is_measured_behind_others_is_no_slower)
{
	struct sender *s = &sim.sender[0];

	start(RATES(10000, 10000), MIB, 8);
	run_ms(50);
	for (unsigned i = 0; i < 3; i++) {
		while (!s->rate.rests) {
			step();
		}
		while (s->rate.rests) {
			step();
		}
		s->rate.path[0].rate = 0; /* all that it knows is what comes */
		run_ms(10);
		look(s);
		ck_assert_double_eq_tol(s->rate.path[0].rate, 10000 * MBIT,
					200 * MBIT);
	}
}
END_TEST

START_TEST(a_look_with_nothing_new_says_so)
{
	struct fr_rate_shares shares = {.turned = false};

	start(RATES(100, 100), MIB, 8);
	ck_assert(!fr_rate_look(&sim.sender[0].rate, sim.now_ns, &shares));
	/* One that failed tells nothing. */
	fr_rate_posted(&sim.sender[0].rate, 0, MIB, sim.now_ns);
	fr_rate_arrived(&sim.sender[0].rate, 0, 0, sim.now_ns + 1000);
	ck_assert(!fr_rate_look(&sim.sender[0].rate, sim.now_ns, &shares));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("rate");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, equal_rails_stay_equal, 0, 4);
	tcase_add_loop_test(t, unequal_rails_settle_within_50_messages, 0, 4);
	tcase_add_loop_test(t, one_fast_rail_among_slow_ones, 0, 4);
	tcase_add_loop_test(t, bursts_do_not_fool_it, 0, 2);
	tcase_add_loop_test(
		t, a_throttled_rail_costs_its_own_share_and_is_found_again, 0,
		4);
	tcase_add_loop_test(t, a_rail_left_out_is_found_again, 0, 2);
	tcase_add_test(t, a_rail_that_stands_still_is_found_again);
	tcase_add_loop_test(t, latency_is_not_slowness_when_messages_queue, 0,
			    2);
	tcase_add_loop_test(t, a_peer_that_stops_tilts_nothing, 0, 2);
	tcase_add_test(t, small_messages_that_never_fill_a_rail_change_nothing);
	tcase_add_test(t, what_shares_one_limit_returns_to_equal);
	tcase_add_test(t, several_senders_share_rails);
	tcase_add_loop_test(t, equal_rails_are_measured_now_and_then, 0, 2);
	tcase_add_loop_test(t, a_rail_that_slows_down_in_a_rest_is_noticed, 0,
			    4);
	tcase_add_test(t, what_is_measured_behind_others_is_no_slower);
	tcase_add_test(t, a_look_with_nothing_new_says_so);
	return unit_run(t, "net rate");
}
