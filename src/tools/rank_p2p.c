#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/util.h"
#include "tools/p2p.h"
#include "tools/rank.h"
#include "tools/rawside.h"

/* What a rank tells the other after a run. */
struct share {
	uint64_t ns, cpu_ns, wrong, raw_ns;
	double p50_ns, p99_ns, raw_p50_ns;
};

/* Results of the pairs. */
struct series {
	double time_us[128], ratio[128], p50_us[128], p99_us[128], cpu_us[128];
};

static bool is_pingpong(const struct fr_rank *r)
{
	return r->opts->cmd == FR_PERF_PINGPONG;
}

static int run_plugin(struct fr_rank *r, struct fr_p2p *p, struct share *mine)
{
	int ret;

	ret = fr_worker_run_wait(
		r->progress,
		is_pingpong(r) ? fr_p2p_pingpong_wait : fr_p2p_stream_wait, p);
	mine->wrong += p->wrong;
	p->wrong = 0;
	if (ret == 0 && is_pingpong(r) && p->initiator) {
		mine->p50_ns = fr_metric_quantile(p->half_ns, p->iters, 0.5);
		mine->p99_ns = fr_metric_quantile(p->half_ns, p->iters, 0.99);
	}
	mine->ns = p->initiator ? 0 : p->ns;
	mine->cpu_ns = p->initiator ? p->cpu_ns : 0;
	return ret;
}

static int run_raw(struct fr_rank *r, struct fr_p2p *p, struct share *mine)
{
	int ret;

	if (!is_pingpong(r)) {
		return fr_rawside_stream_wait(
			r->raw, p->bytes,
			r->opts->raw_op == FR_PERF_RAW_MESSAGE, p->warmup,
			p->iters, &mine->raw_ns);
	}
	ret = fr_rawside_pingpong_wait(r->raw, p->bytes, p->warmup, p->iters,
				       p->half_ns);
	if (ret == 0 && p->initiator) {
		mine->raw_p50_ns =
			fr_metric_quantile(p->half_ns, p->iters, 0.5);
	}
	return ret;
}

/* Each value is known to one of the two: the other has 0. */
static int gather(struct fr_rank *r, const struct share *mine,
		  struct share *sum)
{
	struct share all[2];
	int ret;

	ret = fr_oob_all_gather_wait(r->oob, mine, sizeof(*mine), all);
	if (ret == 0) {
		*sum = all[0];
		sum->ns += all[1].ns;
		sum->cpu_ns += all[1].cpu_ns;
		sum->wrong += all[1].wrong;
		sum->raw_ns += all[1].raw_ns;
	}
	return ret;
}

static void note(struct fr_rank *r, const struct fr_p2p *p,
		 const struct share *sum, unsigned pair, struct series *s)
{
	double ns = (double)sum->ns, raw_ns = (double)sum->raw_ns;

	s->p50_us[pair] = sum->p50_ns / 1e3;
	s->p99_us[pair] = sum->p99_ns / 1e3;
	s->cpu_us[pair] = (double)sum->cpu_ns / 1e3 / p->iters;
	if (is_pingpong(r)) {
		s->time_us[pair] = s->p50_us[pair];
		s->ratio[pair] =
			sum->raw_p50_ns > 0 ? sum->p50_ns / sum->raw_p50_ns : 0;
	} else {
		s->time_us[pair] = ns / 1e3 / p->iters;
		s->ratio[pair] = ns > 0 ? raw_ns / ns : 0;
	}
}

static int run_pairs(struct fr_rank *r, struct fr_p2p *p, unsigned pairs,
		     struct series *s, uint64_t *wrong)
{
	struct share mine, sum;
	int ret = 0;

	for (unsigned i = 0; i < pairs && ret == 0; i++) {
		memset(&mine, 0, sizeof(mine));
		p->check = i == 0 && r->opts->check != 0;
		p->seed = ++r->seed << 32;
		fr_status_set(r->status, "%s of %zu bytes",
			      fr_perf_cmd_name(r->opts->cmd), p->bytes);
		ret = fr_oob_barrier_wait(r->oob);
		if (ret == 0) {
			ret = run_plugin(r, p, &mine);
		}
		if (ret == 0 && r->raw != NULL) {
			fr_status_set(r->status,
				      "bare libfabric beside %zu bytes",
				      p->bytes);
			ret = fr_oob_barrier_wait(r->oob);
			if (ret == 0) {
				ret = run_raw(r, p, &mine);
			}
		}
		if (ret == 0) {
			ret = gather(r, &mine, &sum);
		}
		if (ret == 0) {
			note(r, p, &sum, i, s);
			*wrong += sum.wrong;
		}
	}
	return ret;
}

static void fill_result(struct fr_rank *r, struct series *s, unsigned pairs,
			struct fr_perf_result *res)
{
	fr_metric_rate(res, r->opts->cmd, r->ranks,
		       fr_metric_quantile(s->time_us, pairs, 0.5));
	res->p50_us = fr_metric_quantile(s->p50_us, pairs, 0.5);
	res->p99_us = fr_metric_quantile(s->p99_us, pairs, 0.5);
	res->cpu_us = fr_metric_quantile(s->cpu_us, pairs, 0.5);
	res->msgs_per_s = res->time_us > 0 ? 1e6 / res->time_us : 0;
	res->has_raw = r->raw != NULL;
	res->raw_ratio = fr_metric_quantile(s->ratio, pairs, 0.5);
}

int fr_rank_p2p_wait(struct fr_rank *r, size_t bytes,
		     struct fr_perf_result *result)
{
	const struct fr_perf_opts *o = r->opts;
	unsigned peer = 1 - r->rank, pairs = r->raw != NULL ? o->pairs : 1;
	struct fr_p2p p = {
		.to = fr_conn_to(&r->conns, 0, peer),
		.from = fr_conn_from(&r->conns, 0, peer),
		.bytes = bytes,
		.recv_bytes = o->recv_bytes != 0 ? o->recv_bytes : bytes,
		.window = is_pingpong(r) ? 2 : o->window,
		.warmup = is_pingpong(r) ? o->warmup : o->warmup * o->window,
		.iters = fr_perf_iters(o, bytes),
		.initiator = r->rank == 0,
	};
	struct series *s;
	int ret;

	p.stride = fr_p2p_stride(p.recv_bytes);
	p.half_ns = fr_calloc(p.iters, sizeof(*p.half_ns));
	s = fr_calloc(1, sizeof(*s));
	ret = p.half_ns == NULL || s == NULL ? -ENOMEM : 0;
	if (ret == 0) {
		result->size_bytes = bytes;
		result->count = bytes / fr_type_bytes(o->type);
		result->checked = o->check != 0;
		ret = run_pairs(r, &p, pairs, s, &result->wrong);
	}
	if (ret == 0) {
		fill_result(r, s, pairs, result);
	}
	fr_free(p.half_ns);
	fr_free(s);
	return ret;
}
