/*
 * One rank of the check of NCCL: runs each collective over a communicator of
 * processes, on memory of the GPU, and looks at every element of the result.
 *
 * Results go to the file of --report, one line a case, as NCCL writes what it
 * likes to standard output.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "nccl/api.h"
#include "tools/reduce.h"
#include "tools/verify.h"

#define GUARD_BYTES 256u
#define NAP_NS 200000

struct check {
	const char *nccl_path, *cuda_path, *id_path, *report_path;
	const char *cnts;
	int rank, ranks;
	unsigned timeout_s;
	bool probe;

	struct nccl_api nccl;
	struct cuda_api cuda;
	void *comm, *stream;
	FILE *report;
	unsigned cases, bad;
};

static struct check check = {.ranks = 2, .timeout_s = 60, .cnts = "1,1000"};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "nccl_check: rank %d: %s: %s\n", check.rank, what, why);
	exit(1);
}

static void nccl_must(const char *what, int ret)
{
	if (ret != NCCL_SUCCESS) {
		die(what, check.nccl.error_string(ret));
	}
}

static void cuda_must(const char *what, int ret)
{
	const char *text = NULL;

	if (ret != 0) {
		check.cuda.error_string(ret, &text);
		die(what, text == NULL ? "unknown CUDA error" : text);
	}
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void nap(void)
{
	const struct timespec ts = {0, NAP_NS};

	nanosleep(&ts, NULL);
}

/* An error of a peer makes no stream end, so it is asked for. */
static void stream_wait(const char *what)
{
	double end = now_s() + check.timeout_s;
	int ret, state = NCCL_SUCCESS;

	while ((ret = check.cuda.stream_query(check.stream)) ==
	       CUDA_NOT_READY) {
		nccl_must(what, check.nccl.async_error(check.comm, &state));
		if (state != NCCL_SUCCESS && state != NCCL_IN_PROGRESS) {
			die(what, check.nccl.error_string(state));
		}
		if (now_s() > end) {
			die(what, "not done in time");
		}
		nap();
	}
	cuda_must(what, ret);
}

/* By this project's numbers of types and operations. */
static const int nccl_type[FR_TYPE_CNT] = {
	[FR_INT8] = NCCL_INT8,	 [FR_UINT8] = NCCL_UINT8,
	[FR_INT32] = NCCL_INT32, [FR_UINT32] = NCCL_UINT32,
	[FR_INT64] = NCCL_INT64, [FR_UINT64] = NCCL_UINT64,
	[FR_HALF] = NCCL_HALF,	 [FR_BFLOAT16] = NCCL_BFLOAT16,
	[FR_FLOAT] = NCCL_FLOAT, [FR_DOUBLE] = NCCL_DOUBLE,
};
static const int nccl_op[FR_REDOP_CNT] = {
	[FR_SUM] = NCCL_SUM, [FR_PROD] = NCCL_PROD, [FR_MAX] = NCCL_MAX,
	[FR_MIN] = NCCL_MIN, [FR_AVG] = NCCL_AVG,
};

/* Each command with the types and operations that it is run with. */
static const struct kind {
	const char *name;
	int cmd;
	unsigned root;
	int type, op;
} kinds[] = {
	{"all_reduce", FR_PERF_ALL_REDUCE, 0, FR_FLOAT, FR_SUM},
	{"all_reduce", FR_PERF_ALL_REDUCE, 0, FR_HALF, FR_MAX},
	{"all_reduce", FR_PERF_ALL_REDUCE, 0, FR_INT8, FR_SUM},
	{"all_reduce", FR_PERF_ALL_REDUCE, 0, FR_UINT64, FR_MIN},
	{"all_reduce", FR_PERF_ALL_REDUCE, 0, FR_DOUBLE, FR_PROD},
	{"all_gather", FR_PERF_ALL_GATHER, 0, FR_INT8, FR_SUM},
	{"all_gather", FR_PERF_ALL_GATHER, 0, FR_FLOAT, FR_SUM},
	{"reduce_scatter", FR_PERF_REDUCE_SCATTER, 0, FR_FLOAT, FR_SUM},
	{"reduce_scatter", FR_PERF_REDUCE_SCATTER, 0, FR_INT32, FR_MAX},
	{"broadcast", FR_PERF_BROADCAST, 0, FR_FLOAT, FR_SUM},
	{"broadcast", FR_PERF_BROADCAST, 1, FR_UINT8, FR_SUM},
	{"reduce", FR_PERF_REDUCE, 1, FR_INT64, FR_SUM},
	{"sendrecv", FR_PERF_SENDRECV, 0, FR_FLOAT, FR_SUM},
	{"sendrecv", FR_PERF_SENDRECV, 0, FR_INT8, FR_SUM},
	{"alltoall", FR_PERF_ALLTOALL, 0, FR_FLOAT, FR_SUM},
	{"alltoall", FR_PERF_ALLTOALL, 0, FR_UINT8, FR_SUM},
};

