#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/util.h"
#include "tools/netplugin_priv.h"

static bool may_be_short_name(const char *name)
{
	size_t len = strlen(name);

	if (strchr(name, '/') != NULL) {
		return false;
	}
	return !(strncmp(name, "lib", 3) == 0 && len > 3 &&
		 strcmp(name + len - 3, ".so") == 0);
}

static void *load_library(const char *name)
{
	char file[512], why[512];
	const char *text;
	void *lib;

	lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (lib != NULL) {
		return lib;
	}
	text = dlerror();
	(void)snprintf(why, sizeof(why), "%s", text != NULL ? text : "unknown");
	if (!may_be_short_name(name)) {
		fr_error("cannot load net plugin %s: %s", name, why);
		return NULL;
	}
	(void)snprintf(file, sizeof(file), "libnccl-net-%s.so", name);
	lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		text = dlerror();
		fr_error("cannot load net plugin %s: %s; nor as %s: %s", name,
			 why, file, text != NULL ? text : "unknown");
	}
	return lib;
}

static const struct table *find_table(void *lib, unsigned abi, unsigned *found)
{
	unsigned from = abi != 0 ? abi : FR_PLUGIN_ABI_MAX;
	unsigned to = abi != 0 ? abi : FR_PLUGIN_ABI_MIN;
	const struct table *table;
	char symbol[32];

	for (unsigned v = from; v >= to; v--) {
		(void)snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%u", v);
		table = dlsym(lib, symbol);
		if (table != NULL) {
			*found = v;
			return table;
		}
	}
	return NULL;
}

int fr_plugin_open(const char *name, unsigned abi, fr_plugin_logger_fn logger,
		   struct fr_plugin **out)
{
	struct fr_plugin *plugin;
	int ret;

	plugin = fr_calloc(1, sizeof(*plugin));
	if (plugin == NULL) {
		return -ENOMEM;
	}
	plugin->lib = load_library(name);
	if (plugin->lib == NULL) {
		ret = -ENOENT;
		goto err_free_plugin;
	}
	plugin->table = find_table(plugin->lib, abi, &plugin->abi);
	if (plugin->table == NULL) {
		if (abi != 0) {
			fr_error("net plugin %s has no ncclNetPlugin_v%u", name,
				 abi);
		} else {
			fr_error(
				"net plugin %s has no ncclNetPlugin_v%u to v%u",
				name, FR_PLUGIN_ABI_MIN, FR_PLUGIN_ABI_MAX);
		}
		ret = -ENOSYS;
		goto err_unload;
	}
	plugin->logger = logger;
	*out = plugin;
	return 0;

err_unload:
	(void)dlclose(plugin->lib);
err_free_plugin:
	fr_free(plugin);
	return ret;
}

void fr_plugin_close(struct fr_plugin *plugin)
{
	if (plugin == NULL) {
		return;
	}
	(void)dlclose(plugin->lib);
	fr_free(plugin);
}

const char *fr_plugin_name(const struct fr_plugin *plugin)
{
	return plugin->table->name;
}

unsigned fr_plugin_abi(const struct fr_plugin *plugin)
{
	return plugin->abi;
}

const void *fr_plugin_table(const struct fr_plugin *plugin)
{
	return plugin->table;
}

const char *fr_plugin_result_text(int result)
{
	static const char *const texts[] = {
		"success (0)",		"unhandled cuda error (1)",
		"system error (2)",	"internal error (3)",
		"invalid argument (4)", "invalid usage (5)",
		"remote error (6)",	"in progress (7)",
		"timeout (8)",
	};

	if (result < 0 || (size_t)result >= FR_ARRAY_LEN(texts)) {
		return "unknown result";
	}
	return texts[result];
}
