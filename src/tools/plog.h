/* Where the plugin's log lines go. Threads: any. */
#ifndef FR_TOOLS_PLOG_H
#define FR_TOOLS_PLOG_H

#include <stdbool.h>
#include <stddef.h>

/* NCCL_DEBUG (VERSION, WARN, INFO, TRACE) says what is shown, on standard
 * error; warnings always are, INFO lines with @verbose too. */
void fr_plog_init(unsigned rank, bool verbose);
/* The logger to hand to a plugin. */
void fr_plog_line(int level, unsigned long flags, const char *file, int line,
		  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The provider that the plugin named in its lines, or "unknown". */
const char *fr_plog_provider(void);
/* Finds it in one line. False: it names none. */
bool fr_plog_find_provider(const char *text, char *name, size_t bytes);

#endif
