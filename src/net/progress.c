#include "net/progress.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/balance.h"
#include "net/conn.h"
#include "net/failover.h"
#include "net/fence.h"
#include "net/gpu.h"
#include "net/health.h"
#include "net/link.h"
#include "net/xfer.h"

static void remote_write(void *owner, struct fr_rail *rail, uint64_t imm,
			 size_t bytes)
{
	fr_recv_written(owner, rail, imm, bytes);
}

/* Whose write was cut nobody can say; if its sender is dead, a knock will. */
static void remote_error(void *owner, struct fr_rail *rail, int err)
{
	struct fr_set *set = owner;

	(void)err;
	fr_log_limited(&set->strange, FR_LOG_INFO,
		       "rail %u: an incoming write was cut: %s",
		       fr_rail_index(rail), fr_rail_error_text(rail));
}

const struct fr_rail_ops fr_progress_ops = {
	.remote_write = remote_write,
	.remote_error = remote_error,
};

static void tick_zombies(struct fr_set *set)
{
	fr_list_for_each_safe (pos, &set->zombies) {
		struct fr_comm *comm =
			FR_CONTAINER_OF(pos, struct fr_comm, node);

		if (comm->link->err != 0) {
			fr_comm_free_zombie(comm);
		}
	}
}

static FR_NOINLINE void set_tick(struct fr_set *set, uint64_t now)
{
	set->last_tick_ns = now;
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		if (set->knock[i] != NULL) {
			fr_knock_server_step(set->knock[i], now);
		}
		if (fr_unlikely(fr_rail_is_stuck(set->rail[i]))) {
			fr_health_ask_all(set);
		}
	}
	fr_cts_tick(set);
	if (set->gpu != NULL) {
		fr_gpu_tick(set);
	}
	fr_list_for_each_safe (pos, &set->links) {
		struct fr_link *link =
			FR_CONTAINER_OF(pos, struct fr_link, node);

		fr_link_tick(link, now);
		fr_failover_tick(link, now);
		fr_health_tick(link, now);
		fr_balance_tick(link, now);
	}
	fr_conn_tick_locked(set, now);
	tick_zombies(set);
	if (set->bounce_short) {
		fr_bounce_refill(set);
	}
}

/* Counting passes instead would leave the timers to how often the host program
 * polls, and to what arrives meanwhile. */
static void look_at_clock(struct fr_set *set)
{
	int64_t since = (int64_t)(fr_coarse_ns() - set->last_tick_ns);

	if (fr_unlikely(since >= (int64_t)FR_TICK_NS)) {
		set_tick(set, fr_now_ns());
	}
}

static FR_NOINLINE void set_flush(struct fr_set *set)
{
	if (fr_unlikely(!fr_list_empty(&set->fences))) {
		fr_fence_work(set, fr_now_ns());
	}
	/* First: of a rail that peers keep full we want little, and soon. */
	if (fr_gpu_owes(set)) {
		fr_gpu_post(set);
	}
	fr_list_for_each_safe (pos, &set->owing) {
		fr_link_flush(FR_CONTAINER_OF(pos, struct fr_link, owing));
	}
	if (!fr_list_empty(&set->replies)) {
		fr_conn_flush(set);
	}
}

/* Return: what the rails had. */
static unsigned set_poll(struct fr_set *set)
{
	unsigned events = 0;

	set->pass_ns = 0;
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		int ret = fr_rail_poll(set->rail[i]);

		if (fr_likely(ret >= 0)) {
			events += (unsigned)ret;
		} else {
			fr_set_kill_locked(set, "a completion queue broke");
			return events;
		}
	}
	return events;
}

/* Out of line: who counts instructions can tell these passes from others.
 * Return: the thread is to yield. */
static FR_NOINLINE bool pass_was_empty(struct fr_set *set)
{
	set->empty_passes++;
	return set->yield_after != 0 &&
	       set->empty_passes % set->yield_after == 0;
}

bool fr_progress_locked(struct fr_set *set)
{
	bool yield = false;
	unsigned events;

	fr_lock_assert(&set->lock);
	if (fr_unlikely(set->dead != 0)) {
		return true;
	}
	atomic_store_explicit(
		&set->passes,
		atomic_load_explicit(&set->passes, memory_order_relaxed) + 1,
		memory_order_relaxed);
	events = set_poll(set);
	if (fr_unlikely(set->dead != 0)) {
		return true;
	}
	if (events != 0) {
		set->empty_passes = 0;
	} else {
		yield = pass_was_empty(set);
	}
	look_at_clock(set);
	if (fr_unlikely(set->bounce_short)) {
		fr_bounce_refill(set);
	}
	if (fr_unlikely(set->dead != 0)) {
		return true;
	}
	if (!fr_list_empty(&set->owing) || !fr_list_empty(&set->replies) ||
	    !fr_list_empty(&set->fences) || fr_gpu_owes(set)) {
		set_flush(set);
	}
	return yield;
}

void fr_progress_keeper_locked(struct fr_set *set)
{
	fr_lock_assert(&set->lock);
	if (set->dead != 0) {
		return;
	}
	set_poll(set);
	if (set->dead != 0) {
		return;
	}
	look_at_clock(set);
	set_flush(set);
	/* Nobody may come by for long. */
	fr_list_for_each (pos, &set->links) {
		struct fr_link *link =
			FR_CONTAINER_OF(pos, struct fr_link, node);

		if (link->err == 0 && link->ack_owed != 0) {
			fr_link_ack(link);
		}
	}
}
