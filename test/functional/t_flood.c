/*
 * What goes wrong again and again is said a few times, and how often it was not
 * said: a host that asks on behind an error, or makes the same mistake in each
 * call, does not fill its log. The first line tells what is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/life.h"
#include "shim/use.h"

#define COMMS 8u
#define BYTES (64u << 10)
#define ASK_MS 1500u
#define CALLS 3000u
#define FEW 11u /* ten, and one that tells of the others */
#define INITS 4u

static const struct fr_shim_api *shim;

static void set_shim(unsigned i, const void *arg)
{
	(void)i;
	(void)arg;
	shim = shim_must_load(NULL);
}

static void few(const char *part, unsigned before, unsigned most)
{
	unsigned lines = pair_logged(part) - before;

	PAIR_CHECK(lines <= most, "%u lines with \"%s\"", lines, part);
}

/* ---- errors that last ---- */

struct wire {
	struct pair_buf buf;
	void *req;
};

/* Everything a host can ask of a comm. Return: a call had an error. */
static bool ask(struct pair_member *me, struct wire *wire, size_t bytes)
{
	int done = 0, ret;

	if (wire->req == NULL) {
		return pair_isend(me, &wire->buf, bytes, &wire->req) != 0;
	}
	ret = fr_plugin_test(me->plugin, wire->req, &done, NULL);
	if (ret != 0 || done != 0) {
		wire->req = NULL;
	}
	return ret != 0;
}

/* Return: how many calls had an error. */
static unsigned long ask_on(struct pair_member *me, struct wire *wire,
			    unsigned cnt)
{
	uint64_t until = pair_now_ms() + ASK_MS;
	unsigned long errors = 0;

	while (pair_now_ms() < until || errors == 0) {
		for (unsigned c = 0; c < cnt; c++) {
			errors += ask(me, &wire[c], c % 2 == 0 ? BYTES : 100);
		}
	}
	return errors;
}

static void run_killed(struct pair_member *me)
{
	struct wire wire[COMMS];
	unsigned long errors;
	unsigned before;

	memset(wire, 0, sizeof(wire));
	for (unsigned c = 0; c < COMMS; c++) {
		void *comm = me->index == 0 ? pair_connect(me, 1)
					    : pair_accept(me, 0);

		pair_buf_open(me, comm, BYTES, &wire[c].buf);
		if (me->index == 1 && c % 2 == 0) {
			(void)pair_irecv_wait(me, &wire[c].buf, BYTES);
		}
	}
	pair_meet(me, 1 - me->index);
	if (me->index == 1) {
		pair_die();
	}
	pair_at(me, "asking on");
	before = pair_logged("NET/fabrail");
	pair_expect("is lost: ");
	pair_expect("endpoints fenced");
	errors = ask_on(me, wire, COMMS);
	PAIR_CHECK(errors > 100, "only %lu errors", errors);
	PAIR_CHECK(pair_logged("127.0.0.1") > 0, "no line names the peer");
	few("is lost: ", 0, 1);
	few("NET/fabrail", before, FEW);
	for (unsigned c = 0; c < COMMS; c++) {
		void *comm = wire[c].buf.comm;

		pair_buf_close(me, &wire[c].buf);
		PAIR_OK(fr_plugin_close_send(me->plugin, comm));
	}
}

static void run_refused(struct pair_member *me)
{
	const char *spec = me->arg;
	struct wire wire = {.req = NULL};
	struct pair_buf in;
	void *send, *recv;
	unsigned long errors;
	unsigned before;

	life_join_self(me, &send, &recv);
	pair_buf_open(me, send, BYTES, &wire.buf);
	pair_buf_open(me, recv, BYTES, &in);
	life_pass(me, &wire.buf, &in, BYTES, 1);
	(void)pair_irecv_wait(me, &in, BYTES);
	pair_expect("is lost: ");
	pair_expect("cannot post a ");
	pair_expect("cannot read its completion queue");
	pair_expect("endpoints fenced");
	before = pair_logged("NET/fabrail");
	PAIR_CHECK(shim->set(spec) == 0, "%s", spec);
	errors = ask_on(me, &wire, 1);
	PAIR_CHECK(errors > 100, "only %lu errors", errors);
	PAIR_CHECK(pair_logged("rail 0 ") > 0 &&
			   pair_logged("Input/output error") > 0,
		   "no line names the rail and the error");
	few("NET/fabrail", before, FEW);
	PAIR_CHECK(shim->set(NULL) == 0, "no faults");
	pair_buf_close(me, &wire.buf);
	pair_buf_close(me, &in);
	PAIR_OK(fr_plugin_close_send(me->plugin, send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, recv));
	life_use(me, 5);
}

/* ---- mistakes of the host ---- */

