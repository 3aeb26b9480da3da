/*
 * The shared object, as a plain C program sees it: no library of ours is in
 * this one, only the headers of the tables. Found the way each NCCL release
 * looks for it, loaded beside functions that are called as ours are,
 * initialised from many threads at once, loaded twice. Each case has a process
 * of its own.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl/net_v12.h"
#include "nccl/net_v6.h"

#define SKIP 77
#define THREADS 8
#define DEVICES_MAX 32
#define BYTES (256u << 10)
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char *plugin_path;
static char scratch[] = "/tmp/fr-loader-XXXXXX";

#define CHECK(cond, ...)                                                       \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fail(__LINE__, __VA_ARGS__);                           \
		}                                                              \
	} while (0)

static void fail(int line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

static void fail(int line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	printf("FAILED: ");
	vprintf(fmt, args);
	va_end(args);
	printf("\n  %s:%d\n", __FILE__, line);
	fflush(stdout);
	_exit(1);
}

/* -- what this host has of its own ---------------------------------------- */

/*
 * Named as functions and data inside of the plugin are. Were one of the
 * plugin's bound to these, this process would end.
 */
#define SEEN __attribute__((visibility("default")))
#define CLASH(name)                                                            \
	SEEN void name(void);                                                  \
	void name(void)                                                        \
	{                                                                      \
		CHECK(false, "the plugin called %s of its host", #name);       \
	}
CLASH(fr_net_get)
CLASH(fr_net_put)
CLASH(fr_net_isend)
CLASH(fr_net_test)
CLASH(fr_net_unload)
CLASH(fr_fabric_open)
CLASH(fr_rail_open)
CLASH(fr_rail_poll)
CLASH(fr_conn_encode)
CLASH(fr_handle_encode)
CLASH(fr_param_load)
CLASH(fr_log_line)
CLASH(fr_calloc)
CLASH(fr_free)
CLASH(fr_random)
CLASH(fr_shell_init)
CLASH(fr_shell_unload)
CLASH(fr_set_get_locked)
CLASH(fr_progress_locked)
SEEN int fr_core = 0x55;
SEEN int fr_conf_table[64];

static _Atomic unsigned warnings;
static char first_warning[512];
static _Atomic unsigned init_lines;

__attribute__((format(printf, 5, 6))) static void
logger(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
       const char *fmt, ...)
{
	char text[512];
	va_list args;

	(void)flags;
	(void)file;
	(void)line;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (level == NCCL_LOG_WARN && atomic_fetch_add(&warnings, 1) == 0) {
		memcpy(first_warning, text, sizeof(text));
	}
	if (strstr(text, "initialised through net interface v") != NULL) {
		atomic_fetch_add(&init_lines, 1);
	}
}

static void *load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	CHECK(lib != NULL, "%s", dlerror());
	return lib;
}

static bool in_sanitizer(const char *which)
{
	const char *name = getenv("FR_SANITIZER");

	return name != NULL && (which == NULL || strcmp(name, which) == 0);
}

/* The thread sanitizer ends a process that unloads a library named in its
 * suppressions. */
static void unload(void *lib)
{
	if (!in_sanitizer("tsan")) {
		CHECK(dlclose(lib) == 0, "dlclose: %s", dlerror());
	}
}

static const void *table(void *lib, int abi)
{
	char symbol[32];

	(void)snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", abi);
	return dlsym(lib, symbol);
}

/* -- one release after the other ------------------------------------------- */

struct release {
	int first, last; /* 2.N */
	int tried[8];	 /* tables, newest first, up to 0 */
};

static const struct release releases[] = {
	{8, 11, {4}},
	{12, 12, {5, 4}},
	{13, 18, {6, 5, 4}},
	{19, 19, {7, 6, 5}},
	{20, 23, {8, 7, 6, 5}},
	{24, 25, {9, 8, 7, 6, 5}},
	{26, 27, {10, 9, 8, 7, 6}},
	{28, 29, {11, 10, 9, 8, 7, 6}},
	{30, 30, {12, 11, 10, 9, 8, 7, 6}},
};

