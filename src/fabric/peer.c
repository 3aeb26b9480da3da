#include "fabric/rail.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/log.h"
#include "fabric/cut.h"
#include "fabric/rail_priv.h"
#include "fabric/shm_priv.h"

/* Names come from peers. The provider would read as many bytes as its address
 * format has, whatever the length says, and take a family that it cannot reach.
 */
static bool name_is_ip(const struct fr_name *name, const struct fr_name *own)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	struct sockaddr any, own_any;

	memcpy(&any, name->bytes, sizeof(any));
	memcpy(&own_any, own->bytes, sizeof(own_any));
	if (any.sa_family != own_any.sa_family) {
		return false;
	}
	if (any.sa_family == AF_INET) {
		memcpy(&in, name->bytes, sizeof(in));
		return in.sin_port != 0 && in.sin_addr.s_addr != INADDR_ANY &&
		       in.sin_addr.s_addr != INADDR_BROADCAST;
	}
	memcpy(&in6, name->bytes, sizeof(in6));
	return in6.sin6_port != 0 && !IN6_IS_ADDR_UNSPECIFIED(&in6.sin6_addr);
}

static bool name_is_usable(const struct fr_rail *rail,
			   const struct fr_name *name)
{
	const struct fr_name *own = &rail->name[FR_EP_CTRL];

	switch (rail->info->addr_format) {
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
		return name->len == own->len && name_is_ip(name, own);
	case FI_ADDR_STR:
		return name->len > 1 && name->len <= FR_NAME_MAX &&
		       name->bytes[name->len - 1] == '\0' &&
		       (rail->shm == NULL || fr_shm_name_is_ours(name));
	default:
		return name->len == own->len;
	}
}

int fr_rail_av_insert(struct fr_rail *rail, const struct fr_name *name,
		      uint64_t *addr)
{
	fi_addr_t entry;
	int ret = fi_av_insert(rail->av, name->bytes, 1, &entry, 0, NULL);

	if (ret != 1) {
		fr_log_limited(
			&rail->bad_names, FR_LOG_ERROR,
			"rail %u on %s (%s): cannot enter a peer's name: %s",
			rail->index, rail->nic->name, rail->fabric->text,
			ret < 0 ? fr_fi_text(ret) : "refused");
		return ret == -FI_ENOMEM ? -ENOMEM : -EINVAL;
	}
	*addr = entry;
	return 0;
}

int fr_rail_peer_add(struct fr_rail *rail, const struct fr_name *name,
		     uint64_t *addr)
{
	if (!name_is_usable(rail, name)) {
		fr_log_limited(&rail->bad_names, FR_LOG_ERROR,
			       "rail %u on %s: a peer's endpoint name of %u "
			       "bytes is none of provider %s",
			       rail->index, rail->nic->name, name->len,
			       rail->fabric->quirks->name);
		return -EINVAL;
	}
	if (rail->shm != NULL) {
		return fr_shm_peer_add(rail, name, addr);
	}
	return fr_rail_av_insert(rail, name, addr);
}

void fr_rail_peer_del(struct fr_rail *rail, uint64_t addr)
{
	fi_addr_t entry = addr;
	int ret;

	if (rail->shm != NULL) {
		fr_shm_peer_del(rail, addr);
		return;
	}
	ret = fi_av_remove(rail->av, &entry, 1, 0);
	if (ret != 0) {
		fr_warn("rail %u on %s (%s): cannot remove a peer's name: %s",
			rail->index, rail->nic->name, rail->fabric->text,
			fr_fi_text(ret));
	}
}

static bool peer_cut(struct fr_rail *rail, uint64_t addr,
		     const struct fr_name *own, enum fr_cut_what what)
{
	struct fr_name name = {.len = 0};
	size_t len = sizeof(name.bytes);
	unsigned cnt;

	if (!rail->fabric->quirks->names_are_tcp ||
	    fi_av_lookup(rail->av, addr, name.bytes, &len) != 0 ||
	    len > sizeof(name.bytes)) {
		return false;
	}
	name.len = (uint16_t)len;
	cnt = fr_cut(&name, own, what);
	if (cnt != 0) {
		fr_debug("rail %u on %s: %u connections are cut", rail->index,
			 rail->nic->name, cnt);
	}
	return cnt != 0;
}

bool fr_rail_peer_cut(struct fr_rail *rail, uint64_t addr)
{
	return peer_cut(rail, addr, &rail->name[FR_EP_CTRL], FR_CUT_STUCK);
}

void fr_rail_peer_closed(struct fr_rail *rail, uint64_t addr)
{
	(void)peer_cut(rail, addr, NULL, FR_CUT_ALL);
}

bool fr_rail_peer_revoked(const struct fr_rail *rail, uint64_t addr)
{
	return rail->shm != NULL && fr_shm_is_revoked(rail->shm, addr);
}

void fr_rail_peer_gone(struct fr_rail *rail, uint64_t addr)
{
	if (rail->shm != NULL) {
		fr_shm_peer_gone(rail->shm, addr);
	}
}

bool fr_rail_is_stuck(const struct fr_rail *rail)
{
	return rail->shm != NULL && fr_shm_is_stuck(rail->shm);
}
