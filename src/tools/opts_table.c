#include "tools/opts_table.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static const char *const completion_names[] = {"local", "delivery", NULL};
static const char *const raw_op_names[] = {"write", "message", NULL};
static const char *const proto_names[] = {"auto", "simple", "ll", NULL};

#define AT(field) offsetof(struct fr_perf_opts, field)

/* clang-format off */
const struct fr_opt_row fr_opt_rows[] = {
	{ "plugin", 'p', FR_OPT_TEXT, AT(plugin), "NAME", .dflt = NULL,
	  .help = "path, or X of libnccl-net-X.so; default NCCL_NET_PLUGIN" },
	{ "abi", 0, FR_OPT_ABI, AT(abi), "vN",
	  .help = "table to use, v4 to v12; default the newest" },
	{ "device", 0, FR_OPT_UINT, AT(dev), "N", .max = 1023, .dflt = "0",
	  .help = "the plugin's device" },
	{ "minbytes", 'b', FR_OPT_SIZE, AT(begin_bytes), "SIZE", .dflt = "8",
	  .help = "smallest size" },
	{ "maxbytes", 'e', FR_OPT_SIZE, AT(end_bytes), "SIZE", .dflt = "64M",
	  .help = "largest size" },
	{ "stepfactor", 'f', FR_OPT_UINT, AT(factor), "N", .min = 2,
	  .max = 1u << 20, .dflt = "4", .help = "from size to size, times" },
	{ "stepbytes", 'i', FR_OPT_SIZE, AT(step_bytes), "SIZE", .dflt = "0",
	  .help = "from size to size, plus; instead of -f" },
	{ "iters", 'n', FR_OPT_UINT, AT(iters), "N", .max = 1u << 30,
	  .dflt = "0",
	  .help = "timed iterations; 0: 20, pingpong and stream 20 to 1000" },
	{ "warmup_iters", 'w', FR_OPT_UINT, AT(warmup), "N", .max = 1u << 30,
	  .dflt = "5", .help = "iterations before" },
	{ "check", 'c', FR_OPT_UINT, AT(check), "0|1", .max = 1, .dflt = "1",
	  .help = "check every element" },
	{ "datatype", 'd', FR_OPT_NAME, AT(type), "TYPE",
	  .names = fr_type_names, .dflt = "float", .help = "int8 uint8 int32 "
	  "uint32 int64 uint64 half bfloat16 float double" },
	{ "op", 'o', FR_OPT_NAME, AT(op), "OP", .names = fr_redop_names,
	  .dflt = "sum", .help = "sum prod max min avg" },
	{ "root", 'r', FR_OPT_UINT, AT(root), "RANK",
	  .max = FR_PERF_MAX_RANKS - 1, .dflt = "0",
	  .help = "of broadcast and reduce" },
	{ "window", 0, FR_OPT_UINT, AT(window), "N", .min = 1, .max = 128,
	  .dflt = "8", .help = "stream: messages in flight" },
	{ "recv-size", 0, FR_OPT_SIZE, AT(recv_bytes), "SIZE", .dflt = "0",
	  .help = "stream: length of the receives; 0: as sent" },
	{ "channels", 0, FR_OPT_UINT, AT(channels), "N", .min = 1,
	  .max = FR_PERF_MAX_CHANNELS, .dflt = "1",
	  .help = "parallel rings that share the data" },
	{ "proto", 0, FR_OPT_NAME, AT(proto), "NAME", .names = proto_names,
	  .dflt = "auto",
	  .help = "auto simple ll; auto: ll up to 16K a rank and channel" },
	{ "raw", 0, FR_OPT_FLAG, AT(raw), NULL,
	  .help = "beside it the same sizes on bare libfabric, as a ratio" },
	{ "completion", 0, FR_OPT_NAME, AT(raw_deliver), "NAME",
	  .names = completion_names, .dflt = "delivery",
	  .help = "raw: local delivery" },
	{ "raw-op", 0, FR_OPT_NAME, AT(raw_op), "NAME", .names = raw_op_names,
	  .dflt = "write", .help = "raw stream by: write message" },
	{ "pairs", 0, FR_OPT_UINT, AT(pairs), "N", .min = 5, .max = 101,
	  .dflt = "5", .help = "raw: interleaved pairs of runs" },
	{ "ranks", 0, FR_OPT_RANKS, AT(ranks), "N", .min = 2,
	  .max = FR_PERF_MAX_RANKS, .dflt = "2",
	  .help = "ranks to fork here" },
	{ "master", 0, FR_OPT_MASTER, AT(master_host), "HOST:PORT",
	  .help = "where rank 0 waits for ranks that others started" },
	{ "netns", 0, FR_OPT_NETNS, AT(netns), "A,B",
	  .help = "rank i runs in network namespace i mod 2 of these" },
	{ "csv", 0, FR_OPT_TEXT, AT(csv), "FILE", .help = "write a table" },
	{ "json", 0, FR_OPT_FILE, AT(json), "[=FILE]",
	  .help = "write JSON; without FILE to stdout, the rest to stderr" },
	{ "plot", 0, FR_OPT_TEXT, AT(plot), "FILE.svg",
	  .help = "draw the bandwidth; needs gnuplot" },
	{ "timeout", 'T', FR_OPT_UINT, AT(timeout_s), "SECONDS", .min = 1,
	  .max = 86400, .dflt = "120", .help = "longest time without progress" },
	{ "verbose", 'v', FR_OPT_FLAG, AT(verbose), NULL,
	  .help = "show the plugin's INFO lines too" },
	{ "help", 'h', FR_OPT_FLAG, AT(help), NULL, .help = "this text" },
	{ "version", 'V', FR_OPT_FLAG, AT(version), NULL,
	  .help = "the version" },
	{ .name = NULL },
};
/* clang-format on */
_Static_assert(FR_ARRAY_LEN(fr_opt_rows) <= FR_OPT_ROWS_MAX, "too many rows");

