/*
 * Providers for hardware that is not here: each stands in memory, with the
 * demands that the real one has, and both ends of a connection are in one
 * process, with rails of their own. What the provider watches ends the member.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "base/util.h"
#include "functional/life.h"
#include "functional/pair.h"
#include "prov/use.h"

#define BUF_BYTES (3u << 20)
#define MODERN                                                                 \
	(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* What is not said of a row is as its kind has it. */
struct provider {
	const char *text;
	unsigned rails;
	const struct fr_prov *kind;
	struct fr_prov but;
	const char *why; /* it is refused, with these words */
};

static const struct fr_prov verbs = {
	.name = "verbs;ofi_rxm",
	.domains = {"lo"},
	.version = FI_VERSION(1, 17),
	.ip = true,
	.mr_mode = MODERN,
	.mr_key_size = 4,
	.cq_data_size = 4,
	.max_msg_size = 1u << 30,
};
static const struct fr_prov efa = {
	.name = "efa",
	.domains = {"rdmap0s6-rdm", "rdmap1s6-rdm"},
	.version = FI_VERSION(1, 22),
	.mr_mode = MODERN,
	.mr_key_size = 8,
	.cq_data_size = 4,
	.max_msg_size = 1u << 30,
};
/* Offsets, and registrations that belong to an endpoint. */
static const struct fr_prov bound = {
	.name = "verbs;ofi_rxm",
	.domains = {"lo"},
	.version = FI_VERSION(1, 17),
	.ip = true,
	.mr_mode =
		FI_MR_ENDPOINT | FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	.mr_key_size = 8,
	.cq_data_size = 8,
	.max_msg_size = 1u << 30,
};

/* clang-format off */
static const struct provider serves[] = {
	{"verbs", 2, &verbs, {.name = NULL}, NULL},
	{"verbs, busy", 4, &verbs, {.again_percent = 40}, NULL},
	{"verbs, own keys and offsets", 2, &verbs,
	 {.mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED}, NULL},
	{"verbs, messages of 16 KiB", 2, &verbs, {.max_msg_size = 16384}, NULL},
	{"verbs, 8 bytes of data, messages of 16 KiB", 2, &verbs,
	 {.cq_data_size = 8, .max_msg_size = 16384}, NULL},
	{"efa", 2, &efa, {.name = NULL}, NULL},
	{"efa, busy", 4, &efa, {.again_percent = 40}, NULL},
	{"efa, 8 bytes of data", 2, &efa, {.cq_data_size = 8}, NULL},
	{"efa, messages of 8 KiB", 2, &efa, {.max_msg_size = 8192}, NULL},
	{"efa, 8 bytes of data, messages of 8 KiB", 2, &efa,
	 {.cq_data_size = 8, .max_msg_size = 8192, .again_percent = 10}, NULL},
	{"efa of libfabric 2", 1, &efa, {.version = FI_VERSION(2, 1)}, NULL},
	{"bound registrations", 2, &bound, {.name = NULL}, NULL},
	{"bound registrations, busy", 4, &bound, {.again_percent = 40}, NULL},
	{"bound registrations, two endpoints", 2, &bound,
	 {.name = "net"}, NULL},
	{"bound registrations, two endpoints, own keys", 2, &bound,
	 {.name = "net", .mr_mode = FI_MR_ENDPOINT | FI_MR_LOCAL,
	  .again_percent = 20}, NULL},
};
static const struct provider refused[] = {
	{"efa of an old libfabric", 1, &efa, {.version = FI_VERSION(1, 21)},
	 "efa: needs libfabric 1.22 or newer"},
	{"without writes", 1, &efa, {.caps_less = FI_RMA | FI_WRITE},
	 "lacks messages or remote writes"},
	{"2 bytes of remote data", 1, &efa, {.cq_data_size = 2},
	 "without 4 bytes of remote CQ data"},
	{"receives for remote data", 1, &efa, {.mode = FI_RX_CQ_DATA},
	 "demands a mode that is not supported"},
	{"contexts of its own", 1, &verbs, {.mode = FI_CONTEXT2},
	 "demands a mode that is not supported"},
	{"long keys", 1, &verbs, {.mr_key_size = 16},
	 "memory keys longer than 8 bytes"},
	{"raw keys", 1, &verbs, {.mr_mode = MODERN | FI_MR_RAW},
	 "libfabric offers none"},
};
/* clang-format on */

#define OR(_field) (p->but._field != 0 ? p->but._field : p->kind->_field)

static struct fr_prov provider_of(const struct provider *p)
{
	struct fr_prov is = *p->kind;

