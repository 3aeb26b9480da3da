/*
 * Sizes at the edges: messages of no bytes, whatever pointers come with them;
 * sends longer and shorter than their receives; sides with different limits for
 * early messages. No byte outside of a receive is written, and the memory that
 * is sent stays as it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

#define GUARD 65536u
#define MAX_BYTES (1u << 20)
#define CANARY 0xee
#define TAG 3
#define FOREIGN ((void *)0x10000) /* nothing is there */

/* A connection from member 0 to member 1, and memory with guards around it. */
struct line {
	void *comm;
	struct pair_buf buf;
	uint8_t *data; /* MAX_BYTES */
};

static void line_open(struct pair_member *me, struct line *line)
{
	line->comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);
	pair_buf_open(me, line->comm, MAX_BYTES + 2 * GUARD, &line->buf);
	line->data = line->buf.mem + GUARD;
	memset(line->buf.mem, CANARY, line->buf.bytes);
}

static void line_close(struct pair_member *me, struct line *line)
{
	pair_meet(me, !me->index);
	pair_buf_close(me, &line->buf);
	PAIR_OK(me->index == 0 ? fr_plugin_close_send(me->plugin, line->comm)
			       : fr_plugin_close_recv(me->plugin, line->comm));
}

static void *line_isend(struct pair_member *me, struct line *line, void *data,
			size_t bytes, int tag, void *mh)
{
	void *req = NULL;

	while (req == NULL) {
		PAIR_OK(fr_plugin_isend(me->plugin, line->comm, data, bytes,
					tag, mh, &req));
	}
	return req;
}

static void *line_irecv(struct pair_member *me, struct line *line, int cnt,
			void **data, size_t *bytes, void **mh)
{
	int tags[FR_PLUGIN_MAX_RECVS];
	void *req = NULL;

	for (int i = 0; i < cnt; i++) {
		tags[i] = TAG + i;
	}
	while (req == NULL) {
		PAIR_OK(fr_plugin_irecv(me->plugin, line->comm, cnt, data,
					bytes, tags, mh, &req));
	}
	return req;
}

static void ends_well(struct pair_member *me, void *req, int *sizes)
{
	int ret = pair_test_wait(me, req, 20000, sizes);

	PAIR_CHECK(ret == 0, "a request ended with %d", ret);
}

/* Only [0, @bytes) of the data differs from the canary. */
static void check_guards(const struct line *line, size_t bytes)
{
	PAIR_CHECK(pair_is_all(line->buf.mem, GUARD, CANARY),
		   "written before a receive");
	PAIR_CHECK(pair_is_all(line->data + bytes, MAX_BYTES - bytes + GUARD,
			       CANARY),
		   "written behind the %zu bytes of a receive", bytes);
}

/* ---- no bytes at all ---- */

struct nothing {
	const char *name;
	void *data;
	void *mh;
};

#define KINDS 5u

static void nothings(const struct line *line, struct nothing *kinds)
{
	const struct nothing all[KINDS] = {
		{"nothing", NULL, NULL},
		{"a foreign pointer", FOREIGN, NULL},
		{"a foreign pointer with a registration", FOREIGN,
		 line->buf.mh},
		{"the end of a registration", line->buf.mem + line->buf.bytes,
		 line->buf.mh},
		{"a pointer before a registration", line->buf.mem - 1,
		 line->buf.mh},
	};

	memcpy(kinds, all, sizeof(all));
}

/* Both in the same order; the receive comes first every other time. */
static void one_nothing(struct pair_member *me, struct line *line,
			const struct nothing *kind, bool recv_first)
{
	size_t bytes = 0;
	int size = 77;
	void *req;

	if (me->index == 0) {
		if (recv_first) {
			pair_hear(me, 1);
		}
		/* Without early messages it does not begin before the receive.
		 */
		PAIR_OK(fr_plugin_isend(me->plugin, line->comm, kind->data, 0,
					TAG, kind->mh, &req));
		if (!recv_first) {
			pair_tell(me, 1);
		}
		if (req == NULL) {
			req = line_isend(me, line, kind->data, 0, TAG,
					 kind->mh);
		}
	} else {
		void *data = kind->data, *mh = kind->mh;

		if (!recv_first) {
			pair_hear(me, 0);
		}
		req = line_irecv(me, line, 1, &data, &bytes, &mh);
		if (recv_first) {
			pair_tell(me, 0);
		}
	}
	ends_well(me, req, &size);
	PAIR_CHECK(size == 0, "%s: size %d", kind->name, size);
}

