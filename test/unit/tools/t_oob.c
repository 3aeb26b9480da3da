#include "unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tools/oob.h"

#define RANKS 4u

static struct fr_oob *star[RANKS];

static void setup(void)
{
	int hub[RANKS] = {-1}, pair[2];

	unit_log_setup();
	for (unsigned i = 1; i < RANKS; i++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		hub[i] = pair[0];
		ck_assert_int_eq(fr_oob_create(i, RANKS, &pair[1], &star[i]),
				 0);
	}
	ck_assert_int_eq(fr_oob_create(0, RANKS, hub, &star[0]), 0);
}

static void teardown(void)
{
	for (unsigned i = 0; i < RANKS; i++) {
		fr_oob_destroy(star[i]);
	}
	ck_assert_uint_eq(fr_live_allocs(), 0);
	fr_log_set_sink(NULL);
}

/* What every rank does in its thread; NULL: it went as it should. */
static void *gather_thrice(void *arg)
{
	struct fr_oob *oob = arg;
	unsigned rank = fr_oob_rank(oob);
	uint32_t mine, all[RANKS];

	for (uint32_t k = 0; k < 3; k++) {
		mine = k * 100 + rank;
		if (fr_oob_all_gather_wait(oob, &mine, sizeof(mine), all) !=
			    0 ||
		    fr_oob_barrier_wait(oob) != 0) {
			return oob;
		}
		for (uint32_t i = 0; i < RANKS; i++) {
			if (all[i] != k * 100 + i) {
				return oob;
			}
		}
	}
	return NULL;
}

START_TEST(every_rank_gets_what_all_gave_in_order)
{
	pthread_t thread[RANKS];
	void *bad;

	for (unsigned i = 0; i < RANKS; i++) {
		ck_assert_uint_eq(fr_oob_rank(star[i]), i);
		ck_assert_uint_eq(fr_oob_ranks(star[i]), RANKS);
		ck_assert_int_eq(fr_oob_gone(star[i]), -1);
		ck_assert_int_eq(pthread_create(&thread[i], NULL, gather_thrice,
						star[i]),
				 0);
	}
	for (unsigned i = 0; i < RANKS; i++) {
		ck_assert_int_eq(pthread_join(thread[i], &bad), 0);
		ck_assert_ptr_null(bad);
	}
}
END_TEST

START_TEST(a_rank_that_has_gone_is_named)
{
	fr_oob_destroy(star[2]);
	star[2] = NULL;
	fr_oob_destroy(star[1]);
	star[1] = NULL;
	ck_assert_int_eq(fr_oob_gone(star[0]), 1);
	ck_assert_int_eq(fr_oob_barrier_wait(star[0]), -ECONNRESET);
	unit_assert_logged("rank 0 lost contact with rank 1");
	fr_oob_destroy(star[0]);
	star[0] = NULL;
	ck_assert_int_eq(fr_oob_gone(star[3]), 0);
	ck_assert_int_eq(fr_oob_barrier_wait(star[3]), -ECONNRESET);
	unit_assert_logged("rank 3 lost contact with rank 0");
}
END_TEST

START_TEST(create_without_memory_closes_its_sockets)
{
	struct fr_oob *oob;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_oob_create(1, 2, pair, &oob), -ENOMEM);
	ck_assert_int_eq(fcntl(pair[0], F_GETFD), -1);
	close(pair[1]);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("oob");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, every_rank_gets_what_all_gave_in_order);
	tcase_add_test(t, a_rank_that_has_gone_is_named);
	tcase_add_test(t, create_without_memory_closes_its_sockets);
	return unit_run(t, "tools/oob");
}
