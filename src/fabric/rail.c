#include "fabric/rail.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/random.h"
#include "fabric/hmem.h"
#include "fabric/rail_priv.h"
#include "fabric/shm_priv.h"
#include "fabric/signals.h"

static enum fr_log_level rail_failure_level(const struct fr_rail *rail)
{
	if (rail->trying) {
		return FR_LOG_DEBUG;
	}
	return rail->trial ? FR_LOG_INFO : FR_LOG_ERROR;
}

static int rail_failed(const struct fr_rail *rail, const char *what, int ret)
{
	fr_log_line(rail_failure_level(rail), __FILE__, __LINE__,
		    "rail %u on %s (%s): cannot open its %s: %s", rail->index,
		    rail->nic->name, rail->fabric->text, what, fr_fi_text(ret));
	return fr_fi_errno(ret);
}

void fr_rail_close_fid(const struct fr_rail *rail, struct fid *fid,
		       const char *what)
{
	int ret = fi_close(fid);

	if (ret != 0) {
		fr_error("rail %u on %s (%s): cannot close its %s: %s",
			 rail->index, rail->nic->name, rail->fabric->text, what,
			 fr_fi_text(ret));
	}
}

static int rail_open_domain(struct fr_rail *rail)
{
	int ret;

	ret = rail->fabric->fi->fabric(rail->info->fabric_attr,
				       &rail->fid_fabric, NULL);
	if (ret != 0) {
		return rail_failed(rail, "fabric", ret);
	}
	ret = fi_domain(rail->fid_fabric, rail->info, &rail->domain, NULL);
	if (ret != 0) {
		ret = rail_failed(rail, "domain", ret);
		fr_rail_close_fid(rail, &rail->fid_fabric->fid, "fabric");
	}
	return ret;
}

static void rail_close_domain(struct fr_rail *rail)
{
	fr_rail_close_fid(rail, &rail->domain->fid, "domain");
	fr_rail_close_fid(rail, &rail->fid_fabric->fid, "fabric");
}

static int rail_open_queues(struct fr_rail *rail, uint32_t cq_size)
{
	struct fi_av_attr av_attr = {
		.type = rail->info->domain_attr->av_type,
	};
	struct fi_cq_attr cq_attr = {
		.size = cq_size,
		.format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_NONE,
	};
	int ret;

	ret = fi_av_open(rail->domain, &av_attr, &rail->av, NULL);
	if (ret != 0) {
		return rail_failed(rail, "address vector", ret);
	}
	ret = fi_cq_open(rail->domain, &cq_attr, &rail->cq, NULL);
	if (ret != 0) {
		ret = rail_failed(rail, "completion queue", ret);
		fr_rail_close_fid(rail, &rail->av->fid, "address vector");
	}
	return ret;
}

static void rail_close_queues(struct fr_rail *rail)
{
	fr_rail_close_fid(rail, &rail->cq->fid, "completion queue");
	fr_rail_close_fid(rail, &rail->av->fid, "address vector");
}

static int ep_get_name(const struct fr_rail *rail, struct fid_ep *ep,
		       struct fr_name *name)
{
	size_t len = sizeof(name->bytes);
	int ret = fi_getname(&ep->fid, name->bytes, &len);

	if (ret != 0 || len == 0 || len > sizeof(name->bytes)) {
		return rail_failed(rail, "endpoint name",
				   ret != 0 ? ret : -FI_ETOOSMALL);
	}
	name->len = (uint16_t)len;
	return 0;
}

/* A kernel of the host program can wait for what we move, and a call of CUDA
 * for that kernel. Whether a provider that refuses is used for memory of a GPU
 * was decided when it was tried. */
static void rail_forbid_cuda(struct fr_rail *rail, struct fid_ep *ep)
{
	bool permitted = false;

	if ((rail->info->caps & FI_HMEM) != 0) {
		rail->cuda_option = fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
					      FR_FI_OPT_CUDA_API_PERMITTED,
					      &permitted, sizeof(permitted));
	}
}

/* Binds to both directions whatever the endpoint is for: some providers refuse
 * to enable one that could not complete something. */
static int rail_open_ep(struct fr_rail *rail, const char *what,
			struct fid_ep **out, struct fr_name *name)
{
	struct fid_ep *ep;
	int ret;

