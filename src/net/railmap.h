/*
 * Which rail of one side talks to which rail of the other. Both sides know both
 * lists from the connect message and its response, and come to the same answer.
 *
 * 1. Rails in equal subnets are paired in index order, each at most once.
 * 2. A rail that is left over in a subnet that both sides have goes round the
 *    other side's rails there.
 * 3. Sides without any subnet in common are joined by routers: their rails of
 *    one family are paired in index order, and the bigger side goes round the
 *    smaller one.
 *
 * An address that both sides have, while other rails of theirs share a subnet
 * and no address, leads each side back to itself: every host has it, as those
 * of container bridges. Such rails take no part.
 *
 * By rule 3 alone does a rail meet another subnet. Beside rails that share one
 * it would be a guess, and what is sent on a guess may never arrive: such a
 * rail is not used with this peer.
 *
 * Pure: depends on the two arrays and nothing else.
 */
#ifndef FR_NET_RAILMAP_H
#define FR_NET_RAILMAP_H

#include <stdbool.h>
#include <stdint.h>

#define FR_RAILMAP_MAX_RAILS 8u

struct fr_railmap_rail {
	uint8_t subnet[16]; /* as in struct fr_conn_rail */
	uint8_t prefix;	    /* 0: not an IP network */
	uint8_t addr[16];   /* all zero: none */
};

struct fr_railmap_path {
	uint8_t connector_rail;
	uint8_t acceptor_rail;
};

/* Counts are 1..8 each. Writes at most 8 paths, sorted by connector rail, then
 * acceptor rail. Return: their number; 0 when no two rails have an address
 * family in common. */
unsigned fr_railmap_plan(const struct fr_railmap_rail *connector,
			 unsigned connector_cnt,
			 const struct fr_railmap_rail *acceptor,
			 unsigned acceptor_cnt,
			 struct fr_railmap_path paths[FR_RAILMAP_MAX_RAILS]);

bool fr_railmap_same_subnet(const struct fr_railmap_rail *a,
			    const struct fr_railmap_rail *b);

#endif