/* Parts of no bytes among others: bit i of @filled: part i has 100 bytes. */
static void one_group(struct pair_member *me, struct line *line,
		      unsigned filled)
{
	enum { CNT = FR_PLUGIN_MAX_RECVS };
	void *data[CNT], *mh[CNT], *req[CNT];
	size_t bytes[CNT];
	int sizes[CNT];

	for (unsigned i = 0; i < CNT; i++) {
		bool full = (filled & FR_BIT(i)) != 0;

		bytes[i] = full ? 100 : 0;
		data[i] = full ? line->data + (size_t)i * 100 : NULL;
		mh[i] = full ? line->buf.mh : NULL;
		sizes[i] = 77;
	}
	if (me->index == 1) {
		ends_well(me, line_irecv(me, line, CNT, data, bytes, mh),
			  sizes);
		for (unsigned i = 0; i < CNT; i++) {
			PAIR_CHECK(sizes[i] == (int)bytes[i],
				   "part %u of %#x: size %d", i, filled,
				   sizes[i]);
			PAIR_CHECK(pair_is_filled(data[i], bytes[i], i),
				   "part %u of %#x: wrong data", i, filled);
		}
		return;
	}
	for (unsigned k = 0; k < CNT; k++) {
		unsigned i = (k * 5 + 3) % CNT;

		pair_fill(data[i], bytes[i], i);
		req[i] = line_isend(me, line, data[i], bytes[i], TAG + (int)i,
				    mh[i]);
	}
	for (unsigned i = 0; i < CNT; i++) {
		ends_well(me, req[i], NULL);
	}
}

static void flush_nothing(struct pair_member *me, struct line *line)
{
	void *none[FR_PLUGIN_MAX_RECVS] = {NULL};
	void *away[FR_PLUGIN_MAX_RECVS];
	int sizes[FR_PLUGIN_MAX_RECVS] = {0};

	for (unsigned i = 0; i < FR_PLUGIN_MAX_RECVS; i++) {
		away[i] = FOREIGN;
	}
	for (int n = 1; n <= (int)FR_PLUGIN_MAX_RECVS; n++) {
		void *req = (void *)0x1234;

		PAIR_OK(fr_plugin_iflush(me->plugin, line->comm, n, none, sizes,
					 none, &req));
		if (req != NULL) {
			ends_well(me, req, NULL);
		}
		req = (void *)0x1234;
		PAIR_OK(fr_plugin_iflush(me->plugin, line->comm, n, away, sizes,
					 none, &req));
		if (req != NULL) {
			ends_well(me, req, NULL);
		}
	}
}

/* @sent bytes into a receive of all there is room for. */
static void one_short(struct pair_member *me, struct line *line, size_t sent)
{
	void *data = line->data, *mh = line->buf.mh;
	size_t bytes = MAX_BYTES;
	int size = 77;

	if (me->index == 0) {
		pair_fill(data, sent, 5);
		ends_well(me, line_isend(me, line, data, sent, TAG, mh), &size);
		PAIR_CHECK(pair_is_filled(data, sent, 5),
			   "the source was written to");
	} else {
		memset(data, CANARY, bytes);
		ends_well(me, line_irecv(me, line, 1, &data, &bytes, &mh),
			  &size);
		PAIR_CHECK(pair_is_filled(data, sent, 5), "wrong data");
		check_guards(line, sent);
	}
	PAIR_CHECK(size == (int)sent, "%zu bytes sent, size %d", sent, size);
}

static void run_nothing(struct pair_member *me)
{
	struct nothing kinds[KINDS];
	struct line line;

	line_open(me, &line);
	nothings(&line, kinds);
	for (unsigned s = 0; s < KINDS; s++) {
		for (unsigned r = 0; r < KINDS; r++) {
			const struct nothing *kind =
				&kinds[me->index == 0 ? s : r];

			pair_at(me, kind->name);
			one_nothing(me, &line, kind, (s + r) % 2 == 0);
			one_short(me, &line, s * 1000 + r);
		}
	}
	pair_at(me, "groups");
	memset(line.data, CANARY, MAX_BYTES);
	for (unsigned filled = 0; filled < 256; filled += 15) {
		one_group(me, &line, filled);
	}
	if (me->index == 1) {
		memset(line.data, CANARY, MAX_BYTES);
		check_guards(&line, 0);
		flush_nothing(me, &line);
	}
	line_close(me, &line);
}

