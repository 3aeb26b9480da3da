#include "net/failover.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/away.h"
#include "net/fence.h"
#include "net/peer.h"
#include "net/xfer.h"

#define GOOD_TRIES 3u
#define TRY_NS (100 * FR_NS_PER_MS)
#define TRY_BYTES 8u
/* The kernel repeats a SYN more and more rarely: asked anew, it is soon. */
#define KNOCK_ANEW_NS (2 * FR_NS_PER_S)
#define NONE_UP_NS (10 * FR_NS_PER_S)

/* clang-format off */
static const uint8_t path_next[] = {
	[FR_PATH_UP]   = FR_BIT(FR_PATH_ASK),
	[FR_PATH_ASK]  = FR_BIT(FR_PATH_DOWN),
	[FR_PATH_DOWN] = FR_BIT(FR_PATH_UP),
};
/* clang-format on */
_Static_assert(FR_ARRAY_LEN(path_next) == FR_PATH_STATE_CNT,
	       "a state has no row");

static void path_set_state(struct fr_path *path, enum fr_path_state to)
{
	bool legal = fr_fsm_allows(path_next, path->state, to);

	assert(legal);
	(void)legal;
	path->state = (uint8_t)to;
}

static bool speaks_of_fences(const struct fr_link *link)
{
	return (link->features & FR_FEAT_FENCE) != 0 &&
	       fr_fence_is_possible(link->set);
}

bool fr_failover_is_possible(const struct fr_link *link)
{
	/* Whoever has closed all may close the endpoints: no rail died. */
	bool ends = link->was_used &&
		    (link->open_comms == 0 || link->peer_open == 0);

	return !ends && link->path_cnt > 1 && speaks_of_fences(link);
}

void fr_failover_init(struct fr_link *link, const struct fr_conn_msg *peer)
{
	link->up_cnt = link->path_cnt;
	for (unsigned i = 0; i < link->path_cnt; i++) {
		struct fr_path *path = &link->path[i];
		const struct fr_conn_rail *rail = &peer->rails[path->peer_rail];

		path->state = FR_PATH_UP;
		path->repair.inc = rail->incarnation;
		path->repair.newest = rail->incarnation;
		path->repair.data_name = rail->data;
		path->repair.path = path;
		path->repair.link = link;
		path->lane = (uint8_t)i;
		for (unsigned j = 0; j < i; j++) {
			if (link->path[j].peer_rail == path->peer_rail) {
				path->lane = link->path[j].lane;
				link->lanes_shared = true;
				break;
			}
		}
	}
	fr_failover_weigh(link);
}

/* Of the paths of a lane that are UP, the one whose turn it is. */
static unsigned lane_turn(const struct fr_link *link, unsigned lane)
{
	unsigned up[FR_SCHED_MAX_PATHS], cnt = 0;

	for (unsigned i = lane; i < link->path_cnt; i++) {
		if (link->path[i].lane == lane &&
		    link->path[i].state == FR_PATH_UP) {
			up[cnt++] = i;
		}
	}
	return cnt == 0 ? FR_SCHED_MAX_PATHS : up[link->turn % cnt];
}

void fr_failover_weigh(struct fr_link *link)
{
	link->turn++;
	for (unsigned i = 0; i < link->path_cnt; i++) {
		const struct fr_path *path = &link->path[i];
		bool on = path->state == FR_PATH_UP;

		if (on && link->lanes_shared) {
			on = lane_turn(link, path->lane) == i;
		}
		link->sched.weight[i] = on ? link->weight[i] : 0;
	}
	if (link->up_cnt != 0) {
		fr_sched_prepare(&link->sched);
	}
}

/* How good @path is for a message. */
static unsigned ctrl_rank(const struct fr_path *path)
{
	if (path->state != FR_PATH_UP) {
		return 0;
	}
	return path->ctrl_stuck ? 1 : 2;
}

