#include "tools/metric.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/util.h"

int fr_report_add(struct fr_perf_report *report,
		  const struct fr_perf_result *result)
{
	struct fr_perf_result *grown;
	unsigned max = report->result_max * 2 + 16;

	if (report->result_cnt == report->result_max) {
		grown = fr_realloc(report->results, max * sizeof(*grown));
		if (grown == NULL) {
			return -ENOMEM;
		}
		report->results = grown;
		report->result_max = max;
	}
	report->results[report->result_cnt++] = *result;
	return 0;
}

void fr_report_fini(struct fr_perf_report *report)
{
	fr_free(report->results);
	report->results = NULL;
	report->result_cnt = report->result_max = 0;
}

const char *fr_report_redop(const struct fr_perf_report *report)
{
	return fr_perf_cmd_has_op(report->opts->cmd)
		       ? fr_redop_names[report->opts->op]
		       : "none";
}

static bool size_is_of_all(int cmd)
{
	return cmd == FR_PERF_ALL_GATHER || cmd == FR_PERF_REDUCE_SCATTER ||
	       cmd == FR_PERF_ALLTOALL;
}

size_t fr_metric_cnt(int cmd, size_t bytes, int type, unsigned ranks)
{
	size_t cnt = bytes / fr_type_bytes(type);

	if (size_is_of_all(cmd)) {
		cnt /= ranks;
	}
	return bytes == 0 ? 0 : FR_MAX(cnt, 1);
}

size_t fr_metric_size_bytes(const struct fr_shape *shape, int type)
{
	return FR_MAX(fr_shape_in_cnt(shape), fr_shape_out_cnt(shape)) *
	       fr_type_bytes(type);
}

double fr_metric_bus_factor(int cmd, unsigned ranks)
{
	double n = ranks;

	if (cmd == FR_PERF_ALL_REDUCE) {
		return 2 * (n - 1) / n;
	}
	return size_is_of_all(cmd) ? (n - 1) / n : 1;
}

size_t fr_metric_next_size(const struct fr_perf_opts *opts, size_t bytes)
{
	size_t next;

	if (opts->step_bytes != 0) {
		next = bytes + opts->step_bytes;
	} else {
		next = bytes == 0 ? 1 : bytes * opts->factor;
	}
	return next > opts->end_bytes ? 0 : next;
}

void fr_metric_rate(struct fr_perf_result *r, int cmd, unsigned ranks,
		    double time_us)
{
	r->time_us = time_us;
	r->algbw_gbytes =
		time_us > 0 ? (double)r->size_bytes / time_us / 1e3 : 0;
	r->busbw_gbytes = r->algbw_gbytes * fr_metric_bus_factor(cmd, ranks);
}

static int compare(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

double fr_metric_quantile(double *values, size_t cnt, double q)
{
	size_t at;

	if (cnt == 0) {
		return 0;
	}
	qsort(values, cnt, sizeof(*values), compare);
	at = (size_t)(q * (double)cnt);
	at = FR_MIN(at, cnt - 1);
	if (q == 0.5 && cnt % 2 == 0) {
		return (values[at - 1] + values[at]) / 2;
	}
	return values[at];
}
