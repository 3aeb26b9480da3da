/*
 * Provider shm where its memory is not as one would wish: left over by the
 * dead, full, not shared, not to be copied by PID; and a peer that dies in the
 * middle of what all its peers share.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/pair.h"

#define DEAD 24
#define AT_ONCE 6
#define SMALL 200
#define LARGE (3u << 20)
#define ERROR_MS 10000
#define FILES "/dev/shm/fabrail-%d-"

/* -- a /dev/shm of its own --------------------------------------------------*/

static bool own_shm(const char *options)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", "/dev/shm", "tmpfs", 0, options) == 0;
}

/* -- what the dead leave ----------------------------------------------------*/

/* Files of ours in /dev/shm whose name has @pid. */
static unsigned files_of(int pid)
{
	char prefix[32];
	DIR *dir = opendir("/dev/shm");
	const struct dirent *entry;
	unsigned cnt = 0;

	PAIR_CHECK(dir != NULL, "/dev/shm: %s", strerror(errno));
	(void)snprintf(prefix, sizeof(prefix), FILES, pid);
	while ((entry = readdir(dir)) != NULL) {
		cnt += strncmp(entry->d_name, strrchr(prefix, '/') + 1,
			       strlen(strrchr(prefix, '/') + 1)) == 0;
	}
	closedir(dir);
	return cnt;
}

static void open_and_die(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};

	pair_open(me);
	(void)pair_listen(me, handle);
	pair_die();
}

/* Each start removes what those before it left. */
static void run_killed(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	int pid[DEAD];
	unsigned left = 0;
	bool alone = geteuid() == 0 && own_shm("size=50%");
	void *listen;

	for (int i = 0; i < DEAD; i++) {
		int status;

		pid[i] = fork();
		if (pid[i] == 0) {
			open_and_die(me);
		}
		if (i % AT_ONCE != AT_ONCE - 1) {
			continue;
		}
		for (int k = i - AT_ONCE + 1; k <= i; k++) {
			PAIR_CHECK(waitpid(pid[k], &status, 0) == pid[k] &&
					   WIFSIGNALED(status) &&
					   WTERMSIG(status) == SIGKILL,
				   "one of the dead ended with %#x", status);
		}
	}
	for (int i = 0; i < DEAD; i++) {
		left += files_of(pid[i]);
	}
	/* Whoever else starts on this host removes them as well. */
	PAIR_CHECK(left != 0 || !alone, "nothing was left to be removed");
	pair_open(me);
	for (int i = 0; i < DEAD; i++) {
		PAIR_CHECK(files_of(pid[i]) == 0, "files of %d stay", pid[i]);
	}
	PAIR_CHECK(pair_logged("when they died") == 1 || !alone,
		   "no line says so");
	listen = pair_listen(me, handle);
	PAIR_CHECK(files_of(getpid()) != 0, "no files of this process");
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
	pair_close(me);
	PAIR_CHECK(files_of(getpid()) == 0, "an orderly end leaves files");
}

/* Another thread's listen needs rails of its own. */
static void *listen_again(void *arg)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct pair_member *me = arg;
	void *listen = NULL;
	int ret;

	ret = fr_plugin_listen(me->plugin, me->ctx, 0, handle, &listen);
	PAIR_CHECK(ret != 0 && listen == NULL, "listen without room works");
	return NULL;
}

static void run_full(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct fr_plugin *plugin;
	pthread_t thread;
	void *listen, *ctx;

	PAIR_CHECK(own_shm("size=8m"), "mount: %s", strerror(errno));
	pair_expect("KiB left");
	pair_expect("cannot open its rails");
	pair_expect("no rail possible");
	pair_keep();
	PAIR_CHECK(fr_plugin_open(getenv("FR_PLUGIN"), 0, pair_logger,
				  &plugin) == 0,
		   "open");
	PAIR_CHECK(fr_plugin_init(plugin, 1, -1, &ctx) != 0,
		   "init without room works");
	PAIR_CHECK(pair_logged("KiB left") == 1, "no line says what is full");
	fr_plugin_close(plugin);

	/* libfabric wants room for an endpoint on each core. */
	PAIR_CHECK(mount(NULL, "/dev/shm", NULL, MS_REMOUNT, "size=50%") == 0,
		   "remount: %s", strerror(errno));
	pair_open(me);
	PAIR_CHECK(mount(NULL, "/dev/shm", NULL, MS_REMOUNT, "size=24m") == 0,
		   "remount: %s", strerror(errno));
	listen = pair_listen(me, handle);
	PAIR_CHECK(pthread_create(&thread, NULL, listen_again, me) == 0 &&
			   pthread_join(thread, NULL) == 0,
		   "thread");
	PAIR_CHECK(pair_logged("KiB left") == 2, "no line says what is full");
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
	PAIR_CHECK(files_of(getpid()) == 0, "a failed listen leaves files");
	listen = pair_listen(me, handle);
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
	pair_close(me);
}

