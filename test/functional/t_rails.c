/*
 * Two sides of two rails each in one process, on loopback, over every provider
 * that this machine has: messages and writes of many sizes both ways, every
 * byte looked at, and a key that is not the peer's.
 */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "fabric/mr.h"
#include "fabric/rail.h"
#include "unit/run.h"

#define RAILS 2u
#define MSG_MAX 9216u
#define WRITE_MAX (1u << 20)
#define DEADLINE_NS (60 * FR_NS_PER_S)

static const char *const provider_name[] = {"net", "tcp;ofi_rxm", "sockets",
					    "shm"};
/* sockets hands everything through threads of its own: 4 ms where others take 4
 * us on a busy machine. */
static const unsigned provider_rounds[] = {300, 300, 50, 300};
static unsigned rounds;
static const size_t msg_bytes[] = {1, 8, 127, 1024, 4096, 8192, MSG_MAX};
static const size_t write_bytes[] = {0,	   1,	 64,	 4095,	    4096,
				     8192, 9216, 131072, WRITE_MAX, 65537};

/* One operation of a lane at a time: it is posted again when it is done. */
struct lane {
	struct fr_op op;
	bool flying;
	unsigned posted, done, errors;
	int err;
};

struct half { /* one rail of one side */
	struct fr_rail *rail;
	struct half *peer;
	unsigned index;
	uint64_t to_ctrl, to_data;
	struct lane send, write, recv;
	uint8_t *out, *in, *inbox; /* source, target of writes, receives */
	unsigned msgs_seen, writes_seen;
};

struct side {
	struct fr_mr_cache *cache;
	struct fr_mr *local, *target;
	uint8_t *mem; /* for each rail: out, inbox; then all the targets */
	struct half half[RAILS];
};

static struct fr_fabric *fabric;
static struct side side[2];
static unsigned troubles; /* warnings and errors that were logged */
static char trouble[512];

static void log_sink(enum fr_log_level level, const char *file, int line,
		     const char *text)
{
	(void)file;
	(void)line;
	if (level <= FR_LOG_WARN) {
		troubles++;
		snprintf(trouble, sizeof(trouble), "%s", text);
	}
}

static uint8_t pattern(unsigned seed, size_t i)
{
	return (uint8_t)(seed * 31u + i * 7u + (i >> 8));
}

static void fill(uint8_t *buf, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++) {
		buf[i] = pattern(seed, i);
	}
}

static void check_bytes(const uint8_t *buf, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++) {
		if (buf[i] != pattern(seed, i)) {
			ck_abort_msg("message %u of %zu bytes: byte %zu is %u",
				     seed, bytes, i, buf[i]);
		}
	}
}

static void lane_done(struct fr_op *op, struct fr_rail *rail, int err,
		      size_t bytes)
{
	struct lane *lane = FR_CONTAINER_OF(op, struct lane, op);

	(void)rail;
	(void)bytes;
	lane->flying = false;
	lane->done++;
	if (err != 0) {
		lane->errors++;
		lane->err = err;
	}
}

static void post_recv(struct half *half);

static void recv_done(struct fr_op *op, struct fr_rail *rail, int err,
		      size_t bytes)
{
	struct half *half = FR_CONTAINER_OF(op, struct half, recv.op);

	(void)rail;
	if (err != 0) {
		half->recv.errors++;
		return;
	}
	ck_assert_uint_eq(bytes,
			  msg_bytes[half->msgs_seen % FR_ARRAY_LEN(msg_bytes)]);
	check_bytes(half->inbox, bytes, half->msgs_seen);
	half->msgs_seen++;
	post_recv(half);
}

static struct side *side_of(struct half *half)
{
	return half == &side[0].half[half->index] ? &side[0] : &side[1];
}

static void post_recv(struct half *half)
{
	half->recv.op.done = recv_done;
	ck_assert_int_eq(
		fr_rail_recv(half->rail, half->inbox, MSG_MAX,
			     fr_mr_desc(side_of(half)->local, half->index),
			     &half->recv.op),
		0);
}

