#include "shim/objects.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/util.h"
#include "shim/gpu.h"
#include "shim/state.h"

#define DOMAINS 64

static atomic_uint last_id;

void *shim_alloc(size_t bytes)
{
	void *block = calloc(1, bytes);

	if (block == NULL) {
		abort();
	}
	return block;
}

void shim_table_copy(void *room, const void *table)
{
	size_t bytes;

	/* All of them begin with their size. */
	memcpy(&bytes, table, sizeof(bytes));
	bytes = FR_MIN(bytes, sizeof(SHIM_TABLE(fi_ops)));
	memcpy(room, table, bytes);
	memcpy(room, &bytes, sizeof(bytes));
}

struct shim_obj *shim_obj_of(struct fid *fid)
{
	return FR_CONTAINER_OF(fid->ops, struct shim_obj, fid.ops);
}

static int obj_close(struct fid *fid)
{
	struct shim_obj *obj = shim_obj_of(fid);
	int said = shim_refuse(SHIM_CLOSE, obj->rail);
	int ret;

	if (obj->unhook != NULL) {
		obj->unhook(obj, fid);
	}
	fid->ops = obj->real;
	SHIM_REAL(ret, fid->ops->close(fid));
	shim_log("close %s %u %d", obj->type, obj->id, ret);
	if (ret == 0) {
		if (obj->gone != NULL) {
			obj->gone(obj);
		}
		free(obj);
	}
	return ret != 0 ? ret : said;
}

void shim_obj_hook(struct shim_obj *obj, struct fid *fid, const char *type,
		   const struct shim_obj *parent, int rail)
{
	obj->real = fid->ops;
	obj->type = type;
	obj->id = atomic_fetch_add(&last_id, 1) + 1;
	obj->rail = rail;
	shim_table_copy(&obj->fid, fid->ops);
	obj->fid.ops.close = obj_close;
	fid->ops = &obj->fid.ops;
	shim_log("open %s %u %u %d", type, obj->id,
		 parent == NULL ? 0 : parent->id, rail);
}

/* -- registrations ----------------------------------------------------------
 */

struct shim_domain {
	struct shim_obj obj;
	SHIM_TABLE(fi_ops_domain) domain;
	SHIM_TABLE(fi_ops_mr) mr;
	struct fi_ops_domain *real_domain;
	struct fi_ops_mr *real_mr;
	bool own_keys;		 /* the provider chooses them */
	_Atomic uint32_t forced; /* bit i: key number i is in use */
};

struct shim_mr {
	struct shim_obj obj;
	struct shim_domain *domain;
	uint32_t forced; /* bit in domain->forced, or 0 */
};

static void mr_gone(struct shim_obj *obj)
{
	struct shim_mr *mr = FR_CONTAINER_OF(obj, struct shim_mr, obj);

	atomic_fetch_and(&mr->domain->forced, ~mr->forced);
}

/* Return: the bit of the key, 0 when there is none to force. */
static uint32_t key_take(struct shim_domain *domain, uint64_t access,
			 uint64_t *key)
{
	uint64_t forced;

	if (domain->own_keys || (access & FI_REMOTE_WRITE) == 0 ||
	    shim_inside != 0) {
		return 0;
	}
	for (unsigned i = 0; shim_key(i, &forced); i++) {
		uint32_t bit = FR_BIT(i);

		if ((atomic_fetch_or(&domain->forced, bit) & bit) == 0) {
			*key = forced;
			return bit;
		}
	}
	return 0;
}

static struct shim_domain *domain_of(struct fid *fid)
{
	struct fid_domain *domain =
		FR_CONTAINER_OF(fid, struct fid_domain, fid);

	return FR_CONTAINER_OF(domain->mr, struct shim_domain, mr.ops);
}

static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct shim_obj *obj = shim_obj_of(fid);
	int ret = shim_refuse(SHIM_MRBIND, obj->rail);

	if (ret == 0) {
		SHIM_REAL(ret, obj->real->bind(fid, other, flags));
	}
	return ret;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct shim_obj *obj = shim_obj_of(fid);
	int ret = 0;

	if (command == FI_ENABLE) {
		ret = shim_refuse(SHIM_MRENABLE, obj->rail);
	}
	if (ret == 0) {
		SHIM_REAL(ret, obj->real->control(fid, command, arg));
	}
	return ret;
}

/* @ret: what the real one said; @bit: of the key that was forced. */
static int mr_made(struct shim_domain *domain, uint32_t bit, int ret,
		   struct fid_mr **out)
{
	struct shim_mr *mr;

