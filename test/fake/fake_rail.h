/*
 * The fabric floor in memory: provider.h, rail.h and mr.h over a network that
 * is one process wide, so that the floors above are tested with no libfabric
 * and with every fault on demand.
 *
 * What it keeps of the real thing: nothing moves unless the target polls; a
 * message without a receive buffer stalls its connection (source rail, target
 * endpoint); EAGAIN means connecting, dead or full alike; a local completion
 * promises nothing about the target; a write that the target refuses breaks its
 * connection, and what was in flight behind it is lost, in silence where it was
 * reported done already; a posted buffer is read when the data moves.
 *
 * Misuse that a real provider punishes at random is counted as a violation and
 * said on standard error: a descriptor that does not cover its buffer, a post
 * of an operation that is in flight, a source that changed before its
 * completion, a rail used after its fence. A test asserts that there was none.
 *
 * Memory of a GPU is that of fake_gpu.h: what stands for the NIC reaches it by
 * its alias, and a floor that touches it dies.
 *
 * Memory: objects behind the fabric floor's handles come from base/alloc.h,
 * what stands for the provider and the wire from malloc(), so that
 * fr_fault_alloc_at() and fr_live_allocs() see what they see with the real one.
 *
 * Threads: every call, any thread (one mutex); rails keep their own rule.
 */
#ifndef FR_FAKE_RAIL_H
#define FR_FAKE_RAIL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/mr.h"
#include "fabric/provider.h"
#include "fabric/rail.h"

#define FR_FAKE_MAX_NICS 17u
#define FR_FAKE_FOREVER UINT_MAX

/* What the next fr_fabric_open() offers; fabrics that are open keep theirs. */
struct fr_fake_conf {
	unsigned nic_cnt; /* 1 to FR_FAKE_MAX_NICS */
	/* info stays NULL; pci_path is borrowed. */
	struct fr_nic nics[FR_FAKE_MAX_NICS];
	struct fr_quirks quirks;
	unsigned cq_data_bytes; /* 4 or 8: high half of an immediate is lost */
	uint64_t max_msg_bytes;
	bool virt_addr;	     /* peers give virtual addresses, not offsets */
	bool prov_keys;	     /* keys are 1, 2, 3, ... chosen by the provider */
	unsigned name_bytes; /* 0: socket addresses; else opaque names */
	unsigned queue_max;  /* messages a connection holds undelivered */
	bool lazy_connect; /* EAGAIN until the target polled after the first try
			    */
	bool local_waits;  /* local completions wait for the target, as those of
			      a full socket do */
	bool lax_desc;	   /* descriptors are not looked at */
	bool gpu_lags;	   /* writes to a GPU are seen there after a read that
			      came to the same rail behind them */
};

/* Two NICs "fake0", "fake1" on 127.77.0.1/24, 127.77.1.1/24, quirks of net. */
void fr_fake_conf_default(struct fr_fake_conf *conf);
/* NIC @i as in the default, or with an address of fd00:77:i::/64. */
void fr_fake_nic_default(struct fr_nic *nic, unsigned i, bool ipv6);
/* All NICs take memory of a GPU, both ways. */
void fr_fake_conf_gpu(struct fr_fake_conf *conf);
void fr_fake_set_conf(const struct fr_fake_conf *conf);

/*
 * Forgets every control, counter and name, frees rails that were abandoned and
 * restores the default configuration. Return: rails and registrations that are
 * still open, 0 when the test closed all.
 */
unsigned fr_fake_reset(void);

/* Rails that are open and not abandoned, in the order of their opening. */
unsigned fr_fake_rail_cnt(void);
struct fr_rail *fr_fake_rail(unsigned i);

/* What it was opened with; -1: no traffic class. */
int fr_fake_rail_tclass(const struct fr_rail *rail);

enum fr_fake_call {
	FR_FAKE_FABRIC_OPEN,
	FR_FAKE_RAIL_OPEN,
	FR_FAKE_RENEW,
	FR_FAKE_PEER_ADD,
	FR_FAKE_MR_REG, /* one a rail */
	FR_FAKE_SEND,
	FR_FAKE_WRITE,
	FR_FAKE_RECV,
	FR_FAKE_READ,
	FR_FAKE_POLL,
	FR_FAKE_SEND_DONE, /* completions: the post itself succeeds */
	FR_FAKE_WRITE_DONE,
	FR_FAKE_RECV_DONE,
	FR_FAKE_READ_DONE,
	FR_FAKE_CALL_CNT
};

