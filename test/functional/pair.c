/* The parent's side, sockets, and a member's life. */
#include "functional/pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINES 1024
#define EXPECTED 16

static struct {
	const char *what;
	const char *plugin;
	unsigned ran;
	unsigned spawned;
	uint64_t began_ms;
	/* Shared with the members: where each is. */
	const char *volatile (*where)[PAIR_MAX];
} test;

/* Of a member. */
static struct {
	struct pair_member *me;
	pthread_mutex_t lock;
	char line[LINES][256]; /* round and round */
	unsigned line_cnt;
	const char *expected[EXPECTED];
	unsigned expected_cnt;
	unsigned warned;
	char strange[256]; /* the first warning that nobody expected */
} life = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t pair_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void pair_nap_us(unsigned us)
{
	const struct timespec nap = {
		.tv_sec = us / 1000000,
		.tv_nsec = (long)(us % 1000000) * 1000,
	};

	if (us != 0) {
		nanosleep(&nap, NULL);
	}
}

uint64_t pair_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

unsigned pair_pick(uint64_t *state, unsigned below)
{
	return (unsigned)(pair_random(state) % below);
}

unsigned pair_stretch(unsigned v)
{
	return getenv("FR_SANITIZER") != NULL ? v * 4 : v;
}

void pair_say(const char *fmt, ...)
{
	char text[512];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(text, sizeof(text) - 1, fmt, args);
	va_end(args);
	if (len < 0) {
		return;
	}
	len = len > (int)sizeof(text) - 2 ? (int)sizeof(text) - 2 : len;
	text[len] = '\n';
	if (write(STDOUT_FILENO, text, (size_t)len + 1) < 0) {
		_exit(1);
	}
}

