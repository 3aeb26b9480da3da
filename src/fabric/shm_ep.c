#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "fabric/rail_priv.h"
#include "fabric/shm_answers.h"
#include "fabric/shm_priv.h"

/* The provider has room for 256, and does not check; some that connect are
 * refused before they are entered here. */
#define MAX_PEERS 224u
#define PAGE_BYTES 4096u
/* A lock of a queue is held for a microsecond, or for as long as its owner
 * copies. */
#define SPINS 64u
#define STUCK_NS (1 * FR_NS_PER_S)

/* The beginning of an endpoint's file in libfabric 1.17. */
#define HEADER_VERSION 4u
#define HEADER_PID_OFFSET 4u
#define HEADER_LOCK_OFFSET 24u

/* What its owner says of an endpoint in the page beside it. */
#define MARK_REVOKED 1u
#define MARK_CLOSED 2u

struct shm_peer {
	struct fr_name name;
	fi_addr_t addr;
	unsigned uses;
	void *header; /* NULL: its lock is not looked at */
	_Atomic uint32_t *mark;
	bool gone;	  /* it has died, or fenced its endpoint */
	uint64_t held_ns; /* then: since when its lock is held; 0: it is not */
	bool local;	  /* this process's own */
};

struct fr_shm {
	void *header; /* our own; NULL: locks are not looked at */
	_Atomic uint32_t *mark;
	struct fr_shm_answers *answers; /* NULL: not known where they are */
	uint32_t unlocked;
	bool is_file;	     /* names are files that we can see */
	uint64_t held_ns;    /* since when our own lock is; 0: it is not */
	uint64_t is_gone_ns; /* a peer turned out to have died */
	struct shm_peer peer[MAX_PEERS];
	unsigned peer_cnt;
	struct fr_log_limit full;
};

static _Atomic uint32_t *lock_of(void *header)
{
	return (_Atomic uint32_t *)(void *)((uint8_t *)header +
					    HEADER_LOCK_OFFSET);
}

static bool is_free(const struct fr_shm *shm, void *header)
{
	for (unsigned i = 0; i < SPINS; i++) {
		if (atomic_load_explicit(lock_of(header),
					 memory_order_relaxed) ==
		    shm->unlocked) {
			return true;
		}
		fr_cpu_relax();
	}
	return false;
}

/* The file of an endpoint, or the page beside it. */
static void file_path(const struct fr_name *name, bool mark,
		      char path[FR_SHM_PATH_MAX])
{
	int len = snprintf(path, FR_SHM_PATH_MAX, "%s/%s", fr_shm_dir(),
			   (const char *)name->bytes);

	if (mark) {
		path[len - 1] =
			(char)(path[len - 1] - FR_SHM_RAIL + FR_SHM_MARK);
	}
}

/* Return: descriptor; -errno. */
static int file_open(const struct fr_name *name, bool mark, int flags)
{
	char path[FR_SHM_PATH_MAX];
	int fd;

	file_path(name, mark, path);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	return fd < 0 ? -errno : fd;
}

static void *page_map(int fd)
{
	struct stat st;
	void *header;

	if (fstat(fd, &st) != 0 || st.st_size < (off_t)PAGE_BYTES) {
		return NULL;
	}
	header = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		      0);
	return header == MAP_FAILED ? NULL : header;
}

static void page_unmap(void *header)
{
	if (header != NULL) {
		munmap(header, PAGE_BYTES);
	}
}

/* Nobody else knows this endpoint yet: its lock is free. Return: 0; -ENOMEM. */
static int guard_open(struct fr_shm *shm, int fd)
{
	uint32_t pid;
	void *header = page_map(fd);

	if (header == NULL) {
		return 0;
	}
	memcpy(&pid, (uint8_t *)header + HEADER_PID_OFFSET, sizeof(pid));
	if (*(uint8_t *)header != HEADER_VERSION || pid != (uint32_t)getpid()) {
		page_unmap(header);
		return 0;
	}
	shm->header = header;
	shm->unlocked = atomic_load(lock_of(header));
	return fr_shm_answers_open(fd, header, &shm->answers);
}

static int no_room(const struct fr_rail *rail, const char *what, int err)
{
	fr_error("rail %u on %s (%s): no room for %s in %s: %s", rail->index,
		 rail->nic->name, rail->fabric->text, what, fr_shm_dir(),
		 strerror(err));
	return -err;
}

static int mark_open(struct fr_rail *rail, struct fr_shm *shm)
{
	int fd = file_open(&rail->name[FR_EP_CTRL], true, O_CREAT | O_EXCL);
	void *page;
	int ret;

	if (fd < 0) {
		return no_room(rail, "a page", -fd);
	}
	ret = posix_fallocate(fd, 0, PAGE_BYTES);
	if (ret == 0) {
		page = page_map(fd);
		shm->mark = page;
		ret = page != NULL ? 0 : ENOMEM;
	}
	close(fd);
	return ret == 0 ? 0 : no_room(rail, "a page", ret);
}

