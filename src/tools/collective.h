/* Runs a collective's program over a rank's connections. */
#ifndef FR_TOOLS_COLLECTIVE_H
#define FR_TOOLS_COLLECTIVE_H

#include "tools/conns.h"
#include "tools/program.h"

struct fr_collective {
	struct fr_conns *conns;
	struct fr_shape shape; /* chunk is set by fr_collective_init() */
	int type, op, proto;
	const char *in;
	char *out;

	bool ll;		     /* the low-latency protocol */
	size_t slice_bytes;	     /* most bytes a message */
	struct fr_program *programs; /* one a channel */
};

/* Chooses protocol and slices and makes the programs; the fields above are the
 * caller's. Return: 0; -ENOMEM. */
int fr_collective_init(struct fr_collective *coll);
void fr_collective_fini(struct fr_collective *coll);
/* One operation. Only on the progress thread. Blocks until it is complete here.
 * Return: 0; -EIO: logged; -ENOMEM. */
int fr_collective_run_wait(struct fr_collective *coll);
/* What this rank sends in one operation. */
size_t fr_collective_sent_bytes(const struct fr_collective *coll);
uint64_t fr_collective_messages(const struct fr_collective *coll);

#endif
