/*
 * Log lines go to one sink for the process: the host program's logger while a
 * host is attached, standard error before that (warnings and errors only).
 *
 * Levels: error: an operation failed for the user. warn: we go on, worse.
 * info: once per object. debug: details for us. Who decides an error logs it,
 * once; who passes it on is silent. Texts are lower case, without '=', and end
 * with the errno text where there is one.
 *
 * Threads: any. Blocking: as the sink. Never called with a lock held that the
 * sink could want; the sink must not call back into this library.
 */
#ifndef FR_BASE_LOG_H
#define FR_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

enum fr_log_level {
	FR_LOG_ERROR,
	FR_LOG_WARN,
	FR_LOG_INFO,
	FR_LOG_DEBUG,
};

/* @text is one line without control characters, valid during the call. */
typedef void (*fr_log_sink_fn)(enum fr_log_level level, const char *file,
			       int line, const char *text);

/* NULL restores the sink that writes to standard error. */
void fr_log_set_sink(fr_log_sink_fn sink);
/* Lines above @level are dropped before they are formatted. Default DEBUG:
 * the host's own filter decides. */
void fr_log_set_level(enum fr_log_level level);
/* Longer than 1023 bytes: cut, and the text ends in "...". errno is kept. */
void fr_log_line(enum fr_log_level level, const char *file, int line,
		 const char *fmt, ...) FR_PRINTF(4, 5);

#define fr_error(...) fr_log_line(FR_LOG_ERROR, __FILE__, __LINE__, __VA_ARGS__)
#define fr_warn(...) fr_log_line(FR_LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define fr_info(...) fr_log_line(FR_LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define fr_debug(...) fr_log_line(FR_LOG_DEBUG, __FILE__, __LINE__, __VA_ARGS__)

/*
 * For causes that can repeat without end: the first FR_LOG_BURST lines pass,
 * then one every ten seconds which says how many were suppressed.
 * Zero-initialised; one per cause, shared by any threads.
 */
struct fr_log_limit {
	_Atomic uint32_t passed;
	_Atomic uint32_t suppressed;
	_Atomic uint64_t last_ns;
};

#define FR_LOG_BURST 10u

/* True when the caller shall log now; *@suppressed lines were dropped since
 * the last one that passed. */
bool fr_log_limit_pass(struct fr_log_limit *limit, uint32_t *suppressed);
/* Whether every line passes all limits: for tests that want each failure's
 * word. Default false. */
void fr_log_set_unlimited(bool unlimited);
void fr_log_limited_line(struct fr_log_limit *limit, enum fr_log_level level,
			 const char *file, int line, const char *fmt, ...)
	FR_PRINTF(5, 6);

#define fr_log_limited(limit, level, ...)                                      \
	fr_log_limited_line((limit), (level), __FILE__, __LINE__, __VA_ARGS__)

/* The limit of the cause that is called @key, a text that stays: for one place
 * that speaks of many. From the 65th key on they share one. */
struct fr_log_limit *fr_log_limit_of(const char *key);

#define fr_error_limited_by(key, ...)                                          \
	fr_log_limited(fr_log_limit_of(key), FR_LOG_ERROR, __VA_ARGS__)

/* With a limit of the place's own: what a host program can bring about with
 * each call. */
#define fr_error_limited(...)                                                  \
	do {                                                                   \
		static struct fr_log_limit limit_;                             \
		fr_log_limited(&limit_, FR_LOG_ERROR, __VA_ARGS__);            \
	} while (0)

#endif
