/*
 * Memory as that of a GPU looks from the CPU: addresses that trap. A provider
 * in memory, which stands for a NIC, reaches the bytes through their alias;
 * whoever else touches them dies of it.
 *
 * Threads: any (own mutex).
 */
#ifndef FR_FAKE_GPU_H
#define FR_FAKE_GPU_H

#include <stddef.h>
#include <stdint.h>

struct fake_gpu_info {
	int device;
	uint64_t id; /* never used twice */
};

/* Rounded up to pages; zero. Aborts when the machine has no memory. */
void *fake_gpu_alloc(size_t bytes, int device);
void fake_gpu_free(void *addr);
/* Where the bytes at @addr are; @addr itself where it is other memory. */
void *fake_gpu_alias(const void *addr);
/* Return: 0; -1: @addr is other memory. */
int fake_gpu_find(const void *addr, struct fake_gpu_info *out);
/* A descriptor whose file holds the allocation of @addr from its beginning on,
 * and that fake_dmabuf.c takes for a dma-buf. The caller closes it. */
int fake_gpu_export(const void *addr);
unsigned fake_gpu_live(void);

#endif
