#include "fake/fake_fi.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/list.h"
#include "fabric/hmem.h"

/* Every object begins like libfabric's; @users must be gone before it closes.
 */
struct fake_fid {
	union {
		struct fid fid;
		struct fid_fabric fabric;
		struct fid_domain domain;
		struct fid_av av;
		struct fid_cq cq;
		struct fid_ep ep;
		struct fid_mr mr;
	} u;
	enum fake_fid_kind kind;
	unsigned users;
	struct fake_fid *uses[4];
	unsigned uses_cnt;
	bool enabled;
	struct fi_info *info; /* of an endpoint, borrowed */
	struct fr_list node;  /* of all live ones: what a test abandons is
				 reachable, and no leak */
};

static struct fr_list live_fids = {&live_fids, &live_fids};

static struct fake_fid *fake_of(void *fid)
{
	return fid;
}

static void fake_use(struct fake_fid *user, struct fake_fid *used)
{
	user->uses[user->uses_cnt++] = used;
	used->users++;
}

static int fake_close(struct fid *fid)
{
	struct fake_fid *fake = fake_of(fid);
	char letter[] = {"fdaqem"[fake->kind], '\0'};

	if (fake->users > 0) {
		fake_fi.misuses++;
		return -FI_EBUSY;
	}
	strncat(fake_fi.closed, letter,
		sizeof(fake_fi.closed) - strlen(fake_fi.closed) - 1);
	for (unsigned i = 0; i < fake->uses_cnt; i++) {
		fake->uses[i]->users--;
	}
	fake_fi.live[fake->kind]--;
	fr_list_del(&fake->node);
	free(fake);
	return 0;
}

static int fake_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct fake_fid *fake = fake_of(fid), *other = fake_of(to);

	if (fake_fi_fails()) {
		return -FI_EINVAL;
	}
	if (other->kind == FAKE_CQ && flags != (FI_TRANSMIT | FI_RECV)) {
		fake_fi.misuses++;
	}
	if (fake->kind == FAKE_MR) {
		fake_fi.reg_ep = to;
	}
	fake_use(fake, other);
	return 0;
}

static int fake_control(struct fid *fid, int command, void *arg)
{
	struct fake_fid *fake = fake_of(fid);

	(void)arg;
	if (fake_fi_fails()) {
		return -FI_ENOMEM;
	}
	if (command != FI_ENABLE ||
	    fake->uses_cnt < (fake->kind == FAKE_EP ? 3 : 2)) {
		fake_fi.misuses++;
	}
	fake->enabled = true;
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fake_close,
	.bind = fake_bind,
	.control = fake_control,
};

static struct fake_fid *fake_new(enum fake_fid_kind kind, struct fake_fid *up)
{
	struct fake_fid *fake;

	if (fake_fi_fails()) {
		return NULL;
	}
	fake = calloc(1, sizeof(*fake));
	fake->kind = kind;
	fake->u.fid.ops = &fid_ops;
	if (up != NULL) {
		fake_use(fake, up);
	}
	fake_fi.live[kind]++;
	fr_list_push(&live_fids, &fake->node);
	return fake;
}

/* -- posts ------------------------------------------------------------------
 */

static ssize_t fake_posted(struct fid_ep *ep, const struct fake_post *post)
{
	if (!fake_of(ep)->enabled) {
		fake_fi.misuses++;
	}
	fake_fi.post = *post;
	fake_fi.post.ep = ep;
	fake_fi.posts++;
	return fake_fi.post_ret;
}

static ssize_t fake_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t addr, void *context)
{
	struct fake_post post = {.call = "recv",
				 .buf = buf,
				 .len = len,
				 .desc = desc,
				 .addr = addr,
				 .context = context};

	return fake_posted(ep, &post);
}

static ssize_t fake_send(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t addr, void *context)
{
	struct fake_post post = {.call = "send",
				 .buf = buf,
				 .len = len,
				 .desc = desc,
				 .addr = addr,
				 .context = context};

	return fake_posted(ep, &post);
}

