#include "tools/opts.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "tools/opts_table.h"

static const char *const cmd_names[] = {
	"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
	"sendrecv",   "alltoall",   "pingpong",	      "stream",	   NULL};
_Static_assert(FR_ARRAY_LEN(cmd_names) == FR_PERF_CMD_CNT + 1,
	       "a command has no name");

const char *fr_perf_cmd_name(int cmd)
{
	return cmd_names[cmd];
}

bool fr_perf_cmd_is_p2p(int cmd)
{
	return cmd == FR_PERF_PINGPONG || cmd == FR_PERF_STREAM;
}

bool fr_perf_cmd_has_op(int cmd)
{
	return cmd == FR_PERF_ALL_REDUCE || cmd == FR_PERF_REDUCE_SCATTER ||
	       cmd == FR_PERF_REDUCE;
}

bool fr_perf_cmd_has_root(int cmd)
{
	return cmd == FR_PERF_BROADCAST || cmd == FR_PERF_REDUCE;
}

unsigned fr_perf_iters(const struct fr_perf_opts *opts, size_t bytes)
{
	size_t fit;

	if (opts->iters != 0) {
		return opts->iters;
	}
	if (!fr_perf_cmd_is_p2p(opts->cmd)) {
		return 20;
	}
	fit = ((size_t)256 << 20) / FR_MAX(bytes, 1);
	return (unsigned)FR_MIN(FR_MAX(fit, 20), 1000);
}

/* The table has what getopt_long() wants; 256 + row tells long names apart. */
static void make_getopt(struct option *longs, char *shorts)
{
	const struct fr_opt_row *row;
	char *s = shorts;
	size_t i;

	for (i = 0; fr_opt_rows[i].name != NULL; i++) {
		row = &fr_opt_rows[i];
		longs[i] = (struct option){.name = row->name,
					   .has_arg = row->arg == NULL	   ? 0
						      : row->arg[0] == '[' ? 2
									   : 1,
					   .val = 256 + (int)i};
		if (row->letter != 0) {
			*s++ = row->letter;
			if (row->arg != NULL) {
				*s++ = ':';
			}
		}
	}
	longs[i] = (struct option){.name = NULL};
	*s = 0;
}

static int find_row(int c)
{
	if (c >= 256) {
		return c - 256;
	}
	for (int i = 0; fr_opt_rows[i].name != NULL; i++) {
		if (c != 0 && fr_opt_rows[i].letter == c) {
			return i;
		}
	}
	return -1;
}

/* --json FILE is --json=FILE; a command in that place stays a command. */
static const char *detached_arg(int argc, char **argv)
{
	const char *next = optind < argc ? argv[optind] : NULL;

	if (next == NULL || (next[0] == '-' && next[1] != 0)) {
		return NULL;
	}
	for (int i = 0; i < FR_PERF_CMD_CNT; i++) {
		if (strcmp(next, cmd_names[i]) == 0) {
			return NULL;
		}
	}
	optind++;
	return next;
}

static int fail_getopt(int c, char **argv, char *why, size_t bytes)
{
	const char *word = argv[optind - 1];
	int row;

	if (optopt != 0) {
		row = find_row(optopt);
		if (row < 0) {
			(void)snprintf(why, bytes,
				       "unknown option -%c; --help lists all",
				       optopt);
		} else if (c == ':') {
			(void)snprintf(why, bytes, "%s needs a value: %s", word,
				       fr_opt_rows[row].arg);
		} else {
			(void)snprintf(why, bytes, "--%s takes no value",
				       fr_opt_rows[row].name);
		}
	} else {
		(void)snprintf(why, bytes,
			       "unknown or ambiguous option %s; --help lists "
			       "all",
			       word);
	}
	return -EINVAL;
}

static int parse_options(int argc, char **argv, struct fr_perf_opts *opts,
			 char *why, size_t bytes)
{
	struct option longs[FR_OPT_ROWS_MAX];
	char shorts[2 * FR_OPT_ROWS_MAX + 2] = ":";
	const char *arg;
	int c, row, ret;

	make_getopt(longs, shorts + 1);
	optind = 0; /* start over, also in a second call in one process */
	opterr = 0;
	for (;;) {
		optopt = 0;
		c = getopt_long(argc, argv, shorts, longs, NULL);
		if (c == -1) {
			return 0;
		}
		if (c == '?' || c == ':') {
			return fail_getopt(c, argv, why, bytes);
		}
		row = find_row(c);
		arg = optarg;
		if (fr_opt_rows[row].arg != NULL &&
		    fr_opt_rows[row].arg[0] == '[' && arg == NULL) {
			arg = detached_arg(argc, argv);
		}
		ret = fr_opt_set(&fr_opt_rows[row], arg, opts, why, bytes);
		if (ret != 0) {
			return ret;
		}
	}
}

