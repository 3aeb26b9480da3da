#include "fabric/fi.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/util.h"
#include "fabric/provider.h"
#include "fabric/signals.h"

#define FI_SONAME "libfabric.so.1"

/*
 * rxm allocates bounce buffers by the thousand: 68 MB an endpoint by default,
 * 12 MB like this, and a message with an eager payload of 8 KiB still fits one
 * buffer. It looks at new connections every 10 ms by default. sockets' progress
 * thread sleeps 10 ms after each idle moment unless told not to, and it
 * connects inside of a post: for 15 s if nobody answers, and five times if
 * somebody refuses. When that time is short it goes on in the background.
 */
static const struct {
	const char *name;
	const char *value;
} fi_env[] = {
	{"FI_OFI_RXM_BUFFER_SIZE", "10240"},
	{"FI_OFI_RXM_MSG_RX_SIZE", "512"},
	{"FI_OFI_RXM_CM_PROGRESS_INTERVAL", "1000"},
	{"FI_SOCKETS_PE_WAITTIME", "0"},
	{"FI_SOCKETS_CONN_TIMEOUT", "2"},
	{"FI_SOCKETS_MAX_CONN_RETRY", "1"},
};

/* What the user set stays. libfabric reads these once, at its first getinfo. */
static void fi_env_tame(void)
{
	for (size_t i = 0; i < FR_ARRAY_LEN(fi_env); i++) {
		setenv(fi_env[i].name, fi_env[i].value, 0);
	}
}

static const struct fr_fi *fi_table; /* NULL until loaded */
static struct fr_fi fi_loaded;
static void *fi_lib; /* what it was loaded from */

/* Which of several libfabrics it is. */
static const char *fi_lib_path(void)
{
	struct link_map *map;

	if (fi_lib == NULL || dlinfo(fi_lib, RTLD_DI_LINKMAP, &map) != 0) {
		return FI_SONAME;
	}
	return map->l_name;
}

/* dlsym through a pointer to pointer, as POSIX has it. */
static bool fi_symbol(const char *name, void *entry)
{
	void *sym = dlsym(fi_lib, name);

	memcpy(entry, &sym, sizeof(sym));
	if (sym == NULL) {
		fr_error("%s lacks %s: not a libfabric that we can use",
			 fi_lib_path(), name);
	}
	return sym != NULL;
}

static int fi_load_symbols(struct fr_fi *fi)
{
	bool all = fi_symbol("fi_getinfo", &fi->getinfo) &&
		   fi_symbol("fi_freeinfo", &fi->freeinfo) &&
		   fi_symbol("fi_dupinfo", &fi->dupinfo) &&
		   fi_symbol("fi_fabric", &fi->fabric) &&
		   fi_symbol("fi_version", &fi->version) &&
		   fi_symbol("fi_strerror", &fi->strerror) &&
		   fi_symbol("fi_tostr", &fi->tostr);

	return all ? 0 : -ELIBACC;
}

static int fi_load(void)
{
	struct fr_signals signals;
	int ret;

	fr_signals_save(&signals);
	fi_lib = dlopen(FI_SONAME, RTLD_NOW | RTLD_LOCAL);
	fr_signals_restore(&signals);
	if (fi_lib == NULL) {
		fr_error("cannot load libfabric: %s", dlerror());
		return -ELIBACC;
	}
	ret = fi_load_symbols(&fi_loaded);
	if (ret == 0) {
		fi_table = &fi_loaded;
	}
	return ret;
}

bool fr_fabric_is_there(void)
{
	void *lib = dlopen(FI_SONAME, RTLD_LAZY | RTLD_NOLOAD);

	if (lib != NULL) {
		dlclose(lib);
	}
	return lib != NULL;
}

int fr_fi_get(const struct fr_fi **out)
{
	uint32_t version;
	int ret;

	if (fi_table == NULL) {
		ret = fi_load();
		if (ret != 0) {
			return ret;
		}
	}
	version = fi_table->version();
	if (FI_VERSION_LT(version, FR_FI_VERSION_MIN)) {
		fr_error("needs libfabric %u.%u or newer, found %u.%u at %s",
			 FI_MAJOR(FR_FI_VERSION_MIN),
			 FI_MINOR(FR_FI_VERSION_MIN), FI_MAJOR(version),
			 FI_MINOR(version), fi_lib_path());
		return -ELIBACC;
	}
	*out = fi_table;
	return 0;
}

void fr_fi_set(const struct fr_fi *table)
{
	fi_table = table;
	if (table == NULL && fi_loaded.getinfo != NULL) {
		fi_table = &fi_loaded;
	}
}

uint32_t fr_fi_api_version(const struct fr_fi *fi)
{
	uint32_t known = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
	uint32_t running = fi->version();

	if (FI_VERSION_LT(known, FR_FI_VERSION_KNOWN)) {
		known = FR_FI_VERSION_KNOWN;
	}
	return FI_VERSION_LT(running, known) ? running : known;
}

int fr_fi_getinfo(const struct fr_fi *fi, const struct fi_info *hints,
		  struct fi_info **list)
{
	struct fr_signals signals;
	int ret;

	fi_env_tame();
	fr_signals_save(&signals);
	ret = fi->getinfo(fr_fi_api_version(fi), NULL, NULL, 0, hints, list);
	fr_signals_restore(&signals);
	return ret;
}

int fr_fi_errno(ssize_t ret)
{
	if (ret >= 0) {
		return 0;
	}
	return ret <= -FI_ERRNO_OFFSET ? -EIO : (int)ret;
}

const char *fr_fi_text(ssize_t ret)
{
	int err = (int)(ret < 0 ? -ret : ret);

	return fi_table != NULL ? fi_table->strerror(err) : strerror(err);
}
