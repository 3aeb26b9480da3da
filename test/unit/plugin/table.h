/*
 * The tables behind one set of calls, so that what must hold for each version
 * is written once. Sizes are signed: a version whose sizes have no sign gets
 * them converted.
 */
#ifndef FR_TEST_PLUGIN_TABLE_H
#define FR_TEST_PLUGIN_TABLE_H

#include <stddef.h>

#include "nccl/net_common.h"

struct table {
	int abi;
	const void *object; /* what the host finds under the symbol */
	unsigned members;   /* the name and the functions */
	int newest;	    /* the newest result its hosts know */
	int max_recvs;
	int blocks;	    /* connect and accept; the handle is short */
	int has_groups;	    /* receives and flushes take lists, sends a tag */
	int wide_reg;	    /* the size of a registration is size_t */
	int wide_data;	    /* and that of a message */
	int has_ctx;	    /* init and finalize come in pairs */
	int has_dev_handle; /* connect and accept have one */

	ncclResult_t (*init)(ncclDebugLogger_t logger, void **ctx);
	ncclResult_t (*finalize)(void *ctx);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*props)(int dev, char **name, char **pci_path);
	/* Into the host's struct of that version. */
	ncclResult_t (*props_at)(int dev, void *props);
	ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **comm);
	ncclResult_t (*connect)(void *ctx, int dev, void *handle, void **comm,
				ncclNetDeviceHandle_v7_t **dev_comm);
	ncclResult_t (*accept)(void *listen, void **comm,
			       ncclNetDeviceHandle_v7_t **dev_comm);
	ncclResult_t (*reg_mr)(void *comm, void *data, long size, int type,
			       void **mhandle);
	ncclResult_t (*dereg_mr)(void *comm, void *mhandle);
	ncclResult_t (*isend)(void *comm, void *data, long size, int tag,
			      void *mhandle, void **request);
	ncclResult_t (*irecv)(void *comm, int n, void **data, const long *sizes,
			      int *tags, void **mhandles, void **request);
	ncclResult_t (*iflush)(void *comm, int n, void **data, int *sizes,
			       void **mhandles, void **request);
	ncclResult_t (*test)(void *request, int *done, int *sizes);
	ncclResult_t (*close_send)(void *comm);
	ncclResult_t (*close_recv)(void *comm);
	ncclResult_t (*close_listen)(void *comm);
};

#define TABLE_CNT 9
extern const struct table tables[TABLE_CNT];

static inline const struct table *table_of(int abi)
{
	return &tables[abi - 4];
}

/* What reached the host's logger since log_reset(); the last line's values. */
struct host_log {
	unsigned lines[NCCL_LOG_TRACE + 1];
	ncclDebugLogLevel level;
	unsigned long flags;
	int line;
	char file[256];
	char text[256];
	char warning[256]; /* the last one */
};
extern struct host_log host_log;

void host_logger(ncclDebugLogLevel level, unsigned long flags, const char *file,
		 int line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void host_log_reset(void);

/* Fixture: a fresh fake core under shells that were never initialised; at the
 * end nothing may be left. */
void shells_setup(void);
void shells_teardown(void);

#endif
