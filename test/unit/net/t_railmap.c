#include "net/railmap.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "unit/run.h"

/* A letter is a rail in a subnet of that name: 10.@net.0.0/16, or for a capital
 * fd00:@net::/32. A dot is a rail without IP. */
static struct fr_railmap_rail rail(char net)
{
	struct fr_railmap_rail r = {.prefix = 112};

	if (net == '.') {
		r.prefix = 0;
	} else if (net >= 'a') {
		r.subnet[10] = 0xff;
		r.subnet[11] = 0xff;
		r.subnet[12] = 10;
		r.subnet[13] = (uint8_t)net;
	} else {
		r.prefix = 32;
		r.subnet[0] = 0xfd;
		r.subnet[3] = (uint8_t)net;
	}
	return r;
}

/* One letter a rail. Return: count. */
static unsigned rails(const char *nets, struct fr_railmap_rail *out)
{
	unsigned cnt = (unsigned)strlen(nets);

	for (unsigned i = 0; i < cnt; i++) {
		out[i] = rail(nets[i]);
	}
	return cnt;
}

static const char *path_text(const struct fr_railmap_path *paths, unsigned cnt,
			     char text[3 * FR_RAILMAP_MAX_RAILS + 1])
{
	text[0] = '\0';
	for (unsigned i = 0; i < cnt; i++) {
		text[3 * i] = (char)('0' + paths[i].connector_rail);
		text[3 * i + 1] = (char)('0' + paths[i].acceptor_rail);
		text[3 * i + 2] = ' ';
	}
	text[cnt == 0 ? 0 : 3 * cnt - 1] = '\0';
	return text;
}

/* "00 11": connector rail, acceptor rail of each path. */
static const char *map(const char *connector, const char *acceptor)
{
	static char text[3 * FR_RAILMAP_MAX_RAILS + 1];
	struct fr_railmap_path paths[FR_RAILMAP_MAX_RAILS];
	struct fr_railmap_rail c[8], a[8];
	unsigned c_cnt = rails(connector, c);
	unsigned a_cnt = rails(acceptor, a);

	return path_text(paths, fr_railmap_plan(c, c_cnt, a, a_cnt, paths),
			 text);
}

START_TEST(rails_of_one_subnet_map_one_to_one)
{
	ck_assert_str_eq(map("l", "l"), "00");
	ck_assert_str_eq(map("llll", "llll"), "00 11 22 33");
	ck_assert_str_eq(map("llllllll", "llllllll"),
			 "00 11 22 33 44 55 66 77");
}
END_TEST

START_TEST(equal_subnets_meet_in_whatever_order_they_are_listed)
{
	ck_assert_str_eq(map("abcd", "abcd"), "00 11 22 33");
	ck_assert_str_eq(map("abcd", "dcba"), "03 12 21 30");
	ck_assert_str_eq(map("abcd", "bcda"), "03 10 21 32");
	ck_assert_str_eq(map("aabb", "abab"), "00 12 21 33");
}
END_TEST

START_TEST(a_subnet_that_only_one_side_has_is_not_used_beside_shared_ones)
{
	ck_assert_str_eq(map("axb", "bya"), "02 20");
	ck_assert_str_eq(map("xab", "aby"), "10 21");
	ck_assert_str_eq(map("abcd", "abc"), "00 11 22");
	ck_assert_str_eq(map("dabc", "abc"), "10 21 32");
	ck_assert_str_eq(map("abcd", "d"), "30");
	ck_assert_str_eq(map("d", "abcd"), "03");
	ck_assert_str_eq(map("aB", "aC"), "00");
}
END_TEST

START_TEST(leftovers_go_round_the_rails_of_their_subnet)
{
	ck_assert_str_eq(map("abab", "ab"), "00 11 20 31");
	ck_assert_str_eq(map("ab", "abab"), "00 02 11 13");
	ck_assert_str_eq(map("aaaa", "aa"), "00 11 20 31");
	ck_assert_str_eq(map("aaabbb", "abab"), "00 12 20 31 43 51");
	ck_assert_str_eq(map("aaax", "a"), "00 10 20");
	ck_assert_str_eq(map("....", ".."), "00 11 20 31");
}
END_TEST

