/*
 * Copy into a buffer that somebody polls while we write it: ascending stores of
 * 8 bytes (single bytes at unaligned ends), each address once. A GPU kernel
 * that waits for the flag half of a 16-byte line must never see a flag before
 * its data, nor a byte twice.
 */
#ifndef FR_BASE_COPY_H
#define FR_BASE_COPY_H

#include <stddef.h>

void fr_copy_ascending(void *dst, const void *src, size_t bytes);

#endif
