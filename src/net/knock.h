/*
 * Liveness by the kernel: a plain TCP port on each rail's address, or a unix
 * socket where rails have none. A process that is stopped, or computes for an
 * hour, still answers, since the kernel does; a dead one refuses.
 *
 * Server: costs nothing while nobody knocks; sends a hello with the set's id to
 * whoever connects; takes at most one refusal; drops silent, slow and strange
 * ones after 1 s; at most 16 at a time.
 *
 * Threads: one owner, or the owner's lock. Blocking: never.
 */
#ifndef FR_NET_KNOCK_H
#define FR_NET_KNOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/knock.h"

#define FR_KNOCK_PATH_MAX 108u

struct fr_knock_server;

/* IPv6, or IPv4 as ::ffff:a.b.c.d; or the path of a unix socket. */
struct fr_knock_addr {
	char path[FR_KNOCK_PATH_MAX]; /* empty: an IP address */
	uint8_t addr[16];
	uint16_t port; /* host byte order; 0: nobody answers, also by path */
	bool scope_lo; /* unused by IPv4 */
};

/* A peer of another kind told us, through the port, why it will not connect. */
typedef void (*fr_knock_refused_fn)(void *arg,
				    const struct fr_knock_refusal *refusal);

/* Listens on @addr (port 0: any). A path is bound with 't' for its last letter
 * and renamed when it answers; it goes with the server. Return: 0; -errno, not
 * logged. Descriptors are close-on-exec, and the port is closed in the child of
 * a fork. */
int fr_knock_server_open(const struct fr_knock_addr *addr, uint64_t set_id,
			 fr_knock_refused_fn refused, void *arg,
			 struct fr_knock_server **out);
void fr_knock_server_close(struct fr_knock_server *server);
uint16_t fr_knock_server_port(const struct fr_knock_server *server);
/* Accepts, answers, reads, reaps. Call about ten times a second. One system
 * call when nobody is there. */
void fr_knock_server_step(struct fr_knock_server *server, uint64_t now_ns);

enum fr_knock_state {
	FR_KNOCK_IDLE,	  /* no knock under way */
	FR_KNOCK_WAITING, /* SYN sent, no answer yet */
	FR_KNOCK_OPEN,	  /* the kernel answered, the process did not: frozen,
			     or not polling */
	FR_KNOCK_ALIVE,	  /* the hello with the right set id came */
	FR_KNOCK_REFUSED, /* nobody listens, or another process does: dead */
	FR_KNOCK_SILENT,  /* the host or the path does not answer (10 s), or is
			     unreachable */
	FR_KNOCK_STATE_CNT
};

/* One knock. The caller owns the struct; zero is idle. */
struct fr_knock {
	enum fr_knock_state state;
	int fd; /* valid in WAITING and OPEN */
	uint64_t started_ns;
	uint64_t set_id; /* expected; 0: any */
	unsigned got;	 /* bytes of the hello */
	uint8_t hello[FR_KNOCK_HELLO_BYTES];
	bool was_open;
};

/* Starts a knock from @local (port ignored; all zero: any) to @peer. Enters
 * WAITING, or REFUSED or SILENT at once. */
void fr_knock_start(struct fr_knock *knock, const struct fr_knock_addr *local,
		    const struct fr_knock_addr *peer, uint64_t set_id,
		    uint64_t now_ns);
/* Looks at it, never waits; returns the state. ALIVE, REFUSED and SILENT are
 * final (the descriptor is closed); a reset in OPEN is REFUSED only when the
 * next knock says so: it returns to IDLE. */
enum fr_knock_state fr_knock_step(struct fr_knock *knock, uint64_t now_ns);
void fr_knock_stop(struct fr_knock *knock);

/* Tells the listener behind @peer why we refuse it. Sends what the socket takes
 * within 200 ms at most; for the rare error path. Return: 0; -errno. */
int fr_knock_refuse_wait(const struct fr_knock_addr *local,
			 const struct fr_knock_addr *peer,
			 const struct fr_knock_refusal *refusal);

#endif
