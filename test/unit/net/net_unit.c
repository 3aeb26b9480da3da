#include "unit/net/net_unit.h"

#include <pthread.h>

#include "fake/fake_clock.h"
#include "fake/fake_gpu.h"
#include "net/core.h"
#include "net/progress.h"

#define MAX_PAIRS 64u
#define MAX_BUFS 64u
#define MAX_LINES 256u
#define LINE_BYTES 300u
#define MAX_EXPECTED 16u

struct net_side net_a, net_b, net_c;
struct fr_net *net_ref;
struct fr_fake_conf net_conf;
struct net_wire net_wire;
bool net_has_gpu;

static struct net_side *const sides[] = {&net_a, &net_b, &net_c};
static struct net_pair pairs[MAX_PAIRS];
static void *bufs[MAX_BUFS];

void net_advance(uint64_t ns)
{
	fr_fake_clock_advance(ns);
}

/* -- what was logged -- */

static struct {
	pthread_mutex_t mutex;
	struct net_line {
		enum fr_log_level level;
		char text[LINE_BYTES];
	} line[MAX_LINES];
	unsigned cnt;
	const char *expected[MAX_EXPECTED];
	unsigned expected_cnt;
} said = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void said_sink(enum fr_log_level level, const char *file, int line,
		      const char *text)
{
	(void)file;
	(void)line;
	pthread_mutex_lock(&said.mutex);
	if (said.cnt < MAX_LINES) {
		said.line[said.cnt].level = level;
		snprintf(said.line[said.cnt].text, LINE_BYTES, "%s", text);
		said.cnt++;
	}
	pthread_mutex_unlock(&said.mutex);
}

void net_expect(const char *part)
{
	ck_assert_uint_lt(said.expected_cnt, MAX_EXPECTED);
	said.expected[said.expected_cnt++] = part;
}

unsigned net_logged(const char *part)
{
	unsigned cnt = 0;

	pthread_mutex_lock(&said.mutex);
	for (unsigned i = 0; i < said.cnt; i++) {
		cnt += strstr(said.line[i].text, part) != NULL;
	}
	pthread_mutex_unlock(&said.mutex);
	return cnt;
}

static void said_check(void)
{
	for (unsigned i = 0; i < said.cnt; i++) {
		bool known = said.line[i].level > FR_LOG_WARN;

		for (unsigned e = 0; e < said.expected_cnt && !known; e++) {
			known = strstr(said.line[i].text, said.expected[e]) !=
				NULL;
		}
		ck_assert_msg(known, "not expected: %s", said.line[i].text);
	}
}

/* -- what was on the wire -- */

static unsigned last_slot(uint8_t type)
{
	return type >= 0xc0 ? type & 0x0fu : 16u + (type & 0x0fu);
}

const uint8_t *net_last(uint8_t type, size_t *bytes)
{
	*bytes = net_wire.last_bytes[last_slot(type)];
	return net_wire.last[last_slot(type)];
}

static enum fr_fake_verdict see_write(const struct fr_fake_seen *seen)
{
	struct net_write *w = &net_wire.write[net_wire.writes % NET_WRITES];

	w->imm = seen->imm;
	w->addr = seen->remote_addr;
	w->key = seen->key;
	w->bytes = seen->bytes;
	w->untold = seen->untold;
	w->rail = fr_rail_index(seen->src);
	net_wire.writes++;
	net_wire.own_writes += seen->src == seen->dst;
	if (net_wire.lose_writes != 0) {
		net_wire.lose_writes--;
		return FR_FAKE_LOSE;
	}
	return FR_FAKE_PASS;
}

static enum fr_fake_verdict see(void *arg, const struct fr_fake_seen *seen)
{
	uint8_t type;
	size_t bytes = FR_MIN(seen->bytes, sizeof(net_wire.last[0]));

