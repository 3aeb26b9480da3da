/* What FR_SHIM says, parsed; the grammar is in shim.h. Pure, but for the heap.
 */
#ifndef FR_TEST_SHIM_SPEC_H
#define FR_TEST_SHIM_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum shim_kind {
	SHIM_GETINFO,
	SHIM_DUPINFO,
	SHIM_FABRIC,
	SHIM_DOMAIN,
	SHIM_AV,
	SHIM_CQ,
	SHIM_EP,
	SHIM_BIND,
	SHIM_ENABLE,
	SHIM_GETNAME,
	SHIM_SETOPT,
	SHIM_INSERT,
	SHIM_MRBIND,
	SHIM_MRENABLE,
	SHIM_REG,
	SHIM_SEND,
	SHIM_WRITE,
	SHIM_RECV,
	SHIM_FETCH,
	SHIM_READ,
	SHIM_READERR,
	SHIM_REMOVE,
	SHIM_CLOSE,
	SHIM_SENT,
	SHIM_WRITTEN,
	SHIM_FETCHED,
	SHIM_RECEIVED,
	SHIM_LANDED,
	SHIM_KIND_CNT
};

#define SHIM_RULES 16
#define SHIM_KEYS 16
#define SHIM_PATH 256
#define SHIM_SPOIL_MAX 65536
#define SHIM_ANY_RAIL (-1)

struct shim_rule {
	uint32_t kinds; /* bit an enum shim_kind */
	int rail;
	bool is_again;
	/* fail */
	uint64_t at;
	uint64_t cnt; /* 0: for ever */
	int err;
	int sig; /* to be raised; 0: it is refused */
	/* again */
	double chance;
	uint64_t burst; /* 0: each call is a draw of its own */
	/* state */
	uint64_t seen;
	uint64_t left; /* of the burst */
	bool pass;     /* a burst has ended: the next one goes through */
};

struct shim_spec {
	uint64_t seed;
	unsigned rule_cnt;
	struct shim_rule rule[SHIM_RULES];
	bool garbage;
	bool shuffle;
	bool posts;
	bool gpu;
	unsigned key_cnt;
	uint64_t key[SHIM_KEYS];
	bool spoils;
	uint8_t spoil_first; /* a message that begins with it */
	uint64_t spoil_at;
	uint64_t spoil_add;
	unsigned cq_data; /* 0: as it is */
	char log[SHIM_PATH];
};

/* @text: NULL is "". Return: 0; -EINVAL: *@bad begins the first item that is
 * wrong, and *@spec is not to be used. */
int shim_spec_parse(const char *text, struct shim_spec *spec, const char **bad);
/* Bits of "a+b"; 0: no such kind. @len: characters of @text. */
uint32_t shim_kinds_parse(const char *text, size_t len);
const char *shim_kind_name(enum shim_kind kind);

#endif
