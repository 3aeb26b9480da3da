/* fabrail-perf: collectives and messages through any NCCL net plugin. */
#include <stdio.h>

#include "base/log.h"
#include "tools/launch.h"
#include "tools/opts.h"
#include "tools/output.h"
#include "tools/rank.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

static void log_to_stderr(enum fr_log_level level, const char *file, int line,
			  const char *text)
{
	(void)file;
	(void)line;
	if (level <= FR_LOG_WARN) {
		(void)fprintf(stderr, "fabrail-perf: %s\n", text);
	}
}

/* One rank of several that somebody else started. */
static int run_alone(struct fr_perf_opts *opts)
{
	static struct fr_status status;
	struct fr_oob *oob;
	int ret;

	if (fr_oob_meet_wait((unsigned)opts->rank, opts->ranks,
			     opts->master_host, opts->master_port,
			     opts->timeout_s, &oob) != 0) {
		return 1;
	}
	ret = fr_rank_main((unsigned)opts->rank, oob, &status, opts);
	return ret != 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct fr_perf_opts opts;
	char why[512];

	fr_log_set_sink(log_to_stderr);
	if (fr_perf_opts_parse(argc, argv, NULL, &opts, why, sizeof(why)) !=
	    0) {
		(void)fprintf(stderr, "fabrail-perf: %s\n", why);
		return 2;
	}
	if (opts.help) {
		fr_perf_opts_help(stdout);
		return 0;
	}
	if (opts.version) {
		(void)printf("fabrail-perf %s\n", PACKAGE_VERSION);
		return 0;
	}
	if (opts.plot != NULL && fr_plot_check() != 0) {
		return 2;
	}
	if (opts.rank >= 0) {
		return run_alone(&opts);
	}
	return fr_launch_wait(opts.ranks, fr_rank_main, &opts) == 0 ? 0 : 1;
}
