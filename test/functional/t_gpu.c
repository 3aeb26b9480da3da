/*
 * Memory of a GPU through the plugin, with a CUDA driver that has none: its
 * memory ends whoever touches it with the CPU. Real providers do not take it,
 * whatever they say, and the plugin finds that out; with the stand-in for
 * libfabric they do.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "fake/fake_cuda.h"
#include "functional/pair.h"
#include "shim/use.h"

#define PTR_CUDA 2
#define PTR_DMABUF 4
#define BYTES (300u << 10)
#define DMABUF_MEMBER 8 /* of the newest table */
#define DEADLINE_MS 20000u

typedef int (*reg_dmabuf_fn)(void *comm, void *data, size_t size, int type,
			     uint64_t offset, int fd, void **mhandle);

static struct fake_cuda *cuda;

/* Before the plugin is loaded. @arg: with the stand-in for libfabric. */
static void load(unsigned i, const void *arg)
{
	(void)i;
	cuda = fake_cuda_load();
	PAIR_CHECK(arg == NULL || shim_load("gpu") != NULL,
		   "no stand-in for libfabric");
}

static reg_dmabuf_fn reg_dmabuf(void)
{
	void *lib = dlopen(getenv("FR_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);
	void *table = lib == NULL ? NULL : dlsym(lib, "ncclNetPlugin_v12");
	reg_dmabuf_fn fn;

	PAIR_CHECK(table != NULL, "the plugin's table is not there");
	memcpy(&fn, (const char *)table + DMABUF_MEMBER * sizeof(fn),
	       sizeof(fn));
	return fn;
}

static int ptr_support(struct pair_member *me)
{
	struct fr_plugin_props props;

	PAIR_OK(fr_plugin_props(me->plugin, 0, &props));
	return props.ptr_support;
}

/* Each is refused, and its descriptor is as it was. */
static void refuse_dmabufs(void *comm, void *mem)
{
	reg_dmabuf_fn reg = reg_dmabuf();
	int fd[] = {-1, memfd_create("other", MFD_CLOEXEC), cuda->export(mem),
		    cuda->export(mem)};
	const uint64_t offset[] = {0, 0, BYTES * 2, 0};

	PAIR_CHECK(ftruncate(fd[1], BYTES) == 0, "no memfd");
	close(fd[3]);
	for (size_t i = 0; i < FR_ARRAY_LEN(fd); i++) {
		void *mh = &fd;
		int ret =
			reg(comm, mem, BYTES, PTR_CUDA, offset[i], fd[i], &mh);

		PAIR_CHECK(ret != 0 && mh == NULL, "dma-buf %zu was taken", i);
		PAIR_CHECK(i == 0 || i == 3 || fcntl(fd[i], F_GETFD) != -1,
			   "dma-buf %zu was closed", i);
	}
	close(fd[1]);
	close(fd[2]);
}

static void check_without(struct pair_member *me)
{
	PAIR_CHECK(ptr_support(me) == FR_PLUGIN_PTR_HOST,
		   "memory was promised that no provider here takes");
	PAIR_CHECK(pair_logged("GPU memory is not used: ") == 1,
		   "no line says why");
	PAIR_CHECK(cuda->contexts == 0, "a context was made");
	PAIR_CHECK(cuda->live() == 0, "the trial left memory");
}

static void run_without(struct pair_member *me)
{
	void *mem, *mh = me, *send, *recv;
	struct pair_buf out, in;

	check_without(me);
	mem = cuda->alloc(BYTES, 0);
	pair_join(me, 1 - me->index, &send, &recv);
	pair_expect("does not take memory of a GPU");
	PAIR_CHECK(fr_plugin_reg_mr(me->plugin, recv, mem, BYTES, PTR_CUDA,
				    &mh) != 0 &&
			   mh == NULL,
		   "memory of a GPU was taken");
	refuse_dmabufs(recv, mem);
	pair_buf_open(me, send, BYTES, &out);
	pair_buf_open(me, recv, BYTES, &in);
	if (me->index == 0) {
		pair_send(me, &out, BYTES);
		pair_recv(me, &in, BYTES);
	} else {
		pair_recv(me, &in, BYTES);
		pair_send(me, &out, BYTES);
	}
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	pair_meet(me, 1 - me->index);
	PAIR_OK(fr_plugin_close_send(me->plugin, send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, recv));
	cuda->free(mem);
	PAIR_CHECK(cuda->contexts == 0, "a context was made");
}

static void gpu_open(struct pair_member *me, void *comm, struct pair_buf *buf)
{
	buf->mem = cuda->alloc(BYTES, 0);
	buf->bytes = BYTES;
	buf->comm = comm;
	PAIR_OK(fr_plugin_reg_mr(me->plugin, comm, buf->mem, BYTES, PTR_CUDA,
				 &buf->mh));
}

static void flush(struct pair_member *me, struct pair_buf *buf, size_t bytes)
{
	void *data = buf->mem, *req = NULL;
	int size = (int)bytes;

	PAIR_OK(fr_plugin_iflush(me->plugin, buf->comm, 1, &data, &size,
				 &buf->mh, &req));
	PAIR_CHECK((req != NULL) == (bytes != 0), "flush of %zu bytes", bytes);
	if (req != NULL) {
		PAIR_OK(pair_test_wait(me, req, DEADLINE_MS, NULL));
	}
}

/* Early or not: the sender begins, or the receiver. */
static void gpu_exchange(struct pair_member *me, struct pair_buf *buf,
			 size_t bytes, unsigned long seed)
{
	bool early = seed % 2 == 0;
	void *req;
	int got = -1;

	if (me->index == 0) {
		pair_fill(cuda->alias(buf->mem), bytes, seed);
		if (!early) {
			pair_hear(me, 1);
		}
		req = pair_isend_wait(me, buf, bytes);
		if (early && bytes < 2000) {
			pair_tell(me, 1);
		}
		PAIR_OK(pair_test_wait(me, req, DEADLINE_MS, NULL));
		pair_meet(me, 1);
		return;
	}
	if (early && bytes < 2000) {
		pair_hear(me, 0);
	}
	req = pair_irecv_wait(me, buf, BYTES);
	if (!early) {
		pair_tell(me, 0);
	}
	PAIR_OK(pair_test_wait(me, req, DEADLINE_MS, &got));
	PAIR_CHECK(got == (int)bytes, "%d bytes of %zu", got, bytes);
	flush(me, buf, bytes);
	PAIR_CHECK(pair_is_filled(cuda->alias(buf->mem), bytes, seed),
		   "%zu bytes differ", bytes);
	pair_meet(me, 0);
}

/* Member 0 sends from the host's memory, then from a GPU; member 1 receives
 * into a GPU. */
static void run_with(struct pair_member *me)
{
	static const size_t sizes[] = {0, 1, 500, 1999, 8192, 70000, BYTES};
	struct pair_buf host, gpu;
	void *comm;

	PAIR_CHECK(ptr_support(me) == (FR_PLUGIN_PTR_HOST | PTR_CUDA),
		   "memory of a GPU is not promised");
	comm = me->index == 0 ? pair_connect(me, 1) : pair_accept(me, 0);
	gpu_open(me, comm, &gpu);
	pair_buf_open(me, comm, BYTES, &host);
	for (unsigned long i = 0; i < 6 * FR_ARRAY_LEN(sizes); i++) {
		bool from_host = me->index == 0 && i % 3 == 0;

		/* What a GPU sends is never early. */
		gpu_exchange(me, from_host ? &host : &gpu, sizes[i / 6],
			     i % 3 == 0 ? i : 2 * i + 1);
	}
	pair_buf_close(me, &host);
	PAIR_OK(fr_plugin_dereg_mr(me->plugin, comm, gpu.mh));
	cuda->free(gpu.mem);
	PAIR_OK(me->index == 0 ? fr_plugin_close_send(me->plugin, comm)
			       : fr_plugin_close_recv(me->plugin, comm));
	PAIR_CHECK(cuda->contexts == 0, "a context was made");
	PAIR_CHECK(cuda->live() == 0, "the trial left memory");
}

/* -- longer than a receive into a GPU ---------------------------------------
 */

#define GUARD 8192u
#define ROOM (BYTES - 2 * GUARD)
#define CANARY 0xee
#define TAG 7
#define GROUP 3

static const struct too_long {
	size_t send, recv;
	bool from_host;
	bool grouped; /* the last one of three */
} too_longs[] = {
	{500, 100, true, false},       {500, 0, true, true},
	{500, 499, false, false},      {8193, 8192, false, true},
	{200000, 0, false, false},     {200000, 1, false, true},
	{200000, 4095, false, false},  {200000, 4096, true, false},
	{200000, 199999, false, true},
};

static int one_send(struct pair_member *me, struct pair_buf *buf, size_t bytes,
		    int tag)
{
	uint64_t end = pair_now_ms() + pair_stretch(DEADLINE_MS);
	void *req = NULL;

	while (req == NULL && pair_now_ms() < end) {
		int ret = fr_plugin_isend(me->plugin, buf->comm, buf->mem,
					  bytes, tag, buf->mh, &req);

		if (ret != 0) {
			return ret;
		}
	}
	PAIR_CHECK(req != NULL, "no request");
	return pair_test_wait(me, req, DEADLINE_MS, NULL);
}

/* The receive is there before. A short one from the host is done all the same,
 * and it is the next call that says what became of it. */
static void long_send(struct pair_member *me, struct pair_buf *buf,
		      const struct too_long *t)
{
	int last = t->grouped ? GROUP - 1 : 0, ret;

	pair_hear(me, 1);
	pair_fill(t->from_host ? buf->mem : cuda->alias(buf->mem), t->send, 1);
	for (int i = 0; i < last; i++) {
		PAIR_OK(one_send(me, buf, 100, TAG + i));
	}
	ret = one_send(me, buf, t->send, TAG + last);
	while (ret == 0 && t->from_host && t->send <= 8192) {
		ret = one_send(me, buf, 1, TAG);
	}
	PAIR_CHECK(ret == FR_PLUGIN_INVALID_USAGE,
		   "a send of %zu bytes into %zu gave %d", t->send, t->recv,
		   ret);
}

/* Nothing but what was received differs from the canary. What came early, and
 * goes into the GPU by way of the NIC, may not be there yet. */
static void long_check(const uint8_t *mem, const struct too_long *t)
{
	PAIR_CHECK(!t->grouped || t->from_host ||
			   (pair_is_filled(mem, 100, 1) &&
			    pair_is_filled(mem + 100, 100, 1)),
		   "those beside it in its group are wrong");
	PAIR_CHECK(pair_is_all(mem + 200, GUARD - 200, CANARY) &&
			   (t->grouped || pair_is_all(mem, 200, CANARY)),
		   "written before a receive of %zu bytes", t->recv);
	PAIR_CHECK(pair_is_all(mem + GUARD + t->recv, ROOM - t->recv + GUARD,
			       CANARY),
		   "written behind a receive of %zu bytes", t->recv);
}

static void long_recv(struct pair_member *me, struct pair_buf *buf,
		      const struct too_long *t)
{
	void *data[GROUP] = {buf->mem, buf->mem + 100, buf->mem + GUARD};
	int cnt = t->grouped ? GROUP : 1, tag[GROUP] = {TAG, TAG + 1, TAG + 2};
	size_t bytes[GROUP] = {100, 100, t->recv};
	void *mh[GROUP] = {buf->mh, buf->mh, buf->mh}, *req = NULL;
	int ret;

	memset(cuda->alias(buf->mem), CANARY, BYTES);
	while (req == NULL) {
		PAIR_OK(fr_plugin_irecv(me->plugin, buf->comm, cnt,
					data + GROUP - cnt, bytes + GROUP - cnt,
					tag, mh, &req));
	}
	pair_tell(me, 0);
	ret = pair_test_wait(me, req, DEADLINE_MS, NULL);
	PAIR_CHECK(ret == FR_PLUGIN_INVALID_USAGE,
		   "%zu bytes into a receive of %zu gave %d", t->send, t->recv,
		   ret);
	long_check(cuda->alias(buf->mem), t);
}

/* Each ends its comm. */
static void run_too_long(struct pair_member *me)
{
	pair_expect("its receive only");
	for (size_t i = 0; i < FR_ARRAY_LEN(too_longs); i++) {
		const struct too_long *t = &too_longs[i];
		bool host = me->index == 0 && t->from_host;
		struct pair_buf buf;
		void *comm;

		comm = me->index == 0 ? pair_connect(me, 1)
				      : pair_accept(me, 0);
		if (host) {
			pair_buf_open(me, comm, BYTES, &buf);
		} else {
			gpu_open(me, comm, &buf);
		}
		if (me->index == 0) {
			long_send(me, &buf, t);
		} else {
			long_recv(me, &buf, t);
		}
		pair_meet(me, 1 - me->index);
		if (host) {
			pair_buf_close(me, &buf);
		} else {
			PAIR_OK(fr_plugin_dereg_mr(me->plugin, comm, buf.mh));
			cuda->free(buf.mem);
		}
		PAIR_OK(me->index == 0
				? fr_plugin_close_send(me->plugin, comm)
				: fr_plugin_close_recv(me->plugin, comm));
	}
	PAIR_CHECK(cuda->live() == 0, "memory is left");
}

static void run_case(const char *name, const char *provider, unsigned rails,
		     void (*run)(struct pair_member *me))
{
	struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = rails,
		.members = 2,
		.limit_s = 30,
		.env = load,
		.arg = run == run_with || run == run_too_long ? "" : NULL,
		.run = run,
	};

	pair_run(&pc);
}

static void run_provider(const char *provider, unsigned nth)
{
	unsigned rails = nth == 0 ? 2 : 1;

	run_case("no GPU in the network", provider, rails, run_without);
	run_case("messages of GPUs", provider, rails, run_with);
	run_case("too long for a GPU's receive", provider, rails, run_too_long);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "memory of a GPU", 15);
	pair_each_provider(run_provider);
	/* This one says that it takes such memory. */
	if (pair_provider("shm") != NULL) {
		run_case("promises", "shm", 1, check_without);
	}
	return pair_end();
}
