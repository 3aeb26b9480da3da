#include "fabric/shm_answers.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/util.h"
#include "fabric/rail_priv.h"

/* Where libfabric 1.17 has it in an endpoint's file. */
#define HEADER_SIGNAL_OFFSET 28u
#define HEADER_RING_OFFSET 72u
#define RING_MAX 65536u

/* What a place says. A write in pieces goes through memory of the target's:
 * the sender fills it, and says so, and the target empties it. */
#define STATUS_WAITS ((uint64_t)FI_EBUSY)
#define STATUS_PIECES_EMPTY 1025u
#define STATUS_PIECES_FULL 1026u
#define STATUS_CUT ((uint64_t)(int64_t)-FI_ECANCELED)

struct ring {
	uint64_t size;
	uint64_t mask;
	_Atomic uint64_t read;	  /* by the provider: this one completes next */
	_Atomic uint64_t written; /* posts that took a place */
	struct {
		uint64_t id; /* the provider's */
		_Atomic uint64_t status;
	} place[];
};

struct post {
	struct fr_op *op; /* NULL: not to be cut */
	unsigned peer;
};

struct fr_shm_answers {
	struct ring *ring;
	_Atomic uint32_t *signal; /* the provider looks when it is set */
	uint64_t noted;		  /* ring->written when we looked last */
	void *map;
	size_t map_bytes;
	struct post post[]; /* beside ring->place */
};

static bool ring_is_sane(const struct ring *ring, uint64_t room)
{
	return ring->size > 0 && ring->size <= RING_MAX &&
	       (ring->size & (ring->size - 1)) == 0 &&
	       ring->mask == ring->size - 1 &&
	       sizeof(*ring) + ring->size * sizeof(ring->place[0]) <= room;
}

/* The whole file, of which pages that are not touched cost nothing. NULL: it
 * has no ring where we know it. */
static struct ring *ring_map(int fd, const void *header, void **map,
			     size_t *bytes)
{
	struct ring *ring;
	uint64_t offset;
	struct stat st;

	memcpy(&offset, (const uint8_t *)header + HEADER_RING_OFFSET,
	       sizeof(offset));
	if (fstat(fd, &st) != 0 || offset == 0 || offset % 8 != 0 ||
	    offset + sizeof(*ring) > (uint64_t)st.st_size) {
		return NULL;
	}
	*bytes = (size_t)st.st_size;
	*map = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*map == MAP_FAILED) {
		return NULL;
	}
	ring = (struct ring *)(void *)((uint8_t *)*map + offset);
	if (ring_is_sane(ring, *bytes - offset)) {
		return ring;
	}
	munmap(*map, *bytes);
	return NULL;
}

int fr_shm_answers_open(int fd, void *header, struct fr_shm_answers **out)
{
	struct fr_shm_answers *answers;
	struct ring *ring;
	size_t bytes;
	void *map;

	*out = NULL;
	ring = ring_map(fd, header, &map, &bytes);
	if (ring == NULL) {
		return 0;
	}
	answers = fr_calloc(1, sizeof(*answers) +
				       ring->size * sizeof(answers->post[0]));
	if (answers == NULL) {
		munmap(map, bytes);
		return -ENOMEM;
	}
	answers->ring = ring;
	answers->signal = (_Atomic uint32_t *)(void *)((uint8_t *)header +
						       HEADER_SIGNAL_OFFSET);
	answers->noted = atomic_load(&ring->written);
	answers->map = map;
	answers->map_bytes = bytes;
	*out = answers;
	return 0;
}

void fr_shm_answers_close(struct fr_shm_answers *answers)
{
	if (answers != NULL) {
		munmap(answers->map, answers->map_bytes);
		fr_free(answers);
	}
}

static struct post *post_at(struct fr_shm_answers *answers, uint64_t nth)
{
	return &answers->post[nth & answers->ring->mask];
}

void fr_shm_answers_posted(struct fr_shm_answers *answers, unsigned peer,
			   struct fr_op *op)
{
	uint64_t written = atomic_load_explicit(&answers->ring->written,
						memory_order_relaxed);
	struct post *post;

	if (written != answers->noted) {
		answers->noted = written;
		post = post_at(answers, written - 1);
		post->peer = peer;
		post->op = fr_op_is(op, FR_OP_TX) ? op : NULL;
	}
}

bool fr_shm_answers_next(const struct fr_shm_answers *answers, uint64_t *nth,
			 unsigned *peer)
{
	const struct ring *ring = answers->ring;
	const struct post *post;

	if (*nth == FR_SHM_ANSWERS_FIRST) {
		*nth = atomic_load_explicit(&ring->read, memory_order_relaxed);
	} else {
		++*nth;
	}
	if (*nth == answers->noted) {
		return false;
	}
	post = &answers->post[*nth & ring->mask];
	*peer = post->peer;
	return post->op != NULL;
}

void fr_shm_answers_cut(struct fr_shm_answers *answers, uint64_t nth)
{
	_Atomic uint64_t *status =
		&answers->ring->place[nth & answers->ring->mask].status;
	uint64_t waits = STATUS_WAITS, full = STATUS_PIECES_FULL;

	if (atomic_compare_exchange_strong(status, &waits, STATUS_CUT) ||
	    atomic_compare_exchange_strong(status, &full,
					   STATUS_PIECES_EMPTY)) {
		post_at(answers, nth)->op->prov[FR_OP_KIND] =
			(void *)(uintptr_t)FR_OP_CUT;
	}
	atomic_store(answers->signal, 1);
}
