#include "net/set.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/random.h"
#include "fabric/shm.h"
#include "net/comm.h"
#include "net/conn.h"
#include "net/fence.h"
#include "net/gpu.h"
#include "net/keeper.h"
#include "net/progress.h"
#include "net/reg.h"
#include "net/report.h"
#include "net/req.h"
#include "net/slot.h"

#define DRAIN_NS (1 * FR_NS_PER_S)
#define SETTLE_NS (50 * FR_NS_PER_MS)
#define KNOCK_TRIES 16u
#define FDS_PER_RAIL 16u /* more than any provider here takes */

static void set_close_rails(struct fr_set *set)
{
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		fr_rail_close(set->rail[i]);
		set->rail[i] = NULL;
	}
}

static int set_open_rails(struct fr_set *set)
{
	for (unsigned i = 0; i < set->dev->rail_cnt; i++) {
		struct fr_rail_attr attr = {
			.fabric = fr_core.fabric,
			.nic = set->dev->nic[i],
			.index = i,
			.cq_size = set->conf->cq_size,
			.cq_read_cnt = set->conf->cq_read_cnt,
			.local_completion =
				set->conf->completion == FR_COMPLETION_LOCAL,
			.has_tclass = set->tclass != FR_NET_TCLASS_UNSET,
			.tclass = (uint8_t)set->tclass,
			.set_id = set->id,
			.owner_warns = set->conf->failover,
			.ops = &fr_progress_ops,
			.owner = set,
		};
		int ret = fr_rail_open(&attr, &set->rail[i]);

		if (ret != 0) {
			set_close_rails(set);
			return ret;
		}
		set->rail_cnt = i + 1;
	}
	return 0;
}

static void knock_refused(void *arg, const struct fr_knock_refusal *refusal)
{
	fr_conn_refused(arg, refusal);
}

static void set_close_knocks(struct fr_set *set)
{
	for (unsigned i = 0; i < FR_MAX_RAILS; i++) {
		fr_knock_server_close(set->knock[i]);
		set->knock[i] = NULL;
		set->knock_port[i] = 0;
	}
}

/* Another rail of the same address answers for this one. */
static bool set_shares_knock(struct fr_set *set, unsigned i)
{
	for (unsigned j = 0; j < i; j++) {
		if (set->knock[j] != NULL &&
		    memcmp(fr_rail_nic(set->rail[i])->addr,
			   fr_rail_nic(set->rail[j])->addr, 16) == 0) {
			set->knock_port[i] = set->knock_port[j];
			return true;
		}
	}
	return false;
}

/* @port: of all rails, 0 for the first that is opened. */
static int set_try_knocks(struct fr_set *set)
{
	uint16_t port = 0;

	for (unsigned i = 0; i < set->rail_cnt; i++) {
		const struct fr_nic *nic = fr_rail_nic(set->rail[i]);
		struct fr_knock_addr addr = {.port = port};
		int ret;

		if (nic->prefix == 0 || set_shares_knock(set, i)) {
			continue;
		}
		memcpy(addr.addr, nic->addr, sizeof(addr.addr));
		ret = fr_knock_server_open(&addr, set->id, knock_refused, set,
					   &set->knock[i]);
		if (ret != 0) {
			return ret;
		}
		port = fr_knock_server_port(set->knock[i]);
		set->knock_port[i] = port;
	}
	return 0;
}

/*
 * One port number for all rails, since a handle has room for one only. A set
 * without knock ports works; its peers cannot ask whether we live.
 */
static void set_open_knocks(struct fr_set *set)
{
	int ret = -EADDRINUSE;

	for (unsigned i = 0; i < KNOCK_TRIES && ret == -EADDRINUSE; i++) {
		set_close_knocks(set);
		ret = set_try_knocks(set);
	}
	if (ret != 0) {
		set_close_knocks(set);
		fr_warn("device %s: no knock ports: %s; peers learn of our "
			"death later",
			set->dev->name, strerror(-ret));
	}
}

/* Before the rails, see shm.h: what they leave if this process dies is known by
 * this socket. */
