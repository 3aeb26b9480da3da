#include "tools/output.h"

void fr_csv_write(FILE *out, const struct fr_perf_report *r)
{
	int cmd = r->opts->cmd;

	(void)fputs("command,plugin,abi,provider,ranks,size_bytes,count,type,"
		    "redop,time_us,algbw_gbytes,busbw_gbytes,wrong,raw_ratio",
		    out);
	if (cmd == FR_PERF_PINGPONG) {
		(void)fputs(",p50_us,p99_us", out);
	} else if (cmd == FR_PERF_STREAM) {
		(void)fputs(",msgs_per_s,cpu_us", out);
	}
	(void)fputc('\n', out);
	for (unsigned i = 0; i < r->result_cnt; i++) {
		const struct fr_perf_result *res = &r->results[i];

		(void)fprintf(
			out, "%s,%s,v%u,%s,%u,%zu,%zu,%s,%s,%.4f,%.6f,%.6f,",
			fr_perf_cmd_name(cmd), r->plugin, r->abi, r->provider,
			r->opts->ranks, res->size_bytes, res->count,
			fr_type_names[r->opts->type], fr_report_redop(r),
			res->time_us, res->algbw_gbytes, res->busbw_gbytes);
		if (res->checked) {
			(void)fprintf(out, "%llu",
				      (unsigned long long)res->wrong);
		}
		(void)fputc(',', out);
		if (res->has_raw) {
			(void)fprintf(out, "%.6f", res->raw_ratio);
		}
		if (cmd == FR_PERF_PINGPONG) {
			(void)fprintf(out, ",%.4f,%.4f", res->p50_us,
				      res->p99_us);
		} else if (cmd == FR_PERF_STREAM) {
			(void)fprintf(out, ",%.3f,%.4f", res->msgs_per_s,
				      res->cpu_us);
		}
		(void)fputc('\n', out);
	}
}
