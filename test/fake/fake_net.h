/*
 * A core that moves nothing: it notes what it was asked and answers what the
 * test has set. Objects are addresses that nobody looks behind, references are
 * counted and checked.
 *
 * Threads: any for references, device count and properties; one for the rest.
 */
#ifndef FR_FAKE_NET_H
#define FR_FAKE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/net.h"

enum fake_net_call {
	FAKE_NET_NONE,
	FAKE_NET_GET,
	FAKE_NET_PUT,
	FAKE_NET_UNLOAD,
	FAKE_NET_PROPS,
	FAKE_NET_LISTEN,
	FAKE_NET_CONNECT,
	FAKE_NET_ACCEPT,
	FAKE_NET_CLOSE_LISTEN,
	FAKE_NET_CLOSE_SEND,
	FAKE_NET_CLOSE_RECV,
	FAKE_NET_REG_MR,
	FAKE_NET_REG_DMABUF,
	FAKE_NET_DEREG_MR,
	FAKE_NET_ISEND,
	FAKE_NET_IRECV,
	FAKE_NET_IFLUSH,
	FAKE_NET_TEST,
};

struct fake_net {
	/* What it answers. Every call that can fail returns ret. */
	int ret;
	unsigned again; /* connect, accept: -EAGAIN so often before ret */
	uint64_t connect_limit_ns;
	bool no_request; /* isend, irecv: NULL, try again */
	bool done;	 /* test */
	unsigned msgs;	 /* of the request that test is asked about */
	size_t sizes[FR_NET_MAX_GROUP];
	unsigned device_cnt;
	bool interrupted; /* as if the caller's thread had been in a call */
	struct fr_net_props props;
	int unload_fd; /* written to by unload; -1: not */

	/* What it saw. */
	_Atomic unsigned refs;
	_Atomic unsigned calls; /* of those that can fail, or end something */
	_Atomic unsigned unloads;
	_Atomic enum fake_net_call last;

	/* The arguments of the last call. */
	_Atomic unsigned dev;
	int tclass;
	const void *handle;
	unsigned char handle_copy[FR_HANDLE_BYTES]; /* connect */
	size_t handle_bytes;
	const void *_Atomic object; /* listener, comm or request */
	unsigned cnt;
	const void *data[FR_NET_MAX_GROUP];
	size_t bytes[FR_NET_MAX_GROUP];
	int tags[FR_NET_MAX_GROUP];
	const void *mrs[FR_NET_MAX_GROUP];
	enum fr_mem_kind kind;
	uint64_t offset; /* of a dma-buf */
	int fd;
	bool wants_sizes;
};

extern struct fake_net fake_net;

/* What every listen, connect, accept, reg_mr, isend and irecv gives. */
struct fr_listen *fake_net_listen(void);
struct fr_comm *fake_net_send_comm(void);
struct fr_comm *fake_net_recv_comm(void);
struct fr_net_mr *fake_net_mr(void);
struct fr_req *fake_net_req(void);

/* Forgets what it saw, answers as a sound core of two devices. References must
 * be back. */
void fake_net_reset(void);

#endif
