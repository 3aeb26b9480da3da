/*
 * Every registration that the host program holds, by its address: whether one
 * that it hands in is alive is known before a byte of it, or of its comm, is
 * looked at. A host that deregisters twice, or behind a close, has an error.
 *
 * Threads: any (own lock, taken last). Blocking: never for long; O(1) with the
 * thousands of registrations that hosts have.
 */
#ifndef FR_NET_REGTABLE_H
#define FR_NET_REGTABLE_H

#include "net/reg.h"

void fr_regtable_add(struct fr_net_mr *mr);
/* Takes @mr out. Return: false, and nothing was touched: it is not there, or
 * another comm's. */
bool fr_regtable_take(const struct fr_comm *comm, struct fr_net_mr *mr);

#endif
