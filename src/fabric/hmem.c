#include "fabric/hmem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/util.h"
#include "fabric/cuda.h"
#include "fabric/dmabuf.h"
#include "fabric/mr_priv.h"
#include "fabric/nic.h"
#include "fabric/rail_priv.h"

/* A read of our own shows the GPU what a NIC wrote before. */
#define HMEM_CAPS (FI_HMEM | FI_READ | FI_REMOTE_READ)
/* What a driver hands out whole, aligned to more than any page. */
#define TRIAL_BYTES (2u << 20)

#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),              \
		  FI_VERSION(1, 18))
_Static_assert(FR_FI_OPT_CUDA_API_PERMITTED == FI_OPT_CUDA_API_PERMITTED,
	       "libfabric's option");
#endif

static void hmem_refuse(struct fr_fabric *fabric, const char *fmt, ...)
	FR_PRINTF(2, 3);

/* The first reason is kept: later ones follow from it, or are alike. */
static void hmem_refuse(struct fr_fabric *fabric, const char *fmt, ...)
{
	va_list args;

	if (fabric->gpu_why[0] != '\0') {
		return;
	}
	va_start(args, fmt);
	vsnprintf(fabric->gpu_why, sizeof(fabric->gpu_why), fmt, args);
	va_end(args);
}

/* The same interface with HMEM_CAPS; NULL: the provider does not have it. */
static const struct fi_info *hmem_info_for(const struct fr_fabric *fabric,
					   const struct fr_nic *nic,
					   const struct fi_info *list)
{
	uint8_t addr[16];

	for (; list != NULL; list = list->next) {
		bool same =
			fr_info_addr(list, addr)
				? memcmp(addr, nic->addr, sizeof(addr)) == 0
				: strcmp(list->domain_attr->name,
					 fr_nic_info(nic)->domain_attr->name) ==
					  0;

		if (same && (list->caps & HMEM_CAPS) == HMEM_CAPS &&
		    fr_discover_refusal(list) == NULL &&
		    strcmp(list->fabric_attr->prov_name,
			   fabric->quirks->name) == 0) {
			return list;
		}
	}
	return NULL;
}

static void infos_free(const struct fr_fabric *fabric, struct fi_info **infos)
{
	for (unsigned i = 0; i < fabric->nic_cnt; i++) {
		if (infos[i] != NULL) {
			fabric->fi->freeinfo(infos[i]);
		}
	}
	fr_free(infos);
}

/* One copy a NIC. Return: 0; -ENODATA: not for all; -ENOMEM. */
static int hmem_pick(struct fr_fabric *fabric, const struct fi_info *list,
		     struct fi_info **infos)
{
	for (unsigned i = 0; i < fabric->nic_cnt; i++) {
		const struct fi_info *info =
			hmem_info_for(fabric, &fabric->nic[i], list);

		if (info == NULL) {
			hmem_refuse(fabric,
				    "provider %s does not offer it on %s",
				    fabric->quirks->name, fabric->nic[i].name);
			return -ENODATA;
		}
		infos[i] = fabric->fi->dupinfo(info);
		if (infos[i] == NULL) {
			return -ENOMEM;
		}
	}
	return 0;
}

static int hmem_getinfo(struct fr_fabric *fabric, const struct fr_conf *conf,
			struct fi_info **list)
{
	struct fi_info *hints =
		fr_discover_hints(fabric->fi, conf, fabric->quirks);
	int ret;

	if (hints == NULL) {
		return -ENOMEM;
	}
	hints->caps |= HMEM_CAPS;
	hints->domain_attr->mr_mode |= FI_MR_HMEM;
	ret = fr_fi_getinfo(fabric->fi, hints, list);
	fabric->fi->freeinfo(hints);
	if (ret == 0 || ret == -FI_ENOMEM) {
		return ret;
	}
	hmem_refuse(fabric, "provider %s does not offer it (%s)",
		    fabric->quirks->name, fr_fi_text(ret));
	return -ENODATA;
}

/* *@out: one info a NIC, freed by infos_free(). Return: as hmem_pick(). */
static int hmem_ask(struct fr_fabric *fabric, const struct fr_conf *conf,
		    struct fi_info ***out)
{
	struct fi_info **infos, *list;
	int ret;

