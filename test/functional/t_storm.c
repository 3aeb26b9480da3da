/*
 * libfabric says "again" nearly always, or many thousand times in a row, while
 * eight comms each way are kept full: all arrives, no comm waits while the
 * others go on, no call keeps the CPU instead of coming back, and nothing is
 * left behind by what was tried again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/life.h"
#include "shim/use.h"

#define COMMS 8u /* each way */
#define LANES (2 * COMMS)
#define AHEAD 4u
#define SLOT (64u << 10)
#define WARM 32u /* messages of each comm before the storm */
#define CALL_NS 10000000ull
#define REG_NS 50000000ull /* it cannot say "again": it sleeps, and tries */
#define CALLS_OVER 3u	   /* the kernel's work for others counts as ours */
#define TAKEN_MS 20u	   /* a longer stop of all is the machine's */
#define STARVED_MS 1000u
#define SLACK_KIB 4096

struct storm {
	const char *name;
	const char *spec;
	/* With shm, which refuses most posts of a full peer by itself: each
	 * attempt may begin a burst. */
	const char *spec_shm;
	const char *kinds; /* that must have been refused */
	unsigned refused;
	unsigned messages; /* of each comm */
	bool once;
};

/* One comm. */
struct lane {
	bool sends;
	unsigned number; /* the same for both ends */
	struct pair_buf buf;
	void *req[AHEAD];
	unsigned posted, done;
	uint64_t last_ms; /* by the clock below */
};

static const struct fr_shim_api *shim; /* of a member */
static struct lane lanes[LANES];

static const size_t sizes[] = {100, 4096, 9000, SLOT};

static void set_env(unsigned i, const void *arg)
{
	(void)i;
	(void)arg;
	shim = shim_must_load(NULL);
	/* A burst is a matter of passes, not of the machine's other users. */
	setenv("OFI_NCCL_YIELD_AFTER", "0", 1);
}

/* -- calls, by the CPU that they take ---------------------------------------
 */

static struct {
	unsigned over;
	uint64_t worst_ns;
} calls;

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void call_took(uint64_t began, uint64_t limit_ns)
{
	uint64_t ns = cpu_ns() - began;

	calls.over += ns > pair_stretch(1) * limit_ns;
	calls.worst_ns = FR_MAX(calls.worst_ns, ns);
}

#define TIMED_OK(limit_ns, call)                                               \
	do {                                                                   \
		uint64_t began_ = cpu_ns();                                    \
                                                                               \
		PAIR_OK(call);                                                 \
		call_took(began_, limit_ns);                                   \
	} while (0)

/* -- a clock that goes on while messages come -------------------------------
 */

static struct {
	uint64_t ms;
	uint64_t seen_ms;
	uint64_t worst_ms;
} clock_of_all;

static void lane_came(struct lane *lane)
{
	uint64_t now = pair_now_ms();

	clock_of_all.ms += FR_MIN(now - clock_of_all.seen_ms, TAKEN_MS);
	clock_of_all.seen_ms = now;
	clock_of_all.worst_ms =
		FR_MAX(clock_of_all.worst_ms, clock_of_all.ms - lane->last_ms);
	lane->last_ms = clock_of_all.ms;
}

static void clock_begin(void)
{
	memset(&clock_of_all, 0, sizeof(clock_of_all));
	memset(&calls, 0, sizeof(calls));
	clock_of_all.seen_ms = pair_now_ms();
	for (unsigned i = 0; i < LANES; i++) {
		lanes[i].posted = 0;
		lanes[i].done = 0;
		lanes[i].last_ms = 0;
	}
}

/* -- messages ---------------------------------------------------------------
 */

static size_t lane_bytes(const struct lane *lane, unsigned k)
{
	return sizes[(k + lane->number) % FR_ARRAY_LEN(sizes)];
}

static uint8_t *lane_mem(const struct lane *lane, unsigned k)
{
	return lane->buf.mem + (size_t)(k % AHEAD) * SLOT;
}

static unsigned long lane_seed(const struct lane *lane, unsigned k)
{
	return (unsigned long)k * COMMS + lane->number;
}

static void lane_post(struct pair_member *me, struct lane *lane)
{
	unsigned k = lane->posted;
	void *data = lane_mem(lane, k), *mh = lane->buf.mh, *req = NULL;
	size_t bytes = SLOT;
	int tag = 1;

	if (lane->sends) {
		bytes = lane_bytes(lane, k);
		pair_fill(data, bytes, lane_seed(lane, k));
		TIMED_OK(CALL_NS, fr_plugin_isend(me->plugin, lane->buf.comm,
						  data, bytes, tag, mh, &req));
	} else {
		TIMED_OK(CALL_NS,
			 fr_plugin_irecv(me->plugin, lane->buf.comm, 1, &data,
					 &bytes, &tag, &mh, &req));
	}
	lane->req[k % AHEAD] = req;
	lane->posted += req != NULL;
}

/* Beside the messages: memory comes and goes. */
static void lane_register(struct pair_member *me, struct lane *lane)
{
	static uint8_t mem[4096];
	void *mh;

	TIMED_OK(REG_NS,
		 fr_plugin_reg_mr(me->plugin, lane->buf.comm, mem, sizeof(mem),
				  FR_PLUGIN_PTR_HOST, &mh));
	TIMED_OK(CALL_NS, fr_plugin_dereg_mr(me->plugin, lane->buf.comm, mh));
}

