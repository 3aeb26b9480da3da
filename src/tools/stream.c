#include <errno.h>
#include <sched.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/util.h"
#include "tools/p2p_msg.h"

#define WHOLE_BYTES ((uint64_t)128 << 20)

/* One pass of messages in one direction. Invariant: done <= posted <= total,
 * posted - done <= window. */
struct pass {
	struct fr_p2p *p2p;
	uint64_t total, warmup; /* the clock starts when warmup are done */
	uint64_t posted, done;
	uint64_t start_ns, start_cpu_ns;
	void **request; /* one a slot of the window; stale when not in flight */
};

static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * FR_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static int post_some(struct pass *s, bool *moved)
{
	struct fr_p2p *p = s->p2p;
	void **request;
	int ret;

	while (s->posted < s->total && s->posted - s->done < p->window) {
		request = &s->request[s->posted % p->window];
		if (p->initiator) {
			fr_p2p_prepare(p, s->posted);
			ret = fr_p2p_post_send(p, s->posted, request);
		} else {
			fr_p2p_clear(p, s->posted);
			ret = fr_p2p_post_recv(p, s->posted, request);
		}
		if (ret != 0) {
			return ret;
		}
		if (*request == NULL) {
			break;
		}
		s->posted++;
		*moved = true;
	}
	return 0;
}

static void start_clock(struct pass *s)
{
	s->start_ns = fr_now_ns();
	s->start_cpu_ns = cpu_now_ns();
}

static int test_oldest(struct pass *s, bool *moved)
{
	struct fr_p2p *p = s->p2p;
	int done = 0, size = -1, ret;

	ret = fr_p2p_test(p->initiator ? p->to : p->from,
			  s->request[s->done % p->window], &done, &size);
	if (ret != 0 || done == 0) {
		return ret;
	}
	if (!p->initiator) {
		fr_p2p_inspect(p, s->done, size);
	}
	s->done++;
	*moved = true;
	if (s->done == s->warmup) {
		start_clock(s);
	}
	return 0;
}

static int run_pass(struct fr_p2p *p, uint64_t total, uint64_t warmup)
{
	struct pass s = {.p2p = p, .total = total, .warmup = warmup};
	int ret = 0;

	s.request = fr_calloc(p->window, sizeof(*s.request));
	if (s.request == NULL) {
		return -ENOMEM;
	}
	start_clock(&s);
	while (s.done < s.total && ret == 0) {
		bool moved = false;

		ret = post_some(&s, &moved);
		if (ret == 0 && s.done < s.posted) {
			ret = test_oldest(&s, &moved);
		}
		if (!moved) {
			(void)sched_yield();
		}
	}
	p->ns = fr_now_ns() - s.start_ns;
	p->cpu_ns = cpu_now_ns() - s.start_cpu_ns;
	fr_free(s.request);
	return ret;
}

/* Messages that are checked whole: over two turns of the window, but not more
 * than a moment's work. */
static uint64_t whole_cnt(const struct fr_p2p *p)
{
	uint64_t fit = WHOLE_BYTES / FR_MAX(p->recv_bytes, 1);

	return FR_MIN(FR_MAX(fit, 3), 2u * p->window + 3);
}

int fr_p2p_stream_wait(void *arg)
{
	struct fr_p2p *p = arg;
	int ret = 0;

	if (p->check) {
		p->whole = true;
		ret = run_pass(p, whole_cnt(p), 0);
		p->whole = false;
	}
	return ret != 0
		       ? ret
		       : run_pass(p, (uint64_t)p->warmup + p->iters, p->warmup);
}
