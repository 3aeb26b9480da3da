/* Counters of a set, appended to OFI_NCCL_STATS_FILE when the set closes: one
 * JSON object a line and rail. A file that cannot be written is one warning. */
#ifndef FR_NET_REPORT_H
#define FR_NET_REPORT_H

#include "net/set.h"

void fr_report_set(struct fr_set *set);

#endif
