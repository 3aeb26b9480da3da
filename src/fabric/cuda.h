/*
 * The CUDA driver, as far as this floor needs it: what a pointer is, and
 * whether a device's memory can be shared as a dma-buf. Reached by dlopen: it
 * is never linked, a host without it works, and no header of it is used.
 *
 * Nothing here makes a context, or changes the one that is current for the
 * calling thread: both belong to the host program.
 *
 * Threads: fr_cuda_open() under the caller's lock; the rest from any thread
 * once it has succeeded. Blocking: the load and cuInit(), the first time.
 * Private to src/fabric.
 */
#ifndef FR_FABRIC_CUDA_H
#define FR_FABRIC_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_cuda_ptr {
	int device;	   /* as libfabric numbers them: the driver's ordinal */
	uint64_t alloc_id; /* never the same for two allocations */
};

/* Return: 0: there is a driver with a device; -ENODEV: there is none, and @why
 * says so; it stays valid. A library that was loaded stays loaded. */
int fr_cuda_open(const char **why);

/* What [@addr, @addr + @bytes) is. Return: 0: memory of one device; -EINVAL:
 * something else; -EIO: the driver cannot say, logged. */
int fr_cuda_find(const void *addr, size_t bytes, struct fr_cuda_ptr *out);

/* The driver can share @device's memory as a dma-buf. */
bool fr_cuda_has_dmabuf(int device);

/*
 * Memory for a trial, on the device of the calling thread's context. Return: 0;
 * -ENODEV: the thread has no context; -ENOMEM. Freed by the same thread.
 */
int fr_cuda_alloc(size_t bytes, void **out);
void fr_cuda_free(void *addr);
/* A descriptor for memory of fr_cuda_alloc(), which the caller closes.
 * Return: 0; -ENOTSUP. */
int fr_cuda_export(const void *addr, size_t bytes, int *fd);

#endif
