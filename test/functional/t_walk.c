/*
 * The k-th call of each kind that the plugin makes into libfabric fails, for
 * each k, once or from there on; so do the completions. One process is both
 * ends and does all that a host program does, from init to finalize, with the
 * host's memory and a GPU's. Whatever failed: each call of the plugin ends, in
 * time, with success or with an error and a line that says why; what is said to
 * have arrived did; all closes; nothing is left, and the next attempt works.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fake/fake_cuda.h"
#include "functional/life.h"
#include "functional/pair.h"
#include "shim/use.h"

#define BYTES (128u << 10)
#define END_MS 15000u
#define PTR_CUDA 2
#define GROUP 2u

static const struct fr_shim_api *shim;
static struct fake_cuda *cuda;

static void set_env(unsigned i, const void *arg)
{
	(void)i;
	(void)arg;
	cuda = fake_cuda_load();
	shim = shim_must_load("gpu");
	pair_log_all();
	setenv("OFI_NCCL_MIN_STRIPE_SIZE", "16K", 1);
}

/* -- what a host program does ----------------------------------------------
 */

/* What one attempt has opened. */
struct attempt {
	void *ctx;
	void *listen;
	void *send;
	void *recv;
	struct pair_buf out; /* mh NULL: not registered */
	struct pair_buf in;
	struct pair_buf gpu;
	const char *at; /* the call that failed */
};

static uint64_t limit_ms;

static bool goes_on(struct pair_member *me, struct attempt *a, const char *at)
{
	(void)me;
	a->at = at;
	PAIR_CHECK(pair_now_ms() < limit_ms, "no end: %s", at);
	return true;
}

static int meet(struct pair_member *me, struct attempt *a, void *handle)
{
	int ret = 0;

	while (ret == 0 && (a->send == NULL || a->recv == NULL)) {
		if (a->send == NULL && goes_on(me, a, "connect")) {
			ret = fr_plugin_connect(me->plugin, a->ctx, 0, handle,
						&a->send);
		}
		if (ret == 0 && a->recv == NULL && goes_on(me, a, "accept")) {
			ret = fr_plugin_accept(me->plugin, a->listen, &a->recv);
		}
	}
	return ret;
}

static int reg(struct pair_member *me, struct attempt *a, void *comm, int type,
	       struct pair_buf *buf)
{
	goes_on(me, a, "regMr");
	buf->comm = comm;
	return fr_plugin_reg_mr(me->plugin, comm, buf->mem, BYTES, type,
				&buf->mh);
}

static int open_all(struct pair_member *me, struct attempt *a)
{
	static _Alignas(16) char handle[FR_PLUGIN_HANDLE_BYTES];
	int ret;

	goes_on(me, a, "init");
	memset(handle, 0, sizeof(handle));
	ret = fr_plugin_init(me->plugin, 1, -1, &a->ctx);
	if (ret == 0 && goes_on(me, a, "listen")) {
		ret = fr_plugin_listen(me->plugin, a->ctx, 0, handle,
				       &a->listen);
	}
	if (ret == 0) {
		ret = meet(me, a, handle);
	}
	if (ret == 0) {
		ret = reg(me, a, a->send, FR_PLUGIN_PTR_HOST, &a->out);
	}
	if (ret == 0) {
		ret = reg(me, a, a->recv, FR_PLUGIN_PTR_HOST, &a->in);
	}
	return ret != 0 ? ret : reg(me, a, a->recv, PTR_CUDA, &a->gpu);
}

/* One call towards the end of @cnt sends, or of one receive of as many. */
struct way {
	void *req;
	bool begun;
	bool done;
	int sizes[GROUP];
};

static int way_test(struct pair_member *me, struct attempt *a, struct way *w)
{
	int done = 0, ret;

	goes_on(me, a, "test");
	ret = fr_plugin_test(me->plugin, w->req, &done, w->sizes);
	w->done = done != 0;
	return ret;
}

static int way_send(struct pair_member *me, struct attempt *a, struct way *w,
		    size_t bytes, int tag)
{
	int ret;

	if (w->begun) {
		return w->done ? 0 : way_test(me, a, w);
	}
	goes_on(me, a, "isend");
	w->req = NULL;
	ret = fr_plugin_isend(me->plugin, a->send, a->out.mem, bytes, tag,
			      a->out.mh, &w->req);
	w->begun = w->req != NULL;
	return ret;
}

static int way_recv(struct pair_member *me, struct attempt *a, struct way *w,
		    struct pair_buf *into, unsigned cnt)
{
	void *data[GROUP], *mhs[GROUP];
	size_t bytes[GROUP];
	int tags[GROUP], ret;

