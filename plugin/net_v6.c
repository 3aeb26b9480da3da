#include "nccl/net_v6.h"
#include "plugin/common.h"
#include "plugin/tables.h"

static struct fr_shell shell = {
	.abi = 6,
	.newest = ncclRemoteError,
	.max_recvs = 1,
	.handle_bytes = NCCL_NET_HANDLE_MAXSIZE,
};

static ncclResult_t v6_init(ncclDebugLogger_t logger)
{
	return fr_shell_init_once(&shell, logger);
}

static ncclResult_t v6_devices(int *ndev)
{
	return fr_shell_devices(&shell, ndev);
}

static ncclResult_t v6_get_properties(int dev, ncclNetProperties_v6_t *props)
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
	*props = (ncclNetProperties_v6_t){
		.name = mine.name,
		.pciPath = mine.pci_path,
		.guid = mine.guid,
		.ptrSupport = mine.ptr_support,
		.speed = mine.speed_mbps,
		.port = 1,
		.latency = 0.0f,
		.maxComms = mine.max_comms,
		.maxRecvs = (int)shell.max_recvs,
	};
	return ncclSuccess;
}

static ncclResult_t v6_listen(int dev, void *handle, void **listen_comm)
{
	return fr_shell_listen(&shell, dev, NCCL_NET_TRAFFIC_CLASS_UNDEF,
			       handle, listen_comm);
}

static ncclResult_t v6_connect(int dev, void *handle, void **send_comm)
{
	return fr_shell_connect(&shell, dev, NCCL_NET_TRAFFIC_CLASS_UNDEF,
				handle, send_comm);
}

static ncclResult_t v6_accept(void *listen_comm, void **recv_comm)
{
	return fr_shell_accept(&shell, listen_comm, recv_comm);
}

static ncclResult_t v6_reg_mr(void *comm, void *data, int size, int type,
			      void **mhandle)
{
	return fr_shell_reg_mr(&shell, comm, data, (size_t)size, type, mhandle);
}

static ncclResult_t v6_reg_dmabuf(void *comm, void *data, size_t size, int type,
				  uint64_t offset, int fd, void **mhandle)
{
	return fr_shell_reg_dmabuf(&shell, comm, data, size, type, offset, fd,
				   mhandle);
}

static ncclResult_t v6_dereg_mr(void *comm, void *mhandle)
{
	return fr_shell_dereg_mr(&shell, comm, mhandle);
}

static ncclResult_t v6_isend(void *send_comm, void *data, int size, int tag,
			     void *mhandle, void **request)
{
	return fr_shell_isend(&shell, send_comm, data, (size_t)size, tag,
			      mhandle, request);
}

static ncclResult_t v6_irecv(void *recv_comm, int n, void **data, int *sizes,
			     int *tags, void **mhandles, void **request)
{
	return fr_shell_irecv_int(&shell, recv_comm, n, data, sizes, tags,
				  mhandles, request);
}

static ncclResult_t v6_iflush(void *recv_comm, int n, void **data, int *sizes,
			      void **mhandles, void **request)
{
	return fr_shell_iflush(&shell, recv_comm, n, data, sizes, mhandles,
			       request);
}

static ncclResult_t v6_test(void *request, int *done, int *sizes)
{
	return fr_shell_test(&shell, request, done, sizes);
}

const ncclNet_v6_t ncclNetPlugin_v6 = {
	.name = FR_SHELL_NAME,
	.init = v6_init,
	.devices = v6_devices,
	.getProperties = v6_get_properties,
	.listen = v6_listen,
	.connect = v6_connect,
	.accept = v6_accept,
	.regMr = v6_reg_mr,
	.regMrDmaBuf = v6_reg_dmabuf,
	.deregMr = v6_dereg_mr,
	.isend = v6_isend,
	.irecv = v6_irecv,
	.iflush = v6_iflush,
	.test = v6_test,
	.closeSend = fr_shell_close_send,
	.closeRecv = fr_shell_close_recv,
	.closeListen = fr_shell_close_listen,
};
