/*
 * Every table of the plugin, as its hosts use it: connections, messages of all
 * sizes, an end. Hosts of different tables understand each other. Those of the
 * oldest one wait inside of connect and accept, in whatever order their ranks
 * come to them; the classes of the newest ones go their own ways.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "functional/life.h"

#define BYTES (1u << 20)
#define CANARY 0xa5
#define SHORT_HANDLE 64u
#define LATE_US 300000u
#define LOADS 5

static const size_t sizes[] = {0, 1, 64, 4096, 0, 131072, BYTES, 8};

/* Both ways at once, the n-th message in each. */
static void exchange_one(struct pair_member *me, const struct pair_buf *out,
			 const struct pair_buf *in, size_t bytes,
			 unsigned long n)
{
	int sent = 0, got = 0, out_size = -1, in_size = -1;
	void *recv, *send;

	pair_fill(out->mem, bytes, n);
	memset(in->mem, 0, bytes);
	recv = pair_irecv_wait(me, in, BYTES);
	send = pair_isend_wait(me, out, bytes);
	while (!sent || !got) {
		PAIR_CHECK(sent || fr_plugin_test(me->plugin, send, &sent,
						  &out_size) == 0,
			   "test of a send");
		PAIR_CHECK(got || fr_plugin_test(me->plugin, recv, &got,
						 &in_size) == 0,
			   "test of a receive");
	}
	PAIR_CHECK(out_size == (int)bytes && in_size == (int)bytes,
		   "%zu bytes are said to be %d sent, %d received", bytes,
		   out_size, in_size);
	PAIR_CHECK(pair_is_filled(in->mem, bytes, n), "%zu bytes came wrong",
		   bytes);
}

static void exchange(struct pair_member *me, void *send, void *recv)
{
	struct pair_buf out, in;

	pair_at(me, "exchanging");
	pair_buf_open(me, send, BYTES, &out);
	pair_buf_open(me, recv, BYTES, &in);
	for (size_t i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		exchange_one(me, &out, &in, sizes[i], i);
	}
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
}

static void hang_up(struct pair_member *me, void *send, void *recv)
{
	pair_at(me, "closing");
	PAIR_CHECK(fr_plugin_close_send(me->plugin, send) == 0, "closeSend");
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, recv) == 0, "closeRecv");
}

static void check_props(struct pair_member *me)
{
	unsigned abi = fr_plugin_abi(me->plugin);
	struct fr_plugin_props props;
	int cnt = 0;

	PAIR_CHECK(fr_plugin_devices(me->plugin, &cnt) == 0 && cnt == 1,
		   "%d devices", cnt);
	PAIR_CHECK(fr_plugin_props(me->plugin, 0, &props) == 0, "properties");
	PAIR_CHECK(strcmp(props.name, "fabrail0") == 0, "name %s", props.name);
	PAIR_CHECK(props.max_recvs == (abi >= 9 ? 8 : 1),
		   "v%u has %d receives a call", abi, props.max_recvs);
	PAIR_CHECK((props.ptr_support & FR_PLUGIN_PTR_HOST) != 0 &&
			   props.speed_mbps > 0 && props.max_comms > 0 &&
			   props.max_p2p_bytes > 0,
		   "v%u: properties that no host can use", abi);
	PAIR_CHECK(pair_logged("initialised through net interface v") != 0,
		   "no line names the table");
}

static void run_table(struct pair_member *me)
{
	void *send, *recv;

	check_props(me);
	pair_at(me, "connecting");
	pair_join(me, 1 - me->index, &send, &recv);
	exchange(me, send, recv);
	hang_up(me, send, recv);
}

/* -- the oldest table ------------------------------------------------------ */

/* What a host of v4 has: 64 bytes, and something else right behind. */
struct short_handle {
	_Alignas(8) uint8_t bytes[SHORT_HANDLE];
	uint8_t behind[FR_PLUGIN_HANDLE_BYTES - SHORT_HANDLE];
};

static void short_init(struct short_handle *handle)
{
	memset(handle, CANARY, sizeof(*handle));
}

static void short_check(const struct short_handle *handle)
{
	for (size_t i = 0; i < sizeof(handle->behind); i++) {
		PAIR_CHECK(handle->behind[i] == CANARY,
			   "byte %zu, behind the handle, was written",
			   SHORT_HANDLE + i);
	}
}

