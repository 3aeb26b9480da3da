#include "nccl/api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

struct entry {
	const char *name;
	size_t offset;
};

#define NCCL(_field, _name)                                                    \
	{                                                                      \
		_name, offsetof(struct nccl_api, _field)                       \
	}
#define CUDA(_field, _name)                                                    \
	{                                                                      \
		_name, offsetof(struct cuda_api, _field)                       \
	}

static const struct entry nccl_entries[] = {
	NCCL(get_version, "ncclGetVersion"),
	NCCL(get_unique_id, "ncclGetUniqueId"),
	NCCL(init_rank, "ncclCommInitRank"),
	NCCL(destroy, "ncclCommDestroy"),
	NCCL(abort, "ncclCommAbort"),
	NCCL(async_error, "ncclCommGetAsyncError"),
	NCCL(error_string, "ncclGetErrorString"),
	NCCL(all_reduce, "ncclAllReduce"),
	NCCL(reduce, "ncclReduce"),
	NCCL(broadcast, "ncclBroadcast"),
	NCCL(all_gather, "ncclAllGather"),
	NCCL(reduce_scatter, "ncclReduceScatter"),
	NCCL(send, "ncclSend"),
	NCCL(recv, "ncclRecv"),
	NCCL(group_start, "ncclGroupStart"),
	NCCL(group_end, "ncclGroupEnd"),
};

static const struct entry cuda_entries[] = {
	CUDA(init, "cuInit"),
	CUDA(device_count, "cuDeviceGetCount"),
	CUDA(device_get, "cuDeviceGet"),
	CUDA(device_name, "cuDeviceGetName"),
	CUDA(primary_ctx, "cuDevicePrimaryCtxRetain"),
	CUDA(set_ctx, "cuCtxSetCurrent"),
	CUDA(mem_alloc, "cuMemAlloc_v2"),
	CUDA(mem_free, "cuMemFree_v2"),
	CUDA(to_device, "cuMemcpyHtoD_v2"),
	CUDA(to_host, "cuMemcpyDtoH_v2"),
	CUDA(stream_create, "cuStreamCreate"),
	CUDA(stream_query, "cuStreamQuery"),
	CUDA(error_string, "cuGetErrorString"),
};

static int load(const char *path, const struct entry *entries, size_t cnt,
		void *api)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (lib == NULL) {
		fprintf(stderr, "cannot load %s\n", dlerror());
		return -1;
	}
	for (size_t i = 0; i < cnt; i++) {
		void *sym = dlsym(lib, entries[i].name);

		if (sym == NULL) {
			fprintf(stderr, "%s lacks %s\n", path, entries[i].name);
			return -1;
		}
		memcpy((char *)api + entries[i].offset, &sym, sizeof(sym));
	}
	return 0;
}

int nccl_api_load(const char *path, struct nccl_api *api)
{
	return load(path, nccl_entries, FR_ARRAY_LEN(nccl_entries), api);
}

int cuda_api_load(const char *path, struct cuda_api *api)
{
	return load(path, cuda_entries, FR_ARRAY_LEN(cuda_entries), api);
}
