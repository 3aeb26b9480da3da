#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t buf[FR_EAGER_HDR_BYTES];
	const uint8_t *payload = NULL;
	const char *why = NULL;
	struct fr_eager m;
	int ret = fr_eager_decode(&m, data, bytes, &payload, &why);

	fuzz_check(ret == 0 || ret == -EBADMSG);
	fuzz_check((ret == 0) == (why == NULL));
	if (ret == 0) {
		fuzz_check(payload + m.len == data + bytes);
		fr_eager_hdr_encode(&m, buf);
		fuzz_check(memcmp(buf, data, sizeof(buf)) == 0);
	}
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	struct fr_eager m = {.comm = 9, .nonce = 1, .tag = 2, .len = 40};

	memset(buf, 'e', FR_EAGER_HDR_BYTES + m.len);
	fr_eager_hdr_encode(&m, buf);
	return FR_EAGER_HDR_BYTES + m.len;
}
