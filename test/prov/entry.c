/* What stands in for libfabric's entry points, and what a test asks. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "fake/info.h"
#include "prov/priv.h"

#define EXPORT __attribute__((visibility("default")))

struct prov_state prov = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.eps = {&prov.eps, &prov.eps},
	.mrs = {&prov.mrs, &prov.mrs},
	.posts = {&prov.posts, &prov.posts},
	.dice = UINT64_C(0x9e3779b97f4a7c15),
};

void prov_fault(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "fr_prov: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	abort();
}

uint64_t prov_random(void)
{
	prov.dice ^= prov.dice << 13;
	prov.dice ^= prov.dice >> 7;
	prov.dice ^= prov.dice << 17;
	return prov.dice;
}

bool prov_chance(unsigned percent)
{
	return prov_random() % 100 < percent;
}

void *prov_new(size_t bytes)
{
	void *room = calloc(1, bytes);

	PROV_CHECK(room != NULL, "out of memory");
	return room;
}

EXPORT struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	return fake_info_copy(info);
}

EXPORT void fi_freeinfo(struct fi_info *info)
{
	(void)fake_info_free(info);
}

static void info_set_addr(struct fi_info *info)
{
	struct sockaddr_in *in;

	info->addr_format = FI_ADDR_EFA;
	if (!prov.is.ip) {
		return;
	}
	in = prov_new(sizeof(*in));
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	info->src_addr = in;
	info->src_addrlen = sizeof(*in);
	info->addr_format = FI_SOCKADDR_IN;
}

static struct fi_info *info_of(const char *domain, const struct fi_info *hints)
{
	struct fi_info *info = fake_info_new();

	info->caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE |
		     FI_REMOTE_READ | FI_REMOTE_WRITE;
	info->caps &= ~prov.is.caps_less;
	info->mode = prov.is.mode;
	info->tx_attr->op_flags = hints->tx_attr->op_flags;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = prov.is.max_msg_size;
	info->domain_attr->mr_mode = (int)prov.is.mr_mode;
	info->domain_attr->mr_key_size = prov.is.mr_key_size;
	info->domain_attr->cq_data_size = prov.is.cq_data_size;
	info->domain_attr->name = strdup(domain);
	info->fabric_attr->prov_name = strdup(prov.is.name);
	info_set_addr(info);
	return info;
}

EXPORT int fi_getinfo(uint32_t version, const char *node, const char *service,
		      uint64_t flags, const struct fi_info *hints,
		      struct fi_info **out)
{
	struct fi_info *first = NULL, **end = &first;

	PROV_CHECK(node == NULL && service == NULL && flags == 0 &&
			   !FI_VERSION_LT(prov.is.version, version),
		   "fi_getinfo was asked for what it cannot know");
	if (strcmp(hints->fabric_attr->prov_name, prov.is.name) != 0 ||
	    (hints->caps & FI_HMEM) != 0 ||
	    (prov.is.mr_mode & ~(uint64_t)hints->domain_attr->mr_mode) != 0) {
		return -FI_ENODATA;
	}
	for (unsigned i = 0; i < 4 && prov.is.domains[i] != NULL; i++) {
		*end = info_of(prov.is.domains[i], hints);
		end = &(*end)->next;
	}
	*out = first;
	return 0;
}

EXPORT uint32_t fi_version(void)
{
	return prov.is.version;
}

EXPORT const char *fi_strerror(int err)
{
	return err >= FI_ERRNO_OFFSET ? "a libfabric error" : strerror(err);
}

EXPORT char *fi_tostr(const void *data, enum fi_type type)
{
	static char text[32];

	(void)data;
	(void)type;
	snprintf(text, sizeof(text), "%u.%u.0", FI_MAJOR(prov.is.version),
		 FI_MINOR(prov.is.version));
	return text;
}

/* -- fabric and domain ------------------------------------------------------
 */

static int domain_close(struct fid *fid)
{
	struct prov_domain *domain =
		FR_CONTAINER_OF(fid, struct prov_domain, fid.fid);

	pthread_mutex_lock(&prov.lock);
	PROV_CHECK(domain->users == 0, "a domain in use was closed");
	domain->fabric->users--;
	prov.live--;
	pthread_mutex_unlock(&prov.lock);
	free(domain);
	return 0;
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
};
static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = prov_av_open,
	.cq_open = prov_cq_open,
	.endpoint = prov_ep_open,
};
static struct fi_ops_mr domain_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.regattr = prov_regattr,
};

static int fabric_domain(struct fid_fabric *fid, struct fi_info *info,
			 struct fid_domain **out, void *context)
{
	struct prov_domain *domain = prov_new(sizeof(*domain));

	(void)context;
	PROV_CHECK((uint64_t)info->domain_attr->mr_mode == prov.is.mr_mode,
		   "a domain was opened with another mr_mode");
	domain->fabric = FR_CONTAINER_OF(fid, struct prov_fabric, fid);
	pthread_mutex_lock(&prov.lock);
	domain->fabric->users++;
	prov.live++;
	pthread_mutex_unlock(&prov.lock);
	domain->fid.fid.ops = &domain_fid_ops;
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &domain_mr_ops;
	*out = &domain->fid;
	return 0;
}

static int fabric_close(struct fid *fid)
{
	struct prov_fabric *fabric =
		FR_CONTAINER_OF(fid, struct prov_fabric, fid.fid);

	pthread_mutex_lock(&prov.lock);
	PROV_CHECK(fabric->users == 0, "a fabric in use was closed");
	prov.live--;
	pthread_mutex_unlock(&prov.lock);
	free(fabric);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
};
static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = fabric_domain,
};

EXPORT int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out,
		     void *context)
{
	struct prov_fabric *fabric = prov_new(sizeof(*fabric));

	(void)attr;
	(void)context;
	fabric->fid.fid.ops = &fabric_fid_ops;
	fabric->fid.ops = &fabric_ops;
	pthread_mutex_lock(&prov.lock);
	prov.live++;
	pthread_mutex_unlock(&prov.lock);
	*out = &fabric->fid;
	return 0;
}

/* -- for the test -----------------------------------------------------------
 */

static void api_set(const struct fr_prov *is)
{
	prov.is = *is;
}

#define ASK(_type, _name)                                                      \
	static _type api_##_name(void)                                         \
	{                                                                      \
		_type value;                                                   \
                                                                               \
		pthread_mutex_lock(&prov.lock);                                \
		value = prov._name;                                            \
		pthread_mutex_unlock(&prov.lock);                              \
		return value;                                                  \
	}

ASK(unsigned, live)
ASK(unsigned, overtaken)
ASK(unsigned, refused)
ASK(unsigned, rails)
ASK(unsigned, keys)
ASK(size_t, longest)

EXPORT const struct fr_prov_api fr_prov_api = {
	.set = api_set,
	.live = api_live,
	.overtaken = api_overtaken,
	.refused = api_refused,
	.longest = api_longest,
	.rails_used = api_rails,
	.keys = api_keys,
};
