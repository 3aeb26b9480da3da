#include "unit/fabric/fabric_unit.h"

#include <dlfcn.h>
#include <unistd.h>

#include "fabric/cuda.h"
#include "fake/fake_cuda.h"

static struct fake_cuda *cuda;

static void setup(void)
{
	unit_log_clear();
}

static void load(void)
{
	const char *why = NULL;

	cuda = fake_cuda_load();
	ck_assert_int_eq(fr_cuda_open(&why), 0);
}

START_TEST(a_host_without_the_driver_is_told_so)
{
	const char *why = NULL;
	void *real = dlopen("libcuda.so.1", RTLD_LAZY);

	if (real != NULL) {
		dlclose(real); /* this machine has one */
		return;
	}
	ck_assert_int_eq(fr_cuda_open(&why), -ENODEV);
	ck_assert_msg(strstr(why, "libcuda.so.1") != NULL, "%s", why);
	unit_assert_quiet();
}
END_TEST

START_TEST(a_driver_without_a_device_is_none)
{
	const char *why = NULL;

	cuda = fake_cuda_load();
	cuda->init_ret = 100;
	ck_assert_int_eq(fr_cuda_open(&why), -ENODEV);
	ck_assert_str_eq(why,
			 "the CUDA driver has no device: no device is here");
	cuda->init_ret = 0;
	cuda->device_cnt = 0;
	ck_assert_int_eq(fr_cuda_open(&why), -ENODEV);
	ck_assert_str_eq(why, "the CUDA driver has no device");
	/* The next init of the plugin looks again. */
	cuda->device_cnt = 1;
	ck_assert_int_eq(fr_cuda_open(&why), 0);
	ck_assert_int_eq(fr_cuda_open(&why), 0);
	unit_assert_quiet();
}
END_TEST

START_TEST(memory_of_a_device_is_told_from_any_other)
{
	struct fr_cuda_ptr first, second;
	char *a, *b;
	int on_host;

	load();
	a = cuda->alloc(8192, 3);
	b = cuda->alloc(4096, 5);
	ck_assert_int_eq(fr_cuda_find(a + 100, 200, &first), 0);
	ck_assert_int_eq(first.device, 3);
	ck_assert_int_eq(fr_cuda_find(b, 4096, &second), 0);
	ck_assert_int_eq(second.device, 5);
	ck_assert_uint_ne(first.alloc_id, second.alloc_id);
	ck_assert_int_eq(fr_cuda_find(a + 8191, 1, &second), 0);
	ck_assert_uint_eq(first.alloc_id, second.alloc_id);
	ck_assert_int_eq(fr_cuda_find(&on_host, sizeof(on_host), &first),
			 -EINVAL);
	ck_assert_int_eq(fr_cuda_find(NULL, 1, &first), -EINVAL);
	/* The end lies elsewhere. */
	ck_assert_int_eq(fr_cuda_find(a, 1u << 30, &first), -EINVAL);
	cuda->managed = true;
	ck_assert_int_eq(fr_cuda_find(a, 1, &first), -EINVAL);
	unit_assert_quiet();
	cuda->pointer_ret = 1;
	ck_assert_int_eq(fr_cuda_find(a, 1, &first), -EIO);
	unit_assert_said(FR_LOG_ERROR, "cannot tell what");
	cuda->free(a);
	cuda->free(b);
	ck_assert_uint_eq(cuda->contexts, 0);
}
END_TEST

START_TEST(a_trial_needs_a_context_and_makes_none)
{
	void *const untouched = (void *)0x1;
	void *mem = untouched;
	int fd = -7;

	load();
	cuda->no_context = true;
	ck_assert_int_eq(fr_cuda_alloc(4096, &mem), -ENODEV);
	cuda->no_context = false;
	cuda->no_memory = true;
	ck_assert_int_eq(fr_cuda_alloc(4096, &mem), -ENOMEM);
	ck_assert_ptr_eq(mem, untouched);
	cuda->no_memory = false;
	ck_assert_int_eq(fr_cuda_alloc(4096, &mem), 0);
	ck_assert(fr_cuda_has_dmabuf(0));
	ck_assert_int_eq(fr_cuda_export(mem, 4096, &fd), 0);
	ck_assert_int_eq(close(fd), 0);
	fd = -7;
	cuda->dmabuf = false;
	ck_assert(!fr_cuda_has_dmabuf(0));
	ck_assert_int_eq(fr_cuda_export(mem, 4096, &fd), -ENOTSUP);
	ck_assert_int_eq(fd, -7);
	ck_assert(!fr_cuda_has_dmabuf(9));
	fr_cuda_free(mem);
	ck_assert_uint_eq(cuda->live(), 0);
	ck_assert_uint_eq(cuda->contexts, 0);
	unit_assert_quiet();
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("cuda");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, a_host_without_the_driver_is_told_so);
	tcase_add_test(t, a_driver_without_a_device_is_none);
	tcase_add_test(t, memory_of_a_device_is_told_from_any_other);
	tcase_add_test(t, a_trial_needs_a_context_and_makes_none);
	return unit_run(t, "fabric/cuda");
}
