/*
 * fuzz_X            the inputs that were kept in test/fuzz/corpus/X, where
 *                   FR_SRCDIR says which tree that is in, and FUZZ_RUNS more
 *                   that are made from a fixed seed
 * fuzz_X -runs=N    N of those
 * fuzz_X FILE...    the inputs in these files
 */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <limits.h>

#include "fuzz/noise.h"

#ifndef FUZZ_RUNS
#define FUZZ_RUNS 20000ul
#endif
#define SEED 20260101u

static void feed(const uint8_t *data, size_t bytes)
{
	uint8_t *copy = noise_odd_copy(data, bytes);

	LLVMFuzzerTestOneInput(copy, bytes);
	noise_odd_free(copy);
}

static void feed_noise(unsigned long runs)
{
	uint8_t good[FUZZ_MAX];
	uint8_t buf[FUZZ_MAX];
	size_t good_bytes = fuzz_good(good);
	uint64_t state = SEED;

	for (unsigned long i = 0; i < runs; i++) {
		feed(buf, noise_fill(&state, good, good_bytes, buf,
				     i % 8 == 0 ? FUZZ_MAX : good_bytes + 16));
	}
}

static int feed_file(const char *path)
{
	static uint8_t buf[1 << 16];
	FILE *file = fopen(path, "rb");
	size_t bytes;

	if (file == NULL) {
		perror(path);
		return 1;
	}
	bytes = fread(buf, 1, sizeof(buf), file);
	fclose(file);
	feed(buf, bytes);
	return 0;
}

static int feed_kept(const char *program)
{
	const char *tree = getenv("FR_SRCDIR");
	const char *name = strstr(program, "fuzz_");
	char dir[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
	const struct dirent *entry;
	int failed = 0;
	DIR *kept;

	for (const char *next = name; next != NULL;) {
		name = next;
		next = strstr(next + 1, "fuzz_");
	}
	if (tree == NULL || name == NULL) {
		return 0;
	}
	snprintf(dir, sizeof(dir), "%s/test/fuzz/corpus/%s", tree,
		 name + strlen("fuzz_"));
	kept = opendir(dir);
	if (kept == NULL) {
		perror(dir);
		return 1;
	}
	while ((entry = readdir(kept)) != NULL) {
		if (entry->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", dir,
				 entry->d_name);
			failed |= feed_file(path);
		}
	}
	closedir(kept);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc < 2) {
		failed = feed_kept(argv[0]);
		feed_noise(FUZZ_RUNS);
		return failed;
	}
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "-runs=", 6) == 0) {
			feed_noise(strtoul(argv[i] + 6, NULL, 10));
		} else {
			failed |= feed_file(argv[i]);
		}
	}
	return failed;
}
