#include <string.h>

#include "tools/netplugin_priv.h"

/* No profiler is there: the plugin gets no event handle. */
static int no_profiler(void **handle, int type, void *parent, int64_t id,
		       void *data)
{
	(void)type;
	(void)parent;
	(void)id;
	(void)data;
	*handle = NULL;
	return FR_PLUGIN_SUCCESS;
}

int fr_plugin_init(struct fr_plugin *plugin, uint64_t comm_id,
		   int traffic_class, void **ctx)
{
	int config[1] = {traffic_class};

	*ctx = NULL;
	if (plugin->abi >= 11) {
		return FN(plugin, FN_INIT,
			  int (*)(void **, uint64_t, void *,
				  fr_plugin_logger_fn, profiler_fn))(
			ctx, comm_id, config, plugin->logger, no_profiler);
	}
	if (plugin->abi == 10) {
		return FN(plugin, FN_INIT,
			  int (*)(fr_plugin_logger_fn, profiler_fn))(
			plugin->logger, no_profiler);
	}
	return FN(plugin, FN_INIT,
		  int (*)(fr_plugin_logger_fn))(plugin->logger);
}

int fr_plugin_finalize(struct fr_plugin *plugin, void *ctx)
{
	if (plugin->abi < 11) {
		return FR_PLUGIN_SUCCESS;
	}
	return FN(plugin, FN_FINALIZE, int (*)(void *))(ctx);
}

int fr_plugin_devices(struct fr_plugin *plugin, int *cnt)
{
	return FN(plugin, FN_DEVICES, int (*)(int *))(cnt);
}

int fr_plugin_listen(struct fr_plugin *plugin, void *ctx, int dev, void *handle,
		     void **listen_comm)
{
	if (plugin->abi >= 11) {
		return FN(plugin, FN_LISTEN,
			  int (*)(void *, int, void *, void **))(
			ctx, dev, handle, listen_comm);
	}
	return FN(plugin, FN_LISTEN,
		  int (*)(int, void *, void **))(dev, handle, listen_comm);
}

int fr_plugin_connect(struct fr_plugin *plugin, void *ctx, int dev,
		      void *handle, void **send_comm)
{
	int config[1] = {-1};
	void *device = NULL;

	if (plugin->abi >= 11) {
		return FN(plugin, FN_CONNECT,
			  int (*)(void *, int, void *, void **, void **))(
			ctx, dev, handle, send_comm, &device);
	}
	if (plugin->abi == 10) {
		return FN(plugin, FN_CONNECT,
			  int (*)(int, void *, void *, void **, void **))(
			dev, config, handle, send_comm, &device);
	}
	if (plugin->abi >= 7) {
		return FN(plugin, FN_CONNECT,
			  int (*)(int, void *, void **, void **))(
			dev, handle, send_comm, &device);
	}
	return FN(plugin, FN_CONNECT,
		  int (*)(int, void *, void **))(dev, handle, send_comm);
}

int fr_plugin_accept(struct fr_plugin *plugin, void *listen_comm,
		     void **recv_comm)
{
	void *device = NULL;

	if (plugin->abi >= 7) {
		return FN(plugin, FN_ACCEPT, int (*)(void *, void **, void **))(
			listen_comm, recv_comm, &device);
	}
	return FN(plugin, FN_ACCEPT, int (*)(void *, void **))(listen_comm,
							       recv_comm);
}

int fr_plugin_close_send(struct fr_plugin *plugin, void *comm)
{
	return FN(plugin, FN_CLOSE_SEND, int (*)(void *))(comm);
}

int fr_plugin_close_recv(struct fr_plugin *plugin, void *comm)
{
	return FN(plugin, FN_CLOSE_RECV, int (*)(void *))(comm);
}

int fr_plugin_close_listen(struct fr_plugin *plugin, void *comm)
{
	return FN(plugin, FN_CLOSE_LISTEN, int (*)(void *))(comm);
}

int fr_plugin_reg_mr(struct fr_plugin *plugin, void *comm, void *data,
		     size_t bytes, int type, void **mhandle)
{
	if (plugin->abi >= 8) {
		return FN(plugin, FN_REG_MR,
			  int (*)(void *, void *, size_t, int, void **))(
			comm, data, bytes, type, mhandle);
	}
	return FN(plugin, FN_REG_MR,
		  int (*)(void *, void *, int, int, void **))(
		comm, data, (int)bytes, type, mhandle);
}

