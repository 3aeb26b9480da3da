#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Return: how many descriptors below @limit are taken, but for that of @dir,
 * which lists them. Those above it, from before it was lowered, do not count.
 */
static unsigned long long count(DIR *dir, unsigned long long limit)
{
	unsigned long long cnt = 0;
	const struct dirent *entry;

	while ((entry = readdir(dir)) != NULL) {
		char *end;
		unsigned long long fd = strtoull(entry->d_name, &end, 10);

		cnt += end != entry->d_name && fd < limit &&
		       fd != (unsigned long long)dirfd(dir);
	}
	return cnt;
}

int fr_files_look(struct fr_files *files)
{
	struct rlimit limit;
	DIR *dir;

	memset(files, 0, sizeof(*files));
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
		return -errno;
	}
	dir = opendir("/proc/self/fd");
	if (dir == NULL && errno != EMFILE) {
		return -errno;
	}
	files->limit = limit.rlim_cur;
	if (dir == NULL) {
		return 0;
	}
	files->left = files->limit - count(dir, files->limit);
	closedir(dir);
	return 0;
}
