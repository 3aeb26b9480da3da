/*
 * What the unit tests of this floor share: the lines that were logged, the
 * parameters, an opened fabric and rail over the fake.
 */
#ifndef TEST_UNIT_FABRIC_FABRIC_UNIT_H
#define TEST_UNIT_FABRIC_FABRIC_UNIT_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "fabric/mr.h"
#include "fabric/rail.h"
#include "fake/fake_fi.h"
#include "unit/run.h"

/* Lines at each level, and all the text. */
struct unit_log {
	unsigned cnt[FR_LOG_DEBUG + 1];
	char text[FR_LOG_DEBUG + 1][8192];
};

__attribute__((unused)) static struct unit_log unit_log;

static inline void unit_log_sink(enum fr_log_level level, const char *file,
				 int line, const char *text)
{
	size_t used = strlen(unit_log.text[level]);

	(void)file;
	(void)line;
	unit_log.cnt[level]++;
	snprintf(unit_log.text[level] + used,
		 sizeof(unit_log.text[level]) - used, "%s\n", text);
}

static inline void unit_log_clear(void)
{
	memset(&unit_log, 0, sizeof(unit_log));
	fr_log_set_sink(unit_log_sink);
}

#define unit_assert_said(level, part)                                          \
	ck_assert_msg(strstr(unit_log.text[level], (part)) != NULL,            \
		      "\"%s\" is not in \"%s\"", (part), unit_log.text[level])
/* A test that expects no trouble says so at its end. */
#define unit_assert_quiet()                                                    \
	do {                                                                   \
		ck_assert_str_eq(unit_log.text[FR_LOG_ERROR], "");             \
		ck_assert_str_eq(unit_log.text[FR_LOG_WARN], "");              \
	} while (0)

static inline struct fr_conf unit_conf(void)
{
	static char none[1];
	struct fr_conf conf = {
		.provider = none, .tcp_if = none, .exclude_tcp_if = none};

	return conf;
}

static inline void unit_fake_setup(void)
{
	unsetenv("NCCL_SOCKET_IFNAME");
	unsetenv("FI_PROVIDER");
	unit_log_clear();
	fake_fi_install();
}

/* A fabric of the fake: provider @name on rail0 and rail1. */
static inline struct fr_fabric *unit_fabric(const char *name)
{
	char provider[32];
	struct fr_conf conf = unit_conf();
	struct fr_fabric *fabric = NULL;

	snprintf(provider, sizeof(provider), "%s", name);
	conf.provider = provider;
	fake_fi.offer[0].prov = name;
	fake_fi.offer[1].prov = name;
	fake_fi.offer[2].prov = NULL;
	ck_assert_int_eq(fr_fabric_open(&conf, &fabric), 0);
	fake_fi.calls = 0;
	return fabric;
}

/* What the owner of a rail was told. */
struct unit_owner {
	unsigned writes, errors;
	uint64_t imm;
	size_t bytes;
	int err;
	char text[192];
};

static inline void unit_on_write(void *owner, struct fr_rail *rail,
				 uint64_t imm, size_t bytes)
{
	struct unit_owner *o = owner;

	(void)rail;
	o->writes++;
	o->imm = imm;
	o->bytes = bytes;
}

static inline void unit_on_error(void *owner, struct fr_rail *rail, int err)
{
	struct unit_owner *o = owner;

	o->errors++;
	o->err = err;
	snprintf(o->text, sizeof(o->text), "%s", fr_rail_error_text(rail));
}

__attribute__((unused)) static const struct fr_rail_ops unit_rail_ops = {
	.remote_write = unit_on_write,
	.remote_error = unit_on_error,
};

static inline struct fr_rail_attr
unit_rail_attr(struct fr_fabric *fabric, unsigned nic, struct unit_owner *owner)
{
	struct fr_rail_attr attr = {.fabric = fabric,
				    .nic = nic,
				    .index = nic,
				    .cq_size = 64,
				    .cq_read_cnt = 4,
				    .ops = &unit_rail_ops,
				    .owner = owner};

	return attr;
}

static inline struct fr_rail *unit_rail(struct fr_fabric *fabric, unsigned nic,
					struct unit_owner *owner)
{
	struct fr_rail_attr attr = unit_rail_attr(fabric, nic, owner);
	struct fr_rail *rail = NULL;

	ck_assert_int_eq(fr_rail_open(&attr, &rail), 0);
	return rail;
}

/* An operation that remembers how it ended. */
struct unit_op {
	struct fr_op op;
	unsigned calls;
	int err;
	size_t bytes;
	char text[192];
};

static inline void unit_on_done(struct fr_op *op, struct fr_rail *rail, int err,
				size_t bytes)
{
	struct unit_op *mine = FR_CONTAINER_OF(op, struct unit_op, op);

	mine->calls++;
	mine->err = err;
	mine->bytes = bytes;
	snprintf(mine->text, sizeof(mine->text), "%s",
		 fr_rail_error_text(rail));
}

static inline struct unit_op unit_op(void)
{
	struct unit_op op = {.op.done = unit_on_done};

	return op;
}

#endif
