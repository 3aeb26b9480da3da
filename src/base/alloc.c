#include "base/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static atomic_size_t live_allocs;
static atomic_uint fault_nth; /* 0: disarmed */

/* Counts down to the armed failure; exactly one caller meets it. */
static FR_NOINLINE bool alloc_fault_hit(void)
{
	unsigned nth = atomic_load(&fault_nth);

	while (nth != 0) {
		if (atomic_compare_exchange_weak(&fault_nth, &nth, nth - 1)) {
			return nth == 1;
		}
	}
	return false;
}

static bool alloc_must_fail(void)
{
	if (fr_likely(atomic_load_explicit(&fault_nth, memory_order_relaxed) ==
		      0)) {
		return false;
	}
	return alloc_fault_hit();
}

static void *alloc_count(void *block)
{
	if (block != NULL) {
		atomic_fetch_add_explicit(&live_allocs, 1,
					  memory_order_relaxed);
	}
	return block;
}

/* Never 0, so that NULL always means out of memory. */
static size_t alloc_bytes(size_t bytes)
{
	return bytes == 0 ? 1 : bytes;
}

void *fr_malloc(size_t bytes)
{
	if (alloc_must_fail()) {
		return NULL;
	}
	return alloc_count(malloc(alloc_bytes(bytes)));
}

void *fr_calloc(size_t cnt, size_t bytes)
{
	size_t product;

	/* Ours to find: a checked calloc() may stop the process instead. */
	if (alloc_must_fail() || __builtin_mul_overflow(cnt, bytes, &product)) {
		return NULL;
	}
	return alloc_count(calloc(1, alloc_bytes(product)));
}

char *fr_strdup(const char *text)
{
	if (alloc_must_fail()) {
		return NULL;
	}
	return alloc_count(strdup(text));
}

void *fr_aligned_calloc(size_t align, size_t bytes)
{
	void *block;

	if (alloc_must_fail()) {
		return NULL;
	}
	bytes = alloc_bytes(bytes);
	if (posix_memalign(&block, FR_MAX(align, sizeof(void *)), bytes) != 0) {
		return NULL;
	}
	memset(block, 0, bytes);
	return alloc_count(block);
}

void *fr_realloc(void *block, size_t bytes)
{
	void *grown;

	if (alloc_must_fail()) {
		return NULL;
	}
	grown = realloc(block, alloc_bytes(bytes));
	return block == NULL ? alloc_count(grown) : grown;
}

void fr_free(void *block)
{
	if (block == NULL) {
		return;
	}
	atomic_fetch_sub_explicit(&live_allocs, 1, memory_order_relaxed);
	free(block);
}

size_t fr_live_allocs(void)
{
	return atomic_load_explicit(&live_allocs, memory_order_relaxed);
}

void fr_fault_alloc_at(unsigned nth)
{
	atomic_store(&fault_nth, nth);
}