	if (ret != 0) {
		atomic_fetch_and(&domain->forced, ~bit);
	}
	if (ret != 0 || shim_inside != 0) {
		return ret;
	}
	mr = shim_alloc(sizeof(*mr));
	mr->domain = domain;
	mr->forced = bit;
	mr->obj.gone = mr_gone;
	shim_obj_hook(&mr->obj, &(*out)->fid, "mr", &domain->obj,
		      domain->obj.rail);
	mr->obj.fid.ops.bind = mr_bind;
	mr->obj.fid.ops.control = mr_control;
	return 0;
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		  uint64_t offset, uint64_t key, uint64_t flags,
		  struct fid_mr **out, void *context)
{
	struct shim_domain *domain = domain_of(fid);
	int ret = shim_refuse(SHIM_REG, domain->obj.rail);
	uint32_t bit;

	if (ret != 0) {
		return ret;
	}
	bit = key_take(domain, access, &key);
	SHIM_REAL(ret, domain->real_mr->reg(fid, buf, len, access, offset, key,
					    flags, out, context));
	return mr_made(domain, bit, ret, out);
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
		      uint64_t flags, struct fid_mr **out)
{
	struct shim_domain *domain = domain_of(fid);
	struct fi_mr_attr forced = *attr;
	struct iovec alias;
	uint32_t bit;
	int ret = shim_refuse(SHIM_REG, domain->obj.rail);

	if (ret != 0) {
		return ret;
	}
	bit = key_take(domain, attr->access, &forced.requested_key);
	shim_gpu_translate(&forced, &alias);
	SHIM_REAL(ret, domain->real_mr->regattr(fid, &forced, flags, out));
	return mr_made(domain, bit, ret, out);
}

/* -- address vectors --------------------------------------------------------
 */

struct shim_av {
	struct shim_obj obj;
	SHIM_TABLE(fi_ops_av) av;
	struct fi_ops_av *real_av;
};

static void av_unhook(struct shim_obj *obj, struct fid *fid)
{
	FR_CONTAINER_OF(fid, struct fid_av, fid)->ops =
		FR_CONTAINER_OF(obj, struct shim_av, obj)->real_av;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t cnt,
		     fi_addr_t *out, uint64_t flags, void *context)
{
	struct shim_av *av = FR_CONTAINER_OF(fid->ops, struct shim_av, av.ops);
	int ret = shim_refuse(SHIM_INSERT, av->obj.rail);

	if (ret == 0) {
		SHIM_REAL(ret, av->real_av->insert(fid, addr, cnt, out, flags,
						   context));
	}
	return ret;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addr, size_t cnt,
		     uint64_t flags)
{
	struct shim_av *av = FR_CONTAINER_OF(fid->ops, struct shim_av, av.ops);
	int ret = shim_refuse(SHIM_REMOVE, av->obj.rail);

	if (ret == 0) {
		SHIM_REAL(ret, av->real_av->remove(fid, addr, cnt, flags));
	}
	return ret;
}

static void av_hook(struct fid_av *fid, const struct shim_obj *domain)
{
	struct shim_av *av = shim_alloc(sizeof(*av));

	av->real_av = fid->ops;
	av->obj.unhook = av_unhook;
	shim_table_copy(&av->av, fid->ops);
	av->av.ops.insert = av_insert;
	av->av.ops.remove = av_remove;
	fid->ops = &av->av.ops;
	shim_obj_hook(&av->obj, &fid->fid, "av", domain, domain->rail);
}

/* -- domains ----------------------------------------------------------------
 */

/* Bit r: rail r has a domain. */
static _Atomic uint64_t rails;

static int rail_take(void)
{
	for (int rail = 0; rail < DOMAINS; rail++) {
		uint64_t bit = UINT64_C(1) << rail;

		if ((atomic_fetch_or(&rails, bit) & bit) == 0) {
			return rail;
		}
	}
	return SHIM_ANY_RAIL;
}

static void domain_gone(struct shim_obj *obj)
{
	if (obj->rail != SHIM_ANY_RAIL) {
		atomic_fetch_and(&rails, ~(UINT64_C(1) << obj->rail));
	}
}

static void domain_unhook(struct shim_obj *obj, struct fid *fid)
{
	struct shim_domain *mine =
		FR_CONTAINER_OF(obj, struct shim_domain, obj);
	struct fid_domain *domain =
		FR_CONTAINER_OF(fid, struct fid_domain, fid);

	domain->ops = mine->real_domain;
	domain->mr = mine->real_mr;
}