static void on_write(void *owner, struct fr_rail *rail, uint64_t imm,
		     size_t bytes)
{
	struct side *mine = owner;
	struct half *half = &mine->half[fr_rail_index(rail)];
	size_t want = write_bytes[imm % FR_ARRAY_LEN(write_bytes)];

	ck_assert_uint_eq(imm, half->writes_seen);
	if (fr_rail_quirks(rail)->has_write_len) {
		ck_assert_uint_eq(bytes, want);
	}
	check_bytes(half->in, want, (unsigned)imm);
	half->writes_seen++;
}

static unsigned cut_writes;

static void on_error(void *owner, struct fr_rail *rail, int err)
{
	(void)owner;
	(void)rail;
	ck_assert_int_lt(err, 0);
	cut_writes++;
}

static const struct fr_rail_ops ops = {.remote_write = on_write,
				       .remote_error = on_error};

static void side_open(struct side *mine)
{
	const size_t each = WRITE_MAX + 16384; /* out, then the inbox */
	struct fr_rail *rails[RAILS];

	mine->mem = fr_aligned_calloc(4096, RAILS * (each + WRITE_MAX));
	for (unsigned i = 0; i < RAILS; i++) {
		struct fr_rail_attr attr = {
			.fabric = fabric,
			.index = i,
			.cq_size = 1024,
			.cq_read_cnt = 16,
			.ops = &ops,
			.owner = mine,
		};
		struct half *half = &mine->half[i];

		ck_assert_int_eq(fr_rail_open(&attr, &half->rail), 0);
		rails[i] = half->rail;
		half->index = i;
		half->out = mine->mem + i * each;
		half->inbox = half->out + WRITE_MAX;
		half->in = mine->mem + RAILS * each + i * (size_t)WRITE_MAX;
		half->send.op.done = lane_done;
		half->write.op.done = lane_done;
	}
	ck_assert_int_eq(fr_mr_cache_create(rails, RAILS, true, &mine->cache),
			 0);
	ck_assert_int_eq(fr_mr_get(mine->cache, mine->mem, RAILS * each,
				   FR_MR_LOCAL, &mine->local),
			 0);
	ck_assert_int_eq(fr_mr_get(mine->cache, mine->mem + RAILS * each,
				   RAILS * (size_t)WRITE_MAX,
				   FR_MR_LOCAL | FR_MR_REMOTE_WRITE,
				   &mine->target),
			 0);
	for (unsigned i = 0; i < RAILS; i++) {
		post_recv(&mine->half[i]);
	}
}

static void side_close(struct side *mine)
{
	fr_mr_put(mine->cache, mine->local);
	fr_mr_put(mine->cache, mine->target);
	fr_mr_cache_destroy(mine->cache);
	for (unsigned i = 0; i < RAILS; i++) {
		fr_rail_close(mine->half[i].rail);
	}
	fr_free(mine->mem);
}

static void introduce(struct half *from, struct half *to)
{
	from->peer = to;
	ck_assert_int_eq(fr_rail_peer_add(from->rail,
					  fr_rail_name(to->rail, FR_EP_CTRL),
					  &from->to_ctrl),
			 0);
	ck_assert_int_eq(fr_rail_peer_add(from->rail,
					  fr_rail_name(to->rail, FR_EP_DATA),
					  &from->to_data),
			 0);
}

/* The next message, once the one before has left and its target took it. */
static void push_send(struct half *half)
{
	struct lane *lane = &half->send;
	size_t bytes = msg_bytes[lane->posted % FR_ARRAY_LEN(msg_bytes)];
	int ret;

	if (lane->flying || lane->posted == rounds || half->write.flying) {
		return;
	}
	fill(half->out, bytes, lane->posted);
	ret = fr_rail_send(half->rail, half->to_ctrl, half->out, bytes,
			   fr_mr_desc(side_of(half)->local, half->index),
			   &lane->op);
	if (ret == 0) {
		lane->flying = true;
		lane->posted++;
	}
	ck_assert(ret == 0 || ret == -EAGAIN);
}

static int post_write(struct half *half, size_t bytes, uint64_t key,
		      uint64_t imm, bool deliver)
{
	struct side *to = side_of(half->peer);

	return fr_rail_write(half->rail, half->to_data, half->out, bytes,
			     fr_mr_desc(side_of(half)->local, half->index),
			     fr_mr_remote_addr(to->target, half->peer->in), key,
			     imm, deliver, &half->write.op);
}

