#include "net/fence.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/failover.h"
#include "net/xfer.h"

#define FENCE_JOBS_MAX 16u /* of one peer */
#define PAUSE_MIN_NS (1 * FR_NS_PER_S)
#define PAUSE_MAX_NS (5 * FR_NS_PER_S)
/* A rail that was left alone for so long has paid for its last fences. */
#define PAUSE_FORGET_NS (30 * FR_NS_PER_S)

/* A FENCE that has no answer yet. */
struct fr_fence_job {
	struct fr_list node; /* in set.fences */
	struct fr_link *link;
	struct fr_fence msg;
};

bool fr_fence_is_possible(const struct fr_set *set)
{
	if (!set->conf->failover || set->quirks->fence != FR_FENCE_EP ||
	    !set->quirks->split_ep ||
	    set->conf->completion != FR_COMPLETION_DELIVERY) {
		return false;
	}
	/* Our own writes into a GPU go through D as well. */
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		const struct fr_nic *nic = fr_rail_nic(set->rail[i]);

		if (nic->gpu || nic->gpu_dmabuf) {
			return false;
		}
	}
	return true;
}

void fr_fence_arrived(struct fr_link *link, const uint8_t *buf, size_t bytes)
{
	struct fr_set *set = link->set;
	struct fr_fence_job *job;
	const char *why;

	job = fr_calloc(1, sizeof(*job));
	if (job == NULL) {
		fr_link_fail(link, -ENOMEM, "out of memory for its FENCE");
		return;
	}
	if (fr_fence_decode(FR_LINK_FENCE, &job->msg, buf, bytes, &why) != 0) {
		goto violated;
	}
	why = "we have no such rail, or not that incarnation of it";
	if (!fr_fence_is_possible(set) || job->msg.rail >= set->rail_cnt ||
	    job->msg.inc > set->inc[job->msg.rail]) {
		goto violated;
	}
	why = "it asks again and again without an answer";
	if (link->fence_jobs == FENCE_JOBS_MAX) {
		goto violated;
	}
	job->link = link;
	link->fence_jobs++;
	fr_list_push(&set->fences, &job->node);
	if (job->msg.inc == set->inc[job->msg.rail]) {
		fr_failover_peer_left(link, job->msg.rail);
	} /* else it asks since we have fenced the rail, for another peer */
	return;

violated:
	fr_free(job);
	fr_link_violated(link, "a FENCE", why);
}

static void job_detach(struct fr_fence_job *job)
{
	fr_list_del(&job->node);
	job->link->fence_jobs--;
}

void fr_fence_drop(struct fr_set *set, const struct fr_link *link)
{
	fr_list_for_each_safe (pos, &set->fences) {
		struct fr_fence_job *job =
			FR_CONTAINER_OF(pos, struct fr_fence_job, node);

		if (link == NULL || job->link == link) {
			job_detach(job);
			fr_free(job);
		}
	}
}

static void say_names(const struct fr_set *set, struct fr_fence *msg)
{
	const struct fr_rail *rail = set->rail[msg->rail];

	msg->data = *fr_rail_name(rail, FR_EP_DATA);
	msg->ctrl = *fr_rail_name(rail, FR_EP_CTRL);
}

static void fence_say(const struct fr_set *set, struct fr_fence *msg)
{
	msg->type = FR_LINK_FENCED;
	msg->new_inc = set->inc[msg->rail];
	say_names(set, msg);
}

int fr_fence_send(struct fr_link *link, const struct fr_fence *msg,
		  uint8_t path)
{
	size_t room = link->set->big_bytes - FR_LINK_HDR_BYTES;
	struct fr_slot *slot = fr_link_slot(link, room);
	int len;

	if (slot == NULL) {
		return -ENOMEM;
	}
	len = fr_fence_encode(msg, slot->bytes + FR_LINK_HDR_BYTES, room);
	if (len < 0) {
		fr_slot_put(slot);
		return len;
	}
	fr_link_send(link, slot, msg->type, FR_LINK_F_ACK_NOW, (size_t)len,
		     path);
	return 0;
}

int fr_fence_tell(struct fr_link *link, unsigned rail, uint8_t path)
{
	struct fr_fence msg = {.type = FR_LINK_RAIL,
			       .rail = (uint8_t)rail,
			       .inc = link->set->inc[rail]};

	say_names(link->set, &msg);
	return fr_fence_send(link, &msg, path);
}

/* A peer that gave the rail up does not hear us there either. */
static uint8_t path_beside(const struct fr_link *link, unsigned rail)
{
	for (unsigned i = 0; i < link->path_cnt; i++) {
		if (link->path[i].local_rail != rail &&
		    link->path[i].state == FR_PATH_UP) {
			return (uint8_t)i;
		}
	}
	return 0;
}

