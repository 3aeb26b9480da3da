/* Text put together piece by piece in a buffer of its own: lists for log lines.
 * What does not fit is cut. No allocation. */
#ifndef FR_BASE_TEXT_H
#define FR_BASE_TEXT_H

#include <stddef.h>

#include "base/util.h"

#define FR_TEXT_BYTES 640

/* Zero is the empty text. */
struct fr_text {
	char buf[FR_TEXT_BYTES]; /* ends in NUL */
	size_t len;
};

void fr_text_add(struct fr_text *text, const char *fmt, ...) FR_PRINTF(2, 3);

#endif
