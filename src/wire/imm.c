#include "wire/imm.h"

#include <assert.h>

#define COMM_SHIFT FR_IMM_SEQ_BITS
#define HIGH_SHIFT (FR_IMM_SEQ_BITS + FR_IMM_COMM_BITS)
/* 8-byte form */
#define RKEY_BITS 3u
#define NSEG_BITS 3u
#define LEN_BITS 30u
#define NSEG_SHIFT (HIGH_SHIFT + RKEY_BITS)
#define LEN_SHIFT (NSEG_SHIFT + NSEG_BITS)
/* 4-byte form */
#define NSEG4_BITS 4u

#define MASK(bits) ((1u << (bits)) - 1)

_Static_assert(LEN_SHIFT + LEN_BITS == 64, "the long word is full");
_Static_assert(HIGH_SHIFT + NSEG4_BITS == 32, "the short word is full");

uint64_t fr_imm_pack(const struct fr_imm *imm, unsigned bytes)
{
	uint64_t word = imm->seq | (uint64_t)imm->comm << COMM_SHIFT;
	uint64_t nseg = imm->nseg - 1u;

	assert(bytes == 8 || bytes == 4);
	assert(imm->seq <= MASK(FR_IMM_SEQ_BITS));
	assert(imm->comm < FR_IMM_COMM_CNT);
	assert(imm->nseg >= 1 && imm->nseg <= FR_IMM_MAX_NSEG);

	if (bytes == 4) {
		return word | nseg << HIGH_SHIFT;
	}
	assert(imm->rkey <= MASK(RKEY_BITS) && imm->len <= MASK(LEN_BITS));
	return word | (uint64_t)imm->rkey << HIGH_SHIFT | nseg << NSEG_SHIFT |
	       (uint64_t)imm->len << LEN_SHIFT;
}

bool fr_imm_unpack(uint64_t word, unsigned bytes, struct fr_imm *imm)
{
	uint32_t high;

	assert(bytes == 8 || bytes == 4);
	imm->seq = word & MASK(FR_IMM_SEQ_BITS);
	imm->comm = (uint32_t)(word >> COMM_SHIFT) & MASK(FR_IMM_COMM_BITS);
	if (bytes == 4) {
		high = (uint32_t)(word >> HIGH_SHIFT) & MASK(NSEG4_BITS);
		imm->nseg = (uint8_t)(high + 1);
		imm->rkey = 0;
		imm->len = FR_IMM_LEN_FULL;
		return imm->nseg <= FR_IMM_MAX_NSEG;
	}
	imm->rkey = (uint8_t)(word >> HIGH_SHIFT & MASK(RKEY_BITS));
	imm->nseg = (uint8_t)((word >> NSEG_SHIFT & MASK(NSEG_BITS)) + 1);
	imm->len = (uint32_t)(word >> LEN_SHIFT);
	return true;
}