	(void)arg;
	if (seen->read) {
		ck_assert_ptr_eq(seen->src, seen->dst);
		net_wire.reads++;
		net_wire.read_rails |= FR_BIT(fr_rail_index(seen->src));
		return FR_FAKE_PASS;
	}
	if (seen->write) {
		return see_write(seen);
	}
	type = *(const uint8_t *)seen->data;
	net_wire.seen[type]++;
	memcpy(net_wire.last[last_slot(type)], seen->data, bytes);
	net_wire.last_bytes[last_slot(type)] = bytes;
	if (net_wire.lose[type] != 0) {
		net_wire.lose[type]--;
		return FR_FAKE_LOSE;
	}
	if (net_wire.twice[type] != 0) {
		net_wire.twice[type]--;
		return FR_FAKE_TWICE;
	}
	return FR_FAKE_PASS;
}

void net_lock(struct fr_set *set)
{
	fr_lock_take(&set->lock);
}

void net_unlock(struct fr_set *set)
{
	fr_lock_drop(&set->lock);
}

void net_say(struct fr_link *link, uint8_t type, uint8_t flags,
	     const void *payload, size_t bytes)
{
	struct fr_slot *slot;

	net_lock(link->set);
	slot = fr_link_slot(link, bytes);
	ck_assert_ptr_nonnull(slot);
	if (bytes != 0) {
		memcpy(slot->bytes + FR_LINK_HDR_BYTES, payload, bytes);
	}
	fr_link_send(link, slot, type, flags, bytes, 0);
	net_unlock(link->set);
}

void net_say_note(struct fr_link *link, uint8_t type,
		  const struct fr_link_note *note)
{
	net_lock(link->set);
	ck_assert_int_eq(fr_link_send_note(link, type, note, 0), 0);
	net_unlock(link->set);
}

void net_inject_imm(const struct net_side *side, const struct fr_imm *imm,
		    size_t bytes)
{
	const struct fr_name *name =
		fr_rail_name(side->set->rail[0], FR_EP_DATA);

	ck_assert_int_eq(
		fr_fake_inject_imm(name, fr_imm_pack(imm, side->set->imm_bytes),
				   bytes),
		0);
}

void net_inject_conn(const struct net_side *side, const struct fr_conn_msg *msg)
{
	uint8_t buf[FR_CONN_MAX_BYTES];
	int len = fr_conn_encode(msg, buf, sizeof(buf));

	ck_assert_int_gt(len, 0);
	ck_assert_int_eq(
		fr_fake_inject_msg(fr_rail_name(side->set->rail[0], FR_EP_CTRL),
				   buf, (size_t)len),
		0);
}

struct fr_conn_msg net_conn_msg(const struct net_side *from, uint8_t type,
				uint64_t cookie, uint64_t connect_id)
{
	struct fr_conn_msg msg;

	memset(&msg, 0, sizeof(msg));
	fr_set_describe(from->set, &msg);
	msg.type = type;
	msg.cookie = cookie;
	msg.connect_id = connect_id;
	msg.comm = 4711;
	msg.nonce = 0xabad1dea;
	return msg;
}

struct fr_conn_msg net_last_response(void)
{
	struct fr_conn_msg msg;
	const char *why = "";
	size_t bytes;
	const uint8_t *buf = net_last(NET_RESPONSE_TYPE, &bytes);

	ck_assert_msg(fr_conn_decode(&msg, buf, bytes, &why) == 0, "%s", why);
	return msg;
}

uint64_t net_dropped(const struct net_side *side)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < side->set->rail_cnt; i++) {
		sum += fr_stats_get(fr_rail_stats(side->set->rail[i]),
				    FR_STAT_RX_DROPPED);
	}
	return sum;
}

void net_break(const struct net_side *side, unsigned rail)
{
	fr_fake_break(fr_rail_name(side->set->rail[rail], FR_EP_CTRL));
}

struct fr_fake_counts net_counts(void)
{
	struct fr_fake_counts counts;

