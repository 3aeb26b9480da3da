/* The tables of the TCP plugin: what each version calls, and how. */
#include <stdint.h>
#include <string.h>

#include "tcp_plugin.h"

/* Properties: fields that a version has are set, in its order. */
struct props_v4 {
	char *name, *pci;
	uint64_t guid;
	int ptr, speed, port, comms;
};

struct props_v6 {
	char *name, *pci;
	uint64_t guid;
	int ptr, speed, port;
	float latency;
	int comms, recvs;
};

struct props_v7 {
	struct props_v6 v6;
	int dev_type, dev_version;
};

struct props_v8 {
	char *name, *pci;
	uint64_t guid;
	int ptr, global, speed, port;
	float latency;
	int comms, recvs, dev_type, dev_version;
};

struct props_v9 {
	char *name, *pci;
	uint64_t guid;
	int ptr, global, flush, speed, port;
	float latency;
	int comms, recvs, dev_type, dev_version, vcnt, vdevs[4];
	size_t p2p, coll;
};

struct props_v11 {
	struct props_v9 v9;
	int multi;
};

struct props_v12 {
	char *name, *pci;
	uint64_t guid;
	int ptr, global, flush, speed, port;
	float latency;
	int comms, recvs, dev_type, dev_version, vcnt, vdevs[8];
	size_t p2p, coll;
	int multi;
	int16_t rail, plane;
};

_Static_assert(sizeof(struct props_v4) == 40, "layout");
_Static_assert(sizeof(struct props_v6) == 48, "layout");
_Static_assert(sizeof(struct props_v7) == 56, "layout");
_Static_assert(sizeof(struct props_v8) == 64, "layout");
_Static_assert(sizeof(struct props_v9) == 104, "layout");
_Static_assert(sizeof(struct props_v11) == 112, "layout");
_Static_assert(sizeof(struct props_v12) == 128, "layout");

static char dev_name[] = "tcp0";

#define COMMON                                                                 \
	.name = dev_name, .guid = 77, .ptr = 1, .speed = 10000, .port = 1,     \
	.comms = 65536
#define COMMON_V6 COMMON, .latency = 2.5f, .recvs = 1
#define COMMON_V9                                                              \
	COMMON_V6, .global = 1, .vcnt = 1, .p2p = 1u << 30, .coll = 1u << 29

#define PROPS(version, ...)                                                    \
	static int props_v##version(int dev, void *out)                        \
	{                                                                      \
		const struct props_v##version p = {__VA_ARGS__};               \
                                                                               \
		memcpy(out, &p, sizeof(p));                                    \
		return dev == 0 ? OK : INTERNAL_ERROR;                         \
	}

PROPS(4, COMMON)
PROPS(6, COMMON_V6)
PROPS(7, .v6 = {COMMON_V6})
PROPS(8, COMMON_V6, .global = 1)
PROPS(9, COMMON_V9)
PROPS(11, .v9 = {COMMON_V9}, .multi = 1)
PROPS(12, COMMON_V9, .multi = 1, .rail = 3, .plane = -1)

static int init_v10(logger_fn fn, void *profiler)
{
	return profiler != NULL ? tcp_init(fn) : INTERNAL_ERROR;
}

static int context_cnt; /* v11 on: init and finalize come in pairs */

static int init_v11(void **ctx, uint64_t id, const int *config, logger_fn fn,
		    void *profiler)
{
	context_cnt++;
	*ctx = &context_cnt;
	return id == 1 && config[0] == -1 ? init_v10(fn, profiler)
					  : INTERNAL_ERROR;
}

static int finalize_v11(void *ctx)
{
	return ctx == &context_cnt && context_cnt-- > 0 ? OK : INTERNAL_ERROR;
}

static int listen_v11(void *ctx, int dev, void *handle, void **comm)
{
	return ctx == &context_cnt ? tcp_listen(dev, handle, comm)
				   : INTERNAL_ERROR;
}

