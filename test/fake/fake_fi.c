#include "fake/fake_fi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/alloc.h"
#include "fake/info.h"

struct fake_fi fake_fi;

bool fake_fi_fails(void)
{
	return ++fake_fi.calls == fake_fi.fail_at;
}

static struct fi_info *fake_dupinfo(const struct fi_info *info)
{
	if (fake_fi_fails()) {
		return NULL;
	}
	fake_fi.infos++;
	return fake_info_copy(info);
}

static void fake_freeinfo(struct fi_info *info)
{
	fake_fi.infos -= fake_info_free(info);
}

static void info_set_addr(struct fi_info *info, const char *addr)
{
	struct sockaddr_in6 *in6;
	struct sockaddr_in *in;

	if (addr == NULL) {
		info->addr_format = FI_ADDR_STR;
		return;
	}
	info->src_addr = calloc(1, sizeof(*in6));
	in = info->src_addr;
	in6 = info->src_addr;
	if (inet_pton(AF_INET, addr, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		info->src_addrlen = sizeof(*in);
		info->addr_format = FI_SOCKADDR_IN;
		return;
	}
	inet_pton(AF_INET6, addr, &in6->sin6_addr);
	in6->sin6_family = AF_INET6;
	info->src_addrlen = sizeof(*in6);
	info->addr_format = FI_SOCKADDR_IN6;
}

static struct fi_info *info_of(const struct fake_offer *offer)
{
	struct fi_info *info = fake_info_new();

	fake_fi.infos++;
	info->caps = fake_fi.caps;
	info->mode = fake_fi.mode;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = fake_fi.max_msg_size;
	info->domain_attr->mr_mode = (int)fake_fi.mr_mode;
	info->domain_attr->mr_key_size = fake_fi.mr_key_size;
	info->domain_attr->cq_data_size = fake_fi.cq_data_size;
	info->domain_attr->name = fake_info_text(offer->domain);
	info->fabric_attr->prov_name = fake_info_text(offer->prov);
	info_set_addr(info, offer->addr);
	return info;
}

static void note_hints(const struct fi_info *hints)
{
	snprintf(fake_fi.hint_prov[fake_fi.asked++ % FAKE_FI_MAX],
		 sizeof(fake_fi.hint_prov[0]), "%s",
		 hints->fabric_attr->prov_name);
	fake_fi.hint.caps = hints->caps;
	fake_fi.hint.mode = hints->mode;
	fake_fi.hint_op_flags = hints->tx_attr->op_flags;
	fake_fi.hint_mr_mode = (uint64_t)hints->domain_attr->mr_mode;
}

/* Matches as libfabric: "net" also finds "net;ofi_rxm". */
static bool offer_matches(const struct fake_offer *offer, const char *prov)
{
	size_t len = strlen(prov);

	return strncmp(offer->prov, prov, len) == 0 &&
	       (offer->prov[len] == '\0' || offer->prov[len] == ';');
}

static bool offer_has_hmem(const struct fake_offer *offer, uint64_t caps)
{
	if ((caps & FI_HMEM) == 0) {
		return true;
	}
	return fake_fi.hmem && (fake_fi.hmem_not == NULL ||
				strcmp(fake_fi.hmem_not, offer->domain) != 0);
}

static int fake_getinfo(uint32_t version, const char *node, const char *service,
			uint64_t flags, const struct fi_info *hints,
			struct fi_info **out)
{
	struct fi_info *first = NULL, **end = &first;

	note_hints(hints);
	if (node != NULL || service != NULL || flags != 0 ||
	    FI_VERSION_LT(fake_fi.version, version)) {
		fake_fi.misuses++;
	}
	if (fake_fi_fails()) {
		return -FI_ENOMEM;
	}
	for (const struct fake_offer *offer = fake_fi.offer;
	     offer->prov != NULL; offer++) {
		if (offer_matches(offer, hints->fabric_attr->prov_name) &&
		    offer_has_hmem(offer, hints->caps)) {
			*end = info_of(offer);
			end = &(*end)->next;
		}
	}
	for (struct fi_info *info = first; info != NULL; info = info->next) {
		info->caps |=
			hints->caps & (FI_HMEM | FI_READ | FI_REMOTE_READ);
	}
	if (first == NULL) {
		return -FI_ENODATA;
	}
	*out = first;
	return 0;
}

static uint32_t fake_version(void)
{
	return fake_fi.version;
}

static const char *fake_strerror(int err)
{
	return err >= FI_ERRNO_OFFSET ? "a libfabric error" : strerror(err);
}

static char *fake_tostr(const void *data, enum fi_type type)
{
	static char text[32];

	(void)data;
	(void)type;
	snprintf(text, sizeof(text), "%u.%u.0", FI_MAJOR(fake_fi.version),
		 FI_MINOR(fake_fi.version));
	return text;
}

static const struct fr_fi table = {
	.getinfo = fake_getinfo,
	.freeinfo = fake_freeinfo,
	.dupinfo = fake_dupinfo,
	.fabric = fake_fi_fabric,
	.version = fake_version,
	.strerror = fake_strerror,
	.tostr = fake_tostr,
};

/* -- interfaces -------------------------------------------------------------
 */

static struct fr_iface iface_rows[FAKE_FI_MAX];
static unsigned iface_cnt;

static int fake_scan(struct fr_iface **out, unsigned *cnt)
{
	struct fr_iface *rows = fr_calloc(iface_cnt + 1, sizeof(*rows));

	if (rows == NULL) {
		return -ENOMEM;
	}
	memcpy(rows, iface_rows, iface_cnt * sizeof(*rows));
	*out = rows;
	*cnt = iface_cnt;
	return 0;
}

void fake_fi_set_ifaces(const struct fr_iface *rows, unsigned cnt)
{
	memcpy(iface_rows, rows, cnt * sizeof(*rows));
	iface_cnt = cnt;
}

struct fr_iface fake_iface(const char *name, const char *addr, unsigned prefix)
{
	struct fr_iface iface = {.up = true};

	snprintf(iface.name, sizeof(iface.name), "%s", name);
	iface.loopback = strcmp(name, "lo") == 0;
	if (addr == NULL) {
		return iface;
	}
	iface.has_addr = true;
	if (inet_pton(AF_INET6, addr, iface.addr) == 1) {
		iface.prefix = (uint8_t)prefix;
		return iface;
	}
	iface.addr[10] = 0xff;
	iface.addr[11] = 0xff;
	inet_pton(AF_INET, addr, iface.addr + 12);
	iface.prefix = (uint8_t)(96 + prefix);
	return iface;
}

unsigned fake_fi_live(void)
{
	unsigned live = fake_fi.infos;

	for (unsigned i = 0; i < FAKE_KINDS; i++) {
		live += fake_fi.live[i];
	}
	return live;
}

void fake_fi_install(void)
{
	const struct fr_iface rows[] = {
		fake_iface("rail0", "10.77.0.1", 24),
		fake_iface("rail1", "10.77.1.1", 24),
	};

	fake_fi = (struct fake_fi){
		.version = FI_VERSION(1, 17),
		.offer = {{"net", "rail1", "10.77.1.1"},
			  {"net", "rail0", "10.77.0.1"},
			  {"net", "rail0", "10.77.0.1"}},
		.caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_WRITE |
			FI_REMOTE_WRITE,
		.mr_key_size = 8,
		.cq_data_size = 8,
		.max_msg_size = 1ull << 40,
	};
	fake_fi_set_ifaces(rows, 2);
	fr_fi_set(&table);
	fr_iface_set_scan(fake_scan);
}
