#include "net/health.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "net/failover.h"
#include "net/xfer.h"
#include "net/conn.h"
#include "net/req.h"

/* How long the first path may keep silent before the others are tried. */
#define OTHERS_AFTER_NS (1 * FR_NS_PER_S)
#define REFUSALS_ARE_DEATH 2u
/* A path may be out of order for a while; TCP survives it. */
#define SILENCE_IS_DEATH_NS (10 * FR_NS_PER_S)
#define ASK_NS (100 * FR_NS_PER_MS)

static void stop_round(struct fr_link *link)
{
	for (unsigned i = 0; i < link->path_cnt; i++) {
		fr_knock_stop(&link->path[i].knock);
	}
	link->knocking = false;
}

/* The process has shown that it lives, or nobody wants to know. */
static void end_doubt(struct fr_link *link)
{
	link->frozen_since_ns = 0;
	for (unsigned i = 0; i < link->path_cnt; i++) {
		fr_witness_rest(&link->path[i].witness);
	}
}

static void path_rests(struct fr_path *path, uint64_t now)
{
	fr_knock_stop(&path->probe);
	path->moved_seen = path->moved;
	path->stuck_since_ns = now;
	path->silent_since_ns = 0;
}

void fr_health_stop(struct fr_link *link)
{
	stop_round(link);
	end_doubt(link);
	for (unsigned i = 0; i < link->path_cnt; i++) {
		fr_knock_stop(&link->path[i].probe);
	}
}

static void knock_path(struct fr_link *link, struct fr_path *path, uint64_t now)
{
	if (path->knock_peer.port != 0 && path->knock.state == FR_KNOCK_IDLE) {
		fr_knock_start(&path->knock, &path->knock_local,
			       &path->knock_peer, link->peer_set, now);
	}
}

static void start_round(struct fr_link *link, uint64_t now)
{
	for (unsigned i = 0; i < link->path_cnt; i++) {
		if (link->path[i].knock_peer.port != 0) {
			knock_path(link, &link->path[i], now);
			link->knocking = true;
			link->round_ns = now;
			return;
		}
	}
}

/* It lives, and yet nothing comes: does it know this link still? A peer whose
 * link failed answers with a RESET. */
static void ask_process(struct fr_link *link)
{
	const struct fr_link_note ping = {.a = 0};

	if (link->tx_next == link->tx_acked && fr_list_empty(&link->wait)) {
		(void)fr_link_send_note(link, FR_LINK_PING, &ping, 0);
	}
}

/* The process answers, or at least its host does. */
static void peer_answers(struct fr_link *link, bool process, uint64_t now)
{
	uint64_t limit = link->set->conf->peer_timeout_ns;
	char cause[96];

	link->silent_since_ns = 0;
	if (process) {
		link->refusals = 0;
		end_doubt(link);
		stop_round(link);
		link->round_ns = now;
		ask_process(link);
		return;
	}
	if (link->frozen_since_ns == 0) {
		link->frozen_since_ns = now;
	}
	if (limit != 0 && now - link->frozen_since_ns > limit) {
		snprintf(cause, sizeof(cause),
			 "its process has been frozen for %llu ms "
			 "(OFI_NCCL_PEER_TIMEOUT)",
			 (unsigned long long)((now - link->frozen_since_ns) /
					      FR_NS_PER_MS));
		fr_link_fail(link, -ECONNRESET, cause);
	}
}

/* Nobody is there any more. What it shared with our other peers may be stuck.
 */
static void peer_is_gone(struct fr_link *link)
{
	link->gone = true;
	for (unsigned i = 0; i < link->path_cnt; i++) {
		fr_rail_peer_gone(link->path[i].rail, link->path[i].ctrl_addr);
	}
}

static void peer_refuses(struct fr_link *link, uint64_t now)
{
	stop_round(link);
	link->round_ns = now;
	if (++link->refusals >= REFUSALS_ARE_DEATH) {
		peer_is_gone(link);
		fr_link_fail(link, -ECONNRESET,
			     "its process is gone (knock refused)");
	}
}

/* Its port was open, and nobody said that it is the peer's: asks behind it. */
static void doubt_peer(struct fr_link *link, uint64_t now)
{
	for (unsigned i = 0; i < link->path_cnt && link->err == 0; i++) {
		struct fr_path *path = &link->path[i];

		if (path->knock.was_open &&
		    fr_witness_denies(&path->witness, now)) {
			peer_is_gone(link);
			fr_link_fail(link, -ECONNRESET,
				     "its process is gone (a stranger has its "
				     "knock port)");
		}
	}
}

/* No path of this round has anything to say yet, or ever. */
static void peer_is_silent(struct fr_link *link, uint64_t now)
{
	if (link->silent_since_ns == 0) {
		link->silent_since_ns = link->round_ns;
	}
	if (now - link->silent_since_ns >= SILENCE_IS_DEATH_NS) {
		fr_link_fail(link, -ECONNRESET,
			     "no path to its host answers a knock");
		return;
	}
	stop_round(link);
	start_round(link, now);
}

/*
 * The process itself is believed before a refusal, and a refusal before a port
 * that is only open: when a process is gone, another one may get one of its
 * ports, but hardly all of them.
 */
