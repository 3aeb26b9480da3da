/*
 * Out of band: a star of stream sockets with rank 0 in the middle, for handles,
 * barriers and results. Not for data.
 *
 * Threads: one at a time. Blocking: every call waits for all ranks.
 * Return: 0; -ECONNRESET: a rank has gone.
 */
#ifndef FR_TOOLS_OOB_H
#define FR_TOOLS_OOB_H

#include <stddef.h>

struct fr_oob;

/* @fds: rank 0 has one for each rank (its own slot is -1), the others have one,
 * to rank 0, in slot 0. They are closed with the object, also on failure. */
int fr_oob_create(unsigned rank, unsigned ranks, const int *fds,
		  struct fr_oob **out);
/* Meets the other ranks: rank 0 listens on @port of any address, the others
 * connect to @host, for at most @timeout_s. Logs. */
int fr_oob_meet_wait(unsigned rank, unsigned ranks, const char *host,
		     unsigned port, unsigned timeout_s, struct fr_oob **out);
void fr_oob_destroy(struct fr_oob *oob);

unsigned fr_oob_rank(const struct fr_oob *oob);
unsigned fr_oob_ranks(const struct fr_oob *oob);
/* Every rank gives @bytes; all get all, in the order of ranks. */
int fr_oob_all_gather_wait(struct fr_oob *oob, const void *mine, size_t bytes,
			   void *all);
int fr_oob_barrier_wait(struct fr_oob *oob);
/* A rank whose socket is closed by now, or -1. Any thread. */
int fr_oob_gone(const struct fr_oob *oob);

#endif
