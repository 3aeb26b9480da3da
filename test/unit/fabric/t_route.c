#include "unit/fabric/fabric_unit.h"

#include <sys/resource.h>

#include "fabric/route.h"

static void addr_of(uint8_t addr[16], uint8_t a, uint8_t b, uint8_t c,
		    uint8_t d)
{
	const uint8_t v4[16] = {0, 0, 0,    0,	  0, 0, 0, 0,
				0, 0, 0xff, 0xff, a, b, c, d};

	memcpy(addr, v4, sizeof(v4));
}

/* Its neighbours are this host itself: no interface takes anything. */
START_TEST(loopback_leads_nowhere)
{
	const uint8_t v6[16] = {[15] = 1};
	char name[FR_ROUTE_NAME_BYTES] = "as it was";
	uint8_t addr[16];

	addr_of(addr, 127, 0, 0, 1);
	ck_assert(!fr_route_out(addr, 96 + 8, name));
	ck_assert(!fr_route_out(v6, 128, name));
	ck_assert_str_eq(name, "as it was");
}
END_TEST

/* 192.0.2.0/24 is of documents alone. */
START_TEST(an_address_of_nobody_has_no_answer)
{
	char name[FR_ROUTE_NAME_BYTES] = "as it was";
	uint8_t addr[16];

	addr_of(addr, 192, 0, 2, 1);
	ck_assert(!fr_route_out(addr, 96 + 24, name));
	ck_assert(!fr_route_out(addr, 128, name));
	ck_assert_str_eq(name, "as it was");
}
END_TEST

START_TEST(without_a_descriptor_there_is_no_answer)
{
	char name[FR_ROUTE_NAME_BYTES] = "as it was";
	struct rlimit before, none;
	uint8_t addr[16];

	addr_of(addr, 127, 0, 0, 1);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert(!fr_route_out(addr, 96 + 8, name));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_str_eq(name, "as it was");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("route");

	tcase_add_test(t, loopback_leads_nowhere);
	tcase_add_test(t, an_address_of_nobody_has_no_answer);
	tcase_add_test(t, without_a_descriptor_there_is_no_answer);
	return unit_run(t, "fabric/route");
}
