#include "fuzz/world.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "fake/fake_clock.h"
#include "fake/fake_gpu.h"
#include "fuzz/fuzz.h"
#include "net/progress.h"
#include "net/xfer.h"

#define CANARY_BYTES 1024u
#define CANARY 0xc5
#define STEPS 20000u

struct world world;

static struct world_side *const sides[] = {&world.victim, &world.healthy,
					   &world.hostile};

/* FR_FUZZ_VERBOSE=1 shows what the floor says. */
static void swallow(enum fr_log_level level, const char *file, int line,
		    const char *text)
{
	fuzz_check(text[0] != '\0');
	if (getenv("FR_FUZZ_VERBOSE") != NULL) {
		fprintf(stderr, "[%d] %s:%d %s\n", (int)level, file, line,
			text);
	}
}

/* The caller is @side's thread from now on. */
static void be(const struct world_side *side)
{
	for (unsigned i = 0; i < FR_ARRAY_LEN(sides); i++) {
		if (sides[i]->set != NULL) {
			sides[i]->set->thread =
				sides[i] == side ? pthread_self() : 0;
		}
	}
}

static void pass_of(struct world_side *side)
{
	if (side->set != NULL) {
		fr_lock_take(&side->set->lock);
		fr_progress_locked(side->set);
		fr_lock_drop(&side->set->lock);
	}
}

void world_pass(unsigned n)
{
	while (n-- > 0) {
		for (unsigned i = 0; i < FR_ARRAY_LEN(sides); i++) {
			pass_of(sides[i]);
		}
	}
}

void world_tick(unsigned n)
{
	while (n-- > 0) {
		fr_fake_clock_advance(FR_TICK_NS + 10 * FR_NS_PER_MS);
		world_pass(1);
	}
}

/* -- what goes over the wire -- */

static enum fr_fake_verdict see(void *arg, const struct fr_fake_seen *seen)
{
	const uint8_t *msg = seen->data;
	const char *why;
	struct fr_link_hdr hdr;
	struct fr_conn_msg conn;
	struct fr_cts cts;

	(void)arg;
	if (seen->write || seen->read || world.victim.set == NULL ||
	    fr_rail_owner(seen->src) != world.victim.set) {
		return FR_FAKE_PASS;
	}
	if (msg[0] < FR_LINK_ACK) {
		if (fr_conn_decode(&conn, msg, seen->bytes, &why) == 0 &&
		    conn.type == FR_CONN_REQUEST) {
			world.asked = conn;
		}
		return FR_FAKE_PASS;
	}
	fuzz_check(fr_link_hdr_decode(&hdr, msg, seen->bytes, &why) == 0);
	if (hdr.type == FR_LINK_CTS && world.hostile.set != NULL &&
	    hdr.dst_set == (uint32_t)world.hostile.set->id) {
		fuzz_check(fr_cts_decode(&cts, msg + FR_LINK_HDR_BYTES, hdr.len,
					 &why) == 0);
		world.cts = cts;
	}
	return FR_FAKE_PASS;
}

struct fr_link *world_link(void)
{
	struct fr_link *link =
		fr_link_find(world.hostile.set, world.victim.set->id);

	return link == NULL || link->err != 0 ? NULL : link;
}

void world_say(uint8_t type, uint8_t flags, const void *payload, size_t bytes)
{
	struct fr_link *link = world_link();
	struct fr_slot *slot;

	if (link == NULL || bytes > link->set->big_bytes - FR_LINK_HDR_BYTES) {
		return;
	}
	fr_lock_take(&link->set->lock);
	slot = fr_link_slot(link, bytes);
	fuzz_check(slot != NULL);
	if (bytes != 0) {
		memcpy(slot->bytes + FR_LINK_HDR_BYTES, payload, bytes);
	}
	fr_link_send(link, slot, type, flags, bytes, 0);
	fr_lock_drop(&link->set->lock);
}

void world_inject(const void *msg, size_t bytes)
{
	(void)fr_fake_inject_msg(
		fr_rail_name(world.victim.set->rail[0], FR_EP_CTRL), msg,
		bytes);
}

void world_describe(uint8_t type, struct fr_conn_msg *msg)
{
	memset(msg, 0, sizeof(*msg));
	fr_set_describe(world.hostile.set, msg);
	msg->type = type;
	msg->cookie = world.victim.listen->cookie;
	msg->connect_id = 99;
	msg->comm = 4711;
	msg->nonce = 0xabad1dea;
	if (type == FR_CONN_RESPONSE) {
		msg->cookie = world.asked.cookie;
		msg->connect_id = world.asked.connect_id;
	}
}

