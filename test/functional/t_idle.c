/*
 * Comms that nobody uses cost next to no CPU, whether they wait for a message
 * or not; and two processes that share one core get on with each other.
 */
#include <sched.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/life.h"

#define COMMS 64u
#define IDLE_US 10000000u
#define IDLE_CPU_MS 300u /* of 10 s; the keeper looks ten times a second */
#define BYTES 4096u
#define SHARED_ROUNDS 400u

struct line {
	struct pair_buf buf;
	void *req;
};

/* Member 0 sends; of every second comm the receive is posted before. */
static void idle(struct pair_member *me, struct line *lines)
{
	uint64_t before;

	pair_meet(me, 1 - me->index);
	before = life_cpu_ms(getpid());
	pair_nap_us(IDLE_US);
	before = life_cpu_ms(getpid()) - before;
	pair_say("    %u idle comms: %llu ms of CPU in %u ms", COMMS,
		 (unsigned long long)before, IDLE_US / 1000);
	PAIR_CHECK(before <= pair_stretch(IDLE_CPU_MS),
		   "%u idle comms took %llu ms of CPU", COMMS,
		   (unsigned long long)before);
	pair_meet(me, 1 - me->index);
	for (unsigned i = 0; i < COMMS; i++) {
		struct line *line = &lines[i];

		if (me->index == 0) {
			pair_send(me, &line->buf, BYTES);
		} else if (line->req == NULL) {
			pair_recv(me, &line->buf, BYTES);
		} else {
			PAIR_CHECK(pair_test_wait(me, line->req, 20000, NULL) ==
					   0,
				   "a receive that waited");
		}
	}
}

static void run_idle(struct pair_member *me)
{
	static struct line lines[COMMS];

	for (unsigned i = 0; i < COMMS; i++) {
		void *comm = me->index == 0 ? pair_connect(me, 1)
					    : pair_accept(me, 0);

		pair_buf_open(me, comm, BYTES, &lines[i].buf);
		if (me->index == 0) {
			pair_send(me, &lines[i].buf, BYTES);
		} else {
			pair_recv(me, &lines[i].buf, BYTES);
			if (i % 2 == 0) {
				lines[i].req = pair_irecv_wait(
					me, &lines[i].buf, BYTES);
			}
		}
	}
	pair_at(me, "idle");
	idle(me, lines);
	pair_at(me, "closing");
	for (unsigned i = 0; i < COMMS; i++) {
		pair_buf_close(me, &lines[i].buf);
		if (me->index == 0) {
			life_close_send(me, lines[i].buf.comm);
		} else {
			life_close_recv(me, lines[i].buf.comm);
		}
	}
}

/* Who polls without a break would keep the other one from answering. */
static void run_shared(struct pair_member *me)
{
	struct pair_echo echo;
	cpu_set_t cpus;
	int first;

	PAIR_CHECK(sched_getaffinity(0, sizeof(cpus), &cpus) == 0, "affinity");
	for (first = 0; !CPU_ISSET(first, &cpus); first++) {
	}
	CPU_ZERO(&cpus);
	CPU_SET(first, &cpus);
	PAIR_CHECK(sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "affinity");
	pair_echo_open(me, 1 - me->index, &echo);
	if (me->index == 0) {
		uint64_t began = pair_now_ms();

		while (echo.rounds < SHARED_ROUNDS) {
			PAIR_CHECK(pair_echo_ask(me, &echo) == 0, "traffic");
		}
		pair_say("    one core for both: %u rounds in %llu ms",
			 SHARED_ROUNDS,
			 (unsigned long long)(pair_now_ms() - began));
		pair_echo_end(me, &echo);
	} else {
		pair_echo_serve(me, &echo);
	}
	pair_echo_close(me, &echo);
}

static void run_case(const char *provider, const char *name,
		     void (*run)(struct pair_member *me))
{
	const struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = 2,
		.members = 2,
		.limit_s = 40,
		.run = run,
	};

	pair_spawn(&pc);
}

static void run_all(const char *provider)
{
	run_case(provider, "idle comms", run_idle);
	run_case(provider, "one core for both", run_shared);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "t_idle", 14);
	life_each(run_all);
	return pair_end();
}
