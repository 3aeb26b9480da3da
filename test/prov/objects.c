/* Queues, endpoints and registrations. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/priv.h"

#define EFA_NAME_BYTES 32u

static void domain_use(struct prov_domain *domain)
{
	pthread_mutex_lock(&prov.lock);
	domain->users++;
	prov.live++;
	pthread_mutex_unlock(&prov.lock);
}

static void domain_unuse_locked(struct prov_domain *domain)
{
	domain->users--;
	prov.live--;
}

/* -- address vectors --------------------------------------------------------
 */

static int av_close(struct fid *fid)
{
	struct prov_av *av = FR_CONTAINER_OF(fid, struct prov_av, fid.fid);

	pthread_mutex_lock(&prov.lock);
	PROV_CHECK(av->users == 0, "an address vector in use was closed");
	domain_unuse_locked(av->domain);
	pthread_mutex_unlock(&prov.lock);
	free(av);
	return 0;
}

static uint32_t name_read(const void *addr)
{
	struct sockaddr_in in;
	uint32_t name;

	if (prov.is.ip) {
		memcpy(&in, addr, sizeof(in));
		return ntohs(in.sin_port);
	}
	memcpy(&name, addr, sizeof(name));
	return name;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t cnt,
		     fi_addr_t *out, uint64_t flags, void *context)
{
	struct prov_av *av = FR_CONTAINER_OF(fid, struct prov_av, fid);

	(void)flags;
	(void)context;
	pthread_mutex_lock(&prov.lock);
	PROV_CHECK(cnt == 1 && av->cnt < PROV_AV_MAX, "too many names");
	av->name[av->cnt] = name_read(addr);
	*out = av->cnt++;
	pthread_mutex_unlock(&prov.lock);
	return 1;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addr, size_t cnt,
		     uint64_t flags)
{
	struct prov_av *av = FR_CONTAINER_OF(fid, struct prov_av, fid);

	(void)flags;
	pthread_mutex_lock(&prov.lock);
	PROV_CHECK(cnt == 1 && *addr < av->cnt && av->name[*addr] != 0,
		   "a name was removed that is not there");
	av->name[*addr] = 0;
	pthread_mutex_unlock(&prov.lock);
	return 0;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
};
static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.remove = av_remove,
};

int prov_av_open(struct fid_domain *fid, struct fi_av_attr *attr,
		 struct fid_av **out, void *context)
{
	struct prov_av *av = prov_new(sizeof(*av));

	(void)attr;
	(void)context;
	av->domain = FR_CONTAINER_OF(fid, struct prov_domain, fid);
	av->fid.fid.ops = &av_fid_ops;
	av->fid.ops = &av_ops;
	domain_use(av->domain);
	*out = &av->fid;
	return 0;
}

/* -- completion queues ------------------------------------------------------
 */

static int cq_close(struct fid *fid)
{
	struct prov_cq *cq = FR_CONTAINER_OF(fid, struct prov_cq, fid.fid);
	struct fr_list *node;

	pthread_mutex_lock(&prov.lock);
	PROV_CHECK(cq->users == 0, "a completion queue in use was closed");
	while ((node = fr_list_pop(&cq->entries)) != NULL) {
		free(FR_CONTAINER_OF(node, struct prov_entry, node));
	}
	domain_unuse_locked(cq->domain);
	pthread_mutex_unlock(&prov.lock);
	free(cq);
	return 0;
}

static struct prov_entry *cq_first(struct prov_cq *cq)
{
	return fr_list_empty(&cq->entries)
		       ? NULL
		       : FR_CONTAINER_OF(cq->entries.next, struct prov_entry,
					 node);
}

static void cq_forget(struct prov_cq *cq, struct prov_entry *entry)
{
	fr_list_del(&entry->node);
	free(entry);
	cq->used--;
}

