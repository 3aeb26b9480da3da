/* References, devices, and the end of it all. */
#include "net/core.h"
#include "unit/net/net_unit.h"

static struct fr_net *net;

static void fixture(void)
{
	net_init();
	fr_fake_set_conf(&net_conf);
	net = NET_UNTOUCHED;
}

static void get(void)
{
	fr_fake_set_conf(&net_conf);
	ck_assert_int_eq(fr_net_get(&net), 0);
}

static struct fr_net_props props(unsigned dev)
{
	struct fr_net_props p;

	ck_assert_int_eq(fr_net_device_props(dev, &p), 0);
	return p;
}

START_TEST(without_a_reference_there_is_nothing)
{
	struct fr_listen *listen = NET_UNTOUCHED;
	struct fr_comm *comm = NET_UNTOUCHED;
	uint8_t handle[FR_HANDLE_BYTES] = {0};
	struct fr_net_props p = {.guid = 5};

	ck_assert_uint_eq(fr_net_device_cnt(), 0);
	ck_assert_int_eq(fr_net_device_props(0, &p), -EINVAL);
	ck_assert_uint_eq(p.guid, 5);
	ck_assert_int_eq(fr_net_listen(0, FR_NET_TCLASS_UNSET, handle,
				       sizeof(handle), &listen),
			 -EINVAL);
	ck_assert_int_eq(fr_net_connect(0, FR_NET_TCLASS_UNSET, handle, &comm),
			 -EINVAL);
	ck_assert_int_eq(fr_net_accept(NULL, &comm), -EINVAL);
	ck_assert_ptr_eq(listen, NET_UNTOUCHED);
	ck_assert_ptr_eq(comm, NET_UNTOUCHED);
	fr_net_put(NULL);
	fr_net_close_listen(NULL);
	fr_net_close_send(NULL);
	fr_net_close_recv(NULL);
}
END_TEST

START_TEST(interfaces_make_one_device)
{
	struct fr_net_props p;

	get();
	ck_assert_uint_eq(fr_net_device_cnt(), 1);
	p = props(0);
	ck_assert_str_eq(p.name, "fabrail0");
	ck_assert_ptr_null(p.pci_path);
	ck_assert_uint_eq(p.guid, net_conf.nics[0].guid);
	ck_assert_uint_eq(p.speed_mbps, 20000);
	ck_assert_uint_eq(p.rail_cnt, 2);
	ck_assert_uint_eq(p.max_comms, FR_IMM_COMM_CNT);
	ck_assert_uint_eq(p.max_msg_bytes, net_conf.max_msg_bytes);
	ck_assert_int_eq(fr_net_device_props(1, &p), -EINVAL);
	fr_net_put(net);
	ck_assert_uint_eq(fr_net_device_cnt(), 0);
}
END_TEST

START_TEST(more_interfaces_than_rails_make_more_devices)
{
	net_conf.nic_cnt = 7;
	net_expect("unequal devices");
	setenv("OFI_NCCL_MAX_RAILS", "3", 1);
	get();
	ck_assert_uint_eq(fr_net_device_cnt(), 3);
	ck_assert_uint_eq(props(0).rail_cnt, 3);
	ck_assert_uint_eq(props(2).rail_cnt, 1);
	ck_assert_uint_eq(props(1).guid, net_conf.nics[3].guid);
	ck_assert_str_eq(props(2).name, "fabrail2");
	ck_assert_uint_eq(props(2).speed_mbps, 10000);
	fr_net_put(net);
}
END_TEST

/* The loop index: interfaces. */
START_TEST(forced_rails_go_round_the_interfaces)
{
	net_conf.nic_cnt = (unsigned)_i;
	setenv("OFI_NCCL_FORCE_NUM_RAILS", "2", 1);
	get();
	ck_assert_uint_eq(fr_net_device_cnt(), _i == 3 ? 2 : 1);
	for (unsigned d = 0; d < fr_net_device_cnt(); d++) {
		ck_assert_uint_eq(props(d).rail_cnt, 2);
	}
	/* An interface that is used twice is not twice as fast. */
	ck_assert_uint_eq(props(0).speed_mbps, _i == 1 ? 10000 : 20000);
	fr_net_put(net);
}
END_TEST

START_TEST(seventeen_interfaces_are_sixteen_devices)
{
	net_conf.nic_cnt = FR_FAKE_MAX_NICS;
	net_expect("1 of 17 interfaces are not used: there are 16 devices at "
		   "most");
	setenv("OFI_NCCL_MAX_RAILS", "1", 1);
	get();
	ck_assert_uint_eq(fr_net_device_cnt(), FR_MAX_DEVICES);
	ck_assert_uint_eq(net_logged("are not used"), 1);
	fr_net_put(net);
}
END_TEST

