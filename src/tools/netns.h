/* Network namespaces by name, as iproute2 keeps them in /run/netns. */
#ifndef FR_TOOLS_NETNS_H
#define FR_TOOLS_NETNS_H

/* Moves the process (which has one thread) into namespace @name, with a /sys
 * that shows its interfaces. Return: 0; -errno, logged. */
int fr_netns_enter(const char *name);

#endif
