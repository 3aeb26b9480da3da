#include "table.h"

#include <check.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "fake/fake_net.h"
#include "plugin/life.h"
#include "plugin/tables.h"

#define GROUP_MAX 16
#define SOME_PROFILE ((void *)0x77)

struct host_log host_log;

void host_logger(ncclDebugLogLevel level, unsigned long flags, const char *file,
		 int line, const char *fmt, ...)
{
	va_list args;

	host_log.lines[level]++;
	host_log.level = level;
	host_log.flags = flags;
	host_log.line = line;
	snprintf(host_log.file, sizeof(host_log.file), "%s", file);
	va_start(args, fmt);
	vsnprintf(host_log.text, sizeof(host_log.text), fmt, args);
	va_end(args);
	if (level == NCCL_LOG_WARN) {
		memcpy(host_log.warning, host_log.text, sizeof(host_log.text));
	}
}

void host_log_reset(void)
{
	memset(&host_log, 0, sizeof(host_log));
}

/* Lines of before the first init, which would go to standard error. */
static void log_early(enum fr_log_level level, const char *file, int line,
		      const char *text)
{
	host_logger(level <= FR_LOG_WARN ? NCCL_LOG_WARN : NCCL_LOG_INFO, 0,
		    file, line, "%s", text);
}

void shells_setup(void)
{
	fake_net_reset();
	host_log_reset();
	fr_log_set_sink(log_early);
}

void shells_teardown(void)
{
	fr_fault_alloc_at(0);
	fr_shell_unload();
	ck_assert_uint_eq(fake_net.refs, 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

static void to_ints(int *out, const long *in, int n)
{
	for (int i = 0; i < n && i < GROUP_MAX; i++) {
		out[i] = (int)in[i];
	}
}

static void to_sizes(size_t *out, const long *in, int n)
{
	for (int i = 0; i < n && i < GROUP_MAX; i++) {
		out[i] = (size_t)in[i];
	}
}

/* The calls of one table, by the form that its version gives them. */
#define TABLE(N) ncclNetPlugin_v##N

#define CALLS_ALL(N)                                                           \
	static ncclResult_t v##N##_devices(int *ndev)                          \
	{                                                                      \
		return TABLE(N).devices(ndev);                                 \
	}                                                                      \
	static ncclResult_t v##N##_props(int dev, char **name,                 \
					 char **pci_path)                      \
	{                                                                      \
		ncclNetProperties_v##N##_t props;                              \
		ncclResult_t res = TABLE(N).getProperties(dev, &props);        \
		if (res == ncclSuccess) {                                      \
			*name = props.name;                                    \
			*pci_path = props.pciPath;                             \
		}                                                              \
		return res;                                                    \
	}                                                                      \
	static ncclResult_t v##N##_props_at(int dev, void *props)              \
	{                                                                      \
		return TABLE(N).getProperties(dev, props);                     \
	}                                                                      \
	static ncclResult_t v##N##_reg_mr(void *comm, void *data, long size,   \
					  int type, void **mhandle)            \
	{                                                                      \
		return TABLE(N).regMr(comm, data, REG_SIZE_V##N size, type,    \
				      mhandle);                                \
	}                                                                      \
	static ncclResult_t v##N##_dereg_mr(void *comm, void *mhandle)         \
	{                                                                      \
		return TABLE(N).deregMr(comm, mhandle);                        \
	}                                                                      \
	static ncclResult_t v##N##_test(void *request, int *done, int *sizes)  \
	{                                                                      \
		return TABLE(N).test(request, done, sizes);                    \
	}                                                                      \
	static ncclResult_t v##N##_close_send(void *comm)                      \
	{                                                                      \
		return TABLE(N).closeSend(comm);                               \
	}                                                                      \
	static ncclResult_t v##N##_close_recv(void *comm)                      \
	{                                                                      \
		return TABLE(N).closeRecv(comm);                               \
	}                                                                      \
	static ncclResult_t v##N##_close_listen(void *comm)                    \
	{                                                                      \
		return TABLE(N).closeListen(comm);                             \
	}

