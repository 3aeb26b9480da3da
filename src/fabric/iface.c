#include "fabric/iface.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/util.h"

static bool addr_is_link_local(const uint8_t addr[16])
{
	if (fr_addr_is_v4(addr)) {
		return addr[12] == 169 && addr[13] == 254;
	}
	return addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80;
}

int fr_natural_cmp(const char *a, const char *b)
{
	const char *a0 = a, *b0 = b;

	while (*a != '\0' && *b != '\0') {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			char *a_end, *b_end;
			unsigned long long x = strtoull(a, &a_end, 10);
			unsigned long long y = strtoull(b, &b_end, 10);

			if (x != y) {
				return x < y ? -1 : 1;
			}
			a = a_end;
			b = b_end;
			continue;
		}
		if (*a != *b) {
			break;
		}
		a++;
		b++;
	}
	if (*a != *b) {
		return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
	}
	/* Equal but for leading zeros: any fixed order does. */
	return strcmp(a0, b0);
}

/* -- what the kernel has ----------------------------------------------------
 */

static unsigned mask_bits(const uint8_t *mask, unsigned bytes)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < bytes; i++) {
		bits += (unsigned)__builtin_popcount(mask[i]);
	}
	return bits;
}

static void iface_take_addr(struct fr_iface *iface, const struct ifaddrs *ifa)
{
	if (ifa->ifa_addr->sa_family == AF_INET) {
		struct sockaddr_in in, mask;

		memcpy(&in, ifa->ifa_addr, sizeof(in));
		memset(iface->addr, 0, 10);
		memset(iface->addr + 10, 0xff, 2);
		memcpy(iface->addr + 12, &in.sin_addr, 4);
		iface->prefix = 128;
		if (ifa->ifa_netmask != NULL) {
			memcpy(&mask, ifa->ifa_netmask, sizeof(mask));
			iface->prefix =
				(uint8_t)(96 +
					  mask_bits((uint8_t *)&mask.sin_addr,
						    4));
		}
	} else {
		struct sockaddr_in6 in6, mask;

		memcpy(&in6, ifa->ifa_addr, sizeof(in6));
		memcpy(iface->addr, &in6.sin6_addr, 16);
		iface->prefix = 128;
		if (ifa->ifa_netmask != NULL) {
			memcpy(&mask, ifa->ifa_netmask, sizeof(mask));
			iface->prefix = (uint8_t)mask_bits(
				(uint8_t *)&mask.sin6_addr, 16);
		}
	}
	iface->has_addr = true;
}

static bool ifa_has_ip(const struct ifaddrs *ifa)
{
	return ifa->ifa_addr != NULL && (ifa->ifa_addr->sa_family == AF_INET ||
					 ifa->ifa_addr->sa_family == AF_INET6);
}

/* Linux gives every interface an AF_PACKET row: it stands for the interface
 * itself, and is what remains of one without addresses. */
static unsigned iface_fill(struct fr_iface *rows, const struct ifaddrs *list)
{
	unsigned cnt = 0;

	for (const struct ifaddrs *ifa = list; ifa != NULL;
	     ifa = ifa->ifa_next) {
		struct fr_iface *row = &rows[cnt++];

		/* A second IPv4 address may go by a label, "eth0:1". */
		snprintf(row->name, sizeof(row->name), "%.*s",
			 (int)strcspn(ifa->ifa_name, ":"), ifa->ifa_name);
		row->up = (ifa->ifa_flags & IFF_UP) != 0 &&
			  (ifa->ifa_flags & IFF_RUNNING) != 0;
		row->loopback = (ifa->ifa_flags & IFF_LOOPBACK) != 0;
		if (ifa_has_ip(ifa)) {
			iface_take_addr(row, ifa);
		}
	}
	return cnt;
}

static int iface_scan_kernel(struct fr_iface **out, unsigned *cnt)
{
	struct ifaddrs *list = NULL;
	struct fr_iface *rows;
	unsigned rows_cnt = 0;

	if (getifaddrs(&list) != 0) {
		int ret = -errno;

		fr_error("cannot list network interfaces: %s", strerror(-ret));
		return ret;
	}
	for (const struct ifaddrs *ifa = list; ifa != NULL;
	     ifa = ifa->ifa_next) {
		rows_cnt++;
	}
	rows = fr_calloc(rows_cnt + 1, sizeof(*rows));
	if (rows == NULL) {
		freeifaddrs(list);
		return -ENOMEM;
	}
	*cnt = iface_fill(rows, list);
	*out = rows;
	freeifaddrs(list);
	return 0;
}

static fr_iface_scan_fn iface_scan = iface_scan_kernel;

void fr_iface_set_scan(fr_iface_scan_fn scan)
{
	iface_scan = scan == NULL ? iface_scan_kernel : scan;
}

int fr_iface_scan(struct fr_iface **out, unsigned *cnt)
{
	return iface_scan(out, cnt);
}

