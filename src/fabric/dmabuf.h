/*
 * Device memory as a dma-buf: what must be there, and what a descriptor must
 * be. Private to src/fabric.
 *
 * Threads: any. Blocking: a few system calls.
 */
#ifndef FR_FABRIC_DMABUF_H
#define FR_FABRIC_DMABUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/conf.h"

/* libfabric's name and structure for it, which came with 1.20. */
#define FR_FI_MR_DMABUF (1ull << 40)

struct fr_fi_mr_dmabuf {
	int fd;
	uint64_t offset; /* of the first byte in the buffer */
	size_t len;
	void *base_addr; /* where the buffer begins, @offset before that byte */
};

/* Why no dma-buf can be registered on this host with libfabric @version, or
 * NULL. */
const char *fr_dmabuf_refusal(const struct fr_conf *conf, uint32_t version);

/*
 * @fd is an open dma-buf that holds [@offset, @offset + @bytes). It stays the
 * caller's, who may close it as soon as the registration is made.
 *
 * Return: 0; -EBADF: not open; -EINVAL: not a dma-buf, or too short. Logged.
 */
int fr_dmabuf_check(int fd, uint64_t offset, size_t bytes);

#endif
