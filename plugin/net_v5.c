#include "nccl/net_v5.h"
#include "plugin/common.h"
#include "plugin/tables.h"

static struct fr_shell shell = {
	.abi = 5,
	.newest = ncclInvalidUsage,
	.max_recvs = 1,
	.handle_bytes = NCCL_NET_HANDLE_MAXSIZE,
};

static ncclResult_t v5_init(ncclDebugLogger_t logger)
{
	return fr_shell_init_once(&shell, logger);
}

static ncclResult_t v5_devices(int *ndev)
{
	return fr_shell_devices(&shell, ndev);
}

static ncclResult_t v5_get_properties(int dev, ncclNetProperties_v5_t *props)
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
	*props = (ncclNetProperties_v5_t){
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

static ncclResult_t v5_listen(int dev, void *handle, void **listen_comm)
{
	return fr_shell_listen(&shell, dev, NCCL_NET_TRAFFIC_CLASS_UNDEF,
			       handle, listen_comm);
}

static ncclResult_t v5_connect(int dev, void *handle, void **send_comm)
{
	return fr_shell_connect(&shell, dev, NCCL_NET_TRAFFIC_CLASS_UNDEF,
				handle, send_comm);
}

static ncclResult_t v5_accept(void *listen_comm, void **recv_comm)
{
	return fr_shell_accept(&shell, listen_comm, recv_comm);
}

static ncclResult_t v5_reg_mr(void *comm, void *data, int size, int type,
			      void **mhandle)
{
	return fr_shell_reg_mr(&shell, comm, data, (size_t)size, type, mhandle);
}

static ncclResult_t v5_dereg_mr(void *comm, void *mhandle)
{
	return fr_shell_dereg_mr(&shell, comm, mhandle);
}

static ncclResult_t v5_isend(void *send_comm, void *data, int size, int tag,
			     void *mhandle, void **request)
{
	return fr_shell_isend(&shell, send_comm, data, (size_t)size, tag,
			      mhandle, request);
}

static ncclResult_t v5_irecv(void *recv_comm, int n, void **data, int *sizes,
			     int *tags, void **mhandles, void **request)
{
	return fr_shell_irecv_int(&shell, recv_comm, n, data, sizes, tags,
				  mhandles, request);
}

static ncclResult_t v5_iflush(void *recv_comm, int n, void **data, int *sizes,
			      void **mhandles, void **request)
{
	return fr_shell_iflush(&shell, recv_comm, n, data, sizes, mhandles,
			       request);
}

static ncclResult_t v5_test(void *request, int *done, int *sizes)
{
	return fr_shell_test(&shell, request, done, sizes);
}

const ncclNet_v5_t ncclNetPlugin_v5 = {
	.name = FR_SHELL_NAME,
	.init = v5_init,
	.devices = v5_devices,
	.getProperties = v5_get_properties,
	.listen = v5_listen,
	.connect = v5_connect,
	.accept = v5_accept,
	.regMr = v5_reg_mr,
	.deregMr = v5_dereg_mr,
	.isend = v5_isend,
	.irecv = v5_irecv,
	.iflush = v5_iflush,
	.test = v5_test,
	.closeSend = fr_shell_close_send,
	.closeRecv = fr_shell_close_recv,
	.closeListen = fr_shell_close_listen,
};