uint8_t fr_failover_detour(const struct fr_link *link, uint8_t path)
{
	unsigned best = path;

	if (fr_likely(ctrl_rank(&link->path[path]) == 2)) {
		return path;
	}
	for (unsigned i = 1; i < link->path_cnt; i++) {
		unsigned other = (path + i) % link->path_cnt;

		if (ctrl_rank(&link->path[other]) >
		    ctrl_rank(&link->path[best])) {
			best = other;
		}
	}
	return (uint8_t)best;
}

static void say_lost(const struct fr_link *link, unsigned i,
		     enum fr_log_level level, const char *cause)
{
	const struct fr_path *path = &link->path[i];
	char addr[FR_PEER_TEXT] = "?";

	fr_peer_text(&path->knock_peer, addr);
	fr_log_line(level, __FILE__, __LINE__,
		    "peer %s: rail %u (%.15s) to %s is lost: %s; %u of %u "
		    "paths go on",
		    link->peer_text, path->local_rail,
		    fr_rail_nic(path->rail)->name, addr, cause, link->up_cnt,
		    link->path_cnt);
}

static void lose(struct fr_link *link, unsigned i, enum fr_log_level level,
		 const char *cause)
{
	struct fr_path *path = &link->path[i];

	path_set_state(path, FR_PATH_ASK);
	path->repair.asked = false;
	path->repair.untold = true;
	path->repair.lost_ns = link->set->last_tick_ns;
	path->ctrl_stuck = true;
	link->up_cnt--;
	link->none_up_ns = fr_now_ns();
	fr_failover_weigh(link);
	say_lost(link, i, level, cause);
	if (!fr_away_from(link, i) || fr_link_reroute(link, i) != 0) {
		fr_link_fail(link, -ENOMEM, "out of memory for its repeats");
		return;
	}
	(void)fr_rail_peer_cut(path->rail, path->ctrl_addr);
	(void)fr_rail_peer_cut(path->rail, path->data_addr);
	fr_link_owe(link);
}

bool fr_failover_lose(struct fr_link *link, unsigned i, const char *cause)
{
	fr_lock_assert(&link->set->lock);
	if (!fr_failover_is_possible(link)) {
		return false;
	}
	if (link->path[i].state == FR_PATH_UP) {
		lose(link, i, FR_LOG_WARN, cause);
	}
	return true;
}

/* The peer has lost path @i. One that is doubted is better than none. */
static void lose_as_peer(struct fr_link *link, unsigned i)
{
	if (link->up_cnt > 1 && link->path[i].state == FR_PATH_UP &&
	    fr_failover_is_possible(link)) {
		lose(link, i, FR_LOG_WARN, "the peer has given it up");
		link->path[i].repair.untold = false;
	}
}

void fr_failover_peer_left(struct fr_link *link, unsigned rail)
{
	unsigned cnt = 0, found = 0;

	for (unsigned i = 0; i < link->path_cnt; i++) {
		if (link->path[i].local_rail == rail) {
			cnt++;
			found = i;
		}
	}
	if (cnt == 1) { /* of several we do not know which */
		lose_as_peer(link, found);
	}
}

/* The same, of the peer's own rail. */
static void peer_lost(struct fr_link *link, unsigned peer_rail)
{
	unsigned cnt = 0, found = 0;

	for (unsigned i = 0; i < link->path_cnt; i++) {
		if (link->path[i].peer_rail == peer_rail) {
			cnt++;
			found = i;
		}
	}
	if (cnt == 1) {
		lose_as_peer(link, found);
	}
}

/* -- asking ------------------------------------------------------------------
 */

/* Return: false: it must be tried again. */
static bool ask_path(struct fr_link *link, struct fr_path *path)
{
	struct fr_fence msg = {
		.type = FR_LINK_FENCE,
		.rail = path->peer_rail,
		.inc = path->repair.inc,
	};

	if (path->state != FR_PATH_ASK || path->repair.asked) {
		return true;
	}
	msg.item_cnt =
		fr_away_unknown(link, path, msg.items, FR_FENCE_MAX_ITEMS);
	if (msg.item_cnt == 0) {
		if (path->repair.untold &&
		    fr_fence_tell(link, path->local_rail,
				  (uint8_t)(path - link->path)) != 0) {
			return false;
		}
		path_set_state(path, FR_PATH_DOWN);
		path->repair.good_tries = 0;
		path->repair.try_ns = 0;
		return true;
	}
	path->repair.asked =
		fr_fence_send(link, &msg, (uint8_t)(path - link->path)) == 0;
	path->repair.untold = false;
	return path->repair.asked;
}

