/*
 * The connection handle: 128 bytes (64 for the oldest ABI) that listen fills
 * and the host program carries to the connecting process.
 *
 *    0  4  magic "FRNH"
 *    4  1  version (1)
 *    5  1  name count, 1..4
 *    6  1  name length in bytes, 1..56; all names have the same
 *    7  1  port slot: offset in the handle of {knock port u16, provider u8},
 *          0 when there was no room
 *    8  8  cookie, random
 *   16 48  names of the listener's control endpoints, back to back
 *   64 16  names, continued (not in a 64-byte handle)
 *   80 48  zero here; the connecting side keeps its own state in it
 *
 * The port slot lies after the last name, or, for IPv4 socket addresses (16
 * bytes), in the 8 bytes of padding of the first name, which decode zeroes
 * again. Bytes 0 to 15 and the first name keep their meaning in every version.
 * Pure; no allocation.
 */
#ifndef FR_WIRE_HANDLE_H
#define FR_WIRE_HANDLE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/name.h"

#define FR_HANDLE_BYTES 128u
#define FR_HANDLE_BYTES_V4 64u
#define FR_HANDLE_STATE_OFFSET 80u
#define FR_HANDLE_VERSION 1u
#define FR_HANDLE_MAX_NAMES 4u

struct fr_handle {
	uint8_t version;
	uint8_t prov; /* enum fr_wire_prov; 0 when the handle does not say */
	uint16_t knock_port; /* host byte order; 0: unknown */
	uint64_t cookie;
	unsigned name_cnt;
	struct fr_name names[FR_HANDLE_MAX_NAMES];
};

/* Writes all of @bytes (64 or 128), zeros where nothing belongs; as many names
 * as fit, of those that are as long as the first. Return: 0; -EINVAL when not
 * even one fits. */
int fr_handle_encode(const struct fr_handle *h, void *buf, size_t bytes);

/* @why: set on error to a static text that names the bad field. A handle of
 * another version decodes version, cookie and, where they are sane, first name,
 * port and provider, and returns -EPROTONOSUPPORT. Return: 0; -EBADMSG. */
int fr_handle_decode(struct fr_handle *h, const void *buf, size_t bytes,
		     const char **why);

#endif
