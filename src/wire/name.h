/* Name of a libfabric endpoint as it travels: opaque bytes of the provider. */
#ifndef FR_WIRE_NAME_H
#define FR_WIRE_NAME_H

#include <stdint.h>

#define FR_NAME_MAX 56u

struct fr_name {
	uint16_t len; /* 0: none */
	uint8_t bytes[FR_NAME_MAX];
};

/* What travels with a handle or a connect message; numbers never change. */
enum fr_wire_prov {
	FR_WIRE_PROV_NET = 1,	  /* net of 1.17, and tcp RDM of 1.18 on */
	FR_WIRE_PROV_TCP_RXM = 2, /* tcp;ofi_rxm */
	FR_WIRE_PROV_SOCKETS = 3,
	FR_WIRE_PROV_SHM = 4,
	FR_WIRE_PROV_VERBS = 5,
	FR_WIRE_PROV_EFA = 6,
	FR_WIRE_PROV_OTHER = 255,
};

#endif
