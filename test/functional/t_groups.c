/*
 * Grouped receives: whatever order the sends come in, each meets the receive of
 * its tag, a group is done when all of it is there and not before, its sizes
 * are in its own order, and receives with equal tags are filled in the order in
 * which they were posted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "functional/pair.h"

/* ---- a long plan, in orders by chance ---- */

#define GROUPS 1000u
#define GROUPS_AHEAD 4u /* posted by the receiver */
#define GROUPS_OPEN 3u	/* that the sender picks from */
#define GROUP_MAX 8u
#define GROUP_MSG (1u << 20)

struct group {
	unsigned cnt;
	int tag[GROUP_MAX];
	size_t posted[GROUP_MAX];
	/* what the sender's order makes of it */
	size_t size[GROUP_MAX];
	unsigned number[GROUP_MAX]; /* of the message that it takes */
	bool taken[GROUP_MAX];
	unsigned left;
};

struct group_plan {
	struct group group[GROUPS];
	struct {
		unsigned group, index;
		int tag;
	} send[GROUPS * GROUP_MAX];
	unsigned send_cnt;
};

static const size_t group_sizes[] = {0, 1, 127, 8192, 8193};

/* Long ones are rare: they cost the test more than all others. */
static size_t plan_size(uint64_t *s)
{
	if (pair_pick(s, 200) == 0) {
		return GROUP_MSG;
	}
	return group_sizes[pair_pick(s, FR_ARRAY_LEN(group_sizes))];
}

static void plan_groups(struct group_plan *plan, uint64_t *s)
{
	for (unsigned g = 0; g < GROUPS; g++) {
		struct group *group = &plan->group[g];
		unsigned kind = pair_pick(s, 4);
		int first = (int)pair_pick(s, 8);

		group->cnt = kind == 0 ? 1 : kind == 1 ? 3 : GROUP_MAX;
		group->left = group->cnt;
		for (unsigned i = 0; i < group->cnt; i++) {
			group->tag[i] = (first + (int)i) % 8;
		}
	}
}

/* The rule: the oldest group that is open for the tag; groups of one take any
 * tag. */
static void plan_take(struct group_plan *plan, unsigned oldest, int tag,
		      uint64_t *s)
{
	for (unsigned g = oldest; g < GROUPS; g++) {
		struct group *group = &plan->group[g];

		for (unsigned i = 0; i < group->cnt; i++) {
			if (group->taken[i] ||
			    (group->cnt != 1 && group->tag[i] != tag)) {
				continue;
			}
			group->taken[i] = true;
			group->left--;
			group->size[i] = plan_size(s);
			group->posted[i] = pair_pick(s, 2) == 0 ? group->size[i]
								: GROUP_MSG;
			group->number[i] = plan->send_cnt;
			plan->send[plan->send_cnt].group = g;
			plan->send[plan->send_cnt].index = i;
			plan->send[plan->send_cnt++].tag = tag;
			return;
		}
	}
	PAIR_FAIL("the test's own plan has no receive for tag %d", tag);
}

static struct group_plan *plan_make(void)
{
	struct group_plan *plan = calloc(1, sizeof(*plan));
	uint64_t s = 4711;
	unsigned oldest = 0;

	plan_groups(plan, &s);
	while (oldest < GROUPS) {
		unsigned g = oldest + pair_pick(&s, GROUPS_OPEN);
		unsigned i;

		if (plan->group[oldest].left == 0) {
			oldest++;
			continue;
		}
		if (g >= GROUPS || plan->group[g].left == 0) {
			g = oldest;
		}
		do {
			i = pair_pick(&s, plan->group[g].cnt);
		} while (plan->group[g].taken[i]);
		plan_take(plan, oldest, plan->group[g].tag[i], &s);
	}
	return plan;
}

