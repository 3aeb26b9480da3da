#include "fabric/nic.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "fabric/route.h"
#include "fabric/sysfs.h"

#define SPEED_GUESS_MBPS 10000u
#define BITS_PER_MBIT 1000000u

bool fr_info_addr(const struct fi_info *info, uint8_t addr[16])
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr any;

	if (info->src_addr == NULL || info->src_addrlen < sizeof(in) ||
	    (info->addr_format != FI_SOCKADDR &&
	     info->addr_format != FI_SOCKADDR_IN &&
	     info->addr_format != FI_SOCKADDR_IN6)) {
		return false;
	}
	memcpy(&any, info->src_addr, sizeof(any));
	if (any.sa_family == AF_INET) {
		memcpy(&in, info->src_addr, sizeof(in));
		memset(addr, 0, 10);
		memset(addr + 10, 0xff, 2);
		memcpy(addr + 12, &in.sin_addr, 4);
		return true;
	}
	if (any.sa_family == AF_INET6 && info->src_addrlen >= sizeof(in6)) {
		memcpy(&in6, info->src_addr, sizeof(in6));
		memcpy(addr, &in6.sin6_addr, 16);
		return true;
	}
	return false;
}

static void nic_set_ip(struct fr_nic *nic, const struct fr_iface *iface)
{
	memcpy(nic->addr, iface->addr, sizeof(nic->addr));
	fr_addr_text(nic->addr, nic->addr_text);
	fr_addr_subnet(nic->addr, iface->prefix, nic->subnet);
	nic->prefix = iface->prefix;
	nic->loopback = iface->loopback;
}

/* What libfabric itself says of the hardware comes first; software providers
 * say nothing. */
static void nic_set_speed(struct fr_nic *nic, const struct fi_info *info)
{
	uint64_t mbps = 0;

	if (info->nic != NULL && info->nic->link_attr != NULL) {
		mbps = info->nic->link_attr->speed / BITS_PER_MBIT;
	}
	if (mbps <= FR_SYSFS_SPEED_MAX_MBPS) {
		nic->speed_mbps = (uint32_t)mbps;
	}
	if (nic->speed_mbps == 0) {
		nic->speed_mbps = fr_sysfs_speed_mbps(nic->name);
	}
	nic->speed_known = nic->speed_mbps != 0;
	if (!nic->speed_known) {
		nic->speed_mbps = SPEED_GUESS_MBPS;
	}
}

static int nic_set_pci(struct fr_nic *nic, const struct fi_info *info,
		       const struct fr_topo *topo)
{
	const struct fi_pci_attr *pci;
	char function[32];
	int ret;

	ret = fr_topo_find(topo, nic->name, &nic->pci_path, &nic->numa);
	if (ret != 0 || nic->pci_path != NULL || info->nic == NULL ||
	    info->nic->bus_attr == NULL ||
	    info->nic->bus_attr->bus_type != FI_BUS_PCI) {
		return ret;
	}
	pci = &info->nic->bus_attr->attr.pci;
	snprintf(function, sizeof(function), "%04x:%02x:%02x.%x",
		 pci->domain_id, pci->bus_id, pci->device_id, pci->function_id);
	nic->numa = fr_sysfs_pci_numa(function);
	ret = fr_sysfs_pci_path(function, &nic->pci_path);
	return ret == -ENOMEM ? ret : 0;
}

int fr_nic_init(struct fr_nic *nic, const struct fr_fi *fi,
		const struct fi_info *info, const struct fr_iface *iface,
		const struct fr_topo *topo)
{
	struct fi_info *copy;
	int ret;

	memset(nic, 0, sizeof(*nic));
	nic->numa = -1;
	snprintf(nic->name, sizeof(nic->name), "%s",
		 iface != NULL ? iface->name : info->domain_attr->name);
	if (iface != NULL) {
		nic_set_ip(nic, iface);
	}
	nic_set_speed(nic, info);
	nic->guid = fr_sysfs_guid(nic->name);
	ret = nic_set_pci(nic, info, topo);
	if (ret != 0) {
		return ret;
	}
	copy = fi->dupinfo(info);
	if (copy == NULL) {
		fr_free(nic->pci_path);
		return -ENOMEM;
	}
	copy->next = NULL;
	nic->info = copy;
	return 0;
}

void fr_nic_fini(struct fr_nic *nic, const struct fr_fi *fi)
{
	fi->freeinfo(nic->info);
	fr_free(nic->pci_path);
}

static bool nics_share_subnet(const struct fr_nic *a, const struct fr_nic *b)
{
	return a->prefix != 0 && a->prefix == b->prefix && !a->loopback &&
	       !b->loopback && memcmp(a->subnet, b->subnet, 16) == 0;
}

/* What leaves by the wrong interface, for a log line; "" when both have a route
 * of their own. */
static void nics_astray(const struct fr_nic *a, const struct fr_nic *b,
			struct fr_text *text)
{
	const struct fr_nic *nic[2] = {a, b};
	char out[FR_ROUTE_NAME_BYTES];

	for (unsigned i = 0; i < 2; i++) {
		if (!fr_route_out(nic[i]->addr, nic[i]->prefix, out)) {
			text->len = 0;
			fr_text_add(text, "the kernel may send everything "
					  "through one of them");
			return;
		}
		if (strcmp(out, nic[i]->name) != 0) {
			fr_text_add(text,
				    "%sthe kernel sends what leaves %s "
				    "through %s",
				    text->len == 0 ? "" : ", ",
				    nic[i]->addr_text, out);
		}
	}
}

void fr_nic_warn_subnets(const struct fr_nic *nic, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		for (unsigned j = i + 1; j < cnt; j++) {
			struct fr_text astray = {.len = 0};

			if (!nics_share_subnet(&nic[i], &nic[j])) {
				continue;
			}
			nics_astray(&nic[i], &nic[j], &astray);
			if (astray.len == 0) {
				fr_info("%s and %s are in one subnet, each "
					"with a route of its own",
					nic[i].name, nic[j].name);
				continue;
			}
			fr_warn("%s (%s) and %s (%s) are in one subnet: %s; "
				"give each its own subnet, or a route of its "
				"own by source address (ip rule), or leave one "
				"out with OFI_NCCL_EXCLUDE_TCP_IF",
				nic[i].name, nic[i].addr_text, nic[j].name,
				nic[j].addr_text, astray.buf);
		}
	}
}