static void share_where(void)
{
	test.where = mmap(NULL, sizeof(*test.where), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (test.where == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
}

void pair_main(int argc, char **argv, const char *what, unsigned budget_s)
{
	test.what = what;
	test.plugin = getenv("FR_PLUGIN");
	if (argc > 1) {
		test.plugin = argv[1];
	}
	if (test.plugin == NULL || access(test.plugin, R_OK) != 0) {
		pair_say("skipped: no plugin to test (FR_PLUGIN: %s)",
			 test.plugin == NULL ? "not set" : test.plugin);
		exit(PAIR_SKIP);
	}
	setenv("IPATH_NO_BACKTRACE", "1", 1);
	test.began_ms = pair_now_ms();
	pair_say("%s: budget %u s", what, pair_stretch(budget_s));
}

int pair_end(void)
{
	bool failed = false;

	for (; test.spawned != 0; test.spawned--) {
		int status = 1;

		failed = wait(&status) < 0 || status != 0 || failed;
	}
	if (failed) {
		return 1;
	}
	if (test.ran == 0) {
		pair_say("skipped: no case of %s is wanted, or has its "
			 "provider here",
			 test.what);
		return PAIR_SKIP;
	}
	pair_say("%s: %u cases, %.1f s", test.what, test.ran,
		 (double)(pair_now_ms() - test.began_ms) / 1000);
	return 0;
}

/* -- a member's life --------------------------------------------------------*/

static bool is_expected(const char *text)
{
	for (unsigned i = 0; i < life.expected_cnt; i++) {
		if (strstr(text, life.expected[i]) != NULL) {
			return true;
		}
	}
	return false;
}

void pair_logger(int level, unsigned long flags, const char *file, int line,
		 const char *fmt, ...)
{
	char *text;
	va_list args;

	(void)flags;
	(void)file;
	(void)line;
	pthread_mutex_lock(&life.lock);
	text = life.line[life.line_cnt++ % LINES];
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(life.line[0]), fmt, args);
	va_end(args);
	life.warned += level == FR_PLUGIN_LOG_WARN;
	if (level == FR_PLUGIN_LOG_WARN && life.strange[0] == '\0' &&
	    !is_expected(text)) {
		(void)snprintf(life.strange, sizeof(life.strange), "%s", text);
	}
	pthread_mutex_unlock(&life.lock);
	if (getenv("FR_TEST_VERBOSE") != NULL) {
		fprintf(stderr, "[%llu %d] %s\n",
			(unsigned long long)pair_now_ms(), (int)getpid(), text);
	}
}

void pair_expect(const char *part)
{
	pthread_mutex_lock(&life.lock);
	if (life.expected_cnt == EXPECTED) {
		pthread_mutex_unlock(&life.lock);
		PAIR_FAIL("too many expected lines");
	}
	life.expected[life.expected_cnt++] = part;
	pthread_mutex_unlock(&life.lock);
}

void pair_log_all(void)
{
	setenv("OFI_NCCL_TEST_LOG_ALL", "1", 1);
}

unsigned pair_warned(void)
{
	unsigned cnt;

	pthread_mutex_lock(&life.lock);
	cnt = life.warned;
	pthread_mutex_unlock(&life.lock);
	return cnt;
}

unsigned pair_logged(const char *part)
{
	unsigned found = 0;

	pthread_mutex_lock(&life.lock);
	for (unsigned i = 0; i < life.line_cnt && i < LINES; i++) {
		found += strstr(life.line[i], part) != NULL;
	}
	pthread_mutex_unlock(&life.lock);
	return found;
}

void pair_at(struct pair_member *me, const char *where)
{
	(*test.where)[me->index] = where;
}

void pair_fail(const char *file, int line, const char *fmt, ...)
{
	unsigned from = life.line_cnt > 12 ? life.line_cnt - 12 : 0;
	char text[256];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	pair_say("FAILED: %s", text);
	if (life.me != NULL) {
		const char *where = (*test.where)[life.me->index];

		pair_say("  case %s, member %u, at: %s", life.me->pc->name,
			 life.me->index, where == NULL ? "the start" : where);
	}
	pair_say("  %s:%d", file, line);
	for (unsigned i = from; i < life.line_cnt; i++) {
		pair_say("  log: %s", life.line[i % LINES]);
	}
	_exit(1);
}

void pair_die(void)
{
	kill(getpid(), SIGKILL);
	for (;;) {
		pause();
	}
}

static unsigned member_abi(const struct pair_member *me)
{
	bool odd = me->index % 2 != 0 && me->pc->odd_abi != 0;

	return odd ? me->pc->odd_abi : me->pc->abi;
}

/* A sanitizer's report names functions only while their library is there, and
 * from there are reachable the rails that a fence abandons; the one of threads
 * ends a process that unloads what its suppressions name. */
void pair_keep(void)
{
	if (getenv("FR_SANITIZER") != NULL) {
		PAIR_CHECK(dlopen(test.plugin, RTLD_NOW | RTLD_NODELETE) !=
				   NULL,
			   "%s", dlerror());
	}
}

void pair_open(struct pair_member *me)
{
	int ret;

	if (!me->pc->unloads) {
		pair_keep();
	}
	ret = fr_plugin_open(test.plugin, member_abi(me), pair_logger,
			     &me->plugin);
	PAIR_CHECK(ret == 0, "cannot open %s: %s", test.plugin, strerror(-ret));
	ret = fr_plugin_init(me->plugin, 1, -1, &me->ctx);
	PAIR_CHECK(ret == 0, "init: %s", fr_plugin_result_text(ret));
}

void pair_close(struct pair_member *me)
{
	int ret = fr_plugin_finalize(me->plugin, me->ctx);

	PAIR_CHECK(ret == 0, "finalize: %s", fr_plugin_result_text(ret));
	fr_plugin_close(me->plugin);
	me->plugin = NULL;
}

static void set_env(const struct pair_case *pc, unsigned i)
{
	char rails[8];

	(void)snprintf(rails, sizeof(rails), "%u", pc->rails);
	setenv("OFI_NCCL_TCP_IF", "=lo", 1);
	setenv("OFI_NCCL_FORCE_NUM_RAILS", rails, 1);
	setenv("OFI_NCCL_PROVIDER", pc->provider, 1);
	if (pc->env != NULL) {
		pc->env(i, pc->arg);
	}
}

static void member_main(struct pair_member *me)
{
	life.me = me;
	/* Leaks and what else a sanitizer says at the end count as well, so a
	 * member leaves by exit(). */
	set_env(me->pc, me->index);
	if (!me->pc->plugin_late) {
		pair_open(me);
	}
	me->pc->run(me);
	if (!me->pc->plugin_late) {
		pair_at(me, "closing the plugin");
		pair_close(me);
	}
	PAIR_CHECK(life.strange[0] == '\0', "a line that nobody expected: %s",
		   life.strange);
	exit(0);
}

/* -- the parent -------------------------------------------------------------*/

static void provider_try(const struct pair_member *me)
{
	struct fr_plugin *plugin;
	void *ctx;
	int ret = fr_plugin_open(test.plugin, 0, pair_logger, &plugin);

	(void)me;
	if (ret == 0) {
		ret = fr_plugin_init(plugin, 1, -1, &ctx);
	}
	_exit(ret == 0 ? 0 : 2);
}

static bool provider_is_here(const char *name)
{
	struct pair_case pc = {.provider = name, .rails = 1};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		set_env(&pc, 0);
		provider_try(NULL);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("fork");
		exit(1);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		return true;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
		return false;
	}
	pair_say("FAILED: init with provider %s ended with status %#x", name,
		 (unsigned)status);
	exit(1);
}

