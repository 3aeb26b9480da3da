/*
 * A CUDA driver whose device memory is the host's, for the check of NCCL on
 * machines without a GPU. FR_FAKE_GPUS: how many it has (1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100 };

static int gpus(void)
{
	const char *text = getenv("FR_FAKE_GPUS");

	return text == NULL ? 1 : (int)strtol(text, NULL, 10);
}

EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *cnt);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetName(char *name, int bytes, int device);
EXPORT int cuDevicePrimaryCtxRetain(void **ctx, int device);
EXPORT int cuCtxSetCurrent(void *ctx);
EXPORT int cuMemAlloc_v2(unsigned long long *ptr, size_t bytes);
EXPORT int cuMemFree_v2(unsigned long long ptr);
EXPORT int cuMemcpyHtoD_v2(unsigned long long to, const void *from,
			   size_t bytes);
EXPORT int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes);
EXPORT int cuStreamCreate(void **stream, unsigned flags);
EXPORT int cuStreamQuery(void *stream);
EXPORT int cuGetErrorString(int err, const char **text);

int cuInit(unsigned flags)
{
	(void)flags;
	return gpus() > 0 ? SUCCESS : NO_DEVICE;
}

int cuDeviceGetCount(int *cnt)
{
	*cnt = gpus();
	return SUCCESS;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal < gpus() ? SUCCESS : INVALID_VALUE;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
	snprintf(name, (size_t)bytes, "host memory %d", device);
	return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
	(void)device;
	*ctx = (void *)0x1;
	return SUCCESS;
}

int cuCtxSetCurrent(void *ctx)
{
	return ctx != NULL ? SUCCESS : INVALID_VALUE;
}

int cuMemAlloc_v2(unsigned long long *ptr, size_t bytes)
{
	void *mem = malloc(bytes);

	*ptr = (unsigned long long)(size_t)mem;
	return mem != NULL ? SUCCESS : OUT_OF_MEMORY;
}

int cuMemFree_v2(unsigned long long ptr)
{
	free((void *)(size_t)ptr);
	return SUCCESS;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes)
{
	memcpy((void *)(size_t)to, from, bytes);
	return SUCCESS;
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes)
{
	memcpy(to, (const void *)(size_t)from, bytes);
	return SUCCESS;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	(void)flags;
	*stream = (void *)0x2;
	return SUCCESS;
}

int cuStreamQuery(void *stream)
{
	return stream != NULL ? SUCCESS : INVALID_VALUE;
}

int cuGetErrorString(int err, const char **text)
{
	*text = err == NO_DEVICE ? "no CUDA-capable device" : "an error";
	return SUCCESS;
}
