/*
 * An NCCL without GPUs, for the check of NCCL: loads the net plugin that
 * NCCL_NET_PLUGIN names through its newest table, connects every rank with
 * every other one, and runs each collective as an exchange of whole messages.
 *
 * FR_FAKE_NCCL_FAULT: "wrong" damages an element of each result, "past" writes
 * behind it, "socket" reports another network than it uses, "hang" never ends a
 * collective, "die" ends the process in one.
 */
#include "nccl/fake_nccl.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/reduce.h"

#define EXPORT __attribute__((visibility("default")))
#define MEET_S 60u

static bool fault_is(const char *name)
{
	const char *fault = getenv("FR_FAKE_NCCL_FAULT");

	return fault != NULL && strcmp(fault, name) == 0;
}

__attribute__((format(printf, 1, 2))) static void info(const char *fmt, ...)
{
	va_list args;

	printf("host:%d:%d [0] NCCL INFO ", (int)getpid(), (int)getpid());
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static void logger(int level, unsigned long flags, const char *file, int line,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void logger(int level, unsigned long flags, const char *file, int line,
		   const char *fmt, ...)
{
	va_list args;

	(void)flags;
	printf("host:%d:%d [0] %s:%d NCCL %s ", (int)getpid(), (int)getpid(),
	       file, line, level == FR_PLUGIN_LOG_WARN ? "WARN" : "INFO");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

EXPORT int ncclGetVersion(int *version);
EXPORT int ncclGetUniqueId(struct nccl_id *id);
EXPORT int ncclCommInitRank(void **comm, int ranks, struct nccl_id id,
			    int rank);
EXPORT int ncclCommDestroy(void *comm);
EXPORT int ncclCommAbort(void *comm);
EXPORT int ncclCommGetAsyncError(void *comm, int *result);
EXPORT const char *ncclGetErrorString(int result);
EXPORT int ncclAllReduce(const void *in, void *out, size_t cnt, int type,
			 int op, void *comm, void *stream);
EXPORT int ncclReduce(const void *in, void *out, size_t cnt, int type, int op,
		      int root, void *comm, void *stream);
EXPORT int ncclBroadcast(const void *in, void *out, size_t cnt, int type,
			 int root, void *comm, void *stream);
EXPORT int ncclAllGather(const void *in, void *out, size_t cnt, int type,
			 void *comm, void *stream);
EXPORT int ncclReduceScatter(const void *in, void *out, size_t cnt, int type,
			     int op, void *comm, void *stream);
EXPORT int ncclSend(const void *in, size_t cnt, int type, int peer, void *comm,
		    void *stream);
EXPORT int ncclRecv(void *out, size_t cnt, int type, int peer, void *comm,
		    void *stream);
EXPORT int ncclGroupStart(void);
EXPORT int ncclGroupEnd(void);

int ncclGetVersion(int *version)
{
	*version = 23007;
	return NCCL_SUCCESS;
}

const char *ncclGetErrorString(int result)
{
	return fr_plugin_result_text(result);
}

int ncclCommGetAsyncError(void *comm, int *result)
{
	(void)comm;
	*result = NCCL_SUCCESS;
	return NCCL_SUCCESS;
}

/* The id is the port at which rank 0 will listen. */
int ncclGetUniqueId(struct nccl_id *id)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int ret = NCCL_SYSTEM_ERROR;

	if (fd < 0) {
		return ret;
	}
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&addr, len) == 0 &&
	    getsockname(fd, (struct sockaddr *)&addr, &len) == 0) {
		memset(id, 0, sizeof(*id));
		snprintf(id->bytes, sizeof(id->bytes), "%u",
			 ntohs(addr.sin_port));
		ret = NCCL_SUCCESS;
	}
	close(fd);
	return ret;
}

static int plugin_open(struct fake_comm *comm)
{
	const char *path = getenv("NCCL_NET_PLUGIN"), *net = getenv("NCCL_NET");
	int devices = 0;

	if (path == NULL ||
	    fr_plugin_open(path, 0, logger, &comm->plugin) != 0) {
		return NCCL_INVALID_USAGE;
	}
	if (net != NULL && strcasecmp(net, fr_plugin_name(comm->plugin)) != 0) {
		info("no plugin is called %s", net);
		return NCCL_INVALID_USAGE;
	}
	if (fr_plugin_init(comm->plugin, 1, -1, &comm->ctx) != 0 ||
	    fr_plugin_devices(comm->plugin, &devices) != 0 || devices < 1) {
		info("failed to initialize any NET plugin");
		return NCCL_INVALID_USAGE;
	}
	return NCCL_SUCCESS;
}

