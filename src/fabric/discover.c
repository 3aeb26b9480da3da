#include "fabric/discover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/util.h"
#include "fabric/hmem.h"
#include "fabric/iface.h"
#include "fabric/nic.h"
#include "fabric/quirks.h"
#include "fabric/reasons.h"
#include "fabric/shm_priv.h"
#include "fabric/sysfs.h"
#include "fabric/topo.h"

#define DISCOVER_CAPS                                                          \
	(FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE)
#define DISCOVER_MR_MODE                                                       \
	(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |    \
	 FI_MR_ENDPOINT)

/* One search. */
struct discovery {
	const struct fr_conf *conf;
	struct fr_iface *ifaces; /* the chosen ones */
	unsigned iface_cnt;
	struct fr_topo *topo; /* NULL: unknown */
	struct fr_reasons reasons;
	struct fr_fabric *fabric; /* being filled */
};

/* FI_REMOTE_COMM and FI_LOCAL_COMM are not asked for: native tcp has no
 * FI_REMOTE_COMM on loopback and would silently give way to another provider.
 */
struct fi_info *fr_discover_hints(const struct fr_fi *fi,
				  const struct fr_conf *conf,
				  const struct fr_quirks *row)
{
	struct fi_info *hints = fi->dupinfo(NULL);

	if (hints == NULL) {
		return NULL;
	}
	/* libfabric frees this text with free(). */
	hints->fabric_attr->prov_name = strdup(row->name);
	if (hints->fabric_attr->prov_name == NULL) {
		fi->freeinfo(hints);
		return NULL;
	}
	hints->caps = DISCOVER_CAPS;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = DISCOVER_MR_MODE;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	if (conf->completion == FR_COMPLETION_DELIVERY) {
		hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	}
	return hints;
}

const char *fr_discover_refusal(const struct fi_info *info)
{
	if ((info->caps & DISCOVER_CAPS) != DISCOVER_CAPS) {
		return "lacks messages or remote writes";
	}
	if (info->mode != 0) {
		return "demands a mode that is not supported here";
	}
	if (info->domain_attr->cq_data_size < 4) {
		return "writes without 4 bytes of remote CQ data";
	}
	if (info->domain_attr->mr_key_size > 8) {
		return "memory keys longer than 8 bytes";
	}
	return NULL;
}

static bool info_is_of(const struct fi_info *info, const struct fr_quirks *row)
{
	return strcmp(info->fabric_attr->prov_name, row->name) == 0;
}

static int discover_add(struct discovery *d, const struct fi_info *info,
			const struct fr_iface *iface)
{
	struct fr_fabric *fabric = d->fabric;
	const char *why = fr_discover_refusal(info);
	struct fr_nic *grown;
	int ret;

	if (why != NULL) {
		return fr_reasons_add(&d->reasons, "provider %s on %s: %s",
				      info->fabric_attr->prov_name,
				      iface != NULL ? iface->name
						    : info->domain_attr->name,
				      why);
	}
	grown = fr_realloc(fabric->nic, (fabric->nic_cnt + 1) * sizeof(*grown));
	if (grown == NULL) {
		return -ENOMEM;
	}
	fabric->nic = grown;
	ret = fr_nic_init(&grown[fabric->nic_cnt], fabric->fi, info, iface,
			  d->topo);
	if (ret == 0) {
		fabric->nic_cnt++;
	}
	return ret;
}

/* Providers list an address several times; the first one serves. */
static const struct fi_info *discover_info_for(const struct fi_info *list,
					       const struct fr_quirks *row,
					       const struct fr_iface *iface)
{
	uint8_t addr[16];

	for (; list != NULL; list = list->next) {
		if (info_is_of(list, row) && fr_info_addr(list, addr) &&
		    memcmp(addr, iface->addr, sizeof(addr)) == 0) {
			return list;
		}
	}
	return NULL;
}

static int discover_ip(struct discovery *d, const struct fi_info *list,
		       const struct fr_quirks *row, bool fallback)
{
	const struct fi_info *info;
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < d->iface_cnt; i++) {
		if (d->ifaces[i].fallback != fallback) {
			continue;
		}
		info = discover_info_for(list, row, &d->ifaces[i]);
		if (info != NULL) {
			ret = discover_add(d, info, &d->ifaces[i]);
			continue;
		}
		ret = fr_reasons_add(&d->reasons,
				     "provider %s: offers nothing on %s",
				     row->name, d->ifaces[i].name);
	}
	return ret;
}

static bool discover_has(const struct fr_fabric *fabric,
			 const struct fi_info *info)
{
	for (unsigned i = 0; i < fabric->nic_cnt; i++) {
		if (strcmp(fr_nic_info(&fabric->nic[i])->domain_attr->name,
			   info->domain_attr->name) == 0) {
			return true;
		}
	}
	return false;
}

