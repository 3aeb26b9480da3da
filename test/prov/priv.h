/* What the files of the provider in memory share. */
#ifndef FR_TEST_PROV_PRIV_H
#define FR_TEST_PROV_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include "base/list.h"
#include "base/util.h"
#include "prov/prov.h"

#define PROV_AV_MAX 4096u
#define PROV_RX_MAX 4096u

struct prov_fabric {
	struct fid_fabric fid;
	unsigned users;
};

struct prov_domain {
	struct fid_domain fid;
	struct prov_fabric *fabric;
	unsigned users;
	bool wrote;
};

struct prov_av {
	struct fid_av fid;
	struct prov_domain *domain;
	unsigned users, cnt;
	uint32_t name[PROV_AV_MAX]; /* 0: removed */
};

struct prov_entry {
	struct fr_list node;
	struct fi_cq_err_entry err; /* err 0: a completion */
};

struct prov_cq {
	struct fid_cq fid;
	struct prov_domain *domain;
	unsigned users;
	size_t size, used;
	bool overrun;
	struct fr_list entries;
};

struct prov_rx {
	void *buf;
	size_t bytes;
	void *desc;
	void *context;
};

struct prov_ep {
	struct fid_ep fid;
	struct fr_list node; /* of prov.eps */
	struct prov_domain *domain;
	struct prov_av *av;
	struct prov_cq *cq;
	uint32_t name; /* from 1 */
	bool enabled;
	unsigned mrs; /* bound to it */
	unsigned rx_head, rx_tail;
	struct prov_rx rx[PROV_RX_MAX];
};

struct prov_mr {
	struct fid_mr fid;
	struct fr_list node; /* of prov.mrs */
	struct prov_domain *domain;
	struct prov_ep *ep;
	bool enabled, written;
	uintptr_t base;
	size_t bytes;
	uint64_t access;
};

enum prov_kind { PROV_SEND, PROV_WRITE, PROV_READ };

/* A post under way. */
struct prov_post {
	struct fr_list node; /* of prov.posts, oldest first */
	enum prov_kind kind;
	struct prov_ep *from;
	uint32_t to;
	bool landed; /* only its completion is still to come */
	int err;
	void *buf;
	size_t bytes;
	void *desc;
	uint64_t addr, key, data;
	bool has_data;
	void *context;
};

struct prov_state {
	struct fr_prov is;
	pthread_mutex_t lock;
	struct fr_list eps, mrs, posts;
	uint64_t dice;
	uint32_t names;
	unsigned live, overtaken, refused, rails, keys;
	size_t longest;
};

extern struct prov_state prov;

void prov_fault(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));
#define PROV_CHECK(cond, ...)                                                  \
	do {                                                                   \
		if (!(cond)) {                                                 \
			prov_fault(__VA_ARGS__);                               \
		}                                                              \
	} while (0)
/* True in @percent of 100 cases. */
bool prov_chance(unsigned percent);
void *prov_new(size_t bytes);
uint64_t prov_random(void);

/* The open endpoint of this name, or NULL. */
struct prov_ep *prov_ep_named(uint32_t name);
/* A range of this process must be registered for a post of @ep. */
void prov_check_local(const struct prov_ep *ep, const void *buf, size_t bytes,
		      const void *desc, uint64_t access);
/* Moves what has @cq at an end. */
void prov_progress(struct prov_cq *cq);
/* Nothing of @ep is under way any more; the lock is held. */
void prov_drop_posts(struct prov_ep *ep);
int prov_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		 struct fid_mr **out);
int prov_ep_open(struct fid_domain *fid, struct fi_info *info,
		 struct fid_ep **out, void *context);
int prov_av_open(struct fid_domain *fid, struct fi_av_attr *attr,
		 struct fid_av **out, void *context);
int prov_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr,
		 struct fid_cq **out, void *context);

extern struct fi_ops_msg prov_msg_ops;
extern struct fi_ops_rma prov_rma_ops;

#endif