/* By position, the name being the first. */
static unsigned members_of(int abi)
{
	return abi <= 5	   ? 16
	       : abi == 6  ? 17
	       : abi <= 8  ? 19
	       : abi <= 10 ? 20
			   : 22;
}

static bool may_be_null(int abi, unsigned member)
{
	bool dmabuf = abi >= 6 && member == 8;
	bool offload = member == 17 || member == 18; /* device, consumed */
	bool merging = member == 19, hints = member == 21;

	return dmabuf || offload || merging || hints;
}

static void check_members(const void *found, int abi)
{
	void *const *member = found;

	CHECK(strcmp(member[0], "fabrail") == 0, "v%d is named %s before init",
	      abi, (const char *)member[0]);
	for (unsigned i = 1; i < members_of(abi); i++) {
		CHECK(member[i] != NULL || may_be_null(abi, i),
		      "v%d: member %u is missing", abi, i);
	}
}

static ncclResult_t call_init(const void *found, int abi, void **ctx)
{
	typedef ncclResult_t (*plain_fn)(ncclDebugLogger_t);
	typedef ncclResult_t (*profiled_fn)(ncclDebugLogger_t,
					    ncclProfilerCallback_t);
	ncclNetCommConfig_v10_t config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};
	void *const *member = found;

	*ctx = NULL;
	if (abi >= 11) {
		return ((const ncclNet_v12_t *)found)
			->init(ctx, 1, &config, logger, NULL);
	}
	if (abi == 10) {
		return ((profiled_fn)member[1])(logger, NULL);
	}
	return ((plain_fn)member[1])(logger);
}

static ncclResult_t call_devices(const void *found, int *cnt)
{
	void *const *member = found;

	return ((ncclResult_t(*)(int *))member[2])(cnt);
}

/* The name; it is the first property of each version. */
static ncclResult_t call_props(const void *found, int dev, char **name,
			       char **path)
{
	_Alignas(16) char props[256];
	void *const *member = found;
	ncclResult_t res;

	res = ((ncclResult_t(*)(int, void *))member[3])(dev, props);
	if (res == ncclSuccess) {
		memcpy(name, props, sizeof(*name));
		memcpy(path, props + sizeof(*name), sizeof(*path));
	}
	return res;
}

static void check_early(const void *found, int abi)
{
	void *const *member = found;
	char *name = NULL, *path;
	int n = 5;

	CHECK(call_devices(found, &n) == ncclInvalidUsage && n == 0,
	      "v%d: devices before init", abi);
	CHECK(call_props(found, 0, &name, &path) == ncclInvalidUsage,
	      "v%d: properties before init", abi);
	for (unsigned i = abi >= 6 ? 14 : 13; i < (abi >= 6 ? 17u : 16u); i++) {
		ncclResult_t (*close_fn)(void *);

		memcpy(&close_fn, &member[i], sizeof(close_fn));
		CHECK(close_fn(NULL) == ncclSuccess &&
			      close_fn(&n) == ncclInvalidUsage,
		      "v%d: closing before init", abi);
	}
}

static void check_release(const struct release *release)
{
	void *lib = load(plugin_path), *ctx;
	const void *found = NULL;
	char *name = NULL, *path;
	int abi = 0, n = 0;

	for (unsigned i = 0; found == NULL && release->tried[i] != 0; i++) {
		abi = release->tried[i];
		found = table(lib, abi);
	}
	CHECK(found != NULL && abi == release->tried[0],
	      "2.%d finds v%d and not v%d", release->first, abi,
	      release->tried[0]);
	check_members(found, abi);
	check_early(found, abi);
	CHECK(call_init(found, abi, &ctx) == ncclSuccess, "v%d: init: %s", abi,
	      first_warning);
	CHECK(call_devices(found, &n) == ncclSuccess && n > 0,
	      "v%d: %d devices", abi, n);
	CHECK(call_props(found, 0, &name, &path) == ncclSuccess &&
		      strcmp(name, "fabrail0") == 0,
	      "v%d: properties", abi);
	CHECK(atomic_load(&init_lines) == 1, "v%d: %u lines about init", abi,
	      atomic_load(&init_lines));
	CHECK(atomic_load(&warnings) == 0, "v%d: %s", abi, first_warning);
	if (abi >= 11) {
		CHECK(((const ncclNet_v12_t *)found)->finalize(ctx) ==
			      ncclSuccess,
		      "v%d: finalize", abi);
	}
	unload(lib);
}

