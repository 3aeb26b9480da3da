#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/knock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fr_knock_refusal m;
	int ret = fr_knock_refusal_decode(&m, data, bytes);

	fuzz_check(ret == 0 || ret == -EBADMSG || ret == -EAGAIN);
	if (ret == 0) {
		fuzz_check(m.text_len <= FR_KNOCK_TEXT_MAX);
		fuzz_check(strlen(m.text) == m.text_len);
		fuzz_check(bytes == FR_KNOCK_REFUSAL_HDR_BYTES + m.text_len);
	}
	if (ret == -EAGAIN) {
		fuzz_check(bytes <
			   FR_KNOCK_REFUSAL_HDR_BYTES + FR_KNOCK_TEXT_MAX);
	}
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	struct fr_knock_refusal m = {
		.cookie = 7, .text_len = 9, .text = "no thanks"};
	int n = fr_knock_refusal_encode(&m, buf, FUZZ_MAX);

	fuzz_check(n > 0);
	return (size_t)n;
}
