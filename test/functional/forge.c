#include "functional/forge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/log.h"
#include "base/param.h"
#include "base/random.h"
#include "fabric/mr.h"
#include "fabric/rail.h"
#include "functional/pair.h"

#define RECVS 32u
#define RECV_BYTES 16384u
#define WAIT_MS 5000u
#define HELD 16u
#define POSTS 32u
#define LOST_MS 200u

struct forge_recv {
	struct fr_op op;
	struct forge *forge;
	uint8_t *buf;
};

struct forge {
	struct fr_conf conf;
	struct fr_fabric *fabric;
	struct fr_rail *rail;
	struct fr_mr_cache *mrs;
	uint8_t *out;
	struct fr_mr *out_mr;
	uint8_t *in;
	struct fr_mr *in_mr;
	struct forge_recv recv[RECVS];
	struct fr_op post[POSTS];
	unsigned cur; /* the one in use; those before were given up */
	bool flying;
	int err;
	/* what came and was not asked for yet */
	struct fr_conn_msg conn[HELD];
	unsigned conn_cnt;
	struct fr_cts cts[HELD];
	uint32_t cts_dst[HELD];
	unsigned cts_cnt;
};

static void came_write(void *owner, struct fr_rail *rail, uint64_t imm,
		       size_t bytes)
{
	(void)owner;
	(void)rail;
	(void)imm;
	(void)bytes;
}

static void came_error(void *owner, struct fr_rail *rail, int err)
{
	(void)owner;
	(void)rail;
	(void)err;
}

static const struct fr_rail_ops forge_ops = {
	.remote_write = came_write,
	.remote_error = came_error,
};

static void take_in(struct forge *f, const uint8_t *buf, size_t bytes)
{
	struct fr_link_hdr hdr;
	struct fr_conn_msg msg;
	const char *why;

	if (bytes == 0) {
		return;
	}
	if (buf[0] < FR_LINK_ACK) {
		PAIR_CHECK(fr_conn_decode(&msg, buf, bytes, &why) == 0,
			   "a connect message of the plugin: %s", why);
		f->conn[f->conn_cnt++ % HELD] = msg;
		return;
	}
	PAIR_CHECK(fr_link_hdr_decode(&hdr, buf, bytes, &why) == 0,
		   "a control message of the plugin: %s", why);
	if (hdr.type == FR_LINK_CTS) {
		struct fr_cts *cts = &f->cts[f->cts_cnt % HELD];

		PAIR_CHECK(fr_cts_decode(cts, buf + FR_LINK_HDR_BYTES, hdr.len,
					 &why) == 0,
			   "a CTS of the plugin: %s", why);
		f->cts_dst[f->cts_cnt++ % HELD] = hdr.dst_set;
	}
}

static void recv_post(struct forge_recv *recv);

static void recv_done(struct fr_op *op, struct fr_rail *rail, int err,
		      size_t bytes)
{
	struct forge_recv *recv = FR_CONTAINER_OF(op, struct forge_recv, op);

	(void)rail;
	if (err == 0) {
		take_in(recv->forge, recv->buf, bytes);
	}
	recv_post(recv);
}

static void recv_post(struct forge_recv *recv)
{
	struct forge *f = recv->forge;
	int ret;

	recv->op.done = recv_done;
	ret = fr_rail_recv(f->rail, recv->buf, RECV_BYTES,
			   fr_mr_desc(f->in_mr, 0), &recv->op);
	PAIR_CHECK(ret == 0, "forger: receive buffer: %s", strerror(-ret));
}

static void post_done(struct fr_op *op, struct fr_rail *rail, int err,
		      size_t bytes)
{
	struct forge *f = fr_rail_owner(rail);

	(void)bytes;
	if (op == &f->post[f->cur]) {
		f->flying = false;
		f->err = err;
	}
}

static void *memory(struct forge *f, size_t bytes, struct fr_mr **mr)
{
	void *mem = aligned_alloc(4096, bytes);

	PAIR_CHECK(mem != NULL, "forger: out of memory");
	memset(mem, 0, bytes);
	PAIR_CHECK(fr_mr_get(f->mrs, mem, bytes,
			     FR_MR_LOCAL | FR_MR_REMOTE_WRITE, mr) == 0,
		   "forger: registration");
	return mem;
}

static void quiet(enum fr_log_level level, const char *file, int line,
		  const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	(void)text;
}

