#include "net/devmap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

struct devmap {
	const struct fr_devmap_nic *nic;
	unsigned order[FR_DEVMAP_MAX_NICS]; /* neighbours side by side */
	unsigned levels;
	unsigned width;
	struct fr_devmap_group group[FR_DEVMAP_MAX_NICS];
	unsigned cnt;
};

/* Bytes of @path that name its outermost @level folders, without the function
 * itself. */
static size_t bridge_len(const char *path, unsigned level)
{
	const char *last = strrchr(path, '/');
	const char *end = path;

	for (; last != NULL && end < last && level > 0; level--) {
		end++;
		end += strcspn(end, "/");
	}
	return (size_t)(end - path);
}

/* Level 0: one host. 1: one NUMA node. Above: @level - 1 bridges as well. */
static bool same_place(const struct fr_devmap_nic *a,
		       const struct fr_devmap_nic *b, unsigned level)
{
	size_t len;

	if (level == 0) {
		return true;
	}
	if (a->numa != b->numa ||
	    (a->pci_path == NULL) != (b->pci_path == NULL)) {
		return false;
	}
	if (level == 1 || a->pci_path == NULL) {
		return true;
	}
	len = bridge_len(a->pci_path, level - 1);
	return len == bridge_len(b->pci_path, level - 1) &&
	       strncmp(a->pci_path, b->pci_path, len) == 0;
}

/* From here on no level tells anything more. */
static unsigned last_level(const struct fr_devmap_nic *nic, unsigned cnt)
{
	unsigned level = 1;

	for (unsigned i = 0; i < cnt; i++) {
		const char *path = nic[i].pci_path;

		while (path != NULL &&
		       bridge_len(path, level - 1) != bridge_len(path, level)) {
			level++;
		}
	}
	return level;
}

/* What is known comes first, by node and then by path. */
static bool place_before(const struct devmap *map, unsigned i, unsigned k)
{
	const struct fr_devmap_nic *a = &map->nic[i], *b = &map->nic[k];
	int order;

	if (a->numa != b->numa) {
		/* As unsigned, the unknown node is the largest. */
		return (unsigned)a->numa < (unsigned)b->numa;
	}
	if ((a->pci_path == NULL) != (b->pci_path == NULL)) {
		return b->pci_path == NULL;
	}
	order = a->pci_path == NULL ? 0 : strcmp(a->pci_path, b->pci_path);
	return order != 0 ? order < 0 : i < k;
}

static void sort_by_place(struct devmap *map, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		unsigned k = i;

		for (; k > 0 && place_before(map, i, map->order[k - 1]); k--) {
			map->order[k] = map->order[k - 1];
		}
		map->order[k] = i;
	}
}

static void take(struct devmap *map, unsigned lo, unsigned hi)
{
	struct fr_devmap_group *group;

	for (unsigned i = lo; i < hi; i++) {
		if (map->cnt == 0 ||
		    map->group[map->cnt - 1].cnt == map->width) {
			map->group[map->cnt++].cnt = 0;
		}
		group = &map->group[map->cnt - 1];
		group->nic[group->cnt++] = map->order[i];
	}
}

/* Neighbours at @level: into the group that is open, else into a new one, and
 * if they are more than one holds, in parts. */
static void take_neighbours(struct devmap *map, unsigned lo, unsigned hi,
			    unsigned level)
{
	unsigned room = map->cnt == 0
				? map->width
				: map->width - map->group[map->cnt - 1].cnt;
	unsigned end;

	if (hi - lo > map->width && level < map->levels) {
		for (; lo < hi; lo = end) {
			end = lo + 1;
			while (end < hi &&
			       same_place(&map->nic[map->order[lo]],
					  &map->nic[map->order[end]],
					  level + 1)) {
				end++;
			}
			take_neighbours(map, lo, end, level + 1);
		}
		return;
	}
	if (hi - lo <= map->width && hi - lo > room) {
		map->group[map->cnt++].cnt = 0;
	}
	take(map, lo, hi);
}

static int unsigned_cmp(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return x < y ? -1 : x > y;
}

static int group_cmp(const void *a, const void *b)
{
	return unsigned_cmp(((const struct fr_devmap_group *)a)->nic,
			    ((const struct fr_devmap_group *)b)->nic);
}

unsigned fr_devmap_plan(const struct fr_devmap_nic *nic, unsigned nic_cnt,
			unsigned width, struct fr_devmap_group *group,
			unsigned max)
{
	unsigned cnt = FR_MIN(nic_cnt, FR_DEVMAP_MAX_NICS);
	struct devmap map = {
		.nic = nic, .width = width, .levels = last_level(nic, cnt)};

	assert(width >= 1 && width <= FR_MAX_RAILS);
	sort_by_place(&map, cnt);
	if (cnt > 0) {
		take_neighbours(&map, 0, cnt, 0);
	}
	for (unsigned i = 0; i < map.cnt; i++) {
		qsort(map.group[i].nic, map.group[i].cnt,
		      sizeof(map.group[i].nic[0]), unsigned_cmp);
	}
	qsort(map.group, map.cnt, sizeof(map.group[0]), group_cmp);
	map.cnt = FR_MIN(map.cnt, max);
	memcpy(group, map.group, map.cnt * sizeof(*group));
	return map.cnt;
}

bool fr_devmap_is_even(const struct fr_devmap_group *group, unsigned cnt)
{
	for (unsigned i = 1; i < cnt; i++) {
		if (group[i].cnt != group[0].cnt) {
			return false;
		}
	}
	return true;
}

unsigned fr_devmap_even_width(const struct fr_devmap_nic *nic, unsigned nic_cnt)
{
	struct fr_devmap_group group[FR_DEVMAP_MAX_NICS];

	for (unsigned width = FR_MAX_RAILS; width > 1; width--) {
		unsigned cnt = fr_devmap_plan(nic, nic_cnt, width, group,
					      FR_DEVMAP_MAX_NICS);

		if (fr_devmap_is_even(group, cnt)) {
			return cnt == 0 ? 1 : group[0].cnt;
		}
	}
	return 1;
}
