/* Memory of a GPU, as each table shows it. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake/fake_net.h"
#include "table.h"
#include "unit/run.h"

#define STALE_PTR ((void *)0x5678)
#define PTR_SUPPORT_AT 24 /* in the properties of every version */
#define DMABUF_MEMBER 8	  /* of every table that has it */

typedef ncclResult_t (*reg_dmabuf_fn)(void *comm, void *data, size_t size,
				      int type, uint64_t offset, int fd,
				      void **mhandle);

static const struct table *t;
static void *ctx;
static char mem[64];

static void start(int i)
{
	t = &tables[i];
	ck_assert_int_eq(t->init(host_logger, &ctx), ncclSuccess);
	host_log_reset();
}

static reg_dmabuf_fn reg_dmabuf(void)
{
	reg_dmabuf_fn fn;

	memcpy(&fn, (const char *)t->object + DMABUF_MEMBER * sizeof(fn),
	       sizeof(fn));
	return fn;
}

static int ptr_support(void)
{
	_Alignas(16) char props[256];
	int kinds;

	ck_assert_int_eq(t->props_at(0, props), ncclSuccess);
	memcpy(&kinds, props + PTR_SUPPORT_AT, sizeof(kinds));
	return kinds;
}

START_TEST(the_properties_name_what_the_device_takes)
{
	int dmabuf;

	start(_i);
	dmabuf = t->abi >= 6 ? NCCL_PTR_DMABUF : 0;
	ck_assert_int_eq(ptr_support(), NCCL_PTR_HOST);
	fake_net.props.gpu = true;
	ck_assert_int_eq(ptr_support(), NCCL_PTR_HOST | NCCL_PTR_CUDA);
	fake_net.props.gpu_dmabuf = true;
	ck_assert_int_eq(ptr_support(), NCCL_PTR_HOST | NCCL_PTR_CUDA | dmabuf);
	fake_net.props.gpu = false;
	ck_assert_int_eq(ptr_support(), NCCL_PTR_HOST | dmabuf);
}
END_TEST

START_TEST(gpu_memory_is_registered_as_such)
{
	void *mh = STALE_PTR;

	start(_i);
	ck_assert_int_eq(
		t->reg_mr(fake_net_recv_comm(), mem, 32, NCCL_PTR_CUDA, &mh),
		ncclSuccess);
	ck_assert_ptr_eq(mh, fake_net_mr());
	ck_assert_int_eq(fake_net.kind, FR_MEM_GPU);
	ck_assert_ptr_eq(fake_net.data[0], mem);
	ck_assert_uint_eq(fake_net.bytes[0], 32);
	/* Where the device does not take it, a NULL is left, and the next
	 * call works. */
	fake_net.ret = -EOPNOTSUPP;
	ck_assert_int_eq(
		t->reg_mr(fake_net_recv_comm(), mem, 32, NCCL_PTR_CUDA, &mh),
		ncclInvalidArgument);
	ck_assert_ptr_null(mh);
	fake_net.ret = 0;
	ck_assert_int_eq(
		t->reg_mr(fake_net_recv_comm(), mem, 32, NCCL_PTR_HOST, &mh),
		ncclSuccess);
	ck_assert_int_eq(fake_net.kind, FR_MEM_HOST);
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_WARN], 0);
}
END_TEST

/* From v6 on. */
START_TEST(a_dmabuf_is_handed_on)
{
	void *mh = STALE_PTR, *comm = fake_net_send_comm();

	start(_i);
	ck_assert_int_eq(reg_dmabuf()(comm, mem, 1ul << 33, NCCL_PTR_CUDA, 4096,
				      17, &mh),
			 ncclSuccess);
	ck_assert_ptr_eq(mh, fake_net_mr());
	ck_assert_int_eq(fake_net.last, FAKE_NET_REG_DMABUF);
	ck_assert_ptr_eq(fake_net.object, comm);
	ck_assert_ptr_eq(fake_net.data[0], mem);
	ck_assert_uint_eq(fake_net.bytes[0], 1ul << 33);
	ck_assert_uint_eq(fake_net.offset, 4096);
	ck_assert_int_eq(fake_net.fd, 17);
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_WARN], 0);
}
END_TEST

START_TEST(a_bad_dmabuf_leaves_null)
{
	static const int errs[] = {-EBADF, -EINVAL, -EOPNOTSUPP};
	void *mh = STALE_PTR, *comm = fake_net_recv_comm();

	start(_i);
	for (unsigned i = 0; i < 3; i++) {
		fake_net.ret = errs[i];
		mh = STALE_PTR;
		ck_assert_int_eq(
			reg_dmabuf()(comm, mem, 32, NCCL_PTR_CUDA, 0, -1, &mh),
			ncclInvalidArgument);
		ck_assert_ptr_null(mh);
	}
	/* What no core need see. */
	fake_net.ret = 0;
	fake_net.calls = 0;
	mh = STALE_PTR;
	ck_assert_int_eq(reg_dmabuf()(comm, mem, 32, NCCL_PTR_HOST, 0, 3, &mh),
			 ncclInvalidArgument);
	ck_assert_ptr_null(mh);
	ck_assert_int_eq(
		reg_dmabuf()(comm, mem, SIZE_MAX, NCCL_PTR_CUDA, 0, 3, &mh),
		ncclInvalidArgument);
	ck_assert_int_eq(reg_dmabuf()(NULL, mem, 32, NCCL_PTR_CUDA, 0, 3, &mh),
			 ncclInvalidArgument);
	ck_assert_int_eq(reg_dmabuf()(comm, mem, 32, NCCL_PTR_CUDA, 0, 3, NULL),
			 ncclInvalidArgument);
	ck_assert_uint_eq(fake_net.calls, 0);
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_WARN], 4);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("gpu");

	tcase_add_checked_fixture(tcase, shells_setup, shells_teardown);
	tcase_add_loop_test(tcase, the_properties_name_what_the_device_takes, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, gpu_memory_is_registered_as_such, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, a_dmabuf_is_handed_on, 6 - 4, TABLE_CNT);
	tcase_add_loop_test(tcase, a_bad_dmabuf_leaves_null, 6 - 4, TABLE_CNT);
	return unit_run(tcase, "plugin/gpu");
}
