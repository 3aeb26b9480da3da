#include "net/railmap.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"

enum family { FAMILY_NONE, FAMILY_V4, FAMILY_V6, FAMILY_CNT };

struct side {
	const struct fr_railmap_rail *rail;
	unsigned cnt;
	uint8_t paths[FR_RAILMAP_MAX_RAILS]; /* of each rail */
	bool out[FR_RAILMAP_MAX_RAILS];	     /* takes no part */
};

struct railmap {
	struct side connector, acceptor;
	struct fr_railmap_path *paths;
	unsigned path_cnt;
};

bool fr_railmap_same_subnet(const struct fr_railmap_rail *a,
			    const struct fr_railmap_rail *b)
{
	return a->prefix == b->prefix &&
	       memcmp(a->subnet, b->subnet, sizeof(a->subnet)) == 0;
}

static enum family family_of(const struct fr_railmap_rail *rail)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (rail->prefix == 0) {
		return FAMILY_NONE;
	}
	return memcmp(rail->subnet, mapped, sizeof(mapped)) == 0 ? FAMILY_V4
								 : FAMILY_V6;
}

static void add_path(struct railmap *map, unsigned connector, unsigned acceptor)
{
	if (map->path_cnt == FR_RAILMAP_MAX_RAILS) {
		return;
	}
	map->connector.paths[connector]++;
	map->acceptor.paths[acceptor]++;
	map->paths[map->path_cnt++] = (struct fr_railmap_path){
		.connector_rail = (uint8_t)connector,
		.acceptor_rail = (uint8_t)acceptor,
	};
}

static bool can_meet(const struct side *c, unsigned i, const struct side *a,
		     unsigned k)
{
	return !c->out[i] && !a->out[k] &&
	       fr_railmap_same_subnet(&c->rail[i], &a->rail[k]);
}

static void leave_out_own_addresses(struct railmap *map)
{
	static const uint8_t none[16];
	struct side *c = &map->connector, *a = &map->acceptor;

	for (unsigned i = 0; i < c->cnt; i++) {
		for (unsigned k = 0; k < a->cnt; k++) {
			const uint8_t *addr = c->rail[i].addr;

			if (memcmp(addr, none, sizeof(none)) != 0 &&
			    memcmp(addr, a->rail[k].addr, 16) == 0) {
				c->out[i] = true;
				a->out[k] = true;
			}
		}
	}
}

/* On one host all addresses are in common, and none leads astray. */
static void take_back_if_alone(struct railmap *map)
{
	struct side *c = &map->connector, *a = &map->acceptor;

	for (unsigned i = 0; i < c->cnt; i++) {
		for (unsigned k = 0; k < a->cnt; k++) {
			if (can_meet(c, i, a, k)) {
				return;
			}
		}
	}
	memset(c->out, 0, sizeof(c->out));
	memset(a->out, 0, sizeof(a->out));
}

static void pair_equal_subnets(struct railmap *map)
{
	const struct side *c = &map->connector, *a = &map->acceptor;

	for (unsigned i = 0; i < c->cnt; i++) {
		for (unsigned k = 0; k < a->cnt; k++) {
			if (a->paths[k] == 0 && can_meet(c, i, a, k)) {
				add_path(map, i, k);
				break;
			}
		}
	}
}

/* The rail of @side with the fewest paths that can meet rail @i of @of; @side's
 * count when it has none. */
static unsigned idlest_mate(const struct side *side, const struct side *of,
			    unsigned i)
{
	unsigned best = side->cnt;

	for (unsigned k = 0; k < side->cnt; k++) {
		if (can_meet(of, i, side, k) &&
		    (best == side->cnt || side->paths[k] < side->paths[best])) {
			best = k;
		}
	}
	return best;
}

static void join_leftovers(struct railmap *map)
{
	const struct side *c = &map->connector, *a = &map->acceptor;

	for (unsigned i = 0; i < c->cnt; i++) {
		unsigned k = idlest_mate(a, c, i);

		if (c->paths[i] == 0 && k < a->cnt) {
			add_path(map, i, k);
		}
	}
	for (unsigned k = 0; k < a->cnt; k++) {
		unsigned i = idlest_mate(c, a, k);

		if (a->paths[k] == 0 && i < c->cnt) {
			add_path(map, i, k);
		}
	}
}

/* The rails of @family, in order. Return: their number. */
static unsigned rails_of(const struct side *side, enum family family,
			 uint8_t out[FR_RAILMAP_MAX_RAILS])
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < side->cnt; i++) {
		if (family_of(&side->rail[i]) == family) {
			out[cnt++] = (uint8_t)i;
		}
	}
	return cnt;
}

static void pair_routed(struct railmap *map, enum family family)
{
	uint8_t c[FR_RAILMAP_MAX_RAILS], a[FR_RAILMAP_MAX_RAILS];
	unsigned c_cnt = rails_of(&map->connector, family, c);
	unsigned a_cnt = rails_of(&map->acceptor, family, a);

	if (c_cnt == 0 || a_cnt == 0) {
		return;
	}
	for (unsigned i = 0; i < FR_MAX(c_cnt, a_cnt); i++) {
		add_path(map, c[i % c_cnt], a[i % a_cnt]);
	}
}

static bool path_before(const struct fr_railmap_path *a,
			const struct fr_railmap_path *b)
{
	if (a->connector_rail != b->connector_rail) {
		return a->connector_rail < b->connector_rail;
	}
	return a->acceptor_rail < b->acceptor_rail;
}

static void sort_paths(struct fr_railmap_path *paths, unsigned cnt)
{
	for (unsigned i = 1; i < cnt; i++) {
		struct fr_railmap_path path = paths[i];
		unsigned k = i;

		for (; k > 0 && path_before(&path, &paths[k - 1]); k--) {
			paths[k] = paths[k - 1];
		}
		paths[k] = path;
	}
}

unsigned fr_railmap_plan(const struct fr_railmap_rail *connector,
			 unsigned connector_cnt,
			 const struct fr_railmap_rail *acceptor,
			 unsigned acceptor_cnt,
			 struct fr_railmap_path paths[FR_RAILMAP_MAX_RAILS])
{
	struct railmap map = {
		.connector = {.rail = connector, .cnt = connector_cnt},
		.acceptor = {.rail = acceptor, .cnt = acceptor_cnt},
		.paths = paths,
	};

	assert(connector_cnt >= 1 && connector_cnt <= FR_RAILMAP_MAX_RAILS);
	assert(acceptor_cnt >= 1 && acceptor_cnt <= FR_RAILMAP_MAX_RAILS);

	leave_out_own_addresses(&map);
	take_back_if_alone(&map);
	pair_equal_subnets(&map);
	if (map.path_cnt != 0) {
		join_leftovers(&map);
	} else {
		for (enum family f = FAMILY_NONE; f < FAMILY_CNT; f++) {
			pair_routed(&map, f);
		}
	}
	sort_paths(paths, map.path_cnt);
	return map.path_cnt;
}
