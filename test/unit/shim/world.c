#include "unit/shim/world.h"

#include <check.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

const struct fr_shim_api *shim;

static struct {
	int (*getinfo)(uint32_t version, const char *node, const char *service,
		       uint64_t flags, const struct fi_info *hints,
		       struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		      void *context);
	uint32_t (*version)(void);
} fi;

static void symbol(void *lib, const char *name, void *entry)
{
	void *sym = dlsym(lib, name);

	ck_assert_msg(sym != NULL, "%s is missing", name);
	memcpy(entry, &sym, sizeof(sym));
}

void world_load(void)
{
	void *lib;

	shim = shim_load(NULL);
	ck_assert_ptr_nonnull(shim);
	lib = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	ck_assert_ptr_nonnull(lib);
	symbol(lib, "fi_getinfo", &fi.getinfo);
	symbol(lib, "fi_freeinfo", &fi.freeinfo);
	symbol(lib, "fi_dupinfo", &fi.dupinfo);
	symbol(lib, "fi_fabric", &fi.fabric);
	symbol(lib, "fi_version", &fi.version);
}

static uint32_t version(void)
{
	uint32_t built = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

	return FI_VERSION_LT(fi.version(), built) ? fi.version() : built;
}

static bool is_loopback(const struct fi_info *info)
{
	return info->addr_format == FI_ADDR_STR ||
	       strcmp(info->domain_attr->name, "lo") == 0;
}

static int getinfo(const char *prov, struct fi_info **list)
{
	struct fi_info *hints = fi.dupinfo(NULL);
	int ret;

	if (hints == NULL) {
		return -FI_ENOMEM;
	}
	hints->fabric_attr->prov_name = strdup(prov);
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	ret = fi.getinfo(version(), NULL, NULL, 0, hints, list);
	fi.freeinfo(hints);
	return ret;
}

struct fi_info *world_infos(const char *prov)
{
	struct fi_info *list;

	return getinfo(prov, &list) == 0 ? list : NULL;
}

void world_free_infos(struct fi_info *infos)
{
	fi.freeinfo(infos);
}

static int ep_open(struct world *w, struct world_ep *ep)
{
	struct fi_cq_attr attr = {.size = 256, .format = FI_CQ_FORMAT_DATA};
	int ret = fi_cq_open(w->domain, &attr, &ep->cq, NULL);

	if (ret == 0) {
		ret = fi_endpoint(w->domain, w->info, &ep->ep, NULL);
	}
	if (ret == 0) {
		ret = fi_ep_bind(ep->ep, &w->av->fid, 0);
	}
	if (ret == 0) {
		ret = fi_ep_bind(ep->ep, &ep->cq->fid, FI_TRANSMIT | FI_RECV);
	}
	return ret != 0 ? ret : fi_enable(ep->ep);
}

static int peers_know(struct world *w, struct world_ep *ep,
		      struct world_ep *peer)
{
	char name[256];
	size_t len = sizeof(name);
	int ret = fi_getname(&peer->ep->fid, name, &len);

	if (ret == 0) {
		ret = fi_av_insert(w->av, name, 1, &ep->peer, 0, NULL);
		return ret == 1 ? 0 : ret;
	}
	return ret;
}

static int choose_info(struct world *w, const char *prov)
{
	struct fi_info *list, *pos;
	int ret = getinfo(prov, &list);

	if (ret != 0) {
		return ret;
	}
	for (pos = list; pos != NULL && !is_loopback(pos); pos = pos->next) {
	}
	w->info = pos == NULL ? NULL : fi.dupinfo(pos);
	fi.freeinfo(list);
	return w->info == NULL ? -FI_ENODATA : 0;
}

