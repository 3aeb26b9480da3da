#include "shim/spec.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static const char *const kind_names[] = {
	[SHIM_GETINFO] = "getinfo",
	[SHIM_DUPINFO] = "dupinfo",
	[SHIM_FABRIC] = "fabric",
	[SHIM_DOMAIN] = "domain",
	[SHIM_AV] = "av",
	[SHIM_CQ] = "cq",
	[SHIM_EP] = "ep",
	[SHIM_BIND] = "bind",
	[SHIM_ENABLE] = "enable",
	[SHIM_GETNAME] = "getname",
	[SHIM_SETOPT] = "setopt",
	[SHIM_INSERT] = "insert",
	[SHIM_MRBIND] = "mrbind",
	[SHIM_MRENABLE] = "mrenable",
	[SHIM_REG] = "reg",
	[SHIM_SEND] = "send",
	[SHIM_WRITE] = "write",
	[SHIM_RECV] = "recv",
	[SHIM_FETCH] = "fetch",
	[SHIM_READ] = "read",
	[SHIM_READERR] = "readerr",
	[SHIM_REMOVE] = "remove",
	[SHIM_CLOSE] = "close",
	[SHIM_SENT] = "sent",
	[SHIM_WRITTEN] = "written",
	[SHIM_FETCHED] = "fetched",
	[SHIM_RECEIVED] = "received",
	[SHIM_LANDED] = "landed",
};
_Static_assert(FR_ARRAY_LEN(kind_names) == SHIM_KIND_CNT, "a kind has no name");

#define KINDS_OPEN (FR_BIT(SHIM_REG + 1) - 1)
#define KINDS_POST                                                             \
	(FR_BIT(SHIM_SEND) | FR_BIT(SHIM_WRITE) | FR_BIT(SHIM_RECV) |          \
	 FR_BIT(SHIM_FETCH))

const char *shim_kind_name(enum shim_kind kind)
{
	return kind_names[kind];
}

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncmp(text, word, len) == 0;
}

static uint32_t kind_parse(const char *text, size_t len)
{
	for (unsigned i = 0; i < SHIM_KIND_CNT; i++) {
		if (is_word(text, len, kind_names[i])) {
			return FR_BIT(i);
		}
	}
	if (is_word(text, len, "open")) {
		return KINDS_OPEN;
	}
	if (is_word(text, len, "post")) {
		return KINDS_POST;
	}
	return is_word(text, len, "any") ? KINDS_OPEN | KINDS_POST : 0;
}

uint32_t shim_kinds_parse(const char *text, size_t len)
{
	uint32_t kinds = 0;

	for (;;) {
		const char *plus = memchr(text, '+', len);
		size_t part = plus == NULL ? len : (size_t)(plus - text);
		uint32_t kind = kind_parse(text, part);

		if (kind == 0) {
			return 0;
		}
		kinds |= kind;
		if (plus == NULL) {
			return kinds;
		}
		text += part + 1;
		len -= part + 1;
	}
}

/* Reads "N" and steps over it. */
static bool take_number(const char **pos, uint64_t *out)
{
	char *end;

	if (**pos < '0' || **pos > '9') {
		return false;
	}
	errno = 0;
	*out = strtoull(*pos, &end, 0);
	*pos = end;
	return errno == 0;
}

static bool take_chance(const char **pos, double *out)
{
	char *end;

	if (**pos < '0' || **pos > '9') {
		return false;
	}
	*out = strtod(*pos, &end);
	*pos = end;
	return *out <= 1;
}

static bool take_char(const char **pos, char c)
{
	if (**pos != c) {
		return false;
	}
	(*pos)++;
	return true;
}

static bool at_end(const char *pos)
{
	return *pos == '\0' || *pos == ';';
}

/* ":N", or the default. */
static bool take_optional(const char **pos, uint64_t dflt, uint64_t *out)
{
	*out = dflt;
	return at_end(*pos) || (take_char(pos, ':') && take_number(pos, out));
}

/* "KIND[@RAIL]:" */
static bool take_target(const char **pos, struct shim_rule *rule)
{
	size_t len = strcspn(*pos, "@:;");
	uint64_t rail;

	rule->kinds = shim_kinds_parse(*pos, len);
	rule->rail = SHIM_ANY_RAIL;
	*pos += len;
	if (rule->kinds == 0) {
		return false;
	}
	if (take_char(pos, '@')) {
		if (!take_number(pos, &rail) || rail > 1000) {
			return false;
		}
		rule->rail = (int)rail;
	}
	return take_char(pos, ':');
}

static struct shim_rule *rule_add(struct shim_spec *spec)
{
	return spec->rule_cnt < SHIM_RULES ? &spec->rule[spec->rule_cnt++]
					   : NULL;
}

