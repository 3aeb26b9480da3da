/*
 * Many comms: one after the other, which leaves nothing behind; hundreds at a
 * time, all of them used; thousands waiting at one listener; and more than
 * there are descriptors for, which is an error that says so and harms nobody.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/util.h"
#include "functional/life.h"

#define CYCLES 1100
#define KEPT 900 /* of them under endpoints that stay */
#define WARM 50
#define LIVE 512
#define CROWD 2000
#define NOFILE 256
#define TIGHT 300
#define LIMIT_NAMED "the limit of descriptors, ulimit -n, is"
#define SMALL 64u
#define LARGE 20000u
/* libfabric keeps some bytes of each endpoint and peer. */
#define SLACK_KIB 4096

static void *sends[CROWD];
static void *recvs[CROWD];

/* -- one after the other ----------------------------------------------------
 */

static void cycle(struct pair_member *me, unsigned long n)
{
	size_t bytes = n % 2 == 0 ? SMALL : LARGE;
	struct pair_buf buf;

	if (me->index == 0) {
		pair_buf_open(me, pair_connect(me, 1), LARGE, &buf);
		pair_fill(buf.mem, bytes, n);
		pair_send(me, &buf, bytes);
		pair_buf_close(me, &buf);
		life_close_send(me, buf.comm);
	} else {
		pair_buf_open(me, pair_accept(me, 0), LARGE, &buf);
		pair_recv(me, &buf, bytes);
		PAIR_CHECK(pair_is_filled(buf.mem, bytes, n), "wrong bytes");
		pair_buf_close(me, &buf);
		life_close_recv(me, buf.comm);
	}
}

/* Most under endpoints that stay, the last ones each with its own. */
static void run_cycles(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	struct life_held warm = {0}, after;
	void *kept = pair_listen(me, handle);

	for (unsigned n = 0; n < CYCLES; n++) {
		pair_at(me, n < KEPT ? "cycles under endpoints that stay"
				     : "cycles with their own endpoints");
		if (n == KEPT) {
			life_flat(&warm, SLACK_KIB, "cycles");
			life_close_listen(me, kept);
		}
		cycle(me, n);
		if (n == WARM || n == KEPT + WARM) {
			life_look(&warm);
			warm.fds += n == WARM ? 0 : LIFE_HALF_FDS;
		}
	}
	life_flat(&warm, SLACK_KIB, "cycles with their own endpoints");
	life_look(&after);
	pair_say("    %u cycles: %u descriptors, heap %lu -> %lu KiB", CYCLES,
		 after.fds, warm.used_kib, after.used_kib);
}

/* -- many at a time ---------------------------------------------------------
 */

/* All at once with one handle; @cnt comms of whichever side this is. */
static void crowd_connect(struct pair_member *me, unsigned cnt)
{
	static uint8_t handle[CROWD][FR_PLUGIN_HANDLE_BYTES];
	unsigned left = cnt;

	pair_get(me, 1, handle[0], sizeof(handle[0]));
	for (unsigned i = 1; i < cnt; i++) {
		memcpy(handle[i], handle[0], sizeof(handle[0]));
	}
	while (left != 0) {
		for (unsigned i = 0; i < cnt; i++) {
			int ret;

			if (sends[i] != NULL) {
				continue;
			}
			ret = fr_plugin_connect(me->plugin, me->ctx, 0,
						handle[i], &sends[i]);
			PAIR_CHECK(ret == 0, "connect %u: %s", i,
				   fr_plugin_result_text(ret));
			left -= sends[i] != NULL;
		}
	}
}

static void crowd_accept(struct pair_member *me, unsigned cnt)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen = pair_listen(me, handle);

	pair_put(me, 0, handle, sizeof(handle));
	for (unsigned i = 0; i < cnt; i++) {
		recvs[i] = pair_accept_wait(me, listen);
	}
	life_close_listen(me, listen);
}

/* A number on each comm. Which of the other side's it is, it says itself. */
static void crowd_use(struct pair_member *me, unsigned cnt)
{
	static struct pair_buf buf[CROWD];
	static void *req[CROWD];
	static bool seen[CROWD];

	for (unsigned i = 0; i < cnt; i++) {
		pair_buf_open(me, me->index == 0 ? sends[i] : recvs[i], 4096,
			      &buf[i]);
		memcpy(buf[i].mem, &i, sizeof(i));
		req[i] = me->index == 0 ? pair_isend_wait(me, &buf[i], SMALL)
					: pair_irecv_wait(me, &buf[i], SMALL);
	}
	for (unsigned i = 0; i < cnt; i++) {
		unsigned number;
		int ret = pair_test_wait(me, req[i], 60000, NULL);

		PAIR_CHECK(ret == 0, "comm %u: %d", i, ret);
		memcpy(&number, buf[i].mem, sizeof(number));
		PAIR_CHECK(number < cnt && !seen[number],
			   "comm %u: the message of comm %u again", i, number);
		seen[number] = true;
		pair_buf_close(me, &buf[i]);
	}
	memset(seen, 0, sizeof(seen));
}

