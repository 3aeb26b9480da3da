/* What several codecs share. For src/wire only. Pure; no allocation. */
#ifndef FR_WIRE_FIELD_H
#define FR_WIRE_FIELD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cursor.h"
#include "wire/name.h"

static inline int fr_wire_bad(const char **why, const char *text)
{
	*why = text;
	return -EBADMSG;
}

/* Bytes that a log line should not carry become '?'. */
void fr_text_clean(char *text, size_t bytes);
bool fr_bytes_zero(const uint8_t *bytes, size_t cnt);

/* A name in a field of FR_NAME_MAX bytes, zeros behind it. */
void fr_put_name(struct fr_wcur *c, const struct fr_name *name);
/* @field: FR_NAME_MAX bytes, or NULL, which is refused. Return: false when @len
 * is too big or a byte behind the name is not zero. */
bool fr_name_load(struct fr_name *name, const uint8_t *field, uint64_t len);

#endif
