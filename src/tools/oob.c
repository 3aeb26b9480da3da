#include "tools/oob.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

struct fr_oob {
	unsigned rank, ranks;
	int fds[]; /* rank 0: one a rank; others: only slot 0 */
};

static unsigned fd_cnt(const struct fr_oob *oob)
{
	return oob->rank == 0 ? oob->ranks : 1;
}

int fr_oob_create(unsigned rank, unsigned ranks, const int *fds,
		  struct fr_oob **out)
{
	unsigned cnt = rank == 0 ? ranks : 1;
	struct fr_oob *oob;

	oob = fr_calloc(1, sizeof(*oob) + cnt * sizeof(oob->fds[0]));
	if (oob == NULL) {
		for (unsigned i = 0; i < cnt; i++) {
			if (fds[i] >= 0) {
				(void)close(fds[i]);
			}
		}
		return -ENOMEM;
	}
	oob->rank = rank;
	oob->ranks = ranks;
	memcpy(oob->fds, fds, cnt * sizeof(*fds));
	*out = oob;
	return 0;
}

void fr_oob_destroy(struct fr_oob *oob)
{
	if (oob == NULL) {
		return;
	}
	for (unsigned i = 0; i < fd_cnt(oob); i++) {
		if (oob->fds[i] >= 0) {
			(void)close(oob->fds[i]);
		}
	}
	fr_free(oob);
}

unsigned fr_oob_rank(const struct fr_oob *oob)
{
	return oob->rank;
}

unsigned fr_oob_ranks(const struct fr_oob *oob)
{
	return oob->ranks;
}

static int lost(const struct fr_oob *oob, unsigned peer)
{
	fr_error("rank %u lost contact with rank %u", oob->rank, peer);
	return -ECONNRESET;
}

static int write_all(const struct fr_oob *oob, unsigned peer, const void *buf,
		     size_t bytes)
{
	const char *at = buf;
	ssize_t n;

	while (bytes > 0) {
		n = send(oob->fds[peer], at, bytes, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return lost(oob, peer);
		}
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int read_all(const struct fr_oob *oob, unsigned peer, void *buf,
		    size_t bytes)
{
	char *at = buf;
	ssize_t n;

	while (bytes > 0) {
		n = recv(oob->fds[peer], at, bytes, 0);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return lost(oob, peer);
		}
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int fr_oob_all_gather_wait(struct fr_oob *oob, const void *mine, size_t bytes,
			   void *all)
{
	char *slots = all;
	int ret = 0;

	if (oob->rank != 0) {
		ret = write_all(oob, 0, mine, bytes);
		return ret != 0 ? ret
				: read_all(oob, 0, all, bytes * oob->ranks);
	}
	memcpy(slots, mine, bytes);
	for (unsigned i = 1; i < oob->ranks && ret == 0; i++) {
		ret = read_all(oob, i, slots + i * bytes, bytes);
	}
	for (unsigned i = 1; i < oob->ranks && ret == 0; i++) {
		ret = write_all(oob, i, all, bytes * oob->ranks);
	}
	return ret;
}

int fr_oob_barrier_wait(struct fr_oob *oob)
{
	uint8_t mine = 0, all[256];

	return fr_oob_all_gather_wait(oob, &mine, 1, all);
}

int fr_oob_gone(const struct fr_oob *oob)
{
	struct pollfd p;

	for (unsigned i = 0; i < fd_cnt(oob); i++) {
		p = (struct pollfd){.fd = oob->fds[i], .events = POLLRDHUP};
		if (p.fd >= 0 && poll(&p, 1, 0) == 1 &&
		    (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
			return (int)i;
		}
	}
	return -1;
}
