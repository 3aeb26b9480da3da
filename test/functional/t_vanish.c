/*
 * Hosts that vanish without a word, and rails that swallow what is sent: two
 * namespaces as hosts, black holes of several kinds, TCP's own patience as it
 * is. Where the way comes back in time, everything arrives; else both sides
 * have an error within the time that doc/architecture.md says, also the one
 * that only waits for a message. Needs root.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/pair.h"
#include "tools/netns.h"

#define RAILS 2u
#define BYTES (4u << 20)
#define WINDOW 2u
#define RATE "200mbit"
#define CUT_AFTER 3u /* messages */
#define ALL_MSGS 30u /* more than can pass before the cut */
#define HEAL_MS 5000u
/* 10 s of silence after at most 2 s until it is noticed, and the news of it
 * from the other side. */
#define ERROR_MS 16000u
#define CLOSE_MS 3000u

enum kind {
	STREAM,	 /* large messages both ways, cut in the middle */
	WAITS,	 /* both only have receives posted */
	NEVER,	 /* cut before anybody connects */
	RESTORED /* as STREAM, and healed after HEAL_MS */
};

struct scene {
	const char *name;
	const char *provider;
	enum kind kind;
	const char *hole;  /* of scripts/netns-rails.sh */
	const char *rails; /* that fall in */
	const char *line;  /* in the log of who has an error, or the news */
};

static const struct scene scenes[] = {
	{"every rail, in the middle", "net", STREAM, "link", "01", "is lost"},
	{"one rail and one way, in the middle", "net", STREAM, "fifo", "1",
	 "rail 1 (rail1) to 10.77.1."},
	{"every rail, nothing but receives", "net", WAITS, "neigh", "01",
	 "no path to its host answers"},
	{"a rail that never worked", "net", NEVER, "fifo", "1",
	 "rail 1 (rail1) to 10.77.1."},
	{"every rail, restored", "net", RESTORED, "link", "01", NULL},
	{"one rail, restored", "net", RESTORED, "fifo", "0", NULL},
	{"one rail and one way, in the middle", "tcp;ofi_rxm", STREAM, "route",
	 "0", "rail 0 (rail0) to 10.77.0."},
};
#define SCENES FR_ARRAY_LEN(scenes)

/* What the parent must know of a scene that runs. */
struct word {
	_Atomic unsigned ready;
	_Atomic uint64_t cut_ms;
	_Atomic bool healed;
};

struct stage {
	const struct scene *scene;
	char prefix[32]; /* of its namespaces */
	bool up;
	struct word *word;
};

static struct stage stages[SCENES];
static pid_t owner;

/* -- namespaces -------------------------------------------------------------*/

