/* The one thread that answers peers while nobody polls. In real time. */
#include "net/keeper.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "net/core.h"
#include "net/link.h"
#include "unit/net/net_unit.h"

#define WAIT_MS 5000u /* for what takes 0.2 s on a machine with time */

/* Threads of this process; the id of the youngest in *@last. */
static unsigned all_threads(long *last)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned cnt = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid != 0) {
			cnt++;
			*last = FR_MAX(tid, *last);
		}
	}
	closedir(dir);
	return cnt;
}

/* A checker has threads of its own, some from the first other thread on. */
static unsigned threads_before;

static void *tell_tid(void *arg)
{
	*(pid_t *)arg = gettid();
	return NULL;
}

/* A thread is listed for a moment after it was joined. */
static void count_before(void)
{
	pthread_t thread;
	char path[64];
	pid_t tid;

	ck_assert_int_eq(pthread_create(&thread, NULL, tell_tid, &tid), 0);
	pthread_join(thread, NULL);
	snprintf(path, sizeof(path), "/proc/self/task/%d", (int)tid);
	while (access(path, F_OK) == 0) {
		sched_yield();
	}
	threads_before = all_threads(&(long){0});
}

static void with_keeper(void)
{
	net_init();
	count_before();
	setenv("OFI_NCCL_KEEPER", "1", 1);
	net_open();
}

static void nap_ms(unsigned ms)
{
	const struct timespec ts = {.tv_nsec = (long)ms * 1000000};

	nanosleep(&ts, NULL);
}

/* Those that came since the beginning. */
static unsigned threads(long *last)
{
	return all_threads(last) - threads_before;
}

/* Asserts that there are @cnt of them, now or soon: one that was joined is
 * listed for a moment longer. Return: the youngest. */
static long threads_are(unsigned cnt)
{
	long tid = 0;

	for (unsigned i = 0; i < WAIT_MS && threads(&tid) != cnt; i++) {
		nap_ms(1);
	}
	ck_assert_uint_eq(threads(&tid), cnt);
	return tid;
}

static void without_keeper(void)
{
	net_init();
	count_before();
	net_open();
}

START_TEST(one_thread_lives_as_long_as_any_set)
{
	threads_are(1);
	net_side_close(&net_a);
	threads_are(1);
	net_side_close(&net_b);
	threads_are(0);
	net_side_open(&net_a);
	threads_are(1);
}
END_TEST

START_TEST(without_it_there_is_no_thread)
{
	threads_are(0);
}
END_TEST

/* An emulator keeps those of wrong addresses for itself. */
static bool emulator_needs(int sig)
{
	return getenv("FR_TEST_EMULATOR") != NULL &&
	       (sig == SIGBUS || sig == SIGSEGV);
}

START_TEST(no_signal_is_ever_handled_in_it)
{
	unsigned long long blocked = 0;
	char path[64], line[256];
	FILE *in;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/status",
		 threads_are(1));
	in = fopen(path, "r");
	ck_assert_ptr_nonnull(in);
	while (fgets(line, sizeof(line), in) != NULL) {
		if (strncmp(line, "SigBlk:", 7) == 0) {
			blocked = strtoull(line + 7, NULL, 16);
		}
	}
	fclose(in);
	for (int sig = 1; sig < 32; sig++) {
		if (sig != SIGKILL && sig != SIGSTOP && !emulator_needs(sig)) {
			ck_assert_msg((blocked >> (sig - 1) & 1) != 0,
				      "signal %d", sig);
		}
	}
}
END_TEST

START_TEST(a_peer_gets_its_acknowledgement_though_nobody_polls)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	struct fr_link *link = pair->send->link;
	struct net_buf from;
	bool acked = false;

	net_buf_open(pair->send, 64, &from);
	net_isend(&from, 10);
	for (unsigned i = 0; !acked && i < WAIT_MS / 10; i++) {
		net_pass_of(&net_a); /* b is not called at all */
		net_lock(net_a.set);
		acked = link->tx_acked == link->tx_next;
		net_unlock(net_a.set);
		nap_ms(10);
	}
	ck_assert(acked);
	ck_assert_uint_eq(net_counts().violations, 0);
}
END_TEST

/* Its passes are not beside those of a caller: the fake would see it. */
START_TEST(a_caller_that_polls_is_left_alone)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	uint64_t end = fr_now_ns() + 400 * FR_NS_PER_MS;

	while (fr_now_ns() < end) {
		net_assert_works(pair);
	}
	ck_assert_uint_eq(net_counts().violations, 0);
}
END_TEST

START_TEST(starts_are_counted)
{
	net_side_close(&net_a);
	net_side_close(&net_b);
	ck_assert_int_eq(fr_keeper_get(), 0);
	ck_assert_int_eq(fr_keeper_get(), 0);
	threads_are(1);
	fr_keeper_put();
	threads_are(1);
	fr_keeper_put();
	threads_are(0);
	fr_keeper_put(); /* one too many is no harm */
	ck_assert_int_eq(fr_keeper_get(), 0);
	ck_assert_int_eq(fr_keeper_get(), 0);
	fr_keeper_halt();
	threads_are(0);
	fr_keeper_halt();
	fr_keeper_put();
	threads_are(0);
}
END_TEST

/* Whoever holds the lock of a set or of the core is not waited for. */
START_TEST(it_waits_for_no_lock)
{
	struct net_pair *pair = net_connect(&net_a, &net_b);
	uint32_t passes;

	net_lock(net_b.set);
	nap_ms(300);
	net_unlock(net_b.set);
	fr_lock_take(&fr_core.lock);
	nap_ms(300);
	fr_lock_drop(&fr_core.lock);
	passes = net_b.set->passes;
	nap_ms(10);
	ck_assert_uint_eq(net_b.set->passes, passes);
	net_assert_works(pair);
}
END_TEST

int main(void)
{
	TCase *tc = net_case("keeper", with_keeper);
	TCase *off = net_case("off", without_keeper);
	TCase *const cases[] = {tc, off};

	tcase_add_test(tc, one_thread_lives_as_long_as_any_set);
	tcase_add_test(tc, no_signal_is_ever_handled_in_it);
	tcase_add_test(tc, a_peer_gets_its_acknowledgement_though_nobody_polls);
	tcase_add_test(tc, a_caller_that_polls_is_left_alone);
	tcase_add_test(tc, starts_are_counted);
	tcase_add_test(tc, it_waits_for_no_lock);
	tcase_add_test(off, without_it_there_is_no_thread);
	return net_main("keeper", cases, FR_ARRAY_LEN(cases));
}
