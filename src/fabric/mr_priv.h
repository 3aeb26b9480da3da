/* A registration on all rails of a set, for the files of this floor. */
#ifndef FR_FABRIC_MR_PRIV_H
#define FR_FABRIC_MR_PRIV_H

#include <rdma/fi_domain.h>

#include "base/conf.h"
#include "base/idpool.h"
#include "base/list.h"
#include "base/lock.h"
#include "fabric/cuda.h"
#include "fabric/mr.h"
#include "fabric/rail_priv.h"

struct fr_mr_rail {
	struct fid_mr *fid;
	void *desc;
	uint64_t key;
};

enum fr_mr_kind { FR_MR_HOST, FR_MR_GPU, FR_MR_DMABUF };

struct fr_mr {
	uintptr_t base;
	size_t bytes;
	unsigned access;
	enum fr_mr_kind kind;
	struct fr_cuda_ptr gpu;	    /* whose memory; zero for the host's */
	struct fr_mr_dmabuf dmabuf; /* while it is being registered */
	unsigned refs;		    /* guarded by the cache's lock */
	bool shared;		    /* in the cache's vector */
	bool virt_addr;		    /* peers give virtual addresses */
	int64_t id; /* of the keys, -1: the provider chose them */
	struct fr_list node;
	struct fr_mr_rail rail[FR_MAX_RAILS];
};

/* Makes keys for one set of rails. Guarded by the cache's lock. */
struct fr_mr_keys {
	struct fr_idpool *ids;
	unsigned id_bits;	     /* low part of a key */
	uint64_t key_mask;	     /* of what the provider can carry */
	uint64_t salt[FR_MAX_RAILS]; /* high part, random, a rail */
};

int fr_mr_keys_init(struct fr_mr_keys *keys, struct fr_rail *const *rails,
		    unsigned cnt);
void fr_mr_keys_fini(struct fr_mr_keys *keys);

/* Registers @mr's range on all rails. Return: 0; -errno, logged, and no rail
 * keeps a registration. */
int fr_mr_register(struct fr_mr_keys *keys, struct fr_rail *const *rails,
		   unsigned cnt, struct fr_mr *mr);
void fr_mr_unregister(struct fr_mr_keys *keys, struct fr_rail *const *rails,
		      unsigned cnt, struct fr_mr *mr);
/* Registers @mr on @rail, which nobody else knows, and closes it again.
 * Return: 0; what libfabric said, not logged. */
int fr_mr_try(struct fr_rail *rail, const struct fr_mr *mr);

#endif
