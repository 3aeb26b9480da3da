#include "fabric/addr.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/util.h"

static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

bool fr_addr_is_v4(const uint8_t addr[16])
{
	return memcmp(addr, v4_mapped, sizeof(v4_mapped)) == 0;
}

void fr_addr_text(const uint8_t addr[16], char *text)
{
	bool v4 = fr_addr_is_v4(addr);

	text[0] = '\0';
	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? addr + 12 : addr, text,
		  FR_ADDR_TEXT);
}

void fr_addr_subnet(const uint8_t addr[16], uint8_t prefix, uint8_t subnet[16])
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned bits = prefix > i * 8 ? prefix - i * 8 : 0;

		bits = FR_MIN(bits, 8u);
		subnet[i] = addr[i] & (uint8_t)(0xff00u >> bits);
	}
}
