/*
 * No stale byte: a second thread, on another processor, looks at every byte of
 * a message at the moment that its receive is said to be done, while the sender
 * spoils its source at the moment that its send is said to be done. And no torn
 * word: the second thread watches the buffer itself, as a GPU does whose
 * protocol has a flag in each 8 bytes, before anybody is told of an end.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

#define TAG 4
#define SLOTS 8u
#define SLOT_BYTES (200u << 10)
#define MSGS 5000u
#define SPOIL 0xff

static size_t bytes_of(unsigned i)
{
	/* Early, written, and from 16 KiB on striped. */
	static const size_t sizes[] = {100,  65536, 2048, 8193,
				       8192, 20000, 8,	  40000};

	return i % 500 == 499 ? SLOT_BYTES : sizes[i % FR_ARRAY_LEN(sizes)];
}

static void set_env(unsigned i, const void *arg)
{
	(void)i;
	setenv("OFI_NCCL_MIN_STRIPE_SIZE", "16K", 1);
	setenv("OFI_NCCL_SEND_COMPLETION", arg, 1);
}

/* The @nth processor of those that this process may use, if there are two. */
static void pin(pthread_t thread, unsigned nth)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all) != 0 ||
	    CPU_COUNT(&all) < 2) {
		return;
	}
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &all) && nth-- == 0) {
			CPU_SET(cpu, &one);
			break;
		}
	}
	(void)pthread_setaffinity_np(thread, sizeof(one), &one);
}

static uint8_t *slot_mem(const struct pair_buf *buf, unsigned i)
{
	return buf->mem + (size_t)SLOT_BYTES * (i % SLOTS);
}

/* ---- nothing stale ---- */

/* Messages below done are complete, those below seen were looked at. */
struct eye {
	struct pair_buf buf;
	_Atomic unsigned done;
	_Atomic unsigned seen;
};

static void *look(void *arg)
{
	struct eye *eye = arg;

	for (unsigned i = 0; i < MSGS; i++) {
		while (atomic_load(&eye->done) == i) {
			sched_yield();
		}
		PAIR_CHECK(
			pair_is_filled(slot_mem(&eye->buf, i), bytes_of(i), i),
			"message %u of %zu bytes: a stale byte", i,
			bytes_of(i));
		atomic_store(&eye->seen, i + 1);
	}
	return NULL;
}

static void recv_step(struct pair_member *me, struct eye *eye, void **req,
		      unsigned *posted)
{
	unsigned done = atomic_load(&eye->done);
	int size = -1;

	if (*posted < MSGS && *posted - atomic_load(&eye->seen) < SLOTS) {
		void *data = slot_mem(&eye->buf, *posted), *r = NULL;
		size_t bytes = bytes_of(*posted);
		int tag = TAG;

		PAIR_OK(fr_plugin_irecv(me->plugin, eye->buf.comm, 1, &data,
					&bytes, &tag, &eye->buf.mh, &r));
		if (r != NULL) {
			req[(*posted)++ % SLOTS] = r;
		}
	}
	if (done != *posted && pair_test(me, req[done % SLOTS], &size)) {
		atomic_store(&eye->done, done + 1);
		PAIR_CHECK(size == (int)bytes_of(done), "size %d", size);
	}
}

static void run_stale_recv(struct pair_member *me)
{
	static struct eye eye;
	void *req[SLOTS];
	unsigned posted = 0;
	pthread_t thread;

	pair_buf_open(me, pair_accept(me, 0), (size_t)SLOT_BYTES * SLOTS,
		      &eye.buf);
	PAIR_CHECK(pthread_create(&thread, NULL, look, &eye) == 0, "thread");
	pin(pthread_self(), 0);
	pin(thread, 1);
	pair_at(me, "receiving");
	while (atomic_load(&eye.done) < MSGS) {
		recv_step(me, &eye, req, &posted);
	}
	PAIR_CHECK(pthread_join(thread, NULL) == 0, "join");
	pair_meet(me, 0);
	pair_buf_close(me, &eye.buf);
	PAIR_OK(fr_plugin_close_recv(me->plugin, eye.buf.comm));
}

static void run_stale_send(struct pair_member *me)
{
	struct pair_buf buf;
	void *req[SLOTS];
	unsigned posted = 0, done = 0;

	pair_buf_open(me, pair_connect(me, 1), (size_t)SLOT_BYTES * SLOTS,
		      &buf);
	pair_at(me, "sending");
	while (done < MSGS) {
		if (posted < MSGS && posted - done < SLOTS) {
			size_t bytes = bytes_of(posted);
			void *r = NULL;

			pair_fill(slot_mem(&buf, posted), bytes, posted);
			PAIR_OK(fr_plugin_isend(me->plugin, buf.comm,
						slot_mem(&buf, posted), bytes,
						TAG, buf.mh, &r));
			if (r != NULL) {
				req[posted++ % SLOTS] = r;
			}
		}
		if (done != posted && pair_test(me, req[done % SLOTS], NULL)) {
			memset(slot_mem(&buf, done), SPOIL, bytes_of(done));
			done++;
		}
	}
	pair_meet(me, 1);
	pair_buf_close(me, &buf);
	PAIR_OK(fr_plugin_close_send(me->plugin, buf.comm));
}

static void run_stale(struct pair_member *me)
{
	if (me->index == 0) {
		run_stale_send(me);
	} else {
		run_stale_recv(me);
	}
}

/* ---- nothing torn ---- */

