/*
 * A peer is killed, in every phase of a connection's life at once: member 0
 * stays, member 1 is healthy, each of the others is brought to one phase and
 * then killed. Whatever is outstanding with a dead one, and whatever is called
 * later, must end in a remote error within 10 s; traffic with the healthy one
 * goes on all the while.
 *
 * Two threads of member 0 talk to the healthy one: the thread that has the dead
 * peers too, and one of its own. The first one's traffic may end where memory
 * is deregistered that a dead peer was told to write to: its endpoints are then
 * fenced. Until then it must go on; the second one's must not stop at all.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

#define DEADLINE_MS 10000
#define CLOSE_MS 1200 /* 1 s for what was not acknowledged, and some noise */
#define GAP_MS 3000
#define SMALL 64
#define LARGE (8u << 20)
#define FEW 6
#define HEALTHY 1
#define FIRST_VICTIM 2

/* What member 0 has with one victim. */
struct spot {
	const struct phase *phase;
	unsigned victim;
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	void *listen;
	bool connecting;
	struct pair_buf out; /* comm NULL: there is no such comm */
	struct pair_buf in;
	void *req[FEW];
	size_t out_bytes; /* of what is sent later */
	bool out_ended;
	bool in_ended;
	bool ended;
	uint64_t took_ms;
};

struct phase {
	const char *name;
	void (*victim)(struct pair_member *me);
	void (*set_up)(struct pair_member *me, struct spot *spot);
	bool fences; /* deregMr has to fence */
};

/* -- the victims: up to the point where they tell that they are there -------
 */

static void victim_joins(struct pair_member *me, struct pair_buf *out,
			 struct pair_buf *in)
{
	void *send, *recv;

	pair_join(me, 0, &send, &recv);
	pair_buf_open(me, send, LARGE, out);
	pair_buf_open(me, recv, LARGE, in);
}

static void victim_listens(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};

	(void)pair_listen(me, handle);
	pair_put(me, 0, handle, sizeof(handle));
}

/* Its request is on its way when it dies; nobody has accepted it. */
static void victim_connects(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	uint64_t until = pair_now_ms() + 500;
	void *comm = NULL;

	pair_get(me, 0, handle, sizeof(handle));
	/* A count as well: on a busy machine time alone says nothing. */
	for (unsigned i = 0; i < 2000 || pair_now_ms() < until; i++) {
		int ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle,
					    &comm);

		PAIR_CHECK(ret == 0 && comm == NULL, "connected to nobody: %d",
			   ret);
	}
}

static void victim_is_idle(struct pair_member *me)
{
	struct pair_buf out, in;

	victim_joins(me, &out, &in);
}

static void victim_takes_large(struct pair_member *me)
{
	struct pair_buf out, in;

	victim_joins(me, &out, &in);
	for (int i = 0; i < FEW; i++) {
		(void)pair_irecv_wait(me, &in, LARGE);
	}
}

/* Dies with the rest of the messages half on their way, whatever was asked. */
static void victim_sends_large(struct pair_member *me)
{
	struct pair_buf out, in;
	void *req[FEW];

	victim_joins(me, &out, &in);
	for (int i = 0; i < FEW; i++) {
		req[i] = pair_isend_wait(me, &out, LARGE);
	}
	PAIR_CHECK(pair_test_wait(me, req[0], 20000, NULL) == 0, "isend");
}

static void victim_talked(struct pair_member *me)
{
	struct pair_buf out, in;

	victim_joins(me, &out, &in);
	for (int i = 0; i < 20; i++) {
		pair_recv(me, &in, SMALL);
		pair_send(me, &out, SMALL);
	}
}

/* -- member 0 beside each of them -------------------------------------------
 */

static void spot_joins(struct pair_member *me, struct spot *spot)
{
	void *send, *recv;

	pair_join(me, spot->victim, &send, &recv);
	pair_buf_open(me, send, LARGE, &spot->out);
	pair_buf_open(me, recv, LARGE, &spot->in);
}

static void connect_step(struct pair_member *me, struct spot *spot)
{
	void *comm = NULL;
	int ret =
		fr_plugin_connect(me->plugin, me->ctx, 0, spot->handle, &comm);

	PAIR_CHECK(comm == NULL && (ret == 0 || ret == PAIR_REMOTE),
		   "%s: connect: %s", spot->phase->name,
		   fr_plugin_result_text(ret));
	spot->ended = ret == PAIR_REMOTE;
}