struct mistake {
	const char *line;
	int (*call)(struct pair_member *me, void *send);
};

static int send_of_nothing(struct pair_member *me, void *send)
{
	void *req;

	(void)send;
	return fr_plugin_isend(me->plugin, NULL, me, 8, 0, NULL, &req);
}

static int test_of_nothing(struct pair_member *me, void *send)
{
	int done;

	(void)send;
	return fr_plugin_test(me->plugin, NULL, &done, NULL);
}

static int unknown_memory(struct pair_member *me, void *send)
{
	void *mh;

	return fr_plugin_reg_mr(me->plugin, send, me, sizeof(*me), 99, &mh);
}

static int unknown_registration(struct pair_member *me, void *send)
{
	return fr_plugin_dereg_mr(me->plugin, send, &me->cnt);
}

static int unknown_handle(struct pair_member *me, void *send)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {7};

	(void)send;
	return fr_plugin_connect(me->plugin, me->ctx, 0, handle, &send);
}

static int memory_that_is_refused(struct pair_member *me, void *send)
{
	static uint8_t mem[64];
	void *mh;

	return fr_plugin_reg_mr(me->plugin, send, mem, sizeof(mem),
				FR_PLUGIN_PTR_HOST, &mh);
}

static const struct mistake mistakes[] = {
	{"isend: called with no comm", send_of_nothing},
	{"test: called with no comm or request", test_of_nothing},
	{"regMr: memory of type 0x63", unknown_memory},
	{"deregMr: ", unknown_registration},
	{"connect: not a handle of ours", unknown_handle},
	{"cannot register ", memory_that_is_refused},
};

static void run_mistakes(struct pair_member *me)
{
	void *send, *recv;

	life_join_self(me, &send, &recv);
	pair_expect("out of memory");
	PAIR_CHECK(shim->set("fail=reg:1:12:0") == 0, "reg");
	for (size_t i = 0; i < FR_ARRAY_LEN(mistakes); i++) {
		const struct mistake *m = &mistakes[i];

		pair_at(me, m->line);
		pair_expect(m->line);
		for (unsigned k = 0; k < CALLS; k++) {
			PAIR_CHECK(m->call(me, send) != 0, "%s: no error",
				   m->line);
		}
		PAIR_CHECK(pair_logged(m->line) > 0, "%s: no line", m->line);
		few(m->line, 0, FEW);
	}
	PAIR_CHECK(shim->set(NULL) == 0, "no faults");
	PAIR_OK(fr_plugin_close_send(me->plugin, send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, recv));
}

/* ---- a wrong environment, in many processes at once ---- */

static void set_wrong(unsigned i, const void *arg)
{
	(void)i;
	(void)arg;
	setenv("OFI_NCCL_CQ_SIZE", "plenty", 1);
}

static void run_wrong(struct pair_member *me)
{
	pair_expect("OFI_NCCL_CQ_SIZE");
	pair_keep();
	PAIR_CHECK(fr_plugin_open(getenv("FR_PLUGIN"), 0, pair_logger,
				  &me->plugin) == 0,
		   "open");
	for (unsigned i = 1; i <= INITS; i++) {
		PAIR_CHECK(fr_plugin_init(me->plugin, 1, -1, &me->ctx) != 0,
			   "init with a wrong variable");
		PAIR_CHECK(pair_logged("plenty") == i &&
				   pair_logged("NET/fabrail") == i,
			   "%u lines, %u with the value, of %u inits",
			   pair_logged("NET/fabrail"), pair_logged("plenty"),
			   i);
	}
	fr_plugin_close(me->plugin);
}

static void run_case(const char *provider, unsigned members, const char *name,
		     void (*run)(struct pair_member *me), const char *spec)
{
	struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = 1,
		.members = members,
		.limit_s = 30,
		.run = run,
		.env = members == 1 ? set_shim : NULL,
		.arg = spec,
		.killed = members == 2 ? 1u << 1 : 0,
	};

	if (members > 2) {
		pc.env = set_wrong;
		pc.plugin_late = true;
	}
	pair_run(&pc);
}

static void run_provider(const char *provider, unsigned nth)
{
	run_case(provider, 2, "the peer was killed", run_killed, NULL);
	run_case(provider, 1, "no write is taken", run_refused,
		 "fail=write:1:5:0");
	run_case(provider, 1, "every write ends in an error", run_refused,
		 "fail=written:1:5:0");
	run_case(provider, 1, "no queue can be read", run_refused,
		 "fail=read:1:5:0");
	if (nth == 0) {
		run_case(provider, 1, "mistakes of the host", run_mistakes,
			 NULL);
		run_case(provider, PAIR_MAX, "a wrong variable", run_wrong,
			 NULL);
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "what is said again and again", 25);
	pair_each_provider(run_provider);
	return pair_end();
}
