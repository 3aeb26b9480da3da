/*
 * How two ends meet: whoever comes first, whoever is late, both ends called by
 * one thread in turn, two who come with one handle, and those who never come
 * back. No call of connect or accept waits: what is not ready yet is a NULL
 * comm and success.
 */
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/util.h"
#include "functional/life.h"

#define ROUNDS 10
#define SKEW_US 1000000
#define SMALL 900u
#define LARGE (256u << 10)
#define TESTS 1000
#define HALVES 12
#define HALF_MS 800

/* -- calls against the clock ------------------------------------------------
 */

#define CALL_MS 10
/* A busy machine takes the core away in the middle of a call now and then. */
#define SLOW_MAX 3
#define NEVER_MS 1000

static struct {
	unsigned calls;
	unsigned slow;
	double worst_ms;
} seen;

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* How often this thread has waited for something. */
static long waits(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

struct stamp {
	double began;
	double cpu;
	long waits;
};

static struct stamp stamp(void)
{
	return (struct stamp){now_ms(), cpu_ms(), waits()};
}

/* Slow is a call that computed for long, or waited; not one whose core somebody
 * else had. */
static void measure(const struct stamp *at)
{
	double took = now_ms() - at->began;
	bool ours = cpu_ms() - at->cpu >= pair_stretch(CALL_MS) ||
		    waits() != at->waits;

	seen.calls++;
	seen.slow += ours && took >= pair_stretch(CALL_MS);
	seen.worst_ms = FR_MAX(seen.worst_ms, took);
	PAIR_CHECK(!ours || took < pair_stretch(NEVER_MS),
		   "a call took %.1f ms", took);
}

static void measured(const char *what)
{
	pair_say("    %s: %u calls, %u of them over %u ms, the longest %.1f ms",
		 what, seen.calls, seen.slow, pair_stretch(CALL_MS),
		 seen.worst_ms);
	PAIR_CHECK(seen.slow <= SLOW_MAX, "%u calls waited", seen.slow);
}

static void *step_connect(struct pair_member *me, void *handle)
{
	const struct stamp at = stamp();
	void *comm = NULL;
	int ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle, &comm);

	measure(&at);
	PAIR_CHECK(ret == 0, "connect: %s", fr_plugin_result_text(ret));
	return comm;
}

static void *step_accept(struct pair_member *me, void *listen)
{
	const struct stamp at = stamp();
	void *comm = NULL;
	int ret = fr_plugin_accept(me->plugin, listen, &comm);

	measure(&at);
	PAIR_CHECK(ret == 0, "accept: %s", fr_plugin_result_text(ret));
	return comm;
}

/* -- one message through a fresh comm ---------------------------------------
 */

static void say(struct pair_member *me, void *comm, unsigned long seed)
{
	struct pair_buf buf;

	pair_buf_open(me, comm, LARGE, &buf);
	pair_fill(buf.mem, SMALL, seed);
	pair_send(me, &buf, SMALL);
	pair_fill(buf.mem, LARGE, seed);
	pair_send(me, &buf, LARGE);
	pair_buf_close(me, &buf);
}

static void listen_to(struct pair_member *me, void *comm, unsigned long seed)
{
	struct pair_buf buf;

	pair_buf_open(me, comm, LARGE, &buf);
	pair_recv(me, &buf, SMALL);
	PAIR_CHECK(pair_is_filled(buf.mem, SMALL, seed), "wrong bytes");
	pair_recv(me, &buf, LARGE);
	PAIR_CHECK(pair_is_filled(buf.mem, LARGE, seed), "wrong bytes");
	pair_buf_close(me, &buf);
}

/* -- who is first -----------------------------------------------------------
 */

/* The endpoints of this thread, so that no call opens some. */
static void *keep_endpoints(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];

	return pair_listen(me, handle);
}

/* Member 0 connects, so many microseconds after, or before, the other one
 * begins to accept. Who is first calls all the while. */
static void meet_once(struct pair_member *me, unsigned late0, unsigned late1,
		      unsigned long seed)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen, *comm = NULL;

	if (me->index == 0) {
		pair_get(me, 1, handle, sizeof(handle));
		pair_nap_us(late0);
		while ((comm = step_connect(me, handle)) == NULL) {
			pair_nap_us(50);
		}
		say(me, comm, seed);
		life_close_send(me, comm);
	} else {
		listen = pair_listen(me, handle);
		pair_put(me, 0, handle, sizeof(handle));
		pair_nap_us(late1);
		while ((comm = step_accept(me, listen)) == NULL) {
			pair_nap_us(50);
		}
		listen_to(me, comm, seed);
		life_close_recv(me, comm);
		life_close_listen(me, listen);
	}
}

