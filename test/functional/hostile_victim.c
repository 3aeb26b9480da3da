/* Member 0, and the healthy peer beside it. */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "functional/hostile.h"

#define LISTENERS 8u
#define SWALLOWED 700u
#define CANARY (65536u + 200) /* off the page's bounds, on both sides */
#define CANARY_BYTE 0x5a
#define GAP_MS 4000u

static _Atomic unsigned warnings;

/* Counts what a user would see, and hands on. */
static void count_lines(int level, unsigned long flags, const char *file,
			int line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static void count_lines(int level, unsigned long flags, const char *file,
			int line, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (level == FR_PLUGIN_LOG_WARN) {
		atomic_fetch_add(&warnings, 1);
	}
	pair_logger(level, flags, file, line, "%s", text);
}

unsigned hostile_warnings(void)
{
	return atomic_load(&warnings);
}

void hostile_open(struct pair_member *me)
{
	int ret = fr_plugin_open(getenv("FR_PLUGIN"), 0, count_lines,
				 &me->plugin);

	PAIR_CHECK(ret == 0, "cannot open the plugin: %s", strerror(-ret));
	ret = fr_plugin_init(me->plugin, 1, -1, &me->ctx);
	PAIR_CHECK(ret == 0, "init: %s", fr_plugin_result_text(ret));
}

struct hostile_answer hostile_ask(struct pair_member *me, enum hostile_op op,
				  uint32_t arg)
{
	struct hostile_word word = {op, arg};
	struct hostile_answer answer;

	pair_put(me, VICTIM, &word, sizeof(word));
	pair_get(me, VICTIM, &answer, sizeof(answer));
	return answer;
}

uint32_t hostile_listen(struct pair_member *me, uint8_t *handle)
{
	struct hostile_answer answer = hostile_ask(me, HOSTILE_LISTEN, 0);

	pair_get(me, VICTIM, handle, FR_PLUGIN_HANDLE_BYTES);
	return answer.value;
}

struct hostile_answer hostile_settle(struct pair_member *me, unsigned limit)
{
	struct hostile_answer answer = {0};

	for (unsigned i = 0; i < 40; i++) {
		answer = hostile_ask(me, HOSTILE_LOOK, 0);
		if (answer.value <= limit) {
			return answer;
		}
		pair_nap_us(100000);
	}
	PAIR_FAIL("%u descriptors, and not %u", answer.value, limit);
}

/* -- the victim -------------------------------------------------------------*/

struct victim {
	struct pair_echo echo;
	void *listen[LISTENERS];
	bool swallows;
	void *swallowed[SWALLOWED];
	unsigned swallowed_cnt;
	/* the connection that the attacker works on */
	void *recv;
	uint8_t *mem; /* canary, receive, canary */
	size_t bytes;
	void *mh;
	void *req;
	bool ended;
	int result;
	int size;
	void *send;
	uint8_t *out;
	void *out_mh;
};

static void swallow(struct pair_member *me, struct victim *v)
{
	void *comm = NULL;
	int ret = fr_plugin_accept(me->plugin, v->listen[0], &comm);

	PAIR_CHECK(ret == 0 || ret == PAIR_REMOTE, "accept: %s",
		   fr_plugin_result_text(ret));
	if (comm != NULL) {
		PAIR_CHECK(v->swallowed_cnt < SWALLOWED, "too many came");
		v->swallowed[v->swallowed_cnt++] = comm;
	}
}

/* What goes on all the while. */
static void beside(struct pair_member *me, struct victim *v)
{
	int ret = pair_echo_ask(me, &v->echo);

	PAIR_CHECK(ret == 0, "traffic with the healthy peer: %s",
		   fr_plugin_result_text(ret));
	if (v->swallows) {
		swallow(me, v);
	}
	pair_nap_us(20);
}

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned cnt = 0;

	PAIR_CHECK(dir != NULL, "/proc/self/fd: %s", strerror(errno));
	while (readdir(dir) != NULL) {
		cnt++;
	}
	closedir(dir);
	return cnt - 3; /* ".", ".." and the directory itself */
}

static unsigned cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (unsigned)(ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
}

static void do_listen(struct pair_member *me, struct victim *v,
		      struct hostile_answer *answer, uint8_t *handle)
{
	unsigned i = 0;

	while (i < LISTENERS && v->listen[i] != NULL) {
		i++;
	}
	PAIR_CHECK(i < LISTENERS, "too many listeners");
	v->listen[i] = pair_listen(me, handle);
	answer->value = i;
}

static void do_unlisten(struct pair_member *me, struct victim *v, unsigned i)
{
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, v->listen[i]) == 0,
		   "closeListen");
	v->listen[i] = NULL;
}

static unsigned stop_swallowing(struct pair_member *me, struct victim *v)
{
	unsigned cnt = v->swallowed_cnt;

	v->swallows = false;
	while (v->swallowed_cnt != 0) {
		void *comm = v->swallowed[--v->swallowed_cnt];

		PAIR_CHECK(fr_plugin_close_recv(me->plugin, comm) == 0,
			   "closeRecv");
		beside(me, v);
	}
	do_unlisten(me, v, 0);
	return cnt;
}

