/*
 * A CUDA driver without a GPU: a library with the soname of the real one, whose
 * memory is that of fake_gpu.h. A program loads it by its path before anything
 * asks for "libcuda.so.1"; then the loader gives this one.
 */
#ifndef FR_FAKE_CUDA_H
#define FR_FAKE_CUDA_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct fake_cuda {
	/* What it answers. */
	int init_ret; /* a CUresult, for cuInit() */
	int device_cnt;
	bool dmabuf;	 /* devices can share memory as a dma-buf */
	bool no_context; /* the calling thread has none */
	bool no_memory;	 /* cuMemAlloc() fails */
	bool managed;	 /* all its memory is managed memory */
	int pointer_ret; /* a CUresult, for cuPointerGetAttributes() */

	/* What it saw. */
	unsigned contexts; /* made, or made current */
	unsigned exports;

	void *(*alloc)(size_t bytes, int device);
	void (*free)(void *addr);
	void *(*alias)(const void *addr);
	int (*export)(const void *addr);
	unsigned (*live)(void);
	void (*reset)(void); /* one device that can do all */
};

/* Aborts when the build tree does not have it. */
static inline struct fake_cuda *fake_cuda_load(void)
{
	const char *build = getenv("FR_BUILDDIR");
	struct fake_cuda *cuda = NULL;
	char path[4096];
	void *lib;

	snprintf(path, sizeof(path), "%s/test/fake/cuda/.libs/libcuda.so.1",
		 build == NULL ? "." : build);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib != NULL) {
		cuda = dlsym(lib, "fake_cuda");
	}
	if (cuda == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		abort();
	}
	cuda->reset();
	return cuda;
}

#endif