/* -- set-up -- */

static void side_open(struct world_side *side)
{
	be(NULL);
	fuzz_check(fr_net_listen(0, FR_NET_TCLASS_UNSET, side->handle,
				 sizeof(side->handle), &side->listen) == 0);
	side->set = side->listen->set;
}

static uint8_t *mem_open(void)
{
	uint8_t *mem = malloc(WORLD_BUF_BYTES + 2 * CANARY_BYTES);

	fuzz_check(mem != NULL);
	memset(mem, CANARY, WORLD_BUF_BYTES + 2 * CANARY_BYTES);
	return mem + CANARY_BYTES;
}

static uint8_t *gpu_mem_open(void)
{
	size_t bytes = WORLD_BUF_BYTES + 2 * CANARY_BYTES;
	uint8_t *mem = fake_gpu_alloc(bytes, 0);

	memset(fake_gpu_alias(mem), CANARY, bytes);
	return mem + CANARY_BYTES;
}

/* Of either memory. */
static void mem_check(const uint8_t *at)
{
	const uint8_t *mem =
		(uint8_t *)fake_gpu_alias(at - CANARY_BYTES) + CANARY_BYTES;
	static uint8_t whole[CANARY_BYTES];

	memset(whole, CANARY, CANARY_BYTES);
	fuzz_check(memcmp(mem - CANARY_BYTES, whole, CANARY_BYTES) == 0);
	fuzz_check(memcmp(mem + WORLD_BUF_BYTES, whole, CANARY_BYTES) == 0);
}

static void pair_open(struct world_pair *pair, struct world_side *from,
		      struct world_side *to)
{
	uint8_t handle[FR_HANDLE_BYTES];
	int sent = -EAGAIN, got = -EAGAIN;

	pair->from = from;
	pair->to = to;
	memcpy(handle, to->handle, sizeof(handle));
	be(from);
	for (unsigned i = 0; sent == -EAGAIN || got == -EAGAIN; i++) {
		fuzz_check(i < STEPS);
		if (sent == -EAGAIN) {
			sent = fr_net_connect(0, FR_NET_TCLASS_UNSET, handle,
					      &pair->send);
		}
		if (got == -EAGAIN) {
			got = fr_net_accept(to->listen, &pair->recv);
		}
	}
	be(NULL);
	fuzz_check(sent == 0 && got == 0);
	pair->src = mem_open();
	pair->dst = mem_open();
	fuzz_check(fr_net_reg_mr(pair->send, pair->src, WORLD_BUF_BYTES,
				 FR_MEM_HOST, &pair->src_mr) == 0);
	fuzz_check(fr_net_reg_mr(pair->recv, pair->dst, WORLD_BUF_BYTES,
				 FR_MEM_HOST, &pair->dst_mr) == 0);
}

static void pair_open_gpu(struct world_pair *pair)
{
	pair->gpu_src = gpu_mem_open();
	pair->gpu_dst = gpu_mem_open();
	fuzz_check(fr_net_reg_mr(pair->send, pair->gpu_src, WORLD_BUF_BYTES,
				 FR_MEM_GPU, &pair->gpu_src_mr) == 0);
	fuzz_check(fr_net_reg_mr(pair->recv, pair->gpu_dst, WORLD_BUF_BYTES,
				 FR_MEM_GPU, &pair->gpu_dst_mr) == 0);
}

static void shape_conf(uint8_t shape)
{
	struct fr_fake_conf conf;
	static const char *const rails[] = {"0", "1", "2", "8"};

	fr_fake_conf_default(&conf);
	for (unsigned i = 0; i < conf.nic_cnt; i++) {
		/* No IP network, so no port that would be a real one. */
		fr_fake_nic_default(&conf.nics[i], i, true);
		memset(conf.nics[i].subnet, 0, sizeof(conf.nics[i].subnet));
		conf.nics[i].prefix = 0;
	}
	if (shape & 0x01) {
		conf.cq_data_bytes = 4;
		conf.quirks.has_write_len = true;
	}
	world.has_gpu = (shape & 0x80) != 0;
	if (world.has_gpu) {
		fr_fake_conf_gpu(&conf);
		conf.gpu_lags = true;
	}
	conf.virt_addr = (shape & 0x02) != 0;
	conf.prov_keys = (shape & 0x04) != 0;
	conf.quirks.split_ep = (shape & 0x08) == 0;
	setenv("OFI_NCCL_FORCE_NUM_RAILS", rails[shape >> 4 & 3], 1);
	setenv("OFI_NCCL_EAGER_MAX_SIZE", shape & 0x40 ? "-1" : "8192", 1);
	setenv("OFI_NCCL_FAILOVER", shape & 0x40 ? "0" : "1", 1);
	setenv("OFI_NCCL_KEEPER", "0", 1);
	setenv("OFI_NCCL_YIELD_AFTER", "0", 1);
	fr_fake_set_conf(&conf);
}

