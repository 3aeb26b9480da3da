/*
 * What rail.h and mr.h promise, as tests that run over any implementation: the
 * one in memory and the real one. A program gives them a fabric with at least
 * one interface and whole-order delivery on a connection.
 */
#ifndef TEST_UNIT_FABRIC_RAIL_CONTRACT_H
#define TEST_UNIT_FABRIC_RAIL_CONTRACT_H

#include <check.h>

#include "fabric/mr.h"
#include "fabric/provider.h"
#include "fabric/rail.h"

#define CONTRACT_BUF_BYTES (64u * 1024u)
#define CONTRACT_MAX_EVENTS 256u

/* Opens the fabric that the program is about. Return: 0; -errno. */
typedef int (*contract_open_fn)(struct fr_fabric **out);

/* An operation that remembers how it ended. */
struct contract_op {
	struct fr_op op;
	unsigned calls;
	int err;
	size_t bytes;
	bool said; /* an error had a text */
};

/* One end: a rail, a buffer, and what its owner was told. */
struct contract_side {
	struct fr_rail *rail;
	struct fr_mr_cache *cache;
	struct fr_mr *local;
	struct fr_mr *remote;
	uint8_t *buf;	 /* in @local: messages and sources */
	uint8_t *window; /* in @remote, the page after it is not */
	uint64_t to_ctrl;
	uint64_t to_data;
	uint64_t imm[CONTRACT_MAX_EVENTS];
	unsigned imm_cnt;
	unsigned error_cnt;
};

extern struct fr_fabric *contract_fabric;
extern struct contract_side contract_a, contract_b;

/* For further tests over the same two sides. */
void contract_setup(void);
void contract_teardown(void);
void contract_side_open(struct contract_side *side, unsigned index);
void contract_side_close(struct contract_side *side);
void contract_introduce(struct contract_side *from,
			const struct contract_side *to);
void contract_op_init(struct contract_op *op);
/* Posts, polling both sides while the answer is EAGAIN. */
void contract_send(struct contract_side *from, size_t offset, size_t bytes,
		   struct contract_op *op);
void contract_write(struct contract_side *from, const struct contract_side *to,
		    size_t offset, size_t bytes, uint64_t imm, bool deliver,
		    struct contract_op *op);
void contract_recv(struct contract_side *side, size_t offset, size_t bytes,
		   struct contract_op *op);
void contract_poll_both(void);
/* Polls both sides until *@count is at least @target; fails after 10 s. */
void contract_wait(const unsigned *count, unsigned target);

/* Adds every test of the contract. The caller adds a fixture around
 * contract_setup() and contract_teardown(). */
void contract_add_tests(TCase *tcase, contract_open_fn open);

#endif