START_TEST(sides_without_a_common_subnet_pair_by_index)
{
	ck_assert_str_eq(map("ab", "cd"), "00 11");
	ck_assert_str_eq(map("a", "bcd"), "00 01 02");
	ck_assert_str_eq(map("bcde", "a"), "00 10 20 30");
	ck_assert_str_eq(map("abcdefgh", "xy"), "00 11 20 31 40 51 60 71");
}
END_TEST

START_TEST(rails_of_two_families_never_meet)
{
	ck_assert_str_eq(map("ab", "AB"), "");
	ck_assert_str_eq(map("A", "a"), "");
	ck_assert_str_eq(map(".", "a"), "");
	ck_assert_str_eq(map("aB", "Cd"), "01 10");
	ck_assert_str_eq(map("aBC", "d"), "00");
	ck_assert_str_eq(map("AB", "CaD"), "00 12");
}
END_TEST

/* Rail i of a side has address @side * 16 + i, or that of @same on both. */
static void number(struct fr_railmap_rail *rails, unsigned cnt, uint8_t side,
		   const char *same)
{
	for (unsigned i = 0; i < cnt; i++) {
		rails[i].addr[0] = 0xfd;
		rails[i].addr[15] = (uint8_t)(side * 16 + i);
		for (unsigned k = 0; same[k] != '\0'; k++) {
			if (rails[i].subnet[13] == (uint8_t)same[k]) {
				rails[i].addr[15] = (uint8_t)same[k];
			}
		}
	}
}

static const char *map_same(const char *connector, const char *acceptor,
			    const char *same)
{
	static char text[3 * FR_RAILMAP_MAX_RAILS + 1];
	struct fr_railmap_path paths[FR_RAILMAP_MAX_RAILS];
	struct fr_railmap_rail c[8], a[8];
	unsigned c_cnt = rails(connector, c);
	unsigned a_cnt = rails(acceptor, a);

	number(c, c_cnt, 1, same);
	number(a, a_cnt, 2, same);
	return path_text(paths, fr_railmap_plan(c, c_cnt, a, a_cnt, paths),
			 text);
}

START_TEST(an_address_that_every_host_has_is_not_used)
{
	ck_assert_str_eq(map_same("dab", "dab", "d"), "11 22");
	ck_assert_str_eq(map_same("adb", "dba", "d"), "02 21");
	ck_assert_str_eq(map_same("da", "dx", "d"), "00");
	ck_assert_str_eq(map_same("ab", "ab", "ab"), "00 11");
	ck_assert_str_eq(map_same("ab", "a", "ab"), "00");
	ck_assert_str_eq(map_same("d", "d", "d"), "00");
	ck_assert_str_eq(map_same("dea", "dea", "de"), "22");
}
END_TEST

/* 7 + 1 rails against 1 + 7 would be 14 paths. */
START_TEST(there_are_never_more_than_eight_paths)
{
	ck_assert_str_eq(map("aaaaaaab", "abbbbbbb"),
			 "00 10 20 30 40 50 60 71");
	ck_assert_str_eq(map("abBCDEFG", "cdefghiH"),
			 "00 02 04 06 11 13 15 27");
}
END_TEST

START_TEST(the_prefix_is_part_of_the_subnet)
{
	struct fr_railmap_rail c[2] = {rail('a'), rail('a')};
	struct fr_railmap_rail a[2] = {rail('a'), rail('a')};
	struct fr_railmap_path paths[FR_RAILMAP_MAX_RAILS];

	c[0].prefix = 120;
	a[1].prefix = 120;
	ck_assert_uint_eq(fr_railmap_plan(c, 2, a, 2, paths), 2);
	ck_assert_uint_eq(paths[0].connector_rail, 0);
	ck_assert_uint_eq(paths[0].acceptor_rail, 1);
	ck_assert_uint_eq(paths[1].connector_rail, 1);
	ck_assert_uint_eq(paths[1].acceptor_rail, 0);
}
END_TEST

