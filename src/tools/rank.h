/* One rank of fabrail-perf. */
#ifndef FR_TOOLS_RANK_H
#define FR_TOOLS_RANK_H

#include <stdio.h>

#include "tools/conns.h"
#include "tools/metric.h"
#include "tools/oob.h"
#include "tools/watch.h"
#include "tools/worker.h"

struct fr_rawside;

struct fr_rank {
	const struct fr_perf_opts *opts;
	unsigned rank, ranks;
	struct fr_oob *oob;
	struct fr_status *status;
	struct fr_watch *watch;
	struct fr_plugin *plugin;
	void *ctx;
	struct fr_worker *service, *progress;
	struct fr_conns conns;
	struct fr_rawside *raw; /* NULL without --raw */
	/* input and output of collectives; memory of the messages */
	char *in, *out;
	size_t in_bytes, out_bytes;
	uint64_t seed;
	struct fr_perf_report report; /* of rank 0 */
	FILE *text;		      /* rank 0: the table; others: NULL */
};

/* The body of a rank, see fr_rank_fn. @arg: const struct fr_perf_opts. */
int fr_rank_main(unsigned rank, struct fr_oob *oob, struct fr_status *status,
		 void *arg);

/* Runs one size and fills @result, the same at every rank. Return: 0; -errno,
 * logged. */
int fr_rank_collective_wait(struct fr_rank *rank, size_t bytes,
			    struct fr_perf_result *result);
int fr_rank_p2p_wait(struct fr_rank *rank, size_t bytes,
		     struct fr_perf_result *result);
/* Memory for the largest size, registered where that is needed. */
int fr_rank_memory_open(struct fr_rank *rank);
int fr_rank_memory_close(struct fr_rank *rank);

#endif
