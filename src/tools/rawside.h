/* The runs on bare libfabric beside those of the plugin: between rank 0 and
 * rank 1, with the provider, interfaces and rails that the plugin's parameters
 * in the environment name. */
#ifndef FR_TOOLS_RAWSIDE_H
#define FR_TOOLS_RAWSIDE_H

#include "tools/oob.h"
#include "tools/opts.h"
#include "tools/watch.h"

struct fr_rawside;

/* @max_bytes: largest message. Return: 0; -errno, logged. */
int fr_rawside_open_wait(const struct fr_perf_opts *opts, struct fr_oob *oob,
			 struct fr_status *status, size_t max_bytes,
			 struct fr_rawside **out);
void fr_rawside_close(struct fr_rawside *side);

/* All ranks call these; those above 1 do nothing. */
/* Half round trips in @half_ns, @iters of them, at rank 0. */
int fr_rawside_pingpong_wait(struct fr_rawside *side, size_t bytes,
			     unsigned warmup, unsigned iters, double *half_ns);
/* *@ns at rank 1, else 0. @message: by messages instead of writes. */
int fr_rawside_stream_wait(struct fr_rawside *side, size_t bytes, bool message,
			   unsigned warmup, unsigned iters, uint64_t *ns);

#endif
