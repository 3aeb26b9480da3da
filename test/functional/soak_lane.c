#include "functional/soak_lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "fake/fake_cuda.h"
#include "functional/life.h"

_Atomic unsigned long *soak_ops;

static void did(enum soak_op op, unsigned long n)
{
	soak_ops[op] += n;
}

uint64_t soak_draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static struct fake_cuda *cuda(void)
{
	static struct fake_cuda *loaded;

	if (loaded == NULL) {
		loaded = fake_cuda_load();
	}
	return loaded;
}

/* -- what the dice say ------------------------------------------------------
 */

static bool one_in(uint64_t *dice, unsigned n)
{
	return soak_draw(dice) % n == 0;
}

static size_t some_bytes(uint64_t *dice, size_t most)
{
	static const size_t below[] = {100, 20000, 400000, SIZE_MAX};
	size_t limit = below[soak_draw(dice) % FR_ARRAY_LEN(below)];

	return soak_draw(dice) % (FR_MIN(limit, most) + 1);
}

static void draw_message(uint64_t *dice, bool gpus, struct lane_message *m)
{
	m->cnt =
		one_in(dice, 2)
			? 1
			: 1 + (unsigned)(soak_draw(dice) % FR_PLUGIN_MAX_RECVS);
	m->gpu_out = one_in(dice, 3) && gpus;
	m->gpu_in = one_in(dice, 2) && gpus;
	m->room = (m->gpu_out || m->gpu_in ? LANE_GPU_BYTES : LANE_BYTES) /
		  m->cnt / 8 * 8;
	for (unsigned i = 0; i < m->cnt; i++) {
		m->bytes[i] = some_bytes(dice, m->room);
	}
	m->seed = soak_draw(dice);
	m->first = (unsigned)(soak_draw(dice) % m->cnt);
	m->churn_out = one_in(dice, 3);
	m->churn_in = one_in(dice, 3);
	m->flush = one_in(dice, 2);
	m->late_out = one_in(dice, 4) ? soak_draw(dice) % 500 : 0;
	m->late_in = one_in(dice, 4) ? soak_draw(dice) % 500 : 0;
}

/* -- opening and closing ----------------------------------------------------
 */

