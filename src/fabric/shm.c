#include "fabric/shm_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

#define SHM_DIR "/dev/shm"
#define SHM_PREFIX "fabrail-"
#define SHM_PID_MAX 4194304l
/* What the provider makes an endpoint's file of, and some more for whatever
 * else is there. */
#define SHM_ENDPOINT_BYTES (16u << 20)
#define SHM_SLACK_BYTES (64u << 10)
/* Inode of the PID namespace that every host begins with. */
#define SPACE_INITIAL 0xeffffffcu
#define SPACE_UNKNOWN 1u

static const char *shm_dir = SHM_DIR;

const char *fr_shm_dir(void)
{
	return shm_dir;
}

void fr_shm_set_dir(const char *dir)
{
	shm_dir = dir != NULL ? dir : SHM_DIR;
}

static uint32_t pid_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino
						   : SPACE_UNKNOWN;
}

static bool is_true(const char *text)
{
	return strcmp(text, "1") == 0 || strcasecmp(text, "y") == 0 ||
	       strcasecmp(text, "yes") == 0 || strcasecmp(text, "true") == 0 ||
	       strcasecmp(text, "on") == 0;
}

uint32_t fr_shm_space(void)
{
	const char *off = getenv("FI_SHM_DISABLE_CMA");

	return off != NULL && is_true(off) ? 0 : pid_space();
}

void fr_shm_tame(void)
{
	if (pid_space() != SPACE_INITIAL) {
		setenv("FI_SHM_DISABLE_CMA", "1", 0);
	}
}

void fr_shm_path(uint64_t set_id, char kind, char path[FR_SHM_PATH_MAX])
{
	snprintf(path, FR_SHM_PATH_MAX,
		 "%s/" SHM_PREFIX "%d-%016" PRIx64 "-%08" PRIx32 "-%c", shm_dir,
		 (int)getpid(), set_id, fr_shm_space(), kind);
}

/* Exactly @digits of them, then '-'. */
static bool parse_hex(const char **pos, unsigned digits, uint64_t *value)
{
	*value = 0;
	for (unsigned i = 0; i < digits; i++) {
		char c = *(*pos)++;

		if (c >= '0' && c <= '9') {
			*value = *value * 16 + (uint64_t)(c - '0');
		} else if (c >= 'a' && c <= 'f') {
			*value = *value * 16 + (uint64_t)(c - 'a' + 10);
		} else {
			return false;
		}
	}
	return *(*pos)++ == '-';
}

static bool parse_pid(const char **pos, pid_t *pid)
{
	long value = 0;

	while (**pos >= '0' && **pos <= '9' && value <= SHM_PID_MAX) {
		value = value * 10 + (*(*pos)++ - '0');
	}
	*pid = (pid_t)value;
	return value > 0 && value <= SHM_PID_MAX && *(*pos)++ == '-';
}

bool fr_shm_parse(const char *text, struct fr_shm_id *id)
{
	const char *pos = text + strlen(SHM_PREFIX);
	uint64_t space;

	if (strncmp(text, SHM_PREFIX, strlen(SHM_PREFIX)) != 0 ||
	    !parse_pid(&pos, &id->pid) || !parse_hex(&pos, 16, &id->set_id) ||
	    !parse_hex(&pos, 8, &space)) {
		return false;
	}
	id->space = (uint32_t)space;
	id->kind = *pos;
	return id->kind != '\0' && pos[1] == '\0' &&
	       (id->kind == FR_SHM_KNOCK || id->kind == FR_SHM_KNOCK_EARLY ||
		(id->kind >= FR_SHM_RAIL &&
		 id->kind < FR_SHM_RAIL + FR_SHM_RAILS) ||
		(id->kind >= FR_SHM_MARK &&
		 id->kind < FR_SHM_MARK + FR_SHM_RAILS));
}

bool fr_shm_name_is_ours(const struct fr_name *name)
{
	const char *text = (const char *)name->bytes;
	struct fr_shm_id id;

	return name->len > 1 &&
	       memchr(text, '\0', name->len) == text + name->len - 1 &&
	       fr_shm_parse(text, &id) && id.kind >= FR_SHM_RAIL &&
	       id.kind < FR_SHM_RAIL + FR_SHM_RAILS;
}

bool fr_shm_knock_path(const struct fr_name *name, char path[FR_SHM_PATH_MAX])
{
	const char *text = (const char *)name->bytes;

	if (!fr_shm_name_is_ours(name)) {
		return false;
	}
	snprintf(path, FR_SHM_PATH_MAX, "%s/%.*s%c", shm_dir, name->len - 2,
		 text, FR_SHM_KNOCK);
	return true;
}

bool fr_shm_has_room(unsigned endpoints, char *text, size_t bytes)
{
	const uint64_t want =
		(uint64_t)endpoints * SHM_ENDPOINT_BYTES + SHM_SLACK_BYTES;
	struct statvfs fs;
	uint64_t room;

	if (statvfs(shm_dir, &fs) != 0) {
		return true; /* the provider will say why */
	}
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	/* A size of 0 is one without limit. */
	if (fs.f_blocks == 0 || room >= want) {
		return true;
	}
	snprintf(text, bytes,
		 "%s has %" PRIu64 " KiB left where %" PRIu64 " KiB are "
		 "needed: make it larger (in a container: --shm-size)",
		 shm_dir, room >> 10, want >> 10);
	return false;
}

unsigned fr_shm_wanted(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores > 0 ? (unsigned)cores : 1;
}
