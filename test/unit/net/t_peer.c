/* What a handle says of the other side, and which rail of ours reaches it. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "net/peer.h"
#include "unit/net/net_unit.h"

static struct fr_name name_of(const char *text)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = 7};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = 7};
	struct fr_name name = {.len = 0};

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
		name.len = sizeof(in);
		memcpy(name.bytes, &in, sizeof(in));
	} else {
		ck_assert_int_eq(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
		name.len = sizeof(in6);
		memcpy(name.bytes, &in6, sizeof(in6));
	}
	return name;
}

/* Rails fake0 and fake2 in IPv4, fake1 in IPv6. */
static void mixed(void)
{
	net_init();
	net_conf.nic_cnt = 3;
	fr_fake_nic_default(&net_conf.nics[1], 1, true);
	net_expect("no knock ports"); /* this host has none of the addresses */
	net_open();
}

static void v6(void)
{
	net_init();
	fr_fake_nic_default(&net_conf.nics[0], 0, true);
	fr_fake_nic_default(&net_conf.nics[1], 1, true);
	net_expect("no knock ports"); /* this host has none of the addresses */
	net_open();
}

static unsigned rail_for(const char *text)
{
	struct fr_name name = name_of(text);

	return fr_rail_index(fr_conn_rail_for(net_a.set, &name));
}

START_TEST(a_name_is_reached_from_its_subnet_or_its_ip_version)
{
	struct fr_name opaque = {.len = 8, .bytes = "opaque!"};

	ck_assert_uint_eq(rail_for("127.77.2.9"), 2);
	ck_assert_uint_eq(rail_for("fd00:77:1::9"), 1);
	ck_assert_uint_eq(rail_for("10.0.0.9"), 0);
	ck_assert_uint_eq(rail_for("2001:db8::9"), 1);
	ck_assert_uint_eq(fr_rail_index(fr_conn_rail_for(net_a.set, &opaque)),
			  0);
}
END_TEST

START_TEST(connecting_begins_with_a_name_that_is_near)
{
	struct fr_handle handle = {.name_cnt = 3};

	handle.names[0] = name_of("127.78.0.9");
	handle.names[1] = name_of("127.79.0.9");
	handle.names[2] = name_of("127.77.2.9");
	ck_assert_uint_eq(fr_peer_near_name(net_a.set, &handle), 2);
	handle.names[0] = name_of("127.77.0.1"); /* ours */
	ck_assert_uint_eq(fr_peer_near_name(net_a.set, &handle), 2);
	handle.name_cnt = 2;
	ck_assert_uint_eq(fr_peer_near_name(net_a.set, &handle), 0);
	handle.names[0] = name_of("127.78.0.9");
	ck_assert_uint_eq(fr_peer_near_name(net_a.set, &handle), 0);
}
END_TEST

static int check(const char *listener, char *text, size_t bytes)
{
	struct fr_handle handle = {.version = FR_HANDLE_VERSION,
				   .cookie = 1,
				   .name_cnt = 1,
				   .names = {name_of(listener)}};
	uint8_t buf[FR_HANDLE_BYTES];
	int ret;

	ck_assert_int_eq(fr_handle_encode(&handle, buf, sizeof(buf)), 0);
	text[0] = '\0';
	fr_lock_take(&fr_core.lock);
	ret = fr_peer_check_handle(&fr_core.dev[0], buf, &handle, text, bytes);
	fr_lock_drop(&fr_core.lock);
	return ret;
}

START_TEST(rails_of_both_ip_versions_reach_either)
{
	char text[200];

	ck_assert_int_eq(check("10.0.0.9", text, sizeof(text)), 0);
	ck_assert_int_eq(check("2001:db8::9", text, sizeof(text)), 0);
}
END_TEST

START_TEST(rails_of_one_ip_version_do_not_reach_the_other)
{
	char text[200];

	ck_assert_int_eq(check("2001:db8::9", text, sizeof(text)), 0);
	ck_assert_int_eq(check("10.0.0.9", text, sizeof(text)), -EPROTO);
	ck_assert_ptr_nonnull(strstr(text, "the listener at 10.0.0.9 has IPv4 "
					   "addresses, the rails of fabrail0"));
	ck_assert_ptr_nonnull(strstr(text, "IPv6 alone"));
	ck_assert_ptr_nonnull(strstr(text, "OFI_NCCL_USE_IPV6_TCP alike"));
	ck_assert_uint_lt(strlen(text), FR_KNOCK_TEXT_MAX);
}
END_TEST

int main(void)
{
	TCase *tc[2] = {net_case("mixed", mixed), net_case("v6", v6)};

	tcase_add_test(tc[0],
		       a_name_is_reached_from_its_subnet_or_its_ip_version);
	tcase_add_test(tc[0], connecting_begins_with_a_name_that_is_near);
	tcase_add_test(tc[0], rails_of_both_ip_versions_reach_either);
	tcase_add_test(tc[1], rails_of_one_ip_version_do_not_reach_the_other);
	return net_main("peer", tc, 2);
}
