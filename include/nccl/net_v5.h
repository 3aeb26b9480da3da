/* Net interface v5: NCCL 2.12 to 2.25. As v6, but without dmabuf. */
#ifndef FR_NCCL_NET_V5_H
#define FR_NCCL_NET_V5_H

#include "nccl/net_v6.h"

typedef ncclNetProperties_v6_t ncclNetProperties_v5_t;

typedef struct {
	const char *name; /* read before init */
	ncclResult_t (*init)(ncclDebugLogger_t logFunction);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v5_t *props);
	ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
	/* NULL comm and success: call again. */
	ncclResult_t (*connect)(int dev, void *handle, void **sendComm);
	ncclResult_t (*accept)(void *listenComm, void **recvComm);
	ncclResult_t (*regMr)(void *comm, void *data, int size, int type,
			      void **mhandle);
	ncclResult_t (*deregMr)(void *comm, void *mhandle);
	/* NULL request and success: call again. */
	ncclResult_t (*isend)(void *sendComm, void *data, int size, int tag,
			      void *mhandle, void **request);
	ncclResult_t (*irecv)(void *recvComm, int n, void **data, int *sizes,
			      int *tags, void **mhandles, void **request);
	/* NULL request and success: nothing to wait for. */
	ncclResult_t (*iflush)(void *recvComm, int n, void **data, int *sizes,
			       void **mhandles, void **request);
	ncclResult_t (*test)(void *request, int *done, int *sizes);
	ncclResult_t (*closeSend)(void *sendComm);
	ncclResult_t (*closeRecv)(void *recvComm);
	ncclResult_t (*closeListen)(void *listenComm);
} ncclNet_v5_t;

#endif
