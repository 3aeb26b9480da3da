/* Endpoints: posts, and what comes before them. */
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/util.h"
#include "shim/gpu.h"
#include "shim/objects.h"
#include "shim/state.h"

#define SHIM_IOV_MAX 4

struct shim_ep {
	struct shim_obj obj;
	SHIM_TABLE(fi_ops_ep) ep;
	struct fi_ops_ep *real_ep;
	SHIM_TABLE(fi_ops_cm) cm;
	SHIM_TABLE(fi_ops_msg) msg;
	SHIM_TABLE(fi_ops_rma) rma;
	struct fi_ops_cm *real_cm;
	struct fi_ops_msg *real_msg;
	struct fi_ops_rma *real_rma;
};

static struct fid_ep *ep_of(struct fid *fid)
{
	return FR_CONTAINER_OF(fid, struct fid_ep, fid);
}

static struct shim_ep *by_msg(const struct fid_ep *ep)
{
	return FR_CONTAINER_OF(ep->msg, struct shim_ep, msg.ops);
}

static struct shim_ep *by_rma(const struct fid_ep *ep)
{
	return FR_CONTAINER_OF(ep->rma, struct shim_ep, rma.ops);
}

static ssize_t posted(const struct shim_ep *ep, enum shim_kind kind,
		      size_t bytes, uint64_t data, ssize_t ret)
{
	if (ret == 0 && shim_wants_posts()) {
		shim_log("post %s %d %zu %llx", shim_kind_name(kind),
			 ep->obj.rail, bytes, (unsigned long long)data);
	}
	return ret;
}

static ssize_t ep_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
		       fi_addr_t src, void *context)
{
	struct shim_ep *ep = by_msg(fid);
	ssize_t ret = shim_refuse(SHIM_RECV, ep->obj.rail);

	if (ret != 0) {
		return ret;
	}
	SHIM_REAL(ret, ep->real_msg->recv(fid, buf, len, desc, src, context));
	return posted(ep, SHIM_RECV, len, 0, ret);
}

/* Around a post of a message. */
static ssize_t spoiled(const void *buf, size_t len, ssize_t ret)
{
	if (ret != 0) {
		shim_spoil(buf, len, true);
	}
	return ret;
}

static ssize_t ep_send(struct fid_ep *fid, const void *buf, size_t len,
		       void *desc, fi_addr_t dest, void *context)
{
	struct shim_ep *ep = by_msg(fid);
	ssize_t ret = shim_refuse(SHIM_SEND, ep->obj.rail);

	if (ret != 0) {
		return ret;
	}
	shim_spoil(buf, len, false);
	SHIM_REAL(ret, ep->real_msg->send(fid, buf, len, desc, dest, context));
	ret = spoiled(buf, len, ret);
	return posted(ep, SHIM_SEND, len, 0, ret);
}

static ssize_t ep_senddata(struct fid_ep *fid, const void *buf, size_t len,
			   void *desc, uint64_t data, fi_addr_t dest,
			   void *context)
{
	struct shim_ep *ep = by_msg(fid);
	ssize_t ret = shim_refuse(SHIM_SEND, ep->obj.rail);

	if (ret != 0) {
		return ret;
	}
	SHIM_REAL(ret, ep->real_msg->senddata(fid, buf, len, desc, data, dest,
					      context));
	return posted(ep, SHIM_SEND, len, data, ret);
}

static size_t iov_bytes(const struct iovec *iov, size_t cnt)
{
	size_t bytes = 0;

	for (size_t i = 0; i < cnt; i++) {
		bytes += iov[i].iov_len;
	}
	return bytes;
}