static void *short_listen(struct pair_member *me, unsigned to)
{
	struct short_handle handle;
	void *listen;

	short_init(&handle);
	listen = pair_listen(me, &handle);
	short_check(&handle);
	pair_put(me, to, handle.bytes, sizeof(handle.bytes));
	return listen;
}

/* One call each: NULL would be a comm to this host. */
static void *short_connect(struct pair_member *me, unsigned from)
{
	struct short_handle handle;
	void *comm = NULL;
	int ret;

	short_init(&handle);
	pair_get(me, from, handle.bytes, sizeof(handle.bytes));
	pair_at(me, "in a connect that waits");
	ret = fr_plugin_connect(me->plugin, me->ctx, 0, &handle, &comm);
	PAIR_CHECK(ret == 0 && comm != NULL, "connect: %s, comm %p",
		   fr_plugin_result_text(ret), comm);
	short_check(&handle);
	return comm;
}

static void *one_accept(struct pair_member *me, void *listen)
{
	void *comm = NULL;
	int ret;

	pair_at(me, "in an accept that waits");
	ret = fr_plugin_accept(me->plugin, listen, &comm);
	PAIR_CHECK(ret == 0 && comm != NULL, "accept: %s, comm %p",
		   fr_plugin_result_text(ret), comm);
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
	return comm;
}

/* Each connects to the next before it accepts the one before, as the ranks of
 * a ring do: no connect may need an accept. */
static void run_ring(struct pair_member *me)
{
	unsigned next = (me->index + 1) % me->cnt;
	unsigned last = (me->index + me->cnt - 1) % me->cnt;
	void *listen = short_listen(me, last);
	void *send = short_connect(me, next);
	void *recv = one_accept(me, listen);

	exchange(me, send, recv);
	hang_up(me, send, recv);
}

/* The connect begins while the listener's host is elsewhere, and the accept
 * before anybody connects. */
static void run_late(struct pair_member *me)
{
	unsigned other = 1 - me->index;
	void *send, *recv, *listen;

	if (me->index == 0) {
		send = short_connect(me, other);
		listen = short_listen(me, other);
		recv = one_accept(me, listen);
	} else {
		listen = short_listen(me, other);
		pair_nap_us(LATE_US);
		recv = one_accept(me, listen);
		pair_nap_us(LATE_US);
		send = short_connect(me, other);
	}
	exchange(me, send, recv);
	hang_up(me, send, recv);
}

/* A listener of another table answers when its host calls accept, so the
 * connect has to wait for that. */
static void run_old_to_new(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *send, *recv, *listen;

	if (me->index == 0) {
		pair_get(me, 1, handle, sizeof(handle));
		pair_at(me, "in a connect that waits");
		PAIR_CHECK(fr_plugin_connect(me->plugin, me->ctx, 0, handle,
					     &send) == 0 &&
				   send != NULL,
			   "connect to a later accept");
		listen = short_listen(me, 1);
		recv = one_accept(me, listen);
	} else {
		listen = pair_listen(me, handle);
		pair_put(me, 0, handle, sizeof(handle));
		pair_nap_us(LATE_US);
		recv = pair_accept_wait(me, listen);
		PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
			   "closeListen");
		memset(handle, 0, sizeof(handle));
		pair_get(me, 0, handle, SHORT_HANDLE);
		send = pair_connect_wait(me, handle);
	}
	exchange(me, send, recv);
	hang_up(me, send, recv);
}

static void env_limit(unsigned i, const void *arg)
{
	(void)i;
	(void)arg;
	setenv("OFI_NCCL_CONNECT_TIMEOUT", "300ms", 1);
}

/* Nobody comes: neither call may keep its host for ever, and a comm is never
 * NULL with success. Member 1, of another table, only listens. */
static void run_in_vain(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen, *comm = handle;
	int ret;

	if (me->index == 1) {
		pair_expect("no answer within OFI_NCCL_CONNECT_TIMEOUT");
		listen = pair_listen(me, handle);
		pair_put(me, 0, handle, sizeof(handle));
		pair_hear(me, 0);
		PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
			   "closeListen");
		return;
	}
	pair_expect("OFI_NCCL_CONNECT_TIMEOUT");
	listen = pair_listen(me, handle);
	pair_at(me, "in an accept of nobody");
	ret = fr_plugin_accept(me->plugin, listen, &comm);
	PAIR_CHECK(ret == FR_PLUGIN_SYSTEM_ERROR && comm == NULL,
		   "accept of nobody: %s", fr_plugin_result_text(ret));
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
	pair_get(me, 1, handle, sizeof(handle));
	comm = handle;
	pair_at(me, "in a connect to nobody");
	ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle, &comm);
	PAIR_CHECK(ret == FR_PLUGIN_SYSTEM_ERROR && comm == NULL,
		   "connect to nobody: %s", fr_plugin_result_text(ret));
	pair_tell(me, 1);
}

