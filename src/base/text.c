#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void fr_text_add(struct fr_text *text, const char *fmt, ...)
{
	size_t room = sizeof(text->buf) - text->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text->buf + text->len, room, fmt, args);
	va_end(args);
	text->len += n < 0 ? 0 : FR_MIN((size_t)n, room - 1);
}
