/*
 * Two endpoints of one process on loopback, opened through the shim with the
 * calls that src/fabric makes. For the shim's own tests: what fails aborts the
 * test, unless a call says that it returns what came.
 */
#ifndef FR_TEST_UNIT_SHIM_WORLD_H
#define FR_TEST_UNIT_SHIM_WORLD_H

#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "shim/use.h"

struct world_ep {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t peer;
};

struct world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct world_ep a; /* posts */
	struct world_ep b; /* is written to */
};

extern const struct fr_shim_api *shim;

/* Loads the shim and the entry points. */
void world_load(void);
/* The list of @prov on loopback; NULL: it is not here. */
struct fi_info *world_infos(const char *prov);
void world_free_infos(struct fi_info *infos);
/* Opens it all. Return: 0, or what the first call that failed said: then
 * nothing is open. */
int world_open(struct world *w, const char *prov);
void world_close(struct world *w);

/* Each returns what was said. */
int world_reg(struct world *w, void *mem, size_t bytes, uint64_t access,
	      uint64_t key, struct fid_mr **mr);
ssize_t world_recv(struct world_ep *to, void *mem, size_t bytes, void *ctx);
ssize_t world_send(struct world_ep *from, void *mem, size_t bytes, void *ctx);
/* Where the beginning of @mem, which was registered, is for a peer. */
uint64_t world_target(const struct world *w, const void *mem);
/* To the beginning of @target, which @to was made for. */
ssize_t world_write(struct world *w, void *mem, size_t bytes, void *target,
		    struct fid_mr *to, uint64_t data, void *ctx);
/* Posts until it is taken, with both queues polled; what they had is lost. */
void world_connect(struct world *w);
/* Reads until there is something: 1, or -FI_EAVAIL. */
ssize_t world_read_wait(struct world *w, struct world_ep *of,
			struct fi_cq_data_entry *entry);

#endif
