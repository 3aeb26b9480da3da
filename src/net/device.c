/* Interfaces into devices. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "net/core.h"
#include "net/devmap.h"

static unsigned describe_nics(struct fr_devmap_nic nic[FR_DEVMAP_MAX_NICS])
{
	unsigned cnt =
		FR_MIN(fr_fabric_nic_cnt(fr_core.fabric), FR_DEVMAP_MAX_NICS);

	for (unsigned i = 0; i < cnt; i++) {
		const struct fr_nic *from = fr_fabric_nic(fr_core.fabric, i);

		nic[i].numa = from->numa;
		nic[i].pci_path = from->pci_path;
	}
	return cnt;
}

/* A rail that shares its interface adds no speed. */
static uint32_t group_speed(const struct fr_devmap_group *group, unsigned rails)
{
	uint64_t mbps = 0;

	for (unsigned i = 0; i < FR_MIN(group->cnt, rails); i++) {
		mbps += fr_fabric_nic(fr_core.fabric, group->nic[i])
				->speed_mbps;
	}
	return (uint32_t)FR_MIN(mbps, (uint64_t)INT_MAX);
}

static void dev_fill(struct fr_device *dev, unsigned index,
		     const struct fr_devmap_group *group)
{
	unsigned forced = fr_core.conf.force_rails;

	memset(dev, 0, sizeof(*dev));
	snprintf(dev->name, sizeof(dev->name), "fabrail%u", index);
	dev->index = index;
	dev->rail_cnt = forced != 0 ? forced : group->cnt;
	for (unsigned i = 0; i < dev->rail_cnt; i++) {
		dev->nic[i] = group->nic[i % group->cnt];
	}
	dev->speed_mbps = group_speed(group, dev->rail_cnt);
}

static void log_device(const struct fr_device *dev)
{
	struct fr_text rails = {.len = 0};

	for (unsigned i = 0; i < dev->rail_cnt; i++) {
		const struct fr_nic *nic =
			fr_fabric_nic(fr_core.fabric, dev->nic[i]);

		fr_text_add(&rails, "%s%s (%s)", i == 0 ? "" : ", ", nic->name,
			    nic->addr_text);
	}
	fr_info("device %s: %u rails, %u Mbit/s: %s", dev->name, dev->rail_cnt,
		dev->speed_mbps, rails.buf);
}

/* Adding up rates is what a device promises; it shares evenly. */
static void log_unequal_speed(const struct fr_device *dev)
{
	uint32_t slowest = UINT32_MAX, fastest = 0;

	for (unsigned i = 0; i < dev->rail_cnt; i++) {
		const struct fr_nic *nic =
			fr_fabric_nic(fr_core.fabric, dev->nic[i]);

		if (nic->speed_known) {
			slowest = FR_MIN(slowest, nic->speed_mbps);
			fastest = FR_MAX(fastest, nic->speed_mbps);
		}
	}
	if (slowest < fastest) {
		fr_info("device %s: its rails have %u to %u Mbit/s; large "
			"messages go at %u times the slowest",
			dev->name, slowest, fastest, dev->rail_cnt);
	}
}

static void log_count(void)
{
	struct fr_text rails = {.len = 0};

	for (unsigned d = 0; d < fr_core.dev_cnt; d++) {
		fr_text_add(&rails, "%s%u",
			    d == 0		       ? ""
			    : d + 1 == fr_core.dev_cnt ? " and "
						       : ", ",
			    fr_core.dev[d].rail_cnt);
	}
	fr_info("%u devices of %s rails; every rank needs as many devices of "
		"as many rails",
		fr_core.dev_cnt, rails.buf);
}

static void warn_uneven(const struct fr_devmap_nic *nic, unsigned nic_cnt,
			const struct fr_devmap_group *group, unsigned group_cnt)
{
	unsigned width = fr_devmap_even_width(nic, nic_cnt);
	struct fr_text rails = {.len = 0}, advice = {.len = 0};

	if (fr_core.conf.force_rails != 0 ||
	    fr_devmap_is_even(group, group_cnt)) {
		return;
	}
	for (unsigned g = 0; g < group_cnt; g++) {
		fr_text_add(&rails, "%s%u", g == 0 ? "" : "+", group[g].cnt);
	}
	if (width > 1) {
		fr_text_add(&advice,
			    "OFI_NCCL_MAX_RAILS=%u makes equal ones, or ",
			    width);
	}
	fr_warn("%u interfaces make %u unequal devices (%s rails); the "
		"smallest holds up what runs over all of them; %sleave out "
		"interfaces with OFI_NCCL_EXCLUDE_TCP_IF",
		nic_cnt, group_cnt, rails.buf, advice.buf);
}

static void warn_left_out(const struct fr_devmap_group *group,
			  unsigned group_cnt)
{
	unsigned nics = fr_fabric_nic_cnt(fr_core.fabric), used = 0;

	for (unsigned g = 0; g < group_cnt; g++) {
		used += group[g].cnt;
	}
	if (used < nics) {
		fr_warn("%u of %u interfaces are not used: there are %u "
			"devices at most; raise OFI_NCCL_MAX_RAILS",
			nics - used, nics, FR_MAX_DEVICES);
	}
}

void fr_core_make_devices_locked(void)
{
	struct fr_devmap_nic nic[FR_DEVMAP_MAX_NICS];
	struct fr_devmap_group group[FR_MAX_DEVICES];
	unsigned nic_cnt = describe_nics(nic);
	unsigned forced = fr_core.conf.force_rails;

	fr_lock_assert(&fr_core.lock);
	fr_core.dev_cnt = fr_devmap_plan(
		nic, nic_cnt, forced != 0 ? forced : fr_core.conf.max_rails,
		group, FR_MAX_DEVICES);
	for (unsigned d = 0; d < fr_core.dev_cnt; d++) {
		dev_fill(&fr_core.dev[d], d, &group[d]);
		log_device(&fr_core.dev[d]);
		log_unequal_speed(&fr_core.dev[d]);
	}
	if (fr_core.dev_cnt > 1) {
		log_count();
	}
	warn_uneven(nic, nic_cnt, group, fr_core.dev_cnt);
	warn_left_out(group, fr_core.dev_cnt);
}