struct buffers {
	unsigned long long in, out; /* of the device */
	size_t in_bytes, out_bytes;
	char *host; /* the output with its guard */
};

static void *device(unsigned long long ptr)
{
	return (void *)(uintptr_t)ptr;
}

static void ring(const struct fr_shape *shape, const struct buffers *buf,
		 int type)
{
	int next = (int)((shape->rank + 1) % shape->ranks);
	int prev = (int)((shape->rank + shape->ranks - 1) % shape->ranks);

	nccl_must("ncclGroupStart", check.nccl.group_start());
	nccl_must("ncclSend", check.nccl.send(device(buf->in), shape->cnt, type,
					      next, check.comm, check.stream));
	nccl_must("ncclRecv",
		  check.nccl.recv(device(buf->out), shape->cnt, type, prev,
				  check.comm, check.stream));
	nccl_must("ncclGroupEnd", check.nccl.group_end());
}

static void all_to_all(const struct fr_shape *shape, const struct buffers *buf,
		       int type, size_t bytes)
{
	nccl_must("ncclGroupStart", check.nccl.group_start());
	for (unsigned i = 0; i < shape->ranks; i++) {
		nccl_must("ncclSend",
			  check.nccl.send(device(buf->in + i * bytes),
					  shape->cnt, type, (int)i, check.comm,
					  check.stream));
		nccl_must("ncclRecv",
			  check.nccl.recv(device(buf->out + i * bytes),
					  shape->cnt, type, (int)i, check.comm,
					  check.stream));
	}
	nccl_must("ncclGroupEnd", check.nccl.group_end());
}

static void start(const struct kind *kind, const struct fr_shape *shape,
		  const struct buffers *buf)
{
	int type = nccl_type[kind->type], op = nccl_op[kind->op];
	void *in = device(buf->in), *out = device(buf->out);
	size_t cnt = shape->cnt;
	int ret = NCCL_SUCCESS;

	switch (kind->cmd) {
	case FR_PERF_ALL_REDUCE:
		ret = check.nccl.all_reduce(in, out, cnt, type, op, check.comm,
					    check.stream);
		break;
	case FR_PERF_ALL_GATHER:
		ret = check.nccl.all_gather(in, out, cnt, type, check.comm,
					    check.stream);
		break;
	case FR_PERF_REDUCE_SCATTER:
		ret = check.nccl.reduce_scatter(in, out, cnt, type, op,
						check.comm, check.stream);
		break;
	case FR_PERF_BROADCAST:
		ret = check.nccl.broadcast(in, out, cnt, type, (int)kind->root,
					   check.comm, check.stream);
		break;
	case FR_PERF_REDUCE:
		ret = check.nccl.reduce(in, out, cnt, type, op, (int)kind->root,
					check.comm, check.stream);
		break;
	case FR_PERF_SENDRECV:
		ring(shape, buf, type);
		break;
	default:
		all_to_all(shape, buf, type, cnt * fr_type_bytes(kind->type));
		break;
	}
	nccl_must(kind->name, ret);
}