const char *pair_provider(const char *name)
{
	if (provider_is_here(name)) {
		return name;
	}
	pair_say("provider %s: not here, left out", name);
	return NULL;
}

/* sockets and shm write by their own means: short messages gain nothing from
 * the message path, so what is announced is written. A message of shm longer
 * than what it copies at once would be read late from memory of ours; and all
 * peers put what they send into one queue. */
static const struct pair_traits traits[] = {
	{.name = "net", .early_max = 8192},
	{.name = "tcp;ofi_rxm", .early_max = 8192},
	{.name = "sockets", .early_max = 8192, .writes_all = true},
	{.name = "shm",
	 .early_max = 4048,
	 .writes_all = true,
	 .queue_max = 1024},
};

const struct pair_traits *pair_traits(const char *provider)
{
	for (unsigned i = 0; i < sizeof(traits) / sizeof(traits[0]); i++) {
		if (strcmp(traits[i].name, provider) == 0) {
			return &traits[i];
		}
	}
	PAIR_FAIL("nothing is known of provider %s", provider);
}

void pair_all_providers(void (*run)(const char *provider, unsigned nth))
{
	unsigned nth = 0;

	for (unsigned i = 0; i < sizeof(traits) / sizeof(traits[0]); i++) {
		const char *provider = pair_provider(traits[i].name);

		if (provider != NULL) {
			run(provider, nth++);
		}
	}
}

void pair_each_provider(void (*run)(const char *provider, unsigned nth))
{
	static const char *const names[] = {"net", "tcp;ofi_rxm"};
	unsigned nth = 0;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *provider = pair_provider(names[i]);

		if (provider != NULL) {
			run(provider, nth++);
		}
	}
}

static void make_sockets(unsigned cnt, int fd[PAIR_MAX][PAIR_MAX])
{
	memset(fd, -1, sizeof(int[PAIR_MAX][PAIR_MAX]));
	for (unsigned i = 0; i < cnt; i++) {
		for (unsigned j = i + 1; j < cnt; j++) {
			int two[2];

			if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				       two) != 0) {
				perror("socketpair");
				exit(1);
			}
			fd[i][j] = two[0];
			fd[j][i] = two[1];
		}
	}
}

/* Closes all but the row of member @keep; -1: all. */
static void close_sockets(unsigned cnt, int fd[PAIR_MAX][PAIR_MAX], int keep)
{
	for (unsigned i = 0; i < cnt; i++) {
		for (unsigned j = 0; j < cnt; j++) {
			if (fd[i][j] >= 0 && (int)i != keep) {
				close(fd[i][j]);
			}
		}
	}
}

static void end_all(const struct pair_case *pc, const int *pid)
{
	for (unsigned i = 0; i < pc->members; i++) {
		if (pid[i] > 0) {
			kill(pid[i], SIGKILL);
			kill(pid[i], SIGCONT);
			waitpid(pid[i], NULL, 0);
		}
	}
}

static bool member_is_well(const struct pair_case *pc, unsigned i, int status)
{
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	if ((pc->killed & (1u << i)) != 0
		    ? killed
		    : WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		return true;
	}
	if (WIFSIGNALED(status)) {
		const char *where = (*test.where)[i];

		pair_say("FAILED: case %s: member %u ended by signal %d (%s), "
			 "at: %s",
			 pc->name, i, WTERMSIG(status),
			 strsignal(WTERMSIG(status)),
			 where == NULL ? "the start" : where);
	} else {
		pair_say("FAILED: case %s: member %u ended with %d", pc->name,
			 i, WEXITSTATUS(status));
	}
	return false;
}

