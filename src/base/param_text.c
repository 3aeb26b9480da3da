#include "base/param.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"

struct text_unit {
	const char *text;
	uint64_t factor;
};

/* Largest first; the last one divides everything. */
static const struct text_unit size_units[] = {
	{"G", 1ull << 30},
	{"M", 1ull << 20},
	{"K", 1ull << 10},
	{"", 1},
};

static const struct text_unit time_units[] = {
	{"s", FR_NS_PER_S},
	{"ms", FR_NS_PER_MS},
	{"us", FR_NS_PER_US},
	{"ns", 1},
};

static void text_scaled(uint64_t v, const struct text_unit *unit, char *buf,
			size_t bytes)
{
	while (v % unit->factor != 0) {
		unit++;
	}
	snprintf(buf, bytes, "%" PRIu64 "%s", v / unit->factor,
		 v == 0 ? "" : unit->text);
}

static void text_number(enum fr_param_kind kind, int64_t v, char *buf,
			size_t bytes)
{
	uint64_t magnitude = v < 0 ? -(uint64_t)v : (uint64_t)v;
	char text[32];

	if (kind == FR_PARAM_U32) {
		snprintf(text, sizeof(text), "%" PRIu64, magnitude);
	} else {
		text_scaled(magnitude,
			    kind == FR_PARAM_TIME ? time_units : size_units,
			    text, sizeof(text));
	}
	snprintf(buf, bytes, "%s%s", v < 0 ? "-" : "", text);
}

static void text_names(const struct fr_param *row, char *buf, size_t bytes)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned i = 0; row->names[i] != NULL && at < bytes; i++) {
		at += (size_t)snprintf(buf + at, bytes - at, "%s%s",
				       i == 0 ? "" : " or ", row->names[i]);
	}
}

static void text_bounds(const struct fr_param *row, char *buf, size_t bytes)
{
	char min[32], max[32];

	text_number(row->kind, row->min, min, sizeof(min));
	text_number(row->kind, row->max, max, sizeof(max));
	if (row->min == 0 && row->max == 0) {
		snprintf(buf, bytes, "0 or more");
	} else if (row->max == INT64_MAX) {
		snprintf(buf, bytes, "%s or more", min);
	} else {
		snprintf(buf, bytes, "%s to %s", min, max);
	}
}

void fr_param_allowed(const struct fr_param *row, char *buf, size_t bytes)
{
	char bounds[80];

	switch (row->kind) {
	case FR_PARAM_BOOL:
		snprintf(buf, bytes,
			 "0 or 1 (n/y, no/yes, false/true, off/on)");
		return;
	case FR_PARAM_ENUM:
		text_names(row, buf, bytes);
		return;
	case FR_PARAM_TEXT:
		snprintf(buf, bytes, "text");
		return;
	case FR_PARAM_U32:
		text_bounds(row, buf, bytes);
		return;
	case FR_PARAM_I64:
	case FR_PARAM_BYTES:
		text_bounds(row, bounds, sizeof(bounds));
		snprintf(buf, bytes, "%s; K, M, G are powers of 1024", bounds);
		return;
	case FR_PARAM_TIME:
		text_bounds(row, bounds, sizeof(bounds));
		snprintf(buf, bytes, "%s; ns, us, ms, s; bare is seconds",
			 bounds);
		return;
	}
}

void fr_param_format(const struct fr_param *row, const void *values, char *buf,
		     size_t bytes)
{
	const void *field = (const char *)values + row->offset;

	switch (row->kind) {
	case FR_PARAM_BOOL:
		snprintf(buf, bytes, "%d", *(const bool *)field ? 1 : 0);
		return;
	case FR_PARAM_ENUM:
		snprintf(buf, bytes, "%s", row->names[*(const int *)field]);
		return;
	case FR_PARAM_TEXT:
		snprintf(buf, bytes, "%s", *(char *const *)field);
		return;
	case FR_PARAM_U32:
		text_number(row->kind, *(const uint32_t *)field, buf, bytes);
		return;
	case FR_PARAM_I64:
		text_number(row->kind, *(const int64_t *)field, buf, bytes);
		return;
	case FR_PARAM_BYTES:
	case FR_PARAM_TIME:
		text_number(row->kind, (int64_t) * (const uint64_t *)field, buf,
			    bytes);
		return;
	}
}

/* A bar would end the cell. */
static void text_print_cell(const char *text, FILE *out)
{
	for (; *text != '\0'; text++) {
		if (*text == '|') {
			fputc('\\', out);
		}
		fputc(*text, out);
	}
}

void fr_param_print_markdown(const struct fr_param *table, const char *prefix,
			     bool for_tests, FILE *out)
{
	char allowed[256];

	fputs("| Name | Default | Allowed | Meaning |\n", out);
	fputs("|------|---------|---------|---------|\n", out);
	for (const struct fr_param *row = table; row->name != NULL; row++) {
		if (row->for_tests != for_tests) {
			continue;
		}
		fprintf(out, "| `%s%s` | ", prefix, row->name);
		text_print_cell(*row->dflt == '\0' ? "(empty)" : row->dflt,
				out);
		fputs(" | ", out);
		fr_param_allowed(row, allowed, sizeof(allowed));
		text_print_cell(allowed, out);
		if (*row->unit != '\0' && strcmp(row->unit, "time") != 0) {
			fprintf(out, " (%s)", row->unit);
		}
		fputs(" | ", out);
		text_print_cell(row->help, out);
		fputs(" |\n", out);
	}
}
