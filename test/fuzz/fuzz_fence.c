/* The first byte chooses the type. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/fence.h"
#include "wire/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct fr_fence m;
	uint8_t buf[FUZZ_MAX];
	const char *why = NULL;
	uint8_t type;
	int ret;

	if (bytes == 0) {
		return 0;
	}
	type = (uint8_t)(FR_LINK_FENCE + *data % 4);
	ret = fr_fence_decode(type, &m, data + 1, bytes - 1, &why);
	fuzz_check(ret == 0 || ret == -EBADMSG);
	fuzz_check((ret == 0) == (why == NULL));
	if (ret == 0) {
		fuzz_check(m.rail < 8 && m.item_cnt <= FR_FENCE_MAX_ITEMS);
		fuzz_check(fr_fence_encode(&m, buf, sizeof(buf)) ==
			   (int)bytes - 1);
		fuzz_check(memcmp(buf, data + 1, bytes - 1) == 0);
	}
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	static struct fr_fence m = {.type = FR_LINK_FENCED,
				    .rail = 1,
				    .inc = 1,
				    .new_inc = 2,
				    .data = {16, {2}},
				    .ctrl = {16, {2}},
				    .item_cnt = 3};
	int n = fr_fence_encode(&m, buf + 1, FUZZ_MAX - 1);

	fuzz_check(n > 0);
	buf[0] = FR_LINK_FENCED - FR_LINK_FENCE;
	return (size_t)n + 1;
}
