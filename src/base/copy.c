#include "base/copy.h"

#include <stdint.h>
#include <string.h>

/* volatile keeps the compiler from merging or reordering the stores or from
 * calling memcpy; release keeps the processor from reordering them. */
typedef volatile uint64_t __attribute__((may_alias)) copy_word;

static void copy_store_byte(unsigned char *dst, unsigned char v)
{
	__atomic_store_n((volatile unsigned char *)dst, v, __ATOMIC_RELEASE);
}

static void copy_store_word(unsigned char *dst, const unsigned char *src)
{
	uint64_t v;

	memcpy(&v, src, sizeof(v));
	__atomic_store_n((copy_word *)(void *)dst, v, __ATOMIC_RELEASE);
}

void fr_copy_ascending(void *dst, const void *src, size_t bytes)
{
	const unsigned char *from = src;
	unsigned char *to = dst;

	while (bytes > 0 && (uintptr_t)to % sizeof(uint64_t) != 0) {
		copy_store_byte(to++, *from++);
		bytes--;
	}
	while (bytes >= sizeof(uint64_t)) {
		copy_store_word(to, from);
		to += sizeof(uint64_t);
		from += sizeof(uint64_t);
		bytes -= sizeof(uint64_t);
	}
	while (bytes > 0) {
		copy_store_byte(to++, *from++);
		bytes--;
	}
}