/* Whoever listened is dead: its kernel says so, and no time-out is set. */
static void run_to_the_dead(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *comm = handle;
	int ret;

	if (me->index == 1) {
		pair_listen(me, handle);
		pair_put(me, 0, handle, sizeof(handle));
		pair_die();
	}
	pair_get(me, 1, handle, sizeof(handle));
	pair_expect("is gone");
	pair_at(me, "in a connect to the dead");
	ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle, &comm);
	PAIR_CHECK(ret == FR_PLUGIN_SYSTEM_ERROR && comm == NULL,
		   "connect to the dead: %s", fr_plugin_result_text(ret));
}

/* -- traffic classes ------------------------------------------------------- */

#define CLASSES 4u

struct classed {
	void *ctx;
	void *send;
	void *recv;
};

static void classed_open(struct pair_member *me, int tclass,
			 struct classed *comm)
{
	int ret = fr_plugin_init(me->plugin, 1, tclass, &comm->ctx);

	PAIR_CHECK(ret == 0, "init: %s", fr_plugin_result_text(ret));
	me->ctx = comm->ctx;
	pair_join(me, 1 - me->index, &comm->send, &comm->recv);
}

/* Communicators of several classes at once, one of which cannot be. */
static void run_classes(struct pair_member *me)
{
	static const int classes[CLASSES] = {96, 0, 1000, INT_MIN};
	struct classed comm[CLASSES];
	void *first = me->ctx;

	pair_expect("traffic class 1000 is not between 0 and 255");
	pair_expect("does not open with traffic class");
	for (unsigned i = 0; i < CLASSES; i++) {
		classed_open(me, classes[i], &comm[i]);
	}
	for (unsigned i = 0; i < CLASSES; i++) {
		exchange(me, comm[i].send, comm[i].recv);
	}
	PAIR_CHECK(pair_logged("is not between") == 1,
		   "a class that cannot be is warned of %u times",
		   pair_logged("is not between"));
	for (unsigned i = 0; i < CLASSES; i++) {
		hang_up(me, comm[i].send, comm[i].recv);
		PAIR_CHECK(fr_plugin_finalize(me->plugin, comm[i].ctx) == 0,
			   "finalize");
		for (unsigned j = i + 1; j < CLASSES; j++) {
			exchange(me, comm[j].send, comm[j].recv);
		}
	}
	me->ctx = first;
}

/* -- from the first init to the last finalize, or the unload --------------- */

/* Communicators come and go; the environment counts from the first one's init
 * to the last one's finalize, and then anew. */
static void run_contexts(struct pair_member *me)
{
	void *ctx[3];
	int ret;

	PAIR_CHECK(pair_logged("3 rails") == 0, "3 rails at first");
	ctx[0] = me->ctx;
	setenv("OFI_NCCL_FORCE_NUM_RAILS", "3", 1);
	for (unsigned i = 0; i < FR_ARRAY_LEN(ctx); i++) {
		ret = i == 0 ? 0 : fr_plugin_init(me->plugin, i, -1, &ctx[i]);
		PAIR_CHECK(ret == 0, "init: %s", fr_plugin_result_text(ret));
		me->ctx = ctx[i];
		life_use(me, i);
	}
	PAIR_CHECK(pair_logged("3 rails") == 0,
		   "the environment was read while a communicator lives");
	for (unsigned i = 0; i < FR_ARRAY_LEN(ctx); i++) {
		ret = fr_plugin_finalize(me->plugin, ctx[i]);
		PAIR_CHECK(ret == 0, "finalize: %s",
			   fr_plugin_result_text(ret));
	}
	ret = fr_plugin_init(me->plugin, 4, -1, &me->ctx);
	PAIR_CHECK(ret == 0, "init: %s", fr_plugin_result_text(ret));
	PAIR_CHECK(pair_logged("3 rails") != 0, "the environment is not read");
	life_use(me, 4);
}

