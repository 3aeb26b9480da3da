/* What sysfs says of a network interface. Private to src/fabric. */
#ifndef FR_FABRIC_SYSFS_H
#define FR_FABRIC_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 10 Tb/s: a driver that says more says nonsense. */
#define FR_SYSFS_SPEED_MAX_MBPS 10000000u

/* For tests: another root than "/sys"; NULL goes back. Borrowed. */
void fr_sysfs_set_root(const char *root);

/* It is mounted and knows of network interfaces. */
bool fr_sysfs_is_there(void);
/* Link speed in Mb/s; 0: unknown, as of most virtual interfaces, or more than
 * any link has. */
uint32_t fr_sysfs_speed_mbps(const char *iface);
/* From MAC and name, so stable over reboots and different for a VLAN and its
 * parent; from the name alone where there is no MAC. Never 0. */
uint64_t fr_sysfs_guid(const char *iface);
/* Resolved path of a PCI function, "0000:3b:00.0": "/sys/devices/pci.../..."
 * Return: 0: @path freed by fr_free(); -ENOENT; -ENOMEM. */
int fr_sysfs_pci_path(const char *function, char **path);
/* NUMA node of a PCI function; -1: unknown, as on a machine with one. */
int fr_sysfs_pci_numa(const char *function);

#endif