	ret = fi_endpoint(rail->domain, rail->info, &ep, NULL);
	if (ret != 0) {
		return rail_failed(rail, what, ret);
	}
	rail_forbid_cuda(rail, ep);
	/* In this order: net cannot close an endpoint without the first. */
	ret = fi_ep_bind(ep, &rail->av->fid, 0);
	if (ret == 0) {
		ret = fi_ep_bind(ep, &rail->cq->fid, FI_TRANSMIT | FI_RECV);
	}
	if (ret == 0) {
		ret = fi_enable(ep);
	}
	if (ret != 0) {
		ret = rail_failed(rail, what, ret);
		goto err_close_ep;
	}
	ret = ep_get_name(rail, ep, name);
	if (ret != 0) {
		goto err_close_ep;
	}
	*out = ep;
	return 0;

err_close_ep:
	fr_rail_close_fid(rail, &ep->fid, what);
	return ret;
}

/* The endpoint will be a file with a name of ours. */
static int rail_name_file(struct fr_rail *rail, uint64_t set_id)
{
	char path[FR_SHM_PATH_MAX], room[256];
	char *name;
	int ret = 0;

	while (ret == 0 && set_id == 0) {
		ret = fr_random(&set_id, sizeof(set_id));
	}
	if (ret != 0) {
		return ret;
	}
	fr_shm_path(set_id, (char)(FR_SHM_RAIL + rail->index), path);
	/* libfabric frees this text with free(). */
	name = strdup(strrchr(path, '/') + 1);
	if (name == NULL) {
		return -ENOMEM;
	}
	free(rail->info->src_addr);
	rail->info->src_addr = name;
	rail->info->src_addrlen = strlen(name) + 1;
	if (!fr_shm_has_room(1, room, sizeof(room))) {
		fr_error("rail %u on %s (%s): %s", rail->index, rail->nic->name,
			 rail->fabric->text, room);
		return -ENOSPC;
	}
	return 0;
}

static int rail_open_eps(struct fr_rail *rail)
{
	int ret;

	ret = rail_open_ep(rail, "control endpoint", &rail->ctrl,
			   &rail->name[FR_EP_CTRL]);
	if (ret != 0) {
		return ret;
	}
	if (!rail->fabric->quirks->split_ep) {
		rail->data = rail->ctrl;
		rail->name[FR_EP_DATA] = rail->name[FR_EP_CTRL];
		return 0;
	}
	ret = rail_open_ep(rail, "data endpoint", &rail->data,
			   &rail->name[FR_EP_DATA]);
	if (ret != 0) {
		fr_rail_close_fid(rail, &rail->ctrl->fid, "control endpoint");
	}
	return ret;
}

static void rail_close_eps(struct fr_rail *rail)
{
	if (rail->fenced) {
		return;
	}
	if (rail->shm != NULL) {
		fr_shm_ends(rail);
	}
	if (rail->data != rail->ctrl) {
		fr_rail_close_fid(rail, &rail->data->fid, "data endpoint");
	}
	fr_rail_close_fid(rail, &rail->ctrl->fid, "control endpoint");
}

static int rail_open_parts(struct fr_rail *rail, uint32_t cq_size)
{
	int ret;

	ret = rail_open_domain(rail);
	if (ret != 0) {
		return ret;
	}
	ret = rail_open_queues(rail, cq_size);
	if (ret != 0) {
		goto err_close_domain;
	}
	ret = rail_open_eps(rail);
	if (ret != 0) {
		goto err_close_queues;
	}
	ret = rail->fabric->quirks->named_files ? fr_shm_open(rail) : 0;
	if (ret != 0) {
		goto err_close_eps;
	}
	return 0;

err_close_eps:
	rail_close_eps(rail);
err_close_queues:
	rail_close_queues(rail);
err_close_domain:
	rail_close_domain(rail);
	return ret;
}

static int rail_open_fids(struct fr_rail *rail, uint32_t cq_size)
{
	struct fr_signals signals;
	int ret;

	fr_signals_save(&signals);
	ret = rail_open_parts(rail, cq_size);
	fr_signals_restore(&signals);
	return ret;
}

/* A traffic class is a wish: no connection fails for want of it. */
static int rail_open_classed(struct fr_rail *rail,
			     const struct fr_rail_attr *attr)
{
	int ret;

	if (!attr->has_tclass) {
		return rail_open_fids(rail, attr->cq_size);
	}
	rail->info->tx_attr->tclass = fi_tc_dscp_set(attr->tclass >> 2);
	rail->trying = true;
	ret = rail_open_fids(rail, attr->cq_size);
	rail->trying = false;
	if (ret == 0) {
		return 0;
	}
	if (!atomic_exchange(&rail->fabric->tclass_refused, true)) {
		fr_warn("rail %u on %s (%s): does not open with traffic class "
			"%u: %s; it goes on without",
			rail->index, rail->nic->name, rail->fabric->text,
			attr->tclass, strerror(-ret));
	}
	rail->info->tx_attr->tclass = FI_TC_UNSPEC;
	return rail_open_fids(rail, attr->cq_size);
}