	infos = fr_calloc(fabric->nic_cnt, sizeof(struct fi_info *));
	if (infos == NULL) {
		return -ENOMEM;
	}
	ret = hmem_getinfo(fabric, conf, &list);
	if (ret == 0) {
		ret = hmem_pick(fabric, list, infos);
		fabric->fi->freeinfo(list);
	}
	if (ret != 0) {
		infos_free(fabric, infos);
		return ret;
	}
	*out = infos;
	return 0;
}

/* The NICs have @infos, and @infos what they had. */
static void hmem_swap(struct fr_fabric *fabric, struct fi_info **infos)
{
	for (unsigned i = 0; i < fabric->nic_cnt; i++) {
		struct fi_info *had = fr_nic_info(&fabric->nic[i]);

		fabric->nic[i].info = infos[i];
		infos[i] = had;
	}
}

/*
 * Why @rail cannot be trusted with memory of a GPU, or NULL. Its answer also
 * tells whether libfabric has CUDA at all: some providers offer FI_HMEM
 * without.
 */
static const char *option_refusal(const struct fr_rail *rail)
{
	switch (rail->cuda_option) {
	case 0:
		return NULL;
	case -FI_EINVAL:
		return "libfabric was built, or runs, without CUDA";
	case -FI_EOPNOTSUPP:
		return rail->fabric->quirks->rma_is_direct
			       ? NULL
			       : "the provider copies by calls of CUDA";
	default:
		return rail->fabric->quirks->rma_is_direct
			       ? NULL
			       : "the provider cannot be kept from calls of "
				 "CUDA";
	}
}

/* What is tried on every NIC. */
struct hmem_trial {
	void *mem; /* of the GPU that is current */
	struct fr_cuda_ptr gpu;
	int fd;		 /* the same as a dma-buf, or -1 */
	const char *why; /* there is none */
};

static int trial_register(struct fr_rail *rail, const struct hmem_trial *trial,
			  enum fr_mr_kind kind)
{
	struct fr_mr mr = {
		.base = (uintptr_t)trial->mem,
		.bytes = TRIAL_BYTES,
		.access = FR_MR_REMOTE_WRITE | FR_MR_REMOTE_READ,
		.kind = kind,
		.gpu = trial->gpu,
		.dmabuf = {.fd = trial->fd},
	};

	return fr_mr_try(rail, &mr);
}

static void trial_rail(struct fr_fabric *fabric, struct fr_nic *nic,
		       struct fr_rail *rail, const struct hmem_trial *trial)
{
	const char *why = option_refusal(rail);
	int ret;

	if (why != NULL) {
		hmem_refuse(fabric, "%s on %s: %s", fabric->quirks->name,
			    nic->name, why);
		return;
	}
	ret = trial_register(rail, trial, FR_MR_GPU);
	nic->gpu = ret == 0;
	if (ret != 0) {
		hmem_refuse(fabric,
			    "%s cannot register it by address: %s; is "
			    "nvidia-peermem loaded?",
			    nic->name, fr_fi_text(ret));
	}
	if (trial->fd < 0) {
		hmem_refuse(fabric, "no dma-buf: %s", trial->why);
		return;
	}
	ret = trial_register(rail, trial, FR_MR_DMABUF);
	nic->gpu_dmabuf = ret == 0;
	if (ret != 0) {
		hmem_refuse(fabric, "%s cannot register a dma-buf: %s",
			    nic->name, fr_fi_text(ret));
	}
}

static void trial_write(void *owner, struct fr_rail *rail, uint64_t imm,
			size_t bytes)
{
	(void)owner;
	(void)rail;
	(void)imm;
	(void)bytes;
}

static void trial_error(void *owner, struct fr_rail *rail, int err)
{
	(void)owner;
	(void)rail;
	(void)err;
}

