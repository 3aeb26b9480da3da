/*
 * Windows that are full: numbers that run over the end of their field between
 * early messages, a sender or a receiver far ahead of the other, requests
 * posted until no more is taken, and a process that does not call while others
 * fill all it has for their messages.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

#define LIMIT 256u /* requests of a comm: 32 groups of 8 */
#define MORE 64u
#define EARLY 100u
#define LONG 9000u /* needs its receive */
#define TAG 7

/* Requests in flight, each with its place in one memory. */
struct flight {
	struct pair_buf buf;
	void *req[LIMIT];
	unsigned posted, done;
};

static void flight_open(struct pair_member *me, void *comm, struct flight *f)
{
	memset(f, 0, sizeof(*f));
	pair_buf_open(me, comm, (size_t)LONG * LIMIT, &f->buf);
}

static uint8_t *flight_mem(const struct flight *f, unsigned i)
{
	return f->buf.mem + (size_t)LONG * (i % LIMIT);
}

/* One call; the comm is the memory's. */
static bool flight_isend(struct pair_member *me, struct flight *f, size_t bytes)
{
	void *req = NULL;

	if (f->posted - f->done == LIMIT) {
		return false;
	}
	pair_fill(flight_mem(f, f->posted), bytes, f->posted);
	PAIR_OK(fr_plugin_isend(me->plugin, f->buf.comm,
				flight_mem(f, f->posted), bytes, TAG, f->buf.mh,
				&req));
	if (req != NULL) {
		f->req[f->posted++ % LIMIT] = req;
	}
	return req != NULL;
}

static bool flight_irecv(struct pair_member *me, struct flight *f, size_t bytes)
{
	void *data = flight_mem(f, f->posted), *req = NULL;
	int tag = TAG;

	if (f->posted - f->done == LIMIT) {
		return false;
	}
	memset(data, 0xee, bytes);
	PAIR_OK(fr_plugin_irecv(me->plugin, f->buf.comm, 1, &data, &bytes, &tag,
				&f->buf.mh, &req));
	if (req != NULL) {
		f->req[f->posted++ % LIMIT] = req;
	}
	return req != NULL;
}

static void flight_is_right(const struct flight *f, unsigned i, size_t bytes,
			    int size)
{
	PAIR_CHECK(size == (int)bytes &&
			   pair_is_filled(flight_mem(f, i), bytes, i),
		   "message %u: %d bytes, or its data is wrong", i, size);
}

/* ---- numbers that run over the end of their field ---- */

#define AROUND 1024u

static size_t wrap_bytes(unsigned i, unsigned cnt)
{
	return i == 0 || i + 1 == cnt ? EARLY : LONG;
}

/* Never waits for an end before the next isend. */
static void wrap_send(struct pair_member *me, struct flight *f, unsigned cnt,
		      unsigned nap_us)
{
	while (f->done < cnt) {
		if (f->posted < cnt &&
		    flight_isend(me, f, wrap_bytes(f->posted, cnt))) {
			pair_nap_us(nap_us);
			continue;
		}
		if (f->done != f->posted &&
		    pair_test(me, f->req[f->done % LIMIT], NULL)) {
			f->done++;
		}
	}
}

static void wrap_recv(struct pair_member *me, struct flight *f, unsigned cnt,
		      unsigned nap_us)
{
	while (f->done < cnt) {
		int size = -1;

		if (f->posted < cnt &&
		    flight_irecv(me, f, wrap_bytes(f->posted, cnt))) {
			pair_nap_us(nap_us);
		}
		if (f->done != f->posted &&
		    pair_test(me, f->req[f->done % LIMIT], &size)) {
			flight_is_right(f, f->done, wrap_bytes(f->done, cnt),
					size);
			f->done++;
		}
	}
}

static void run_wrap(struct pair_member *me)
{
	/* Each of them on a comm of its own, whose numbers begin at 0. */
	for (unsigned k = AROUND - 2; k <= AROUND + 1; k++) {
		for (unsigned slow = 0; slow < 2; slow++) {
			unsigned nap_us = slow == me->index ? 0 : 50;
			struct flight f;

			pair_at(me,
				nap_us == 0 ? "running ahead" : "being slow");
			if (me->index == 0) {
				flight_open(me, pair_connect(me, 1), &f);
				wrap_send(me, &f, k + 2, nap_us);
			} else {
				flight_open(me, pair_accept(me, 0), &f);
				wrap_recv(me, &f, k + 2, nap_us);
			}
			pair_meet(me, !me->index);
			pair_buf_close(me, &f.buf);
			PAIR_OK(me->index == 0
					? fr_plugin_close_send(me->plugin,
							       f.buf.comm)
					: fr_plugin_close_recv(me->plugin,
							       f.buf.comm));
		}
	}
}

