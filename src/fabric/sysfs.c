#include "fabric/sysfs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

#define SYSFS_NET "class/net"
#define SYSFS_PCI "bus/pci/devices"
#define FNV_OFFSET 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

static const char *sysfs_root = "/sys";

void fr_sysfs_set_root(const char *root)
{
	sysfs_root = root == NULL ? "/sys" : root;
}

/* First line of "ROOT/@dir/@name/@file", without its newline; "" when there is
 * none. */
static void sysfs_read(const char *dir, const char *name, const char *file,
		       char *buf, size_t bytes)
{
	char path[PATH_MAX];
	FILE *f;

	buf[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s/%s/%s", sysfs_root, dir, name,
		 file);
	f = fopen(path, "re");
	if (f == NULL) {
		return;
	}
	if (fgets(buf, (int)bytes, f) == NULL) {
		buf[0] = '\0';
	}
	buf[strcspn(buf, "\n")] = '\0';
	fclose(f);
}

/* Return: the number, or @other when the text is none up to @max. */
static long long sysfs_number(const char *text, long long max, long long other)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, 10);
	return errno != 0 || end == text || *end != '\0' || v < 0 || v > max
		       ? other
		       : v;
}

bool fr_sysfs_is_there(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/" SYSFS_NET, sysfs_root);
	return access(path, R_OK | X_OK) == 0;
}

uint32_t fr_sysfs_speed_mbps(const char *iface)
{
	char text[32];

	sysfs_read(SYSFS_NET, iface, "speed", text, sizeof(text));
	return (uint32_t)sysfs_number(text, FR_SYSFS_SPEED_MAX_MBPS, 0);
}

int fr_sysfs_pci_numa(const char *function)
{
	char text[32];

	sysfs_read(SYSFS_PCI, function, "numa_node", text, sizeof(text));
	return (int)sysfs_number(text, INT_MAX, -1);
}

static uint64_t fnv(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++) {
		hash = (hash ^ (unsigned char)*text) * FNV_PRIME;
	}
	return hash;
}

uint64_t fr_sysfs_guid(const char *iface)
{
	char mac[64];
	uint64_t guid;

	sysfs_read(SYSFS_NET, iface, "address", mac, sizeof(mac));
	guid = fnv(fnv(FNV_OFFSET, mac), iface);
	return guid == 0 ? 1 : guid;
}

int fr_sysfs_pci_path(const char *function, char **path)
{
	char link[PATH_MAX], real[PATH_MAX];

	snprintf(link, sizeof(link), "%s/" SYSFS_PCI "/%s", sysfs_root,
		 function);
	if (realpath(link, real) == NULL) {
		return -ENOENT;
	}
	*path = fr_strdup(real);
	return *path == NULL ? -ENOMEM : 0;
}
