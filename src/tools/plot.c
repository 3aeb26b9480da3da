#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tools/output.h"

int fr_plot_check(void)
{
	const char *path = getenv("PATH");
	char file[512];
	size_t len;

	for (const char *at = path != NULL ? path : ""; *at != 0;) {
		len = strcspn(at, ":");
		(void)snprintf(file, sizeof(file), "%.*s/gnuplot", (int)len,
			       at);
		if (access(file, X_OK) == 0) {
			return 0;
		}
		at += len + (at[len] == ':');
	}
	fr_error("--plot needs gnuplot, which is not in PATH (Debian: "
		 "gnuplot-nox)");
	return -ENOENT;
}

/* A text inside gnuplot's single quotes. */
static void put_quoted(FILE *out, const char *text)
{
	(void)fputc('\'', out);
	for (; *text != 0; text++) {
		if (*text == '\'') {
			(void)fputc('\'', out);
		}
		(void)fputc(*text, out);
	}
	(void)fputc('\'', out);
}

static void put_script(FILE *out, const char *path,
		       const struct fr_perf_report *r)
{
	char title[256];
	const struct fr_perf_result *res;
	bool raw = r->opts->raw && r->opts->cmd != FR_PERF_PINGPONG;

	(void)snprintf(title, sizeof(title), "%s, %u ranks, %s v%u, %s",
		       fr_perf_cmd_name(r->opts->cmd), r->opts->ranks,
		       r->plugin, r->abi, r->provider);
	(void)fputs("set terminal svg size 900,600 background rgb 'white' "
		    "noenhanced\nset output ",
		    out);
	put_quoted(out, path);
	(void)fputs("\nset title ", out);
	put_quoted(out, title);
	(void)fprintf(out, "\nset logscale x 2\nset logscale y 10\n"
			   "set format x '%%.0b %%BB'\nset grid\n"
			   "set xlabel 'size'\nset ylabel 'GB/s'\n"
			   "set key left top\n"
			   "plot '-' with linespoints lw 2 pt 7 ps 0.6 title "
			   "'bus bandwidth'");
	if (raw) {
		(void)fputs(", '-' with linespoints lw 2 dt 2 pt 6 ps 0.6 "
			    "title 'raw libfabric at the same work'",
			    out);
	}
	(void)fputc('\n', out);
	for (int pass = 0; pass < (raw ? 2 : 1); pass++) {
		for (unsigned i = 0; i < r->result_cnt; i++) {
			res = &r->results[i];
			if (res->size_bytes == 0 || res->busbw_gbytes <= 0 ||
			    (pass == 1 && res->raw_ratio <= 0)) {
				continue;
			}
			(void)fprintf(out, "%zu %.9g\n", res->size_bytes,
				      pass == 0 ? res->busbw_gbytes
						: res->busbw_gbytes /
							  res->raw_ratio);
		}
		(void)fputs("e\n", out);
	}
}

int fr_plot_write(const char *path, const struct fr_perf_report *report)
{
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);
	FILE *out = popen("gnuplot", "w");
	int status = -1;

	if (out != NULL) {
		put_script(out, path, report);
		status = pclose(out);
	}
	(void)signal(SIGPIPE, old);
	if (status != 0) {
		fr_error("gnuplot did not draw %s", path);
		return -EIO;
	}
	return 0;
}
