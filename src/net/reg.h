/* Registrations as the host program sees them: one a call, on one comm. */
#ifndef FR_NET_REG_H
#define FR_NET_REG_H

#include "net/comm.h"

struct fr_net_mr {
	struct fr_list node; /* in comm.mrs */
	struct fr_net_mr *table_next;
	struct fr_comm *comm;
	struct fr_mr *mr; /* NULL for a registration of 0 bytes */
	uint8_t *base;
	size_t bytes;
	bool gpu;	 /* not for our CPU */
	uint32_t flying; /* operations of ours with ourselves in it */
};

/* The range lies in the registration. */
static inline bool fr_net_mr_holds(const struct fr_net_mr *mr, const void *ptr,
				   size_t bytes)
{
	size_t off = (size_t)((const uint8_t *)ptr - mr->base);

	return mr->mr != NULL && off <= mr->bytes && bytes <= mr->bytes - off;
}

/* At close: deregisters what was not. */
void fr_reg_drop_all(struct fr_comm *comm);

#endif