static void set_up_connect(struct pair_member *me, struct spot *spot)
{
	pair_get(me, spot->victim, spot->handle, sizeof(spot->handle));
	for (int i = 0; i < 200; i++) {
		connect_step(me, spot);
	}
	PAIR_CHECK(!spot->ended, "connect gave up a living listener");
	spot->connecting = true;
}

static void set_up_stale_handle(struct pair_member *me, struct spot *spot)
{
	pair_get(me, spot->victim, spot->handle, sizeof(spot->handle));
	spot->connecting = true;
}

/* Polls through another listener meanwhile: what nobody has read when its
 * sender dies is lost with it. */
static void set_up_accept(struct pair_member *me, struct spot *spot)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *other = pair_listen(me, handle), *comm = NULL;

	spot->listen = pair_listen(me, spot->handle);
	pair_put(me, spot->victim, spot->handle, sizeof(spot->handle));
	while (!pair_told(me, spot->victim)) {
		PAIR_CHECK(fr_plugin_accept(me->plugin, other, &comm) == 0 &&
				   comm == NULL,
			   "a listener that nobody knows accepts");
		pair_nap_us(200);
	}
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, other) == 0,
		   "closeListen");
}

static void set_up_idle(struct pair_member *me, struct spot *spot)
{
	spot_joins(me, spot);
	spot->out_bytes = SMALL;
}

static void set_up_small_recv(struct pair_member *me, struct spot *spot)
{
	spot_joins(me, spot);
	spot->out_bytes = LARGE;
	spot->req[0] = pair_irecv_wait(me, &spot->in, SMALL);
}

static void set_up_large_recv(struct pair_member *me, struct spot *spot)
{
	spot_joins(me, spot);
	spot->out_bytes = LARGE;
	for (int i = 0; i < FEW; i++) {
		spot->req[i] = pair_irecv_wait(me, &spot->in, LARGE);
	}
}

static void set_up_small_sends(struct pair_member *me, struct spot *spot)
{
	spot_joins(me, spot);
	spot->out_bytes = SMALL;
	for (int i = 0; i < FEW; i++) {
		spot->req[i] = pair_isend_wait(me, &spot->out, SMALL);
	}
}

static void set_up_large_sends(struct pair_member *me, struct spot *spot)
{
	spot_joins(me, spot);
	spot->out_bytes = LARGE;
	for (int i = 0; i < FEW; i++) {
		spot->req[i] = pair_isend_wait(me, &spot->out, LARGE);
	}
}

static void set_up_no_cts(struct pair_member *me, struct spot *spot)
{
	void *req = NULL;

	spot_joins(me, spot);
	spot->in_ended = true; /* nothing but the sends may notice */
	spot->out_bytes = LARGE;
	for (int i = 0; i < 100; i++) {
		int ret = pair_isend(me, &spot->out, LARGE, &req);

		PAIR_CHECK(ret == 0 && req == NULL, "isend without a receive");
	}
}

static void set_up_talked(struct pair_member *me, struct spot *spot)
{
	spot_joins(me, spot);
	spot->out_bytes = SMALL;
	for (int i = 0; i < 20; i++) {
		pair_send(me, &spot->out, SMALL);
		pair_recv(me, &spot->in, SMALL);
	}
}

static const struct phase phases[] = {
	{"listening", victim_listens, set_up_connect, false},
	{"listener dead before connect", victim_listens, set_up_stale_handle,
	 false},
	{"connect pending", victim_connects, set_up_accept, false},
	{"just connected", victim_is_idle, set_up_idle, false},
	{"small receive posted", victim_is_idle, set_up_small_recv, false},
	{"large receive posted", victim_is_idle, set_up_large_recv, true},
	{"small sends", victim_is_idle, set_up_small_sends, false},
	{"large sends", victim_takes_large, set_up_large_sends, false},
	{"isend without a receive", victim_is_idle, set_up_no_cts, false},
	{"between messages", victim_talked, set_up_talked, false},
	{"in the middle of its writes", victim_sends_large, set_up_large_recv,
	 true},
};
#define PHASES FR_ARRAY_LEN(phases)

/* -- watching them end ------------------------------------------------------
 */

static void accept_step(struct pair_member *me, struct spot *spot)
{
	void *comm = NULL;
	int ret = fr_plugin_accept(me->plugin, spot->listen, &comm);

	PAIR_CHECK(ret == 0 || ret == PAIR_REMOTE, "%s: accept: %s",
		   spot->phase->name, fr_plugin_result_text(ret));
	if (comm != NULL) { /* its response left in time; the comm is dead */
		pair_buf_open(me, comm, SMALL, &spot->in);
		spot->out_ended = true;
	}
	spot->ended = ret == PAIR_REMOTE;
}