#define REG_SIZE_V4 (int)
#define REG_SIZE_V5 (int)
#define REG_SIZE_V6 (int)
#define REG_SIZE_V7 (int)
#define REG_SIZE_V8 (size_t)
#define REG_SIZE_V9 (size_t)
#define REG_SIZE_V10 (size_t)
#define REG_SIZE_V11 (size_t)
#define REG_SIZE_V12 (size_t)

CALLS_ALL(4)
CALLS_ALL(5)
CALLS_ALL(6)
CALLS_ALL(7)
CALLS_ALL(8)
CALLS_ALL(9)
CALLS_ALL(10)
CALLS_ALL(11)
CALLS_ALL(12)

#define INIT_PLAIN(N)                                                          \
	static ncclResult_t v##N##_init(ncclDebugLogger_t logger, void **ctx)  \
	{                                                                      \
		*ctx = NULL;                                                   \
		return TABLE(N).init(logger);                                  \
	}
INIT_PLAIN(4)
INIT_PLAIN(5)
INIT_PLAIN(6)
INIT_PLAIN(7)
INIT_PLAIN(8)
INIT_PLAIN(9)

static ncclResult_t profiler(void **handle, int type, void *parent, int64_t id,
			     void *data)
{
	(void)handle;
	(void)type;
	(void)parent;
	(void)id;
	(void)data;
	ck_abort_msg("nothing is reported to the profiler");
	return ncclSuccess;
}

static ncclResult_t v10_init(ncclDebugLogger_t logger, void **ctx)
{
	*ctx = NULL;
	return ncclNetPlugin_v10.init(logger, profiler);
}

#define INIT_CTX(N)                                                            \
	static ncclResult_t v##N##_init(ncclDebugLogger_t logger, void **ctx)  \
	{                                                                      \
		ncclNetCommConfig_v##N##_t config = {                          \
			.trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF,          \
		};                                                             \
		return TABLE(N).init(ctx, 7, &config, logger, profiler);       \
	}                                                                      \
	static ncclResult_t v##N##_finalize(void *ctx)                         \
	{                                                                      \
		return TABLE(N).finalize(ctx);                                 \
	}
INIT_CTX(11)
INIT_CTX(12)

#define LISTEN_PLAIN(N)                                                        \
	static ncclResult_t v##N##_listen(void *ctx, int dev, void *handle,    \
					  void **comm)                         \
	{                                                                      \
		(void)ctx;                                                     \
		return TABLE(N).listen(dev, handle, comm);                     \
	}
LISTEN_PLAIN(4)
LISTEN_PLAIN(5)
LISTEN_PLAIN(6)
LISTEN_PLAIN(7)
LISTEN_PLAIN(8)
LISTEN_PLAIN(9)
LISTEN_PLAIN(10)

#define CONNECT_PLAIN(N)                                                       \
	static ncclResult_t v##N##_connect(                                    \
		void *ctx, int dev, void *handle, void **comm,                 \
		ncclNetDeviceHandle_v7_t **dev_comm)                           \
	{                                                                      \
		(void)ctx;                                                     \
		(void)dev_comm;                                                \
		return TABLE(N).connect(dev, handle, comm);                    \
	}                                                                      \
	static ncclResult_t v##N##_accept(void *listen, void **comm,           \
					  ncclNetDeviceHandle_v7_t **dev_comm) \
	{                                                                      \
		(void)dev_comm;                                                \
		return TABLE(N).accept(listen, comm);                          \
	}
CONNECT_PLAIN(4)
CONNECT_PLAIN(5)
CONNECT_PLAIN(6)

#define ACCEPT_DEV(N)                                                          \
	static ncclResult_t v##N##_accept(void *listen, void **comm,           \
					  ncclNetDeviceHandle_v7_t **dev_comm) \
	{                                                                      \
		return TABLE(N).accept(listen, comm, dev_comm);                \
	}
