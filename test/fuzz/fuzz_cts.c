#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t buf[FUZZ_MAX];
	static struct fr_cts m;
	const char *why = NULL;
	int ret = fr_cts_decode(&m, data, bytes, &why);

	fuzz_check(ret == 0 || ret == -EBADMSG);
	fuzz_check((ret == 0) == (why == NULL));
	if (ret == 0) {
		fuzz_check(fr_cts_encode(&m, buf, sizeof(buf)) == (int)bytes);
		fuzz_check(memcmp(buf, data, bytes) == 0);
	}
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	static struct fr_cts m = {.comm = 1, .first32 = 9, .prev32 = 7};
	int n;

	m.entry_cnt = 8;
	m.key_cnt = 4;
	for (unsigned i = 0; i < m.entry_cnt; i++) {
		m.entries[i].group = 8;
		m.entries[i].index = (uint8_t)i;
		m.entries[i].len = 1024;
	}
	n = fr_cts_encode(&m, buf, FUZZ_MAX);
	fuzz_check(n > 0);
	return (size_t)n;
}
