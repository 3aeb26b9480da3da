/* Net interface v7: hosts from NCCL 2.19 on. Adds who drives the device. */
#ifndef FR_NCCL_NET_V7_H
#define FR_NCCL_NET_V7_H

#include "nccl/net_common.h"

typedef struct {
	char *name;
	char *pciPath; /* sysfs path, or NULL */
	uint64_t guid;
	int ptrSupport;
	int speed; /* Mbit/s */
	int port;
	float latency; /* microseconds */
	int maxComms;
	int maxRecvs; /* receives in one irecv */
	ncclNetDeviceType netDeviceType;
	int netDeviceVersion;
} ncclNetProperties_v7_t;

typedef struct {
	const char *name; /* read before init */
	ncclResult_t (*init)(ncclDebugLogger_t logFunction);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v7_t *props);
	ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
	/* NULL comm and success: call again. */
	ncclResult_t (*connect)(int dev, void *handle, void **sendComm,
				ncclNetDeviceHandle_v7_t **sendDevComm);
	ncclResult_t (*accept)(void *listenComm, void **recvComm,
			       ncclNetDeviceHandle_v7_t **recvDevComm);
	ncclResult_t (*regMr)(void *comm, void *data, int size, int type,
			      void **mhandle);
	/* NULL: no dmabuf. */
	ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size,
				    int type, uint64_t offset, int fd,
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
	/* The rest may be NULL. */
	ncclResult_t (*getDeviceMr)(void *comm, void *mhandle,
				    void **dptr_mhandle);
	ncclResult_t (*irecvConsumed)(void *recvComm, int n, void *request);
} ncclNet_v7_t;

#endif
