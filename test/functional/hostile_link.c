/* Hostile bytes on the control endpoint, and the run of all attacks that are
 * made on connections which were made as they should be. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "functional/forge.h"
#include "functional/hostile.h"

#define RANDOM_MSGS 5000u
#define FLOOD 2000u
#define UNKNOWN_COMM 0x3fffeu
#define TAG 7

enum hope {
	LIVES, /* the connection still works afterwards */
	FAILS, /* the victim's receive ends in an error, with one line */
	DONE,  /* the attack has filled the receive itself */
};

struct attack {
	const char *name;
	enum hope hope;
	uint32_t bytes; /* of the receive */
	void (*run)(struct forge *f, struct forge_peer *peer, unsigned i);
	unsigned cnt; /* how often, a connection each; 0: once */
};

/* Random payloads that a failing run can be repeated with. */
static uint64_t dice = 20250101;

static uint64_t roll(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice;
}

static void garbage(uint8_t *buf, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		buf[i] = (uint8_t)(roll() >> 24);
	}
}

/* -- good messages, to be spoiled -------------------------------------------*/

static size_t good_cts(const struct forge_peer *peer, uint8_t *buf)
{
	struct fr_cts cts = {
		.comm = peer->msg.comm,
		.nonce = peer->msg.nonce,
		.entry_cnt = 2,
		.key_cnt = 1,
	};
	int len;

	for (unsigned i = 0; i < 2; i++) {
		cts.entries[i].group = 1;
		cts.entries[i].len = 4096;
	}
	len = fr_cts_encode(&cts, buf, 512);
	PAIR_CHECK(len > 0, "a good CTS");
	return (size_t)len;
}

static size_t good_eager(const struct forge_peer *peer, uint8_t *buf)
{
	struct fr_eager msg = {
		.comm = peer->msg.comm,
		.nonce = peer->msg.nonce,
		.tag = TAG,
		.len = HOSTILE_SMALL,
	};

	fr_eager_hdr_encode(&msg, buf);
	pair_fill(buf + FR_EAGER_HDR_BYTES, HOSTILE_SMALL, HOSTILE_MSG_SEED);
	return FR_EAGER_HDR_BYTES + HOSTILE_SMALL;
}

static size_t good_note(const struct forge_peer *peer, uint8_t type,
			uint8_t *buf)
{
	struct fr_link_note note = {
		.comm = peer->msg.comm,
		.nonce = peer->msg.nonce,
		.a = 1,
	};
	int len = fr_link_note_encode(type, &note, buf, 512);

	PAIR_CHECK(len > 0, "a good message of type %u", type);
	return (size_t)len;
}

static size_t good_message(const struct forge_peer *peer, uint8_t type,
			   uint8_t *buf)
{
	switch (type) {
	case FR_LINK_ACK:
		return 0;
	case FR_LINK_CTS:
		return good_cts(peer, buf);
	case FR_LINK_EAGER:
		return good_eager(peer, buf);
	case FR_LINK_FENCE:
	case FR_LINK_FENCED:
	case FR_LINK_RAIL:
		garbage(buf, 128);
		return 128;
	default:
		return good_note(peer, type, buf);
	}
}

/* -- attacks that must change nothing ---------------------------------------*/

static void other_sets(struct forge *f, struct forge_peer *peer, unsigned i)
{
	uint8_t buf[1024];

	(void)i;
	for (unsigned type = FR_LINK_ACK; type <= FR_LINK_RAIL; type++) {
		size_t len = good_message(peer, (uint8_t)type, buf);
		struct fr_link_hdr hdr;

		forge_hdr(peer, (uint8_t)type, len, &hdr);
		hdr.dst_set ^= 0x100;
		forge_link_raw(f, peer, &hdr, buf, len);
		hdr.dst_set ^= 0x100;
		hdr.src_set ^= UINT64_C(1) << 40;
		forge_link_raw(f, peer, &hdr, buf, len);
		/* The victim as its own peer. */
		hdr.src_set = peer->msg.set_id;
		forge_link_raw(f, peer, &hdr, buf, len);
	}
}

static void strange_comms(struct forge *f, struct forge_peer *peer, unsigned i)
{
	uint8_t buf[1024];

	for (unsigned type = FR_LINK_CTS; type <= FR_LINK_CLOSED; type++) {
		struct forge_peer spoiled = *peer;
		size_t len;

		if (i == 0) {
			spoiled.msg.comm = UNKNOWN_COMM;
		} else {
			spoiled.msg.nonce += i;
		}
		len = good_message(&spoiled, (uint8_t)type, buf);
		forge_link(f, peer, (uint8_t)type, 0, buf, len);
	}
}

