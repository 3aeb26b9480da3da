#include "nccl/net_v7.h"
#include "plugin/common.h"
#include "plugin/tables.h"

static struct fr_shell shell = {
	.abi = 7,
	.newest = ncclInProgress,
	.max_recvs = 1,
	.handle_bytes = NCCL_NET_HANDLE_MAXSIZE,
};

static ncclResult_t v7_init(ncclDebugLogger_t logger)
{
	return fr_shell_init_once(&shell, logger);
}

static ncclResult_t v7_devices(int *ndev)
{
	return fr_shell_devices(&shell, ndev);
}

static ncclResult_t v7_get_properties(int dev, ncclNetProperties_v7_t *props)
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
	*props = (ncclNetProperties_v7_t){
		.name = mine.name,
		.pciPath = mine.pci_path,
		.guid = mine.guid,
		.ptrSupport = mine.ptr_support,
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

static ncclResult_t v7_listen(int dev, void *handle, void **listen_comm)
{
	return fr_shell_listen(&shell, dev, NCCL_NET_TRAFFIC_CLASS_UNDEF,
			       handle, listen_comm);
}

static ncclResult_t v7_connect(int dev, void *handle, void **send_comm,
			       ncclNetDeviceHandle_v7_t **dev_comm)
{
	if (dev_comm != NULL) {
		*dev_comm = NULL;
	}
	return fr_shell_connect(&shell, dev, NCCL_NET_TRAFFIC_CLASS_UNDEF,
				handle, send_comm);
}

static ncclResult_t v7_accept(void *listen_comm, void **recv_comm,
			      ncclNetDeviceHandle_v7_t **dev_comm)
{
	if (dev_comm != NULL) {
		*dev_comm = NULL;
	}
	return fr_shell_accept(&shell, listen_comm, recv_comm);
}

static ncclResult_t v7_reg_mr(void *comm, void *data, int size, int type,
			      void **mhandle)
{
	return fr_shell_reg_mr(&shell, comm, data, (size_t)size, type, mhandle);
}

static ncclResult_t v7_reg_dmabuf(void *comm, void *data, size_t size, int type,
				  uint64_t offset, int fd, void **mhandle)
{
	return fr_shell_reg_dmabuf(&shell, comm, data, size, type, offset, fd,
				   mhandle);
}

static ncclResult_t v7_dereg_mr(void *comm, void *mhandle)
{
	return fr_shell_dereg_mr(&shell, comm, mhandle);
}

static ncclResult_t v7_isend(void *send_comm, void *data, int size, int tag,
			     void *mhandle, void **request)
{
	return fr_shell_isend(&shell, send_comm, data, (size_t)size, tag,
			      mhandle, request);
}

static ncclResult_t v7_irecv(void *recv_comm, int n, void **data, int *sizes,
			     int *tags, void **mhandles, void **request)
{
	return fr_shell_irecv_int(&shell, recv_comm, n, data, sizes, tags,
				  mhandles, request);
}

static ncclResult_t v7_iflush(void *recv_comm, int n, void **data, int *sizes,
			      void **mhandles, void **request)
{
	return fr_shell_iflush(&shell, recv_comm, n, data, sizes, mhandles,
			       request);
}

static ncclResult_t v7_test(void *request, int *done, int *sizes)
{
	return fr_shell_test(&shell, request, done, sizes);
}

const ncclNet_v7_t ncclNetPlugin_v7 = {
	.name = FR_SHELL_NAME,
	.init = v7_init,
	.devices = v7_devices,
	.getProperties = v7_get_properties,
	.listen = v7_listen,
	.connect = v7_connect,
	.accept = v7_accept,
	.regMr = v7_reg_mr,
	.regMrDmaBuf = v7_reg_dmabuf,
	.deregMr = v7_dereg_mr,
	.isend = v7_isend,
	.irecv = v7_irecv,
	.iflush = v7_iflush,
	.test = v7_test,
	.closeSend = fr_shell_close_send,
	.closeRecv = fr_shell_close_recv,
	.closeListen = fr_shell_close_listen,
	.getDeviceMr = NULL,
	.irecvConsumed = NULL,
};
