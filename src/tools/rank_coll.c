#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/util.h"
#include "tools/collective.h"
#include "tools/rank.h"
#include "tools/rawside.h"
#include "tools/verify.h"

/* A job for the progress thread. */
struct job {
	struct fr_collective *coll;
	unsigned warmup, iters;
	uint64_t ns; /* of iters */
};

/* What a rank tells the others after a run. */
struct share {
	uint64_t ns, wrong, raw_ns, sent_bytes, sent_messages;
};

static int run_job(void *arg)
{
	struct job *job = arg;
	uint64_t start_ns;
	int ret = 0;

	for (unsigned i = 0; i < job->warmup && ret == 0; i++) {
		ret = fr_collective_run_wait(job->coll);
	}
	start_ns = fr_now_ns();
	for (unsigned i = 0; i < job->iters && ret == 0; i++) {
		ret = fr_collective_run_wait(job->coll);
	}
	job->ns = fr_now_ns() - start_ns;
	return ret;
}

/* Registrations come and go beside the traffic of the warm-up, as they do when
 * an application registers buffers of its own. */
static int run_beside_churn(struct fr_rank *r, struct job *job)
{
	int ret, churn;

	fr_worker_post(r->progress, run_job, job);
	churn = fr_worker_run_wait(r->service, fr_conns_churn_svc, &r->conns);
	ret = fr_worker_drain_wait(r->progress);
	return ret != 0 ? ret : churn;
}

static int time_once(struct fr_rank *r, struct fr_collective *coll,
		     unsigned warmup, struct share *mine)
{
	struct job job = {.coll = coll, .warmup = warmup};
	int ret;

	ret = fr_oob_barrier_wait(r->oob);
	if (ret == 0 && warmup > 0) {
		ret = run_beside_churn(r, &job);
	}
	job.warmup = FR_MIN(warmup, 1); /* the ranks get in step */
	job.iters = fr_perf_iters(r->opts, 0);
	if (ret == 0) {
		ret = fr_worker_run_wait(r->progress, run_job, &job);
	}
	mine->ns = job.ns / FR_MAX(job.iters, 1);
	return ret;
}

/* One way from rank 0 to rank 1, the bytes and messages that the busiest rank
 * sends in one operation. */
static int time_raw(struct fr_rank *r, const struct share *busiest,
		    struct share *mine)
{
	unsigned iters = fr_perf_iters(r->opts, 0), messages;
	uint64_t ns;
	int ret;

	messages = (unsigned)FR_MAX(busiest->sent_messages, 1);
	iters = FR_MIN(iters, FR_MAX((1u << 24) / messages, 1));
	ret = fr_oob_barrier_wait(r->oob);
	if (ret == 0) {
		ret = fr_rawside_stream_wait(
			r->raw, busiest->sent_bytes / messages, false,
			r->opts->window, messages * iters, &ns);
	}
	mine->raw_ns = ret == 0 ? ns / iters : 0;
	return ret;
}

static int gather(struct fr_rank *r, const struct share *mine,
		  struct share *total)
{
	struct share all[FR_PERF_MAX_RANKS];
	int ret;

	memset(total, 0, sizeof(*total));
	ret = fr_oob_all_gather_wait(r->oob, mine, sizeof(*mine), all);
	for (unsigned i = 0; i < r->ranks && ret == 0; i++) {
		total->ns = FR_MAX(total->ns, all[i].ns);
		total->raw_ns = FR_MAX(total->raw_ns, all[i].raw_ns);
		total->wrong += all[i].wrong;
		if (all[i].sent_bytes >= total->sent_bytes) {
			total->sent_bytes = all[i].sent_bytes;
			total->sent_messages = all[i].sent_messages;
		}
	}
	return ret;
}

static void prepare(struct fr_rank *r, const struct fr_collective *coll,
		    struct fr_pattern *pattern)
{
	r->seed++; /* other data than in any run before */
	*pattern = (struct fr_pattern){coll->type, coll->op, r->seed};
	fr_status_set(r->status, "filling buffers");
	fr_pattern_fill(pattern, &coll->shape, r->in);
	fr_pattern_poison(r->out, fr_shape_out_cnt(&coll->shape) *
					  fr_type_bytes(coll->type));
	fr_status_tick(r->status);
}

