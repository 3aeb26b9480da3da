/* Posts, and their ways. */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/priv.h"

/* -- what is watched --------------------------------------------------------
 */

static bool mr_holds(const struct prov_mr *mr, uintptr_t from, size_t bytes)
{
	return from >= mr->base && bytes <= mr->bytes &&
	       from - mr->base <= mr->bytes - bytes;
}

void prov_check_local(const struct prov_ep *ep, const void *buf, size_t bytes,
		      const void *desc, uint64_t access)
{
	const struct prov_mr *mr = NULL;

	if ((prov.is.mr_mode & FI_MR_LOCAL) == 0 || bytes == 0) {
		return;
	}
	fr_list_for_each (node, &prov.mrs) {
		mr = FR_CONTAINER_OF(node, struct prov_mr, node);
		if (mr == desc) {
			break;
		}
		mr = NULL;
	}
	PROV_CHECK(mr != NULL, "a post without a registration");
	PROV_CHECK(mr->domain == ep->domain &&
			   mr_holds(mr, (uintptr_t)buf, bytes) &&
			   (mr->access & access) == access && mr->enabled,
		   "a post with a registration that does not serve it");
}

/* The memory that a peer names. */
static void *target_of(const struct prov_ep *to, const struct prov_post *post,
		       uint64_t access)
{
	fr_list_for_each (node, &prov.mrs) {
		struct prov_mr *mr =
			FR_CONTAINER_OF(node, struct prov_mr, node);
		uintptr_t at = post->addr;

		if (mr->domain != to->domain || mr->fid.key != post->key) {
			continue;
		}
		if ((prov.is.mr_mode & FI_MR_VIRT_ADDR) == 0) {
			PROV_CHECK(post->addr <= mr->bytes, "no offset");
			at += mr->base;
		}
		PROV_CHECK(mr_holds(mr, at, post->bytes) && mr->enabled &&
				   (mr->access & access) == access,
			   "a peer names memory that is not open to it");
		PROV_CHECK(mr->ep == NULL || mr->ep == to,
			   "a registration of another endpoint");
		prov.keys += !mr->written;
		mr->written = true;
		return (void *)at;
	}
	prov_fault("a key that nobody has");
}

/* -- completions ------------------------------------------------------------
 */

static void complete(struct prov_cq *cq, void *context, uint64_t flags,
		     size_t bytes, uint64_t data, int err)
{
	struct prov_entry *entry;

	cq->overrun = cq->overrun || (prov.is.overruns && cq->used == cq->size);
	if (cq->overrun) {
		return;
	}
	entry = prov_new(sizeof(*entry));
	cq->used++;
	entry->err.op_context = context;
	entry->err.flags = flags;
	entry->err.len = bytes;
	entry->err.data = data;
	entry->err.err = err;
	fr_list_push(&cq->entries, &entry->node);
}

static void post_complete(struct prov_post *post)
{
	static const uint64_t flags[] = {
		[PROV_SEND] = FI_MSG | FI_SEND,
		[PROV_WRITE] = FI_RMA | FI_WRITE,
		[PROV_READ] = FI_RMA | FI_READ,
	};

	complete(post->from->cq, post->context, flags[post->kind], 0, 0,
		 post->err);
	fr_list_del(&post->node);
	free(post);
}

/* -- landing ----------------------------------------------------------------
 */

static bool land_send(struct prov_ep *to, struct prov_post *post)
{
	struct prov_rx *rx = &to->rx[to->rx_head % PROV_RX_MAX];

	if (to->rx_head == to->rx_tail) {
		return false;
	}
	PROV_CHECK(post->bytes <= rx->bytes,
		   "a message of %zu bytes for a buffer of %zu", post->bytes,
		   rx->bytes);
	prov_check_local(to, rx->buf, rx->bytes, rx->desc, FI_RECV);
	memcpy(rx->buf, post->buf, post->bytes);
	to->rx_head++;
	complete(to->cq, rx->context, FI_MSG | FI_RECV, post->bytes, 0, 0);
	return true;
}

