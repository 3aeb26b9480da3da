#include <sched.h>

#include "base/clock.h"
#include "tools/p2p_msg.h"

#define WHOLE_ROUNDS 3u

/* Requests are posted until the plugin takes them: no other work is here. */
static int must_send(struct fr_p2p *p, uint64_t message, void **request)
{
	int ret;

	while ((ret = fr_p2p_post_send(p, message, request)) == 0 &&
	       *request == NULL) {
		(void)sched_yield();
	}
	return ret;
}

static int must_recv(struct fr_p2p *p, uint64_t message, void **request)
{
	int ret;

	fr_p2p_clear(p, message);
	while ((ret = fr_p2p_post_recv(p, message, request)) == 0 &&
	       *request == NULL) {
		(void)sched_yield();
	}
	return ret;
}

/* Both are polled, as a plugin may move a request in its own test alone. Either
 * may be NULL. @size: of the receive; @got_ns: when it was seen. */
static int finish(struct fr_p2p *p, void *send, void *recv, int *size,
		  uint64_t *got_ns)
{
	int done, ret = 0;

	while (ret == 0 && (send != NULL || recv != NULL)) {
		bool moved = false;

		if (send != NULL) {
			ret = fr_p2p_test(p->to, send, &done, NULL);
			if (ret == 0 && done != 0) {
				send = NULL;
				moved = true;
			}
		}
		if (recv != NULL && ret == 0) {
			ret = fr_p2p_test(p->from, recv, &done, size);
			if (ret == 0 && done != 0) {
				*got_ns = fr_now_ns();
				recv = NULL;
				moved = true;
			}
		}
		if (!moved) {
			(void)sched_yield();
		}
	}
	return ret;
}

/* Message @i as the initiator. @recv: the receive that is posted already;
 * afterwards that of the next message, if there are @more. */
static int round_first(struct fr_p2p *p, uint64_t i, bool more, void **recv,
		       uint64_t *ns)
{
	uint64_t start_ns, got_ns = 0;
	void *send = *recv; /* stale for the plugin */
	int size = -1, ret;

	fr_p2p_prepare(p, i);
	start_ns = fr_now_ns();
	ret = must_send(p, i, &send);
	if (ret == 0) {
		ret = finish(p, send, *recv, &size, &got_ns);
	}
	if (ret != 0) {
		return ret;
	}
	*ns = got_ns - start_ns;
	fr_p2p_inspect(p, i, size);
	return more ? must_recv(p, i + 1, recv) : 0;
}

static int round_second(struct fr_p2p *p, uint64_t i, bool more, void **recv,
			uint64_t *ns)
{
	void *send = *recv;
	int size = -1, ret;

	ret = finish(p, NULL, *recv, &size, ns);
	if (ret != 0) {
		return ret;
	}
	fr_p2p_inspect(p, i, size);
	if (more) { /* ahead of the answer, as the next message follows it */
		ret = must_recv(p, i + 1, recv);
	}
	fr_p2p_prepare(p, i);
	if (ret == 0) {
		ret = must_send(p, i, &send);
	}
	return ret != 0 ? ret : finish(p, send, NULL, NULL, ns);
}

/* @rounds of them; those from @warmup on leave their times in @p->half_ns. */
static int rounds(struct fr_p2p *p, uint64_t cnt, uint64_t warmup)
{
	void *recv = NULL;
	uint64_t ns = 0;
	int ret;

	ret = must_recv(p, 0, &recv);
	for (uint64_t i = 0; i < cnt && ret == 0; i++) {
		bool more = i + 1 < cnt;

		ret = p->initiator ? round_first(p, i, more, &recv, &ns)
				   : round_second(p, i, more, &recv, &ns);
		if (p->initiator && i >= warmup) {
			p->half_ns[i - warmup] = (double)ns / 2;
		}
	}
	return ret;
}

int fr_p2p_pingpong_wait(void *arg)
{
	struct fr_p2p *p = arg;
	int ret = 0;

	if (p->check) {
		p->whole = true;
		ret = rounds(p, WHOLE_ROUNDS, WHOLE_ROUNDS);
		p->whole = false;
	}
	return ret != 0 ? ret
			: rounds(p, (uint64_t)p->warmup + p->iters, p->warmup);
}