static ssize_t cq_read_locked(struct prov_cq *cq, struct fi_cq_data_entry *out,
			      size_t cnt)
{
	size_t got = 0;
	struct prov_entry *entry;

	while (got < cnt && (entry = cq_first(cq)) != NULL) {
		if (entry->err.err != 0) {
			break;
		}
		out[got++] = (struct fi_cq_data_entry){
			.op_context = entry->err.op_context,
			.flags = entry->err.flags,
			.len = entry->err.len,
			.data = entry->err.data,
		};
		cq_forget(cq, entry);
	}
	if (got != 0) {
		return (ssize_t)got;
	}
	return cq_first(cq) != NULL || cq->overrun ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t cnt)
{
	struct prov_cq *cq = FR_CONTAINER_OF(fid, struct prov_cq, fid);
	ssize_t ret;

	pthread_mutex_lock(&prov.lock);
	prov_progress(cq);
	ret = cq_read_locked(cq, buf, cnt);
	pthread_mutex_unlock(&prov.lock);
	return ret;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *out,
			  uint64_t flags)
{
	struct prov_cq *cq = FR_CONTAINER_OF(fid, struct prov_cq, fid);
	struct prov_entry *entry;
	ssize_t ret = -FI_EAGAIN;

	(void)flags;
	pthread_mutex_lock(&prov.lock);
	entry = cq_first(cq);
	if (entry != NULL && entry->err.err != 0) {
		*out = entry->err;
		cq_forget(cq, entry);
		ret = 1;
	} else if (entry == NULL && cq->overrun) {
		*out = (struct fi_cq_err_entry){.err = FI_EOVERRUN};
		ret = 1;
	}
	pthread_mutex_unlock(&prov.lock);
	return ret;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno,
			       const void *data, char *buf, size_t bytes)
{
	(void)fid;
	(void)prov_errno;
	(void)data;
	(void)buf;
	(void)bytes;
	return "of the provider in memory";
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
};
static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readerr = cq_readerr,
	.strerror = cq_strerror,
};

int prov_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr,
		 struct fid_cq **out, void *context)
{
	struct prov_cq *cq = prov_new(sizeof(*cq));

	(void)context;
	PROV_CHECK(attr->format == FI_CQ_FORMAT_DATA, "format of a queue");
	cq->domain = FR_CONTAINER_OF(fid, struct prov_domain, fid);
	fr_list_init(&cq->entries);
	cq->size = attr->size;
	cq->fid.fid.ops = &cq_fid_ops;
	cq->fid.ops = &cq_ops;
	domain_use(cq->domain);
	*out = &cq->fid;
	return 0;
}

/* -- endpoints --------------------------------------------------------------
 */

struct prov_ep *prov_ep_named(uint32_t name)
{
	fr_list_for_each (node, &prov.eps) {
		struct prov_ep *ep =
			FR_CONTAINER_OF(node, struct prov_ep, node);

		if (ep->name == name) {
			return ep;
		}
	}
	return NULL;
}

static struct prov_ep *ep_of(struct fid *fid)
{
	return FR_CONTAINER_OF(fid, struct prov_ep, fid.fid);
}

static int ep_close(struct fid *fid)
{
	struct prov_ep *ep = ep_of(fid);

	pthread_mutex_lock(&prov.lock);
	PROV_CHECK(ep->mrs == 0, "an endpoint with registrations was closed");
	prov_drop_posts(ep);
	fr_list_del(&ep->node);
	if (ep->av != NULL) {
		ep->av->users--;
	}
	if (ep->cq != NULL) {
		ep->cq->users--;
	}
	domain_unuse_locked(ep->domain);
	pthread_mutex_unlock(&prov.lock);
	free(ep);
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct prov_ep *ep = ep_of(fid);

	pthread_mutex_lock(&prov.lock);
	PROV_CHECK(!ep->enabled, "an enabled endpoint was bound");
	if (other->ops == &av_fid_ops) {
		ep->av = FR_CONTAINER_OF(other, struct prov_av, fid.fid);
		ep->av->users++;
	} else {
		PROV_CHECK(other->ops == &cq_fid_ops &&
				   flags == (FI_TRANSMIT | FI_RECV),
			   "an endpoint was bound to something strange");
		ep->cq = FR_CONTAINER_OF(other, struct prov_cq, fid.fid);
		ep->cq->users++;
	}
	pthread_mutex_unlock(&prov.lock);
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct prov_ep *ep = ep_of(fid);

	(void)arg;
	PROV_CHECK(command == FI_ENABLE && ep->av != NULL && ep->cq != NULL,
		   "an endpoint was enabled unbound");
	pthread_mutex_lock(&prov.lock);
	ep->enabled = true;
	pthread_mutex_unlock(&prov.lock);
	return 0;
}

static int ep_getname(fid_t fid, void *addr, size_t *bytes)
{
	struct prov_ep *ep = ep_of(fid);
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)ep->name),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	size_t room = *bytes;

	PROV_CHECK(ep->enabled, "the name of an endpoint before it is enabled");
	*bytes = prov.is.ip ? sizeof(in) : EFA_NAME_BYTES;
	if (room < *bytes) {
		return -FI_ETOOSMALL;
	}
	memset(addr, 0, *bytes);
	if (prov.is.ip) {
		memcpy(addr, &in, sizeof(in));
	} else {
		memcpy(addr, &ep->name, sizeof(ep->name));
	}
	return 0;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
};
static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
};
static struct fi_ops_cm ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.getname = ep_getname,
};

int prov_ep_open(struct fid_domain *fid, struct fi_info *info,
		 struct fid_ep **out, void *context)
{
	struct prov_ep *ep = prov_new(sizeof(*ep));

