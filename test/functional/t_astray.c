/*
 * Writes that must not land. A receiver announces a receive with a wrong
 * address, length or key; or it gives its memory back and to another comm while
 * the peer writes to it, or before the peer begins. No byte goes where it
 * should not, the requests of both ends end in an error, in time, and all go on
 * with other connections.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/life.h"
#include "shim/use.h"

#define LONG (1u << 20)
#define CANARY 0x5a
#define ERROR_MS 10000u

/* What is done to its CTS, by offsets of wire.md: 24 bytes of header, 24 before
 * the first entry, of which the address is 8 behind its start. */
static const struct wrong {
	const char *name;
	const char *spoil;
	size_t bytes; /* of the send */
} wrongs[] = {
	{"an address behind the receive", "spoil=0xc1:56:1048576", LONG},
	{"an address in its middle", "spoil=0xc1:56:524288", LONG},
	{"an address one byte on", "spoil=0xc1:56:1", LONG},
	{"an address before it", "spoil=0xc1:56:18446744073709486080", LONG},
	{"a length twice as long", "spoil=0xc1:64:1048576", 2 * LONG},
	{"another key", "spoil=0xc1:72:1", LONG},
	{"a key of other bits", "spoil=0xc1:72:0x10000000000", LONG},
};

static const struct fr_shim_api *shim;

static void set_env(unsigned i, const void *arg)
{
	(void)i;
	(void)arg;
	/* Another rail would have the right key, and carry it all. */
	setenv("OFI_NCCL_FAILOVER", "0", 1);
	shim = shim_must_load(NULL);
}

/* Room, a receive, and room. */
static uint8_t *room_open(void)
{
	uint8_t *room = mmap(NULL, 3 * LONG, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	PAIR_CHECK(room != MAP_FAILED, "mmap");
	memset(room, CANARY, 3 * LONG);
	return room;
}

static struct pair_buf reg(struct pair_member *me, void *comm, uint8_t *mem,
			   size_t bytes)
{
	struct pair_buf buf = {.mem = mem, .bytes = bytes, .comm = comm};

	PAIR_OK(fr_plugin_reg_mr(me->plugin, comm, mem, bytes,
				 FR_PLUGIN_PTR_HOST, &buf.mh));
	return buf;
}

/* Return: what began or ended the request. */
static int ends_with(struct pair_member *me, const struct pair_buf *buf,
		     size_t bytes, void *req)
{
	uint64_t began = pair_now_ms();
	int ret = 0;

	while (ret == 0 && req == NULL) {
		PAIR_CHECK(pair_now_ms() - began < pair_stretch(ERROR_MS),
			   "the send is not taken");
		ret = pair_isend(me, buf, bytes, &req);
	}
	return ret != 0 ? ret : pair_test_wait(me, req, ERROR_MS, NULL);
}

static void check_error(struct pair_member *me, const struct pair_buf *buf,
			int ret)
{
	void *req;

	PAIR_CHECK(ret == PAIR_REMOTE, "the request ended with %d", ret);
	ret = me->index == 0 ? pair_isend(me, buf, LONG, &req)
			     : pair_irecv(me, buf, LONG, &req);
	PAIR_CHECK(ret == PAIR_REMOTE, "the next one begins with %d", ret);
}

static void send_astray(struct pair_member *me, const struct wrong *wrong)
{
	uint8_t *room = room_open();
	struct pair_buf buf = reg(me, pair_connect(me, 1), room, 2 * LONG);
	uint64_t began;

	pair_send(me, &buf, LONG);
	pair_fill(room, 2 * LONG, 2);
	pair_hear(me, 1);
	pair_at(me, wrong->name);
	began = pair_now_ms();
	check_error(me, &buf, ends_with(me, &buf, wrong->bytes, NULL));
	pair_say("    %s: error after %llu ms", wrong->name,
		 (unsigned long long)(pair_now_ms() - began));
	pair_meet(me, 1);
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, buf.comm, buf.mh));
	PAIR_OK(fr_plugin_close_send(me->plugin, buf.comm));
	munmap(room, 3 * LONG);
}

