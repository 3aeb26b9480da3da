#include "net/pairing.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "fabric/addr.h"

static void rails_here(const struct fr_set *set,
		       struct fr_railmap_rail rails[FR_MAX_RAILS])
{
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		const struct fr_nic *nic = fr_rail_nic(set->rail[i]);

		memcpy(rails[i].subnet, nic->subnet, sizeof(nic->subnet));
		rails[i].prefix = nic->prefix;
		memcpy(rails[i].addr, nic->addr, sizeof(nic->addr));
	}
}

static void rails_there(const struct fr_conn_msg *msg,
			struct fr_railmap_rail rails[FR_MAX_RAILS])
{
	for (unsigned i = 0; i < msg->rail_cnt; i++) {
		memcpy(rails[i].subnet, msg->rails[i].subnet,
		       sizeof(rails[i].subnet));
		rails[i].prefix = msg->rails[i].prefix;
		memcpy(rails[i].addr, msg->rails[i].knock_addr,
		       sizeof(rails[i].addr));
	}
}

/* Both ends plan with the same two arrays: the lower set id comes first. */
unsigned fr_pairing_plan(const struct fr_set *set,
			 const struct fr_conn_msg *msg,
			 struct fr_rail_pair pair[FR_RAILMAP_MAX_RAILS])
{
	struct fr_railmap_rail ours[FR_MAX_RAILS], theirs[FR_MAX_RAILS];
	struct fr_railmap_path map[FR_RAILMAP_MAX_RAILS];
	bool first = set->id < msg->set_id;
	unsigned cnt;

	rails_here(set, ours);
	rails_there(msg, theirs);
	cnt = first ? fr_railmap_plan(ours, set->rail_cnt, theirs,
				      msg->rail_cnt, map)
		    : fr_railmap_plan(theirs, msg->rail_cnt, ours,
				      set->rail_cnt, map);
	for (unsigned i = 0; i < cnt; i++) {
		pair[i].ours =
			first ? map[i].connector_rail : map[i].acceptor_rail;
		pair[i].theirs =
			first ? map[i].acceptor_rail : map[i].connector_rail;
	}
	return cnt;
}

static bool device_has(const struct fr_device *dev,
		       const struct fr_conn_rail *rail)
{
	for (unsigned i = 0; i < dev->rail_cnt; i++) {
		const struct fr_nic *nic =
			fr_fabric_nic(fr_core.fabric, dev->nic[i]);

		if (rail->prefix != 0 && nic->prefix == rail->prefix &&
		    memcmp(nic->subnet, rail->subnet, 16) == 0) {
			return true;
		}
	}
	return false;
}

/* Another device of ours that has a rail in @rail's subnet, or NULL. */
static const struct fr_device *device_in(const struct fr_set *set,
					 const struct fr_conn_rail *rail)
{
	for (unsigned d = 0; d < fr_core.dev_cnt; d++) {
		if (&fr_core.dev[d] != set->dev &&
		    device_has(&fr_core.dev[d], rail)) {
			return &fr_core.dev[d];
		}
	}
	return NULL;
}

static void say_unused_here(const struct fr_set *set, uint32_t used,
			    struct fr_text *text)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < set->rail_cnt; i++) {
		if ((used & FR_BIT(i)) == 0) {
			fr_text_add(text, "%s%s",
				    cnt++ == 0
					    ? "; not used between them here: "
					    : ", ",
				    fr_rail_nic(set->rail[i])->name);
		}
	}
}

static void say_unused_there(const struct fr_set *set,
			     const struct fr_conn_msg *msg, uint32_t used,
			     struct fr_text *text)
{
	const struct fr_device *other = NULL;
	unsigned cnt = 0;

	for (unsigned i = 0; i < msg->rail_cnt; i++) {
		if ((used & FR_BIT(i)) != 0) {
			continue;
		}
		fr_text_add(text, "%s%.15s",
			    cnt++ == 0 ? "; not used between them there: "
				       : ", ",
			    msg->rails[i].iface);
		if (other == NULL) {
			other = device_in(set, &msg->rails[i]);
		}
	}
	if (other != NULL) {
		fr_text_add(text,
			    "; a subnet of these is in %s here, so the hosts "
			    "group their interfaces differently",
			    other->name);
	}
}

void fr_pairing_say(const struct fr_set *set, const struct fr_conn_msg *msg,
		    const struct fr_rail_pair *pair, unsigned cnt)
{
	const struct fr_nic *nic = fr_rail_nic(set->rail[0]);
	struct fr_text unused = {.len = 0};
	uint32_t ours = 0, theirs = 0;
	char addr[FR_ADDR_TEXT];

	for (unsigned i = 0; i < cnt; i++) {
		ours |= FR_BIT(pair[i].ours);
		theirs |= FR_BIT(pair[i].theirs);
	}
	say_unused_here(set, ours, &unused);
	say_unused_there(set, msg, theirs, &unused);
	if ((set->rail_cnt == msg->rail_cnt && unused.len == 0) ||
	    atomic_exchange(&set->dev->said_unlike, true)) {
		return;
	}
	fr_addr_text(msg->rails[0].knock_addr, addr);
	fr_warn("%s at %s has %u rails, its peer at %s (%.15s) has %u; the "
		"same rails in the same subnets on all hosts serve best%s",
		set->dev->name, nic->addr_text, set->rail_cnt, addr,
		msg->rails[0].iface, msg->rail_cnt, unused.buf);
}
