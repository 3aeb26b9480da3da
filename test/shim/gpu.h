/* Providers that take memory of a GPU, the one of fake/fake_cuda.h: what stands
 * for the NIC is a real provider, which is given the memory's alias. */
#ifndef FR_TEST_SHIM_GPU_H
#define FR_TEST_SHIM_GPU_H

#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

/* Where the CPU finds the bytes at @addr; @addr itself where it may. */
void *shim_gpu_alias(const void *addr);
/* @attr as a provider without GPUs understands it; @iov is room for that. */
void shim_gpu_translate(struct fi_mr_attr *attr, struct iovec *iov);
/* Takes the capability out of @info around a call of the real library.
 * Return: what shim_gpu_restore() puts back. */
uint64_t shim_gpu_strip(struct fi_info *info);
void shim_gpu_restore(struct fi_info *info, uint64_t caps);

#endif
