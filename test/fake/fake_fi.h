/*
 * A libfabric provider in memory, below src/fabric: reached through the table
 * of struct fr_fi. It offers what the test says, makes objects that know their
 * users, can fail at its n-th call, and hands out the completions that the test
 * queued. It moves no data.
 */
#ifndef TEST_FAKE_FAKE_FI_H
#define TEST_FAKE_FAKE_FI_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "fabric/dmabuf.h"
#include "fabric/fi.h"
#include "fabric/iface.h"

#define FAKE_FI_MAX 16
#define FAKE_FI_QUEUE 512

enum fake_fid_kind {
	FAKE_FABRIC,
	FAKE_DOMAIN,
	FAKE_AV,
	FAKE_CQ,
	FAKE_EP,
	FAKE_MR,
	FAKE_KINDS
};

/* One fi_info that getinfo returns. */
struct fake_offer {
	const char *prov;
	const char *domain;
	const char *addr; /* IPv4 or IPv6; NULL: addr_format is FI_ADDR_STR */
};

/* The last post. */
struct fake_post {
	const char *call; /* "send", "sendmsg", "writedata", ... */
	const void *buf;
	size_t len;
	void *desc;
	uint64_t data, addr, remote_addr, key, flags;
	void *context;
	struct fid_ep *ep;
};

struct fake_fi {
	uint32_t version;
	struct fake_offer offer[FAKE_FI_MAX]; /* up to prov NULL */
	/* Of every offer. */
	uint64_t caps;
	uint64_t mode;
	uint64_t mr_mode;
	size_t mr_key_size;
	size_t cq_data_size;
	size_t max_msg_size;

	bool hmem;	      /* FI_HMEM is offered to who asks for it */
	const char *hmem_not; /* but not on this domain */
	int setopt_ret;	      /* of FI_OPT_CUDA_API_PERMITTED */
	int gpu_ret;	      /* of registrations of GPU memory by address */
	int dmabuf_ret;	      /* and as a dma-buf */

	unsigned fail_at;    /* the n-th call from now on fails; 0: none */
	unsigned calls;	     /* that could have failed */
	unsigned keys_taken; /* so many registrations find their key taken */
	ssize_t post_ret;    /* what posts return */
	int av_ret;	     /* what fi_av_insert returns, 0: 1 */
	int cq_ret;	     /* what an empty CQ read returns, 0: EAGAIN */
	size_t name_len;     /* of endpoint names, 0: as the address has it */
	bool no_tclass;	     /* an endpoint with a traffic class fails */

	unsigned live[FAKE_KINDS];
	unsigned infos;	  /* lists and copies that were not freed */
	unsigned misuses; /* closed while in use, used unbound, ... */
	char closed[64];  /* a letter for each close: f d a q e m */
	struct fake_post post;
	unsigned posts;
	uint64_t requested_key[FAKE_FI_QUEUE]; /* of registrations */
	unsigned regs;
	struct fi_mr_attr reg; /* the last one, with its range: */
	struct iovec reg_iov;
	struct fr_fi_mr_dmabuf reg_dmabuf; /* instead of a range */
	uint64_t reg_flags;
	unsigned gpu_regs;  /* of GPU memory, of either kind */
	unsigned setopts;   /* CUDA's calls were forbidden */
	struct fid *reg_ep; /* that it was bound to */
	uint64_t ep_op_flags;
	uint32_t ep_tclass;
	uint64_t av_removed;
	unsigned av_inserts;
	char hint_prov[FAKE_FI_MAX][32]; /* asked for, in order */
	struct fi_info hint;		 /* the last one, its scalars */
	uint64_t hint_op_flags;
	uint64_t hint_mr_mode;
	unsigned asked;

	struct fi_cq_data_entry queue[FAKE_FI_QUEUE];
	struct fi_cq_err_entry error[FAKE_FI_QUEUE];
	bool is_error[FAKE_FI_QUEUE];
	unsigned head, tail;
	unsigned reads;
};

extern struct fake_fi fake_fi;

/* Defaults: libfabric 1.17, "net" on rail0 and rail1, offsets and keys of the
 * application; the table and two interfaces become what src/fabric sees. */
void fake_fi_install(void);
/* What the interface scan returns; @cnt rows are copied. */
void fake_fi_set_ifaces(const struct fr_iface *rows, unsigned cnt);
struct fr_iface fake_iface(const char *name, const char *addr, unsigned prefix);

void fake_fi_complete(void *context, uint64_t flags, size_t len, uint64_t data);
void fake_fi_complete_error(void *context, uint64_t flags, int err,
			    int prov_errno);
/* For the fake's own files: counts a call, says whether it is the one to fail.
 */
bool fake_fi_fails(void);
int fake_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out,
		   void *context);
/* Live objects of all kinds. */
unsigned fake_fi_live(void);

#endif
