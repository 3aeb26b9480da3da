#include "plugin/life.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "net/net.h"
#include "plugin/common.h"

/* One reference; a host that has a context sees its address. */
struct life_hold {
	struct fr_list node;
	struct fr_shell *shell;
	struct fr_net *net;
	int tclass;
};

struct life_text {
	struct fr_list node;
	char *text;
};

/* Guards both lists and the writing of everything else below. */
static struct fr_lock life_lock = FR_LOCK_OWNED_INIT;
static struct fr_list life_holds = {&life_holds, &life_holds};
static struct fr_list life_texts = {&life_texts, &life_texts};

static _Atomic(ncclDebugLogger_t) life_logger;
/* The process that first called init, while references are held. Kept until the
 * next first one, since the core can outlive the references to it. */
static _Atomic pid_t life_owner;
static _Atomic unsigned life_refs;
/* The destructor has run. */
static _Atomic bool life_unloaded;

static void life_log(enum fr_log_level level, const char *file, int line,
		     const char *text)
{
	ncclDebugLogger_t logger = atomic_load(&life_logger);

	switch (level) {
	case FR_LOG_ERROR:
	case FR_LOG_WARN:
		/* All flags: no filter by subsystem may hide what went wrong.
		 */
		logger(NCCL_LOG_WARN, NCCL_ALL, file, line, "NET/fabrail: %s",
		       text);
		break;
	case FR_LOG_INFO:
		logger(NCCL_LOG_INFO, NCCL_INIT | NCCL_NET, file, line,
		       "NET/fabrail: %s", text);
		break;
	case FR_LOG_DEBUG:
		logger(NCCL_LOG_TRACE, NCCL_INIT | NCCL_NET, file, line,
		       "NET/fabrail: %s", text);
		break;
	}
}

static void life_set_logger(ncclDebugLogger_t logger)
{
	if (logger != NULL) {
		atomic_store(&life_logger, logger);
		fr_log_set_sink(life_log);
	}
}

static bool life_is_forked(void)
{
	return atomic_load(&life_refs) != 0 &&
	       atomic_load(&life_owner) != getpid();
}

/* Before any lock: in a child it may be held by a thread that does not exist.
 */
static ncclResult_t life_refuse_forked(const char *call)
{
	if (!life_is_forked()) {
		return ncclSuccess;
	}
	fr_error_limited_by(
		call,
		"%s: this process was forked off process %ld, which "
		"initialised the plugin; only that one can use it",
		call, (long)atomic_load(&life_owner));
	return ncclInvalidUsage;
}

static int life_hold_locked(struct fr_shell *shell, struct life_hold **out)
{
	struct life_hold *hold;
	int ret;

	fr_lock_assert(&life_lock);
	hold = fr_calloc(1, sizeof(*hold));
	if (hold == NULL) {
		return -ENOMEM;
	}
	if (fr_list_empty(&life_holds)) {
		atomic_store(&life_owner, getpid());
	}
	ret = fr_net_get(&hold->net);
	if (ret != 0) {
		fr_free(hold);
		return ret;
	}
	hold->shell = shell;
	hold->tclass = NCCL_NET_TRAFFIC_CLASS_UNDEF;
	fr_list_push(&life_holds, &hold->node);
	atomic_fetch_add(&shell->refs, 1);
	atomic_fetch_add(&life_refs, 1);
	*out = hold;
	return 0;
}

static void life_drop_locked(struct life_hold *hold)
{
	fr_lock_assert(&life_lock);
	fr_list_del(&hold->node);
	atomic_fetch_sub(&hold->shell->refs, 1);
	atomic_fetch_sub(&life_refs, 1);
	fr_net_put(hold->net);
	fr_free(hold);
}

/* *@out, NULL before, stays NULL when a table that wants one has it. */
static ncclResult_t life_init(struct fr_shell *shell, ncclDebugLogger_t logger,
			      bool once, struct life_hold **out)
{
	ncclResult_t res;
	int ret = 0;

	life_set_logger(logger);
	atomic_store(&life_unloaded, false);
	res = life_refuse_forked("init");
	if (res != ncclSuccess) {
		return res;
	}

	fr_lock_take(&life_lock);
	if (!once || atomic_load(&shell->refs) == 0) {
		ret = life_hold_locked(shell, out);
	}
	fr_lock_drop(&life_lock);

	if (*out != NULL) {
		fr_info("initialised through net interface v%d, %u devices",
			shell->abi, fr_net_device_cnt());
	}
	return fr_shell_result(shell, ret);
}

ncclResult_t fr_shell_init(struct fr_shell *shell,
			   const ncclNetCommConfig_v10_t *config,
			   ncclDebugLogger_t logger, void **ctx)
{
	struct life_hold *hold = NULL;
	ncclResult_t res;

	if (ctx == NULL) {
		return fr_shell_refuse("init: no place for the context");
	}
	res = life_init(shell, logger, false, &hold);
	if (hold != NULL && config != NULL) {
		hold->tclass = config->trafficClass;
	}
	*ctx = hold;
	return res;
}

