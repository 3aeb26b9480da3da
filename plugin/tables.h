/* The objects that a host looks up by name; nothing else is exported. */
#ifndef FR_PLUGIN_TABLES_H
#define FR_PLUGIN_TABLES_H

#include "nccl/net_v10.h"
#include "nccl/net_v11.h"
#include "nccl/net_v12.h"
#include "nccl/net_v4.h"
#include "nccl/net_v5.h"
#include "nccl/net_v6.h"
#include "nccl/net_v7.h"
#include "nccl/net_v8.h"
#include "nccl/net_v9.h"

#if defined(__GNUC__) || defined(__clang__)
#define FR_EXPORT __attribute__((visibility("default")))
#else
#define FR_EXPORT
#endif

extern FR_EXPORT const ncclNet_v4_t ncclNetPlugin_v4;
extern FR_EXPORT const ncclNet_v5_t ncclNetPlugin_v5;
extern FR_EXPORT const ncclNet_v6_t ncclNetPlugin_v6;
extern FR_EXPORT const ncclNet_v7_t ncclNetPlugin_v7;
extern FR_EXPORT const ncclNet_v8_t ncclNetPlugin_v8;
extern FR_EXPORT const ncclNet_v9_t ncclNetPlugin_v9;
extern FR_EXPORT const ncclNet_v10_t ncclNetPlugin_v10;
extern FR_EXPORT const ncclNet_v11_t ncclNetPlugin_v11;
extern FR_EXPORT const ncclNet_v12_t ncclNetPlugin_v12;

#endif