static ssize_t fake_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    uint64_t flags)
{
	struct fake_post post = {.call = "sendmsg",
				 .buf = msg->msg_iov->iov_base,
				 .len = msg->msg_iov->iov_len,
				 .desc = msg->desc[0],
				 .addr = msg->addr,
				 .flags = flags,
				 .context = msg->context};

	return fake_posted(ep, &post);
}

static ssize_t fake_writedata(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, uint64_t data, fi_addr_t addr,
			      uint64_t remote_addr, uint64_t key, void *context)
{
	struct fake_post post = {.call = "writedata",
				 .buf = buf,
				 .len = len,
				 .desc = desc,
				 .data = data,
				 .addr = addr,
				 .remote_addr = remote_addr,
				 .key = key,
				 .context = context};

	return fake_posted(ep, &post);
}

static ssize_t fake_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			     uint64_t flags)
{
	struct fake_post post = {.call = "writemsg",
				 .buf = msg->msg_iov->iov_base,
				 .len = msg->rma_iov->len,
				 .desc = msg->desc[0],
				 .data = msg->data,
				 .addr = msg->addr,
				 .remote_addr = msg->rma_iov->addr,
				 .key = msg->rma_iov->key,
				 .flags = flags,
				 .context = msg->context};

	return fake_posted(ep, &post);
}

static ssize_t fake_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t addr, uint64_t remote_addr, uint64_t key,
			 void *context)
{
	struct fake_post post = {.call = "read",
				 .buf = buf,
				 .len = len,
				 .desc = desc,
				 .addr = addr,
				 .remote_addr = remote_addr,
				 .key = key,
				 .context = context};

	return fake_posted(ep, &post);
}

static struct fi_ops_msg msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = fake_recv,
	.send = fake_send,
	.sendmsg = fake_sendmsg,
};

static struct fi_ops_rma rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = fake_read,
	.writedata = fake_writedata,
	.writemsg = fake_writemsg,
};

/* -- completions ------------------------------------------------------------
 */

void fake_fi_complete(void *context, uint64_t flags, size_t len, uint64_t data)
{
	unsigned slot = fake_fi.tail++ % FAKE_FI_QUEUE;
	struct fi_cq_data_entry *entry = &fake_fi.queue[slot];

	fake_fi.is_error[slot] = false;
	entry->op_context = context;
	entry->flags = flags;
	entry->len = len;
	entry->data = data;
}

void fake_fi_complete_error(void *context, uint64_t flags, int err,
			    int prov_errno)
{
	unsigned slot = fake_fi.tail++ % FAKE_FI_QUEUE;
	struct fi_cq_err_entry *entry = &fake_fi.error[slot];

	fake_fi.is_error[slot] = true;
	memset(entry, 0, sizeof(*entry));
	entry->op_context = context;
	entry->flags = flags;
	entry->err = err;
	entry->prov_errno = prov_errno;
}

/* As libfabric: entries up to an error, then -FI_EAVAIL until it was read. */
static ssize_t fake_cq_read(struct fid_cq *cq, void *buf, size_t cnt)
{
	struct fi_cq_data_entry *out = buf;
	size_t i = 0;

	(void)cq;
	fake_fi.reads++;
	while (i < cnt && fake_fi.head != fake_fi.tail &&
	       !fake_fi.is_error[fake_fi.head % FAKE_FI_QUEUE]) {
		out[i++] = fake_fi.queue[fake_fi.head++ % FAKE_FI_QUEUE];
	}
	if (i > 0) {
		return (ssize_t)i;
	}
	if (fake_fi.head != fake_fi.tail) {
		return -FI_EAVAIL;
	}
	return fake_fi.cq_ret != 0 ? fake_fi.cq_ret : -FI_EAGAIN;
}

static const size_t fake_old_err_bytes =
	offsetof(struct fi_cq_err_entry, err_data_size) + sizeof(size_t);

