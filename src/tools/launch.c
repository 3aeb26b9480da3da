#include "tools/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

struct child {
	pid_t pid;  /* 0: not there, or reaped */
	int hub_fd; /* rank 0's end of the socket pair; -1 for rank 0 itself */
	int leaf_fd;
};

struct launch {
	unsigned ranks;
	struct fr_status *status; /* shared, one a rank */
	struct child child[];
};

static void close_fd(int *fd)
{
	if (*fd >= 0) {
		(void)close(*fd);
		*fd = -1;
	}
}

static void launch_destroy(struct launch *l)
{
	for (unsigned i = 0; i < l->ranks; i++) {
		close_fd(&l->child[i].hub_fd);
		close_fd(&l->child[i].leaf_fd);
	}
	if (l->status != NULL) {
		(void)munmap(l->status, l->ranks * sizeof(*l->status));
	}
	fr_free(l);
}

static int launch_create(unsigned ranks, struct launch **out)
{
	struct launch *l;
	int pair[2];
	void *map;

	l = fr_calloc(1, sizeof(*l) + ranks * sizeof(l->child[0]));
	if (l == NULL) {
		return -ENOMEM;
	}
	l->ranks = ranks;
	for (unsigned i = 0; i < ranks; i++) {
		l->child[i].hub_fd = -1;
		l->child[i].leaf_fd = -1;
	}
	map = mmap(NULL, ranks * sizeof(*l->status), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) {
		launch_destroy(l);
		return -ENOMEM;
	}
	l->status = map;
	for (unsigned i = 1; i < ranks; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) !=
		    0) {
			int ret = -errno;

			launch_destroy(l);
			return ret;
		}
		l->child[i].hub_fd = pair[0];
		l->child[i].leaf_fd = pair[1];
	}
	*out = l;
	return 0;
}

static int child_main(struct launch *l, unsigned rank, fr_rank_fn body,
		      void *arg)
{
	struct fr_oob *oob;
	int fds[256];

	for (unsigned i = 0; i < l->ranks; i++) {
		if (rank == 0) {
			fds[i] = l->child[i].hub_fd;
			close_fd(&l->child[i].leaf_fd);
		} else {
			close_fd(&l->child[i].hub_fd);
			if (i != rank) {
				close_fd(&l->child[i].leaf_fd);
			}
		}
	}
	if (rank != 0) {
		fds[0] = l->child[rank].leaf_fd;
	}
	if (fr_oob_create(rank, l->ranks, fds, &oob) != 0) {
		return 1;
	}
	return body(rank, oob, &l->status[rank], arg);
}

static void kill_all(struct launch *l)
{
	for (unsigned i = 0; i < l->ranks; i++) {
		if (l->child[i].pid > 0) {
			(void)kill(l->child[i].pid, SIGKILL);
			(void)waitpid(l->child[i].pid, NULL, 0);
			l->child[i].pid = 0;
		}
	}
}

static int start_all(struct launch *l, fr_rank_fn body, void *arg)
{
	pid_t parent = getpid(), pid;
	int ret;

	(void)fflush(NULL);
	for (unsigned i = 0; i < l->ranks; i++) {
		pid = fork();
		if (pid < 0) {
			ret = -errno;
			fr_error("cannot start rank %u: %s", i, strerror(-ret));
			kill_all(l);
			return ret;
		}
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent) {
				_exit(1);
			}
			ret = child_main(l, i, body, arg);
			(void)fflush(NULL);
			_exit(ret);
		}
		l->child[i].pid = pid;
	}
	for (unsigned i = 0; i < l->ranks; i++) {
		close_fd(&l->child[i].hub_fd);
		close_fd(&l->child[i].leaf_fd);
	}
	return 0;
}

/* Rank of the child that ended, or -1: none within @wait_ms (negative: wait as
 * long as there are any). */
static int reap(struct launch *l, int wait_ms, int *st)
{
	struct timespec nap = {.tv_nsec = 2000000};
	bool any;

	for (int waited = 0;; waited += 2) {
		any = false;
		for (unsigned i = 0; i < l->ranks; i++) {
			if (l->child[i].pid <= 0) {
				continue;
			}
			any = true;
			if (waitpid(l->child[i].pid, st, WNOHANG) > 0) {
				l->child[i].pid = 0;
				return (int)i;
			}
		}
		if (!any || (wait_ms >= 0 && waited >= wait_ms)) {
			return -1;
		}
		(void)nanosleep(&nap, NULL);
	}
}

/* How near an end is to the cause of a failure. Who saw another rank go may
 * tell it as an end of its own, as one because of a peer, or not at all; a
 * rank that was killed had no say. */
static int blame(int st)
{
	if (WIFSIGNALED(st)) {
		return 3;
	}
	if (st == 0 || WEXITSTATUS(st) == FR_EXIT_WRONG) {
		return 0;
	}
	return WEXITSTATUS(st) == FR_EXIT_BECAUSE_OF_PEER ? 1 : 2;
}

static void report(const struct launch *l, int rank, int st)
{
	const char *phase = l->status[rank].phase;

	if (WIFSIGNALED(st)) {
		fr_error("rank %d was killed by signal %d (%s) in: %s", rank,
			 WTERMSIG(st), strsignal(WTERMSIG(st)), phase);
	} else {
		fr_error("rank %d failed (exit status %d) in: %s", rank,
			 WEXITSTATUS(st), phase);
	}
}

/* A rank that saw another one go may be reaped before it: look for the cause a
 * little longer. */
static void settle_failure(struct launch *l, int rank, int st)
{
	int other, other_st;

	while (!WIFSIGNALED(st)) {
		other = reap(l, 1000, &other_st);
		if (other < 0) {
			break;
		}
		if (blame(other_st) > blame(st)) {
			rank = other;
			st = other_st;
		}
	}
	report(l, rank, st);
	kill_all(l);
}

int fr_launch_wait(unsigned ranks, fr_rank_fn body, void *arg)
{
	struct launch *l = NULL;
	bool wrong = false;
	int ret, rank, st;

	ret = launch_create(ranks, &l);
	if (ret != 0) {
		fr_error("cannot start %u ranks: %s", ranks, strerror(-ret));
		return ret;
	}
	ret = start_all(l, body, arg);
	while (ret == 0) {
		rank = reap(l, -1, &st);
		if (rank < 0) {
			break;
		}
		if (WIFEXITED(st) && WEXITSTATUS(st) == FR_EXIT_WRONG) {
			wrong = true;
		} else if (st != 0) {
			settle_failure(l, rank, st);
			ret = 1;
		}
	}
	launch_destroy(l);
	return ret == 0 && wrong ? 1 : ret;
}