/* Return: true while something is outstanding. */
static bool test_step(struct pair_member *me, struct spot *spot)
{
	bool left = false;

	for (int i = 0; i < FEW; i++) {
		int done = 0, ret;

		if (spot->req[i] == NULL) {
			continue;
		}
		ret = fr_plugin_test(me->plugin, spot->req[i], &done, NULL);
		PAIR_CHECK(ret == 0 || ret == PAIR_REMOTE, "%s: test: %s",
			   spot->phase->name, fr_plugin_result_text(ret));
		if (done != 0 || ret != 0) {
			spot->req[i] = NULL;
		}
		left = left || spot->req[i] != NULL;
	}
	return left;
}

/* A new call on either comm; what it starts is outstanding then. */
static void call_step(struct pair_member *me, struct spot *spot)
{
	int ret;

	if (!spot->in_ended && spot->in.comm != NULL) {
		ret = pair_irecv(me, &spot->in, SMALL, &spot->req[0]);
		PAIR_CHECK(ret == 0 || ret == PAIR_REMOTE, "%s: irecv: %s",
			   spot->phase->name, fr_plugin_result_text(ret));
		spot->in_ended = ret != 0;
		return;
	}
	if (!spot->out_ended && spot->out.comm != NULL) {
		ret = pair_isend(me, &spot->out, spot->out_bytes,
				 &spot->req[0]);
		PAIR_CHECK(ret == 0 || ret == PAIR_REMOTE, "%s: isend: %s",
			   spot->phase->name, fr_plugin_result_text(ret));
		spot->out_ended = ret != 0;
		return;
	}
	spot->ended = true;
}

static void spot_step(struct pair_member *me, struct spot *spot)
{
	if (spot->connecting) {
		connect_step(me, spot);
	} else if (spot->listen != NULL && spot->in.comm == NULL) {
		accept_step(me, spot);
	} else if (!test_step(me, spot)) {
		call_step(me, spot);
	}
}

/* Nothing works any more, and says so at once. */
static void spot_is_dead(struct pair_member *me, struct spot *spot)
{
	int zero = 0;
	void *req;

	for (int i = 0; i < 3; i++) {
		if (spot->out.comm != NULL) {
			PAIR_CHECK(pair_isend(me, &spot->out, SMALL, &req) ==
					   PAIR_REMOTE,
				   "%s: a later isend", spot->phase->name);
		}
		if (spot->in.comm != NULL) {
			PAIR_CHECK(pair_irecv(me, &spot->in, SMALL, &req) ==
					   PAIR_REMOTE,
				   "%s: a later irecv", spot->phase->name);
			PAIR_CHECK(fr_plugin_iflush(me->plugin, spot->in.comm,
						    1, (void **)&spot->in.mem,
						    &zero, &spot->in.mh,
						    &req) == PAIR_REMOTE,
				   "%s: a later iflush", spot->phase->name);
		}
	}
}

static void timed(const char *phase, const char *what, uint64_t began,
		  uint64_t *worst)
{
	uint64_t took = pair_now_ms() - began;

	PAIR_CHECK(took <= pair_stretch(CLOSE_MS), "%s: %s took %llu ms", phase,
		   what, (unsigned long long)took);
	*worst = FR_MAX(*worst, took);
}

static void spot_close(struct pair_member *me, struct spot *spot,
		       uint64_t *worst)
{
	uint64_t began = pair_now_ms();

	if (spot->listen != NULL) {
		PAIR_CHECK(fr_plugin_close_listen(me->plugin, spot->listen) ==
				   0,
			   "closeListen");
		timed(spot->phase->name, "closeListen", began, worst);
	}
	began = pair_now_ms();
	if (spot->out.comm != NULL) {
		pair_buf_close(me, &spot->out);
		timed(spot->phase->name, "deregMr", began, worst);
		PAIR_CHECK(fr_plugin_close_send(me->plugin, spot->out.comm) ==
				   0,
			   "closeSend");
		timed(spot->phase->name, "closeSend", began, worst);
	}
	began = pair_now_ms();
	if (spot->in.comm != NULL) {
		pair_buf_close(me, &spot->in);
		timed(spot->phase->name, "deregMr", began, worst);
		PAIR_CHECK(fr_plugin_close_recv(me->plugin, spot->in.comm) == 0,
			   "closeRecv");
		timed(spot->phase->name, "closeRecv", began, worst);
	}
}

/* -- member 0 ---------------------------------------------------------------
 */

struct second {
	struct pair_member *me;
	struct pair_echo echo;
	_Atomic bool up;
	_Atomic bool stop;
};

