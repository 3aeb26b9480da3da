/* Ranks as child processes of this one. */
#ifndef FR_TOOLS_LAUNCH_H
#define FR_TOOLS_LAUNCH_H

#include "tools/oob.h"
#include "tools/watch.h"

/* The body of a rank. Owns @oob. Return: the exit status. */
typedef int (*fr_rank_fn)(unsigned rank, struct fr_oob *oob,
			  struct fr_status *status, void *arg);

/**
 * fr_launch_wait - fork @ranks children, run @body in each, wait for them
 *
 * The first that fails is named, with what it was doing; the others are then
 * killed. Children die with this process.
 *
 * Blocking: until every child has ended.
 * Return: 0 when every rank exited with 0, else 1; -errno when not all could be
 *         started, logged.
 */
int fr_launch_wait(unsigned ranks, fr_rank_fn body, void *arg);

#endif
