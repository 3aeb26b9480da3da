#include "nccl/net_v11.h"
#include "plugin/common.h"
#include "plugin/tables.h"

static struct fr_shell shell = {
	.abi = 11,
	.newest = ncclInProgress,
	.max_recvs = FR_SHELL_MAX_RECVS,
	.handle_bytes = NCCL_NET_HANDLE_MAXSIZE,
};

/* One context each communicator. Nothing is reported to the profiler. */
static ncclResult_t v11_init(void **ctx, uint64_t comm_id,
			     ncclNetCommConfig_v11_t *config,
			     ncclDebugLogger_t logger,
			     ncclProfilerCallback_t prof)
{
	(void)comm_id;
	(void)prof;
	return fr_shell_init(&shell, config, logger, ctx);
}

static ncclResult_t v11_finalize(void *ctx)
{
	return fr_shell_finalize(&shell, ctx);
}

static ncclResult_t v11_devices(int *ndev)
{
	return fr_shell_devices(&shell, ndev);
}

static ncclResult_t v11_get_properties(int dev, ncclNetProperties_v11_t *props)
{
	struct fr_shell_props mine;
	ncclResult_t res;

	if (props == NULL) {
		return fr_shell_refuse("getProperties: no place for them");
	}
	res = fr_shell_props(&shell, dev, &mine);
	if (res != ncclSuccess) {
		return res;
	}
	*props = (ncclNetProperties_v11_t){
		.name = mine.name,
		.pciPath = mine.pci_path,
		.guid = mine.guid,
		.ptrSupport = mine.ptr_support,
		.regIsGlobal = 0,
		.forceFlush = 0,
		.speed = mine.speed_mbps,
		.port = 1,
		.latency = 0.0f,
		.maxComms = mine.max_comms,
		.maxRecvs = (int)shell.max_recvs,
		.netDeviceType = NCCL_NET_DEVICE_HOST,
		.netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION,
		.vProps = {.ndevs = 1, .devs = {dev}},
		.maxP2pBytes = mine.max_bytes,
		.maxCollBytes = mine.max_bytes,
		.maxMultiRequestSize = 1,
	};
	return ncclSuccess;
}

static ncclResult_t v11_listen(void *ctx, int dev, void *handle,
			       void **listen_comm)
{
	return fr_shell_listen(&shell, dev, fr_shell_traffic_class(ctx), handle,
			       listen_comm);
}

static ncclResult_t v11_connect(void *ctx, int dev, void *handle,
				void **send_comm,
				ncclNetDeviceHandle_v11_t **dev_comm)
{
	if (dev_comm != NULL) {
		*dev_comm = NULL;
	}
	return fr_shell_connect(&shell, dev, fr_shell_traffic_class(ctx),
				handle, send_comm);
}

static ncclResult_t v11_accept(void *listen_comm, void **recv_comm,
			       ncclNetDeviceHandle_v11_t **dev_comm)
{
	if (dev_comm != NULL) {
		*dev_comm = NULL;
	}
	return fr_shell_accept(&shell, listen_comm, recv_comm);
}

static ncclResult_t v11_reg_mr(void *comm, void *data, size_t size, int type,
			       void **mhandle)
{
	return fr_shell_reg_mr(&shell, comm, data, size, type, mhandle);
}

static ncclResult_t v11_reg_dmabuf(void *comm, void *data, size_t size,
				   int type, uint64_t offset, int fd,
				   void **mhandle)
{
	return fr_shell_reg_dmabuf(&shell, comm, data, size, type, offset, fd,
				   mhandle);
}

static ncclResult_t v11_dereg_mr(void *comm, void *mhandle)
{
	return fr_shell_dereg_mr(&shell, comm, mhandle);
}

static ncclResult_t v11_isend(void *send_comm, void *data, size_t size, int tag,
			      void *mhandle, void *phandle, void **request)
{
	(void)phandle;
	return fr_shell_isend(&shell, send_comm, data, size, tag, mhandle,
			      request);
}

static ncclResult_t v11_irecv(void *recv_comm, int n, void **data,
			      size_t *sizes, int *tags, void **mhandles,
			      void **phandles, void **request)
{
	(void)phandles;
	return fr_shell_irecv(&shell, recv_comm, n, data, sizes, tags, mhandles,
			      request);
}

static ncclResult_t v11_iflush(void *recv_comm, int n, void **data, int *sizes,
			       void **mhandles, void **request)
{
	return fr_shell_iflush(&shell, recv_comm, n, data, sizes, mhandles,
			       request);
}

static ncclResult_t v11_test(void *request, int *done, int *sizes)
{
	return fr_shell_test(&shell, request, done, sizes);
}

const ncclNet_v11_t ncclNetPlugin_v11 = {
	.name = FR_SHELL_NAME,
	.init = v11_init,
	.devices = v11_devices,
	.getProperties = v11_get_properties,
	.listen = v11_listen,
	.connect = v11_connect,
	.accept = v11_accept,
	.regMr = v11_reg_mr,
	.regMrDmaBuf = v11_reg_dmabuf,
	.deregMr = v11_dereg_mr,
	.isend = v11_isend,
	.irecv = v11_irecv,
	.iflush = v11_iflush,
	.test = v11_test,
	.closeSend = fr_shell_close_send,
	.closeRecv = fr_shell_close_recv,
	.closeListen = fr_shell_close_listen,
	.getDeviceMr = NULL,
	.irecvConsumed = NULL,
	.makeVDevice = NULL,
	.finalize = v11_finalize,
	.setNetAttr = NULL,
};
