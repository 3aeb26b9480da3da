#include "net/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/conn.h"
#include "net/core.h"
#include "net/keeper.h"
#include "net/set.h"
#include "wire/imm.h"

_Static_assert(FR_MAX_COMM_IDS == FR_IMM_COMM_CNT,
	       "every comm has an id of its own");
_Static_assert(FR_MAX_REQS == FR_NET_MAX_REQS, "the host counts on as many");

struct fr_core fr_core = {
	.lock = FR_LOCK_OWNED_INIT,
	.sets = {&fr_core.sets, &fr_core.sets},
	.connects = {&fr_core.connects, &fr_core.connects},
};

/* One a reference, so that a caller cannot drop somebody else's. */
struct fr_net {
	struct fr_core *core;
};

static int core_start_locked(void)
{
	int ret;

	ret = fr_param_load(fr_conf_table, FR_CONF_PREFIX, NULL, &fr_core.conf,
			    NULL);
	if (ret != 0) {
		return ret;
	}
	fr_param_check_names(fr_conf_table, FR_CONF_PREFIX, fr_conf_foreign,
			     NULL);
	fr_log_set_unlimited(fr_core.conf.test.log_all);
	if (fr_core.conf.test.fail_alloc != 0) {
		fr_fault_alloc_at(fr_core.conf.test.fail_alloc);
	}
	ret = fr_fabric_open(&fr_core.conf, &fr_core.fabric);
	if (ret != 0) {
		fr_param_unload(fr_conf_table, &fr_core.conf);
		memset(&fr_core.conf, 0, sizeof(fr_core.conf));
		return ret;
	}
	fr_core_make_devices_locked();
	/* No provider promises the order of bytes within a line that LL128
	 * lives on. */
	setenv("NCCL_PROTO", "^LL128", 0);
	fr_core.tclass_warned = false;
	fr_core.ending = false;
	fr_core.ready = true;
	return 0;
}

void fr_core_settle_locked(void)
{
	fr_lock_assert(&fr_core.lock);
	if (!fr_core.ready || fr_core.refs != 0 || fr_core.objects != 0) {
		return;
	}
	fr_core.ready = false;
	fr_core.dev_cnt = 0;
	fr_fabric_close(fr_core.fabric);
	fr_core.fabric = NULL;
	fr_param_unload(fr_conf_table, &fr_core.conf);
	memset(&fr_core.conf, 0, sizeof(fr_core.conf));
}

int fr_net_get(struct fr_net **out)
{
	struct fr_net *net = fr_malloc(sizeof(*net));
	int ret = 0;

	if (net == NULL) {
		return -ENOMEM;
	}
	net->core = &fr_core;
	fr_lock_take(&fr_core.lock);
	if (!fr_core.ready) {
		ret = core_start_locked();
	}
	if (ret == 0) {
		fr_core.refs++;
	}
	fr_lock_drop(&fr_core.lock);
	if (ret != 0) {
		fr_free(net);
		return ret;
	}
	*out = net;
	return 0;
}

void fr_net_put(struct fr_net *net)
{
	bool last;

	if (net == NULL) {
		return;
	}
	fr_lock_take(&net->core->lock);
	last = --net->core->refs == 0;
	fr_lock_drop(&net->core->lock);
	fr_free(net);
	if (last) {
		fr_conn_drop_all();
		fr_lock_take(&fr_core.lock);
		fr_core_settle_locked();
		fr_lock_drop(&fr_core.lock);
	}
}

/* Takes a set that nobody uses off the list; NULL when none is left. */
static struct fr_set *unload_next(void)
{
	struct fr_set *unused = NULL;

	fr_lock_take(&fr_core.lock);
	fr_list_for_each (pos, &fr_core.sets) {
		struct fr_set *set = FR_CONTAINER_OF(pos, struct fr_set, node);

		if (set->users == 0) {
			unused = set;
			fr_list_del(&set->node);
			break;
		}
	}
	fr_lock_drop(&fr_core.lock);
	return unused;
}

bool fr_net_fabric_is_there(void)
{
	return fr_fabric_is_there();
}

bool fr_net_halt(void)
{
	fr_keeper_halt();
	if (fr_lock_is_mine(&fr_core.lock)) {
		return false;
	}
	fr_lock_take(&fr_core.lock);
	fr_core.ending = true;
	fr_lock_drop(&fr_core.lock);
	return true;
}

void fr_net_unload(void)
{
	struct fr_set *set;

	fr_conn_drop_all();
	while ((set = unload_next()) != NULL) {
		fr_set_destroy(set);
		fr_lock_take(&fr_core.lock);
		fr_core.objects--;
		fr_lock_drop(&fr_core.lock);
	}
	fr_lock_take(&fr_core.lock);
	fr_core.refs = 0;
	fr_core_settle_locked();
	fr_lock_drop(&fr_core.lock);
}

uint64_t fr_net_connect_limit_ns(void)
{
	uint64_t ns;

	fr_lock_take(&fr_core.lock);
	ns = fr_core.conf.connect_timeout_ns;
	fr_lock_drop(&fr_core.lock);
	return ns;
}

unsigned fr_net_device_cnt(void)
{
	unsigned cnt;

	fr_lock_take(&fr_core.lock);
	cnt = fr_core.dev_cnt;
	fr_lock_drop(&fr_core.lock);
	return cnt;
}

/* Of the first rail that has one: a host may mix cards and virtual NICs. */
static const char *device_pci_path(const struct fr_device *device)
{
	const char *path = NULL;

	for (unsigned i = 0; path == NULL && i < device->rail_cnt; i++) {
		path = fr_fabric_nic(fr_core.fabric, device->nic[i])->pci_path;
	}
	return path;
}

/* A message can take any rail: what one cannot do the device cannot. */
static void device_gpu(const struct fr_device *device, struct fr_net_props *out)
{
	out->gpu = true;
	out->gpu_dmabuf = true;
	for (unsigned i = 0; i < device->rail_cnt; i++) {
		const struct fr_nic *nic =
			fr_fabric_nic(fr_core.fabric, device->nic[i]);

		out->gpu = out->gpu && nic->gpu;
		out->gpu_dmabuf = out->gpu_dmabuf && nic->gpu_dmabuf;
	}
}

/* A message goes in as many writes as it takes, where its immediate has room
 * for its length. */
static uint64_t core_max_msg_bytes(void)
{
	return fr_fabric_cq_data_bytes(fr_core.fabric) == 8
		       ? UINT64_MAX
		       : fr_fabric_max_msg_bytes(fr_core.fabric);
}

int fr_net_device_props(unsigned dev, struct fr_net_props *out)
{
	const struct fr_device *device;
	int ret = -EINVAL;

	fr_lock_take(&fr_core.lock);
	if (fr_core.ready && dev < fr_core.dev_cnt) {
		device = &fr_core.dev[dev];
		out->name = device->name;
		out->pci_path = device_pci_path(device);
		out->guid = fr_fabric_nic(fr_core.fabric, device->nic[0])->guid;
		out->speed_mbps = device->speed_mbps;
		out->max_comms = fr_core.conf.test.comm_ids;
		out->max_msg_bytes = core_max_msg_bytes();
		out->rail_cnt = device->rail_cnt;
		device_gpu(device, out);
		ret = 0;
	}
	fr_lock_drop(&fr_core.lock);
	return ret;
}