/* Comms of others, the healthy peer's among them. */
static void comms_of_others(struct forge *f, struct forge_peer *peer,
			    unsigned i)
{
	uint8_t buf[1024];

	(void)i;
	for (uint32_t comm = 0; comm < 16; comm++) {
		for (unsigned type = FR_LINK_CTS; type <= FR_LINK_CLOSED;
		     type++) {
			struct forge_peer spoiled = *peer;
			size_t len;

			if (comm == peer->msg.comm) {
				continue;
			}
			spoiled.msg.comm = comm;
			len = good_message(&spoiled, (uint8_t)type, buf);
			forge_link(f, peer, (uint8_t)type, 0, buf, len);
		}
	}
}

static void cts_for_a_receiver(struct forge *f, struct forge_peer *peer,
			       unsigned i)
{
	uint8_t buf[512];

	(void)i;
	forge_link(f, peer, FR_LINK_CTS, 0, buf, good_cts(peer, buf));
}

static void bad_headers(struct forge *f, struct forge_peer *peer, unsigned i)
{
	uint8_t buf[64] = {0}, bad[64];
	struct fr_link_hdr hdr;

	(void)i;
	forge_hdr(peer, FR_LINK_PING, 8, &hdr);
	fr_link_hdr_encode(&hdr, buf);
	for (size_t len = 1; len < FR_LINK_HDR_BYTES + 8; len++) {
		forge_push(f, peer->ctrl, buf, len);
	}
	for (unsigned type = FR_LINK_RAIL + 1; type <= 0xff; type++) {
		memcpy(bad, buf, sizeof(bad));
		bad[0] = (uint8_t)type;
		forge_push(f, peer->ctrl, bad, FR_LINK_HDR_BYTES + 8);
	}
	for (unsigned bit = 1; bit < 8; bit++) {
		memcpy(bad, buf, sizeof(bad));
		bad[1] = (uint8_t)(1u << bit);
		forge_push(f, peer->ctrl, bad, FR_LINK_HDR_BYTES + 8);
	}
	for (unsigned len = 0; len <= 0xffff; len += 4369) {
		memcpy(bad, buf, sizeof(bad));
		bad[2] = (uint8_t)len;
		bad[3] = (uint8_t)(len >> 8);
		forge_push(f, peer->ctrl, bad, FR_LINK_HDR_BYTES + 9);
	}
	memcpy(bad, buf, sizeof(bad));
	bad[0] = FR_LINK_ACK;
	forge_push(f, peer->ctrl, bad, FR_LINK_HDR_BYTES + 8);
}

static void lying_numbers(struct forge *f, struct forge_peer *peer, unsigned i)
{
	static const uint32_t far[] = {
		0, 66, 1000, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff,
	};
	uint8_t buf[64];
	size_t len = good_note(peer, FR_LINK_PING, buf);

	(void)i;
	for (size_t k = 0; k < FR_ARRAY_LEN(far); k++) {
		struct fr_link_hdr hdr;

		forge_hdr(peer, FR_LINK_PING, len, &hdr);
		hdr.seq = far[k];
		forge_link_raw(f, peer, &hdr, buf, len);
		forge_hdr(peer, FR_LINK_ACK, 0, &hdr);
		hdr.ack = far[k];
		forge_link_raw(f, peer, &hdr, buf, 0);
	}
}

/* Each asks for an answer that is never acknowledged. */
static void floods(struct forge *f, struct forge_peer *peer, unsigned i)
{
	uint8_t type = i == 0 ? FR_LINK_PING : FR_LINK_WANT;
	uint8_t buf[64];
	size_t len = good_note(peer, type, buf);

	for (unsigned k = 0; k < FLOOD; k++) {
		forge_link(f, peer, type, FR_LINK_F_ACK_NOW, buf, len);
		if (k % 64 == 0) {
			forge_poll(f, 0);
		}
	}
}