static unsigned nth_release;

/* Early calls are told to standard error, which is right. */
static void run_release(void)
{
	check_release(&releases[nth_release]);
}

/* What is looked up, and what no release ever may find. */
static void run_symbols(void)
{
	static const char *const absent[] = {
		"ncclNetPlugin_v3",	"ncclNetPlugin_v13", "ncclNetPlugin",
		"ncclCollNetPlugin_v6", "fr_net_get",	     "fr_core",
		"ncclTunerPlugin_v2"};
	void *lib = load(plugin_path);

	for (int abi = 4; abi <= 12; abi++) {
		CHECK(table(lib, abi) != NULL, "no v%d", abi);
	}
	for (size_t i = 0; i < LEN(absent); i++) {
		void *at = dlsym(lib, absent[i]);
		Dl_info info;

		CHECK(at == NULL || dladdr(at, &info) == 0 ||
			      strcmp(info.dli_fname, plugin_path) != 0,
		      "the plugin exports %s", absent[i]);
	}
	unload(lib);
}

/* -- many threads ---------------------------------------------------------- */

struct seen {
	int cnt;
	char *name[DEVICES_MAX];
	char *path[DEVICES_MAX];
	void *ctx;
	ncclResult_t failed;
};

static struct {
	const void *v6, *v12;
	pthread_barrier_t barrier;
	bool fails_first;
	struct seen seen[THREADS];
} many;

static void look(const void *found, int abi, struct seen *seen)
{
	CHECK(call_init(found, abi, &seen->ctx) == ncclSuccess, "init: %s",
	      first_warning);
	CHECK(call_devices(found, &seen->cnt) == ncclSuccess, "devices");
	CHECK(seen->cnt > 0 && seen->cnt <= DEVICES_MAX, "%d devices",
	      seen->cnt);
	for (int i = 0; i < seen->cnt; i++) {
		CHECK(call_props(found, i, &seen->name[i], &seen->path[i]) ==
			      ncclSuccess,
		      "properties of device %d", i);
	}
}

