/* pingpong and stream over one connection each way, on memory that the service
 * thread registered for the purpose. Jobs for the progress thread. */
#ifndef FR_TOOLS_P2P_H
#define FR_TOOLS_P2P_H

#include "tools/conns.h"

struct fr_p2p {
	struct fr_conn *to, *from; /* the peer; USER regions registered */
	size_t bytes;		   /* of a message */
	size_t recv_bytes;	   /* of the receives; at least @bytes */
	size_t stride;		   /* between the messages of a window */
	unsigned window, warmup, iters;
	bool check;	/* every byte; untimed */
	bool initiator; /* rank 0: sends first, or is the sender */
	bool whole;	/* at present: every byte is filled and checked */
	uint64_t seed;

	/* results */
	double *half_ns; /* pingpong, initiator: @iters half round trips */
	uint64_t ns;	 /* stream, receiver: of @iters messages */
	uint64_t cpu_ns; /* stream, sender: of the thread, for @iters */
	uint64_t wrong;	 /* bytes; stamps that differ included */
};

/* @arg: struct fr_p2p. Return: 0; -EIO: logged; -ENOMEM. */
int fr_p2p_pingpong_wait(void *arg);
int fr_p2p_stream_wait(void *arg);
/* Memory that a run needs in each direction. */
size_t fr_p2p_memory_bytes(size_t recv_bytes, unsigned window);
size_t fr_p2p_stride(size_t recv_bytes);

#endif
