/*
 * A host program that just calls exit(), its comms open and a thread of its in
 * test(), or several in connect(): the plugin must neither crash nor hang nor
 * flood the log, since that is how most programs end.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

static struct pair_member *member;
static struct pair_buf buf;
static void *req;

static void *keep_testing(void *arg)
{
	(void)arg;
	for (;;) {
		int done = 0;

		fr_plugin_test(member->plugin, req, &done, NULL);
	}
	return NULL;
}

static void run_exit(struct pair_member *me)
{
	_Alignas(16) char handle[FR_PLUGIN_HANDLE_BYTES];
	void *listen, *send = NULL, *recv = NULL;
	pthread_t thread;

	listen = pair_listen(me, handle);
	while (send == NULL || recv == NULL) {
		if (send == NULL) {
			PAIR_CHECK(fr_plugin_connect(me->plugin, me->ctx, 0,
						     handle, &send) == 0,
				   "connect failed");
		}
		if (recv == NULL) {
			PAIR_CHECK(fr_plugin_accept(me->plugin, listen,
						    &recv) == 0,
				   "accept failed");
		}
	}
	pair_buf_open(me, recv, 1 << 20, &buf);
	req = pair_irecv_wait(me, &buf, 1 << 20);
	member = me;
	PAIR_CHECK(pthread_create(&thread, NULL, keep_testing, NULL) == 0,
		   "no thread");
	pair_nap_us(20000);
	exit(0);
}

#define CONNECTORS 3
#define MINE 8

static uint8_t home[FR_PLUGIN_HANDLE_BYTES];

/* To nobody who accepts, so that there are always some under way. */
static void *keep_connecting(void *arg)
{
	uint8_t handle[MINE][FR_PLUGIN_HANDLE_BYTES];

	(void)arg;
	for (unsigned i = 0;; i++) {
		void *comm = NULL;

		if (i % 1000 < MINE) { /* one that was dropped, and a new one */
			memcpy(handle[i % 1000], home, sizeof(home));
		}
		fr_plugin_connect(member->plugin, member->ctx, 0,
				  handle[i % MINE], &comm);
	}
	return NULL;
}

static void run_exit_connecting(struct pair_member *me)
{
	pthread_t thread;

	(void)pair_listen(me, home);
	member = me;
	for (unsigned i = 0; i < CONNECTORS; i++) {
		PAIR_CHECK(pthread_create(&thread, NULL, keep_connecting,
					  NULL) == 0,
			   "no thread");
	}
	pair_nap_us(50000);
	exit(0);
}

int main(int argc, char **argv)
{
	static const char *const providers[] = {"net", "tcp;ofi_rxm", "sockets",
						"shm"};
	static const struct {
		const char *name;
		void (*run)(struct pair_member *me);
	} ends[] = {
		{"exit with a thread in test()", run_exit},
		{"exit with threads in connect()", run_exit_connecting},
	};
	struct pair_case pc = {.members = 1, .limit_s = 20};

	pair_main(argc, argv, "leaving without a word", 15);
	for (unsigned k = 0; k < FR_ARRAY_LEN(providers); k++) {
		/* Endpoints of one process share their memory on shm, and
		 * libfabric reads it also when one of them has closed. */
		unsigned cnt = strcmp(providers[k], "shm") == 0 ? 4 : 6;

		pc.provider = pair_provider(providers[k]);
		for (unsigned i = 0; i < cnt && pc.provider != NULL; i++) {
			pc.name = ends[i / 4].name;
			pc.run = ends[i / 4].run;
			pc.rails = 1 + i % 2;
			pair_run(&pc);
		}
	}
	return pair_end();
}
