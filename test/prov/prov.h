/*
 * A provider in memory that carries libfabric's name, for hardware that is not
 * here: what it demands of its user is chosen, and a user that does not keep to
 * it is ended by abort() with a line on standard error. It moves data between
 * the endpoints of one process, late and out of order. For tests only.
 *
 * Watched, beyond what libfabric's functions return: a post names memory that
 * is registered for it, for this domain and for as long as the post is under
 * way; a write or read names a key, an address in the form that is asked for
 * and a range of a registration that is open to it, bound and enabled; remote
 * data fits; no message is longer than the limit; objects are closed before
 * what they lie in.
 *
 * Threads: any, one lock. prov_load() and set() before libfabric is used.
 */
#ifndef FR_TEST_PROV_PROV_H
#define FR_TEST_PROV_PROV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_prov {
	const char *name;	/* of the provider, as in fi_info */
	const char *domains[4]; /* up to NULL */
	uint32_t version;	/* of libfabric */
	bool ip;		/* endpoints have addresses of IPv4 loopback */
	uint64_t caps_less;	/* offered without these */
	uint64_t mode;
	uint64_t mr_mode; /* demanded; a user that cannot do it is offered none
			   */
	size_t mr_key_size;
	size_t cq_data_size;
	size_t max_msg_size;
	unsigned again_percent; /* of posts are refused with -FI_EAGAIN */
	bool overruns; /* a completion queue has room for what was asked for,
			  and ends with FI_EOVERRUN behind that */
};

struct fr_prov_api {
	void (*set)(const struct fr_prov *prov); /* copied; texts are not */
	unsigned (*live)(void);			 /* objects that are open */
	unsigned (*overtaken)(void);  /* writes that landed before older ones */
	unsigned (*refused)(void);    /* posts that were told -FI_EAGAIN */
	size_t (*longest)(void);      /* bytes of the longest post */
	unsigned (*rails_used)(void); /* domains whose endpoints wrote */
	unsigned (*keys)(void);	      /* registrations that peers wrote to */
};

#define FR_PROV_API "fr_prov_api"

#endif