bool fr_failover_flush(struct fr_link *link)
{
	bool done = true;

	for (unsigned i = 0; i < link->path_cnt && link->err == 0; i++) {
		done = ask_path(link, &link->path[i]) && done;
	}
	return link->err != 0 || (fr_away_post(link) && done);
}

/* -- being told --------------------------------------------------------------
 */

static void learn_name(struct fr_path *path, const struct fr_fence *msg,
		       uint32_t inc, uint32_t seq)
{
	struct fr_repair *repair = &path->repair;

	if (inc < repair->newest ||
	    (inc == repair->newest && (int32_t)(seq - repair->name_seq) < 0)) {
		return;
	}
	repair->newest = inc;
	repair->name_seq = seq;
	repair->data_name = msg->data;
}

static void told_path(struct fr_link *link, unsigned i,
		      const struct fr_fence *msg, uint32_t inc, uint32_t seq)
{
	struct fr_path *path = &link->path[i];

	learn_name(path, msg, inc, seq);
	if (path->state == FR_PATH_UP && inc > path->repair.inc) {
		lose(link, i, FR_LOG_INFO, "the peer has fenced its end");
		path->repair.untold = false;
	}
	if (inc > path->repair.inc) {
		/* What hangs there must not hold its memory. */
		fr_rail_peer_closed(path->rail, path->data_addr);
	}
	if (path->state == FR_PATH_ASK && path->repair.asked &&
	    msg->type == FR_LINK_FENCED && msg->item_cnt != 0 &&
	    msg->inc == path->repair.inc) {
		/* More may be unknown than one message could name. */
		path->repair.asked = false;
		fr_link_owe(link);
	}
}

void fr_failover_told(struct fr_link *link, uint8_t type, uint32_t seq,
		      const uint8_t *buf, size_t bytes)
{
	static const char *const what[] = {"a RAIL", "a FENCED"};
	bool fenced = type == FR_LINK_FENCED;
	struct fr_fence msg;
	const char *why;

	if (fr_fence_decode(type, &msg, buf, bytes, &why) != 0) {
		fr_link_violated(link, what[fenced], why);
		return;
	}
	/* A link of one path is told as well, when another one asked. */
	if (!speaks_of_fences(link) || msg.rail >= link->peer_rails ||
	    (fenced && msg.new_inc <= msg.inc)) {
		fr_link_violated(link, what[fenced], "it cannot be");
		return;
	}
	if (fenced) {
		fr_away_resolve(link, &msg);
	} else {
		peer_lost(link, msg.rail);
	}
	for (unsigned i = 0; i < link->path_cnt && link->err == 0; i++) {
		if (link->path[i].peer_rail == msg.rail) {
			told_path(link, i, &msg, fenced ? msg.new_inc : msg.inc,
				  seq);
		}
	}
}

/* -- coming back -------------------------------------------------------------
 */

static void path_is_back(struct fr_link *link, struct fr_path *path)
{
	uint64_t gone = link->set->last_tick_ns - path->repair.lost_ns;

	path_set_state(path, FR_PATH_UP);
	link->up_cnt++;
	path->moved_seen = path->moved;
	path->stuck_since_ns = link->set->last_tick_ns;
	path->silent_since_ns = 0;
	fr_failover_weigh(link);
	fr_info("peer %s: rail %u (%.15s) is back after %llu ms; %u of %u "
		"paths",
		link->peer_text, path->local_rail,
		fr_rail_nic(path->rail)->name,
		(unsigned long long)(gone / FR_NS_PER_MS), link->up_cnt,
		link->path_cnt);
	fr_link_owe(link);
}

