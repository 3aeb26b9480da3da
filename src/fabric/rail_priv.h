/* Inside of a rail, for the files of this floor. */
#ifndef FR_FABRIC_RAIL_PRIV_H
#define FR_FABRIC_RAIL_PRIV_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/log.h"
#include "fabric/discover.h"
#include "fabric/rail.h"

/*
 * An operation's slots for the provider: no provider that demands FI_CONTEXT is
 * taken (hints.mode is 0), so the last ones hold what a completion does not
 * tell: net reports a length of 0 for sends, and errors come with flags that
 * cannot be relied on.
 */
#define FR_OP_KIND 6  /* enum fr_op_kind */
#define FR_OP_BYTES 7 /* payload of a send or write */

enum fr_op_kind {
	FR_OP_TX = 1,
	FR_OP_RX,
	FR_OP_READ,
	FR_OP_CUT, /* a write to a peer that is no more */
};

struct fr_rail {
	struct fid_cq *cq;
	struct fid_ep *ctrl; /* C */
	uint32_t inflight;   /* posts on C that have not completed */
	uint32_t tx_cap;     /* UINT32_MAX: the provider limits */
	bool ep_delivers;    /* C completes at the target unless told other */
	bool empty_is_local;
	bool enoent_is_eagain;
	struct fr_shm *shm; /* NULL: another provider */
	bool polling;
	bool fenced; /* the endpoints are closed */
	bool trying; /* an open that may fail: another one follows */
	bool trial;  /* nobody needs this rail */
	bool owner_warns;
	uint32_t cq_read_cnt;
	struct fi_cq_data_entry *entries; /* cq_read_cnt of them */
	const struct fr_rail_ops *ops;
	void *owner;
	struct fr_stats stats;

	/* From here on it is open, close and errors. */
	struct fr_fabric *fabric;
	const struct fr_nic *nic;
	unsigned index;
	struct fi_info *info;
	struct fid_fabric *fid_fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_ep *data; /* D; the same as ctrl unless they are split */
	struct fr_name name[2];
	int cuda_option;	 /* what C said to doing without CUDA's calls */
	_Atomic uint32_t mr_cnt; /* registrations that are open */
	struct fr_rail *abandoned_next;
	struct fr_log_limit bad_names; /* of peers, who choose how many */
	struct fr_log_limit bad_posts; /* to them */
	char error_text[192];
};

/* Closes @fid, logs if it does not go, never tries again: a second close is a
 * double free in several providers. */
void fr_rail_close_fid(const struct fr_rail *rail, struct fid *fid,
		       const char *what);
/* fr_rail_poll() until the queue was seen empty. Return: 0; -errno. */
int fr_rail_poll_out(struct fr_rail *rail);
/* fr_rail_peer_add() without a look at the name. */
int fr_rail_av_insert(struct fr_rail *rail, const struct fr_name *name,
		      uint64_t *addr);

static inline void fr_op_arm(struct fr_op *op, enum fr_op_kind kind,
			     size_t bytes)
{
	op->prov[FR_OP_KIND] = (void *)(uintptr_t)kind;
	op->prov[FR_OP_BYTES] = (void *)(uintptr_t)bytes;
}

static inline bool fr_op_is(const struct fr_op *op, enum fr_op_kind kind)
{
	return (uintptr_t)op->prov[FR_OP_KIND] == (uintptr_t)kind;
}

static inline size_t fr_op_bytes(const struct fr_op *op)
{
	return (size_t)(uintptr_t)op->prov[FR_OP_BYTES];
}

#endif