static void land_rma(struct prov_ep *to, struct prov_post *post)
{
	void *target;

	if (post->kind == PROV_READ) {
		target = target_of(to, post, FI_REMOTE_READ);
		memcpy(post->buf, target, post->bytes);
		return;
	}
	target = target_of(to, post, FI_REMOTE_WRITE);
	if (post->bytes != 0) {
		memcpy(target, post->buf, post->bytes);
	}
	if (post->has_data) {
		complete(to->cq, NULL,
			 FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
			 post->bytes, post->data, 0);
	}
}

static void post_land(struct prov_ep *to, struct prov_post *post)
{
	uint64_t access = post->kind == PROV_SEND    ? FI_SEND
			  : post->kind == PROV_WRITE ? FI_WRITE
						     : FI_READ;

	prov_check_local(post->from, post->buf, post->bytes, post->desc,
			 access);
	if (post->kind == PROV_SEND) {
		post->landed = land_send(to, post);
		return;
	}
	land_rma(to, post);
	post->landed = true;
}

/* Messages of one endpoint to another stay in order, nothing else does. */
static bool must_wait(const struct prov_post *post, bool *wrote_before)
{
	bool wait = false;

	fr_list_for_each (node, &prov.posts) {
		struct prov_post *older =
			FR_CONTAINER_OF(node, struct prov_post, node);

		if (older == post) {
			break;
		}
		if (older->landed || older->from != post->from ||
		    older->to != post->to) {
			continue;
		}
		wait = wait ||
		       (post->kind == PROV_SEND && older->kind == PROV_SEND);
		*wrote_before = *wrote_before || (older->kind == PROV_WRITE &&
						  post->kind == PROV_WRITE);
	}
	return wait;
}

static void post_progress(struct prov_cq *cq, struct prov_post *post)
{
	struct prov_ep *to = prov_ep_named(post->to);
	bool wrote_before = false;

	if (to == NULL && !post->landed) {
		post->landed = true;
		post->err = FI_ECONNRESET;
	}
	if (!post->landed && (to->cq == cq || post->from->cq == cq) &&
	    prov_chance(50) && !must_wait(post, &wrote_before)) {
		post_land(to, post);
		prov.overtaken += wrote_before;
	}
	if (post->landed && post->from->cq == cq && prov_chance(50)) {
		post_complete(post);
	}
}

void prov_progress(struct prov_cq *cq)
{
	fr_list_for_each_safe (node, &prov.posts) {
		post_progress(cq,
			      FR_CONTAINER_OF(node, struct prov_post, node));
	}
}

void prov_drop_posts(struct prov_ep *ep)
{
	fr_list_for_each_safe (node, &prov.posts) {
		struct prov_post *post =
			FR_CONTAINER_OF(node, struct prov_post, node);

		if (post->from == ep) {
			fr_list_del(&post->node);
			free(post);
		}
	}
}

/* -- posting ----------------------------------------------------------------
 */

static void post_check(struct prov_ep *ep, const struct prov_post *post,
		       uint64_t access)
{
	unsigned data_bits = (unsigned)prov.is.cq_data_size * 8;

	PROV_CHECK(ep->enabled, "a post to an endpoint before it is enabled");
	PROV_CHECK(post->bytes <= prov.is.max_msg_size,
		   "a post of %zu bytes, and %zu are the limit", post->bytes,
		   prov.is.max_msg_size);
	PROV_CHECK(data_bits >= 64 || post->data >> data_bits == 0,
		   "remote data of more than %u bits", data_bits);
	prov_check_local(ep, post->buf, post->bytes, post->desc, access);
}

static ssize_t post_add(struct prov_ep *ep, const struct prov_post *like,
			fi_addr_t to, uint64_t access)
{
	struct prov_post *post;

	pthread_mutex_lock(&prov.lock);
	PROV_CHECK(to < ep->av->cnt && ep->av->name[to] != 0,
		   "a post to a name that is not there");
	post_check(ep, like, access);
	if (prov_chance(prov.is.again_percent)) {
		prov.refused++;
		pthread_mutex_unlock(&prov.lock);
		return -FI_EAGAIN;
	}
	post = prov_new(sizeof(*post));
	*post = *like;
	post->from = ep;
	post->to = ep->av->name[to];
	prov.longest = FR_MAX(prov.longest, post->bytes);
	if (post->kind == PROV_WRITE && post->bytes != 0 &&
	    !ep->domain->wrote) {
		ep->domain->wrote = true;
		prov.rails++;
	}
	fr_list_push(&prov.posts, &post->node);
	pthread_mutex_unlock(&prov.lock);
	return 0;
}

