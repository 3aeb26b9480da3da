/*
 * Our rails and a peer's, as both said in the connect message and its response:
 * who talks to whom, and what does not match.
 */
#ifndef FR_NET_PAIRING_H
#define FR_NET_PAIRING_H

#include "net/railmap.h"
#include "net/set.h"

struct fr_rail_pair {
	uint8_t ours;
	uint8_t theirs;
};

/* The paths of a link between @set and who sent @msg, in the order in which
 * both sides list them. Return: their number; 0 when no two rails can talk. */
unsigned fr_pairing_plan(const struct fr_set *set,
			 const struct fr_conn_msg *msg,
			 struct fr_rail_pair pair[FR_RAILMAP_MAX_RAILS]);

/* Warns, once a device, of a peer with another number of rails, or when rails
 * of either side are in none of the @cnt pairs. */
void fr_pairing_say(const struct fr_set *set, const struct fr_conn_msg *msg,
		    const struct fr_rail_pair *pair, unsigned cnt);

#endif
