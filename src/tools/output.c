#include "tools/output.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

void fr_text_head(FILE *out, const struct fr_perf_report *r)
{
	const struct fr_perf_opts *o = r->opts;

	(void)fprintf(out,
		      "# %s: plugin %s (%s), table v%u, provider %s, device "
		      "%u\n# %u ranks, %u channel%s, warm-up %u",
		      fr_perf_cmd_name(o->cmd), r->plugin, o->plugin, r->abi,
		      r->provider, o->dev, o->ranks, o->channels,
		      o->channels == 1 ? "" : "s", o->warmup);
	if (o->cmd == FR_PERF_STREAM) {
		(void)fprintf(out, ", window %u", o->window);
	}
	if (o->raw) {
		(void)fprintf(out,
			      ", raw libfabric beside: %s completion, median "
			      "of %u pairs",
			      o->raw_deliver ? "delivery" : "local", o->pairs);
	}
	(void)fprintf(out, "\n#\n# %11s %13s %9s %7s %6s %10s %8s %8s %7s",
		      "size", "count", "type", "redop", "root", "time", "algbw",
		      "busbw", "#wrong");
	if (o->cmd == FR_PERF_PINGPONG) {
		(void)fprintf(out, " %10s %10s", "p50", "p99");
	} else if (o->cmd == FR_PERF_STREAM) {
		(void)fprintf(out, " %10s %8s", "msgs", "cpu");
	}
	(void)fprintf(out, "%s\n# %11s %13s %9s %7s %6s %10s %8s %8s %7s",
		      o->raw ? "      raw" : "", "(B)", "(elements)", "", "",
		      "", "(us)", "(GB/s)", "(GB/s)", "");
	if (o->cmd == FR_PERF_PINGPONG) {
		(void)fprintf(out, " %10s %10s", "(us)", "(us)");
	} else if (o->cmd == FR_PERF_STREAM) {
		(void)fprintf(out, " %10s %8s", "(1/s)", "(us)");
	}
	(void)fprintf(out, "%s\n", o->raw ? "  (ratio)" : "");
	(void)fflush(out);
}

void fr_text_row(FILE *out, const struct fr_perf_report *r,
		 const struct fr_perf_result *res)
{
	int cmd = r->opts->cmd;
	int root = fr_perf_cmd_has_root(cmd) ? (int)r->opts->root : -1;

	(void)fprintf(out, "%13zu %13zu %9s %7s %6d %10.2f %8.3f %8.3f",
		      res->size_bytes, res->count, fr_type_names[r->opts->type],
		      fr_report_redop(r), root, res->time_us, res->algbw_gbytes,
		      res->busbw_gbytes);
	if (res->checked) {
		(void)fprintf(out, " %7llu", (unsigned long long)res->wrong);
	} else {
		(void)fprintf(out, " %7s", "N/A");
	}
	if (cmd == FR_PERF_PINGPONG) {
		(void)fprintf(out, " %10.2f %10.2f", res->p50_us, res->p99_us);
	} else if (cmd == FR_PERF_STREAM) {
		(void)fprintf(out, " %10.0f %8.2f", res->msgs_per_s,
			      res->cpu_us);
	}
	if (res->has_raw) {
		(void)fprintf(out, " %8.3f", res->raw_ratio);
	}
	(void)fputc('\n', out);
	(void)fflush(out);
}

void fr_text_tail(FILE *out, const struct fr_perf_report *r)
{
	uint64_t wrong = 0;
	double sum = 0;

	for (unsigned i = 0; i < r->result_cnt; i++) {
		wrong += r->results[i].wrong;
		sum += r->results[i].busbw_gbytes;
	}
	(void)fputs("#\n", out);
	for (unsigned i = 0; i < r->rail_cnt; i++) {
		(void)fprintf(out, "# rail %-12s %16llu B sent %16llu B got\n",
			      r->rails[i].name,
			      (unsigned long long)r->rails[i].tx_bytes,
			      (unsigned long long)r->rails[i].rx_bytes);
	}
	if (r->result_cnt > 0) {
		(void)fprintf(out, "# average bus bandwidth %.3f GB/s\n",
			      sum / r->result_cnt);
	}
	if (r->opts->check != 0) {
		(void)fprintf(out, "# wrong elements: %llu%s\n",
			      (unsigned long long)wrong,
			      wrong == 0 ? ", all is well" : ": FAILED");
	}
	(void)fflush(out);
}

int fr_output_file(const char *path, const struct fr_perf_report *report,
		   void (*write)(FILE *out,
				 const struct fr_perf_report *report))
{
	FILE *out;
	int ret = 0;

	if (strcmp(path, "-") == 0) {
		write(stdout, report);
		return fflush(stdout) != 0 ? -EIO : 0;
	}
	out = fopen(path, "w");
	if (out == NULL) {
		ret = -errno;
		fr_error("cannot write %s: %s", path, strerror(-ret));
		return ret;
	}
	write(out, report);
	if (ferror(out) != 0) {
		ret = -EIO;
	}
	if (fclose(out) != 0 && ret == 0) {
		ret = -errno;
	}
	if (ret != 0) {
		fr_error("cannot write %s: %s", path, strerror(-ret));
	}
	return ret;
}