static int script(const struct stage *stage, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int script(const struct stage *stage, const char *fmt, ...)
{
	const char *top = getenv("FR_SRCDIR");
	char args[96], line[512];
	va_list list;

	va_start(list, fmt);
	(void)vsnprintf(args, sizeof(args), fmt, list);
	va_end(list);
	(void)snprintf(line, sizeof(line),
		       "bash '%s/scripts/netns-rails.sh' -p %s %s",
		       top == NULL ? "." : top, stage->prefix, args);
	return system(line);
}

/* Of the process that made them alone: members inherit it. */
static void take_down(void)
{
	for (unsigned i = 0; i < SCENES && getpid() == owner; i++) {
		if (stages[i].up) {
			(void)script(&stages[i], "down");
			stages[i].up = false;
		}
	}
}

static void end_by_signal(int sig)
{
	(void)sig;
	exit(1);
}

static void cut(const struct stage *stage)
{
	for (const char *r = stage->scene->rails; *r != '\0'; r++) {
		if (script(stage, "blackhole %s %c A", stage->scene->hole,
			   *r) != 0) {
			pair_say("FAILED: cannot make a black hole");
			_exit(1);
		}
	}
}

static void heal(const struct stage *stage)
{
	for (const char *r = stage->scene->rails; *r != '\0'; r++) {
		if (script(stage, "heal %c", *r) != 0) {
			pair_say("FAILED: cannot heal a rail");
			_exit(1);
		}
	}
}

static void watch(const struct pair_case *pc, const int *pid)
{
	const struct stage *stage = pc->arg;
	struct word *word = stage->word;
	uint64_t since = atomic_load(&word->cut_ms);

	(void)pid;
	if (since == 0 && atomic_load(&word->ready) == 2) {
		cut(stage);
		atomic_store(&word->cut_ms, pair_now_ms());
	} else if (since != 0 && stage->scene->kind == RESTORED &&
		   !atomic_load(&word->healed) &&
		   pair_now_ms() - since > HEAL_MS) {
		heal(stage);
		atomic_store(&word->healed, true);
	}
}

static void enter(unsigned i, const void *arg)
{
	const struct stage *stage = arg;
	char name[40];

	(void)snprintf(name, sizeof(name), "%s%c", stage->prefix,
		       i == 0 ? 'a' : 'b');
	setenv("OFI_NCCL_TCP_IF", "rail", 1);
	setenv("OFI_NCCL_FORCE_NUM_RAILS", "0", 1);
	/* With it failover_netns.sh does. */
	setenv("OFI_NCCL_FAILOVER", "0", 1);
	if (fr_netns_enter(name) != 0) {
		pair_say("FAILED: cannot enter %s", name);
		_exit(1);
	}
}

/* -- the members ------------------------------------------------------------*/

struct way {
	struct pair_buf buf;
	void *req[WINDOW];
	unsigned posted, done;
};

static uint8_t *way_mem(const struct way *way, unsigned i)
{
	return way->buf.mem + (size_t)BYTES * (i % WINDOW);
}

/* Return: the plugin's result. */
static int send_step(struct pair_member *me, struct way *way, unsigned all)
{
	int ret = 0, done = 0;

	if (way->posted < all && way->posted - way->done < WINDOW) {
		void *req = NULL;

		pair_fill(way_mem(way, way->posted), BYTES, way->posted);
		ret = fr_plugin_isend(me->plugin, way->buf.comm,
				      way_mem(way, way->posted), BYTES, 1,
				      way->buf.mh, &req);
		if (req != NULL) {
			way->req[way->posted++ % WINDOW] = req;
		}
	}
	if (ret == 0 && way->done != way->posted) {
		ret = fr_plugin_test(me->plugin, way->req[way->done % WINDOW],
				     &done, NULL);
		way->done += done != 0;
	}
	return ret;
}

static int recv_step(struct pair_member *me, struct way *way, unsigned all)
{
	int ret = 0, done = 0, size = -1;

	if (way->posted < all && way->posted - way->done < WINDOW) {
		void *data = way_mem(way, way->posted), *req = NULL;
		size_t bytes = BYTES;
		int tag = 1;

		ret = fr_plugin_irecv(me->plugin, way->buf.comm, 1, &data,
				      &bytes, &tag, &way->buf.mh, &req);
		if (req != NULL) {
			way->req[way->posted++ % WINDOW] = req;
		}
	}
	if (ret == 0 && way->done != way->posted) {
		ret = fr_plugin_test(me->plugin, way->req[way->done % WINDOW],
				     &done, &size);
		if (done != 0) {
			PAIR_CHECK(
				size == (int)BYTES &&
					pair_is_filled(way_mem(way, way->done),
						       BYTES, way->done),
				"message %u is wrong", way->done);
			way->done++;
		}
	}
	return ret;
}

static void say_ready(struct word *word, bool *told)
{
	if (!*told) {
		atomic_fetch_add(&word->ready, 1);
		*told = true;
	}
}

/* Return: the plugin's result, or 0 when all messages have passed. */
static int go_on(struct pair_member *me, const struct stage *stage,
		 struct way *out, struct way *in)
{
	bool waits = stage->scene->kind == WAITS, told = false;
	unsigned all = stage->scene->kind == RESTORED ? ALL_MSGS : (unsigned)-1;
	uint64_t cut_ms;
	int ret = 0;

	while (ret == 0 && (in->done < all || out->done < all)) {
		ret = recv_step(me, in, all);
		if (ret == 0 && !waits) {
			ret = send_step(me, out, all);
		}
		if (waits ? in->posted == WINDOW : in->done >= CUT_AFTER) {
			say_ready(stage->word, &told);
		}
		cut_ms = atomic_load(&stage->word->cut_ms);
		PAIR_CHECK(stage->scene->kind == RESTORED || cut_ms == 0 ||
				   pair_now_ms() - cut_ms <
					   pair_stretch(ERROR_MS),
			   "no error for %u ms", ERROR_MS);
		pair_nap_us(200);
	}
	return ret;
}

static void close_way(struct pair_member *me, struct way *way,
		      int (*close_comm)(struct fr_plugin *, void *))
{
	uint64_t began = pair_now_ms();

	pair_buf_close(me, &way->buf);
	PAIR_OK(close_comm(me->plugin, way->buf.comm));
	PAIR_CHECK(pair_now_ms() - began < pair_stretch(CLOSE_MS),
		   "deregMr and close took %llu ms",
		   (unsigned long long)(pair_now_ms() - began));
}

/* The line that says why is ours, or the other side's, which saw it first and
 * gave up the connection. */
static void check_line(struct pair_member *me, const struct scene *scene)
{
	bool mine = pair_logged(scene->line) != 0, theirs;

	pair_put(me, !me->index, &mine, sizeof(mine));
	pair_get(me, !me->index, &theirs, sizeof(theirs));
	PAIR_CHECK(mine || theirs, "no line says \"%s\"", scene->line);
}

static void say_time(const struct pair_member *me, uint64_t since_ms)
{
	const struct stage *stage = me->arg;

	pair_say("    %s, %s: member %u knew after %.1f s", stage->scene->name,
		 stage->scene->provider, me->index,
		 (double)(pair_now_ms() - since_ms) / 1000);
}

static void run_cut(struct pair_member *me)
{
	const struct stage *stage = me->arg;
	const struct scene *scene = stage->scene;
	struct way out = {.posted = 0}, in = {.posted = 0};
	void *send, *recv, *req;
	int ret;

	pair_join(me, !me->index, &send, &recv);
	pair_buf_open(me, send, (size_t)BYTES * WINDOW, &out.buf);
	pair_buf_open(me, recv, (size_t)BYTES * WINDOW, &in.buf);
	pair_at(me, "messages go and come");
	ret = go_on(me, stage, &out, &in);
	if (scene->kind == RESTORED) {
		PAIR_CHECK(ret == 0, "gave %s", fr_plugin_result_text(ret));
		PAIR_CHECK(atomic_load(&stage->word->healed),
			   "all messages had passed before the end");
	} else {
		PAIR_CHECK(ret == PAIR_REMOTE, "gave %s",
			   fr_plugin_result_text(ret));
		PAIR_CHECK(pair_isend(me, &out.buf, 1, &req) == PAIR_REMOTE &&
				   pair_irecv(me, &in.buf, 1, &req) ==
					   PAIR_REMOTE,
			   "a later call does not say so");
		say_time(me, atomic_load(&stage->word->cut_ms));
		check_line(me, scene);
	}
	pair_meet(me, !me->index);
	close_way(me, &out, fr_plugin_close_send);
	close_way(me, &in, fr_plugin_close_recv);
}

/* Member 1 connects to member 0. Return: the result of the call that ended it.
 */
static int one_connection(struct pair_member *me, void **comm, uint64_t began)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen = NULL;
	int ret = 0;

	*comm = NULL;
	if (me->index == 0) {
		listen = pair_listen(me, handle);
		pair_put(me, 1, handle, sizeof(handle));
	} else {
		pair_get(me, 0, handle, sizeof(handle));
	}
	while (ret == 0 && *comm == NULL) {
		ret = me->index == 0
			      ? fr_plugin_accept(me->plugin, listen, comm)
			      : fr_plugin_connect(me->plugin, me->ctx, 0,
						  handle, comm);
		pair_nap_us(200);
		PAIR_CHECK(pair_now_ms() - began < pair_stretch(ERROR_MS),
			   "no error for %u ms", ERROR_MS);
	}
	if (listen != NULL) {
		PAIR_OK(fr_plugin_close_listen(me->plugin, listen));
	}
	return ret;
}

