/*
 * The life of the core under the tables: references that hosts hold, the
 * host's logger, the process that may call, and the end.
 *
 * Every table keeps references of its own, so that several can be used in one
 * process. Hosts of the older tables never say that they are done: their one
 * reference goes when the library is unloaded.
 *
 * Threads: any. Blocking: as fr_net_get(). Lock order: the lock in here is
 * taken before any of the core's.
 */
#ifndef FR_PLUGIN_LIFE_H
#define FR_PLUGIN_LIFE_H

#include <stdbool.h>
#include <stddef.h>

#include "nccl/net_common.h"

/* What one table is, and whether it is in use. */
struct fr_shell {
	int abi;	       /* N of ncclNetPlugin_vN */
	ncclResult_t newest;   /* the newest result that all its hosts know */
	unsigned max_recvs;    /* receives in one irecv */
	size_t handle_bytes;   /* of the handle that listen fills */
	_Atomic unsigned refs; /* references it holds */
};

/* Every call gives a reference, *@ctx, for fr_shell_finalize(). @logger: NULL
 * leaves the log as it is. @config may be NULL. */
ncclResult_t fr_shell_init(struct fr_shell *shell,
			   const ncclNetCommConfig_v10_t *config,
			   ncclDebugLogger_t logger, void **ctx);
/* The first call that succeeds takes the one reference, later ones none. */
ncclResult_t fr_shell_init_once(struct fr_shell *shell,
				ncclDebugLogger_t logger);
/* Drops @ctx. NULL is a no-op; one that @shell did not give, or that was
 * dropped before, is an error and changes nothing. */
ncclResult_t fr_shell_finalize(struct fr_shell *shell, void *ctx);

/* The traffic class that @ctx was made with; unset when it is no context. */
int fr_shell_traffic_class(const void *ctx);

/* Whether @call may be made: refused, with one line, before @shell was
 * initialised and in a process forked off the one that initialised it. */
ncclResult_t fr_shell_ready(struct fr_shell *shell, const char *call);

/* The library is on its way out: what is called now came too late. */
bool fr_shell_is_unloaded(void);
/* Whether an init of any table came since the load: before that no object can
 * be ours. For the data path. */
bool fr_shell_was_initialised(void);

/* *@out: the same text, valid until fr_shell_unload() whatever the core does
 * to @text; NULL for NULL. Hosts keep the pointers. Return: 0, -ENOMEM. */
int fr_shell_keep_text(const char *text, char **out);

/* The end: drops all references and unloads the core. Nothing of ours runs, or
 * is called, after it. A no-op in a forked child, which must not touch what
 * its parent uses. Everything starts afresh with the next init. */
void fr_shell_unload(void);

#endif
