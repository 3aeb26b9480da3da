/*
 * A collective, as one rank sees it: lanes that run side by side, each a list
 * of steps that run in order. A step moves one chunk: takes it from the peer's
 * message or the input, reduces it with the input, puts it to the output, sends
 * it on. What NCCL's kernels do between proxy and user buffers.
 *
 * Pure: no plugin, no memory but the program's own.
 */
#ifndef FR_TOOLS_PROGRAM_H
#define FR_TOOLS_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "tools/opts.h"

enum fr_step_flag {
	FR_STEP_RECV = 1,   /* the source is a message, else the input */
	FR_STEP_REDUCE = 2, /* with the input; only beside RECV */
	FR_STEP_FINISH = 4, /* the chunk has met all ranks */
	FR_STEP_OUT = 8,    /* to the output */
	FR_STEP_SEND = 16,
};

struct fr_step {
	unsigned flags;
	size_t in, out, cnt; /* elements */
};

struct fr_lane {
	int send_to, recv_from; /* ranks; -1: none */
	size_t step_cnt, step_max;
	struct fr_step *steps;
};

struct fr_program {
	unsigned lane_cnt, lane_max;
	struct fr_lane *lanes;
};

/* What a collective works on at one rank; @cnt as nccl-tests counts: elements
 * given by each rank to each message of the pattern. */
struct fr_shape {
	int cmd; /* enum fr_perf_cmd */
	unsigned rank, ranks, root;
	size_t cnt;
	size_t chunk; /* most elements a step */
};

/* Elements of input and output of a rank for @shape. */
size_t fr_shape_in_cnt(const struct fr_shape *shape);
size_t fr_shape_out_cnt(const struct fr_shape *shape);

/* The part [@off, @off + @cnt) of @shape for one channel. Return: 0; -ENOMEM.
 * A part of 0 elements gives no lanes. */
int fr_program_build(const struct fr_shape *shape, size_t off, size_t cnt,
		     struct fr_program *program);
void fr_program_free(struct fr_program *program);

/* Which peers a rank sends to and receives from, over all lanes. */
bool fr_shape_sends_to(const struct fr_shape *shape, unsigned peer);
bool fr_shape_recvs_from(const struct fr_shape *shape, unsigned peer);

#endif
