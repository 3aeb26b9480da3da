#include "unit/fabric/fabric_unit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fabric/dmabuf.h"
#include "fake/fake_gpu.h"

static const char *kernel = "6.1.0-10-amd64";

/* Before the C library's. */
int uname(struct utsname *name)
{
	memset(name, 0, sizeof(*name));
	snprintf(name->release, sizeof(name->release), "%s", kernel);
	return 0;
}

START_TEST(what_a_host_must_have_is_looked_at_in_turn)
{
	static const struct {
		const char *kernel;
		uint32_t libfabric;
		bool disabled;
		const char *why;
	} cases[] = {
		{"5.12.0", FI_VERSION(1, 20), false, NULL},
		{"6.0", FI_VERSION(2, 1), false, NULL},
		{"10.1.2-x", FI_VERSION(2, 1), false, NULL},
		{"5.11.9", FI_VERSION(2, 1), false, "Linux 5.12"},
		{"4.18.0-372.el8", FI_VERSION(2, 1), false, "Linux 5.12"},
		{"a kernel", FI_VERSION(2, 1), false, "Linux 5.12"},
		{"6.0", FI_VERSION(1, 19), false, "libfabric 1.20"},
		{"6.0", FI_VERSION(1, 17), false, "libfabric 1.20"},
		{"6.0", FI_VERSION(2, 1), true, "OFI_NCCL_DISABLE_DMABUF"},
	};
	struct fr_conf conf = unit_conf();

	for (size_t i = 0; i < FR_ARRAY_LEN(cases); i++) {
		const char *why;

		kernel = cases[i].kernel;
		conf.disable_dmabuf = cases[i].disabled;
		why = fr_dmabuf_refusal(&conf, cases[i].libfabric);
		ck_assert_int_eq(why == NULL, cases[i].why == NULL);
		ck_assert(why == NULL || strstr(why, cases[i].why) != NULL);
	}
}
END_TEST

START_TEST(a_descriptor_is_a_dmabuf_that_is_long_enough)
{
	void *mem = fake_gpu_alloc(8192, 0);
	int fd = fake_gpu_export(mem);

	ck_assert_int_eq(fr_dmabuf_check(fd, 0, 8192), 0);
	ck_assert_int_eq(fr_dmabuf_check(fd, 4096, 4096), 0);
	ck_assert_int_eq(fr_dmabuf_check(fd, 8192, 0), 0);
	unit_assert_quiet();
	ck_assert_int_eq(fr_dmabuf_check(fd, 0, 8193), -EINVAL);
	ck_assert_int_eq(fr_dmabuf_check(fd, 8193, 0), -EINVAL);
	ck_assert_int_eq(fr_dmabuf_check(fd, UINT64_MAX, 1), -EINVAL);
	ck_assert_int_eq(fr_dmabuf_check(fd, 1, SIZE_MAX), -EINVAL);
	unit_assert_said(FR_LOG_ERROR, "does not hold");
	/* It stays open, and the caller's. */
	ck_assert_int_ne(fcntl(fd, F_GETFD), -1);
	ck_assert_int_eq(close(fd), 0);
	ck_assert_int_eq(fr_dmabuf_check(fd, 0, 4096), -EBADF);
	ck_assert_int_eq(fr_dmabuf_check(-1, 0, 4096), -EBADF);
	fake_gpu_free(mem);
}
END_TEST

START_TEST(a_descriptor_of_another_kind_is_refused)
{
	int fd[] = {memfd_create("other", MFD_CLOEXEC),
		    open("/dev/null", O_RDONLY), 0};

	ck_assert_int_eq(ftruncate(fd[0], 8192), 0);
	for (size_t i = 0; i < FR_ARRAY_LEN(fd); i++) {
		unit_log_clear();
		ck_assert_int_eq(fr_dmabuf_check(fd[i], 0, 4096), -EINVAL);
		unit_assert_said(FR_LOG_ERROR, "is no dma-buf");
	}
	close(fd[0]);
	close(fd[1]);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("dmabuf");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, unit_log_clear, NULL);
	tcase_add_test(t, what_a_host_must_have_is_looked_at_in_turn);
	tcase_add_test(t, a_descriptor_is_a_dmabuf_that_is_long_enough);
	tcase_add_test(t, a_descriptor_of_another_kind_is_refused);
	return unit_run(t, "fabric/dmabuf");
}