/* ---- requests until no more is taken ---- */

#define COMMS 40u

static struct flight flights[COMMS];

/* Return: how many of LIMIT + MORE were taken, with no test in between. */
static unsigned fill_up(struct pair_member *me, struct flight *f)
{
	unsigned before = f->posted;

	for (unsigned i = 0; i < LIMIT + MORE; i++) {
		if (me->index == 1) {
			void *flush = NULL;
			int none = 0;

			(void)flight_irecv(me, f, LONG);
			PAIR_OK(fr_plugin_iflush(me->plugin, f->buf.comm, 1,
						 (void **)&f->buf.mem, &none,
						 &f->buf.mh, &flush));
			PAIR_CHECK(flush == NULL, "a flush of host memory");
		} else {
			(void)flight_isend(me, f, LONG);
		}
	}
	return f->posted - before;
}

/* The table is full where the test stops itself: it says so, and no more. */
static void is_full(struct pair_member *me, const struct flight *f)
{
	void *data = f->buf.mem, *mh = f->buf.mh, *req = (void *)0x1;
	size_t bytes = LONG;
	int tag = TAG;

	for (unsigned i = 0; i < MORE; i++) {
		if (me->index == 0) {
			PAIR_OK(fr_plugin_isend(me->plugin, f->buf.comm, data,
						bytes, tag, mh, &req));
		} else {
			PAIR_OK(fr_plugin_irecv(me->plugin, f->buf.comm, 1,
						&data, &bytes, &tag, &mh,
						&req));
		}
		PAIR_CHECK(req == NULL, "more than %u requests", LIMIT);
	}
}

static void drain_reversed(struct pair_member *me, struct flight *f)
{
	for (unsigned i = LIMIT; i-- > 0;) {
		int size = -1;
		int ret = pair_test_wait(me, f->req[i], 20000, &size);

		PAIR_CHECK(ret == 0, "request %u ended with %d", i, ret);
		flight_is_right(f, i, LONG, size);
	}
	f->done = f->posted;
}

static void run_full(struct pair_member *me)
{
	for (unsigned c = 0; c < COMMS; c++) {
		void *comm = me->index == 0 ? pair_connect(me, 1)
					    : pair_accept(me, 0);

		flight_open(me, comm, &flights[c]);
	}
	for (unsigned cnt = 1; cnt <= COMMS; cnt += COMMS - 1) {
		pair_at(me, "filling up");
		if (me->index == 0) {
			pair_hear(me, 1);
		}
		for (unsigned c = 0; c < cnt; c++) {
			unsigned taken = 0;

			while (taken < LIMIT) { /* the others' come first */
				taken += fill_up(me, &flights[c]);
				PAIR_CHECK(me->index == 0 || taken == LIMIT,
					   "%u receives were taken", taken);
			}
			is_full(me, &flights[c]);
		}
		if (me->index == 1) {
			pair_tell(me, 0);
		}
		pair_at(me, "draining");
		for (unsigned c = cnt; c-- > 0;) {
			drain_reversed(me, &flights[c]);
			flights[c].posted = 0;
			flights[c].done = 0;
		}
		pair_meet(me, !me->index);
	}
	for (unsigned c = 0; c < COMMS; c++) {
		void *comm = flights[c].buf.comm;

		pair_buf_close(me, &flights[c].buf);
		PAIR_OK(me->index == 0
				? fr_plugin_close_send(me->plugin, comm)
				: fr_plugin_close_recv(me->plugin, comm));
	}
}