static void mark_unlink(const struct fr_rail *rail)
{
	char path[FR_SHM_PATH_MAX];

	file_path(&rail->name[FR_EP_CTRL], true, path);
	unlink(path);
}

/* Return: 0; -errno, logged. */
static int files_open(struct fr_rail *rail, struct fr_shm *shm, int fd)
{
	struct stat st;
	int ret;

	if (fstat(fd, &st) != 0) {
		return no_room(rail, "the endpoint", errno);
	}
	ret = posix_fallocate(fd, 0, st.st_size);
	if (ret != 0) {
		return no_room(rail, "the endpoint", ret);
	}
	ret = mark_open(rail, shm);
	if (ret == 0) {
		ret = guard_open(shm, fd);
	}
	if (ret != 0) {
		mark_unlink(rail);
		return ret;
	}
	shm->is_file = true;
	return 0;
}

int fr_shm_open(struct fr_rail *rail)
{
	struct fr_shm *shm = fr_calloc(1, sizeof(*shm));
	int ret = 0, fd;

	if (shm == NULL) {
		return -ENOMEM;
	}
	fd = file_open(&rail->name[FR_EP_CTRL], false, 0);
	if (fd >= 0) {
		ret = files_open(rail, shm, fd);
		close(fd);
	}
	if (ret != 0) {
		page_unmap(shm->header);
		page_unmap(shm->mark);
		fr_free(shm);
		return ret;
	}
	rail->shm = shm;
	return 0;
}

void fr_shm_close(struct fr_rail *rail)
{
	struct fr_shm *shm = rail->shm;

	if (shm == NULL) {
		return;
	}
	for (unsigned i = 0; i < shm->peer_cnt; i++) {
		page_unmap(shm->peer[i].header);
		page_unmap(shm->peer[i].mark);
	}
	fr_shm_answers_close(shm->answers);
	page_unmap(shm->header);
	page_unmap(shm->mark);
	if (shm->is_file) {
		mark_unlink(rail);
	}
	fr_free(shm);
	rail->shm = NULL;
}

static struct shm_peer *peer_find(struct fr_shm *shm,
				  const struct fr_name *name)
{
	for (unsigned i = 0; i < shm->peer_cnt; i++) {
		struct shm_peer *peer = &shm->peer[i];

		if (peer->name.len == name->len &&
		    memcmp(peer->name.bytes, name->bytes, name->len) == 0) {
			return peer;
		}
	}
	return NULL;
}

/* Return: 0; -ECONNRESET. */
static int peer_look(struct fr_rail *rail, struct shm_peer *peer)
{
	struct fr_shm *shm = rail->shm;
	int fd;

	if (!shm->is_file) {
		return 0;
	}
	fd = file_open(&peer->name, false, 0);
	if (fd == -ENOENT) {
		fr_log_limited(&rail->bad_names, FR_LOG_ERROR,
			       "rail %u on %s: no endpoint named %s in %s: its "
			       "process is gone, or has a %s of its own",
			       rail->index, rail->nic->name,
			       (const char *)peer->name.bytes, fr_shm_dir(),
			       fr_shm_dir());
		return -ECONNRESET;
	}
	if (fd < 0) {
		return 0; /* the provider will say why */
	}
	if (shm->header != NULL) {
		peer->header = page_map(fd);
	}
	close(fd);
	fd = file_open(&peer->name, true, 0);
	if (fd >= 0) {
		peer->mark = page_map(fd);
		close(fd);
	}
	return 0;
}

static bool is_local(const struct fr_name *name)
{
	struct fr_shm_id id;

	return fr_shm_parse((const char *)name->bytes, &id) &&
	       id.pid == getpid();
}

static int peer_enter(struct fr_rail *rail, const struct fr_name *name,
		      struct shm_peer **out)
{
	struct fr_shm *shm = rail->shm;
	struct shm_peer *peer = &shm->peer[shm->peer_cnt];
	int ret;

	if (shm->peer_cnt == MAX_PEERS) {
		fr_log_limited(&shm->full, FR_LOG_ERROR,
			       "rail %u on %s: %u peers are all that it can "
			       "have",
			       rail->index, rail->nic->name, MAX_PEERS);
		return -ENOSPC;
	}
	memset(peer, 0, sizeof(*peer));
	peer->name = *name;
	peer->local = is_local(name);
	ret = peer_look(rail, peer);
	if (ret != 0) {
		return ret;
	}
	ret = fr_rail_av_insert(rail, name, &peer->addr);
	if (ret != 0) {
		page_unmap(peer->header);
		page_unmap(peer->mark);
		return ret;
	}
	shm->peer_cnt++;
	*out = peer;
	return 0;
}

