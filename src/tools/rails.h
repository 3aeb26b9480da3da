/*
 * Bytes of each rail over a run. A plugin of ours says them itself, rail by
 * rail, in the file that OFI_NCCL_STATS_FILE names; of any other plugin the
 * counters of the interfaces are read, whatever else they carried.
 */
#ifndef FR_TOOLS_RAILS_H
#define FR_TOOLS_RAILS_H

#include <sys/types.h>

#include "tools/metric.h"
#include "tools/oob.h"

struct fr_rails {
	char file[256];	 /* statistics of the plugin */
	int own_fd;	 /* the file was made here, in memory; else -1 */
	off_t old_bytes; /* of the file, before the run */
	struct fr_perf_rail before[FR_PERF_MAX_RAILS]; /* interfaces */
	unsigned before_cnt;
};

/* Before the plugin is loaded: its environment is set. */
void fr_rails_begin(struct fr_rails *rails);
/* Removes what fr_rails_begin() made; also by fr_rails_end_wait(). */
void fr_rails_discard(struct fr_rails *rails);
/* After it was unloaded: the sums over all ranks, at every rank. Return: 0;
 * -ECONNRESET; -ENOMEM. */
int fr_rails_end_wait(struct fr_rails *rails, struct fr_oob *oob,
		      struct fr_perf_rail *sum, unsigned *cnt);

/* Adds the rails of @pid in the lines of @text to @sum. */
void fr_rails_parse(const char *text, long pid, struct fr_perf_rail *sum,
		    unsigned *cnt);

#endif
