/*
 * Connect message and its response: same layout, told apart by the type.
 *
 *    0    1  type (low 4 bits) and version (high 4 bits): 0x11 connect,
 *            0x12 response
 *    1    1  rails (low 4 bits) and control rails (high 4 bits)
 *    2    2  features, FR_FEAT_*
 *    4    4  comm id of the sender of this message
 *    8    8  cookie
 *   16  256  4 data endpoint names,    each 56 bytes + length u64
 *  272  256  4 control endpoint names, each 56 bytes + length u64
 *  528    -  TLVs {type u16, length u16, value}, to 2048 bytes in all; an
 *            unknown type is skipped
 *
 * TLVs: RAIL (one a rail, also those beyond 4), SET, SCRATCH, TEXT, COMM,
 * STATUS. doc/wire.md has the byte tables. Pure; no allocation.
 */
#ifndef FR_WIRE_CONN_H
#define FR_WIRE_CONN_H

#include <stddef.h>
#include <stdint.h>

#include "wire/name.h"

#define FR_CONN_VERSION 1u
#define FR_CONN_FIXED_BYTES 528u
#define FR_CONN_MAX_BYTES 2048u
#define FR_CONN_MAX_RAILS 8u
#define FR_CONN_TEXT_MAX 200u

enum fr_conn_type { FR_CONN_REQUEST = 1, FR_CONN_RESPONSE = 2 };

/* Feature bits: what the sender of the message can do. */
#define FR_FEAT_FENCE 0x0001u  /* acts on FENCE, FENCED and RAIL */
#define FR_FEAT_BLIND 0x0002u  /* understands blind receives in a CTS */
#define FR_FEAT_GROUPS 0x0004u /* grouped receives */

struct fr_conn_rail {
	uint8_t subnet[16]; /* IPv4 as ::ffff:a.b.c.d; host bits zero */
	uint8_t prefix;	    /* of the 128 bits */
	uint32_t speed_mbps;
	char iface[16]; /* NUL-terminated within */
	struct fr_name data;
	struct fr_name ctrl;
	uint32_t incarnation;	/* of the data endpoint, from 1 */
	uint16_t knock_port;	/* on this rail's address; 0: none */
	uint8_t knock_addr[16]; /* IPv4 mapped likewise; all zero: none */
};

struct fr_conn_msg {
	uint8_t type;
	uint8_t version;
	uint16_t features;
	uint32_t comm;	       /* sender's comm id, below 2^18 */
	uint64_t cookie;       /* of the listener, from the handle */
	uint8_t prov;	       /* enum fr_wire_prov */
	uint8_t cq_data_bytes; /* 4 or 8 */
	uint32_t nonce;	       /* of the sender's comm */
	int32_t status;	       /* response: 0, or a refusal: errno, positive */
	unsigned rail_cnt;     /* 0..8 */
	struct fr_conn_rail rails[FR_CONN_MAX_RAILS];
	uint64_t set_id;
	uint32_t window;	  /* link messages in flight, unacknowledged */
	uint32_t eager_max_bytes; /* payload of an EAGER the sender sends or
				     takes, whichever is less; 0: none */
	uint64_t connect_id;	  /* random, of the connecting side's attempt */
	uint64_t scratch_addr;
	uint64_t scratch_key[FR_CONN_MAX_RAILS];
	char text[FR_CONN_TEXT_MAX]; /* refusal, NUL-terminated */
};

/* Return: bytes written; -EMSGSIZE when @bytes is too small; -EINVAL when a
 * field is out of range. FR_CONN_MAX_BYTES always suffice. */
int fr_conn_encode(const struct fr_conn_msg *m, void *buf, size_t bytes);

/*
 * Decodes and checks everything: lengths, counts, ids below their limits, text
 * terminated and printable (other bytes become '?'). A message with 0 rails
 * decodes: the caller refuses it with a text. @why: static text on error.
 * Return: 0; -EPROTONOSUPPORT for another version (type, version, comm, cookie
 * are valid then); -EBADMSG.
 */
int fr_conn_decode(struct fr_conn_msg *m, const void *buf, size_t bytes,
		   const char **why);

#endif
