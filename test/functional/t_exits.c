/*
 * Every way out by an error, from init to a registration: the k-th allocation
 * fails, for each k. One process is both ends. Whatever failed, the next
 * attempt in the same process works. The same with calls of libfabric is in
 * t_walk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "functional/pair.h"

#define BYTES (1u << 16)
#define TRY_MS 30000u
#define ALLOCS 96u

/* What one attempt has opened. */
struct attempt {
	void *ctx;
	void *listen;
	void *send;
	void *recv;
	void *out;
	void *in;
};

static int meet(struct pair_member *me, struct attempt *a, void *handle)
{
	uint64_t limit = pair_now_ms() + pair_stretch(TRY_MS);
	int ret = 0;

	while (ret == 0 && (a->send == NULL || a->recv == NULL)) {
		PAIR_CHECK(pair_now_ms() < limit, "no end of a connect");
		if (a->send == NULL) {
			ret = fr_plugin_connect(me->plugin, a->ctx, 0, handle,
						&a->send);
		}
		if (ret == 0 && a->recv == NULL) {
			ret = fr_plugin_accept(me->plugin, a->listen, &a->recv);
		}
	}
	return ret;
}

static int open_all(struct pair_member *me, struct attempt *a)
{
	static _Alignas(16) char handle[FR_PLUGIN_HANDLE_BYTES];
	static char mem[2][BYTES];
	int ret = fr_plugin_init(me->plugin, 1, -1, &a->ctx);

	if (ret == 0) {
		ret = fr_plugin_listen(me->plugin, a->ctx, 0, handle,
				       &a->listen);
	}
	if (ret == 0) {
		ret = meet(me, a, handle);
	}
	if (ret == 0) {
		ret = fr_plugin_reg_mr(me->plugin, a->send, mem[0], BYTES,
				       FR_PLUGIN_PTR_HOST, &a->out);
	}
	if (ret == 0) {
		ret = fr_plugin_reg_mr(me->plugin, a->recv, mem[1], BYTES,
				       FR_PLUGIN_PTR_HOST, &a->in);
	}
	return ret;
}

static void close_all(struct pair_member *me, struct attempt *a)
{
	if (a->out != NULL) {
		PAIR_OK(fr_plugin_dereg_mr(me->plugin, a->send, a->out));
	}
	if (a->in != NULL) {
		PAIR_OK(fr_plugin_dereg_mr(me->plugin, a->recv, a->in));
	}
	PAIR_OK(fr_plugin_close_send(me->plugin, a->send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, a->recv));
	PAIR_OK(fr_plugin_close_listen(me->plugin, a->listen));
	if (a->ctx != NULL) {
		PAIR_OK(fr_plugin_finalize(me->plugin, a->ctx));
	}
}

/* Return: whether it all opened. */
static bool attempt(struct pair_member *me)
{
	struct attempt a = {0};
	unsigned warned = pair_warned();
	int ret = open_all(me, &a);

	PAIR_CHECK(ret == 0 || pair_warned() != warned, "%s and no word",
		   fr_plugin_result_text(ret));
	close_all(me, &a);
	return ret == 0;
}

static void expect_all(void)
{
	pair_expect("cannot open its");
	pair_expect("cannot register");
	pair_expect("no rail possible");
	pair_expect("cannot enter a peer's name");
	pair_expect("connect: ");
	pair_expect("accept: ");
	pair_expect("cannot post a receive buffer");
	pair_expect("is lost");
	pair_expect("memory");
}

static void run_allocs(struct pair_member *me)
{
	unsigned failed = 0;

	PAIR_OK(fr_plugin_finalize(me->plugin, me->ctx));
	pair_log_all();
	expect_all();
	for (unsigned k = 1; k <= ALLOCS; k++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "%u", k);
		setenv("OFI_NCCL_TEST_FAIL_ALLOC", text, 1);
		pair_at(me, "an allocation fails");
		failed += !attempt(me);
		unsetenv("OFI_NCCL_TEST_FAIL_ALLOC");
		if (k % 16 == 0) {
			/* The first may still meet what was not met. */
			PAIR_CHECK(attempt(me) || attempt(me),
				   "not well after allocation %u", k);
		}
	}
	(void)attempt(me);
	PAIR_CHECK(failed > 20, "only %u attempts failed", failed);
	pair_say("    %u of %u attempts failed", failed, ALLOCS);
	PAIR_OK(fr_plugin_init(me->plugin, 1, -1, &me->ctx));
}

int main(int argc, char **argv)
{
	struct pair_case pc = {
		.name = "each allocation fails",
		.members = 1,
		.rails = 2,
		.limit_s = 120,
		.run = run_allocs,
	};

	pair_main(argc, argv, "t_exits", 20);
	pc.provider = pair_provider("net");
	if (pc.provider != NULL) {
		pair_run(&pc);
	}
	return pair_end();
}