/* 32 groups of 8, as many as the host program ever has, with no test. */
static void run_groups(struct pair_member *me)
{
	enum { GROUP = FR_PLUGIN_MAX_RECVS, GROUPS = LIMIT / GROUP };
	void *comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);
	struct flight f;

	flight_open(me, comm, &f);
	for (unsigned g = 0; g < GROUPS && me->index == 1; g++) {
		void *data[GROUP], *mh[GROUP];
		size_t bytes[GROUP];
		int tags[GROUP];

		for (unsigned i = 0; i < GROUP; i++) {
			data[i] = flight_mem(&f, g * GROUP + i);
			mh[i] = f.buf.mh;
			bytes[i] = LONG;
			tags[i] = (int)i;
		}
		PAIR_OK(fr_plugin_irecv(me->plugin, comm, GROUP, data, bytes,
					tags, mh, &f.req[g]));
		PAIR_CHECK(f.req[g] != NULL, "group %u was not taken", g);
	}
	pair_meet(me, !me->index);
	for (unsigned i = 0; i < LIMIT && me->index == 0; i++) {
		/* The last tag first, through all groups. */
		unsigned tag = GROUP - 1 - i / GROUPS;
		unsigned place = i % GROUPS * GROUP + tag;

		pair_fill(flight_mem(&f, place), LONG, place);
		while (f.req[i] == NULL) {
			PAIR_OK(fr_plugin_isend(me->plugin, comm,
						flight_mem(&f, place), LONG,
						(int)tag, f.buf.mh, &f.req[i]));
		}
	}
	for (unsigned i = me->index == 0 ? LIMIT : GROUPS; i-- > 0;) {
		int sizes[GROUP];

		PAIR_CHECK(pair_test_wait(me, f.req[i], 20000, sizes) == 0,
			   "request %u", i);
		for (unsigned k = 0; k < GROUP && me->index == 1; k++) {
			flight_is_right(&f, i * GROUP + k, LONG, sizes[k]);
		}
	}
	pair_meet(me, !me->index);
	pair_buf_close(me, &f.buf);
	PAIR_OK(me->index == 0 ? fr_plugin_close_send(me->plugin, comm)
			       : fr_plugin_close_recv(me->plugin, comm));
}

/* ---- a process that does not call ---- */

#define TALKERS 3u	/* members 1, 2, 3 */
#define TALKER_COMMS 8u /* each a link of its own */
#define EARLY_EACH 48u	/* early messages on a link, if there is room */
#define LARGE (4u << 20)
#define FEW 4u
#define SLEEP_MS 2000u

static void sleeper_env(unsigned i, const void *arg)
{
	(void)arg;
	setenv(i == 0 ? "OFI_NCCL_KEEPER" : "OFI_NCCL_ENDPOINT_PER_COMM",
	       i == 0 ? "0" : "1", 1);
}

/* A process that sleeps has taken none of them when the last one is sent. */
static unsigned early_each(const struct pair_member *me)
{
	unsigned room = pair_traits(me->pc->provider)->queue_max;

	return room == 0 ? EARLY_EACH : room / 2 / (TALKERS * TALKER_COMMS);
}

struct large {
	void *send, *recv;
	struct pair_buf out, in;
	void *sreq[FEW], *rreq[FEW];
};

/* Both sides write to each other when the sleeper falls asleep. */
static void large_begin(struct pair_member *me, unsigned with, struct large *l)
{
	pair_join(me, with, &l->send, &l->recv);
	pair_buf_open(me, l->send, LARGE, &l->out);
	pair_buf_open(me, l->recv, LARGE, &l->in);
	pair_fill(l->out.mem, LARGE, 17);
	for (unsigned i = 0; i < FEW; i++) {
		l->rreq[i] = pair_irecv_wait(me, &l->in, LARGE);
	}
	for (unsigned i = 0; i < FEW; i++) {
		l->sreq[i] = pair_isend_wait(me, &l->out, LARGE);
	}
}

static void large_end(struct pair_member *me, unsigned with, struct large *l)
{
	for (unsigned i = 0; i < FEW; i++) {
		PAIR_CHECK(pair_test_wait(me, l->rreq[i], 30000, NULL) == 0 &&
				   pair_test_wait(me, l->sreq[i], 30000,
						  NULL) == 0,
			   "a large message was lost");
	}
	PAIR_CHECK(pair_is_filled(l->in.mem, LARGE, 17), "a large message");
	pair_meet(me, with);
	pair_buf_close(me, &l->out);
	pair_buf_close(me, &l->in);
	PAIR_OK(fr_plugin_close_send(me->plugin, l->send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, l->recv));
}

