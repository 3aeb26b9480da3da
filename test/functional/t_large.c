/*
 * Beyond 31 and 32 bits: registrations of INT_MAX bytes, of 3 GiB and of -1,
 * messages at offsets beyond 2 GiB, and the longest message that NCCL's int can
 * tell of. Little memory is behind it: the middle of a long message is the same
 * few pages over and over.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/pair.h"

#define GIB ((size_t)1 << 30)
#define BLOCK ((size_t)16 << 20)
#define RANGE ((size_t)1 << 31)
#define MOST ((size_t)INT_MAX)
#define CANARY 0xee
#define TAG 6

/* ---- messages of up to INT_MAX bytes ---- */

/* RANGE bytes of addresses over three blocks: the first one, all between, the
 * last one. */
static uint8_t *range_open(void)
{
	int fd = memfd_create("range", MFD_CLOEXEC);
	uint8_t *mem = mmap(NULL, RANGE, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	PAIR_CHECK(fd >= 0 && mem != MAP_FAILED &&
			   ftruncate(fd, (off_t)(3 * BLOCK)) == 0,
		   "memory");
	for (size_t at = 0; at < RANGE; at += BLOCK) {
		size_t block = at == 0 ? 0 : at + BLOCK == RANGE ? 2 : 1;

		PAIR_CHECK(mmap(mem + at, BLOCK, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_FIXED, fd,
				(off_t)(block * BLOCK)) != MAP_FAILED,
			   "mmap");
	}
	close(fd);
	return mem;
}

static uint8_t *block_of(uint8_t *mem, unsigned block)
{
	return mem + (block == 2 ? RANGE - BLOCK : block * BLOCK);
}

/* What was not sent of the last block is as it was. */
static void range_check(uint8_t *mem, size_t bytes)
{
	size_t tail = bytes > RANGE - BLOCK ? bytes - (RANGE - BLOCK) : 0;

	PAIR_CHECK(pair_is_filled(block_of(mem, 0), BLOCK, 0), "the first");
	PAIR_CHECK(pair_is_filled(block_of(mem, 1), BLOCK, 1), "the middle");
	PAIR_CHECK(pair_is_filled(block_of(mem, 2), tail, 2), "the last");
	PAIR_CHECK(pair_is_all(block_of(mem, 2) + tail, BLOCK - tail, CANARY),
		   "bytes behind the message were written");
}

static void one_message(struct pair_member *me, struct pair_buf *buf,
			size_t bytes)
{
	int ret, size = -1;
	void *req;

	if (me->index == 0) {
		req = pair_isend_wait(me, buf, bytes);
	} else {
		for (unsigned i = 0; i < 3; i++) {
			memset(block_of(buf->mem, i), CANARY, BLOCK);
		}
		req = pair_irecv_wait(me, buf, MOST);
	}
	ret = pair_test_wait(me, req, 40000, &size);
	PAIR_CHECK(ret == 0, "%zu bytes: ended with %d", bytes, ret);
	PAIR_CHECK(size == (int)bytes, "%zu bytes: size %d", bytes, size);
	if (me->index == 1) {
		range_check(buf->mem, bytes);
	}
}

static void run_messages(struct pair_member *me)
{
	const size_t *sizes = me->arg;
	struct pair_buf buf = {.bytes = RANGE};

	buf.comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);
	buf.mem = range_open();
	for (unsigned i = 0; i < 3 && me->index == 0; i++) {
		pair_fill(block_of(buf.mem, i), BLOCK, i);
	}
	PAIR_OK(fr_plugin_reg_mr(me->plugin, buf.comm, buf.mem, MOST,
				 FR_PLUGIN_PTR_HOST, &buf.mh));
	for (; *sizes != 0; sizes++) {
		one_message(me, &buf, *sizes);
	}
	pair_meet(me, !me->index);
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, buf.comm, buf.mh));
	munmap(buf.mem, RANGE);
	PAIR_OK(me->index == 0 ? fr_plugin_close_send(me->plugin, buf.comm)
			       : fr_plugin_close_recv(me->plugin, buf.comm));
}

