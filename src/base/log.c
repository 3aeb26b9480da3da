#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define LOG_LINE_BYTES 1024
#define LOG_REPEAT_NS (10 * FR_NS_PER_S)

static const char log_cut_mark[] = "...";

static void log_to_stderr(enum fr_log_level level, const char *file, int line,
			  const char *text)
{
	(void)file;
	(void)line;
	if (level > FR_LOG_WARN) {
		return;
	}
	fprintf(stderr, "fabrail: %s: %s\n",
		level == FR_LOG_ERROR ? "error" : "warn", text);
}

static _Atomic fr_log_sink_fn log_sink = log_to_stderr;
static atomic_int log_level = FR_LOG_DEBUG;
static atomic_bool log_unlimited;

void fr_log_set_sink(fr_log_sink_fn sink)
{
	atomic_store(&log_sink, sink == NULL ? log_to_stderr : sink);
}

void fr_log_set_level(enum fr_log_level level)
{
	atomic_store(&log_level, (int)level);
}

void fr_log_set_unlimited(bool unlimited)
{
	atomic_store(&log_unlimited, unlimited);
}

static bool log_wants(enum fr_log_level level)
{
	return (int)level <=
	       atomic_load_explicit(&log_level, memory_order_relaxed);
}

/* Texts can quote a user's value or a peer's bytes: one line stays one line. */
static void log_flatten(char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < ' ' || c == 0x7f) {
			*text = ' ';
		}
	}
}

static void log_emit(enum fr_log_level level, const char *file, int line,
		     uint32_t suppressed, const char *fmt, va_list args)
	FR_PRINTF(5, 0);

static void log_emit(enum fr_log_level level, const char *file, int line,
		     uint32_t suppressed, const char *fmt, va_list args)
{
	char text[LOG_LINE_BYTES];
	char tail[48] = "";
	int saved_errno = errno;
	size_t room;
	int len;

	if (suppressed != 0) {
		snprintf(tail, sizeof(tail), " (%u more suppressed)",
			 suppressed);
	}
	room = sizeof(text) - strlen(tail);
	len = vsnprintf(text, room, fmt, args);
	if (len < 0) {
		len = snprintf(text, room, "unprintable: %s", fmt);
	}
	if ((size_t)len >= room) {
		len = (int)(room - 1);
		memcpy(text + room - sizeof(log_cut_mark), log_cut_mark,
		       sizeof(log_cut_mark));
	}
	memcpy(text + len, tail, strlen(tail) + 1);
	log_flatten(text);
	atomic_load (&log_sink)(level, file, line, text);
	errno = saved_errno;
}

void fr_log_line(enum fr_log_level level, const char *file, int line,
		 const char *fmt, ...)
{
	va_list args;

	if (!log_wants(level)) {
		return;
	}
	va_start(args, fmt);
	log_emit(level, file, line, 0, fmt, args);
	va_end(args);
}

bool fr_log_limit_pass(struct fr_log_limit *limit, uint32_t *suppressed)
{
	uint64_t now = fr_now_ns();
	uint64_t last;

	if (atomic_load(&log_unlimited)) {
		*suppressed = 0;
		return true;
	}
	if (atomic_load(&limit->passed) < FR_LOG_BURST) {
		/* Before the count: who finds it full sees a recent time. */
		atomic_store(&limit->last_ns, now);
		if (atomic_fetch_add(&limit->passed, 1) < FR_LOG_BURST) {
			*suppressed = 0;
			return true;
		}
	}

	last = atomic_load(&limit->last_ns);
	/* Another thread may have stored a time later than our now. */
	if (now > last && now - last >= LOG_REPEAT_NS &&
	    atomic_compare_exchange_strong(&limit->last_ns, &last, now)) {
		*suppressed = atomic_exchange(&limit->suppressed, 0);
		return true;
	}
	atomic_fetch_add(&limit->suppressed, 1);
	return false;
}

void fr_log_limited_line(struct fr_log_limit *limit, enum fr_log_level level,
			 const char *file, int line, const char *fmt, ...)
{
	uint32_t suppressed;
	va_list args;

	if (!log_wants(level) || !fr_log_limit_pass(limit, &suppressed)) {
		return;
	}
	va_start(args, fmt);
	log_emit(level, file, line, suppressed, fmt, args);
	va_end(args);
}

#define LIMIT_KEYS 64u

/* Filled from the front; a key never changes once it is there. */
static struct {
	const char *_Atomic key;
	struct fr_log_limit limit;
} limits[LIMIT_KEYS + 1];

struct fr_log_limit *fr_log_limit_of(const char *key)
{
	unsigned i;

	for (i = 0; i < LIMIT_KEYS; i++) {
		const char *there = NULL;

		if (atomic_compare_exchange_strong(&limits[i].key, &there,
						   key) ||
		    strcmp(there, key) == 0) {
			break;
		}
	}
	return &limits[i].limit;
}
