/*
 * Completion queues. What was read behind an entry that is to fail is held
 * here: the error comes first, then those.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/util.h"
#include "shim/objects.h"
#include "shim/shim.h"
#include "shim/state.h"

/* Of an error of ours, for strerror. */
#define PROV_ERRNO 0x5348494d

struct shim_cq {
	struct shim_obj obj;
	SHIM_TABLE(fi_ops_cq) cq;
	struct fi_ops_cq *real_cq;
	enum fi_cq_format format;
	size_t entry_bytes; /* 0: a format without flags: nothing is touched */
	pthread_mutex_t lock;
	char *held;
	size_t held_cnt;
	size_t held_room;
	struct fi_cq_tagged_entry failed;
	int failed_err; /* 0: none waits */
};

static struct shim_cq *by_cq(const struct fid_cq *fid)
{
	return FR_CONTAINER_OF(fid->ops, struct shim_cq, cq.ops);
}

/* An entry of any format with flags begins like this. */
static struct fi_cq_msg_entry *entry_at(const struct shim_cq *cq, void *buf,
					size_t i)
{
	return (void *)((char *)buf + i * cq->entry_bytes);
}

static enum shim_kind entry_kind(const struct fi_cq_msg_entry *entry)
{
	if ((entry->flags & FI_RECV) != 0) {
		return SHIM_RECEIVED;
	}
	if ((entry->flags & FI_SEND) != 0) {
		return SHIM_SENT;
	}
	if ((entry->flags & FI_READ) != 0) {
		return SHIM_FETCHED;
	}
	return (entry->flags & FI_WRITE) != 0 ? SHIM_WRITTEN : SHIM_LANDED;
}

static uint64_t *entry_data(const struct shim_cq *cq, void *entry)
{
	return cq->format == FI_CQ_FORMAT_MSG
		       ? NULL
		       : &((struct fi_cq_data_entry *)entry)->data;
}

/* The length of a message is what every provider knows. */
static void garble(const struct shim_cq *cq, struct fi_cq_msg_entry *entry,
		   enum shim_kind kind)
{
	struct fi_cq_tagged_entry *wide = (void *)entry;

	if (kind != SHIM_RECEIVED) {
		entry->len = (size_t)shim_random();
	}
	if (cq->format == FI_CQ_FORMAT_MSG) {
		return;
	}
	wide->buf = (void *)(uintptr_t)shim_random();
	if ((entry->flags & FI_REMOTE_CQ_DATA) == 0) {
		wide->data = shim_random();
	}
	if (cq->format == FI_CQ_FORMAT_TAGGED) {
		wide->tag = shim_random();
	}
}

static void hold(struct shim_cq *cq, const void *entries, size_t cnt)
{
	size_t need = cq->held_cnt + cnt;

	if (need > cq->held_room) {
		char *grown = realloc(cq->held, need * cq->entry_bytes);

		if (grown == NULL) {
			abort();
		}
		cq->held = grown;
		cq->held_room = need;
	}
	if (cnt != 0) {
		memmove(cq->held + cnt * cq->entry_bytes, cq->held,
			cq->held_cnt * cq->entry_bytes);
		memcpy(cq->held, entries, cnt * cq->entry_bytes);
	}
	cq->held_cnt = need;
}

static size_t unhold(struct shim_cq *cq, void *buf, size_t cnt)
{
	cnt = FR_MIN(cnt, cq->held_cnt);
	memcpy(buf, cq->held, cnt * cq->entry_bytes);
	cq->held_cnt -= cnt;
	memmove(cq->held, cq->held + cnt * cq->entry_bytes,
		cq->held_cnt * cq->entry_bytes);
	return cnt;
}

/* False: an error comes in its place. */
static bool entry_passes(struct shim_cq *cq, struct fi_cq_msg_entry *entry)
{
	enum shim_kind kind = entry_kind(entry);
	const uint64_t *data = entry_data(cq, entry);
	int ret = shim_refuse(kind, cq->obj.rail);

	if (ret != 0) {
		memset(&cq->failed, 0, sizeof(cq->failed));
		memcpy(&cq->failed, entry, cq->entry_bytes);
		cq->failed_err = -ret;
		return false;
	}
	if (kind == SHIM_LANDED && data != NULL && shim_wants_posts()) {
		shim_log("land %d %llx", cq->obj.rail,
			 (unsigned long long)*data);
	}
	if (shim_wants_garbage()) {
		garble(cq, entry, kind);
	}
	return true;
}