/* ---- longer and shorter than the receive ---- */

struct long_case {
	size_t send, recv;
};

static const struct long_case long_cases[] = {
	{100, 8},
	{100, 0},
	{8192, 8191},
	{8192, 4096},
	{8192, 1},
	{8193, 8192},
	{8193, 0},
	{MAX_BYTES, 0},
	{MAX_BYTES, 1},
	{MAX_BYTES, 4095},
	{MAX_BYTES, 4096},
	{MAX_BYTES, 65536},
	{MAX_BYTES, 262144},
	{MAX_BYTES, 1048575},
};

/* How the two meet: the receive first, alone, or as the first of three, or as
 * the last beside large ones; or the send, where it may go early. */
enum meeting { RECV_FIRST, SEND_FIRST, GROUPED, GROUPED_LAST, MEETINGS };

#define GROUP 3

/* Which one of a group is the one that is too long. */
static int place_of(enum meeting meeting)
{
	return meeting == GROUPED_LAST ? GROUP - 1 : 0;
}

static int count_of(enum meeting meeting)
{
	return meeting == GROUPED || meeting == GROUPED_LAST ? GROUP : 1;
}

/* The size of each one beside it; they lie before the data. */
static size_t beside_of(enum meeting meeting)
{
	return meeting == GROUPED_LAST ? 20000 : 64;
}

static void await_error(struct pair_member *me, void *req)
{
	int ret = pair_test_wait(me, req, 10000, NULL);

	PAIR_CHECK(ret == FR_PLUGIN_INVALID_USAGE,
		   "a message too long for its receive gave %s",
		   ret < 0 ? "nothing for 10 s" : fr_plugin_result_text(ret));
}

/* The line that names both sizes; it came once more than before. */
static unsigned lines_of(const struct long_case *lc)
{
	char text[96];

	(void)snprintf(text, sizeof(text),
		       "has %zu bytes, its receive only %zu", lc->send,
		       lc->recv);
	return pair_logged(text);
}

static void check_beside(const struct line *line, enum meeting meeting)
{
	const size_t bytes = beside_of(meeting);

	for (int i = 0; i < count_of(meeting); i++) {
		uint8_t *mem = line->buf.mem + (size_t)i * bytes;

		if (i != place_of(meeting)) {
			PAIR_CHECK(pair_is_filled(mem, bytes, (unsigned)i),
				   "message %d beside it is wrong", i);
			memset(mem, CANARY, bytes);
		}
	}
}

static void long_recv(struct pair_member *me, const struct long_case *lc,
		      enum meeting meeting, struct line *line)
{
	unsigned lines = lines_of(lc);
	size_t bytes[GROUP];
	void *data[GROUP], *mh[GROUP], *req;

	for (int i = 0; i < GROUP; i++) {
		bytes[i] = beside_of(meeting);
		data[i] = line->buf.mem + (size_t)i * bytes[i];
		mh[i] = line->buf.mh;
	}
	bytes[place_of(meeting)] = lc->recv;
	data[place_of(meeting)] = line->data;
	if (meeting == SEND_FIRST) {
		pair_hear(me, 0);
	}
	req = line_irecv(me, line, count_of(meeting), data, bytes, mh);
	if (meeting != SEND_FIRST) {
		pair_tell(me, 0);
	}
	await_error(me, req);
	check_beside(line, meeting);
	check_guards(line, lc->recv);
	PAIR_CHECK(lines_of(lc) == lines + 1,
		   "%u lines at the receiver name both sizes",
		   lines_of(lc) - lines);
}

/* Those beside it in its group get theirs before. */
static void send_beside(struct pair_member *me, struct line *line,
			enum meeting meeting)
{
	const size_t bytes = beside_of(meeting);

	for (int i = 0; i < count_of(meeting); i++) {
		uint8_t *mem = line->buf.mem + (size_t)i * bytes;

		if (i != place_of(meeting)) {
			pair_fill(mem, bytes, (unsigned)i);
			ends_well(me,
				  line_isend(me, line, mem, bytes, TAG + i,
					     line->buf.mh),
				  NULL);
		}
	}
}

