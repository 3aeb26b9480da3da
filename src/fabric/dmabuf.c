#include "fabric/dmabuf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "base/log.h"

#define DMABUF_FS_MAGIC 0x444d4142 /* of the kernel's file system for them */

#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),              \
		  FI_VERSION(1, 20))
_Static_assert(FR_FI_MR_DMABUF == FI_MR_DMABUF, "libfabric's flag");
_Static_assert(sizeof(struct fr_fi_mr_dmabuf) == sizeof(struct fi_mr_dmabuf) &&
		       offsetof(struct fr_fi_mr_dmabuf, base_addr) ==
			       offsetof(struct fi_mr_dmabuf, base_addr) &&
		       offsetof(struct fr_fi_mr_dmabuf, len) ==
			       offsetof(struct fi_mr_dmabuf, len) &&
		       offsetof(struct fr_fi_mr_dmabuf, offset) ==
			       offsetof(struct fi_mr_dmabuf, offset),
	       "libfabric's structure");
_Static_assert(offsetof(struct fi_mr_attr, dmabuf) ==
		       offsetof(struct fi_mr_attr, mr_iov),
	       "one pointer for both kinds of registration");
#endif

/* The kernel's RDMA subsystem takes them from 5.12 on. */
static bool kernel_is_new(void)
{
	struct utsname name;
	unsigned major = 0, minor = 0;

	if (uname(&name) != 0 ||
	    sscanf(name.release, "%u.%u", &major, &minor) != 2) {
		return false;
	}
	return major > 5 || (major == 5 && minor >= 12);
}

const char *fr_dmabuf_refusal(const struct fr_conf *conf, uint32_t version)
{
	if (conf->disable_dmabuf) {
		return "OFI_NCCL_DISABLE_DMABUF is set";
	}
	if (FI_VERSION_LT(version, FI_VERSION(1, 20))) {
		return "it needs libfabric 1.20 or newer";
	}
	if (!kernel_is_new()) {
		return "it needs Linux 5.12 or newer";
	}
	return NULL;
}

int fr_dmabuf_check(int fd, uint64_t offset, size_t bytes)
{
	struct statfs fs;
	off_t end;

	if (fstatfs(fd, &fs) != 0) {
		fr_error_limited("dma-buf %d: %s", fd, strerror(errno));
		return errno == EBADF ? -EBADF : -EINVAL;
	}
	if (fs.f_type != DMABUF_FS_MAGIC) {
		fr_error_limited("descriptor %d is no dma-buf", fd);
		return -EINVAL;
	}
	/* A dma-buf has no position: this tells its size, and nothing moves. */
	end = lseek(fd, 0, SEEK_END);
	if (end < 0 || offset > (uint64_t)end ||
	    bytes > (uint64_t)end - offset) {
		fr_error_limited(
			"dma-buf %d of %lld bytes does not hold %zu bytes "
			"from offset %llu on",
			fd, (long long)end, bytes, (unsigned long long)offset);
		return -EINVAL;
	}
	return 0;
}
