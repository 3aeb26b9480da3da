/* Sockets for the two halves of the knock. For knock*.c only. */
#ifndef FR_NET_KNOCK_SOCK_H
#define FR_NET_KNOCK_SOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "net/knock.h"

/* A non-blocking, close-on-exec TCP socket of the family of @addr.
 * Return: descriptor; -errno. */
int fr_knock_sock_open(const struct fr_knock_addr *addr);
/* Return: 0; -errno. */
int fr_knock_sock_bind(int fd, const struct fr_knock_addr *addr, uint16_t port);
/* Return: 0; -EINPROGRESS; -errno. */
int fr_knock_sock_connect(int fd, const struct fr_knock_addr *peer);
/* Opens, binds to the address of @local unless that is all zero, and begins to
 * connect. Return: descriptor, maybe still connecting; -errno. */
int fr_knock_sock_dial(const struct fr_knock_addr *local,
		       const struct fr_knock_addr *peer);
/* Port the socket is bound to; 0 when the kernel will not say. */
uint16_t fr_knock_sock_port(int fd);
/* Both ends are the same socket: the kernel chose the port that was dialled as
 * the local one, which happens when nobody listens on it. */
bool fr_knock_sock_is_self(int fd);

#endif