static void groups_send(struct pair_member *me, struct group_plan *plan,
			void *comm)
{
	enum { WINDOW = 16 };
	struct pair_buf buf;
	void *req[WINDOW];
	unsigned posted = 0, done = 0;
	uint64_t s = 5;

	pair_buf_open(me, comm, (size_t)GROUP_MSG * WINDOW, &buf);
	while (done < plan->send_cnt) {
		if (posted < plan->send_cnt && posted - done < WINDOW) {
			const struct group *group =
				&plan->group[plan->send[posted].group];
			size_t size = group->size[plan->send[posted].index];
			uint8_t *data =
				buf.mem + (size_t)GROUP_MSG * (posted % WINDOW);
			void *r = NULL;

			pair_fill(data, size, posted);
			PAIR_OK(fr_plugin_isend(me->plugin, comm, data, size,
						plan->send[posted].tag, buf.mh,
						&r));
			if (r != NULL) {
				req[posted++ % WINDOW] = r;
			}
		}
		if (done != posted && pair_test(me, req[done % WINDOW], NULL)) {
			done++;
		}
		if (pair_pick(&s, 500) == 0) {
			pair_nap_us(2000);
		}
	}
	pair_meet(me, 1);
	pair_buf_close(me, &buf);
}

static uint8_t *group_mem(const struct pair_buf *buf, unsigned g, unsigned i)
{
	return buf->mem +
	       (size_t)(GROUP_MSG + 128) * ((g % GROUPS_AHEAD) * GROUP_MAX + i);
}

static bool group_post(struct pair_member *me, void *comm,
		       const struct pair_buf *buf, const struct group *group,
		       unsigned g, void **req)
{
	void *data[GROUP_MAX], *mh[GROUP_MAX];
	size_t bytes[GROUP_MAX];

	for (unsigned i = 0; i < group->cnt; i++) {
		data[i] = group_mem(buf, g, i);
		bytes[i] = group->posted[i];
		mh[i] = buf->mh;
		/* What may be written, and a little more. */
		memset(data[i], 0xee, group->size[i] + 128);
	}
	*req = NULL;
	PAIR_OK(fr_plugin_irecv(me->plugin, comm, (int)group->cnt, data, bytes,
				group->tag, mh, req));
	return *req != NULL;
}

static void group_check(const struct pair_buf *buf, const struct group *group,
			unsigned g, const int *sizes)
{
	for (unsigned i = 0; i < group->cnt; i++) {
		const uint8_t *mem = group_mem(buf, g, i);

		PAIR_CHECK((size_t)sizes[i] == group->size[i],
			   "group %u part %u: size %d, not %zu", g, i, sizes[i],
			   group->size[i]);
		PAIR_CHECK(
			pair_is_filled(mem, group->size[i], group->number[i]),
			"group %u part %u: not message %u", g, i,
			group->number[i]);
		PAIR_CHECK(pair_is_all(mem + group->size[i], 128, 0xee),
			   "group %u part %u: written past its end", g, i);
	}
}

static void groups_recv(struct pair_member *me, struct group_plan *plan,
			void *comm)
{
	void *req[GROUPS_AHEAD];
	struct pair_buf buf;
	unsigned posted = 0, done = 0;
	uint64_t s = 6;

	pair_buf_open(me, comm,
		      (size_t)(GROUP_MSG + 128) * GROUPS_AHEAD * GROUP_MAX,
		      &buf);
	while (done < GROUPS) {
		int sizes[GROUP_MAX];

		if (posted < GROUPS && posted - done < GROUPS_AHEAD &&
		    group_post(me, comm, &buf, &plan->group[posted], posted,
			       &req[posted % GROUPS_AHEAD])) {
			posted++;
		}
		if (done != posted &&
		    pair_test(me, req[done % GROUPS_AHEAD], sizes)) {
			group_check(&buf, &plan->group[done], done, sizes);
			done++;
		}
		if (pair_pick(&s, 300) == 0) {
			pair_nap_us(3000);
		}
	}
	pair_meet(me, 0);
	pair_buf_close(me, &buf);
}

/* ---- plain cases ---- */

#define PART_BYTES 20000u /* room of each receive */

/* Receives: a row of tags each, ended by NO_TAG. Then the tags of the sends in
 * their order, and for each the receive and the part that must get it; the
 * sizes tell the sends apart. */