	if (w->begun) {
		return w->done ? 0 : way_test(me, a, w);
	}
	for (unsigned i = 0; i < cnt; i++) {
		data[i] = into->mem + (size_t)i * (BYTES / cnt);
		bytes[i] = BYTES / cnt;
		tags[i] = (int)i;
		mhs[i] = into->mh;
	}
	goes_on(me, a, "irecv");
	w->req = NULL;
	ret = fr_plugin_irecv(me->plugin, a->recv, (int)cnt, data, bytes, tags,
			      mhs, &w->req);
	w->begun = w->req != NULL;
	return ret;
}

struct message {
	size_t bytes;
	unsigned cnt; /* of a group */
	bool gpu;
	bool early; /* the send is done before the receive is posted */
};

static int flush(struct pair_member *me, struct attempt *a, size_t bytes)
{
	void *data = a->gpu.mem;
	int size = (int)bytes, ret;
	struct way w = {.begun = true};

	goes_on(me, a, "iflush");
	ret = fr_plugin_iflush(me->plugin, a->recv, 1, &data, &size, &a->gpu.mh,
			       &w.req);
	while (ret == 0 && w.req != NULL && !w.done) {
		ret = way_test(me, a, &w);
	}
	return ret;
}

static int pass(struct pair_member *me, struct attempt *a,
		const struct message *m, unsigned long seed)
{
	struct pair_buf *into = m->gpu ? &a->gpu : &a->in;
	uint8_t *there = m->gpu ? cuda->alias(into->mem) : into->mem;
	struct way recv = {0}, send[GROUP] = {0};
	bool sent = false;
	int ret = 0;

	pair_fill(a->out.mem, m->bytes, seed);
	memset(there, 0x5a, BYTES);
	while (ret == 0 && (!sent || !recv.done)) {
		if (!m->early || sent) {
			ret = way_recv(me, a, &recv, into, m->cnt);
		}
		sent = true;
		for (unsigned i = 0; ret == 0 && i < m->cnt; i++) {
			ret = way_send(me, a, &send[i], m->bytes, (int)i);
			sent = sent && send[i].done;
		}
	}
	if (ret == 0 && m->gpu) {
		ret = flush(me, a, m->bytes);
	}
	for (unsigned i = 0; ret == 0 && i < m->cnt; i++) {
		PAIR_CHECK(recv.sizes[i] == (int)m->bytes &&
				   pair_is_filled(there + i * (BYTES / m->cnt),
						  m->bytes, seed),
			   "a message of %zu bytes came wrong", m->bytes);
	}
	return ret;
}

static int traffic(struct pair_member *me, struct attempt *a)
{
	static const struct message all[] = {
		{700, 1, false, true},	  {0, 1, false, false},
		{BYTES, 1, false, false}, {900, GROUP, false, false},
		{500, 1, true, true},	  {BYTES, 1, true, false},
	};
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < FR_ARRAY_LEN(all); i++) {
		ret = pass(me, a, &all[i], 40 + i);
	}
	return ret;
}

/* The first error counts. */
static void also(struct attempt *a, int *ret, int err, const char *at)
{
	if (*ret == 0 && err != 0) {
		*ret = err;
		a->at = at;
	}
}

static int close_all(struct pair_member *me, struct attempt *a, int ret)
{
	struct pair_buf *bufs[] = {&a->out, &a->in, &a->gpu};

	for (unsigned i = 0; i < FR_ARRAY_LEN(bufs); i++) {
		if (bufs[i]->mh != NULL) {
			also(a, &ret,
			     fr_plugin_dereg_mr(me->plugin, bufs[i]->comm,
						bufs[i]->mh),
			     "deregMr");
		}
	}
	also(a, &ret, fr_plugin_close_send(me->plugin, a->send), "closeSend");
	also(a, &ret, fr_plugin_close_recv(me->plugin, a->recv), "closeRecv");
	also(a, &ret, fr_plugin_close_listen(me->plugin, a->listen),
	     "closeListen");
	if (a->ctx != NULL) {
		also(a, &ret, fr_plugin_finalize(me->plugin, a->ctx),
		     "finalize");
	}
	return ret;
}

/* Return: 0; the first error of the plugin's. */
static int attempt(struct pair_member *me, const char **at)
{
	static uint8_t host[2][BYTES];
	struct attempt a = {0};
	int ret;

	a.out.mem = host[0];
	a.in.mem = host[1];
	a.gpu.mem = cuda->alloc(BYTES, 0);
	limit_ms = pair_now_ms() + pair_stretch(END_MS);
	ret = open_all(me, &a);
	if (ret == 0) {
		ret = traffic(me, &a);
	}
	ret = close_all(me, &a, ret);
	goes_on(me, &a, a.at);
	cuda->free(a.gpu.mem);
	*at = a.at;
	return ret;
}

/* -- what fails -------------------------------------------------------------
 */

struct walk {
	const char *kind;
	unsigned each;	/* up to here each k, then some */
	unsigned least; /* so many there are */
	/* A second walk: from this k on, in so many calls; NULL: none. */
	unsigned from;
	const char *calls;
	bool fences;	    /* errors of it may end in a fence */
	const char *beside; /* a fault that it needs */
};

