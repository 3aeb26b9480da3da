#include "shim/gpu.h"

#include "fake/fake_cuda.h"
#include "shim/state.h"

void *shim_gpu_alias(const void *addr)
{
	static struct fake_cuda *cuda;
	void *lib;

	if (!shim_wants_gpu()) {
		return (void *)(uintptr_t)addr;
	}
	if (cuda == NULL) {
		lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
		cuda = lib == NULL ? NULL : dlsym(lib, "fake_cuda");
	}
	return cuda == NULL ? (void *)(uintptr_t)addr : cuda->alias(addr);
}

void shim_gpu_translate(struct fi_mr_attr *attr, struct iovec *iov)
{
	if (!shim_wants_gpu() || attr->iface != FI_HMEM_CUDA) {
		return;
	}
	*iov = *attr->mr_iov;
	iov->iov_base = shim_gpu_alias(iov->iov_base);
	attr->mr_iov = iov;
	attr->iface = FI_HMEM_SYSTEM;
	attr->device.reserved = 0;
}

uint64_t shim_gpu_strip(struct fi_info *info)
{
	uint64_t caps = info->caps;

	if (shim_wants_gpu()) {
		info->caps &= ~FI_HMEM;
	}
	return caps;
}

void shim_gpu_restore(struct fi_info *info, uint64_t caps)
{
	info->caps = caps;
}