#define FLAG_MSGS 2000u

/* Copied by the plugin up to 8 KiB, in ascending order; by a kernel beyond. */
static const size_t flag_sizes[] = {64, 1024, 2048, 8192, 8200, 65536, 196608};

static size_t flag_bytes(unsigned i)
{
	return flag_sizes[i % FR_ARRAY_LEN(flag_sizes)];
}

static uint64_t flag_word(unsigned i, size_t at)
{
	return (uint64_t)(i + 1) << 32 |
	       (uint32_t)((at + 1) * 0x9e3779b1u ^ (i * 0x85ebca6bu));
}

struct watcher {
	const struct pair_buf *buf;
	_Atomic unsigned posted; /* the receive of this message is posted */
	_Atomic unsigned seen;
};

/* Waits for the flag in the word at @at; the rest must be right then. */
static void await_word(unsigned i, const uint64_t *words, size_t at)
{
	uint64_t word;

	while ((word = __atomic_load_n(&words[at], __ATOMIC_ACQUIRE)) >> 32 !=
	       i + 1) {
		sched_yield();
	}
	PAIR_CHECK(word == flag_word(i, at),
		   "message %u word %zu: %016llx and not %016llx", i, at,
		   (unsigned long long)word,
		   (unsigned long long)flag_word(i, at));
}

static void *watch_words(void *arg)
{
	struct watcher *watcher = arg;

	for (unsigned i = 0; i < FLAG_MSGS; i++) {
		const uint64_t *words =
			(const uint64_t *)(void *)watcher->buf->mem;
		size_t cnt = flag_bytes(i) / 8;

		while (atomic_load(&watcher->posted) == i) {
			sched_yield();
		}
		/* Where we copy ourselves the last word comes last. */
		if (flag_bytes(i) <= 8192) {
			await_word(i, words, cnt - 1);
		}
		for (size_t at = 0; at < cnt; at++) {
			PAIR_CHECK(flag_bytes(i) > 8192 ||
					   words[at] == flag_word(i, at),
				   "message %u: word %zu comes after the last",
				   i, at);
			await_word(i, words, at);
		}
		atomic_store(&watcher->seen, i + 1);
	}
	return NULL;
}

static void run_torn_recv(struct pair_member *me)
{
	struct watcher watcher = {.posted = 0};
	struct pair_buf buf;
	pthread_t thread;

	pair_buf_open(me, pair_accept(me, 0), SLOT_BYTES, &buf);
	watcher.buf = &buf;
	PAIR_CHECK(pthread_create(&thread, NULL, watch_words, &watcher) == 0,
		   "thread");
	pin(pthread_self(), 0);
	pin(thread, 1);
	for (unsigned i = 0; i < FLAG_MSGS; i++) {
		size_t bytes = flag_bytes(i);
		void *data = buf.mem, *req = FR_PLUGIN_OPTIONAL_RECV;
		int tag = TAG;

		do {
			PAIR_OK(fr_plugin_irecv(me->plugin, buf.comm, 1, &data,
						&bytes, &tag, &buf.mh, &req));
		} while (req == NULL);
		atomic_store(&watcher.posted, i + 1);
		PAIR_CHECK(pair_test_wait(me, req, 20000, NULL) == 0,
			   "receive %u", i);
		while (atomic_load(&watcher.seen) == i) {
			sched_yield();
		}
	}
	PAIR_CHECK(pthread_join(thread, NULL) == 0, "join");
	pair_meet(me, 0);
	pair_buf_close(me, &buf);
	PAIR_OK(fr_plugin_close_recv(me->plugin, buf.comm));
}

static void run_torn_send(struct pair_member *me)
{
	struct pair_buf buf;

	pair_buf_open(me, pair_connect(me, 1), SLOT_BYTES, &buf);
	for (unsigned i = 0; i < FLAG_MSGS; i++) {
		uint64_t *words = (uint64_t *)(void *)buf.mem;

		for (size_t at = 0; at < flag_bytes(i) / 8; at++) {
			words[at] = flag_word(i, at);
		}
		pair_send(me, &buf, flag_bytes(i));
	}
	pair_meet(me, 1);
	pair_buf_close(me, &buf);
	PAIR_OK(fr_plugin_close_send(me->plugin, buf.comm));
}

static void run_torn(struct pair_member *me)
{
	if (me->index == 0) {
		run_torn_send(me);
	} else {
		run_torn_recv(me);
	}
}

static void run_provider(const char *provider, unsigned nth)
{
	const char *sanitizer = getenv("FR_SANITIZER");
	struct pair_case pc = {
		.name = "no stale byte",
		.provider = provider,
		.members = 2,
		.limit_s = 60,
		.run = run_stale,
		.env = set_env,
		.arg = "delivery",
	};

	for (pc.rails = 1; pc.rails <= 4; pc.rails++) {
		if (nth == 0 || pc.rails == 3) {
			pair_run(&pc);
		}
	}
	pc.rails = 2;
	if (nth == 0) {
		pc.name = "no stale byte, and local completion";
		pc.arg = "local";
		pair_run(&pc);
	}
	/* What is watched here is a race, and meant to be one. */
	if (sanitizer == NULL || strcmp(sanitizer, "tsan") != 0) {
		pc.name = "no torn word";
		pc.arg = "delivery";
		pc.run = run_torn;
		pair_run(&pc);
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "bytes when they are said to be there", 20);
	pair_each_provider(run_provider);
	return pair_end();
}
