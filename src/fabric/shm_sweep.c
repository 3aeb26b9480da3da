/* Files that processes have left in /dev/shm. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "fabric/shm_priv.h"

/* A socket that is not open for so long never will be. */
#define EARLY_S 60

/* Of this user, and what its name says it is. */
static bool is_mine(const char *path, mode_t kind, struct stat *st)
{
	return lstat(path, st) == 0 && (st->st_mode & S_IFMT) == kind &&
	       st->st_uid == geteuid();
}

/* Nobody listens: whoever made the socket has died. */
static bool is_refused(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	bool refused;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		return false;
	}
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	refused = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) !=
			  0 &&
		  errno == ECONNREFUSED;
	close(fd);
	return refused;
}

/* The endpoints of the set whose socket is @path, then the socket: as long as
 * that is there the next one finds what this one did not come to. */
static unsigned sweep_set(const char *path)
{
	char file[FR_SHM_PATH_MAX];
	unsigned removed = 0;
	struct stat st;

	snprintf(file, sizeof(file), "%s", path);
	for (unsigned i = 0; i < 2u * FR_SHM_RAILS; i++) {
		file[strlen(file) - 1] =
			(char)((i % 2 == 0 ? FR_SHM_RAIL : FR_SHM_MARK) +
			       (int)(i / 2));
		if (is_mine(file, S_IFREG, &st) && unlink(file) == 0) {
			removed++;
		}
	}
	return removed + (unlink(path) == 0 ? 1 : 0);
}

static unsigned sweep_entry(const char *text)
{
	char path[FR_SHM_PATH_MAX];
	struct fr_shm_id id;
	struct stat st;

	if (!fr_shm_parse(text, &id) ||
	    snprintf(path, sizeof(path), "%s/%s", fr_shm_dir(), text) >=
		    (int)sizeof(path)) {
		return 0;
	}
	if (id.kind == FR_SHM_KNOCK && is_mine(path, S_IFSOCK, &st) &&
	    is_refused(path)) {
		return sweep_set(path);
	}
	if (id.kind == FR_SHM_KNOCK_EARLY && is_mine(path, S_IFSOCK, &st) &&
	    time(NULL) - st.st_mtime > EARLY_S) {
		return unlink(path) == 0 ? 1 : 0;
	}
	return 0;
}

void fr_shm_sweep(void)
{
	DIR *dir = opendir(fr_shm_dir());
	const struct dirent *entry;
	unsigned removed = 0;

	if (dir == NULL) {
		return; /* the provider will say why */
	}
	while ((entry = readdir(dir)) != NULL) {
		removed += sweep_entry(entry->d_name);
	}
	closedir(dir);
	if (removed != 0) {
		fr_info("removed %u files that processes left in %s when they "
			"died",
			removed, fr_shm_dir());
	}
}
