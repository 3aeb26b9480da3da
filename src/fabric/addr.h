/* IP addresses as 16 bytes, IPv4 as ::ffff:a.b.c.d. Pure. */
#ifndef FR_FABRIC_ADDR_H
#define FR_FABRIC_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#define FR_ADDR_TEXT 64

bool fr_addr_is_v4(const uint8_t addr[16]);
/* "10.0.0.1" or "fd00::1"; @text has room for FR_ADDR_TEXT bytes. */
void fr_addr_text(const uint8_t addr[16], char *text);
/* @addr without the bits past @prefix. */
void fr_addr_subnet(const uint8_t addr[16], uint8_t prefix, uint8_t subnet[16]);

#endif
