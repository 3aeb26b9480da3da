/*
 * A forger: endpoints of its own on loopback, on the floors below the plugin,
 * to say to a plugin what no plugin says.
 *
 * It is a peer with one rail, no knock port (so that nobody gives it up) and a
 * set id for each connection. Calls wait, with a deadline, and fail the test
 * when that passes, except where they return what became of it.
 *
 * Threads: one.
 */
#ifndef FR_TEST_FORGE_H
#define FR_TEST_FORGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/conn.h"
#include "wire/handle.h"
#include "wire/imm.h"
#include "wire/link.h"

#define FORGE_OUT_BYTES (2u << 20)

struct forge;

/* One connection with one plugin. */
struct forge_peer {
	uint64_t ctrl; /* addresses on the forger's rail */
	uint64_t data;
	struct fr_conn_msg msg; /* what the plugin said of itself */
	struct fr_cts cts;	/* the first one */
	uint64_t set_id;	/* of this connection on our side */
	uint32_t comm;
	uint32_t nonce;
	uint32_t seq; /* of the next link message */
};

/* With the provider and interface of this process's environment. */
struct forge *forge_open(void);
void forge_close(struct forge *f);

/* What fills the messages' payload and the writes' source. */
uint8_t *forge_out(struct forge *f);
/* Completion data of the provider, 4 or 8. */
unsigned forge_imm_bytes(const struct forge *f);
uint8_t forge_provider(const struct forge *f);

/* A handle that leads to the forger. */
void forge_handle(struct forge *f, uint64_t cookie, uint8_t *handle);
/* A message that a good peer would send. */
void forge_describe(struct forge *f, uint8_t type, struct fr_conn_msg *msg);

/* Enters the listener's first name. */
uint64_t forge_find(struct forge *f, const uint8_t *handle);
uint64_t forge_find_name(struct forge *f, const struct fr_name *name);

/* One message as it stands. Return: 0: it left; -errno. */
int forge_send(struct forge *f, uint64_t addr, const void *buf, size_t bytes);
/* The same for what may never leave: given up after 0.2 s, -ETIMEDOUT then. */
int forge_try(struct forge *f, uint64_t addr, const void *buf, size_t bytes);
/* The same, repeated until it leaves. */
void forge_push(struct forge *f, uint64_t addr, const void *buf, size_t bytes);
int forge_push_conn(struct forge *f, uint64_t addr,
		    const struct fr_conn_msg *msg);
/* From forge_out(). Complete when the target has it. Return: 0; -errno. */
int forge_write(struct forge *f, uint64_t addr, size_t bytes, uint64_t remote,
		uint64_t key, uint64_t imm);

/* Reads what came for @ms at least. */
void forge_poll(struct forge *f, unsigned ms);
/* Waits until a connect message of @type came; false: none within @ms. */
bool forge_wait_conn(struct forge *f, uint8_t type, struct fr_conn_msg *msg,
		     unsigned ms);

/* A whole connection to the listener of @handle, as a sender. */
void forge_connect(struct forge *f, const uint8_t *handle,
		   struct forge_peer *peer);
/* Waits for the CTS of a connection. */
void forge_wait_cts(struct forge *f, struct forge_peer *peer);
/* Answers a request that a plugin made to our handle, as a receiver. */
void forge_accept(struct forge *f, const struct fr_conn_msg *request,
		  struct forge_peer *peer);
void forge_leave(struct forge *f, struct forge_peer *peer);

/* A header of the connection; forge_link() takes the next number. */
void forge_hdr(const struct forge_peer *peer, uint8_t type, size_t payload,
	       struct fr_link_hdr *hdr);
/* A link message with @bytes of @payload behind a good header. */
void forge_link(struct forge *f, struct forge_peer *peer, uint8_t type,
		uint8_t flags, const void *payload, size_t bytes);
/* A header of the caller's own making. */
void forge_link_raw(struct forge *f, struct forge_peer *peer,
		    const struct fr_link_hdr *hdr, const void *payload,
		    size_t bytes);

#endif
