/*
 * The immediate of a write: the whole header of a stripe.
 *
 *   63            34 33  31 30  28 27               10 9          0
 *  +----------------+------+------+-------------------+------------+
 *  | length (30)    |nseg-1| rkey | comm id (18)      | seq (10)   |   8 bytes
 *  +----------------+------+------+-------------------+------------+
 *                          31  28 27               10 9          0
 *                         +------+-------------------+------------+
 *                         |nseg-1| comm id (18)      | seq (10)   |   4 bytes
 *                         +------+-------------------+------------+
 *
 * Every stripe of a message carries the same word. Pure; no allocation.
 */
#ifndef FR_WIRE_IMM_H
#define FR_WIRE_IMM_H

#include <stdbool.h>
#include <stdint.h>

#define FR_IMM_SEQ_BITS 10u
#define FR_IMM_COMM_BITS 18u
#define FR_IMM_COMM_CNT (1u << FR_IMM_COMM_BITS)
#define FR_IMM_MAX_NSEG 8u
/* Length codes of the 8-byte form. */
#define FR_IMM_LEN_FULL 0x3fffffffu  /* the receive's full length */
#define FR_IMM_LEN_ASIDE 0x3ffffffeu /* told by a LENGTH message */
#define FR_IMM_LEN_MAX 0x3ffffffdu   /* largest length that fits */

struct fr_imm {
	uint32_t comm; /* receiver's comm id */
	uint16_t seq;  /* low 10 bits of the message number */
	uint8_t nseg;  /* stripes of this message, 1..8 */
	uint8_t rkey;  /* low 3 bits of the grant; 8-byte form only */
	uint32_t len;  /* length or a code above; 8-byte form only */
};

/* @bytes: 8 or 4. Fields are in range (asserted). */
uint64_t fr_imm_pack(const struct fr_imm *imm, unsigned bytes);
/* Every word decodes; 4-byte form: rkey 0, len FR_IMM_LEN_FULL. Return: false
 * when nseg is above 8 (4-byte form has room for 16). */
bool fr_imm_unpack(uint64_t word, unsigned bytes, struct fr_imm *imm);

/* The 3-bit grant of message @seq under @key0, the key of the receive's memory
 * on rail 0: the key plus the turn of the 10-bit sequence space. */
static inline uint8_t fr_imm_grant(uint64_t key0, uint32_t seq)
{
	return (uint8_t)((key0 + (seq >> FR_IMM_SEQ_BITS)) & 7u);
}

#endif