static ssize_t fake_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry,
			       uint64_t flags)
{
	(void)cq;
	(void)flags;
	if (fake_fi.head == fake_fi.tail) {
		return -FI_EAGAIN;
	}
	*entry = fake_fi.error[fake_fi.head++ % FAKE_FI_QUEUE];
	/* As one from 1.20 on, whose entry is longer by a field. */
	memset((char *)entry + fake_old_err_bytes, 0xff, sizeof(fi_addr_t));
	return 1;
}

static const char *fake_cq_strerror(struct fid_cq *cq, int prov_errno,
				    const void *data, char *buf, size_t len)
{
	(void)cq;
	(void)data;
	snprintf(buf, len, "provider error %d", prov_errno);
	return buf;
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = fake_cq_read,
	.readerr = fake_cq_readerr,
	.strerror = fake_cq_strerror,
};

/* -- objects of a domain ----------------------------------------------------
 */

static int fake_av_insert(struct fid_av *av, const void *addr, size_t cnt,
			  fi_addr_t *out, uint64_t flags, void *context)
{
	static fi_addr_t next;

	(void)av;
	(void)addr;
	(void)flags;
	(void)context;
	if (fake_fi.av_ret != 0) {
		return fake_fi.av_ret == INT32_MAX ? 0 : fake_fi.av_ret;
	}
	*out = ++next;
	fake_fi.av_inserts++;
	return (int)cnt;
}

static int fake_av_remove(struct fid_av *av, fi_addr_t *addr, size_t cnt,
			  uint64_t flags)
{
	(void)av;
	(void)cnt;
	(void)flags;
	fake_fi.av_removed = *addr;
	return 0;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = fake_av_insert,
	.remove = fake_av_remove,
};

static int fake_getname(fid_t fid, void *addr, size_t *len)
{
	const struct fi_info *info = fake_of(fid)->info;
	size_t have = fake_fi.name_len;
	uint8_t name[128] = {0};

	if (fake_fi_fails()) {
		return -FI_EOTHER;
	}
	if (info->src_addr != NULL) {
		memcpy(name, info->src_addr, info->src_addrlen);
		if (info->addr_format != FI_ADDR_STR) {
			((struct sockaddr_in *)(void *)name)->sin_port =
				htons(7);
		}
		have = have == 0 ? info->src_addrlen : have;
	} else {
		memcpy(name, "fake://1:2", 11);
		have = have == 0 ? 11 : have;
	}
	memcpy(addr, name, have < *len ? have : *len);
	if (have > *len) {
		*len = have;
		return -FI_ETOOSMALL;
	}
	*len = have;
	return 0;
}

static int fake_setopt(fid_t fid, int level, int name, const void *value,
		       size_t bytes)
{
	bool permitted = true;

	if (level != FI_OPT_ENDPOINT || bytes != sizeof(permitted) ||
	    fake_of(fid)->enabled || name != FR_FI_OPT_CUDA_API_PERMITTED) {
		fake_fi.misuses++;
	}
	memcpy(&permitted, value, sizeof(permitted));
	fake_fi.setopts += !permitted;
	return fake_fi.setopt_ret;
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.setopt = fake_setopt,
};

static struct fi_ops_cm cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.getname = fake_getname,
};

static int fake_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
			struct fid_av **out, void *context)
{
	struct fake_fid *fake = fake_new(FAKE_AV, fake_of(domain));

	(void)attr;
	(void)context;
	if (fake == NULL) {
		return -FI_ENOMEM;
	}
	fake->u.av.ops = &av_ops;
	*out = &fake->u.av;
	return 0;
}

static int fake_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
			struct fid_cq **out, void *context)
{
	struct fake_fid *fake = fake_new(FAKE_CQ, fake_of(domain));

	(void)context;
	if (fake == NULL) {
		return -FI_EINVAL;
	}
	if (attr->format != FI_CQ_FORMAT_DATA ||
	    attr->wait_obj != FI_WAIT_NONE) {
		fake_fi.misuses++;
	}
	fake->u.cq.ops = &cq_ops;
	*out = &fake->u.cq;
	return 0;
}

