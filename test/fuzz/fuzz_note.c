/* The first byte chooses the type. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t buf[64];
	const char *why = NULL;
	struct fr_link_note m;
	uint8_t type;
	int ret;

	if (bytes == 0) {
		return 0;
	}
	type = (uint8_t)(FR_LINK_ACK + *data % 16);
	ret = fr_link_note_decode(type, &m, data + 1, bytes - 1, &why);
	fuzz_check(ret == 0 || ret == -EBADMSG);
	fuzz_check((ret == 0) == (why == NULL));
	if (ret == 0) {
		fuzz_check(fr_link_note_encode(type, &m, buf, sizeof(buf)) ==
			   (int)bytes - 1);
		fuzz_check(memcmp(buf, data + 1, bytes - 1) == 0);
	}
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	struct fr_link_note m = {.comm = 9, .nonce = 1, .seq = 2, .a = 3};
	int n = fr_link_note_encode(FR_LINK_NACK, &m, buf + 1, 63);

	fuzz_check(n > 0);
	buf[0] = FR_LINK_NACK & 15;
	return (size_t)n + 1;
}
