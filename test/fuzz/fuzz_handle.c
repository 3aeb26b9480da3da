#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/handle.h"

static void check_again(const struct fr_handle *h, size_t bytes)
{
	uint8_t buf[FR_HANDLE_BYTES];
	struct fr_handle again;
	const char *why;

	fuzz_check(fr_handle_encode(h, buf, bytes) == 0);
	fuzz_check(fr_handle_decode(&again, buf, bytes, &why) == 0);
	fuzz_check(again.cookie == h->cookie);
	fuzz_check(again.name_cnt == h->name_cnt);
	for (unsigned i = 0; i < h->name_cnt; i++) {
		fuzz_check(again.names[i].len == h->names[i].len);
		fuzz_check(memcmp(again.names[i].bytes, h->names[i].bytes,
				  FR_NAME_MAX) == 0);
	}
}

static void decode(const uint8_t *data, size_t bytes)
{
	struct fr_handle h;
	const char *why = NULL;
	int ret = fr_handle_decode(&h, data, bytes, &why);

	fuzz_check(ret == 0 || ret == -EBADMSG || ret == -EPROTONOSUPPORT);
	fuzz_check((ret == 0) == (why == NULL));
	if (ret == 0) {
		check_again(&h, bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t whole[FR_HANDLE_BYTES] = {0};

	decode(data, bytes);
	memcpy(whole, data, bytes < sizeof(whole) ? bytes : sizeof(whole));
	decode(whole, FR_HANDLE_BYTES);
	decode(whole, FR_HANDLE_BYTES_V4);
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	struct fr_handle h = {.prov = FR_WIRE_PROV_NET,
			      .knock_port = 4791,
			      .cookie = 5,
			      .name_cnt = 2,
			      .names = {{16, {2, 0, 1, 2, 10, 0, 0, 1}},
					{16, {2, 0, 1, 3, 10, 1, 0, 1}}}};

	fuzz_check(fr_handle_encode(&h, buf, FR_HANDLE_BYTES) == 0);
	return FR_HANDLE_BYTES;
}