/* Domains that have no IP address are devices by themselves. */
static int discover_other(struct discovery *d, const struct fi_info *list,
			  const struct fr_quirks *row)
{
	uint8_t addr[16];
	int ret = 0;

	for (; ret == 0 && list != NULL; list = list->next) {
		if (info_is_of(list, row) && !fr_info_addr(list, addr) &&
		    !discover_has(d->fabric, list)) {
			ret = discover_add(d, list, NULL);
		}
	}
	return ret;
}

static bool list_has_ip(const struct fi_info *list, const struct fr_quirks *row)
{
	uint8_t addr[16];

	for (; list != NULL; list = list->next) {
		if (info_is_of(list, row) && fr_info_addr(list, addr)) {
			return true;
		}
	}
	return false;
}

static int discover_nics(struct discovery *d, const struct fi_info *list,
			 const struct fr_quirks *row)
{
	int ret;

	if (!list_has_ip(list, row)) {
		ret = discover_other(d, list, row);
	} else {
		ret = discover_ip(d, list, row, false);
		if (ret == 0 && d->fabric->nic_cnt == 0) {
			ret = discover_ip(d, list, row, true);
		}
	}
	if (ret == 0 && d->fabric->nic_cnt == 0) {
		ret = fr_reasons_add(&d->reasons,
				     "provider %s: no usable interface",
				     row->name);
	}
	return ret;
}

static int discover_silent(struct discovery *d, const struct fr_quirks *row,
			   int err)
{
	const char *filter = getenv("FI_PROVIDER");
	char room[256];

	if (row->named_files &&
	    !fr_shm_has_room(fr_shm_wanted(), room, sizeof(room))) {
		return fr_reasons_add(&d->reasons, "provider %s: %s", row->name,
				      room);
	}

	/* An empty one hides all of them. */
	if (filter != NULL) {
		return fr_reasons_add(
			&d->reasons,
			"provider %s: libfabric offers none (%s); "
			"FI_PROVIDER in the environment, \"%s\", "
			"may hide it",
			row->name, fr_fi_text(err), filter);
	}
	return fr_reasons_add(&d->reasons,
			      "provider %s: libfabric offers none (%s)",
			      row->name, fr_fi_text(err));
}

/* Fills the fabric's NICs if @row can serve. Return: 0, also when it cannot. */
static int discover_try(struct discovery *d, const struct fr_quirks *row)
{
	const struct fr_fi *fi = d->fabric->fi;
	const char *why = fr_quirks_refusal(row, fi->version());
	struct fi_info *hints, *list;
	int ret;

	if (why != NULL) {
		return fr_reasons_add(&d->reasons, "provider %s: %s", row->name,
				      why);
	}
	hints = fr_discover_hints(fi, d->conf, row);
	if (hints == NULL) {
		return -ENOMEM;
	}
	if (row->named_files) {
		fr_shm_tame();
	}
	ret = fr_fi_getinfo(fi, hints, &list);
	fi->freeinfo(hints);
	if (ret == -FI_ENOMEM) {
		return -ENOMEM;
	}
	if (ret != 0) {
		return discover_silent(d, row, ret);
	}
	ret = discover_nics(d, list, row);
	fi->freeinfo(list);
	d->fabric->quirks = row;
	return ret;
}

static int discover_provider(struct discovery *d)
{
	const char *user = d->conf->provider == NULL ? "" : d->conf->provider;
	const struct fr_quirks *row;
	bool known = false;
	int ret = 0;

	user = fr_quirks_name(user, d->fabric->fi->version());
	for (unsigned i = 0; ret == 0 && d->fabric->nic_cnt == 0 &&
			     (row = fr_quirks_row(i)) != NULL;
	     i++) {
		if (*user == '\0' ? row->by_default
				  : fr_quirks_matches(row, user)) {
			known = true;
			ret = discover_try(d, row);
		}
	}
	if (!known) {
		ret = fr_reasons_add(&d->reasons, "provider %s: %s", user,
				     fr_quirks_foreign_refusal(user));
	}
	return ret;
}

static int discover_ifaces(struct discovery *d)
{
	struct fr_iface_filter filter =
		fr_iface_filter_of(d->conf, getenv("NCCL_SOCKET_IFNAME"));
	unsigned cnt;
	int ret;

	ret = fr_iface_scan(&d->ifaces, &cnt);
	if (ret != 0) {
		return ret;
	}
	return fr_iface_select(d->ifaces, cnt, &filter, d->conf->use_ipv6,
			       &d->reasons, &d->iface_cnt);
}

/* A rail carries what the least of its set can: all of one provider. */
static void discover_limits(struct fr_fabric *fabric,
			    const struct fr_conf *conf)
{
	fabric->cq_data_bytes = 8;
	fabric->max_msg_bytes = UINT64_MAX;
	if (conf->test.max_write_bytes != 0) {
		fabric->max_msg_bytes = conf->test.max_write_bytes;
	}
	for (unsigned i = 0; i < fabric->nic_cnt; i++) {
		const struct fi_info *info = fr_nic_info(&fabric->nic[i]);

		if (info->domain_attr->cq_data_size < 8) {
			fabric->cq_data_bytes = 4;
		}
		fabric->max_msg_bytes = FR_MIN(fabric->max_msg_bytes,
					       info->ep_attr->max_msg_size);
	}
}