static int fake_endpoint(struct fid_domain *domain, struct fi_info *info,
			 struct fid_ep **out, void *context)
{
	struct fake_fid *fake;

	(void)context;
	if (fake_fi.no_tclass && info->tx_attr->tclass != FI_TC_UNSPEC) {
		return -FI_EOPNOTSUPP;
	}
	fake = fake_new(FAKE_EP, fake_of(domain));
	if (fake == NULL) {
		return -FI_ENODEV;
	}
	fake->info = info;
	fake->u.ep.ops = &ep_ops;
	fake->u.ep.cm = &cm_ops;
	fake->u.ep.msg = &msg_ops;
	fake->u.ep.rma = &rma_ops;
	fake_fi.ep_op_flags = info->tx_attr->op_flags;
	fake_fi.ep_tclass = info->tx_attr->tclass;
	*out = &fake->u.ep;
	return 0;
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = fake_av_open,
	.cq_open = fake_cq_open,
	.endpoint = fake_endpoint,
};

static int fake_regattr(struct fid *domain, const struct fi_mr_attr *attr,
			uint64_t flags, struct fid_mr **out)
{
	struct fake_fid *fake;
	void *later;

	fake_fi.requested_key[fake_fi.regs++ % FAKE_FI_QUEUE] =
		attr->requested_key;
	fake_fi.reg = *attr;
	fake_fi.reg_flags = flags;
	if ((flags & FR_FI_MR_DMABUF) != 0) {
		memcpy(&fake_fi.reg_dmabuf, attr->mr_iov,
		       sizeof(fake_fi.reg_dmabuf));
	} else {
		fake_fi.reg_iov = *attr->mr_iov;
	}
	if (attr->iface == FI_HMEM_CUDA) {
		int err = (flags & FR_FI_MR_DMABUF) != 0 ? fake_fi.dmabuf_ret
							 : fake_fi.gpu_ret;

		fake_fi.gpu_regs++;
		if (err != 0) {
			return err;
		}
	}
	/* As one from 1.19 on, whose structure is longer by a field. */
	memcpy(&later,
	       (const char *)attr + offsetof(struct fi_mr_attr, device) +
		       sizeof(attr->device),
	       sizeof(later));
	if (later != NULL) {
		fake_fi.misuses++;
	}
	if (fake_fi.keys_taken > 0) {
		fake_fi.keys_taken--;
		return -FI_ENOKEY;
	}
	fake = fake_new(FAKE_MR, fake_of(domain));
	if (fake == NULL) {
		return -FI_ENOMEM;
	}
	if ((flags & ~FR_FI_MR_DMABUF) != 0 || attr->iov_count != 1 ||
	    (flags != 0 && attr->iface == FI_HMEM_SYSTEM)) {
		fake_fi.misuses++;
	}
	fake->u.mr.mem_desc = fake;
	fake->u.mr.key = (fake_fi.mr_mode & FI_MR_PROV_KEY) != 0
				 ? 1000 + fake_fi.regs
				 : attr->requested_key;
	*out = &fake->u.mr;
	return 0;
}

static struct fi_ops_mr mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.regattr = fake_regattr,
};

static int fake_domain(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **out, void *context)
{
	struct fake_fid *fake = fake_new(FAKE_DOMAIN, fake_of(fabric));

	(void)info;
	(void)context;
	if (fake == NULL) {
		return -FI_EBUSY;
	}
	fake->u.domain.ops = &domain_ops;
	fake->u.domain.mr = &mr_ops;
	*out = &fake->u.domain;
	return 0;
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = fake_domain,
};

int fake_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out,
		   void *context)
{
	struct fake_fid *fake = fake_new(FAKE_FABRIC, NULL);

	(void)attr;
	(void)context;
	if (fake == NULL) {
		return -FI_ENOMEM;
	}
	fake->u.fabric.ops = &fabric_ops;
	*out = &fake->u.fabric;
	return 0;
}
