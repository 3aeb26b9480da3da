/*
 * The stand-in for libfabric makes trouble that must be survived: refusals in
 * storms, noise in completions, chosen keys, shuffled interfaces. Messages of
 * all sizes pass in both directions beside it, and what was posted, landed and
 * closed is read from its log.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "functional/pair.h"
#include "functional/trail.h"
#include "shim/use.h"

#define BIG (1u << 20)
#define POSTS 4096u

struct trouble {
	const char *name;
	const char *spec; /* "log=%s" is filled in */
	unsigned rails;
	unsigned rounds;
	/* In each member, with its plugin closed. */
	void (*check)(struct pair_member *me);
};

static const struct fr_shim_api *shim; /* of a member */
static char log_path[64];

static void set_env(unsigned i, const void *arg)
{
	const struct trouble *t = arg;
	char spec[256];

	(void)i;
	(void)snprintf(log_path, sizeof(log_path), "t_faults.%ld.log",
		       (long)getpid());
	(void)snprintf(spec, sizeof(spec), "log=%s;posts;seed=%ld;%s", log_path,
		       (long)getpid(), t->spec);
	shim = shim_must_load(spec);
	setenv("OFI_NCCL_MIN_STRIPE_SIZE", "4K", 1);
}

static const size_t sizes[] = {0, 1, 700, 8192, 8193, 65536, 300001, BIG};

static void exchange(struct pair_member *me, unsigned rounds)
{
	struct pair_buf out, in;
	void *send, *recv;

	pair_join(me, 1 - me->index, &send, &recv);
	pair_buf_open(me, send, BIG, &out);
	pair_buf_open(me, recv, BIG, &in);
	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned s = 0; s < FR_ARRAY_LEN(sizes); s++) {
			unsigned long seed = r * 100 + s;
			void *rx, *tx;
			int got = -1;

			pair_fill(out.mem, sizes[s], seed + 7);
			memset(in.mem, 0x5a, BIG);
			rx = pair_irecv_wait(me, &in, BIG);
			tx = pair_isend_wait(me, &out, sizes[s]);
			PAIR_OK(pair_test_wait(me, tx, 60000, NULL));
			PAIR_OK(pair_test_wait(me, rx, 60000, &got));
			PAIR_CHECK(got == (int)sizes[s] &&
					   pair_is_filled(in.mem, sizes[s],
							  seed + 7),
				   "a message of %zu bytes came wrong",
				   sizes[s]);
			PAIR_CHECK(sizes[s] == BIG || in.mem[sizes[s]] == 0x5a,
				   "a byte behind a message was touched");
		}
	}
	pair_buf_close(me, &out);
	pair_buf_close(me, &in);
	PAIR_OK(fr_plugin_close_send(me->plugin, send));
	PAIR_OK(fr_plugin_close_recv(me->plugin, recv));
}

static void run(struct pair_member *me)
{
	const struct trouble *t = me->arg;

	pair_at(me, t->name);
	/* sockets says so of a last word to a peer that has left. */
	if (strcmp(me->pc->provider, "sockets") == 0) {
		pair_expect("cannot post a message: No such file");
	}
	pair_open(me);
	exchange(me, t->rounds);
	pair_close(me);
	t->check(me);
	unlink(log_path);
}

static void run_case(const struct trouble *t, const char *provider)
{
	struct pair_case pc = {
		.name = t->name,
		.provider = provider,
		.rails = t->rails,
		.members = 2,
		.limit_s = 60,
		.run = run,
		.env = set_env,
		.arg = t,
		.plugin_late = true,
	};

	pair_run(&pc);
}

static FILE *open_log(void)
{
	FILE *file = fopen(log_path, "r");

	PAIR_CHECK(file != NULL, "no log %s", log_path);
	return file;
}

static void check_closes(struct pair_member *me)
{
	(void)me;
	trail_ends(log_path);
}

/* -- refusals ---------------------------------------------------------------
 */

/* Each stripe was posted once and landed once: the word of a message comes as
 * often as it has rails, on each at most once. */