START_TEST(references_are_counted)
{
	struct fr_net *second = NULL;

	get();
	ck_assert_int_eq(fr_net_get(&second), 0);
	ck_assert_uint_eq(net_counts().calls[FR_FAKE_FABRIC_OPEN], 1);
	fr_net_put(net);
	ck_assert_uint_eq(fr_net_device_cnt(), 1);
	fr_net_put(second);
	ck_assert_uint_eq(fr_net_device_cnt(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	get();
	ck_assert_uint_eq(net_counts().calls[FR_FAKE_FABRIC_OPEN], 2);
	fr_net_put(net);
}
END_TEST

START_TEST(a_bad_parameter_is_no_reference)
{
	net_expect("OFI_NCCL_MAX_RAILS");
	setenv("OFI_NCCL_MAX_RAILS", "99", 1);
	ck_assert_int_eq(fr_net_get(&net), -EINVAL);
	ck_assert_ptr_eq(net, NET_UNTOUCHED);
	ck_assert_uint_eq(net_logged("OFI_NCCL_MAX_RAILS"), 1);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	setenv("OFI_NCCL_MAX_RAILS", "1", 1);
	get();
	ck_assert_uint_eq(fr_net_device_cnt(), 2);
	fr_net_put(net);
}
END_TEST

START_TEST(a_fabric_that_does_not_open_is_no_reference)
{
	net_expect("no usable interface");
	fr_fake_fail_at(FR_FAKE_FABRIC_OPEN, 1, -ENOENT);
	ck_assert_int_eq(fr_net_get(&net), -ENOENT);
	ck_assert_ptr_eq(net, NET_UNTOUCHED);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	get();
	fr_net_put(net);
}
END_TEST

START_TEST(without_memory_there_is_no_reference)
{
	unsigned failed = 0;
	int ret = -ENOMEM;

	for (unsigned nth = 1; ret != 0; nth++) {
		ck_assert_uint_lt(nth, NET_FAULTS);
		fr_fault_alloc_at(nth);
		ret = fr_net_get(&net);
		fr_fault_alloc_at(0);
		if (ret != 0) {
			ck_assert_int_eq(ret, -ENOMEM);
			ck_assert_ptr_eq(net, NET_UNTOUCHED);
			ck_assert_uint_eq(fr_live_allocs(), 0);
			ck_assert_uint_eq(fr_net_device_cnt(), 0);
			failed++;
		}
	}
	ck_assert_uint_ge(failed, 5); /* the reference, the texts, the fabric */
	fr_net_put(net);
}
END_TEST

START_TEST(an_open_comm_keeps_what_it_stands_on)
{
	struct net_pair *pair;
	struct fr_net *ref;

	net_open();
	pair = net_connect(&net_a, &net_b);
	ref = net_ref;
	net_ref = NULL;
	fr_net_put(ref);
	ck_assert_uint_eq(fr_net_device_cnt(), 1);
	net_assert_works(pair);
	net_hangup(pair);
	net_settle_in_time();
	net_side_close(&net_a);
	ck_assert_uint_eq(fr_net_device_cnt(), 1);
	net_side_close(&net_b);
	ck_assert_uint_eq(fr_net_device_cnt(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(ll128_is_switched_off_unless_the_user_chose)
{
	unsetenv("NCCL_PROTO");
	get();
	ck_assert_str_eq(getenv("NCCL_PROTO"), "^LL128");
	setenv("NCCL_PROTO", "Simple", 1);
	fr_net_put(net);
	get();
	ck_assert_str_eq(getenv("NCCL_PROTO"), "Simple");
	fr_net_put(net);
}
END_TEST

/* A connect that is under way is nobody's then. */
START_TEST(the_last_reference_leaves_nothing_that_nobody_uses)
{
	struct fr_comm *comm = NET_UNTOUCHED;
	uint8_t handle[FR_HANDLE_BYTES];

	net_open();
	memcpy(handle, net_b.handle, sizeof(handle));
	net_as(NULL);
	ck_assert_int_eq(fr_net_connect(0, FR_NET_TCLASS_UNSET, handle, &comm),
			 -EAGAIN);
	net_side_close(&net_a);
	net_side_close(&net_b);
	fr_net_put(net_ref);
	net_ref = NULL;
	ck_assert_uint_eq(fr_net_device_cnt(), 0);
	ck_assert_uint_eq(fr_fake_rail_cnt(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	fr_net_unload(); /* finds nothing */
}
END_TEST

START_TEST(an_end_from_within_a_call_is_known)
{
	net_open();
	fr_lock_take(&fr_core.lock);
	ck_assert(!fr_net_halt());
	ck_assert(!fr_core.ending);
	fr_lock_drop(&fr_core.lock);
	ck_assert(fr_net_halt());
	ck_assert(fr_core.ending);
	fr_core.ending = false;
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("net");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture, net_teardown);
	tcase_add_test(tc, without_a_reference_there_is_nothing);
	tcase_add_test(tc, interfaces_make_one_device);
	tcase_add_test(tc, more_interfaces_than_rails_make_more_devices);
	tcase_add_loop_test(tc, forced_rails_go_round_the_interfaces, 1, 4);
	tcase_add_test(tc, seventeen_interfaces_are_sixteen_devices);
	tcase_add_test(tc, references_are_counted);
	tcase_add_test(tc, a_bad_parameter_is_no_reference);
	tcase_add_test(tc, a_fabric_that_does_not_open_is_no_reference);
	tcase_add_test(tc, without_memory_there_is_no_reference);
	tcase_add_test(tc, an_open_comm_keeps_what_it_stands_on);
	tcase_add_test(tc, ll128_is_switched_off_unless_the_user_chose);
	tcase_add_test(tc, the_last_reference_leaves_nothing_that_nobody_uses);
	tcase_add_test(tc, an_end_from_within_a_call_is_known);
	return net_main("net", &tc, 1);
}
