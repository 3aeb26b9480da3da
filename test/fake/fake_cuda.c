#include "fake/fake_cuda.h"

#include "fake/fake_gpu.h"

#define EXPORT __attribute__((visibility("default")))

/* The driver's numbers. */
enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NO_DEVICE = 100,
	PTR_MEMORY_TYPE = 2,
	PTR_BUFFER_ID = 7,
	PTR_IS_MANAGED = 8,
	PTR_DEVICE = 9,
	MEMORY_DEVICE = 2,
	DEV_DMA_BUF = 124,
	RANGE_DMA_BUF = 1,
};

static void cuda_reset(void);

/* clang-format off */
EXPORT struct fake_cuda fake_cuda = {
	.device_cnt = 1,
	.dmabuf = true,
	.alloc = fake_gpu_alloc,
	.free = fake_gpu_free,
	.alias = fake_gpu_alias,
	.export = fake_gpu_export,
	.live = fake_gpu_live,
	.reset = cuda_reset,
};

/* Written with their types as any program has them, without its header. */
EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *cnt);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cuPointerGetAttributes(unsigned cnt, int *names, void **data, unsigned long long ptr);
EXPORT int cuCtxGetCurrent(void **context);
EXPORT int cuCtxSetCurrent(void *context);
EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device);
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
EXPORT int cuMemAlloc_v2(unsigned long long *ptr, size_t bytes);
EXPORT int cuMemFree_v2(unsigned long long ptr);
EXPORT int cuMemGetHandleForAddressRange(void *handle, unsigned long long ptr, size_t bytes, int type, unsigned long long flags);
EXPORT int cuGetErrorString(int err, const char **text);
/* clang-format on */

static void cuda_reset(void)
{
	fake_cuda.init_ret = SUCCESS;
	fake_cuda.device_cnt = 1;
	fake_cuda.dmabuf = true;
	fake_cuda.no_context = false;
	fake_cuda.no_memory = false;
	fake_cuda.managed = false;
	fake_cuda.pointer_ret = SUCCESS;
	fake_cuda.contexts = 0;
	fake_cuda.exports = 0;
}

int cuInit(unsigned flags)
{
	return flags != 0 ? INVALID_VALUE : fake_cuda.init_ret;
}

int cuDeviceGetCount(int *cnt)
{
	*cnt = fake_cuda.device_cnt;
	return SUCCESS;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal < fake_cuda.device_cnt ? SUCCESS : NO_DEVICE;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	if (attribute != DEV_DMA_BUF || device >= fake_cuda.device_cnt) {
		return INVALID_VALUE;
	}
	*value = fake_cuda.dmabuf;
	return SUCCESS;
}

/* As the driver: an unknown pointer is no error, its values are zero. */
int cuPointerGetAttributes(unsigned cnt, int *names, void **data,
			   unsigned long long ptr)
{
	struct fake_gpu_info info = {0};
	bool known =
		fake_gpu_find((const void *)(uintptr_t)ptr, &info) == SUCCESS;

	for (unsigned i = 0; i < cnt; i++) {
		switch (names[i]) {
		case PTR_MEMORY_TYPE:
			*(unsigned *)data[i] = known ? MEMORY_DEVICE : 0;
			break;
		case PTR_IS_MANAGED:
			*(unsigned *)data[i] = known && fake_cuda.managed;
			break;
		case PTR_DEVICE:
			*(int *)data[i] = known ? info.device : -2;
			break;
		case PTR_BUFFER_ID:
			*(unsigned long long *)data[i] = info.id;
			break;
		default:
			return INVALID_VALUE;
		}
	}
	return fake_cuda.pointer_ret;
}

int cuCtxGetCurrent(void **context)
{
	*context = fake_cuda.no_context ? NULL : &fake_cuda;
	return SUCCESS;
}

int cuCtxSetCurrent(void *context)
{
	(void)context;
	fake_cuda.contexts++;
	return SUCCESS;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
	(void)flags;
	(void)device;
	*context = &fake_cuda;
	fake_cuda.contexts++;
	return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	return cuCtxCreate_v2(context, 0, device);
}

int cuMemAlloc_v2(unsigned long long *ptr, size_t bytes)
{
	if (fake_cuda.no_context || fake_cuda.no_memory) {
		return OUT_OF_MEMORY;
	}
	*ptr = (uintptr_t)fake_gpu_alloc(bytes, 0);
	return SUCCESS;
}

int cuMemFree_v2(unsigned long long ptr)
{
	struct fake_gpu_info info;

	if (fake_gpu_find((const void *)(uintptr_t)ptr, &info) != 0) {
		return INVALID_VALUE;
	}
	fake_gpu_free((void *)(uintptr_t)ptr);
	return SUCCESS;
}

int cuMemGetHandleForAddressRange(void *handle, unsigned long long ptr,
				  size_t bytes, int type,
				  unsigned long long flags)
{
	struct fake_gpu_info info;

	if (!fake_cuda.dmabuf || type != RANGE_DMA_BUF || flags != 0 ||
	    bytes % 4096 != 0 ||
	    fake_gpu_find((const void *)(uintptr_t)ptr, &info) != 0) {
		return INVALID_VALUE;
	}
	*(int *)handle = fake_gpu_export((const void *)(uintptr_t)ptr);
	fake_cuda.exports++;
	return SUCCESS;
}

int cuGetErrorString(int err, const char **text)
{
	*text = err == NO_DEVICE       ? "no device is here"
		: err == OUT_OF_MEMORY ? "out of memory"
				       : "invalid argument";
	return SUCCESS;
}
