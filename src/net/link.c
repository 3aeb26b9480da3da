#include "net/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/away.h"
#include "net/balance.h"
#include "net/conn.h"
#include "net/failover.h"
#include "net/fence.h"
#include "net/health.h"
#include "net/pairing.h"
#include "net/peer.h"
#include "net/req.h"
#include "net/xfer.h"

static unsigned link_bucket(uint64_t peer_set)
{
	return (unsigned)(peer_set % FR_SET_LINK_BUCKETS);
}

struct fr_link *fr_link_find(struct fr_set *set, uint64_t peer_set)
{
	struct fr_link *link = set->link_bucket[link_bucket(peer_set)];

	while (link != NULL && link->peer_set != peer_set) {
		link = link->hash_next;
	}
	return link;
}

static void link_describe(struct fr_link *link, const struct fr_conn_msg *msg)
{
	struct fr_knock_addr peer;
	char addr[FR_PEER_TEXT] = "?";

	fr_peer_knock_addr(&msg->rails[0].ctrl, msg->rails[0].knock_addr, 0,
			   &peer);
	fr_peer_text(&peer, addr);
	snprintf(link->peer_text, sizeof(link->peer_text), "%s (%.15s)", addr,
		 msg->rails[0].iface);
}

static void path_close(struct fr_path *path)
{
	if (path->data_addr != path->ctrl_addr) {
		fr_rail_peer_del(path->rail, path->data_addr);
	}
	fr_rail_peer_del(path->rail, path->ctrl_addr);
}

static int path_open(struct fr_set *set, struct fr_path *path,
		     const struct fr_conn_rail *peer)
{
	const struct fr_nic *nic;
	int ret;

	path->rail = set->rail[path->local_rail];
	path->stuck_since_ns = fr_now_ns();
	nic = fr_rail_nic(path->rail);
	memcpy(path->knock_local.addr, nic->addr, sizeof(nic->addr));
	fr_peer_knock_addr(&peer->ctrl, peer->knock_addr, peer->knock_port,
			   &path->knock_peer);
	fr_witness_init(&path->witness, set->quirks, &path->knock_local,
			&peer->ctrl);
	ret = fr_rail_peer_add(path->rail, &peer->ctrl, &path->ctrl_addr);
	if (ret != 0) {
		return ret;
	}
	if (peer->data.len == peer->ctrl.len &&
	    memcmp(peer->data.bytes, peer->ctrl.bytes, peer->data.len) == 0) {
		path->data_addr = path->ctrl_addr;
		return 0;
	}
	ret = fr_rail_peer_add(path->rail, &peer->data, &path->data_addr);
	if (ret != 0) {
		fr_rail_peer_del(path->rail, path->ctrl_addr);
	}
	return ret;
}

static void link_init(struct fr_link *link, struct fr_set *set,
		      const struct fr_conn_msg *msg)
{
	link->set = set;
	link->peer_set = msg->set_id;
	link->peer_rails = msg->rail_cnt;
	link->features = msg->features;
	link->eager_max = FR_MIN(set->eager_max, msg->eager_max_bytes);
	link->scratch_addr = msg->scratch_addr;
	memcpy(link->scratch_key, msg->scratch_key, sizeof(link->scratch_key));
	link->tx_next = set->conf->test.first_seq + 1;
	link->tx_acked = link->tx_next;
	link->rx_next = link->tx_next;
	fr_list_init(&link->owing);
	fr_list_init(&link->wait);
	fr_list_init(&link->deferred);
	fr_list_init(&link->cts_owed);
	fr_list_init(&link->away);
	fr_balance_init(link);
	fr_failover_init(link, msg);
	link_describe(link, msg);
}

static int link_create(struct fr_set *set, const struct fr_conn_msg *msg,
		       struct fr_link **out, const char **why)
{
	struct fr_rail_pair pair[FR_RAILMAP_MAX_RAILS];
	struct fr_link *link;
	unsigned opened;
	int ret = 0;

	link = fr_calloc(1, sizeof(*link));
	if (link == NULL) {
		*why = "out of memory";
		return -ENOMEM;
	}
	link->path_cnt = fr_pairing_plan(set, msg, pair);
	if (link->path_cnt == 0) {
		*why = "no rail of one side has the IP version of a rail of "
		       "the other";
		fr_free(link);
		return -EPROTO;
	}
	for (opened = 0; opened < link->path_cnt; opened++) {
		struct fr_path *path = &link->path[opened];

		path->local_rail = pair[opened].ours;
		path->peer_rail = pair[opened].theirs;
		ret = path_open(set, path, &msg->rails[path->peer_rail]);
		if (ret != 0) {
			*why = "an endpoint name is not usable here";
			goto err_close_paths;
		}
	}
	link_init(link, set, msg);
	link->hash_next = set->link_bucket[link_bucket(link->peer_set)];
	set->link_bucket[link_bucket(link->peer_set)] = link;
	fr_list_push(&set->links, &link->node);
	fr_info("link to %s: %u of our rails and %u of theirs make %u paths",
		link->peer_text, set->rail_cnt, msg->rail_cnt, link->path_cnt);
	fr_pairing_say(set, msg, pair, link->path_cnt);
	*out = link;
	return 0;

err_close_paths:
	while (opened-- > 0) {
		path_close(&link->path[opened]);
	}
	fr_free(link);
	return ret == -ENOMEM ? ret : -EPROTO;
}