#define CONNECT_DEV(N)                                                         \
	static ncclResult_t v##N##_connect(                                    \
		void *ctx, int dev, void *handle, void **comm,                 \
		ncclNetDeviceHandle_v7_t **dev_comm)                           \
	{                                                                      \
		(void)ctx;                                                     \
		return TABLE(N).connect(dev, handle, comm, dev_comm);          \
	}                                                                      \
	ACCEPT_DEV(N)
CONNECT_DEV(7)
CONNECT_DEV(8)
CONNECT_DEV(9)

static ncclResult_t v10_connect(void *ctx, int dev, void *handle, void **comm,
				ncclNetDeviceHandle_v7_t **dev_comm)
{
	ncclNetCommConfig_v10_t config = {
		.trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF,
	};

	(void)ctx;
	return ncclNetPlugin_v10.connect(dev, &config, handle, comm, dev_comm);
}
ACCEPT_DEV(10)

#define CONNECT_CTX(N)                                                         \
	static ncclResult_t v##N##_listen(void *ctx, int dev, void *handle,    \
					  void **comm)                         \
	{                                                                      \
		return TABLE(N).listen(ctx, dev, handle, comm);                \
	}                                                                      \
	static ncclResult_t v##N##_connect(                                    \
		void *ctx, int dev, void *handle, void **comm,                 \
		ncclNetDeviceHandle_v7_t **dev_comm)                           \
	{                                                                      \
		return TABLE(N).connect(ctx, dev, handle, comm, dev_comm);     \
	}                                                                      \
	ACCEPT_DEV(N)
CONNECT_CTX(11)
CONNECT_CTX(12)

static ncclResult_t v4_isend(void *comm, void *data, long size, int tag,
			     void *mhandle, void **request)
{
	(void)tag;
	return ncclNetPlugin_v4.isend(comm, data, (int)size, mhandle, request);
}

static ncclResult_t v4_irecv(void *comm, int n, void **data, const long *sizes,
			     int *tags, void **mhandles, void **request)
{
	(void)n;
	(void)tags;
	return ncclNetPlugin_v4.irecv(comm, data[0], (int)sizes[0], mhandles[0],
				      request);
}

static ncclResult_t v4_iflush(void *comm, int n, void **data, int *sizes,
			      void **mhandles, void **request)
{
	(void)n;
	return ncclNetPlugin_v4.iflush(comm, data[0], sizes[0], mhandles[0],
				       request);
}

#define DATA_INT(N)                                                            \
	static ncclResult_t v##N##_isend(void *comm, void *data, long size,    \
					 int tag, void *mhandle,               \
					 void **request)                       \
	{                                                                      \
		return TABLE(N).isend(comm, data, (int)size, tag, mhandle,     \
				      request);                                \
	}                                                                      \
	static ncclResult_t v##N##_irecv(void *comm, int n, void **data,       \
					 const long *sizes, int *tags,         \
					 void **mhandles, void **request)      \
	{                                                                      \
		int mine[GROUP_MAX] = {0};                                     \
		to_ints(mine, sizes, n);                                       \
		return TABLE(N).irecv(comm, n, data, mine, tags, mhandles,     \
				      request);                                \
	}
DATA_INT(5)
DATA_INT(6)
DATA_INT(7)
DATA_INT(8)

static ncclResult_t v9_isend(void *comm, void *data, long size, int tag,
			     void *mhandle, void **request)
{
	return ncclNetPlugin_v9.isend(comm, data, (size_t)size, tag, mhandle,
				      request);
}

static ncclResult_t v9_irecv(void *comm, int n, void **data, const long *sizes,
			     int *tags, void **mhandles, void **request)
{
	size_t mine[GROUP_MAX] = {0};

	to_sizes(mine, sizes, n);
	return ncclNetPlugin_v9.irecv(comm, n, data, mine, tags, mhandles,
				      request);
}

