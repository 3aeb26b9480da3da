#include "functional/life.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define FLAT_MS 3000
#define USE_BYTES (1u << 20)

static const char *const providers[] = {"net", "tcp;ofi_rxm"};

void life_each(void (*run)(const char *provider))
{
	for (size_t i = 0; i < FR_ARRAY_LEN(providers); i++) {
		const char *here = pair_provider(providers[i]);

		if (here != NULL) {
			run(here);
		}
	}
}

static unsigned entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned cnt = 0;

	PAIR_CHECK(dir != NULL, "%s", path);
	while (readdir(dir) != NULL) {
		cnt++;
	}
	closedir(dir);
	return cnt - 2; /* itself and what it is in */
}

uint64_t life_cpu_ms(int pid)
{
	char path[64], text[1024] = "";
	unsigned long user, sys;
	const char *rest;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	PAIR_CHECK(file != NULL && fgets(text, sizeof(text), file) != NULL,
		   "%s", path);
	fclose(file);
	rest = strrchr(text, ')'); /* its name may hold anything */
	PAIR_CHECK(rest != NULL && sscanf(rest + 1,
					  " %*c %*d %*d %*d %*d %*d %*u %*u "
					  "%*u %*u %*u %lu %lu",
					  &user, &sys) == 2,
		   "%s: %s", path, text);
	return (user + sys) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

void life_look(struct life_held *held)
{
	struct mallinfo2 heap = mallinfo2();
	unsigned long all, rss;
	FILE *file;

	/* What the C library keeps for later is no leak. */
	(void)malloc_trim(0);
	file = fopen("/proc/self/statm", "re");
	PAIR_CHECK(file != NULL && fscanf(file, "%lu %lu", &all, &rss) == 2,
		   "statm");
	fclose(file);
	held->used_kib = (heap.uordblks + heap.hblkhd) / 1024;
	held->rss_kib = rss * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
	held->fds = entries("/proc/self/fd") - 1; /* the one that looks */
	held->threads = entries("/proc/self/task");
	held->cpu_ms = life_cpu_ms(getpid());
}

static bool is_flat(const struct life_held *then, const struct life_held *now,
		    unsigned long slack_kib)
{
	bool sanitized = getenv("FR_SANITIZER") != NULL;
	/* The thread sanitizer may start its own a second time behind a fork.
	 */
	unsigned threads = then->threads + (sanitized ? 1 : 0);

	if (now->fds > then->fds || now->threads > threads) {
		return false;
	}
	return sanitized ||
	       (now->used_kib <= then->used_kib + slack_kib &&
		now->rss_kib <= then->rss_kib + slack_kib + LIFE_RSS_SLACK_KIB);
}

void life_flat(const struct life_held *then, unsigned long slack_kib,
	       const char *what)
{
	uint64_t until = pair_now_ms() + pair_stretch(FLAT_MS);
	struct life_held now;

	life_look(&now);
	while (!is_flat(then, &now, slack_kib)) {
		PAIR_CHECK(pair_now_ms() < until,
			   "%s: descriptors %u -> %u, threads %u -> %u, heap "
			   "%lu -> %lu KiB, resident %lu -> %lu KiB",
			   what, then->fds, now.fds, then->threads, now.threads,
			   then->used_kib, now.used_kib, then->rss_kib,
			   now.rss_kib);
		pair_nap_us(20000);
		life_look(&now);
	}
}

void life_in_time(uint64_t began_ms, unsigned limit_ms, const char *what)
{
	uint64_t ms = pair_now_ms() - began_ms;

	PAIR_CHECK(ms <= pair_stretch(limit_ms), "%s took %llu ms", what,
		   (unsigned long long)ms);
}

void life_close_send(struct pair_member *me, void *comm)
{
	uint64_t began = pair_now_ms();

	PAIR_CHECK(fr_plugin_close_send(me->plugin, comm) == 0, "closeSend");
	life_in_time(began, LIFE_CLOSE_MS, "closeSend");
}

void life_close_recv(struct pair_member *me, void *comm)
{
	uint64_t began = pair_now_ms();

	PAIR_CHECK(fr_plugin_close_recv(me->plugin, comm) == 0, "closeRecv");
	life_in_time(began, LIFE_CLOSE_MS, "closeRecv");
}

void life_close_listen(struct pair_member *me, void *listen)
{
	uint64_t began = pair_now_ms();

	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
	life_in_time(began, LIFE_CLOSE_MS, "closeListen");
}

void life_join_self(struct pair_member *me, void **send, void **recv)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen = pair_listen(me, handle);

	*send = NULL;
	*recv = NULL;
	while (*send == NULL || *recv == NULL) {
		if (*send == NULL) {
			PAIR_CHECK(fr_plugin_connect(me->plugin, me->ctx, 0,
						     handle, send) == 0,
				   "connect");
		}
		if (*recv == NULL) {
			PAIR_CHECK(fr_plugin_accept(me->plugin, listen, recv) ==
					   0,
				   "accept");
		}
	}
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
}

void life_pass(struct pair_member *me, const struct pair_buf *send,
	       const struct pair_buf *recv, size_t bytes, unsigned long seed)
{
	int sent = 0, got = 0, size = -1;
	void *send_req, *recv_req;

	pair_fill(send->mem, bytes, seed);
	recv_req = pair_irecv_wait(me, recv, recv->bytes);
	send_req = pair_isend_wait(me, send, bytes);
	while (!sent || !got) {
		PAIR_CHECK(sent || fr_plugin_test(me->plugin, send_req, &sent,
						  NULL) == 0,
			   "test");
		PAIR_CHECK(got || fr_plugin_test(me->plugin, recv_req, &got,
						 &size) == 0,
			   "test");
	}
	PAIR_CHECK(size == (int)bytes && pair_is_filled(recv->mem, bytes, seed),
		   "a message of %zu bytes came wrong", bytes);
}

void life_use(struct pair_member *me, unsigned long seed)
{
	static const size_t sizes[] = {0, 8, 4096, USE_BYTES};
	struct pair_buf out, in;
	void *send, *recv;

	life_join_self(me, &send, &recv);
	pair_buf_open(me, send, USE_BYTES, &out);
	pair_buf_open(me, recv, USE_BYTES, &in);
	for (size_t i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		life_pass(me, &out, &in, sizes[i], seed + i);
	}
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	PAIR_CHECK(fr_plugin_close_send(me->plugin, send) == 0, "closeSend");
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, recv) == 0, "closeRecv");
}