	fr_fake_counts(NULL, &counts);
	return counts;
}

/* -- begin and end -- */

void net_init(void)
{
	memset(&said, 0, sizeof(said));
	memset(&net_wire, 0, sizeof(net_wire));
	fr_log_set_level(FR_LOG_DEBUG);
	fr_log_set_sink(said_sink);
	setenv("OFI_NCCL_KEEPER", "0", 1);
	setenv("OFI_NCCL_YIELD_AFTER", "0", 1);
	/* Tests of these have them on. */
	setenv("OFI_NCCL_FAILOVER", "0", 1);
	setenv("OFI_NCCL_RAIL_WEIGHTS", "0", 1);
	ck_assert_uint_eq(fr_fake_reset(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	fr_fake_conf_default(&net_conf);
}

void net_open(void)
{
	if (net_has_gpu) {
		fr_fake_conf_gpu(&net_conf);
	}
	fr_fake_set_conf(&net_conf);
	fr_fake_set_snoop(see, NULL);
	ck_assert_int_eq(fr_net_get(&net_ref), 0);
	net_side_open(&net_a);
	net_side_open(&net_b);
}

void net_setup(void)
{
	net_init();
	net_open();
}

static void efa_setup(void)
{
	net_init();
	net_conf.quirks.split_ep = false;
	net_conf.quirks.has_write_len = true;
	net_conf.cq_data_bytes = 4;
	net_conf.virt_addr = true;
	net_conf.prov_keys = true;
	net_conf.name_bytes = 32;
	net_open();
}

static void slow_setup(void)
{
	net_init();
	for (unsigned i = 0; i < net_conf.nic_cnt; i++) {
		struct fr_nic *nic = &net_conf.nics[i];

		/* No IP network, so no knock port: the address is not here. */
		fr_fake_nic_default(nic, i, true);
		memset(nic->subnet, 0, sizeof(nic->subnet));
		nic->prefix = 0;
	}
	net_conf.lazy_connect = true;
	net_conf.local_waits = true;
	net_open();
}

static void one_rail_setup(void)
{
	net_init();
	net_conf.nic_cnt = 1;
	net_open();
}

static void eight_rails_setup(void)
{
	net_init();
	setenv("OFI_NCCL_FORCE_NUM_RAILS", "8", 1);
	net_open();
}

static void local_setup(void)
{
	net_init();
	setenv("OFI_NCCL_SEND_COMPLETION", "local", 1);
	net_open();
}

static void no_eager_setup(void)
{
	net_init();
	setenv("OFI_NCCL_EAGER_MAX_SIZE", "-1", 1);
	net_open();
}

/* Messages and control messages soon count over the end of their numbers. */
static void late_setup(void)
{
	net_init();
	setenv("OFI_NCCL_TEST_FIRST_SEQ", "4294967286", 1);
	net_open();
}

static void parts_setup(void)
{
	net_init();
	net_conf.max_msg_bytes = 19999;
	net_open();
}

const struct net_shape net_shapes[NET_SHAPES] = {
	{"net", net_setup},
	{"efa", efa_setup},
	{"slow", slow_setup},
	{"one rail", one_rail_setup},
	{"eight rails", eight_rails_setup},
	{"local completion", local_setup},
	{"no eager", no_eager_setup},
	{"late", late_setup},
	{"parts", parts_setup},
};

void net_as(const struct net_side *side)
{
	for (unsigned i = 0; i < FR_ARRAY_LEN(sides); i++) {
		if (sides[i]->set != NULL) {
			sides[i]->set->thread =
				sides[i] == side ? pthread_self() : 0;
		}
	}
}

void net_side_open(struct net_side *side)
{
	net_as(NULL);
	ck_assert_int_eq(fr_net_listen(0, FR_NET_TCLASS_UNSET, side->handle,
				       sizeof(side->handle), &side->listen),
			 0);
	side->set = side->listen->set;
}

void net_side_close(struct net_side *side)
{
	struct fr_listen *listen = side->listen;

	side->set = NULL;
	side->listen = NULL;
	fr_net_close_listen(listen);
}

void net_die(struct net_side *side)
{
	for (unsigned i = 0; i < side->set->rail_cnt; i++) {
		struct fr_rail *rail = side->set->rail[i];

		fr_fake_kill(fr_rail_name(rail, FR_EP_CTRL));
		fr_fake_kill(fr_rail_name(rail, FR_EP_DATA));
		fr_knock_server_close(side->set->knock[i]);
		side->set->knock[i] = NULL;
	}
	net_forsake(side);
}

void net_fail_link(struct fr_link *link)
{
	net_expect("failed by the test");
	net_lock(link->set);
	fr_link_fail(link, -ECONNRESET, "failed by the test");
	net_unlock(link->set);
}

void net_forsake(struct net_side *side)
{
	net_expect("forsaken by the test");
	net_lock(side->set);
	fr_list_for_each_safe (pos, &side->set->links) {
		fr_link_fail(FR_CONTAINER_OF(pos, struct fr_link, node),
			     -ECONNRESET, "forsaken by the test");
	}
	net_unlock(side->set);
}

static void mem_free(void *mem)
{
	struct fake_gpu_info info;

	if (mem != NULL && fake_gpu_find(mem, &info) == 0) {
		fake_gpu_free(mem);
	} else {
		free(mem);
	}
}

static void net_put_all(void)
{
	fr_conn_drop_all();
	for (unsigned i = 0; i < MAX_PAIRS; i++) {
		net_hangup(&pairs[i]);
	}
	for (unsigned i = 0; i < NET_STEPS && !net_is_quiet(); i++) {
		net_pass();
	}
	for (unsigned i = 0; i < FR_ARRAY_LEN(sides); i++) {
		net_side_close(sides[i]);
	}
	fr_net_put(net_ref);
	net_ref = NULL;
	for (unsigned i = 0; i < MAX_BUFS; i++) {
		mem_free(bufs[i]);
		bufs[i] = NULL;
	}
}

void net_teardown(void)
{
	fr_fault_alloc_at(0);
	fr_fake_fault_clear();
	net_put_all();
	ck_assert_uint_eq(net_counts().violations, 0);
	ck_assert_uint_eq(fr_fake_reset(), 0); /* and rails left alone end */
	ck_assert_uint_eq(fr_live_allocs(), 0);
	said_check();
	fr_log_set_sink(NULL);
}

TCase *net_case(const char *name, void (*setup)(void))
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, net_teardown);
	return tcase;
}

