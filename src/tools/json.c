#include "tools/output.h"

static void put_text(FILE *out, const char *text)
{
	(void)fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c != 0;
	     c++) {
		if (*c == '"' || *c == '\\') {
			(void)fprintf(out, "\\%c", *c);
		} else if (*c < 0x20) {
			(void)fprintf(out, "\\u%04x", *c);
		} else {
			(void)fputc(*c, out);
		}
	}
	(void)fputc('"', out);
}

static void put_rails(FILE *out, const struct fr_perf_report *r)
{
	(void)fputs("\"rails\":[", out);
	for (unsigned i = 0; i < r->rail_cnt; i++) {
		(void)fputs(i > 0 ? ",{\"name\":" : "{\"name\":", out);
		put_text(out, r->rails[i].name);
		(void)fprintf(out, ",\"tx_bytes\":%llu,\"rx_bytes\":%llu}",
			      (unsigned long long)r->rails[i].tx_bytes,
			      (unsigned long long)r->rails[i].rx_bytes);
	}
	(void)fputs("]", out);
}

static void put_result(FILE *out, const struct fr_perf_report *r,
		       const struct fr_perf_result *res)
{
	(void)fprintf(out,
		      "{\"size_bytes\":%zu,\"count\":%zu,\"type\":\"%s\","
		      "\"redop\":\"%s\",\"time_us\":%.4f,"
		      "\"algbw_gbytes\":%.6f,\"busbw_gbytes\":%.6f,",
		      res->size_bytes, res->count, fr_type_names[r->opts->type],
		      fr_report_redop(r), res->time_us, res->algbw_gbytes,
		      res->busbw_gbytes);
	if (res->checked) {
		(void)fprintf(out, "\"wrong\":%llu",
			      (unsigned long long)res->wrong);
	} else {
		(void)fputs("\"wrong\":null", out);
	}
	if (res->has_raw) {
		(void)fprintf(out, ",\"raw_ratio\":%.6f", res->raw_ratio);
	} else {
		(void)fputs(",\"raw_ratio\":null", out);
	}
	if (r->opts->cmd == FR_PERF_PINGPONG) {
		(void)fprintf(out, ",\"p50_us\":%.4f,\"p99_us\":%.4f",
			      res->p50_us, res->p99_us);
	} else if (r->opts->cmd == FR_PERF_STREAM) {
		(void)fprintf(out, ",\"msgs_per_s\":%.3f,\"cpu_us\":%.4f",
			      res->msgs_per_s, res->cpu_us);
	}
	(void)fputs("}", out);
}

void fr_json_write(FILE *out, const struct fr_perf_report *r)
{
	(void)fprintf(out, "{\"version\":1,\"command\":\"%s\",\"plugin\":",
		      fr_perf_cmd_name(r->opts->cmd));
	put_text(out, r->plugin);
	(void)fprintf(out, ",\"abi\":\"v%u\",\"provider\":", r->abi);
	put_text(out, r->provider);
	(void)fprintf(out, ",\"ranks\":%u,\n", r->opts->ranks);
	put_rails(out, r);
	(void)fputs(",\n\"results\":[", out);
	for (unsigned i = 0; i < r->result_cnt; i++) {
		(void)fputs(i > 0 ? ",\n" : "\n", out);
		put_result(out, r, &r->results[i]);
	}
	(void)fputs("\n]}\n", out);
}