static void strange_wants(struct forge *f, struct forge_peer *peer, unsigned i)
{
	uint8_t buf[64];

	(void)i;
	for (uint32_t k = 0; k < 64; k++) {
		struct fr_link_note note = {
			.comm = peer->msg.comm,
			.nonce = peer->msg.nonce,
			.seq = k < 32 ? UINT32_C(1) << k
				      : 0 - (UINT32_C(1) << (k - 32)),
			.a = UINT64_MAX,
		};
		int len = fr_link_note_encode(FR_LINK_WANT, &note, buf, 64);

		forge_link(f, peer, FR_LINK_WANT, 0, buf, (size_t)len);
		len = fr_link_note_encode(FR_LINK_LENGTH, &note, buf, 64);
		forge_link(f, peer, FR_LINK_LENGTH, 0, buf, (size_t)len);
	}
}

static void too_long(struct forge *f, struct forge_peer *peer, unsigned i)
{
	static const size_t bytes[] = {8240,  8241,  8304,    9000,
				       16384, 65536, 1u << 20};
	static const uint8_t first[] = {0x11, 0x12, 0xc1, 0xc2, 0x00, 0xff};
	uint8_t *buf = forge_out(f);

	(void)i;
	for (size_t k = 0; k < FR_ARRAY_LEN(bytes); k++) {
		for (size_t n = 0; n < FR_ARRAY_LEN(first); n++) {
			garbage(buf, bytes[k]);
			buf[0] = first[n];
			/* What it cannot take may cost us the connection. */
			(void)forge_try(f, peer->ctrl, buf, bytes[k]);
		}
	}
	(void)forge_send(f, peer->ctrl, buf, 0);
}

static void random_bytes(struct forge *f, struct forge_peer *peer, unsigned i)
{
	uint8_t buf[2100];

	(void)i;
	for (unsigned k = 0; k < RANDOM_MSGS; k++) {
		size_t len = 1 + roll() % (k % 4 == 0 ? sizeof(buf) : 96);

		garbage(buf, len);
		switch (k % 4) {
		case 1: /* far enough to be looked at */
			buf[0] = (uint8_t)(FR_LINK_ACK + roll() % 13);
			break;
		case 2:
			buf[0] = (uint8_t)(0x11 + roll() % 2);
			break;
		default:
			break;
		}
		forge_push(f, peer->ctrl, buf, len);
	}
}

/* -- attacks that must end this connection ------------------------------------
 * Their receives are short ones: where one was announced, its memory can be had
 * back from a living peer only by a fence, which ends more than this
 * connection. */

/* Every length of a type that is not the right one, a connection each. */
static void spoil_length(struct forge *f, struct forge_peer *peer, uint8_t type,
			 size_t len)
{
	uint8_t buf[1024] = {0};

	(void)good_message(peer, type, buf);
	forge_link(f, peer, type, 0, buf, len);
}

static void cts_lengths(struct forge *f, struct forge_peer *peer, unsigned i)
{
	spoil_length(f, peer, FR_LINK_CTS, i < 88 ? i : 89);
}

static void eager_lengths(struct forge *f, struct forge_peer *peer, unsigned i)
{
	spoil_length(f, peer, FR_LINK_EAGER,
		     i < 26 ? i
			    : FR_EAGER_HDR_BYTES + HOSTILE_SMALL -
				      (i == 26 ? 1 : -1));
}

static const struct {
	uint8_t type;
	uint8_t bytes;
} notes[] = {
	{FR_LINK_WANT, 12},  {FR_LINK_NACK, 32},   {FR_LINK_LENGTH, 24},
	{FR_LINK_CLOSE, 12}, {FR_LINK_CLOSED, 12}, {FR_LINK_PING, 8},
};

/* Cut, cut to nothing, one byte too many. */
static void note_lengths(struct forge *f, struct forge_peer *peer, unsigned i)
{
	const size_t right = notes[i / 3].bytes;
	const size_t wrong[] = {right - 1, 0, right + 1};

	spoil_length(f, peer, notes[i / 3].type, wrong[i % 3]);
}

static const struct {
	uint8_t at;
	uint8_t value;
} cts_spoils[] = {
	{2, 0x04}, /* comm beyond 2^18 */
	{20, 17},    {20, 255},	  {20, 0},     {21, 9},
	{21, 255},   {21, 0},	  {22, 1}, /* flags */
	{24 + 4, 0},			   /* group */
	{24 + 4, 9}, {24 + 5, 1}, {24 + 6, 1},
};

static void cts_counts(struct forge *f, struct forge_peer *peer, unsigned i)
{
	uint8_t buf[512];
	size_t len = good_cts(peer, buf);

	buf[cts_spoils[i].at] = cts_spoils[i].value;
	forge_link(f, peer, FR_LINK_CTS, 0, buf, len);
}

