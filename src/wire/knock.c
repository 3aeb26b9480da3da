#include "wire/knock.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"
#include "wire/field.h"

#define KNOCK_VERSION 1u

static const uint8_t hello_magic[4] = {'F', 'R', 'K', 'N'};
static const uint8_t refusal_magic[4] = {'F', 'R', 'K', 'R'};

void fr_knock_hello_encode(uint64_t set_id, void *buf)
{
	struct fr_wcur c;

	fr_wcur_init(&c, buf, FR_KNOCK_HELLO_BYTES);
	fr_put_bytes(&c, hello_magic, sizeof(hello_magic));
	fr_put_u16(&c, KNOCK_VERSION);
	fr_put_u16(&c, 0);
	fr_put_u64(&c, set_id);
}

int fr_knock_hello_decode(uint64_t *set_id, const void *buf, size_t bytes)
{
	const uint8_t *mark;
	uint16_t version, pad;
	struct fr_rcur c;

	if (bytes != FR_KNOCK_HELLO_BYTES) {
		return -EBADMSG;
	}
	fr_rcur_init(&c, buf, bytes);
	mark = fr_get_view(&c, sizeof(hello_magic));
	version = fr_get_u16(&c);
	pad = fr_get_u16(&c);
	if (memcmp(mark, hello_magic, sizeof(hello_magic)) != 0 ||
	    version != KNOCK_VERSION || pad != 0) {
		return -EBADMSG;
	}
	*set_id = fr_get_u64(&c);
	return 0;
}

int fr_knock_refusal_encode(const struct fr_knock_refusal *m, void *buf,
			    size_t bytes)
{
	struct fr_wcur c;

	if (m->text_len > FR_KNOCK_TEXT_MAX) {
		return -EMSGSIZE;
	}
	fr_wcur_init(&c, buf, bytes);
	fr_put_bytes(&c, refusal_magic, sizeof(refusal_magic));
	fr_put_u16(&c, KNOCK_VERSION);
	fr_put_u16(&c, m->text_len);
	fr_put_u64(&c, m->cookie);
	fr_put_bytes(&c, m->text, m->text_len);
	if (c.bad) {
		return -EMSGSIZE;
	}
	return (int)(FR_KNOCK_REFUSAL_HDR_BYTES + m->text_len);
}

/* A stranger is told by its first byte, without waiting for a whole header. */
int fr_knock_refusal_decode(struct fr_knock_refusal *m, const void *buf,
			    size_t bytes)
{
	size_t mark_bytes = FR_MIN(bytes, sizeof(refusal_magic));
	uint16_t version, text_len;
	uint64_t cookie;
	struct fr_rcur c;

	fr_rcur_init(&c, buf, bytes);
	if (mark_bytes != 0 && memcmp(buf, refusal_magic, mark_bytes) != 0) {
		return -EBADMSG;
	}
	if (bytes < FR_KNOCK_REFUSAL_HDR_BYTES) {
		return -EAGAIN;
	}
	fr_get_view(&c, sizeof(refusal_magic));
	version = fr_get_u16(&c);
	text_len = fr_get_u16(&c);
	cookie = fr_get_u64(&c);
	if (version != KNOCK_VERSION || text_len > FR_KNOCK_TEXT_MAX ||
	    fr_rcur_left(&c) > text_len) {
		return -EBADMSG;
	}
	if (fr_rcur_left(&c) < text_len) {
		return -EAGAIN;
	}
	m->cookie = cookie;
	m->text_len = text_len;
	fr_get_bytes(&c, m->text, text_len);
	fr_text_clean(m->text, text_len);
	m->text[text_len] = '\0';
	return 0;
}