/* One of the two connections has its control messages on the rail that does not
 * work. */
static void run_never(struct pair_member *me)
{
	const struct stage *stage = me->arg;
	uint64_t began = pair_now_ms();
	void *comm[2] = {NULL, NULL};
	int ret = 0;

	pair_expect("accept: ");
	pair_expect("connect: ");
	for (unsigned i = 0; i < 2 && ret == 0; i++) {
		ret = one_connection(me, &comm[i], began);
	}
	PAIR_CHECK(ret == PAIR_REMOTE, "gave %s", fr_plugin_result_text(ret));
	say_time(me, began);
	check_line(me, stage->scene);
	pair_meet(me, !me->index);
	for (unsigned i = 0; i < 2; i++) {
		PAIR_OK(me->index == 0
				? fr_plugin_close_recv(me->plugin, comm[i])
				: fr_plugin_close_send(me->plugin, comm[i]));
	}
}

static void run(struct pair_member *me)
{
	const struct stage *stage = me->arg;

	if (stage->scene->kind != RESTORED) {
		pair_expect("is lost");
		pair_expect("fenced");
		pair_expect("cannot post");
	}
	if (stage->scene->kind == NEVER) {
		run_never(me);
	} else {
		run_cut(me);
	}
}

/* -- the scenes -------------------------------------------------------------*/

static void stage_up(struct stage *stage, const struct scene *scene, unsigned i)
{
	stage->scene = scene;
	(void)snprintf(stage->prefix, sizeof(stage->prefix), "frv%d-%u",
		       (int)getpid(), i);
	stage->word = mmap(NULL, sizeof(*stage->word), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stage->word == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	stage->up = true;
	if (script(stage, "up %u %s", RAILS, RATE) != 0) {
		pair_say("FAILED: the namespaces could not be made");
		exit(1);
	}
	if (scene->kind == NEVER) {
		cut(stage);
		atomic_store(&stage->word->cut_ms, pair_now_ms());
	}
}

static void run_scene(struct stage *stage, const char *provider)
{
	struct pair_case pc = {
		.name = stage->scene->name,
		.provider = provider,
		.rails = RAILS,
		.members = 2,
		.limit_s = 60,
		.run = run,
		.env = enter,
		.watch = watch,
		.arg = stage,
	};

	pair_spawn(&pc);
}

int main(int argc, char **argv)
{
	int ret;

	pair_main(argc, argv, "hosts that vanish", 20);
	if (geteuid() != 0) {
		pair_say("skipped: needs root, to make network namespaces");
		return PAIR_SKIP;
	}
	owner = getpid();
	atexit(take_down);
	signal(SIGTERM, end_by_signal);
	signal(SIGINT, end_by_signal);
	for (unsigned i = 0; i < SCENES; i++) {
		const char *provider = pair_provider(scenes[i].provider);

		if (provider != NULL) {
			stage_up(&stages[i], &scenes[i], i);
			run_scene(&stages[i], provider);
		}
	}
	ret = pair_end();
	return ret;
}