static void run_talker(struct pair_member *me)
{
	static struct flight early[TALKER_COMMS];
	struct large large;

	for (unsigned c = 0; c < TALKER_COMMS; c++) {
		flight_open(me, pair_connect(me, 0), &early[c]);
	}
	large_begin(me, 0, &large);
	pair_tell(me, 0);
	pair_hear(me, 0); /* it is going to sleep now */
	for (unsigned c = 0; c < TALKER_COMMS; c++) {
		while (early[c].posted < early_each(me)) {
			(void)flight_isend(me, &early[c], EARLY);
		}
	}
	for (unsigned c = 0; c < TALKER_COMMS; c++) {
		for (unsigned i = 0; i < early_each(me); i++) {
			PAIR_CHECK(pair_test_wait(me, early[c].req[i], 30000,
						  NULL) == 0,
				   "an early message was lost");
		}
	}
	pair_tell(me, 0);
	large_end(me, 0, &large);
	pair_meet(me, 0);
	for (unsigned c = 0; c < TALKER_COMMS; c++) {
		void *comm = early[c].buf.comm;

		pair_buf_close(me, &early[c].buf);
		PAIR_OK(fr_plugin_close_send(me->plugin, comm));
	}
}

static void take_early(struct pair_member *me, struct flight *f)
{
	for (unsigned i = 0; i < early_each(me); i++) {
		PAIR_CHECK(flight_irecv(me, f, EARLY), "no receive is taken");
	}
	for (unsigned i = 0; i < early_each(me); i++) {
		int size = -1;

		PAIR_CHECK(pair_test_wait(me, f->req[i], 30000, &size) == 0,
			   "a receive was lost");
		flight_is_right(f, i, EARLY, size);
	}
}

static void run_sleeper(struct pair_member *me)
{
	static struct flight early[TALKERS + 1][TALKER_COMMS];
	static struct large large[TALKERS + 1];

	for (unsigned m = 1; m <= TALKERS; m++) {
		for (unsigned c = 0; c < TALKER_COMMS; c++) {
			flight_open(me, pair_accept(me, m), &early[m][c]);
		}
		large_begin(me, m, &large[m]);
		pair_hear(me, m);
	}
	pair_at(me, "asleep");
	for (unsigned m = 1; m <= TALKERS; m++) {
		pair_tell(me, m);
	}
	pair_nap_us(SLEEP_MS * 1000);
	pair_at(me, "awake");
	for (unsigned m = 1; m <= TALKERS; m++) {
		pair_hear(me, m); /* all of it was sent meanwhile */
	}
	for (unsigned m = 1; m <= TALKERS; m++) {
		for (unsigned c = 0; c < TALKER_COMMS; c++) {
			take_early(me, &early[m][c]);
		}
	}
	for (unsigned m = 1; m <= TALKERS; m++) {
		large_end(me, m, &large[m]);
		pair_meet(me, m);
	}
	for (unsigned m = 1; m <= TALKERS; m++) {
		for (unsigned c = 0; c < TALKER_COMMS; c++) {
			void *comm = early[m][c].buf.comm;

			pair_buf_close(me, &early[m][c].buf);
			PAIR_OK(fr_plugin_close_recv(me->plugin, comm));
		}
	}
}

static void run_asleep(struct pair_member *me)
{
	if (me->index == 0) {
		run_sleeper(me);
	} else {
		run_talker(me);
	}
}

static void run_provider(const char *provider, unsigned nth)
{
	struct pair_case pc = {
		.provider = provider,
		.rails = nth == 0 ? 3 : 2,
		.members = 2,
		.limit_s = 60,
	};

	pc.name = "numbers run over the end";
	pc.run = run_wrap;
	pair_run(&pc);
	pc.name = "as many requests as are taken";
	pc.run = run_full;
	pair_run(&pc);
	pc.name = "32 groups of 8";
	pc.run = run_groups;
	pair_run(&pc);
	pc.name = "a process that does not call";
	pc.run = run_asleep;
	pc.env = sleeper_env;
	pc.rails = 1;
	pc.members = TALKERS + 1;
	pair_run(&pc);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "full windows", 30);
	pair_all_providers(run_provider);
	return pair_end();
}
