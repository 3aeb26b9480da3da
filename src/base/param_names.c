#include "base/param.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

#define NAMES_MAX_BYTES 64
#define NAMES_MAX_DISTANCE 3u

/* Letters to insert, delete or change; the longest name bounds the row. */
static unsigned names_distance(const char *a, size_t a_len, const char *b,
			       size_t b_len)
{
	unsigned row[NAMES_MAX_BYTES + 1];

	for (size_t j = 0; j <= b_len; j++) {
		row[j] = (unsigned)j;
	}
	for (size_t i = 1; i <= a_len; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			unsigned above = row[j];
			unsigned change = diagonal + (a[i - 1] != b[j - 1]);

			row[j] = FR_MIN(change, FR_MIN(above, row[j - 1]) + 1);
			diagonal = above;
		}
	}
	return row[b_len];
}

static const char *names_nearest(const struct fr_param *table, const char *name,
				 size_t len)
{
	unsigned best = NAMES_MAX_DISTANCE + 1;
	const char *nearest = NULL;

	if (len > NAMES_MAX_BYTES) {
		return NULL;
	}
	for (const struct fr_param *row = table; row->name != NULL; row++) {
		size_t row_len = strlen(row->name);
		unsigned distance;

		if (row_len > NAMES_MAX_BYTES) {
			continue;
		}
		distance = names_distance(name, len, row->name, row_len);
		/* All letters changed is no resemblance. */
		if (distance < best && distance < row_len) {
			best = distance;
			nearest = row->name;
		}
	}
	return nearest;
}

static bool names_equal(const char *known, const char *name, size_t len)
{
	return strlen(known) == len && memcmp(known, name, len) == 0;
}

static bool names_in_table(const struct fr_param *table, const char *name,
			   size_t len)
{
	for (; table->name != NULL; table++) {
		if (names_equal(table->name, name, len)) {
			return true;
		}
	}
	return false;
}

static bool names_is_foreign(const struct fr_param_foreign *foreign,
			     const char *name, size_t len)
{
	for (; foreign->name != NULL; foreign++) {
		if (names_equal(foreign->name, name, len)) {
			return true;
		}
	}
	return false;
}

static void names_check(const struct fr_param *table, const char *prefix,
			const struct fr_param_foreign *foreign,
			const char *name, size_t len)
{
	int shown = (int)FR_MIN(len, (size_t)80);
	const char *nearest;

	if (names_in_table(table, name, len)) {
		return;
	}
	if (names_is_foreign(foreign, name, len)) {
		fr_info("%s%.*s has no effect in this plugin", prefix, shown,
			name);
		return;
	}
	nearest = names_nearest(table, name, len);
	if (nearest == NULL) {
		fr_warn("%s%.*s is no parameter of this plugin", prefix, shown,
			name);
	} else {
		fr_warn("%s%.*s is no parameter of this plugin; is %s%s meant?",
			prefix, shown, name, prefix, nearest);
	}
}

void fr_param_check_names(const struct fr_param *table, const char *prefix,
			  const struct fr_param_foreign *foreign,
			  char *const *env)
{
	size_t prefix_len = strlen(prefix);

	if (env == NULL) {
		env = environ;
	}
	for (; env != NULL && *env != NULL; env++) {
		const char *name = *env + prefix_len;

		if (strncmp(*env, prefix, prefix_len) == 0) {
			names_check(table, prefix, foreign, name,
				    strcspn(name, "="));
		}
	}
}
