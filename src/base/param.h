/*
 * Parameters from the environment: one table of rows fills one struct. The
 * default is text and takes the same road as a user's value.
 *
 * Grammar: integers decimal or 0x hex, with an optional sign where the row's
 * minimum allows one; sizes the same with an optional suffix K, M or G (powers
 * of 1024, either case); times a whole decimal number with ns, us, ms or s,
 * bare seconds; no number exceeds 2^63 - 1 in its unit of storage, leading
 * zeros do not mean octal; booleans 0/1, n/y, no/yes, false/true, off/on (any
 * case); names one of a list (any case). No spaces inside; an empty value
 * counts as unset. A value that does not parse, or is out of its bounds, is an
 * error: nothing falls back to a default in silence.
 *
 * Threads: none of it; called at init under the caller's lock.
 */
#ifndef FR_BASE_PARAM_H
#define FR_BASE_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum fr_param_kind {
	FR_PARAM_BOOL,	/* bool */
	FR_PARAM_U32,	/* uint32_t */
	FR_PARAM_I64,	/* int64_t: a size that may be negative */
	FR_PARAM_BYTES, /* uint64_t */
	FR_PARAM_TIME,	/* uint64_t nanoseconds */
	FR_PARAM_ENUM,	/* int: index into names */
	FR_PARAM_TEXT,	/* char *, owned by the struct, never NULL */
};

struct fr_param {
	const char *name; /* without the prefix; NULL ends a table */
	enum fr_param_kind kind;
	size_t offset; /* of the field in the struct of values */
	const char *dflt;
	int64_t min, max; /* inclusive; times in ns; both 0: 0 or more */
	const char *const *names; /* ENUM: NULL-terminated */
	const char *unit; /* for the manual: "bytes", "count", "time", "" */
	const char *help; /* one or two sentences */
	bool for_tests;	  /* of no use to a user */
};

typedef const char *(*fr_getenv_fn)(const char *name);

/* Where the value of a row came from; parallel to the table's rows. */
enum fr_param_origin { FR_PARAM_DEFAULT, FR_PARAM_ENV };

/**
 * fr_param_load - fill @values from the environment
 * @table:  rows, ended by a NULL name
 * @prefix: e.g. "OFI_NCCL_"
 * @get:    NULL for getenv()
 * @values: the struct; zeroed by the caller
 * @origin: NULL, or one slot a row
 *
 * Ownership: TEXT fields are allocated; fr_param_unload() frees them. On error
 *            nothing stays allocated.
 * Return: 0; -EINVAL after one error line that names variable, value and what
 *         is allowed; -ENOMEM.
 */
int fr_param_load(const struct fr_param *table, const char *prefix,
		  fr_getenv_fn get, void *values, enum fr_param_origin *origin);
void fr_param_unload(const struct fr_param *table, void *values);

/* A name that other plugins of this family know and we do not use. */
struct fr_param_foreign {
	const char *name; /* without the prefix; NULL ends the list */
};

/* Looks at every variable of @env (NULL: environ) that starts with @prefix: one
 * warning for each unknown name, with the nearest real one; an info line for a
 * name in @foreign. */
void fr_param_check_names(const struct fr_param *table, const char *prefix,
			  const struct fr_param_foreign *foreign,
			  char *const *env);

/* What a user may give for @row, e.g. "1 to 8"; at most @bytes with NUL. */
void fr_param_allowed(const struct fr_param *row, char *buf, size_t bytes);
/* Value of row @row as text a user could have given; at most @bytes with NUL.
 */
void fr_param_format(const struct fr_param *row, const void *values, char *buf,
		     size_t bytes);

/* A Markdown table, name, default, allowed, meaning, of the rows for users or
 * of those for tests. */
void fr_param_print_markdown(const struct fr_param *table, const char *prefix,
			     bool for_tests, FILE *out);

#endif
