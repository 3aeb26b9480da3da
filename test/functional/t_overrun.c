/*
 * Completion queues of the least size: many comms share one, and its process
 * does not poll while the peer sends all that it may. Nothing is lost, or the
 * loss is said and ends what depends on it.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "base/util.h"
#include "functional/life.h"
#include "prov/use.h"

#define CQ_SIZE "16"
#define COMMS 8u
#define EACH 1250u  /* messages of a comm */
#define LIMIT 256u  /* requests of a comm */
#define SLOT 12000u /* more than what goes without its receive */
#define AHEAD 48u   /* sends that are under way at the least */
#define TOLD_MS 300u
#define SLEEP_MS 2000u
#define END_MS 30000u

static void set_env(unsigned i, const void *arg)
{
	(void)i;
	(void)arg;
	setenv("OFI_NCCL_CQ_SIZE", CQ_SIZE, 1);
	setenv("OFI_NCCL_KEEPER", "0", 1); /* nobody polls beside the test */
}

/* ---- a process that does not poll ---- */

struct lane {
	struct pair_buf buf;
	void *req[LIMIT];
	unsigned posted, done;
};

static struct lane lanes[COMMS];

static size_t bytes_of(unsigned n)
{
	static const size_t sizes[] = {8, 9000, 0, 3000, SLOT};

	return sizes[n % FR_ARRAY_LEN(sizes)];
}

/* The slot of message @n of the lane. */
static struct pair_buf slot_of(const struct lane *lane, unsigned n)
{
	struct pair_buf buf = lane->buf;

	buf.mem += (size_t)SLOT * (n % LIMIT);
	return buf;
}

static bool lane_post(struct pair_member *me, struct lane *lane)
{
	struct pair_buf buf = slot_of(lane, lane->posted);
	unsigned n = lane->posted;
	void *req = NULL;

	if (n == EACH || n - lane->done == LIMIT) {
		return false;
	}
	if (me->index == 0) {
		pair_fill(buf.mem, bytes_of(n), n);
		PAIR_OK(pair_isend(me, &buf, bytes_of(n), &req));
	} else {
		memset(buf.mem, 0xee, SLOT);
		PAIR_OK(pair_irecv(me, &buf, SLOT, &req));
	}
	if (req == NULL) {
		return false;
	}
	lane->req[lane->posted++ % LIMIT] = req;
	return true;
}

static void lane_test(struct pair_member *me, struct lane *lane)
{
	struct pair_buf buf = slot_of(lane, lane->done);
	size_t bytes = bytes_of(lane->done);
	int size = -1;

	if (lane->done == lane->posted ||
	    !pair_test(me, lane->req[lane->done % LIMIT], &size)) {
		return;
	}
	PAIR_CHECK(size == (int)bytes, "message %u has %d bytes", lane->done,
		   size);
	PAIR_CHECK(me->index == 0 ||
			   (pair_is_filled(buf.mem, bytes, lane->done) &&
			    pair_is_all(buf.mem + bytes, SLOT - bytes, 0xee)),
		   "message %u came wrong", lane->done);
	lane->done++;
}

/* Return: messages that are to come. */
static unsigned lanes_step(struct pair_member *me, unsigned *posted)
{
	unsigned left = 0;

	*posted = 0;
	for (unsigned c = 0; c < COMMS; c++) {
		while (lane_post(me, &lanes[c])) {
		}
		lane_test(me, &lanes[c]);
		*posted += lanes[c].posted;
		left += EACH - lanes[c].done;
	}
	return left;
}

/* Connections begin with a message that is written, so that each way is open
 * when one of the two falls asleep. */
static void lanes_open(struct pair_member *me)
{
	for (unsigned c = 0; c < COMMS; c++) {
		void *comm = me->index == 0 ? pair_connect(me, 1)
					    : pair_accept(me, 0);

		pair_buf_open(me, comm, (size_t)SLOT * LIMIT, &lanes[c].buf);
		for (unsigned r = 0; r < me->pc->rails; r++) {
			if (me->index == 0) {
				pair_send(me, &lanes[c].buf, SLOT);
			} else {
				struct pair_buf first = lanes[c].buf;

				first.bytes = SLOT;
				pair_recv(me, &first, SLOT);
			}
		}
	}
}

static void lanes_close(struct pair_member *me)
{
	for (unsigned c = 0; c < COMMS; c++) {
		void *comm = lanes[c].buf.comm;

		pair_buf_close(me, &lanes[c].buf);
		PAIR_OK(me->index == 0
				? fr_plugin_close_send(me->plugin, comm)
				: fr_plugin_close_recv(me->plugin, comm));
	}
}

/* All receives are posted, and the peer has heard of most of them. */
static void fall_asleep(struct pair_member *me)
{
	uint64_t end = pair_now_ms() + TOLD_MS;
	unsigned posted;

	while (pair_now_ms() < end) {
		PAIR_CHECK(lanes_step(me, &posted) == COMMS * EACH,
			   "a message came early");
	}
	PAIR_CHECK(posted == COMMS * LIMIT, "%u receives were taken", posted);
	pair_tell(me, 0);
	pair_at(me, "asleep");
	pair_nap_us(SLEEP_MS * 1000);
	pair_hear(me, 0);
}

/* Until the peer has fallen asleep; a listener is what is polled by. */
static void wait_awake(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen = pair_listen(me, handle), *comm = NULL;

	while (!pair_told(me, 1)) {
		PAIR_OK(fr_plugin_accept(me->plugin, listen, &comm));
		PAIR_CHECK(comm == NULL, "nobody connects");
	}
	pair_hear(me, 1);
	PAIR_OK(fr_plugin_close_listen(me->plugin, listen));
}

