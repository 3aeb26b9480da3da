/*
 * What arrives is what was sent, where and in the order it was meant: mixed
 * sizes on one comm, receives longer than their sends, many comms.
 */
#include <stdlib.h>
#include <string.h>

#include "functional/pair.h"

/* ---- a long stream of mixed sizes ---- */

#define STREAM_MSGS 5000u
#define STREAM_WINDOW 32u
#define STREAM_MAX 300000u

static const size_t stream_sizes[] = {
	0, 1, 8, 127, 128, 2047, 2048, 2049, 8192, 8193, 65536, 131072, 299999,
};

/* Besides those by chance, an empty one goes through all the places. */
static size_t stream_size(unsigned i)
{
	uint64_t s = 0x9e3779b97f4a7c15u ^ (i * 0x12345u + 1);

	if (i % STREAM_WINDOW == i / STREAM_WINDOW % STREAM_WINDOW) {
		return 0;
	}
	pair_random(&s);
	return i % 50 == 49 ? stream_sizes[9 + i % 4]
			    : stream_sizes[pair_pick(&s, 9)];
}

/* Both know it: sometimes exact, sometimes a full slice. */
static size_t stream_posted(unsigned i)
{
	size_t size = stream_size(i);

	switch (i % 3) {
	case 0:
		return size;
	case 1:
		return STREAM_MAX + 20000;
	default:
		return size + i % 1000;
	}
}

struct window {
	struct pair_buf buf;
	void *req[STREAM_WINDOW];
	unsigned posted, done;
};

static uint8_t *window_slot(struct window *w, unsigned i)
{
	return w->buf.mem + (size_t)(i % STREAM_WINDOW) * (STREAM_MAX + 32768);
}

static void stream_send_step(struct pair_member *me, struct window *w,
			     void *comm)
{
	if (w->posted < STREAM_MSGS && w->posted - w->done < STREAM_WINDOW) {
		unsigned i = w->posted;
		void *req = (void *)0x1234; /* stale */

		pair_fill(window_slot(w, i), stream_size(i), i);
		PAIR_OK(stream_size(i) == 0 && i % 2 == 0
				? fr_plugin_isend(me->plugin, comm, NULL, 0, 5,
						  NULL, &req)
				: fr_plugin_isend(
					  me->plugin, comm, window_slot(w, i),
					  stream_size(i), 5, w->buf.mh, &req));
		if (req != NULL) {
			w->req[i % STREAM_WINDOW] = req;
			w->posted++;
		}
	}
	if (w->done != w->posted &&
	    pair_test(me, w->req[w->done % STREAM_WINDOW], NULL)) {
		w->done++;
	}
}

static void stream_recv_step(struct pair_member *me, struct window *w,
			     void *comm)
{
	int size = -1;
	if (w->posted < STREAM_MSGS && w->posted - w->done < STREAM_WINDOW) {
		unsigned i = w->posted;
		void *req = (void *)0x1; /* the hint */
		void *data = window_slot(w, i);
		size_t bytes = stream_posted(i);
		int tag = 5;

		memset(data, 0xee, bytes + 64);
		PAIR_OK(fr_plugin_irecv(me->plugin, comm, 1, &data, &bytes,
					&tag, &w->buf.mh, &req));
		if (req != NULL) {
			w->req[i % STREAM_WINDOW] = req;
			w->posted++;
		}
	}
	if (w->done == w->posted ||
	    !pair_test(me, w->req[w->done % STREAM_WINDOW], &size)) {
		return;
	}
	PAIR_CHECK((size_t)size == stream_size(w->done),
		   "message %u: size %d, not %zu", w->done, size,
		   stream_size(w->done));
	PAIR_CHECK(
		pair_is_filled(window_slot(w, w->done), (size_t)size, w->done),
		"message %u of %d bytes: wrong data", w->done, size);
	for (unsigned k = 0; k < 64; k++) {
		PAIR_CHECK(window_slot(w, w->done)[(size_t)size + k] == 0xee,
			   "message %u: byte %u past its end was written",
			   w->done, k);
	}
	w->done++;
}

static void run_stream(struct pair_member *me)
{
	struct window *w = calloc(1, sizeof(*w));
	uint64_t s = 77 + me->index;
	void *send, *recv, *comm;

	pair_join(me, !me->index, &send, &recv);
	comm = me->index == 0 ? send : recv;
	pair_buf_open(me, comm, (STREAM_MAX + 32768) * (size_t)STREAM_WINDOW,
		      &w->buf);
	pair_at(me, "streaming");
	while (w->done < STREAM_MSGS) {
		if (me->index == 0) {
			stream_send_step(me, w, comm);
		} else {
			stream_recv_step(me, w, comm);
		}
		/* Now one side is ahead, now the other. */
		if (pair_pick(&s, 2000) == 0) {
			pair_nap_us(3000);
		}
	}
	pair_meet(me, !me->index);
	pair_buf_close(me, &w->buf);
	PAIR_OK(fr_plugin_close_send(me->plugin, send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, recv));
	free(w);
}

/* ---- many comms ---- */

#define COMMS 256

static void run_comms(struct pair_member *me)
{
	static void *send[COMMS], *recv[COMMS];
	static struct pair_buf out[COMMS], in[COMMS];

	for (unsigned i = 0; i < COMMS; i++) {
		pair_join(me, !me->index, &send[i], &recv[i]);
		pair_buf_open(me, send[i], 20000, &out[i]);
		pair_buf_open(me, recv[i], 20000, &in[i]);
	}
	pair_at(me, "using 256 comms");
	for (unsigned round = 0; round < 3; round++) {
		size_t bytes = round == 0 ? 8 : round == 1 ? 5000 : 20000;
		static void *sreq[COMMS], *rreq[COMMS];

		for (unsigned i = 0; i < COMMS; i++) {
			rreq[i] = pair_irecv_wait(me, &in[i], bytes);
		}
		for (unsigned i = COMMS; i-- > 0;) {
			pair_fill(out[i].mem, bytes, i + round);
			sreq[i] = pair_isend_wait(me, &out[i], bytes);
		}
		for (unsigned i = 0; i < COMMS; i++) {
			PAIR_CHECK(pair_test_wait(me, rreq[i], 20000, NULL) ==
						   0 &&
					   pair_is_filled(in[i].mem, bytes,
							  i + round),
				   "comm %u round %u", i, round);
			PAIR_CHECK(pair_test_wait(me, sreq[i], 20000, NULL) ==
					   0,
				   "comm %u round %u: send", i, round);
		}
	}
	pair_meet(me, !me->index);
	for (unsigned i = 0; i < COMMS; i++) {
		pair_buf_close(me, &out[i]);
		pair_buf_close(me, &in[i]);
		PAIR_OK(fr_plugin_close_send(me->plugin, send[i]));
		PAIR_OK(fr_plugin_close_recv(me->plugin, recv[i]));
	}
}

static void run_provider(const char *provider, unsigned nth)
{
	struct pair_case pc = {
		.name = "mixed sizes",
		.provider = provider,
		.rails = 4,
		.members = 2,
		.limit_s = 60,
		.run = run_stream,
	};

	pair_run(&pc);
	if (nth == 0) {
		pc.rails = 1;
		pair_run(&pc);
	}
	pc.name = "256 comms";
	pc.run = run_comms;
	pc.rails = 2;
	pair_run(&pc);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "order and matching", 20);
	pair_all_providers(run_provider);
	return pair_end();
}