static void buffers_open(const struct kind *kind, const struct fr_shape *shape,
			 const struct fr_pattern *pattern, struct buffers *buf)
{
	char *host;

	buf->in_bytes = fr_shape_in_cnt(shape) * fr_type_bytes(kind->type);
	buf->out_bytes = fr_shape_out_cnt(shape) * fr_type_bytes(kind->type);
	host = malloc(buf->in_bytes + 1);
	buf->host = malloc(buf->out_bytes + GUARD_BYTES);
	if (host == NULL || buf->host == NULL) {
		die(kind->name, strerror(ENOMEM));
	}
	cuda_must("cuMemAlloc",
		  check.cuda.mem_alloc(&buf->in, buf->in_bytes + 1));
	cuda_must(
		"cuMemAlloc",
		check.cuda.mem_alloc(&buf->out, buf->out_bytes + GUARD_BYTES));
	fr_pattern_fill(pattern, shape, host);
	fr_pattern_poison(buf->host, buf->out_bytes + GUARD_BYTES);
	cuda_must("cuMemcpyHtoD",
		  check.cuda.to_device(buf->in, host, buf->in_bytes));
	cuda_must("cuMemcpyHtoD",
		  check.cuda.to_device(buf->out, buf->host,
				       buf->out_bytes + GUARD_BYTES));
	free(host);
}

static void buffers_close(struct buffers *buf)
{
	cuda_must("cuMemFree", check.cuda.mem_free(buf->in));
	cuda_must("cuMemFree", check.cuda.mem_free(buf->out));
	free(buf->host);
}

static void run_case(const struct kind *kind, size_t cnt)
{
	const struct fr_shape shape = {
		.cmd = kind->cmd,
		.rank = (unsigned)check.rank,
		.ranks = (unsigned)check.ranks,
		.root = kind->root,
		.cnt = cnt,
		.chunk = cnt,
	};
	const struct fr_pattern pattern = {kind->type, kind->op,
					   1000 + check.cases};
	struct buffers buf;
	uint64_t wrong, past;
	double began;

	buffers_open(kind, &shape, &pattern, &buf);
	began = now_s();
	start(kind, &shape, &buf);
	stream_wait(kind->name);
	cuda_must("cuMemcpyDtoH",
		  check.cuda.to_host(buf.host, buf.out,
				     buf.out_bytes + GUARD_BYTES));
	wrong = fr_pattern_wrong(&pattern, &shape, buf.host);
	past = fr_poison_wrong(buf.host + buf.out_bytes, GUARD_BYTES);
	fprintf(check.report,
		"case %s %s %s root %u cnt %zu bytes %zu wrong %llu past %llu "
		"ms %.1f\n",
		kind->name, fr_type_names[kind->type], fr_redop_names[kind->op],
		kind->root, cnt, buf.out_bytes, (unsigned long long)wrong,
		(unsigned long long)past, 1000 * (now_s() - began));
	fflush(check.report);
	check.cases++;
	check.bad += wrong != 0 || past != 0;
	buffers_close(&buf);
}

static void run_cases(void)
{
	for (const char *at = check.cnts; *at != '\0';) {
		char *end;
		unsigned long cnt = strtoul(at, &end, 10);

		if (end == at || (*end != ',' && *end != '\0')) {
			die("--counts", check.cnts);
		}
		for (size_t i = 0; i < FR_ARRAY_LEN(kinds); i++) {
			run_case(&kinds[i], cnt);
		}
		at = *end == ',' ? end + 1 : end;
	}
}

/* Rank 0 writes the file under another name and renames it: who sees it sees
 * all of it. */
static void id_put(const struct nccl_id *id)
{
	char part[4096];
	FILE *file;

	snprintf(part, sizeof(part), "%s.part", check.id_path);
	file = fopen(part, "wb");
	if (file == NULL || fwrite(id, sizeof(*id), 1, file) != 1 ||
	    fclose(file) != 0 || rename(part, check.id_path) != 0) {
		die(check.id_path, strerror(errno));
	}
}

static void id_get(struct nccl_id *id)
{
	double end = now_s() + check.timeout_s;
	FILE *file;

	while ((file = fopen(check.id_path, "rb")) == NULL) {
		if (now_s() > end) {
			die(check.id_path, "rank 0 did not write it in time");
		}
		nap();
	}
	if (fread(id, sizeof(*id), 1, file) != 1) {
		die(check.id_path, "too short");
	}
	fclose(file);
}

