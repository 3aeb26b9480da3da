#include "tools/program.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/util.h"

/* One channel's part of a shape, while its program is made. */
struct maker {
	const struct fr_shape *s;
	size_t off, cnt;
	struct fr_program *p;
	struct fr_lane *lane; /* the one that steps are added to */
	int ret;
};

static unsigned mod(const struct fr_shape *s, int r)
{
	int n = (int)s->ranks;

	return (unsigned)(((r % n) + n) % n);
}

static unsigned next_of(const struct fr_shape *s)
{
	return mod(s, (int)s->rank + 1);
}

static unsigned prev_of(const struct fr_shape *s)
{
	return mod(s, (int)s->rank - 1);
}

size_t fr_shape_in_cnt(const struct fr_shape *s)
{
	bool many =
		s->cmd == FR_PERF_REDUCE_SCATTER || s->cmd == FR_PERF_ALLTOALL;

	return many ? s->cnt * s->ranks : s->cnt;
}

size_t fr_shape_out_cnt(const struct fr_shape *s)
{
	bool many = s->cmd == FR_PERF_ALL_GATHER || s->cmd == FR_PERF_ALLTOALL;

	return many ? s->cnt * s->ranks : s->cnt;
}

/* Rank's place in the chain of broadcast (from root) or reduce (to root). */
static unsigned chain_place(const struct fr_shape *s)
{
	if (s->cmd == FR_PERF_BROADCAST) {
		return mod(s, (int)s->rank - (int)s->root);
	}
	return mod(s, (int)s->rank - (int)s->root - 1);
}

bool fr_shape_sends_to(const struct fr_shape *s, unsigned peer)
{
	if (s->cmd == FR_PERF_ALLTOALL || fr_perf_cmd_is_p2p(s->cmd)) {
		return peer != s->rank;
	}
	if (fr_perf_cmd_has_root(s->cmd) && chain_place(s) == s->ranks - 1) {
		return false;
	}
	return peer == next_of(s);
}

bool fr_shape_recvs_from(const struct fr_shape *s, unsigned peer)
{
	if (s->cmd == FR_PERF_ALLTOALL || fr_perf_cmd_is_p2p(s->cmd)) {
		return peer != s->rank;
	}
	if (fr_perf_cmd_has_root(s->cmd) && chain_place(s) == 0) {
		return false;
	}
	return peer == prev_of(s);
}

static void add_lane(struct maker *m, int send_to, int recv_from)
{
	struct fr_lane *grown;

	if (m->ret != 0) {
		return;
	}
	if (m->p->lane_cnt == m->p->lane_max) {
		m->p->lane_max = m->p->lane_max * 2 + 2;
		grown = fr_realloc(m->p->lanes,
				   m->p->lane_max * sizeof(*grown));
		if (grown == NULL) {
			m->ret = -ENOMEM;
			return;
		}
		m->p->lanes = grown;
	}
	m->lane = &m->p->lanes[m->p->lane_cnt++];
	*m->lane = (struct fr_lane){.send_to = send_to, .recv_from = recv_from};
}

/* @in, @out: of the channel's first element; the step moves [@at, @at + @cnt)
 * of its part. */
static void add_step(struct maker *m, unsigned flags, size_t in, size_t out,
		     size_t at, size_t cnt)
{
	struct fr_lane *lane = m->lane;
	struct fr_step *grown;

	if (m->ret != 0) {
		return;
	}
	if (lane->step_cnt == lane->step_max) {
		lane->step_max = lane->step_max * 2 + 8;
		grown = fr_realloc(lane->steps,
				   lane->step_max * sizeof(*grown));
		if (grown == NULL) {
			m->ret = -ENOMEM;
			return;
		}
		lane->steps = grown;
	}
	lane->steps[lane->step_cnt++] = (struct fr_step){
		.flags = flags, .in = in + at, .out = out + at, .cnt = cnt};
}

/* Rounds of ranks * chunk elements; in each, chunk i starts at i * chunk. */
static void all_reduce_round(struct maker *m, size_t at, size_t chunk,
			     size_t end)
{
	const struct fr_shape *s = m->s;
	int n = (int)s->ranks, r = (int)s->rank;

	for (int j = 0; j < 2 * n - 1; j++) {
		unsigned c = mod(s, r - j);
		size_t from = FR_MIN(at + c * chunk, end);
		size_t cnt = FR_MIN(chunk, end - from);
		unsigned flags =
			j == 0 ? FR_STEP_SEND
			: j < n - 1
				? FR_STEP_RECV | FR_STEP_REDUCE | FR_STEP_SEND
			: j == n - 1 ? FR_STEP_RECV | FR_STEP_REDUCE |
					       FR_STEP_FINISH | FR_STEP_OUT |
					       FR_STEP_SEND
			: j < 2 * n - 2
				? FR_STEP_RECV | FR_STEP_OUT | FR_STEP_SEND
				: FR_STEP_RECV | FR_STEP_OUT;

		add_step(m, flags, 0, 0, from, cnt);
	}
}

