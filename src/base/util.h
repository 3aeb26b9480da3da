/* Small helpers that every floor uses. No state, no allocation. */
#ifndef FR_BASE_UTIL_H
#define FR_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define FR_BIT(n) (1u << (n))
#define FR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define FR_MAX(a, b) ((a) > (b) ? (a) : (b))
#define FR_CONTAINER_OF(ptr, type, member)                                     \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#if defined(__GNUC__) || defined(__clang__)
#define fr_likely(x) __builtin_expect(!!(x), 1)
#define fr_unlikely(x) __builtin_expect(!!(x), 0)
#define FR_NOINLINE __attribute__((noinline))
#define FR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define fr_likely(x) (x)
#define fr_unlikely(x) (x)
#define FR_NOINLINE
#define FR_PRINTF(fmt, args)
#endif

/* In a loop that waits for another core. */
static inline void fr_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/* @next: for each state the set of states it may move to. For the assert in the
 * one function that writes a state. */
static inline bool fr_fsm_allows(const uint8_t *next, unsigned from,
				 unsigned to)
{
	return (next[from] & FR_BIT(to)) != 0;
}

/* Rounds @v up to a multiple of @to, a power of two. */
static inline uint64_t fr_round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) & ~(to - 1);
}

#endif