/* Each has a /dev/shm of its own: an error at once, on who connects. */
static void run_private(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	uint64_t began = pair_now_ms();
	void *comm = NULL, *listen;
	int ret = 0;

	PAIR_CHECK(own_shm("size=50%"), "mount: %s", strerror(errno));
	pair_open(me);
	if (me->index == 0) {
		listen = pair_listen(me, handle);
		pair_put(me, 1, handle, sizeof(handle));
		pair_hear(me, 1);
		PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
			   "closeListen");
		pair_close(me);
		return;
	}
	pair_expect("no endpoint named");
	pair_expect("connect: ");
	pair_get(me, 0, handle, sizeof(handle));
	while (ret == 0 && comm == NULL) {
		ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle, &comm);
		PAIR_CHECK(pair_now_ms() - began < pair_stretch(ERROR_MS),
			   "connect hangs");
	}
	PAIR_CHECK(ret == PAIR_REMOTE, "connect: %s",
		   fr_plugin_result_text(ret));
	PAIR_CHECK(pair_logged("of its own") != 0, "no line says why");
	pair_tell(me, 0);
	pair_close(me);
}

/* -- traffic ----------------------------------------------------------------*/

static void send_and_receive(struct pair_member *me)
{
	static const size_t sizes[] = {0, 1, SMALL, 5000, 70000, LARGE};
	struct pair_buf out, in;
	void *send, *recv;

	pair_join(me, 1 - me->index, &send, &recv);
	pair_buf_open(me, send, LARGE, &out);
	pair_buf_open(me, recv, LARGE, &in);
	for (unsigned i = 0; i < 4 * FR_ARRAY_LEN(sizes); i++) {
		size_t bytes = sizes[i % FR_ARRAY_LEN(sizes)];
		void *sreq, *rreq;
		int size = -1;

		pair_fill(out.mem, bytes, i + me->index);
		memset(in.mem, 0, in.bytes);
		rreq = pair_irecv_wait(me, &in, LARGE);
		sreq = pair_isend_wait(me, &out, bytes);
		PAIR_CHECK(pair_test_wait(me, rreq, 20000, &size) == 0 &&
				   pair_test_wait(me, sreq, 20000, NULL) == 0,
			   "message %u of %zu bytes", i, bytes);
		PAIR_CHECK(size == (int)bytes &&
				   pair_is_filled(in.mem, bytes,
						  i + 1 - me->index),
			   "message %u of %zu bytes came wrong", i, bytes);
	}
	pair_meet(me, 1 - me->index);
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	PAIR_CHECK(fr_plugin_close_send(me->plugin, send) == 0 &&
			   fr_plugin_close_recv(me->plugin, recv) == 0,
		   "close");
}

/* -- memory that cannot be copied by PID ------------------------------------*/

/* From now on the kernel says EPERM to it, as in many a container. */
static void deny_copies(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0,
			 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = {.len = FR_ARRAY_LEN(code),
					.filter = code};

	PAIR_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
			   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ==
				   0,
		   "seccomp: %s", strerror(errno));
}

/* The provider asks the kernel once, in one direction, for both. */
static void run_denied_to_one(struct pair_member *me)
{
	if (me->index == 0) {
		deny_copies();
	}
	pair_open(me);
	send_and_receive(me);
	pair_close(me);
}

static void run_denied(struct pair_member *me)
{
	deny_copies();
	pair_open(me);
	send_and_receive(me);
	pair_close(me);
}

static void run_disabled(struct pair_member *me)
{
	setenv("FI_SHM_DISABLE_CMA", "1", 1);
	pair_open(me);
	send_and_receive(me);
	pair_close(me);
}

/* -- PID namespaces ---------------------------------------------------------*/

/* Runs @part as the first process of a PID namespace of its own. */
static void in_namespace(struct pair_member *me,
			 void (*part)(struct pair_member *me))
{
	int status = 0;
	pid_t pid;

	PAIR_CHECK(unshare(CLONE_NEWPID) == 0, "unshare: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		PAIR_CHECK(getpid() == 1, "not the first one");
		part(me);
		_exit(0); /* no leaks can be sought from in here */
	}
	PAIR_CHECK(waitpid(pid, &status, 0) == pid && status == 0,
		   "inside of the namespace: %#x", status);
	_exit(0); /* nor here, where no process can be begun any more */
}

static void use_it(struct pair_member *me)
{
	pair_open(me);
	send_and_receive(me);
	pair_close(me);
}

/* Both have PID 1, and share /dev/shm. */
static void run_equal_pids(struct pair_member *me)
{
	in_namespace(me, use_it);
}

