/*
 * Memory whose address stays while its pages are others: mapped anew, freed and
 * allocated, grown, shared with a child until somebody writes, moved away,
 * taken from a file that was cut. Registered again, or never given back, it
 * carries what is in it now, and nothing goes to the pages that were there.
 * Pages that are gone are an error, or the message is right.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/life.h"

#define SHORT 700u	  /* goes as a copy */
#define LONG (1u << 20)	  /* is written, by all rails */
#define GROWN (64u << 10) /* more, when it grows */
#define CANARY 0x5a
#define GONE_MS 10000u

/* Memory of a message, and the pages that it had before. */
struct area {
	uint8_t *mem;
	size_t bytes;
	unsigned long seed; /* what the pages before hold */
	uint8_t *before;    /* where they are now, or NULL */
	int fd;
	pid_t child; /* that holds them */
};

static uint8_t *map(size_t bytes, int fd, void *at)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *mem = mmap(at, bytes, PROT_READ | PROT_WRITE,
			 flags | (at != NULL ? MAP_FIXED : 0), fd, 0);

	PAIR_CHECK(mem != MAP_FAILED, "mmap");
	return mem;
}

/* ---- mapped anew ---- */

static void open_anew(struct area *a)
{
	a->mem = map(a->bytes, -1, NULL);
}

static void renew_anew(struct area *a)
{
	/* munmap() and mmap() in one: no thread gets in between. */
	(void)map(a->bytes, -1, a->mem);
}

static void close_anew(struct area *a)
{
	munmap(a->mem, a->bytes);
}

/* ---- of the heap ---- */

static unsigned same_places;

static void open_heap(struct area *a)
{
	/* The C library maps the first one apart. */
	free(malloc(a->bytes));
	a->mem = malloc(a->bytes);
	PAIR_CHECK(a->mem != NULL, "malloc");
}

static void renew_heap(struct area *a)
{
	uintptr_t was = (uintptr_t)a->mem;

	free(a->mem);
	a->mem = malloc(a->bytes);
	PAIR_CHECK(a->mem != NULL, "malloc");
	same_places += (uintptr_t)a->mem == was;
}

static void renew_grown(struct area *a)
{
	a->mem = realloc(a->mem, a->bytes + GROWN);
	PAIR_CHECK(a->mem != NULL, "realloc");
	PAIR_CHECK(pair_is_filled(a->mem, a->bytes, a->seed),
		   "realloc found other bytes");
}

static void close_heap(struct area *a)
{
	free(a->mem);
}

/* ---- a child has them ---- */

/* It has copies of the first half, as it has written to it. Those of the
 * second half are left to it when the parent writes. */
static void child_holds(const struct area *a, int ready, int end)
{
	static uint8_t was[LONG / 2];
	size_t half = a->bytes / 2;
	char word = '!';

	memcpy(was, a->mem + half, half);
	memset(a->mem, 0xee, half);
	if (write(ready, &word, 1) != 1 || read(end, &word, 1) != 0) {
		_exit(2);
	}
	_exit(pair_is_all(a->mem, half, 0xee) &&
			      memcmp(was, a->mem + half, half) == 0
		      ? 0
		      : 1);
}

static void renew_shared(struct area *a)
{
	int ready[2], end[2];
	char word;

	PAIR_CHECK(pipe(ready) == 0 && pipe(end) == 0, "pipe");
	a->child = fork();
	PAIR_CHECK(a->child >= 0, "fork");
	if (a->child == 0) {
		close(end[1]);
		child_holds(a, ready[1], end[0]);
	}
	close(ready[1]);
	close(end[0]);
	PAIR_CHECK(read(ready[0], &word, 1) == 1, "no child");
	close(ready[0]);
	a->fd = end[1];
}

static void close_shared(struct area *a)
{
	int status;

	close(a->fd);
	PAIR_CHECK(waitpid(a->child, &status, 0) == a->child && status == 0,
		   "the child's pages were written to: status %#x",
		   (unsigned)status);
	munmap(a->mem, a->bytes);
}

/* ---- moved ---- */

