#include "fabric/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"

#define CUDA_SONAME "libcuda.so.1"

/* The driver's numbers, which are part of its binary interface. */
enum {
	CUDA_SUCCESS = 0,
	CUDA_MEMORY_DEVICE = 2,	  /* CU_MEMORYTYPE_DEVICE */
	CUDA_PTR_MEMORY_TYPE = 2, /* CU_POINTER_ATTRIBUTE_... */
	CUDA_PTR_BUFFER_ID = 7,
	CUDA_PTR_IS_MANAGED = 8,
	CUDA_PTR_DEVICE = 9,
	CUDA_DEV_DMA_BUF = 124, /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */
	CUDA_RANGE_DMA_BUF = 1, /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */
};

/* Its result is an enum, a device an int, an address unsigned long long. */
static struct {
	int (*init)(unsigned flags);
	int (*device_count)(int *cnt);
	int (*device_get)(int *device, int ordinal);
	int (*device_attribute)(int *value, int attribute, int device);
	int (*pointer_attributes)(unsigned cnt, int *attributes, void **data,
				  unsigned long long ptr);
	int (*context)(void **context);
	int (*alloc)(unsigned long long *ptr, size_t bytes);
	int (*free)(unsigned long long ptr);
	int (*error_text)(int err, const char **text);
	/* From CUDA 11.7 on, else NULL. */
	int (*range_handle)(void *handle, unsigned long long ptr, size_t bytes,
			    int type, unsigned long long flags);
} cuda;

static bool cuda_ready;

static const char *cuda_text(int err)
{
	const char *text = NULL;

	if (cuda.error_text(err, &text) != CUDA_SUCCESS || text == NULL) {
		return "unknown error";
	}
	return text;
}

static bool cuda_symbol(void *lib, const char *name, void *entry)
{
	void *sym = dlsym(lib, name);

	memcpy(entry, &sym, sizeof(sym));
	return sym != NULL;
}

static bool cuda_load_symbols(void *lib)
{
	(void)cuda_symbol(lib, "cuMemGetHandleForAddressRange",
			  &cuda.range_handle);
	return cuda_symbol(lib, "cuInit", &cuda.init) &&
	       cuda_symbol(lib, "cuDeviceGetCount", &cuda.device_count) &&
	       cuda_symbol(lib, "cuDeviceGet", &cuda.device_get) &&
	       cuda_symbol(lib, "cuDeviceGetAttribute",
			   &cuda.device_attribute) &&
	       cuda_symbol(lib, "cuPointerGetAttributes",
			   &cuda.pointer_attributes) &&
	       cuda_symbol(lib, "cuCtxGetCurrent", &cuda.context) &&
	       cuda_symbol(lib, "cuMemAlloc_v2", &cuda.alloc) &&
	       cuda_symbol(lib, "cuMemFree_v2", &cuda.free) &&
	       cuda_symbol(lib, "cuGetErrorString", &cuda.error_text);
}

int fr_cuda_open(const char **why)
{
	static char text[256];
	void *lib;
	int cnt = 0;
	int err;

	*why = text;
	if (cuda_ready) {
		return 0;
	}
	lib = dlopen(CUDA_SONAME, RTLD_LAZY | RTLD_LOCAL);
	if (lib == NULL) {
		snprintf(text, sizeof(text), "no CUDA driver: %s", dlerror());
		return -ENODEV;
	}
	if (!cuda_load_symbols(lib)) {
		snprintf(text, sizeof(text), "%s lacks entry points",
			 CUDA_SONAME);
		return -ENODEV;
	}
	err = cuda.init(0);
	if (err == CUDA_SUCCESS) {
		err = cuda.device_count(&cnt);
	}
	if (err != CUDA_SUCCESS || cnt == 0) {
		snprintf(text, sizeof(text),
			 "the CUDA driver has no device%s%s",
			 err != CUDA_SUCCESS ? ": " : "",
			 err != CUDA_SUCCESS ? cuda_text(err) : "");
		return -ENODEV;
	}
	cuda_ready = true;
	return 0;
}

/* Of one byte. */
static int cuda_look(const void *addr, struct fr_cuda_ptr *out)
{
	unsigned type = 0, managed = 0;
	unsigned long long id = 0;
	int device = -1;
	int names[] = {CUDA_PTR_MEMORY_TYPE, CUDA_PTR_IS_MANAGED,
		       CUDA_PTR_DEVICE, CUDA_PTR_BUFFER_ID};
	void *values[] = {&type, &managed, &device, &id};
	int err;

	/* Unlike its singular this one knows no bad pointers: what it cannot
	 * tell is zero. */
	err = cuda.pointer_attributes(FR_ARRAY_LEN(names), names, values,
				      (uintptr_t)addr);
	if (err != CUDA_SUCCESS) {
		fr_error_limited("the CUDA driver cannot tell what %p is: %s",
				 addr, cuda_text(err));
		return -EIO;
	}
	if (type != CUDA_MEMORY_DEVICE || managed != 0 || device < 0) {
		return -EINVAL;
	}
	out->device = device;
	out->alloc_id = id;
	return 0;
}

int fr_cuda_find(const void *addr, size_t bytes, struct fr_cuda_ptr *out)
{
	struct fr_cuda_ptr first, last;
	int ret;

	ret = cuda_look(addr, &first);
	if (ret == 0) {
		ret = cuda_look((const char *)addr + (bytes - 1), &last);
	}
	if (ret == 0 && first.device != last.device) {
		ret = -EINVAL;
	}
	if (ret == 0) {
		*out = first;
	}
	return ret;
}

bool fr_cuda_has_dmabuf(int device)
{
	int handle = 0, value = 0;

	return cuda.range_handle != NULL &&
	       cuda.device_get(&handle, device) == CUDA_SUCCESS &&
	       cuda.device_attribute(&value, CUDA_DEV_DMA_BUF, handle) ==
		       CUDA_SUCCESS &&
	       value != 0;
}

int fr_cuda_alloc(size_t bytes, void **out)
{
	unsigned long long addr = 0;
	void *context = NULL;

	if (cuda.context(&context) != CUDA_SUCCESS || context == NULL) {
		return -ENODEV;
	}
	if (cuda.alloc(&addr, bytes) != CUDA_SUCCESS) {
		return -ENOMEM;
	}
	*out = (void *)(uintptr_t)addr;
	return 0;
}

void fr_cuda_free(void *addr)
{
	int err = cuda.free((uintptr_t)addr);

	if (err != CUDA_SUCCESS) {
		fr_error_limited("the CUDA driver cannot free %p: %s", addr,
				 cuda_text(err));
	}
}

int fr_cuda_export(const void *addr, size_t bytes, int *fd)
{
	int handle = -1;

	if (cuda.range_handle == NULL ||
	    cuda.range_handle(&handle, (uintptr_t)addr, bytes,
			      CUDA_RANGE_DMA_BUF, 0) != CUDA_SUCCESS) {
		return -ENOTSUP;
	}
	*fd = handle;
	return 0;
}