static bool take_fail(const char **pos, struct shim_spec *spec)
{
	struct shim_rule *rule = rule_add(spec);
	uint64_t err;

	if (rule == NULL || !take_target(pos, rule) ||
	    !take_number(pos, &rule->at) || rule->at == 0 ||
	    !take_optional(pos, EIO, &err) || err == 0 || err > 4095) {
		return false;
	}
	rule->err = (int)err;
	return take_optional(pos, 1, &rule->cnt);
}

static bool take_again(const char **pos, struct shim_spec *spec)
{
	struct shim_rule *rule = rule_add(spec);

	if (rule == NULL || !take_target(pos, rule)) {
		return false;
	}
	rule->is_again = true;
	return take_chance(pos, &rule->chance) &&
	       take_optional(pos, 0, &rule->burst);
}

static bool take_raise(const char **pos, struct shim_spec *spec)
{
	struct shim_rule *rule = rule_add(spec);
	uint64_t sig;

	if (rule == NULL || !take_target(pos, rule) ||
	    !take_number(pos, &rule->at) || rule->at == 0 ||
	    !take_optional(pos, SIGTERM, &sig) || sig == 0 || sig >= NSIG) {
		return false;
	}
	rule->sig = (int)sig;
	return true;
}

static bool take_keys(const char **pos, struct shim_spec *spec)
{
	do {
		if (spec->key_cnt == SHIM_KEYS ||
		    !take_number(pos, &spec->key[spec->key_cnt])) {
			return false;
		}
		spec->key_cnt++;
	} while (take_char(pos, ','));
	return true;
}

static bool take_log(const char **pos, struct shim_spec *spec)
{
	size_t len = strcspn(*pos, ";");

	if (len == 0 || len >= sizeof(spec->log)) {
		return false;
	}
	memcpy(spec->log, *pos, len);
	spec->log[len] = '\0';
	*pos += len;
	return true;
}

static bool take_spoil(const char **pos, struct shim_spec *spec)
{
	uint64_t first;

	if (!take_number(pos, &first) || first > UINT8_MAX ||
	    !take_char(pos, ':') || !take_number(pos, &spec->spoil_at) ||
	    spec->spoil_at == 0 || spec->spoil_at > SHIM_SPOIL_MAX ||
	    !take_char(pos, ':')) {
		return false;
	}
	spec->spoils = true;
	spec->spoil_first = (uint8_t)first;
	return take_number(pos, &spec->spoil_add);
}

static bool take_cqdata(const char **pos, struct shim_spec *spec)
{
	uint64_t bytes;

	if (!take_number(pos, &bytes) || bytes == 0 || bytes > 8) {
		return false;
	}
	spec->cq_data = (unsigned)bytes;
	return true;
}

static bool take_flag(const char *name, size_t len, struct shim_spec *spec)
{
	if (is_word(name, len, "garbage")) {
		spec->garbage = true;
	} else if (is_word(name, len, "shuffle")) {
		spec->shuffle = true;
	} else if (is_word(name, len, "posts")) {
		spec->posts = true;
	} else if (is_word(name, len, "gpu")) {
		spec->gpu = true;
	} else {
		return false;
	}
	return true;
}

static bool take_item(const char **pos, struct shim_spec *spec)
{
	const char *name = *pos;
	size_t len = strcspn(name, "=;");

	*pos += len;
	if (!take_char(pos, '=')) {
		return take_flag(name, len, spec);
	}
	if (is_word(name, len, "seed")) {
		return take_number(pos, &spec->seed);
	}
	if (is_word(name, len, "fail")) {
		return take_fail(pos, spec);
	}
	if (is_word(name, len, "again")) {
		return take_again(pos, spec);
	}
	if (is_word(name, len, "raise")) {
		return take_raise(pos, spec);
	}
	if (is_word(name, len, "keys")) {
		return take_keys(pos, spec);
	}
	if (is_word(name, len, "cqdata")) {
		return take_cqdata(pos, spec);
	}
	if (is_word(name, len, "spoil")) {
		return take_spoil(pos, spec);
	}
	return is_word(name, len, "log") && take_log(pos, spec);
}

int shim_spec_parse(const char *text, struct shim_spec *spec, const char **bad)
{
	const char *pos = text == NULL ? "" : text;

	memset(spec, 0, sizeof(*spec));
	spec->seed = 1;
	while (*pos != '\0') {
		*bad = pos;
		if (!take_char(&pos, ';') &&
		    (!take_item(&pos, spec) || !at_end(pos))) {
			return -EINVAL;
		}
	}
	return 0;
}
