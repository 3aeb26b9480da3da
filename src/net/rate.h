/*
 * How fast the paths of a link are, and so what share of a message each is to
 * have: weights for net/sched.h. Pure: is told of posts and arrivals, and what
 * time it is.
 *
 *   rate of a path = bytes that arrived / time in which some were under way
 *
 *   posts      |---a---|
 *                 |------b------|      queued behind a
 *                                  |--c--|
 *   busy       |================|  |=====|
 *
 * A path that others wait for is busy all the time, so its rate is the truth;
 * one that waits for others is busy in part, and its rate is what it could do.
 * An arrival that is late because of the peer is late on all paths.
 *
 * As long as the paths seem alike their weights are equal, whatever the noise:
 * where the paths share what limits them (a CPU, a bus), rates only mirror the
 * weights. For the same reason unequal weights lean towards equal ones a
 * little. A path without traffic of late asks for a probe.
 *
 * What is measured is looked at every few messages and in the owner's tick;
 * between, a post or an arrival costs a few additions. As long as all is well
 * it rests after a look until the next tick, and messages cost nothing.
 * Not locked: the owner's.
 */
#ifndef FR_NET_RATE_H
#define FR_NET_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

#define FR_RATE_MAX_PATHS 8u

struct fr_rate_path {
	uint64_t since_ns; /* while busy: the last arrival, or the first post */
	uint64_t bytes;	   /* that arrived since the last look */
	uint64_t busy_ns;  /* in which they did */
	uint64_t last_bytes; /* of the latest post */
	uint32_t flying;     /* posts that have not arrived */
	bool behind; /* the first of them waits for what nobody told of */

	double rate;	       /* bytes a nanosecond; 0: not known */
	double spread;	       /* by what part looks differ from it */
	bool rising;	       /* the last that was believed said twice */
	uint8_t falls;	       /* after it rose, far below the others still */
	int8_t strong;	       /* the last look said half (-1), or twice (1) */
	uint64_t strong_ns;    /* since when it says so */
	uint64_t used_ns;      /* the last look that found traffic */
	uint64_t probe_gap_ns; /* how long it may do without */
};

struct fr_rate {
	uint32_t left;	     /* arrivals until the next look */
	uint32_t look_after; /* messages from look to look */
	unsigned path_cnt;
	uint64_t arrived_ns; /* on any path */
	bool rests;	     /* no post is to be told; see fr_rate_wake() */
	bool even;	     /* the paths count as equally fast */
	uint8_t streak;	     /* looks in a row that found @even to be wrong */
	uint64_t streak_ns;  /* the first of them */
	struct fr_rate_path path[FR_RATE_MAX_PATHS];
};

/* What a look gives; @weight is never 0. */
struct fr_rate_shares {
	uint32_t weight[FR_RATE_MAX_PATHS];
	uint8_t probe; /* bit a path: measure it soon */
	bool turned;   /* even became uneven, or the other way */
};

void fr_rate_init(struct fr_rate *rate, unsigned path_cnt, uint64_t now_ns);

/* The path has nothing under way: the next post must know the time. */
static inline bool fr_rate_rests(const struct fr_rate *rate, unsigned path)
{
	return rate->path[path].flying == 0;
}

/* @now_ns: only looked at if the path rested. */
static inline void fr_rate_posted(struct fr_rate *rate, unsigned path,
				  uint64_t bytes, uint64_t now_ns)
{
	struct fr_rate_path *p = &rate->path[path];

	if (p->flying++ == 0) {
		p->since_ns = now_ns;
	}
	p->last_bytes = bytes;
}

/* @bytes: 0 for one that failed. Only of what was told as posted, and of that
 * also in a rest. True: look now. */
static inline bool fr_rate_arrived(struct fr_rate *rate, unsigned path,
				   uint64_t bytes, uint64_t now_ns)
{
	struct fr_rate_path *p = &rate->path[path];

	p->flying--;
	if (fr_unlikely(p->behind)) { /* from now on it is */
		p->behind = false;
		p->since_ns = now_ns;
		bytes = 0;
	}
	p->bytes += bytes;
	/* Passes harvest with one time; a post amid of one is later. */
	if (now_ns > p->since_ns) {
		p->busy_ns += now_ns - p->since_ns;
		p->since_ns = now_ns;
	}
	rate->arrived_ns = now_ns;
	return --rate->left == 0;
}

/* The rest is over. @busy: bit a path: posts that were not told are under way
 * there. */
void fr_rate_wake(struct fr_rate *rate, uint32_t busy);

/* Sums up what came since the last look. False: nothing did, and @out is not
 * written. It rests then, or does not. */
bool fr_rate_look(struct fr_rate *rate, uint64_t now_ns,
		  struct fr_rate_shares *out);

#endif
