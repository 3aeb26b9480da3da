/*
 * A lane of the soak: a connection each way between two ranks, and what passes
 * on it. Both ends throw the same dice, so each knows what the other one does:
 * messages alone and in groups, from and to the host's memory or a GPU, with
 * registrations of their own, flushed, and now and then the lane closes and
 * opens anew. No lane waits for another one: each is moved a call at a time.
 *
 * Threads: one. Blocking: no call, but for the plugin's own closes.
 */
#ifndef FR_TEST_SOAK_LANE_H
#define FR_TEST_SOAK_LANE_H

#include "functional/pair.h"

#define LANE_BYTES (4u << 20) /* the longest message */
#define LANE_GPU_BYTES (1u << 20)
#define LANE_PTR_CUDA 2

/* What was done, by all ranks together. */
enum soak_op {
	SOAK_MESSAGES,
	SOAK_KIB,
	SOAK_GROUPS,
	SOAK_GPU_SENDS,
	SOAK_GPU_RECVS,
	SOAK_FLUSHES, /* with a request */
	SOAK_EMPTY_FLUSHES,
	SOAK_CHURNS, /* registrations for one message */
	SOAK_RECONNECTS,
	SOAK_ERRORS, /* ranks that ended with one */
	SOAK_OP_CNT
};

/* Shared by the ranks' processes. */
extern _Atomic unsigned long *soak_ops;

/* Splitmix64, for dice that fall alike in two processes. */
uint64_t soak_draw(uint64_t *state);

struct lane_message {
	unsigned cnt; /* of the group */
	size_t room;  /* for each of them */
	size_t bytes[FR_PLUGIN_MAX_RECVS];
	uint64_t seed;
	unsigned first; /* of those to be sent */
	bool gpu_out;
	bool gpu_in;
	bool churn_out;
	bool churn_in;
	bool flush;
	unsigned late_out; /* calls that pass before it begins */
	unsigned late_in;
};

struct lane_mem {
	uint8_t *host;
	uint8_t *gpu; /* NULL: the round has none */
	void *host_mh;
	void *gpu_mh;
};

/* This rank's half of one message. */
struct lane_half {
	struct lane_message m;
	uint8_t *mem;
	void *mh;
	void *churned; /* to be taken back */
	void *req[FR_PLUGIN_MAX_RECVS];
	unsigned begun;
	unsigned ended;
	int sizes[FR_PLUGIN_MAX_RECVS];
	bool flushing;
	bool over;
};

enum lane_state {
	LANE_CLOSED,
	LANE_CONNECTING,
	LANE_BETWEEN,
	LANE_MOVING,
	LANE_OVER
};

struct lane {
	struct pair_member *me;
	unsigned with;
	unsigned id; /* among those of the two */
	uint64_t dice;
	unsigned step;
	unsigned steps;
	bool reopens;
	unsigned reopened;
	enum lane_state state;
	void *listen;
	void *send;
	void *recv;
	/* The peer's, which may be one connection ahead: as it came, and in
	 * use. */
	uint8_t inbox[FR_PLUGIN_HANDLE_BYTES];
	_Alignas(16) uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	bool has_mail;
	bool aimed;
	bool was_open;
	struct lane_mem out;
	struct lane_mem in;
	struct lane_half tx;
	struct lane_half rx;
	const char *at;	   /* the last call */
	uint64_t moved_ms; /* when something ended last */
};

/* @lane is zero but for its first members, down to reopens. */
void lane_init(struct lane *lane, bool gpu);
/* One call or a few. @own: where a handle for the peer goes; *@told: whether
 * there is one now. Return: 0; the plugin's result. */
int lane_move(struct lane *lane, void *own, bool *told);
/* Takes back and closes all, whatever is under way; each in time. */
void lane_close(struct lane *lane);
void lane_free(struct lane *lane);

#endif
