/*
 * What the versions of NCCL's net interface have in common. The names are
 * NCCL's, so that a reader who knows one side finds his way on the other; every
 * size and offset is pinned in plugin/abi_check.c.
 */
#ifndef FR_NCCL_NET_COMMON_H
#define FR_NCCL_NET_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "nccl/err.h"

/* Kinds of memory: bits of ptrSupport, and the type given to regMr. */
#define NCCL_PTR_HOST 0x1
#define NCCL_PTR_CUDA 0x2
#define NCCL_PTR_DMABUF 0x4 /* from v6 on */

#define NCCL_NET_HANDLE_MAXSIZE 128
#define NCCL_NET_HANDLE_MAXSIZE_V4 64

/* Requests in flight that a host may have on one connection. */
#define NCCL_NET_MAX_REQUESTS 32
#define NCCL_NET_MAX_REQUESTS_V6 8

/* A hint in *request on entry to irecv (v9 on): the host will not look at the
 * data of this receive through test(). */
#define NCCL_NET_OPTIONAL_RECV_COMPLETION 0x1

/* Upper bound of maxP2pBytes and maxCollBytes: 1 TiB. */
#define NCCL_MAX_NET_SIZE_BYTES (1ull << 40)

/* "Not set" for traffic class, attributes, rail and plane. */
#define NCCL_NET_TRAFFIC_CLASS_UNDEF (-1)
#define NCCL_NET_ATTR_UNDEF (-1)
#define NCCL_NET_ID_UNDEF (-1)

typedef enum {
	NCCL_LOG_NONE = 0,
	NCCL_LOG_VERSION = 1,
	NCCL_LOG_WARN = 2,
	NCCL_LOG_INFO = 3,
	NCCL_LOG_ABORT = 4,
	NCCL_LOG_TRACE = 5,
} ncclDebugLogLevel;

/* Bits of a log line's flags that concern a net plugin. */
#define NCCL_INIT 0x1ul
#define NCCL_NET 0x10ul
#define NCCL_ALL (~0ul)

typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags,
				  const char *file, int line, const char *fmt,
				  ...);

/* v10 on: reports events of the plugin to the host's profiler. */
typedef ncclResult_t (*ncclProfilerCallback_t)(void **eHandle, int type,
					       void *pHandle, int64_t pluginId,
					       void *extData);

/* v7 on: who drives the device; a plain plugin is HOST. */
typedef enum {
	NCCL_NET_DEVICE_HOST = 0,
	NCCL_NET_DEVICE_UNPACK = 1,
	NCCL_NET_DEVICE_GIN_PROXY = 2,
	NCCL_NET_DEVICE_GIN_GDAKI = 3,
	NCCL_NET_DEVICE_GIN_GPI = 4,
} ncclNetDeviceType;

#define NCCL_NET_DEVICE_INVALID_VERSION 0

/* The same in v7 to v12. */
typedef struct {
	ncclNetDeviceType netDeviceType;
	int netDeviceVersion;
	void *handle;
	size_t size;
	int needsProxyProgress;
} ncclNetDeviceHandle_v7_t;

/* The same in v10 to v12; v10 gives it to connect, the others to init. */
typedef struct {
	int trafficClass;
} ncclNetCommConfig_v10_t;

/* The same in v11 and v12: hints, -1 where nothing is known. */
typedef struct {
	int32_t maxConcurrentPeers;
	int32_t minConcurrentPeers;
	int32_t maxFlowsPerPeer;
	int32_t minFlowsPerPeer;
} ncclNetCommAttr_v11_t;

typedef struct {
	ncclNetCommAttr_v11_t sendCommAttr;
	ncclNetCommAttr_v11_t recvCommAttr;
	uint32_t op; /* bit masks over the host's own enums */
	uint32_t algo;
	uint32_t proto;
} ncclNetAttr_v11_t;

#endif