/*
 * A connect whose requests cannot be sent at all goes on for 10 s. Messages
 * that are lost on their way in, all of them, nobody can tell from silence. A
 * write that a target sees fail fails at its sender too, which the stand-in
 * cannot bring about, so it is left out.
 */
/* clang-format off */
static const struct walk walks[] = {
	{"open",     100, 40, 0, NULL, false, ""},
	{"setopt",   100,  2, 1, "0",  false, ""},
	{"recv",       2,  5, 1, "0",  false, ""},
	{"send",     100, 10, 4, "0",  true, ""},
	{"write",    100,  5, 1, "0",  true, ""},
	{"fetch",    100,  2, 1, "0",  false, ""},
	{"sent",     100, 10, 1, "0",  true, ""},
	{"written",  100,  5, 1, "0",  true, ""},
	{"fetched",  100,  2, 1, "0",  false, ""},
	{"received",   2,  4, 6, "3",  false, ""},
	{"read",       4,  5, 1, "0",  true, ""},
	{"readerr",  100,  1, 1, "0",  true, "fail=sent:4:5;"},
	{"remove",   100,  1, 1, "0",  false, ""},
	{"close",    100, 20, 0, NULL, false, ""},
};
/* clang-format on */

/* Return: whether there was such a call. */
static bool fail_call(struct pair_member *me, const struct walk *w, unsigned k,
		      const char *calls, unsigned *errors)
{
	unsigned warned = pair_warned();
	const char *at;
	char spec[96];
	bool was;
	int ret;

	(void)snprintf(spec, sizeof(spec), "gpu;%sfail=%s:%u:5:%s", w->beside,
		       w->kind, k, calls);
	PAIR_CHECK(shim->set(spec) == 0, "%s", spec);
	ret = attempt(me, &at);
	was = shim->faults(w->kind) != 0;
	PAIR_CHECK(ret == 0 || was || w->beside[0] != '\0',
		   "%s: an error of its own", spec);
	PAIR_CHECK(ret == 0 || pair_warned() != warned,
		   "%s: %s ended with %s and no word", spec, at,
		   fr_plugin_result_text(ret));
	*errors += ret != 0;
	if (getenv("FR_TEST_VERBOSE") != NULL) {
		pair_say("    %s: %s %s", spec, ret == 0 ? "fine after" : at,
			 fr_plugin_result_text(ret));
	}
	return was;
}

static void walk(struct pair_member *me, const struct walk *w, unsigned from,
		 const char *calls)
{
	bool abandons = strcmp(me->pc->provider, "net") != 0;
	unsigned cnt = 0, errors = 0;
	struct life_held then, now;
	const char *at;

	life_look(&then);
	for (unsigned k = from; fail_call(me, w, k, calls, &errors); cnt++) {
		k += k < w->each ? 1 : k;
	}
	PAIR_CHECK(shim->set("gpu") == 0, "no faults");
	PAIR_CHECK(attempt(me, &at) == 0, "not well after %s: %s", w->kind, at);
	PAIR_CHECK(from != 1 || cnt >= w->least, "%s: only %u calls", w->kind,
		   cnt);
	/* A fence leaves endpoints open where closing them would crash. */
	life_look(&now);
	PAIR_CHECK((abandons && w->fences) ||
			   now.fds <= then.fds + LIFE_HALF_FDS,
		   "%s: descriptors %u -> %u", w->kind, then.fds, now.fds);
	pair_say("    %s, calls %s: %u attempts, %u with an error", w->kind,
		 calls, cnt, errors);
}

/* For the first provider all of it, for others a choice. */
static void run(struct pair_member *me)
{
	bool all = strcmp(me->pc->provider, "net") == 0;

	pair_expect(""); /* what matters is that there is a line */
	PAIR_OK(fr_plugin_finalize(me->plugin, me->ctx));
	for (unsigned i = 0; i < FR_ARRAY_LEN(walks); i++) {
		struct walk w = walks[i];

		pair_at(me, w.kind);
		if (!all && i != 0) {
			w.each = 1;
			w.least = 1;
		}
		walk(me, &w, 1, "1");
		if (all && w.calls != NULL) {
			walk(me, &w, w.from, w.calls);
		}
	}
	PAIR_CHECK(shim->set("gpu") == 0, "no faults");
	PAIR_OK(fr_plugin_init(me->plugin, 1, -1, &me->ctx));
}

static void run_provider(const char *provider, unsigned nth)
{
	struct pair_case pc = {
		.name = "the k-th call fails",
		.provider = provider,
		.rails = 2,
		.members = 1,
		.limit_s = 90,
		.env = set_env,
		.run = run,
	};

	(void)nth;
	pair_run(&pc);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "t_walk", 20);
	pair_each_provider(run_provider);
	return pair_end();
}