static int set_open_file_knock(struct fr_set *set)
{
	struct fr_knock_addr addr = {.port = 1};
	int ret;

	fr_shm_path(set->id, FR_SHM_KNOCK, addr.path);
	ret = fr_knock_server_open(&addr, set->id, knock_refused, set,
				   &set->knock[0]);
	if (ret != 0) {
		fr_error("device %s: cannot open %s: %s", set->dev->name,
			 addr.path, strerror(-ret));
		return ret;
	}
	for (unsigned i = 0; i < FR_MAX_RAILS; i++) {
		set->knock_port[i] = addr.port;
	}
	return 0;
}

static int set_open_scratch(struct fr_set *set)
{
	set->scratch = fr_aligned_calloc(4096, 4096);
	if (set->scratch == NULL) {
		return -ENOMEM;
	}
	return fr_mr_get(set->mrs, set->scratch, FR_SCRATCH_BYTES,
			 FR_MR_REMOTE_WRITE, &set->scratch_mr);
}

/*
 * Registrations first, endpoints next, memory last: a provider with a thread of
 * its own may touch posted buffers until their endpoint is closed.
 */
static void set_close_parts(struct fr_set *set)
{
	bool abandoned =
		set->dead != 0 && set->quirks->fence == FR_FENCE_ABANDON;

	if (!set->quirks->named_files) {
		set_close_knocks(set);
	}
	if (abandoned) {
		fr_mr_cache_abandon(set->mrs);
	} else {
		fr_mr_cache_destroy(set->mrs);
	}
	set->mrs = NULL;
	if (!abandoned) {
		set_close_rails(set);
	}
	set_close_knocks(set);
	fr_links_free(set);
	fr_bounce_close(set);
	fr_gpu_free(set);
	fr_slots_destroy(set);
	fr_reqs_destroy(set);
	fr_free(set->scratch);
	fr_idpool_destroy(set->comm_ids);
	for (unsigned i = 0; i < FR_SET_COMM_PAGES; i++) {
		fr_free(set->comm_page[i]);
	}
}

static int set_open_parts(struct fr_set *set)
{
	int ret;

	ret = fr_idpool_create(set->conf->test.comm_ids, &set->comm_ids);
	if (ret != 0) {
		return ret;
	}
	ret = fr_mr_cache_create(set->rail, set->rail_cnt,
				 !set->conf->mr_cache_disable, &set->mrs);
	if (ret != 0) {
		return ret;
	}
	ret = set_open_scratch(set);
	if (ret != 0) {
		return ret;
	}
	ret = fr_slots_create(set);
	if (ret != 0) {
		return ret;
	}
	ret = fr_reqs_create(set);
	if (ret != 0) {
		return ret;
	}
	ret = fr_bounce_open(set);
	if (ret != 0) {
		return ret;
	}
	if (!set->quirks->named_files) {
		set_open_knocks(set);
	}
	return 0;
}

/* An EAGER must be copied when it is posted: its slot may go before the peer
 * has read it. With its header it is one message of the provider. */
static uint32_t eager_limit(const struct fr_set *set)
{
	const uint32_t hdr = FR_LINK_HDR_BYTES + FR_EAGER_HDR_BYTES;
	uint32_t copied = set->quirks->copied_max_bytes;
	uint64_t room =
		copied == 0 ? set->max_write : FR_MIN(copied, set->max_write);
	uint64_t max = set->conf->eager_max_bytes < 0
			       ? 0
			       : (uint64_t)set->conf->eager_max_bytes;

	return room <= hdr ? 0 : (uint32_t)FR_MIN(max, room - hdr);
}

