#include "net/balance.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "net/failover.h"

/* Or rests. */
static void balance_measure(struct fr_link *link)
{
	const struct fr_conf *conf = link->set->conf;
	bool on = conf->rail_weights &&
		  conf->completion == FR_COMPLETION_DELIVERY &&
		  link->path_cnt > 1 && !link->rate.rests;

	link->sched.rotate = on;
	link->measure_from = on ? conf->min_stripe_bytes : UINT64_MAX;
}

void fr_balance_init(struct fr_link *link)
{
	const struct fr_conf *conf = link->set->conf;

	link->sched.small_bytes = conf->small_msg_bytes;
	link->sched.stripe_bytes = conf->min_stripe_bytes;
	link->sched.path_cnt = link->path_cnt;
	for (unsigned i = 0; i < link->path_cnt; i++) {
		link->weight[i] = 1;
	}
	fr_rate_init(&link->rate, link->path_cnt, fr_now_ns());
	balance_measure(link);
}

/* The shares in percent: "25 75". */
static void shares_text(const struct fr_link *link, char *text, size_t room)
{
	uint64_t total = 0;
	size_t len = 0;

	for (unsigned i = 0; i < link->path_cnt; i++) {
		total += link->weight[i];
	}
	text[0] = '\0';
	for (unsigned i = 0; i < link->path_cnt && len < room; i++) {
		uint64_t share = link->weight[i] * UINT64_C(100);
		int n = snprintf(
			text + len, room - len, "%s%llu", i == 0 ? "" : " ",
			(unsigned long long)((share + total / 2) / total));

		len += n > 0 ? (size_t)n : 0;
	}
}

static FR_NOINLINE void balance_say(struct fr_link *link)
{
	char shares[64];

	if (link->rate.even) {
		fr_log_limited(&link->balance_log, FR_LOG_INFO,
			       "link to %s: its rails are equally fast again",
			       link->peer_text);
		return;
	}
	shares_text(link, shares, sizeof(shares));
	fr_log_limited(&link->balance_log, FR_LOG_INFO,
		       "link to %s: its rails are not equally fast; their "
		       "shares are %s %%",
		       link->peer_text, shares);
}

FR_NOINLINE void fr_balance_look(struct fr_link *link, uint64_t now_ns)
{
	struct fr_rate_shares shares = {.turned = false};

	if (!fr_rate_look(&link->rate, now_ns, &shares)) {
		return;
	}
	balance_measure(link);
	link->sched.probe = shares.probe;
	if (!shares.turned && link->rate.even) {
		return;
	}
	memcpy(link->weight, shares.weight, sizeof(link->weight));
	fr_failover_weigh(link);
	if (fr_unlikely(shares.turned)) {
		balance_say(link);
	}
}

static void balance_wake(struct fr_link *link)
{
	uint32_t busy = 0;

	for (unsigned i = 0; i < link->path_cnt; i++) {
		busy |= link->path[i].flying != 0 ? FR_BIT(i) : 0;
	}
	fr_rate_wake(&link->rate, busy);
	balance_measure(link);
}

void fr_balance_tick(struct fr_link *link, uint64_t now_ns)
{
	if (link->err != 0) {
		return;
	}
	if (link->rate.rests) {
		balance_wake(link);
	} else {
		fr_balance_look(link, now_ns);
	}
}
