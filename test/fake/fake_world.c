/* The controls of the fake fabric, its faults and its endpoints. */
#include "fake/fake_world.h"

#include "fake/fake_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_HASH_END_BYTES (4u << 20)

struct fake_world fake_world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void fake_clear_locked(void)
{
	struct fake_world *w = &fake_world;

	fr_fake_conf_default(&w->conf);
	memset(w->faults, 0, sizeof(w->faults));
	w->fault_cnt = 0;
	w->rng = 1;
	w->next_port = 20000;
	w->forced_port = 0;
	w->shuffle = false;
	w->unordered = false;
	w->snoop = NULL;
	w->snoop_arg = NULL;
	memset(&w->counts, 0, sizeof(w->counts));
}

void fake_lock(void)
{
	pthread_mutex_lock(&fake_world.lock);
	if (!fake_world.ready) {
		fr_list_init(&fake_world.rails);
		fr_list_init(&fake_world.eps);
		fake_clear_locked();
		fake_world.ready = true;
	}
}

void fake_unlock(void)
{
	pthread_mutex_unlock(&fake_world.lock);
}

void *fake_zalloc(size_t bytes)
{
	void *p = calloc(1, bytes);

	if (p == NULL) {
		abort(); /* the machine's memory, not the test's fault */
	}
	return p;
}

static uint64_t fake_hash_on(uint64_t h, const unsigned char *p, size_t bytes)
{
	uint64_t word;

	for (; bytes >= sizeof(word); bytes -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = (h ^ word) * 0x100000001b3ull;
		h ^= h >> 29;
		p += sizeof(word);
	}
	for (; bytes > 0; bytes--) {
		h = (h ^ *p++) * 0x100000001b3ull;
	}
	return h;
}

uint64_t fake_hash(const void *buf, size_t bytes)
{
	const unsigned char *p = fake_gpu_alias(buf);
	uint64_t h = 0xcbf29ce484222325ull;

	if (bytes <= 2 * FAKE_HASH_END_BYTES) {
		return fake_hash_on(h, p, bytes);
	}
	h = fake_hash_on(h, p, FAKE_HASH_END_BYTES);
	return fake_hash_on(h, p + bytes - FAKE_HASH_END_BYTES,
			    FAKE_HASH_END_BYTES);
}

uint32_t fake_random_locked(void)
{
	uint32_t x = fake_world.rng;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	fake_world.rng = x;
	return x;
}

uint32_t fake_random_below_locked(uint32_t n)
{
	return (uint32_t)(((uint64_t)fake_random_locked() * n) >> 32);
}

static bool fake_fault_matches(const struct fr_fake_fault *f,
			       enum fr_fake_call call,
			       const struct fr_rail *rail)
{
	if (f->call != call || f->cnt == 0) {
		return false;
	}
	if (rail == NULL) {
		return f->rails == 0 && f->owner == NULL;
	}
	if (f->rails != 0 && (f->rails & FR_BIT(rail->attr.index)) == 0) {
		return false;
	}
	return f->owner == NULL || f->owner == rail->attr.owner;
}

static int fake_fault_take_locked(enum fr_fake_call call,
				  const struct fr_rail *rail, bool *landed)
{
	for (unsigned i = 0; i < fake_world.fault_cnt; i++) {
		struct fr_fake_fault *f = &fake_world.faults[i];

		if (!fake_fault_matches(f, call, rail)) {
			continue;
		}
		if (f->skip > 0) {
			f->skip--;
			continue;
		}
		if (f->percent != 0 &&
		    fake_random_below_locked(100) >= f->percent) {
			continue;
		}
		if (f->cnt != FR_FAKE_FOREVER) {
			f->cnt--;
		}
		*landed = f->landed;
		return f->err;
	}
	return 0;
}

static void fake_count_call(struct fr_rail *rail, enum fr_fake_call call)
{
	fake_world.counts.calls[call]++;
	if (rail != NULL) {
		rail->counts.calls[call]++;
	}
}

int fake_again_locked(struct fr_rail *rail, enum fr_fake_call call)
{
	fake_world.counts.again[call]++;
	if (rail != NULL) {
		rail->counts.again[call]++;
		fr_stats_add(&rail->stats, FR_STAT_DEFERRED, 1);
	}
	return -EAGAIN;
}

void fake_check_owner_locked(struct fr_rail *rail, enum fr_fake_call call)
{
	if (!rail->polling) {
		return;
	}
	if (pthread_equal(rail->poller, pthread_self())) {
		if (call == FR_FAKE_POLL) {
			fake_violation_locked(rail, "polled from its poll");
		}
		return;
	}
	if (call != FR_FAKE_MR_REG || rail->conf.quirks.mr_excludes_poll) {
		fake_violation_locked(rail, "called beside its poll");
	}
}

void fake_check_alive_locked(struct fr_rail *rail)
{
	if (rail->abandoned) {
		fake_violation_locked(rail, "touched after abandon");
	} else if (rail->fenced) {
		fake_violation_locked(rail, "touched after the fence");
	}
}

int fake_call_locked(struct fr_rail *rail, enum fr_fake_call call)
{
	bool landed;
	int err;

	fake_count_call(rail, call);
	if (rail != NULL) {
		fake_check_owner_locked(rail, call);
	}
	err = fake_fault_take_locked(call, rail, &landed);
	return err == -EAGAIN ? fake_again_locked(rail, call) : err;
}

int fake_done_fault_locked(struct fr_rail *rail, enum fr_fake_call call,
			   bool *landed)
{
	int err = fake_fault_take_locked(call, rail, landed);

	if (err != 0) {
		fake_count_call(rail, call);
	}
	return err;
}

