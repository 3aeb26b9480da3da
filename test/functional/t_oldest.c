/*
 * Only the oldest request of each comm is tested, as a host program does: 32
 * are outstanding on three comms with a peer that is killed, and as many with
 * one that is well. The dead peer's comms say so in bounded time, on that
 * request and on every later call; the other's go on as if nothing had been.
 */
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

#define MANY 32u
#define LARGE (192u << 10) /* striped */
#define SMALL 1000u
#define TAG 2
#define DEADLINE_MS 10000u
#define WELL 1
#define DYING 2
#define BEFORE_DEATH                                                           \
	3u /* of each that go that way, which its peer hears of                \
	    */

/* From member 0, which tests; LARGE_OUT, SMALL_OUT, LARGE_IN. */
enum way { LARGE_OUT, SMALL_OUT, LARGE_IN, WAYS };

struct line {
	enum way way;
	struct pair_buf buf;
	void *req[MANY];
	unsigned posted, done; /* of all rounds */
	bool failed;
};

static size_t bytes_of(const struct line *line)
{
	return line->way == SMALL_OUT ? SMALL : LARGE;
}

static bool is_out(const struct pair_member *me, const struct line *line)
{
	return (line->way != LARGE_IN) == (me->index == 0);
}

static uint8_t *mem_of(const struct line *line, unsigned i)
{
	return line->buf.mem + (i % MANY) * bytes_of(line);
}

static void lines_open(struct pair_member *me, unsigned with,
		       struct line *lines)
{
	for (unsigned w = 0; w < WAYS; w++) {
		struct line *line = &lines[w];
		void *comm;

		memset(line, 0, sizeof(*line));
		line->way = (enum way)w;
		comm = is_out(me, line) ? pair_connect(me, with)
					: pair_accept(me, with);
		pair_buf_open(me, comm, bytes_of(line) * MANY, &line->buf);
	}
}

static void lines_close(struct pair_member *me, struct line *lines)
{
	for (unsigned w = 0; w < WAYS; w++) {
		void *comm = lines[w].buf.comm;

		pair_buf_close(me, &lines[w].buf);
		PAIR_OK(is_out(me, &lines[w])
				? fr_plugin_close_send(me->plugin, comm)
				: fr_plugin_close_recv(me->plugin, comm));
	}
}

/* One more, where there is room. Return: the plugin's result. */
static int post(struct pair_member *me, struct line *line)
{
	void *data = mem_of(line, line->posted), *mh = line->buf.mh;
	size_t bytes = bytes_of(line);
	void *req = NULL;
	int ret, tag = TAG;

	if (line->posted - line->done == MANY) {
		return 0;
	}
	if (is_out(me, line)) {
		pair_fill(data, bytes, line->posted);
		ret = fr_plugin_isend(me->plugin, line->buf.comm, data, bytes,
				      tag, mh, &req);
	} else {
		ret = fr_plugin_irecv(me->plugin, line->buf.comm, 1, &data,
				      &bytes, &tag, &mh, &req);
	}
	if (req != NULL) {
		line->req[line->posted++ % MANY] = req;
	}
	return ret;
}

/* The oldest, and no other. Return: the plugin's result. */
static int test_oldest(struct pair_member *me, struct line *line)
{
	int ret, done = 0, size = -1;

	if (line->done == line->posted) {
		return 0;
	}
	ret = fr_plugin_test(me->plugin, line->req[line->done % MANY], &done,
			     &size);
	if (done != 0) {
		PAIR_CHECK(size == (int)bytes_of(line) &&
				   pair_is_filled(mem_of(line, line->done),
						  bytes_of(line), line->done),
			   "message %u is wrong", line->done);
		line->done++;
	}
	return ret;
}

/* Until each has had @cnt ends at least. */
static void serve(struct pair_member *me, struct line *lines, unsigned cnt)
{
	bool left = true;

	while (left) {
		left = false;
		for (unsigned w = 0; w < WAYS; w++) {
			if (lines[w].posted < cnt + MANY) {
				PAIR_OK(post(me, &lines[w]));
			}
			PAIR_OK(test_oldest(me, &lines[w]));
			left = left || lines[w].done < cnt;
		}
		pair_nap_us(20);
	}
}

/* -- the others -- */

static void run_dying(struct pair_member *me)
{
	struct line lines[WAYS];

	lines_open(me, 0, lines);
	serve(me, lines, BEFORE_DEATH);
	pair_tell(me, 0);
	pair_at(me, "dying");
	while (!pair_told(me, 0)) { /* MANY are outstanding there */
		for (unsigned w = 0; w < WAYS; w++) {
			if (is_out(me, &lines[w])) {
				PAIR_OK(test_oldest(me, &lines[w]));
			}
		}
	}
	pair_die();
}

static void run_well(struct pair_member *me)
{
	struct line lines[WAYS];

	lines_open(me, 0, lines);
	while (!pair_told(me, 0)) {
		for (unsigned w = 0; w < WAYS; w++) {
			PAIR_OK(post(me, &lines[w]));
			PAIR_OK(test_oldest(me, &lines[w]));
		}
		pair_nap_us(20);
	}
	pair_hear(me, 0);
	/* How far the other side has posted each: no further. */
	for (unsigned w = 0; w < WAYS; w++) {
		unsigned all;

		pair_get(me, 0, &all, sizeof(all));
		while (lines[w].done < all) {
			if (lines[w].posted < all) {
				PAIR_OK(post(me, &lines[w]));
			}
			PAIR_OK(test_oldest(me, &lines[w]));
		}
		PAIR_CHECK(lines[w].posted >= all, "way %u", w);
		pair_put(me, 0, &lines[w].posted, sizeof(lines[w].posted));
	}
	pair_meet(me, 0);
	lines_close(me, lines);
}

