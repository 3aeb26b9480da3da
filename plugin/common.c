#include "plugin/common.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/util.h"
#include "net/net.h"

_Static_assert(NCCL_NET_HANDLE_MAXSIZE == FR_HANDLE_BYTES,
	       "a host's handle has room for ours");
_Static_assert(NCCL_NET_HANDLE_MAXSIZE_V4 == FR_HANDLE_BYTES_V4,
	       "an old host's handle has room for ours");
_Static_assert(NCCL_NET_TRAFFIC_CLASS_UNDEF == FR_NET_TCLASS_UNSET,
	       "a class that a host has not set is not set");
_Static_assert(FR_SHELL_MAX_RECVS == FR_NET_MAX_GROUP,
	       "a grouped receive fits the core");

#define DMABUF_FIRST_ABI 6 /* whose table has a call for it */

/* No message has this size; it marks a size that nobody wrote. */
#define SIZE_UNSET SIZE_MAX

ncclResult_t fr_shell_result(const struct fr_shell *shell, int ret)
{
	ncclResult_t res;

	if (fr_likely(ret == 0)) {
		return ncclSuccess;
	}
	switch (ret) {
	case -EINVAL:
	case -EBADF:
	case -EOPNOTSUPP: /* memory that the properties do not name */
		res = ncclInvalidArgument;
		break;
	case -EMSGSIZE:
		res = ncclInvalidUsage;
		break;
	case -ECONNRESET:
	case -EPROTO:
		res = ncclRemoteError;
		break;
	case -ENOMEM:
		/* Where memory is missing nobody stops to say so. */
		fr_error_limited("out of memory");
		res = ncclSystemError;
		break;
	case -EAGAIN: /* has no result: a call that can say it looks first */
		res = ncclInternalError;
		break;
	default:
		res = ret < 0 ? ncclSystemError : ncclInternalError;
		break;
	}
	return res <= shell->newest ? res : ncclSystemError;
}

ncclResult_t fr_shell_refuse(const char *text)
{
	fr_error_limited_by(text, "%s", text);
	return ncclInvalidArgument;
}

/* Whether @call may touch @object, which must come from an initialised plugin.
 */
static ncclResult_t object_check(const char *call, const void *object)
{
	if (fr_unlikely(!fr_shell_was_initialised())) {
		/* At exit a thread of the host may go on asking. */
		if (!fr_shell_is_unloaded()) {
			fr_error_limited_by(call, "%s: called before init",
					    call);
		}
		return ncclInvalidUsage;
	}
	if (fr_unlikely(object == NULL)) {
		fr_error_limited_by(call, "%s: called with no comm or request",
				    call);
		return ncclInvalidArgument;
	}
	return ncclSuccess;
}

static bool size_is_bad(size_t size)
{
	return size > PTRDIFF_MAX;
}

static int clamp_to_int(uint64_t v)
{
	return (int)FR_MIN(v, (uint64_t)INT_MAX);
}

ncclResult_t fr_shell_devices(struct fr_shell *shell, int *ndev)
{
	ncclResult_t res;

	if (ndev == NULL) {
		return fr_shell_refuse("devices: no place for the count");
	}
	*ndev = 0;
	res = fr_shell_ready(shell, "devices");
	if (res == ncclSuccess) {
		*ndev = clamp_to_int(fr_net_device_cnt());
	}
	return res;
}

static int ptr_support(const struct fr_shell *shell,
		       const struct fr_net_props *props)
{
	int kinds = NCCL_PTR_HOST;

	if (props->gpu) {
		kinds |= NCCL_PTR_CUDA;
	}
	if (props->gpu_dmabuf && shell->abi >= DMABUF_FIRST_ABI) {
		kinds |= NCCL_PTR_DMABUF;
	}
	return kinds;
}

ncclResult_t fr_shell_props(struct fr_shell *shell, int dev,
			    struct fr_shell_props *out)
{
	struct fr_net_props props;
	struct fr_shell_props mine = {0};
	ncclResult_t res = fr_shell_ready(shell, "getProperties");
	int ret;