static bool parent_wait(const struct pair_case *pc, int *pid)
{
	uint64_t limit =
		pair_now_ms() + (uint64_t)pair_stretch(pc->limit_s) * 1000;
	unsigned left = pc->members;

	while (left != 0) {
		for (unsigned i = 0; i < pc->members; i++) {
			int status;

			if (pid[i] > 0 &&
			    waitpid(pid[i], &status, WNOHANG) == pid[i]) {
				pid[i] = 0;
				left--;
				if (!member_is_well(pc, i, status)) {
					return false;
				}
			}
		}
		if (left != 0 && pair_now_ms() > limit) {
			break;
		}
		if (pc->watch != NULL) {
			pc->watch(pc, pid);
		}
		pair_nap_us(10000);
	}
	for (unsigned i = 0; i < pc->members; i++) {
		if (pid[i] > 0) {
			const char *where = (*test.where)[i];

			pair_say("FAILED: case %s: member %u hangs, at: %s",
				 pc->name, i,
				 where == NULL ? "the start" : where);
		}
	}
	return left == 0;
}

/* By the text of FR_TEST_CASES, if there is any, in the line of the case. */
static bool is_wanted(const char *line)
{
	const char *part = getenv("FR_TEST_CASES");

	return part == NULL || strstr(line, part) != NULL;
}

static void case_line(const struct pair_case *pc, char *line, size_t bytes)
{
	(void)snprintf(line, bytes, "%s, %s, %u rails", pc->name, pc->provider,
		       pc->rails);
}

void pair_run(const struct pair_case *pc)
{
	int fd[PAIR_MAX][PAIR_MAX];
	int pid[PAIR_MAX] = {0};
	uint64_t began = pair_now_ms();
	char line[128];

	case_line(pc, line, sizeof(line));
	if (!is_wanted(line)) {
		return;
	}
	fflush(NULL);
	share_where();
	make_sockets(pc->members, fd);
	for (unsigned i = 0; i < pc->members; i++) {
		(*test.where)[i] = NULL;
		pid[i] = fork();
		if (pid[i] == 0) {
			struct pair_member me = {
				.index = i,
				.cnt = pc->members,
				.pc = pc,
				.arg = pc->arg,
			};

			memcpy(me.oob, fd[i], sizeof(me.oob));
			close_sockets(pc->members, fd, (int)i);
			member_main(&me);
		}
		if (pid[i] < 0) {
			perror("fork");
			end_all(pc, pid);
			exit(1);
		}
	}
	close_sockets(pc->members, fd, -1);
	if (!parent_wait(pc, pid)) {
		end_all(pc, pid);
		exit(1);
	}
	test.ran++;
	munmap((void *)test.where, sizeof(*test.where));
	pair_say("  %s: %.1f s", line, (double)(pair_now_ms() - began) / 1000);
}

void pair_spawn(const struct pair_case *pc)
{
	char line[128];
	pid_t pid;

	case_line(pc, line, sizeof(line));
	if (!is_wanted(line)) {
		return;
	}
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid == 0) {
		pair_run(pc);
		_exit(0);
	}
	test.spawned++;
	test.ran++;
}

/* -- words between members --------------------------------------------------*/

void pair_put(struct pair_member *me, unsigned to, const void *data,
	      size_t bytes)
{
	ssize_t ret = send(me->oob[to], data, bytes, MSG_NOSIGNAL);

	PAIR_CHECK(ret == (ssize_t)bytes, "cannot tell member %u: %s", to,
		   strerror(errno));
}

void pair_get(struct pair_member *me, unsigned from, void *data, size_t bytes)
{
	ssize_t ret = recv(me->oob[from], data, bytes, MSG_WAITALL);

	PAIR_CHECK(ret == (ssize_t)bytes, "member %u is gone", from);
}

bool pair_told(struct pair_member *me, unsigned from)
{
	struct pollfd pfd = {.fd = me->oob[from], .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

void pair_tell(struct pair_member *me, unsigned to)
{
	pair_put(me, to, "!", 1);
}

void pair_hear(struct pair_member *me, unsigned from)
{
	char word;

	pair_get(me, from, &word, 1);
}

void pair_meet(struct pair_member *me, unsigned with)
{
	pair_tell(me, with);
	pair_hear(me, with);
}
