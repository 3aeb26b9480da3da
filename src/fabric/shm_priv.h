/* Files of the shm provider, for this floor. */
#ifndef FR_FABRIC_SHM_PRIV_H
#define FR_FABRIC_SHM_PRIV_H

#include <sys/types.h>

#include "fabric/rail.h"
#include "fabric/shm.h"

/* What a name of ours says. */
struct fr_shm_id {
	pid_t pid;
	uint64_t set_id;
	uint32_t space;
	char kind;
};

/* @text: without directory. False: not ours. */
bool fr_shm_parse(const char *text, struct fr_shm_id *id);
/* An endpoint's name, as any process of ours makes it. */
bool fr_shm_name_is_ours(const struct fr_name *name);
/* Of this process. */
uint32_t fr_shm_space(void);
/* The directory; for tests another one. NULL goes back to the real one. */
const char *fr_shm_dir(void);
void fr_shm_set_dir(const char *dir);

/*
 * The provider copies from and to a peer's memory by its PID, which is right
 * within one PID namespace only. Unless the user decided it, that is left to
 * processes outside of containers. Before the first fi_getinfo.
 */
void fr_shm_tame(void);

/* Removes what processes of this user left that have died. Says how much. */
void fr_shm_sweep(void);

/* Is there room for so many more endpoints? If not, @text says what is missing.
 */
bool fr_shm_has_room(unsigned endpoints, char *text, size_t bytes);
/* For how many libfabric wants room, or it does not offer the provider at all:
 * for one on each core. */
unsigned fr_shm_wanted(void);

/*
 * An endpoint and the peers it has met.
 *
 * The provider knows a peer by its name, so that entering it twice and removing
 * it once would remove it for both: names are entered once and stay, as the
 * peer may have put commands into our queue that lead back to it.
 *
 * In libfabric 1.17 each endpoint's queue has a spin lock in the shared memory:
 * whoever posts takes it, and its owner while it copies. A process that is
 * killed or stopped with one in its hands would have all others spin for ever.
 * So a lock is looked at first, and while it is held nothing is posted or read.
 * Our own one is taken from a holder that has died, see fr_rail_peer_gone(),
 * and so is that of a peer that has died, which the provider wants once more
 * when a write to it completes. What waits for such a peer is ended:
 * shm_answers.h.
 *
 * The bytes of a write are copied by its target, when that polls, and maybe
 * from the sender's memory: also when the sender's endpoint is closed, and
 * whatever is there then. So each endpoint has a page of ours beside it, with a
 * mark that its owner sets when it takes memory away.
 */
struct fr_shm;

/* After the control endpoint is there: takes all of its memory at once, since
 * a page that cannot be had later is a SIGBUS. Return: 0; -ENOSPC, -ENOMEM,
 * logged. */
int fr_shm_open(struct fr_rail *rail);
void fr_shm_close(struct fr_rail *rail);
/* The endpoint is closed next: no other one of this process may post to it,
 * since the provider would write to where it was mapped. */
void fr_shm_ends(struct fr_rail *rail);
/* Sets our mark. The endpoint is closed next. */
void fr_shm_revoke(struct fr_rail *rail);
bool fr_shm_is_revoked(const struct fr_shm *shm, uint64_t addr);
/* As fr_rail_peer_add(). */
int fr_shm_peer_add(struct fr_rail *rail, const struct fr_name *name,
		    uint64_t *addr);
void fr_shm_peer_del(struct fr_rail *rail, uint64_t addr);
/* @addr: in: what fr_shm_peer_add() gave; out: what the provider takes. False:
 * not now. */
bool fr_shm_may_post(struct fr_shm *shm, uint64_t *addr);
/* Our own queue may be read, or a receive posted. */
bool fr_shm_may_poll(struct fr_shm *shm);
/* The provider took a post to @addr, as fr_shm_peer_add() gave it. */
void fr_shm_posted(struct fr_shm *shm, uint64_t addr, struct fr_op *op);
/* Before our queue is read: ends what waits for peers that are no more. */
void fr_shm_answer_for_lost(struct fr_shm *shm);
void fr_shm_peer_gone(struct fr_shm *shm, uint64_t addr);
bool fr_shm_is_stuck(const struct fr_shm *shm);

#endif
