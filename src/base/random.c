#include "base/random.h"

#include <errno.h>
#include <sys/random.h>

int fr_random(void *buf, size_t bytes)
{
	unsigned char *at = buf;

	while (bytes > 0) {
		ssize_t got = getrandom(at, bytes, 0);

		if (got < 0) {
			if (errno == EINTR) {
				continue;
			}
			return -errno;
		}
		at += got;
		bytes -= (size_t)got;
	}
	return 0;
}