/* The other thread's traffic, with endpoints of its own. */
static void *second_main(void *arg)
{
	struct second *second = arg;
	int ret = 0;

	pair_echo_open(second->me, HEALTHY, &second->echo);
	atomic_store(&second->up, true);
	while (ret == 0 && !atomic_load(&second->stop)) {
		ret = pair_echo_ask(second->me, &second->echo);
		pair_nap_us(200);
	}
	PAIR_CHECK(ret == 0, "another thread's traffic: %s",
		   fr_plugin_result_text(ret));
	pair_echo_end(second->me, &second->echo);
	pair_echo_close(second->me, &second->echo);
	return NULL;
}

static void all_set_up(struct pair_member *me, struct spot *spots)
{
	for (unsigned i = 0; i < PHASES; i++) {
		spots[i].phase = &phases[i];
		spots[i].victim = FIRST_VICTIM + i;
		pair_at(me, phases[i].name);
		pair_tell(me, spots[i].victim);
		phases[i].set_up(me, &spots[i]);
		pair_hear(me, spots[i].victim);
	}
}

static uint64_t all_end(struct pair_member *me, struct spot *spots,
			struct pair_echo *echo)
{
	uint64_t began = pair_now_ms(), worst = 0;
	unsigned left = PHASES;

	pair_at(me, "waiting for the errors");
	while (left != 0) {
		left = 0;
		for (unsigned i = 0; i < PHASES; i++) {
			struct spot *spot = &spots[i];

			if (spot->ended) {
				continue;
			}
			spot_step(me, spot);
			spot->took_ms = pair_now_ms() - began;
			left += spot->ended ? 0 : 1;
			PAIR_CHECK(spot->took_ms < pair_stretch(DEADLINE_MS),
				   "%s: no error in %llu ms", spot->phase->name,
				   (unsigned long long)spot->took_ms);
			worst = FR_MAX(worst, spot->took_ms);
		}
		PAIR_CHECK(pair_echo_ask(me, echo) == 0,
			   "traffic with the healthy peer fails");
		pair_nap_us(100);
	}
	return worst;
}

static void echo_goes_on(struct pair_member *me, struct pair_echo *echo,
			 unsigned rounds)
{
	unsigned long until = echo->rounds + rounds;

	while (echo->rounds < until) {
		int ret = pair_echo_ask(me, echo);

		PAIR_CHECK(ret == 0, "traffic with the healthy peer: %s",
			   fr_plugin_result_text(ret));
	}
	PAIR_CHECK(echo->worst_ms < pair_stretch(GAP_MS),
		   "traffic with the healthy peer stood still for %llu ms",
		   (unsigned long long)echo->worst_ms);
}

/* The listener that a dead one had knocked at serves the next one. */
static void listener_serves(struct pair_member *me, struct spot *spot)
{
	struct pair_buf in;
	void *comm;

	pair_put(me, HEALTHY, spot->handle, sizeof(spot->handle));
	comm = pair_accept_wait(me, spot->listen);
	pair_buf_open(me, comm, SMALL, &in);
	pair_recv(me, &in, SMALL);
	pair_buf_close(me, &in);
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, comm) == 0, "closeRecv");
}

static void close_all(struct pair_member *me, struct spot *spots,
		      struct pair_echo *echo, uint64_t *worst)
{
	for (unsigned i = 0; i < PHASES; i++) {
		pair_at(me, spots[i].phase->name);
		spot_is_dead(me, &spots[i]);
		if (spots[i].listen != NULL) {
			listener_serves(me, &spots[i]);
		}
		if (!spots[i].phase->fences) {
			spot_close(me, &spots[i], worst);
			echo_goes_on(me, echo, 2);
		}
	}
	pair_at(me, "ending the first traffic");
	pair_echo_end(me, echo);
	pair_echo_close(me, echo);
	pair_expect("fenced");
	for (unsigned i = 0; i < PHASES; i++) {
		if (spots[i].phase->fences) {
			pair_at(me, spots[i].phase->name);
			spot_close(me, &spots[i], worst);
		}
	}
}

