#include "tools/rank.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "tools/netns.h"
#include "tools/output.h"
#include "tools/p2p.h"
#include "tools/plog.h"
#include "tools/rails.h"
#include "tools/rank.h"
#include "tools/rawside.h"

#define RAW_COLLECTIVE_BYTES (2 * FR_STEP_BYTES) /* largest message */

static int plugin_failed(const struct fr_rank *r, const char *what, int result)
{
	fr_error("rank %u: plugin %s: %s: %s", r->rank, r->opts->plugin, what,
		 fr_plugin_result_text(result));
	return -EIO;
}

static int check_device(struct fr_rank *r)
{
	struct fr_plugin_props props;
	int cnt = 0, res;

	res = fr_plugin_devices(r->plugin, &cnt);
	if (res != FR_PLUGIN_SUCCESS) {
		return plugin_failed(r, "devices", res);
	}
	if ((int)r->opts->dev >= cnt) {
		fr_error("rank %u: --device %u: plugin %s has %d device%s",
			 r->rank, r->opts->dev, r->opts->plugin, cnt,
			 cnt == 1 ? "" : "s");
		return -ENODEV;
	}
	res = fr_plugin_props(r->plugin, (int)r->opts->dev, &props);
	if (res != FR_PLUGIN_SUCCESS) {
		return plugin_failed(r, "getProperties", res);
	}
	if ((props.ptr_support & FR_PLUGIN_PTR_HOST) == 0) {
		fr_error("rank %u: device %u of plugin %s takes no host memory",
			 r->rank, r->opts->dev, r->opts->plugin);
		return -ENOTSUP;
	}
	return 0;
}

static int open_plugin(struct fr_rank *r)
{
	int ret, res;

	fr_status_set(r->status, "loading plugin %s", r->opts->plugin);
	ret = fr_plugin_open(r->opts->plugin, r->opts->abi, fr_plog_line,
			     &r->plugin);
	if (ret != 0) {
		return ret;
	}
	fr_status_set(r->status, "init of plugin %s", r->opts->plugin);
	res = fr_plugin_init(r->plugin, 1, -1, &r->ctx);
	if (res != FR_PLUGIN_SUCCESS) {
		return plugin_failed(r, "init", res);
	}
	return check_device(r);
}

static int open_conns(struct fr_rank *r)
{
	struct fr_shape shape = {.cmd = r->opts->cmd,
				 .rank = r->rank,
				 .ranks = r->ranks,
				 .root = r->opts->root};
	int ret;

	r->conns.plugin = r->plugin;
	r->conns.ctx = r->ctx;
	r->conns.dev = (int)r->opts->dev;
	r->conns.rank = r->rank;
	r->conns.ranks = r->ranks;
	r->conns.channels = r->opts->channels;
	r->conns.oob = r->oob;
	r->conns.status = r->status;
	ret = fr_conns_init(&r->conns);
	if (ret != 0) {
		return ret;
	}
	for (unsigned i = 0; i < r->ranks; i++) {
		r->conns.send_to[i] = fr_shape_sends_to(&shape, i);
		r->conns.recv_from[i] = fr_shape_recvs_from(&shape, i);
	}
	fr_status_set(r->status, "connecting");
	return fr_worker_run_wait(r->service, fr_conns_open_svc, &r->conns);
}

static int map_memory(size_t bytes, char **out)
{
	void *p = mmap(NULL, FR_MAX(bytes, 1), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fr_error("no memory for a buffer of %zu bytes", bytes);
		return -ENOMEM;
	}
	*out = p;
	return 0;
}

static int reg_p2p_svc(void *arg)
{
	struct fr_rank *r = arg;
	unsigned peer = 1 - r->rank;
	int ret;

	ret = fr_conn_reg_user(fr_conn_to(&r->conns, 0, peer), r->in,
			       r->in_bytes);
	return ret != 0 ? ret
			: fr_conn_reg_user(fr_conn_from(&r->conns, 0, peer),
					   r->out, r->out_bytes);
}

