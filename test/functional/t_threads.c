/*
 * Eight threads in each of two processes make comms with each other, and each
 * mixes messages, registrations, connects and closes; requests are tested by
 * another thread than the one that posted them. How fast one thread, and all of
 * them, move bytes is printed.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/util.h"
#include "functional/life.h"

#define THREADS 8u
#define ROUNDS 12u
#define MSGS 16u
#define BYTES (192u << 10)
#define SPEED_MSGS 40u
#define SPEED_BYTES (1u << 20)

static pthread_mutex_t oob_lock = PTHREAD_MUTEX_INITIALIZER;

struct mail {
	unsigned thread;
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
};

/* Handles that came, for the thread they are for. */
static struct {
	pthread_mutex_t lock;
	bool full[THREADS];
	struct mail mail[THREADS];
} box = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct worker {
	struct pair_member *me;
	unsigned index;
	pthread_t thread;
};

/* -- one socket for the handles of all threads ------------------------------
 */

static void mail_put(struct pair_member *me, const struct mail *mail)
{
	pthread_mutex_lock(&oob_lock);
	pair_put(me, 1 - me->index, mail, sizeof(*mail));
	pthread_mutex_unlock(&oob_lock);
}

/* Whoever looks takes what there is, also for others. */
static bool mail_get(struct pair_member *me, unsigned thread, struct mail *mail)
{
	bool mine;

	pthread_mutex_lock(&box.lock);
	if (!box.full[thread] && pair_told(me, 1 - me->index)) {
		struct mail got;

		pair_get(me, 1 - me->index, &got, sizeof(got));
		PAIR_CHECK(got.thread < THREADS && !box.full[got.thread],
			   "mail for thread %u", got.thread);
		box.mail[got.thread] = got;
		box.full[got.thread] = true;
	}
	mine = box.full[thread];
	if (mine) {
		*mail = box.mail[thread];
		box.full[thread] = false;
	}
	pthread_mutex_unlock(&box.lock);
	return mine;
}

static void *mail_connect(struct worker *w)
{
	struct mail mail;

	while (!mail_get(w->me, w->index, &mail)) {
		pair_nap_us(200);
	}
	return pair_connect_wait(w->me, mail.handle);
}

static void *mail_accept(struct worker *w)
{
	struct mail mail = {.thread = w->index};
	void *listen = pair_listen(w->me, mail.handle), *comm;

	mail_put(w->me, &mail);
	comm = pair_accept_wait(w->me, listen);
	life_close_listen(w->me, listen);
	return comm;
}

/* Member 0 sends. */
static void *mail_join(struct worker *w)
{
	return w->me->index == 0 ? mail_connect(w) : mail_accept(w);
}

static void comm_close(struct pair_member *me, void *comm)
{
	if (me->index == 0) {
		life_close_send(me, comm);
	} else {
		life_close_recv(me, comm);
	}
}

static void run_workers(struct pair_member *me, unsigned cnt,
			void *(*run)(void *arg))
{
	static struct worker workers[THREADS];

	for (unsigned i = 0; i < cnt; i++) {
		workers[i] = (struct worker){.me = me, .index = i};
		PAIR_CHECK(pthread_create(&workers[i].thread, NULL, run,
					  &workers[i]) == 0,
			   "thread");
	}
	for (unsigned i = 0; i < cnt; i++) {
		pthread_join(workers[i].thread, NULL);
	}
}

/* -- everything at once -----------------------------------------------------
 */

/* A message on the comm, its buffer registered for it alone. */
static void one_message(struct worker *w, void *comm, unsigned round,
			unsigned n)
{
	size_t bytes = n % 3 == 0 ? 500 + n : BYTES - n;
	unsigned long seed = (w->index * ROUNDS + round) * MSGS + n;
	struct pair_buf buf;

	pair_buf_open(w->me, comm, BYTES, &buf);
	if (w->me->index == 0) {
		pair_fill(buf.mem, bytes, seed);
		pair_send(w->me, &buf, bytes);
	} else {
		pair_recv(w->me, &buf, bytes);
		PAIR_CHECK(pair_is_filled(buf.mem, bytes, seed),
			   "thread %u, round %u: message %u is wrong", w->index,
			   round, n);
	}
	pair_buf_close(w->me, &buf);
}

static void *mix(void *arg)
{
	struct worker *w = arg;

	for (unsigned round = 0; round < ROUNDS; round++) {
		void *comm = mail_join(w);

		for (unsigned n = 0; n < MSGS; n++) {
			one_message(w, comm, round, n);
		}
		comm_close(w->me, comm);
	}
	return NULL;
}

