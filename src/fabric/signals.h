/*
 * Libraries that come with libfabric (PSM's constructor for one), and its shm
 * provider with every endpoint, install handlers for fatal signals. The
 * application's own ones are put back. Private to src/fabric.
 *
 * Threads: the caller serialises. Blocking: never.
 */
#ifndef FR_FABRIC_SIGNALS_H
#define FR_FABRIC_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct fr_signals {
	struct sigaction action[NSIG];
	bool known[NSIG];
};

void fr_signals_save(struct fr_signals *state);
void fr_signals_restore(const struct fr_signals *state);

#endif
