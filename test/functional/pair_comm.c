/* Connections, messages and the traffic beside a test. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "functional/pair.h"

#define ECHO_BYTES (256u << 10)
#define TAG 7

void *pair_listen(struct pair_member *me, void *handle)
{
	void *listen = NULL;
	int ret;

	ret = fr_plugin_listen(me->plugin, me->ctx, 0, handle, &listen);
	PAIR_CHECK(ret == 0 && listen != NULL, "listen: %s",
		   fr_plugin_result_text(ret));
	return listen;
}

void *pair_accept_wait(struct pair_member *me, void *listen)
{
	void *comm = NULL;

	while (comm == NULL) {
		int ret = fr_plugin_accept(me->plugin, listen, &comm);

		PAIR_CHECK(ret == 0, "accept: %s", fr_plugin_result_text(ret));
		pair_nap_us(comm == NULL ? 50 : 0);
	}
	return comm;
}

void *pair_connect_wait(struct pair_member *me, void *handle)
{
	void *comm = NULL;

	while (comm == NULL) {
		int ret = fr_plugin_connect(me->plugin, me->ctx, 0, handle,
					    &comm);

		PAIR_CHECK(ret == 0, "connect: %s", fr_plugin_result_text(ret));
		pair_nap_us(comm == NULL ? 50 : 0);
	}
	return comm;
}

void *pair_connect(struct pair_member *me, unsigned to)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];

	pair_get(me, to, handle, sizeof(handle));
	return pair_connect_wait(me, handle);
}

void *pair_accept(struct pair_member *me, unsigned from)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen = pair_listen(me, handle);
	void *comm;

	pair_put(me, from, handle, sizeof(handle));
	comm = pair_accept_wait(me, listen);
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
	return comm;
}

void pair_join(struct pair_member *me, unsigned with, void **send, void **recv)
{
	if (me->index < with) {
		*send = pair_connect(me, with);
		*recv = pair_accept(me, with);
	} else {
		*recv = pair_accept(me, with);
		*send = pair_connect(me, with);
	}
}

void pair_buf_open(struct pair_member *me, void *comm, size_t bytes,
		   struct pair_buf *buf)
{
	int ret;

	buf->bytes = bytes;
	buf->comm = comm;
	buf->mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	PAIR_CHECK(buf->mem != MAP_FAILED, "mmap: %s", strerror(errno));
	ret = fr_plugin_reg_mr(me->plugin, comm, buf->mem, bytes,
			       FR_PLUGIN_PTR_HOST, &buf->mh);
	PAIR_CHECK(ret == 0, "regMr: %s", fr_plugin_result_text(ret));
}

void pair_buf_close(struct pair_member *me, struct pair_buf *buf)
{
	int ret = fr_plugin_dereg_mr(me->plugin, buf->comm, buf->mh);

	PAIR_CHECK(ret == 0, "deregMr: %s", fr_plugin_result_text(ret));
	munmap(buf->mem, buf->bytes);
	buf->mem = NULL;
}

static uint64_t word_of(unsigned long seed, size_t i)
{
	return (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) +
	       i * UINT64_C(0xd1b54a32d192ed03);
}

void pair_fill(uint8_t *mem, size_t bytes, unsigned long seed)
{
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word = word_of(seed, i);

		memcpy(mem + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

bool pair_is_filled(const uint8_t *mem, size_t bytes, unsigned long seed)
{
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word = word_of(seed, i);

		if (memcmp(mem + i, &word, bytes - i < 8 ? bytes - i : 8) !=
		    0) {
			return false;
		}
	}
	return true;
}

bool pair_is_all(const uint8_t *mem, size_t bytes, uint8_t value)
{
	return bytes == 0 ||
	       (mem[0] == value && memcmp(mem, mem + 1, bytes - 1) == 0);
}

int pair_isend(struct pair_member *me, const struct pair_buf *buf, size_t bytes,
	       void **req)
{
	return fr_plugin_isend(me->plugin, buf->comm, buf->mem, bytes, TAG,
			       buf->mh, req);
}

int pair_irecv(struct pair_member *me, const struct pair_buf *buf, size_t bytes,
	       void **req)
{
	void *data = buf->mem, *mh = buf->mh;
	int tag = TAG;

	return fr_plugin_irecv(me->plugin, buf->comm, 1, &data, &bytes, &tag,
			       &mh, req);
}

void *pair_isend_wait(struct pair_member *me, const struct pair_buf *buf,
		      size_t bytes)
{
	void *req = NULL;

	while (req == NULL) {
		int ret = pair_isend(me, buf, bytes, &req);

		PAIR_CHECK(ret == 0, "isend: %s", fr_plugin_result_text(ret));
	}
	return req;
}

void *pair_irecv_wait(struct pair_member *me, const struct pair_buf *buf,
		      size_t bytes)
{
	void *req = NULL;

	while (req == NULL) {
		int ret = pair_irecv(me, buf, bytes, &req);

		PAIR_CHECK(ret == 0, "irecv: %s", fr_plugin_result_text(ret));
	}
	return req;
}

bool pair_test(struct pair_member *me, void *req, int *sizes)
{
	int done = 0;

	PAIR_OK(fr_plugin_test(me->plugin, req, &done, sizes));
	return done != 0;
}

int pair_test_wait(struct pair_member *me, void *req, unsigned ms, int *size)
{
	uint64_t limit = pair_now_ms() + pair_stretch(ms);
	int done = 0;

	while (done == 0) {
		int ret = fr_plugin_test(me->plugin, req, &done, size);

		if (ret != 0) {
			return ret;
		}
		if (done == 0 && pair_now_ms() > limit) {
			return -ETIMEDOUT;
		}
	}
	return 0;
}

void pair_send(struct pair_member *me, const struct pair_buf *buf, size_t bytes)
{
	int ret = pair_test_wait(me, pair_isend_wait(me, buf, bytes), 20000,
				 NULL);

	PAIR_CHECK(ret == 0, "a send ended with %d", ret);
}

void pair_recv(struct pair_member *me, const struct pair_buf *buf, size_t bytes)
{
	int size = -1;
	int ret = pair_test_wait(me, pair_irecv_wait(me, buf, buf->bytes),
				 20000, &size);

	PAIR_CHECK(ret == 0, "a receive ended with %d", ret);
	PAIR_CHECK(size == (int)bytes, "%d bytes came, not %zu", size, bytes);
}

/* -- traffic beside the test ------------------------------------------------*/

