/*
 * Why things were refused: lines collected while looking around, and logged at
 * the end as errors when nothing was left, or as info when something was.
 * Private to src/fabric.
 */
#ifndef FR_FABRIC_REASONS_H
#define FR_FABRIC_REASONS_H

#include "base/log.h"

struct fr_reasons {
	char **line;
	unsigned cnt;
};

/* Return: 0, also when the same line is there already; -ENOMEM. */
int fr_reasons_add(struct fr_reasons *reasons, const char *fmt, ...)
	FR_PRINTF(2, 3);
/* One log line each, with @head and a colon before it. */
void fr_reasons_log(const struct fr_reasons *reasons, enum fr_log_level level,
		    const char *head);
/* Forgets the lines. */
void fr_reasons_clear(struct fr_reasons *reasons);

#endif