static int dereg_p2p_svc(void *arg)
{
	struct fr_rank *r = arg;
	unsigned peer = 1 - r->rank;
	int ret;

	ret = fr_conn_dereg_user(fr_conn_to(&r->conns, 0, peer));
	return ret != 0 ? ret
			: fr_conn_dereg_user(fr_conn_from(&r->conns, 0, peer));
}

int fr_rank_memory_open(struct fr_rank *r)
{
	const struct fr_perf_opts *o = r->opts;
	struct fr_shape s = {.cmd = o->cmd, .rank = r->rank, .ranks = r->ranks};
	int ret;

	if (fr_perf_cmd_is_p2p(o->cmd)) {
		r->in_bytes = fr_p2p_memory_bytes(
			FR_MAX(o->end_bytes, o->recv_bytes),
			o->cmd == FR_PERF_PINGPONG ? 2 : o->window);
		r->out_bytes = r->in_bytes;
	} else {
		s.cnt = fr_metric_cnt(o->cmd, o->end_bytes, o->type, r->ranks);
		r->in_bytes = fr_shape_in_cnt(&s) * fr_type_bytes(o->type);
		r->out_bytes = fr_shape_out_cnt(&s) * fr_type_bytes(o->type);
	}
	ret = map_memory(r->in_bytes, &r->in);
	if (ret == 0) {
		ret = map_memory(r->out_bytes, &r->out);
	}
	if (ret == 0 && fr_perf_cmd_is_p2p(o->cmd)) {
		fr_status_set(r->status, "registering %zu bytes", r->in_bytes);
		ret = fr_worker_run_wait(r->service, reg_p2p_svc, r);
	}
	return ret;
}

int fr_rank_memory_close(struct fr_rank *r)
{
	int ret = 0;

	if (fr_perf_cmd_is_p2p(r->opts->cmd)) {
		ret = fr_worker_run_wait(r->service, dereg_p2p_svc, r);
	}
	(void)munmap(r->in, FR_MAX(r->in_bytes, 1));
	(void)munmap(r->out, FR_MAX(r->out_bytes, 1));
	return ret;
}

static int open_all(struct fr_rank *r)
{
	bool p2p = fr_perf_cmd_is_p2p(r->opts->cmd);
	int ret;

	ret = fr_watch_start(r->status, r->rank, r->opts->timeout_s,
			     r->opts->rank >= 0 ? r->oob : NULL, &r->watch);
	if (ret == 0) {
		ret = fr_worker_start("perf service", &r->service);
	}
	if (ret == 0) {
		ret = fr_worker_start("perf progress", &r->progress);
	}
	if (ret == 0) {
		ret = open_plugin(r);
	}
	if (ret == 0) {
		ret = open_conns(r);
	}
	if (ret == 0) {
		ret = fr_rank_memory_open(r);
	}
	if (ret == 0 && r->opts->raw) {
		fr_status_set(r->status, "opening bare libfabric");
		ret = fr_rawside_open_wait(r->opts, r->oob, r->status,
					   p2p ? r->opts->end_bytes
					       : RAW_COLLECTIVE_BYTES,
					   &r->raw);
	}
	return ret;
}

/* In the order of NCCL; the other ranks are at it as well. */
static int close_all(struct fr_rank *r)
{
	int ret, res;

	fr_status_set(r->status, "closing");
	ret = fr_oob_barrier_wait(r->oob);
	fr_worker_stop(r->progress); /* joined before any close, as in NCCL */
	if (ret == 0) {
		ret = fr_rank_memory_close(r);
	}
	if (ret == 0) {
		ret = fr_worker_run_wait(r->service, fr_conns_close_svc,
					 &r->conns);
	}
	fr_worker_stop(r->service);
	fr_conns_fini(&r->conns);
	if (ret != 0) {
		return ret;
	}
	fr_rawside_close(r->raw);
	res = fr_plugin_finalize(r->plugin, r->ctx);
	if (res != FR_PLUGIN_SUCCESS) {
		return plugin_failed(r, "finalize", res);
	}
	return 0;
}

static void show_progress(const struct fr_rank *r, size_t bytes)
{
	if (r->text != NULL && isatty(STDERR_FILENO) != 0) {
		(void)fprintf(stderr, "\r%zu of %zu bytes ...\033[K", bytes,
			      r->opts->end_bytes);
	}
}

