#include "functional/trail.h"

#include <stdio.h>
#include <string.h>

#define OBJECTS 4096u

struct object {
	char type[12];
	unsigned parent;
	unsigned children;
	bool open;
};

/* By id, from 1; what has no parent has number 0. */
static struct object objects[OBJECTS];

static void object_opens(const char *type, unsigned id, unsigned parent)
{
	PAIR_CHECK(id < OBJECTS && parent < OBJECTS, "too many objects");
	(void)snprintf(objects[id].type, sizeof(objects[id].type), "%s", type);
	objects[id].parent = parent;
	objects[id].open = true;
	objects[parent].children++;
}

static bool has_endpoint(unsigned domain)
{
	for (unsigned i = 1; i < OBJECTS; i++) {
		if (objects[i].open && objects[i].parent == domain &&
		    strcmp(objects[i].type, "ep") == 0) {
			return true;
		}
	}
	return false;
}

static void object_closes(const char *type, unsigned id, int ret)
{
	struct object *obj = &objects[id];

	PAIR_CHECK(id < OBJECTS && obj->open, "%s %u is closed, not opened",
		   type, id);
	PAIR_CHECK(ret == 0, "closing %s %u said %d", type, id, ret);
	PAIR_CHECK(obj->children == 0, "%s %u was closed before its parts",
		   type, id);
	PAIR_CHECK((strcmp(type, "cq") != 0 && strcmp(type, "av") != 0) ||
			   !has_endpoint(obj->parent),
		   "%s %u was closed before an endpoint", type, id);
	obj->open = false;
	objects[obj->parent].children--;
}

void trail_read(const char *path, const char *type, struct trail *out)
{
	FILE *file = fopen(path, "re");
	char line[256], what[12];
	unsigned id, parent;
	int ret;

	PAIR_CHECK(file != NULL, "no log %s", path);
	memset(objects, 0, sizeof(objects));
	memset(out, 0, sizeof(*out));
	while (fgets(line, sizeof(line), file) != NULL) {
		bool counts;

		if (sscanf(line, "%*d open %11s %u %u", what, &id, &parent) ==
		    3) {
			object_opens(what, id, parent);
			counts = type == NULL || strcmp(what, type) == 0;
			out->opened += counts;
		} else if (sscanf(line, "%*d close %11s %u %d", what, &id,
				  &ret) == 3) {
			object_closes(what, id, ret);
			counts = type == NULL || strcmp(what, type) == 0;
			out->closed += counts;
		}
	}
	(void)fclose(file);
	out->left = out->opened - out->closed;
}

void trail_ends(const char *path)
{
	struct trail trail;

	trail_read(path, NULL, &trail);
	PAIR_CHECK(trail.left == 0, "%u objects were left open", trail.left);
	PAIR_CHECK(trail.closed >= 6, "only %u closes in the log",
		   trail.closed);
}
