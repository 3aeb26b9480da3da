#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "nccl/net_v4.h"
#include "net/net.h"
#include "plugin/common.h"
#include "plugin/tables.h"

/* Between two looks: hardly any at first, then what nobody notices. */
#define NAP_MIN_NS (20 * FR_NS_PER_US)
#define NAP_MAX_NS FR_NS_PER_MS

static struct fr_shell shell = {
	.abi = 4,
	.newest = ncclInvalidUsage,
	.max_recvs = 1,
	.handle_bytes = NCCL_NET_HANDLE_MAXSIZE_V4,
};

static void nap(uint64_t *ns)
{
	const struct timespec ts = {.tv_nsec = (long)*ns};

	nanosleep(&ts, NULL);
	*ns = FR_MIN(2 * *ns, NAP_MAX_NS);
}

static ncclResult_t v4_init(ncclDebugLogger_t logger)
{
	return fr_shell_init_once(&shell, logger);
}

static ncclResult_t v4_devices(int *ndev)
{
	return fr_shell_devices(&shell, ndev);
}

static ncclResult_t v4_get_properties(int dev, ncclNetProperties_v4_t *props)
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
	*props = (ncclNetProperties_v4_t){
		.name = mine.name,
		.pciPath = mine.pci_path,
		.guid = mine.guid,
		.ptrSupport = mine.ptr_support,
		.speed = mine.speed_mbps,
		.port = 1,
		.maxComms = mine.max_comms,
	};
	return ncclSuccess;
}

static ncclResult_t v4_listen(int dev, void *handle, void **listen_comm)
{
	return fr_shell_listen(&shell, dev, NCCL_NET_TRAFFIC_CLASS_UNDEF,
			       handle, listen_comm);
}

/* The host's handle is too short for what a connect keeps between two calls,
 * and to this host no comm would mean a comm. */
static ncclResult_t v4_connect(int dev, void *handle, void **send_comm)
{
	unsigned char mine[NCCL_NET_HANDLE_MAXSIZE] = {0};
	uint64_t nap_ns = NAP_MIN_NS;
	ncclResult_t res;

	if (handle == NULL || send_comm == NULL) {
		return fr_shell_connect(&shell, dev,
					NCCL_NET_TRAFFIC_CLASS_UNDEF, handle,
					send_comm);
	}
	memcpy(mine, handle, NCCL_NET_HANDLE_MAXSIZE_V4);
	for (;;) {
		res = fr_shell_connect(&shell, dev,
				       NCCL_NET_TRAFFIC_CLASS_UNDEF, mine,
				       send_comm);
		if (res != ncclSuccess || *send_comm != NULL) {
			return res;
		}
		nap(&nap_ns);
	}
}

static ncclResult_t v4_accept(void *listen_comm, void **recv_comm)
{
	uint64_t limit = fr_net_connect_limit_ns(), begun = fr_now_ns();
	uint64_t nap_ns = NAP_MIN_NS;
	ncclResult_t res;

	for (;;) {
		res = fr_shell_accept(&shell, listen_comm, recv_comm);
		if (res != ncclSuccess || *recv_comm != NULL) {
			return res;
		}
		if (limit != 0 && fr_now_ns() - begun > limit) {
			fr_error("accept: nobody connected within "
				 "OFI_NCCL_CONNECT_TIMEOUT");
			return ncclSystemError;
		}
		nap(&nap_ns);
	}
}

static ncclResult_t v4_reg_mr(void *comm, void *data, int size, int type,
			      void **mhandle)
{
	return fr_shell_reg_mr(&shell, comm, data, (size_t)size, type, mhandle);
}

static ncclResult_t v4_dereg_mr(void *comm, void *mhandle)
{
	return fr_shell_dereg_mr(&shell, comm, mhandle);
}

static ncclResult_t v4_isend(void *send_comm, void *data, int size,
			     void *mhandle, void **request)
{
	return fr_shell_isend(&shell, send_comm, data, (size_t)size, 0, mhandle,
			      request);
}

static ncclResult_t v4_irecv(void *recv_comm, void *data, int size,
			     void *mhandle, void **request)
{
	const int tag = 0;

	return fr_shell_irecv_int(&shell, recv_comm, 1, &data, &size, &tag,
				  &mhandle, request);
}

static ncclResult_t v4_iflush(void *recv_comm, void *data, int size,
			      void *mhandle, void **request)
{
	return fr_shell_iflush(&shell, recv_comm, 1, &data, &size, &mhandle,
			       request);
}

static ncclResult_t v4_test(void *request, int *done, int *size)
{
	return fr_shell_test(&shell, request, done, size);
}

const ncclNet_v4_t ncclNetPlugin_v4 = {
	.name = FR_SHELL_NAME,
	.init = v4_init,
	.devices = v4_devices,
	.getProperties = v4_get_properties,
	.listen = v4_listen,
	.connect = v4_connect,
	.accept = v4_accept,
	.regMr = v4_reg_mr,
	.deregMr = v4_dereg_mr,
	.isend = v4_isend,
	.irecv = v4_irecv,
	.iflush = v4_iflush,
	.test = v4_test,
	.closeSend = fr_shell_close_send,
	.closeRecv = fr_shell_close_recv,
	.closeListen = fr_shell_close_listen,
};
