#include "net/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define REPORT_LINE 1024

static int report_format(struct fr_set *set, unsigned rail, char *buf,
			 size_t bytes)
{
	const struct fr_nic *nic = fr_rail_nic(set->rail[rail]);
	const struct fr_stats *stats = fr_rail_stats(set->rail[rail]);
	size_t len;

	len = (size_t)snprintf(
		buf, bytes,
		"{\"pid\":%ld,\"device\":\"%s\",\"rail\":%u,\"name\":\"%s\"",
		(long)getpid(), set->dev->name, rail, nic->name);
	for (int i = 0; i < FR_STAT_CNT && len < bytes; i++) {
		len += (size_t)snprintf(buf + len, bytes - len, ",\"%s\":%llu",
					fr_stat_name((enum fr_stat)i),
					(unsigned long long)fr_stats_get(
						stats, (enum fr_stat)i));
	}
	if (len + 3 > bytes) {
		return -EMSGSIZE;
	}
	memcpy(buf + len, "}\n", 3);
	return (int)len + 2;
}

void fr_report_set(struct fr_set *set)
{
	const char *path = set->conf->stats_file;
	int fd;

	if (path[0] == '\0') {
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0) {
		fr_warn("OFI_NCCL_STATS_FILE %s: %s", path, strerror(errno));
		return;
	}
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		char line[REPORT_LINE];
		int len = report_format(set, i, line, sizeof(line));

		/* One write a line: other processes append to the same file. */
		if (len < 0 || write(fd, line, (size_t)len) != len) {
			fr_warn("OFI_NCCL_STATS_FILE %s: short write", path);
			break;
		}
	}
	close(fd);
}
