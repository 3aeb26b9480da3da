/*
 * Whether the chosen provider takes memory of a GPU, found out by trying.
 * Private to src/fabric.
 */
#ifndef FR_FABRIC_HMEM_H
#define FR_FABRIC_HMEM_H

#include "fabric/discover.h"

/* libfabric's name for it came with 1.18. */
#define FR_FI_OPT_CUDA_API_PERMITTED 10

/**
 * fr_hmem_discover - look at @fabric's NICs, which are known
 *
 * Asks the provider again, for memory of a GPU as well. Where it offers all of
 * the NICs like that, each one is opened and registers memory of the GPU that
 * is current for the calling thread: by its address, and as a dma-buf. NICs
 * that can do either have it set; when there is none, all stay as they were.
 * The reason is told in one info line and kept in @fabric.
 *
 * Threads: as fr_fabric_open(). Blocking: opens every NIC once.
 * Return: 0, also when nothing works; -ENOMEM.
 */
int fr_hmem_discover(struct fr_fabric *fabric, const struct fr_conf *conf);

#endif
