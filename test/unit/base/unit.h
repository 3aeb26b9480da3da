/*
 * What the unit tests of the base floor share: a log sink that remembers.
 */
#ifndef TEST_UNIT_BASE_UNIT_H
#define TEST_UNIT_BASE_UNIT_H

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "unit/run.h"

/* The last line, and how many lines came at each level. */
struct unit_log {
	unsigned cnt[FR_LOG_DEBUG + 1];
	char text[2048];
	char file[256];
	int line;
};

static struct unit_log unit_log;

static inline void unit_log_sink(enum fr_log_level level, const char *file,
				 int line, const char *text)
{
	unit_log.cnt[level]++;
	unit_log.line = line;
	snprintf(unit_log.text, sizeof(unit_log.text), "%s", text);
	snprintf(unit_log.file, sizeof(unit_log.file), "%s", file);
}

/* A fixture: forgets what was logged and takes what comes. */
static inline void unit_log_setup(void)
{
	memset(&unit_log, 0, sizeof(unit_log));
	fr_log_set_level(FR_LOG_DEBUG);
	fr_log_set_sink(unit_log_sink);
}

#define unit_assert_logged(part)                                               \
	ck_assert_msg(strstr(unit_log.text, (part)) != NULL,                   \
		      "\"%s\" is not in \"%s\"", (part), unit_log.text)

#endif