/* v4 has no later: it waits in the call. */
static int connect_v4(int dev, void *handle, void **comm)
{
	int ret;

	do {
		ret = tcp_connect(dev, handle, comm);
	} while (ret == OK && *comm == NULL);
	return ret;
}

static int connect_v7(int dev, void *handle, void **comm, void **dev_comm)
{
	*dev_comm = NULL;
	return tcp_connect(dev, handle, comm);
}

static int connect_v10(int dev, const int *config, void *handle, void **comm,
		       void **dev_comm)
{
	return config[0] == -1 ? connect_v7(dev, handle, comm, dev_comm)
			       : INTERNAL_ERROR;
}

static int connect_v11(void *ctx, int dev, void *handle, void **comm,
		       void **dev_comm)
{
	return ctx == &context_cnt ? connect_v7(dev, handle, comm, dev_comm)
				   : INTERNAL_ERROR;
}

static int accept_v7(void *listen_comm, void **comm, void **dev_comm)
{
	*dev_comm = NULL;
	return tcp_accept(listen_comm, comm);
}

static int reg_v4(void *c, void *data, int bytes, int type, void **mh)
{
	return tcp_reg_mr(c, data, (size_t)bytes, type, mh);
}

static int isend_v4(void *c, void *data, int bytes, void *mh, void **rq)
{
	(void)mh;
	return tcp_isend(c, data, (size_t)bytes, rq);
}

static int isend_v5(void *c, void *data, int bytes, int tag, void *mh,
		    void **rq)
{
	(void)tag;
	return isend_v4(c, data, bytes, mh, rq);
}

static int isend_v9(void *c, void *data, size_t bytes, int tag, void *mh,
		    void **rq)
{
	(void)tag;
	(void)mh;
	return tcp_isend(c, data, bytes, rq);
}

static int isend_v10(void *c, void *data, size_t bytes, int tag, void *mh,
		     void *ph, void **rq)
{
	(void)ph;
	return isend_v9(c, data, bytes, tag, mh, rq);
}

static int irecv_v4(void *c, void *data, int bytes, void *mh, void **rq)
{
	(void)mh;
	return tcp_irecv(c, data, (size_t)bytes, rq);
}

static int irecv_v5(void *c, int n, void **data, int *bytes, int *tags,
		    void **mhs, void **rq)
{
	(void)tags;
	return n == 1 ? irecv_v4(c, data[0], bytes[0], mhs[0], rq)
		      : INTERNAL_ERROR;
}

static int irecv_v9(void *c, int n, void **data, size_t *bytes, int *tags,
		    void **mhs, void **rq)
{
	(void)tags;
	(void)mhs;
	return n == 1 ? tcp_irecv(c, data[0], bytes[0], rq) : INTERNAL_ERROR;
}

static int irecv_v10(void *c, int n, void **data, size_t *bytes, int *tags,
		     void **mhs, void **phs, void **rq)
{
	return phs != NULL ? irecv_v9(c, n, data, bytes, tags, mhs, rq)
			   : INTERNAL_ERROR;
}

/* Host memory needs no flush: nothing is under way. */
static int iflush_v4(void *c, void *data, int bytes, void *mh, void **rq)
{
	(void)c;
	(void)data;
	(void)bytes;
	(void)mh;
	*rq = NULL;
	return OK;
}

static int iflush_v5(void *c, int n, void **data, int *bytes, void **mhs,
		     void **rq)
{
	return n == 1 ? iflush_v4(c, data[0], bytes[0], mhs[0], rq)
		      : INTERNAL_ERROR;
}

typedef void (*any_fn)(void);
#define F(fn) ((any_fn)(fn))
#define EXPORT __attribute__((visibility("default")))

struct table {
	const char *name;
	any_fn fn[21];
};

#define CLOSES F(tcp_close), F(tcp_close), F(tcp_close)