static void fence_send(struct fr_link *link, const struct fr_fence *msg)
{
	if (fr_fence_send(link, msg, path_beside(link, msg->rail)) != 0) {
		fr_link_fail(link, -ENOMEM, "out of memory for an answer");
	}
}

/* The other links' writes to the rail were cut as well. */
static void fence_tell_all(struct fr_set *set, unsigned rail)
{
	struct fr_fence msg = {.rail = (uint8_t)rail,
			       .inc = set->inc[rail] - 1};

	fence_say(set, &msg);
	fr_list_for_each_safe (pos, &set->links) {
		struct fr_link *link =
			FR_CONTAINER_OF(pos, struct fr_link, node);

		if (link->err == 0 && (link->features & FR_FEAT_FENCE) != 0) {
			fence_send(link, &msg);
		}
	}
}

/* Return: 0; -EAGAIN: not yet; -errno: the rail cannot be fenced now. */
static int fence_rail(struct fr_set *set, unsigned rail, uint64_t now)
{
	uint64_t since = now - set->fenced_ns[rail];
	uint64_t pause = set->fence_pause_ns[rail];
	int ret;

	if (pause != 0 && since < pause) {
		return -EAGAIN;
	}
	ret = fr_rail_renew_data(set->rail[rail]);
	set->fenced_ns[rail] = now;
	if (pause == 0 || since > PAUSE_FORGET_NS) {
		set->fence_pause_ns[rail] = PAUSE_MIN_NS;
	} else {
		set->fence_pause_ns[rail] = FR_MIN(2 * pause, PAUSE_MAX_NS);
	}
	if (ret != 0) {
		return ret;
	}
	set->inc[rail]++;
	fr_info("rail %u (%s): fenced, incarnation %u", rail,
		fr_rail_nic(set->rail[rail])->name, set->inc[rail]);
	fence_tell_all(set, rail);
	return 0;
}

/* What became of the write of @item that is out. Return: false: the peer claims
 * more than ever came. */
static bool fence_count(struct fr_link *link, unsigned rail,
			struct fr_fence_item *item)
{
	struct fr_comm *comm = fr_set_comm(link->set, item->comm);
	const struct fr_rx_entry *entry;
	uint32_t acked = item->value;

	if (comm == NULL || comm->link != link || comm->is_send ||
	    comm->state != FR_COMM_OPEN || comm->err != 0) {
		item->value = FR_FENCED_GONE;
		return true;
	}
	entry = fr_msgwin_find(&comm->rx.win, item->seq);
	if (entry == NULL || !fr_rx_open(entry)) {
		/* Of a number that was never posted there is nothing to
		 * repeat either. */
		item->value = FR_FENCED_RETIRED;
		return true;
	}
	item->value = entry->on_rail[rail];
	return acked <= item->value;
}

static void fence_answer(struct fr_fence_job *job)
{
	struct fr_link *link = job->link;
	struct fr_fence *msg = &job->msg;

	fence_say(link->set, msg);
	for (unsigned i = 0; i < msg->item_cnt; i++) {
		if (!fence_count(link, msg->rail, &msg->items[i])) {
			fr_link_violated(link, "a FENCE",
					 "it has more acknowledgements than "
					 "writes came");
			return;
		}
	}
	fence_send(link, msg);
}

/* A peer waits for @rail to be fenced. */
static bool fence_is_asked(const struct fr_set *set, unsigned rail)
{
	fr_list_for_each (pos, &set->fences) {
		const struct fr_fence_job *job =
			FR_CONTAINER_OF(pos, struct fr_fence_job, node);

		if (job->msg.rail == rail && job->msg.inc == set->inc[rail]) {
			return true;
		}
	}
	return false;
}

/* The oldest whose rail has been fenced; NULL: none. */
static struct fr_fence_job *fence_next(struct fr_set *set)
{
	fr_list_for_each (pos, &set->fences) {
		struct fr_fence_job *job =
			FR_CONTAINER_OF(pos, struct fr_fence_job, node);

		if (job->msg.inc != set->inc[job->msg.rail]) {
			return job;
		}
	}
	return NULL;
}

/* A fence polls, and an answer posts: either may end links, and with them what
 * they asked. */
void fr_fence_work(struct fr_set *set, uint64_t now_ns)
{
	struct fr_fence_job *job;

	fr_lock_assert(&set->lock);
	for (unsigned i = 0; i < set->rail_cnt && set->dead == 0; i++) {
		int ret =
			fence_is_asked(set, i) ? fence_rail(set, i, now_ns) : 0;

		if (ret != 0 && ret != -EAGAIN) {
			fr_log_limited(&set->strange, FR_LOG_WARN,
				       "rail %u cannot be fenced: %s; it is "
				       "tried again",
				       i, strerror(-ret));
		}
	}
	while (set->dead == 0 && (job = fence_next(set)) != NULL) {
		job_detach(job);
		fence_answer(job);
		fr_free(job);
	}
}
