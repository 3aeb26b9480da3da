/* The entry points that stand in for libfabric's, and the real ones. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "shim/objects.h"
#include "shim/shim.h"
#include "shim/state.h"

#define SONAME "libfabric.so.1"
#define EXPORT __attribute__((visibility("default")))

static struct {
	int (*getinfo)(uint32_t version, const char *node, const char *service,
		       uint64_t flags, const struct fi_info *hints,
		       struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		      void *context);
	uint32_t (*version)(void);
	const char *(*strerror)(int errnum);
	char *(*tostr)(const void *data, enum fi_type datatype);
} real;

/* -- the real library -------------------------------------------------------
 */

static void give_up(const char *why)
{
	fprintf(stderr, "fr_shim: %s\n", why);
	abort();
}

static bool is_shim(const char *path)
{
	struct stat there, here;
	Dl_info self;

	return dladdr((const void *)is_shim, &self) != 0 &&
	       stat(self.dli_fname, &here) == 0 && stat(path, &there) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* By its path: by its name the linker would find us. */
static void *real_at(const char *dir)
{
	char path[4096];
	int len = snprintf(path, sizeof(path), "%s/" SONAME, dir);

	if (len < 0 || (size_t)len >= sizeof(path) || is_shim(path)) {
		return NULL;
	}
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Where the linker would look: LD_LIBRARY_PATH, the system's directories. */
static void *real_search(void)
{
	void *self = dlopen(NULL, RTLD_LAZY), *lib = NULL;
	Dl_serinfo size, *path;

	if (self == NULL || dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) {
		give_up(dlerror());
	}
	path = shim_alloc(size.dls_size);
	if (dlinfo(self, RTLD_DI_SERINFOSIZE, path) != 0 ||
	    dlinfo(self, RTLD_DI_SERINFO, path) != 0) {
		give_up(dlerror());
	}
	for (unsigned i = 0; i < path->dls_cnt && lib == NULL; i++) {
		lib = real_at(path->dls_serpath[i].dls_name);
	}
	free(path);
	dlclose(self);
	return lib;
}

static void real_symbol(void *lib, const char *name, void *entry)
{
	void *sym = dlsym(lib, name);

	if (sym == NULL) {
		give_up(dlerror());
	}
	memcpy(entry, &sym, sizeof(sym));
}

static int api_set(const char *text)
{
	const char *bad = "";
	int ret = shim_state_set(text, &bad);

	if (ret != 0) {
		fprintf(stderr, "fr_shim: not understood from here on: %s\n",
			bad);
	}
	return ret;
}

static int64_t api_calls(const char *kind)
{
	uint32_t kinds = shim_kinds_parse(kind, strlen(kind));

	return kinds == 0 ? -1 : (int64_t)shim_state_calls(kinds);
}

static int64_t api_faults(const char *kind)
{
	uint32_t kinds = shim_kinds_parse(kind, strlen(kind));

	return kinds == 0 ? -1 : (int64_t)shim_state_faults(kinds);
}

EXPORT const struct fr_shim_api fr_shim_api = {
	.set = api_set,
	.calls = api_calls,
	.faults = api_faults,
};

/* At once, not at the first call: what libraries do when they are loaded has to
 * be over when our own load is. */
__attribute__((constructor)) static void shim_start(void)
{
	const char *named = getenv("FR_SHIM_REAL");
	void *lib = named != NULL ? dlopen(named, RTLD_NOW | RTLD_LOCAL)
				  : real_search();

	if (lib == NULL) {
		give_up("the real " SONAME " was not found: name it in "
			"FR_SHIM_REAL");
	}
	real_symbol(lib, "fi_getinfo", &real.getinfo);
	real_symbol(lib, "fi_freeinfo", &real.freeinfo);
	real_symbol(lib, "fi_dupinfo", &real.dupinfo);
	real_symbol(lib, "fi_fabric", &real.fabric);
	real_symbol(lib, "fi_version", &real.version);
	real_symbol(lib, "fi_strerror", &real.strerror);
	real_symbol(lib, "fi_tostr", &real.tostr);
	if (api_set(getenv("FR_SHIM")) != 0) {
		give_up("FR_SHIM is wrong");
	}
}

/* -- ours -------------------------------------------------------------------
 */

static unsigned list_len(const struct fi_info *list)
{
	unsigned cnt = 0;

	for (; list != NULL; list = list->next) {
		cnt++;
	}
	return cnt;
}

static void list_shuffle(struct fi_info **list)
{
	unsigned cnt = list_len(*list);
	struct fi_info **order =
		shim_alloc((cnt + 1) * sizeof(struct fi_info *));

	for (unsigned i = 0; i < cnt; i++) {
		unsigned j = (unsigned)(shim_random() % (i + 1));

		order[i] = order[j];
		order[j] = *list;
		*list = (*list)->next;
	}
	for (unsigned i = 0; i < cnt; i++) {
		order[i]->next = order[i + 1];
	}
	*list = order[0];
	free(order);
}

EXPORT int fi_getinfo(uint32_t version, const char *node, const char *service,
		      uint64_t flags, const struct fi_info *hints,
		      struct fi_info **info)
{
	int ret = shim_refuse(SHIM_GETINFO, SHIM_ANY_RAIL);
	struct fi_info *plain = NULL;

	if (ret == 0 && shim_wants_gpu() && hints != NULL &&
	    (hints->caps & FI_HMEM) != 0) {
		plain = real.dupinfo(hints);
		plain->caps &= ~FI_HMEM;
		plain->domain_attr->mr_mode &= ~FI_MR_HMEM;
	}
	if (ret == 0) {
		SHIM_REAL(ret,
			  real.getinfo(version, node, service, flags,
				       plain != NULL ? plain : hints, info));
	}
	if (plain != NULL) {
		real.freeinfo(plain);
	}
	if (ret != 0 || shim_inside != 0) {
		return ret;
	}
	for (struct fi_info *pos = *info; pos != NULL; pos = pos->next) {
		pos->caps |= plain != NULL ? FI_HMEM : 0;
		if (shim_cq_data() != 0) {
			pos->domain_attr->cq_data_size = shim_cq_data();
		}
	}
	if (shim_wants_shuffle()) {
		list_shuffle(info);
	}
	return 0;
}

EXPORT void fi_freeinfo(struct fi_info *info)
{
	real.freeinfo(info);
}

EXPORT struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	return shim_refuse(SHIM_DUPINFO, SHIM_ANY_RAIL) != 0
		       ? NULL
		       : real.dupinfo(info);
}

EXPORT int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		     void *context)
{
	int ret = shim_refuse(SHIM_FABRIC, SHIM_ANY_RAIL);

	if (ret == 0) {
		SHIM_REAL(ret, real.fabric(attr, fabric, context));
	}
	if (ret == 0 && shim_inside == 0) {
		shim_fabric_hook(*fabric);
	}
	return ret;
}

EXPORT uint32_t fi_version(void)
{
	return real.version();
}

EXPORT const char *fi_strerror(int errnum)
{
	return real.strerror(errnum);
}

EXPORT char *fi_tostr(const void *data, enum fi_type datatype)
{
	return real.tostr(data, datatype);
}
