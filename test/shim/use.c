#include "shim/use.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FR_BUILDDIR, or the one that the plugin lies in. */
static int shim_path(char *path, size_t bytes)
{
	const char *build = getenv("FR_BUILDDIR");
	const char *plugin = getenv("FR_PLUGIN");
	const char *slash = plugin == NULL ? NULL : strrchr(plugin, '/');

	if (build == NULL && slash != NULL) {
		return snprintf(path, bytes, "%.*s/../test/shim/libfr_shim.so",
				(int)(slash - plugin), plugin);
	}
	return snprintf(path, bytes, "%s/test/shim/libfr_shim.so",
			build == NULL ? "." : build);
}

const struct fr_shim_api *shim_load(const char *text)
{
	const struct fr_shim_api *api;
	char path[4096];
	void *lib;

	lib = dlopen("libfabric.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (lib != NULL && dlsym(lib, FR_SHIM_API) == NULL) {
		fprintf(stderr, "libfabric is loaded already\n");
		return NULL;
	}
	if (shim_path(path, sizeof(path)) >= (int)sizeof(path)) {
		return NULL;
	}
	setenv("FR_SHIM", text == NULL ? "" : text, 1);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return NULL;
	}
	api = dlsym(lib, FR_SHIM_API);
	return api != NULL && api->set(text) == 0 ? api : NULL;
}

const struct fr_shim_api *shim_must_load(const char *text)
{
	const struct fr_shim_api *api = shim_load(text);

	if (api == NULL) {
		fprintf(stderr, "FAILED: no shim\n");
		_exit(1);
	}
	return api;
}