static void run_orders(struct pair_member *me)
{
	void *kept = keep_endpoints(me);

	pair_at(me, "both at once");
	for (unsigned i = 0; i < ROUNDS; i++) {
		meet_once(me, 0, 0, i);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		pair_at(me, "the listener first");
		meet_once(me, 2000, 0, i);
		pair_at(me, "the connector first");
		meet_once(me, 0, 2000, i);
	}
	pair_at(me, "the listener a second before");
	meet_once(me, SKEW_US, 0, 1);
	pair_at(me, "the connector a second before");
	meet_once(me, 0, SKEW_US, 2);
	life_close_listen(me, kept);
	measured(me->index == 0 ? "connect" : "accept");
}

/* Both ends in turn by one thread, which must not wait for itself. */
static void run_alone(struct pair_member *me)
{
	void *kept = keep_endpoints(me);

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
		void *listen = pair_listen(me, handle);
		void *send = NULL, *recv = NULL;
		struct pair_buf out, in;

		while (send == NULL || recv == NULL) {
			if (send == NULL) {
				send = step_connect(me, handle);
			}
			if (recv == NULL) {
				recv = step_accept(me, listen);
			}
		}
		pair_buf_open(me, send, LARGE, &out);
		pair_buf_open(me, recv, LARGE, &in);
		life_pass(me, &out, &in, SMALL, i);
		life_pass(me, &out, &in, LARGE, i);
		pair_buf_close(me, &out);
		pair_buf_close(me, &in);
		life_close_send(me, send);
		life_close_recv(me, recv);
		life_close_listen(me, listen);
	}
	life_close_listen(me, kept);
	measured("both ends");
}

/* -- a listener that others advance, and that serves two --------------------
 */

/* The passes of another comm's tests take all there is from the queues; the
 * listener must have lost nothing. Then it serves a second one, who came with
 * the same handle. */
static void accept_two(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen = pair_listen(me, handle), *comm[2] = {NULL, NULL};
	void *other = pair_accept(me, 1), *req;
	struct pair_buf buf;

	pair_buf_open(me, other, SMALL, &buf);
	req = pair_irecv_wait(me, &buf, SMALL);
	PAIR_CHECK(step_accept(me, listen) == NULL, "accept of nobody");
	pair_at(me, "testing another comm");
	for (unsigned i = 1; i <= 2; i++) {
		pair_put(me, i, handle, sizeof(handle));
		pair_hear(me, i); /* it has called for a while */
		for (unsigned k = 0; k < TESTS; k++) {
			int done = 0, ret;

			ret = fr_plugin_test(me->plugin, req, &done, NULL);
			PAIR_CHECK(ret == 0 && done == 0, "test: %d", ret);
		}
	}
	pair_at(me, "accepting both");
	for (unsigned i = 0; i < 2; i++) {
		while ((comm[i] = step_accept(me, listen)) == NULL) {
			pair_nap_us(50);
		}
	}
	PAIR_CHECK(step_accept(me, listen) == NULL, "a third one");
	/* Requests are taken in the order in which they came. */
	listen_to(me, comm[0], 1);
	listen_to(me, comm[1], 2);
	pair_tell(me, 1);
	PAIR_CHECK(pair_test_wait(me, req, 20000, NULL) == 0, "the other comm");
	pair_buf_close(me, &buf);
	life_close_recv(me, comm[0]);
	life_close_recv(me, comm[1]);
	life_close_recv(me, other);
	life_close_listen(me, listen);
}

static void connect_as(struct pair_member *me, unsigned long seed)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	void *comm = NULL;

	pair_get(me, 0, handle, sizeof(handle));
	for (unsigned i = 0; i < 2000 && comm == NULL; i++) {
		comm = step_connect(me, handle);
		pair_nap_us(50);
	}
	pair_tell(me, 0);
	while (comm == NULL) {
		comm = step_connect(me, handle);
		pair_nap_us(50);
	}
	say(me, comm, seed);
	life_close_send(me, comm);
}

static void run_two(struct pair_member *me)
{
	void *other = NULL;

	if (me->index == 0) {
		accept_two(me);
		return;
	}
	if (me->index == 1) {
		other = pair_connect(me, 0);
	}
	connect_as(me, me->index);
	if (me->index == 1) {
		struct pair_buf buf;

		pair_hear(me, 0);
		pair_buf_open(me, other, SMALL, &buf);
		pair_send(me, &buf, SMALL);
		pair_buf_close(me, &buf);
		life_close_send(me, other);
	}
}

