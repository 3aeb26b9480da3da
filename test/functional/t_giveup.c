/*
 * A peer is stopped in the middle of its writes and given up for
 * OFI_NCCL_PEER_TIMEOUT. It is not dead: once it goes on, so do its writes.
 * Memory that was deregistered meanwhile must stay untouched, whether or not
 * somebody else uses the same endpoints.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "functional/pair.h"

#define MSGS 4
#define MSG_BYTES (8u << 20)
#define CANARY 0x5a
#define ERROR_MS 6000
#define GO_ON_MS 1500

/* Member 2, when it is there, has traffic with member 0 all the while. */
struct word {
	_Atomic bool stop;
	_Atomic bool stopped;
	_Atomic bool go_on;
};

static struct word *word;

static void set_env(unsigned i, const void *arg)
{
	(void)arg;
	/* Else the target copies all of a write in one pass, and nobody can be
	 * stopped in the middle of it. */
	setenv("FI_SHM_DISABLE_CMA", "1", 1);
	if (i == 0) {
		setenv("OFI_NCCL_PEER_TIMEOUT", "2s", 1);
	}
}

static void watch(const struct pair_case *pc, const int *pid)
{
	(void)pc;
	if (pid[1] <= 0) {
		return;
	}
	if (atomic_exchange(&word->stop, false)) {
		kill(pid[1], SIGSTOP);
		atomic_store(&word->stopped, true);
	} else if (atomic_exchange(&word->go_on, false)) {
		kill(pid[1], SIGCONT);
	}
}

/* Return: whether the traffic works; only a fence may end it. */
static bool echo_step(struct pair_member *me, struct pair_echo *echo,
		      bool lives)
{
	int ret = lives ? pair_echo_ask(me, echo) : 0;

	PAIR_CHECK(ret == 0 || (ret == PAIR_REMOTE && pair_logged("fenced")),
		   "traffic with the neighbour: %s",
		   fr_plugin_result_text(ret));
	return lives && ret == 0;
}

static bool wait_ms(struct pair_member *me, struct pair_echo *echo, bool lives,
		    unsigned ms)
{
	uint64_t until = pair_now_ms() + ms;

	while (pair_now_ms() < until) {
		lives = echo_step(me, echo, lives);
		pair_nap_us(100);
	}
	return lives;
}

static bool wait_error(struct pair_member *me, struct pair_echo *echo,
		       void **req, bool lives)
{
	uint64_t began = pair_now_ms();
	unsigned left = MSGS;

	while (left != 0) {
		left = 0;
		for (int i = 0; i < MSGS; i++) {
			int done = 0, ret;

			if (req[i] == NULL) {
				continue;
			}
			ret = fr_plugin_test(me->plugin, req[i], &done, NULL);
			PAIR_CHECK(ret == 0 || ret == PAIR_REMOTE, "test: %s",
				   fr_plugin_result_text(ret));
			if (ret != 0 || done != 0) {
				req[i] = NULL;
			}
			left += req[i] != NULL;
		}
		lives = echo_step(me, echo, lives);
		PAIR_CHECK(pair_now_ms() - began < pair_stretch(ERROR_MS),
			   "no error");
	}
	return lives;
}