static ssize_t ep_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			  uint64_t flags)
{
	struct shim_ep *ep = by_msg(fid);
	ssize_t ret = shim_refuse(SHIM_SEND, ep->obj.rail);

	if (ret != 0) {
		return ret;
	}
	shim_spoil(msg->msg_iov->iov_base, msg->msg_iov->iov_len, false);
	SHIM_REAL(ret, ep->real_msg->sendmsg(fid, msg, flags));
	ret = spoiled(msg->msg_iov->iov_base, msg->msg_iov->iov_len, ret);
	return posted(ep, SHIM_SEND, iov_bytes(msg->msg_iov, msg->iov_count), 0,
		      ret);
}

static ssize_t ep_read(struct fid_ep *fid, void *buf, size_t len, void *desc,
		       fi_addr_t src, uint64_t addr, uint64_t key,
		       void *context)
{
	struct shim_ep *ep = by_rma(fid);
	ssize_t ret = shim_refuse(SHIM_FETCH, ep->obj.rail);

	if (ret != 0) {
		return ret;
	}
	SHIM_REAL(ret, ep->real_rma->read(fid, shim_gpu_alias(buf), len, desc,
					  src, addr, key, context));
	return posted(ep, SHIM_FETCH, len, 0, ret);
}

static ssize_t ep_write(struct fid_ep *fid, const void *buf, size_t len,
			void *desc, fi_addr_t dest, uint64_t addr, uint64_t key,
			void *context)
{
	struct shim_ep *ep = by_rma(fid);
	ssize_t ret = shim_refuse(SHIM_WRITE, ep->obj.rail);

	if (ret != 0) {
		return ret;
	}
	SHIM_REAL(ret, ep->real_rma->write(fid, shim_gpu_alias(buf), len, desc,
					   dest, addr, key, context));
	return posted(ep, SHIM_WRITE, len, 0, ret);
}

static ssize_t ep_writedata(struct fid_ep *fid, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t dest,
			    uint64_t addr, uint64_t key, void *context)
{
	struct shim_ep *ep = by_rma(fid);
	ssize_t ret = shim_refuse(SHIM_WRITE, ep->obj.rail);

	if (ret != 0) {
		return ret;
	}
	SHIM_REAL(ret,
		  ep->real_rma->writedata(fid, shim_gpu_alias(buf), len, desc,
					  data, dest, addr, key, context));
	return posted(ep, SHIM_WRITE, len, data, ret);
}

static ssize_t ep_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			   uint64_t flags)
{
	struct shim_ep *ep = by_rma(fid);
	ssize_t ret = shim_refuse(SHIM_WRITE, ep->obj.rail);
	uint64_t data = (flags & FI_REMOTE_CQ_DATA) != 0 ? msg->data : 0;
	struct fi_msg_rma real = *msg;
	struct iovec iov[SHIM_IOV_MAX];

	if (ret != 0) {
		return ret;
	}
	if (real.iov_count > SHIM_IOV_MAX) {
		return -FI_EINVAL;
	}
	for (size_t i = 0; i < real.iov_count; i++) {
		iov[i] = msg->msg_iov[i];
		iov[i].iov_base = shim_gpu_alias(iov[i].iov_base);
	}
	real.msg_iov = iov;
	SHIM_REAL(ret, ep->real_rma->writemsg(fid, &real, flags));
	return posted(ep, SHIM_WRITE, iov_bytes(msg->msg_iov, msg->iov_count),
		      data, ret);
}

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
	struct shim_ep *ep =
		FR_CONTAINER_OF(ep_of(fid)->cm, struct shim_ep, cm.ops);
	int ret = shim_refuse(SHIM_GETNAME, ep->obj.rail);

	if (ret == 0) {
		SHIM_REAL(ret, ep->real_cm->getname(fid, addr, len));
	}
	return ret;
}

static struct shim_ep *by_ops(fid_t fid)
{
	return FR_CONTAINER_OF(ep_of(fid)->ops, struct shim_ep, ep.ops);
}

/* Where there are GPUs, no option is known but the one that 1.18 brought, and
 * a GPU needs. */
