/*
 * What every table does alike, on types that no version owns: the shells only
 * convert arguments and properties. The rules of NCCL's contract that hold for
 * all versions live here.
 *
 * - An out argument is written on every path: NULL, or 0, unless there is
 *   something to give.
 * - "Call again" is success with NULL, never a result.
 * - close and deregister accept NULL, and close never fails.
 * - A size is refused when it does not fit ptrdiff_t, so that a negative one of
 *   an older version is refused after sign extension.
 *
 * Threads and blocking: as the call of net/net.h of the same name.
 */
#ifndef FR_PLUGIN_COMMON_H
#define FR_PLUGIN_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "nccl/net_common.h"
#include "plugin/life.h"

#define FR_SHELL_NAME "fabrail"
#define FR_SHELL_MAX_RECVS 8

/* Properties that the core knows; the shells add the constant ones. The texts
 * stay valid until the library is unloaded. */
struct fr_shell_props {
	char *name;
	char *pci_path;
	uint64_t guid;
	int ptr_support; /* kinds of memory, NCCL_PTR_* bits of the version */
	int speed_mbps;
	int max_comms;
	size_t max_bytes; /* largest message, 1 byte to 1 TiB */
};

/* The only place that turns an -errno into a result. */
ncclResult_t fr_shell_result(const struct fr_shell *shell, int ret);
/* Logs @text, a caller's bug, and returns the result for it. */
ncclResult_t fr_shell_refuse(const char *text);

ncclResult_t fr_shell_devices(struct fr_shell *shell, int *ndev);
ncclResult_t fr_shell_props(struct fr_shell *shell, int dev,
			    struct fr_shell_props *out);

/* @tclass: NCCL_NET_TRAFFIC_CLASS_UNDEF where the host has given none. */
ncclResult_t fr_shell_listen(struct fr_shell *shell, int dev, int tclass,
			     void *handle, void **listen_comm);
ncclResult_t fr_shell_connect(struct fr_shell *shell, int dev, int tclass,
			      void *handle, void **send_comm);
ncclResult_t fr_shell_accept(struct fr_shell *shell, void *listen_comm,
			     void **recv_comm);
ncclResult_t fr_shell_close_listen(void *listen_comm);
ncclResult_t fr_shell_close_send(void *send_comm);
ncclResult_t fr_shell_close_recv(void *recv_comm);

ncclResult_t fr_shell_reg_mr(struct fr_shell *shell, void *comm, void *data,
			     size_t size, int type, void **mhandle);
/* From v6 on: memory of a GPU as a dma-buf; @fd stays the host's. */
ncclResult_t fr_shell_reg_dmabuf(struct fr_shell *shell, void *comm, void *data,
				 size_t size, int type, uint64_t offset, int fd,
				 void **mhandle);
ncclResult_t fr_shell_dereg_mr(struct fr_shell *shell, void *comm,
			       void *mhandle);

ncclResult_t fr_shell_isend(struct fr_shell *shell, void *send_comm, void *data,
			    size_t size, int tag, void *mhandle,
			    void **request);
ncclResult_t fr_shell_irecv(struct fr_shell *shell, void *recv_comm, int n,
			    void **data, const size_t *sizes, const int *tags,
			    void **mhandles, void **request);
/* For versions whose sizes are int. */
ncclResult_t fr_shell_irecv_int(struct fr_shell *shell, void *recv_comm, int n,
				void **data, const int *sizes, const int *tags,
				void **mhandles, void **request);
ncclResult_t fr_shell_iflush(struct fr_shell *shell, void *recv_comm, int n,
			     void **data, const int *sizes, void **mhandles,
			     void **request);
ncclResult_t fr_shell_test(struct fr_shell *shell, void *request, int *done,
			   int *sizes);

#endif
