/*
 * The layout that hosts were compiled against, as numbers (LP64). A header that
 * drifts does not compile; nothing of this reaches the object file.
 */
#include <stddef.h>

#include "base/util.h"
#include "nccl/net_common.h"
#include "nccl/net_v10.h"
#include "nccl/net_v11.h"
#include "nccl/net_v12.h"
#include "nccl/net_v4.h"
#include "nccl/net_v5.h"
#include "nccl/net_v6.h"
#include "nccl/net_v7.h"
#include "nccl/net_v8.h"
#include "nccl/net_v9.h"

#define AT(type, field, offset)                                                \
	_Static_assert(offsetof(type, field) == (offset),                      \
		       #type "." #field " moved")
#define SIZE(type, bytes)                                                      \
	_Static_assert(sizeof(type) == (bytes), #type " changed its size")
/* A table is its name and one pointer a function, without gaps. */
#define MEMBER(type, field, nth) AT(type, field, (nth) * sizeof(void *))

SIZE(void *, 8);
SIZE(ncclResult_t, 4);
SIZE(ncclDebugLogLevel, 4);
SIZE(ncclNetDeviceType, 4);

SIZE(ncclNetDeviceHandle_v7_t, 32);
AT(ncclNetDeviceHandle_v7_t, netDeviceType, 0);
AT(ncclNetDeviceHandle_v7_t, netDeviceVersion, 4);
AT(ncclNetDeviceHandle_v7_t, handle, 8);
AT(ncclNetDeviceHandle_v7_t, size, 16);
AT(ncclNetDeviceHandle_v7_t, needsProxyProgress, 24);

SIZE(ncclNetCommConfig_v10_t, 4);
AT(ncclNetCommConfig_v10_t, trafficClass, 0);

SIZE(ncclNetCommAttr_v11_t, 16);
AT(ncclNetCommAttr_v11_t, maxConcurrentPeers, 0);
AT(ncclNetCommAttr_v11_t, minConcurrentPeers, 4);
AT(ncclNetCommAttr_v11_t, maxFlowsPerPeer, 8);
AT(ncclNetCommAttr_v11_t, minFlowsPerPeer, 12);
SIZE(ncclNetAttr_v11_t, 44);
AT(ncclNetAttr_v11_t, sendCommAttr, 0);
AT(ncclNetAttr_v11_t, recvCommAttr, 16);
AT(ncclNetAttr_v11_t, op, 32);
AT(ncclNetAttr_v11_t, algo, 36);
AT(ncclNetAttr_v11_t, proto, 40);

SIZE(ncclNetProperties_v4_t, 40);
AT(ncclNetProperties_v4_t, name, 0);
AT(ncclNetProperties_v4_t, pciPath, 8);
AT(ncclNetProperties_v4_t, guid, 16);
AT(ncclNetProperties_v4_t, ptrSupport, 24);
AT(ncclNetProperties_v4_t, speed, 28);
AT(ncclNetProperties_v4_t, port, 32);
AT(ncclNetProperties_v4_t, maxComms, 36);

SIZE(ncclNet_v4_t, 128);
MEMBER(ncclNet_v4_t, name, 0);
MEMBER(ncclNet_v4_t, init, 1);
MEMBER(ncclNet_v4_t, devices, 2);
MEMBER(ncclNet_v4_t, getProperties, 3);
MEMBER(ncclNet_v4_t, listen, 4);
MEMBER(ncclNet_v4_t, connect, 5);
MEMBER(ncclNet_v4_t, accept, 6);
MEMBER(ncclNet_v4_t, regMr, 7);
MEMBER(ncclNet_v4_t, deregMr, 8);
MEMBER(ncclNet_v4_t, isend, 9);
MEMBER(ncclNet_v4_t, irecv, 10);
MEMBER(ncclNet_v4_t, iflush, 11);
MEMBER(ncclNet_v4_t, test, 12);
MEMBER(ncclNet_v4_t, closeSend, 13);
MEMBER(ncclNet_v4_t, closeRecv, 14);
MEMBER(ncclNet_v4_t, closeListen, 15);

SIZE(ncclNetProperties_v6_t, 48);
AT(ncclNetProperties_v6_t, name, 0);
AT(ncclNetProperties_v6_t, pciPath, 8);
AT(ncclNetProperties_v6_t, guid, 16);
AT(ncclNetProperties_v6_t, ptrSupport, 24);
AT(ncclNetProperties_v6_t, speed, 28);
AT(ncclNetProperties_v6_t, port, 32);
AT(ncclNetProperties_v6_t, latency, 36);
AT(ncclNetProperties_v6_t, maxComms, 40);
AT(ncclNetProperties_v6_t, maxRecvs, 44);

SIZE(ncclNetProperties_v5_t, 48);
SIZE(ncclNet_v5_t, 128);
MEMBER(ncclNet_v5_t, name, 0);
MEMBER(ncclNet_v5_t, init, 1);
MEMBER(ncclNet_v5_t, devices, 2);
MEMBER(ncclNet_v5_t, getProperties, 3);
MEMBER(ncclNet_v5_t, listen, 4);
MEMBER(ncclNet_v5_t, connect, 5);
MEMBER(ncclNet_v5_t, accept, 6);
MEMBER(ncclNet_v5_t, regMr, 7);
MEMBER(ncclNet_v5_t, deregMr, 8);
MEMBER(ncclNet_v5_t, isend, 9);
MEMBER(ncclNet_v5_t, irecv, 10);
MEMBER(ncclNet_v5_t, iflush, 11);
MEMBER(ncclNet_v5_t, test, 12);
MEMBER(ncclNet_v5_t, closeSend, 13);
MEMBER(ncclNet_v5_t, closeRecv, 14);
MEMBER(ncclNet_v5_t, closeListen, 15);

SIZE(ncclNet_v6_t, 136);
MEMBER(ncclNet_v6_t, name, 0);
MEMBER(ncclNet_v6_t, init, 1);
MEMBER(ncclNet_v6_t, devices, 2);
MEMBER(ncclNet_v6_t, getProperties, 3);
MEMBER(ncclNet_v6_t, listen, 4);
MEMBER(ncclNet_v6_t, connect, 5);
MEMBER(ncclNet_v6_t, accept, 6);
MEMBER(ncclNet_v6_t, regMr, 7);
MEMBER(ncclNet_v6_t, regMrDmaBuf, 8);
MEMBER(ncclNet_v6_t, deregMr, 9);
MEMBER(ncclNet_v6_t, isend, 10);
MEMBER(ncclNet_v6_t, irecv, 11);
MEMBER(ncclNet_v6_t, iflush, 12);
MEMBER(ncclNet_v6_t, test, 13);
MEMBER(ncclNet_v6_t, closeSend, 14);
MEMBER(ncclNet_v6_t, closeRecv, 15);
MEMBER(ncclNet_v6_t, closeListen, 16);

SIZE(ncclNetProperties_v7_t, 56);
AT(ncclNetProperties_v7_t, name, 0);
AT(ncclNetProperties_v7_t, pciPath, 8);
AT(ncclNetProperties_v7_t, guid, 16);
AT(ncclNetProperties_v7_t, ptrSupport, 24);
AT(ncclNetProperties_v7_t, speed, 28);
AT(ncclNetProperties_v7_t, port, 32);
AT(ncclNetProperties_v7_t, latency, 36);
AT(ncclNetProperties_v7_t, maxComms, 40);
AT(ncclNetProperties_v7_t, maxRecvs, 44);
AT(ncclNetProperties_v7_t, netDeviceType, 48);
AT(ncclNetProperties_v7_t, netDeviceVersion, 52);

SIZE(ncclNet_v7_t, 152);
MEMBER(ncclNet_v7_t, name, 0);
MEMBER(ncclNet_v7_t, init, 1);
MEMBER(ncclNet_v7_t, devices, 2);
MEMBER(ncclNet_v7_t, getProperties, 3);
MEMBER(ncclNet_v7_t, listen, 4);
MEMBER(ncclNet_v7_t, connect, 5);
MEMBER(ncclNet_v7_t, accept, 6);
MEMBER(ncclNet_v7_t, regMr, 7);
MEMBER(ncclNet_v7_t, regMrDmaBuf, 8);
MEMBER(ncclNet_v7_t, deregMr, 9);
MEMBER(ncclNet_v7_t, isend, 10);
MEMBER(ncclNet_v7_t, irecv, 11);
MEMBER(ncclNet_v7_t, iflush, 12);
MEMBER(ncclNet_v7_t, test, 13);
MEMBER(ncclNet_v7_t, closeSend, 14);
MEMBER(ncclNet_v7_t, closeRecv, 15);
MEMBER(ncclNet_v7_t, closeListen, 16);
MEMBER(ncclNet_v7_t, getDeviceMr, 17);
MEMBER(ncclNet_v7_t, irecvConsumed, 18);

SIZE(ncclNetProperties_v8_t, 64);
AT(ncclNetProperties_v8_t, name, 0);
AT(ncclNetProperties_v8_t, pciPath, 8);
AT(ncclNetProperties_v8_t, guid, 16);
AT(ncclNetProperties_v8_t, ptrSupport, 24);
AT(ncclNetProperties_v8_t, regIsGlobal, 28);
AT(ncclNetProperties_v8_t, speed, 32);
AT(ncclNetProperties_v8_t, port, 36);
AT(ncclNetProperties_v8_t, latency, 40);
AT(ncclNetProperties_v8_t, maxComms, 44);
AT(ncclNetProperties_v8_t, maxRecvs, 48);
AT(ncclNetProperties_v8_t, netDeviceType, 52);
AT(ncclNetProperties_v8_t, netDeviceVersion, 56);

SIZE(ncclNet_v8_t, 152);
MEMBER(ncclNet_v8_t, name, 0);
MEMBER(ncclNet_v8_t, init, 1);
MEMBER(ncclNet_v8_t, devices, 2);
MEMBER(ncclNet_v8_t, getProperties, 3);
MEMBER(ncclNet_v8_t, listen, 4);
MEMBER(ncclNet_v8_t, connect, 5);
MEMBER(ncclNet_v8_t, accept, 6);
MEMBER(ncclNet_v8_t, regMr, 7);
MEMBER(ncclNet_v8_t, regMrDmaBuf, 8);
MEMBER(ncclNet_v8_t, deregMr, 9);
MEMBER(ncclNet_v8_t, isend, 10);
MEMBER(ncclNet_v8_t, irecv, 11);
MEMBER(ncclNet_v8_t, iflush, 12);
MEMBER(ncclNet_v8_t, test, 13);
MEMBER(ncclNet_v8_t, closeSend, 14);
MEMBER(ncclNet_v8_t, closeRecv, 15);
MEMBER(ncclNet_v8_t, closeListen, 16);
MEMBER(ncclNet_v8_t, getDeviceMr, 17);
MEMBER(ncclNet_v8_t, irecvConsumed, 18);

SIZE(ncclNetVDeviceProps_v9_t, 20);
AT(ncclNetVDeviceProps_v9_t, ndevs, 0);
AT(ncclNetVDeviceProps_v9_t, devs, 4);
SIZE(ncclNetProperties_v9_t, 104);
AT(ncclNetProperties_v9_t, name, 0);
AT(ncclNetProperties_v9_t, pciPath, 8);
AT(ncclNetProperties_v9_t, guid, 16);
AT(ncclNetProperties_v9_t, ptrSupport, 24);
AT(ncclNetProperties_v9_t, regIsGlobal, 28);
AT(ncclNetProperties_v9_t, forceFlush, 32);
AT(ncclNetProperties_v9_t, speed, 36);
AT(ncclNetProperties_v9_t, port, 40);
AT(ncclNetProperties_v9_t, latency, 44);
AT(ncclNetProperties_v9_t, maxComms, 48);
AT(ncclNetProperties_v9_t, maxRecvs, 52);
AT(ncclNetProperties_v9_t, netDeviceType, 56);
AT(ncclNetProperties_v9_t, netDeviceVersion, 60);
AT(ncclNetProperties_v9_t, vProps, 64);
AT(ncclNetProperties_v9_t, maxP2pBytes, 88);
AT(ncclNetProperties_v9_t, maxCollBytes, 96);

SIZE(ncclNet_v9_t, 160);
MEMBER(ncclNet_v9_t, name, 0);
MEMBER(ncclNet_v9_t, init, 1);
MEMBER(ncclNet_v9_t, devices, 2);
MEMBER(ncclNet_v9_t, getProperties, 3);
MEMBER(ncclNet_v9_t, listen, 4);
MEMBER(ncclNet_v9_t, connect, 5);
MEMBER(ncclNet_v9_t, accept, 6);
MEMBER(ncclNet_v9_t, regMr, 7);
MEMBER(ncclNet_v9_t, regMrDmaBuf, 8);
MEMBER(ncclNet_v9_t, deregMr, 9);
MEMBER(ncclNet_v9_t, isend, 10);
MEMBER(ncclNet_v9_t, irecv, 11);
MEMBER(ncclNet_v9_t, iflush, 12);
MEMBER(ncclNet_v9_t, test, 13);
MEMBER(ncclNet_v9_t, closeSend, 14);
MEMBER(ncclNet_v9_t, closeRecv, 15);
MEMBER(ncclNet_v9_t, closeListen, 16);
MEMBER(ncclNet_v9_t, getDeviceMr, 17);
MEMBER(ncclNet_v9_t, irecvConsumed, 18);
MEMBER(ncclNet_v9_t, makeVDevice, 19);

SIZE(ncclNetProperties_v10_t, 104);
SIZE(ncclNet_v10_t, 160);
MEMBER(ncclNet_v10_t, name, 0);
MEMBER(ncclNet_v10_t, init, 1);
MEMBER(ncclNet_v10_t, devices, 2);
MEMBER(ncclNet_v10_t, getProperties, 3);
MEMBER(ncclNet_v10_t, listen, 4);
MEMBER(ncclNet_v10_t, connect, 5);
MEMBER(ncclNet_v10_t, accept, 6);
MEMBER(ncclNet_v10_t, regMr, 7);
MEMBER(ncclNet_v10_t, regMrDmaBuf, 8);
MEMBER(ncclNet_v10_t, deregMr, 9);
MEMBER(ncclNet_v10_t, isend, 10);
MEMBER(ncclNet_v10_t, irecv, 11);
MEMBER(ncclNet_v10_t, iflush, 12);
MEMBER(ncclNet_v10_t, test, 13);
MEMBER(ncclNet_v10_t, closeSend, 14);
MEMBER(ncclNet_v10_t, closeRecv, 15);
MEMBER(ncclNet_v10_t, closeListen, 16);
MEMBER(ncclNet_v10_t, getDeviceMr, 17);
MEMBER(ncclNet_v10_t, irecvConsumed, 18);
MEMBER(ncclNet_v10_t, makeVDevice, 19);

SIZE(ncclNetVDeviceProps_v11_t, 20);
SIZE(ncclNetProperties_v11_t, 112);
AT(ncclNetProperties_v11_t, name, 0);
AT(ncclNetProperties_v11_t, pciPath, 8);
AT(ncclNetProperties_v11_t, guid, 16);
AT(ncclNetProperties_v11_t, ptrSupport, 24);
AT(ncclNetProperties_v11_t, regIsGlobal, 28);
AT(ncclNetProperties_v11_t, forceFlush, 32);
AT(ncclNetProperties_v11_t, speed, 36);
AT(ncclNetProperties_v11_t, port, 40);
AT(ncclNetProperties_v11_t, latency, 44);
AT(ncclNetProperties_v11_t, maxComms, 48);
AT(ncclNetProperties_v11_t, maxRecvs, 52);
AT(ncclNetProperties_v11_t, netDeviceType, 56);
AT(ncclNetProperties_v11_t, netDeviceVersion, 60);
AT(ncclNetProperties_v11_t, vProps, 64);
AT(ncclNetProperties_v11_t, maxP2pBytes, 88);
AT(ncclNetProperties_v11_t, maxCollBytes, 96);
AT(ncclNetProperties_v11_t, maxMultiRequestSize, 104);

SIZE(ncclNet_v11_t, 176);
MEMBER(ncclNet_v11_t, name, 0);
MEMBER(ncclNet_v11_t, init, 1);
MEMBER(ncclNet_v11_t, devices, 2);
MEMBER(ncclNet_v11_t, getProperties, 3);
MEMBER(ncclNet_v11_t, listen, 4);
MEMBER(ncclNet_v11_t, connect, 5);
MEMBER(ncclNet_v11_t, accept, 6);
MEMBER(ncclNet_v11_t, regMr, 7);
MEMBER(ncclNet_v11_t, regMrDmaBuf, 8);
MEMBER(ncclNet_v11_t, deregMr, 9);
MEMBER(ncclNet_v11_t, isend, 10);
MEMBER(ncclNet_v11_t, irecv, 11);
MEMBER(ncclNet_v11_t, iflush, 12);
MEMBER(ncclNet_v11_t, test, 13);
MEMBER(ncclNet_v11_t, closeSend, 14);
MEMBER(ncclNet_v11_t, closeRecv, 15);
MEMBER(ncclNet_v11_t, closeListen, 16);
MEMBER(ncclNet_v11_t, getDeviceMr, 17);
MEMBER(ncclNet_v11_t, irecvConsumed, 18);
MEMBER(ncclNet_v11_t, makeVDevice, 19);
MEMBER(ncclNet_v11_t, finalize, 20);
MEMBER(ncclNet_v11_t, setNetAttr, 21);

SIZE(ncclNetVDeviceProps_v12_t, 36);
AT(ncclNetVDeviceProps_v12_t, ndevs, 0);
AT(ncclNetVDeviceProps_v12_t, devs, 4);
SIZE(ncclNetProperties_v12_t, 128);
AT(ncclNetProperties_v12_t, name, 0);
AT(ncclNetProperties_v12_t, pciPath, 8);
AT(ncclNetProperties_v12_t, guid, 16);
AT(ncclNetProperties_v12_t, ptrSupport, 24);
AT(ncclNetProperties_v12_t, regIsGlobal, 28);
AT(ncclNetProperties_v12_t, forceFlush, 32);
AT(ncclNetProperties_v12_t, speed, 36);
AT(ncclNetProperties_v12_t, port, 40);
AT(ncclNetProperties_v12_t, latency, 44);
AT(ncclNetProperties_v12_t, maxComms, 48);
AT(ncclNetProperties_v12_t, maxRecvs, 52);
AT(ncclNetProperties_v12_t, netDeviceType, 56);
AT(ncclNetProperties_v12_t, netDeviceVersion, 60);
AT(ncclNetProperties_v12_t, vProps, 64);
AT(ncclNetProperties_v12_t, maxP2pBytes, 104);
AT(ncclNetProperties_v12_t, maxCollBytes, 112);
AT(ncclNetProperties_v12_t, maxMultiRequestSize, 120);
AT(ncclNetProperties_v12_t, railId, 124);
AT(ncclNetProperties_v12_t, planeId, 126);

SIZE(ncclNet_v12_t, 176);
MEMBER(ncclNet_v12_t, name, 0);
MEMBER(ncclNet_v12_t, init, 1);
MEMBER(ncclNet_v12_t, devices, 2);
MEMBER(ncclNet_v12_t, getProperties, 3);
MEMBER(ncclNet_v12_t, listen, 4);
MEMBER(ncclNet_v12_t, connect, 5);
MEMBER(ncclNet_v12_t, accept, 6);
MEMBER(ncclNet_v12_t, regMr, 7);
MEMBER(ncclNet_v12_t, regMrDmaBuf, 8);
MEMBER(ncclNet_v12_t, deregMr, 9);
MEMBER(ncclNet_v12_t, isend, 10);
MEMBER(ncclNet_v12_t, irecv, 11);
MEMBER(ncclNet_v12_t, iflush, 12);
MEMBER(ncclNet_v12_t, test, 13);
MEMBER(ncclNet_v12_t, closeSend, 14);
MEMBER(ncclNet_v12_t, closeRecv, 15);
MEMBER(ncclNet_v12_t, closeListen, 16);
MEMBER(ncclNet_v12_t, getDeviceMr, 17);
MEMBER(ncclNet_v12_t, irecvConsumed, 18);
MEMBER(ncclNet_v12_t, makeVDevice, 19);
MEMBER(ncclNet_v12_t, finalize, 20);
MEMBER(ncclNet_v12_t, setNetAttr, 21);