/* A host of an old table never says that it is done: it unloads. Its next init
 * reads the environment anew. */
static void run_loads(struct pair_member *me)
{
	static const char *const rails[LOADS] = {"1", "2", "3", "1", "4"};
	struct life_held before, after;
	char said[16];

	for (unsigned i = 0; i < LOADS; i++) {
		setenv("OFI_NCCL_FORCE_NUM_RAILS", rails[i], 1);
		(void)snprintf(said, sizeof(said), ": %s rails", rails[i]);
		pair_open(me);
		PAIR_CHECK(pair_logged(said) != 0, "%s rails were asked for",
			   rails[i]);
		life_use(me, i);
		pair_close(me);
		life_look(i == 0 ? &before : &after);
	}
	PAIR_CHECK(after.fds <= before.fds && after.threads <= before.threads,
		   "%u descriptors and %u threads became %u and %u", before.fds,
		   before.threads, after.fds, after.threads);
}

/* -- cases ----------------------------------------------------------------- */

struct row {
	const char *name;
	void (*run)(struct pair_member *me);
	unsigned abi, odd_abi;
	unsigned members;
	void (*env)(unsigned i, const void *arg);
	uint32_t killed;
	bool unloads;
};

static const struct row rows[] = {
	{"v4", run_table, 4, 0, 2, NULL, 0, false},
	{"v5", run_table, 5, 0, 2, NULL, 0, false},
	{"v6", run_table, 6, 0, 2, NULL, 0, false},
	{"v7", run_table, 7, 0, 2, NULL, 0, false},
	{"v8", run_table, 8, 0, 2, NULL, 0, false},
	{"v9", run_table, 9, 0, 2, NULL, 0, false},
	{"v10", run_table, 10, 0, 2, NULL, 0, false},
	{"v11", run_table, 11, 0, 2, NULL, 0, false},
	{"v12", run_table, 12, 0, 2, NULL, 0, false},
	{"v6 and v12", run_table, 6, 12, 2, NULL, 0, false},
	{"v11 and v5", run_table, 11, 5, 2, NULL, 0, false},
	{"v4 in a ring", run_ring, 4, 0, 3, NULL, 0, false},
	{"v4, one of them late", run_late, 4, 0, 2, NULL, 0, false},
	{"v4 and v12, one of them late", run_old_to_new, 4, 12, 2, NULL, 0,
	 false},
	{"v4, nobody comes", run_in_vain, 4, 6, 2, env_limit, 0, false},
	{"v4 to a dead v7", run_to_the_dead, 4, 7, 2, NULL, 2, false},
	{"classes of v11", run_classes, 11, 0, 2, NULL, 0, false},
	{"contexts of v11", run_contexts, 11, 0, 1, NULL, 0, false},
	{"v4, loaded again", run_loads, 4, 0, 1, NULL, 0, true},
	{"v6, loaded again", run_loads, 6, 0, 1, NULL, 0, true},
	{"classes of v12", run_classes, 12, 0, 2, NULL, 0, false},
};

/* The thread sanitizer ends a process that unloads a library named in its
 * suppressions. */
static bool cannot_unload(void)
{
	const char *name = getenv("FR_SANITIZER");

	return name != NULL && strcmp(name, "tsan") == 0;
}

static void run_row(const struct row *row, const char *provider, unsigned rails)
{
	const struct pair_case pc = {
		.name = row->name,
		.provider = provider,
		.rails = rails,
		.members = row->members,
		.limit_s = 40,
		.killed = row->killed,
		.run = row->run,
		.plugin_late = row->unloads,
		.unloads = row->unloads,
		.env = row->env,
		.abi = row->abi,
		.odd_abi = row->odd_abi,
	};

	if (row->unloads && cannot_unload()) {
		pair_say("  %s: left out, nothing can be unloaded", row->name);
		return;
	}
	pair_run(&pc);
}

int main(int argc, char **argv)
{
	const char *net, *rxm;

	pair_main(argc, argv, "t_tables", 30);
	net = pair_provider("net");
	rxm = pair_provider("tcp;ofi_rxm");
	for (size_t i = 0; i < FR_ARRAY_LEN(rows); i++) {
		if (net != NULL) {
			run_row(&rows[i], net, 2);
		}
		if (rxm != NULL && (net == NULL || i >= 11 || i == 0)) {
			run_row(&rows[i], rxm, 1);
		}
	}
	return pair_end();
}