static void not_offered(struct forge *f, struct forge_peer *peer, unsigned i)
{
	uint8_t buf[256];

	garbage(buf, sizeof(buf));
	forge_link(f, peer, (uint8_t)(FR_LINK_FENCE + i), 0, buf, 128);
}

static void eager_that_nobody_takes(struct forge *f, struct forge_peer *peer,
				    unsigned i)
{
	static const struct {
		uint8_t flags;
		uint32_t index, base32, len;
	} bad[] = {
		{0, 64, 0, 8},
		{0, 0xffffffff, 0, 8},
		{FR_LINK_F_AT, 0, 1, 8},
		{FR_LINK_F_AT, 0, 0xffffffff, 8},
		{FR_LINK_F_AT, 0, 256, 8},
		{FR_LINK_F_AT, 0, 0, 8192}, /* longer than its receive */
		{0, 0, 0, 8192},
	};
	uint8_t buf[FR_EAGER_HDR_BYTES + 8192] = {0};
	struct fr_eager msg = {
		.comm = peer->msg.comm,
		.nonce = peer->msg.nonce,
		.index = bad[i].index,
		.base32 = bad[i].base32,
		.tag = TAG,
		.len = bad[i].len,
	};

	fr_eager_hdr_encode(&msg, buf);
	forge_link(f, peer, FR_LINK_EAGER, bad[i].flags, buf,
		   FR_EAGER_HDR_BYTES + bad[i].len);
}

static void lying_close(struct forge *f, struct forge_peer *peer, unsigned i)
{
	static const uint32_t final[] = {0, 1000, 0x80000000, 0xffffffff};
	struct fr_link_note note = {
		.comm = peer->msg.comm,
		.nonce = peer->msg.nonce,
		.seq = final[i],
	};
	uint8_t buf[64];
	int len = fr_link_note_encode(FR_LINK_CLOSE, &note, buf, sizeof(buf));

	forge_link(f, peer, FR_LINK_CLOSE, 0, buf, (size_t)len);
}

static void lying_nack(struct forge *f, struct forge_peer *peer, unsigned i)
{
	struct fr_link_note note = {
		.comm = peer->msg.comm,
		.nonce = peer->msg.nonce,
		.flags = 1,
		.a = UINT64_MAX,
		.b = i,
	};
	uint8_t buf[64];
	int len = fr_link_note_encode(FR_LINK_NACK, &note, buf, sizeof(buf));

	forge_link(f, peer, FR_LINK_NACK, 0, buf, (size_t)len);
}

/* -- one attack -------------------------------------------------------------*/

static void fill_receive(struct forge *f, struct forge_peer *peer,
			 uint32_t bytes)
{
	uint8_t buf[1024];
	struct fr_imm imm;
	uint64_t word;
	int ret = -EAGAIN;

	if (bytes == HOSTILE_SMALL) {
		forge_link(f, peer, FR_LINK_EAGER, 0, buf,
			   good_eager(peer, buf));
		return;
	}
	word = hostile_good_imm(f, peer, &imm);
	pair_fill(forge_out(f), bytes, HOSTILE_MSG_SEED);
	for (int i = 0; i < 100 && ret != 0; i++) {
		pair_nap_us(i == 0 ? 0 : 10000); /* it connects again */
		ret = forge_write(f, peer->data, bytes,
				  peer->cts.entries[0].addr,
				  peer->cts.entries[0].keys[0], word);
	}
	PAIR_CHECK(ret == 0, "the good write: %s", strerror(-ret));
}

