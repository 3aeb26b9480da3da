#include "net/rate.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"

/* Messages from look to look, as long as something changes and later. */
#define LOOK_MIN 8u
#define LOOK_MAX 64u
/* Enough for a rest, and until the next one. */
#define LOOK_CALM 16u
/* By what part the mean may be above the slowest of equally fast paths, plus so
 * many times their spread; and how near it must be to count as equal again. */
#define EVEN_UNTIL 0.15
#define EVEN_UNTIL_SPREADS 3
#define EVEN_FROM 0.06
#define EVEN_FROM_SPREADS 1
#define UNEVEN_LOOKS 2u
/* Shorter than that a thread that did not run looks like a slow rail. */
#define UNEVEN_NS (250 * FR_NS_PER_MS)
#define STRONG_NS (80 * FR_NS_PER_MS)
#define SPREAD_AT_FIRST 0.125
#define EVEN_LOOKS 4u
/* How much unequal weights lean towards equal ones: the more, the less can be
 * trusted in what is measured. */
#define LEAN_MIN (1.0 / 64)
#define LEAN_SPREADS 0.5
#define WEIGHT_SUM 65536.0
/* Of the mean: from less than this a path would not find its way back. */
#define RATE_FLOOR (1.0 / 128)
/* A probe that takes long is repeated seldom. */
#define PROBE_GAP_MIN_NS (200 * FR_NS_PER_MS)
#define PROBE_GAP_MAX_NS (2 * FR_NS_PER_S)
#define PROBE_GAP_TIMES 16u
#define FALLS_MAX 2u

static uint32_t arrivals(const struct fr_rate *rate)
{
	return rate->look_after * rate->path_cnt;
}

void fr_rate_init(struct fr_rate *rate, unsigned path_cnt, uint64_t now_ns)
{
	assert(path_cnt >= 1 && path_cnt <= FR_RATE_MAX_PATHS);
	memset(rate, 0, sizeof(*rate));
	rate->path_cnt = path_cnt;
	rate->look_after = LOOK_MIN;
	rate->left = arrivals(rate);
	rate->even = true;
	for (unsigned i = 0; i < path_cnt; i++) {
		rate->path[i].used_ns = now_ns;
		rate->path[i].probe_gap_ns = PROBE_GAP_MIN_NS;
	}
}

void fr_rate_wake(struct fr_rate *rate, uint32_t busy)
{
	rate->rests = false;
	rate->left = arrivals(rate);
	for (unsigned i = 0; i < rate->path_cnt; i++) {
		struct fr_rate_path *path = &rate->path[i];

		path->bytes = 0;
		path->busy_ns = 0;
		path->behind = (busy & FR_BIT(i)) != 0;
	}
}

/* A shaper lets a probe pass at once, however slow it is: a path that rose by
 * such and fell again is probed less often. */
static void note_fall(struct fr_rate_path *path, int strong)
{
	if (strong < 0 && path->rising) {
		path->falls = (uint8_t)FR_MIN(path->falls + 1u, FALLS_MAX);
	}
	path->rising = strong > 0;
}

/*
 * One look may have met anything (a burst that a shaper let through, a thread
 * that did not run), so it counts in part, and as twice or half at most. A
 * second one that says the same is believed, of bad news even more: it costs
 * all paths. True: it said so much.
 */
static bool take_sample(struct fr_rate_path *path, double sample,
			uint64_t now_ns)
{
	double r = path->rate;
	int strong = (sample >= r * 2) - (sample <= r / 2);
	double off = FR_MIN(FR_MAX(sample, r / 2), r * 2) - r;
	double off_abs = off < 0 ? -off : off;

	if (r == 0) {
		path->rate = sample;
		path->spread = SPREAD_AT_FIRST;
		return true;
	}
	if (strong != path->strong) {
		path->strong_ns = now_ns;
	}
	if (strong != 0 && strong == path->strong) {
		path->rate += strong < 0 ? FR_MAX(sample, r / 4) - r : off;
		note_fall(path, strong);
	} else {
		path->rate += off / 4;
	}
	path->spread += (off_abs / r - path->spread) / 8;
	path->strong = (int8_t)strong;
	return strong != 0;
}

/* Nothing arrived, but others did meanwhile: it can be no faster than if it did
 * now. When all stand still that is the peer, or we. */
static bool take_delay(const struct fr_rate *rate, struct fr_rate_path *path,
		       uint64_t now_ns)
{
	double most;

	if (path->rate == 0 || rate->arrived_ns <= path->since_ns) {
		return false;
	}
	most = (double)path->last_bytes /
	       (double)(rate->arrived_ns - path->since_ns);
	return most <= path->rate / 2 && take_sample(path, most, now_ns);
}

/* True: the path is far from what was known. */
static bool look_at_path(const struct fr_rate *rate, struct fr_rate_path *path,
			 uint64_t now_ns)
{
	bool far = false;

	if (path->bytes != 0) {
		far = take_sample(
			path, (double)path->bytes / (double)(path->busy_ns + 1),
			now_ns);
		path->probe_gap_ns =
			FR_MIN(FR_MAX(path->busy_ns * PROBE_GAP_TIMES,
				      PROBE_GAP_MIN_NS << path->falls),
			       PROBE_GAP_MAX_NS);
		path->used_ns = now_ns;
	} else if (path->flying != 0) {
		far = take_delay(rate, path, now_ns);
		path->used_ns = now_ns;
	}
	path->bytes = 0;
	path->busy_ns = 0;
	return far;
}

