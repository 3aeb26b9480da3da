/*
 * Which interfaces make a device together.
 *
 * As long as all fit into one device they make one. Else interfaces of one NUMA
 * node stay together, within a node those below one PCI bridge, as far as they
 * fit; a device is filled up before the next one begins. Where nothing is known
 * of their place, as for virtual ones, they are taken in their order. The rails
 * of a device are in that order, and so are the devices, by their first rails.
 *
 * Hosts of the same build come to the same devices. Pure: depends on the
 * arguments and nothing else.
 */
#ifndef FR_NET_DEVMAP_H
#define FR_NET_DEVMAP_H

#include <stdbool.h>

#include "base/conf.h"

/* More are not looked at. */
#define FR_DEVMAP_MAX_NICS 128u

struct fr_devmap_nic {
	int numa;	      /* node, or -1 */
	const char *pci_path; /* or NULL */
};

struct fr_devmap_group {
	unsigned cnt;
	unsigned nic[FR_MAX_RAILS]; /* ascending */
};

/* @width: 1 to FR_MAX_RAILS interfaces a group. Writes up to @max groups; those
 * with the lowest interfaces come first. Return: their number. */
unsigned fr_devmap_plan(const struct fr_devmap_nic *nic, unsigned nic_cnt,
			unsigned width, struct fr_devmap_group *group,
			unsigned max);

bool fr_devmap_is_even(const struct fr_devmap_group *group, unsigned cnt);
/* The largest @width that makes groups of one size; 1 always does. */
unsigned fr_devmap_even_width(const struct fr_devmap_nic *nic,
			      unsigned nic_cnt);

#endif