static void recv_astray(struct pair_member *me, const struct wrong *wrong)
{
	uint8_t *room = room_open();
	struct pair_buf buf = reg(me, pair_accept(me, 0), room + LONG, LONG);
	void *req;

	pair_recv(me, &buf, LONG);
	PAIR_CHECK(shim->set(wrong->spoil) == 0, "%s", wrong->spoil);
	req = pair_irecv_wait(me, &buf, LONG);
	pair_tell(me, 0);
	pair_at(me, wrong->name);
	check_error(me, &buf, ends_with(me, &buf, LONG, req));
	PAIR_CHECK(shim->set(NULL) == 0, "no more of it");
	pair_meet(me, 0);
	PAIR_CHECK(pair_is_all(room, LONG, CANARY) &&
			   pair_is_all(room + 2 * LONG, LONG, CANARY),
		   "%s: bytes went to other memory", wrong->name);
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, buf.comm, buf.mh));
	PAIR_OK(fr_plugin_close_recv(me->plugin, buf.comm));
	munmap(room, 3 * LONG);
}

static void expect(void)
{
	pair_expect("is lost");
	pair_expect("fenced");
	/* Last words to endpoints that are gone, whose port others have. */
	pair_expect("cannot post a message");
	pair_expect("for another process");
}

static void run_wrong(struct pair_member *me)
{
	expect();
	pair_expect("wrong grant"); /* it is told from the key */
	for (size_t i = 0; i < FR_ARRAY_LEN(wrongs); i++) {
		if (me->index == 0) {
			send_astray(me, &wrongs[i]);
		} else {
			recv_astray(me, &wrongs[i]);
		}
	}
	pair_at(me, "a connection at the end");
	life_use(me, 3);
}

/* ---- memory that another comm has by now ---- */

#define LATE 4u
#define SENDER 0u /* the one that is late */
#define OWNER 1u
#define OTHER 2u
#define SEED 9

struct plan {
	const char *name;
	bool held; /* no write begins before the memory is another comm's */
};

static const struct plan plans[] = {
	{"writes under way to memory that another comm gets", false},
	{"writes that begin when another comm has the memory", true},
};

static void set_env_late(unsigned i, const void *arg)
{
	const struct plan *plan = arg;

	set_env(i, NULL);
	if (i == SENDER && plan->held) {
		setenv("OFI_NCCL_KEEPER", "0", 1); /* it hears of nothing */
	}
}

static void run_late(struct pair_member *me)
{
	const struct plan *plan = me->arg;
	uint8_t *room = room_open();
	struct pair_buf buf = reg(me, pair_connect(me, OWNER), room, LONG);
	void *req[LATE];
	unsigned failed;

	pair_fill(room, LONG, 1);
	pair_send(me, &buf, LONG);
	PAIR_CHECK(shim->set(plan->held ? "again=write:1" : NULL) == 0, "set");
	pair_hear(me, OWNER);
	for (unsigned i = 0; i < LATE; i++) {
		req[i] = pair_isend_wait(me, &buf, LONG);
	}
	pair_meet(me, OWNER);
	pair_at(me, "too late");
	pair_get(me, OWNER, &failed, sizeof(failed)); /* it has given it away */
	PAIR_CHECK(shim->set(NULL) == 0, "set");
	for (unsigned i = 0; i < LATE; i++) {
		int ret = pair_test_wait(me, req[i], ERROR_MS, NULL);

		PAIR_CHECK(ret == PAIR_REMOTE || (ret == 0 && !plan->held),
			   "send %u ended with %d", i, ret);
	}
	if (failed != 0) {
		check_error(me, &buf, ends_with(me, &buf, LONG, NULL));
	}
	pair_tell(me, OWNER);
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, buf.comm, buf.mh));
	PAIR_OK(fr_plugin_close_send(me->plugin, buf.comm));
	munmap(room, 3 * LONG);
}

/* What has come by then is no error. @failed: receives that are one. Return:
 * the comm's memory as it was. */