static int ep_setopt(fid_t fid, int level, int name, const void *value,
		     size_t len)
{
	struct shim_ep *ep = by_ops(fid);
	int ret = shim_refuse(SHIM_SETOPT, ep->obj.rail);

	if (ret != 0) {
		return ret;
	}
	if (shim_wants_gpu()) {
		return level == FI_OPT_ENDPOINT && name == 10 ? 0
							      : -FI_ENOPROTOOPT;
	}
	SHIM_REAL(ret, ep->real_ep->setopt(fid, level, name, value, len));
	return ret;
}

/* Providers may choose other tables when the endpoint is enabled. */
static void hook_tables(struct shim_ep *ep, struct fid_ep *fid)
{
	if (fid->ops != &ep->ep.ops) {
		ep->real_ep = fid->ops;
		shim_table_copy(&ep->ep, fid->ops);
		ep->ep.ops.setopt = ep_setopt;
		fid->ops = &ep->ep.ops;
	}
	if (fid->cm != &ep->cm.ops) {
		ep->real_cm = fid->cm;
		shim_table_copy(&ep->cm, fid->cm);
		ep->cm.ops.getname = ep_getname;
		fid->cm = &ep->cm.ops;
	}
	if (fid->msg != &ep->msg.ops) {
		ep->real_msg = fid->msg;
		shim_table_copy(&ep->msg, fid->msg);
		ep->msg.ops.recv = ep_recv;
		ep->msg.ops.send = ep_send;
		ep->msg.ops.sendmsg = ep_sendmsg;
		ep->msg.ops.senddata = ep_senddata;
		fid->msg = &ep->msg.ops;
	}
	if (fid->rma != &ep->rma.ops) {
		ep->real_rma = fid->rma;
		shim_table_copy(&ep->rma, fid->rma);
		ep->rma.ops.read = ep_read;
		ep->rma.ops.write = ep_write;
		ep->rma.ops.writedata = ep_writedata;
		ep->rma.ops.writemsg = ep_writemsg;
		fid->rma = &ep->rma.ops;
	}
}

static void ep_unhook(struct shim_obj *obj, struct fid *fid)
{
	struct shim_ep *ep = FR_CONTAINER_OF(obj, struct shim_ep, obj);

	ep_of(fid)->ops = ep->real_ep;
	ep_of(fid)->cm = ep->real_cm;
	ep_of(fid)->msg = ep->real_msg;
	ep_of(fid)->rma = ep->real_rma;
}

/* What is bound was opened by us as well. An address vector always is: without
 * one net crashes when it closes the endpoint. */
static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct shim_obj *obj = shim_obj_of(fid);
	int ret = 0;

	if (other->fclass == FI_CLASS_CQ) {
		ret = shim_refuse(SHIM_BIND, obj->rail);
	}
	if (ret == 0) {
		SHIM_REAL(ret, obj->real->bind(fid, other, flags));
	}
	if (ret == 0 && shim_inside == 0) {
		const struct shim_obj *with = shim_obj_of(other);

		shim_log("bind %s %u %s %u", obj->type, obj->id, with->type,
			 with->id);
	}
	return ret;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct shim_obj *obj = shim_obj_of(fid);
	int ret = 0;

	if (command == FI_ENABLE) {
		ret = shim_refuse(SHIM_ENABLE, obj->rail);
	}
	if (ret == 0) {
		SHIM_REAL(ret, obj->real->control(fid, command, arg));
	}
	if (ret == 0 && command == FI_ENABLE) {
		hook_tables(FR_CONTAINER_OF(obj, struct shim_ep, obj),
			    ep_of(fid));
	}
	return ret;
}

void shim_ep_hook(struct fid_ep *fid, const struct shim_obj *domain)
{
	struct shim_ep *ep = shim_alloc(sizeof(*ep));

	hook_tables(ep, fid);
	ep->obj.unhook = ep_unhook;
	shim_obj_hook(&ep->obj, &fid->fid, "ep", domain, domain->rail);
	ep->obj.fid.ops.bind = ep_bind;
	ep->obj.fid.ops.control = ep_control;
}
