/*
 * Registrations on all rails of a set, and the cache that shares them.
 *
 * The cache holds intervals of *live* registrations, page-aligned unless a peer
 * may reach them, reference counted; it remembers nothing that nobody holds:
 * at count 0 the registration is closed on every rail before fr_mr_put()
 * returns, since a peer could write to memory that was freed otherwise.
 *
 * Memory of a GPU is shared only with memory of the same allocation of the same
 * GPU, never with the host's, and never rounded. A dma-buf is registered anew
 * each time: the number of a descriptor does not tell what it refers to, and it
 * is another buffer's as soon as the caller has closed it.
 *
 * Keys: where the application chooses them, 32 random bits of the domain in the
 * high half over an index from an idpool in the low half; never small integers.
 *
 * Threads: any (own mutex). Where the quirk mr_excludes_poll is set, the caller
 * must hold the lock under which it polls the rails. Blocking: as fi_mr_reg.
 */
#ifndef FR_FABRIC_MR_H
#define FR_FABRIC_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/rail.h"

struct fr_mr;
struct fr_mr_cache;

#define FR_MR_LOCAL 0x1u	/* source of sends and writes */
#define FR_MR_REMOTE_WRITE 0x2u /* target of the peer's writes */
#define FR_MR_READ 0x4u		/* where our own reads go */
#define FR_MR_REMOTE_READ 0x8u	/* what reads may ask for */

/* What memory of a GPU is shared as: @offset is that of its first byte. The
 * descriptor stays the caller's, who may close it after the call. */
struct fr_mr_dmabuf {
	int fd;
	uint64_t offset;
};

/* @rails: array of @cnt rails, all of one provider; must outlive the cache.
 * @share: false makes every fr_mr_get() register anew. */
int fr_mr_cache_create(struct fr_rail *const *rails, unsigned cnt, bool share,
		       struct fr_mr_cache **out);
/* Closes what is left. */
void fr_mr_cache_destroy(struct fr_mr_cache *cache);
/* For rails that were abandoned: frees our records, leaves libfabric's alone.
 */
void fr_mr_cache_abandon(struct fr_mr_cache *cache);

/**
 * fr_mr_get - register [@addr, @addr + @bytes) on every rail, or share
 * @bytes: above 0; the range must not wrap around
 * @access: FR_MR_* bits
 *
 * Return: 0; -EINVAL; -ENOMEM; -errno of the provider, logged with rail, range
 *         and text. On error no rail keeps a registration.
 */
int fr_mr_get(struct fr_mr_cache *cache, void *addr, size_t bytes,
	      unsigned access, struct fr_mr **out);
/* The same for memory of a GPU: as @dmabuf, or, where that is NULL, by its
 * address. Return: as fr_mr_get(); -EOPNOTSUPP: not with these rails, as their
 * NICs say; -EINVAL: also: not memory of one GPU, or not a dma-buf of it;
 * -EBADF: no descriptor. */
int fr_mr_get_gpu(struct fr_mr_cache *cache, void *addr, size_t bytes,
		  unsigned access, const struct fr_mr_dmabuf *dmabuf,
		  struct fr_mr **out);
/* NULL is a no-op. */
void fr_mr_put(struct fr_mr_cache *cache, struct fr_mr *mr);

/* What to post and what to tell the peer, per rail index. Threads: any. */
void *fr_mr_desc(const struct fr_mr *mr, unsigned rail);
uint64_t fr_mr_key(const struct fr_mr *mr, unsigned rail);
/* Address of @ptr as the peer must give it: virtual, or offset from the
 * registration's base. The same on every rail. */
uint64_t fr_mr_remote_addr(const struct fr_mr *mr, const void *ptr);
/* Registrations that are open now. */
unsigned fr_mr_cache_live(struct fr_mr_cache *cache);

#endif