static struct pair_buf give_back(struct pair_member *me, uint8_t *mem,
				 unsigned *failed)
{
	struct pair_buf buf = reg(me, pair_accept(me, SENDER), mem, LONG);
	void *req[LATE];

	pair_recv(me, &buf, LONG);
	for (unsigned i = 0; i < LATE; i++) {
		req[i] = pair_irecv_wait(me, &buf, LONG);
	}
	pair_tell(me, SENDER);
	pair_meet(me, SENDER);
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, buf.comm, buf.mh));
	memset(mem, CANARY, LONG);
	*failed = 0;
	for (unsigned i = 0; i < LATE; i++) {
		int ret = pair_test_wait(me, req[i], ERROR_MS, NULL);

		PAIR_CHECK(ret == PAIR_REMOTE || ret == 0,
			   "receive %u ended with %d", i, ret);
		*failed += ret != 0;
	}
	return buf;
}

static void run_owner(struct pair_member *me)
{
	uint8_t *room = room_open(), *mem = room + LONG;
	const struct plan *plan = me->arg;
	struct pair_buf old, buf;
	unsigned failed;

	old = give_back(me, mem, &failed);
	PAIR_CHECK(failed == LATE || !plan->held, "a write was not held");
	pair_at(me, "with another comm");
	buf = reg(me, pair_accept(me, OTHER), mem, LONG);
	pair_put(me, SENDER, &failed, sizeof(failed));
	pair_recv(me, &buf, LONG);
	pair_hear(me, SENDER);
	PAIR_CHECK(pair_is_filled(mem, LONG, SEED),
		   "the message has other bytes by now");
	PAIR_OK(fr_plugin_close_recv(me->plugin, old.comm));
	pair_meet(me, OTHER);
	pair_recv(me, &buf, LONG);
	PAIR_CHECK(pair_is_filled(mem, LONG, SEED + 1) &&
			   pair_is_all(room, LONG, CANARY) &&
			   pair_is_all(mem + LONG, LONG, CANARY),
		   "a late write landed");
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, buf.comm, buf.mh));
	PAIR_OK(fr_plugin_close_recv(me->plugin, buf.comm));
	munmap(room, 3 * LONG);
}

static void run_other(struct pair_member *me)
{
	struct pair_buf buf;

	pair_buf_open(me, pair_connect(me, OWNER), LONG, &buf);
	pair_fill(buf.mem, LONG, SEED);
	pair_send(me, &buf, LONG);
	pair_meet(me, OWNER);
	pair_fill(buf.mem, LONG, SEED + 1);
	pair_send(me, &buf, LONG);
	pair_buf_close(me, &buf);
	PAIR_OK(fr_plugin_close_send(me->plugin, buf.comm));
}

static void run_given(struct pair_member *me)
{
	static void (*const roles[])(struct pair_member *
				     me) = {run_late, run_owner, run_other};

	expect();
	roles[me->index](me);
}

/* ---- all of it ---- */

static void over_late(const char *provider, unsigned nth)
{
	struct pair_case pc = {
		.provider = provider,
		.rails = nth == 0 ? 3 : 2,
		.members = 3,
		.limit_s = 40,
		.run = run_given,
		.env = set_env_late,
	};

	for (size_t i = 0; i < FR_ARRAY_LEN(plans); i++) {
		pc.name = plans[i].name;
		pc.arg = &plans[i];
		pair_run(&pc);
	}
}

static void over_wrong(const char *provider, unsigned nth)
{
	struct pair_case pc = {
		.name = "a receive that is announced wrongly",
		.provider = provider,
		.rails = nth == 0 ? 3 : 2,
		.members = 2,
		.limit_s = 40,
		.run = run_wrong,
		.env = set_env,
	};

	/* The target drops such a write, and its sender is not told: the
	 * provider's ring waits for ever. */
	if (strcmp(provider, "shm") != 0) {
		pair_spawn(&pc);
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "writes that must not land", 10);
	pair_all_providers(over_wrong);
	pair_all_providers(over_late);
	return pair_end();
}