/* -- half a connection ------------------------------------------------------
 */

/* Who connects never comes back; half of them were accepted, with receives
 * posted, the others wait at the listener when it closes. */
static void leave_halves(struct pair_member *me)
{
	uint8_t handle[2][FR_PLUGIN_HANDLE_BYTES];
	uint8_t mine[HALVES][FR_PLUGIN_HANDLE_BYTES];
	void *comm;

	pair_get(me, 0, handle, sizeof(handle));
	for (unsigned i = 0; i < HALVES; i++) {
		memcpy(mine[i], handle[i % 2], sizeof(mine[i]));
	}
	/* The other one's keeper makes the connections below in that time. */
	for (uint64_t end = pair_now_ms() + pair_stretch(HALF_MS);
	     pair_now_ms() < end;) {
		for (unsigned i = 0; i < HALVES; i++) {
			comm = step_connect(me, mine[i]);
			PAIR_CHECK(comm == NULL, "connected to nobody");
		}
		pair_nap_us(1000);
	}
	pair_meet(me, 0);
	pair_hear(me, 0);
}

static void meet_halves(struct pair_member *me)
{
	uint8_t handle[2][FR_PLUGIN_HANDLE_BYTES] = {{0}};
	void *listen[2], *comm[HALVES / 2], *req;
	struct pair_buf buf[HALVES / 2];

	listen[0] = pair_listen(me, handle[0]);
	listen[1] = pair_listen(me, handle[1]);
	pair_put(me, 1, handle, sizeof(handle));
	/* Comes to an end only when the other one has stopped calling. */
	pair_meet(me, 1);
	for (unsigned i = 0; i < HALVES / 2; i++) {
		while ((comm[i] = step_accept(me, listen[0])) == NULL) {
			pair_nap_us(50);
		}
		pair_buf_open(me, comm[i], SMALL, &buf[i]);
		req = pair_irecv_wait(me, &buf[i], SMALL);
		PAIR_CHECK(req != NULL, "irecv");
	}
	for (unsigned i = 0; i < HALVES / 2; i++) {
		pair_buf_close(me, &buf[i]);
		life_close_recv(me, comm[i]);
	}
	life_close_listen(me, listen[0]);
	life_close_listen(me, listen[1]);
	pair_tell(me, 1);
}

/* Afterwards finalize is the end of all that, with the library still there. */
static void run_halves(struct pair_member *me)
{
	struct life_held before;
	int ret;

	pair_open(me);
	life_use(me, 0);
	PAIR_CHECK(fr_plugin_finalize(me->plugin, me->ctx) == 0, "finalize");
	life_look(&before);
	pair_expect("the listener was closed");
	if (pair_traits(me->pc->provider)->writes_all) {
		pair_expect("endpoints fenced");
		pair_expect("is lost");
	}
	for (unsigned i = 0; i < 3; i++) {
		ret = fr_plugin_init(me->plugin, 1, -1, &me->ctx);
		PAIR_CHECK(ret == 0, "init: %s", fr_plugin_result_text(ret));
		pair_at(me, "half a connection");
		if (me->index == 0) {
			meet_halves(me);
		} else {
			leave_halves(me);
		}
		pair_at(me, "finalizing");
		PAIR_CHECK(fr_plugin_finalize(me->plugin, me->ctx) == 0,
			   "finalize");
		life_flat(&before, 512, "half a connection");
		pair_meet(me, 1 - me->index);
	}
	ret = fr_plugin_init(me->plugin, 1, -1, &me->ctx);
	PAIR_CHECK(ret == 0, "init: %s", fr_plugin_result_text(ret));
	pair_at(me, "a connection afterwards");
	meet_once(me, 0, 0, 3);
	pair_close(me);
}

static void run_case(const char *provider, unsigned members, const char *name,
		     void (*run)(struct pair_member *me))
{
	const struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = 2,
		.members = members,
		.limit_s = 40,
		.run = run,
		.plugin_late = run == run_halves,
	};

	pair_spawn(&pc);
}

static void run_all(const char *provider, unsigned nth)
{
	(void)nth;
	run_case(provider, 2, "one end before the other", run_orders);
	run_case(provider, 1, "both ends by one thread", run_alone);
	run_case(provider, 3, "two with one handle", run_two);
	run_case(provider, 2, "half a connection", run_halves);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "t_meet", 16);
	pair_all_providers(run_all);
	return pair_end();
}