static struct prov_ep *ep_of(struct fid_ep *fid)
{
	return FR_CONTAINER_OF(fid, struct prov_ep, fid);
}

static ssize_t ep_send(struct fid_ep *fid, const void *buf, size_t bytes,
		       void *desc, fi_addr_t to, void *context)
{
	struct prov_post post = {
		.kind = PROV_SEND,
		.buf = (void *)(uintptr_t)buf,
		.bytes = bytes,
		.desc = desc,
		.context = context,
	};

	return post_add(ep_of(fid), &post, to, FI_SEND);
}

static ssize_t ep_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			  uint64_t flags)
{
	PROV_CHECK(msg->iov_count == 1 && (flags & FI_COMPLETION) != 0,
		   "a message of a kind that we do not know");
	return ep_send(fid, msg->msg_iov->iov_base, msg->msg_iov->iov_len,
		       msg->desc[0], msg->addr, msg->context);
}

static ssize_t ep_recv(struct fid_ep *fid, void *buf, size_t bytes, void *desc,
		       fi_addr_t from, void *context)
{
	struct prov_ep *ep = ep_of(fid);
	ssize_t ret = 0;

	(void)from;
	pthread_mutex_lock(&prov.lock);
	PROV_CHECK(ep->enabled, "a receive before the endpoint is enabled");
	prov_check_local(ep, buf, bytes, desc, FI_RECV);
	if (prov_chance(prov.is.again_percent) ||
	    ep->rx_tail - ep->rx_head == PROV_RX_MAX) {
		prov.refused++;
		ret = -FI_EAGAIN;
	} else {
		ep->rx[ep->rx_tail++ % PROV_RX_MAX] =
			(struct prov_rx){buf, bytes, desc, context};
	}
	pthread_mutex_unlock(&prov.lock);
	return ret;
}

static ssize_t ep_writedata(struct fid_ep *fid, const void *buf, size_t bytes,
			    void *desc, uint64_t data, fi_addr_t to,
			    uint64_t addr, uint64_t key, void *context)
{
	struct prov_post post = {
		.kind = PROV_WRITE,
		.buf = (void *)(uintptr_t)buf,
		.bytes = bytes,
		.desc = desc,
		.addr = addr,
		.key = key,
		.data = data,
		.has_data = true,
		.context = context,
	};

	return post_add(ep_of(fid), &post, to, FI_WRITE);
}

static ssize_t ep_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			   uint64_t flags)
{
	struct prov_post post = {
		.kind = PROV_WRITE,
		.buf = msg->msg_iov->iov_base,
		.bytes = msg->msg_iov->iov_len,
		.desc = msg->desc[0],
		.addr = msg->rma_iov->addr,
		.key = msg->rma_iov->key,
		.data = msg->data,
		.has_data = (flags & FI_REMOTE_CQ_DATA) != 0,
		.context = msg->context,
	};

	PROV_CHECK(msg->iov_count == 1 && msg->rma_iov_count == 1 &&
			   msg->rma_iov->len == post.bytes &&
			   (flags & FI_COMPLETION) != 0,
		   "a write of a kind that we do not know");
	return post_add(ep_of(fid), &post, msg->addr, FI_WRITE);
}

static ssize_t ep_read(struct fid_ep *fid, void *buf, size_t bytes, void *desc,
		       fi_addr_t from, uint64_t addr, uint64_t key,
		       void *context)
{
	struct prov_post post = {
		.kind = PROV_READ,
		.buf = buf,
		.bytes = bytes,
		.desc = desc,
		.addr = addr,
		.key = key,
		.context = context,
	};

	return post_add(ep_of(fid), &post, from, FI_READ);
}

struct fi_ops_msg prov_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = ep_recv,
	.send = ep_send,
	.sendmsg = ep_sendmsg,
};
struct fi_ops_rma prov_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = ep_read,
	.writedata = ep_writedata,
	.writemsg = ep_writemsg,
};
