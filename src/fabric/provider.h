/*
 * Which provider, which interfaces: discovery, once per init.
 *
 * The table of quirks says what a provider needs that its fi_info does not
 * tell; everything that fi_info does tell is read back from it and never
 * assumed.
 */
#ifndef FR_FABRIC_PROVIDER_H
#define FR_FABRIC_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/conf.h"
#include "wire/name.h"

enum fr_fence_kind {
	FR_FENCE_EP,	  /* closing the endpoint stops writes at once */
	FR_FENCE_ABANDON, /* never poll it again, never close it */
	FR_FENCE_MR,	  /* close and register anew */
	FR_FENCE_NONE,	  /* no rail is repaired; closing all endpoints ends
			     all writes */
};

/* One row a provider. */
struct fr_quirks {
	const char *name;	/* fi_info's provider name, e.g. "net" */
	uint8_t wire_id;	/* enum fr_wire_prov */
	bool by_default;	/* probed when the user names none */
	bool split_ep;		/* C and D are two endpoints */
	bool delivery_per_call; /* completion level only through fi_writemsg */
	bool mr_excludes_poll;	/* MR open/close never beside a CQ read */
	bool has_write_len;	/* len of a remote write's CQ entry is right */
	bool empty_is_local;	/* a write of no bytes never completes with
				   delivery completion: local is used */
	bool rma_is_direct;	/* writes and reads of GPU memory go to the NIC
				   whatever it says of its messages */
	bool enoent_is_eagain;	/* so says a post to a port that is closed */
	bool reads_late;	/* a write is read from its sender's memory when
				   the target polls, whatever was closed */
	bool names_are_tcp;	/* of endpoints, which are ports of TCP */
	bool named_files; /* endpoints are files that we name, see shm.h */
	enum fr_fence_kind fence;
	uint32_t tx_cap; /* our own limit of posts in flight an endpoint;
			    0: the provider says EAGAIN by itself */
	uint32_t copied_max_bytes; /* no longer message is sent: it would be
				      read late as well; 0: no limit */
	uint32_t inline_max_bytes; /* up to here the message path beats a write
				      although a CTS is here */
};

/* One usable network interface as the chosen provider offers it. */
struct fr_nic {
	char name[32];	     /* interface, "rail0" */
	char addr_text[64];  /* "10.77.0.1", "fd00::1" */
	uint8_t addr[16];    /* IPv4 as ::ffff:a.b.c.d */
	uint8_t subnet[16];  /* host bits zero */
	uint8_t prefix;	     /* of the 128 bits; 0: not an IP network */
	uint32_t speed_mbps; /* never 0: 10000 when unknown */
	bool speed_known;
	bool loopback;
	char *pci_path;	 /* sysfs path, or NULL for a virtual interface */
	int numa;	 /* node, or -1 */
	bool gpu;	 /* takes memory of a GPU by its address */
	bool gpu_dmabuf; /* takes it as a dma-buf */
	uint64_t guid;	 /* stable over reboots: from MAC or name */
	void *info;	 /* private: struct fi_info */
};

struct fr_fabric; /* the chosen provider and its interfaces */

/**
 * fr_fabric_open - choose provider and interfaces
 * @conf: provider, tcp_if, exclude_tcp_if, use_ipv6, force_rails are used
 *
 * Loads libfabric at the first call in the process (dlopen, never closed) with
 * the application's signal handlers saved and put back; sets the environment
 * that tames tcp;ofi_rxm unless the user set it.
 *
 * Interfaces: up, with an address that is not link-local; one NIC an interface
 * (IPv4 before IPv6, the other way round with use_ipv6); never excluded ones;
 * loopback only when TCP_IF names it or nothing else is usable. Sorted by name
 * in natural order. NCCL_SOCKET_IFNAME serves as TCP_IF when that is unset.
 * Two interfaces in one subnet draw a warning that says what to do.
 *
 * Memory of a GPU: taken where the provider offers it and a trial registration
 * worked; the reason is an info line otherwise. It needs the host's CUDA
 * context to be current for the calling thread, and makes none.
 *
 * Threads: the caller serialises. Blocking: about 0.3 s at the first call.
 * Return: 0; -ENOENT: no usable provider or interface: one error line for each
 *         thing seen with why it was refused; -ELIBACC: no libfabric, or too
 *         old, said in one line; -ENOMEM.
 */
int fr_fabric_open(const struct fr_conf *conf, struct fr_fabric **out);
void fr_fabric_close(struct fr_fabric *fabric);
/* Whether libfabric was loaded, by whomever. Threads: any. Blocking: never. */
bool fr_fabric_is_there(void);

const struct fr_quirks *fr_fabric_quirks(const struct fr_fabric *fabric);
unsigned fr_fabric_nic_cnt(const struct fr_fabric *fabric);
const struct fr_nic *fr_fabric_nic(const struct fr_fabric *fabric, unsigned i);
/* "net, libfabric 1.17.0", for log lines. */
const char *fr_fabric_text(const struct fr_fabric *fabric);
/* Why memory of a GPU, or a dma-buf of it, is not taken by some NIC; "" when
 * all take both. */
const char *fr_fabric_gpu_why(const struct fr_fabric *fabric);
/* Bytes of remote CQ data, 4 or 8. */
unsigned fr_fabric_cq_data_bytes(const struct fr_fabric *fabric);
/* Largest single write or message. */
uint64_t fr_fabric_max_msg_bytes(const struct fr_fabric *fabric);

#endif