/* The primary context is the one that NCCL's own runtime takes. */
static void device_open(int cnt)
{
	int dev;
	void *ctx;

	cuda_must("cuDeviceGet", check.cuda.device_get(&dev, check.rank % cnt));
	cuda_must("cuDevicePrimaryCtxRetain",
		  check.cuda.primary_ctx(&ctx, dev));
	cuda_must("cuCtxSetCurrent", check.cuda.set_ctx(ctx));
	cuda_must("cuStreamCreate", check.cuda.stream_create(&check.stream, 0));
}

static int probe(int cnt)
{
	char name[128] = "";
	int dev, version = 0;

	cuda_must("cuDeviceGet", check.cuda.device_get(&dev, 0));
	cuda_must("cuDeviceGetName",
		  check.cuda.device_name(name, sizeof(name), dev));
	nccl_must("ncclGetVersion", check.nccl.get_version(&version));
	printf("gpus %d nccl %d.%d.%d name %s\n", cnt, version / 10000,
	       version / 100 % 100, version % 100, name);
	return 0;
}

static void comm_open(void)
{
	struct nccl_id id;

	if (check.rank == 0) {
		nccl_must("ncclGetUniqueId", check.nccl.get_unique_id(&id));
		id_put(&id);
	} else {
		id_get(&id);
	}
	nccl_must(
		"ncclCommInitRank",
		check.nccl.init_rank(&check.comm, check.ranks, id, check.rank));
}

static void usage(FILE *to)
{
	fputs("nccl_check --nccl LIB --cuda LIB --rank R --ranks N --id FILE\n"
	      "           --report FILE [--counts N,N,...] [--timeout S]\n"
	      "nccl_check --nccl LIB --cuda LIB --probe\n"
	      "One rank of the check of NCCL; scripts/nccl-check starts "
	      "them.\n",
	      to);
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{"nccl", required_argument, NULL, 'n'},
		{"cuda", required_argument, NULL, 'c'},
		{"rank", required_argument, NULL, 'r'},
		{"ranks", required_argument, NULL, 'N'},
		{"id", required_argument, NULL, 'i'},
		{"report", required_argument, NULL, 'o'},
		{"counts", required_argument, NULL, 's'},
		{"timeout", required_argument, NULL, 't'},
		{"probe", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'n':
			check.nccl_path = optarg;
			break;
		case 'c':
			check.cuda_path = optarg;
			break;
		case 'r':
			check.rank = (int)strtol(optarg, NULL, 10);
			break;
		case 'N':
			check.ranks = (int)strtol(optarg, NULL, 10);
			break;
		case 'i':
			check.id_path = optarg;
			break;
		case 'o':
			check.report_path = optarg;
			break;
		case 's':
			check.cnts = optarg;
			break;
		case 't':
			check.timeout_s = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'p':
			check.probe = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (check.nccl_path == NULL || check.cuda_path == NULL ||
	    (!check.probe && (check.id_path == NULL ||
			      check.report_path == NULL || check.ranks < 2 ||
			      check.rank < 0 || check.rank >= check.ranks))) {
		usage(stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	int cnt = 0;

	parse(argc, argv);
	if (cuda_api_load(check.cuda_path, &check.cuda) != 0) {
		return 1;
	}
	cuda_must("no GPU: cuInit", check.cuda.init(0));
	cuda_must("cuDeviceGetCount", check.cuda.device_count(&cnt));
	if (cnt < 1) {
		die("no GPU", "the driver has none");
	}
	if (nccl_api_load(check.nccl_path, &check.nccl) != 0) {
		return 1;
	}
	if (check.probe) {
		return probe(cnt);
	}
	check.report = fopen(check.report_path, "w");
	if (check.report == NULL) {
		die(check.report_path, strerror(errno));
	}
	device_open(cnt);
	comm_open();
	run_cases();
	nccl_must("ncclCommDestroy", check.nccl.destroy(check.comm));
	fprintf(check.report, "end cases %u bad %u\n", check.cases, check.bad);
	if (fclose(check.report) != 0) {
		die(check.report_path, strerror(errno));
	}
	return check.bad == 0 ? 0 : 1;
}
