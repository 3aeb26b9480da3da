#include "unit/fabric/fabric_unit.h"

#include <dlfcn.h>
#include <sys/utsname.h>

#include <rdma/fi_errno.h>

#include "fabric/rail_priv.h"
#include "fake/fake_cuda.h"

#define GPU_CAPS (FI_HMEM | FI_READ | FI_REMOTE_READ)

static struct fake_cuda *cuda;

/* Before the C library's: one that has dma-bufs. */
int uname(struct utsname *name)
{
	memset(name, 0, sizeof(*name));
	snprintf(name->release, sizeof(name->release), "6.1.0");
	return 0;
}

/* A host whose GPUs and NICs can do all. */
static void host_setup(void)
{
	unit_fake_setup();
	fake_fi.version = FI_VERSION(1, 22);
	fake_fi.hmem = true;
}

static void setup(void)
{
	host_setup();
	cuda = fake_cuda_load();
}

static void close_all(struct fr_fabric *fabric)
{
	fr_fabric_close(fabric);
	ck_assert_uint_eq(fake_fi.misuses, 0);
	ck_assert_uint_eq(fake_fi_live(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	ck_assert_uint_eq(cuda->live(), 0);
	ck_assert_uint_eq(cuda->contexts, 0);
	unit_assert_quiet();
}

static void assert_gpu(const struct fr_fabric *fabric, bool by_address,
		       bool as_dmabuf)
{
	for (unsigned i = 0; i < fr_fabric_nic_cnt(fabric); i++) {
		const struct fr_nic *nic = fr_fabric_nic(fabric, i);

		ck_assert_int_eq(nic->gpu, by_address);
		ck_assert_int_eq(nic->gpu_dmabuf, as_dmabuf);
		ck_assert_int_eq((fr_nic_info(nic)->caps & FI_HMEM) != 0,
				 by_address || as_dmabuf);
	}
}

START_TEST(without_a_driver_nothing_is_asked_and_one_line_says_so)
{
	void *real = dlopen("libcuda.so.1", RTLD_LAZY);
	struct fr_fabric *fabric;

	if (real != NULL) {
		dlclose(real); /* this machine has one */
		return;
	}
	host_setup();
	fabric = unit_fabric("efa");
	ck_assert_uint_eq(fake_fi.asked, 1);
	ck_assert_uint_eq(fake_fi.hint.caps & GPU_CAPS, 0);
	unit_assert_said(FR_LOG_INFO,
			 "GPU memory is not used: no CUDA driver: libcuda");
	ck_assert(strstr(fr_fabric_gpu_why(fabric), "no CUDA driver") != NULL);
	fr_fabric_close(fabric);
	unit_assert_quiet();
}
END_TEST

START_TEST(where_all_works_the_nics_take_it_both_ways)
{
	struct unit_owner owner = {0};
	struct fr_fabric *fabric = unit_fabric("efa");
	struct fr_rail *rail;

	assert_gpu(fabric, true, true);
	ck_assert_uint_eq(fake_fi.asked, 2);
	ck_assert_uint_eq(fake_fi.hint.caps & GPU_CAPS, GPU_CAPS);
	ck_assert_uint_ne(fake_fi.hint_mr_mode & FI_MR_HMEM, 0);
	ck_assert_str_eq(fr_fabric_gpu_why(fabric), "");
	unit_assert_said(FR_LOG_INFO,
			 "rail1 takes it by address and as dma-buf");
	/* On each NIC both ways, and all closed again. */
	ck_assert_uint_eq(fake_fi.gpu_regs, 4);
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
	ck_assert_uint_eq(cuda->exports, 1);
	ck_assert_int_eq(fake_fi.reg.device.cuda, 0);
	ck_assert_uint_eq(fake_fi.reg.access &
				  (FI_REMOTE_WRITE | FI_REMOTE_READ),
			  FI_REMOTE_WRITE | FI_REMOTE_READ);
	/* The rails of a set are kept from CUDA as those of the trial. */
	fake_fi.setopts = 0;
	rail = unit_rail(fabric, 0, &owner);
	ck_assert_uint_eq(fake_fi.setopts, 1);
	fr_rail_close(rail);
	close_all(fabric);
}
END_TEST

static const struct {
	const char *not_on; /* a domain */
	bool hmem;
	const char *said;
} offer_case[] = {
	{NULL, false, "provider efa does not offer it (No data"},
	{"rail1", true, "provider efa does not offer it on rail1"},
};

START_TEST(a_provider_that_does_not_offer_it_serves_as_ever)
{
	struct unit_owner owner = {0};
	struct fr_fabric *fabric;
	struct fr_rail *rail;

	fake_fi.hmem = offer_case[_i].hmem;
	fake_fi.hmem_not = offer_case[_i].not_on;
	fabric = unit_fabric("efa");
	ck_assert_uint_eq(fr_fabric_nic_cnt(fabric), 2);
	assert_gpu(fabric, false, false);
	unit_assert_said(FR_LOG_INFO, offer_case[_i].said);
	ck_assert_uint_eq(fake_fi.gpu_regs, 0);
	rail = unit_rail(fabric, 1, &owner);
	ck_assert_uint_eq(fake_fi.setopts, 0);
	fr_rail_close(rail);
	close_all(fabric);
}
END_TEST

static const struct {
	const char *prov;
	int said;
	bool used;
	const char *why;
} option_case[] = {
	{"efa", -FI_EINVAL, false, "without CUDA"},
	{"efa", -FI_EOPNOTSUPP, false, "copies by calls of CUDA"},
	{"efa", -FI_ENOPROTOOPT, false, "cannot be kept from"},
	{"shm", -FI_ENOPROTOOPT, false, "cannot be kept from"},
	/* What rxm cannot do without is for its messages. */
	{"verbs;ofi_rxm", -FI_EINVAL, false, "without CUDA"},
	{"verbs;ofi_rxm", -FI_EOPNOTSUPP, true, ""},
	{"verbs;ofi_rxm", -FI_ENOPROTOOPT, true, ""},
	{"verbs;ofi_rxm", 0, true, ""},
};

START_TEST(a_provider_that_needs_cuda_is_not_trusted_with_it)
{
	struct fr_fabric *fabric;

	fake_fi.setopt_ret = option_case[_i].said;
	fabric = unit_fabric(option_case[_i].prov);
	assert_gpu(fabric, option_case[_i].used, option_case[_i].used);
	ck_assert(strstr(fr_fabric_gpu_why(fabric), option_case[_i].why) !=
		  NULL);
	ck_assert_int_eq(fake_fi.gpu_regs != 0, option_case[_i].used);
	close_all(fabric);
}
END_TEST

static const struct {
	int by_address, as_dmabuf;
	const char *why;
} trial_case[] = {
	{-EFAULT, 0, "by address: Bad address; is nvidia-peermem loaded?"},
	{0, -FI_EOPNOTSUPP, "cannot register a dma-buf"},
	{-FI_ENOSYS, -FI_EINVAL, "cannot register it by address"},
};

START_TEST(what_the_trial_cannot_register_is_not_promised)
{
	struct fr_fabric *fabric;

	fake_fi.gpu_ret = trial_case[_i].by_address;
	fake_fi.dmabuf_ret = trial_case[_i].as_dmabuf;
	fabric = unit_fabric("efa");
	assert_gpu(fabric, trial_case[_i].by_address == 0,
		   trial_case[_i].as_dmabuf == 0);
	unit_assert_said(FR_LOG_INFO, trial_case[_i].why);
	close_all(fabric);
}
END_TEST

START_TEST(no_dmabuf_is_promised_where_one_cannot_be)
{
	struct fr_conf conf = unit_conf();
	char efa[] = "efa", verbs[] = "verbs";
	struct fr_fabric *fabric;

	conf.provider = efa;
	fake_fi.offer[0].prov = "efa";
	fake_fi.offer[1].prov = "efa";
	switch (_i) {
	case 0:
		cuda->dmabuf = false;
		break;
	case 1:
		conf.disable_dmabuf = true;
		break;
	default:
		fake_fi.version = FI_VERSION(1, 19);
		conf.provider = verbs;
		fake_fi.offer[0].prov = "verbs;ofi_rxm";
		fake_fi.offer[1].prov = "verbs;ofi_rxm";
		break;
	}
	ck_assert_int_eq(fr_fabric_open(&conf, &fabric), 0);
	assert_gpu(fabric, true, false);
	unit_assert_said(FR_LOG_INFO, "no dma-buf: ");
	unit_assert_said(FR_LOG_INFO, "takes it by address\n");
	ck_assert_uint_eq(cuda->exports, 0);
	close_all(fabric);
}
END_TEST

START_TEST(what_cannot_be_tried_is_not_used)
{
	struct fr_fabric *fabric;

	cuda->no_context = _i == 0;
	cuda->no_memory = _i == 1;
	fabric = unit_fabric("efa");
	assert_gpu(fabric, false, false);
	unit_assert_said(FR_LOG_INFO, _i == 0 ? "has no CUDA context"
					      : "no GPU memory is free");
	ck_assert_uint_eq(fake_fi.gpu_regs, 0);
	close_all(fabric);
}
END_TEST

/* Whatever fails, init goes on without it or says that there is no memory. */
START_TEST(the_trial_leaves_nothing_wherever_it_fails)
{
	char efa[] = "efa";
	struct fr_conf conf = unit_conf();
	struct fr_fabric *fabric;
	unsigned nth = 0;
	bool whole;

	conf.provider = efa;
	fake_fi.offer[0].prov = "efa";
	fake_fi.offer[1].prov = "efa";
	do {
		int ret;

		unit_log_clear();
		fake_fi.calls = 0;
		fake_fi.fail_at = _i == 0 ? ++nth : 0;
		fr_fault_alloc_at(_i == 1 ? ++nth : 0);
		ret = fr_fabric_open(&conf, &fabric);
		fr_fault_alloc_at(0);
		whole = ret == 0 && fake_fi.calls < nth;
		if (_i == 1) {
			whole = ret == 0;
		}
		if (ret == 0) {
			ck_assert_uint_eq(fr_fabric_nic_cnt(fabric), 2);
			fr_fabric_close(fabric);
		} else {
			ck_assert(ret == -ENOMEM || ret == -ENOENT);
		}
		ck_assert_uint_eq(fake_fi.misuses, 0);
		ck_assert_uint_eq(fake_fi_live(), 0);
		ck_assert_uint_eq(fr_live_allocs(), 0);
		ck_assert_uint_eq(cuda->live(), 0);
		ck_assert_uint_lt(nth, 500);
	} while (!whole);
	ck_assert_uint_gt(nth, 5);
	unit_assert_quiet();
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("hmem");
	TCase *bare = tcase_create("no driver");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, where_all_works_the_nics_take_it_both_ways);
	tcase_add_loop_test(t, a_provider_that_does_not_offer_it_serves_as_ever,
			    0, FR_ARRAY_LEN(offer_case));
	tcase_add_loop_test(t,
			    a_provider_that_needs_cuda_is_not_trusted_with_it,
			    0, FR_ARRAY_LEN(option_case));
	tcase_add_loop_test(t, what_the_trial_cannot_register_is_not_promised,
			    0, FR_ARRAY_LEN(trial_case));
	tcase_add_loop_test(t, no_dmabuf_is_promised_where_one_cannot_be, 0, 3);
	tcase_add_loop_test(t, what_cannot_be_tried_is_not_used, 0, 2);
	tcase_add_loop_test(t, the_trial_leaves_nothing_wherever_it_fails, 0,
			    2);
	tcase_add_test(bare,
		       without_a_driver_nothing_is_asked_and_one_line_says_so);
	return unit_run_all((TCase *[]){t, bare}, 2, "fabric/hmem");
}
