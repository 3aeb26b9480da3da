/*
 * The connections of a rank, made and unmade in the order in which NCCL does
 * it: listen, handles out of band, connect and accept in turns, closeListen,
 * regMr; deregMr, free, close. All of it runs on the service thread.
 *
 * Each direction of a connection has two staging buffers, as NCCL gives it:
 * 8 steps of 512 KiB, and 8 of 64 KiB for the low-latency protocol.
 */
#ifndef FR_TOOLS_CONNS_H
#define FR_TOOLS_CONNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/netplugin.h"
#include "tools/oob.h"
#include "tools/watch.h"

#define FR_STEPS 8u
#define FR_STEP_BYTES (512u << 10)
#define FR_LL_STEP_BYTES (64u << 10)
#define FR_STAGING_BYTES (FR_STEPS * FR_STEP_BYTES)
#define FR_LL_BYTES (FR_STEPS * FR_LL_STEP_BYTES)

enum fr_region { FR_REGION_SIMPLE, FR_REGION_LL, FR_REGION_USER, FR_REGIONS };

/* One direction. */
struct fr_conn {
	struct fr_conns *conns;
	void *comm; /* NULL: this direction is not used */
	void *listen_comm;
	unsigned peer, channel;
	bool sends;
	char *mem[FR_REGIONS]; /* USER: lent, see fr_conn_reg_user() */
	void *mhandle[FR_REGIONS];
	uint64_t ll_step; /* messages so far, both sides alike */
	_Alignas(16) char handle[FR_PLUGIN_HANDLE_BYTES]; /* peer's listen */
};

struct fr_conns {
	struct fr_plugin *plugin;
	void *ctx;
	int dev;
	unsigned rank, ranks, channels;
	struct fr_oob *oob;
	struct fr_status *status;
	/* The peers that this rank sends to and receives from, by rank. */
	bool *send_to, *recv_from;
	struct fr_conn *send, *recv; /* [channel * ranks + peer] */
};

/* Plain fields are filled in by the caller before. Return: 0 or -ENOMEM. */
int fr_conns_init(struct fr_conns *conns);
/* Frees what fr_conns_init() made; the connections are closed before. */
void fr_conns_fini(struct fr_conns *conns);

/* Jobs for the service thread; @arg is the struct fr_conns. Return: 0; -EIO:
 * the plugin reported an error, logged; -ECONNRESET; -ENOMEM. */
int fr_conns_open_svc(void *arg);
int fr_conns_close_svc(void *arg);
/* Registers and deregisters a buffer on every connection, beside traffic. */
int fr_conns_churn_svc(void *arg);

/* Registers memory of the caller on one connection, on the service thread. */
int fr_conn_reg_user(struct fr_conn *conn, void *mem, size_t bytes);
int fr_conn_dereg_user(struct fr_conn *conn);

static inline struct fr_conn *fr_conn_to(struct fr_conns *conns,
					 unsigned channel, unsigned peer)
{
	return &conns->send[channel * conns->ranks + peer];
}

static inline struct fr_conn *fr_conn_from(struct fr_conns *conns,
					   unsigned channel, unsigned peer)
{
	return &conns->recv[channel * conns->ranks + peer];
}

/* -EIO, after an error line that says what failed at whom. */
int fr_conn_fail(const struct fr_conn *conn, const char *what, int result);

#endif
