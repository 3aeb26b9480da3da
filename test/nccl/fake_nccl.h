/*
 * What the fake NCCL's collectives stand on: every rank connected with every
 * other one through the plugin, and an exchange of one message each way.
 *
 * Threads: one. Blocking: each call waits for the other ranks.
 */
#ifndef FR_TEST_FAKE_NCCL_H
#define FR_TEST_FAKE_NCCL_H

#include <stdbool.h>

#include "nccl/api.h"
#include "tools/netplugin.h"
#include "tools/oob.h"

#define FAKE_RANKS_MAX 8

/* One direction of one connection, with its registered staging memory. */
struct fake_line {
	void *comm;
	void *mhandle;
	char *staging;
};

struct fake_comm {
	int rank, ranks;
	struct fr_oob *oob;
	struct fr_plugin *plugin;
	void *ctx;
	struct fake_line send[FAKE_RANKS_MAX], recv[FAKE_RANKS_MAX];
};

/* To and from one rank; NULL: nothing in that direction. */
struct fake_message {
	const char *out;
	size_t out_bytes;
	char *in;
	size_t in_bytes;
};

/* Return: an ncclResult_t, also of the plugin's. */
int fake_lines_open(struct fake_comm *comm);
int fake_lines_close(struct fake_comm *comm);
/* @messages: one for each rank, the own one included. */
int fake_exchange(struct fake_comm *comm, const struct fake_message *messages);

#endif