void world_open(uint8_t shape)
{
	fr_log_set_level(FR_LOG_DEBUG);
	fr_log_set_sink(swallow);
	fr_fake_clock_free_naps(true);
	fuzz_check(fr_fake_reset() == 0);
	fuzz_check(fr_live_allocs() == 0);
	memset(&world, 0, sizeof(world));
	shape_conf(shape);
	fr_fake_set_snoop(see, NULL);
	fuzz_check(fr_net_get(&world.net) == 0);
	for (unsigned i = 0; i < FR_ARRAY_LEN(sides); i++) {
		side_open(sides[i]);
	}
	pair_open(&world.good_in, &world.healthy, &world.victim);
	pair_open(&world.good_out, &world.victim, &world.healthy);
	pair_open(&world.bad_in, &world.hostile, &world.victim);
	pair_open(&world.bad_out, &world.victim, &world.hostile);
	if (world.has_gpu) {
		pair_open_gpu(&world.good_in);
		pair_open_gpu(&world.good_out);
		pair_open_gpu(&world.bad_in);
		pair_open_gpu(&world.bad_out);
	}
	memcpy(world.state, world.hostile.handle, sizeof(world.state));
}

/* -- requests -- */

void world_keep(struct fr_req *req)
{
	if (req != NULL) {
		fuzz_check(world.req_cnt < WORLD_REQS);
		world.reqs[world.req_cnt++] = req;
	}
}

void world_flush(size_t bytes)
{
	struct world_pair *pair = &world.bad_in;
	void *data = pair->gpu_dst;
	int size = (int)bytes;
	struct fr_req *req;

	if (world.has_gpu && world.req_cnt < WORLD_REQS &&
	    fr_net_iflush(pair->recv, 1, &data, &size, &pair->gpu_dst_mr,
			  &req) == 0) {
		world_keep(req);
	}
}

void world_test_all(void)
{
	size_t sizes[FR_NET_MAX_GROUP];
	unsigned left = 0;

	for (unsigned i = 0; i < world.req_cnt; i++) {
		bool done = false;

		for (unsigned k = 0; k < FR_NET_MAX_GROUP; k++) {
			sizes[k] = 0;
		}
		if (fr_net_test(world.reqs[i], &done, sizes) != 0) {
			continue;
		}
		if (!done) {
			world.reqs[left++] = world.reqs[i];
			continue;
		}
		for (unsigned k = 0; k < FR_NET_MAX_GROUP; k++) {
			fuzz_check(sizes[k] <= WORLD_BUF_BYTES);
		}
	}
	world.req_cnt = left;
}

static void drop_if_done(struct fr_req **req)
{
	bool done = true;

	if (*req != NULL) {
		fuzz_check(fr_net_test(*req, &done, NULL) == 0);
	}
	if (done) {
		*req = NULL;
	}
}

/* One message from @src to @dst. */
struct passage {
	struct fr_comm *send, *recv;
	uint8_t *src, *dst;
	struct fr_net_mr *src_mr, *dst_mr;
	size_t bytes;
};

static void pass_begin(struct passage *p, struct fr_req **send,
		       struct fr_req **recv)
{
	void *dst = p->dst;
	int tag = 0;

	for (unsigned i = 0; *recv == NULL || *send == NULL; i++) {
		fuzz_check(i < STEPS);
		if (*recv == NULL) {
			fuzz_check(fr_net_irecv(p->recv, 1, &dst, &p->bytes,
						&tag, &p->dst_mr, recv) == 0);
		}
		if (*send == NULL) {
			fuzz_check(fr_net_isend(p->send, p->src, p->bytes, tag,
						p->src_mr, send) == 0);
		}
		fr_fake_clock_advance(FR_NS_PER_MS);
		world_pass(1);
	}
}

static void await(struct fr_req **one, struct fr_req **other)
{
	for (unsigned i = 0; *one != NULL || *other != NULL; i++) {
		fuzz_check(i < STEPS);
		fr_fake_clock_advance(FR_NS_PER_MS);
		world_pass(1);
		drop_if_done(one);
		drop_if_done(other);
	}
}

