/* What fr_fabric_open() found, for the rest of this floor. */
#ifndef FR_FABRIC_DISCOVER_H
#define FR_FABRIC_DISCOVER_H

#include "fabric/fi.h"
#include "fabric/provider.h"

struct fr_fabric {
	const struct fr_fi *fi;
	const struct fr_quirks *quirks; /* row of the table */
	struct fr_nic *nic;
	unsigned nic_cnt;
	unsigned cq_data_bytes;
	uint64_t max_msg_bytes;
	_Atomic bool tclass_refused; /* the warning was given */
	char text[96];
	char gpu_why[256];
};

/* What is asked of libfabric for @row; freed by freeinfo. NULL: out of memory.
 */
struct fi_info *fr_discover_hints(const struct fr_fi *fi,
				  const struct fr_conf *conf,
				  const struct fr_quirks *row);
/* Why @info cannot carry a rail, or NULL. */
const char *fr_discover_refusal(const struct fi_info *info);

static inline struct fi_info *fr_nic_info(const struct fr_nic *nic)
{
	return nic->info;
}

#endif
