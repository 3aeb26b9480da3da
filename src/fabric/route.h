/* Through which interface the kernel sends. Private to src/fabric. */
#ifndef FR_FABRIC_ROUTE_H
#define FR_FABRIC_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#define FR_ROUTE_NAME_BYTES 16

/**
 * fr_route_out - the interface by which a neighbour is reached
 * @addr: an address of this host, IPv4 as ::ffff:a.b.c.d
 * @prefix: of its subnet
 * @name: out: the interface that takes what @addr sends to its subnet
 *
 * Blocking: one question to the kernel, or a few. Return: false when the kernel
 * does not say; then @name is as it was.
 */
bool fr_route_out(const uint8_t addr[16], uint8_t prefix,
		  char name[FR_ROUTE_NAME_BYTES]);
typedef bool (*fr_route_out_fn)(const uint8_t addr[16], uint8_t prefix,
				char name[FR_ROUTE_NAME_BYTES]);
/* For tests: who answers instead of the kernel; NULL: the kernel. */
void fr_route_set_out(fr_route_out_fn out);

#endif