#define NO_TAG (-1)
#define PLAIN_RECVS 3u
#define PLAIN_SENDS 16u

struct plain {
	const char *name;
	int recv[PLAIN_RECVS][GROUP_MAX + 1];
	struct {
		int tag;
		unsigned recv, part;
	} send[PLAIN_SENDS];
	unsigned send_cnt;
};

/* clang-format off */
static const struct plain plains[] = {
	{"the second group is served first",
	 {{1, 2, NO_TAG}, {3, 4, NO_TAG}, {NO_TAG}},
	 {{3, 1, 0}, {4, 1, 1}, {2, 0, 1}, {1, 0, 0}}, 4},
	{"two groups of the same tags",
	 {{1, 2, NO_TAG}, {1, 2, NO_TAG}, {NO_TAG}},
	 {{2, 0, 1}, {2, 1, 1}, {1, 0, 0}, {1, 1, 0}}, 4},
	{"one tag all through a group",
	 {{5, 5, 5, NO_TAG}, {5, 5, NO_TAG}, {NO_TAG}},
	 {{5, 0, 0}, {5, 0, 1}, {5, 0, 2}, {5, 1, 0}, {5, 1, 1}}, 5},
	{"a tag that two groups share",
	 {{1, 9, NO_TAG}, {9, 2, NO_TAG}, {NO_TAG}},
	 {{9, 0, 1}, {2, 1, 1}, {9, 1, 0}, {1, 0, 0}}, 4},
	{"a single receive between groups",
	 {{1, 2, NO_TAG}, {7, NO_TAG}, {1, 2, NO_TAG}},
	 {{2, 0, 1}, {1, 0, 0}, {7, 1, 0}, {2, 2, 1}, {1, 2, 0}}, 5},
	{"negative tags and the largest",
	 {{-2, 0x7fffffff, NO_TAG}, {-0x7fffffff, 0, NO_TAG}, {NO_TAG}},
	 {{0, 1, 1}, {0x7fffffff, 0, 1}, {-0x7fffffff, 1, 0}, {-2, 0, 0}}, 4},
	{"groups of eight and of three",
	 {{0, 1, 2, 3, 4, 5, 6, 7, NO_TAG}, {7, 6, 5, NO_TAG}, {NO_TAG}},
	 {{7, 0, 7}, {7, 1, 0}, {5, 0, 5}, {5, 1, 2}, {6, 0, 6}, {6, 1, 1},
	  {0, 0, 0}, {4, 0, 4}, {2, 0, 2}, {1, 0, 1}, {3, 0, 3}}, 11},
};
/* clang-format on */

/* Early ones, some that need their receive, and striped ones. */
static size_t plain_size(unsigned send, unsigned round)
{
	return round == 0 ? 10 + send : round == 1 ? 9000 + send : 0;
}

static int tags_of(const int *row)
{
	int cnt = 0;

	while (row[cnt] != NO_TAG) {
		cnt++;
	}
	return cnt;
}

static void *plain_post(struct pair_member *me, const struct plain *plain,
			unsigned r, const struct pair_buf *buf)
{
	void *data[GROUP_MAX], *mh[GROUP_MAX], *req = NULL;
	size_t bytes[GROUP_MAX];
	int cnt = tags_of(plain->recv[r]);

	for (int i = 0; i < cnt; i++) {
		data[i] = buf->mem +
			  (size_t)(r * GROUP_MAX + (unsigned)i) * PART_BYTES;
		mh[i] = buf->mh;
		bytes[i] = PART_BYTES;
	}
	while (cnt != 0 && req == NULL) {
		PAIR_OK(fr_plugin_irecv(me->plugin, buf->comm, cnt, data, bytes,
					plain->recv[r], mh, &req));
	}
	return req;
}

