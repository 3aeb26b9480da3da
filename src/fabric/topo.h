/*
 * Where a network interface sits: PCI function and NUMA node, by hwloc. Nothing
 * found is no error: virtual interfaces have neither. Private to src/fabric.
 *
 * Threads: one owner. Blocking: opening reads much of sysfs, tens of ms.
 */
#ifndef FR_FABRIC_TOPO_H
#define FR_FABRIC_TOPO_H

struct fr_topo;

/* Return: 0; -ENOMEM; -ENODATA: hwloc cannot say anything here, logged at
 * info. */
int fr_topo_open(struct fr_topo **out);
void fr_topo_close(struct fr_topo *topo);

/* @device: "eth0", or an RDMA device as "mlx5_0". *@pci_path: freed by
 * fr_free(), or NULL; *@numa: node or -1. Return: 0, also when @device is
 * unknown; -ENOMEM. */
int fr_topo_find(const struct fr_topo *topo, const char *device,
		 char **pci_path, int *numa);

#endif