ncclResult_t fr_shell_init_once(struct fr_shell *shell,
				ncclDebugLogger_t logger)
{
	struct life_hold *hold = NULL;

	return life_init(shell, logger, true, &hold);
}

ncclResult_t fr_shell_finalize(struct fr_shell *shell, void *ctx)
{
	ncclResult_t res;

	if (ctx == NULL) {
		return ncclSuccess;
	}
	res = life_refuse_forked("finalize");
	if (res != ncclSuccess) {
		return res;
	}

	res = ncclInvalidArgument;
	fr_lock_take(&life_lock);
	fr_list_for_each (node, &life_holds) {
		struct life_hold *hold =
			FR_CONTAINER_OF(node, struct life_hold, node);

		if (hold == ctx && hold->shell == shell) {
			life_drop_locked(hold);
			res = ncclSuccess;
			break;
		}
	}
	fr_lock_drop(&life_lock);

	if (res != ncclSuccess) {
		fr_error("finalize: %p is no context of ours, or not any more",
			 ctx);
	}
	return res;
}

int fr_shell_traffic_class(const void *ctx)
{
	int tclass = NCCL_NET_TRAFFIC_CLASS_UNDEF;

	fr_lock_take(&life_lock);
	fr_list_for_each (node, &life_holds) {
		const struct life_hold *hold =
			FR_CONTAINER_OF(node, struct life_hold, node);

		if (hold == ctx) {
			tclass = hold->tclass;
		}
	}
	fr_lock_drop(&life_lock);
	return tclass;
}

bool fr_shell_is_unloaded(void)
{
	return atomic_load(&life_unloaded);
}

ncclResult_t fr_shell_ready(struct fr_shell *shell, const char *call)
{
	if (atomic_load(&shell->refs) == 0) {
		/* At exit a thread of the host may go on calling. */
		if (!fr_shell_is_unloaded()) {
			fr_error_limited_by(
				call,
				"%s: called before init of net interface v%d",
				call, shell->abi);
		}
		return ncclInvalidUsage;
	}
	return life_refuse_forked(call);
}

bool fr_shell_was_initialised(void)
{
	return atomic_load_explicit(&life_owner, memory_order_relaxed) != 0;
}

static int life_text_add_locked(const char *text, struct life_text **out)
{
	struct life_text *kept = fr_calloc(1, sizeof(*kept));

	fr_lock_assert(&life_lock);
	if (kept == NULL) {
		return -ENOMEM;
	}
	kept->text = fr_strdup(text);
	if (kept->text == NULL) {
		fr_free(kept);
		return -ENOMEM;
	}
	fr_list_push(&life_texts, &kept->node);
	*out = kept;
	return 0;
}

static int life_text_get_locked(const char *text, struct life_text **out)
{
	fr_lock_assert(&life_lock);
	fr_list_for_each (node, &life_texts) {
		struct life_text *kept =
			FR_CONTAINER_OF(node, struct life_text, node);

		if (strcmp(kept->text, text) == 0) {
			*out = kept;
			return 0;
		}
	}
	return life_text_add_locked(text, out);
}

int fr_shell_keep_text(const char *text, char **out)
{
	struct life_text *kept = NULL;
	int ret;

	if (text == NULL) {
		*out = NULL;
		return 0;
	}
	fr_lock_take(&life_lock);
	ret = life_text_get_locked(text, &kept);
	fr_lock_drop(&life_lock);
	if (ret == 0) {
		*out = kept->text;
	}
	return ret;
}

static void life_forget_texts(void)
{
	while (!fr_list_empty(&life_texts)) {
		struct life_text *kept = FR_CONTAINER_OF(
			fr_list_pop(&life_texts), struct life_text, node);

		fr_free(kept->text);
		fr_free(kept);
	}
}

void fr_shell_unload(void)
{
	if (atomic_load(&life_owner) != getpid()) {
		return;
	}
	atomic_store(&life_unloaded, true);
	/* At exit the host may have torn down what its logger stands on. */
	fr_log_set_sink(NULL);

	if (fr_lock_is_mine(&life_lock) || !fr_net_halt()) {
		/* A signal's handler ends the process out of a call of ours:
		 * what is open ends with it. */
		atomic_store(&life_owner, 0);
		return;
	}
	fr_lock_take(&life_lock);
	while (!fr_list_empty(&life_holds)) {
		life_drop_locked(FR_CONTAINER_OF(life_holds.next,
						 struct life_hold, node));
	}
	fr_lock_drop(&life_lock);

	fr_net_unload();
	life_forget_texts();
	atomic_store(&life_owner, 0);
}