/* -- the rules --------------------------------------------------------------
 */

static bool list_is_empty(const struct fr_iface_list *list)
{
	return list->text == NULL || list->text[0] == '\0';
}

/* How well the best item fits @name: twice its length, plus one if it is exact;
 * 0: none does. */
static size_t list_match(const struct fr_iface_list *list, const char *name)
{
	const char *item = list->text == NULL ? "" : list->text;
	size_t best = 0;

	while (*item != '\0') {
		size_t len = strcspn(item, ",");
		const char *next = item + len + (item[len] == ',' ? 1 : 0);
		bool exact = list->all_exact;

		if (len > 0 && *item == '=') {
			exact = true;
			item++;
			len--;
		}
		if (len > 0 && strncmp(name, item, len) == 0 &&
		    (!exact || name[len] == '\0')) {
			best = FR_MAX(best, 2 * len + (exact ? 1 : 0));
		}
		item = next;
	}
	return best;
}

struct fr_iface_filter fr_iface_filter_of(const struct fr_conf *conf,
					  const char *nccl_ifname)
{
	struct fr_iface_filter filter = {
		.include = {.text = conf->tcp_if},
		.exclude = {{.text = conf->exclude_tcp_if}},
	};
	struct fr_iface_list nccl = {.text = nccl_ifname};
	bool excludes = false;

	if (!list_is_empty(&filter.include) || list_is_empty(&nccl)) {
		return filter;
	}
	if (*nccl.text == '^') {
		excludes = true;
		nccl.text++;
	}
	if (*nccl.text == '=') {
		nccl.all_exact = true;
		nccl.text++;
	}
	if (excludes) {
		filter.exclude[1] = nccl;
	} else {
		filter.include = nccl;
	}
	return filter;
}

/* Why @iface may not be a rail by its name, or NULL. */
static const char *filter_refusal(const struct fr_iface_filter *filter,
				  const struct fr_iface *iface)
{
	size_t in = list_match(&filter->include, iface->name);
	size_t out = FR_MAX(list_match(&filter->exclude[0], iface->name),
			    list_match(&filter->exclude[1], iface->name));
	bool picky = !list_is_empty(&filter->include);

	if (picky && in == 0) {
		return "not among the interfaces asked for";
	}
	if (!iface->loopback && out > 0 && out >= in) {
		return "excluded by name";
	}
	return NULL;
}

static const char *addr_refusal(const struct fr_iface *iface)
{
	if (!iface->up) {
		return "down, or without a carrier";
	}
	if (!iface->has_addr) {
		return "has no IP address";
	}
	if (addr_is_link_local(iface->addr)) {
		return "has only link-local addresses";
	}
	return NULL;
}

/* Lower is better. */
static unsigned addr_rank(const struct fr_iface *iface, bool v6_first)
{
	if (!iface->has_addr) {
		return 3;
	}
	if (addr_is_link_local(iface->addr)) {
		return 2;
	}
	return fr_addr_is_v4(iface->addr) == v6_first ? 1 : 0;
}

static int iface_cmp(const void *a, const void *b)
{
	return fr_natural_cmp(((const struct fr_iface *)a)->name,
			      ((const struct fr_iface *)b)->name);
}

/* One row a name, the one with the best address, in front. Keeps the order. */
static unsigned iface_unite(struct fr_iface *rows, unsigned cnt, bool v6_first)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < cnt; i++) {
		unsigned j = 0;

		while (j < kept && strcmp(rows[j].name, rows[i].name) != 0) {
			j++;
		}
		if (j == kept) {
			rows[kept++] = rows[i];
		} else if (addr_rank(&rows[i], v6_first) <
			   addr_rank(&rows[j], v6_first)) {
			rows[j] = rows[i];
		}
	}
	return kept;
}

int fr_iface_select(struct fr_iface *ifaces, unsigned cnt,
		    const struct fr_iface_filter *filter, bool v6_first,
		    struct fr_reasons *reasons, unsigned *chosen)
{
	unsigned kept = 0;

	cnt = iface_unite(ifaces, cnt, v6_first);
	if (cnt > 0) {
		qsort(ifaces, cnt, sizeof(*ifaces), iface_cmp);
	}
	for (unsigned i = 0; i < cnt; i++) {
		const char *why = filter_refusal(filter, &ifaces[i]);

		if (why == NULL) {
			why = addr_refusal(&ifaces[i]);
		}
		if (why != NULL) {
			if (fr_reasons_add(reasons, "interface %s: %s",
					   ifaces[i].name, why) != 0) {
				return -ENOMEM;
			}
			continue;
		}
		ifaces[kept] = ifaces[i];
		ifaces[kept].fallback = ifaces[kept].loopback &&
					list_is_empty(&filter->include);
		kept++;
	}
	*chosen = kept;
	return 0;
}
