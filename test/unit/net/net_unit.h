/*
 * The whole net floor over rails in memory: sides in one process, connected in
 * pairs, moved pass by pass.
 *
 * A set belongs to the thread that opened it; here one thread is all sides, and
 * net_as() says which one it is. Nothing moves but by net_pass() and the calls
 * of the floor; the clock is the real one plus what net_advance() adds.
 *
 * net_teardown() closes what a test left open and fails it for a leak, misuse
 * of a rail, or a warning or error that nobody expected.
 */
#ifndef TEST_UNIT_NET_NET_UNIT_H
#define TEST_UNIT_NET_NET_UNIT_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "fake/fake_rail.h"
#include "net/comm.h"
#include "net/conn.h"
#include "net/net.h"
#include "net/reg.h"
#include "net/req.h"
#include "net/set.h"
#include "unit/base/unit.h"

#define NET_STEPS 20000u /* passes until a condition counts as never true */
#define NET_FAULTS 400u	 /* an operation with more ways to fail is a loop */

struct net_side {
	struct fr_listen *listen;
	struct fr_set *set;
	uint8_t handle[FR_HANDLE_BYTES];
};

/* One connection: messages go from a side's send comm to a recv comm. */
struct net_pair {
	struct fr_comm *send;
	struct fr_comm *recv;
};

/* Memory with a registration on one comm; what a test leaves open ends with
 * it. */
struct net_buf {
	uint8_t *mem;
	size_t bytes;
	struct fr_comm *comm;
	struct fr_net_mr *mr;
};

extern struct net_side net_a, net_b, net_c; /* c is opened on demand */
extern struct fr_net *net_ref;

/* -- begin and end -- */

/* The rails that net_setup() makes; a test's own setup changes them first. */
extern struct fr_fake_conf net_conf;
/* net_open() makes NICs that take memory of a GPU. */
extern bool net_has_gpu;
/* Defaults for net_conf and the environment; no side yet. */
void net_init(void);
/* After net_init(): takes a reference and opens sides a and b. */
void net_open(void);
void net_setup(void); /* both */
void net_teardown(void);
/* Adds one test case with this fixture; more may follow in the suite. */
TCase *net_case(const char *name, void (*setup)(void));
int net_main(const char *name, TCase *const *cases, unsigned cnt);

/* Setups that differ in what the provider is like: net, efa (no port, 4-byte
 * immediates, virtual addresses), slow (connects late, completes late), one
 * rail, eight, local completion, no eager messages. */
struct net_shape {
	const char *name;
	void (*setup)(void);
};
#define NET_SHAPES 9u
extern const struct net_shape net_shapes[NET_SHAPES];

void net_side_open(struct net_side *side);
void net_side_close(struct net_side *side);
/* The caller is @side's thread from now on. */
void net_as(const struct net_side *side);
/* As the death of a process looks from outside: nobody answers any more. */
void net_die(struct net_side *side);
void net_fail_link(struct fr_link *link);
/* A side whose peer will never answer: its links are cut at the end. */
void net_forsake(struct net_side *side);

/* -- time and motion -- */

void net_advance(uint64_t ns);
/* One pass of every side, in order; of one. */
void net_pass(void);
void net_pass_of(struct net_side *side);
/* @n ticks of 100 ms, with a pass each. */
void net_tick(unsigned n);
/* Nothing is unacknowledged, unposted or in flight between the sides. */
bool net_is_quiet(void);
void net_settle(void);
/* The same, with as many timers and repeats as it takes. */
void net_settle_in_time(void);

