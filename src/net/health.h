/*
 * Is the peer of a quiet link alive? Only asked while somebody waits for it:
 * the kernel of the peer's host is knocked at once a second, and once more soon
 * when it refuses. A process that computes, or is stopped, is alive; one that
 * is gone is -ECONNRESET.
 */
#ifndef FR_NET_HEALTH_H
#define FR_NET_HEALTH_H

#include "net/link.h"

#define FR_HEALTH_QUIET_NS (500 * FR_NS_PER_MS)
#define FR_HEALTH_KNOCK_NS (1 * FR_NS_PER_S)
#define FR_HEALTH_AGAIN_NS (200 * FR_NS_PER_MS)

void fr_health_tick(struct fr_link *link, uint64_t now_ns);
void fr_health_stop(struct fr_link *link);
/* Of a link that failed: did it because there is nobody any more? Knocks when
 * it is not known, and waits for the answer 100 ms at most. */
bool fr_health_is_gone(struct fr_link *link);
/* A rail of @set is stuck: one of all its peers may have died. Blocking: as
 * above, for each link that failed. */
void fr_health_ask_all(struct fr_set *set);

#endif