static void refused_outside(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *comm = NULL, *listen;
	int ret = 0;

	pair_open(me);
	if (me->index == 0) {
		listen = pair_listen(me, handle);
		pair_put(me, 1, handle, sizeof(handle));
		pair_hear(me, 1);
		PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
			   "closeListen");
		pair_close(me);
		return;
	}
	pair_expect("PID namespace");
	pair_expect("connect: ");
	pair_get(me, 0, handle, sizeof(handle));
	while (ret == 0 && comm == NULL) {
		ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle, &comm);
	}
	PAIR_CHECK(ret != 0, "a PID of another namespace was taken");
	PAIR_CHECK(pair_logged("FI_SHM_DISABLE_CMA=1") != 0,
		   "no line says what to do");
	pair_tell(me, 0);
	pair_close(me);
}

static void run_mixed_namespaces(struct pair_member *me)
{
	if (me->index == 0) {
		in_namespace(me, refused_outside);
	} else {
		refused_outside(me);
	}
}

/* What that line says helps. */
static void run_mixed_disabled(struct pair_member *me)
{
	setenv("FI_SHM_DISABLE_CMA", "1", 1);
	if (me->index == 0) {
		in_namespace(me, use_it);
	} else {
		use_it(me);
	}
}

/* -- killed while it posts --------------------------------------------------*/

#define VICTIM 2
#define FLOOD 16

/* Posts all the time, so that it dies with a queue's lock in its hands now and
 * then. */
static void flood(struct pair_member *me)
{
	void *comm = pair_connect(me, 0), *req[FLOOD] = {NULL};
	struct pair_buf out;

	pair_buf_open(me, comm, SMALL, &out);
	pair_tell(me, 0);
	for (unsigned i = 0;; i = (i + 1) % FLOOD) {
		int done = 0;

		if (req[i] != NULL &&
		    (fr_plugin_test(me->plugin, req[i], &done, NULL) != 0 ||
		     done == 0)) {
			continue;
		}
		req[i] = NULL;
		(void)pair_isend(me, &out, SMALL, &req[i]);
		if (i == 0 && pair_told(me, 0)) {
			pair_die();
		}
	}
}

static void take_flood(struct pair_member *me, struct pair_echo *echo)
{
	void *comm = pair_accept(me, VICTIM), *req = NULL;
	uint64_t began = pair_now_ms(), killed = 0;
	struct pair_buf in;
	int ret = 0;

	pair_buf_open(me, comm, SMALL, &in);
	pair_hear(me, VICTIM);
	while (ret == 0) {
		int done = 0;

		if (req == NULL) {
			ret = pair_irecv(me, &in, SMALL, &req);
		} else {
			ret = fr_plugin_test(me->plugin, req, &done, NULL);
		}
		req = done != 0 ? NULL : req;
		PAIR_CHECK(pair_echo_ask(me, echo) == 0,
			   "traffic with the healthy peer fails");
		if (killed == 0 && pair_now_ms() - began > 300) {
			killed = pair_now_ms();
			pair_tell(me, VICTIM);
		}
		PAIR_CHECK(killed == 0 || pair_now_ms() - killed <
						  pair_stretch(ERROR_MS),
			   "no error");
	}
	PAIR_CHECK(ret == PAIR_REMOTE && killed != 0, "%s",
		   fr_plugin_result_text(ret));
	pair_buf_close(me, &in);
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, comm) == 0, "closeRecv");
}

static void run_flood(struct pair_member *me)
{
	struct pair_echo echo;

	pair_open(me);
	pair_expect("is lost");
	if (me->index == VICTIM) {
		flood(me);
	}
	pair_echo_open(me, 1 - me->index, &echo);
	if (me->index == 0) {
		take_flood(me, &echo);
		pair_echo_end(me, &echo);
	} else {
		pair_echo_serve(me, &echo);
	}
	pair_echo_close(me, &echo);
	pair_close(me);
}

/* -- dead with writes to it under way ---------------------------------------*/

#define WRITES 6
#define TOLD_MS 50
#define GOES_ON 40 /* messages, most of them writes */

static bool victim_dies(const struct pair_member *me)
{
	return me->pc->killed != 0;
}

/* Receives, and then nothing of its process moves any more, or it takes its
 * memory back. */
static void be_victim(struct pair_member *me)
{
	void *comm = pair_accept(me, 0), *req = NULL;
	int pid = (int)getpid();
	struct pair_buf in;
	uint64_t until;

	pair_buf_open(me, comm, LARGE, &in);
	for (int i = 0; i < WRITES; i++) {
		req = pair_irecv_wait(me, &in, LARGE);
	}
	/* What tells of them may have had to wait for a call. */
	until = pair_now_ms() + pair_stretch(TOLD_MS);
	while (pair_now_ms() < until) {
		PAIR_CHECK(!pair_test(me, req, NULL), "it comes too early");
	}
	pair_put(me, 0, &pid, sizeof(pid));
	if (victim_dies(me)) {
		kill(pid, SIGSTOP);
		pair_die();
	}
	pair_hear(me, 0);
	pair_buf_close(me, &in);
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, comm) == 0, "closeRecv");
	pair_hear(me, 0);
	pair_close(me);
}

