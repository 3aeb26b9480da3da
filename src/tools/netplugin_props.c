#include <stdint.h>
#include <string.h>

#include "base/util.h"
#include "tools/netplugin_priv.h"

/* Where a version keeps a property; 0: it has none (offset 0 is the name). */
struct layout {
	uint8_t since; /* the first version that has this layout */
	uint8_t reg_is_global, force_flush, speed, port, latency;
	uint8_t max_comms, max_recvs, device_type, device_version;
	uint8_t vprops, max_p2p, max_coll, multi, rail, plane;
};

/* clang-format off */
static const struct layout layouts[] = {
	{ .since = 4, .speed = 28, .port = 32, .max_comms = 36 },
	{ .since = 5, .speed = 28, .port = 32, .latency = 36, .max_comms = 40,
	  .max_recvs = 44 },
	{ .since = 7, .speed = 28, .port = 32, .latency = 36, .max_comms = 40,
	  .max_recvs = 44, .device_type = 48, .device_version = 52 },
	{ .since = 8, .reg_is_global = 28, .speed = 32, .port = 36,
	  .latency = 40, .max_comms = 44, .max_recvs = 48, .device_type = 52,
	  .device_version = 56 },
	{ .since = 9, .reg_is_global = 28, .force_flush = 32, .speed = 36,
	  .port = 40, .latency = 44, .max_comms = 48, .max_recvs = 52,
	  .device_type = 56, .device_version = 60, .vprops = 64, .max_p2p = 88,
	  .max_coll = 96 },
	{ .since = 11, .reg_is_global = 28, .force_flush = 32, .speed = 36,
	  .port = 40, .latency = 44, .max_comms = 48, .max_recvs = 52,
	  .device_type = 56, .device_version = 60, .vprops = 64, .max_p2p = 88,
	  .max_coll = 96, .multi = 104 },
	{ .since = 12, .reg_is_global = 28, .force_flush = 32, .speed = 36,
	  .port = 40, .latency = 44, .max_comms = 48, .max_recvs = 52,
	  .device_type = 56, .device_version = 60, .vprops = 64,
	  .max_p2p = 104, .max_coll = 112, .multi = 120, .rail = 124,
	  .plane = 126 },
};
/* clang-format on */

#define PROPS_BYTES 256 /* more than any version's struct */

static const struct layout *find_layout(unsigned abi)
{
	size_t i = FR_ARRAY_LEN(layouts) - 1;

	while (layouts[i].since > abi) {
		i--;
	}
	return &layouts[i];
}

static int int_at(const uint8_t *raw, unsigned at, int absent)
{
	int v = absent;

	if (at != 0) {
		memcpy(&v, raw + at, sizeof(v));
	}
	return v;
}

static size_t size_at(const uint8_t *raw, unsigned at, size_t absent)
{
	size_t v = absent;

	if (at != 0) {
		memcpy(&v, raw + at, sizeof(v));
	}
	return v;
}

static int short_at(const uint8_t *raw, unsigned at)
{
	int16_t v = -1;

	if (at != 0) {
		memcpy(&v, raw + at, sizeof(v));
	}
	return v;
}

static void read_vdevs(const uint8_t *raw, const struct layout *at, int dev,
		       struct fr_plugin_props *props)
{
	int max = at->since >= 12 ? 8 : 4;

	props->vdev_cnt = int_at(raw, at->vprops, 1);
	for (int i = 0; i < 8; i++) {
		props->vdevs[i] = -1;
	}
	props->vdevs[0] = dev;
	if (at->vprops == 0) {
		return;
	}
	for (int i = 0; i < FR_MIN(props->vdev_cnt, max); i++) {
		props->vdevs[i] = int_at(
			raw, (unsigned)at->vprops + 4u + 4u * (unsigned)i, -1);
	}
}

static void read_props(const uint8_t *raw, const struct layout *at, int dev,
		       struct fr_plugin_props *props)
{
	float latency = 0;

	memcpy(&props->name, raw, sizeof(props->name));
	memcpy(&props->pci_path, raw + 8, sizeof(props->pci_path));
	memcpy(&props->guid, raw + 16, sizeof(props->guid));
	props->ptr_support = int_at(raw, 24, 0);
	props->reg_is_global = int_at(raw, at->reg_is_global, 0);
	props->force_flush = int_at(raw, at->force_flush, 0);
	props->speed_mbps = int_at(raw, at->speed, 0);
	props->port = int_at(raw, at->port, 0);
	if (at->latency != 0) {
		memcpy(&latency, raw + at->latency, sizeof(latency));
	}
	props->latency_us = latency;
	props->max_comms = int_at(raw, at->max_comms, 0);
	props->max_recvs = int_at(raw, at->max_recvs, 1);
	props->device_type = int_at(raw, at->device_type, 0);
	props->device_version = int_at(raw, at->device_version, 0);
	read_vdevs(raw, at, dev, props);
	props->max_p2p_bytes = size_at(raw, at->max_p2p, (size_t)1 << 30);
	props->max_coll_bytes = size_at(raw, at->max_coll, (size_t)1 << 29);
	props->max_multi_request = int_at(raw, at->multi, 1);
	props->rail_id = short_at(raw, at->rail);
	props->plane_id = short_at(raw, at->plane);
}

int fr_plugin_props(struct fr_plugin *plugin, int dev,
		    struct fr_plugin_props *props)
{
	_Alignas(16) uint8_t raw[PROPS_BYTES];
	int ret;

	/* Not zero: the plugin has to fill every field that it has. */
	memset(raw, 0xa5, sizeof(raw));
	ret = FN(plugin, FN_PROPS, int (*)(int, void *))(dev, raw);
	if (ret == FR_PLUGIN_SUCCESS) {
		read_props(raw, find_layout(plugin->abi), dev, props);
	}
	return ret;
}
