/* Receive buffers of the control endpoints. One is posted again in the pass
 * that read it: with none left a whole connection would stand still. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/conn.h"
#include "net/link.h"
#include "net/progress.h"
#include "net/set.h"

#define FIRST_LINK_TYPE 0xc0u

struct fr_bounce {
	struct fr_op op;
	uint8_t *buf;
	bool posted;
};

static void bounce_done(struct fr_op *op, struct fr_rail *rail, int err,
			size_t bytes);

static int bounce_post(struct fr_set *set, struct fr_rail *rail,
		       struct fr_bounce *bounce)
{
	unsigned i = fr_rail_index(rail);
	int ret;

	bounce->op.done = bounce_done;
	ret = fr_rail_recv(rail, bounce->buf, set->big_bytes,
			   fr_mr_desc(set->bounce_mr[i], i), &bounce->op);
	bounce->posted = ret == 0;
	return ret;
}

static void bounce_arrived(struct fr_set *set, const uint8_t *buf, size_t bytes)
{
	if (bytes == 0) {
		return;
	}
	if (buf[0] >= FIRST_LINK_TYPE) {
		fr_link_arrived(set, buf, bytes);
	} else {
		fr_conn_arrived(set, buf, bytes);
	}
}

static void bounce_done(struct fr_op *op, struct fr_rail *rail, int err,
			size_t bytes)
{
	struct fr_bounce *bounce = FR_CONTAINER_OF(op, struct fr_bounce, op);
	struct fr_set *set = fr_rail_owner(rail);

	bounce->posted = false;
	if (err == 0) {
		bounce_arrived(set, bounce->buf, bytes);
	} else {
		fr_log_limited(&set->strange, FR_LOG_INFO,
			       "rail %u: a control receive failed: %s",
			       fr_rail_index(rail), fr_rail_error_text(rail));
	}
	if (set->dead != 0) {
		return;
	}
	if (bounce_post(set, rail, bounce) != 0) {
		set->bounce_short = true;
	}
}

/* Return: buffers that are posted; *@ret: 0, or the last refusal. */
static unsigned refill_rail(struct fr_set *set, unsigned r, int *ret)
{
	unsigned posted = 0;

	*ret = 0;
	for (unsigned i = 0; i < FR_SET_BOUNCE_CNT; i++) {
		struct fr_bounce *bounce = &set->bounce[r][i];
		int err = bounce->posted
				  ? 0
				  : bounce_post(set, set->rail[r], bounce);

		*ret = err != 0 ? err : *ret;
		posted += bounce->posted;
	}
	return posted;
}

void fr_bounce_refill(struct fr_set *set)
{
	bool left = false;

	for (unsigned r = 0; r < set->rail_cnt; r++) {
		int ret;

		if (refill_rail(set, r, &ret) == 0 && ret != -EAGAIN &&
		    ret != -ENOMEM) {
			/* Peers would wait for it without end. */
			fr_set_kill_locked(set, "a rail takes no receive");
			return;
		}
		left = left || ret != 0;
	}
	set->bounce_short = left;
}

static int bounce_open_rail(struct fr_set *set, unsigned r)
{
	size_t stride = fr_round_up(set->big_bytes, 64);
	size_t bytes = stride * FR_SET_BOUNCE_CNT;
	int ret;

	set->bounce[r] = fr_calloc(FR_SET_BOUNCE_CNT, sizeof(**set->bounce));
	set->bounce_mem[r] = fr_aligned_calloc(4096, fr_round_up(bytes, 4096));
	if (set->bounce[r] == NULL || set->bounce_mem[r] == NULL) {
		return -ENOMEM;
	}
	ret = fr_mr_get(set->mrs, set->bounce_mem[r], bytes, FR_MR_LOCAL,
			&set->bounce_mr[r]);
	for (unsigned i = 0; i < FR_SET_BOUNCE_CNT && ret == 0; i++) {
		struct fr_bounce *bounce = &set->bounce[r][i];

		bounce->buf = (uint8_t *)set->bounce_mem[r] + i * stride;
		ret = bounce_post(set, set->rail[r], bounce);
		if (ret == -EAGAIN) {
			set->bounce_short = true;
			ret = 0;
		}
	}
	return ret;
}

int fr_bounce_open(struct fr_set *set)
{
	for (unsigned r = 0; r < set->rail_cnt; r++) {
		int ret = bounce_open_rail(set, r);

		if (ret != 0) {
			return ret; /* the caller closes what is open */
		}
	}
	return 0;
}

void fr_bounce_close(struct fr_set *set)
{
	for (unsigned r = 0; r < FR_MAX_RAILS; r++) {
		fr_free(set->bounce[r]);
		fr_free(set->bounce_mem[r]);
	}
}