/* Every second one through the table that has no contexts. */
static void *look_from_thread(void *arg)
{
	struct seen *seen = arg;
	bool odd = (seen - many.seen) % 2 != 0;
	const void *found = odd ? many.v6 : many.v12;
	int abi = odd ? 6 : 12;

	pthread_barrier_wait(&many.barrier);
	if (many.fails_first) {
		seen->failed = call_init(found, abi, &seen->ctx);
		pthread_barrier_wait(&many.barrier);
		pthread_barrier_wait(&many.barrier); /* the cause is gone */
	}
	look(found, abi, seen);
	return NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void check_same(const struct seen *a, const struct seen *b)
{
	CHECK(a->cnt == b->cnt, "one thread sees %d devices, another %d",
	      a->cnt, b->cnt);
	for (int i = 0; i < a->cnt; i++) {
		CHECK(same_text(a->name[i], b->name[i]) &&
			      same_text(a->path[i], b->path[i]),
		      "device %d is %s to one thread and %s to another", i,
		      a->name[i], b->name[i]);
	}
}

static void run_many(void)
{
	pthread_t thread[THREADS];
	void *lib = load(plugin_path);

	many.v6 = table(lib, 6);
	many.v12 = table(lib, 12);
	pthread_barrier_init(&many.barrier, NULL,
			     THREADS + (many.fails_first ? 1 : 0));
	setenv("OFI_NCCL_TCP_IF", "", 1);
	setenv("OFI_NCCL_EXCLUDE_TCP_IF", ",", 1);
	setenv("OFI_NCCL_MAX_RAILS", "1", 1);
	if (many.fails_first) {
		setenv("OFI_NCCL_CQ_READ_COUNT", "many", 1);
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK(pthread_create(&thread[i], NULL, look_from_thread,
				     &many.seen[i]) == 0,
		      "no thread");
	}
	if (many.fails_first) {
		pthread_barrier_wait(&many.barrier);
		pthread_barrier_wait(&many.barrier);
		unsetenv("OFI_NCCL_CQ_READ_COUNT");
		pthread_barrier_wait(&many.barrier);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		check_same(&many.seen[0], &many.seen[i]);
		CHECK(!many.fails_first ||
			      many.seen[i].failed == ncclInvalidArgument,
		      "a bad parameter gives result %d",
		      (int)many.seen[i].failed);
		if (i % 2 == 0) {
			CHECK(((const ncclNet_v12_t *)many.v12)
					      ->finalize(many.seen[i].ctx) ==
				      ncclSuccess,
			      "finalize");
		}
	}
	unload(lib);
}

static void run_many_after_failure(void)
{
	many.fails_first = true;
	run_many();
}

/* -- messages -------------------------------------------------------------- */

/* One direction, from one table's comm to another's; both in this thread. */
struct line {
	const ncclNet_v6_t *from, *to;
	void *send, *recv, *out_mh, *in_mh;
	unsigned char *out, *in;
};

static void line_connect(struct line *line)
{
	_Alignas(16) char handle[NCCL_NET_HANDLE_MAXSIZE] = {0};
	void *listen;

	CHECK(line->to->listen(0, handle, &listen) == ncclSuccess, "listen");
	while (line->send == NULL || line->recv == NULL) {
		if (line->send == NULL) {
			CHECK(line->from->connect(0, handle, &line->send) ==
				      ncclSuccess,
			      "connect");
		}
		if (line->recv == NULL) {
			CHECK(line->to->accept(listen, &line->recv) ==
				      ncclSuccess,
			      "accept");
		}
	}
	CHECK(line->to->closeListen(listen) == ncclSuccess, "closeListen");
	line->out = malloc(BYTES);
	line->in = malloc(BYTES);
	CHECK(line->out != NULL && line->in != NULL, "no memory");
	CHECK(line->from->regMr(line->send, line->out, BYTES, NCCL_PTR_HOST,
				&line->out_mh) == ncclSuccess &&
		      line->to->regMr(line->recv, line->in, BYTES,
				      NCCL_PTR_HOST,
				      &line->in_mh) == ncclSuccess,
	      "regMr");
}

static void line_send(struct line *line, int bytes, int value)
{
	void *data = line->in, *mh = line->in_mh, *sent = NULL, *got = NULL;
	int size = BYTES, tag = 0, out_done = 0, in_done = 0;

	memset(line->out, value, (size_t)bytes);
	memset(line->in, ~value, BYTES);
	while (!out_done || !in_done) {
		if (got == NULL) {
			CHECK(line->to->irecv(line->recv, 1, &data, &size, &tag,
					      &mh, &got) == ncclSuccess,
			      "irecv");
		} else if (!in_done) {
			CHECK(line->to->test(got, &in_done, &size) ==
				      ncclSuccess,
			      "test");
		}
		if (sent == NULL) {
			CHECK(line->from->isend(line->send, line->out, bytes,
						tag, line->out_mh,
						&sent) == ncclSuccess,
			      "isend");
		} else if (!out_done) {
			CHECK(line->from->test(sent, &out_done, NULL) ==
				      ncclSuccess,
			      "test");
		}
	}
	CHECK(size == bytes, "%d bytes sent, %d received", bytes, size);
	for (int i = 0; i < (int)BYTES; i++) {
		CHECK(line->in[i] ==
			      (unsigned char)(i < bytes ? value : ~value),
		      "byte %d of %d came wrong", i, bytes);
	}
}

static void line_close(struct line *line)
{
	CHECK(line->from->deregMr(line->send, line->out_mh) == ncclSuccess &&
		      line->to->deregMr(line->recv, line->in_mh) == ncclSuccess,
	      "deregMr");
	CHECK(line->from->closeSend(line->send) == ncclSuccess &&
		      line->to->closeRecv(line->recv) == ncclSuccess,
	      "close");
	free(line->out);
	free(line->in);
}

static const int message_sizes[] = {0, 8, 4096, BYTES};

static const ncclNet_v6_t *start(void *lib)
{
	const ncclNet_v6_t *net = table(lib, 6);

	CHECK(net != NULL, "no v6");
	CHECK(net->init(logger) == ncclSuccess, "init: %s", first_warning);
	return net;
}

static void use(void *lib)
{
	struct line line = {.from = start(lib)};

	line.to = line.from;
	line_connect(&line);
	for (size_t i = 0; i < LEN(message_sizes); i++) {
		line_send(&line, message_sizes[i], (int)i + 1);
	}
	line_close(&line);
	CHECK(atomic_load(&warnings) == 0, "%s", first_warning);
}

/* The host's own symbols are in the scope that is searched first. */
static void run_clash(void)
{
	void *self = dlopen(NULL, RTLD_NOW), *lib;

	CHECK(dlsym(self, "fr_net_get") != NULL &&
		      dlsym(self, "fr_core") == &fr_core,
	      "this program does not export its symbols");
	lib = load(plugin_path);
	use(lib);
	CHECK(fr_core == 0x55, "the plugin wrote to a variable of its host");
	unload(lib);
}

/* -- beside other libraries ------------------------------------------------ */

static void copy_file(const char *from, const char *to)
{
	static char block[1 << 16];
	FILE *in = fopen(from, "re"), *out = fopen(to, "we");
	size_t n;

	CHECK(in != NULL && out != NULL, "cannot copy %s to %s", from, to);
	while ((n = fread(block, 1, sizeof(block), in)) > 0) {
		CHECK(fwrite(block, 1, n, out) == n, "cannot write %s", to);
	}
	fclose(in);
	CHECK(fclose(out) == 0, "cannot write %s", to);
}

/* Both work at once, also with each other, and each ends alone. */
static void run_copies(void)
{
	const ncclNet_v6_t *one, *other;
	void *first, *second;
	struct line line[4];
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/copy.so", scratch);
	copy_file(plugin_path, path);
	first = load(plugin_path);
	second = load(path);
	one = start(first);
	other = start(second);
	CHECK(one != other, "the copy is the same library");
	memset(line, 0, sizeof(line));
	for (int i = 0; i < 4; i++) {
		line[i].from = i % 2 == 0 ? one : other;
		line[i].to = i / 2 == 0 ? one : other;
		line_connect(&line[i]);
	}
	for (size_t i = 0; i < LEN(message_sizes); i++) {
		for (int j = 0; j < 4; j++) {
			line_send(&line[j], message_sizes[i], j + 1);
		}
	}
	for (int i = 0; i < 4; i++) {
		line_close(&line[i]);
	}
	unload(second);
	use(first);
	unload(first);
	CHECK(atomic_load(&warnings) == 0, "%s", first_warning);
}

/* Where this libfabric lies; in a child, as to ask is to load it. */
static bool find_libfabric(char *path, size_t bytes)
{
	struct link_map *map;
	int fd[2], status;
	ssize_t n;
	pid_t pid;

	CHECK(pipe(fd) == 0, "pipe");
	pid = fork();
	if (pid == 0) {
		void *lib = dlopen("libfabric.so.1", RTLD_NOW);

		if (lib == NULL || dlinfo(lib, RTLD_DI_LINKMAP, &map) != 0 ||
		    write(fd[1], map->l_name, strlen(map->l_name)) < 0) {
			_exit(1);
		}
		_exit(0);
	}
	close(fd[1]);
	n = read(fd[0], path, bytes - 1);
	close(fd[0]);
	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	path[n > 0 ? n : 0] = '\0';
	return n > 0 && status == 0;
}

/* The host has loaded a libfabric of its own from elsewhere, for all to see.
 * Its name is the usual one, by which the sanitizers' lists know it. */
static void run_other_libfabric(void)
{
	char path[PATH_MAX], copy[256];
	void *other, *lib;

	CHECK(find_libfabric(path, sizeof(path)), "no libfabric.so.1");
	(void)snprintf(copy, sizeof(copy), "%s/libfabric.so.1", scratch);
	copy_file(path, copy);
	other = dlopen(copy, RTLD_NOW | RTLD_GLOBAL);
	CHECK(other != NULL, "%s", dlerror());
	lib = load(plugin_path);
	use(lib);
	unload(lib);
}

static void run_plain(void)
{
	void *lib = load(plugin_path);

	use(lib);
	unload(lib);
}

/* -- the parent ------------------------------------------------------------ */

static pid_t begin(void (*run)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (pid == 0) {
		setenv("OFI_NCCL_TCP_IF", "=lo", 1);
		alarm(in_sanitizer(NULL) ? 400 : 100);
		run();
		fflush(stdout);
		exit(0);
	}
	return pid;
}

static int end(const char *name, pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		return 0;
	}
	printf("FAILED: %s ended with status %#x\n", name, (unsigned)status);
	return 1;
}

