#include "unit/base/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/copy.h"

#define MAX_BYTES 80
#define PAD 32
#define GUARD 0xa5

static _Alignas(64) unsigned char source[MAX_BYTES + 16];
static _Alignas(64) unsigned char target[PAD + 16 + MAX_BYTES + PAD];

static void copy_setup(void)
{
	for (size_t i = 0; i < sizeof(source); i++) {
		source[i] = (unsigned char)(i * 7 + 1);
	}
}

static void check_one(size_t to, size_t from, size_t bytes)
{
	unsigned char want[sizeof(target)];

	memset(target, GUARD, sizeof(target));
	memset(want, GUARD, sizeof(want));
	memcpy(want + PAD + to, source + from, bytes);
	fr_copy_ascending(target + PAD + to, source + from, bytes);
	ck_assert_mem_eq(target, want, sizeof(want));
}

/* The loop index is the alignment of the target; every length, and every
 * alignment of the source. */
START_TEST(exactly_the_bytes_asked_for_arrive)
{
	for (size_t bytes = 0; bytes <= MAX_BYTES; bytes++) {
		for (size_t from = 0; from < 16; from++) {
			check_one((size_t)_i, from, bytes);
		}
	}
}
END_TEST

#define WORDS 512
#define ROUNDS 300

static _Alignas(64) _Atomic uint64_t polled[WORDS];
static atomic_bool torn;
static atomic_bool stop;

/* Reads backwards: what it sees of a later word, earlier words must have. */
static void *poll_words(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		uint64_t newest = 0;

		for (int i = WORDS - 1; i >= 0; i--) {
			uint64_t v = atomic_load(&polled[i]);

			if ((uint32_t)v != (uint32_t)(v >> 32) || v < newest) {
				atomic_store(&torn, true);
			}
			newest = v > newest ? v : newest;
		}
		sched_yield(); /* valgrind runs one thread at a time */
	}
	return NULL;
}

START_TEST(a_poller_sees_whole_words_in_ascending_order)
{
	static uint64_t words[WORDS];
	pthread_t poller;

	ck_assert_int_eq(pthread_create(&poller, NULL, poll_words, NULL), 0);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		for (int i = 0; i < WORDS; i++) {
			words[i] = round << 32 | round;
		}
		fr_copy_ascending((void *)polled, words, sizeof(words));
	}
	atomic_store(&stop, true);
	pthread_join(poller, NULL);
	ck_assert(!atomic_load(&torn));
	ck_assert_uint_eq(polled[WORDS - 1], (uint64_t)ROUNDS << 32 | ROUNDS);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("copy");

	tcase_add_checked_fixture(t, copy_setup, NULL);
	tcase_add_loop_test(t, exactly_the_bytes_asked_for_arrive, 0, 16);
	tcase_add_test(t, a_poller_sees_whole_words_in_ascending_order);
	return unit_run(t, "base/copy");
}
