/* Registrations of memory of a GPU: files mr.c and mr_cache.c. */
#include "unit/fabric/fabric_unit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "fake/fake_cuda.h"

#define BYTES (64u * 1024u)
#define BOTH (FR_MR_REMOTE_WRITE | FR_MR_REMOTE_READ)

static struct fake_cuda *cuda;
static struct fr_fabric *fabric;
static struct unit_owner owner;
static struct fr_rail *rail[2];
static struct fr_mr_cache *cache;
static char *mem; /* of GPU 4 */
static struct fr_mr *const untouched = (struct fr_mr *)0x1;

/* Before the C library's: one that has dma-bufs. */
int uname(struct utsname *name)
{
	memset(name, 0, sizeof(*name));
	snprintf(name->release, sizeof(name->release), "6.1.0");
	return 0;
}

static void setup(void)
{
	unit_fake_setup();
	cuda = fake_cuda_load();
	fake_fi.version = FI_VERSION(1, 22);
	fake_fi.hmem = true;
	fabric = unit_fabric("efa");
	rail[0] = unit_rail(fabric, 0, &owner);
	rail[1] = unit_rail(fabric, 1, &owner);
	ck_assert_int_eq(fr_mr_cache_create(rail, 2, true, &cache), 0);
	mem = cuda->alloc(BYTES, 4);
	fake_fi.gpu_regs = 0;
}