static void rounds(struct pair_member *me, struct pair_echo *echo,
		   unsigned long more)
{
	uint64_t until = pair_now_ms() + pair_stretch(ERROR_MS);

	more += echo->rounds;
	while (echo->rounds < more) {
		PAIR_CHECK(pair_echo_ask(me, echo) == 0,
			   "traffic with the healthy peer fails");
		PAIR_CHECK(pair_now_ms() < until,
			   "traffic with the healthy peer stands still");
	}
}

/* All that the victim takes is under way when it dies. */
static void write_to_dying(struct pair_member *me, struct pair_echo *echo)
{
	void *comm = pair_connect(me, VICTIM), *req[WRITES];
	struct pair_buf out;
	int pid;

	pair_buf_open(me, comm, LARGE, &out);
	rounds(me, echo, 2);
	pair_get(me, VICTIM, &pid, sizeof(pid));
	for (int i = 0; i < WRITES; i++) {
		req[i] = pair_isend_wait(me, &out, LARGE);
	}
	for (int i = 0; i < 100; i++) {
		PAIR_CHECK(!pair_test(me, req[0], NULL), "a message arrived");
	}
	if (victim_dies(me)) {
		PAIR_CHECK(kill(pid, SIGKILL) == 0, "kill: %s",
			   strerror(errno));
	} else {
		pair_tell(me, VICTIM);
	}
	rounds(me, echo, GOES_ON);
	/* One that takes its memory back may still have got the first ones. */
	for (int i = victim_dies(me) ? 0 : WRITES - 1; i < WRITES; i++) {
		PAIR_CHECK(pair_test_wait(me, req[i], ERROR_MS, NULL) ==
				   PAIR_REMOTE,
			   "no error");
	}
	pair_buf_close(me, &out);
	PAIR_CHECK(fr_plugin_close_send(me->plugin, comm) == 0, "closeSend");
	rounds(me, echo, GOES_ON);
	if (!victim_dies(me)) {
		pair_tell(me, VICTIM);
	}
}

static void run_dying(struct pair_member *me)
{
	struct pair_echo echo;

	pair_expect("is lost");
	pair_expect("endpoints fenced");
	if (me->index == VICTIM) {
		setenv("OFI_NCCL_KEEPER", "0", 1);
		pair_open(me);
		be_victim(me);
		return;
	}
	pair_open(me);
	pair_echo_open(me, 1 - me->index, &echo);
	if (me->index == 0) {
		write_to_dying(me, &echo);
		pair_echo_end(me, &echo);
		PAIR_CHECK(pair_logged("endpoints fenced") == 0,
			   "the healthy peer's comms were ended");
	} else {
		pair_echo_serve(me, &echo);
	}
	pair_echo_close(me, &echo);
	pair_close(me);
}

static void run_dying_in_pieces(struct pair_member *me)
{
	setenv("FI_SHM_DISABLE_CMA", "1", 1);
	run_dying(me);
}

static void run_case(const char *name, unsigned members, uint32_t killed,
		     void (*run)(struct pair_member *me))
{
	const struct pair_case pc = {
		.name = name,
		.provider = "shm",
		.rails = 1,
		.members = members,
		.killed = killed,
		.limit_s = 60,
		.run = run,
		.plugin_late = true,
	};

	pair_run(&pc);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "t_shm", 28);
	if (pair_provider("shm") == NULL) {
		return pair_end();
	}
	run_case("copies are denied", 2, 0, run_denied);
	run_case("copies are denied to one", 2, 0, run_denied_to_one);
	run_case("copies are turned off", 2, 0, run_disabled);
	for (int i = 0; i < 3; i++) {
		run_case("killed while it posts", 3, 1u << VICTIM, run_flood);
	}
	run_case("dead with writes to it", 3, 1u << VICTIM, run_dying);
	run_case("dead with pieces of writes to it", 3, 1u << VICTIM,
		 run_dying_in_pieces);
	run_case("fenced with pieces of writes to it", 3, 0,
		 run_dying_in_pieces);
	if (geteuid() == 0) {
		run_case("/dev/shm is full", 1, 0, run_full);
		run_case("/dev/shm is not shared", 2, 0, run_private);
		run_case("equal PIDs", 2, 0, run_equal_pids);
		run_case("one in a PID namespace", 2, 0, run_mixed_namespaces);
		run_case("and no copies by PID", 2, 0, run_mixed_disabled);
	} else {
		pair_say("namespaces need root, left out");
	}
	run_case("leftovers of the dead", 1, 0, run_killed);
	return pair_end();
}