static void run_survivor(struct pair_member *me)
{
	static struct spot spots[PHASES];
	static struct second second;
	uint64_t detect, close = 0;
	struct pair_echo echo;
	pthread_t thread;

	second.me = me;
	PAIR_CHECK(pthread_create(&thread, NULL, second_main, &second) == 0,
		   "thread");
	while (!atomic_load(&second.up)) {
		pair_nap_us(1000);
	}
	pair_echo_open(me, HEALTHY, &echo);
	all_set_up(me, spots);
	echo.last_ms = pair_now_ms(); /* nobody asked meanwhile */
	echo_goes_on(me, &echo, 4);

	pair_expect("is lost");
	pair_expect("is gone");
	pair_expect("accept: ");
	for (unsigned i = 0; i < PHASES; i++) {
		pair_tell(me, spots[i].victim);
	}
	detect = all_end(me, spots, &echo);
	close_all(me, spots, &echo, &close);

	pair_at(me, "a new connection");
	pair_tell(me, HEALTHY);
	pair_echo_open(me, HEALTHY, &echo);
	echo_goes_on(me, &echo, 10);
	pair_echo_end(me, &echo);
	pair_echo_close(me, &echo);
	atomic_store(&second.stop, true);
	pthread_join(thread, NULL);
	PAIR_CHECK(second.echo.worst_ms < pair_stretch(GAP_MS),
		   "another thread's traffic stood still for %llu ms",
		   (unsigned long long)second.echo.worst_ms);
	for (unsigned i = 0; i < PHASES; i++) {
		pair_say("    %-30s error after %5llu ms", phases[i].name,
			 (unsigned long long)spots[i].took_ms);
	}
	pair_say("    worst detection %llu ms, worst deregMr or close %llu ms, "
		 "other thread's longest round %llu ms",
		 (unsigned long long)detect, (unsigned long long)close,
		 (unsigned long long)second.echo.worst_ms);
}

/* -- member 1 ---------------------------------------------------------------
 */

static void run_healthy(struct pair_member *me)
{
	struct pair_echo second, first;
	struct pair_buf out;
	bool connected = false;
	void *comm;
	int ret = 0;

	pair_echo_open(me, 0, &second);
	pair_echo_open(me, 0, &first);
	pair_at(me, "traffic");
	while (ret == 0 && !first.ended) {
		ret = pair_echo_answer(me, &first);
		if (ret == 0) {
			ret = pair_echo_answer(me, &second);
		}
		if (!connected && pair_told(me, 0)) {
			comm = pair_connect(me, 0);
			pair_buf_open(me, comm, SMALL, &out);
			pair_send(me, &out, SMALL);
			pair_buf_close(me, &out);
			PAIR_CHECK(fr_plugin_close_send(me->plugin, comm) == 0,
				   "closeSend");
			connected = true;
		}
		pair_nap_us(100);
	}
	PAIR_CHECK(ret == 0, "traffic: %s", fr_plugin_result_text(ret));
	pair_echo_close(me, &first);

	pair_at(me, "the other thread's traffic alone");
	while (!pair_told(me, 0)) {
		PAIR_CHECK(pair_echo_answer(me, &second) == 0, "traffic");
	}
	pair_hear(me, 0);
	pair_at(me, "a new connection");
	pair_echo_open(me, 0, &first);
	pair_at(me, "traffic on the new connection");
	while (!first.ended || !second.ended) {
		PAIR_CHECK(pair_echo_answer(me, &first) == 0 &&
				   pair_echo_answer(me, &second) == 0,
			   "traffic");
		pair_nap_us(100);
	}
	pair_echo_close(me, &first);
	pair_echo_close(me, &second);
}

static void run(struct pair_member *me)
{
	if (me->index == 0) {
		run_survivor(me);
	} else if (me->index == HEALTHY) {
		run_healthy(me);
	} else {
		const struct phase *phase = &phases[me->index - FIRST_VICTIM];

		pair_hear(me, 0);
		pair_at(me, phase->name);
		phase->victim(me);
		pair_tell(me, 0);
		pair_hear(me, 0);
		pair_die();
	}
}

int main(int argc, char **argv)
{
	struct pair_case pc = {
		.name = "killed in every phase",
		.members = FIRST_VICTIM + PHASES,
		.limit_s = 30,
		.killed = ((1u << PHASES) - 1) << FIRST_VICTIM,
		.run = run,
	};
	static const struct {
		const char *provider;
		unsigned rails;
	} plan[] = {{"net", 1},	    {"net", 4}, {"tcp;ofi_rxm", 1},
		    {"sockets", 1}, {"shm", 1}, {"shm", 4}};

	_Static_assert(FIRST_VICTIM + PHASES <= PAIR_MAX, "members");
	pair_main(argc, argv, "t_kill", 50);
	for (unsigned i = 0; i < FR_ARRAY_LEN(plan); i++) {
		pc.provider = pair_provider(plan[i].provider);
		pc.rails = plan[i].rails;
		if (pc.provider != NULL) {
			pair_run(&pc);
		}
	}
	return pair_end();
}