static void set_init(struct fr_set *set, struct fr_device *dev, int tclass)
{
	size_t eager;

	fr_lock_init(&set->lock);
	set->dev = dev;
	set->tclass = tclass;
	set->conf = &fr_core.conf;
	set->quirks = fr_fabric_quirks(fr_core.fabric);
	set->imm_bytes = fr_fabric_cq_data_bytes(fr_core.fabric);
	set->max_write = fr_fabric_max_msg_bytes(fr_core.fabric);
	set->eager_max = eager_limit(set);
	eager = FR_LINK_HDR_BYTES + FR_EAGER_HDR_BYTES + set->eager_max;
	set->big_bytes = FR_MAX(eager, FR_CONN_MAX_BYTES);
	set->yield_after = set->conf->yield_after;
	set->max_reqs = set->conf->test.max_reqs;
	set->thread = pthread_self();
	set->private_set = set->conf->ep_per_comm;
	set->last_tick_ns = fr_now_ns();
	fr_list_init(&set->owing);
	fr_list_init(&set->replies);
	fr_list_init(&set->links);
	fr_list_init(&set->listeners);
	fr_list_init(&set->conns);
	fr_list_init(&set->zombies);
	fr_list_init(&set->orphans);
	fr_list_init(&set->strays);
	fr_list_init(&set->fences);
	for (unsigned i = 0; i < FR_MAX_RAILS; i++) {
		set->inc[i] = 1;
	}
	fr_list_init(&set->node);
}

/* A provider may call it an input or output error that there was no descriptor
 * left: what tells is how few there are. */
static void open_failed(const struct fr_device *dev, int err)
{
	char limit[96] = "";
	struct fr_files files;

	if (fr_files_look(&files) == 0 &&
	    files.left < (dev->rail_cnt + 1) * FDS_PER_RAIL) {
		snprintf(limit, sizeof(limit),
			 " (the limit of descriptors, ulimit -n, is %llu: "
			 "%llu are left)",
			 files.limit, files.left);
	}
	fr_error("device %s: cannot open its rails: %s%s", dev->name,
		 strerror(err), limit);
}

static int set_open(struct fr_device *dev, int tclass, struct fr_set **out)
{
	struct fr_set *set;
	int ret;

	set = fr_calloc(1, sizeof(*set));
	if (set == NULL) {
		return -ENOMEM;
	}
	set_init(set, dev, tclass);
	do {
		ret = fr_random(&set->id, sizeof(set->id));
	} while (ret == 0 && set->id == 0);
	if (ret != 0) {
		goto err_free;
	}
	ret = set->quirks->named_files ? set_open_file_knock(set) : 0;
	if (ret != 0) {
		goto err_free;
	}
	ret = set_open_rails(set);
	if (ret != 0) {
		goto err_close_knocks;
	}
	fr_lock_take(&set->lock);
	ret = set_open_parts(set);
	fr_lock_drop(&set->lock);
	if (ret != 0) {
		goto err_close;
	}
	*out = set;
	return 0;

err_close:
	set_close_parts(set);
err_close_knocks:
	set_close_knocks(set);
err_free:
	fr_lock_fini(&set->lock);
	fr_free(set);
	open_failed(dev, -ret);
	return ret;
}

static struct fr_set *set_find_locked(const struct fr_device *dev, int tclass)
{
	fr_list_for_each (pos, &fr_core.sets) {
		struct fr_set *set = FR_CONTAINER_OF(pos, struct fr_set, node);

		if (set->dev == dev && set->tclass == tclass &&
		    !set->private_set && set->dead == 0 &&
		    pthread_equal(set->thread, pthread_self())) {
			return set;
		}
	}
	return NULL;
}

/* Some hosts have a number of their own for one that is not set. */
static int set_sane_tclass_locked(int tclass)
{
	fr_lock_assert(&fr_core.lock);
	if (tclass >= 0 && tclass <= UINT8_MAX) {
		return tclass;
	}
	if (tclass != FR_NET_TCLASS_UNSET && tclass != INT_MIN &&
	    !fr_core.tclass_warned) {
		fr_core.tclass_warned = true;
		fr_warn("traffic class %d is not between 0 and 255; "
			"connections go on without one",
			tclass);
	}
	return FR_NET_TCLASS_UNSET;
}

