/* Inside of opts*.c: the options as a table. */
#ifndef FR_TOOLS_OPTS_TABLE_H
#define FR_TOOLS_OPTS_TABLE_H

#include "tools/opts.h"

#define FR_OPT_ROWS_MAX 48

enum fr_opt_kind {
	FR_OPT_UINT,   /* unsigned within [min, max] */
	FR_OPT_SIZE,   /* size_t */
	FR_OPT_NAME,   /* int: index in names */
	FR_OPT_FLAG,   /* bool */
	FR_OPT_TEXT,   /* const char * */
	FR_OPT_ABI,    /* unsigned: v6 or 6 */
	FR_OPT_RANKS,  /* unsigned; ranks are forked whatever the environment */
	FR_OPT_NETNS,  /* A,B */
	FR_OPT_MASTER, /* HOST:PORT */
	FR_OPT_FILE,   /* const char *; without value: "-" */
};

struct fr_opt_row {
	const char *name; /* long name; NULL ends the table */
	char letter;	  /* 0: none */
	enum fr_opt_kind kind;
	size_t offset;	 /* in struct fr_perf_opts */
	const char *arg; /* NULL: no value; "[...": the value is optional */
	unsigned min, max;
	const char *const *names;
	const char *dflt;
	const char *help;
};

extern const struct fr_opt_row fr_opt_rows[];

int fr_opt_set(const struct fr_opt_row *row, const char *arg,
	       struct fr_perf_opts *opts, char *why, size_t bytes);
int fr_opt_set_defaults(struct fr_perf_opts *opts);
/* Plugin, rank and size, master, as far as no option gave them. */
int fr_opt_from_env(char *(*get)(const char *name), struct fr_perf_opts *opts,
		    char *why, size_t bytes);

#endif
