#include "fabric/signals.h"

#include <stddef.h>

void fr_signals_save(struct fr_signals *state)
{
	for (int sig = 1; sig < NSIG; sig++) {
		state->known[sig] =
			sigaction(sig, NULL, &state->action[sig]) == 0;
	}
}

void fr_signals_restore(const struct fr_signals *state)
{
	struct sigaction now;

	for (int sig = 1; sig < NSIG; sig++) {
		if (!state->known[sig] || sigaction(sig, NULL, &now) != 0) {
			continue;
		}
		if (now.sa_handler != state->action[sig].sa_handler ||
		    now.sa_flags != state->action[sig].sa_flags) {
			sigaction(sig, &state->action[sig], NULL);
		}
	}
}
