/* The parameters of the plugin: one struct, one table (conf.c). */
#ifndef FR_BASE_CONF_H
#define FR_BASE_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/param.h"

#define FR_CONF_PREFIX "OFI_NCCL_"
/* Hard limit of rails a device; MAX_RAILS is softer. */
#define FR_MAX_RAILS 8u
#define FR_MAX_COMM_IDS (1u << 18) /* a set */
#define FR_MAX_REQS 256u	   /* in flight a comm */

enum fr_completion {
	FR_COMPLETION_DELIVERY, /* a send is done when no dead rail can lose it
				 */
	FR_COMPLETION_LOCAL,	/* done when its buffer may be reused */
};

/* What tests need to reach limits that a user does not meet. */
struct fr_conf_test {
	uint32_t first_seq;	  /* TEST_FIRST_SEQ (0) */
	uint64_t max_write_bytes; /* TEST_MAX_MSG_SIZE; 0: as it is */
	uint32_t comm_ids;	  /* TEST_COMM_IDS: a set, 1..2^18 */
	uint32_t max_reqs;	  /* TEST_MAX_REQUESTS: a comm, 1..256 */
	uint32_t fail_alloc;	  /* TEST_FAIL_ALLOC: 0 none */
	bool log_all;		  /* TEST_LOG_ALL (0) */
};

struct fr_conf {
	char *provider;	      /* PROVIDER: "" lets us choose */
	char *tcp_if;	      /* TCP_IF: list of prefixes or =exact names */
	char *exclude_tcp_if; /* EXCLUDE_TCP_IF; "=lo,docker,virbr" */
	bool use_ipv6;	      /* USE_IPV6_TCP: prefer IPv6 addresses */
	uint32_t max_rails;   /* MAX_RAILS: rails a device, 1..8 (4) */
	uint32_t force_rails; /* FORCE_NUM_RAILS: 0 off, 1..8 */
	uint64_t min_stripe_bytes; /* MIN_STRIPE_SIZE (128K) */
	uint64_t small_msg_bytes;  /* SCHED_MAX_SMALL_MSG_SIZE (64) */
	int64_t eager_max_bytes;   /* EAGER_MAX_SIZE (8192); -1 off; max 64K */
	uint32_t cq_read_cnt;	   /* CQ_READ_COUNT (16), 1..256 */
	uint32_t cq_size;	   /* CQ_SIZE: entries a CQ (12288) */
	uint32_t yield_after;	   /* YIELD_AFTER: empty passes (32); 0 never */
	bool keeper;		   /* KEEPER (1) */
	int completion;		   /* SEND_COMPLETION: delivery or local */
	bool mr_cache_disable;	   /* MR_CACHE_DISABLE (0) */
	bool ep_per_comm;	   /* ENDPOINT_PER_COMM (0) */
	bool rail_weights;	   /* RAIL_WEIGHTS (0) */
	bool failover;		   /* FAILOVER (0) */
	uint64_t rail_timeout_ns;  /* RAIL_TIMEOUT (3 s) */
	uint64_t peer_timeout_ns;  /* PEER_TIMEOUT (0: wait for ever) */
	uint64_t connect_timeout_ns; /* CONNECT_TIMEOUT (0: wait for ever) */
	bool disable_dmabuf;	     /* DISABLE_DMABUF (0) */
	bool disable_flush;	     /* GDR_FLUSH_DISABLE (0) */
	char *stats_file; /* STATS_FILE: "" none; JSON lines at close */
	struct fr_conf_test test;
};

extern const struct fr_param fr_conf_table[];
/* Names of aws-ofi-nccl's parameters that have no meaning here. */
extern const struct fr_param_foreign fr_conf_foreign[];
/* Rows of fr_conf_table without the end mark. */
extern const unsigned fr_conf_rows;

#endif