int net_main(const char *name, TCase *const *cases, unsigned cnt)
{
	return unit_run_all(cases, cnt, name);
}

/* -- motion -- */

void net_pass_of(struct net_side *side)
{
	if (side->set != NULL) {
		net_lock(side->set);
		fr_progress_locked(side->set);
		net_unlock(side->set);
	}
}

void net_pass(void)
{
	for (unsigned i = 0; i < FR_ARRAY_LEN(sides); i++) {
		net_pass_of(sides[i]);
	}
}

void net_tick(unsigned n)
{
	while (n-- > 0) {
		/* The coarse clock may be late. */
		net_advance(FR_TICK_NS + 10 * FR_NS_PER_MS);
		net_pass();
	}
}

static bool side_is_quiet(struct fr_set *set)
{
	if (set->dead != 0) {
		return true;
	}
	if (!fr_list_empty(&set->replies)) {
		return false;
	}
	fr_list_for_each (pos, &set->links) {
		const struct fr_link *link =
			FR_CONTAINER_OF(pos, struct fr_link, node);

		if (link->err == 0 && !fr_link_drained(link)) {
			return false;
		}
	}
	return true;
}

bool net_is_quiet(void)
{
	for (unsigned i = 0; i < FR_ARRAY_LEN(sides); i++) {
		if (sides[i]->set != NULL && !side_is_quiet(sides[i]->set)) {
			return false;
		}
	}
	return true;
}

