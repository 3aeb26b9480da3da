/*
 * Objects of the real library under our tables. The memory of an object is the
 * provider's; what belongs to us is found from the table that was put into it:
 *
 *   fid_ep { fid { ops ----> shim_ep.obj.ops }, msg ----> shim_ep.msg, ... }
 *
 * A table of ours is a copy of the provider's with a few entries replaced. The
 * provider's own pointers are put back before the real close.
 */
#ifndef FR_TEST_SHIM_OBJECTS_H
#define FR_TEST_SHIM_OBJECTS_H

#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

/* Room for the table of a library that is newer than our headers. */
#define SHIM_TABLE(type)                                                       \
	union {                                                                \
		struct type ops;                                               \
		char room[512];                                                \
	}

struct shim_obj {
	SHIM_TABLE(fi_ops) fid;
	struct fi_ops *real;
	const char *type;
	unsigned id;
	int rail;
	/* Puts the provider's other tables back. */
	void (*unhook)(struct shim_obj *obj, struct fid *fid);
	/* It is closed: frees what is beside it. */
	void (*gone)(struct shim_obj *obj);
};

/* First member of what the caller allocated. @parent: NULL for a fabric. */
void shim_obj_hook(struct shim_obj *obj, struct fid *fid, const char *type,
		   const struct shim_obj *parent, int rail);
struct shim_obj *shim_obj_of(struct fid *fid);
/* A copy of the provider's table in @room of SHIM_TABLE's size. */
void shim_table_copy(void *room, const void *table);
/* Never NULL: without memory for the shim a test has no meaning. */
void *shim_alloc(size_t bytes);

/* Each takes an object that was just opened. */
void shim_fabric_hook(struct fid_fabric *fabric);
void shim_ep_hook(struct fid_ep *ep, const struct shim_obj *domain);
void shim_cq_hook(struct fid_cq *cq, const struct shim_obj *domain,
		  enum fi_cq_format format);

#endif
