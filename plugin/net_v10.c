#include "nccl/net_v10.h"
#include "plugin/common.h"
#include "plugin/tables.h"

static struct fr_shell shell = {
	.abi = 10,
	.newest = ncclInProgress,
	.max_recvs = FR_SHELL_MAX_RECVS,
	.handle_bytes = NCCL_NET_HANDLE_MAXSIZE,
};

/* Nothing of this plugin is reported to the profiler. */
static ncclResult_t v10_init(ncclDebugLogger_t logger,
			     ncclProfilerCallback_t prof)
{
	(void)prof;
	return fr_shell_init_once(&shell, logger);
}

static ncclResult_t v10_devices(int *ndev)
{
	return fr_shell_devices(&shell, ndev);
}

static ncclResult_t v10_get_properties(int dev, ncclNetProperties_v10_t *props)
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
	*props = (ncclNetProperties_v10_t){
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
	};
	return ncclSuccess;
}

static ncclResult_t v10_listen(int dev, void *handle, void **listen_comm)
{
	return fr_shell_listen(&shell, dev, NCCL_NET_TRAFFIC_CLASS_UNDEF,
			       handle, listen_comm);
}

static ncclResult_t v10_connect(int dev, ncclNetCommConfig_v10_t *config,
				void *handle, void **send_comm,
				ncclNetDeviceHandle_v10_t **dev_comm)
{
	int tclass = config != NULL ? config->trafficClass
				    : NCCL_NET_TRAFFIC_CLASS_UNDEF;

	if (dev_comm != NULL) {
		*dev_comm = NULL;
	}
	return fr_shell_connect(&shell, dev, tclass, handle, send_comm);
}

static ncclResult_t v10_accept(void *listen_comm, void **recv_comm,
			       ncclNetDeviceHandle_v10_t **dev_comm)
{
	if (dev_comm != NULL) {
		*dev_comm = NULL;
	}
	return fr_shell_accept(&shell, listen_comm, recv_comm);
}

static ncclResult_t v10_reg_mr(void *comm, void *data, size_t size, int type,
			       void **mhandle)
{
	return fr_shell_reg_mr(&shell, comm, data, size, type, mhandle);
}

static ncclResult_t v10_reg_dmabuf(void *comm, void *data, size_t size,
				   int type, uint64_t offset, int fd,
				   void **mhandle)
{
	return fr_shell_reg_dmabuf(&shell, comm, data, size, type, offset, fd,
				   mhandle);
}

static ncclResult_t v10_dereg_mr(void *comm, void *mhandle)
{
	return fr_shell_dereg_mr(&shell, comm, mhandle);
}

static ncclResult_t v10_isend(void *send_comm, void *data, size_t size, int tag,
			      void *mhandle, void *phandle, void **request)
{
	(void)phandle;
	return fr_shell_isend(&shell, send_comm, data, size, tag, mhandle,
			      request);
}

static ncclResult_t v10_irecv(void *recv_comm, int n, void **data,
			      size_t *sizes, int *tags, void **mhandles,
			      void **phandles, void **request)
{
	(void)phandles;
	return fr_shell_irecv(&shell, recv_comm, n, data, sizes, tags, mhandles,
			      request);
}

static ncclResult_t v10_iflush(void *recv_comm, int n, void **data, int *sizes,
			       void **mhandles, void **request)
{
	return fr_shell_iflush(&shell, recv_comm, n, data, sizes, mhandles,
			       request);
}

static ncclResult_t v10_test(void *request, int *done, int *sizes)
{
	return fr_shell_test(&shell, request, done, sizes);
}

const ncclNet_v10_t ncclNetPlugin_v10 = {
	.name = FR_SHELL_NAME,
	.init = v10_init,
	.devices = v10_devices,
	.getProperties = v10_get_properties,
	.listen = v10_listen,
	.connect = v10_connect,
	.accept = v10_accept,
	.regMr = v10_reg_mr,
	.regMrDmaBuf = v10_reg_dmabuf,
	.deregMr = v10_dereg_mr,
	.isend = v10_isend,
	.irecv = v10_irecv,
	.iflush = v10_iflush,
	.test = v10_test,
	.closeSend = fr_shell_close_send,
	.closeRecv = fr_shell_close_recv,
	.closeListen = fr_shell_close_listen,
	.getDeviceMr = NULL,
	.irecvConsumed = NULL,
	.makeVDevice = NULL,
};