/* An error on this send, or on a later call. */
static void long_send(struct pair_member *me, const struct long_case *lc,
		      enum meeting meeting, struct line *line)
{
	uint64_t end = pair_now_ms() + pair_stretch(10) * 1000;
	unsigned lines = lines_of(lc);
	bool told = meeting != SEND_FIRST;
	size_t bytes = lc->send;
	int ret = 0;

	pair_fill(line->data, MAX_BYTES, 5);
	if (told) {
		pair_hear(me, 1);
	}
	send_beside(me, line, meeting);
	while (ret == 0 && pair_now_ms() < end) {
		void *req = NULL;

		ret = fr_plugin_isend(me->plugin, line->comm, line->data, bytes,
				      TAG + place_of(meeting), line->buf.mh,
				      &req);
		if (req == NULL) {
			continue;
		}
		bytes = 1;
		ret = pair_test_wait(me, req, 10000, NULL);
		if (!told) {
			pair_tell(me, 1);
			told = true;
		}
	}
	PAIR_CHECK(ret == FR_PLUGIN_INVALID_USAGE,
		   "a send of %zu into a receive of %zu gave %s", lc->send,
		   lc->recv, fr_plugin_result_text(ret));
	PAIR_CHECK(lines_of(lc) == lines + 1,
		   "%u lines at the sender name both sizes",
		   lines_of(lc) - lines);
	PAIR_CHECK(pair_is_filled(line->data, MAX_BYTES, 5),
		   "the source was written to");
}

static void one_long(struct pair_member *me, const struct long_case *lc,
		     enum meeting meeting)
{
	struct line line;

	line_open(me, &line);
	if (me->index == 0) {
		long_send(me, lc, meeting, &line);
	} else {
		long_recv(me, lc, meeting, &line);
	}
	line_close(me, &line);
}

static void run_long(struct pair_member *me)
{
	const size_t early = pair_traits(me->pc->provider)->early_max;
	struct line line;

	pair_expect("its receive only");
	line_open(me, &line);
	for (unsigned i = 0; i < FR_ARRAY_LEN(long_cases); i++) {
		for (unsigned m = 0; m < MEETINGS; m++) {
			if (m != SEND_FIRST || long_cases[i].send <= early) {
				one_long(me, &long_cases[i], (enum meeting)m);
			}
		}
	}
	/* The neighbour on the same link does not mind. */
	one_short(me, &line, 1);
	one_short(me, &line, MAX_BYTES);
	line_close(me, &line);
}

/* ---- limits that differ ---- */

struct limits {
	const char *name;
	const char *eager[2]; /* of the sender, of the receiver */
};

static void set_limits(unsigned i, const void *arg)
{
	const struct limits *limits = arg;

	setenv("OFI_NCCL_EAGER_MAX_SIZE", limits->eager[i], 1);
}

static void run_limits(struct pair_member *me)
{
	static const size_t sizes[] = {0,    1,	    99,	   100,	  101,
				       2047, 2048,  2049,  8191,  8192,
				       8193, 64511, 64512, 64513, 200000};
	struct line line;

	line_open(me, &line);
	for (unsigned i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		one_short(me, &line, sizes[i]);
	}
	for (unsigned i = 0; i < 64; i++) {
		one_short(me, &line, sizes[i % FR_ARRAY_LEN(sizes)]);
	}
	line_close(me, &line);
}

static void run_edges(struct pair_member *me)
{
	run_nothing(me);
	run_long(me);
}

static void run_provider(const char *provider, unsigned nth)
{
	static const struct limits limits[] = {
		{"no early messages at all", {"-1", "-1"}},
		{"the receiver takes none early", {"63K", "-1"}},
		{"the sender's limit is less", {"100", "63K"}},
	};
	struct pair_case pc = {
		.name = "empty, too long and short",
		.provider = provider,
		.members = 2,
		.limit_s = 60,
		.run = run_edges,
	};

	for (pc.rails = 1; pc.rails <= 4; pc.rails++) {
		if (nth == 0 || pc.rails == 3) {
			pair_run(&pc);
		}
	}
	pc.rails = 2;
	pc.env = set_limits;
	for (unsigned i = 0; i < (nth == 0 ? FR_ARRAY_LEN(limits) : 1); i++) {
		pc.name = limits[i].name;
		pc.arg = &limits[i];
		pc.run = i == 0 ? run_nothing : run_limits;
		pair_run(&pc);
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "sizes at the edges", 25);
	pair_all_providers(run_provider);
	return pair_end();
}
