/* Numbers of a run, as nccl-tests defines them, and the report they make. */
#ifndef FR_TOOLS_METRIC_H
#define FR_TOOLS_METRIC_H

#include "tools/program.h"

struct fr_perf_result {
	size_t size_bytes, count;
	double time_us;
	double algbw_gbytes, busbw_gbytes; /* 1e9 bytes/s */
	bool checked;
	uint64_t wrong;
	bool has_raw;
	double raw_ratio; /* plugin over raw: of times in pingpong, else rates
			   */
	double p50_us, p99_us;	   /* pingpong: half round trips */
	double msgs_per_s, cpu_us; /* stream: cpu of the sender a message */
};

struct fr_perf_rail {
	char name[48];
	uint64_t tx_bytes, rx_bytes;
};

#define FR_PERF_MAX_RAILS 64u

struct fr_perf_report {
	const struct fr_perf_opts *opts;
	const char *plugin;
	unsigned abi;
	const char *provider;
	struct fr_perf_rail rails[FR_PERF_MAX_RAILS];
	unsigned rail_cnt;
	struct fr_perf_result *results; /* freed by fr_report_fini() */
	unsigned result_cnt, result_max;
};

/* Return: 0; -ENOMEM. */
int fr_report_add(struct fr_perf_report *report,
		  const struct fr_perf_result *result);
void fr_report_fini(struct fr_perf_report *report);
const char *fr_report_redop(const struct fr_perf_report *report);

/* Elements of a shape for a size of @bytes, at least one unless it is 0. */
size_t fr_metric_cnt(int cmd, size_t bytes, int type, unsigned ranks);
/* The larger of what a rank gives and gets. */
size_t fr_metric_size_bytes(const struct fr_shape *shape, int type);
/* busbw / algbw. */
double fr_metric_bus_factor(int cmd, unsigned ranks);
/* The size after @bytes; 0 when that was the last one. */
size_t fr_metric_next_size(const struct fr_perf_opts *opts, size_t bytes);
/* Fills time and bandwidths. */
void fr_metric_rate(struct fr_perf_result *result, int cmd, unsigned ranks,
		    double time_us);
/* Of @cnt values, which are sorted; 0 of none. @q: 0 to 1. */
double fr_metric_quantile(double *values, size_t cnt, double q);

#endif