/* ---- registrations ---- */

static void not_registered(struct pair_member *me, void *comm, void *mem,
			   size_t bytes)
{
	void *mh = (void *)0x1;
	int ret = fr_plugin_reg_mr(me->plugin, comm, mem, bytes,
				   FR_PLUGIN_PTR_HOST, &mh);

	PAIR_CHECK(ret == FR_PLUGIN_INVALID_ARGUMENT && mh == NULL,
		   "a registration of %zd bytes gave %s", (ssize_t)bytes,
		   fr_plugin_result_text(ret));
}

/* A message of 1 MiB at an offset beyond 2 GiB, from and to odd places. */
static void at_offset(struct pair_member *me, const struct pair_buf *all)
{
	struct pair_buf part = *all;
	const size_t bytes = 1 << 20;

	part.mem += me->index == 0 ? 5 * GIB / 2 + 13 : 9 * GIB / 4 + 7;
	part.bytes = bytes;
	if (me->index == 0) {
		pair_fill(part.mem, bytes, 3);
		pair_send(me, &part, bytes);
		return;
	}
	memset(part.mem - 4096, CANARY, bytes + 8192);
	pair_recv(me, &part, bytes);
	PAIR_CHECK(pair_is_filled(part.mem, bytes, 3), "wrong data");
	PAIR_CHECK(pair_is_all(part.mem - 4096, 4096, CANARY) &&
			   pair_is_all(part.mem + bytes, 4096, CANARY),
		   "written beside the message");
}

static void run_registrations(struct pair_member *me)
{
	struct pair_buf all = {.bytes = 3 * GIB};
	void *mh;

	pair_expect("a negative size");
	all.comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);
	all.mem = mmap(NULL, all.bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	PAIR_CHECK(all.mem != MAP_FAILED, "mmap");
	PAIR_OK(fr_plugin_reg_mr(me->plugin, all.comm, all.mem, INT_MAX,
				 FR_PLUGIN_PTR_HOST, &mh));
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, all.comm, mh));
	not_registered(me, all.comm, all.mem, SIZE_MAX);
	if (fr_plugin_abi(me->plugin) >= 8) { /* sizes are size_t */
		not_registered(me, all.comm, all.mem, (size_t)PTRDIFF_MAX + 1);
		PAIR_OK(fr_plugin_reg_mr(me->plugin, all.comm, all.mem,
					 all.bytes, FR_PLUGIN_PTR_HOST,
					 &all.mh));
		at_offset(me, &all);
		pair_meet(me, !me->index);
		PAIR_OK(fr_plugin_dereg_mr(me->plugin, all.comm, all.mh));
	}
	munmap(all.mem, all.bytes);
	PAIR_OK(me->index == 0 ? fr_plugin_close_send(me->plugin, all.comm)
			       : fr_plugin_close_recv(me->plugin, all.comm));
}

static void run_provider(const char *provider, unsigned nth)
{
	/* Those below INT_MAX are told aside: the immediate has no room. */
	static const size_t most[] = {MOST, 0};
	static const size_t once[] = {GIB + 5, 0};
	struct pair_case pc = {
		.name = "large registrations",
		.provider = provider,
		.rails = 2,
		.members = 2,
		.limit_s = 60,
		.run = run_registrations,
	};

	pair_run(&pc);
	pc.name = "a message of 1 GiB and 5";
	pc.run = run_messages;
	pc.arg = once;
	pair_run(&pc);
	if (nth != 0) {
		return;
	}
	pc.name = "a message of INT_MAX bytes";
	pc.arg = most;
	for (pc.rails = 1; pc.rails <= 3; pc.rails++) {
		pair_run(&pc);
	}
	pc.name = "large registrations, as int";
	pc.rails = 1;
	pc.run = run_registrations;
	pc.abi = 6; /* sizes are int in its table */
	pair_run(&pc);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		setenv("FR_PLUGIN", argv[1], 1);
	}
	pair_main(argc, argv, "large messages", 20);
	pair_each_provider(run_provider);
	return pair_end();
}
