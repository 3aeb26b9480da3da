#include "wire/field.h"

#include <string.h>

void fr_text_clean(char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] < 0x20 || text[i] > 0x7e) {
			text[i] = '?';
		}
	}
}

bool fr_bytes_zero(const uint8_t *bytes, size_t cnt)
{
	uint8_t any = 0;

	for (size_t i = 0; i < cnt; i++) {
		any |= bytes[i];
	}
	return any == 0;
}

void fr_put_name(struct fr_wcur *c, const struct fr_name *name)
{
	fr_put_bytes(c, name->bytes, name->len);
	fr_put_zeros(c, FR_NAME_MAX - name->len);
}

bool fr_name_load(struct fr_name *name, const uint8_t *field, uint64_t len)
{
	if (field == NULL || len > FR_NAME_MAX ||
	    !fr_bytes_zero(field + len, FR_NAME_MAX - (size_t)len)) {
		return false;
	}
	name->len = (uint16_t)len;
	memcpy(name->bytes, field, FR_NAME_MAX);
	return true;
}
