/*
 * One program a decoder. Built with clang -fsanitize=fuzzer, libFuzzer is its
 * main; else fuzz_main.c, which feeds files, or noise from a fixed seed.
 */
#ifndef TEST_FUZZ_FUZZ_H
#define TEST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Hands the bytes to the decoder and checks what must hold. Return: 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
/* Writes a good message to @buf, which holds FUZZ_MAX bytes. Return: length. */
size_t fuzz_good(uint8_t *buf);

#define FUZZ_MAX 2304u

/* Not assert(): it must hold in every build. */
#define fuzz_check(cond)                                                       \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, \
				__LINE__, #cond);                              \
			abort();                                               \
		}                                                              \
	} while (0)

#endif