static bool is_shared(const struct fr_railmap_rail *rail,
		      const struct fr_railmap_rail *other, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		if (fr_railmap_same_subnet(rail, &other[i])) {
			return true;
		}
	}
	return false;
}

static void assert_sound(const struct fr_railmap_rail *c, unsigned c_cnt,
			 const struct fr_railmap_rail *a, unsigned a_cnt)
{
	struct fr_railmap_path paths[FR_RAILMAP_MAX_RAILS];
	struct fr_railmap_path mirror[FR_RAILMAP_MAX_RAILS];
	unsigned c_used = 0, a_used = 0;
	unsigned cnt = fr_railmap_plan(c, c_cnt, a, a_cnt, paths);

	ck_assert_uint_ge(cnt, 1);
	ck_assert_uint_le(cnt, FR_RAILMAP_MAX_RAILS);
	for (unsigned i = 0; i < cnt; i++) {
		unsigned c_rail = paths[i].connector_rail;
		unsigned a_rail = paths[i].acceptor_rail;

		ck_assert_uint_lt(c_rail, c_cnt);
		ck_assert_uint_lt(a_rail, a_cnt);
		ck_assert_int_eq(
			is_shared(&c[c_rail], a, a_cnt),
			fr_railmap_same_subnet(&c[c_rail], &a[a_rail]));
		c_used |= 1u << c_rail;
		a_used |= 1u << a_rail;
		if (i > 0) {
			ck_assert_uint_lt(paths[i - 1].connector_rail * 8u +
						  paths[i - 1].acceptor_rail,
					  c_rail * 8u + a_rail);
		}
	}
	for (unsigned i = 0; cnt < FR_RAILMAP_MAX_RAILS && i < c_cnt; i++) {
		ck_assert(!is_shared(&c[i], a, a_cnt) || c_used >> i & 1);
	}
	for (unsigned i = 0; cnt < FR_RAILMAP_MAX_RAILS && i < a_cnt; i++) {
		ck_assert(!is_shared(&a[i], c, c_cnt) || a_used >> i & 1);
	}
	ck_assert_uint_eq(fr_railmap_plan(c, c_cnt, a, a_cnt, mirror), cnt);
	ck_assert_mem_eq(paths, mirror, cnt * sizeof(paths[0]));
}

START_TEST(every_rail_of_a_shared_subnet_is_used_and_the_paths_are_sorted)
{
	struct fr_railmap_rail c[8], a[8];
	unsigned seed = 1;

	for (unsigned round = 0; round < 2000; round++) {
		for (unsigned i = 0; i < 8; i++) {
			c[i] = rail((char)('a' + rand_r(&seed) % 5));
			a[i] = rail((char)('a' + rand_r(&seed) % 5));
		}
		assert_sound(c, 1 + (unsigned)rand_r(&seed) % 8, a,
			     1 + (unsigned)rand_r(&seed) % 8);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("railmap");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, rails_of_one_subnet_map_one_to_one);
	tcase_add_test(t, equal_subnets_meet_in_whatever_order_they_are_listed);
	tcase_add_test(
		t,
		a_subnet_that_only_one_side_has_is_not_used_beside_shared_ones);
	tcase_add_test(t, leftovers_go_round_the_rails_of_their_subnet);
	tcase_add_test(t, sides_without_a_common_subnet_pair_by_index);
	tcase_add_test(t, rails_of_two_families_never_meet);
	tcase_add_test(t, an_address_that_every_host_has_is_not_used);
	tcase_add_test(t, there_are_never_more_than_eight_paths);
	tcase_add_test(t, the_prefix_is_part_of_the_subnet);
	tcase_add_test(
		t,
		every_rail_of_a_shared_subnet_is_used_and_the_paths_are_sorted);
	return unit_run(t, "net railmap");
}
