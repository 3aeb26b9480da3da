#include "nccl/net_v8.h"
#include "plugin/common.h"
#include "plugin/tables.h"

static struct fr_shell shell = {
	.abi = 8,
	.newest = ncclInProgress,
	.max_recvs = 1,
	.handle_bytes = NCCL_NET_HANDLE_MAXSIZE,
};

static ncclResult_t v8_init(ncclDebugLogger_t logger)
{
	return fr_shell_init_once(&shell, logger);
}

static ncclResult_t v8_devices(int *ndev)
{
	return fr_shell_devices(&shell, ndev);
}

static ncclResult_t v8_get_properties(int dev, ncclNetProperties_v8_t *props)
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
	*props = (ncclNetProperties_v8_t){
		.name = mine.name,
		.pciPath = mine.pci_path,
		.guid = mine.guid,
		.ptrSupport = mine.ptr_support,
		.regIsGlobal = 0,
		.speed = mine.speed_mbps,
		.port = 1,
		.latency = 0.0f,
		.maxComms = mine.max_comms,
		.maxRecvs = (int)shell.max_recvs,
		.netDeviceType = NCCL_NET_DEVICE_HOST,
		.netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION,
	};
	return ncclSuccess;
}

static ncclResult_t v8_listen(int dev, void *handle, void **listen_comm)
{
	return fr_shell_listen(&shell, dev, NCCL_NET_TRAFFIC_CLASS_UNDEF,
			       handle, listen_comm);
}

static ncclResult_t v8_connect(int dev, void *handle, void **send_comm,
			       ncclNetDeviceHandle_v8_t **dev_comm)
{
	if (dev_comm != NULL) {
		*dev_comm = NULL;
	}
	return fr_shell_connect(&shell, dev, NCCL_NET_TRAFFIC_CLASS_UNDEF,
				handle, send_comm);
}

static ncclResult_t v8_accept(void *listen_comm, void **recv_comm,
			      ncclNetDeviceHandle_v8_t **dev_comm)
{
	if (dev_comm != NULL) {
		*dev_comm = NULL;
	}
	return fr_shell_accept(&shell, listen_comm, recv_comm);
}

static ncclResult_t v8_reg_mr(void *comm, void *data, size_t size, int type,
			      void **mhandle)
{
	return fr_shell_reg_mr(&shell, comm, data, size, type, mhandle);
}

static ncclResult_t v8_reg_dmabuf(void *comm, void *data, size_t size, int type,
				  uint64_t offset, int fd, void **mhandle)
{
	return fr_shell_reg_dmabuf(&shell, comm, data, size, type, offset, fd,
				   mhandle);
}

static ncclResult_t v8_dereg_mr(void *comm, void *mhandle)
{
	return fr_shell_dereg_mr(&shell, comm, mhandle);
}

static ncclResult_t v8_isend(void *send_comm, void *data, int size, int tag,
			     void *mhandle, void **request)
{
	return fr_shell_isend(&shell, send_comm, data, (size_t)size, tag,
			      mhandle, request);
}

static ncclResult_t v8_irecv(void *recv_comm, int n, void **data, int *sizes,
			     int *tags, void **mhandles, void **request)
{
	return fr_shell_irecv_int(&shell, recv_comm, n, data, sizes, tags,
				  mhandles, request);
}

static ncclResult_t v8_iflush(void *recv_comm, int n, void **data, int *sizes,
			      void **mhandles, void **request)
{
	return fr_shell_iflush(&shell, recv_comm, n, data, sizes, mhandles,
			       request);
}

static ncclResult_t v8_test(void *request, int *done, int *sizes)
{
	return fr_shell_test(&shell, request, done, sizes);
}

const ncclNet_v8_t ncclNetPlugin_v8 = {
	.name = FR_SHELL_NAME,
	.init = v8_init,
	.devices = v8_devices,
	.getProperties = v8_get_properties,
	.listen = v8_listen,
	.connect = v8_connect,
	.accept = v8_accept,
	.regMr = v8_reg_mr,
	.regMrDmaBuf = v8_reg_dmabuf,
	.deregMr = v8_dereg_mr,
	.isend = v8_isend,
	.irecv = v8_irecv,
	.iflush = v8_iflush,
	.test = v8_test,
	.closeSend = fr_shell_close_send,
	.closeRecv = fr_shell_close_recv,
	.closeListen = fr_shell_close_listen,
	.getDeviceMr = NULL,
	.irecvConsumed = NULL,
};
