/* What fabrail-perf is asked to do: commands, options, environment. */
#ifndef FR_TOOLS_OPTS_H
#define FR_TOOLS_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/reduce.h"

#define FR_PERF_MAX_RANKS 64
#define FR_PERF_MAX_CHANNELS 32

enum fr_perf_cmd {
	FR_PERF_ALL_REDUCE,
	FR_PERF_ALL_GATHER,
	FR_PERF_REDUCE_SCATTER,
	FR_PERF_BROADCAST,
	FR_PERF_REDUCE,
	FR_PERF_SENDRECV,
	FR_PERF_ALLTOALL,
	FR_PERF_PINGPONG,
	FR_PERF_STREAM,
	FR_PERF_CMD_CNT
};

enum fr_perf_proto { FR_PERF_PROTO_AUTO, FR_PERF_PROTO_SIMPLE, FR_PERF_LL };
enum fr_perf_raw_op { FR_PERF_RAW_WRITE, FR_PERF_RAW_MESSAGE };

struct fr_perf_opts {
	int cmd; /* enum fr_perf_cmd */
	const char *plugin;
	unsigned abi; /* 0: newest */
	unsigned dev;
	size_t begin_bytes, end_bytes;
	size_t step_bytes; /* 0: multiply by factor */
	unsigned factor;
	unsigned iters; /* 0: as the command likes, see fr_perf_iters() */
	unsigned warmup;
	unsigned check;
	int type; /* enum fr_type */
	int op;	  /* enum fr_redop */
	unsigned root;
	unsigned window, channels;
	size_t recv_bytes; /* stream: length of the receives; 0: as sent */
	int proto;	   /* enum fr_perf_proto */
	unsigned timeout_s;

	bool raw;
	int raw_deliver; /* 0 local, 1 delivery */
	int raw_op;	 /* enum fr_perf_raw_op */
	unsigned pairs;	 /* of raw and plugin runs */

	unsigned ranks;
	int rank; /* -1: fork all ranks here */
	char master_host[256];
	unsigned master_port;
	char netns[2][64]; /* "": none */

	const char *csv, *json, *plot; /* files; NULL: none; "-": stdout */
	bool verbose, help, version;
};

/**
 * fr_perf_opts_parse - command line and environment
 * @get: NULL for getenv(); NCCL_NET_PLUGIN, RANK, WORLD_SIZE,
 *       OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, MASTER_ADDR, MASTER_PORT
 *
 * Ownership: texts point into @argv and the environment.
 * Return: 0; -EINVAL: @why (@bytes long) has one line that names the option and
 *         says what is allowed.
 */
int fr_perf_opts_parse(int argc, char **argv, char *(*get)(const char *name),
		       struct fr_perf_opts *opts, char *why, size_t bytes);
void fr_perf_opts_help(FILE *out);

/* Iterations to time, and to run before, at one size. */
unsigned fr_perf_iters(const struct fr_perf_opts *opts, size_t bytes);
const char *fr_perf_cmd_name(int cmd);
/* Two ranks and one message, no collective. */
bool fr_perf_cmd_is_p2p(int cmd);
bool fr_perf_cmd_has_op(int cmd);
bool fr_perf_cmd_has_root(int cmd);

/* "64K" -> 65536. Return: 0, or -EINVAL. */
int fr_perf_parse_size(const char *text, size_t *bytes);
/* Decimal within [@min, @max]. Return: 0, or -EINVAL. */
int fr_perf_parse_uint(const char *text, unsigned min, unsigned max,
		       unsigned *value);

#endif
