#include "unit/fabric/fabric_unit.h"

#include "fabric/quirks.h"

static const struct fr_quirks *row_of(const char *name)
{
	const struct fr_quirks *row;

	for (unsigned i = 0; (row = fr_quirks_row(i)) != NULL; i++) {
		if (strcmp(row->name, name) == 0) {
			return row;
		}
	}
	return NULL;
}

START_TEST(net_tcp_and_rxm_are_probed_in_this_order)
{
	const char *want[] = {"net", "tcp", "tcp;ofi_rxm"};
	const struct fr_quirks *row;
	unsigned n = 0;

	for (unsigned i = 0; (row = fr_quirks_row(i)) != NULL; i++) {
		if (row->by_default) {
			ck_assert_uint_lt(n, FR_ARRAY_LEN(want));
			ck_assert_str_eq(row->name, want[n++]);
		}
	}
	ck_assert_uint_eq(n, FR_ARRAY_LEN(want));
}
END_TEST

START_TEST(an_endpoint_is_split_only_where_closing_it_fences)
{
	const struct fr_quirks *row;

	for (unsigned i = 0; (row = fr_quirks_row(i)) != NULL; i++) {
		ck_assert_int_eq(row->split_ep, row->fence == FR_FENCE_EP);
	}
	ck_assert(row_of("net")->split_ep);
	ck_assert(!row_of("shm")->split_ep);
}
END_TEST

static const struct {
	const char *row, *user;
	bool match;
} match_case[] = {
	{"net", "net", true},
	{"net", "NET", true},
	{"net", "ne", false},
	{"net", "net;ofi_rxm", false},
	{"tcp", "tcp", true},
	{"tcp;ofi_rxm", "tcp", true},
	{"tcp", "tcp;ofi_rxm", false},
	{"tcp;ofi_rxm", "tcp;ofi_rxm", true},
	{"verbs;ofi_rxm", "verbs", true},
	{"shm", "shm2", false},
};

START_TEST(a_name_means_that_provider_or_what_layers_over_it)
{
	ck_assert_int_eq(fr_quirks_matches(row_of(match_case[_i].row),
					   match_case[_i].user),
			 match_case[_i].match);
}
END_TEST

START_TEST(versions_decide_about_net_tcp_rxm_and_efa)
{
	const uint32_t v17 = FI_VERSION(1, 17), v18 = FI_VERSION(1, 18);
	const uint32_t v21 = FI_VERSION(1, 21), v22 = FI_VERSION(1, 22);
	const uint32_t v2 = FI_VERSION(2, 1);

	ck_assert_ptr_null(fr_quirks_refusal(row_of("net"), v17));
	ck_assert_ptr_nonnull(fr_quirks_refusal(row_of("net"), v18));
	ck_assert_ptr_nonnull(fr_quirks_refusal(row_of("tcp"), v17));
	ck_assert_ptr_null(fr_quirks_refusal(row_of("tcp"), v18));
	ck_assert_ptr_null(fr_quirks_refusal(row_of("tcp"), v2));
	ck_assert_ptr_null(fr_quirks_refusal(row_of("tcp;ofi_rxm"), v17));
	ck_assert_ptr_nonnull(fr_quirks_refusal(row_of("tcp;ofi_rxm"), v18));
	ck_assert_str_eq(fr_quirks_name("net", v17), "net");
	ck_assert_str_eq(fr_quirks_name("Net", v18), "tcp");
	ck_assert_str_eq(fr_quirks_name("net", v2), "tcp");
	ck_assert_str_eq(fr_quirks_name("tcp;ofi_rxm", v2), "tcp;ofi_rxm");
	ck_assert_ptr_nonnull(fr_quirks_refusal(row_of("efa"), v21));
	ck_assert_ptr_null(fr_quirks_refusal(row_of("efa"), v22));
	ck_assert_ptr_null(fr_quirks_refusal(row_of("efa"), v2));
}
END_TEST

START_TEST(what_is_not_driven_is_refused_with_its_reason)
{
	ck_assert_ptr_nonnull(
		strstr(fr_quirks_foreign_refusal("net;ofi_rxm"), "crashes"));
	ck_assert_ptr_nonnull(
		strstr(fr_quirks_foreign_refusal("ofi_mrail"), "CQ data"));
	ck_assert_ptr_nonnull(
		strstr(fr_quirks_foreign_refusal("bogus"), "not a provider"));
	ck_assert_ptr_null(row_of("net;ofi_rxm"));
	ck_assert_ptr_null(row_of("ofi_mrail"));
	ck_assert_ptr_null(row_of("udp;ofi_rxd"));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("quirks");

	tcase_add_test(t, net_tcp_and_rxm_are_probed_in_this_order);
	tcase_add_test(t, an_endpoint_is_split_only_where_closing_it_fences);
	tcase_add_loop_test(t,
			    a_name_means_that_provider_or_what_layers_over_it,
			    0, (int)FR_ARRAY_LEN(match_case));
	tcase_add_test(t, versions_decide_about_net_tcp_rxm_and_efa);
	tcase_add_test(t, what_is_not_driven_is_refused_with_its_reason);
	return unit_run(t, "fabric/quirks");
}