/* Opened as every set opens its rails. Return: 0; -ENOMEM. */
static int trial_nic(struct fr_fabric *fabric, unsigned i,
		     const struct hmem_trial *trial)
{
	static const struct fr_rail_ops ops = {
		.remote_write = trial_write,
		.remote_error = trial_error,
	};
	struct fr_rail_attr attr = {
		.fabric = fabric,
		.nic = i,
		.cq_size = 16,
		.cq_read_cnt = 1,
		.trial = true,
		.ops = &ops,
	};
	struct fr_rail *rail;
	int ret = fr_rail_open(&attr, &rail);

	if (ret == -ENOMEM) {
		return ret;
	}
	if (ret != 0) {
		hmem_refuse(fabric, "%s cannot be opened with it: %s",
			    fabric->nic[i].name, strerror(-ret));
		return 0;
	}
	trial_rail(fabric, &fabric->nic[i], rail, trial);
	fr_rail_close(rail);
	return 0;
}

static void trial_share(struct hmem_trial *trial,
			const struct fr_fabric *fabric,
			const struct fr_conf *conf)
{
	trial->why = fr_dmabuf_refusal(conf, fabric->fi->version());
	if (trial->why == NULL && !fr_cuda_has_dmabuf(trial->gpu.device)) {
		trial->why = "the CUDA driver shares no memory like that";
	}
	if (trial->why == NULL &&
	    fr_cuda_export(trial->mem, TRIAL_BYTES, &trial->fd) != 0) {
		trial->why = "the CUDA driver did not share memory like that";
	}
}

/* Return: 0, also when nothing could be tried; -ENOMEM. */
static int hmem_try(struct fr_fabric *fabric, const struct fr_conf *conf)
{
	struct hmem_trial trial = {.fd = -1};
	int ret = fr_cuda_alloc(TRIAL_BYTES, &trial.mem);

	if (ret != 0) {
		hmem_refuse(fabric, "not tried: %s",
			    ret == -ENODEV ? "the thread that called init has "
					     "no CUDA context"
					   : "no GPU memory is free");
		return 0;
	}
	ret = fr_cuda_find(trial.mem, TRIAL_BYTES, &trial.gpu);
	if (ret != 0) {
		hmem_refuse(fabric, "not tried: the CUDA driver does not know "
				    "its own memory");
		ret = 0;
		goto free_mem;
	}
	trial_share(&trial, fabric, conf);
	for (unsigned i = 0; i < fabric->nic_cnt && ret == 0; i++) {
		ret = trial_nic(fabric, i, &trial);
	}
	if (trial.fd >= 0) {
		close(trial.fd);
	}
free_mem:
	fr_cuda_free(trial.mem);
	return ret;
}

static bool hmem_any(const struct fr_fabric *fabric)
{
	for (unsigned i = 0; i < fabric->nic_cnt; i++) {
		if (fabric->nic[i].gpu || fabric->nic[i].gpu_dmabuf) {
			return true;
		}
	}
	return false;
}

static void hmem_report(const struct fr_fabric *fabric, bool any)
{
	if (!any) {
		fr_info("GPU memory is not used: %s", fabric->gpu_why);
		return;
	}
	for (unsigned i = 0; i < fabric->nic_cnt; i++) {
		const struct fr_nic *nic = &fabric->nic[i];

		fr_info("GPU memory: %s takes it %s", nic->name,
			nic->gpu ? nic->gpu_dmabuf ? "by address and as dma-buf"
						   : "by address"
			: nic->gpu_dmabuf ? "as dma-buf"
					  : "not at all");
	}
	if (fabric->gpu_why[0] != '\0') {
		fr_info("GPU memory: %s", fabric->gpu_why);
	}
}

int fr_hmem_discover(struct fr_fabric *fabric, const struct fr_conf *conf)
{
	struct fi_info **infos = NULL;
	const char *why;
	int ret = fr_cuda_open(&why);

	if (ret != 0) {
		hmem_refuse(fabric, "%s", why);
	} else {
		ret = hmem_ask(fabric, conf, &infos);
	}
	if (ret == 0) {
		hmem_swap(fabric, infos);
		ret = hmem_try(fabric, conf);
		if (ret != 0 || !hmem_any(fabric)) {
			hmem_swap(fabric, infos);
		}
		infos_free(fabric, infos);
	}
	if (ret == -ENOMEM) {
		return ret;
	}
	hmem_report(fabric, hmem_any(fabric));
	return 0;
}
