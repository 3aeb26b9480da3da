/*
 * Programs of all ranks are run against each other here, with messages that
 * never fail and never block, and the outputs checked element by element.
 */
#include "unit/base/unit.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/util.h"
#include "tools/program.h"
#include "tools/verify.h"

#define MAX_RANKS 6
#define MAX_CNT 64

/* Messages from one rank to another, in order. */
struct pipe {
	int32_t data[4096];
	size_t put, taken;
};

static struct pipe pipes[MAX_RANKS][MAX_RANKS];
static int32_t in[MAX_RANKS][MAX_RANKS * MAX_CNT];
static int32_t out[MAX_RANKS][MAX_RANKS * MAX_CNT];

static struct fr_shape shape_of(int cmd, unsigned rank, unsigned ranks,
				size_t cnt)
{
	return (struct fr_shape){.cmd = cmd,
				 .rank = rank,
				 .ranks = ranks,
				 .root = ranks - 2,
				 .cnt = cnt,
				 .chunk = 5};
}

/* False: the step has to wait for its message. */
static bool run_step(unsigned rank, const struct fr_shape *s,
		     const struct fr_lane *lane, const struct fr_step *step,
		     int op)
{
	int32_t work[MAX_RANKS * MAX_CNT];
	struct pipe *from = NULL, *to = NULL;

	memcpy(work, &in[rank][step->in], step->cnt * 4);
	if (step->flags & FR_STEP_RECV) {
		from = &pipes[lane->recv_from][rank];
		if (from->put - from->taken < step->cnt) {
			return false;
		}
		if (step->flags & FR_STEP_REDUCE) {
			fr_reduce(FR_INT32, op, work, work,
				  &from->data[from->taken], step->cnt);
		} else {
			memcpy(work, &from->data[from->taken], step->cnt * 4);
		}
		from->taken += step->cnt;
	}
	if (step->flags & FR_STEP_FINISH) {
		fr_reduce_finish(FR_INT32, op, work, step->cnt, s->ranks);
	}
	if (step->flags & FR_STEP_OUT) {
		memcpy(&out[rank][step->out], work, step->cnt * 4);
	}
	if (step->flags & FR_STEP_SEND) {
		to = &pipes[rank][lane->send_to];
		ck_assert_uint_le(to->put + step->cnt, 4096);
		memcpy(&to->data[to->put], work, step->cnt * 4);
		to->put += step->cnt;
	}
	return true;
}

static void run_all(const struct fr_program *programs,
		    const struct fr_shape *shapes, unsigned ranks, int op)
{
	size_t step[MAX_RANKS][2 * MAX_RANKS] = {{0}};
	bool moved = true, open = true;

	while (open) {
		ck_assert_msg(moved, "the ranks wait for each other");
		moved = open = false;
		for (unsigned r = 0; r < ranks; r++) {
			for (unsigned l = 0; l < programs[r].lane_cnt; l++) {
				const struct fr_lane *lane =
					&programs[r].lanes[l];
				size_t *at = &step[r][l];

				while (*at < lane->step_cnt &&
				       run_step(r, &shapes[r], lane,
						&lane->steps[*at], op)) {
					(*at)++;
					moved = true;
				}
				open |= *at < lane->step_cnt;
			}
		}
	}
}

static void check_cmd(int cmd, unsigned ranks, size_t cnt, int op)
{
	struct fr_pattern pattern = {FR_INT32, op, 42 + cnt};
	struct fr_program programs[MAX_RANKS];
	struct fr_shape shapes[MAX_RANKS];
	size_t half = cnt / 2;

	for (unsigned r = 0; r < ranks; r++) {
		shapes[r] = shape_of(cmd, r, ranks, cnt);
		fr_pattern_fill(&pattern, &shapes[r], in[r]);
		fr_pattern_poison(out[r], sizeof(out[r]));
	}
	/* as two channels share it */
	for (int part = 0; part < 2; part++) {
		memset(pipes, 0, sizeof(pipes));
		for (unsigned r = 0; r < ranks; r++) {
			ck_assert_int_eq(
				fr_program_build(&shapes[r],
						 part == 0 ? 0 : half,
						 part == 0 ? half : cnt - half,
						 &programs[r]),
				0);
		}
		run_all(programs, shapes, ranks, op);
		for (unsigned r = 0; r < ranks; r++) {
			fr_program_free(&programs[r]);
		}
	}
	for (unsigned r = 0; r < ranks; r++) {
		ck_assert_uint_eq(
			fr_pattern_wrong(&pattern, &shapes[r], out[r]), 0);
	}
	for (unsigned a = 0; a < ranks; a++) {
		for (unsigned b = 0; b < ranks; b++) {
			ck_assert_uint_eq(pipes[a][b].put, pipes[a][b].taken);
		}
	}
}

/* The loop index is the command. */
START_TEST(every_rank_gets_what_the_collective_promises)
{
	static const size_t cnts[] = {1, 2, 3, 5, 7, 16, 33, MAX_CNT};

	for (unsigned ranks = 2; ranks <= MAX_RANKS; ranks++) {
		for (size_t i = 0; i < FR_ARRAY_LEN(cnts); i++) {
			for (int op = 0; op < FR_REDOP_CNT; op++) {
				check_cmd(_i, ranks, cnts[i], op);
			}
		}
	}
}
END_TEST

START_TEST(lanes_send_only_to_the_peers_that_were_named)
{
	for (unsigned r = 0; r < 4; r++) {
		struct fr_shape s = shape_of(_i, r, 4, 20);
		struct fr_program p;

		ck_assert_int_eq(fr_program_build(&s, 0, 20, &p), 0);
		for (unsigned l = 0; l < p.lane_cnt; l++) {
			int to = p.lanes[l].send_to;
			int from = p.lanes[l].recv_from;

			ck_assert(to < 0 || fr_shape_sends_to(&s, to));
			ck_assert(from < 0 || fr_shape_recvs_from(&s, from));
		}
		fr_program_free(&p);
		for (unsigned q = 0; q < 4; q++) {
			struct fr_shape other = shape_of(_i, q, 4, 20);

			ck_assert_int_eq(fr_shape_sends_to(&s, q),
					 fr_shape_recvs_from(&other, r));
		}
	}
}
END_TEST

START_TEST(build_leaks_nothing_wherever_it_fails)
{
	struct fr_shape s = shape_of(_i, 1, 4, 60);
	struct fr_program p;
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), 0);
		fr_fault_alloc_at(++nth);
		ret = fr_program_build(&s, 0, 60, &p);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	fr_fault_alloc_at(0);
	ck_assert_uint_gt(nth, 1);
	fr_program_free(&p);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(nothing_to_do_needs_no_lane)
{
	struct fr_shape s = shape_of(_i, 0, 3, 0);
	struct fr_program p;

	ck_assert_int_eq(fr_program_build(&s, 0, 0, &p), 0);
	ck_assert_uint_eq(p.lane_cnt, 0);
	fr_program_free(&p);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("program");

	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, every_rank_gets_what_the_collective_promises, 0,
			    FR_PERF_PINGPONG);
	tcase_add_loop_test(t, lanes_send_only_to_the_peers_that_were_named, 0,
			    FR_PERF_PINGPONG);
	tcase_add_loop_test(t, build_leaks_nothing_wherever_it_fails, 0,
			    FR_PERF_PINGPONG);
	tcase_add_loop_test(t, nothing_to_do_needs_no_lane, 0,
			    FR_PERF_PINGPONG);
	return unit_run(t, "tools/program");
}