	(void)info;
	(void)context;
	ep->domain = FR_CONTAINER_OF(fid, struct prov_domain, fid);
	ep->fid.fid.ops = &ep_fid_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &ep_cm_ops;
	ep->fid.msg = &prov_msg_ops;
	ep->fid.rma = &prov_rma_ops;
	domain_use(ep->domain);
	pthread_mutex_lock(&prov.lock);
	ep->name = ++prov.names;
	fr_list_push(&prov.eps, &ep->node);
	pthread_mutex_unlock(&prov.lock);
	*out = &ep->fid;
	return 0;
}

/* -- registrations ----------------------------------------------------------
 */

static struct prov_mr *mr_of(struct fid *fid)
{
	return FR_CONTAINER_OF(fid, struct prov_mr, fid.fid);
}

static void mr_check_idle(const struct prov_mr *mr)
{
	fr_list_for_each (node, &prov.posts) {
		struct prov_post *post =
			FR_CONTAINER_OF(node, struct prov_post, node);

		PROV_CHECK(post->landed || post->desc != mr,
			   "a registration of %zu bytes was closed under a %s "
			   "of %zu",
			   mr->bytes,
			   post->kind == PROV_SEND ? "message" : "write",
			   post->bytes);
	}
}

static int mr_close(struct fid *fid)
{
	struct prov_mr *mr = mr_of(fid);

	pthread_mutex_lock(&prov.lock);
	mr_check_idle(mr);
	fr_list_del(&mr->node);
	if (mr->ep != NULL) {
		mr->ep->mrs--;
	}
	domain_unuse_locked(mr->domain);
	pthread_mutex_unlock(&prov.lock);
	free(mr);
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct prov_mr *mr = mr_of(fid);

	PROV_CHECK(mr->ep == NULL && !mr->enabled && flags == 0 &&
			   other->ops == &ep_fid_ops &&
			   ep_of(other)->domain == mr->domain,
		   "a registration was bound to something strange");
	pthread_mutex_lock(&prov.lock);
	mr->ep = ep_of(other);
	mr->ep->mrs++;
	pthread_mutex_unlock(&prov.lock);
	return 0;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct prov_mr *mr = mr_of(fid);

	(void)arg;
	PROV_CHECK(command == FI_ENABLE && mr->ep != NULL && !mr->enabled,
		   "a registration was enabled unbound, or twice");
	pthread_mutex_lock(&prov.lock);
	mr->enabled = true;
	pthread_mutex_unlock(&prov.lock);
	return 0;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
};

static uint64_t key_mask(void)
{
	return prov.is.mr_key_size >= 8
		       ? UINT64_MAX
		       : (UINT64_C(1) << (prov.is.mr_key_size * 8)) - 1;
}

static bool key_is_taken(const struct prov_domain *domain, uint64_t key)
{
	fr_list_for_each (node, &prov.mrs) {
		struct prov_mr *mr =
			FR_CONTAINER_OF(node, struct prov_mr, node);

		if (mr->domain == domain && mr->fid.key == key) {
			return true;
		}
	}
	return false;
}

static void check_allocated(const struct iovec *iov)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)iov->iov_base & ~(page - 1);

	PROV_CHECK(iov->iov_len > 0 && msync((void *)from, 1, MS_ASYNC) == 0,
		   "memory was registered that is not there");
}

int prov_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		 struct fid_mr **out)
{
	struct prov_mr *mr = prov_new(sizeof(*mr));
	uint64_t key = attr->requested_key;
	bool taken;

	PROV_CHECK(attr->iov_count == 1 && attr->iface == FI_HMEM_SYSTEM &&
			   flags == 0,
		   "a registration that was not offered");
	check_allocated(attr->mr_iov);
	mr->domain = FR_CONTAINER_OF(fid, struct prov_domain, fid.fid);
	mr->base = (uintptr_t)attr->mr_iov->iov_base;
	mr->bytes = attr->mr_iov->iov_len;
	mr->access = attr->access;
	mr->enabled = (prov.is.mr_mode & FI_MR_ENDPOINT) == 0;
	pthread_mutex_lock(&prov.lock);
	if ((prov.is.mr_mode & FI_MR_PROV_KEY) != 0) {
		key = prov_random() & key_mask();
	}
	PROV_CHECK((key & ~key_mask()) == 0, "a key that is too long");
	taken = key_is_taken(mr->domain, key);
	mr->fid.key = key;
	mr->fid.mem_desc = mr;
	mr->fid.fid.ops = &mr_fid_ops;
	if (!taken) {
		fr_list_push(&prov.mrs, &mr->node);
	}
	pthread_mutex_unlock(&prov.lock);
	if (taken) {
		free(mr);
		return -FI_ENOKEY;
	}
	domain_use(mr->domain);
	*out = &mr->fid;
	return 0;
}