static int domain_av_open(struct fid_domain *fid, struct fi_av_attr *attr,
			  struct fid_av **out, void *context)
{
	struct shim_domain *domain = domain_of(&fid->fid);
	int ret = shim_refuse(SHIM_AV, domain->obj.rail);

	if (ret == 0) {
		SHIM_REAL(ret, domain->real_domain->av_open(fid, attr, out,
							    context));
	}
	if (ret == 0 && shim_inside == 0) {
		av_hook(*out, &domain->obj);
	}
	return ret;
}

static int domain_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr,
			  struct fid_cq **out, void *context)
{
	struct shim_domain *domain = domain_of(&fid->fid);
	int ret = shim_refuse(SHIM_CQ, domain->obj.rail);

	if (ret == 0) {
		SHIM_REAL(ret, domain->real_domain->cq_open(fid, attr, out,
							    context));
	}
	if (ret == 0 && shim_inside == 0) {
		shim_cq_hook(*out, &domain->obj, attr->format);
	}
	return ret;
}

static int domain_endpoint(struct fid_domain *fid, struct fi_info *info,
			   struct fid_ep **out, void *context)
{
	struct shim_domain *domain = domain_of(&fid->fid);
	int ret = shim_refuse(SHIM_EP, domain->obj.rail);
	uint64_t caps = shim_gpu_strip(info);

	if (ret == 0) {
		SHIM_REAL(ret, domain->real_domain->endpoint(fid, info, out,
							     context));
	}
	shim_gpu_restore(info, caps);
	if (ret == 0 && shim_inside == 0) {
		shim_ep_hook(*out, &domain->obj);
	}
	return ret;
}

static void domain_hook(struct fid_domain *fid, const struct shim_obj *fabric,
			const struct fi_info *info)
{
	struct shim_domain *domain = shim_alloc(sizeof(*domain));

	domain->own_keys = (info->domain_attr->mr_mode &
			    (FI_MR_PROV_KEY | 1 /* FI_MR_BASIC */)) != 0;
	domain->real_domain = fid->ops;
	domain->real_mr = fid->mr;
	domain->obj.unhook = domain_unhook;
	domain->obj.gone = domain_gone;
	shim_table_copy(&domain->domain, fid->ops);
	domain->domain.ops.av_open = domain_av_open;
	domain->domain.ops.cq_open = domain_cq_open;
	domain->domain.ops.endpoint = domain_endpoint;
	shim_table_copy(&domain->mr, fid->mr);
	domain->mr.ops.reg = mr_reg;
	domain->mr.ops.regattr = mr_regattr;
	fid->ops = &domain->domain.ops;
	fid->mr = &domain->mr.ops;
	shim_obj_hook(&domain->obj, &fid->fid, "domain", fabric, rail_take());
}

/* -- fabrics ----------------------------------------------------------------
 */

struct shim_fabric {
	struct shim_obj obj;
	SHIM_TABLE(fi_ops_fabric) fabric;
	struct fi_ops_fabric *real_fabric;
};

static void fabric_unhook(struct shim_obj *obj, struct fid *fid)
{
	FR_CONTAINER_OF(fid, struct fid_fabric, fid)->ops =
		FR_CONTAINER_OF(obj, struct shim_fabric, obj)->real_fabric;
}

static int fabric_domain(struct fid_fabric *fid, struct fi_info *info,
			 struct fid_domain **out, void *context)
{
	struct shim_fabric *fabric =
		FR_CONTAINER_OF(fid->ops, struct shim_fabric, fabric.ops);
	int ret = shim_refuse(SHIM_DOMAIN, SHIM_ANY_RAIL);
	uint64_t caps = shim_gpu_strip(info);

	if (ret == 0) {
		SHIM_REAL(ret,
			  fabric->real_fabric->domain(fid, info, out, context));
	}
	shim_gpu_restore(info, caps);
	if (ret == 0 && shim_inside == 0) {
		domain_hook(*out, &fabric->obj, info);
	}
	return ret;
}

void shim_fabric_hook(struct fid_fabric *fid)
{
	struct shim_fabric *fabric = shim_alloc(sizeof(*fabric));

	fabric->real_fabric = fid->ops;
	fabric->obj.unhook = fabric_unhook;
	shim_table_copy(&fabric->fabric, fid->ops);
	fabric->fabric.ops.domain = fabric_domain;
	fid->ops = &fabric->fabric.ops;
	shim_obj_hook(&fabric->obj, &fid->fid, "fabric", NULL, SHIM_ANY_RAIL);
}