int fake_violation_locked(struct fr_rail *rail, const char *what)
{
	fake_world.counts.violations++;
	rail->counts.violations++;
	fprintf(stderr, "fake rail %u: %s\n", rail->attr.index, what);
	return -EINVAL;
}

static bool fake_name_equal(const struct fr_name *a, const struct fr_name *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

struct fake_ep *fake_ep_find_locked(const struct fr_name *name)
{
	fr_list_for_each (node, &fake_world.eps) {
		struct fake_ep *ep =
			FR_CONTAINER_OF(node, struct fake_ep, node);

		if (fake_name_equal(&ep->name, name)) {
			return ep;
		}
	}
	return NULL;
}

void fr_fake_set_conf(const struct fr_fake_conf *conf)
{
	fake_lock();
	fake_world.conf = *conf;
	fake_unlock();
}

unsigned fr_fake_reset(void)
{
	unsigned open = 0;

	fake_lock();
	fr_list_for_each_safe (node, &fake_world.rails) {
		struct fr_rail *rail =
			FR_CONTAINER_OF(node, struct fr_rail, node);

		if (rail->abandoned) {
			fake_rail_free_locked(rail);
			continue;
		}
		open++;
		fr_list_for_each (reg, &rail->regs) {
			open++;
		}
	}
	fake_clear_locked();
	fake_unlock();
	return open;
}

struct fr_rail *fr_fake_rail(unsigned i)
{
	struct fr_rail *found = NULL;

	fake_lock();
	fr_list_for_each (node, &fake_world.rails) {
		struct fr_rail *rail =
			FR_CONTAINER_OF(node, struct fr_rail, node);

		if (!rail->abandoned && i-- == 0) {
			found = rail;
			break;
		}
	}
	fake_unlock();
	return found;
}

unsigned fr_fake_rail_cnt(void)
{
	unsigned cnt = 0;

	while (fr_fake_rail(cnt) != NULL) {
		cnt++;
	}
	return cnt;
}

void fr_fake_fault(const struct fr_fake_fault *fault)
{
	struct fake_world *w = &fake_world;
	unsigned slot = 0;

	fake_lock();
	while (slot < w->fault_cnt && w->faults[slot].cnt != 0) {
		slot++;
	}
	if (slot == FR_ARRAY_LEN(w->faults)) {
		abort();
	}
	w->faults[slot] = *fault;
	w->fault_cnt = FR_MAX(w->fault_cnt, slot + 1);
	fake_unlock();
}

void fr_fake_fault_clear(void)
{
	fake_lock();
	fake_world.fault_cnt = 0;
	fake_unlock();
}

void fr_fake_seed(uint32_t seed)
{
	fake_lock();
	fake_world.rng = seed == 0 ? 1 : seed;
	fake_unlock();
}

void fr_fake_drop(const struct fr_name *name, unsigned cnt)
{
	struct fake_ep *ep;

	fake_lock();
	ep = fake_ep_find_locked(name);
	if (ep != NULL) {
		ep->drop_cnt = cnt;
	}
	fake_unlock();
}

void fr_fake_hold(const struct fr_name *name, bool on)
{
	struct fake_ep *ep;

	fake_lock();
	ep = fake_ep_find_locked(name);
	if (ep != NULL) {
		ep->held = on;
	}
	fake_unlock();
}

/* Connections to @ep, and, where it posts, those from its rail. */
static void fake_ep_cut_locked(struct fake_ep *ep)
{
	fr_list_for_each (node, &ep->conns) {
		fake_conn_cut_locked(
			FR_CONTAINER_OF(node, struct fake_conn, node),
			-ECANCELED);
	}
	if (ep != ep->rail->ctrl) {
		return;
	}
	fr_list_for_each (node, &fake_world.eps) {
		struct fake_ep *dst =
			FR_CONTAINER_OF(node, struct fake_ep, node);

		fr_list_for_each (pos, &dst->conns) {
			struct fake_conn *conn =
				FR_CONTAINER_OF(pos, struct fake_conn, node);

			if (conn->src == ep->rail) {
				fake_conn_cut_locked(conn, -ECANCELED);
			}
		}
	}
}

void fr_fake_break(const struct fr_name *name)
{
	struct fake_ep *ep;

	fake_lock();
	ep = fake_ep_find_locked(name);
	if (ep != NULL) {
		fake_ep_cut_locked(ep);
	}
	fake_unlock();
}

void fr_fake_kill(const struct fr_name *name)
{
	struct fake_ep *ep;

	fake_lock();
	ep = fake_ep_find_locked(name);
	if (ep != NULL) {
		ep->killed = true;
		fake_ep_cut_locked(ep);
	}
	fake_unlock();
}

void fr_fake_shuffle(bool on)
{
	fake_lock();
	fake_world.shuffle = on;
	fake_unlock();
}

void fr_fake_unordered(bool on)
{
	fake_lock();
	fake_world.unordered = on;
	fake_unlock();
}

void fr_fake_next_port(uint16_t port)
{
	fake_lock();
	fake_world.forced_port = port;
	fake_unlock();
}

void fr_fake_set_snoop(fr_fake_snoop_fn snoop, void *arg)
{
	fake_lock();
	fake_world.snoop = snoop;
	fake_world.snoop_arg = arg;
	fake_unlock();
}

void fr_fake_counts(const struct fr_rail *rail, struct fr_fake_counts *out)
{
	fake_lock();
	*out = rail == NULL ? fake_world.counts : rail->counts;
	fake_unlock();
}