/* A message that must arrive whole, where a GPU sees it if it goes to one. */
static void exchange(struct passage *p, uint8_t salt)
{
	struct fr_req *recv = NULL, *send = NULL, *flush = NULL;
	uint8_t *src = fake_gpu_alias(p->src);
	void *dst = p->dst;
	int size = (int)p->bytes;

	memset(src, salt, p->bytes);
	for (size_t i = 0; i < p->bytes; i += 61) {
		src[i] = (uint8_t)(i * 7 + (i >> 8));
	}
	pass_begin(p, &send, &recv);
	await(&send, &recv);
	fuzz_check(fr_net_iflush(p->recv, 1, &dst, &size, &p->dst_mr, &flush) ==
		   0);
	await(&flush, &recv);
	fuzz_check(memcmp(src, fake_gpu_alias(p->dst), p->bytes) == 0);
}

/* From and to either memory. */
static void exchange_all(struct world_pair *pair, size_t bytes, uint8_t salt)
{
	struct passage p = {pair->send,	  pair->recv,	pair->src, pair->dst,
			    pair->src_mr, pair->dst_mr, bytes};

	exchange(&p, salt);
	if (world.has_gpu) {
		p.dst = pair->gpu_dst;
		p.dst_mr = pair->gpu_dst_mr;
		exchange(&p, (uint8_t)(salt + 16));
		p.src = pair->gpu_src;
		p.src_mr = pair->gpu_src_mr;
		exchange(&p, (uint8_t)(salt + 32));
	}
}

/* -- the end -- */

static void pair_close_gpu(struct world_pair *pair)
{
	(void)fr_net_dereg_mr(pair->recv, pair->gpu_dst_mr);
	(void)fr_net_dereg_mr(pair->send, pair->gpu_src_mr);
	mem_check(pair->gpu_dst);
	mem_check(pair->gpu_src);
	fake_gpu_free(pair->gpu_dst - CANARY_BYTES);
	fake_gpu_free(pair->gpu_src - CANARY_BYTES);
}

static void pair_close(struct world_pair *pair)
{
	if (world.has_gpu) {
		pair_close_gpu(pair);
	}
	(void)fr_net_dereg_mr(pair->recv, pair->dst_mr);
	(void)fr_net_dereg_mr(pair->send, pair->src_mr);
	mem_check(pair->dst);
	mem_check(pair->src);
	fr_net_close_recv(pair->recv);
	fr_net_close_send(pair->send);
	free(pair->dst - CANARY_BYTES);
	free(pair->src - CANARY_BYTES);
}

/* Nobody waits for an answer at the close. */
static void forsake(struct world_side *side)
{
	fr_lock_take(&side->set->lock);
	fr_list_for_each_safe (pos, &side->set->links) {
		fr_link_fail(FR_CONTAINER_OF(pos, struct fr_link, node),
			     -ECONNRESET, "the end");
	}
	fr_lock_drop(&side->set->lock);
}

void world_close(void)
{
	struct fr_fake_counts counts;

	static const size_t sizes[] = {0, 100, 20000, WORLD_BUF_BYTES};

	world_pass(4);
	mem_check(world.bad_in.dst);
	for (unsigned i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		exchange_all(&world.good_in, sizes[i], 1);
		exchange_all(&world.good_out, sizes[i], 2);
	}
	fr_conn_drop_all();
	for (unsigned i = 0; i < FR_ARRAY_LEN(sides); i++) {
		forsake(sides[i]);
	}
	while (world.taken_cnt > 0) {
		fr_net_close_recv(world.taken[--world.taken_cnt]);
	}
	fr_net_close_send(world.made);
	pair_close(&world.bad_out);
	pair_close(&world.bad_in);
	pair_close(&world.good_out);
	pair_close(&world.good_in);
	for (unsigned i = 0; i < FR_ARRAY_LEN(sides); i++) {
		struct fr_listen *listen = sides[i]->listen;

		sides[i]->set = NULL;
		fr_net_close_listen(listen);
	}
	fr_net_put(world.net);
	fr_fake_counts(NULL, &counts);
	fuzz_check(counts.violations == 0);
	fuzz_check(fake_gpu_live() == 0);
	fuzz_check(fr_fake_reset() == 0);
	fuzz_check(fr_live_allocs() == 0);
	fr_log_set_sink(NULL);
}
