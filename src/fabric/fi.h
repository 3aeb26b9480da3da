/*
 * libfabric as this floor reaches it: a table of its exported entry points,
 * filled by dlopen, so that a host without libfabric gets one clear line and a
 * test can put a fake below. Private to src/fabric.
 *
 * Threads: fr_fi_get() and fr_fi_getinfo() under the caller's lock, the entries
 * of the table as libfabric allows. Blocking: the load and the first getinfo
 * take about 0.3 s.
 */
#ifndef FR_FABRIC_FI_H
#define FR_FABRIC_FI_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

struct fr_fi {
	int (*getinfo)(uint32_t version, const char *node, const char *service,
		       uint64_t flags, const struct fi_info *hints,
		       struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		      void *context);
	uint32_t (*version)(void);
	const char *(*strerror)(int errnum);
	char *(*tostr)(const void *data, enum fi_type datatype);
};

/* The oldest libfabric whose structures and behaviour are known here. */
#define FR_FI_VERSION_MIN FI_VERSION(1, 17)
/*
 * The interface that is known here whatever the headers say. Two structures of
 * ours that libfabric reads or writes have grown since 1.17; they are passed
 * with room behind them, zero where it reads, so that a build with old headers
 * can ask a new library for what came with 1.18 and 1.20.
 */
#define FR_FI_VERSION_KNOWN FI_VERSION(1, 20)

struct fr_fi_mr_attr {
	struct fi_mr_attr attr;
	uint64_t later[8];
};

union fr_fi_cq_err_entry {
	struct fi_cq_err_entry entry;
	uint64_t room[32];
};

/* Loads libfabric at the first call; it stays loaded until the process ends.
 * Return: 0; -ELIBACC: not there, or too old, logged. */
int fr_fi_get(const struct fr_fi **out);
/* For tests: replaces the table; NULL goes back to the real one. */
void fr_fi_set(const struct fr_fi *table);

/* What to ask fi_getinfo for: the highest version that both sides know. */
uint32_t fr_fi_api_version(const struct fr_fi *fi);
/* fi_getinfo, after the environment that tames providers was set and with the
 * application's signal handlers in place again afterwards. */
int fr_fi_getinfo(const struct fr_fi *fi, const struct fi_info *hints,
		  struct fi_info **list);

/* libfabric's return as an errno that the rest of us knows: values of its own
 * range become -EIO. */
int fr_fi_errno(ssize_t ret);
/* Words for libfabric's return, also those of its own range. */
const char *fr_fi_text(ssize_t ret);

#endif