	if (res != ncclSuccess) {
		return res;
	}
	if (dev < 0) {
		return fr_shell_refuse("getProperties: negative device");
	}
	ret = fr_net_device_props((unsigned)dev, &props);
	if (ret == 0) {
		ret = fr_shell_keep_text(props.name, &mine.name);
	}
	if (ret == 0) {
		ret = fr_shell_keep_text(props.pci_path, &mine.pci_path);
	}
	if (ret != 0) {
		return fr_shell_result(shell, ret);
	}
	mine.guid = props.guid;
	mine.ptr_support = ptr_support(shell, &props);
	mine.speed_mbps = clamp_to_int(props.speed_mbps);
	mine.max_comms = clamp_to_int(props.max_comms);
	mine.max_bytes =
		FR_MIN(FR_MAX(props.max_msg_bytes, 1), NCCL_MAX_NET_SIZE_BYTES);
	*out = mine;
	return ncclSuccess;
}

ncclResult_t fr_shell_listen(struct fr_shell *shell, int dev, int tclass,
			     void *handle, void **listen_comm)
{
	struct fr_listen *listen;
	ncclResult_t res;
	int ret;

	if (listen_comm == NULL || handle == NULL) {
		return fr_shell_refuse("listen: no handle or no place for the "
				       "listener");
	}
	*listen_comm = NULL;
	res = fr_shell_ready(shell, "listen");
	if (res != ncclSuccess) {
		return res;
	}
	if (dev < 0) {
		return fr_shell_refuse("listen: negative device");
	}
	ret = fr_net_listen((unsigned)dev, tclass, handle, shell->handle_bytes,
			    &listen);
	if (ret == 0) {
		*listen_comm = listen;
	}
	return fr_shell_result(shell, ret);
}

ncclResult_t fr_shell_connect(struct fr_shell *shell, int dev, int tclass,
			      void *handle, void **send_comm)
{
	struct fr_comm *comm;
	ncclResult_t res;
	int ret;

	if (send_comm == NULL || handle == NULL) {
		return fr_shell_refuse("connect: no handle or no place for the "
				       "comm");
	}
	*send_comm = NULL;
	res = fr_shell_ready(shell, "connect");
	if (res != ncclSuccess) {
		return res;
	}
	if (dev < 0) {
		return fr_shell_refuse("connect: negative device");
	}
	ret = fr_net_connect((unsigned)dev, tclass, handle, &comm);
	if (ret == -EAGAIN) {
		return ncclSuccess;
	}
	if (ret == 0) {
		*send_comm = comm;
	}
	return fr_shell_result(shell, ret);
}

ncclResult_t fr_shell_accept(struct fr_shell *shell, void *listen_comm,
			     void **recv_comm)
{
	struct fr_comm *comm;
	ncclResult_t res;
	int ret;

	if (recv_comm == NULL) {
		return fr_shell_refuse("accept: no place for the comm");
	}
	*recv_comm = NULL;
	res = object_check("accept", listen_comm);
	if (res != ncclSuccess) {
		return res;
	}
	ret = fr_net_accept(listen_comm, &comm);
	if (ret == -EAGAIN) {
		return ncclSuccess;
	}
	if (ret == 0) {
		*recv_comm = comm;
	}
	return fr_shell_result(shell, ret);
}

/* A host hands in the NULL of a connect or an accept that failed. It stops
 * tearing down at the first error: a close that was done has none. */
ncclResult_t fr_shell_close_listen(void *listen_comm)
{
	ncclResult_t res;

	if (listen_comm == NULL) {
		return ncclSuccess;
	}
	res = object_check("closeListen", listen_comm);
	if (res == ncclSuccess) {
		fr_net_close_listen(listen_comm);
	}
	return res;
}

ncclResult_t fr_shell_close_send(void *send_comm)
{
	ncclResult_t res;

	if (send_comm == NULL) {
		return ncclSuccess;
	}
	res = object_check("closeSend", send_comm);
	if (res == ncclSuccess) {
		fr_net_close_send(send_comm);
	}
	return res;
}

ncclResult_t fr_shell_close_recv(void *recv_comm)
{
	ncclResult_t res;

	if (recv_comm == NULL) {
		return ncclSuccess;
	}
	res = object_check("closeRecv", recv_comm);
	if (res == ncclSuccess) {
		fr_net_close_recv(recv_comm);
	}
	return res;
}