int fr_shm_peer_add(struct fr_rail *rail, const struct fr_name *name,
		    uint64_t *addr)
{
	struct shm_peer *peer = peer_find(rail->shm, name);
	struct fr_shm_id id;
	int ret;

	if (peer == NULL) {
		fr_shm_parse((const char *)name->bytes, &id);
		if (id.space != fr_shm_space()) {
			fr_log_limited(&rail->bad_names, FR_LOG_ERROR,
				       "rail %u on %s: process %d has another "
				       "PID namespace, and memory is copied by "
				       "PID: set FI_SHM_DISABLE_CMA=1 for "
				       "every process",
				       rail->index, rail->nic->name,
				       (int)id.pid);
			return -EINVAL;
		}
		ret = peer_enter(rail, name, &peer);
		if (ret != 0) {
			return ret;
		}
	}
	peer->uses++;
	*addr = (uint64_t)(peer - rail->shm->peer);
	return 0;
}

void fr_shm_peer_del(struct fr_rail *rail, uint64_t addr)
{
	assert(addr < rail->shm->peer_cnt && rail->shm->peer[addr].uses > 0);
	rail->shm->peer[addr].uses--;
}

bool fr_shm_may_post(struct fr_shm *shm, uint64_t *addr)
{
	const struct shm_peer *peer = &shm->peer[*addr];

	/* Of a peer in this process the provider uses the owner's mapping. */
	if (peer->local && peer->mark != NULL &&
	    (atomic_load(peer->mark) & MARK_CLOSED) != 0) {
		return false;
	}
	if (peer->header != NULL && !is_free(shm, peer->header)) {
		return false;
	}
	*addr = peer->addr;
	return true;
}

void fr_shm_ends(struct fr_rail *rail)
{
	if (rail->shm->mark != NULL) {
		atomic_fetch_or(rail->shm->mark, MARK_CLOSED);
	}
}

void fr_shm_revoke(struct fr_rail *rail)
{
	if (rail->shm->mark != NULL) {
		atomic_fetch_or(rail->shm->mark, MARK_REVOKED);
		mark_unlink(rail); /* who knows the endpoint has it mapped */
	}
}

bool fr_shm_is_revoked(const struct fr_shm *shm, uint64_t addr)
{
	const struct shm_peer *peer = &shm->peer[addr];

	return peer->mark != NULL &&
	       (atomic_load(peer->mark) & MARK_REVOKED) != 0;
}

/* Held at every look for a second: a holder that lives is faster, unless it is
 * stopped. */
static FR_NOINLINE bool own_is_held(struct fr_shm *shm)
{
	uint64_t now = fr_now_ns();

	if (shm->held_ns == 0) {
		shm->held_ns = now;
	}
	if (shm->is_gone_ns < shm->held_ns || now - shm->held_ns < STUCK_NS) {
		return false;
	}
	fr_info("a peer died with the lock of our queue in its hands");
	shm->held_ns = 0;
	atomic_store(lock_of(shm->header), shm->unlocked);
	return true;
}

bool fr_shm_may_poll(struct fr_shm *shm)
{
	if (shm->header == NULL) {
		return true;
	}
	if (fr_unlikely(!is_free(shm, shm->header))) {
		return own_is_held(shm);
	}
	shm->held_ns = 0;
	return true;
}

void fr_shm_peer_gone(struct fr_shm *shm, uint64_t addr)
{
	shm->is_gone_ns = fr_now_ns();
	shm->peer[addr].gone = true;
}

void fr_shm_posted(struct fr_shm *shm, uint64_t addr, struct fr_op *op)
{
	if (shm->answers != NULL) {
		fr_shm_answers_posted(shm->answers, (unsigned)addr, op);
	}
}

/* Whoever else holds it and lives is done within a second; who owned it will
 * not mind. */
static void lost_unlock(struct fr_shm *shm, struct shm_peer *peer)
{
	uint64_t now = fr_now_ns();

	if (peer->header == NULL || is_free(shm, peer->header)) {
		peer->held_ns = 0;
	} else if (peer->held_ns == 0) {
		peer->held_ns = now;
	} else if (now - peer->held_ns >= STUCK_NS) {
		peer->held_ns = 0;
		atomic_store(lock_of(peer->header), shm->unlocked);
	}
}

void fr_shm_answer_for_lost(struct fr_shm *shm)
{
	uint64_t nth = FR_SHM_ANSWERS_FIRST;
	unsigned i;

	if (shm->answers == NULL) {
		return;
	}
	while (fr_shm_answers_next(shm->answers, &nth, &i) &&
	       fr_unlikely(shm->peer[i].gone || fr_shm_is_revoked(shm, i))) {
		lost_unlock(shm, &shm->peer[i]);
		fr_shm_answers_cut(shm->answers, nth);
	}
}

bool fr_shm_is_stuck(const struct fr_shm *shm)
{
	return shm->held_ns != 0 && fr_now_ns() - shm->held_ns >= STUCK_NS;
}
