/*
 * NCCL and the CUDA driver as the check reaches them: by dlopen, with
 * declarations of its own, so that it is built where neither is installed and
 * runs with whichever version is found. Values that go through these calls have
 * not changed since NCCL 2.7.
 *
 * Threads: one. Blocking: as the library's own calls.
 */
#ifndef FR_TEST_NCCL_API_H
#define FR_TEST_NCCL_API_H

#include <stddef.h>

struct nccl_id {
	char bytes[128];
};

enum {
	NCCL_INT8,
	NCCL_UINT8,
	NCCL_INT32,
	NCCL_UINT32,
	NCCL_INT64,
	NCCL_UINT64,
	NCCL_HALF,
	NCCL_FLOAT,
	NCCL_DOUBLE,
	NCCL_BFLOAT16
};
enum { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG };
enum {
	NCCL_SUCCESS = 0,
	NCCL_SYSTEM_ERROR = 2,
	NCCL_INVALID_USAGE = 5,
	NCCL_REMOTE_ERROR = 6,
	NCCL_IN_PROGRESS = 7
};

struct nccl_api {
	int (*get_version)(int *version);
	int (*get_unique_id)(struct nccl_id *id);
	int (*init_rank)(void **comm, int ranks, struct nccl_id id, int rank);
	int (*destroy)(void *comm);
	int (*abort)(void *comm);
	int (*async_error)(void *comm, int *result);
	const char *(*error_string)(int result);
	int (*all_reduce)(const void *in, void *out, size_t cnt, int type,
			  int op, void *comm, void *stream);
	int (*reduce)(const void *in, void *out, size_t cnt, int type, int op,
		      int root, void *comm, void *stream);
	int (*broadcast)(const void *in, void *out, size_t cnt, int type,
			 int root, void *comm, void *stream);
	int (*all_gather)(const void *in, void *out, size_t in_cnt, int type,
			  void *comm, void *stream);
	int (*reduce_scatter)(const void *in, void *out, size_t out_cnt,
			      int type, int op, void *comm, void *stream);
	int (*send)(const void *in, size_t cnt, int type, int peer, void *comm,
		    void *stream);
	int (*recv)(void *out, size_t cnt, int type, int peer, void *comm,
		    void *stream);
	int (*group_start)(void);
	int (*group_end)(void);
};

enum { CUDA_NOT_READY = 600 };

struct cuda_api {
	int (*init)(unsigned flags);
	int (*device_count)(int *cnt);
	int (*device_get)(int *device, int ordinal);
	int (*device_name)(char *name, int bytes, int device);
	int (*primary_ctx)(void **ctx, int device);
	int (*set_ctx)(void *ctx);
	int (*mem_alloc)(unsigned long long *ptr, size_t bytes);
	int (*mem_free)(unsigned long long ptr);
	int (*to_device)(unsigned long long to, const void *from, size_t bytes);
	int (*to_host)(void *to, unsigned long long from, size_t bytes);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_query)(void *stream);
	int (*error_string)(int err, const char **text);
};

/* Fill the table from the library at @path. Return: 0; -1: after a line that
 * says what is missing. */
int nccl_api_load(const char *path, struct nccl_api *api);
int cuda_api_load(const char *path, struct cuda_api *api);

#endif
