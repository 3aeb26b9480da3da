/*
 * The only way to the heap. Counts live blocks and can be told to fail, so that
 * a test can run an open or create with its n-th allocation failing and see
 * that nothing leaks.
 *
 * Threads: every function, any thread. Blocking: as malloc().
 */
#ifndef FR_BASE_ALLOC_H
#define FR_BASE_ALLOC_H

#include <stddef.h>

/* As malloc/calloc/strdup; NULL when out of memory. Owner frees by fr_free. */
void *fr_malloc(size_t bytes);
void *fr_calloc(size_t cnt, size_t bytes);
char *fr_strdup(const char *text);
/* @align is a power of two; the bytes are zero. Freed by fr_free too. */
void *fr_aligned_calloc(size_t align, size_t bytes);
/* Gives the old block back only on success; NULL leaves it as it was. */
void *fr_realloc(void *block, size_t bytes);
/* NULL is a no-op. */
void fr_free(void *block);

/* Blocks that are allocated and not freed. For tests. */
size_t fr_live_allocs(void);
/* The @nth allocation from now on fails (1 is the next), once; 0 disarms. */
void fr_fault_alloc_at(unsigned nth);

#endif
