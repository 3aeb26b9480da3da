/*
 * The neutral core that every ABI shell translates to. Knows no NCCL type.
 *
 * Threads: any thread may call anything; calls on one comm's data path (isend,
 * irecv, iflush, test) come from one thread at a time. Blocking: no call waits
 * for a peer; closing the last comm of a set waits at most 1 s for a peer's
 * acknowledgement.
 *
 * Errors, everywhere below: 0, or
 *   -EAGAIN     nothing happened, call again. Never logged.
 *   -EINVAL     a caller's bug: argument out of range.
 *   -EMSGSIZE   a message is longer than its receive; that comm is finished.
 *   -ECONNRESET the peer is dead, gone, or broke the connection: final for the
 *               comm, every later call says the same.
 *   -EPROTO     the peer is of another version or provider: final likewise.
 *   -ENOMEM, other -errno: the local system.
 * The cause was logged once where it was decided. Out arguments are written on
 * success only, unless said otherwise.
 */
#ifndef FR_NET_NET_H
#define FR_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/handle.h"

#define FR_NET_MAX_GROUP 8  /* receives in one irecv */
#define FR_NET_MAX_REQS 256 /* requests in flight a comm: 32 full groups */

/* Traffic classes are the byte that an IP header has for them, 0 to 255. */
#define FR_NET_TCLASS_UNSET (-1)

struct fr_net;	  /* one reference to the process-wide core */
struct fr_listen; /* a listener */
struct fr_comm;	  /* a send or a receive comm */
struct fr_req;	  /* a request in flight */
struct fr_net_mr; /* a registration on one comm */

struct fr_net_props {
	const char *name;     /* "fabrail0"; valid until the last fr_net_put */
	const char *pci_path; /* or NULL; likewise. Of the first rail with one
			       */
	uint64_t guid;	      /* of the first rail: no two devices share it */
	uint32_t speed_mbps;  /* of all rails together */
	uint32_t max_comms;
	uint64_t max_msg_bytes;
	unsigned rail_cnt;
	bool gpu;	 /* memory of a GPU, by its address */
	bool gpu_dmabuf; /* the same as a dma-buf */
};

enum fr_mem_kind { FR_MEM_HOST, FR_MEM_GPU };

/* Takes a reference; the first one reads the environment, chooses provider and
 * interfaces and fixes the devices. Return: 0; -EINVAL bad parameter; -ENOENT
 * nothing usable; all logged. After a failure the next call starts afresh. */
int fr_net_get(struct fr_net **out);
/* Drops it. The last one ends the connects under way, which may wait as a close
 * does, and frees the devices as soon as no comm is open. */
void fr_net_put(struct fr_net *net);
/* libfabric is in the process already; asked as this library is loaded. */
bool fr_net_fabric_is_there(void);
/* Before all else of an unload: joins the keeper. False: this thread was
 * interrupted inside of a call, by a signal whose handler calls exit(), and has
 * a lock: no other function may be called any more. */
bool fr_net_halt(void);
/* Unload: frees what no comm or listener uses. What one still uses stays as it
 * is: at the end of a process other threads may be in a call, and the kernel
 * closes it all a moment later. */
void fr_net_unload(void);

/* Devices are numbered from 0; fixed while any reference is held. */
unsigned fr_net_device_cnt(void);
int fr_net_device_props(unsigned dev, struct fr_net_props *out);

/* @handle_bytes: 128 or 64; all of them are written. Hosts of 64 wait inside of
 * their connects, which no accept of theirs may have to precede: such a
 * listener answers a peer when it comes. @tclass: of what goes out from this
 * listener's comms; one that no IP header has counts as unset, with one
 * warning. */
int fr_net_listen(unsigned dev, int tclass, void *handle, size_t handle_bytes,
		  struct fr_listen **out);
/* One bounded step. -EAGAIN: call again with the same @handle, whose bytes from
 * FR_HANDLE_STATE_OFFSET on are ours between the calls; it has 128 bytes. A
 * handle that cannot be right is -EINVAL, with one line. */
int fr_net_connect(unsigned dev, int tclass, void *handle,
		   struct fr_comm **out);
/* One bounded step; -EAGAIN: nobody is there yet. The listener stays usable for
 * further peers, also after an error. */
int fr_net_accept(struct fr_listen *listen, struct fr_comm **out);
/* For hosts that wait inside of accept: for so long, 0: for ever. A connect
 * ends by itself. */
uint64_t fr_net_connect_limit_ns(void);
void fr_net_close_listen(struct fr_listen *listen);
void fr_net_close_send(struct fr_comm *comm);
void fr_net_close_recv(struct fr_comm *comm);

/* @bytes 0 is legal and registers nothing. Return: also -EOPNOTSUPP: memory of
 * a GPU that the comm's device does not take. */
int fr_net_reg_mr(struct fr_comm *comm, void *addr, size_t bytes,
		  enum fr_mem_kind kind, struct fr_net_mr **out);
/* The same for memory of a GPU that @fd, a dma-buf, holds from @offset on. The
 * descriptor stays the caller's, who may close it at once. Return: also
 * -EBADF. */
int fr_net_reg_dmabuf(struct fr_comm *comm, void *addr, size_t bytes,
		      uint64_t offset, int fd, struct fr_net_mr **out);
/* When it returns nobody touches the memory any more through this registration,
 * neither we nor the peer; if operations were in flight in it, every comm of
 * the set is finished (-ECONNRESET). NULL @mr is a no-op, then @comm may be
 * NULL. Return: 0; -EINVAL: @mr is not of @comm, was deregistered, or ended
 * with its comm: then neither is looked at, and @comm may be gone. */
int fr_net_dereg_mr(struct fr_comm *comm, struct fr_net_mr *mr);

/* *@out is always written: the request, or NULL with 0: try again. */
int fr_net_isend(struct fr_comm *comm, const void *data, size_t bytes, int tag,
		 struct fr_net_mr *mr, struct fr_req **out);
int fr_net_irecv(struct fr_comm *comm, unsigned cnt, void *const *data,
		 const size_t *bytes, const int *tags,
		 struct fr_net_mr *const *mrs, struct fr_req **out);
/* After receives into memory of a GPU: when the request is done, the GPU sees
 * the messages that were done before. *@out is NULL where it does already, as
 * for the host's memory. Waits for the set's lock, at most a pass of another
 * thread. */
int fr_net_iflush(struct fr_comm *comm, unsigned cnt, void *const *data,
		  const int *bytes, struct fr_net_mr *const *mrs,
		  struct fr_req **out);
/* *@done is always written. @sizes: NULL, or room for as many sizes as the
 * request has messages; written when done. A request that is done, or failed,
 * is dead. */
int fr_net_test(struct fr_req *req, bool *done, size_t *sizes);

#endif