/* Of the calls that match, @skip pass and then @cnt return @err. */
struct fr_fake_fault {
	enum fr_fake_call call;
	int err; /* negative */
	unsigned skip;
	unsigned cnt;	   /* or FR_FAKE_FOREVER */
	unsigned percent;  /* 1..99: each with this chance; 0: always */
	uint32_t rails;	   /* bit mask of fr_rail_attr.index; 0: any */
	const void *owner; /* fr_rail_attr.owner; NULL: any */
	bool landed; /* a failed send or write reached its target anyway */
};

/* Adds one; at most 32 at a time. */
void fr_fake_fault(const struct fr_fake_fault *fault);
void fr_fake_fault_clear(void);
/* Seed of every chance below and above; the default is 1. */
void fr_fake_seed(uint32_t seed);

/* The next @cnt calls of this kind say EAGAIN. */
static inline void fr_fake_again(enum fr_fake_call call, unsigned cnt)
{
	fr_fake_fault(&(struct fr_fake_fault){
		.call = call, .err = -11 /* EAGAIN */, .cnt = cnt});
}

/* The @nth call of this kind from now on fails with @err, once. */
static inline void fr_fake_fail_at(enum fr_fake_call call, unsigned nth,
				   int err)
{
	fr_fake_fault(&(struct fr_fake_fault){
		.call = call, .err = err, .skip = nth - 1, .cnt = 1});
}

/*
 * By endpoint name, see fr_rail_name(); unknown names are ignored.
 *
 * drop: the next @cnt messages and writes to or from it vanish: local ones
 *       complete as ever, delivered ones never do.
 * hold: nothing is delivered to it until @on is false.
 * break: its connections, both ways, lose what is in flight; posts that still
 *       wait complete with an error; the next post connects anew.
 * kill: the same, and posts to and from it say EAGAIN for ever.
 */
void fr_fake_drop(const struct fr_name *name, unsigned cnt);
void fr_fake_hold(const struct fr_name *name, bool on);
void fr_fake_break(const struct fr_name *name);
void fr_fake_kill(const struct fr_name *name);
/* Deliver from connections in random order, and not all in one poll. */
void fr_fake_shuffle(bool on);
/* Deliver in random order within a connection too, as SRD does. */
void fr_fake_unordered(bool on);
/* The next endpoint that is opened gets this port, as after a restart. */
void fr_fake_next_port(uint16_t port);

enum fr_fake_verdict {
	FR_FAKE_PASS,
	FR_FAKE_LOSE,  /* as fr_fake_drop() */
	FR_FAKE_TWICE, /* a message arrives twice; a write: as PASS */
};

struct fr_fake_seen {
	const struct fr_rail *src;
	const struct fr_rail *dst;
	const struct fr_name *name; /* the endpoint of @dst that it goes to */
	bool write;
	bool read;
	bool untold; /* a write that the target does not hear of */
	void *data;  /* message: a copy that may be changed; else NULL */
	size_t bytes;
	uint64_t imm, remote_addr, key; /* write; read, but for imm */
};

/* Sees every send, write and read that is accepted. Runs under the mutex: must
 * not call the fabric floor or this one. NULL: none. */
typedef enum fr_fake_verdict (*fr_fake_snoop_fn)(
	void *arg, const struct fr_fake_seen *seen);
void fr_fake_set_snoop(fr_fake_snoop_fn snoop, void *arg);

/* A hostile or confused process next to the target. Return: 0; -ENOENT. */
int fr_fake_inject_msg(const struct fr_name *to, const void *data,
		       size_t bytes);
int fr_fake_inject_write(const struct fr_name *to, uint64_t remote_addr,
			 uint64_t key, const void *data, size_t bytes,
			 uint64_t imm);
/* An immediate that no write check stands before. */
int fr_fake_inject_imm(const struct fr_name *to, uint64_t imm, size_t bytes);
/* An incoming write that was cut. */
int fr_fake_inject_error(const struct fr_name *to, int err);

struct fr_fake_counts {
	uint64_t calls[FR_FAKE_CALL_CNT]; /* made, successful or not */
	uint64_t again[FR_FAKE_CALL_CNT]; /* of them: EAGAIN */
	uint64_t send_bytes;		  /* accepted */
	uint64_t write_bytes;
	uint64_t recv_bytes;   /* delivered here */
	uint64_t landed_bytes; /* written here */
	uint64_t read_bytes;   /* read here */
	uint64_t refused;    /* writes and reads here that failed the checks */
	uint64_t lost;	     /* from here: dropped or cut, never landed */
	uint64_t violations; /* misuse, see above */
	uint64_t cq_peak;    /* most entries unread */
};

/* Of one rail, or of all since the last reset with NULL. */
void fr_fake_counts(const struct fr_rail *rail, struct fr_fake_counts *out);

#endif
