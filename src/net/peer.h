/*
 * What handles and connect messages say of the other side: addresses in names,
 * the rail of ours that reaches them, and whether we understand it at all.
 */
#ifndef FR_NET_PEER_H
#define FR_NET_PEER_H

#include "net/set.h"
#include "wire/handle.h"

/* IP address in @name, IPv4 as ::ffff:a.b.c.d; all zero when it has none. */
void fr_name_addr(const struct fr_name *name, uint8_t addr[16]);
/* The TCP port in @name, host byte order; 0 when it has none. */
uint16_t fr_name_port(const struct fr_name *name);
/* Where the set of the endpoint @name answers knocks: beside the file that it
 * is, else at @ip. @port 0: nowhere. */
void fr_peer_knock_addr(const struct fr_name *name, const uint8_t ip[16],
			uint16_t port, struct fr_knock_addr *out);
/* For log lines, FR_PEER_TEXT bytes: the address, or the name of the file. */
#define FR_PEER_TEXT 64u
void fr_peer_text(const struct fr_knock_addr *addr, char *text);
/* The rail of @set that reaches @name best: the one in its subnet, else the
 * first of its IP version, else 0. */
struct fr_rail *fr_conn_rail_for(struct fr_set *set,
				 const struct fr_name *name);
/* The name of @handle to begin with: the first in a subnet of ours that is not
 * an address of ours as well, as those of container bridges are; else the first
 * in a subnet of ours, else 0. */
unsigned fr_peer_near_name(const struct fr_set *set,
			   const struct fr_handle *handle);

/* Decodes a handle of 128 bytes and checks that @dev can talk to its listener;
 * core.lock is held. Return: 0; -EINVAL, logged: not a handle; -EPROTO: of
 * another version, provider or IP version, with @text, not logged. */
int fr_peer_check_handle(const struct fr_device *dev, const void *buf,
			 struct fr_handle *handle, char *text, size_t bytes);
/* The listener cannot understand us: tells it so through its knock port. Waits
 * 200 ms at most; no lock is held. */
void fr_peer_refuse_wait(const struct fr_handle *handle, const char *text);

/* A rail without a control name has its data endpoint for control as well. */
void fr_peer_fill_names(struct fr_conn_msg *msg);

#endif
