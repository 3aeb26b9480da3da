/*
 * The net floor over rails in memory, for a fuzzer: a victim, a healthy peer
 * of it, and a hostile one, connected both ways. The victim's receive memory
 * for the hostile peer lies between canaries. In some shapes all have memory of
 * a GPU as well, which sees what was written to it after a flush only; whoever
 * touches it with the CPU ends the program.
 *
 * One thread is all sides. What must hold and does not ends the program.
 */
#ifndef TEST_FUZZ_WORLD_H
#define TEST_FUZZ_WORLD_H

#include "fake/fake_rail.h"
#include "net/comm.h"
#include "net/conn.h"
#include "net/net.h"
#include "net/req.h"
#include "net/set.h"

#define WORLD_BUF_BYTES 65536u
#define WORLD_REQS 160u
#define WORLD_COMMS 8u

struct world_side {
	struct fr_listen *listen;
	struct fr_set *set;
	uint8_t handle[FR_HANDLE_BYTES];
};

/* One direction: comms and memory at both ends. */
struct world_pair {
	struct world_side *from, *to;
	struct fr_comm *send, *recv;
	uint8_t *src, *dst;
	struct fr_net_mr *src_mr, *dst_mr;
	/* The same in a GPU, or NULL. */
	uint8_t *gpu_src, *gpu_dst;
	struct fr_net_mr *gpu_src_mr, *gpu_dst_mr;
};

struct world {
	struct fr_net *net;
	struct world_side victim, healthy, hostile;
	struct world_pair good_in, good_out; /* victim and healthy */
	struct world_pair bad_in, bad_out;   /* victim and hostile */
	struct fr_req *reqs[WORLD_REQS];     /* of the victim, hostile comms */
	unsigned req_cnt;
	struct fr_comm *taken[WORLD_COMMS]; /* accepted, of whoever came */
	unsigned taken_cnt;
	uint8_t state[FR_HANDLE_BYTES]; /* of a connect of the victim's */
	struct fr_comm *made;		/* and what it gave */
	struct fr_conn_msg asked;	/* the victim's last request on the
					   wire; connect_id 0: none */
	bool has_gpu;
	struct fr_cts cts; /* the victim's last one to the hostile peer */
};

extern struct world world;

/* @shape: bits that choose rails, immediates, keys, eager messages, GPUs. */
void world_open(uint8_t shape);
/* Canaries, a message each way with the healthy peer; then the end: nothing
 * leaks, no rail was misused. */
void world_close(void);

void world_pass(unsigned n);
void world_tick(unsigned n);
/* The victim wants its GPU to see @bytes that the hostile peer wrote. */
void world_flush(size_t bytes);
/* Requests of the victim that are done or failed are dropped. */
void world_test_all(void);
void world_keep(struct fr_req *req);

/* The hostile peer's link to the victim, or NULL once it failed. */
struct fr_link *world_link(void);
/* A numbered message on it. */
void world_say(uint8_t type, uint8_t flags, const void *payload, size_t bytes);
/* The same bytes with nobody's name on them. */
void world_inject(const void *msg, size_t bytes);
/* What the hostile peer would ask, or answer, as a good one. */
void world_describe(uint8_t type, struct fr_conn_msg *msg);

#endif
