/*
 * Network interfaces of the host, and which of them may be rails. What the
 * kernel says comes in as plain data, so that the rules can be tested without
 * interfaces. Private to src/fabric.
 */
#ifndef FR_FABRIC_IFACE_H
#define FR_FABRIC_IFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/conf.h"
#include "fabric/addr.h"
#include "fabric/reasons.h"

#define FR_IFACE_NAME_BYTES 32

/* One address of an interface; an interface without any has one row with
 * has_addr unset. */
struct fr_iface {
	char name[FR_IFACE_NAME_BYTES];
	uint8_t addr[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t prefix;	  /* of the 128 bits */
	bool has_addr;
	bool up; /* and has a carrier */
	bool loopback;
	bool fallback; /* out of fr_iface_select(): only if nothing else is */
};

/* Comma-separated names. An item is a prefix, or "=name" for exactly that
 * name; with all_exact every item is exact. */
struct fr_iface_list {
	const char *text; /* NULL or "": empty */
	bool all_exact;
};

struct fr_iface_filter {
	struct fr_iface_list include; /* empty: any */
	struct fr_iface_list exclude[2];
};

/* What the host has. @out is freed by fr_free(). Return: 0; -ENOMEM; -errno of
 * getifaddrs(), logged. */
int fr_iface_scan(struct fr_iface **out, unsigned *cnt);
typedef int (*fr_iface_scan_fn)(struct fr_iface **out, unsigned *cnt);
/* For tests: what fr_iface_scan() asks instead of the kernel; NULL: kernel. */
void fr_iface_set_scan(fr_iface_scan_fn scan);

/* From the parameters, and from NCCL_SOCKET_IFNAME as @nccl_ifname (or NULL):
 * "^" before it excludes, "=" makes all its names exact. Borrows the texts. */
struct fr_iface_filter fr_iface_filter_of(const struct fr_conf *conf,
					  const char *nccl_ifname);

/**
 * fr_iface_select - one address for each interface that may be a rail
 * @ifaces: rows; reordered, the chosen ones come first, in natural order
 * @v6_first: IPv6 before IPv4
 * @reasons: gets a line for each interface that may not
 * @chosen: out: how many rows were chosen
 *
 * An interface that both lists name belongs to the one whose item is longer;
 * exclusion wins a tie. The loopback interface is chosen when the include list
 * names it, and as fallback when there is no include list, whatever the exclude
 * list says of it.
 *
 * Ownership: texts of @filter are borrowed during the call. Blocking: never.
 * Return: 0 or -ENOMEM.
 */
int fr_iface_select(struct fr_iface *ifaces, unsigned cnt,
		    const struct fr_iface_filter *filter, bool v6_first,
		    struct fr_reasons *reasons, unsigned *chosen);

/* As strcmp, but runs of digits compare as numbers: rail2 before rail10. */
int fr_natural_cmp(const char *a, const char *b);

#endif
