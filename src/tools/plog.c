#include "tools/plog.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "tools/netplugin.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards provider */
static char provider[64];
static unsigned own_rank;
static int shown = FR_PLUGIN_LOG_WARN;

void fr_plog_init(unsigned rank, bool verbose)
{
	const char *debug = getenv("NCCL_DEBUG");

	own_rank = rank;
	shown = verbose ? FR_PLUGIN_LOG_INFO : FR_PLUGIN_LOG_WARN;
	if (debug != NULL && strcasecmp(debug, "INFO") == 0) {
		shown = FR_PLUGIN_LOG_INFO;
	} else if (debug != NULL && strcasecmp(debug, "TRACE") == 0) {
		shown = FR_PLUGIN_LOG_TRACE;
	}
}

bool fr_plog_find_provider(const char *text, char *name, size_t bytes)
{
	static const char *const before[] = {"using provider ", "provider is ",
					     "provider: ", "provider "};
	const char *at = NULL;
	size_t len;

	if (strstr(text, "not used") != NULL) {
		return false;
	}
	for (size_t i = 0; i < FR_ARRAY_LEN(before) && at == NULL; i++) {
		at = strcasestr(text, before[i]);
		at = at != NULL ? at + strlen(before[i]) : NULL;
	}
	if (at == NULL) {
		return false;
	}
	at += strspn(at, "\"' ");
	len = strcspn(at, "\"' ,:()");
	/* a name, and not the next word of a sentence */
	if (len == 0 || len >= bytes ||
	    (at[len] == ' ' && at[len + 1] != '(')) {
		return false;
	}
	memcpy(name, at, len);
	name[len] = 0;
	return true;
}

static void note_provider(const char *text)
{
	char name[sizeof(provider)];

	if (!fr_plog_find_provider(text, name, sizeof(name))) {
		return;
	}
	(void)pthread_mutex_lock(&lock);
	if (provider[0] == 0) {
		memcpy(provider, name, sizeof(name));
	}
	(void)pthread_mutex_unlock(&lock);
}

const char *fr_plog_provider(void)
{
	static char copy[sizeof(provider)];

	(void)pthread_mutex_lock(&lock);
	(void)snprintf(copy, sizeof(copy), "%s",
		       provider[0] != 0 ? provider : "unknown");
	(void)pthread_mutex_unlock(&lock);
	return copy;
}

void fr_plog_line(int level, unsigned long flags, const char *file, int line,
		  const char *fmt, ...)
{
	char text[1024];
	va_list args;

	(void)flags;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (level == FR_PLUGIN_LOG_INFO) {
		note_provider(text);
	}
	if (level <= shown) {
		(void)fprintf(stderr, "rank %u %s %s:%d: %s\n", own_rank,
			      level <= FR_PLUGIN_LOG_WARN ? "WARN" : "INFO",
			      file != NULL ? file : "?", line, text);
	}
}
