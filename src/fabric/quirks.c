#include "fabric/quirks.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include <rdma/fabric.h>

#include "base/util.h"

/*
 * In the order of probing. What is not said here is read from fi_info.
 *
 * net: completion levels only per call; registration crashes beside a second
 * thread in the same domain; never says EAGAIN when full; closing an endpoint
 * cuts a write in the middle. tcp is the same code under its later name, whose
 * locking we do not rely on either.
 * sockets: connects inside of a post, and a refused one is no end, as the port
 * may be open a moment later.
 * tcp;ofi_rxm: an endpoint costs megabytes and must not be closed under load.
 *   From libfabric 1.18 on it lies over the code of net, and a write that a
 * dead peer left half done makes it dereference NULL.
 * shm: the target's CPU copies when it polls, from the sender's memory if the
 * kernel allows it; only short messages are copied at once. A write of no bytes
 * with delivery completion never completes.
 * verbs: rxm copies what its messages carry and hands writes and reads on as
 * they are; memory of a GPU is never in a message.
 * verbs, efa: 4 bytes of CQ data, so the length of writes is needed from the
 * CQ.
 */
/* clang-format off */
static const struct fr_quirks quirks_table[] = {
	{ .name = "net", .wire_id = FR_WIRE_PROV_NET, .by_default = true,
	  .split_ep = true, .names_are_tcp = true, .delivery_per_call = true,
	  .mr_excludes_poll = true, .fence = FR_FENCE_EP, .tx_cap = 256,
	  .inline_max_bytes = 2048 },
	{ .name = "tcp", .wire_id = FR_WIRE_PROV_NET, .by_default = true,
	  .split_ep = true, .names_are_tcp = true, .delivery_per_call = true,
	  .mr_excludes_poll = true, .fence = FR_FENCE_EP, .tx_cap = 256,
	  .inline_max_bytes = 2048 },
	{ .name = "tcp;ofi_rxm", .wire_id = FR_WIRE_PROV_TCP_RXM,
	  .by_default = true, .names_are_tcp = true,
	  .fence = FR_FENCE_ABANDON,
	  .inline_max_bytes = 2048 },
	{ .name = "sockets", .wire_id = FR_WIRE_PROV_SOCKETS,
	  .split_ep = true, .names_are_tcp = true, .has_write_len = true,
	  .enoent_is_eagain = true, .fence = FR_FENCE_EP, .tx_cap = 256,
	  .inline_max_bytes = 0 },
	{ .name = "shm", .wire_id = FR_WIRE_PROV_SHM, .has_write_len = true,
	  .empty_is_local = true, .named_files = true, .reads_late = true,
	  .copied_max_bytes = 4096,
	  .fence = FR_FENCE_NONE, .inline_max_bytes = 0 },
	{ .name = "verbs;ofi_rxm", .wire_id = FR_WIRE_PROV_VERBS,
	  .has_write_len = true, .rma_is_direct = true,
	  .fence = FR_FENCE_MR, .inline_max_bytes = 0 },
	{ .name = "efa", .wire_id = FR_WIRE_PROV_EFA, .has_write_len = true,
	  .fence = FR_FENCE_MR, .inline_max_bytes = 0 },
};

static const struct {
	const char *name;
	const char *why;
} quirks_never[] = {
	{ "net;ofi_rxm", "crashes when a peer dies; net itself is better" },
	{ "ofi_mrail", "cannot write with remote CQ data" },
	{ "udp;ofi_rxd", "a bad key wedges the endpoint for good" },
	{ "udp", "datagrams are not reliable" },
};
/* clang-format on */

const struct fr_quirks *fr_quirks_row(unsigned i)
{
	return i < FR_ARRAY_LEN(quirks_table) ? &quirks_table[i] : NULL;
}

const char *fr_quirks_name(const char *user, uint32_t version)
{
	if (FI_VERSION_GE(version, FI_VERSION(1, 18)) &&
	    strcasecmp(user, "net") == 0) {
		return "tcp";
	}
	return user;
}

bool fr_quirks_matches(const struct fr_quirks *row, const char *user)
{
	size_t len = strlen(user);

	return strncasecmp(row->name, user, len) == 0 &&
	       (row->name[len] == '\0' || row->name[len] == ';');
}

const char *fr_quirks_refusal(const struct fr_quirks *row, uint32_t version)
{
	if (strcmp(row->name, "tcp") == 0 &&
	    FI_VERSION_LT(version, FI_VERSION(1, 18))) {
		return "has reliable datagrams of its own from libfabric 1.18 "
		       "on";
	}
	if (strcmp(row->name, "net") == 0 &&
	    FI_VERSION_GE(version, FI_VERSION(1, 18))) {
		return "became tcp in libfabric 1.18";
	}
	if (strcmp(row->name, "tcp;ofi_rxm") == 0 &&
	    FI_VERSION_GE(version, FI_VERSION(1, 18))) {
		return "crashes when a peer dies; tcp itself is better";
	}
	if (strcmp(row->name, "efa") == 0 &&
	    FI_VERSION_LT(version, FI_VERSION(1, 22))) {
		return "needs libfabric 1.22 or newer";
	}
	return NULL;
}

const char *fr_quirks_foreign_refusal(const char *user)
{
	for (size_t i = 0; i < FR_ARRAY_LEN(quirks_never); i++) {
		if (strcasecmp(quirks_never[i].name, user) == 0) {
			return quirks_never[i].why;
		}
	}
	return "not a provider known here: net, tcp, tcp;ofi_rxm, sockets, "
	       "shm, verbs or efa";
}