static void hide_progress(const struct fr_rank *r)
{
	if (r->text != NULL && isatty(STDERR_FILENO) != 0) {
		(void)fputs("\r\033[K", stderr);
	}
}

static int run_sizes(struct fr_rank *r)
{
	size_t bytes = r->opts->begin_bytes;
	struct fr_perf_result result;
	int ret;

	do {
		memset(&result, 0, sizeof(result));
		show_progress(r, bytes);
		ret = fr_perf_cmd_is_p2p(r->opts->cmd)
			      ? fr_rank_p2p_wait(r, bytes, &result)
			      : fr_rank_collective_wait(r, bytes, &result);
		hide_progress(r);
		if (ret == 0) {
			ret = fr_report_add(&r->report, &result);
		}
		if (ret == 0 && r->text != NULL) {
			fr_text_row(r->text, &r->report, &result);
		}
		bytes = fr_metric_next_size(r->opts, bytes);
	} while (ret == 0 && bytes != 0);
	return ret;
}

static int write_reports(struct fr_rank *r)
{
	const struct fr_perf_opts *o = r->opts;
	int ret = 0;

	fr_text_tail(r->text, &r->report);
	if (o->csv != NULL) {
		ret = fr_output_file(o->csv, &r->report, fr_csv_write);
	}
	if (ret == 0 && o->json != NULL) {
		ret = fr_output_file(o->json, &r->report, fr_json_write);
	}
	if (ret == 0 && o->plot != NULL) {
		ret = fr_plot_write(o->plot, &r->report);
	}
	return ret;
}

static int run_plugin(struct fr_rank *r, struct fr_rails *rails)
{
	char name[64];
	int ret;

	ret = open_all(r);
	if (ret != 0) {
		return ret;
	}
	(void)snprintf(name, sizeof(name), "%s", fr_plugin_name(r->plugin));
	r->report.plugin = name; /* outlives the plugin */
	r->report.abi = fr_plugin_abi(r->plugin);
	r->report.provider = fr_plog_provider();
	if (r->text != NULL) {
		fr_text_head(r->text, &r->report);
	}
	ret = run_sizes(r);
	if (ret == 0) {
		ret = close_all(r);
	}
	if (ret != 0) {
		return ret;
	}
	fr_status_set(r->status, "unloading the plugin");
	fr_plugin_close(r->plugin);
	fr_watch_stop(r->watch);
	ret = fr_rails_end_wait(rails, r->oob, r->report.rails,
				&r->report.rail_cnt);
	if (ret == 0 && r->rank == 0) {
		ret = write_reports(r);
	}
	return ret;
}

static int exit_status(const struct fr_rank *r, int ret)
{
	if (ret == -ECONNRESET) {
		return FR_EXIT_BECAUSE_OF_PEER;
	}
	if (ret != 0) {
		return 1;
	}
	for (unsigned i = 0; i < r->report.result_cnt && r->rank == 0; i++) {
		if (r->report.results[i].wrong != 0) {
			return FR_EXIT_WRONG;
		}
	}
	return 0;
}

int fr_rank_main(unsigned rank, struct fr_oob *oob, struct fr_status *status,
		 void *arg)
{
	struct fr_rank r = {.opts = arg,
			    .rank = rank,
			    .ranks = fr_oob_ranks(oob),
			    .oob = oob,
			    .status = status};
	struct fr_rails rails;
	int ret = 0;

	r.report.opts = r.opts;
	if (rank == 0) {
		r.text = r.opts->json != NULL && strcmp(r.opts->json, "-") == 0
				 ? stderr
				 : stdout;
	}
	fr_plog_init(rank, r.opts->verbose);
	if (r.opts->netns[0][0] != 0) {
		ret = fr_netns_enter(r.opts->netns[rank % 2]);
	}
	if (ret == 0) {
		fr_rails_begin(&rails);
		ret = run_plugin(&r, &rails);
		fr_rails_discard(&rails);
	}
	if (ret == 0) {
		ret = fr_oob_barrier_wait(oob);
	}
	ret = exit_status(&r, ret);
	fr_report_fini(&r.report);
	fr_oob_destroy(oob);
	return ret;
}
