#include "unit/base/unit.h"

#include "base/stats.h"

START_TEST(counters_add_up_apart_from_each_other)
{
	struct fr_stats stats = {0};

	fr_stats_add(&stats, (enum fr_stat)_i, 5);
	fr_stats_add(&stats, (enum fr_stat)_i, 1ull << 40);
	for (int i = 0; i < FR_STAT_CNT; i++) {
		ck_assert_uint_eq(fr_stats_get(&stats, (enum fr_stat)i),
				  i == _i ? (1ull << 40) + 5 : 0);
	}
}
END_TEST

START_TEST(every_counter_has_a_name_of_its_own)
{
	const char *name = fr_stat_name((enum fr_stat)_i);

	ck_assert_uint_eq(strspn(name, "abcdefghijklmnopqrstuvwxyz_"),
			  strlen(name));
	for (int i = 0; i < _i; i++) {
		ck_assert_str_ne(fr_stat_name((enum fr_stat)i), name);
	}
}
END_TEST

START_TEST(names_follow_the_counters)
{
	ck_assert_str_eq(fr_stat_name(FR_STAT_TX_BYTES), "tx_bytes");
	ck_assert_str_eq(fr_stat_name(FR_STAT_RX_DROPPED), "rx_dropped");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("stats");

	tcase_add_loop_test(t, counters_add_up_apart_from_each_other, 0,
			    FR_STAT_CNT);
	tcase_add_loop_test(t, every_counter_has_a_name_of_its_own, 0,
			    FR_STAT_CNT);
	tcase_add_test(t, names_follow_the_counters);
	return unit_run(t, "base/stats");
}
