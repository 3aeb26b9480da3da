/*
 * Pool of equal elements. Grows by blocks, never shrinks before destroy, so
 * that the data path takes and returns elements without malloc.
 *
 *   block: | header | element | header | element | ...
 *
 * get and put are O(1). Elements keep what elem_init wrote across get/put: the
 * link of a free element lives in the header before it, not in it.
 *
 * Threads: one owner, or the owner's lock. Blocking: get may allocate when the
 * pool is empty.
 */
#ifndef FR_BASE_FREELIST_H
#define FR_BASE_FREELIST_H

#include <stddef.h>

struct fr_freelist;

struct fr_freelist_attr {
	size_t elem_bytes;
	size_t align;	   /* of an element; 0: 16; a power of two */
	unsigned grow_cnt; /* elements a block, at least 1 */
	unsigned max_cnt;  /* get fails beyond; 0: no limit */
	void *arg;	   /* first argument of the hooks */
	/* All hooks may be NULL. A failing hook makes get return NULL. */
	/* A new block, e.g. to register it; *@cookie goes to the others. */
	int (*block_add)(void *arg, void *base, size_t bytes, void **cookie);
	void (*block_del)(void *arg, void *cookie);
	int (*elem_init)(void *arg, void *elem, void *cookie);
	void (*elem_fini)(void *arg, void *elem);
};

/* Return: 0; -ENOMEM; -EINVAL for sizes that make no sense. Allocates no block
 * before the first get. */
int fr_freelist_create(const struct fr_freelist_attr *attr,
		       struct fr_freelist **out);
/* All elements must be back, or the caller knows that nobody uses them. */
void fr_freelist_destroy(struct fr_freelist *fl);
/* NULL: max_cnt reached, out of memory, or a hook failed. */
void *fr_freelist_get(struct fr_freelist *fl);
/* Last in, first out. NULL is a no-op. Putting twice is a caller's bug and
 * aborts when asserts are compiled in. */
void fr_freelist_put(struct fr_freelist *fl, void *elem);
/* Elements that are out. */
unsigned fr_freelist_used(const struct fr_freelist *fl);

#endif
