/*
 * Net interface v10: hosts from NCCL 2.26 on. Adds the host's profiler, and a
 * traffic class to each connect.
 */
#ifndef FR_NCCL_NET_V10_H
#define FR_NCCL_NET_V10_H

#include "nccl/net_v9.h"

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v10_t;
typedef ncclNetVDeviceProps_v9_t ncclNetVDeviceProps_v10_t;
typedef ncclNetProperties_v9_t ncclNetProperties_v10_t;

typedef struct {
	const char *name; /* read before init */
	ncclResult_t (*init)(ncclDebugLogger_t logFunction,
			     ncclProfilerCallback_t profFunction);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v10_t *props);
	ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
	/* NULL comm and success: call again. */
	ncclResult_t (*connect)(int dev, ncclNetCommConfig_v10_t *config,
				void *handle, void **sendComm,
				ncclNetDeviceHandle_v10_t **sendDevComm);
	ncclResult_t (*accept)(void *listenComm, void **recvComm,
			       ncclNetDeviceHandle_v10_t **recvDevComm);
	ncclResult_t (*regMr)(void *comm, void *data, size_t size, int type,
			      void **mhandle);
	/* NULL: no dmabuf. */
	ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size,
				    int type, uint64_t offset, int fd,
				    void **mhandle);
	ncclResult_t (*deregMr)(void *comm, void *mhandle);
	/* NULL request and success: call again. */
	ncclResult_t (*isend)(void *sendComm, void *data, size_t size, int tag,
			      void *mhandle, void *phandle, void **request);
	ncclResult_t (*irecv)(void *recvComm, int n, void **data, size_t *sizes,
			      int *tags, void **mhandles, void **phandles,
			      void **request);
	/* NULL request and success: nothing to wait for. */
	ncclResult_t (*iflush)(void *recvComm, int n, void **data, int *sizes,
			       void **mhandles, void **request);
	ncclResult_t (*test)(void *request, int *done, int *sizes);
	ncclResult_t (*closeSend)(void *sendComm);
	ncclResult_t (*closeRecv)(void *recvComm);
	ncclResult_t (*closeListen)(void *listenComm);
	/* The rest may be NULL. */
	ncclResult_t (*getDeviceMr)(void *comm, void *mhandle,
				    void **dptr_mhandle);
	ncclResult_t (*irecvConsumed)(void *recvComm, int n, void *request);
	ncclResult_t (*makeVDevice)(int *d, ncclNetVDeviceProps_v10_t *props);
} ncclNet_v10_t;

#endif
