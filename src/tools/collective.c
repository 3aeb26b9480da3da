#include "tools/collective.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/alloc.h"
#include "base/util.h"
#include "tools/flow.h"

/* As NCCL's tuning has it, roughly: small operations by LL. */
#define LL_MAX_BYTES (16u << 10)

/* A lane at work. */
struct run {
	const struct fr_collective *coll;
	const struct fr_lane *lane;
	struct fr_flow send, recv;
	bool sends, recvs;
	size_t step;   /* at work */
	size_t sliced; /* elements of it that are done */
};

static size_t slice_cnt(const struct fr_collective *c)
{
	return c->slice_bytes / fr_type_bytes(c->type);
}

/* Messages of a step; an empty chunk is an empty message. */
static uint64_t slices_of(const struct fr_collective *c, size_t cnt)
{
	size_t per = slice_cnt(c);

	return cnt == 0 ? 1 : (cnt + per - 1) / per;
}

static void choose_slices(struct fr_collective *c)
{
	size_t elem = fr_type_bytes(c->type), chunk;
	size_t share = fr_shape_in_cnt(&c->shape) / c->conns->channels;

	c->ll = c->proto == FR_PERF_LL || (c->proto == FR_PERF_PROTO_AUTO &&
					   share * elem <= LL_MAX_BYTES);
	if (c->ll) {
		c->slice_bytes = FR_LL_SLOT_DATA;
	} else if (share * elem / c->shape.ranks > FR_STEP_BYTES) {
		c->slice_bytes = 2 * FR_STEP_BYTES;
	} else {
		c->slice_bytes = FR_STEP_BYTES;
	}
	/* half a staging buffer a chunk, so that two are under way */
	chunk = (c->ll ? FR_STEPS * FR_LL_SLOT_DATA : FR_STAGING_BYTES) / 2;
	c->shape.chunk = chunk / elem;
}

int fr_collective_init(struct fr_collective *c)
{
	unsigned channels = c->conns->channels;
	size_t elem = fr_type_bytes(c->type), share, off = 0, cnt;
	int ret = 0;

	choose_slices(c);
	c->programs = fr_calloc(channels, sizeof(*c->programs));
	if (c->programs == NULL) {
		return -ENOMEM;
	}
	/* Shares at multiples of 128 bytes; the last ones may be empty. */
	share = (c->shape.cnt + channels - 1) / channels;
	share = (size_t)fr_round_up(share * elem, 128) / elem;
	for (unsigned k = 0; k < channels && ret == 0; k++) {
		cnt = FR_MIN(share, c->shape.cnt - off);
		ret = fr_program_build(&c->shape, off, cnt, &c->programs[k]);
		off += cnt;
	}
	if (ret != 0) {
		fr_collective_fini(c);
	}
	return ret;
}

void fr_collective_fini(struct fr_collective *c)
{
	for (unsigned k = 0; c->programs != NULL && k < c->conns->channels;
	     k++) {
		fr_program_free(&c->programs[k]);
	}
	fr_free(c->programs);
	c->programs = NULL;
}

/* Sums over all sending steps. */
static void count_sent(const struct fr_collective *c, size_t *bytes,
		       uint64_t *messages)
{
	*bytes = 0;
	*messages = 0;
	for (unsigned k = 0; k < c->conns->channels; k++) {
		for (unsigned l = 0; l < c->programs[k].lane_cnt; l++) {
			const struct fr_lane *lane = &c->programs[k].lanes[l];

			for (size_t i = 0; i < lane->step_cnt; i++) {
				const struct fr_step *step = &lane->steps[i];

				if (step->flags & FR_STEP_SEND) {
					*bytes += step->cnt *
						  fr_type_bytes(c->type);
					*messages += slices_of(c, step->cnt);
				}
			}
		}
	}
}

size_t fr_collective_sent_bytes(const struct fr_collective *c)
{
	uint64_t messages;
	size_t bytes;

	count_sent(c, &bytes, &messages);
	return bytes;
}

uint64_t fr_collective_messages(const struct fr_collective *c)
{
	uint64_t messages;
	size_t bytes;

	count_sent(c, &bytes, &messages);
	return messages;
}

static int run_init(struct run *r, const struct fr_collective *c,
		    unsigned channel, const struct fr_lane *lane)
{
	uint64_t total = 0;
	int ret = 0;

	memset(r, 0, sizeof(*r));
	r->coll = c;
	r->lane = lane;
	for (size_t i = 0; i < lane->step_cnt; i++) {
		total += lane->steps[i].flags & FR_STEP_RECV
				 ? slices_of(c, lane->steps[i].cnt)
				 : 0;
	}
	if (lane->recv_from >= 0) {
		ret = fr_flow_init(&r->recv,
				   fr_conn_from(c->conns, channel,
						(unsigned)lane->recv_from),
				   c->ll, c->slice_bytes, total);
		r->recvs = ret == 0;
	}
	if (ret == 0 && lane->send_to >= 0) {
		ret = fr_flow_init(
			&r->send,
			fr_conn_to(c->conns, channel, (unsigned)lane->send_to),
			c->ll, c->slice_bytes, 0);
		r->sends = ret == 0;
	}
	return ret;
}

