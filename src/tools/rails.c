#include "tools/rails.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

#define VARIABLE "OFI_NCCL_STATS_FILE"

/* Rails of one rank on their way to the sum. */
struct share {
	uint64_t place; /* namespace and host; 0: to be counted in any case */
	uint32_t cnt;
	struct fr_perf_rail rail[FR_PERF_MAX_RAILS];
};

static void add(struct fr_perf_rail *sum, unsigned *cnt,
		const struct fr_perf_rail *rail)
{
	for (unsigned i = 0; i < *cnt; i++) {
		if (strcmp(sum[i].name, rail->name) == 0) {
			sum[i].tx_bytes += rail->tx_bytes;
			sum[i].rx_bytes += rail->rx_bytes;
			return;
		}
	}
	if (*cnt < FR_PERF_MAX_RAILS) {
		sum[(*cnt)++] = *rail;
	}
}

/* The value of "@key": in the flat object at @line, or NULL. */
static const char *value_of(const char *line, const char *key)
{
	char quoted[40];
	const char *end = line + strcspn(line, "\n"), *at;

	(void)snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(line, quoted);
	return at != NULL && at < end ? at + strlen(quoted) : NULL;
}

static uint64_t number_of(const char *line, const char *key)
{
	const char *at = value_of(line, key);

	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

static bool parse_line(const char *line, long pid, unsigned *index,
		       struct fr_perf_rail *rail)
{
	const char *name = value_of(line, "name");
	size_t len;

	if (name == NULL || value_of(line, "tx_bytes") == NULL ||
	    (long)number_of(line, "pid") != pid) {
		return false;
	}
	name += strspn(name, " \"");
	len = strcspn(name, "\"\n");
	if (len >= sizeof(rail->name) - 8) {
		len = sizeof(rail->name) - 8;
	}
	memset(rail, 0, sizeof(*rail));
	memcpy(rail->name, name, len);
	rail->tx_bytes = number_of(line, "tx_bytes");
	rail->rx_bytes = number_of(line, "rx_bytes");
	*index = (unsigned)number_of(line, "rail");
	return true;
}

/* Does another rail have @name too? Then names get their rail's number. */
static bool is_shared(const char *text, long pid, const char *name,
		      unsigned index)
{
	struct fr_perf_rail other;
	unsigned other_index;

	for (const char *at = text; *at != 0;
	     at += strcspn(at, "\n"), at += *at == '\n') {
		if (parse_line(at, pid, &other_index, &other) &&
		    other_index != index && strcmp(other.name, name) == 0) {
			return true;
		}
	}
	return false;
}

void fr_rails_parse(const char *text, long pid, struct fr_perf_rail *sum,
		    unsigned *cnt)
{
	struct fr_perf_rail rail;
	unsigned index;

	for (const char *at = text; *at != 0;
	     at += strcspn(at, "\n"), at += *at == '\n') {
		if (!parse_line(at, pid, &index, &rail)) {
			continue;
		}
		if (is_shared(text, pid, rail.name, index)) {
			size_t len = strlen(rail.name);

			(void)snprintf(rail.name + len, sizeof(rail.name) - len,
				       "#%u", index % 1000);
		}
		add(sum, cnt, &rail);
	}
}

/* Counters of the interfaces of this process's namespace. */
static void read_interfaces(struct fr_perf_rail *rail, unsigned *cnt)
{
	unsigned long long rx, tx;
	char line[512], name[64];
	FILE *in = fopen("/proc/self/net/dev", "re");

	*cnt = 0;
	while (in != NULL && *cnt < FR_PERF_MAX_RAILS &&
	       fgets(line, sizeof(line), in) != NULL) {
		if (sscanf(line,
			   " %47[^:]: %llu %*u %*u %*u %*u %*u %*u %*u %llu",
			   name, &rx, &tx) != 3) {
			continue;
		}
		memset(&rail[*cnt], 0, sizeof(*rail));
		(void)snprintf(rail[*cnt].name, sizeof(rail->name), "%.47s",
			       name);
		rail[*cnt].tx_bytes = tx;
		rail[*cnt].rx_bytes = rx;
		(*cnt)++;
	}
	if (in != NULL) {
		(void)fclose(in);
	}
}

void fr_rails_begin(struct fr_rails *r)
{
	const char *user = getenv(VARIABLE);
	struct stat st;

	memset(r, 0, sizeof(*r));
	r->own_fd = -1;
	if (user != NULL && user[0] != 0) {
		(void)snprintf(r->file, sizeof(r->file), "%s", user);
		r->old_bytes = stat(r->file, &st) == 0 ? st.st_size : 0;
	} else {
		r->own_fd = memfd_create("fabrail-perf", MFD_CLOEXEC);
		(void)snprintf(r->file, sizeof(r->file), "/proc/self/fd/%d",
			       r->own_fd);
		if (r->own_fd >= 0) {
			(void)setenv(VARIABLE, r->file, 1);
		}
	}
	read_interfaces(r->before, &r->before_cnt);
}

void fr_rails_discard(struct fr_rails *r)
{
	if (r->own_fd >= 0) {
		(void)close(r->own_fd);
		r->own_fd = -1;
	}
}

/* NULL: nothing was written, or it cannot be read. */
static char *read_statistics(const struct fr_rails *r)
{
	FILE *in = fopen(r->file, "re");
	struct stat st;
	char *text = NULL;
	size_t len;

	if (in == NULL) {
		return NULL;
	}
	if (fstat(fileno(in), &st) == 0 && st.st_size > r->old_bytes &&
	    fseeko(in, r->old_bytes, SEEK_SET) == 0) {
		len = (size_t)(st.st_size - r->old_bytes);
		text = fr_calloc(1, len + 1);
		if (text != NULL && fread(text, 1, len, in) != len) {
			fr_free(text);
			text = NULL;
		}
	}
	(void)fclose(in);
	return text;
}

/* Ranks in one namespace see the same counters: they are counted once. */
static uint64_t place_of(void)
{
	uint64_t hash = 1469598103934665603ull;
	char boot[64] = "";
	struct stat st;
	FILE *in = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (in != NULL) {
		if (fgets(boot, sizeof(boot), in) == NULL) {
			boot[0] = 0;
		}
		(void)fclose(in);
	}
	for (const char *c = boot; *c != 0; c++) {
		hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
	}
	if (stat("/proc/self/ns/net", &st) == 0) {
		hash ^= (uint64_t)st.st_ino << 1;
	}
	return hash | 1;
}

static void use_interfaces(const struct fr_rails *r, struct share *mine)
{
	struct fr_perf_rail now[FR_PERF_MAX_RAILS];
	unsigned cnt;

	mine->place = place_of();
	read_interfaces(now, &cnt);
	for (unsigned i = 0; i < cnt; i++) {
		for (unsigned k = 0; k < r->before_cnt; k++) {
			if (strcmp(now[i].name, r->before[k].name) == 0) {
				now[i].tx_bytes -= r->before[k].tx_bytes;
				now[i].rx_bytes -= r->before[k].rx_bytes;
			}
		}
		if (now[i].tx_bytes != 0 || now[i].rx_bytes != 0) {
			mine->rail[mine->cnt++] = now[i];
		}
	}
}

static void merge(const struct share *all, unsigned ranks,
		  struct fr_perf_rail *sum, unsigned *cnt)
{
	bool seen;

	for (unsigned i = 0; i < ranks; i++) {
		seen = false;
		for (unsigned k = 0; k < i; k++) {
			seen |= all[i].place != 0 &&
				all[k].place == all[i].place;
		}
		for (unsigned k = 0; k < all[i].cnt && !seen; k++) {
			add(sum, cnt, &all[i].rail[k]);
		}
	}
}

int fr_rails_end_wait(struct fr_rails *r, struct fr_oob *oob,
		      struct fr_perf_rail *sum, unsigned *cnt)
{
	unsigned ranks = fr_oob_ranks(oob), own = 0;
	struct share *all = fr_calloc(ranks + 1, sizeof(*all));
	struct share *mine = all != NULL ? &all[ranks] : NULL;
	char *text;
	int ret;

	if (all == NULL) {
		return -ENOMEM;
	}
	text = read_statistics(r);
	if (text != NULL) {
		fr_rails_parse(text, (long)getpid(), mine->rail, &own);
		mine->cnt = own;
		fr_free(text);
	}
	if (mine->cnt == 0) {
		use_interfaces(r, mine);
	}
	fr_rails_discard(r);
	*cnt = 0;
	ret = fr_oob_all_gather_wait(oob, mine, sizeof(*mine), all);
	if (ret == 0) {
		merge(all, ranks, sum, cnt);
	}
	fr_free(all);
	return ret;
}