static void run_one(struct pair_member *me, struct forge *f,
		    const uint8_t *handle, const struct attack *attack,
		    unsigned i)
{
	const struct hostile_word word = {HOSTILE_ACCEPT, attack->bytes};
	struct hostile_answer answer, before;
	struct forge_peer peer;

	pair_put(me, VICTIM, &word, sizeof(word));
	forge_connect(f, handle, &peer);
	pair_get(me, VICTIM, &before, sizeof(before));
	PAIR_CHECK(before.result == 0, "%s %u: accept: %d", attack->name, i,
		   before.result);
	if (attack->bytes == HOSTILE_BIG) {
		forge_wait_cts(f, &peer);
	}
	attack->run(f, &peer, i);
	answer.result = -1;
	for (unsigned k = 0; k < 20 && answer.result < 0; k++) {
		uint32_t seq = peer.seq;

		/* A connection that the victim's provider cut loses what was
		 * on its way, and says nothing. */
		if (attack->hope == LIVES) {
			fill_receive(f, &peer, attack->bytes);
			peer.seq = seq;
		}
		answer = hostile_ask(me, HOSTILE_WATCH, pair_stretch(500));
	}
	if (attack->hope == FAILS) {
		PAIR_CHECK(answer.result > 0,
			   "%s %u: the victim's receive ended with %d",
			   attack->name, i, answer.result);
		PAIR_CHECK(answer.lines <= before.lines + 1, "%s %u: %u lines",
			   attack->name, i, answer.lines - before.lines);
	} else {
		PAIR_CHECK(
			answer.result == 0 && answer.value == attack->bytes,
			"%s %u: the victim's receive ended with %d, %d bytes",
			attack->name, i, answer.result, (int)answer.value);
	}
	(void)hostile_ask(me, HOSTILE_DROP, 0);
	forge_leave(f, &peer);
}

/* clang-format off */
static const struct attack attacks[] = {
	{"messages of other sets", LIVES, HOSTILE_SMALL, other_sets, 0},
	{"unknown comms and stale nonces", LIVES, HOSTILE_SMALL, strange_comms, 3},
	{"comms of others", LIVES, HOSTILE_SMALL, comms_of_others, 0},
	{"a CTS for a receiver", LIVES, HOSTILE_SMALL, cts_for_a_receiver, 0},
	{"bad headers", LIVES, HOSTILE_SMALL, bad_headers, 0},
	{"lying numbers", LIVES, HOSTILE_SMALL, lying_numbers, 0},
	{"floods", LIVES, HOSTILE_BIG, floods, 2},
	{"strange wants and lengths", LIVES, HOSTILE_BIG, strange_wants, 0},
	{"longer than the buffer", LIVES, HOSTILE_SMALL, too_long, 0},
	{"random bytes", LIVES, HOSTILE_BIG, random_bytes, 0},
	{"a CTS of each wrong length", FAILS, HOSTILE_SMALL, cts_lengths, 89},
	{"an eager message of wrong lengths", FAILS, HOSTILE_SMALL, eager_lengths, 28},
	{"short messages of wrong lengths", FAILS, HOSTILE_SMALL, note_lengths, 18},
	{"a CTS with wrong fields", FAILS, HOSTILE_SMALL, cts_counts, FR_ARRAY_LEN(cts_spoils)},
	{"types that nobody offered", FAILS, HOSTILE_SMALL, not_offered, 3},
	{"eager messages for no receive", FAILS, HOSTILE_SMALL, eager_that_nobody_takes, 7},
	{"lying closes", FAILS, HOSTILE_SMALL, lying_close, 4},
	{"lying NACKs", FAILS, HOSTILE_SMALL, lying_nack, 1},
	{"strange immediates", LIVES, HOSTILE_BIG, hostile_immediates, 0},
	{"wrong keys", LIVES, HOSTILE_BIG, hostile_keys, 0},
	{"the last write again", DONE, HOSTILE_BIG, hostile_duplicates, 0},
	{"eight stripes and four more", DONE, HOSTILE_BIG, hostile_stripes, 0},
};
/* clang-format on */

void hostile_link_attack(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct hostile_answer begin, end;
	struct forge *f = forge_open();
	unsigned failing = 0;

	(void)hostile_listen(me, handle);
	begin = hostile_ask(me, HOSTILE_LOOK, 0);
	for (size_t a = 0; a < FR_ARRAY_LEN(attacks); a++) {
		uint64_t began = pair_now_ms();

		pair_at(me, attacks[a].name);
		for (unsigned i = 0; i < FR_MAX(attacks[a].cnt, 1u); i++) {
			run_one(me, f, handle, &attacks[a], i);
			failing += attacks[a].hope == FAILS;
		}
		if (pair_now_ms() - began > 1000) {
			pair_say("    %s: %u ms", attacks[a].name,
				 (unsigned)(pair_now_ms() - began));
		}
	}
	end = hostile_ask(me, HOSTILE_LOOK, 0);
	/* One a connection that failed, and what passes the limit. */
	PAIR_CHECK(end.lines - begin.lines <= failing + 20,
		   "%u lines for %u failed connections",
		   end.lines - begin.lines, failing);
	forge_close(f);
}
