/*
 * Slots: registered buffers that control messages are sent from. A slot is
 * free again when no post of it is in flight and, if it carries a numbered link
 * message, the peer has acknowledged it.
 */
#ifndef FR_NET_SLOT_H
#define FR_NET_SLOT_H

#include "base/list.h"
#include "net/set.h"

#define FR_SLOT_SMALL 256u /* message bytes of a small slot */

struct fr_slot {
	struct fr_op op;
	struct fr_list node; /* in a link's wait queue */
	struct fr_link *link;
	struct fr_set *set;
	void *owner;	  /* of a connect message or response */
	struct fr_mr *mr; /* of the block, for descriptors */
	uint32_t seq;	  /* link sequence number, once it has one */
	uint16_t len;	  /* of the whole message */
	uint8_t type;	  /* enum fr_link_type */
	uint8_t flags;
	uint8_t path;
	bool big;
	bool has_seq;
	bool in_flight;
	bool settled;	  /* acknowledged, or needs no acknowledgement */
	uint64_t sent_ns; /* of the last post, coarse */
	uint32_t resends;
	uint8_t *bytes;
};

int fr_slots_create(struct fr_set *set);
void fr_slots_destroy(struct fr_set *set);
/* A slot for a message of @bytes; NULL when out of memory. */
struct fr_slot *fr_slot_get(struct fr_set *set, size_t bytes);
void fr_slot_put(struct fr_slot *slot);

#endif
