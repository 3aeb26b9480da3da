/*
 * Small integers 0 .. size-1, each handed out once. A returned id comes back as
 * late as possible (first in, first out: after every id that is free when it
 * returns), so that a late message for an old id does not meet its successor.
 * get and put are O(1); a pool holds 4 bytes an id.
 *
 * Threads: any (own mutex). Blocking: never for long.
 */
#ifndef FR_BASE_IDPOOL_H
#define FR_BASE_IDPOOL_H

#include <stdint.h>

struct fr_idpool;

/* Size 0 is legal: get then always returns -1 (somebody else chooses ids).
 * Return: 0, -ENOMEM. */
int fr_idpool_create(uint32_t size, struct fr_idpool **out);
void fr_idpool_destroy(struct fr_idpool *pool);
/* Return: an id, or -1 when the pool has size 0 or nothing is left. */
int64_t fr_idpool_get(struct fr_idpool *pool);
/* -1 is a no-op. Giving back an id that is not out is a caller's bug and
 * aborts when asserts are compiled in. */
void fr_idpool_put(struct fr_idpool *pool, int64_t id);
uint32_t fr_idpool_used(struct fr_idpool *pool);

#endif