#define DATA_PROFILED(N)                                                       \
	static ncclResult_t v##N##_isend(void *comm, void *data, long size,    \
					 int tag, void *mhandle,               \
					 void **request)                       \
	{                                                                      \
		return TABLE(N).isend(comm, data, (size_t)size, tag, mhandle,  \
				      SOME_PROFILE, request);                  \
	}                                                                      \
	static ncclResult_t v##N##_irecv(void *comm, int n, void **data,       \
					 const long *sizes, int *tags,         \
					 void **mhandles, void **request)      \
	{                                                                      \
		size_t mine[GROUP_MAX] = {0};                                  \
		void *phandles[GROUP_MAX] = {NULL};                            \
		to_sizes(mine, sizes, n);                                      \
		return TABLE(N).irecv(comm, n, data, mine, tags, mhandles,     \
				      phandles, request);                      \
	}
DATA_PROFILED(10)
DATA_PROFILED(11)
DATA_PROFILED(12)

#define FLUSH_GROUP(N)                                                         \
	static ncclResult_t v##N##_iflush(void *comm, int n, void **data,      \
					  int *sizes, void **mhandles,         \
					  void **request)                      \
	{                                                                      \
		return TABLE(N).iflush(comm, n, data, sizes, mhandles,         \
				       request);                               \
	}
FLUSH_GROUP(5)
FLUSH_GROUP(6)
FLUSH_GROUP(7)
FLUSH_GROUP(8)
FLUSH_GROUP(9)
FLUSH_GROUP(10)
FLUSH_GROUP(11)
FLUSH_GROUP(12)

#define ROW(N)                                                                 \
	.abi = N, .object = &TABLE(N), .init = v##N##_init,                    \
	.devices = v##N##_devices, .props = v##N##_props,                      \
	.props_at = v##N##_props_at, .listen = v##N##_listen,                  \
	.connect = v##N##_connect, .accept = v##N##_accept,                    \
	.reg_mr = v##N##_reg_mr, .dereg_mr = v##N##_dereg_mr,                  \
	.isend = v##N##_isend, .irecv = v##N##_irecv, .iflush = v##N##_iflush, \
	.test = v##N##_test, .close_send = v##N##_close_send,                  \
	.close_recv = v##N##_close_recv, .close_listen = v##N##_close_listen

/* clang-format off */
const struct table tables[TABLE_CNT] = {
	{ROW(4), .members = 16, .newest = 5, .max_recvs = 1, .blocks = 1},
	{ROW(5), .members = 16, .newest = 5, .max_recvs = 1, .has_groups = 1},
	{ROW(6), .members = 17, .newest = 6, .max_recvs = 1, .has_groups = 1},
	{ROW(7), .members = 19, .newest = 7, .max_recvs = 1, .has_groups = 1,
	 .has_dev_handle = 1},
	{ROW(8), .wide_reg = 1, .members = 19, .newest = 7, .max_recvs = 1, .has_groups = 1,
	 .has_dev_handle = 1},
	{ROW(9), .wide_reg = 1, .wide_data = 1, .members = 20, .newest = 7, .max_recvs = 8, .has_groups = 1,
	 .has_dev_handle = 1},
	{ROW(10), .wide_reg = 1, .wide_data = 1, .members = 20, .newest = 7, .max_recvs = 8, .has_groups = 1,
	 .has_dev_handle = 1},
	{ROW(11), .wide_reg = 1, .wide_data = 1, .members = 22, .newest = 7, .max_recvs = 8, .has_groups = 1,
	 .has_dev_handle = 1, .has_ctx = 1, .finalize = v11_finalize},
	{ROW(12), .wide_reg = 1, .wide_data = 1, .members = 22, .newest = 8, .max_recvs = 8, .has_groups = 1,
	 .has_dev_handle = 1, .has_ctx = 1, .finalize = v12_finalize},
};
/* clang-format on */