/* What both kinds of registration look at first; writes *@mhandle. */
static ncclResult_t reg_check(const char *call, const void *comm, size_t size,
			      void **mhandle)
{
	ncclResult_t res;

	if (mhandle == NULL) {
		fr_error_limited_by(call, "%s: no place for the registration",
				    call);
		return ncclInvalidArgument;
	}
	*mhandle = NULL;
	res = object_check(call, comm);
	if (res != ncclSuccess) {
		return res;
	}
	if (size_is_bad(size)) {
		fr_error_limited_by(call, "%s: a negative size", call);
		return ncclInvalidArgument;
	}
	return ncclSuccess;
}

ncclResult_t fr_shell_reg_mr(struct fr_shell *shell, void *comm, void *data,
			     size_t size, int type, void **mhandle)
{
	ncclResult_t res = reg_check("regMr", comm, size, mhandle);
	struct fr_net_mr *mr;
	int ret;

	if (res != ncclSuccess) {
		return res;
	}
	if (type != NCCL_PTR_HOST && type != NCCL_PTR_CUDA) {
		fr_error_limited("regMr: memory of type %#x is not known",
				 (unsigned)type);
		return ncclInvalidArgument;
	}
	ret = fr_net_reg_mr(comm, data, size,
			    type == NCCL_PTR_CUDA ? FR_MEM_GPU : FR_MEM_HOST,
			    &mr);
	if (ret == 0) {
		*mhandle = mr;
	}
	return fr_shell_result(shell, ret);
}

ncclResult_t fr_shell_reg_dmabuf(struct fr_shell *shell, void *comm, void *data,
				 size_t size, int type, uint64_t offset, int fd,
				 void **mhandle)
{
	ncclResult_t res = reg_check("regMrDmaBuf", comm, size, mhandle);
	struct fr_net_mr *mr;
	int ret;

	if (res != ncclSuccess) {
		return res;
	}
	if (type != NCCL_PTR_CUDA) {
		fr_error_limited(
			"regMrDmaBuf: memory of type %#x, but a dma-buf is a "
			"GPU's",
			(unsigned)type);
		return ncclInvalidArgument;
	}
	ret = fr_net_reg_dmabuf(comm, data, size, offset, fd, &mr);
	if (ret == 0) {
		*mhandle = mr;
	}
	return fr_shell_result(shell, ret);
}

/* A host hands in the NULL of a registration that failed. */
ncclResult_t fr_shell_dereg_mr(struct fr_shell *shell, void *comm,
			       void *mhandle)
{
	ncclResult_t res;

	if (mhandle == NULL) {
		return ncclSuccess;
	}
	res = object_check("deregMr", comm);
	if (res != ncclSuccess) {
		return res;
	}
	return fr_shell_result(shell, fr_net_dereg_mr(comm, mhandle));
}

ncclResult_t fr_shell_isend(struct fr_shell *shell, void *send_comm, void *data,
			    size_t size, int tag, void *mhandle, void **request)
{
	struct fr_req *req = NULL;
	ncclResult_t res;
	int ret;

	if (request == NULL) {
		return fr_shell_refuse("isend: no place for the request");
	}
	*request = NULL;
	res = object_check("isend", send_comm);
	if (fr_unlikely(res != ncclSuccess)) {
		return res;
	}
	if (fr_unlikely(size_is_bad(size))) {
		return fr_shell_refuse("isend: a negative size");
	}
	ret = fr_net_isend(send_comm, data, size, tag, mhandle, &req);
	*request = req;
	return fr_shell_result(shell, ret);
}

/* The checks that all receives and flushes share; writes *@request. */
static ncclResult_t group_check(const struct fr_shell *shell, const char *call,
				const void *comm, int n, void **request)
{
	ncclResult_t res;

	if (fr_unlikely(request == NULL)) {
		fr_error_limited_by(call, "%s: no place for the request", call);
		return ncclInvalidArgument;
	}
	*request = NULL;
	res = object_check(call, comm);
	if (fr_unlikely(res != ncclSuccess)) {
		return res;
	}
	if (fr_unlikely(n < 1 || (unsigned)n > shell->max_recvs)) {
		fr_error_limited_by(call,
				    "%s: %d messages, but 1 to %u are allowed",
				    call, n, shell->max_recvs);
		return ncclInvalidArgument;
	}
	return ncclSuccess;
}

