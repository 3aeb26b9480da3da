#include "fabric/mr_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/util.h"
#include "fabric/dmabuf.h"

#define MR_IDS (1u << 18)
#define MR_KEY_TRIES 4
#define MR_AGAIN_NS (10 * FR_NS_PER_S)

int fr_mr_keys_init(struct fr_mr_keys *keys, struct fr_rail *const *rails,
		    unsigned cnt)
{
	const struct fi_domain_attr *attr = rails[0]->info->domain_attr;
	unsigned key_bits = (unsigned)FR_MIN(attr->mr_key_size, 8u) * 8;
	bool ours = (attr->mr_mode & FI_MR_PROV_KEY) == 0;
	int ret;

	keys->id_bits = key_bits / 2;
	keys->key_mask = key_bits < 64 ? (1ull << key_bits) - 1 : UINT64_MAX;
	ret = fr_random(keys->salt, cnt * sizeof(keys->salt[0]));
	if (ret != 0) {
		fr_error_limited("no random bits for memory keys: %s",
				 strerror(-ret));
		return ret;
	}
	return fr_idpool_create(
		ours ? (uint32_t)FR_MIN(1ull << keys->id_bits, MR_IDS) : 0,
		&keys->ids);
}

void fr_mr_keys_fini(struct fr_mr_keys *keys)
{
	fr_idpool_destroy(keys->ids);
}

/* Not to be guessed by a process that the provider reconnects to by mistake. */
static uint64_t mr_make_key(const struct fr_mr_keys *keys, unsigned rail,
			    int64_t id)
{
	if (id < 0) {
		return 0;
	}
	return ((keys->salt[rail] << keys->id_bits) | (uint64_t)id) &
	       keys->key_mask;
}

static uint64_t mr_access_flags(unsigned access)
{
	uint64_t flags = FI_SEND | FI_RECV | FI_WRITE;

	if ((access & FR_MR_REMOTE_WRITE) != 0) {
		flags |= FI_REMOTE_WRITE;
	}
	if ((access & FR_MR_READ) != 0) {
		flags |= FI_READ;
	}
	if ((access & FR_MR_REMOTE_READ) != 0) {
		flags |= FI_REMOTE_READ;
	}
	return flags;
}

/* One attempt. One pointer names the memory either way. */
static int mr_reg_try(struct fr_rail *rail, const struct fr_mr *mr,
		      uint64_t key, struct fid_mr **fid)
{
	struct iovec iov = {(void *)mr->base, mr->bytes};
	struct fr_fi_mr_dmabuf dmabuf = {
		.fd = mr->dmabuf.fd,
		.offset = mr->dmabuf.offset,
		.len = mr->bytes,
		.base_addr = (void *)(mr->base - mr->dmabuf.offset),
	};
	struct fr_fi_mr_attr room = {
		.attr =
			{
				.mr_iov = &iov,
				.iov_count = 1,
				.access = mr_access_flags(mr->access),
				.requested_key = key,
				.iface = FI_HMEM_SYSTEM,
			},
	};
	uint64_t flags = 0;

	if (mr->kind != FR_MR_HOST) {
		room.attr.iface = FI_HMEM_CUDA;
		room.attr.device.cuda = mr->gpu.device;
	}
	if (mr->kind == FR_MR_DMABUF) {
		room.attr.mr_iov = (const void *)&dmabuf;
		flags = FR_FI_MR_DMABUF;
	}
	return fi_mr_regattr(rail->domain, &room.attr, flags, fid);
}

/* Some providers are short of something for a moment. Registering is no call of
 * the data path: it may take its time. */
static int mr_reg_wait(struct fr_rail *rail, const struct fr_mr *mr,
		       uint64_t key, struct fid_mr **fid)
{
	const struct timespec nap = {.tv_nsec = 10000};
	uint64_t end = fr_now_ns() + MR_AGAIN_NS;
	int ret;

	while ((ret = mr_reg_try(rail, mr, key, fid)) == -FI_EAGAIN) {
		if (fr_now_ns() > end) {
			return -FI_EBUSY;
		}
		nanosleep(&nap, NULL);
	}
	return ret;
}

/* A key that is taken says that another user of the domain chose our bits:
 * others are drawn. The registrations that exist keep theirs. */
static int mr_reg_keyed(struct fr_mr_keys *keys, struct fr_rail *rail,
			unsigned idx, const struct fr_mr *mr,
			struct fid_mr **fid)
{
	int ret = -FI_ENOKEY;