static void crowd_close(struct pair_member *me, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		if (me->index == 0) {
			life_close_send(me, sends[i]);
			sends[i] = NULL;
		} else {
			life_close_recv(me, recvs[i]);
			recvs[i] = NULL;
		}
	}
}

static void crowd(struct pair_member *me, unsigned cnt, unsigned uses)
{
	uint64_t began = pair_now_ms();

	pair_at(me, "connecting many");
	if (me->index == 0) {
		crowd_connect(me, cnt);
	} else {
		crowd_accept(me, cnt);
	}
	pair_say("    %u comms on one listener: %s after %llu ms", cnt,
		 me->index == 0 ? "connected" : "accepted",
		 (unsigned long long)(pair_now_ms() - began));
	pair_at(me, "using them all");
	for (unsigned i = 0; i < uses; i++) {
		crowd_use(me, cnt);
	}
	pair_at(me, "closing them all");
	pair_meet(me, 1 - me->index);
	crowd_close(me, cnt);
}

static void run_live(struct pair_member *me)
{
	crowd(me, LIVE, 4);
}

static void run_crowd(struct pair_member *me)
{
	crowd(me, CROWD, 1);
}

/* -- more than there are descriptors for ------------------------------------
 */

static void limit_to(unsigned files)
{
	const struct rlimit limit = {files, NOFILE};

	PAIR_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "no limit of %u: %s",
		   files, strerror(errno));
}

static void tight_env(unsigned i, const void *arg)
{
	(void)arg;
	setenv("OFI_NCCL_ENDPOINT_PER_COMM", "1", 1);
	if (i == 0) {
		limit_to(NOFILE);
	}
}

/* Lets this process open @left more descriptors. */
static void leave(unsigned left)
{
	struct life_held held;

	limit_to(NOFILE); /* looking takes one */
	life_look(&held);
	limit_to(held.fds + left);
}

/* Whichever descriptor it is that cannot be had: the step that fails moves on
 * with each more. A provider may give any reason. */
static void starve(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	void *listen = NULL;
	unsigned left = 0;

	pair_at(me, "too few descriptors for one listener");
	while (listen == NULL) {
		unsigned named = pair_logged(LIMIT_NAMED);
		int ret;

		PAIR_CHECK(left < 64, "a listener takes too many");
		leave(left);
		ret = fr_plugin_listen(me->plugin, me->ctx, 0, handle, &listen);
		if (ret == FR_PLUGIN_SUCCESS) {
			break;
		}
		PAIR_CHECK(ret == FR_PLUGIN_SYSTEM_ERROR, "%u left: %s", left,
			   fr_plugin_result_text(ret));
		PAIR_CHECK(pair_logged(LIMIT_NAMED) == named + 1,
			   "%u left: no line names the limit", left);
		left++;
	}
	pair_say("    a listener takes %u descriptors", left);
	life_close_listen(me, listen);
	limit_to(NOFILE);
}

/* Each listener has endpoints of its own here. */
static void run_tight(struct pair_member *me)
{
	static void *listen[TIGHT];
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	struct pair_echo echo;
	unsigned cnt = 0;
	int ret = 0;

	pair_echo_open(me, 1 - me->index, &echo);
	if (me->index == 1) {
		pair_echo_serve(me, &echo);
		pair_echo_close(me, &echo);
		return;
	}
	pair_expect("oo many open files");
	pair_expect("cannot open");
	pair_expect("no knock ports");
	starve(me);
	while (cnt < TIGHT && ret == 0) {
		ret = fr_plugin_listen(me->plugin, me->ctx, 0, handle,
				       &listen[cnt]);
		cnt += ret == 0;
	}
	PAIR_CHECK(ret == FR_PLUGIN_SYSTEM_ERROR, "%u listeners: %s", cnt,
		   fr_plugin_result_text(ret));
	PAIR_CHECK(pair_logged(LIMIT_NAMED " 256") != 0,
		   "no line names the limit");
	pair_say("    %u listeners under a limit of %u descriptors", cnt,
		 NOFILE);
	pair_at(me, "the earlier comms");
	for (unsigned long until = echo.rounds + 10; echo.rounds < until;) {
		PAIR_CHECK(pair_echo_ask(me, &echo) == 0, "an earlier comm");
	}
	for (unsigned i = 0; i < cnt; i++) {
		life_close_listen(me, listen[i]);
	}
	pair_at(me, "afterwards");
	life_use(me, 1);
	pair_echo_end(me, &echo);
	pair_echo_close(me, &echo);
}

static void run_case(const char *provider, const char *name,
		     void (*run)(struct pair_member *me))
{
	const struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = 1,
		.members = 2,
		.limit_s = 90,
		.run = run,
		.env = run == run_tight ? tight_env : NULL,
	};

	pair_spawn(&pc);
}

static void run_all(const char *provider)
{
	run_case(provider, "one after the other", run_cycles);
	run_case(provider, "hundreds at a time", run_live);
	run_case(provider, "thousands at one listener", run_crowd);
	run_case(provider, "more than descriptors", run_tight);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "t_many", 20);
	life_each(run_all);
	return pair_end();
}