static void teardown(void)
{
	fr_mr_cache_destroy(cache);
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
	fr_rail_close(rail[0]);
	fr_rail_close(rail[1]);
	fr_fabric_close(fabric);
	cuda->free(mem);
	ck_assert_uint_eq(fake_fi.misuses, 0);
	ck_assert_uint_eq(fake_fi_live(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	ck_assert_uint_eq(cuda->live(), 0);
	ck_assert_uint_eq(cuda->contexts, 0);
}

static struct fr_mr *get(size_t offset, size_t bytes, unsigned access)
{
	struct fr_mr *mr = NULL;

	ck_assert_int_eq(
		fr_mr_get_gpu(cache, mem + offset, bytes, access, NULL, &mr),
		0);
	return mr;
}

/* As a host does it: the descriptor is closed right after the call. */
static int get_dmabuf(size_t offset, size_t bytes, struct fr_mr **out)
{
	struct fr_mr_dmabuf dmabuf = {cuda->export(mem), offset};
	int ret = fr_mr_get_gpu(cache, mem + offset, bytes, BOTH, &dmabuf, out);

	ck_assert_int_ne(fcntl(dmabuf.fd, F_GETFD), -1);
	close(dmabuf.fd);
	return ret;
}

START_TEST(gpu_memory_is_registered_for_its_device_and_to_the_byte)
{
	struct fr_mr *mr = get(100, 200, FR_MR_LOCAL);

	ck_assert_int_eq(fake_fi.reg.iface, FI_HMEM_CUDA);
	ck_assert_int_eq(fake_fi.reg.device.cuda, 4);
	ck_assert_uint_eq(fake_fi.reg_flags, 0);
	ck_assert_ptr_eq(fake_fi.reg_iov.iov_base, mem + 100);
	ck_assert_uint_eq(fake_fi.reg_iov.iov_len, 200);
	ck_assert_uint_eq(fake_fi.reg.access, FI_SEND | FI_RECV | FI_WRITE);
	ck_assert_uint_eq(fake_fi.gpu_regs, 2);
	ck_assert_uint_eq(fr_mr_remote_addr(mr, mem + 150), 50);
	fr_mr_put(cache, mr);
	mr = get(0, BYTES, BOTH);
	ck_assert_uint_eq(fake_fi.reg.access, FI_SEND | FI_RECV | FI_WRITE |
						      FI_REMOTE_WRITE |
						      FI_REMOTE_READ);
	fr_mr_put(cache, mr);
	unit_assert_quiet();
}
END_TEST

START_TEST(a_dmabuf_is_registered_by_its_descriptor)
{
	struct fr_mr *mr = NULL;

	ck_assert_int_eq(get_dmabuf(4096, 8192, &mr), 0);
	ck_assert_uint_eq(fake_fi.reg_flags, 1ull << 40);
	ck_assert_int_eq(fake_fi.reg.iface, FI_HMEM_CUDA);
	ck_assert_int_eq(fake_fi.reg.device.cuda, 4);
	ck_assert_uint_eq(fake_fi.reg_dmabuf.offset, 4096);
	ck_assert_uint_eq(fake_fi.reg_dmabuf.len, 8192);
	/* libfabric adds the offset itself. */
	ck_assert_ptr_eq(fake_fi.reg_dmabuf.base_addr, mem);
	ck_assert_uint_eq(fake_fi.gpu_regs, 2);
	fr_mr_put(cache, mr);
	unit_assert_quiet();
}
END_TEST

START_TEST(what_lies_in_one_registration_of_an_allocation_shares_it)
{
	struct fr_mr *a = get(4096, 8192, BOTH);
	struct fr_mr *b = get(5000, 100, BOTH);
	struct fr_mr *wider = get(4095, 8192, BOTH);
	struct fr_mr *other = get(5000, 100, FR_MR_LOCAL);

	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_ne(a, wider);
	ck_assert_ptr_ne(a, other);
	ck_assert_uint_eq(fr_mr_cache_live(cache), 3);
	fr_mr_put(cache, a);
	fr_mr_put(cache, wider);
	fr_mr_put(cache, other);
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 2);
	fr_mr_put(cache, b);
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
	unit_assert_quiet();
}
END_TEST

START_TEST(memory_that_came_back_at_the_same_address_is_other_memory)
{
	struct fr_mr *mr = get(0, BYTES, BOTH), *now;
	char *freed = mem;

	cuda->free(mem);
	mem = cuda->alloc(BYTES, 4);
	if (mem != freed) {
		fr_mr_put(cache, mr);
		return; /* the kernel chose otherwise */
	}
	now = get(0, BYTES, BOTH);
	ck_assert_ptr_ne(now, mr);
	fr_mr_put(cache, mr);
	fr_mr_put(cache, now);
}
END_TEST

START_TEST(host_memory_and_a_gpus_share_nothing)
{
	struct fr_mr *gpu = get(0, BYTES, FR_MR_REMOTE_WRITE), *host = NULL;

	/* A caller's mistake, which a provider would find out. */
	ck_assert_int_eq(
		fr_mr_get(cache, mem, BYTES, FR_MR_REMOTE_WRITE, &host), 0);
	ck_assert_ptr_ne(host, gpu);
	ck_assert_int_eq(fake_fi.reg.iface, FI_HMEM_SYSTEM);
	fr_mr_put(cache, host);
	fr_mr_put(cache, gpu);
}
END_TEST

START_TEST(dmabufs_share_nothing)
{
	struct fr_mr *a = NULL, *b = NULL, *by_address = get(0, BYTES, BOTH);

	ck_assert_int_eq(get_dmabuf(0, BYTES, &a), 0);
	ck_assert_int_eq(get_dmabuf(0, BYTES, &b), 0);
	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_ne(a, by_address);
	ck_assert_uint_eq(fr_mr_cache_live(cache), 3);
	fr_mr_put(cache, a);
	fr_mr_put(cache, b);
	fr_mr_put(cache, by_address);
	ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
}
END_TEST

START_TEST(a_bad_descriptor_is_refused_and_the_next_call_works)
{
	struct fr_mr_dmabuf bad[] = {
		{-1, 0},
		{cuda->export(mem), 0},
		{memfd_create("other", MFD_CLOEXEC), 0},
		{cuda->export(mem), BYTES + 1},
		{cuda->export(mem), UINT64_MAX},
	};
	const int want[] = {-EBADF, -EBADF, -EINVAL, -EINVAL, -EINVAL};
	struct fr_mr *mr = untouched;

	close(bad[1].fd);
	ck_assert_int_eq(ftruncate(bad[2].fd, BYTES), 0);
	ck_assert_int_eq(fr_mr_get_gpu(cache, mem, BYTES, BOTH, &bad[_i], &mr),
			 want[_i]);
	ck_assert_ptr_eq(mr, untouched);
	ck_assert_uint_eq(fake_fi.gpu_regs, 0);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
	if (_i > 1) {
		ck_assert_int_ne(fcntl(bad[_i].fd, F_GETFD), -1);
	}
	mr = get(0, BYTES, BOTH);
	fr_mr_put(cache, mr);
	for (size_t i = 2; i < FR_ARRAY_LEN(bad); i++) {
		close(bad[i].fd);
	}
}
END_TEST

START_TEST(only_memory_of_a_gpu_is_taken_for_it)
{
	static char on_host[4096];
	struct fr_mr_dmabuf dmabuf = {cuda->export(mem), 0};
	struct fr_mr *mr = untouched;

	ck_assert_int_eq(fr_mr_get_gpu(cache, on_host, 4096, BOTH, NULL, &mr),
			 -EINVAL);
	ck_assert_int_eq(
		fr_mr_get_gpu(cache, on_host, 4096, BOTH, &dmabuf, &mr),
		-EINVAL);
	ck_assert_int_eq(fr_mr_get_gpu(cache, mem, BYTES + 1, BOTH, NULL, &mr),
			 -EINVAL);
	unit_assert_said(FR_LOG_ERROR, "are not memory of one GPU");
	unit_log_clear();
	ck_assert_int_eq(fr_mr_get_gpu(cache, mem, 0, BOTH, NULL, &mr),
			 -EINVAL);
	ck_assert_int_eq(fr_mr_get_gpu(cache, mem, SIZE_MAX, BOTH, NULL, &mr),
			 -EINVAL);
	ck_assert_int_eq(fr_mr_get_gpu(cache, mem, 1, 0x10, NULL, &mr),
			 -EINVAL);
	ck_assert_ptr_eq(mr, untouched);
	ck_assert_uint_eq(fake_fi.gpu_regs, 0);
	unit_assert_quiet();
	close(dmabuf.fd);
}
END_TEST

START_TEST(no_rail_keeps_one_that_another_refused)
{
	struct fr_mr_dmabuf dmabuf = {cuda->export(mem), 0};
	struct fr_mr *mr = untouched;
	unsigned nth = 0;
	int ret;

	do {
		unit_log_clear();
		fake_fi.calls = 0;
		fake_fi.fail_at = ++nth;
		ret = fr_mr_get_gpu(cache, mem, BYTES, BOTH,
				    _i == 0 ? NULL : &dmabuf, &mr);
		ck_assert_int_le(ret, 0);
		if (ret != 0) {
			ck_assert_ptr_eq(mr, untouched);
			ck_assert_uint_eq(fake_fi.live[FAKE_MR], 0);
			unit_assert_said(FR_LOG_ERROR,
					 _i == 0 ? ", memory of a GPU: "
						 : "a GPU as a dma-buf: ");
		}
	} while (ret != 0);
	ck_assert_uint_eq(nth, 3);
	fr_mr_put(cache, mr);
	close(dmabuf.fd);
}
END_TEST

/* A host whose NICs can do one way only, or none. */
static void setup_with(int by_address, int as_dmabuf)
{
	unit_fake_setup();
	cuda = fake_cuda_load();
	fake_fi.version = FI_VERSION(1, 22);
	fake_fi.hmem = true;
	fake_fi.gpu_ret = by_address;
	fake_fi.dmabuf_ret = as_dmabuf;
	fabric = unit_fabric("efa");
	rail[0] = unit_rail(fabric, 0, &owner);
	rail[1] = unit_rail(fabric, 1, &owner);
	ck_assert_int_eq(fr_mr_cache_create(rail, 2, true, &cache), 0);
	mem = cuda->alloc(BYTES, 0);
	fake_fi.gpu_regs = 0;
	unit_log_clear();
}

START_TEST(what_the_nics_do_not_take_is_refused_and_the_next_call_works)
{
	struct fr_mr *mr = untouched;
	static char on_host[4096];

	setup_with(_i == 1 ? 0 : -EFAULT, _i == 2 ? 0 : -FI_ENOSYS);
	if (_i != 1) {
		ck_assert_int_eq(
			fr_mr_get_gpu(cache, mem, BYTES, BOTH, NULL, &mr),
			-EOPNOTSUPP);
		unit_assert_said(FR_LOG_ERROR, "does not take memory of a GPU: "
					       "rail0 cannot register");
	}
	if (_i != 2) {
		ck_assert_int_eq(get_dmabuf(0, BYTES, &mr), -EOPNOTSUPP);
		unit_assert_said(FR_LOG_ERROR,
				 "does not take memory of a GPU as a dma-buf");
	}
	ck_assert_ptr_eq(mr, untouched);
	ck_assert_uint_eq(fake_fi.gpu_regs, 0);
	ck_assert_int_eq(fr_mr_get(cache, on_host, 4096, FR_MR_LOCAL, &mr), 0);
	fr_mr_put(cache, mr);
	teardown();
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("mr_gpu");
	TCase *partly = tcase_create("partly");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t,
		       gpu_memory_is_registered_for_its_device_and_to_the_byte);
	tcase_add_test(t, a_dmabuf_is_registered_by_its_descriptor);
	tcase_add_test(
		t, what_lies_in_one_registration_of_an_allocation_shares_it);
	tcase_add_test(
		t, memory_that_came_back_at_the_same_address_is_other_memory);
	tcase_add_test(t, host_memory_and_a_gpus_share_nothing);
	tcase_add_test(t, dmabufs_share_nothing);
	tcase_add_loop_test(
		t, a_bad_descriptor_is_refused_and_the_next_call_works, 0, 5);
	tcase_add_test(t, only_memory_of_a_gpu_is_taken_for_it);
	tcase_add_loop_test(t, no_rail_keeps_one_that_another_refused, 0, 2);
	tcase_set_timeout(partly, 30);
	tcase_add_loop_test(
		partly,
		what_the_nics_do_not_take_is_refused_and_the_next_call_works, 0,
		3);
	return unit_run_all((TCase *[]){t, partly}, 2, "fabric/mr_gpu");
}