static void run_asleep(struct pair_member *me)
{
	unsigned posted, left, before = 0;
	bool told = false;

	pair_at(me, "connecting");
	lanes_open(me);
	if (me->index == 1) {
		fall_asleep(me);
	} else {
		wait_awake(me);
	}
	pair_at(me, "10,000 messages");
	while ((left = lanes_step(me, &posted)) != 0) {
		if (me->index == 0 && !told && posted >= AHEAD) {
			pair_tell(me, 1);
			told = true;
		}
		pair_nap_us(posted + left == before ? 50 : 0);
		before = posted + left;
	}
	pair_meet(me, !me->index);
	lanes_close(me);
}

/* ---- a queue that is overrun ---- */

#define MSGS 40u /* fewer than announcements that are under way at once */
#define MSG_BYTES 16384u

static void set_env_prov(unsigned i, const void *arg)
{
	set_env(i, arg);
	setenv("OFI_NCCL_ENDPOINT_PER_COMM", "1", 1);
	PAIR_CHECK(prov_load(arg) != NULL, "no provider in memory");
}

/* The end of the comm's requests, @done of them with success. Those must be
 * right. Return: what ended the rest. */
static int requests_end(struct pair_member *me, void **req,
			const struct pair_buf *in, unsigned *done)
{
	int ends = 0;

	*done = 0;
	for (unsigned i = 0; i < MSGS; i++) {
		const uint8_t *mem = in->mem + (size_t)MSG_BYTES * i;
		int size = -1, ret;

		if (req[i] == NULL) {
			continue;
		}
		ret = pair_test_wait(me, req[i], END_MS, &size);
		PAIR_CHECK(ret == 0 || ret == PAIR_REMOTE,
			   "request %u ended with %d", i, ret);
		PAIR_CHECK(ret != 0 || size != MSG_BYTES ||
				   pair_is_filled(mem, MSG_BYTES, i),
			   "message %u is done and is wrong", i);
		*done += ret == 0;
		ends = ret != 0 ? ret : ends;
	}
	return ends;
}

/* Only the sends are polled, and what they bring is more than the receiver's
 * queue takes. */
static void fill_queue(struct pair_member *me, const struct pair_buf *out,
		       const struct pair_buf *in, void **send, void **recv)
{
	for (unsigned i = 0; i < MSGS; i++) {
		struct pair_buf to = *in;

		to.mem += (size_t)MSG_BYTES * i;
		recv[i] = pair_irecv_wait(me, &to, MSG_BYTES);
	}
	for (unsigned i = 0; i < MSGS; i++) {
		struct pair_buf from = *out;

		from.mem += (size_t)MSG_BYTES * i;
		pair_fill(from.mem, MSG_BYTES, i);
		send[i] = NULL;
		while (send[i] == NULL &&
		       pair_isend(me, &from, MSG_BYTES, &send[i]) == 0) {
		}
	}
}

static void run_overrun(struct pair_member *me)
{
	void *send, *recv, *sends[MSGS], *recvs[MSGS];
	struct pair_buf out, in;
	unsigned done;
	int ret;

	pair_expect("cannot read its completion queue: ");
	pair_expect("fenced: a completion queue broke");
	pair_expect("is lost");
	pair_open(me);
	life_join_self(me, &send, &recv);
	pair_buf_open(me, send, (size_t)MSGS * MSG_BYTES, &out);
	pair_buf_open(me, recv, (size_t)MSGS * MSG_BYTES, &in);
	life_pass(me, &out, &in, MSG_BYTES, 1);
	pair_at(me, "filling the queue");
	fill_queue(me, &out, &in, sends, recvs);
	pair_at(me, "after the overrun");
	ret = requests_end(me, recvs, &in, &done);
	PAIR_CHECK(ret == PAIR_REMOTE, "the receives: %d, %u done", ret, done);
	(void)requests_end(me, sends, &out, &done);
	PAIR_CHECK(pair_logged("cannot read its completion queue: ") != 0,
		   "nobody said that a queue was overrun");
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	PAIR_OK(fr_plugin_close_send(me->plugin, send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, recv));
	/* What is opened anew works. */
	life_use(me, 5);
	pair_close(me);
}

/* ---- all of it ---- */

static void over(const char *provider, unsigned nth)
{
	struct pair_case pc = {
		.name = "10,000 messages for a process that does not poll",
		.provider = provider,
		.rails = nth == 0 ? 2 : 1,
		.members = 2,
		.limit_s = 60,
		.run = run_asleep,
		.env = set_env,
	};

	pair_spawn(&pc); /* they sleep most of the time */
}

static void over_memory(void)
{
	static const struct fr_prov efa = {
		.name = "efa",
		.domains = {"rdmap0s6-rdm"},
		.version = FI_VERSION(1, 22),
		.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
			   FI_MR_PROV_KEY,
		.mr_key_size = 8,
		.cq_data_size = 4,
		.max_msg_size = 1u << 30,
		.overruns = true,
	};
	const struct pair_case pc = {
		.name = "an overrun",
		.provider = efa.name,
		.rails = 1,
		.members = 1,
		.limit_s = 40,
		.run = run_overrun,
		.env = set_env_prov,
		.arg = &efa,
		.plugin_late = true,
	};

	pair_run(&pc);
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "short completion queues", 15);
	over_memory();
	pair_all_providers(over);
	return pair_end();
}
