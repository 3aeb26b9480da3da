#include "tools/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/log.h"

/* What /sys/class/net shows was fixed when /sys was mounted: mount it anew, for
 * this process alone. */
static int renew_sys(void)
{
	if (unshare(CLONE_NEWNS) != 0 ||
	    mount("", "/", NULL, MS_SLAVE | MS_REC, NULL) != 0) {
		return -errno;
	}
	(void)umount2("/sys", MNT_DETACH);
	if (mount("sysfs", "/sys", "sysfs", 0, NULL) != 0) {
		return -errno;
	}
	return 0;
}

int fr_netns_enter(const char *name)
{
	char path[128];
	int fd, ret;

	(void)snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		fr_error("network namespace %s: cannot open %s: %s", name, path,
			 strerror(-ret));
		return ret;
	}
	ret = setns(fd, CLONE_NEWNET) != 0 ? -errno : 0;
	(void)close(fd);
	if (ret == 0) {
		ret = renew_sys();
	}
	if (ret != 0) {
		fr_error("cannot enter network namespace %s: %s", name,
			 strerror(-ret));
	}
	return ret;
}