int fr_set_get_locked(struct fr_device *dev, int tclass, struct fr_set **out)
{
	struct fr_set *set;
	int ret;

	fr_lock_assert(&fr_core.lock);
	tclass = set_sane_tclass_locked(tclass);
	set = set_find_locked(dev, tclass);
	if (set == NULL) {
		ret = set_open(dev, tclass, &set);
		if (ret != 0) {
			return ret;
		}
		ret = fr_core.conf.keeper ? fr_keeper_get() : 0;
		if (ret != 0) {
			fr_lock_drop(&fr_core.lock);
			fr_set_destroy(set);
			fr_lock_take(&fr_core.lock);
			return ret;
		}
		fr_core.objects++;
		fr_list_push(&fr_core.sets, &set->node);
	}
	set->users++;
	*out = set;
	return 0;
}

void fr_set_hold(struct fr_set *set)
{
	fr_lock_take(&fr_core.lock);
	set->users++;
	fr_lock_drop(&fr_core.lock);
}

static bool set_drained(struct fr_set *set)
{
	if (!fr_list_empty(&set->replies)) {
		return false;
	}
	fr_list_for_each (pos, &set->links) {
		const struct fr_link *link =
			FR_CONTAINER_OF(pos, struct fr_link, node);

		/* A peer that closes as well waits for our word. */
		if (!fr_link_drained(link) ||
		    (link->err == 0 && link->ack_owed != 0)) {
			return false;
		}
	}
	return true;
}

/* What we sent stays ours to repeat until the peers have it. */
static void set_drain(struct fr_set *set)
{
	uint64_t deadline = fr_now_ns() + DRAIN_NS;
	const struct timespec nap = {.tv_nsec = 20000};
	bool drained;

	do {
		fr_lock_take(&set->lock);
		set->closing = true;
		drained = set->dead != 0 || set_drained(set);
		if (!drained) {
			fr_progress_keeper_locked(set);
			drained = set_drained(set);
		}
		fr_lock_drop(&set->lock);
		if (!drained) {
			nanosleep(&nap, NULL);
		}
	} while (!drained && fr_now_ns() < deadline);
	if (!drained) {
		fr_info("device %s: closed before every peer acknowledged",
			set->dev->name);
	}
}

static bool set_posts_fly(const struct fr_set *set)
{
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		if (fr_rail_inflight(set->rail[i]) != 0) {
			return true;
		}
	}
	return false;
}

/* Our last words may be acknowledgements that nobody acknowledges, but which a
 * peer that closes as well waits for. A NIC that has not sent them yet must
 * find their memory registered. A provider may never complete what went to a
 * peer that is gone. */
static void set_settle(struct fr_set *set)
{
	uint64_t deadline = fr_now_ns() + SETTLE_NS;
	const struct timespec nap = {.tv_nsec = 20000};
	bool fly;

	do {
		fr_lock_take(&set->lock);
		fly = set->dead == 0 && set_posts_fly(set);
		if (fly) {
			fr_progress_keeper_locked(set);
			fly = set_posts_fly(set);
		}
		fr_lock_drop(&set->lock);
		if (fly) {
			nanosleep(&nap, NULL);
		}
	} while (fly && fr_now_ns() < deadline);
}

static void set_drop_links(struct fr_set *set)
{
	struct fr_comm *comm;
	uint32_t id = 0;

	while ((comm = fr_set_next_comm(set, &id)) != NULL) {
		while (!fr_list_empty(&comm->reqs)) {
			fr_req_release(FR_CONTAINER_OF(comm->reqs.next,
						       struct fr_req, node));
		}
		fr_reg_drop_all(comm);
		fr_comm_destroy_locked(comm);
	}
}

void fr_set_destroy(struct fr_set *set)
{
	fr_lock_take(&set->lock);
	fr_report_set(set);
	fr_listen_drop_all_locked(set);
	fr_reply_drop_all(set);
	set_drop_links(set);
	fr_links_close(set);
	set_close_parts(set);
	fr_lock_drop(&set->lock);
	fr_lock_fini(&set->lock);
	fr_free(set);
}

void fr_set_put(struct fr_set *set)
{
	bool last;

	fr_lock_take(&fr_core.lock);
	last = --set->users == 0;
	if (last) {
		fr_list_del(&set->node);
	}
	fr_lock_drop(&fr_core.lock);
	if (!last) {
		return;
	}
	set_drain(set);
	set_settle(set);
	fr_set_destroy(set);
	if (fr_core.conf.keeper) {
		fr_keeper_put();
	}
	fr_lock_take(&fr_core.lock);
	fr_core.objects--;
	fr_core_settle_locked();
	fr_lock_drop(&fr_core.lock);
}

