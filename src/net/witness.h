/*
 * Whether a process whose knock port is open, and says nothing, is there at
 * all. One that is stopped looks so; but so does a stranger who got the port
 * when its owner had died. Where the peer's control endpoint is a TCP port, its
 * kernel is asked about that one too: a stranger hardly has both.
 *
 * libfabric may keep what a guest leaves behind, so there is one connection,
 * held for as long as the doubt lasts.
 *
 * Threads: one owner, or the owner's lock. Blocking: never.
 */
#ifndef FR_NET_WITNESS_H
#define FR_NET_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/provider.h"
#include "net/knock.h"
#include "wire/name.h"

/* The caller owns it; zero: there is nobody to ask. */
struct fr_witness {
	struct fr_knock_addr local;
	struct fr_knock_addr addr; /* port 0: none */
	struct fr_knock knock;
	uint64_t since_ns; /* of the doubt; 0: it begins with the next call */
	unsigned refusals;
};

/* @local: as of fr_knock_start(). @ctrl: name of the peer's control endpoint.
 */
void fr_witness_init(struct fr_witness *witness, const struct fr_quirks *quirks,
		     const struct fr_knock_addr *local,
		     const struct fr_name *ctrl);
/* There is no doubt any more. */
void fr_witness_rest(struct fr_witness *witness);
/* Call about ten times a second while there is. True: nobody listens for the
 * endpoint, twice: its process is gone. */
bool fr_witness_denies(struct fr_witness *witness, uint64_t now_ns);

#endif
