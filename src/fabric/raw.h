/*
 * Bare libfabric, for comparison: the same provider, interfaces and rails as
 * the plugin would take, and the shortest loops that one can write over them.
 * Used by the benchmark only; shares no code with the data path on purpose.
 *
 * Threads: one at a time. Blocking: the _wait calls, until both sides have
 * called them; -ETIMEDOUT, logged, after 60 s without progress.
 */
#ifndef FR_FABRIC_RAW_H
#define FR_FABRIC_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/provider.h"

#define FR_RAW_NAME_BYTES 1024u

struct fr_raw; /* endpoints on every rail, one peer */

/* @rails: cycling over the fabric's NICs. @max_bytes: largest message; @window:
 * messages in flight; @deliver: delivery instead of local completion.
 * Return: 0; -errno, logged. */
int fr_raw_open(struct fr_fabric *fabric, unsigned rails, size_t max_bytes,
		unsigned window, bool deliver, struct fr_raw **out);
void fr_raw_close(struct fr_raw *raw);
/* Opaque blob to hand to the peer; at most FR_RAW_NAME_BYTES. */
int fr_raw_name(struct fr_raw *raw, void *buf, size_t *bytes);
/* Return: 0; -EBADMSG: the blob is none of a peer with as many rails; -errno,
 * logged. */
int fr_raw_connect_wait(struct fr_raw *raw, const void *peer, size_t bytes);
/* @warmup + @iters send/recv ping-pongs on rail 0; half round trips of the
 * @iters in @ns (on the initiator). @initiator: sends first. */
int fr_raw_pingpong_wait(struct fr_raw *raw, bool initiator, size_t bytes,
			 unsigned warmup, unsigned iters, double *ns);
/* @warmup + @iters messages of @bytes one way, @window in flight: writes with
 * remote data, from 128 KiB on striped over the rails; where @message is set,
 * sends and receives on rail 0. *@ns: on the receiver, the time of the last
 * @iters. */
int fr_raw_stream_wait(struct fr_raw *raw, bool sender, bool message,
		       size_t bytes, unsigned warmup, unsigned iters,
		       uint64_t *ns);

#endif
