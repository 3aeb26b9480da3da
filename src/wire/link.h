/*
 * Messages of the link channel (control endpoint to control endpoint).
 *
 * Header, 24 bytes:
 *    0  1  type, FR_LINK_*          (0xc0 on: never a connect message's byte)
 *    1  1  flags, FR_LINK_F_*
 *    2  2  length of what follows the header
 *    4  4  link sequence number (0 on ACK and RESET: they have none)
 *    8  4  ack: every number below was received
 *   12  4  low 32 bits of the destination set's id
 *   16  8  source set id
 *
 * Decoders accept exactly what their encoder can write; anything else is
 * -EBADMSG with a static text. doc/wire.md has the byte tables. Pure.
 */
#ifndef FR_WIRE_LINK_H
#define FR_WIRE_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "wire/name.h"

#define FR_LINK_HDR_BYTES 24u
#define FR_LINK_MAX_KEYS 8u
#define FR_CTS_MAX_ENTRIES 16u

enum fr_link_type {
	FR_LINK_ACK = 0xc0, /* header only, not sequenced */
	FR_LINK_CTS = 0xc1,
	FR_LINK_EAGER = 0xc2,
	FR_LINK_WANT = 0xc3,
	FR_LINK_NACK = 0xc4,
	FR_LINK_LENGTH = 0xc5,
	FR_LINK_CLOSE = 0xc6,
	FR_LINK_CLOSED = 0xc7,
	FR_LINK_PING = 0xc8,
	FR_LINK_PONG = 0xc9,
	FR_LINK_FENCE = 0xca,
	FR_LINK_FENCED = 0xcb,
	FR_LINK_RAIL = 0xcc,
	FR_LINK_RESET = 0xcd, /* header only, not sequenced: the sender has
				 given up this link for good */
};

#define FR_LINK_F_ACK_NOW 0x01u /* acknowledge at the end of this pass */
#define FR_LINK_F_AT 0x02u	/* EAGER: names its receive */

struct fr_link_hdr {
	uint8_t type;
	uint8_t flags;
	uint16_t len;
	uint32_t seq;
	uint32_t ack;
	uint32_t dst_set; /* low 32 bits */
	uint64_t src_set;
};

void fr_link_hdr_encode(const struct fr_link_hdr *h, void *buf);
/* @bytes: of the whole message; must be header plus len. */
int fr_link_hdr_decode(struct fr_link_hdr *h, const void *buf, size_t bytes,
		       const char **why);

/*
 * CTS: receives were posted.
 *    0  4  comm id of the sending comm at the peer     16  4  first32
 *    4  4  its nonce                                   20  1  entries, 0..16
 *    8  4  done32: all messages below are complete     21  1  keys an entry
 *   12  4  prev32                                      22  2  flags, 0
 *   24     entries
 * Numbers [prev32, first32) are blind receives: single, no longer than what
 * goes as EAGER anyway, so they have no entry. The entries are first32,
 * first32+1, ... Entry: tag i32, group size u8 (1..8), index in group u8, pad
 * u16, address u64, length u64, then a key u64 for each of the receiver's
 * rails.
 */
struct fr_cts_entry {
	int32_t tag;
	uint8_t group; /* 1..8 */
	uint8_t index; /* below group */
	uint64_t addr; /* virtual address or offset, as the provider has it */
	uint64_t len;
	uint64_t keys[FR_LINK_MAX_KEYS];
};

struct fr_cts {
	uint32_t comm;
	uint32_t nonce;
	uint32_t done32;
	uint32_t prev32;
	uint32_t first32;
	uint8_t entry_cnt;
	uint8_t key_cnt; /* 1..8, or 0 when there is no entry */
	struct fr_cts_entry entries[FR_CTS_MAX_ENTRIES];
};

/* All encoders: Return bytes written, or -EMSGSIZE / -EINVAL. */
int fr_cts_encode(const struct fr_cts *m, void *buf, size_t bytes);
int fr_cts_decode(struct fr_cts *m, const void *buf, size_t bytes,
		  const char **why);

/*
 * EAGER, 24 bytes and the payload:
 *    0  4  comm id of the receiving comm    12  4  base32
 *    4  4  its nonce                        16  4  tag
 *    8  4  index                            20  4  length
 * With FR_LINK_F_AT in the header's flags, base32 is the number of the receive
 * that takes it, and index is 0. Without, the sender knew of no receive that is
 * free: index counts such messages of the comm from 0, and the receive is the
 * oldest open one from number base32 on that takes the tag, messages served in
 * the order of their index.
 */
#define FR_EAGER_HDR_BYTES 24u
struct fr_eager {
	uint32_t comm;
	uint32_t nonce;
	uint32_t index;
	uint32_t base32;
	int32_t tag;
	uint32_t len;
};

void fr_eager_hdr_encode(const struct fr_eager *m, void *buf);
/* *@payload points into @buf. Exactly len bytes follow the header. */
int fr_eager_decode(struct fr_eager *m, const void *buf, size_t bytes,
		    const uint8_t **payload, const char **why);

/* WANT (sender to receiver): comm u32, nonce u32, seq u32: repeat this CTS.
 * CLOSE, CLOSED: comm, nonce, final u32 (messages sent, or receives posted).
 * NACK: comm, nonce, seq, pad u32, send length u64, receive length u64; flags
 *       in pad: 1: told by the sender of the data, 0: by its receiver.
 * LENGTH: comm, nonce, seq, pad, length u64.
 * PING, PONG: token u64. */
struct fr_link_note {
	uint32_t comm;
	uint32_t nonce;
	uint32_t seq;	/* WANT, NACK, LENGTH; CLOSE, CLOSED: final */
	uint32_t flags; /* NACK */
	uint64_t a;	/* NACK: send length; LENGTH: length; PING: token */
	uint64_t b;	/* NACK: receive length */
};

/* @type: one of WANT, NACK, LENGTH, CLOSE, CLOSED, PING, PONG. */
int fr_link_note_encode(uint8_t type, const struct fr_link_note *m, void *buf,
			size_t bytes);
int fr_link_note_decode(uint8_t type, struct fr_link_note *m, const void *buf,
			size_t bytes, const char **why);

/* FENCE, FENCED, RAIL of the failover protocol: see fence.h. */

#endif
