/* The contract of rails over the providers of this machine, on loopback. */
#include "unit/base/unit.h"

#include "unit/fabric/rail_contract.h"

static const char *provider;

static int open_loopback(struct fr_fabric **out)
{
	char empty[] = "";
	char lo[] = "=lo";
	char name[32];
	struct fr_conf conf = {
		.provider = name, .tcp_if = lo, .exclude_tcp_if = empty};

	snprintf(name, sizeof(name), "%s", provider);
	return fr_fabric_open(&conf, out);
}

static void net_setup(void)
{
	provider = "net";
	contract_setup();
}

static void rxm_setup(void)
{
	provider = "tcp;ofi_rxm";
	contract_setup();
}

static TCase *case_new(const char *name, void (*setup)(void))
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, 30);
	tcase_add_checked_fixture(tcase, setup, contract_teardown);
	contract_add_tests(tcase, open_loopback);
	return tcase;
}

static bool is_offered(const char *name)
{
	struct fr_fabric *fabric;

	provider = name;
	if (open_loopback(&fabric) != 0) {
		printf("%s: not offered by the libfabric here\n", name);
		return false;
	}
	fr_fabric_close(fabric);
	return true;
}

int main(void)
{
	Suite *suite = suite_create("rail_contract");

	suite_add_tcase(suite, case_new("net", net_setup));
	if (is_offered("tcp;ofi_rxm")) {
		suite_add_tcase(suite, case_new("tcp;ofi_rxm", rxm_setup));
	}
	return unit_run_suite(suite);
}