static int open_all(struct world *w, const char *prov)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	int ret = choose_info(w, prov);

	if (ret == 0) {
		ret = fi.fabric(w->info->fabric_attr, &w->fabric, NULL);
	}
	if (ret == 0) {
		ret = fi_domain(w->fabric, w->info, &w->domain, NULL);
	}
	if (ret == 0) {
		attr.type = w->info->domain_attr->av_type;
		ret = fi_av_open(w->domain, &attr, &w->av, NULL);
	}
	if (ret == 0) {
		ret = ep_open(w, &w->a);
	}
	if (ret == 0) {
		ret = ep_open(w, &w->b);
	}
	if (ret == 0) {
		ret = peers_know(w, &w->a, &w->b);
	}
	return ret;
}

int world_open(struct world *w, const char *prov)
{
	int ret;

	memset(w, 0, sizeof(*w));
	ret = open_all(w, prov);
	if (ret != 0) {
		world_close(w);
	}
	return ret;
}

static void close_fid(struct fid *fid)
{
	ck_assert_int_eq(fi_close(fid), 0);
}

static void ep_close(struct world_ep *ep)
{
	if (ep->ep != NULL) {
		close_fid(&ep->ep->fid);
	}
}

static void cq_close(struct world_ep *ep)
{
	if (ep->cq != NULL) {
		close_fid(&ep->cq->fid);
	}
}

void world_close(struct world *w)
{
	ep_close(&w->a);
	ep_close(&w->b);
	cq_close(&w->a);
	cq_close(&w->b);
	if (w->av != NULL) {
		close_fid(&w->av->fid);
	}
	if (w->domain != NULL) {
		close_fid(&w->domain->fid);
	}
	if (w->fabric != NULL) {
		close_fid(&w->fabric->fid);
	}
	fi.freeinfo(w->info);
	memset(w, 0, sizeof(*w));
}

int world_reg(struct world *w, void *mem, size_t bytes, uint64_t access,
	      uint64_t key, struct fid_mr **mr)
{
	struct iovec iov = {mem, bytes};
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = access,
		.requested_key = key,
	};

	return fi_mr_regattr(w->domain, &attr, 0, mr);
}

ssize_t world_recv(struct world_ep *to, void *mem, size_t bytes, void *ctx)
{
	return fi_recv(to->ep, mem, bytes, NULL, FI_ADDR_UNSPEC, ctx);
}

ssize_t world_send(struct world_ep *from, void *mem, size_t bytes, void *ctx)
{
	return fi_send(from->ep, mem, bytes, NULL, from->peer, ctx);
}

uint64_t world_target(const struct world *w, const void *mem)
{
	bool virt = (w->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;

	return virt ? (uintptr_t)mem : 0;
}

ssize_t world_write(struct world *w, void *mem, size_t bytes, void *target,
		    struct fid_mr *to, uint64_t data, void *ctx)
{
	return fi_writedata(w->a.ep, mem, bytes, NULL, data, w->a.peer,
			    world_target(w, target), fi_mr_key(to), ctx);
}

void world_connect(struct world *w)
{
	static char in[64], out[64];
	struct fi_cq_data_entry entry;
	bool landed = false;
	ssize_t ret;

	ck_assert_int_eq(world_recv(&w->b, in, sizeof(in), in), 0);
	while ((ret = world_send(&w->a, out, sizeof(out), out)) == -FI_EAGAIN) {
		(void)fi_cq_read(w->a.cq, &entry, 1);
		(void)fi_cq_read(w->b.cq, &entry, 1);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_int_eq(world_read_wait(w, &w->a, &entry), 1);
	while (!landed) {
		landed = fi_cq_read(w->b.cq, &entry, 1) == 1;
	}
}

ssize_t world_read_wait(struct world *w, struct world_ep *of,
			struct fi_cq_data_entry *entry)
{
	struct world_ep *other = of == &w->a ? &w->b : &w->a;
	ssize_t ret;

	/* Reading nothing of the other one still moves it. */
	while ((ret = fi_cq_read(of->cq, entry, 1)) == -FI_EAGAIN) {
		(void)fi_cq_read(other->cq, NULL, 0);
	}
	return ret;
}