static void make_all_reduce(struct maker *m)
{
	size_t n = m->s->ranks, end = m->off + m->cnt, left, chunk;

	add_lane(m, (int)next_of(m->s), (int)prev_of(m->s));
	for (size_t at = m->off; at < end; at += n * chunk) {
		left = end - at;
		chunk = FR_MIN(m->s->chunk, (left + n - 1) / n);
		all_reduce_round(m, at, chunk, end);
	}
}

static void make_all_gather(struct maker *m)
{
	const struct fr_shape *s = m->s;
	int n = (int)s->ranks;
	size_t cnt;

	add_lane(m, (int)next_of(s), (int)prev_of(s));
	for (size_t at = m->off; at < m->off + m->cnt; at += cnt) {
		cnt = FR_MIN(s->chunk, m->off + m->cnt - at);
		for (int j = 0; j < n; j++) {
			unsigned owner = mod(s, (int)s->rank - j);
			unsigned flags = FR_STEP_OUT;

			flags |= j > 0 ? FR_STEP_RECV : 0u;
			flags |= j < n - 1 ? FR_STEP_SEND : 0u;
			add_step(m, flags, 0, owner * s->cnt, at, cnt);
		}
	}
}

static void make_reduce_scatter(struct maker *m)
{
	const struct fr_shape *s = m->s;
	int n = (int)s->ranks;
	size_t cnt;

	add_lane(m, (int)next_of(s), (int)prev_of(s));
	for (size_t at = m->off; at < m->off + m->cnt; at += cnt) {
		cnt = FR_MIN(s->chunk, m->off + m->cnt - at);
		for (int j = 0; j < n; j++) {
			unsigned part = mod(s, (int)s->rank - 1 - j);
			unsigned flags = 0;

			flags |= j > 0 ? FR_STEP_RECV | FR_STEP_REDUCE : 0u;
			flags |= j < n - 1 ? FR_STEP_SEND
					   : FR_STEP_FINISH | FR_STEP_OUT;
			add_step(m, flags, part * s->cnt, 0, at, cnt);
		}
	}
}

static void make_chain(struct maker *m)
{
	const struct fr_shape *s = m->s;
	bool reduce = s->cmd == FR_PERF_REDUCE;
	bool first = chain_place(s) == 0, last = chain_place(s) == s->ranks - 1;
	unsigned flags = 0;

	add_lane(m, last ? -1 : (int)next_of(s), first ? -1 : (int)prev_of(s));
	flags |= first ? 0u : FR_STEP_RECV;
	flags |= !first && reduce ? FR_STEP_REDUCE : 0u;
	flags |= last && reduce ? FR_STEP_FINISH : 0u;
	flags |= last || !reduce ? FR_STEP_OUT : 0u;
	flags |= last ? 0u : FR_STEP_SEND;
	add_step(m, flags, 0, 0, m->off, m->cnt);
}

static void make_sendrecv(struct maker *m)
{
	add_lane(m, (int)next_of(m->s), -1);
	add_step(m, FR_STEP_SEND, 0, 0, m->off, m->cnt);
	add_lane(m, -1, (int)prev_of(m->s));
	add_step(m, FR_STEP_RECV | FR_STEP_OUT, 0, 0, m->off, m->cnt);
}

static void make_alltoall(struct maker *m)
{
	const struct fr_shape *s = m->s;
	size_t own = s->rank * s->cnt;
	unsigned to, from;

	add_lane(m, -1, -1);
	add_step(m, FR_STEP_OUT, own, own, m->off, m->cnt);
	for (int j = 1; j < (int)s->ranks; j++) {
		to = mod(s, (int)s->rank + j);
		from = mod(s, (int)s->rank - j);
		add_lane(m, (int)to, -1);
		add_step(m, FR_STEP_SEND, to * s->cnt, 0, m->off, m->cnt);
		add_lane(m, -1, (int)from);
		add_step(m, FR_STEP_RECV | FR_STEP_OUT, 0, from * s->cnt,
			 m->off, m->cnt);
	}
}

int fr_program_build(const struct fr_shape *shape, size_t off, size_t cnt,
		     struct fr_program *program)
{
	static void (*const make[])(struct maker * m) = {
		[FR_PERF_ALL_REDUCE] = make_all_reduce,
		[FR_PERF_ALL_GATHER] = make_all_gather,
		[FR_PERF_REDUCE_SCATTER] = make_reduce_scatter,
		[FR_PERF_BROADCAST] = make_chain,
		[FR_PERF_REDUCE] = make_chain,
		[FR_PERF_SENDRECV] = make_sendrecv,
		[FR_PERF_ALLTOALL] = make_alltoall,
	};
	struct maker m = {.s = shape, .off = off, .cnt = cnt, .p = program};

	memset(program, 0, sizeof(*program));
	if (cnt == 0) {
		return 0;
	}
	make[shape->cmd](&m);
	if (m.ret != 0) {
		fr_program_free(program);
	}
	return m.ret;
}

void fr_program_free(struct fr_program *program)
{
	for (unsigned i = 0; i < program->lane_cnt; i++) {
		fr_free(program->lanes[i].steps);
	}
	fr_free(program->lanes);
	memset(program, 0, sizeof(*program));
}
