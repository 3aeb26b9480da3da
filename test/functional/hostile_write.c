/* Hostile writes on the data endpoint of a connection that was made as it
 * should be, with a receive of HOSTILE_BIG announced. */
#include <string.h>

#include "base/util.h"
#include "functional/forge.h"
#include "functional/hostile.h"

#define UNKNOWN_COMM 0x3fffeu

static uint64_t dice = 20250102;

static uint64_t roll(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice;
}

uint64_t hostile_good_imm(const struct forge *f, const struct forge_peer *peer,
			  struct fr_imm *imm)
{
	memset(imm, 0, sizeof(*imm));
	imm->comm = peer->msg.comm;
	imm->nseg = 1;
	if (forge_imm_bytes(f) == 8) {
		imm->rkey = fr_imm_grant(peer->cts.entries[0].keys[0], 0);
		imm->len = FR_IMM_LEN_FULL;
	}
	return fr_imm_pack(imm, forge_imm_bytes(f));
}

/* To the scratch region, which every peer may write to. */
static void scratch_write(struct forge *f, struct forge_peer *peer,
			  uint64_t word)
{
	int ret = forge_write(f, peer->data, 8, peer->msg.scratch_addr,
			      peer->msg.scratch_key[0], word);

	PAIR_CHECK(ret == 0, "a write to the scratch region: %s",
		   strerror(-ret));
}

void hostile_immediates(struct forge *f, struct forge_peer *peer, unsigned i)
{
	unsigned bytes = forge_imm_bytes(f);
	struct fr_imm imm;

	(void)i;
	(void)hostile_good_imm(f, peer, &imm);
	imm.comm = UNKNOWN_COMM;
	scratch_write(f, peer, fr_imm_pack(&imm, bytes));
	for (unsigned seq = 1; seq < 1024; seq += 73) {
		(void)hostile_good_imm(f, peer, &imm);
		imm.seq = (uint16_t)seq;
		scratch_write(f, peer, fr_imm_pack(&imm, bytes));
	}
	if (bytes == 8) {
		(void)hostile_good_imm(f, peer, &imm);
		imm.rkey ^= 5;
		scratch_write(f, peer, fr_imm_pack(&imm, bytes));
		(void)hostile_good_imm(f, peer, &imm);
		imm.len = HOSTILE_BIG + 1;
		scratch_write(f, peer, fr_imm_pack(&imm, bytes));
		imm.len = FR_IMM_LEN_MAX;
		scratch_write(f, peer, fr_imm_pack(&imm, bytes));
	}
	scratch_write(f, peer, UINT64_MAX);
	/* Two stripes for the live receive, under a grant that is not its. */
	(void)hostile_good_imm(f, peer, &imm);
	scratch_write(f, peer,
		      (UINT64_C(8) | (imm.rkey ^ 7)) << 28 | peer->msg.comm
								     << 10);
	for (unsigned k = 0; k < 2000; k++) {
		/* Only comms that cannot be: whoever guesses a live one and
		 * its grant is not told from its peer. */
		scratch_write(f, peer, roll() | UINT64_C(0x8000000));
	}
}

/* Its receive is complete with the first one. */
void hostile_duplicates(struct forge *f, struct forge_peer *peer, unsigned i)
{
	const struct fr_cts_entry *entry = &peer->cts.entries[0];
	struct fr_imm imm;
	uint64_t word = hostile_good_imm(f, peer, &imm);
	int ret;

	(void)i;
	pair_fill(forge_out(f), HOSTILE_BIG, HOSTILE_MSG_SEED);
	ret = forge_write(f, peer->data, HOSTILE_BIG, entry->addr,
			  entry->keys[0], word);
	PAIR_CHECK(ret == 0, "the good write: %s", strerror(-ret));
	for (unsigned k = 0; k < 1000; k++) {
		scratch_write(f, peer, word);
	}
}

void hostile_keys(struct forge *f, struct forge_peer *peer, unsigned i)
{
	const struct fr_cts_entry *entry = &peer->cts.entries[0];
	uint64_t key = entry->keys[0], scratch = peer->msg.scratch_key[0];
	const struct {
		size_t bytes;
		uint64_t addr, key;
	} writes[] = {
		{4096, entry->addr, key ^ 1},
		{4096, entry->addr, 0},
		{4096, entry->addr, roll()},
		{4096, entry->addr, key + 1},
		{4096, entry->addr + HOSTILE_BIG, key},	       /* behind */
		{4096, entry->addr + HOSTILE_BIG - 4095, key}, /* half out */
		{HOSTILE_BIG + 4096, entry->addr, key},
		{1u << 20, entry->addr, key},
		{4096, entry->addr - 4096, key}, /* before */
		{4096, entry->addr - 1, key},
		{4096, UINT64_MAX - 2047, key}, /* wraps */
		{4096, peer->msg.scratch_addr, scratch},
		{256, peer->msg.scratch_addr, scratch},
		{128, peer->msg.scratch_addr + 1, scratch},
		{64, peer->msg.scratch_addr + (1u << 20), scratch},
	};
	struct fr_imm imm;
	uint64_t word = hostile_good_imm(f, peer, &imm);
	uint8_t *out = forge_out(f);

	(void)i;
	for (size_t k = 0; k < FR_ARRAY_LEN(writes); k++) {
		memset(out, 0xbd, writes[k].bytes);
		PAIR_CHECK(forge_write(f, peer->data, writes[k].bytes,
				       writes[k].addr, writes[k].key,
				       word) != 0,
			   "write %zu to memory that nobody offered went "
			   "through",
			   k);
	}
}

void hostile_stripes(struct forge *f, struct forge_peer *peer, unsigned i)
{
	const struct fr_cts_entry *entry = &peer->cts.entries[0];
	uint8_t *out = forge_out(f);
	struct fr_imm imm;
	uint64_t word;
	int ret;

	(void)i;
	(void)hostile_good_imm(f, peer, &imm);
	imm.nseg = 8;
	word = fr_imm_pack(&imm, forge_imm_bytes(f));
	for (unsigned k = 0; k < 12; k++) {
		size_t share = HOSTILE_BIG / 8, at = k % 8 * share;

		pair_fill(out, HOSTILE_BIG, HOSTILE_MSG_SEED);
		memmove(out, out + at, share);
		ret = forge_write(f, peer->data, share, entry->addr + at,
				  entry->keys[0], word);
		PAIR_CHECK(ret == 0, "stripe %u: %s", k, strerror(-ret));
	}
}
