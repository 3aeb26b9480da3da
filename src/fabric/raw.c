#include "fabric/raw.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/util.h"
#include "fabric/discover.h"
#include "fabric/nic.h"
#include "fabric/raw_priv.h"

static int failed(const struct raw_rail *rail, const char *what, ssize_t ret)
{
	fr_error("raw rail on %s: %s: %s", rail->info->domain_attr->name, what,
		 fr_fi_text(ret));
	return fr_fi_errno(ret);
}

static void close_fid(struct fid *fid)
{
	if (fid != NULL && fi_close(fid) != 0) {
		fr_warn("raw rail: an object cannot be closed");
	}
}

static void rail_close(struct fr_raw *raw, struct raw_rail *rail)
{
	close_fid(rail->mr != NULL ? &rail->mr->fid : NULL);
	close_fid(rail->ep != NULL ? &rail->ep->fid : NULL);
	close_fid(rail->cq != NULL ? &rail->cq->fid : NULL);
	close_fid(rail->av != NULL ? &rail->av->fid : NULL);
	close_fid(rail->domain != NULL ? &rail->domain->fid : NULL);
	close_fid(rail->fabric != NULL ? &rail->fabric->fid : NULL);
	if (rail->info != NULL) {
		raw->fi->freeinfo(rail->info);
	}
	memset(rail, 0, sizeof(*rail));
}

static int rail_open_ep(struct fr_raw *raw, struct raw_rail *rail)
{
	struct fi_av_attr av = {.type = rail->info->domain_attr->av_type};
	struct fi_cq_attr cq = {.size = 4096,
				.format = FI_CQ_FORMAT_DATA,
				.wait_obj = FI_WAIT_NONE};
	int ret;

	ret = raw->fi->fabric(rail->info->fabric_attr, &rail->fabric, NULL);
	if (ret == 0) {
		ret = fi_domain(rail->fabric, rail->info, &rail->domain, NULL);
	}
	if (ret == 0) {
		ret = fi_av_open(rail->domain, &av, &rail->av, NULL);
	}
	if (ret == 0) {
		ret = fi_cq_open(rail->domain, &cq, &rail->cq, NULL);
	}
	if (ret == 0) {
		ret = fi_endpoint(rail->domain, rail->info, &rail->ep, NULL);
	}
	if (ret == 0) {
		ret = fi_ep_bind(rail->ep, &rail->cq->fid,
				 FI_TRANSMIT | FI_RECV);
	}
	if (ret == 0) {
		ret = fi_ep_bind(rail->ep, &rail->av->fid, 0);
	}
	if (ret == 0) {
		ret = fi_enable(rail->ep);
	}
	return ret;
}

/* A key that no foreign process is likely to have: a provider may reconnect to
 * whoever owns the port by now. */