static void step_round(struct fr_link *link, uint64_t now)
{
	unsigned ports = 0, asked = 0;
	unsigned said[FR_KNOCK_STATE_CNT] = {0};

	if (now - link->round_ns > OTHERS_AFTER_NS) {
		for (unsigned i = 0; i < link->path_cnt; i++) {
			knock_path(link, &link->path[i], now);
		}
	}
	for (unsigned i = 0; i < link->path_cnt; i++) {
		struct fr_path *path = &link->path[i];

		ports += path->knock_peer.port != 0;
		if (path->knock.state == FR_KNOCK_IDLE) {
			continue;
		}
		asked++;
		said[fr_knock_step(&path->knock, now)]++;
	}
	if (asked == 0) {
		stop_round(link); /* cut short: knock again */
		doubt_peer(link, now);
	} else if (said[FR_KNOCK_ALIVE] != 0) {
		peer_answers(link, true, now);
	} else if (said[FR_KNOCK_REFUSED] != 0) {
		peer_refuses(link, now);
	} else if (said[FR_KNOCK_OPEN] != 0) {
		peer_answers(link, false, now);
		doubt_peer(link, now);
	} else if (said[FR_KNOCK_SILENT] == ports) {
		peer_is_silent(link, now);
	}
}

static uint64_t pause_of(const struct fr_link *link)
{
	return link->refusals == 0 ? FR_HEALTH_KNOCK_NS : FR_HEALTH_AGAIN_NS;
}

/* Paths by which answers to connects of this link are to go. */
static uint32_t answering_paths(const struct fr_link *link)
{
	uint32_t paths = 0;

	fr_list_for_each (pos, &link->set->replies) {
		const struct fr_reply *reply =
			FR_CONTAINER_OF(pos, struct fr_reply, node);

		for (unsigned i = 0; reply->link == link && i < link->path_cnt;
		     i++) {
			if (reply->rail == link->path[i].rail &&
			    reply->addr == link->path[i].ctrl_addr) {
				paths |= FR_BIT(i);
			}
		}
	}
	return paths;
}

/* Paths on which something of ours waits: a write, or a message that nobody has
 * acknowledged, or either that its rail does not take. */
static uint32_t busy_paths(const struct fr_link *link)
{
	uint32_t busy = answering_paths(link);

	for (unsigned i = 0; i < link->path_cnt; i++) {
		busy |= link->path[i].flying != 0 ? FR_BIT(i) : 0;
	}
	for (uint32_t seq = link->tx_acked; seq != link->tx_next; seq++) {
		busy |= FR_BIT(link->unacked[seq % FR_LINK_WINDOW]->path);
	}
	fr_list_for_each (pos, &link->wait) {
		busy |= FR_BIT(
			FR_CONTAINER_OF(pos, struct fr_slot, node)->path);
	}
	fr_list_for_each (pos, &link->deferred) {
		const struct fr_send_req *req =
			FR_CONTAINER_OF(pos, struct fr_send_req, deferred_node);

		busy |= fr_send_paths(req);
	}
	return busy;
}

static void path_answers(struct fr_path *path, uint64_t now)
{
	path->silent_since_ns = 0;
	path->alive_ns = now;
}

/* Asks the other end's kernel over @path. */
static void probe_path(const struct fr_link *link, struct fr_path *path,
		       uint64_t now)
{
	struct fr_knock *probe = &path->probe;

	if (probe->state == FR_KNOCK_IDLE &&
	    now - probe->started_ns >= FR_HEALTH_KNOCK_NS) {
		fr_knock_start(probe, &path->knock_local, &path->knock_peer,
			       link->peer_set, now);
		if (path->silent_since_ns == 0) {
			path->silent_since_ns = now;
		}
	}
	switch (fr_knock_step(probe, now)) {
	case FR_KNOCK_SILENT:
		if (path->silent_since_ns == 0) { /* it was open for long */
			path->silent_since_ns = probe->started_ns;
		}
		fr_knock_stop(probe);
		break;
	case FR_KNOCK_ALIVE:
	case FR_KNOCK_REFUSED: /* the rounds tell what that means */
		fr_knock_stop(probe);
		path_answers(path, now);
		break;
	case FR_KNOCK_OPEN: /* stays so until the process looks */
		path_answers(path, now);
		break;
	default:
		break;
	}
}

/* Another path shows that its host is there. */
static bool others_live(const struct fr_link *link, const struct fr_path *path)
{
	for (unsigned i = 0; i < link->path_cnt; i++) {
		if (&link->path[i] != path &&
		    link->path[i].state == FR_PATH_UP &&
		    link->path[i].alive_ns > path->silent_since_ns) {
			return true;
		}
	}
	return false;
}

/* Where others can take over, a path is given up soon; what is given up by
 * mistake costs a repeat. */
static bool silence_is_death(const struct fr_link *link,
			     const struct fr_path *path, uint64_t now)
{
	uint64_t silent = now - path->silent_since_ns;

	if (path->silent_since_ns == 0) {
		return false;
	}
	return silent >= SILENCE_IS_DEATH_NS ||
	       (silent >= link->set->conf->rail_timeout_ns &&
		fr_failover_is_possible(link) && others_live(link, path));
}

