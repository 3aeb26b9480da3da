#include "net/witness.h"

#include <string.h>

#include "base/clock.h"
#include "net/peer.h"

/* Most of those who are silent have just been busy. */
#define DOUBT_NS (3 * FR_NS_PER_S)
#define PAUSE_NS (1 * FR_NS_PER_S)
#define AGAIN_NS (100 * FR_NS_PER_MS)
#define REFUSALS_ARE_DEATH 2u

void fr_witness_init(struct fr_witness *witness, const struct fr_quirks *quirks,
		     const struct fr_knock_addr *local,
		     const struct fr_name *ctrl)
{
	memset(witness, 0, sizeof(*witness));
	if (quirks->names_are_tcp) {
		witness->local = *local;
		fr_name_addr(ctrl, witness->addr.addr);
		witness->addr.port = fr_name_port(ctrl);
	}
}

void fr_witness_rest(struct fr_witness *witness)
{
	fr_knock_stop(&witness->knock);
	witness->since_ns = 0;
	witness->refusals = 0;
}

static void witness_ask(struct fr_witness *witness, uint64_t now_ns)
{
	uint64_t pause_ns = witness->refusals != 0 ? AGAIN_NS : PAUSE_NS;

	if (now_ns - witness->knock.started_ns >= pause_ns) {
		fr_knock_start(&witness->knock, &witness->local, &witness->addr,
			       0, now_ns);
	}
}

bool fr_witness_denies(struct fr_witness *witness, uint64_t now_ns)
{
	struct fr_knock *knock = &witness->knock;

	if (witness->addr.port == 0) {
		return false;
	}
	if (witness->since_ns == 0) {
		witness->since_ns = now_ns;
	}
	if (now_ns - witness->since_ns < DOUBT_NS) {
		return false;
	}
	if (knock->state == FR_KNOCK_IDLE) {
		witness_ask(witness, now_ns);
	}
	switch (fr_knock_step(knock, now_ns)) {
	case FR_KNOCK_REFUSED:
		/* Whoever let us in and then spoke is no sign of death. */
		witness->refusals = knock->was_open ? 0 : witness->refusals + 1;
		fr_knock_stop(knock);
		break;
	case FR_KNOCK_OPEN:
		witness->refusals = 0;
		break;
	case FR_KNOCK_ALIVE:
	case FR_KNOCK_SILENT:
		fr_knock_stop(knock);
		break;
	default:
		break;
	}
	return witness->refusals >= REFUSALS_ARE_DEATH;
}
