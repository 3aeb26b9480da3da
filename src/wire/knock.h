/*
 * The knock port: a plain TCP port on each rail's address. Whoever connects is
 * sent a hello at once; it may answer with one refusal, then both close.
 *
 * Hello, 16 bytes:   magic "FRKN", version u16 (1), pad u16, set id u64
 * Refusal, 16 bytes and text: magic "FRKR", version u16, text length u16 (at
 *                    most 200), cookie u64, text
 */
#ifndef FR_WIRE_KNOCK_H
#define FR_WIRE_KNOCK_H

#include <stddef.h>
#include <stdint.h>

#define FR_KNOCK_HELLO_BYTES 16u
#define FR_KNOCK_REFUSAL_HDR_BYTES 16u
#define FR_KNOCK_TEXT_MAX 200u

struct fr_knock_refusal {
	uint64_t cookie;
	uint16_t text_len;
	char text[FR_KNOCK_TEXT_MAX + 1]; /* NUL-terminated, printable */
};

void fr_knock_hello_encode(uint64_t set_id, void *buf);
/* Return: 0; -EBADMSG: a stranger answered. */
int fr_knock_hello_decode(uint64_t *set_id, const void *buf, size_t bytes);
/* Return: bytes; -EMSGSIZE. */
int fr_knock_refusal_encode(const struct fr_knock_refusal *m, void *buf,
			    size_t bytes);
/* -EAGAIN: more bytes are needed. -EBADMSG: not ours. */
int fr_knock_refusal_decode(struct fr_knock_refusal *m, const void *buf,
			    size_t bytes);

#endif