/* -- member 0 -- */

/* Until the request that is tested, or a new one, says so. */
static void await_death(struct pair_member *me, struct line *dead,
			struct line *well)
{
	uint64_t began = pair_now_ms(), worst = 0;
	unsigned left = WAYS;

	while (left != 0) {
		for (unsigned w = 0; w < WAYS; w++) {
			int ret = 0;

			PAIR_OK(post(me, &well[w]));
			PAIR_OK(test_oldest(me, &well[w]));
			if (dead[w].failed) {
				continue;
			}
			ret = test_oldest(me, &dead[w]);
			if (ret == 0 && dead[w].done == dead[w].posted) {
				ret = post(me, &dead[w]);
			}
			PAIR_CHECK(ret == 0 || ret == PAIR_REMOTE, "gave %s",
				   fr_plugin_result_text(ret));
			if (ret != 0) {
				dead[w].failed = true;
				left--;
				worst = pair_now_ms() - began;
			}
		}
		PAIR_CHECK(pair_now_ms() - began < pair_stretch(DEADLINE_MS),
			   "%u comms of the dead peer have no error", left);
	}
	pair_say("    the last comm knew after %llu ms",
		 (unsigned long long)worst);
}

/* Those behind the one that was tested, and whatever else is called. */
static void all_say_so(struct pair_member *me, struct line *line)
{
	void *req = (void *)0x1;

	for (unsigned i = line->done + 1; i < line->posted; i++) {
		int done = 0, size;
		int ret = fr_plugin_test(me->plugin, line->req[i % MANY], &done,
					 &size);

		/* What was done before is done. */
		PAIR_CHECK((ret == 0 && done != 0) || ret == PAIR_REMOTE,
			   "request %u gave %s", i, fr_plugin_result_text(ret));
	}
	line->posted = line->done;
	for (int i = 0; i < 3; i++) {
		PAIR_CHECK(post(me, line) == PAIR_REMOTE, "a later call");
	}
	if (line->way == LARGE_IN) {
		int none = 0;

		PAIR_CHECK(fr_plugin_iflush(me->plugin, line->buf.comm, 1,
					    (void **)&line->buf.mem, &none,
					    &line->buf.mh, &req) == PAIR_REMOTE,
			   "a later flush");
	}
}

static void run_tester(struct pair_member *me)
{
	static struct line well[WAYS], dead[WAYS];
	unsigned until;

	lines_open(me, WELL, well);
	lines_open(me, DYING, dead);
	serve(me, dead, BEFORE_DEATH);
	serve(me, well, MANY);
	pair_hear(me, DYING);
	for (unsigned w = 0; w < WAYS; w++) {
		/* Sends that are too long to go early wait for a receive. */
		for (int i = 0;
		     i < 1000 && dead[w].posted - dead[w].done != MANY; i++) {
			PAIR_OK(post(me, &dead[w]));
		}
	}
	pair_expect("is lost");
	pair_tell(me, DYING);
	pair_at(me, "waiting for the errors");
	await_death(me, dead, well);
	for (unsigned w = 0; w < WAYS; w++) {
		all_say_so(me, &dead[w]);
	}
	pair_at(me, "going on");
	until = well[0].done + MANY;
	while (well[0].done < until || well[1].done < until ||
	       well[2].done < until) {
		for (unsigned w = 0; w < WAYS; w++) {
			PAIR_OK(post(me, &well[w]));
			PAIR_OK(test_oldest(me, &well[w]));
		}
	}
	pair_at(me, "closing");
	pair_tell(me, WELL);
	for (unsigned w = 0; w < WAYS; w++) {
		unsigned theirs;

		pair_put(me, WELL, &well[w].posted, sizeof(well[w].posted));
		while (!pair_told(me, WELL)) {
			PAIR_OK(test_oldest(me, &well[w]));
		}
		pair_get(me, WELL, &theirs, sizeof(theirs));
		while (well[w].done < theirs) {
			if (well[w].posted < theirs) {
				PAIR_OK(post(me, &well[w]));
			}
			PAIR_OK(test_oldest(me, &well[w]));
		}
	}
	pair_meet(me, WELL);
	pair_expect("fenced");
	lines_close(me, dead);
	lines_close(me, well);
}

static void run(struct pair_member *me)
{
	static void (*const part[])(struct pair_member *
				    me) = {run_tester, run_well, run_dying};

	part[me->index](me);
}

static void run_provider(const char *provider, unsigned nth)
{
	struct pair_case pc = {
		.name = "the oldest of each",
		.provider = provider,
		.rails = nth == 0 ? 3 : 2,
		.members = 3,
		.limit_s = 60,
		.killed = FR_BIT(DYING),
		.run = run,
	};

	pair_run(&pc);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "tests of the oldest alone", 10);
	pair_each_provider(run_provider);
	return pair_end();
}