/* Every third write completes locally: its target is waited for all the same,
 * since the next one goes to the same place. */
static void push_write(struct half *half)
{
	struct lane *lane = &half->write;
	size_t bytes = write_bytes[lane->posted % FR_ARRAY_LEN(write_bytes)];
	int ret;

	if (lane->flying || lane->posted == rounds || half->send.flying ||
	    half->peer->writes_seen < lane->posted) {
		return;
	}
	fill(half->out, bytes, lane->posted);
	ret = post_write(half, bytes,
			 fr_mr_key(side_of(half->peer)->target, half->index),
			 lane->posted, lane->posted % 3 != 0);
	if (ret == 0) {
		lane->flying = true;
		lane->posted++;
	}
	ck_assert(ret == 0 || ret == -EAGAIN);
}

static void poll_all(void)
{
	int seen = 0;

	for (unsigned s = 0; s < 2; s++) {
		for (unsigned i = 0; i < RAILS; i++) {
			int ret = fr_rail_poll(side[s].half[i].rail);

			ck_assert_int_ge(ret, 0);
			seen += ret;
		}
	}
	if (seen == 0) {
		sched_yield();
	}
}

static bool half_is_done(const struct half *half)
{
	return half->send.done == rounds && half->write.done == rounds &&
	       half->msgs_seen == rounds && half->writes_seen == rounds;
}

static bool all_done(void)
{
	for (unsigned s = 0; s < 2; s++) {
		for (unsigned i = 0; i < RAILS; i++) {
			if (!half_is_done(&side[s].half[i])) {
				return false;
			}
		}
	}
	return true;
}

/* How far every lane is, for a failure. */
static const char *standing(void)
{
	static char text[512];

	text[0] = '\0';
	for (unsigned i = 0; i < 2 * RAILS; i++) {
		const struct half *half = &side[i / RAILS].half[i % RAILS];
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used,
			 "[side %u rail %u: sends %u/%u errors %u, writes "
			 "%u/%u errors %u, seen %u and %u] ",
			 i / RAILS, i % RAILS, half->send.done,
			 half->send.posted, half->send.errors, half->write.done,
			 half->write.posted, half->write.errors,
			 half->msgs_seen, half->writes_seen);
	}
	return text;
}

static void exchange(void)
{
	uint64_t end = fr_now_ns() + DEADLINE_NS;

	while (!all_done()) {
		ck_assert_msg(fr_now_ns() < end, "%s", standing());
		for (unsigned s = 0; s < 2; s++) {
			for (unsigned i = 0; i < RAILS; i++) {
				push_send(&side[s].half[i]);
				push_write(&side[s].half[i]);
			}
		}
		poll_all();
	}
}

static bool open_provider(const char *name)
{
	char none[1] = "", lo[] = "=lo", text[32];
	struct fr_conf conf = {
		.provider = text, .tcp_if = lo, .exclude_tcp_if = none};

	snprintf(text, sizeof(text), "%s", name);
	if (fr_fabric_open(&conf, &fabric) != 0) {
		printf("%s: not on this machine: %s\n", name, trouble);
		return false;
	}
	return true;
}

static void open_all(void)
{
	side_open(&side[0]);
	side_open(&side[1]);
	for (unsigned i = 0; i < RAILS; i++) {
		introduce(&side[0].half[i], &side[1].half[i]);
		introduce(&side[1].half[i], &side[0].half[i]);
	}
}