struct forge *forge_open(void)
{
	struct forge *f = calloc(1, sizeof(*f));
	struct fr_rail_attr attr = {.ops = &forge_ops, .owner = f};

	fr_log_set_sink(quiet);
	PAIR_CHECK(f != NULL && fr_param_load(fr_conf_table, FR_CONF_PREFIX,
					      NULL, &f->conf, NULL) == 0,
		   "forger: parameters");
	PAIR_CHECK(fr_fabric_open(&f->conf, &f->fabric) == 0,
		   "forger: no fabric");
	attr.fabric = f->fabric;
	attr.cq_size = f->conf.cq_size;
	attr.cq_read_cnt = f->conf.cq_read_cnt;
	PAIR_CHECK(fr_rail_open(&attr, &f->rail) == 0, "forger: no rail");
	PAIR_CHECK(fr_mr_cache_create(&f->rail, 1, true, &f->mrs) == 0,
		   "forger: no registrations");
	f->out = memory(f, FORGE_OUT_BYTES, &f->out_mr);
	f->in = memory(f, (size_t)RECVS * RECV_BYTES, &f->in_mr);
	for (unsigned i = 0; i < RECVS; i++) {
		f->recv[i].forge = f;
		f->recv[i].buf = f->in + (size_t)i * RECV_BYTES;
		recv_post(&f->recv[i]);
	}
	return f;
}

void forge_close(struct forge *f)
{
	fr_mr_put(f->mrs, f->out_mr);
	fr_mr_put(f->mrs, f->in_mr);
	fr_mr_cache_destroy(f->mrs);
	fr_rail_close(f->rail);
	fr_fabric_close(f->fabric);
	fr_param_unload(fr_conf_table, &f->conf);
	free(f->out);
	free(f->in);
	free(f);
}

uint8_t *forge_out(struct forge *f)
{
	return f->out;
}

unsigned forge_imm_bytes(const struct forge *f)
{
	return fr_fabric_cq_data_bytes(f->fabric);
}

uint8_t forge_provider(const struct forge *f)
{
	return fr_fabric_quirks(f->fabric)->wire_id;
}

void forge_handle(struct forge *f, uint64_t cookie, uint8_t *handle)
{
	struct fr_handle h = {
		.version = FR_HANDLE_VERSION,
		.prov = forge_provider(f),
		.cookie = cookie,
		.name_cnt = 1,
		.names = {*fr_rail_name(f->rail, FR_EP_CTRL)},
	};

	PAIR_CHECK(fr_handle_encode(&h, handle, FR_HANDLE_BYTES) == 0,
		   "forger: handle");
}

static uint64_t random_u64(void)
{
	uint64_t v = 0;

	PAIR_CHECK(fr_random(&v, sizeof(v)) == 0, "no random bytes");
	return v | 1;
}

void forge_describe(struct forge *f, uint8_t type, struct fr_conn_msg *msg)
{
	const struct fr_nic *nic = fr_rail_nic(f->rail);

	memset(msg, 0, sizeof(*msg));
	msg->type = type;
	msg->version = FR_CONN_VERSION;
	msg->features = FR_FEAT_BLIND | FR_FEAT_GROUPS;
	msg->comm = 5;
	msg->nonce = (uint32_t)random_u64();
	msg->prov = forge_provider(f);
	msg->cq_data_bytes = (uint8_t)forge_imm_bytes(f);
	msg->connect_id = random_u64();
	msg->set_id = random_u64();
	msg->window = 64;
	msg->eager_max_bytes = 8192;
	msg->rail_cnt = 1;
	memcpy(msg->rails[0].subnet, nic->subnet, sizeof(nic->subnet));
	msg->rails[0].prefix = nic->prefix;
	msg->rails[0].speed_mbps = 1000;
	memcpy(msg->rails[0].iface, "forged", sizeof("forged"));
	msg->rails[0].data = *fr_rail_name(f->rail, FR_EP_DATA);
	msg->rails[0].ctrl = *fr_rail_name(f->rail, FR_EP_CTRL);
	msg->rails[0].incarnation = 1;
	msg->scratch_addr = fr_mr_remote_addr(f->in_mr, f->in);
	msg->scratch_key[0] = fr_mr_key(f->in_mr, 0);
}

uint64_t forge_find_name(struct forge *f, const struct fr_name *name)
{
	uint64_t addr = 0;

	PAIR_CHECK(fr_rail_peer_add(f->rail, name, &addr) == 0,
		   "forger: a name is not usable");
	return addr;
}