int fr_perf_parse_size(const char *text, size_t *bytes)
{
	unsigned long long v;
	unsigned shift = 0;
	char *end;

	if (!isdigit((unsigned char)text[0])) {
		return -EINVAL;
	}
	errno = 0;
	v = strtoull(text, &end, 10);
	switch (toupper((unsigned char)*end)) {
	case 'K':
		shift = 10;
		end++;
		break;
	case 'M':
		shift = 20;
		end++;
		break;
	case 'G':
		shift = 30;
		end++;
		break;
	default:
		break;
	}
	if (errno != 0 || *end != 0 || v > ((size_t)1 << 40) >> shift) {
		return -EINVAL;
	}
	*bytes = (size_t)v << shift;
	return 0;
}

int fr_perf_parse_uint(const char *text, unsigned min, unsigned max,
		       unsigned *value)
{
	unsigned long v;
	char *end;

	if (!isdigit((unsigned char)text[0])) {
		return -EINVAL;
	}
	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno != 0 || *end != 0 || v < min || v > max) {
		return -EINVAL;
	}
	*value = (unsigned)v;
	return 0;
}

static int parse_name(const struct fr_opt_row *row, const char *arg, int *out)
{
	for (int i = 0; row->names[i] != NULL; i++) {
		if (strcmp(row->names[i], arg) == 0) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_netns(const char *arg, struct fr_perf_opts *opts)
{
	const char *comma = strchr(arg, ',');
	size_t max = sizeof(opts->netns[0]), first;

	if (comma == NULL || strchr(arg, '/') != NULL) {
		return -EINVAL;
	}
	first = (size_t)(comma - arg);
	if (first == 0 || first >= max || comma[1] == 0 ||
	    strlen(comma + 1) >= max || strchr(comma + 1, ',') != NULL) {
		return -EINVAL;
	}
	memcpy(opts->netns[0], arg, first);
	opts->netns[0][first] = 0;
	memcpy(opts->netns[1], comma + 1, strlen(comma + 1) + 1);
	return 0;
}

/* Accepts [v6]:port as well. Without brackets nobody can tell where an IPv6
 * address ends and a port begins. */
static int parse_master(const char *arg, struct fr_perf_opts *opts)
{
	const char *colon = strrchr(arg, ':');
	size_t len;

	if (colon == NULL ||
	    fr_perf_parse_uint(colon + 1, 1, 65535, &opts->master_port) != 0) {
		return -EINVAL;
	}
	len = (size_t)(colon - arg);
	if (len >= 2 && arg[0] == '[' && arg[len - 1] == ']') {
		arg++;
		len -= 2;
	} else if (memchr(arg, ':', len) != NULL) {
		return -EINVAL;
	}
	if (len == 0 || len >= sizeof(opts->master_host) ||
	    memchr(arg, '[', len) != NULL || memchr(arg, ']', len) != NULL) {
		return -EINVAL;
	}
	memcpy(opts->master_host, arg, len);
	opts->master_host[len] = 0;
	return 0;
}

static int parse_value(const struct fr_opt_row *row, const char *arg,
		       struct fr_perf_opts *opts)
{
	void *field = (char *)opts + row->offset;

	switch (row->kind) {
	case FR_OPT_FLAG:
		*(bool *)field = true;
		return 0;
	case FR_OPT_UINT:
		return fr_perf_parse_uint(arg, row->min, row->max, field);
	case FR_OPT_RANKS:
		opts->rank = -2; /* forked, as the user asks for a number */
		return fr_perf_parse_uint(arg, row->min, row->max, field);
	case FR_OPT_SIZE:
		return fr_perf_parse_size(arg, field);
	case FR_OPT_NAME:
		return parse_name(row, arg, field);
	case FR_OPT_ABI:
		return fr_perf_parse_uint(arg + (arg[0] == 'v'), 4, 12, field);
	case FR_OPT_NETNS:
		return parse_netns(arg, opts);
	case FR_OPT_MASTER:
		return parse_master(arg, opts);
	case FR_OPT_FILE:
	case FR_OPT_TEXT:
		if (arg != NULL && arg[0] == 0) {
			return -EINVAL;
		}
		*(const char **)field = arg != NULL ? arg : "-";
		return 0;
	}
	return -EINVAL;
}

static void say_allowed(const struct fr_opt_row *row, char *text, size_t bytes)
{
	switch (row->kind) {
	case FR_OPT_UINT:
	case FR_OPT_RANKS:
		(void)snprintf(text, bytes, "a number from %u to %u", row->min,
			       row->max);
		break;
	case FR_OPT_SIZE:
		(void)snprintf(text, bytes,
			       "a size such as 8, 64K, 1M or 2G (at most "
			       "1024G)");
		break;
	case FR_OPT_NAME:
		text[0] = 0;
		for (int i = 0; row->names[i] != NULL; i++) {
			size_t used = strlen(text);

			(void)snprintf(text + used, bytes - used, "%s%s",
				       i > 0 ? ", " : "", row->names[i]);
		}
		break;
	case FR_OPT_ABI:
		(void)snprintf(text, bytes, "v4 to v12");
		break;
	case FR_OPT_NETNS:
		(void)snprintf(text, bytes,
			       "two names of namespaces with a comma between");
		break;
	case FR_OPT_MASTER:
		(void)snprintf(text, bytes,
			       "HOST:PORT with a port from 1 to "
			       "65535");
		break;
	default:
		(void)snprintf(text, bytes, "a text that is not empty");
		break;
	}
}

int fr_opt_set(const struct fr_opt_row *row, const char *arg,
	       struct fr_perf_opts *opts, char *why, size_t bytes)
{
	char allowed[160], letter[8] = "";
	int ret;

	ret = parse_value(row, arg, opts);
	if (ret != 0) {
		say_allowed(row, allowed, sizeof(allowed));
		if (row->letter != 0) {
			(void)snprintf(letter, sizeof(letter), " (-%c)",
				       row->letter);
		}
		(void)snprintf(
			why, bytes, "--%s%s: '%s' is not allowed; allowed: %s",
			row->name, letter, arg != NULL ? arg : "", allowed);
	}
	return ret;
}

int fr_opt_set_defaults(struct fr_perf_opts *opts)
{
	for (const struct fr_opt_row *row = fr_opt_rows; row->name != NULL;
	     row++) {
		if (row->dflt != NULL &&
		    parse_value(row, row->dflt, opts) != 0) {
			return -EINVAL;
		}
	}
	opts->rank = -1;
	return 0;
}

static int fail_env(const char *name, const char *value, const char *allowed,
		    char *why, size_t bytes)
{
	(void)snprintf(why, bytes, "%s: '%s' is not allowed; allowed: %s", name,
		       value != NULL ? value : "", allowed);
	return -EINVAL;
}

static int master_from_env(char *(*get)(const char *name),
			   struct fr_perf_opts *opts, char *why, size_t bytes)
{
	const char *host = get("MASTER_ADDR"), *port = get("MASTER_PORT");

	if (opts->master_host[0] != 0) {
		return 0;
	}
	if (host == NULL || host[0] == 0 || port == NULL) {
		(void)snprintf(why, bytes,
			       "this is one of several ranks, but neither "
			       "--master HOST:PORT nor MASTER_ADDR and "
			       "MASTER_PORT are set");
		return -EINVAL;
	}
	if (strlen(host) >= sizeof(opts->master_host)) {
		return fail_env("MASTER_ADDR", host, "a host name", why, bytes);
	}
	if (fr_perf_parse_uint(port, 1, 65534, &opts->master_port) != 0) {
		return fail_env("MASTER_PORT", port, "1 to 65534", why, bytes);
	}
	opts->master_port++; /* the port itself is the user's own launcher */
	memcpy(opts->master_host, host, strlen(host) + 1);
	return 0;
}

static int rank_from_env(char *(*get)(const char *name), const char *rank_name,
			 const char *size_name, struct fr_perf_opts *opts,
			 char *why, size_t bytes)
{
	const char *rank = get(rank_name), *size = get(size_name);
	unsigned r, n;

	if (fr_perf_parse_uint(size, 2, FR_PERF_MAX_RANKS, &n) != 0) {
		return fail_env(size_name, size, "2 to 64", why, bytes);
	}
	if (fr_perf_parse_uint(rank, 0, n - 1, &r) != 0) {
		return fail_env(rank_name, rank, "0 to the number of ranks - 1",
				why, bytes);
	}
	opts->rank = (int)r;
	opts->ranks = n;
	return master_from_env(get, opts, why, bytes);
}

int fr_opt_from_env(char *(*get)(const char *name), struct fr_perf_opts *opts,
		    char *why, size_t bytes)
{
	const char *plugin = get("NCCL_NET_PLUGIN");

	if (opts->plugin == NULL && plugin != NULL && plugin[0] != 0) {
		opts->plugin = plugin;
	}
	if (opts->rank == -2) {
		opts->rank = -1;
		return 0;
	}
	if (get("RANK") != NULL && get("WORLD_SIZE") != NULL) {
		return rank_from_env(get, "RANK", "WORLD_SIZE", opts, why,
				     bytes);
	}
	if (get("OMPI_COMM_WORLD_RANK") != NULL &&
	    get("OMPI_COMM_WORLD_SIZE") != NULL) {
		return rank_from_env(get, "OMPI_COMM_WORLD_RANK",
				     "OMPI_COMM_WORLD_SIZE", opts, why, bytes);
	}
	return 0;
}