	is.name = OR(name);
	is.version = OR(version);
	is.caps_less = OR(caps_less);
	is.mode = OR(mode);
	is.mr_mode = OR(mr_mode);
	is.mr_key_size = OR(mr_key_size);
	is.cq_data_size = OR(cq_data_size);
	is.max_msg_size = OR(max_msg_size);
	is.again_percent = OR(again_percent);
	return is;
}

static const struct fr_prov_api *api;
static size_t longest; /* message that the device promises to take */

static void set_env(unsigned i, const void *arg)
{
	struct fr_prov is = provider_of(arg);

	(void)i;
	setenv("OFI_NCCL_ENDPOINT_PER_COMM", "1", 1);
	setenv("OFI_NCCL_MIN_STRIPE_SIZE", "16K", 1);
	api = prov_load(&is);
	PAIR_CHECK(api != NULL, "no provider in memory");
}

static void pass_sizes(struct pair_member *me, const struct pair_buf *out,
		       const struct pair_buf *in)
{
	static const size_t sizes[] = {0,      1,      100,	 8191,
				       8192,   8193,   16384,	 16385,
				       100001, 200000, 1u << 20, BUF_BYTES - 7};

	for (size_t i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		if (sizes[i] <= longest) {
			life_pass(me, out, in, sizes[i], i + 1);
		}
	}
}

/* ---- several under way, alone and in groups ---- */

#define SLOTS 8u
#define SLOT_BYTES (64u << 10)
#define ROUNDS 40u
#define EAGER_MAX 8192u

struct slots {
	void *send[SLOTS], *recv[SLOTS];
	size_t bytes[SLOTS];
	int size[SLOTS];
	unsigned done;
};

static void *slot_of(const struct pair_buf *buf, unsigned i)
{
	return buf->mem + (size_t)SLOT_BYTES * i;
}

static void post_recvs(struct pair_member *me, const struct pair_buf *in,
		       unsigned group, struct slots *s)
{
	for (unsigned i = 0; i < SLOTS; i += group) {
		void *data[SLOTS], *mh[SLOTS];
		size_t bytes[SLOTS];
		int tag[SLOTS];

		for (unsigned j = 0; j < group; j++) {
			data[j] = slot_of(in, i + j);
			bytes[j] = SLOT_BYTES;
			tag[j] = (int)(i + j);
			mh[j] = in->mh;
		}
		do {
			s->recv[i] = NULL;
			PAIR_OK(fr_plugin_irecv(me->plugin, in->comm,
						(int)group, data, bytes, tag,
						mh, &s->recv[i]));
		} while (s->recv[i] == NULL);
	}
}

/* A send meets its receive when this side has heard of it. */
static void step_sends(struct pair_member *me, const struct pair_buf *out,
		       struct slots *s, bool backwards, unsigned *posted)
{
	unsigned i = backwards ? SLOTS - 1 - *posted : *posted;

	if (*posted == SLOTS) {
		return;
	}
	PAIR_OK(fr_plugin_isend(me->plugin, out->comm, slot_of(out, i),
				s->bytes[i], (int)i, out->mh, &s->send[i]));
	*posted += s->send[i] != NULL;
}

static void step_tests(struct pair_member *me, unsigned group, struct slots *s)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		if (s->send[i] != NULL && pair_test(me, s->send[i], NULL)) {
			s->send[i] = NULL;
			s->done++;
		}
		if (s->recv[i] != NULL &&
		    pair_test(me, s->recv[i], &s->size[i])) {
			s->recv[i] = NULL;
			s->done += group;
		}
	}
}

static void pass_round(struct pair_member *me, const struct pair_buf *out,
		       const struct pair_buf *in, unsigned group,
		       uint64_t *dice)
{
	bool ahead = pair_pick(dice, 2) == 0;
	unsigned long seed = (unsigned long)pair_random(dice);
	struct slots s = {.done = 0};
	unsigned posted = 0;

	memset(in->mem, 0, (size_t)SLOT_BYTES * SLOTS);
	for (unsigned i = 0; i < SLOTS; i++) {
		s.bytes[i] = pair_pick(dice, i % 2 == 0 ? 9000 : SLOT_BYTES);
		if (i == 0 && !ahead) {
			s.bytes[i] = EAGER_MAX - pair_pick(dice, 64);
		}
		s.bytes[i] = FR_MIN(s.bytes[i], longest);
		pair_fill(slot_of(out, i), s.bytes[i], i + seed);
	}
	if (ahead) {
		post_recvs(me, in, group, &s);
	} else {
		/* Nobody waits for it: it goes at once if it is short. */
		step_sends(me, out, &s, false, &posted);
		post_recvs(me, in, group, &s);
	}
	while (s.done < 2 * SLOTS) {
		step_sends(me, out, &s, group == SLOTS && ahead, &posted);
		step_tests(me, group, &s);
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		PAIR_CHECK(s.size[i] == (int)s.bytes[i] &&
				   pair_is_filled(slot_of(in, i), s.bytes[i],
						  i + seed),
			   "message %u of %zu bytes came wrong, size %d", i,
			   s.bytes[i], s.size[i]);
	}
}