static void try_done(struct fr_op *op, struct fr_rail *rail, int err,
		     size_t bytes)
{
	struct fr_repair *repair = FR_CONTAINER_OF(op, struct fr_repair, op);

	(void)rail;
	(void)bytes;
	repair->trying = false;
	repair->good_tries = err == 0 ? repair->good_tries + 1 : 0;
	if (repair->good_tries == GOOD_TRIES && repair->link->err == 0 &&
	    repair->inc == repair->newest) {
		path_is_back(repair->link, repair->path);
	}
}

/* The endpoint that the path wrote to is closed for good. Return: 0; -errno. */
static int take_new_name(struct fr_path *path)
{
	uint64_t addr;
	int ret;

	if (path->repair.inc == path->repair.newest) {
		return 0;
	}
	ret = fr_rail_peer_add(path->rail, &path->repair.data_name, &addr);
	if (ret != 0) {
		return ret;
	}
	if (path->data_addr != path->ctrl_addr) {
		fr_rail_peer_del(path->rail, path->data_addr);
	}
	path->data_addr = addr;
	path->repair.inc = path->repair.newest;
	path->repair.good_tries = 0;
	return 0;
}

/* A connect that begins on a dead path waits long for its next SYN: so the
 * knock comes first. Return: true once it was answered. */
static bool host_answers(struct fr_link *link, struct fr_path *path,
			 uint64_t now)
{
	struct fr_knock *probe = &path->probe;

	if (path->repair.good_tries != 0 || path->knock_peer.port == 0) {
		return true;
	}
	if (probe->state == FR_KNOCK_IDLE &&
	    now - probe->started_ns >= FR_NS_PER_S) {
		fr_knock_start(probe, &path->knock_local, &path->knock_peer,
			       link->peer_set, now);
	}
	switch (fr_knock_step(probe, now)) {
	case FR_KNOCK_ALIVE:
		fr_knock_stop(probe);
		return true;
	case FR_KNOCK_SILENT:
	case FR_KNOCK_REFUSED:
		fr_knock_stop(probe);
		return false;
	default:
		if (now - probe->started_ns >= KNOCK_ANEW_NS) {
			fr_knock_stop(probe);
		}
		return false;
	}
}

static void try_path(struct fr_link *link, struct fr_path *path, uint64_t now)
{
	struct fr_set *set = link->set;
	struct fr_repair *repair = &path->repair;
	int ret;

	if (repair->trying || now < repair->try_ns ||
	    !host_answers(link, path, now) || take_new_name(path) != 0) {
		return;
	}
	repair->try_ns = now + TRY_NS;
	repair->op.done = try_done;
	ret = fr_rail_write_part(
		path->rail, path->data_addr, set->scratch, TRY_BYTES,
		fr_mr_desc(set->scratch_mr, path->local_rail),
		link->scratch_addr, link->scratch_key[path->peer_rail],
		&repair->op);
	repair->trying = ret == 0;
}

/* Messages go by the others until the path takes one: it does with a new
 * connection, and when those that hang in the old one have come home. */
static void try_ctrl(struct fr_link *link, struct fr_path *path)
{
	if (!fr_rail_peer_cut(path->rail, path->ctrl_addr) &&
	    path->slots_out == 0 &&
	    fr_link_ack_by(link, (uint8_t)(path - link->path))) {
		path->ctrl_stuck = false;
	}
}

void fr_failover_tick(struct fr_link *link, uint64_t now_ns)
{
	if (link->err != 0) {
		return;
	}
	if (link->up_cnt == 0 && now_ns - link->none_up_ns > NONE_UP_NS) {
		fr_link_fail(link, -ECONNRESET, "no rail has worked for 10 s");
		return;
	}
	for (unsigned i = 0; i < link->path_cnt; i++) {
		struct fr_path *path = &link->path[i];

		if (path->state == FR_PATH_DOWN) {
			try_path(link, path, now_ns);
		} else if (path->state == FR_PATH_UP && path->ctrl_stuck) {
			try_ctrl(link, path);
		}
	}
	if (link->up_cnt != link->path_cnt) {
		fr_link_owe(link);
	}
}