static void lane_test(struct pair_member *me, struct lane *lane)
{
	unsigned k = lane->done;
	int done = 0, size = -1;

	TIMED_OK(CALL_NS, fr_plugin_test(me->plugin, lane->req[k % AHEAD],
					 &done, &size));
	if (done == 0) {
		return;
	}
	PAIR_CHECK(lane->sends || (size == (int)lane_bytes(lane, k) &&
				   pair_is_filled(lane_mem(lane, k),
						  lane_bytes(lane, k),
						  lane_seed(lane, k))),
		   "message %u of comm %u: %d bytes came wrong", k,
		   lane->number, size);
	lane->done++;
	lane_came(lane);
	if (k % 16 == 0) {
		lane_register(me, lane);
	}
}

/* As one is through, none of the others of its direction is far behind. */
static void check_share(const struct lane *first, unsigned messages)
{
	for (unsigned i = 0; i < LANES; i++) {
		PAIR_CHECK(lanes[i].sends != first->sends ||
				   lanes[i].done >= messages / 4,
			   "comm %u has %s %u messages, comm %u all %u",
			   lanes[i].number,
			   lanes[i].sends ? "sent" : "received", lanes[i].done,
			   first->number, messages);
	}
}

static void exchange(struct pair_member *me, unsigned messages)
{
	bool through[2] = {false, false};
	unsigned left = LANES;

	clock_begin();
	while (left != 0) {
		for (unsigned i = 0; i < LANES; i++) {
			struct lane *lane = &lanes[i];

			if (lane->done == messages) {
				continue;
			}
			if (lane->posted < messages &&
			    lane->posted - lane->done < AHEAD) {
				lane_post(me, lane);
			}
			if (lane->posted != lane->done) {
				lane_test(me, lane);
			}
			if (lane->done != messages) {
				continue;
			}
			left--;
			if (!through[lane->sends]) {
				through[lane->sends] = true;
				check_share(lane, messages);
			}
		}
	}
}

/* -- a storm ----------------------------------------------------------------
 */

static void lanes_open(struct pair_member *me)
{
	for (unsigned i = 0; i < COMMS; i++) {
		struct lane *out = &lanes[i], *in = &lanes[COMMS + i];
		void *send, *recv;

		pair_join(me, 1 - me->index, &send, &recv);
		out->sends = true;
		out->number = in->number = i;
		pair_buf_open(me, send, AHEAD * SLOT, &out->buf);
		pair_buf_open(me, recv, AHEAD * SLOT, &in->buf);
	}
}

static void lanes_close(struct pair_member *me)
{
	for (unsigned i = 0; i < LANES; i++) {
		struct lane *lane = &lanes[i];
		void *comm = lane->buf.comm;

		pair_buf_close(me, &lane->buf);
		PAIR_OK(lane->sends ? fr_plugin_close_send(me->plugin, comm)
				    : fr_plugin_close_recv(me->plugin, comm));
	}
}

static void run(struct pair_member *me)
{
	const struct storm *storm = me->arg;
	const char *spec = strcmp(me->pc->provider, "shm") == 0
				   ? storm->spec_shm
				   : storm->spec;
	struct life_held before;
	long refused;

	lanes_open(me);
	pair_at(me, "before the storm");
	exchange(me, WARM);
	pair_meet(me, 1 - me->index);
	life_look(&before);
	PAIR_CHECK(shim->set(spec) == 0, "%s", spec);
	pair_at(me, storm->name);
	exchange(me, storm->messages);
	refused = (long)shim->faults(storm->kinds);
	/* The other one may need what would still be refused here. */
	PAIR_CHECK(shim->set(NULL) == 0, "no faults");
	pair_meet(me, 1 - me->index);
	PAIR_CHECK(refused >= (long)storm->refused,
		   "only %ld calls were refused", refused);
	PAIR_CHECK(calls.over <= CALLS_OVER,
		   "%u calls took too much of the CPU, one %llu us", calls.over,
		   (unsigned long long)(calls.worst_ns / 1000));
	PAIR_CHECK(clock_of_all.worst_ms <= pair_stretch(STARVED_MS),
		   "a comm waited for %llu ms while others went on",
		   (unsigned long long)clock_of_all.worst_ms);
	life_flat(&before, SLACK_KIB, storm->name);
	pair_say("    %ld refused, longest call %llu us of CPU, longest wait "
		 "beside others %llu of %llu ms",
		 refused, (unsigned long long)(calls.worst_ns / 1000),
		 (unsigned long long)clock_of_all.worst_ms,
		 (unsigned long long)clock_of_all.ms);
	pair_meet(me, 1 - me->index);
	lanes_close(me);
}

static const struct storm storms[] = {
	{"99 % refused: all", "again=post+reg:0.99", "again=post+reg:0.99",
	 "post+reg", 5000, 48, false},
	{"bursts of 50000", "again=send+write:0.015:50000",
	 "again=send+write:0.002:50000", "send+write", 50000, 64, false},
	{"99 % refused: send", "again=send:0.99", NULL, "send", 1000, 96, true},
	{"99 % refused: write", "again=write:0.99", NULL, "write", 1000, 96,
	 true},
	{"99 % refused: recv", "again=recv:0.99", NULL, "recv", 1000, 96, true},
	{"99 % refused: reg", "again=reg:0.99", NULL, "reg", 1000, 96, true},
};

static void over(const char *provider, unsigned nth)
{
	for (size_t i = 0; i < FR_ARRAY_LEN(storms); i++) {
		const struct pair_case pc = {
			.name = storms[i].name,
			.provider = provider,
			.rails = 1 + (unsigned)i % 2,
			.members = 2,
			.limit_s = 60,
			.run = run,
			.env = set_env,
			.arg = &storms[i],
		};

		if (nth == 0 || !storms[i].once) {
			pair_run(&pc);
		}
	}
}

int main(int argc, char **argv)
{
	pair_main(argc, argv, "storms of refusals", 15);
	pair_all_providers(over);
	return pair_end();
}