uint64_t forge_find(struct forge *f, const uint8_t *handle)
{
	struct fr_handle h;
	const char *why = "";

	PAIR_CHECK(fr_handle_decode(&h, handle, FR_HANDLE_BYTES, &why) == 0,
		   "forger: handle: %s", why);
	return forge_find_name(f, &h.names[0]);
}

/* Waits for the one post. */
static int await_post(struct forge *f)
{
	uint64_t end = pair_now_ms() + pair_stretch(WAIT_MS);

	while (f->flying) {
		PAIR_CHECK(pair_now_ms() < end, "forger: a post never ends");
		(void)fr_rail_poll(f->rail);
	}
	return f->err;
}

static int send_post(struct forge *f, uint64_t addr, const void *buf,
		     size_t bytes)
{
	uint64_t end = pair_now_ms() + pair_stretch(WAIT_MS);
	int ret;

	if (buf != f->out) {
		memmove(f->out, buf, bytes);
	}
	f->post[f->cur].done = post_done;
	do {
		f->flying = true;
		ret = fr_rail_send(f->rail, addr, f->out, bytes,
				   fr_mr_desc(f->out_mr, 0), &f->post[f->cur]);
		(void)fr_rail_poll(f->rail);
	} while (ret == -EAGAIN && pair_now_ms() < end);
	f->flying = ret == 0 && f->flying;
	return ret;
}

int forge_send(struct forge *f, uint64_t addr, const void *buf, size_t bytes)
{
	int ret = send_post(f, addr, buf, bytes);

	return ret != 0 ? ret : await_post(f);
}

int forge_try(struct forge *f, uint64_t addr, const void *buf, size_t bytes)
{
	uint64_t end;
	int ret = send_post(f, addr, buf, bytes);

	if (ret != 0) {
		return ret;
	}
	end = pair_now_ms() + pair_stretch(LOST_MS);
	while (f->flying && pair_now_ms() < end) {
		(void)fr_rail_poll(f->rail);
	}
	if (!f->flying) {
		return f->err;
	}
	PAIR_CHECK(++f->cur < POSTS, "forger: too many posts never end");
	f->flying = false;
	return -ETIMEDOUT;
}

void forge_push(struct forge *f, uint64_t addr, const void *buf, size_t bytes)
{
	int ret = -EAGAIN;

	for (int i = 0; i < 100 && ret != 0; i++) {
		pair_nap_us(i == 0 ? 0 : 10000); /* it connects again */
		ret = forge_send(f, addr, buf, bytes);
	}
	PAIR_CHECK(ret == 0, "forger: cannot send: %s", strerror(-ret));
}

int forge_push_conn(struct forge *f, uint64_t addr,
		    const struct fr_conn_msg *msg)
{
	uint8_t buf[FR_CONN_MAX_BYTES];
	int len = fr_conn_encode(msg, buf, sizeof(buf));

	if (len < 0) {
		return len;
	}
	forge_push(f, addr, buf, (size_t)len);
	return 0;
}

int forge_write(struct forge *f, uint64_t addr, size_t bytes, uint64_t remote,
		uint64_t key, uint64_t imm)
{
	uint64_t end = pair_now_ms() + pair_stretch(WAIT_MS);
	int ret;

	f->post[f->cur].done = post_done;
	do {
		f->flying = true;
		ret = fr_rail_write(f->rail, addr, f->out, bytes,
				    fr_mr_desc(f->out_mr, 0), remote, key, imm,
				    true, &f->post[f->cur]);
		(void)fr_rail_poll(f->rail);
	} while (ret == -EAGAIN && pair_now_ms() < end);
	if (ret != 0) {
		f->flying = false;
		return ret;
	}
	return await_post(f);
}

void forge_poll(struct forge *f, unsigned ms)
{
	uint64_t end = pair_now_ms() + ms;

	do {
		(void)fr_rail_poll(f->rail);
		pair_nap_us(ms == 0 ? 0 : 100);
	} while (pair_now_ms() < end);
}

bool forge_wait_conn(struct forge *f, uint8_t type, struct fr_conn_msg *msg,
		     unsigned ms)
{
	uint64_t end = pair_now_ms() + pair_stretch(ms);
	unsigned seen = 0;

	do {
		for (; seen < f->conn_cnt; seen++) {
			if (f->conn[seen % HELD].type == type) {
				*msg = f->conn[seen % HELD];
				f->conn_cnt = 0;
				return true;
			}
		}
		forge_poll(f, 0);
	} while (pair_now_ms() < end);
	return false;
}