static unsigned check_lines(bool landed, unsigned rails)
{
	const char *what = landed ? "landed" : "posted";
	static struct {
		unsigned rail;
		unsigned long long data;
	} seen[POSTS];
	unsigned cnt = 0;
	char line[256];
	FILE *file = open_log();

	while (fgets(line, sizeof(line), file) != NULL) {
		unsigned rail;
		unsigned long long data;

		if ((landed ? sscanf(line, "%*d land %u %llx", &rail, &data)
			    : sscanf(line, "%*d post write %u %*u %llx", &rail,
				     &data)) != 2) {
			continue;
		}
		PAIR_CHECK(cnt < POSTS && rail < rails, "%s: rail %u", what,
			   rail);
		for (unsigned i = 0; i < cnt; i++) {
			PAIR_CHECK(seen[i].rail != rail || seen[i].data != data,
				   "%s: %llx came twice on rail %u", what, data,
				   rail);
		}
		seen[cnt].rail = rail;
		seen[cnt++].data = data;
	}
	(void)fclose(file);
	return cnt;
}

static void check_stripes(struct pair_member *me)
{
	const struct trouble *t = me->arg;
	unsigned posts, lands, peer_posts;

	posts = check_lines(false, t->rails);
	lands = check_lines(true, t->rails);
	pair_put(me, 1 - me->index, &posts, sizeof(posts));
	pair_get(me, 1 - me->index, &peer_posts, sizeof(peer_posts));
	PAIR_CHECK(lands == peer_posts && posts >= t->rails * t->rounds * 3,
		   "%u stripes were posted, %u landed", peer_posts, lands);
	PAIR_CHECK(shim->faults("write") > 0, "nothing was refused");
	check_closes(me);
}

static void check_refused(struct pair_member *me)
{
	PAIR_CHECK(shim->faults("post+reg") > 10, "only %ld calls were refused",
		   (long)shim->faults("post+reg"));
	check_closes(me);
}

static const struct trouble each_provider[] = {
	{"noise in completions", "garbage", 2, 3, check_closes},
	{"keys 0, 2^32+5, 2^64-2", "keys=0,4294967301,18446744073709551614", 2,
	 2, check_closes},
	{"9 of 10 refused: all", "again=post+reg:0.9", 2, 1, check_refused},
};

static const struct trouble once[] = {
	{"keys 2^64-2, 0, 2^32+5", "keys=18446744073709551614,0,4294967301", 1,
	 2, check_closes},
	{"keys 2^32+5, 2^64-2, 0", "keys=4294967301,18446744073709551614,0", 1,
	 2, check_closes},
	{"shuffled interfaces", "shuffle", 2, 2, check_closes},
	{"99 % refused: send", "again=send:0.99", 1, 2, check_refused},
	{"99 % refused: write", "again=write:0.99", 2, 2, check_refused},
	{"99 % refused: recv", "again=recv:0.99", 1, 2, check_refused},
	{"99 % refused: reg", "again=reg:0.99", 1, 2, check_refused},
	{"99 % refused: all", "again=post+reg:0.99", 2, 2, check_refused},
	{"bursts of 50000", "again=send+write:0.01:50000", 1, 2, check_closes},
	{"rail 0 refuses once", "again=write@0:1:1", 3, 4, check_stripes},
	{"rail 1 refuses once", "again=write@1:1:1", 3, 4, check_stripes},
	{"rail 2 refuses once", "again=write@2:1:1", 3, 4, check_stripes},
	{"rail 0 refuses 1000 times", "again=write@0:1:1000", 3, 4,
	 check_stripes},
	{"rail 1 refuses 1000 times", "again=write@1:1:1000", 3, 4,
	 check_stripes},
	{"rail 2 refuses 1000 times", "again=write@2:1:1000", 3, 4,
	 check_stripes},
};

/* What a provider says in its completions, its keys, and a storm of everything
 * run over each of them. */
static void over(const char *provider, unsigned nth)
{
	for (size_t i = 0; i < FR_ARRAY_LEN(each_provider); i++) {
		run_case(&each_provider[i], provider);
	}
	for (size_t i = 0; nth == 0 && i < FR_ARRAY_LEN(once); i++) {
		run_case(&once[i], provider);
	}
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"net", "tcp;ofi_rxm", "sockets"};
	unsigned nth = 0;

	pair_main(argc, argv, "t_faults", 40);
	for (size_t i = 0; i < FR_ARRAY_LEN(names); i++) {
		const char *provider = pair_provider(names[i]);

		if (provider != NULL) {
			over(provider, nth++);
		}
	}
	return pair_end();
}