static ssize_t read_locked(struct shim_cq *cq, struct fid_cq *fid, void *buf,
			   size_t cnt)
{
	ssize_t ret;

	if (cq->failed_err != 0) {
		return -FI_EAVAIL;
	}
	if (cq->held_cnt != 0) {
		ret = (ssize_t)unhold(cq, buf, cnt);
	} else {
		SHIM_REAL(ret, cq->real_cq->read(fid, buf, cnt));
	}
	for (ssize_t i = 0; i < ret && cq->entry_bytes != 0; i++) {
		if (!entry_passes(cq, entry_at(cq, buf, (size_t)i))) {
			hold(cq, entry_at(cq, buf, (size_t)i + 1),
			     (size_t)(ret - i - 1));
			return i == 0 ? -FI_EAVAIL : i;
		}
	}
	return ret;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t cnt)
{
	struct shim_cq *cq = by_cq(fid);
	ssize_t ret = shim_refuse(SHIM_READ, cq->obj.rail);

	if (ret != 0) {
		return ret;
	}
	if (shim_inside != 0) {
		return cq->real_cq->read(fid, buf, cnt);
	}
	pthread_mutex_lock(&cq->lock);
	ret = read_locked(cq, fid, buf, cnt);
	pthread_mutex_unlock(&cq->lock);
	return ret;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *entry,
			  uint64_t flags)
{
	struct shim_cq *cq = by_cq(fid);
	ssize_t ret = shim_refuse(SHIM_READERR, cq->obj.rail);

	if (ret != 0) {
		return ret;
	}
	if (shim_inside != 0) {
		return cq->real_cq->readerr(fid, entry, flags);
	}
	pthread_mutex_lock(&cq->lock);
	if (cq->failed_err != 0) {
		entry->op_context = cq->failed.op_context;
		entry->flags = cq->failed.flags;
		entry->len = 0;
		entry->buf = NULL;
		entry->data = cq->failed.data;
		entry->tag = cq->failed.tag;
		entry->olen = 0;
		entry->err = cq->failed_err;
		entry->prov_errno = PROV_ERRNO;
		entry->err_data_size = 0;
		cq->failed_err = 0;
		ret = 1;
	} else {
		SHIM_REAL(ret, cq->real_cq->readerr(fid, entry, flags));
	}
	pthread_mutex_unlock(&cq->lock);
	return ret;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	struct shim_cq *cq = by_cq(fid);

	if (prov_errno == PROV_ERRNO) {
		return FR_SHIM_TEXT;
	}
	return cq->real_cq->strerror(fid, prov_errno, err_data, buf, len);
}

static void cq_unhook(struct shim_obj *obj, struct fid *fid)
{
	FR_CONTAINER_OF(fid, struct fid_cq, fid)->ops =
		FR_CONTAINER_OF(obj, struct shim_cq, obj)->real_cq;
}

static void cq_gone(struct shim_obj *obj)
{
	struct shim_cq *cq = FR_CONTAINER_OF(obj, struct shim_cq, obj);

	pthread_mutex_destroy(&cq->lock);
	free(cq->held);
}

static size_t format_bytes(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return 0;
	}
}

void shim_cq_hook(struct fid_cq *fid, const struct shim_obj *domain,
		  enum fi_cq_format format)
{
	struct shim_cq *cq = shim_alloc(sizeof(*cq));

	cq->real_cq = fid->ops;
	cq->format = format;
	cq->entry_bytes = format_bytes(format);
	pthread_mutex_init(&cq->lock, NULL);
	cq->obj.unhook = cq_unhook;
	cq->obj.gone = cq_gone;
	shim_table_copy(&cq->cq, fid->ops);
	cq->cq.ops.read = cq_read;
	cq->cq.ops.readerr = cq_readerr;
	cq->cq.ops.strerror = cq_strerror;
	fid->ops = &cq->cq.ops;
	shim_obj_hook(&cq->obj, &fid->fid, "cq", domain, domain->rail);
}