static void run_fini(struct run *r)
{
	if (r->recvs) {
		fr_flow_fini(&r->recv);
	}
	if (r->sends) {
		fr_flow_fini(&r->send);
	}
}

static void move(const struct fr_collective *c, const struct fr_step *step,
		 size_t at, size_t cnt, const void *msg, void *slot)
{
	size_t elem = fr_type_bytes(c->type);
	const char *in = c->in + (step->in + at) * elem;
	char *out = c->out + (step->out + at) * elem;
	char *to = step->flags & FR_STEP_SEND ? slot : out;

	if (step->flags & FR_STEP_REDUCE) {
		fr_reduce(c->type, c->op, to, msg, in, cnt);
	} else {
		memcpy(to, step->flags & FR_STEP_RECV ? msg : in, cnt * elem);
	}
	if (step->flags & FR_STEP_FINISH) {
		fr_reduce_finish(c->type, c->op, to, cnt, c->shape.ranks);
	}
	if ((step->flags & FR_STEP_OUT) && to != out) {
		memcpy(out, to, cnt * elem);
	}
}

/* One slice of the step at work, when its message and a slot are here. */
static int run_slice(struct run *r, bool *did)
{
	const struct fr_collective *c = r->coll;
	const struct fr_step *step = &r->lane->steps[r->step];
	size_t cnt = FR_MIN(slice_cnt(c), step->cnt - r->sliced);
	size_t bytes = cnt * fr_type_bytes(c->type);
	const void *msg = NULL;
	void *slot = NULL;
	int ret = 0;

	*did = false;
	if (step->flags & FR_STEP_SEND) {
		slot = fr_flow_send_slot(&r->send);
		if (slot == NULL) {
			return 0;
		}
	}
	if (step->flags & FR_STEP_RECV) {
		msg = fr_flow_recv_slot(&r->recv, bytes, &ret);
		if (msg == NULL) {
			return ret;
		}
	}
	move(c, step, r->sliced, cnt, msg, slot);
	if (msg != NULL) {
		fr_flow_release(&r->recv);
	}
	if (slot != NULL) {
		fr_flow_commit(&r->send, bytes);
	}
	r->sliced += cnt;
	if (r->sliced == step->cnt) {
		r->sliced = 0;
		r->step++;
	}
	*did = true;
	return 0;
}

static int run_pass(struct run *r, bool *moved)
{
	bool did = true;
	int ret = 0;

	if (r->recvs) {
		ret = fr_flow_progress(&r->recv, moved);
	}
	while (ret == 0 && did && r->step < r->lane->step_cnt) {
		ret = run_slice(r, &did);
		*moved |= did;
	}
	if (ret == 0 && r->sends) {
		ret = fr_flow_progress(&r->send, moved);
	}
	return ret;
}

static bool run_over(const struct run *r)
{
	return r->step == r->lane->step_cnt &&
	       (!r->recvs || fr_flow_idle(&r->recv)) &&
	       (!r->sends || fr_flow_idle(&r->send));
}

/* Like NCCL's progress thread: every lane in turn, and the core given up when
 * nothing moved at all. */
static int progress_all(struct run *runs, unsigned cnt,
			struct fr_status *status)
{
	unsigned open = cnt;
	int ret = 0;

	while (open > 0 && ret == 0) {
		bool moved = false;

		open = 0;
		for (unsigned i = 0; i < cnt && ret == 0; i++) {
			if (!run_over(&runs[i])) {
				open++;
				ret = run_pass(&runs[i], &moved);
			}
		}
		if (moved) {
			fr_status_tick(status);
		} else if (open > 0) {
			(void)sched_yield();
		}
	}
	return ret;
}

int fr_collective_run_wait(struct fr_collective *c)
{
	unsigned channels = c->conns->channels, cnt = 0, at = 0;
	struct run *runs;
	int ret = 0;

	for (unsigned k = 0; k < channels; k++) {
		cnt += c->programs[k].lane_cnt;
	}
	runs = fr_calloc(FR_MAX(cnt, 1), sizeof(*runs));
	if (runs == NULL) {
		return -ENOMEM;
	}
	for (unsigned k = 0; k < channels && ret == 0; k++) {
		const struct fr_program *p = &c->programs[k];

		for (unsigned l = 0; l < p->lane_cnt && ret == 0; l++) {
			ret = run_init(&runs[at++], c, k, &p->lanes[l]);
		}
	}
	if (ret == 0) {
		ret = progress_all(runs, cnt, c->conns->status);
	}
	for (unsigned i = 0; i < at; i++) {
		run_fini(&runs[i]);
	}
	fr_free(runs);
	return ret;
}