	for (int i = 0; i < MR_KEY_TRIES && ret == -FI_ENOKEY; i++) {
		if (i > 0 &&
		    fr_random(&keys->salt[idx], sizeof(keys->salt[idx])) != 0) {
			break;
		}
		ret = mr_reg_wait(rail, mr, mr_make_key(keys, idx, mr->id),
				  fid);
		if (mr->id < 0) {
			break;
		}
	}
	return ret;
}

/* With FI_MR_ENDPOINT a registration serves one endpoint: D for a target. */
static int mr_enable(struct fr_rail *rail, const struct fr_mr *mr,
		     struct fid_mr *fid)
{
	struct fid_ep *ep = (mr->access & FR_MR_REMOTE_WRITE) != 0 ? rail->data
								   : rail->ctrl;
	int ret;

	if ((rail->info->domain_attr->mr_mode & FI_MR_ENDPOINT) == 0) {
		return 0;
	}
	ret = fi_mr_bind(fid, &ep->fid, 0);
	return ret != 0 ? ret : fi_mr_enable(fid);
}

static const char *mr_kind_text(enum fr_mr_kind kind)
{
	static const char *const text[] = {
		[FR_MR_HOST] = "",
		[FR_MR_GPU] = ", memory of a GPU",
		[FR_MR_DMABUF] = ", memory of a GPU as a dma-buf",
	};

	return text[kind];
}

static int mr_register_on(struct fr_mr_keys *keys, struct fr_rail *rail,
			  unsigned idx, struct fr_mr *mr)
{
	struct fid_mr *fid;
	int ret;

	ret = mr_reg_keyed(keys, rail, idx, mr, &fid);
	if (ret == 0) {
		ret = mr_enable(rail, mr, fid);
		if (ret != 0) {
			fr_rail_close_fid(rail, &fid->fid, "registration");
		}
	}
	if (ret != 0) {
		fr_error_limited(
			"rail %u on %s (%s): cannot register %zu bytes at "
			"%#lx%s: %s",
			rail->index, rail->nic->name, rail->fabric->text,
			mr->bytes, (unsigned long)mr->base,
			mr_kind_text(mr->kind), fr_fi_text(ret));
		return fr_fi_errno(ret);
	}
	mr->rail[idx].fid = fid;
	mr->rail[idx].desc = fi_mr_desc(fid);
	mr->rail[idx].key = fi_mr_key(fid);
	rail->mr_cnt++;
	return 0;
}

static void mr_unregister_from(struct fr_rail *const *rails, unsigned cnt,
			       struct fr_mr *mr)
{
	for (unsigned i = 0; i < cnt; i++) {
		fr_rail_close_fid(rails[i], &mr->rail[i].fid->fid,
				  "registration");
		rails[i]->mr_cnt--;
	}
}

int fr_mr_register(struct fr_mr_keys *keys, struct fr_rail *const *rails,
		   unsigned cnt, struct fr_mr *mr)
{
	uint64_t mr_mode = rails[0]->info->domain_attr->mr_mode;
	int ret = 0;

	mr->virt_addr = (mr_mode & FI_MR_VIRT_ADDR) != 0;
	mr->id = fr_idpool_get(keys->ids);
	if (mr->id < 0 && (mr_mode & FI_MR_PROV_KEY) == 0) {
		fr_error_limited(
			"out of memory keys: %u registrations are open",
			fr_idpool_used(keys->ids));
		return -ENOMEM;
	}
	for (unsigned i = 0; i < cnt; i++) {
		ret = mr_register_on(keys, rails[i], i, mr);
		if (ret != 0) {
			mr_unregister_from(rails, i, mr);
			fr_idpool_put(keys->ids, mr->id);
			break;
		}
	}
	return ret;
}

void fr_mr_unregister(struct fr_mr_keys *keys, struct fr_rail *const *rails,
		      unsigned cnt, struct fr_mr *mr)
{
	mr_unregister_from(rails, cnt, mr);
	fr_idpool_put(keys->ids, mr->id);
}

int fr_mr_try(struct fr_rail *rail, const struct fr_mr *mr)
{
	struct fid_mr *fid;
	int ret = mr_reg_try(rail, mr, 1, &fid);

	if (ret == 0) {
		ret = mr_enable(rail, mr, fid);
		fr_rail_close_fid(rail, &fid->fid, "registration");
	}
	return ret;
}

void *fr_mr_desc(const struct fr_mr *mr, unsigned rail)
{
	return mr->rail[rail].desc;
}

uint64_t fr_mr_key(const struct fr_mr *mr, unsigned rail)
{
	return mr->rail[rail].key;
}

uint64_t fr_mr_remote_addr(const struct fr_mr *mr, const void *ptr)
{
	return mr->virt_addr ? (uintptr_t)ptr : (uintptr_t)ptr - mr->base;
}