int fr_plugin_dereg_mr(struct fr_plugin *plugin, void *comm, void *mhandle)
{
	return FN(plugin, FN_DEREG_MR, int (*)(void *, void *))(comm, mhandle);
}

int fr_plugin_isend(struct fr_plugin *plugin, void *comm, void *data,
		    size_t bytes, int tag, void *mhandle, void **request)
{
	if (plugin->abi >= 10) {
		return FN(plugin, FN_ISEND,
			  int (*)(void *, void *, size_t, int, void *, void *,
				  void **))(comm, data, bytes, tag, mhandle,
					    NULL, request);
	}
	if (plugin->abi == 9) {
		return FN(plugin, FN_ISEND,
			  int (*)(void *, void *, size_t, int, void *,
				  void **))(comm, data, bytes, tag, mhandle,
					    request);
	}
	if (plugin->abi >= 5) {
		return FN(plugin, FN_ISEND,
			  int (*)(void *, void *, int, int, void *, void **))(
			comm, data, (int)bytes, tag, mhandle, request);
	}
	return FN(plugin, FN_ISEND,
		  int (*)(void *, void *, int, void *, void **))(
		comm, data, (int)bytes, mhandle, request);
}

/* Copies, as the plugin may write to the arrays it is given. */
static int irecv_sizes(struct fr_plugin *plugin, void *comm, int cnt,
		       void **data, const size_t *bytes, int *tags,
		       void **mhandles, void **request)
{
	void *profiler[FR_PLUGIN_MAX_RECVS] = {NULL};
	size_t sizes[FR_PLUGIN_MAX_RECVS];

	memcpy(sizes, bytes, (size_t)cnt * sizeof(*sizes));
	if (plugin->abi >= 10) {
		return FN(plugin, FN_IRECV,
			  int (*)(void *, int, void **, size_t *, int *,
				  void **, void **,
				  void **))(comm, cnt, data, sizes, tags,
					    mhandles, profiler, request);
	}
	return FN(plugin, FN_IRECV,
		  int (*)(void *, int, void **, size_t *, int *, void **,
			  void **))(comm, cnt, data, sizes, tags, mhandles,
				    request);
}

int fr_plugin_irecv(struct fr_plugin *plugin, void *comm, int cnt, void **data,
		    const size_t *bytes, const int *tags, void **mhandles,
		    void **request)
{
	int tag_copy[FR_PLUGIN_MAX_RECVS], sizes[FR_PLUGIN_MAX_RECVS];

	if (cnt < 1 || cnt > (int)FR_PLUGIN_MAX_RECVS) {
		return FR_PLUGIN_INVALID_ARGUMENT;
	}
	if (plugin->abi < 5) {
		return FN(plugin, FN_IRECV,
			  int (*)(void *, void *, int, void *, void **))(
			comm, data[0], (int)bytes[0], mhandles[0], request);
	}
	memcpy(tag_copy, tags, (size_t)cnt * sizeof(*tags));
	if (plugin->abi >= 9) {
		return irecv_sizes(plugin, comm, cnt, data, bytes, tag_copy,
				   mhandles, request);
	}
	for (int i = 0; i < cnt; i++) {
		sizes[i] = (int)bytes[i];
	}
	return FN(plugin, FN_IRECV,
		  int (*)(void *, int, void **, int *, int *, void **,
			  void **))(comm, cnt, data, sizes, tag_copy, mhandles,
				    request);
}

int fr_plugin_iflush(struct fr_plugin *plugin, void *comm, int cnt, void **data,
		     const int *bytes, void **mhandles, void **request)
{
	int sizes[FR_PLUGIN_MAX_RECVS];

	if (cnt < 1 || cnt > (int)FR_PLUGIN_MAX_RECVS) {
		return FR_PLUGIN_INVALID_ARGUMENT;
	}
	if (plugin->abi < 5) {
		return FN(plugin, FN_IFLUSH,
			  int (*)(void *, void *, int, void *, void **))(
			comm, data[0], bytes[0], mhandles[0], request);
	}
	memcpy(sizes, bytes, (size_t)cnt * sizeof(*sizes));
	return FN(plugin, FN_IFLUSH,
		  int (*)(void *, int, void **, int *, void **, void **))(
		comm, cnt, data, sizes, mhandles, request);
}

int fr_plugin_test(struct fr_plugin *plugin, void *request, int *done,
		   int *sizes)
{
	return FN(plugin, FN_TEST, int (*)(void *, int *, int *))(request, done,
								  sizes);
}