static void rail_set_up(struct fr_rail *rail, const struct fr_rail_attr *attr)
{
	const struct fr_quirks *quirks = attr->fabric->quirks;

	rail->fabric = attr->fabric;
	rail->nic = &attr->fabric->nic[attr->nic];
	rail->index = attr->index;
	rail->ops = attr->ops;
	rail->owner = attr->owner;
	rail->cq_read_cnt = attr->cq_read_cnt;
	rail->trial = attr->trial;
	rail->owner_warns = attr->owner_warns;
	rail->tx_cap = quirks->tx_cap != 0 ? quirks->tx_cap : UINT32_MAX;
	rail->empty_is_local = quirks->empty_is_local;
	rail->enoent_is_eagain = quirks->enoent_is_eagain;
	rail->ep_delivers =
		!attr->local_completion && !quirks->delivery_per_call;
}

int fr_rail_open(const struct fr_rail_attr *attr, struct fr_rail **out)
{
	const struct fr_fi *fi = attr->fabric->fi;
	struct fr_rail *rail;
	int ret = -ENOMEM;

	assert(attr->nic < attr->fabric->nic_cnt && attr->cq_read_cnt > 0);
	rail = fr_calloc(1, sizeof(*rail));
	if (rail == NULL) {
		return -ENOMEM;
	}
	rail_set_up(rail, attr);
	rail->entries = fr_calloc(rail->cq_read_cnt, sizeof(*rail->entries));
	if (rail->entries == NULL) {
		goto err_free_rail;
	}
	rail->info = fi->dupinfo(fr_nic_info(rail->nic));
	if (rail->info == NULL) {
		goto err_free_entries;
	}
	rail->info->tx_attr->op_flags =
		rail->ep_delivers ? FI_DELIVERY_COMPLETE : 0;
	ret = attr->fabric->quirks->named_files
		      ? rail_name_file(rail, attr->set_id)
		      : 0;
	if (ret == 0) {
		ret = rail_open_classed(rail, attr);
	}
	if (ret != 0) {
		goto err_free_info;
	}
	*out = rail;
	return 0;

err_free_info:
	fi->freeinfo(rail->info);
err_free_entries:
	fr_free(rail->entries);
err_free_rail:
	fr_free(rail);
	return ret;
}

void fr_rail_close(struct fr_rail *rail)
{
	if (rail == NULL) {
		return;
	}
	assert(rail->mr_cnt == 0);
	assert(!rail->polling);
	rail_close_eps(rail);
	fr_shm_close(rail);
	rail_close_queues(rail);
	rail_close_domain(rail);
	rail->fabric->fi->freeinfo(rail->info);
	fr_free(rail->entries);
	fr_free(rail);
}

int fr_rail_renew_data(struct fr_rail *rail)
{
	struct fr_name name;
	struct fid_ep *ep;
	int ret;

	assert(!rail->polling && !rail->fenced && rail->data != rail->ctrl);
	/* First, so that it gets another port. */
	ret = rail_open_ep(rail, "next data endpoint", &ep, &name);
	if (ret != 0) {
		return ret;
	}
	fr_rail_close_fid(rail, &rail->data->fid, "data endpoint");
	rail->data = ep;
	rail->name[FR_EP_DATA] = name;
	return fr_rail_poll_out(rail);
}

void fr_rail_fence(struct fr_rail *rail)
{
	if (rail->shm != NULL) {
		fr_shm_revoke(rail);
	}
	rail_close_eps(rail);
	rail->fenced = true;
}

/* Keeps abandoned rails reachable: they are no leaks but the price of a fence
 * where an endpoint cannot be closed. */
static _Atomic(struct fr_rail *) rail_abandoned;

void fr_rail_abandon(struct fr_rail *rail)
{
	struct fr_rail *head = rail_abandoned;

	do {
		rail->abandoned_next = head;
	} while (!atomic_compare_exchange_weak(&rail_abandoned, &head, rail));
}

unsigned fr_rail_index(const struct fr_rail *rail)
{
	return rail->index;
}

void *fr_rail_owner(const struct fr_rail *rail)
{
	return rail->owner;
}

const struct fr_nic *fr_rail_nic(const struct fr_rail *rail)
{
	return rail->nic;
}

const struct fr_quirks *fr_rail_quirks(const struct fr_rail *rail)
{
	return rail->fabric->quirks;
}

struct fr_stats *fr_rail_stats(struct fr_rail *rail)
{
	return &rail->stats;
}

const struct fr_name *fr_rail_name(const struct fr_rail *rail,
				   enum fr_rail_ep ep)
{
	return &rail->name[ep];
}

const char *fr_rail_error_text(const struct fr_rail *rail)
{
	return rail->error_text;
}