static void close_all(void)
{
	side_close(&side[0]);
	side_close(&side[1]);
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

static void check_half(struct half *half)
{
	struct fr_stats *stats = fr_rail_stats(half->rail);
	uint64_t tx = 0, rx = 0;

	for (unsigned k = 0; k < rounds; k++) {
		rx += msg_bytes[k % FR_ARRAY_LEN(msg_bytes)];
		tx += msg_bytes[k % FR_ARRAY_LEN(msg_bytes)] +
		      write_bytes[k % FR_ARRAY_LEN(write_bytes)];
	}
	ck_assert_uint_eq(fr_rail_inflight(half->rail), 0);
	ck_assert_uint_eq(
		half->send.errors + half->write.errors + half->recv.errors, 0);
	ck_assert_uint_eq(fr_stats_get(stats, FR_STAT_TX_MSGS), 2 * rounds);
	ck_assert_uint_eq(fr_stats_get(stats, FR_STAT_TX_BYTES), tx);
	ck_assert_uint_eq(fr_stats_get(stats, FR_STAT_RX_MSGS), 2 * rounds);
	ck_assert_uint_eq(fr_stats_get(stats, FR_STAT_RX_BYTES), rx);
	ck_assert_uint_eq(fr_stats_get(stats, FR_STAT_TX_ERRORS), 0);
}

START_TEST(every_byte_arrives_both_ways_on_every_rail)
{
	if (!open_provider(provider_name[_i])) {
		return;
	}
	rounds = provider_rounds[_i];
	open_all();
	exchange();
	for (unsigned i = 0; i < RAILS; i++) {
		check_half(&side[0].half[i]);
		check_half(&side[1].half[i]);
	}
	ck_assert_uint_eq(cut_writes, 0);
	close_all();
	ck_assert_msg(troubles == 0, "%s", trouble);
}
END_TEST

/* Delivery completion is what makes a write that the target refused fail. */
START_TEST(a_key_that_is_not_the_peers_fails_and_touches_nothing)
{
	struct half *half = &side[0].half[0];
	uint64_t end, key;
	int ret;

	if (!open_provider(provider_name[_i])) {
		return;
	}
	open_all();
	end = fr_now_ns() + DEADLINE_NS;
	fill(half->out, 4096, 1);
	key = fr_mr_key(side[1].target, 0) ^ 0x5555;
	while ((ret = post_write(half, 4096, key, 0, true)) == -EAGAIN) {
		ck_assert(fr_now_ns() < end);
		poll_all();
	}
	ck_assert_int_eq(ret, 0);
	while (half->write.done == 0) {
		ck_assert(fr_now_ns() < end);
		poll_all();
	}
	ck_assert_uint_eq(half->write.errors, 1);
	ck_assert_int_lt(half->write.err, 0);
	ck_assert_uint_eq(
		fr_stats_get(fr_rail_stats(half->rail), FR_STAT_TX_ERRORS), 1);
	for (size_t i = 0; i < 4096; i++) {
		ck_assert_uint_eq(half->peer->in[i], 0);
	}
	ck_assert_uint_eq(half->peer->writes_seen, 0);
	close_all();
}
END_TEST

static void on_signal(int sig)
{
	(void)sig;
}

START_TEST(the_applications_signal_handlers_stay)
{
	const int sigs[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGINT, SIGTERM};
	struct sigaction mine = {.sa_handler = on_signal};
	struct sigaction before[FR_ARRAY_LEN(sigs)], now;

	ck_assert_int_eq(sigaction(SIGSEGV, &mine, NULL), 0);
	for (size_t i = 0; i < FR_ARRAY_LEN(sigs); i++) {
		ck_assert_int_eq(sigaction(sigs[i], NULL, &before[i]), 0);
	}
	unsetenv("IPATH_NO_BACKTRACE"); /* else PSM installs none */
	if (!open_provider(provider_name[_i])) {
		return;
	}
	open_all(); /* shm installs some with each endpoint */
	for (size_t i = 0; i < FR_ARRAY_LEN(sigs); i++) {
		ck_assert_int_eq(sigaction(sigs[i], NULL, &now), 0);
		ck_assert_ptr_eq((void *)now.sa_handler,
				 (void *)before[i].sa_handler);
		/* A flag of libc's own tells nothing. */
		ck_assert_int_eq(now.sa_flags & ~0x04000000,
				 before[i].sa_flags & ~0x04000000);
	}
	close_all();
}
END_TEST

static void setup(void)
{
	fr_log_set_sink(log_sink);
}

int main(void)
{
	TCase *t = tcase_create("rails");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, every_byte_arrives_both_ways_on_every_rail, 0,
			    (int)FR_ARRAY_LEN(provider_name));
	/* shm and sockets do not promise to notice. */
	tcase_add_loop_test(
		t, a_key_that_is_not_the_peers_fails_and_touches_nothing, 0, 2);
	tcase_add_loop_test(t, the_applications_signal_handlers_stay, 0,
			    (int)FR_ARRAY_LEN(provider_name));
	return unit_run(t, "rails");
}