static int rail_register(struct fr_raw *raw, struct raw_rail *rail)
{
	uint64_t access = FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;
	uint32_t key;
	int ret;

	ret = fr_random(&key, sizeof(key));
	if (ret == 0) {
		ret = fi_mr_reg(rail->domain, raw->mem, 2 * raw->half_bytes,
				access, 0, key, 0, &rail->mr, NULL);
	}
	if (ret == 0 &&
	    (rail->info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
		ret = fi_mr_bind(rail->mr, &rail->ep->fid, 0);
		if (ret == 0) {
			ret = fi_mr_enable(rail->mr);
		}
	}
	if (ret == 0) {
		rail->desc = fi_mr_desc(rail->mr);
	}
	return ret;
}

/* On failure the caller closes what is there. */
static int rail_open(struct fr_raw *raw, unsigned i)
{
	const struct fr_nic *nic =
		fr_fabric_nic(raw->fabric, i % fr_fabric_nic_cnt(raw->fabric));
	const struct fr_quirks *quirks = fr_fabric_quirks(raw->fabric);
	struct raw_rail *rail = &raw->rail[i];
	int ret;

	rail->info = raw->fi->dupinfo(fr_nic_info(nic));
	if (rail->info == NULL) {
		return -ENOMEM;
	}
	rail->info->tx_attr->op_flags =
		raw->deliver && !quirks->delivery_per_call
			? FI_DELIVERY_COMPLETE
			: 0;
	ret = rail_open_ep(raw, rail);
	if (ret == 0) {
		ret = rail_register(raw, rail);
	}
	return ret == 0 ? 0 : failed(rail, "cannot be opened", ret);
}

int fr_raw_open(struct fr_fabric *fabric, unsigned rails, size_t max_bytes,
		unsigned window, bool deliver, struct fr_raw **out)
{
	struct fr_raw *raw;
	void *mem;
	int ret;

	assert(rails >= 1 && rails <= FR_MAX_RAILS && window >= 1);
	raw = fr_calloc(1, sizeof(*raw));
	if (raw == NULL) {
		return -ENOMEM;
	}
	raw->fabric = fabric;
	raw->fi = fabric->fi;
	raw->rail_cnt = rails;
	raw->window = window;
	raw->deliver = deliver;
	raw->rx.kind = RAW_RX;
	raw->stride = (size_t)fr_round_up(FR_MAX(max_bytes, 64), 4096);
	raw->half_bytes = raw->stride * window;
	raw->tx = fr_calloc(window, sizeof(*raw->tx));
	if (raw->tx == NULL) {
		ret = -ENOMEM;
		goto err_free_raw;
	}
	mem = mmap(NULL, 2 * raw->half_bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED) {
		ret = -ENOMEM;
		goto err_free_tx;
	}
	raw->mem = mem;
	memset(raw->mem, 0x5a, 2 * raw->half_bytes); /* no faults later */
	for (unsigned i = 0; i < rails; i++) {
		ret = rail_open(raw, i);
		if (ret != 0) {
			goto err_close_rails;
		}
	}
	*out = raw;
	return 0;

err_close_rails:
	for (unsigned i = 0; i < rails; i++) {
		rail_close(raw, &raw->rail[i]);
	}
	(void)munmap(raw->mem, 2 * raw->half_bytes);
err_free_tx:
	fr_free(raw->tx);
err_free_raw:
	fr_free(raw);
	return ret;
}

void fr_raw_close(struct fr_raw *raw)
{
	if (raw == NULL) {
		return;
	}
	for (unsigned i = 0; i < raw->rail_cnt; i++) {
		rail_close(raw, &raw->rail[i]);
	}
	(void)munmap(raw->mem, 2 * raw->half_bytes);
	fr_free(raw->tx);
	fr_free(raw);
}

/* The blob: rails; for each address, key, length of the name, name. All in the
 * order of this machine: both sides are the same program. */
struct blob_rail {
	uint64_t addr, key;
	uint32_t name_bytes;
	char name[FR_NAME_MAX];
};

static int describe(struct fr_raw *raw, struct raw_rail *rail,
		    struct blob_rail *blob)
{
	uint64_t mode = (uint64_t)rail->info->domain_attr->mr_mode;
	size_t len = sizeof(blob->name);
	int ret;

	memset(blob, 0, sizeof(*blob));
	ret = fi_getname(&rail->ep->fid, blob->name, &len);
	if (ret != 0) {
		return failed(rail, "has no name", ret);
	}
	blob->name_bytes = (uint32_t)len;
	blob->key = fi_mr_key(rail->mr);
	blob->addr = raw->half_bytes; /* of the receive half */
	if ((mode & FI_MR_VIRT_ADDR) != 0) {
		blob->addr += (uint64_t)(uintptr_t)raw->mem;
	}
	return 0;
}

int fr_raw_name(struct fr_raw *raw, void *buf, size_t *bytes)
{
	struct blob_rail blob;
	char *at = buf;
	int ret;

	_Static_assert(FR_MAX_RAILS * sizeof(struct blob_rail) <=
			       FR_RAW_NAME_BYTES,
		       "the names of all rails do not fit");
	for (unsigned i = 0; i < raw->rail_cnt; i++) {
		ret = describe(raw, &raw->rail[i], &blob);
		if (ret != 0) {
			return ret;
		}
		memcpy(at + i * sizeof(blob), &blob, sizeof(blob));
	}
	*bytes = raw->rail_cnt * sizeof(blob);
	return 0;
}

static int enter_peer(struct raw_rail *rail, const struct blob_rail *blob)
{
	int ret;

	rail->remote_addr = blob->addr;
	rail->remote_key = blob->key;
	ret = fi_av_insert(rail->av, blob->name, 1, &rail->peer, 0, NULL);
	return ret == 1 ? 0
			: failed(rail, "does not take the peer's name",
				 ret < 0 ? ret : -FI_EINVAL);
}

/* A message each way on every rail: what follows finds them connected. */
static int greet(struct fr_raw *raw)
{
	uint64_t since_ns = fr_now_ns();
	int ret = 0;

	raw->rx_done = raw->tx_done = 0;
	for (unsigned i = 0; i < raw->rail_cnt && ret == 0; i++) {
		ret = fr_raw_recv(raw, i, fr_raw_rx_mem(raw, 0), 8);
	}
	for (unsigned i = 0; i < raw->rail_cnt && ret == 0; i++) {
		raw->tx[0].left++;
		ret = fr_raw_send(raw, i, fr_raw_tx_mem(raw, 0), 8,
				  &raw->tx[0]);
	}
	while (ret == 0 &&
	       (raw->tx[0].left > 0 || raw->rx_done < raw->rail_cnt)) {
		ret = fr_raw_poll(raw);
		if (ret >= 0) {
			ret = fr_raw_idle(ret, &since_ns);
		}
	}
	return ret;
}

int fr_raw_connect_wait(struct fr_raw *raw, const void *peer, size_t bytes)
{
	struct blob_rail blob;
	int ret;

	if (bytes != raw->rail_cnt * sizeof(blob)) {
		fr_error("raw: the peer has another number of rails");
		return -EBADMSG;
	}
	for (unsigned i = 0; i < raw->rail_cnt; i++) {
		memcpy(&blob, (const char *)peer + i * sizeof(blob),
		       sizeof(blob));
		ret = enter_peer(&raw->rail[i], &blob);
		if (ret != 0) {
			return ret;
		}
	}
	return greet(raw);
}