void forge_connect(struct forge *f, const uint8_t *handle,
		   struct forge_peer *peer)
{
	struct fr_conn_msg request;
	struct fr_handle h;
	const char *why = "";

	memset(peer, 0, sizeof(*peer));
	PAIR_CHECK(fr_handle_decode(&h, handle, FR_HANDLE_BYTES, &why) == 0,
		   "forger: handle: %s", why);
	peer->ctrl = forge_find_name(f, &h.names[0]);
	forge_describe(f, FR_CONN_REQUEST, &request);
	request.cookie = h.cookie;
	f->conn_cnt = 0;
	f->cts_cnt = 0;
	PAIR_CHECK(forge_push_conn(f, peer->ctrl, &request) == 0,
		   "forger: request");
	do {
		PAIR_CHECK(forge_wait_conn(f, FR_CONN_RESPONSE, &peer->msg,
					   WAIT_MS),
			   "forger: no response");
	} while (peer->msg.connect_id != request.connect_id);
	PAIR_CHECK(peer->msg.status == 0, "forger: refused: %s",
		   peer->msg.text);
	peer->data = forge_find_name(f, &peer->msg.rails[0].data);
	peer->set_id = request.set_id;
	peer->comm = request.comm;
	peer->nonce = request.nonce;
	peer->seq = 1;
}

void forge_wait_cts(struct forge *f, struct forge_peer *peer)
{
	uint64_t end = pair_now_ms() + pair_stretch(WAIT_MS);
	unsigned seen = 0;

	for (;;) {
		for (; seen < f->cts_cnt; seen++) {
			if (f->cts_dst[seen % HELD] == (uint32_t)peer->set_id) {
				peer->cts = f->cts[seen % HELD];
				return;
			}
		}
		PAIR_CHECK(pair_now_ms() < end, "forger: no CTS");
		forge_poll(f, 0);
	}
}

void forge_accept(struct forge *f, const struct fr_conn_msg *request,
		  struct forge_peer *peer)
{
	struct fr_conn_msg response;

	memset(peer, 0, sizeof(*peer));
	peer->msg = *request;
	peer->ctrl = forge_find_name(f, &request->rails[0].ctrl);
	peer->data = forge_find_name(f, &request->rails[0].data);
	forge_describe(f, FR_CONN_RESPONSE, &response);
	response.cookie = request->cookie;
	response.connect_id = request->connect_id;
	peer->set_id = response.set_id;
	peer->comm = response.comm;
	peer->nonce = response.nonce;
	peer->seq = 1;
	PAIR_CHECK(forge_push_conn(f, peer->ctrl, &response) == 0,
		   "forger: response");
}

void forge_leave(struct forge *f, struct forge_peer *peer)
{
	fr_rail_peer_del(f->rail, peer->ctrl);
	if (peer->data != peer->ctrl) {
		fr_rail_peer_del(f->rail, peer->data);
	}
}

void forge_hdr(const struct forge_peer *peer, uint8_t type, size_t payload,
	       struct fr_link_hdr *hdr)
{
	memset(hdr, 0, sizeof(*hdr));
	hdr->type = type;
	hdr->len = (uint16_t)payload;
	hdr->seq = type == FR_LINK_ACK ? 0 : peer->seq;
	hdr->ack = 1;
	hdr->dst_set = (uint32_t)peer->msg.set_id;
	hdr->src_set = peer->set_id;
}

void forge_link_raw(struct forge *f, struct forge_peer *peer,
		    const struct fr_link_hdr *hdr, const void *payload,
		    size_t bytes)
{
	uint8_t buf[FR_LINK_HDR_BYTES + 70000];

	PAIR_CHECK(bytes <= sizeof(buf) - FR_LINK_HDR_BYTES, "too long");
	fr_link_hdr_encode(hdr, buf);
	if (bytes != 0) {
		memcpy(buf + FR_LINK_HDR_BYTES, payload, bytes);
	}
	forge_push(f, peer->ctrl, buf, FR_LINK_HDR_BYTES + bytes);
}

void forge_link(struct forge *f, struct forge_peer *peer, uint8_t type,
		uint8_t flags, const void *payload, size_t bytes)
{
	struct fr_link_hdr hdr;

	forge_hdr(peer, type, bytes, &hdr);
	hdr.flags = flags;
	peer->seq += type == FR_LINK_ACK ? 0 : 1;
	forge_link_raw(f, peer, &hdr, payload, bytes);
}
