/* What the tests of the codecs share. */
#ifndef TEST_UNIT_WIRE_CHECK_H
#define TEST_UNIT_WIRE_CHECK_H

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/noise.h"
#include "unit/run.h"

/* Decodes @bytes at @buf, asserts what must hold whatever they are, and returns
 * what the decoder returned. */
typedef int (*wire_decode_fn)(const uint8_t *buf, size_t bytes);

static inline int wire_run(TCase *tcase, const char *name)
{
	/* The noise takes its time under a sanitizer on a busy machine. */
	tcase_set_timeout(tcase, 60);
	return unit_run(tcase, name);
}

/* Decodes a copy at an odd address. */
static inline int wire_decode_copy(wire_decode_fn decode, const uint8_t *buf,
				   size_t bytes)
{
	uint8_t *copy = noise_odd_copy(buf, bytes);
	int ret = decode(copy, bytes);

	noise_odd_free(copy);
	return ret;
}

/* The message is good; every shorter one, and one a byte longer, is not. */
static inline void wire_check_length(wire_decode_fn decode, const uint8_t *good,
				     size_t bytes)
{
	uint8_t *longer = calloc(1, bytes + 1);

	ck_assert_ptr_nonnull(longer);
	memcpy(longer, good, bytes);
	ck_assert_int_eq(wire_decode_copy(decode, good, bytes), 0);
	ck_assert_int_eq(wire_decode_copy(decode, longer, bytes + 1), -EBADMSG);
	for (size_t n = 0; n < bytes; n++) {
		ck_assert_int_eq(wire_decode_copy(decode, good, n), -EBADMSG);
	}
	free(longer);
}

struct wire_flip {
	size_t offset;
	uint8_t value;
};

/* Each of the changes alone makes the message bad. */
static inline void wire_check_flips(wire_decode_fn decode, const uint8_t *good,
				    size_t bytes, const struct wire_flip *flip,
				    size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		uint8_t *copy = noise_odd_copy(good, bytes);

		ck_assert_uint_lt(flip[i].offset, bytes);
		ck_assert_uint_ne(copy[flip[i].offset], flip[i].value);
		copy[flip[i].offset] = flip[i].value;
		ck_assert_msg(decode(copy, bytes) == -EBADMSG,
			      "byte %zu as 0x%02x was taken", flip[i].offset,
			      flip[i].value);
		noise_odd_free(copy);
	}
}

/* Return: how many of the messages were good. */
static inline unsigned wire_check_noise(wire_decode_fn decode,
					const uint8_t *good, size_t bytes,
					size_t max)
{
	unsigned rounds = max > 512 ? 3000 : 20000;
	uint64_t state = 20;
	uint8_t *buf = malloc(max);
	unsigned passed = 0;

	ck_assert_ptr_nonnull(buf);
	for (unsigned i = 0; i < rounds; i++) {
		size_t n = noise_fill(&state, good, bytes, buf, max);

		passed += wire_decode_copy(decode, buf, n) == 0;
	}
	free(buf);
	return passed;
}

#endif