/* In the order of the tables; NULL: a member that a plugin may lack. */
EXPORT const struct table ncclNetPlugin_v4 = {
	"tcp-test",
	{F(tcp_init), F(tcp_devices), F(props_v4), F(tcp_listen), F(connect_v4),
	 F(tcp_accept), F(reg_v4), F(tcp_dereg_mr), F(isend_v4), F(irecv_v4),
	 F(iflush_v4), F(tcp_test), CLOSES}};

EXPORT const struct table ncclNetPlugin_v5 = {
	"tcp-test",
	{F(tcp_init), F(tcp_devices), F(props_v6), F(tcp_listen),
	 F(tcp_connect), F(tcp_accept), F(reg_v4), F(tcp_dereg_mr), F(isend_v5),
	 F(irecv_v5), F(iflush_v5), F(tcp_test), CLOSES}};

EXPORT const struct table ncclNetPlugin_v6 = {
	"tcp-test",
	{F(tcp_init), F(tcp_devices), F(props_v6), F(tcp_listen),
	 F(tcp_connect), F(tcp_accept), F(reg_v4), NULL, F(tcp_dereg_mr),
	 F(isend_v5), F(irecv_v5), F(iflush_v5), F(tcp_test), CLOSES}};

EXPORT const struct table ncclNetPlugin_v7 = {
	"tcp-test",
	{F(tcp_init), F(tcp_devices), F(props_v7), F(tcp_listen), F(connect_v7),
	 F(accept_v7), F(reg_v4), NULL, F(tcp_dereg_mr), F(isend_v5),
	 F(irecv_v5), F(iflush_v5), F(tcp_test), CLOSES, NULL, NULL}};

EXPORT const struct table ncclNetPlugin_v8 = {
	"tcp-test",
	{F(tcp_init), F(tcp_devices), F(props_v8), F(tcp_listen), F(connect_v7),
	 F(accept_v7), F(tcp_reg_mr), NULL, F(tcp_dereg_mr), F(isend_v5),
	 F(irecv_v5), F(iflush_v5), F(tcp_test), CLOSES, NULL, NULL}};

EXPORT const struct table ncclNetPlugin_v9 = {
	"tcp-test",
	{F(tcp_init), F(tcp_devices), F(props_v9), F(tcp_listen), F(connect_v7),
	 F(accept_v7), F(tcp_reg_mr), NULL, F(tcp_dereg_mr), F(isend_v9),
	 F(irecv_v9), F(iflush_v5), F(tcp_test), CLOSES, NULL, NULL, NULL}};

EXPORT const struct table ncclNetPlugin_v10 = {
	"tcp-test",
	{F(init_v10), F(tcp_devices), F(props_v9), F(tcp_listen),
	 F(connect_v10), F(accept_v7), F(tcp_reg_mr), NULL, F(tcp_dereg_mr),
	 F(isend_v10), F(irecv_v10), F(iflush_v5), F(tcp_test), CLOSES, NULL,
	 NULL, NULL}};

EXPORT const struct table ncclNetPlugin_v11 = {
	"tcp-test",
	{F(init_v11), F(tcp_devices), F(props_v11), F(listen_v11),
	 F(connect_v11), F(accept_v7), F(tcp_reg_mr), NULL, F(tcp_dereg_mr),
	 F(isend_v10), F(irecv_v10), F(iflush_v5), F(tcp_test), CLOSES, NULL,
	 NULL, NULL, F(finalize_v11), NULL}};

EXPORT const struct table ncclNetPlugin_v12 = {
	"tcp-test",
	{F(init_v11), F(tcp_devices), F(props_v12), F(listen_v11),
	 F(connect_v11), F(accept_v7), F(tcp_reg_mr), NULL, F(tcp_dereg_mr),
	 F(isend_v10), F(irecv_v10), F(iflush_v5), F(tcp_test), CLOSES, NULL,
	 NULL, NULL, F(finalize_v11), NULL}};
