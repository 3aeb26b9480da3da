#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/conn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct fr_conn_msg m, again;
	uint8_t buf[FR_CONN_MAX_BYTES];
	const char *why = NULL;
	int ret = fr_conn_decode(&m, data, bytes, &why);
	int n;

	fuzz_check(ret == 0 || ret == -EBADMSG || ret == -EPROTONOSUPPORT);
	fuzz_check((ret == 0) == (why == NULL));
	if (ret == 0) {
		n = fr_conn_encode(&m, buf, sizeof(buf));
		fuzz_check(n >= (int)FR_CONN_FIXED_BYTES);
		fuzz_check(fr_conn_decode(&again, buf, (size_t)n, &why) == 0);
		fuzz_check(memcmp(&again, &m, sizeof(m)) == 0);
	}
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	static struct fr_conn_msg m;
	int n;

	m.type = FR_CONN_RESPONSE;
	m.comm = 300;
	m.cookie = 12345;
	m.prov = FR_WIRE_PROV_NET;
	m.cq_data_bytes = 8;
	m.window = 64;
	m.status = EPROTO;
	memcpy(m.text, "because", 8);
	m.rail_cnt = 6;
	for (unsigned i = 0; i < m.rail_cnt; i++) {
		m.rails[i].data.len = 28;
		m.rails[i].ctrl.len = 28;
		m.rails[i].prefix = 64;
		m.rails[i].incarnation = 1;
		memcpy(m.rails[i].iface, "rail", 5);
	}
	n = fr_conn_encode(&m, buf, FR_CONN_MAX_BYTES);
	fuzz_check(n > 0);
	return (size_t)n;
}