/* Before the endpoints go, and behind closed knock ports, since an open one
 * would tell the peers that we live. */
static void set_give_up_links(struct fr_set *set, const char *why)
{
	fr_list_for_each_safe (pos, &set->links) {
		struct fr_link *link =
			FR_CONTAINER_OF(pos, struct fr_link, node);

		fr_link_give_up(link);
		fr_link_fail(link, -ECONNRESET, why);
	}
}

void fr_set_kill_locked(struct fr_set *set, const char *why)
{
	fr_lock_assert(&set->lock);
	if (set->dead != 0) {
		return;
	}
	fr_warn("device %s: endpoints fenced: %s; every comm of this set ends",
		set->dev->name, why);
	set_close_knocks(set);
	set_give_up_links(set, why);
	set->dead = -ECONNRESET;
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		if (set->quirks->fence == FR_FENCE_ABANDON) {
			fr_rail_abandon(set->rail[i]);
		} else {
			fr_rail_fence(set->rail[i]);
		}
	}
}

int fr_set_comm_add_locked(struct fr_set *set, struct fr_comm *comm,
			   uint32_t *out)
{
	int64_t id = fr_idpool_get(set->comm_ids);
	struct fr_comm ***page;

	if (id < 0) {
		fr_error("device %s: all %u comm ids are in use",
			 set->dev->name, set->conf->test.comm_ids);
		return -ENOSPC;
	}
	page = &set->comm_page[(uint32_t)id / FR_SET_COMM_PAGE];
	if (*page == NULL) {
		*page = fr_calloc(FR_SET_COMM_PAGE, sizeof(**page));
		if (*page == NULL) {
			fr_idpool_put(set->comm_ids, id);
			return -ENOMEM;
		}
	}
	(*page)[(uint32_t)id % FR_SET_COMM_PAGE] = comm;
	*out = (uint32_t)id;
	return 0;
}

void fr_set_comm_del_locked(struct fr_set *set, uint32_t id)
{
	set->comm_page[id / FR_SET_COMM_PAGE][id % FR_SET_COMM_PAGE] = NULL;
	fr_idpool_put(set->comm_ids, id);
}

static void describe_rail(const struct fr_set *set, unsigned i,
			  struct fr_conn_rail *out)
{
	const struct fr_nic *nic = fr_rail_nic(set->rail[i]);

	memcpy(out->subnet, nic->subnet, sizeof(out->subnet));
	out->prefix = nic->prefix;
	out->speed_mbps = nic->speed_mbps;
	snprintf(out->iface, sizeof(out->iface), "%.15s", nic->name);
	out->data = *fr_rail_name(set->rail[i], FR_EP_DATA);
	out->ctrl = *fr_rail_name(set->rail[i], FR_EP_CTRL);
	out->incarnation = set->inc[i];
	out->knock_port = set->knock_port[i];
	memcpy(out->knock_addr, nic->addr, sizeof(out->knock_addr));
}

void fr_set_describe(const struct fr_set *set, struct fr_conn_msg *msg)
{
	msg->version = FR_CONN_VERSION;
	msg->features = FR_FEAT_BLIND | FR_FEAT_GROUPS;
	if (fr_fence_is_possible(set)) {
		msg->features |= FR_FEAT_FENCE;
	}
	msg->prov = set->quirks->wire_id;
	msg->cq_data_bytes = (uint8_t)set->imm_bytes;
	msg->rail_cnt = set->rail_cnt;
	msg->set_id = set->id;
	msg->window = FR_LINK_WINDOW;
	msg->eager_max_bytes = set->eager_max;
	msg->scratch_addr = fr_mr_remote_addr(set->scratch_mr, set->scratch);
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		describe_rail(set, i, &msg->rails[i]);
		msg->scratch_key[i] = fr_mr_key(set->scratch_mr, i);
	}
}
