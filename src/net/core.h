/*
 * The process-wide core: references, devices, the list of sets, the table of
 * connects that are under way.
 *
 * core.lock guards everything here. Order of locks: core.lock, then a set's
 * lock, never the other way round; two sets' locks are never held together.
 */
#ifndef FR_NET_CORE_H
#define FR_NET_CORE_H

#include "base/conf.h"
#include "base/list.h"
#include "base/lock.h"
#include "fabric/provider.h"
#include "net/net.h"

#define FR_MAX_DEVICES 16u

struct fr_device {
	char name[24];
	unsigned index;
	unsigned rail_cnt;
	unsigned
		nic[FR_MAX_RAILS]; /* index in the fabric, cycled when forced */
	uint32_t speed_mbps;
	_Atomic bool said_unlike; /* a peer's rails do not match these */
};

struct fr_core {
	struct fr_lock lock;
	unsigned refs;
	bool ready; /* conf, fabric and devices are valid */
	struct fr_conf conf;
	struct fr_fabric *fabric;
	struct fr_device dev[FR_MAX_DEVICES];
	unsigned dev_cnt;
	struct fr_list sets;	 /* fr_set.node */
	struct fr_list connects; /* fr_conn.node */
	unsigned objects;	 /* sets alive: conf and fabric must stay */
	bool ending;		 /* the process, or this library: see halt */
	bool tclass_warned;	 /* of one that cannot be */
};

extern struct fr_core fr_core;

/* device.c: groups the fabric's interfaces into devices and says what came of
 * it. */
void fr_core_make_devices_locked(void);
/* Frees conf, fabric and devices once neither references nor sets are left. */
void fr_core_settle_locked(void);

#endif