/* The paths that were measured. */
struct summary {
	double mean; /* 0: none was */
	double slowest;
	double spread;
};

static struct summary sum_up(const struct fr_rate *rate)
{
	struct summary sum = {.mean = 0};
	unsigned known = 0;

	for (unsigned i = 0; i < rate->path_cnt; i++) {
		const struct fr_rate_path *path = &rate->path[i];

		if (path->rate != 0) {
			sum.slowest = known == 0
					      ? path->rate
					      : FR_MIN(sum.slowest, path->rate);
			sum.mean += path->rate;
			sum.spread += path->spread;
			known++;
		}
	}
	if (known != 0) {
		sum.mean /= known;
		sum.spread /= known;
	}
	return sum;
}

/* Far behind the others, and said to be so by more than one look. */
static bool is_far_behind(const struct fr_rate *rate, const struct summary *sum,
			  uint64_t now_ns)
{
	for (unsigned i = 0; i < rate->path_cnt; i++) {
		const struct fr_rate_path *path = &rate->path[i];

		if (path->rate == sum->slowest) {
			return path->strong < 0 &&
			       now_ns - path->strong_ns >= STRONG_NS;
		}
	}
	return false;
}

/* What is known now speaks against @even; one look may err. */
static bool is_wrong(const struct fr_rate *rate, const struct summary *sum)
{
	double above = sum->mean / sum->slowest - 1;

	return rate->even
		       ? above > EVEN_UNTIL + EVEN_UNTIL_SPREADS * sum->spread
		       : above < EVEN_FROM + EVEN_FROM_SPREADS * sum->spread;
}

static bool is_sure(const struct fr_rate *rate, const struct summary *sum,
		    uint64_t now_ns)
{
	if (!rate->even) {
		return rate->streak >= EVEN_LOOKS;
	}
	return (rate->streak >= UNEVEN_LOOKS &&
		now_ns - rate->streak_ns >= UNEVEN_NS) ||
	       is_far_behind(rate, sum, now_ns);
}

/* True: that changed. */
static bool judge(struct fr_rate *rate, const struct summary *sum,
		  uint64_t now_ns)
{
	if (!is_wrong(rate, sum)) {
		rate->streak = 0;
		return false;
	}
	if (rate->streak == 0) {
		rate->streak_ns = now_ns;
	}
	rate->streak = (uint8_t)FR_MIN(rate->streak + 1u, UINT8_MAX);
	if (!is_sure(rate, sum, now_ns)) {
		return false;
	}
	rate->even = !rate->even;
	rate->streak = 0;
	return true;
}

static void keep_findable(struct fr_rate_path *path, double mean)
{
	if (path->rate > mean / 2) {
		path->falls = 0;
	}
	if (path->rate != 0 && path->rate < mean * RATE_FLOOR) {
		path->rate = mean * RATE_FLOOR;
	}
}

static uint32_t weight_of(const struct fr_rate *rate, unsigned i,
			  const struct summary *sum)
{
	double lean = FR_MAX(LEAN_MIN, LEAN_SPREADS * sum->spread);
	double mean = sum->mean;
	double r = rate->path[i].rate;

	if (rate->even || r == 0) {
		r = mean;
	}
	r *= 1 + lean * (mean - r) / (mean + r);
	return (uint32_t)(r * WEIGHT_SUM / (mean * rate->path_cnt));
}

/* Nothing can be learnt of a path that is never used. */
static bool wants_probe(const struct fr_rate_path *path, uint64_t now_ns)
{
	return path->flying == 0 &&
	       now_ns - path->used_ns >= path->probe_gap_ns;
}

static bool has_news(const struct fr_rate *rate)
{
	for (unsigned i = 0; i < rate->path_cnt; i++) {
		if (rate->path[i].flying != 0 || rate->path[i].bytes != 0) {
			return true;
		}
	}
	return false;
}

/* Nothing is in doubt, as far as so many messages in so short a time tell. */
static bool is_calm(const struct fr_rate *rate, uint32_t messages, bool far)
{
	return rate->even && rate->streak == 0 && !far && messages >= LOOK_CALM;
}

bool fr_rate_look(struct fr_rate *rate, uint64_t now_ns,
		  struct fr_rate_shares *out)
{
	/* That have come since the last look, if they were all. */
	uint32_t messages = rate->left == 0 ? rate->look_after : 0;
	bool far = false;
	struct summary sum;

	rate->left = arrivals(rate);
	if (!has_news(rate)) {
		return false;
	}
	for (unsigned i = 0; i < rate->path_cnt; i++) {
		far |= look_at_path(rate, &rate->path[i], now_ns);
	}
	sum = sum_up(rate);
	if (sum.mean == 0) {
		return false;
	}
	rate->look_after =
		far ? LOOK_MIN : FR_MIN(rate->look_after * 2, LOOK_MAX);
	rate->left = arrivals(rate);
	out->turned = judge(rate, &sum, now_ns);
	out->probe = 0;
	for (unsigned i = 0; i < rate->path_cnt; i++) {
		keep_findable(&rate->path[i], sum.mean);
		out->weight[i] = weight_of(rate, i, &sum);
		if (wants_probe(&rate->path[i], now_ns)) {
			out->probe |= (uint8_t)FR_BIT(i);
		}
	}
	rate->rests = out->probe == 0 && is_calm(rate, messages, far);
	if (rate->rests) {
		rate->look_after = LOOK_CALM;
	}
	return true;
}