/* A message goes in as many writes as it takes where the remote data has room
 * for its length; else the device promises no more than one takes. */
static void look_at_limit(struct pair_member *me)
{
	struct fr_prov is = provider_of(me->arg);
	struct fr_plugin_props props;

	PAIR_OK(fr_plugin_props(me->plugin, 0, &props));
	longest = props.max_p2p_bytes;
	PAIR_CHECK(is.cq_data_size == 8 ? longest >= BUF_BYTES
					: longest == is.max_msg_size,
		   "a device for messages of %zu bytes", longest);
}

static void flush(struct pair_member *me, const struct pair_buf *in)
{
	void *data = in->mem, *mh = in->mh, *req = NULL;
	int bytes = 4096;

	PAIR_OK(fr_plugin_iflush(me->plugin, in->comm, 1, &data, &bytes, &mh,
				 &req));
	PAIR_CHECK(req == NULL || pair_test_wait(me, req, 5000, NULL) == 0,
		   "flush");
}

static void check_ways(const struct provider *p)
{
	struct fr_prov is = provider_of(p);

	PAIR_CHECK(pair_logged("closed before every peer") == 0,
		   "words were lost");
	PAIR_CHECK(api->live() == 0, "%u objects are left", api->live());
	PAIR_CHECK(api->longest() <= is.max_msg_size, "too long");
	PAIR_CHECK(api->rails_used() >= p->rails, "%u rails of %u wrote",
		   api->rails_used(), p->rails);
	PAIR_CHECK(api->overtaken() > 0, "no write overtook another one");
	PAIR_CHECK(api->keys() >= p->rails, "%u keys were used", api->keys());
	PAIR_CHECK((api->refused() > 0) == (is.again_percent != 0),
		   "%u posts were refused", api->refused());
}

static void run_serves(struct pair_member *me)
{
	struct pair_buf out, in;
	uint64_t dice = 77;
	void *send, *recv;

	pair_open(me);
	look_at_limit(me);
	pair_at(me, "connecting");
	life_join_self(me, &send, &recv);
	pair_buf_open(me, send, BUF_BYTES, &out);
	pair_buf_open(me, recv, BUF_BYTES, &in);
	pair_at(me, "passing one at a time");
	pass_sizes(me, &out, &in);
	for (unsigned i = 0; i < ROUNDS; i++) {
		static const unsigned groups[] = {1, 2, SLOTS};

		pair_at(me, "passing several");
		pass_round(me, &out, &in, groups[i % 3], &dice);
	}
	flush(me, &in);
	pair_at(me, "closing");
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	life_close_send(me, send);
	life_close_recv(me, recv);
	pair_close(me);
	check_ways(me->arg);
}

static void run_refused(struct pair_member *me)
{
	const struct provider *p = me->arg;
	const char *path = getenv("FR_PLUGIN");
	void *ctx;

	pair_keep();
	PAIR_CHECK(fr_plugin_open(path, 0, pair_logger, &me->plugin) == 0,
		   "open");
	pair_expect("");
	PAIR_CHECK(fr_plugin_init(me->plugin, 1, -1, &ctx) != 0, "%s is taken",
		   p->text);
	PAIR_CHECK(pair_logged(p->why) > 0, "no line says: %s", p->why);
	fr_plugin_close(me->plugin);
	PAIR_CHECK(api->live() == 0, "%u objects are left", api->live());
}

static void run_all(const struct provider *p, size_t cnt,
		    void (*run)(struct pair_member *me))
{
	for (size_t i = 0; i < cnt; i++) {
		struct pair_case pc = {
			.name = p[i].text,
			.provider = provider_of(&p[i]).name,
			.rails = p[i].rails,
			.members = 1,
			.limit_s = 20,
			.run = run,
			.env = set_env,
			.arg = &p[i],
			.plugin_late = true,
		};

		pair_run(&pc);
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "providers for hardware, in memory", 15);
	run_all(serves, FR_ARRAY_LEN(serves), run_serves);
	run_all(refused, FR_ARRAY_LEN(refused), run_refused);
	return pair_end();
}
