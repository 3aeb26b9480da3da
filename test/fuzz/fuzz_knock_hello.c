#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/knock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t buf[FR_KNOCK_HELLO_BYTES];
	uint64_t set_id;
	int ret = fr_knock_hello_decode(&set_id, data, bytes);

	fuzz_check(ret == 0 || ret == -EBADMSG);
	if (ret == 0) {
		fr_knock_hello_encode(set_id, buf);
		fuzz_check(bytes == sizeof(buf));
		fuzz_check(memcmp(buf, data, bytes) == 0);
	}
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	fr_knock_hello_encode(77, buf);
	return FR_KNOCK_HELLO_BYTES;
}