static void run_caller(struct pair_member *me)
{
	bool lives = me->cnt > 2;
	void *req[MSGS], *comm;
	struct pair_echo echo;
	struct pair_buf in;

	pair_expect("fenced");
	pair_expect("is lost");
	if (lives) {
		pair_echo_open(me, 2, &echo);
	}
	comm = pair_accept(me, 1);
	pair_buf_open(me, comm, (size_t)MSGS * MSG_BYTES, &in);
	for (int i = 0; i < MSGS; i++) {
		struct pair_buf part = in;

		part.mem += (size_t)i * MSG_BYTES;
		req[i] = pair_irecv_wait(me, &part, MSG_BYTES);
	}
	pair_meet(me, 1);
	pair_at(me, "waiting for a write that has begun");
	while (*(volatile uint64_t *)in.mem == 0) {
		int done = 0;

		PAIR_CHECK(fr_plugin_test(me->plugin, req[MSGS - 1], &done,
					  NULL) == 0 &&
				   done == 0,
			   "the last message came already");
	}
	atomic_store(&word->stop, true);
	while (!atomic_load(&word->stopped)) {
		pair_nap_us(100);
	}
	pair_at(me, "waiting for the error");
	lives = wait_error(me, &echo, req, lives);
	PAIR_CHECK(fr_plugin_dereg_mr(me->plugin, comm, in.mh) == 0, "deregMr");
	memset(in.mem, CANARY, in.bytes);
	pair_at(me, "the stopped one goes on");
	atomic_store(&word->go_on, true);
	lives = wait_ms(me, &echo, lives, GO_ON_MS);
	PAIR_CHECK(in.mem[0] == CANARY &&
			   memcmp(in.mem, in.mem + 1, in.bytes - 1) == 0,
		   "memory was written to after its deregistration");
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, comm) == 0, "closeRecv");
	if (me->cnt > 2) {
		if (lives) {
			pair_echo_end(me, &echo);
		}
		pair_tell(me, 2);
		pair_echo_close(me, &echo);
	}
	pair_tell(me, 1);
}

static void run_stopped(struct pair_member *me)
{
	void *req[MSGS], *comm = pair_connect(me, 0);
	struct pair_buf out;

	pair_expect("is lost");
	pair_expect("fenced");
	pair_buf_open(me, comm, (size_t)MSGS * MSG_BYTES, &out);
	pair_fill(out.mem, out.bytes, 1);
	pair_meet(me, 0);
	for (int i = 0; i < MSGS; i++) {
		struct pair_buf part = out;

		part.mem += (size_t)i * MSG_BYTES;
		req[i] = pair_isend_wait(me, &part, MSG_BYTES);
	}
	/* Goes on as slowly as the other side reads, until it is stopped. */
	while (!pair_told(me, 0)) {
		for (int i = 0; i < MSGS; i++) {
			int done = 0;

			if (req[i] != NULL &&
			    (fr_plugin_test(me->plugin, req[i], &done, NULL) !=
				     0 ||
			     done != 0)) {
				req[i] = NULL;
			}
		}
		pair_nap_us(2000);
	}
	pair_buf_close(me, &out);
	PAIR_CHECK(fr_plugin_close_send(me->plugin, comm) == 0, "closeSend");
}

static void run_neighbour(struct pair_member *me)
{
	struct pair_echo echo;

	pair_expect("is lost");
	pair_expect("closed its receive comm");
	pair_expect("fenced");
	pair_echo_open(me, 0, &echo);
	while (!echo.ended && !pair_told(me, 0) &&
	       pair_echo_answer(me, &echo) == 0) {
		pair_nap_us(100);
	}
	pair_hear(me, 0);
	pair_echo_close(me, &echo);
}

static void run(struct pair_member *me)
{
	static void (*const part[])(struct pair_member * me) = {
		run_caller, run_stopped, run_neighbour};

	part[me->index](me);
}

int main(int argc, char **argv)
{
	struct pair_case pc = {
		.rails = 1,
		.limit_s = 20,
		.run = run,
		.env = set_env,
		.watch = watch,
	};
	static const char *const providers[] = {"net", "tcp;ofi_rxm", "sockets",
						"shm"};

	pair_main(argc, argv, "t_giveup", 10);
	for (unsigned i = 0; i < 2 * FR_ARRAY_LEN(providers); i++) {
		pc.provider = pair_provider(providers[i / 2]);
		pc.members = 2 + i % 2;
		pc.name = i % 2 == 0 ? "given up alone"
				     : "given up beside a neighbour";
		word = mmap(NULL, sizeof(*word), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (word == MAP_FAILED) {
			perror("mmap");
			return 1;
		}
		if (pc.provider != NULL) {
			pair_spawn(&pc);
		}
	}
	return pair_end();
}
