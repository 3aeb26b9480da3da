/*
 * Two hosts whose rails do not match: 4 and 3, 4 and 1, 1 and 4, and a host
 * that loses a rail between two connections. The rails that both have carry,
 * and both sides name both counts. Namespaces as hosts; needs root.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/pair.h"
#include "tools/netns.h"

#define RAILS 4u
#define BYTES (4u << 20)
#define STAYS 0u  /* on host A */
#define FIRST 1u  /* on host B, ends */
#define SECOND 2u /* on host B, begins when the first one has ended */

struct scene {
	const char *name;
	const char *lost_a, *lost_b; /* rails that are missing from the start */
	const char *later; /* rails that B loses before the second connection */
	const char *how;   /* of ip: address or link */
};

static const struct scene scenes[] = {
	{"4 rails and 3", "", "3", "", "address"},
	{"4 rails and 1", "", "013", "", "address"},
	{"1 rail and 4", "123", "", "", "address"},
	{"an address is lost in between", "", "", "2", "address"},
	{"a link is lost in between", "", "", "0", "link"},
};
#define SCENES FR_ARRAY_LEN(scenes)

struct stage {
	const struct scene *scene;
	char prefix[32]; /* of its namespaces */
	bool up;
};

static struct stage stages[SCENES];
static pid_t owner;

/* -- namespaces -------------------------------------------------------------*/

static int run_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int run_line(const char *fmt, ...)
{
	char line[512];
	va_list list;

	va_start(list, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, list);
	va_end(list);
	return system(line);
}

static int script(const struct stage *stage, const char *args)
{
	const char *top = getenv("FR_SRCDIR");

	return run_line("bash '%s/scripts/netns-rails.sh' -p %s %s",
			top == NULL ? "." : top, stage->prefix, args);
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

static void lose(const struct stage *stage, char side, const char *rails)
{
	bool link = strcmp(stage->scene->how, "link") == 0;

	for (; *rails != '\0'; rails++) {
		int ret = link ? run_line("PATH=$PATH:/sbin:/usr/sbin "
					  "ip -n %s%c link set rail%c down",
					  stage->prefix, side, *rails)
			       : run_line("PATH=$PATH:/sbin:/usr/sbin "
					  "ip -n %s%c addr flush dev rail%c",
					  stage->prefix, side, *rails);

		if (ret != 0) {
			pair_say("FAILED: cannot take rail%c from %c", *rails,
				 side);
			exit(1);
		}
	}
}

static void enter(unsigned i, const void *arg)
{
	const struct stage *stage = arg;
	char name[40];

	(void)snprintf(name, sizeof(name), "%s%c", stage->prefix,
		       i == STAYS ? 'a' : 'b');
	setenv("OFI_NCCL_TCP_IF", "rail", 1);
	setenv("OFI_NCCL_FORCE_NUM_RAILS", "0", 1);
	if (fr_netns_enter(name) != 0) {
		pair_say("FAILED: cannot enter %s", name);
		_exit(1);
	}
}

/* -- the members ------------------------------------------------------------*/

static unsigned rails_of(const struct scene *scene, unsigned member)
{
	size_t lost = strlen(member == STAYS ? scene->lost_a : scene->lost_b);

	if (member == SECOND) {
		lost += strlen(scene->later);
	}
	return RAILS - (unsigned)lost;
}

static void exchange(struct pair_member *me, unsigned with)
{
	struct pair_buf out, in;
	void *send, *recv;

	pair_at(me, "connecting");
	pair_join(me, with, &send, &recv);
	pair_buf_open(me, send, BYTES, &out);
	pair_buf_open(me, recv, BYTES, &in);
	pair_at(me, "messages");
	for (unsigned i = 0; i < 4; i++) {
		if (i % 2 == (me->index == STAYS)) {
			pair_send(me, &out, BYTES);
		} else {
			pair_recv(me, &in, BYTES);
		}
	}
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	pair_meet(me, with);
	PAIR_CHECK(fr_plugin_close_send(me->plugin, send) == 0, "closeSend");
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, recv) == 0, "closeRecv");
}

/* Once where the counts differ, and never where they do not. */
static void check_said(const struct scene *scene, unsigned me, unsigned with)
{
	unsigned ours = rails_of(scene, me), theirs = rails_of(scene, with);
	char here[64], there[64];

	(void)snprintf(here, sizeof(here), "has %u rails, its peer at", ours);
	(void)snprintf(there, sizeof(there), ") has %u; the same rails",
		       theirs);
	PAIR_CHECK(pair_logged(here) == (ours != theirs), "%u lines of '%s'",
		   pair_logged(here), here);
	PAIR_CHECK(pair_logged(there) == (ours != theirs), "%u lines of '%s'",
		   pair_logged(there), there);
	(void)snprintf(here, sizeof(here), "make %u paths",
		       FR_MIN(ours, theirs));
	PAIR_CHECK(pair_logged(here) >= 1, "no line says '%s'", here);
}

static void run(struct pair_member *me)
{
	const struct stage *stage = me->arg;

	if (me->index == SECOND) {
		pair_hear(me, FIRST);
		lose(stage, 'b', stage->scene->later);
	}
	pair_open(me);
	pair_expect("its peer at");
	if (me->index == STAYS) {
		exchange(me, FIRST);
		check_said(stage->scene, STAYS, FIRST);
		exchange(me, SECOND);
		check_said(stage->scene, STAYS, SECOND);
	} else {
		exchange(me, STAYS);
		check_said(stage->scene, me->index, STAYS);
	}
	pair_close(me);
	if (me->index == FIRST) {
		pair_tell(me, SECOND);
	}
}

/* -- the scenes -------------------------------------------------------------*/

static void stage_up(struct stage *stage, const struct scene *scene, unsigned i)
{
	stage->scene = scene;
	(void)snprintf(stage->prefix, sizeof(stage->prefix), "fru%d-%u",
		       (int)getpid(), i);
	stage->up = true;
	if (script(stage, "up 4") != 0) {
		pair_say("FAILED: the namespaces could not be made");
		exit(1);
	}
	lose(stage, 'a', scene->lost_a);
	lose(stage, 'b', scene->lost_b);
}

int main(int argc, char **argv)
{
	const char *provider;

	pair_main(argc, argv, "hosts whose rails do not match", 20);
	if (geteuid() != 0) {
		pair_say("skipped: needs root, to make network namespaces");
		return PAIR_SKIP;
	}
	owner = getpid();
	atexit(take_down);
	signal(SIGTERM, end_by_signal);
	signal(SIGINT, end_by_signal);
	provider = pair_provider("net");
	for (unsigned i = 0; i < SCENES && provider != NULL; i++) {
		struct pair_case pc = {
			.name = scenes[i].name,
			.provider = provider,
			.rails = RAILS,
			.members = 3,
			.limit_s = 60,
			.run = run,
			.env = enter,
			.arg = &stages[i],
			.plugin_late = true,
		};

		stage_up(&stages[i], &scenes[i], i);
		pair_run(&pc);
	}
	return pair_end();
}