static void tell_network(const struct fake_comm *comm)
{
	const char *name =
		fault_is("socket") ? "Socket" : fr_plugin_name(comm->plugin);

	info("Using network %s", name);
	for (int i = 0; i < comm->ranks; i++) {
		if (i != comm->rank) {
			info("Channel 00/0 : %d[0] -> %d[0] [send] via "
			     "NET/%s/0",
			     comm->rank, i, name);
		}
	}
}

int ncclCommInitRank(void **out, int ranks, struct nccl_id id, int rank)
{
	struct fake_comm *comm = calloc(1, sizeof(*comm));
	int ret;

	if (comm == NULL || ranks > FAKE_RANKS_MAX) {
		free(comm);
		return NCCL_SYSTEM_ERROR;
	}
	comm->rank = rank;
	comm->ranks = ranks;
	ret = plugin_open(comm);
	if (ret == NCCL_SUCCESS &&
	    fr_oob_meet_wait((unsigned)rank, (unsigned)ranks, "127.0.0.1",
			     (unsigned)strtoul(id.bytes, NULL, 10), MEET_S,
			     &comm->oob) != 0) {
		ret = NCCL_REMOTE_ERROR;
	}
	if (ret == NCCL_SUCCESS) {
		ret = fake_lines_open(comm);
	}
	if (ret != NCCL_SUCCESS) {
		return ret; /* the process ends now */
	}
	tell_network(comm);
	*out = comm;
	return NCCL_SUCCESS;
}

int ncclCommDestroy(void *arg)
{
	struct fake_comm *comm = arg;
	int ret = fake_lines_close(comm);

	if (ret == NCCL_SUCCESS) {
		ret = fr_plugin_finalize(comm->plugin, comm->ctx);
	}
	fr_oob_destroy(comm->oob);
	fr_plugin_close(comm->plugin);
	free(comm);
	return ret;
}

int ncclCommAbort(void *comm)
{
	return ncclCommDestroy(comm);
}

static int fr_type_of(int type)
{
	static const int types[] = {
		[NCCL_INT8] = FR_INT8,	   [NCCL_UINT8] = FR_UINT8,
		[NCCL_INT32] = FR_INT32,   [NCCL_UINT32] = FR_UINT32,
		[NCCL_INT64] = FR_INT64,   [NCCL_UINT64] = FR_UINT64,
		[NCCL_HALF] = FR_HALF,	   [NCCL_FLOAT] = FR_FLOAT,
		[NCCL_DOUBLE] = FR_DOUBLE, [NCCL_BFLOAT16] = FR_BFLOAT16,
	};

	return types[type];
}

static int fr_op_of(int op)
{
	static const int ops[] = {
		[NCCL_SUM] = FR_SUM, [NCCL_PROD] = FR_PROD, [NCCL_MAX] = FR_MAX,
		[NCCL_MIN] = FR_MIN, [NCCL_AVG] = FR_AVG,
	};

	return ops[op];
}

/* What the tests of the check want to be found. */
static void finish(void *out, size_t bytes)
{
	if (fault_is("wrong") && bytes != 0) {
		((char *)out)[bytes - 1] ^= 0x40;
	}
	if (fault_is("past")) {
		((char *)out)[bytes] ^= 0x40;
	}
	while (fault_is("hang")) {
		sleep(1);
	}
	if (fault_is("die")) {
		abort();
	}
}

