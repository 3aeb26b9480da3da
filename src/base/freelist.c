#include "base/freelist.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/util.h"

/* A free element is poisoned where the compiler's address checker is on, so
 * that whoever touches it after put is caught. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FREELIST_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FREELIST_ASAN 1
#endif
#if defined(FREELIST_ASAN) && defined(__has_include)
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

#define FREELIST_MIN_ALIGN 16u

enum {
	FREELIST_MARK_FREE = 0x66726565,
	FREELIST_MARK_OUT = 0x6f757421,
};

/* Sits right before each element. */
struct freelist_head {
	struct freelist_head *next; /* of a free element */
	uint32_t mark;
};
_Static_assert(sizeof(struct freelist_head) <= FREELIST_MIN_ALIGN,
	       "a head must fit before an element");

struct freelist_block {
	struct freelist_block *next;
	unsigned char *mem;
	void *cookie;
	unsigned cnt;
};

struct fr_freelist {
	struct freelist_head *free;
	unsigned used_cnt;
	unsigned total_cnt;
	size_t stride;	   /* from one element to the next */
	size_t head_bytes; /* before an element; a multiple of its alignment */
	struct freelist_block *blocks; /* newest first */
	struct fr_freelist_attr attr;
};

static void *freelist_elem(const struct fr_freelist *fl,
			   const struct freelist_block *block, unsigned i)
{
	return block->mem + i * fl->stride + fl->head_bytes;
}

static struct freelist_head *freelist_head_of(void *elem)
{
	return (struct freelist_head *)elem - 1;
}

static bool freelist_attr_ok(const struct fr_freelist_attr *attr)
{
	size_t align = attr->align;

	return attr->elem_bytes != 0 && attr->grow_cnt != 0 &&
	       (align & (align - 1)) == 0 && align <= SIZE_MAX / 8 &&
	       attr->elem_bytes <= SIZE_MAX / 8;
}

int fr_freelist_create(const struct fr_freelist_attr *attr,
		       struct fr_freelist **out)
{
	struct fr_freelist *fl;
	size_t align, stride;

	if (!freelist_attr_ok(attr)) {
		return -EINVAL;
	}
	align = FR_MAX(attr->align, FREELIST_MIN_ALIGN);
	stride = align + fr_round_up(attr->elem_bytes, align);
	if (attr->grow_cnt > SIZE_MAX / stride) {
		return -EINVAL;
	}
	fl = fr_calloc(1, sizeof(*fl));
	if (fl == NULL) {
		return -ENOMEM;
	}
	fl->attr = *attr;
	fl->attr.align = align;
	fl->head_bytes = align;
	fl->stride = stride;
	*out = fl;
	return 0;
}

static void freelist_block_fini(struct fr_freelist *fl,
				struct freelist_block *block, unsigned cnt)
{
	while (cnt > 0) {
		void *elem = freelist_elem(fl, block, --cnt);

		ASAN_UNPOISON_MEMORY_REGION(elem, fl->attr.elem_bytes);
		if (fl->attr.elem_fini != NULL) {
			fl->attr.elem_fini(fl->attr.arg, elem);
		}
	}
	if (fl->attr.block_del != NULL) {
		fl->attr.block_del(fl->attr.arg, block->cookie);
	}
}

/* Runs the hooks over a new block; on failure they are all undone. */
static int freelist_block_init(struct fr_freelist *fl,
			       struct freelist_block *block)
{
	const struct fr_freelist_attr *attr = &fl->attr;
	int ret;

	if (attr->block_add != NULL) {
		ret = attr->block_add(attr->arg, block->mem,
				      block->cnt * fl->stride, &block->cookie);
		if (ret != 0) {
			return ret;
		}
	}
	if (attr->elem_init == NULL) {
		return 0;
	}
	for (unsigned i = 0; i < block->cnt; i++) {
		ret = attr->elem_init(attr->arg, freelist_elem(fl, block, i),
				      block->cookie);
		if (ret != 0) {
			freelist_block_fini(fl, block, i);
			return ret;
		}
	}
	return 0;
}

static void freelist_link(struct fr_freelist *fl, void *elem)
{
	struct freelist_head *head = freelist_head_of(elem);

	head->mark = FREELIST_MARK_FREE;
	head->next = fl->free;
	fl->free = head;
	ASAN_POISON_MEMORY_REGION(elem, fl->attr.elem_bytes);
}

static unsigned freelist_grow_cnt(const struct fr_freelist *fl)
{
	unsigned cnt = fl->attr.grow_cnt;

	if (fl->attr.max_cnt == 0) {
		return FR_MIN(cnt, UINT32_MAX - fl->total_cnt);
	}
	return FR_MIN(cnt, fl->attr.max_cnt - fl->total_cnt);
}

static FR_NOINLINE int freelist_grow(struct fr_freelist *fl)
{
	unsigned cnt = freelist_grow_cnt(fl);
	struct freelist_block *block;
	int ret;

	if (cnt == 0) {
		return -ENOBUFS;
	}
	block = fr_calloc(1, sizeof(*block));
	if (block == NULL) {
		return -ENOMEM;
	}
	block->cnt = cnt;
	block->mem = fr_aligned_calloc(fl->attr.align, cnt * fl->stride);
	if (block->mem == NULL) {
		ret = -ENOMEM;
		goto err_free_block;
	}
	ret = freelist_block_init(fl, block);
	if (ret != 0) {
		goto err_free_mem;
	}
	block->next = fl->blocks;
	fl->blocks = block;
	fl->total_cnt += cnt;
	/* Backwards: the lowest address goes out first. */
	for (unsigned i = cnt; i > 0; i--) {
		freelist_link(fl, freelist_elem(fl, block, i - 1));
	}
	return 0;

err_free_mem:
	fr_free(block->mem);
err_free_block:
	fr_free(block);
	return ret;
}

void fr_freelist_destroy(struct fr_freelist *fl)
{
	struct freelist_block *block;

	if (fl == NULL) {
		return;
	}
	while ((block = fl->blocks) != NULL) {
		fl->blocks = block->next;
		freelist_block_fini(fl, block, block->cnt);
		fr_free(block->mem);
		fr_free(block);
	}
	fr_free(fl);
}

void *fr_freelist_get(struct fr_freelist *fl)
{
	struct freelist_head *head;

	if (fr_unlikely(fl->free == NULL) && freelist_grow(fl) != 0) {
		return NULL;
	}
	head = fl->free;
	assert(head->mark == FREELIST_MARK_FREE);
	fl->free = head->next;
	head->mark = FREELIST_MARK_OUT;
	fl->used_cnt++;
	ASAN_UNPOISON_MEMORY_REGION(head + 1, fl->attr.elem_bytes);
	return head + 1;
}

void fr_freelist_put(struct fr_freelist *fl, void *elem)
{
	if (elem == NULL) {
		return;
	}
	assert(freelist_head_of(elem)->mark == FREELIST_MARK_OUT);
	assert(fl->used_cnt > 0);
	freelist_link(fl, elem);
	fl->used_cnt--;
}

unsigned fr_freelist_used(const struct fr_freelist *fl)
{
	return fl->used_cnt;
}
