#include "fabric/reasons.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define REASON_BYTES 256

int fr_reasons_add(struct fr_reasons *reasons, const char *fmt, ...)
{
	char text[REASON_BYTES];
	char **grown;
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (unsigned i = 0; i < reasons->cnt; i++) {
		if (strcmp(reasons->line[i], text) == 0) {
			return 0;
		}
	}
	grown = fr_realloc(reasons->line,
			   (reasons->cnt + 1) * sizeof(*reasons->line));
	if (grown == NULL) {
		return -ENOMEM;
	}
	reasons->line = grown;
	reasons->line[reasons->cnt] = fr_strdup(text);
	if (reasons->line[reasons->cnt] == NULL) {
		return -ENOMEM;
	}
	reasons->cnt++;
	return 0;
}

void fr_reasons_log(const struct fr_reasons *reasons, enum fr_log_level level,
		    const char *head)
{
	for (unsigned i = 0; i < reasons->cnt; i++) {
		fr_log_line(level, __FILE__, __LINE__, "%s: %s", head,
			    reasons->line[i]);
	}
}

void fr_reasons_clear(struct fr_reasons *reasons)
{
	for (unsigned i = 0; i < reasons->cnt; i++) {
		fr_free(reasons->line[i]);
	}
	fr_free(reasons->line);
	reasons->line = NULL;
	reasons->cnt = 0;
}