static int parse_command(int argc, char **argv, struct fr_perf_opts *opts,
			 char *why, size_t bytes)
{
	if (optind >= argc) {
		(void)snprintf(why, bytes,
			       "no command; one of all_reduce all_gather "
			       "reduce_scatter broadcast reduce sendrecv "
			       "alltoall pingpong stream comes first");
		return -EINVAL;
	}
	if (optind + 1 < argc) {
		(void)snprintf(why, bytes,
			       "unexpected word '%s' after the command",
			       argv[optind + 1]);
		return -EINVAL;
	}
	for (int i = 0; i < FR_PERF_CMD_CNT; i++) {
		if (strcmp(argv[optind], cmd_names[i]) == 0) {
			opts->cmd = i;
			return 0;
		}
	}
	(void)snprintf(why, bytes,
		       "unknown command '%s'; all_reduce all_gather "
		       "reduce_scatter broadcast reduce sendrecv alltoall "
		       "pingpong stream are allowed",
		       argv[optind]);
	return -EINVAL;
}

static int check_together(const struct fr_perf_opts *opts, char *why,
			  size_t bytes)
{
	const char *text = NULL;

	if (opts->begin_bytes > opts->end_bytes) {
		text = "-b (--minbytes) is above -e (--maxbytes); at most "
		       "equal is allowed";
	} else if (opts->plugin == NULL) {
		text = "no plugin: give --plugin PATH-or-name, or set "
		       "NCCL_NET_PLUGIN";
	} else if (fr_perf_cmd_is_p2p(opts->cmd) && opts->ranks != 2) {
		text = "--ranks: pingpong and stream are for 2 ranks";
	} else if (opts->root >= opts->ranks) {
		text = "-r (--root) is not below --ranks";
	} else if (opts->recv_bytes != 0 &&
		   opts->recv_bytes < opts->end_bytes) {
		text = "--recv-size is below -e (--maxbytes); 0 or at least "
		       "that is allowed";
	}
	if (text == NULL) {
		return 0;
	}
	(void)snprintf(why, bytes, "%s", text);
	return -EINVAL;
}

int fr_perf_opts_parse(int argc, char **argv, char *(*get)(const char *name),
		       struct fr_perf_opts *opts, char *why, size_t bytes)
{
	int ret;

	if (get == NULL) {
		get = getenv;
	}
	memset(opts, 0, sizeof(*opts));
	opts->rank = -1;
	ret = fr_opt_set_defaults(opts);
	if (ret == 0) {
		ret = parse_options(argc, argv, opts, why, bytes);
	}
	if (ret != 0 || opts->help || opts->version) {
		return ret;
	}
	ret = parse_command(argc, argv, opts, why, bytes);
	if (ret == 0) {
		ret = fr_opt_from_env(get, opts, why, bytes);
	}
	if (ret == 0) {
		ret = check_together(opts, why, bytes);
	}
	return ret;
}

void fr_perf_opts_help(FILE *out)
{
	const struct fr_opt_row *row;
	char left[64];

	(void)fprintf(out,
		      "usage: fabrail-perf COMMAND [options]\n"
		      "Runs collectives and point-to-point messages through an "
		      "NCCL net plugin, in host\nmemory, with the calls that "
		      "NCCL makes.\n\n"
		      "commands, of which one comes first:\n"
		      "  all_reduce all_gather reduce_scatter broadcast reduce "
		      "sendrecv alltoall\n"
		      "  pingpong  half round trips of one message\n"
		      "  stream    messages one way, a window of them in "
		      "flight\n\n"
		      "options (SIZE is in bytes, or with K, M or G):\n");
	for (row = fr_opt_rows; row->name != NULL; row++) {
		(void)snprintf(left, sizeof(left), "%c%c%c --%s%s%s",
			       row->letter != 0 ? '-' : ' ',
			       row->letter != 0 ? row->letter : ' ',
			       row->letter != 0 ? ',' : ' ', row->name,
			       row->arg != NULL && row->arg[0] != '[' ? " "
								      : "",
			       row->arg != NULL ? row->arg : "");
		(void)fprintf(out, "  %-30s %s", left, row->help);
		if (row->dflt != NULL) {
			(void)fprintf(out, " (default %s)", row->dflt);
		}
		(void)fputc('\n', out);
	}
	(void)fprintf(
		out,
		"\nRanks are forked here unless RANK and WORLD_SIZE, or "
		"OMPI_COMM_WORLD_RANK and\nOMPI_COMM_WORLD_SIZE, say which "
		"rank this process is; then rank 0 waits for the\nothers at "
		"--master, else at MASTER_ADDR and MASTER_PORT + 1. --ranks "
		"forks in any case.\nNCCL_NET_PLUGIN names the plugin, "
		"NCCL_DEBUG what of its log is shown.\nExit status: 0 when "
		"every check passed, 1 when not, 2 for a bad option.\n");
}