static void path_is_dead(struct fr_link *link, unsigned i, uint64_t now)
{
	uint64_t stuck_ns = now - link->path[i].stuck_since_ns;
	char cause[96];

	snprintf(cause, sizeof(cause),
		 "nothing has got through for %llu s, and no knock is answered",
		 (unsigned long long)(stuck_ns / FR_NS_PER_S));
	fr_link_path_fail(link, i, cause);
}

/* Of a path that is UP. @doubt: of one of them nothing is heard. */
static void path_tick(struct fr_link *link, struct fr_path *path, bool busy,
		      bool doubt, uint64_t now)
{
	if (path->moved != path->moved_seen) {
		path_rests(path, now);
		path->alive_ns = now;
	} else if (!busy && !doubt) {
		path_rests(path, now);
	} else if ((!busy ||
		    now - path->stuck_since_ns >= FR_HEALTH_QUIET_NS) &&
		   path->knock_peer.port != 0) {
		probe_path(link, path, now);
	}
}

/* One of the busy paths is silent, and could be given up if another one shows
 * that the peer lives. */
static bool others_are_asked(const struct fr_link *link, uint32_t busy)
{
	if (!fr_failover_is_possible(link)) {
		return false;
	}
	for (unsigned i = 0; i < link->path_cnt; i++) {
		if ((busy & FR_BIT(i)) != 0 &&
		    link->path[i].state == FR_PATH_UP &&
		    link->path[i].silent_since_ns != 0) {
			return true;
		}
	}
	return false;
}

/* A path can be dead while the others are well: what it carries would wait for
 * as long as TCP tries, a quarter of an hour. */
static void paths_tick(struct fr_link *link, uint64_t now)
{
	uint32_t busy = busy_paths(link);
	bool doubt = others_are_asked(link, busy);

	for (unsigned i = 0; i < link->path_cnt && link->err == 0; i++) {
		struct fr_path *path = &link->path[i];
		bool is_busy = (busy & FR_BIT(i)) != 0;

		if (path->state != FR_PATH_UP) {
			continue; /* see failover.c */
		}
		path_tick(link, path, is_busy, doubt, now);
		if (is_busy && silence_is_death(link, path, now)) {
			path_is_dead(link, i, now);
		}
	}
}

static void paths_rest(struct fr_link *link, uint64_t now)
{
	for (unsigned i = 0; i < link->path_cnt; i++) {
		if (link->path[i].state == FR_PATH_UP) {
			path_rests(&link->path[i], now);
		}
	}
}

static void link_rests(struct fr_link *link, uint64_t now)
{
	link->activity_seen = link->activity;
	link->quiet_since_ns = now;
	link->silent_since_ns = 0;
	link->refusals = 0;
	end_doubt(link);
	stop_round(link);
}

void fr_health_tick(struct fr_link *link, uint64_t now_ns)
{
	bool wanted = link->wanted || !fr_link_drained(link) ||
		      answering_paths(link) != 0;

	link->wanted = false;
	if (link->err != 0) {
		return;
	}
	if (!wanted) {
		paths_rest(link, now_ns);
		link_rests(link, now_ns);
		return;
	}
	paths_tick(link, now_ns);
	if (link->err != 0) {
		return;
	}
	if (link->activity != link->activity_seen) {
		link_rests(link, now_ns);
		return;
	}
	if (now_ns - link->quiet_since_ns < FR_HEALTH_QUIET_NS) {
		return;
	}
	if (link->knocking) {
		step_round(link, now_ns);
	} else if (now_ns - link->round_ns >= pause_of(link)) {
		start_round(link, now_ns);
	}
}

/* The link's own rounds have ended with it: its knocks are free. */
static bool path_refuses(struct fr_link *link, struct fr_path *path)
{
	uint64_t now = fr_now_ns(), end = now + ASK_NS;
	struct fr_knock *knock = &path->knock;
	bool refused;

	fr_knock_start(knock, &path->knock_local, &path->knock_peer,
		       link->peer_set, now);
	while (knock->state == FR_KNOCK_WAITING ||
	       knock->state == FR_KNOCK_OPEN) {
		if (now >= end) {
			break;
		}
		fr_knock_step(knock, now);
		now = fr_now_ns();
	}
	refused = knock->state == FR_KNOCK_REFUSED;
	fr_knock_stop(knock);
	return refused;
}

bool fr_health_is_gone(struct fr_link *link)
{
	for (unsigned i = 0; i < link->path_cnt && !link->gone; i++) {
		if (link->path[i].knock_peer.port != 0) {
			if (path_refuses(link, &link->path[i])) {
				peer_is_gone(link);
			}
			break;
		}
	}
	return link->gone;
}

void fr_health_ask_all(struct fr_set *set)
{
	fr_list_for_each (pos, &set->links) {
		struct fr_link *link =
			FR_CONTAINER_OF(pos, struct fr_link, node);

		if (link->err == 0) {
			link->wanted = true;
		} else {
			(void)fr_health_is_gone(link);
		}
	}
}