/* There are empty pages where they were. */
static void renew_moved(struct area *a)
{
	void *moved = mremap(a->mem, a->bytes, a->bytes,
			     MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	PAIR_CHECK(moved != MAP_FAILED && moved != a->mem, "mremap");
	a->before = moved;
}

static void close_moved(struct area *a)
{
	PAIR_CHECK(pair_is_filled(a->before, a->bytes, a->seed),
		   "pages that were moved away were written to");
	munmap(a->before, a->bytes);
	munmap(a->mem, a->bytes);
}

/* ---- of a file ---- */

static void open_file(struct area *a)
{
	a->fd = memfd_create("area", MFD_CLOEXEC);
	PAIR_CHECK(a->fd >= 0 && ftruncate(a->fd, (off_t)a->bytes) == 0,
		   "memfd");
	a->mem = map(a->bytes, a->fd, NULL);
}

static void renew_cut(struct area *a)
{
	PAIR_CHECK(ftruncate(a->fd, 0) == 0 &&
			   ftruncate(a->fd, (off_t)a->bytes) == 0,
		   "ftruncate");
}

static void close_file(struct area *a)
{
	munmap(a->mem, a->bytes);
	close(a->fd);
}

/* ---- all of them ---- */

static const struct kind {
	const char *name;
	void (*open)(struct area *a);
	void (*renew)(struct area *a);
	void (*close)(struct area *a);
} kinds[] = {
	{"mapped anew", open_anew, renew_anew, close_anew},
	{"freed and allocated", open_heap, renew_heap, close_heap},
	{"reallocated", open_heap, renew_grown, close_heap},
	{"shared with a child", open_anew, renew_shared, close_shared},
	{"moved away", open_anew, renew_moved, close_moved},
	{"of a file that was cut", open_file, renew_cut, close_file},
};

static void *reg(struct pair_member *me, void *comm, const struct area *a)
{
	void *mh = NULL;

	PAIR_OK(fr_plugin_reg_mr(me->plugin, comm, a->mem, a->bytes,
				 FR_PLUGIN_PTR_HOST, &mh));
	return mh;
}

static void pass(struct pair_member *me, void *comm, const struct area *a,
		 void *mh, unsigned long seed)
{
	struct pair_buf buf = {
		.mem = a->mem, .bytes = a->bytes, .comm = comm, .mh = mh};

	if (me->index == 0) {
		pair_fill(a->mem, a->bytes, seed);
		pair_send(me, &buf, a->bytes);
	} else {
		memset(a->mem, CANARY, a->bytes);
		pair_recv(me, &buf, a->bytes);
		PAIR_CHECK(pair_is_filled(a->mem, a->bytes, seed),
			   "message %lu of %zu bytes is not what was sent",
			   seed, a->bytes);
	}
}

/* @keep: the host program forgets to give back what it unmaps, and uses it
 * again where it can. */
static void run_kind(struct pair_member *me, void *comm,
		     const struct kind *kind, bool keep, size_t bytes)
{
	static unsigned long seed;
	struct area a = {.bytes = bytes};
	void *old, *mh, *was;

	kind->open(&a);
	was = a.mem;
	old = reg(me, comm, &a);
	a.seed = ++seed;
	pass(me, comm, &a, old, a.seed);
	if (!keep) {
		PAIR_OK(fr_plugin_dereg_mr(me->plugin, comm, old));
	}
	kind->renew(&a);
	mh = reg(me, comm, &a);
	pass(me, comm, &a, mh, ++seed);
	pass(me, comm, &a, keep && a.mem == was ? old : mh, ++seed);
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, comm, mh));
	if (keep) {
		PAIR_OK(fr_plugin_dereg_mr(me->plugin, comm, old));
	}
	kind->close(&a);
}

static void run_kinds(struct pair_member *me)
{
	void *comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);

	for (size_t i = 0; i < FR_ARRAY_LEN(kinds); i++) {
		pair_at(me, kinds[i].name);
		for (unsigned k = 0; k < 4; k++) {
			run_kind(me, comm, &kinds[i], k >= 2,
				 k % 2 == 0 ? LONG : SHORT);
		}
	}
	/* A sanitizer's heap gives nothing twice in a row. */
	PAIR_CHECK(same_places != 0 || getenv("FR_SANITIZER") != NULL,
		   "the heap never had the same address again");
	pair_meet(me, !me->index);
	PAIR_OK(me->index == 0 ? fr_plugin_close_send(me->plugin, comm)
			       : fr_plugin_close_recv(me->plugin, comm));
}

/* ---- pages that are gone ---- */

/* Return: what a call said that began the message, or its end. */
static int gone_result(struct pair_member *me, const struct pair_buf *buf,
		       void *req)
{
	uint64_t began = pair_now_ms();
	int ret = 0;

	while (ret == 0 && req == NULL) {
		PAIR_CHECK(pair_now_ms() - began < pair_stretch(GONE_MS),
			   "the send is not taken");
		ret = pair_isend(me, buf, LONG, &req);
	}
	return ret != 0 ? ret : pair_test_wait(me, req, GONE_MS, NULL);
}

/* The sender's. Only its kernel reads them, which says so. */
static void run_gone(struct pair_member *me)
{
	struct area a = {.bytes = LONG};
	struct pair_buf buf = {.bytes = LONG};
	void *req = NULL;
	int ret;

	pair_expect("is lost");
	pair_expect("fenced");
	buf.comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);
	open_file(&a);
	buf.mem = a.mem;
	buf.mh = reg(me, buf.comm, &a);
	pass(me, buf.comm, &a, buf.mh, 1);
	pair_at(me, "without the pages");
	if (me->index == 0) {
		PAIR_CHECK(ftruncate(a.fd, 0) == 0, "ftruncate");
	} else {
		memset(a.mem, CANARY, LONG);
		req = pair_irecv_wait(me, &buf, LONG);
	}
	pair_meet(me, !me->index);
	ret = gone_result(me, &buf, req);
	PAIR_CHECK(ret == PAIR_REMOTE, "it ended with %d", ret);
	pair_meet(me, !me->index);
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, buf.comm, buf.mh));
	close_file(&a);
	PAIR_OK(me->index == 0 ? fr_plugin_close_send(me->plugin, buf.comm)
			       : fr_plugin_close_recv(me->plugin, buf.comm));
}

static struct pair_case pc = {.members = 2, .limit_s = 40};

static void over_kinds(const char *provider, unsigned nth)
{
	pc.provider = provider;
	pc.rails = nth == 0 ? 3 : 2;
	pc.name = "other pages at the same address";
	pc.run = run_kinds;
	pair_run(&pc);
}

/* sockets tries for ever, and shm may read them with its own hands. */
static void over_gone(const char *provider, unsigned nth)
{
	pc.provider = provider;
	pc.rails = nth == 0 ? 3 : 2;
	pc.name = "the sender's pages are gone";
	pc.run = run_gone;
	pair_run(&pc);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "other pages at the same address", 10);
	pair_all_providers(over_kinds);
	pair_each_provider(over_gone);
	return pair_end();
}
