/*
 * A process under attack, and how an attacker asks it to play its part.
 *
 * Member 0 is the victim: it talks to member 1 all the while, listens, takes
 * connections, posts receives between canaries and says what became of them,
 * as member 2, the attacker, tells it word by word.
 */
#ifndef FR_TEST_HOSTILE_H
#define FR_TEST_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "functional/pair.h"

#define VICTIM 0u
#define HEALTHY 1u
#define ATTACKER 2u

#define HOSTILE_BIG 65536u /* a receive that is announced */
#define HOSTILE_SMALL 512u /* one that is not */
#define HOSTILE_MSG_SEED 4242u

enum hostile_op {
	HOSTILE_LISTEN,	  /* answer: a handle follows; value: which listener */
	HOSTILE_UNLISTEN, /* arg: which */
	HOSTILE_SWALLOW,  /* arg 1: accepts whatever comes to listener 0 until
			     told 0, then closes it; value: how many came */
	HOSTILE_ACCEPT,	  /* arg: bytes of a receive; result: of accept */
	HOSTILE_CONNECT,  /* a handle follows; result: of connect */
	HOSTILE_SEND,	  /* arg: bytes to send on that; result: at its end */
	HOSTILE_WATCH,	  /* arg: ms to wait for the receive's end; value: its
			     size; result: -1 while it is open */
	HOSTILE_DROP,	  /* the comms; checks the canaries */
	HOSTILE_IDLE,	  /* arg: ms without a call; value: CPU ms used */
	HOSTILE_LOOK,	  /* value: descriptors; lines: warnings so far */
	HOSTILE_END,
};

struct hostile_word {
	uint32_t op;
	uint32_t arg;
};

struct hostile_answer {
	int32_t result;
	uint32_t value;
	uint32_t lines;
	int32_t pid;
	uint64_t rounds; /* of the traffic beside */
};

/* In the attacker. */
struct hostile_answer hostile_ask(struct pair_member *me, enum hostile_op op,
				  uint32_t arg);
/* Waits until the victim has no more than @limit descriptors. */
struct hostile_answer hostile_settle(struct pair_member *me, unsigned limit);
/* A new listener of the victim. */
uint32_t hostile_listen(struct pair_member *me, uint8_t *handle);

/* The other two members. */
void hostile_victim(struct pair_member *me);
void hostile_healthy(struct pair_member *me);

/* The plugin that the members open by themselves, to count its lines. */
void hostile_open(struct pair_member *me);
unsigned hostile_warnings(void);

/* hostile_link.c: on control endpoints and data endpoints. */
void hostile_link_attack(struct pair_member *me);
/* hostile_write.c: the attacks of it that write. */
struct forge;
struct forge_peer;
struct fr_imm;
/* Of a write that fills the receive; *@imm: its parts. */
uint64_t hostile_good_imm(const struct forge *f, const struct forge_peer *peer,
			  struct fr_imm *imm);
void hostile_immediates(struct forge *f, struct forge_peer *peer, unsigned i);
void hostile_keys(struct forge *f, struct forge_peer *peer, unsigned i);
void hostile_duplicates(struct forge *f, struct forge_peer *peer, unsigned i);
void hostile_stripes(struct forge *f, struct forge_peer *peer, unsigned i);
/* hostile_conn.c: connect messages. */
void hostile_conn_attack(struct pair_member *me);
/* hostile_port.c */
void hostile_port_attack(struct pair_member *me);
/* hostile_handle.c */
void hostile_handle_attack(struct pair_member *me);

#endif
