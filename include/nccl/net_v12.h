/*
 * Net interface v12: hosts from NCCL 2.30 on. As v11, with room for more
 * devices in one, and the rail and plane that a device belongs to.
 */
#ifndef FR_NCCL_NET_V12_H
#define FR_NCCL_NET_V12_H

#include "nccl/net_common.h"

#define NCCL_NET_MAX_DEVS_PER_NIC_V12 8

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v12_t;
typedef ncclNetCommConfig_v10_t ncclNetCommConfig_v12_t;
typedef ncclNetAttr_v11_t ncclNetAttr_v12_t;

/* The devices that one made from several consists of. */
typedef struct {
	int ndevs;
	int devs[NCCL_NET_MAX_DEVS_PER_NIC_V12];
} ncclNetVDeviceProps_v12_t;

typedef struct {
	char *name;
	char *pciPath; /* sysfs path, or NULL */
	uint64_t guid;
	int ptrSupport;
	int regIsGlobal;
	int forceFlush;
	int speed; /* Mbit/s */
	int port;
	float latency; /* microseconds */
	int maxComms;
	int maxRecvs; /* receives in one irecv */
	ncclNetDeviceType netDeviceType;
	int netDeviceVersion;
	ncclNetVDeviceProps_v12_t vProps;
	size_t maxP2pBytes;
	size_t maxCollBytes;
	int maxMultiRequestSize;
	int16_t railId;
	int16_t planeId;
} ncclNetProperties_v12_t;

typedef struct {
	const char *name; /* read before init */
	ncclResult_t (*init)(void **ctx, uint64_t commId,
			     ncclNetCommConfig_v12_t *config,
			     ncclDebugLogger_t logFunction,
			     ncclProfilerCallback_t profFunction);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t *props);
	ncclResult_t (*listen)(void *ctx, int dev, void *handle,
			       void **listenComm);
	/* NULL comm and success: call again. */
	ncclResult_t (*connect)(void *ctx, int dev, void *handle,
				void **sendComm,
				ncclNetDeviceHandle_v12_t **sendDevComm);
	ncclResult_t (*accept)(void *listenComm, void **recvComm,
			       ncclNetDeviceHandle_v12_t **recvDevComm);
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
	/* The rest may be NULL, finalize excepted. */
	ncclResult_t (*getDeviceMr)(void *comm, void *mhandle,
				    void **dptr_mhandle);
	ncclResult_t (*irecvConsumed)(void *recvComm, int n, void *request);
	ncclResult_t (*makeVDevice)(int *d, ncclNetVDeviceProps_v12_t *props);
	ncclResult_t (*finalize)(void *ctx);
	ncclResult_t (*setNetAttr)(void *ctx, ncclNetAttr_v12_t *attr);
} ncclNet_v12_t;

#endif