/* Every send has gone but the last one for @r: it must not be done. */
static void plain_recv(struct pair_member *me, const struct plain *plain,
		       const struct pair_buf *buf, unsigned round)
{
	void *req[PLAIN_RECVS];
	int sizes[PLAIN_RECVS][GROUP_MAX];
	unsigned left[PLAIN_RECVS] = {0};

	for (unsigned r = 0; r < PLAIN_RECVS; r++) {
		req[r] = plain_post(me, plain, r, buf);
		left[r] = (unsigned)tags_of(plain->recv[r]);
	}
	pair_tell(me, 0);
	for (unsigned k = 0; k < plain->send_cnt; k++) {
		unsigned r = plain->send[k].recv;

		/* The k-th send is out, and at its receiver when it is done. */
		pair_tell(me, 0);
		pair_hear(me, 0);
		if (--left[r] == 0) {
			int ret = pair_test_wait(me, req[r], 20000, sizes[r]);

			PAIR_CHECK(ret == 0, "a receive ended with %d", ret);
			req[r] = NULL;
		}
		for (unsigned i = 0; i < PLAIN_RECVS; i++) {
			PAIR_CHECK(req[i] == NULL ||
					   !pair_test(me, req[i], sizes[i]),
				   "%s: receive %u is done too early",
				   plain->name, i);
		}
	}
	for (unsigned k = 0; k < plain->send_cnt; k++) {
		unsigned r = plain->send[k].recv, part = plain->send[k].part;
		size_t size = plain_size(k, round);

		PAIR_CHECK(sizes[r][part] == (int)size &&
				   pair_is_filled(
					   buf->mem + (size_t)(r * GROUP_MAX +
							       part) *
							      PART_BYTES,
					   size, k),
			   "%s: receive %u part %u did not get send %u",
			   plain->name, r, part, k);
	}
}

static void plain_send(struct pair_member *me, const struct plain *plain,
		       const struct pair_buf *buf, unsigned round)
{
	pair_hear(me, 1);
	for (unsigned k = 0; k < plain->send_cnt; k++) {
		size_t size = plain_size(k, round);
		void *req = NULL;
		int ret;

		pair_hear(me, 1);
		pair_fill(buf->mem, size, k);
		while (req == NULL) {
			PAIR_OK(fr_plugin_isend(me->plugin, buf->comm, buf->mem,
						size, plain->send[k].tag,
						buf->mh, &req));
		}
		ret = pair_test_wait(me, req, 20000, NULL);
		PAIR_CHECK(ret == 0, "a send ended with %d", ret);
		pair_tell(me, 1);
	}
}

static void run_plain(struct pair_member *me, void *comm)
{
	struct pair_buf buf;

	pair_buf_open(me, comm, (size_t)PART_BYTES * PLAIN_RECVS * GROUP_MAX,
		      &buf);
	for (unsigned i = 0; i < FR_ARRAY_LEN(plains); i++) {
		for (unsigned round = 0; round < 3; round++) {
			pair_at(me, plains[i].name);
			if (me->index == 0) {
				plain_send(me, &plains[i], &buf, round);
			} else {
				plain_recv(me, &plains[i], &buf, round);
			}
		}
	}
	pair_meet(me, !me->index);
	pair_buf_close(me, &buf);
}

static void run_groups(struct pair_member *me)
{
	struct group_plan *plan = plan_make();
	void *comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);

	run_plain(me, comm);
	pair_at(me, "a long plan");
	if (me->index == 0) {
		groups_send(me, plan, comm);
		PAIR_OK(fr_plugin_close_send(me->plugin, comm));
	} else {
		groups_recv(me, plan, comm);
		PAIR_OK(fr_plugin_close_recv(me->plugin, comm));
	}
	free(plan);
}

/* Some 500 orders of groups of eight each time, 2,000 on the first one. */
static void run_provider(const char *provider, unsigned nth)
{
	struct pair_case pc = {
		.name = "grouped receives",
		.provider = provider,
		.members = 2,
		.limit_s = 60,
		.run = run_groups,
	};

	for (pc.rails = 1; pc.rails <= 4; pc.rails++) {
		if (nth == 0 || pc.rails == 2) {
			pair_run(&pc);
		}
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "grouped receives", 20);
	pair_each_provider(run_provider);
	return pair_end();
}
