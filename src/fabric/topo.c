#include "fabric/topo.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hwloc.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/util.h"
#include "fabric/sysfs.h"

struct fr_topo {
	hwloc_topology_t hwloc;
};

/* Components that would start a GPU's driver in the application's process. */
static const char *const topo_blacklist[] = {
	"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl",
};

static bool topo_load(hwloc_topology_t hwloc)
{
	for (size_t i = 0; i < FR_ARRAY_LEN(topo_blacklist); i++) {
		/* Fails for one that this hwloc does not have: as good. */
		hwloc_topology_set_components(
			hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
			topo_blacklist[i]);
	}
	return hwloc_topology_set_io_types_filter(
		       hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0 &&
	       hwloc_topology_load(hwloc) == 0;
}

int fr_topo_open(struct fr_topo **out)
{
	struct fr_topo *topo;

	topo = fr_calloc(1, sizeof(*topo));
	if (topo == NULL) {
		return -ENOMEM;
	}
	if (hwloc_topology_init(&topo->hwloc) != 0) {
		fr_free(topo);
		return -ENOMEM;
	}
	if (!topo_load(topo->hwloc)) {
		const char *file = getenv("HWLOC_XMLFILE");

		fr_info("hwloc finds no topology%s%s: no PCI paths and NUMA "
			"nodes of interfaces",
			file == NULL ? " here" : " in HWLOC_XMLFILE, ",
			file == NULL ? "" : file);
		fr_topo_close(topo);
		return -ENODATA;
	}
	*out = topo;
	return 0;
}

void fr_topo_close(struct fr_topo *topo)
{
	if (topo == NULL) {
		return;
	}
	hwloc_topology_destroy(topo->hwloc);
	fr_free(topo);
}

static hwloc_obj_t topo_device(const struct fr_topo *topo, const char *device)
{
	hwloc_obj_t obj = NULL;

	while ((obj = hwloc_get_next_osdev(topo->hwloc, obj)) != NULL) {
		if (obj->name != NULL && strcmp(obj->name, device) == 0) {
			return obj;
		}
	}
	return NULL;
}

static int topo_numa(const struct fr_topo *topo, hwloc_obj_t obj)
{
	hwloc_obj_t host = hwloc_get_non_io_ancestor_obj(topo->hwloc, obj);

	/* The whole machine, where it has several nodes, is no answer. */
	if (host == NULL || host->nodeset == NULL ||
	    hwloc_bitmap_weight(host->nodeset) != 1) {
		return -1;
	}
	return hwloc_bitmap_first(host->nodeset);
}

int fr_topo_find(const struct fr_topo *topo, const char *device,
		 char **pci_path, int *numa)
{
	hwloc_obj_t obj = topo == NULL ? NULL : topo_device(topo, device);
	hwloc_obj_t pci = obj;
	char function[32];
	char *path = NULL;

	while (pci != NULL && pci->type != HWLOC_OBJ_PCI_DEVICE) {
		pci = pci->parent;
	}
	if (pci != NULL) {
		snprintf(function, sizeof(function), "%04x:%02x:%02x.%x",
			 pci->attr->pcidev.domain, pci->attr->pcidev.bus,
			 pci->attr->pcidev.dev, pci->attr->pcidev.func);
		if (fr_sysfs_pci_path(function, &path) == -ENOMEM) {
			return -ENOMEM;
		}
	}
	*pci_path = path;
	*numa = pci == NULL ? -1 : topo_numa(topo, obj);
	/* hwloc lists a node without CPUs beside the others, and is then unsure
	 * where the kernel is not. */
	if (pci != NULL && *numa < 0) {
		*numa = fr_sysfs_pci_numa(function);
	}
	return 0;
}
