#include "tools/flow.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/log.h"

int fr_flow_init(struct fr_flow *f, struct fr_conn *conn, bool ll,
		 size_t slice_bytes, uint64_t total)
{
	memset(f, 0, sizeof(*f));
	f->conn = conn;
	f->ll = ll;
	f->slot_bytes = ll ? FR_LL_STEP_BYTES : slice_bytes;
	f->slots = ll ? FR_STEPS : (unsigned)(FR_STAGING_BYTES / slice_bytes);
	f->total = total;
	if (ll) {
		f->scratch = fr_malloc(FR_LL_SLOT_DATA);
		if (f->scratch == NULL) {
			return -ENOMEM;
		}
	}
	for (unsigned i = 0; i < f->slots; i++) { /* what a plugin may find */
		f->slot[i].request = (void *)(uintptr_t)(0x5bad0 + 16 * i);
	}
	return 0;
}

void fr_flow_fini(struct fr_flow *f)
{
	if (f->ll) {
		f->conn->ll_step += f->filled;
	}
	fr_free(f->scratch);
	f->scratch = NULL;
}

static unsigned index_of(const struct fr_flow *f, uint64_t message)
{
	return (unsigned)(message % f->slots);
}

static int region_of(const struct fr_flow *f)
{
	return f->ll ? FR_REGION_LL : FR_REGION_SIMPLE;
}

static char *memory_of(const struct fr_flow *f, uint64_t message)
{
	return f->conn->mem[region_of(f)] +
	       index_of(f, message) * f->slot_bytes;
}

/* Flags differ from what any earlier message left in the slot. */
static uint32_t flag_of(const struct fr_flow *f, uint64_t message)
{
	return (uint32_t)(f->conn->ll_step + message + 1);
}

static size_t ll_words(size_t bytes)
{
	return (bytes + 3) / 4;
}

static void ll_pack(const struct fr_flow *f, uint64_t message, size_t bytes)
{
	uint64_t *to = (uint64_t *)(void *)memory_of(f, message);
	uint64_t flag = (uint64_t)flag_of(f, message) << 32;
	size_t words = ll_words(bytes);
	uint32_t data;

	memset(f->scratch + bytes, 0, words * 4 - bytes);
	for (size_t i = 0; i < words; i++) {
		memcpy(&data, f->scratch + 4 * i, 4);
		to[i] = flag | data;
	}
}

/* False: not all words are here yet. */
static bool ll_unpack(const struct fr_flow *f, uint64_t message, size_t bytes)
{
	const _Atomic uint64_t *from =
		(const _Atomic uint64_t *)(const void *)memory_of(f, message);
	uint32_t flag = flag_of(f, message), data;
	size_t words = ll_words(bytes);
	uint64_t word;

	for (size_t i = words; i-- > 0;) { /* the last word comes last */
		word = atomic_load_explicit(&from[i], memory_order_acquire);
		if ((uint32_t)(word >> 32) != flag) {
			return false;
		}
		data = (uint32_t)word;
		memcpy(f->scratch + 4 * i, &data, 4);
	}
	return true;
}

static int post_recv(struct fr_flow *f)
{
	struct fr_conn *conn = f->conn;
	struct fr_plugin *plugin = conn->conns->plugin;
	struct fr_flow_slot *slot = &f->slot[index_of(f, f->posted)];
	void *data = memory_of(f, f->posted);
	int tag = (int)conn->peer, res;

	if (f->ll && fr_plugin_abi(plugin) >= 9) {
		slot->request = FR_PLUGIN_OPTIONAL_RECV;
	}
	res = fr_plugin_irecv(plugin, conn->comm, 1, &data, &f->slot_bytes,
			      &tag, &conn->mhandle[region_of(f)],
			      &slot->request);
	return res == FR_PLUGIN_SUCCESS ? 0 : fr_conn_fail(conn, "irecv", res);
}

static int post_send(struct fr_flow *f)
{
	struct fr_conn *conn = f->conn;
	struct fr_flow_slot *slot = &f->slot[index_of(f, f->posted)];
	int res;

	res = fr_plugin_isend(conn->conns->plugin, conn->comm,
			      memory_of(f, f->posted), slot->bytes,
			      (int)conn->conns->rank,
			      conn->mhandle[region_of(f)], &slot->request);
	return res == FR_PLUGIN_SUCCESS ? 0 : fr_conn_fail(conn, "isend", res);
}

static bool may_post(const struct fr_flow *f)
{
	if (f->conn->sends) {
		return f->posted < f->filled;
	}
	return f->posted < f->total && f->posted < f->filled + f->slots &&
	       f->posted < f->done + f->slots;
}

/* Only the oldest request is tested, once a pass. */
static int test_oldest(struct fr_flow *f, bool *moved)
{
	struct fr_conn *conn = f->conn;
	struct fr_flow_slot *slot = &f->slot[index_of(f, f->done)];
	int done = 0, size = -1, res;

	res = fr_plugin_test(conn->conns->plugin, slot->request, &done, &size);
	if (res != FR_PLUGIN_SUCCESS) {
		return fr_conn_fail(
			conn, conn->sends ? "test of isend" : "test of irecv",
			res);
	}
	if (done != 0) {
		if (!conn->sends) {
			slot->bytes = (size_t)size;
		}
		f->done++;
		*moved = true;
	}
	return 0;
}

int fr_flow_progress(struct fr_flow *f, bool *moved)
{
	int ret;

	while (may_post(f)) {
		ret = f->conn->sends ? post_send(f) : post_recv(f);
		if (ret != 0) {
			return ret;
		}
		if (f->slot[index_of(f, f->posted)].request == NULL) {
			break; /* the same again in the next pass */
		}
		f->posted++;
		*moved = true;
	}
	return f->done < f->posted ? test_oldest(f, moved) : 0;
}

void *fr_flow_send_slot(struct fr_flow *f)
{
	if (f->filled - f->done >= f->slots) {
		return NULL;
	}
	return f->ll ? f->scratch : memory_of(f, f->filled);
}

void fr_flow_commit(struct fr_flow *f, size_t bytes)
{
	struct fr_flow_slot *slot = &f->slot[index_of(f, f->filled)];

	slot->bytes = bytes;
	if (f->ll) {
		ll_pack(f, f->filled, bytes);
		slot->bytes = ll_words(bytes) * 8;
	}
	f->filled++;
}

const void *fr_flow_recv_slot(struct fr_flow *f, size_t bytes, int *ret)
{
	const struct fr_flow_slot *slot = &f->slot[index_of(f, f->filled)];

	if (f->filled >= f->posted) {
		return NULL;
	}
	if (f->ll && bytes != 0) {
		return ll_unpack(f, f->filled, bytes) ? f->scratch : NULL;
	}
	if (f->filled >= f->done) {
		return NULL;
	}
	if (f->ll) {
		return f->scratch;
	}
	if (slot->bytes != bytes) {
		fr_error("rank %u: a message from rank %u, channel %u has %zd "
			 "bytes and not %zu",
			 f->conn->conns->rank, f->conn->peer, f->conn->channel,
			 (ssize_t)slot->bytes, bytes);
		*ret = -EIO;
		return NULL;
	}
	return memory_of(f, f->filled);
}

void fr_flow_release(struct fr_flow *f)
{
	f->filled++;
}

bool fr_flow_idle(const struct fr_flow *f)
{
	if (f->conn->sends) {
		return f->done == f->filled;
	}
	return f->done == f->total && f->filled == f->total;
}