void pair_echo_open(struct pair_member *me, unsigned with,
		    struct pair_echo *echo)
{
	memset(echo, 0, sizeof(*echo));
	pair_join(me, with, &echo->send, &echo->recv);
	pair_buf_open(me, echo->send, ECHO_BYTES, &echo->out);
	pair_buf_open(me, echo->recv, ECHO_BYTES, &echo->in);
	echo->last_ms = pair_now_ms();
}

/* Small ones and striped ones take turns. */
static size_t echo_bytes(const struct pair_echo *echo)
{
	if (echo->last) {
		return 1;
	}
	return echo->rounds % 2 == 0 ? 1000 : ECHO_BYTES;
}

static int step_send(struct pair_member *me, struct pair_echo *echo)
{
	int done = 0, ret = 0;

	if (!echo->out_begun) {
		ret = pair_isend(me, &echo->out, echo_bytes(echo),
				 &echo->out_req);
		echo->out_begun = echo->out_req != NULL;
	} else if (echo->out_req != NULL) {
		ret = fr_plugin_test(me->plugin, echo->out_req, &done, NULL);
		if (done != 0) {
			echo->out_req = NULL;
		}
	}
	return ret;
}

static int step_recv(struct pair_member *me, struct pair_echo *echo)
{
	int done = 0, ret = 0, size = -1;

	if (!echo->in_begun) {
		ret = pair_irecv(me, &echo->in, ECHO_BYTES, &echo->in_req);
		echo->in_begun = echo->in_req != NULL;
	} else if (echo->in_req != NULL) {
		ret = fr_plugin_test(me->plugin, echo->in_req, &done, &size);
		if (done != 0) {
			echo->in_req = NULL;
			echo->last = size == 1;
			PAIR_CHECK(size == (int)echo_bytes(echo) &&
					   pair_is_filled(echo->in.mem,
							  echo_bytes(echo),
							  echo->rounds),
				   "traffic beside the test: round %lu came "
				   "wrong",
				   echo->rounds);
		}
	}
	return ret;
}

static void round_end(struct pair_echo *echo)
{
	uint64_t now = pair_now_ms();

	if (!echo->in_begun || !echo->out_begun || echo->in_req != NULL ||
	    echo->out_req != NULL) {
		return;
	}
	if (now - echo->last_ms > echo->worst_ms) {
		echo->worst_ms = now - echo->last_ms;
	}
	echo->last_ms = now;
	echo->in_begun = false;
	echo->out_begun = false;
	echo->rounds++;
	echo->ended = echo->last;
}

int pair_echo_ask(struct pair_member *me, struct pair_echo *echo)
{
	int ret;

	if (echo->ended) {
		return 0;
	}
	if (!echo->out_begun) {
		pair_fill(echo->out.mem, echo_bytes(echo), echo->rounds);
	}
	ret = step_recv(me, echo);
	if (ret == 0 && echo->in_begun) {
		ret = step_send(me, echo);
	}
	round_end(echo);
	return ret;
}

int pair_echo_answer(struct pair_member *me, struct pair_echo *echo)
{
	int ret = echo->ended ? 0 : step_recv(me, echo);

	if (ret == 0 && echo->in_begun && echo->in_req == NULL) {
		if (!echo->out_begun) {
			memcpy(echo->out.mem, echo->in.mem, echo_bytes(echo));
		}
		ret = step_send(me, echo);
	}
	round_end(echo);
	return ret;
}

void pair_echo_end(struct pair_member *me, struct pair_echo *echo)
{
	int ret = 0;

	while (ret == 0 && (echo->in_begun || echo->out_begun)) {
		ret = pair_echo_ask(me, echo);
	}
	echo->last = true;
	while (ret == 0 && !echo->ended) {
		ret = pair_echo_ask(me, echo);
	}
	PAIR_CHECK(ret == 0, "traffic beside the test: %s",
		   fr_plugin_result_text(ret));
}

void pair_echo_serve(struct pair_member *me, struct pair_echo *echo)
{
	int ret = 0;

	while (ret == 0 && !echo->ended) {
		ret = pair_echo_answer(me, echo);
	}
	PAIR_CHECK(ret == 0, "traffic beside the test: %s",
		   fr_plugin_result_text(ret));
}

void pair_echo_close(struct pair_member *me, struct pair_echo *echo)
{
	pair_buf_close(me, &echo->out);
	pair_buf_close(me, &echo->in);
	PAIR_CHECK(fr_plugin_close_send(me->plugin, echo->send) == 0,
		   "closeSend");
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, echo->recv) == 0,
		   "closeRecv");
}
