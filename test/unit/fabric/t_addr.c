#include "unit/fabric/fabric_unit.h"

#include "fabric/addr.h"

START_TEST(an_address_is_said_in_the_words_of_its_family)
{
	struct fr_iface v4 = fake_iface("a", "10.77.201.9", 20);
	struct fr_iface v6 = fake_iface("a", "fd00::7", 64);
	char text[FR_ADDR_TEXT];

	ck_assert(fr_addr_is_v4(v4.addr));
	ck_assert(!fr_addr_is_v4(v6.addr));
	fr_addr_text(v4.addr, text);
	ck_assert_str_eq(text, "10.77.201.9");
	fr_addr_text(v6.addr, text);
	ck_assert_str_eq(text, "fd00::7");
}
END_TEST

START_TEST(a_subnet_has_no_host_bits)
{
	struct fr_iface v4 = fake_iface("a", "10.77.201.9", 20);
	struct fr_iface v6 = fake_iface("a", "fd00:1:2:3:4:5:6:7", 64);
	uint8_t subnet[16];
	char text[64];

	fr_addr_subnet(v4.addr, v4.prefix, subnet);
	fr_addr_text(subnet, text);
	ck_assert_str_eq(text, "10.77.192.0");
	fr_addr_subnet(v6.addr, v6.prefix, subnet);
	fr_addr_text(subnet, text);
	ck_assert_str_eq(text, "fd00:1:2:3::");
	fr_addr_subnet(v6.addr, 128, subnet);
	ck_assert_mem_eq(subnet, v6.addr, 16);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("addr");

	tcase_add_test(t, an_address_is_said_in_the_words_of_its_family);
	tcase_add_test(t, a_subnet_has_no_host_bits);
	return unit_run(t, "fabric/addr");
}