/* The last of the timed runs, and a run of its own on other data: what was
 * there before cannot pass for a result. */
static int check_runs(struct fr_rank *r, struct fr_collective *coll,
		      struct fr_pattern *pattern, struct share *mine)
{
	struct job job = {.coll = coll, .iters = 1};
	int ret;

	fr_status_set(r->status, "checking %zu elements", coll->shape.cnt);
	mine->wrong = fr_pattern_wrong(pattern, &coll->shape, r->out);
	prepare(r, coll, pattern);
	ret = fr_oob_barrier_wait(r->oob);
	if (ret == 0) {
		fr_status_set(r->status, "run for the check of %zu elements",
			      coll->shape.cnt);
		ret = fr_worker_run_wait(r->progress, run_job, &job);
	}
	if (ret == 0) {
		mine->wrong += fr_pattern_wrong(pattern, &coll->shape, r->out);
	}
	fr_status_tick(r->status);
	return ret;
}

/* Pairs of plugin and raw; without raw one run. */
static int time_all(struct fr_rank *r, struct fr_collective *coll,
		    struct fr_perf_result *result)
{
	unsigned pairs = r->raw != NULL ? r->opts->pairs : 1;
	double time_us[128], ratio[128];
	struct share mine = {.sent_bytes = fr_collective_sent_bytes(coll),
			     .sent_messages = fr_collective_messages(coll)};
	struct share total, busiest;
	int ret;

	ret = gather(r, &mine, &busiest);
	for (unsigned i = 0; i < pairs && ret == 0; i++) {
		fr_status_set(r->status, "%s of %zu bytes",
			      fr_perf_cmd_name(r->opts->cmd),
			      result->size_bytes);
		ret = time_once(r, coll,
				i == 0 ? r->opts->warmup
				       : FR_MIN(r->opts->warmup, 1),
				&mine);
		if (ret == 0 && r->raw != NULL) {
			fr_status_set(r->status,
				      "bare libfabric beside %zu bytes",
				      result->size_bytes);
			ret = time_raw(r, &busiest, &mine);
		}
		if (ret == 0) {
			ret = gather(r, &mine, &total);
		}
		if (ret == 0) {
			time_us[i] = (double)total.ns / 1e3;
			ratio[i] = total.ns > 0 ? (double)total.raw_ns /
							  (double)total.ns
						: 0;
		}
	}
	if (ret == 0) {
		fr_metric_rate(result, r->opts->cmd, r->ranks,
			       fr_metric_quantile(time_us, pairs, 0.5));
		result->has_raw = r->raw != NULL;
		result->raw_ratio = fr_metric_quantile(ratio, pairs, 0.5);
	}
	return ret;
}

int fr_rank_collective_wait(struct fr_rank *r, size_t bytes,
			    struct fr_perf_result *result)
{
	const struct fr_perf_opts *o = r->opts;
	struct fr_collective coll = {
		.conns = &r->conns,
		.shape = {.cmd = o->cmd,
			  .rank = r->rank,
			  .ranks = r->ranks,
			  .root = o->root,
			  .cnt = fr_metric_cnt(o->cmd, bytes, o->type,
					       r->ranks)},
		.type = o->type,
		.op = o->op,
		.proto = o->proto,
		.in = r->in,
		.out = r->out,
	};
	struct share mine = {0}, total;
	struct fr_pattern pattern;
	int ret;

	result->size_bytes = fr_metric_size_bytes(&coll.shape, o->type);
	result->count = coll.shape.cnt;
	ret = fr_collective_init(&coll);
	if (ret != 0) {
		return ret;
	}
	prepare(r, &coll, &pattern);
	ret = time_all(r, &coll, result);
	if (ret == 0 && o->check != 0) {
		ret = check_runs(r, &coll, &pattern, &mine);
	}
	if (ret == 0) {
		ret = gather(r, &mine, &total);
	}
	fr_collective_fini(&coll);
	if (ret == 0) {
		result->checked = o->check != 0;
		result->wrong = total.wrong;
	}
	return ret;
}
