/* Random bytes from the kernel: cookies, nonces, set ids, memory keys. */
#ifndef FR_BASE_RANDOM_H
#define FR_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Fills @bytes bytes. Return: 0, or -errno when the kernel gives none. */
int fr_random(void *buf, size_t bytes);

#endif
