#include "net/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "fabric/addr.h"
#include "fabric/shm.h"

void fr_name_addr(const struct fr_name *name, uint8_t addr[16])
{
	uint16_t family = 0;

	memset(addr, 0, 16);
	if (name->len >= sizeof(family)) {
		memcpy(&family, name->bytes, sizeof(family));
	}
	if (family == AF_INET && name->len >= 8) {
		addr[10] = 0xff;
		addr[11] = 0xff;
		memcpy(addr + 12, name->bytes + 4, 4);
	} else if (family == AF_INET6 && name->len >= 24) {
		memcpy(addr, name->bytes + 8, 16);
	}
}

uint16_t fr_name_port(const struct fr_name *name)
{
	uint16_t family = 0, port = 0;

	if (name->len >= 8) { /* at the same place in both versions */
		memcpy(&family, name->bytes, sizeof(family));
		memcpy(&port, name->bytes + 2, sizeof(port));
	}
	return family == AF_INET || family == AF_INET6 ? ntohs(port) : 0;
}

void fr_peer_knock_addr(const struct fr_name *name, const uint8_t ip[16],
			uint16_t port, struct fr_knock_addr *out)
{
	memset(out, 0, sizeof(*out));
	if (!fr_shm_knock_path(name, out->path)) {
		memcpy(out->addr, ip, sizeof(out->addr));
	}
	out->port = port;
}

void fr_peer_text(const struct fr_knock_addr *addr, char *text)
{
	const char *file = strrchr(addr->path, '/');

	if (file != NULL) {
		snprintf(text, FR_PEER_TEXT, "%.63s", file + 1);
	} else {
		fr_addr_text(addr->addr, text);
	}
}

static bool in_subnet(const struct fr_nic *nic, const uint8_t addr[16])
{
	unsigned full = nic->prefix / 8, rest = nic->prefix % 8;

	if (nic->prefix == 0 || memcmp(addr, nic->subnet, full) != 0) {
		return false;
	}
	return rest == 0 ||
	       ((addr[full] ^ nic->subnet[full]) >> (8 - rest)) == 0;
}

static bool same_version(const struct fr_nic *nic, const uint8_t addr[16])
{
	static const uint8_t none[16];

	return nic->prefix != 0 && memcmp(addr, none, sizeof(none)) != 0 &&
	       fr_addr_is_v4(nic->addr) == fr_addr_is_v4(addr);
}

struct fr_rail *fr_conn_rail_for(struct fr_set *set, const struct fr_name *name)
{
	unsigned best = 0;
	uint8_t addr[16];

	fr_name_addr(name, addr);
	for (unsigned i = set->rail_cnt; i-- > 0;) {
		if (same_version(fr_rail_nic(set->rail[i]), addr)) {
			best = i;
		}
	}
	for (unsigned i = set->rail_cnt; i-- > 0;) {
		if (in_subnet(fr_rail_nic(set->rail[i]), addr)) {
			best = i;
		}
	}
	return set->rail[best];
}

/* How near @name is: 0 in no subnet of ours; 1 an address of ours, which is the
 * peer's too where it runs on this host; 2 another in a subnet of ours. */
static unsigned nearness(const struct fr_set *set, const struct fr_name *name)
{
	unsigned best = 0;
	uint8_t addr[16];

	fr_name_addr(name, addr);
	for (unsigned i = 0; i < set->rail_cnt; i++) {
		const struct fr_nic *nic = fr_rail_nic(set->rail[i]);

		if (in_subnet(nic, addr)) {
			bool own = memcmp(nic->addr, addr, 16) == 0;

			best = FR_MAX(best, own ? 1u : 2u);
		}
	}
	return best;
}

unsigned fr_peer_near_name(const struct fr_set *set,
			   const struct fr_handle *handle)
{
	unsigned best = 0;

	for (unsigned i = 1; i < handle->name_cnt; i++) {
		if (nearness(set, &handle->names[i]) >
		    nearness(set, &handle->names[best])) {
			best = i;
		}
	}
	return best;
}

void fr_peer_refuse_wait(const struct fr_handle *handle, const char *text)
{
	struct fr_knock_addr local = {.port = 0}, peer;
	struct fr_knock_refusal refusal = {.cookie = handle->cookie};
	uint8_t ip[16];

	fr_name_addr(&handle->names[0], ip);
	fr_peer_knock_addr(&handle->names[0], ip, handle->knock_port, &peer);
	if (peer.port == 0) {
		return;
	}
	refusal.text_len = (uint16_t)snprintf(refusal.text,
					      sizeof(refusal.text), "%s", text);
	(void)fr_knock_refuse_wait(&local, &peer, &refusal);
}

/* All names of a handle are of one IP version. */
static bool can_reach(const struct fr_device *dev,
		      const struct fr_handle *handle)
{
	static const uint8_t none[16];
	uint8_t addr[16];
	bool ip = false;

	fr_name_addr(&handle->names[0], addr);
	for (unsigned i = 0; i < dev->rail_cnt; i++) {
		const struct fr_nic *nic =
			fr_fabric_nic(fr_core.fabric, dev->nic[i]);

		if (same_version(nic, addr)) {
			return true;
		}
		ip = ip || nic->prefix != 0;
	}
	return !ip || memcmp(addr, none, sizeof(none)) == 0;
}

static void say_version(const struct fr_device *dev,
			const struct fr_handle *handle, char *text,
			size_t bytes)
{
	char addr_text[FR_ADDR_TEXT];
	uint8_t addr[16];
	bool v4;

	fr_name_addr(&handle->names[0], addr);
	fr_addr_text(addr, addr_text);
	v4 = fr_addr_is_v4(addr);
	snprintf(text, bytes,
		 "the listener at %s has IPv%u addresses, the rails of %s on "
		 "the connecting side IPv%u alone; give both hosts the same, "
		 "and set OFI_NCCL_USE_IPV6_TCP alike",
		 addr_text, v4 ? 4 : 6, dev->name, v4 ? 6 : 4);
}

int fr_peer_check_handle(const struct fr_device *dev, const void *buf,
			 struct fr_handle *handle, char *text, size_t bytes)
{
	const struct fr_quirks *quirks = fr_fabric_quirks(fr_core.fabric);
	const char *why = "";
	int ret = fr_handle_decode(handle, buf, FR_HANDLE_BYTES, &why);

	if (ret == -EPROTONOSUPPORT) {
		snprintf(text, bytes,
			 "the listener's handle has version %u, the "
			 "connecting side speaks version %u",
			 handle->version, FR_HANDLE_VERSION);
		return -EPROTO;
	}
	if (ret != 0) {
		fr_error_limited("connect: not a handle of ours: %s", why);
		return -EINVAL;
	}
	if (handle->prov != 0 && handle->prov != quirks->wire_id) {
		snprintf(text, bytes,
			 "the listener uses libfabric provider number %u, the "
			 "connecting side number %u (%s); set "
			 "OFI_NCCL_PROVIDER alike on both",
			 handle->prov, quirks->wire_id, quirks->name);
		return -EPROTO;
	}
	if (!can_reach(dev, handle)) {
		say_version(dev, handle, text, bytes);
		return -EPROTO;
	}
	return 0;
}

void fr_peer_fill_names(struct fr_conn_msg *msg)
{
	for (unsigned i = 0; i < msg->rail_cnt; i++) {
		if (msg->rails[i].ctrl.len == 0) {
			msg->rails[i].ctrl = msg->rails[i].data;
		}
	}
}
