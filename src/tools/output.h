/* The report as people and programs read it. */
#ifndef FR_TOOLS_OUTPUT_H
#define FR_TOOLS_OUTPUT_H

#include <stdio.h>

#include "tools/metric.h"

/* nccl-tests' columns. Header, one line a result, rails and sum. */
void fr_text_head(FILE *out, const struct fr_perf_report *report);
void fr_text_row(FILE *out, const struct fr_perf_report *report,
		 const struct fr_perf_result *result);
void fr_text_tail(FILE *out, const struct fr_perf_report *report);

/* One object, see doc/fabrail-perf.md. */
void fr_json_write(FILE *out, const struct fr_perf_report *report);
void fr_csv_write(FILE *out, const struct fr_perf_report *report);
/* Writes @path, or stdout for "-". Return: 0; -errno, logged. */
int fr_output_file(const char *path, const struct fr_perf_report *report,
		   void (*write)(FILE *out,
				 const struct fr_perf_report *report));

/* Whether fr_plot_write() can work; else one error line. Return: 0; -ENOENT. */
int fr_plot_check(void);
/* Bandwidth over size as SVG, drawn by gnuplot. Return: 0; -errno, logged. */
int fr_plot_write(const char *path, const struct fr_perf_report *report);

#endif
