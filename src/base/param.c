#include "base/param.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"

#define PARAM_NAME_BYTES 128

struct param_unit {
	const char *text;
	uint64_t factor;
};

static const struct param_unit no_units[] = {
	{"", 1},
	{NULL, 0},
};

static const struct param_unit size_units[] = {
	{"", 1},	   {"K", 1ull << 10}, {"M", 1ull << 20},
	{"G", 1ull << 30}, {NULL, 0},
};

static const struct param_unit time_units[] = {
	{"", FR_NS_PER_S},    {"ns", 1},	  {"us", FR_NS_PER_US},
	{"ms", FR_NS_PER_MS}, {"s", FR_NS_PER_S}, {NULL, 0},
};

/* One grammar for all numbers; the kinds differ in these. */
struct param_number {
	const struct param_unit *units;
	bool hex;
	int64_t max; /* of the field */
};

static const struct param_number number_kinds[] = {
	[FR_PARAM_U32] = {no_units, true, UINT32_MAX},
	[FR_PARAM_I64] = {size_units, true, INT64_MAX},
	[FR_PARAM_BYTES] = {size_units, true, INT64_MAX},
	[FR_PARAM_TIME] = {time_units, false, INT64_MAX},
};

static int param_digit(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'a' && c <= 'f') {
		return c - 'a' + 10;
	}
	if (c >= 'A' && c <= 'F') {
		return c - 'A' + 10;
	}
	return 16;
}

/* Reads digits at *@at and moves it behind them. */
static int param_parse_digits(const char **at, int base, uint64_t *out)
{
	const char *text = *at;
	uint64_t v = 0;

	for (; param_digit(*text) < base; text++) {
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)param_digit(*text),
					   &v)) {
			return -EINVAL;
		}
	}
	if (text == *at) {
		return -EINVAL;
	}
	*at = text;
	*out = v;
	return 0;
}

static int param_parse_unit(const char *text, const struct param_unit *units,
			    uint64_t *factor)
{
	for (; units->text != NULL; units++) {
		if (strcasecmp(text, units->text) == 0) {
			*factor = units->factor;
			return 0;
		}
	}
	return -EINVAL;
}

static bool param_is_bounded(const struct fr_param *row)
{
	return row->min != 0 || row->max != 0;
}

static int param_parse_number(const struct fr_param *row, const char *text,
			      int64_t *out)
{
	const struct param_number *kind = &number_kinds[row->kind];
	int64_t min = param_is_bounded(row) ? row->min : 0;
	int64_t max = param_is_bounded(row) ? row->max : kind->max;
	bool negative = false;
	uint64_t v, factor;
	int base = 10;

	if (min < 0 && (*text == '-' || *text == '+')) {
		negative = *text++ == '-';
	}
	if (kind->hex && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (param_parse_digits(&text, base, &v) != 0 ||
	    param_parse_unit(text, kind->units, &factor) != 0 ||
	    __builtin_mul_overflow(v, factor, &v) || v > INT64_MAX) {
		return -EINVAL;
	}
	*out = negative ? -(int64_t)v : (int64_t)v;
	return *out < min || *out > max ? -ERANGE : 0;
}

static int param_parse_bool(const char *text, bool *out)
{
	static const char *const words[] = {
		"0", "1", "n", "y", "no", "yes", "off", "on", "false", "true"};

	for (size_t i = 0; i < FR_ARRAY_LEN(words); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*out = i % 2 != 0;
			return 0;
		}
	}
	return -EINVAL;
}

static int param_parse_enum(const struct fr_param *row, const char *text,
			    int *out)
{
	for (int i = 0; row->names[i] != NULL; i++) {
		if (strcasecmp(text, row->names[i]) == 0) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int param_set_number(const struct fr_param *row, const char *text,
			    void *field)
{
	int64_t v;
	int ret;

	ret = param_parse_number(row, text, &v);
	if (ret != 0) {
		return ret;
	}
	if (row->kind == FR_PARAM_U32) {
		*(uint32_t *)field = (uint32_t)v;
	} else if (row->kind == FR_PARAM_I64) {
		*(int64_t *)field = v;
	} else {
		*(uint64_t *)field = (uint64_t)v;
	}
	return 0;
}

/* Return: 0; -EINVAL no such form; -ERANGE out of bounds; -ENOMEM. */
static int param_set(const struct fr_param *row, const char *text, void *values)
{
	void *field = (char *)values + row->offset;
	char *copy;

	switch (row->kind) {
	case FR_PARAM_BOOL:
		return param_parse_bool(text, field);
	case FR_PARAM_ENUM:
		return param_parse_enum(row, text, field);
	case FR_PARAM_TEXT:
		copy = fr_strdup(text);
		if (copy == NULL) {
			return -ENOMEM;
		}
		*(char **)field = copy;
		return 0;
	case FR_PARAM_U32:
	case FR_PARAM_I64:
	case FR_PARAM_BYTES:
	case FR_PARAM_TIME:
		break;
	}
	return param_set_number(row, text, field);
}

/* The user's text for @row, or NULL where it is unset or empty. */
static const char *param_lookup(const struct fr_param *row, const char *prefix,
				fr_getenv_fn get)
{
	char name[PARAM_NAME_BYTES];
	const char *text;

	snprintf(name, sizeof(name), "%s%s", prefix, row->name);
	text = get(name);
	return text == NULL || *text == '\0' ? NULL : text;
}

static int param_load_row(const struct fr_param *row, const char *prefix,
			  fr_getenv_fn get, void *values,
			  enum fr_param_origin *origin)
{
	const char *text = param_lookup(row, prefix, get);
	char allowed[256];
	int ret;

	*origin = text == NULL ? FR_PARAM_DEFAULT : FR_PARAM_ENV;
	ret = param_set(row, text == NULL ? row->dflt : text, values);
	if (ret == -EINVAL || ret == -ERANGE) {
		fr_param_allowed(row, allowed, sizeof(allowed));
		fr_error("%s%s: %s '%.80s'; allowed: %s; default %s", prefix,
			 row->name,
			 ret == -ERANGE ? "value out of bounds" : "bad value",
			 text == NULL ? row->dflt : text, allowed, row->dflt);
		return -EINVAL;
	}
	return ret;
}

int fr_param_load(const struct fr_param *table, const char *prefix,
		  fr_getenv_fn get, void *values, enum fr_param_origin *origin)
{
	fr_getenv_fn lookup = get == NULL ? (fr_getenv_fn)getenv : get;
	enum fr_param_origin unasked;

	for (unsigned i = 0; table[i].name != NULL; i++) {
		int ret =
			param_load_row(&table[i], prefix, lookup, values,
				       origin == NULL ? &unasked : &origin[i]);

		if (ret != 0) {
			fr_param_unload(table, values);
			return ret;
		}
	}
	return 0;
}

void fr_param_unload(const struct fr_param *table, void *values)
{
	for (const struct fr_param *row = table; row->name != NULL; row++) {
		char **text = (char **)((char *)values + row->offset);

		if (row->kind == FR_PARAM_TEXT) {
			fr_free(*text);
			*text = NULL;
		}
	}
}
