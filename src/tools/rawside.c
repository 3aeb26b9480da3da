#include "tools/rawside.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/conf.h"
#include "base/log.h"
#include "base/util.h"
#include "fabric/raw.h"

struct fr_rawside {
	struct fr_conf conf;
	struct fr_fabric *fabric;
	struct fr_raw *raw; /* NULL at ranks above 1 */
	unsigned rank;
	struct fr_status *status;
};

/* What the peers tell each other. */
struct card {
	uint32_t bytes;
	char name[FR_RAW_NAME_BYTES];
};

static unsigned rail_cnt(const struct fr_rawside *side)
{
	unsigned nics = fr_fabric_nic_cnt(side->fabric);

	return side->conf.force_rails != 0 ? side->conf.force_rails
					   : FR_MIN(nics, side->conf.max_rails);
}

static int open_own(struct fr_rawside *side, const struct fr_perf_opts *opts,
		    size_t max_bytes, struct card *card)
{
	size_t bytes = sizeof(card->name);
	int ret;

	ret = fr_fabric_open(&side->conf, &side->fabric);
	if (ret != 0) {
		return ret;
	}
	ret = fr_raw_open(side->fabric, rail_cnt(side), max_bytes,
			  opts->cmd == FR_PERF_PINGPONG ? 1 : opts->window,
			  opts->raw_deliver != 0, &side->raw);
	if (ret != 0) {
		return ret;
	}
	ret = fr_raw_name(side->raw, card->name, &bytes);
	card->bytes = (uint32_t)bytes;
	return ret;
}

static int connect_peer(struct fr_rawside *side, struct fr_oob *oob,
			const struct card *mine)
{
	unsigned ranks = fr_oob_ranks(oob);
	const struct card *peer;
	struct card *all;
	int ret;

	all = fr_calloc(ranks, sizeof(*all));
	if (all == NULL) {
		return -ENOMEM;
	}
	ret = fr_oob_all_gather_wait(oob, mine, sizeof(*mine), all);
	if (ret == 0 && side->raw != NULL) {
		peer = &all[1 - side->rank];
		ret = fr_raw_connect_wait(side->raw, peer->name, peer->bytes);
	}
	fr_free(all);
	return ret;
}

int fr_rawside_open_wait(const struct fr_perf_opts *opts, struct fr_oob *oob,
			 struct fr_status *status, size_t max_bytes,
			 struct fr_rawside **out)
{
	struct fr_rawside *side;
	struct card card = {0};
	int ret;

	side = fr_calloc(1, sizeof(*side));
	if (side == NULL) {
		return -ENOMEM;
	}
	side->rank = fr_oob_rank(oob);
	side->status = status;
	ret = fr_param_load(fr_conf_table, FR_CONF_PREFIX, NULL, &side->conf,
			    NULL);
	if (ret != 0) {
		fr_free(side);
		return ret;
	}
	if (side->rank < 2) {
		ret = open_own(side, opts, max_bytes, &card);
	}
	if (ret == 0) {
		ret = connect_peer(side, oob, &card);
	}
	if (ret != 0) {
		fr_error("rank %u: bare libfabric: %s", side->rank,
			 strerror(-ret));
		fr_rawside_close(side);
		return ret;
	}
	*out = side;
	return 0;
}

void fr_rawside_close(struct fr_rawside *side)
{
	if (side == NULL) {
		return;
	}
	fr_raw_close(side->raw);
	fr_fabric_close(side->fabric);
	fr_param_unload(fr_conf_table, &side->conf);
	fr_free(side);
}

int fr_rawside_pingpong_wait(struct fr_rawside *side, size_t bytes,
			     unsigned warmup, unsigned iters, double *half_ns)
{
	int ret = 0;

	if (side->raw != NULL) {
		ret = fr_raw_pingpong_wait(side->raw, side->rank == 0, bytes,
					   warmup, iters, half_ns);
		fr_status_tick(side->status);
	}
	return ret;
}

int fr_rawside_stream_wait(struct fr_rawside *side, size_t bytes, bool message,
			   unsigned warmup, unsigned iters, uint64_t *ns)
{
	int ret = 0;

	*ns = 0;
	if (side->raw != NULL) {
		ret = fr_raw_stream_wait(side->raw, side->rank == 0, message,
					 bytes, warmup, iters, ns);
		fr_status_tick(side->status);
	}
	return ret;
}
