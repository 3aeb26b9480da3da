/* Between tcp_plugin.c and the tables of tcp_tables.c: every call once, in a
 * form that all of them can be translated to. Results are ncclResult_t. */
#ifndef TEST_UNIT_TOOLS_TCP_PLUGIN_H
#define TEST_UNIT_TOOLS_TCP_PLUGIN_H

#include <stddef.h>

enum { OK = 0, SYSTEM_ERROR = 2, INTERNAL_ERROR = 3, REMOTE_ERROR = 6 };

typedef void (*logger_fn)(int level, unsigned long flags, const char *file,
			  int line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

int tcp_init(logger_fn fn);
int tcp_devices(int *cnt);
int tcp_listen(int dev, void *opaque, void **listen_comm);
int tcp_connect(int dev, void *opaque, void **send_comm);
int tcp_accept(void *listen_comm, void **recv_comm);
int tcp_close(void *opaque);
int tcp_reg_mr(void *comm, void *data, size_t bytes, int type, void **mhandle);
int tcp_dereg_mr(void *comm, void *mhandle);
int tcp_isend(void *opaque, void *data, size_t bytes, void **request);
int tcp_irecv(void *opaque, void *data, size_t bytes, void **request);
int tcp_test(void *opaque, int *done, int *sizes);

#endif
