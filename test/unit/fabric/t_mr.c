#include "unit/fabric/fabric_unit.h"

static struct fr_fabric *fabric;
static struct unit_owner owner;
static struct fr_rail *rail[2];
static struct fr_mr_cache *cache;
static char buf[64 * 1024];

static void open_with(const char *prov, uint64_t mr_mode, size_t key_size)
{
	if (strcmp(prov, "efa") == 0) {
		fake_fi.version = FI_VERSION(1, 22);
	}
	fake_fi.mr_mode = mr_mode;
	fake_fi.mr_key_size = key_size;
	fabric = unit_fabric(prov);
	rail[0] = unit_rail(fabric, 0, &owner);
	rail[1] = unit_rail(fabric, 1, &owner);
	ck_assert_int_eq(fr_mr_cache_create(rail, 2, false, &cache), 0);
	fake_fi.calls = 0;
}

static void close_all(void)
{
	fr_mr_cache_destroy(cache);
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
	fr_rail_close(rail[0]);
	fr_rail_close(rail[1]);
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi.misuses, 0);
	ck_assert_uint_eq(fake_fi_live(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

static struct fr_mr *get(void *addr, size_t bytes, unsigned access)
{
	struct fr_mr *mr = NULL;

	ck_assert_int_eq(fr_mr_get(cache, addr, bytes, access, &mr), 0);
	return mr;
}

START_TEST(access_is_no_wider_than_asked_for)
{
	struct fr_mr *mr;

	open_with("net", 0, 8);
	mr = get(buf + 100, 200, FR_MR_LOCAL);
	ck_assert_uint_eq(fake_fi.reg.access, FI_SEND | FI_RECV | FI_WRITE);
	ck_assert_int_eq(fake_fi.reg.iface, FI_HMEM_SYSTEM);
	ck_assert_ptr_eq(fake_fi.reg_iov.iov_base, buf + 100);
	ck_assert_uint_eq(fake_fi.reg_iov.iov_len, 200);
	fr_mr_put(cache, mr);
	mr = get(buf, 200, FR_MR_LOCAL | FR_MR_REMOTE_WRITE);
	ck_assert_uint_eq(fake_fi.reg.access,
			  FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE);
	fr_mr_put(cache, mr);
	close_all();
	unit_assert_quiet();
}
END_TEST

/* 8 bytes of key, then 4. */
START_TEST(our_keys_are_random_over_a_small_index)
{
	unsigned half = _i == 0 ? 32 : 16;
	uint64_t low = (1ull << half) - 1;
	struct fr_mr *a, *b;

	open_with("net", 0, _i == 0 ? 8 : 4);
	a = get(buf, 100, FR_MR_REMOTE_WRITE);
	b = get(buf, 100, FR_MR_REMOTE_WRITE);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(fr_mr_key(a, i) >> half,
				  fr_mr_key(b, i) >> half);
		ck_assert_uint_ne(fr_mr_key(a, i) & low, fr_mr_key(b, i) & low);
		ck_assert_uint_eq(fr_mr_key(a, i) >> half >> half, 0);
	}
	if (_i == 0) {
		ck_assert_uint_ne(fr_mr_key(a, 0) >> half, 0);
		ck_assert_uint_ne(fr_mr_key(a, 0) >> half,
				  fr_mr_key(a, 1) >> half);
	}
	fr_mr_put(cache, a);
	fr_mr_put(cache, b);
	close_all();
}
END_TEST

START_TEST(the_providers_keys_and_descriptors_are_used_where_it_chooses)
{
	struct fr_mr *mr;

	open_with("net", FI_MR_PROV_KEY, 8);
	mr = get(buf, 100, FR_MR_REMOTE_WRITE);
	ck_assert_uint_eq(fake_fi.requested_key[0], 0);
	ck_assert_uint_eq(fr_mr_key(mr, 0), 1001);
	ck_assert_uint_eq(fr_mr_key(mr, 1), 1002);
	ck_assert_ptr_nonnull(fr_mr_desc(mr, 0));
	ck_assert_ptr_ne(fr_mr_desc(mr, 0), fr_mr_desc(mr, 1));
	fr_mr_put(cache, mr);
	close_all();
}
END_TEST

START_TEST(peers_give_offsets_or_virtual_addresses)
{
	struct fr_mr *mr;

	open_with("net", _i == 0 ? 0 : FI_MR_VIRT_ADDR, 8);
	mr = get(buf + 8, 100, FR_MR_REMOTE_WRITE);
	ck_assert_uint_eq(fr_mr_remote_addr(mr, buf + 20),
			  _i == 0 ? 12 : (uintptr_t)(buf + 20));
	fr_mr_put(cache, mr);
	close_all();
}
END_TEST

START_TEST(a_registration_of_an_endpoint_is_bound_and_enabled)
{
	struct fr_mr *mr;

	open_with("efa", FI_MR_ENDPOINT | FI_MR_PROV_KEY, 8);
	mr = get(buf, 100, FR_MR_REMOTE_WRITE);
	ck_assert_ptr_nonnull(fake_fi.reg_ep);
	fr_mr_put(cache, mr);
	close_all();
}
END_TEST

START_TEST(a_key_that_is_taken_makes_us_draw_others)
{
	struct fr_mr *mr;

	open_with("net", 0, 8);
	fake_fi.keys_taken = 3;
	mr = get(buf, 100, FR_MR_REMOTE_WRITE);
	ck_assert_uint_eq(fake_fi.regs, 5);
	ck_assert_uint_ne(fake_fi.requested_key[0] >> 32,
			  fake_fi.requested_key[3] >> 32);
	ck_assert_uint_eq(fr_mr_key(mr, 0), fake_fi.requested_key[3]);
	fr_mr_put(cache, mr);
	unit_assert_quiet();

	mr = (struct fr_mr *)0x1;
	fake_fi.keys_taken = 4;
	ck_assert_int_eq(fr_mr_get(cache, buf, 100, FR_MR_LOCAL, &mr), -EIO);
	ck_assert_ptr_eq(mr, (struct fr_mr *)0x1);
	unit_assert_said(FR_LOG_ERROR, "cannot register 100 bytes");
	close_all();
}
END_TEST

START_TEST(no_rail_keeps_a_registration_that_another_refused)
{
	struct fr_mr *const untouched = (struct fr_mr *)0x1;
	struct fr_mr *mr = untouched;
	unsigned nth = 0;
	int ret;

	open_with("efa", _i == 0 ? 0 : FI_MR_ENDPOINT, 8);
	do {
		ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
		ck_assert_uint_eq(fr_mr_cache_live(cache), 0);
		ck_assert_ptr_eq(mr, untouched);
		unit_log_clear();
		fake_fi.calls = 0;
		fake_fi.fail_at = ++nth;
		ret = fr_mr_get(cache, buf, 100, FR_MR_LOCAL, &mr);
		ck_assert_int_le(ret, 0);
		ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], ret != 0);
	} while (ret != 0);
	/* Two rails: register; with endpoints also bind and enable. */
	ck_assert_uint_eq(nth, (_i == 0 ? 2 : 6) + 1);
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 2);
	fr_mr_put(cache, mr);
	close_all();
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("mr");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, unit_fake_setup, NULL);
	tcase_add_test(t, access_is_no_wider_than_asked_for);
	tcase_add_loop_test(t, our_keys_are_random_over_a_small_index, 0, 2);
	tcase_add_test(
		t,
		the_providers_keys_and_descriptors_are_used_where_it_chooses);
	tcase_add_loop_test(t, peers_give_offsets_or_virtual_addresses, 0, 2);
	tcase_add_test(t, a_registration_of_an_endpoint_is_bound_and_enabled);
	tcase_add_test(t, a_key_that_is_taken_makes_us_draw_others);
	tcase_add_loop_test(
		t, no_rail_keeps_a_registration_that_another_refused, 0, 2);
	return unit_run(t, "fabric/mr");
}