#define NET_UNTIL(cond)                                                        \
	do {                                                                   \
		for (unsigned step_ = 0; !(cond); step_++) {                   \
			ck_assert_msg(step_ < NET_STEPS, "never: %s", #cond);  \
			net_pass();                                            \
		}                                                              \
	} while (0)

/* The same, where the way there may lead over a timer. */
#define NET_UNTIL_IN_TIME(cond)                                                \
	NET_UNTIL((cond) || (net_advance(FR_NS_PER_MS), false))

/* -- connections and messages -- */

/* Nothing of an object that could not be made may be left. */
#define NET_UNTOUCHED ((void *)0x1)

struct net_pair *net_connect(struct net_side *from, struct net_side *to);
void net_hangup(struct net_pair *pair);
void net_close_send(struct net_pair *pair);
void net_close_recv(struct net_pair *pair);

void net_buf_open(struct fr_comm *comm, size_t bytes, struct net_buf *buf);
/* The same in a GPU: mem traps. */
void net_gpu_open(struct fr_comm *comm, size_t bytes, struct net_buf *buf);
void net_buf_close(struct net_buf *buf);
/* Of either memory, here and below. */
void net_fill(void *mem, size_t bytes, uint32_t seed);
bool net_is_filled(const void *mem, size_t bytes, uint32_t seed);

/* Every byte is @value. */
bool net_is_all(const void *mem, size_t bytes, uint8_t value);

/* One call; the error, or 0 with *@req NULL or not. */
int net_try_send(const struct net_buf *buf, size_t bytes, struct fr_req **req);
int net_try_recv(const struct net_buf *buf, size_t bytes, struct fr_req **req);
/* Passes until there is a request. */
struct fr_req *net_isend(const struct net_buf *buf, size_t bytes);
struct fr_req *net_irecv(const struct net_buf *buf, size_t bytes);
/* Passes until it is done. Return: 0; the error. */
int net_wait(struct fr_req *req, size_t *sizes);
/* Not done after some passes. */
void net_assert_pending(struct fr_req *req);
/* A message of @bytes with content, receive posted first, checked. */
void net_exchange(const struct net_buf *from, const struct net_buf *to,
		  size_t bytes, uint32_t seed);
/* A connection of its own that works: the others are well. */
void net_assert_works(struct net_pair *pair);

/* -- what was on the wire -- */

#define NET_CONNECT_TYPE 0x11
#define NET_RESPONSE_TYPE 0x12
#define NET_WRITES 128u

struct net_wire {
	unsigned seen[256]; /* messages, by first byte */
	unsigned lose[256]; /* the next so many vanish */
	unsigned twice[256];
	unsigned lose_writes;
	unsigned writes;
	unsigned own_writes; /* of them: of a rail to itself */
	unsigned reads;	     /* of a rail from itself */
	uint32_t read_rails; /* a bit each */
	struct net_write {
		uint64_t imm, addr, key;
		size_t bytes;
		unsigned rail; /* of the sender */
		bool untold;
	} write[NET_WRITES];
	uint8_t last[32][FR_CONN_MAX_BYTES]; /* see net_last() */
	size_t last_bytes[32];
};

extern struct net_wire net_wire;
/* The last message whose first byte is @type. */
const uint8_t *net_last(uint8_t type, size_t *bytes);

/* The peer of @link says something of its own making, with a right number. */
void net_say(struct fr_link *link, uint8_t type, uint8_t flags,
	     const void *payload, size_t bytes);
void net_say_note(struct fr_link *link, uint8_t type,
		  const struct fr_link_note *note);
/* A write with this immediate arrives on rail 0 of @side. */
void net_inject_imm(const struct net_side *side, const struct fr_imm *imm,
		    size_t bytes);
/* A connect message of anybody comes to @side. */
void net_inject_conn(const struct net_side *side,
		     const struct fr_conn_msg *msg);
/* What the connecting or listening side of @from would say. */
struct fr_conn_msg net_conn_msg(const struct net_side *from, uint8_t type,
				uint64_t cookie, uint64_t connect_id);
/* The last response on the wire. */
struct fr_conn_msg net_last_response(void);
uint64_t net_dropped(const struct net_side *side);
/* The operations of @side's set that its peers would see fail. */
void net_break(const struct net_side *side, unsigned rail);

/* -- what was logged -- */

/* Warnings and errors with @part are expected from now on. */
void net_expect(const char *part);
/* Lines of any level that had @part. */
unsigned net_logged(const char *part);

struct fr_fake_counts net_counts(void);
void net_lock(struct fr_set *set);
void net_unlock(struct fr_set *set);

#endif
