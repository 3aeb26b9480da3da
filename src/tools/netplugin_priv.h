/* Inside of netplugin*.c: the table as it lies in the plugin. */
#ifndef FR_TOOLS_NETPLUGIN_PRIV_H
#define FR_TOOLS_NETPLUGIN_PRIV_H

#include <stdint.h>

#include "tools/netplugin.h"

/* Members after the name, in the order of v6 and later. v4 and v5 have the same
 * without REG_DMABUF; what is behind CLOSE_LISTEN came later, at the end. */
enum member {
	FN_INIT,
	FN_DEVICES,
	FN_PROPS,
	FN_LISTEN,
	FN_CONNECT,
	FN_ACCEPT,
	FN_REG_MR,
	FN_REG_DMABUF, /* v6 */
	FN_DEREG_MR,
	FN_ISEND,
	FN_IRECV,
	FN_IFLUSH,
	FN_TEST,
	FN_CLOSE_SEND,
	FN_CLOSE_RECV,
	FN_CLOSE_LISTEN,
	FN_GET_DEVICE_MR,  /* v7 */
	FN_IRECV_CONSUMED, /* v7 */
	FN_MAKE_VDEVICE,   /* v9 */
	FN_FINALIZE,	   /* v11 */
	FN_SET_NET_ATTR,   /* v11 */
};

typedef void (*any_fn)(void);
typedef int (*profiler_fn)(void **handle, int type, void *parent, int64_t id,
			   void *data);

struct table {
	const char *name;
	any_fn fn[];
};

struct fr_plugin {
	void *lib;
	const struct table *table;
	unsigned abi;
	fr_plugin_logger_fn logger;
};

static inline any_fn plugin_fn(const struct fr_plugin *plugin, enum member m)
{
	unsigned at = (unsigned)m;

	if (plugin->abi < 6 && m > FN_REG_DMABUF) {
		at--;
	}
	return plugin->table->fn[at];
}

/* The member as a function of the given type. */
#define FN(plugin, m, type) ((type)plugin_fn((plugin), (m)))

#endif