static void post_receive(struct pair_member *me, struct victim *v, size_t bytes)
{
	void *data;
	int tag = 7, ret;

	v->bytes = bytes;
	v->mem = mmap(NULL, 2 * CANARY + HOSTILE_BIG, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	PAIR_CHECK(v->mem != MAP_FAILED, "mmap");
	memset(v->mem, CANARY_BYTE, 2 * CANARY + HOSTILE_BIG);
	data = v->mem + CANARY;
	ret = fr_plugin_reg_mr(me->plugin, v->recv, data, bytes,
			       FR_PLUGIN_PTR_HOST, &v->mh);
	PAIR_CHECK(ret == 0, "regMr: %s", fr_plugin_result_text(ret));
	v->req = NULL;
	while (v->req == NULL) {
		ret = fr_plugin_irecv(me->plugin, v->recv, 1, &data, &bytes,
				      &tag, &v->mh, &v->req);
		PAIR_CHECK(ret == 0, "irecv: %s", fr_plugin_result_text(ret));
	}
	v->ended = false;
	v->result = -1;
	v->size = -1;
}

static int do_accept(struct pair_member *me, struct victim *v, unsigned bytes)
{
	uint64_t end = pair_now_ms() + pair_stretch(10000);
	int ret = 0;

	v->recv = NULL;
	while (ret == 0 && v->recv == NULL) {
		ret = fr_plugin_accept(me->plugin, v->listen[0], &v->recv);
		beside(me, v);
		PAIR_CHECK(pair_now_ms() < end, "accept: nothing in 10 s");
	}
	if (ret == 0 && bytes != 0) {
		post_receive(me, v, bytes);
	}
	return ret;
}

static int do_connect(struct pair_member *me, struct victim *v)
{
	static uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	uint64_t end = pair_now_ms() + pair_stretch(10000);
	int ret = 0;

	pair_get(me, ATTACKER, handle, sizeof(handle));
	v->send = NULL;
	while (ret == 0 && v->send == NULL) {
		ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle,
					&v->send);
		beside(me, v);
		PAIR_CHECK(pair_now_ms() < end, "connect: nothing in 10 s");
	}
	return ret;
}