void net_settle_in_time(void)
{
	for (unsigned i = 0; !net_is_quiet(); i++) {
		ck_assert_msg(i < NET_STEPS, "never quiet");
		net_tick(1);
		net_pass();
	}
}

void net_settle(void)
{
	for (unsigned i = 0; !net_is_quiet(); i++) {
		ck_assert_msg(i < NET_STEPS, "never quiet");
		net_advance(FR_NS_PER_MS); /* some things wait for a timer */
		net_pass();
	}
}

/* -- connections and messages -- */

static struct net_pair *pair_new(void)
{
	for (unsigned i = 0; i < MAX_PAIRS; i++) {
		if (pairs[i].send == NULL && pairs[i].recv == NULL) {
			return &pairs[i];
		}
	}
	ck_abort_msg("too many pairs");
	return NULL;
}

struct net_pair *net_connect(struct net_side *from, struct net_side *to)
{
	struct net_pair *pair = pair_new();
	uint8_t handle[FR_HANDLE_BYTES];
	int sent = -EAGAIN, got = -EAGAIN;

	memcpy(handle, to->handle, sizeof(handle));
	net_as(from);
	for (unsigned i = 0; sent == -EAGAIN || got == -EAGAIN; i++) {
		ck_assert_uint_lt(i, NET_STEPS);
		if (sent == -EAGAIN) {
			sent = fr_net_connect(0, FR_NET_TCLASS_UNSET, handle,
					      &pair->send);
		}
		if (got == -EAGAIN) {
			got = fr_net_accept(to->listen, &pair->recv);
		}
	}
	net_as(NULL);
	ck_assert_int_eq(sent, 0);
	ck_assert_int_eq(got, 0);
	return pair;
}

void net_close_send(struct net_pair *pair)
{
	fr_net_close_send(pair->send);
	pair->send = NULL;
}

void net_close_recv(struct net_pair *pair)
{
	fr_net_close_recv(pair->recv);
	pair->recv = NULL;
}

void net_hangup(struct net_pair *pair)
{
	net_close_send(pair);
	net_close_recv(pair);
}

static void **buf_place(const void *mem)
{
	for (unsigned i = 0; i < MAX_BUFS; i++) {
		if (bufs[i] == mem) {
			return &bufs[i];
		}
	}
	ck_abort_msg("too many buffers");
	return NULL;
}

void net_buf_open(struct fr_comm *comm, size_t bytes, struct net_buf *buf)
{
	buf->mem = calloc(1, bytes);
	buf->bytes = bytes;
	buf->comm = comm;
	ck_assert_ptr_nonnull(buf->mem);
	*buf_place(NULL) = buf->mem;
	ck_assert_int_eq(
		fr_net_reg_mr(comm, buf->mem, bytes, FR_MEM_HOST, &buf->mr), 0);
}

void net_gpu_open(struct fr_comm *comm, size_t bytes, struct net_buf *buf)
{
	buf->mem = fake_gpu_alloc(bytes, 0);
	buf->bytes = bytes;
	buf->comm = comm;
	*buf_place(NULL) = buf->mem;
	ck_assert_int_eq(
		fr_net_reg_mr(comm, buf->mem, bytes, FR_MEM_GPU, &buf->mr), 0);
}

void net_buf_close(struct net_buf *buf)
{
	ck_assert_int_eq(fr_net_dereg_mr(buf->comm, buf->mr), 0);
	*buf_place(buf->mem) = NULL;
	mem_free(buf->mem);
	memset(buf, 0, sizeof(*buf));
}