static uint8_t *host_alloc(void)
{
	void *mem = mmap(NULL, LANE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	PAIR_CHECK(mem != MAP_FAILED, "mmap: %s", strerror(errno));
	return mem;
}

void lane_init(struct lane *l, bool gpu)
{
	l->state = LANE_CLOSED;
	l->moved_ms = pair_now_ms();
	l->out.host = host_alloc();
	l->in.host = host_alloc();
	l->out.gpu = gpu ? cuda()->alloc(LANE_GPU_BYTES, 0) : NULL;
	l->in.gpu = gpu ? cuda()->alloc(LANE_GPU_BYTES, 0) : NULL;
}

void lane_free(struct lane *l)
{
	munmap(l->out.host, LANE_BYTES);
	munmap(l->in.host, LANE_BYTES);
	if (l->out.gpu != NULL) {
		cuda()->free(l->out.gpu);
		cuda()->free(l->in.gpu);
	}
}

static int mem_reg(struct lane *l, void *comm, struct lane_mem *mem)
{
	int ret;

	l->at = "regMr";
	ret = fr_plugin_reg_mr(l->me->plugin, comm, mem->host, LANE_BYTES,
			       FR_PLUGIN_PTR_HOST, &mem->host_mh);

	if (ret == 0 && mem->gpu != NULL) {
		l->at = "regMr";
		ret = fr_plugin_reg_mr(l->me->plugin, comm, mem->gpu,
				       LANE_GPU_BYTES, LANE_PTR_CUDA,
				       &mem->gpu_mh);
	}
	return ret;
}

static void dereg(struct lane *l, void *comm, void **mh)
{
	if (*mh != NULL) {
		PAIR_OK(fr_plugin_dereg_mr(l->me->plugin, comm, *mh));
		*mh = NULL;
	}
}

void lane_close(struct lane *l)
{
	dereg(l, l->send, &l->tx.churned);
	dereg(l, l->recv, &l->rx.churned);
	dereg(l, l->send, &l->out.host_mh);
	dereg(l, l->send, &l->out.gpu_mh);
	dereg(l, l->recv, &l->in.host_mh);
	dereg(l, l->recv, &l->in.gpu_mh);
	life_close_send(l->me, l->send);
	life_close_recv(l->me, l->recv);
	life_close_listen(l->me, l->listen);
	l->send = NULL;
	l->recv = NULL;
	l->listen = NULL;
	l->state = LANE_CLOSED;
}

static int lane_listen(struct lane *l, void *own, bool *told)
{
	int ret;

	memset(own, 0, FR_PLUGIN_HANDLE_BYTES);
	l->at = "listen";
	ret = fr_plugin_listen(l->me->plugin, l->me->ctx, 0, own, &l->listen);
	*told = ret == 0;
	l->state = LANE_CONNECTING;
	return ret;
}

static int lane_connect(struct lane *l)
{
	int ret = 0;

	if (!l->aimed && l->has_mail) {
		memcpy(l->handle, l->inbox, sizeof(l->handle));
		l->has_mail = false;
		l->aimed = true;
	}
	if (l->send == NULL && l->aimed) {
		l->at = "connect";
		ret = fr_plugin_connect(l->me->plugin, l->me->ctx, 0, l->handle,
					&l->send);
	}
	if (ret == 0 && l->recv == NULL) {
		l->at = "accept";
		ret = fr_plugin_accept(l->me->plugin, l->listen, &l->recv);
	}
	if (ret != 0 || l->send == NULL || l->recv == NULL) {
		return ret;
	}
	life_close_listen(l->me, l->listen);
	l->listen = NULL;
	l->aimed = false;
	l->was_open = true;
	l->moved_ms = pair_now_ms();
	l->state = LANE_BETWEEN;
	ret = mem_reg(l, l->send, &l->out);
	return ret != 0 ? ret : mem_reg(l, l->recv, &l->in);
}

/* -- messages ---------------------------------------------------------------
 */

/* Of what the CPU may look at. */
static uint8_t *half_bytes(const struct lane_half *h, bool gpu, unsigned i)
{
	uint8_t *at = h->mem + i * h->m.room;

	return gpu ? cuda()->alias(at) : at;
}

static int half_begin(struct lane *l, struct lane_half *h, void *comm,
		      struct lane_mem *mem, bool gpu, bool churn)
{
	size_t bytes = gpu ? LANE_GPU_BYTES : LANE_BYTES;
	int ret;

	h->mem = gpu ? mem->gpu : mem->host;
	h->mh = gpu ? mem->gpu_mh : mem->host_mh;
	h->begun = 0;
	h->ended = 0;
	h->flushing = false;
	h->over = false;
	memset(h->req, 0, sizeof(h->req));
	if (!churn) {
		return 0;
	}
	l->at = "regMr";
	ret = fr_plugin_reg_mr(l->me->plugin, comm, h->mem, bytes,
			       gpu ? LANE_PTR_CUDA : FR_PLUGIN_PTR_HOST,
			       &h->churned);
	h->mh = h->churned;
	did(SOAK_CHURNS, ret == 0);
	return ret;
}

static int tx_move(struct lane *l)
{
	struct lane_half *h = &l->tx;
	unsigned cnt = h->m.cnt, i = (h->m.first + h->begun) % cnt;
	int ret = 0, done = 0;

	if (h->m.late_out != 0) {
		h->m.late_out--;
		return 0;
	}
	if (h->begun < cnt) {
		l->at = "isend";
		ret = fr_plugin_isend(l->me->plugin, l->send,
				      h->mem + i * h->m.room, h->m.bytes[i],
				      (int)i, h->mh, &h->req[h->begun]);
		h->begun += h->req[h->begun] != NULL;
	}
	if (ret == 0 && h->ended < h->begun) {
		l->at = "test";
		ret = fr_plugin_test(l->me->plugin, h->req[h->ended], &done,
				     NULL);
		h->ended += done != 0;
	}
	if (ret == 0 && h->ended == cnt) {
		dereg(l, l->send, &h->churned);
		h->over = true;
		l->moved_ms = pair_now_ms();
		did(SOAK_GPU_SENDS, h->m.gpu_out);
	}
	return ret;
}

static int rx_post(struct lane *l, struct lane_half *h)
{
	void *data[FR_PLUGIN_MAX_RECVS], *mhs[FR_PLUGIN_MAX_RECVS];
	size_t room[FR_PLUGIN_MAX_RECVS];
	int tags[FR_PLUGIN_MAX_RECVS], ret;

	for (unsigned i = 0; i < h->m.cnt; i++) {
		data[i] = h->mem + i * h->m.room;
		mhs[i] = h->mh;
		room[i] = h->m.room;
		tags[i] = (int)i;
	}
	l->at = "irecv";
	ret = fr_plugin_irecv(l->me->plugin, l->recv, (int)h->m.cnt, data, room,
			      tags, mhs, h->req);
	h->begun = h->req[0] != NULL;
	return ret;
}

/* NULL, and so flushed already, is what the host's memory gets. */
static int rx_flush(struct lane *l, struct lane_half *h)
{
	void *data[FR_PLUGIN_MAX_RECVS], *mhs[FR_PLUGIN_MAX_RECVS];
	int ret;

	for (unsigned i = 0; i < h->m.cnt; i++) {
		data[i] = h->mem + i * h->m.room;
		mhs[i] = h->mh;
	}
	l->at = "iflush";
	ret = fr_plugin_iflush(l->me->plugin, l->recv, (int)h->m.cnt, data,
			       h->sizes, mhs, h->req);
	PAIR_CHECK(h->req[0] == NULL || h->m.gpu_in,
		   "the host's memory was flushed");
	h->flushing = ret == 0 && h->req[0] != NULL;
	did(h->flushing ? SOAK_FLUSHES : SOAK_EMPTY_FLUSHES, ret == 0);
	return ret;
}

static void rx_check(struct lane *l, struct lane_half *h)
{
	for (unsigned i = 0; i < h->m.cnt; i++) {
		PAIR_CHECK(h->sizes[i] == (int)h->m.bytes[i] &&
				   pair_is_filled(half_bytes(h, h->m.gpu_in, i),
						  h->m.bytes[i], h->m.seed + i),
			   "message %u of %u, %zu bytes, came wrong in step %u",
			   i, h->m.cnt, h->m.bytes[i], l->step);
		did(SOAK_MESSAGES, 1);
		did(SOAK_KIB, h->m.bytes[i] / 1024);
	}
	did(SOAK_GROUPS, h->m.cnt > 1);
	did(SOAK_GPU_RECVS, h->m.gpu_in);
	dereg(l, l->recv, &h->churned);
	h->over = true;
	l->moved_ms = pair_now_ms();
}

static int rx_move(struct lane *l)
{
	struct lane_half *h = &l->rx;
	int ret = 0, done = 0;

	if (h->m.late_in != 0) {
		h->m.late_in--;
		return 0;
	}
	if (h->begun == 0) {
		return rx_post(l, h);
	}
	l->at = "test";
	ret = fr_plugin_test(l->me->plugin, h->req[0], &done,
			     h->flushing ? NULL : h->sizes);
	if (ret != 0 || done == 0) {
		return ret;
	}
	if (!h->flushing && (h->m.flush || h->m.gpu_in)) {
		ret = rx_flush(l, h);
		if (ret != 0 || h->flushing) {
			return ret;
		}
	}
	rx_check(l, h);
	return 0;
}

/* -- steps ------------------------------------------------------------------
 */

/* Both messages are drawn at both ends, in one order. */
static int begin_messages(struct lane *l)
{
	bool first = l->me->index < l->with;
	struct lane_message m[2] = {0};
	int ret;

	draw_message(&l->dice, l->out.gpu != NULL, &m[0]);
	draw_message(&l->dice, l->out.gpu != NULL, &m[1]);
	l->tx.m = m[!first];
	l->rx.m = m[first];
	l->state = LANE_MOVING;
	ret = half_begin(l, &l->tx, l->send, &l->out, l->tx.m.gpu_out,
			 l->tx.m.churn_out);
	for (unsigned i = 0; ret == 0 && i < l->tx.m.cnt; i++) {
		pair_fill(half_bytes(&l->tx, l->tx.m.gpu_out, i),
			  l->tx.m.bytes[i], l->tx.m.seed + i);
	}
	return ret != 0 ? ret
			: half_begin(l, &l->rx, l->recv, &l->in, l->rx.m.gpu_in,
				     l->rx.m.churn_in);
}

static int begin_step(struct lane *l)
{
	if (l->step == l->steps) {
		l->state = LANE_OVER;
		return 0;
	}
	l->step++;
	if (one_in(&l->dice, 5) && l->reopens) {
		lane_close(l);
		did(SOAK_RECONNECTS, 1);
		l->reopened++;
		return 0;
	}
	return begin_messages(l);
}

int lane_move(struct lane *l, void *own, bool *told)
{
	int ret = 0;

	*told = false;
	switch (l->state) {
	case LANE_CLOSED:
		return lane_listen(l, own, told);
	case LANE_CONNECTING:
		return lane_connect(l);
	case LANE_BETWEEN:
		return begin_step(l);
	case LANE_MOVING:
		if (!l->tx.over) {
			ret = tx_move(l);
		}
		if (ret == 0 && !l->rx.over) {
			ret = rx_move(l);
		}
		if (ret == 0 && l->tx.over && l->rx.over) {
			l->state = LANE_BETWEEN;
		}
		return ret;
	case LANE_OVER:
		break;
	}
	return 0;
}