static int do_send(struct pair_member *me, struct victim *v, size_t bytes)
{
	uint64_t end = pair_now_ms() + pair_stretch(10000);
	void *req = NULL;
	int ret, done = 0;

	v->out = mmap(NULL, HOSTILE_BIG, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	PAIR_CHECK(v->out != MAP_FAILED, "mmap");
	ret = fr_plugin_reg_mr(me->plugin, v->send, v->out, HOSTILE_BIG,
			       FR_PLUGIN_PTR_HOST, &v->out_mh);
	PAIR_CHECK(ret == 0, "regMr: %s", fr_plugin_result_text(ret));
	while (ret == 0 && done == 0) {
		if (req == NULL) {
			ret = fr_plugin_isend(me->plugin, v->send, v->out,
					      bytes, 7, v->out_mh, &req);
		} else {
			ret = fr_plugin_test(me->plugin, req, &done, NULL);
		}
		beside(me, v);
		PAIR_CHECK(pair_now_ms() < end, "isend: no end in 10 s");
	}
	return ret;
}

static void watch(struct pair_member *me, struct victim *v, unsigned ms)
{
	uint64_t end = pair_now_ms() + ms;
	int done = 0;

	while (!v->ended && v->req != NULL) {
		v->result = fr_plugin_test(me->plugin, v->req, &done, &v->size);
		v->ended = v->result != 0 || done != 0;
		beside(me, v);
		if (!v->ended && pair_now_ms() >= end) {
			v->result = -1;
			return;
		}
	}
}

static void check_canaries(const struct victim *v)
{
	for (size_t i = 0; i < CANARY; i++) {
		PAIR_CHECK(v->mem[i] == CANARY_BYTE,
			   "byte %zu before the receive was written",
			   CANARY - i);
	}
	for (size_t i = CANARY + v->bytes; i < 2 * CANARY + HOSTILE_BIG; i++) {
		PAIR_CHECK(v->mem[i] == CANARY_BYTE,
			   "byte %zu behind the receive was written",
			   i - CANARY - v->bytes);
	}
}

static void check_data(const struct victim *v)
{
	if (v->ended && v->result == 0) {
		PAIR_CHECK(pair_is_filled(v->mem + CANARY, (size_t)v->size,
					  HOSTILE_MSG_SEED),
			   "the receive of %d bytes has wrong data", v->size);
	}
}

static void do_drop(struct pair_member *me, struct victim *v)
{
	if (v->mem != NULL) {
		check_data(v);
		PAIR_CHECK(fr_plugin_dereg_mr(me->plugin, v->recv, v->mh) == 0,
			   "deregMr");
	}
	if (v->recv != NULL) {
		PAIR_CHECK(fr_plugin_close_recv(me->plugin, v->recv) == 0,
			   "closeRecv");
	}
	for (int i = 0; i < 20; i++) {
		beside(me, v);
	}
	if (v->mem != NULL) {
		check_canaries(v);
		munmap(v->mem, 2 * CANARY + HOSTILE_BIG);
	}
	if (v->out != NULL) {
		PAIR_CHECK(fr_plugin_dereg_mr(me->plugin, v->send, v->out_mh) ==
				   0,
			   "deregMr");
		munmap(v->out, HOSTILE_BIG);
	}
	if (v->send != NULL) {
		PAIR_CHECK(fr_plugin_close_send(me->plugin, v->send) == 0,
			   "closeSend");
	}
	v->mem = NULL;
	v->req = NULL;
	v->recv = NULL;
	v->out = NULL;
	v->send = NULL;
}

static unsigned do_idle(unsigned ms)
{
	unsigned before = cpu_ms();

	pair_nap_us(ms * 1000);
	return cpu_ms() - before;
}

static void obey(struct pair_member *me, struct victim *v,
		 const struct hostile_word *word)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct hostile_answer answer = {.pid = (int32_t)getpid()};

	switch (word->op) {
	case HOSTILE_LISTEN:
		do_listen(me, v, &answer, handle);
		break;
	case HOSTILE_UNLISTEN:
		do_unlisten(me, v, word->arg);
		break;
	case HOSTILE_SWALLOW:
		if (word->arg != 0) {
			v->swallows = true;
		} else {
			answer.value = stop_swallowing(me, v);
		}
		break;
	case HOSTILE_ACCEPT:
		answer.result = do_accept(me, v, word->arg);
		break;
	case HOSTILE_CONNECT:
		answer.result = do_connect(me, v);
		break;
	case HOSTILE_SEND:
		answer.result = do_send(me, v, word->arg);
		break;
	case HOSTILE_WATCH:
		watch(me, v, word->arg);
		answer.result = v->result;
		answer.value = (uint32_t)v->size;
		break;
	case HOSTILE_DROP:
		do_drop(me, v);
		break;
	case HOSTILE_IDLE:
		answer.value = do_idle(word->arg);
		break;
	case HOSTILE_LOOK:
		answer.value = count_fds();
		break;
	default:
		break;
	}
	answer.lines = hostile_warnings();
	answer.rounds = v->echo.rounds;
	pair_put(me, ATTACKER, &answer, sizeof(answer));
	if (word->op == HOSTILE_LISTEN) {
		pair_put(me, ATTACKER, handle, sizeof(handle));
	}
}

static void a_new_connection(struct pair_member *me)
{
	struct pair_echo echo;

	pair_at(me, "a new connection at the end");
	pair_echo_open(me, me->index == VICTIM ? HEALTHY : VICTIM, &echo);
	if (me->index == VICTIM) {
		while (echo.rounds < 4) {
			PAIR_CHECK(pair_echo_ask(me, &echo) == 0, "traffic");
		}
		pair_echo_end(me, &echo);
	} else {
		pair_echo_serve(me, &echo);
	}
	pair_echo_close(me, &echo);
}

void hostile_victim(struct pair_member *me)
{
	static struct victim victim;
	struct victim *v = &victim;
	struct hostile_word word = {.op = HOSTILE_LOOK};
	unsigned worst;

	hostile_open(me);
	pair_echo_open(me, HEALTHY, &v->echo);
	while (v->echo.rounds < 4) {
		beside(me, v);
	}
	pair_tell(me, ATTACKER);
	pair_at(me, "under attack");
	while (word.op != HOSTILE_END) {
		beside(me, v);
		if (pair_told(me, ATTACKER)) {
			pair_get(me, ATTACKER, &word, sizeof(word));
			obey(me, v, &word);
		}
	}
	pair_at(me, "after the attack");
	for (unsigned i = 0; i < LISTENERS; i++) {
		if (v->listen[i] != NULL) {
			do_unlisten(me, v, i);
		}
	}
	worst = (unsigned)v->echo.worst_ms;
	pair_echo_end(me, &v->echo);
	pair_echo_close(me, &v->echo);
	PAIR_CHECK(worst < pair_stretch(GAP_MS),
		   "traffic with the healthy peer stood still for %u ms",
		   worst);
	a_new_connection(me);
	pair_say("    %lu rounds beside, the longest %u ms; %u warnings",
		 v->echo.rounds, worst, hostile_warnings());
	pair_close(me);
}

void hostile_healthy(struct pair_member *me)
{
	struct pair_echo echo;

	hostile_open(me);
	pair_echo_open(me, VICTIM, &echo);
	pair_at(me, "traffic");
	pair_echo_serve(me, &echo);
	pair_echo_close(me, &echo);
	a_new_connection(me);
	PAIR_CHECK(hostile_warnings() == 0, "the healthy peer warns");
	pair_close(me);
}
