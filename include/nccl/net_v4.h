/*
 * Net interface v4: NCCL 2.8 to 2.18. One message a receive, no tags, and a
 * handle of 64 bytes.
 */
#ifndef FR_NCCL_NET_V4_H
#define FR_NCCL_NET_V4_H

#include "nccl/net_common.h"

typedef struct {
	char *name;
	char *pciPath; /* sysfs path, or NULL */
	uint64_t guid;
	int ptrSupport;
	int speed; /* Mbit/s */
	int port;
	int maxComms;
} ncclNetProperties_v4_t;

typedef struct {
	const char *name; /* read before init */
	ncclResult_t (*init)(ncclDebugLogger_t logFunction);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v4_t *props);
	ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
	/* Both block until there is a comm. */
	ncclResult_t (*connect)(int dev, void *handle, void **sendComm);
	ncclResult_t (*accept)(void *listenComm, void **recvComm);
	ncclResult_t (*regMr)(void *comm, void *data, int size, int type,
			      void **mhandle);
	ncclResult_t (*deregMr)(void *comm, void *mhandle);
	/* NULL request and success: call again. */
	ncclResult_t (*isend)(void *sendComm, void *data, int size,
			      void *mhandle, void **request);
	ncclResult_t (*irecv)(void *recvComm, void *data, int size,
			      void *mhandle, void **request);
	/* NULL request and success: nothing to wait for. */
	ncclResult_t (*iflush)(void *recvComm, void *data, int size,
			       void *mhandle, void **request);
	ncclResult_t (*test)(void *request, int *done, int *size);
	ncclResult_t (*closeSend)(void *sendComm);
	ncclResult_t (*closeRecv)(void *recvComm);
	ncclResult_t (*closeListen)(void *listenComm);
} ncclNet_v4_t;

#endif