static void run_mix(struct pair_member *me)
{
	struct life_held before;

	/* Of an arena of their own threads leave behind what nothing trims. */
	(void)mallopt(M_ARENA_MAX, 1);
	life_use(me, 0);
	life_look(&before);
	before.fds += LIFE_HALF_FDS;
	run_workers(me, THREADS, mix);
	life_flat(&before, 8192, "threads that ended");
}

/* -- posted by one thread, tested by another --------------------------------
 */

static struct {
	_Atomic(void *) req[MSGS];
	struct pair_buf buf;
	_Atomic unsigned rounds; /* all requests of so many were done */
} handed;

static void *test_handed(void *arg)
{
	struct worker *w = arg;

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned n = 0; n < MSGS; n++) {
			void *req;
			int ret;

			while ((req = atomic_load(&handed.req[n])) == NULL) {
				pair_nap_us(50);
			}
			ret = pair_test_wait(w->me, req, 20000, NULL);
			PAIR_CHECK(ret == 0, "a request of another thread: %d",
				   ret);
			atomic_store(&handed.req[n], NULL);
		}
		atomic_store(&handed.rounds, round + 1);
	}
	return NULL;
}

static void post_handed(struct pair_member *me, unsigned round)
{
	size_t bytes = handed.buf.bytes / MSGS;

	for (unsigned n = 0; n < MSGS; n++) {
		struct pair_buf part = handed.buf;

		part.mem += n * bytes;
		if (me->index == 0) {
			pair_fill(part.mem, bytes, round * MSGS + n);
		}
		atomic_store(&handed.req[n],
			     me->index == 0
				     ? pair_isend_wait(me, &part, bytes)
				     : pair_irecv_wait(me, &part, bytes));
	}
	while (atomic_load(&handed.rounds) == round) {
		pair_nap_us(50);
	}
	for (unsigned n = 0; n < MSGS && me->index == 1; n++) {
		PAIR_CHECK(pair_is_filled(handed.buf.mem + n * bytes, bytes,
					  round * MSGS + n),
			   "round %u: message %u is wrong", round, n);
	}
}

static void run_handed(struct pair_member *me)
{
	struct worker tester = {.me = me};
	void *comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);

	pair_buf_open(me, comm, MSGS * BYTES, &handed.buf);
	PAIR_CHECK(pthread_create(&tester.thread, NULL, test_handed, &tester) ==
			   0,
		   "thread");
	for (unsigned round = 0; round < ROUNDS; round++) {
		post_handed(me, round);
	}
	pthread_join(tester.thread, NULL);
	pair_buf_close(me, &handed.buf);
	comm_close(me, comm);
}

/* -- how fast ---------------------------------------------------------------
 */

static void *stream(void *arg)
{
	struct worker *w = arg;
	void *comm = mail_join(w);
	struct pair_buf buf;

	pair_buf_open(w->me, comm, SPEED_BYTES, &buf);
	for (unsigned n = 0; n < SPEED_MSGS; n++) {
		if (w->me->index == 0) {
			pair_send(w->me, &buf, SPEED_BYTES);
		} else {
			pair_recv(w->me, &buf, SPEED_BYTES);
		}
	}
	pair_buf_close(w->me, &buf);
	comm_close(w->me, comm);
	return NULL;
}

static unsigned mb_per_s(struct pair_member *me, unsigned threads)
{
	uint64_t began = pair_now_ms(), ms;

	run_workers(me, threads, stream);
	ms = FR_MAX(pair_now_ms() - began, 1);
	pair_meet(me, 1 - me->index);
	return (unsigned)((uint64_t)threads * SPEED_MSGS * (SPEED_BYTES >> 10) /
			  1024 * 1000 / ms);
}

static void run_speed(struct pair_member *me)
{
	unsigned one = mb_per_s(me, 1), all = mb_per_s(me, THREADS);

	if (me->index == 0) {
		pair_say("    with connecting and closing: 1 thread %u MiB/s, "
			 "%u threads %u MiB/s",
			 one, THREADS, all);
	}
}

static void run_case(const char *provider, const char *name,
		     void (*run)(struct pair_member *me))
{
	const struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = 1,
		.members = 2,
		.limit_s = 60,
		.run = run,
	};

	pair_run(&pc);
}

static void run_all(const char *provider)
{
	run_case(provider, "eight threads mix everything", run_mix);
	run_case(provider, "tested by another thread", run_handed);
	run_case(provider, "one thread and eight", run_speed);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "t_threads", 15);
	life_each(run_all);
	return pair_end();
}
