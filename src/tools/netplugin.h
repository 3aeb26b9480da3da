/*
 * Any NCCL net plugin, driven through the table it exports: v4 to v12 behind
 * one set of calls. Knows the tables by member order and parameter types only
 * and includes no header of theirs.
 *
 * Results: int is 0 or the ncclResult_t that the plugin returned, except where
 * a call says -errno. Arguments go through unchecked (the number of grouped
 * receives apart), so that a test can pass what it likes.
 *
 * Threads and blocking: as the plugin's own call; nothing is locked here.
 */
#ifndef FR_TOOLS_NETPLUGIN_H
#define FR_TOOLS_NETPLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define FR_PLUGIN_ABI_MIN 4u
#define FR_PLUGIN_ABI_MAX 12u
#define FR_PLUGIN_HANDLE_BYTES 128u
#define FR_PLUGIN_MAX_RECVS 8u
#define FR_PLUGIN_PTR_HOST 0x1
/* In *request before irecv (v9 on): the caller polls the payload itself. */
#define FR_PLUGIN_OPTIONAL_RECV ((void *)0x1)

enum fr_plugin_result {
	FR_PLUGIN_SUCCESS,
	FR_PLUGIN_CUDA_ERROR,
	FR_PLUGIN_SYSTEM_ERROR,
	FR_PLUGIN_INTERNAL_ERROR,
	FR_PLUGIN_INVALID_ARGUMENT,
	FR_PLUGIN_INVALID_USAGE,
	FR_PLUGIN_REMOTE_ERROR,
	FR_PLUGIN_IN_PROGRESS,
	FR_PLUGIN_TIMEOUT,
};

enum fr_plugin_level {
	FR_PLUGIN_LOG_NONE,
	FR_PLUGIN_LOG_VERSION,
	FR_PLUGIN_LOG_WARN,
	FR_PLUGIN_LOG_INFO,
	FR_PLUGIN_LOG_ABORT,
	FR_PLUGIN_LOG_TRACE,
};

/* What the plugin logs through; @level is one of enum fr_plugin_level. */
typedef void (*fr_plugin_logger_fn)(int level, unsigned long flags,
				    const char *file, int line, const char *fmt,
				    ...) __attribute__((format(printf, 5, 6)));

/* Union of what all versions report. A field that a version lacks has the value
 * that NCCL assumes for it. */
struct fr_plugin_props {
	const char *name;     /* the plugin's memory, while it is loaded */
	const char *pci_path; /* likewise; may be NULL */
	uint64_t guid;
	int ptr_support;
	int reg_is_global;
	int force_flush;
	int speed_mbps;
	int port;
	float latency_us;
	int max_comms;
	int max_recvs;
	int device_type;
	int device_version;
	int vdev_cnt;
	int vdevs[8];
	size_t max_p2p_bytes;
	size_t max_coll_bytes;
	int max_multi_request;
	int rail_id;
	int plane_id;
};

struct fr_plugin; /* one loaded library and one of its tables */

/**
 * fr_plugin_open - load a plugin and choose a table
 * @name:   path, library name, or the X of libnccl-net-X.so: tried as it stands
 *          first, then in the second form unless it has a '/' or is lib*.so
 * @abi:    4 to 12, or 0: the newest that is there
 * @logger: given to the plugin at init; lives as long as the plugin
 *
 * Return: 0; -ENOENT: nothing loads under that name; -ENOSYS: it has no such
 *         table; -ENOMEM. Each with one error line that says what was tried.
 */
int fr_plugin_open(const char *name, unsigned abi, fr_plugin_logger_fn logger,
		   struct fr_plugin **out);
/* Unloads the library unless something else holds it. NULL is a no-op. */
void fr_plugin_close(struct fr_plugin *plugin);

/* The table's name string; valid before init. */
const char *fr_plugin_name(const struct fr_plugin *plugin);
unsigned fr_plugin_abi(const struct fr_plugin *plugin);
/* The exported object itself, for what has no wrapper here. */
const void *fr_plugin_table(const struct fr_plugin *plugin);
/* "remote error (6)"; a constant text. */
const char *fr_plugin_result_text(int result);

/* @comm_id and @traffic_class (-1: unset) reach v11 and later. *@ctx belongs to
 * those too and is NULL elsewhere. */
int fr_plugin_init(struct fr_plugin *plugin, uint64_t comm_id,
		   int traffic_class, void **ctx);
/* Tables before v11 have none: 0. */
int fr_plugin_finalize(struct fr_plugin *plugin, void *ctx);
int fr_plugin_devices(struct fr_plugin *plugin, int *cnt);
int fr_plugin_props(struct fr_plugin *plugin, int dev,
		    struct fr_plugin_props *props);

/* @handle: FR_PLUGIN_HANDLE_BYTES, the same memory at each retry of a connect.
 * A NULL comm with result 0 means: call again. */
int fr_plugin_listen(struct fr_plugin *plugin, void *ctx, int dev, void *handle,
		     void **listen_comm);
int fr_plugin_connect(struct fr_plugin *plugin, void *ctx, int dev,
		      void *handle, void **send_comm);
int fr_plugin_accept(struct fr_plugin *plugin, void *listen_comm,
		     void **recv_comm);
int fr_plugin_close_send(struct fr_plugin *plugin, void *comm);
int fr_plugin_close_recv(struct fr_plugin *plugin, void *comm);
int fr_plugin_close_listen(struct fr_plugin *plugin, void *comm);

/* @type: FR_PLUGIN_PTR_HOST, or what else the plugin's ptr_support names. */
int fr_plugin_reg_mr(struct fr_plugin *plugin, void *comm, void *data,
		     size_t bytes, int type, void **mhandle);
int fr_plugin_dereg_mr(struct fr_plugin *plugin, void *comm, void *mhandle);

/* *@request is passed in as it is (stale, hint) and is NULL afterwards when the
 * call has to be repeated. @tag reaches v5 and later. */
int fr_plugin_isend(struct fr_plugin *plugin, void *comm, void *data,
		    size_t bytes, int tag, void *mhandle, void **request);
/* @cnt receives as one group, at most FR_PLUGIN_MAX_RECVS; 1 before v5. */
int fr_plugin_irecv(struct fr_plugin *plugin, void *comm, int cnt, void **data,
		    const size_t *bytes, const int *tags, void **mhandles,
		    void **request);
/* *@request NULL: flushed already. */
int fr_plugin_iflush(struct fr_plugin *plugin, void *comm, int cnt, void **data,
		     const int *bytes, void **mhandles, void **request);
/* @sizes: NULL, or as many ints as the request has parts. */
int fr_plugin_test(struct fr_plugin *plugin, void *request, int *done,
		   int *sizes);

#endif