/* Two at a time. */
static int run_fresh(const char *name, unsigned cnt, void (*run)(void))
{
	pid_t before = 0;
	int failed = 0;

	for (unsigned i = 0; i < cnt && failed == 0; i++) {
		pid_t pid = begin(run);

		if (before != 0) {
			failed = end(name, before);
		}
		before = pid;
	}
	failed += end(name, before);
	printf("  %s: %u processes\n", name, cnt);
	return failed;
}

static int run_all(unsigned fresh)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"what is exported", run_symbols},
		{"a plain program", run_plain},
		{"a host with names of ours", run_clash},
		{"two copies at once", run_copies},
		{"beside another libfabric", run_other_libfabric},
	};
	int failed = 0;

	for (nth_release = 0; nth_release < LEN(releases); nth_release++) {
		failed += end("a release and its table", begin(run_release));
	}
	printf("  every release finds its table\n");
	for (size_t i = 0; i < LEN(cases); i++) {
		failed += end(cases[i].name, begin(cases[i].run));
		printf("  %s\n", cases[i].name);
	}
	failed += run_fresh("8 threads at the first init", fresh, run_many);
	failed += run_fresh("8 threads at a failing init", fresh / 4,
			    run_many_after_failure);
	return failed;
}

static void clean_up(void)
{
	static const char *const names[] = {"copy.so", "libfabric.so.1"};
	char path[256];

	for (size_t i = 0; i < LEN(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", scratch, names[i]);
		unlink(path);
	}
	rmdir(scratch);
}

int main(void)
{
	const char *fresh = getenv("FR_TEST_FRESH");
	unsigned cnt = in_sanitizer(NULL) ? 12 : 80;
	int failed;

	plugin_path = getenv("FR_PLUGIN");
	if (plugin_path == NULL || access(plugin_path, R_OK) != 0) {
		printf("skipped: no plugin to test (FR_PLUGIN: %s)\n",
		       plugin_path == NULL ? "not set" : plugin_path);
		return SKIP;
	}
	setenv("IPATH_NO_BACKTRACE", "1", 1);
	CHECK(mkdtemp(scratch) != NULL, "mkdtemp");
	printf("t_loader: budget %u s\n", in_sanitizer(NULL) ? 80 : 20);
	failed = run_all(fresh != NULL ? (unsigned)strtoul(fresh, NULL, 10)
				       : cnt);
	clean_up();
	return failed == 0 ? 0 : 1;
}