/* All ranks' inputs of @bytes, block @mine of each, reduced into @out. */
static int reduce_blocks(struct fake_comm *comm, const char *in, size_t stride,
			 void *out, size_t cnt, int type, int op)
{
	size_t bytes = cnt * fr_type_bytes(fr_type_of(type));
	char *all = malloc(bytes * (size_t)comm->ranks + 1);
	struct fake_message messages[FAKE_RANKS_MAX] = {0};
	int ret;

	if (all == NULL) {
		return NCCL_SYSTEM_ERROR;
	}
	for (int i = 0; i < comm->ranks; i++) {
		messages[i] = (struct fake_message){
			.out = in + (size_t)i * stride,
			.out_bytes = bytes,
			.in = all + (size_t)i * bytes,
			.in_bytes = bytes,
		};
	}
	ret = fake_exchange(comm, messages);
	for (int i = 1; i < comm->ranks && ret == NCCL_SUCCESS; i++) {
		fr_reduce(fr_type_of(type), fr_op_of(op), all, all,
			  all + (size_t)i * bytes, cnt);
	}
	if (ret == NCCL_SUCCESS && out != NULL) {
		fr_reduce_finish(fr_type_of(type), fr_op_of(op), all, cnt,
				 (unsigned)comm->ranks);
		memcpy(out, all, bytes);
		finish(out, bytes);
	}
	free(all);
	return ret;
}

int ncclAllReduce(const void *in, void *out, size_t cnt, int type, int op,
		  void *comm, void *stream)
{
	(void)stream;
	return reduce_blocks(comm, in, 0, out, cnt, type, op);
}

int ncclReduce(const void *in, void *out, size_t cnt, int type, int op,
	       int root, void *arg, void *stream)
{
	struct fake_comm *comm = arg;

	(void)stream;
	return reduce_blocks(comm, in, 0, comm->rank == root ? out : NULL, cnt,
			     type, op);
}

int ncclReduceScatter(const void *in, void *out, size_t cnt, int type, int op,
		      void *comm, void *stream)
{
	(void)stream;
	return reduce_blocks(comm, in, cnt * fr_type_bytes(fr_type_of(type)),
			     out, cnt, type, op);
}

int ncclBroadcast(const void *in, void *out, size_t cnt, int type, int root,
		  void *arg, void *stream)
{
	struct fake_comm *comm = arg;
	size_t bytes = cnt * fr_type_bytes(fr_type_of(type));
	struct fake_message messages[FAKE_RANKS_MAX] = {0};
	int ret;

	(void)stream;
	for (int i = 0; comm->rank == root && i < comm->ranks; i++) {
		messages[i].out = in;
		messages[i].out_bytes = bytes;
	}
	messages[root].in = out;
	messages[root].in_bytes = bytes;
	ret = fake_exchange(comm, messages);
	finish(out, bytes);
	return ret;
}

int ncclAllGather(const void *in, void *out, size_t cnt, int type, void *arg,
		  void *stream)
{
	struct fake_comm *comm = arg;
	size_t bytes = cnt * fr_type_bytes(fr_type_of(type));
	struct fake_message messages[FAKE_RANKS_MAX] = {0};
	int ret;

	(void)stream;
	for (int i = 0; i < comm->ranks; i++) {
		messages[i] = (struct fake_message){
			.out = in,
			.out_bytes = bytes,
			.in = (char *)out + (size_t)i * bytes,
			.in_bytes = bytes,
		};
	}
	ret = fake_exchange(comm, messages);
	finish(out, bytes * (size_t)comm->ranks);
	return ret;
}

/* One group: at most one message to and from each rank. */
static struct {
	struct fake_comm *comm;
	struct fake_message messages[FAKE_RANKS_MAX];
} group;

int ncclGroupStart(void)
{
	memset(&group, 0, sizeof(group));
	return NCCL_SUCCESS;
}

int ncclSend(const void *in, size_t cnt, int type, int peer, void *comm,
	     void *stream)
{
	(void)stream;
	group.comm = comm;
	group.messages[peer].out = in;
	group.messages[peer].out_bytes = cnt * fr_type_bytes(fr_type_of(type));
	return NCCL_SUCCESS;
}

int ncclRecv(void *out, size_t cnt, int type, int peer, void *comm,
	     void *stream)
{
	(void)stream;
	group.comm = comm;
	group.messages[peer].in = out;
	group.messages[peer].in_bytes = cnt * fr_type_bytes(fr_type_of(type));
	return NCCL_SUCCESS;
}

int ncclGroupEnd(void)
{
	struct fake_message *last = NULL;
	int ret;

	if (group.comm == NULL) {
		return NCCL_SUCCESS;
	}
	ret = fake_exchange(group.comm, group.messages);
	for (int i = 0; i < group.comm->ranks; i++) {
		if (group.messages[i].in != NULL) {
			last = &group.messages[i];
		}
	}
	if (last != NULL) {
		finish(last->in, last->in_bytes);
	}
	return ret;
}