static const char *link_refusal(const struct fr_set *set,
				const struct fr_conn_msg *msg)
{
	if (msg->rail_cnt == 0) {
		return "the peer has 0 rails";
	}
	if (msg->prov != set->quirks->wire_id) {
		return "the peer uses another provider";
	}
	if (msg->cq_data_bytes != set->imm_bytes) {
		return "the peer's provider carries another size of remote CQ "
		       "data";
	}
	if (msg->set_id == 0) {
		return "the peer's set id is 0";
	}
	return NULL;
}

int fr_link_get(struct fr_set *set, const struct fr_conn_msg *msg,
		struct fr_link **out, const char **why)
{
	struct fr_link *link;
	int ret;

	fr_lock_assert(&set->lock);
	*why = link_refusal(set, msg);
	if (*why != NULL) {
		return -EPROTO;
	}
	link = fr_link_find(set, msg->set_id);
	if (link != NULL && link->err != 0) {
		*why = "the link to this peer failed before";
		return -ECONNRESET;
	}
	if (link == NULL) {
		ret = link_create(set, msg, &link, why);
		if (ret != 0) {
			return ret;
		}
	}
	*out = link;
	return 0;
}

static void link_drop_slots(struct fr_link *link)
{
	for (uint32_t seq = link->tx_acked; seq != link->tx_next; seq++) {
		struct fr_slot *slot = link->unacked[seq % FR_LINK_WINDOW];

		slot->settled = true;
		fr_list_del(&slot->node);
		if (!slot->in_flight) {
			fr_slot_put(slot);
		}
	}
	link->tx_acked = link->tx_next;
	for (struct fr_list *pos; (pos = fr_list_pop(&link->wait)) != NULL;) {
		fr_slot_put(FR_CONTAINER_OF(pos, struct fr_slot, node));
	}
}

void fr_links_close(struct fr_set *set)
{
	fr_fence_drop(set, NULL);
	fr_list_for_each (pos, &set->links) {
		struct fr_link *link =
			FR_CONTAINER_OF(pos, struct fr_link, node);

		fr_health_stop(link);
		link_drop_slots(link);
		fr_away_drop_all(link);
		fr_list_del(&link->owing);
		for (unsigned i = 0; i < link->path_cnt && set->dead == 0;
		     i++) {
			path_close(&link->path[i]);
		}
	}
}

void fr_links_free(struct fr_set *set)
{
	fr_away_free(set);
	for (struct fr_list *pos; (pos = fr_list_pop(&set->links)) != NULL;) {
		fr_free(FR_CONTAINER_OF(pos, struct fr_link, node));
	}
}

void fr_link_fail(struct fr_link *link, int err, const char *cause)
{
	if (link->err != 0) {
		return;
	}
	fr_lock_assert(&link->set->lock);
	link->err = err;
	if (link->open_comms != 0 && link->peer_open != 0) {
		fr_error("peer %s is lost: %s; its %u comms fail",
			 link->peer_text, cause, link->open_comms);
	} else {
		fr_debug("link to %s ends: %s", link->peer_text, cause);
	}
	fr_health_stop(link);
	link_drop_slots(link);
	fr_fence_drop(link->set, link);
	fr_away_end(link);
	fr_list_del(&link->owing);
	for (struct fr_list *pos;
	     (pos = fr_list_pop(&link->deferred)) != NULL;) {
		struct fr_send_req *req =
			FR_CONTAINER_OF(pos, struct fr_send_req, deferred_node);

		req->deferred = false;
		fr_req_fail(&req->base, err);
	}
	while (fr_list_pop(&link->cts_owed) != NULL) {
	}
}

void fr_link_path_fail(struct fr_link *link, unsigned i, const char *cause)
{
	const struct fr_path *path = &link->path[i];
	char addr[FR_PEER_TEXT] = "?";
	char text[256];

	if (link->err != 0 || fr_failover_lose(link, i, cause)) {
		return;
	}
	fr_peer_text(&path->knock_peer, addr);
	snprintf(text, sizeof(text), "rail %u (%.15s) to %s: %s",
		 path->local_rail, fr_rail_nic(path->rail)->name, addr, cause);
	fr_link_fail(link, -ECONNRESET, text);
}

void fr_link_violated(struct fr_link *link, const char *what, const char *why)
{
	char cause[128];

	snprintf(cause, sizeof(cause), "it sent %s: %s", what, why);
	fr_link_fail(link, -EPROTO, cause);
}

uint8_t fr_link_ctrl_path(const struct fr_link *link, uint32_t comm_id)
{
	return (uint8_t)(comm_id % link->path_cnt);
}