static void discover_describe(struct fr_fabric *fabric)
{
	snprintf(fabric->text, sizeof(fabric->text), "%s, libfabric %s",
		 fabric->quirks->name, fabric->fi->tostr("", FI_TYPE_VERSION));
}

static void discover_report(const struct discovery *d)
{
	const struct fr_fabric *fabric = d->fabric;

	fr_reasons_log(&d->reasons, FR_LOG_INFO, "not used");
	for (unsigned i = 0; i < d->iface_cnt; i++) {
		if (d->ifaces[i].fallback && !fabric->nic[0].loopback) {
			fr_info("not used: interface %s: loopback, only when "
				"named or nothing else is usable",
				d->ifaces[i].name);
		}
	}
	if (!fr_sysfs_is_there()) {
		fr_info("sysfs says nothing of network interfaces here: their "
			"speeds, PCI paths and NUMA nodes are unknown");
	}
	fr_info("provider %s, %u NICs; %s", fabric->text, fabric->nic_cnt,
		d->conf->provider == NULL || *d->conf->provider == '\0'
			? "OFI_NCCL_PROVIDER is not set, and it is the first "
			  "that serves"
			: "OFI_NCCL_PROVIDER asks for it");
	for (unsigned i = 0; i < fabric->nic_cnt; i++) {
		const struct fr_nic *nic = &fabric->nic[i];

		fr_info("NIC %u: %s %s, %u Mb/s%s, %s, NUMA node %d", i,
			nic->name, nic->addr_text, nic->speed_mbps,
			nic->speed_known ? "" : " (assumed)",
			nic->pci_path != NULL ? nic->pci_path : "virtual",
			nic->numa);
	}
	fr_nic_warn_subnets(fabric->nic, fabric->nic_cnt);
}

static int discover_run(struct discovery *d)
{
	int ret;

	ret = discover_ifaces(d);
	if (ret != 0) {
		return ret;
	}
	ret = fr_topo_open(&d->topo);
	if (ret != 0 && ret != -ENODATA) {
		return ret;
	}
	ret = discover_provider(d);
	if (ret != 0) {
		return ret;
	}
	if (d->fabric->nic_cnt == 0) {
		fr_reasons_log(&d->reasons, FR_LOG_ERROR, "no rail possible");
		return -ENOENT;
	}
	discover_describe(d->fabric);
	ret = fr_hmem_discover(d->fabric, d->conf);
	if (ret != 0) {
		return ret;
	}
	if (d->fabric->quirks->named_files) {
		fr_shm_sweep();
	}
	discover_limits(d->fabric, d->conf);
	discover_report(d);
	return 0;
}

int fr_fabric_open(const struct fr_conf *conf, struct fr_fabric **out)
{
	struct discovery d = {.conf = conf};
	const struct fr_fi *fi;
	int ret;

	ret = fr_fi_get(&fi);
	if (ret != 0) {
		return ret;
	}
	d.fabric = fr_calloc(1, sizeof(*d.fabric));
	if (d.fabric == NULL) {
		return -ENOMEM;
	}
	d.fabric->fi = fi;
	ret = discover_run(&d);
	fr_topo_close(d.topo);
	fr_reasons_clear(&d.reasons);
	fr_free(d.ifaces);
	if (ret != 0) {
		fr_fabric_close(d.fabric);
		return ret;
	}
	*out = d.fabric;
	return 0;
}

void fr_fabric_close(struct fr_fabric *fabric)
{
	if (fabric == NULL) {
		return;
	}
	for (unsigned i = 0; i < fabric->nic_cnt; i++) {
		fr_nic_fini(&fabric->nic[i], fabric->fi);
	}
	fr_free(fabric->nic);
	fr_free(fabric);
}

const struct fr_quirks *fr_fabric_quirks(const struct fr_fabric *fabric)
{
	return fabric->quirks;
}

unsigned fr_fabric_nic_cnt(const struct fr_fabric *fabric)
{
	return fabric->nic_cnt;
}

const struct fr_nic *fr_fabric_nic(const struct fr_fabric *fabric, unsigned i)
{
	return &fabric->nic[i];
}

const char *fr_fabric_text(const struct fr_fabric *fabric)
{
	return fabric->text;
}

const char *fr_fabric_gpu_why(const struct fr_fabric *fabric)
{
	return fabric->gpu_why;
}

unsigned fr_fabric_cq_data_bytes(const struct fr_fabric *fabric)
{
	return fabric->cq_data_bytes;
}

uint64_t fr_fabric_max_msg_bytes(const struct fr_fabric *fabric)
{
	return fabric->max_msg_bytes;
}
