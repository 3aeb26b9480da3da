#include "shim/state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

static struct {
	pthread_mutex_t lock;
	struct shim_spec spec;
	uint64_t random;
	uint64_t calls[SHIM_KIND_CNT];
	uint64_t faults[SHIM_KIND_CNT];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Thread_local unsigned shim_inside SHIM_TLS;

int shim_state_set(const char *text, const char **bad)
{
	struct shim_spec spec;
	int ret = shim_spec_parse(text, &spec, bad);

	if (ret != 0) {
		return ret;
	}
	pthread_mutex_lock(&state.lock);
	state.spec = spec;
	state.random = spec.seed;
	memset(state.calls, 0, sizeof(state.calls));
	memset(state.faults, 0, sizeof(state.faults));
	pthread_mutex_unlock(&state.lock);
	return 0;
}

static uint64_t sum_locked(const uint64_t *cnt, uint32_t kinds)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SHIM_KIND_CNT; i++) {
		sum += (kinds & FR_BIT(i)) != 0 ? cnt[i] : 0;
	}
	return sum;
}

uint64_t shim_state_calls(uint32_t kinds)
{
	uint64_t sum;

	pthread_mutex_lock(&state.lock);
	sum = sum_locked(state.calls, kinds);
	pthread_mutex_unlock(&state.lock);
	return sum;
}

uint64_t shim_state_faults(uint32_t kinds)
{
	uint64_t sum;

	pthread_mutex_lock(&state.lock);
	sum = sum_locked(state.faults, kinds);
	pthread_mutex_unlock(&state.lock);
	return sum;
}

/* splitmix64 */
static uint64_t random_locked(void)
{
	uint64_t z = state.random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t shim_random(void)
{
	uint64_t v;

	pthread_mutex_lock(&state.lock);
	v = random_locked();
	pthread_mutex_unlock(&state.lock);
	return v;
}

static bool draw_locked(double chance)
{
	return (double)(random_locked() >> 11) < chance * 0x1p53;
}

static bool again_hits_locked(struct shim_rule *rule)
{
	if (rule->burst == 0) {
		return draw_locked(rule->chance);
	}
	if (rule->pass) {
		rule->pass = false;
		return false;
	}
	if (rule->left == 0 && draw_locked(rule->chance)) {
		rule->left = rule->burst;
	}
	if (rule->left == 0) {
		return false;
	}
	rule->left--;
	rule->pass = rule->left == 0;
	return true;
}

static bool fail_hits_locked(struct shim_rule *rule)
{
	rule->seen++;
	return rule->seen >= rule->at &&
	       (rule->cnt == 0 || rule->seen - rule->at < rule->cnt);
}

/* *@sig: that the call begins with, if any. */
static int rule_says_locked(struct shim_rule *rule, enum shim_kind kind,
			    int rail, int *sig)
{
	if ((rule->kinds & FR_BIT(kind)) == 0 ||
	    (rule->rail != SHIM_ANY_RAIL && rule->rail != rail)) {
		return 0;
	}
	if (rule->is_again) {
		return again_hits_locked(rule) ? -EAGAIN : 0;
	}
	if (!fail_hits_locked(rule)) {
		return 0;
	}
	*sig = rule->sig != 0 ? rule->sig : *sig;
	return -rule->err;
}

int shim_refuse(enum shim_kind kind, int rail)
{
	int ret = 0, sig = 0;

	if (shim_inside != 0) {
		return 0;
	}
	pthread_mutex_lock(&state.lock);
	state.calls[kind]++;
	for (unsigned i = 0; i < state.spec.rule_cnt && ret == 0; i++) {
		ret = rule_says_locked(&state.spec.rule[i], kind, rail, &sig);
	}
	state.faults[kind] += ret != 0;
	pthread_mutex_unlock(&state.lock);
	if (sig != 0) {
		raise(sig);
	}
	if (ret != 0 && ret != -EAGAIN) {
		shim_log("fault %s %d %d", shim_kind_name(kind), rail, -ret);
	}
	return ret;
}

static bool flag(const bool *which)
{
	bool set;

	pthread_mutex_lock(&state.lock);
	set = *which;
	pthread_mutex_unlock(&state.lock);
	return set;
}

bool shim_wants_garbage(void)
{
	return flag(&state.spec.garbage);
}

bool shim_wants_shuffle(void)
{
	return flag(&state.spec.shuffle);
}

bool shim_wants_posts(void)
{
	return flag(&state.spec.posts);
}

bool shim_wants_gpu(void)
{
	return flag(&state.spec.gpu);
}

/* The caller's memory is ours to write to: it is a test's. */
void shim_spoil(const void *buf, size_t bytes, bool undo)
{
	uint8_t *msg = (uint8_t *)(uintptr_t)buf;
	uint64_t word, add;
	size_t at;

	pthread_mutex_lock(&state.lock);
	at = state.spec.spoil_at;
	add = undo ? 0 - state.spec.spoil_add : state.spec.spoil_add;
	if (shim_inside == 0 && state.spec.spoils &&
	    bytes >= at + sizeof(word) && msg[0] == state.spec.spoil_first) {
		memcpy(&word, msg + at, sizeof(word));
		word += add;
		memcpy(msg + at, &word, sizeof(word));
	}
	pthread_mutex_unlock(&state.lock);
}

unsigned shim_cq_data(void)
{
	unsigned bytes;

	pthread_mutex_lock(&state.lock);
	bytes = state.spec.cq_data;
	pthread_mutex_unlock(&state.lock);
	return bytes;
}

bool shim_key(unsigned i, uint64_t *key)
{
	bool there;

	pthread_mutex_lock(&state.lock);
	there = i < state.spec.key_cnt;
	if (there) {
		*key = state.spec.key[i];
	}
	pthread_mutex_unlock(&state.lock);
	return there;
}

/* Opened anew each time: who reads it may take it away, and a fork would share
 * a descriptor. */
void shim_log(const char *fmt, ...)
{
	char path[SHIM_PATH], line[256];
	va_list args;
	int head, len, fd;

	if (shim_inside != 0) {
		return;
	}
	pthread_mutex_lock(&state.lock);
	memcpy(path, state.spec.log, sizeof(path));
	pthread_mutex_unlock(&state.lock);
	if (path[0] == '\0') {
		return;
	}
	head = snprintf(line, sizeof(line), "%ld ", (long)getpid());
	va_start(args, fmt);
	len = head + vsnprintf(line + head, sizeof(line) - 1 - (size_t)head,
			       fmt, args);
	va_end(args);
	len = FR_MIN(len, (int)sizeof(line) - 2);
	line[len++] = '\n';
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, line, (size_t)len) != len) {
		perror(path);
	}
	if (fd >= 0) {
		close(fd);
	}
}
