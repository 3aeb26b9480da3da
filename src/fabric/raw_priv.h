/* Inside of raw*.c. */
#ifndef FR_FABRIC_RAW_PRIV_H
#define FR_FABRIC_RAW_PRIV_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/conf.h"
#include "fabric/fi.h"
#include "fabric/raw.h"

#define FR_RAW_TIMEOUT_S 60u

enum raw_kind { RAW_TX, RAW_RX };

/* What a completion points to. */
struct raw_op {
	enum raw_kind kind;
	unsigned left; /* TX: stripes of this message in flight */
};

struct raw_rail {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	void *desc;
	fi_addr_t peer;
	uint64_t remote_addr, remote_key; /* of the peer's receive half */
};

struct fr_raw {
	struct fr_fabric *fabric;
	const struct fr_fi *fi;
	unsigned rail_cnt, window;
	bool deliver;
	size_t stride; /* between the messages of a window */
	char *mem;     /* send half, receive half */
	size_t half_bytes;
	struct raw_op *tx; /* one a slot of the window */
	struct raw_op rx;
	/* counted by raw_poll(); set back by who waits */
	uint64_t tx_done;    /* messages */
	uint64_t rx_done;    /* receives */
	uint64_t write_done; /* remote writes that landed here */
	struct raw_rail rail[FR_MAX_RAILS];
};

/* Reads every CQ once. Return: entries seen; -EIO, logged. */
int fr_raw_poll(struct fr_raw *raw);
/* After a poll that saw @seen entries: keeps *@since_ns and yields. Return: 0;
 * -ETIMEDOUT, logged. */
int fr_raw_idle(int seen, uint64_t *since_ns);
/* Posts, polling while the provider says EAGAIN. @op->left is set before. */
int fr_raw_send(struct fr_raw *raw, unsigned rail, const void *buf,
		size_t bytes, struct raw_op *op);
int fr_raw_write(struct fr_raw *raw, unsigned rail, size_t at, size_t bytes,
		 struct raw_op *op);
int fr_raw_recv(struct fr_raw *raw, unsigned rail, void *buf, size_t bytes);

static inline char *fr_raw_tx_mem(const struct fr_raw *raw, uint64_t message)
{
	return raw->mem + (message % raw->window) * raw->stride;
}

static inline char *fr_raw_rx_mem(const struct fr_raw *raw, uint64_t message)
{
	return fr_raw_tx_mem(raw, message) + raw->half_bytes;
}

#endif
