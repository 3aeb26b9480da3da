/* From a provider's fi_info to struct fr_nic. Private to src/fabric. */
#ifndef FR_FABRIC_NIC_H
#define FR_FABRIC_NIC_H

#include <stdbool.h>

#include "fabric/fi.h"
#include "fabric/iface.h"
#include "fabric/provider.h"
#include "fabric/topo.h"

/* The source address of @info as 16 bytes. False: not an IP address. */
bool fr_info_addr(const struct fi_info *info, uint8_t addr[16]);

/**
 * fr_nic_init - fill @nic and take a copy of @info
 * @iface: the interface, or NULL where the provider does not use IP
 * @topo: or NULL
 *
 * Ownership: what @nic holds goes with fr_nic_fini(). Blocking: reads sysfs.
 * Return: 0 or -ENOMEM; then nothing is held.
 */
int fr_nic_init(struct fr_nic *nic, const struct fr_fi *fi,
		const struct fi_info *info, const struct fr_iface *iface,
		const struct fr_topo *topo);
void fr_nic_fini(struct fr_nic *nic, const struct fr_fi *fi);

/* One warning for each pair of NICs in the same subnet, unless the kernel sends
 * from each address through its own interface. */
void fr_nic_warn_subnets(const struct fr_nic *nic, unsigned cnt);

#endif