void net_fill(void *mem, size_t bytes, uint32_t seed)
{
	uint8_t *p = fake_gpu_alias(mem);

	for (size_t i = 0; i < bytes; i++) {
		p[i] = (uint8_t)((i * 7 + (i >> 8) + seed * 31) ^ seed);
	}
}

bool net_is_filled(const void *mem, size_t bytes, uint32_t seed)
{
	const uint8_t *p = fake_gpu_alias(mem);

	for (size_t i = 0; i < bytes; i++) {
		if (p[i] != (uint8_t)((i * 7 + (i >> 8) + seed * 31) ^ seed)) {
			return false;
		}
	}
	return true;
}

bool net_is_all(const void *mem, size_t bytes, uint8_t value)
{
	const uint8_t *p = fake_gpu_alias(mem);

	return bytes == 0 ||
	       (p[0] == value && memcmp(p, p + 1, bytes - 1) == 0);
}

int net_try_send(const struct net_buf *buf, size_t bytes, struct fr_req **req)
{
	return fr_net_isend(buf->comm, buf->mem, bytes, 0, buf->mr, req);
}

int net_try_recv(const struct net_buf *buf, size_t bytes, struct fr_req **req)
{
	void *data = buf->mem;
	struct fr_net_mr *mr = buf->mr;
	int tag = 0;

	return fr_net_irecv(buf->comm, 1, &data, &bytes, &tag, &mr, req);
}

struct fr_req *net_isend(const struct net_buf *buf, size_t bytes)
{
	struct fr_req *req = NULL;

	for (unsigned i = 0; req == NULL; i++) {
		ck_assert_uint_lt(i, NET_STEPS);
		ck_assert_int_eq(net_try_send(buf, bytes, &req), 0);
		if (req == NULL) {
			net_pass();
		}
	}
	return req;
}

struct fr_req *net_irecv(const struct net_buf *buf, size_t bytes)
{
	struct fr_req *req = NULL;

	for (unsigned i = 0; req == NULL; i++) {
		ck_assert_uint_lt(i, NET_STEPS);
		ck_assert_int_eq(net_try_recv(buf, bytes, &req), 0);
		if (req == NULL) {
			net_pass();
		}
	}
	return req;
}

int net_wait(struct fr_req *req, size_t *sizes)
{
	bool done = false;
	int ret = 0;

	for (unsigned i = 0; !done && ret == 0; i++) {
		ck_assert_msg(i < NET_STEPS, "a request never ends");
		ret = fr_net_test(req, &done, sizes);
		if (!done && ret == 0) {
			net_pass();
		}
	}
	return ret;
}

void net_assert_pending(struct fr_req *req)
{
	bool done;

	for (unsigned i = 0; i < 20; i++) {
		net_pass();
		ck_assert_int_eq(fr_net_test(req, &done, NULL), 0);
		ck_assert(!done);
	}
}

void net_exchange(const struct net_buf *from, const struct net_buf *to,
		  size_t bytes, uint32_t seed)
{
	struct fr_req *send, *recv;
	size_t got = SIZE_MAX, sent = SIZE_MAX;

	net_fill(from->mem, bytes, seed);
	recv = net_irecv(to, to->bytes);
	send = net_isend(from, bytes);
	ck_assert_int_eq(net_wait(send, &sent), 0);
	ck_assert_int_eq(net_wait(recv, &got), 0);
	ck_assert_uint_eq(sent, bytes);
	ck_assert_uint_eq(got, bytes);
	ck_assert(net_is_filled(to->mem, bytes, seed));
}

void net_assert_works(struct net_pair *pair)
{
	static const size_t sizes[] = {0, 1, 300, 5000, 300000};
	struct net_buf from, to;

	net_buf_open(pair->send, 300000, &from);
	net_buf_open(pair->recv, 300000, &to);
	for (unsigned i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		net_exchange(&from, &to, sizes[i], 3 + i);
	}
	net_buf_close(&to);
	net_buf_close(&from);
}
