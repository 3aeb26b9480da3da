#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t buf[FR_LINK_HDR_BYTES];
	struct fr_link_hdr h;
	const char *why = NULL;
	int ret = fr_link_hdr_decode(&h, data, bytes, &why);

	fuzz_check(ret == 0 || ret == -EBADMSG);
	fuzz_check((ret == 0) == (why == NULL));
	if (ret == 0) {
		fuzz_check(h.len + FR_LINK_HDR_BYTES == bytes);
		fr_link_hdr_encode(&h, buf);
		fuzz_check(memcmp(buf, data, sizeof(buf)) == 0);
	}
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	struct fr_link_hdr h = {.type = FR_LINK_PING,
				.flags = FR_LINK_F_ACK_NOW,
				.len = 8,
				.seq = 1,
				.ack = 1,
				.dst_set = 1,
				.src_set = 1};

	memset(buf, 0, FR_LINK_HDR_BYTES + 8);
	fr_link_hdr_encode(&h, buf);
	return FR_LINK_HDR_BYTES + 8;
}