/* @mhandles may be NULL: no message has a registration. */
static void group_mrs(int n, void **mhandles, struct fr_net_mr **mrs)
{
	for (int i = 0; i < n; i++) {
		mrs[i] = mhandles != NULL ? mhandles[i] : NULL;
	}
}

ncclResult_t fr_shell_irecv(struct fr_shell *shell, void *recv_comm, int n,
			    void **data, const size_t *sizes, const int *tags,
			    void **mhandles, void **request)
{
	struct fr_net_mr *mrs[FR_SHELL_MAX_RECVS];
	struct fr_req *req = NULL;
	ncclResult_t res;
	int ret;

	res = group_check(shell, "irecv", recv_comm, n, request);
	if (fr_unlikely(res != ncclSuccess)) {
		return res;
	}
	for (int i = 0; i < n; i++) {
		if (fr_unlikely(size_is_bad(sizes[i]))) {
			return fr_shell_refuse("irecv: a negative size");
		}
	}
	group_mrs(n, mhandles, mrs);
	ret = fr_net_irecv(recv_comm, (unsigned)n, data, sizes, tags, mrs,
			   &req);
	*request = req;
	return fr_shell_result(shell, ret);
}

ncclResult_t fr_shell_irecv_int(struct fr_shell *shell, void *recv_comm, int n,
				void **data, const int *sizes, const int *tags,
				void **mhandles, void **request)
{
	size_t bytes[FR_SHELL_MAX_RECVS];

	for (int i = 0; i < FR_MIN(n, FR_SHELL_MAX_RECVS); i++) {
		bytes[i] = (size_t)sizes[i];
	}
	return fr_shell_irecv(shell, recv_comm, n, data, bytes, tags, mhandles,
			      request);
}

ncclResult_t fr_shell_iflush(struct fr_shell *shell, void *recv_comm, int n,
			     void **data, const int *sizes, void **mhandles,
			     void **request)
{
	struct fr_net_mr *mrs[FR_SHELL_MAX_RECVS];
	struct fr_req *req = NULL;
	ncclResult_t res;
	int ret;

	res = group_check(shell, "iflush", recv_comm, n, request);
	if (res != ncclSuccess) {
		return res;
	}
	for (int i = 0; i < n; i++) {
		if (sizes[i] < 0) {
			return fr_shell_refuse("iflush: a negative size");
		}
	}
	group_mrs(n, mhandles, mrs);
	ret = fr_net_iflush(recv_comm, (unsigned)n, data, sizes, mrs, &req);
	*request = req;
	return fr_shell_result(shell, ret);
}

ncclResult_t fr_shell_test(struct fr_shell *shell, void *request, int *done,
			   int *sizes)
{
	size_t bytes[FR_SHELL_MAX_RECVS];
	bool is_done = false;
	ncclResult_t res;
	int ret;

	if (done == NULL) {
		return fr_shell_refuse("test: no place for the answer");
	}
	*done = 0;
	res = object_check("test", request);
	if (fr_unlikely(res != ncclSuccess)) {
		return res;
	}
	if (sizes == NULL) {
		ret = fr_net_test(request, &is_done, NULL);
		*done = is_done;
		return fr_shell_result(shell, ret);
	}

	for (int i = 0; i < FR_SHELL_MAX_RECVS; i++) {
		bytes[i] = SIZE_UNSET;
	}
	ret = fr_net_test(request, &is_done, bytes);
	if (ret != 0 || !is_done) {
		return fr_shell_result(shell, ret);
	}
	/* As many as the request has messages: the host has no room for more.
	 */
	for (int i = 0; i < FR_SHELL_MAX_RECVS && bytes[i] != SIZE_UNSET; i++) {
		sizes[i] = clamp_to_int(bytes[i]);
	}
	*done = 1;
	return ncclSuccess;
}
