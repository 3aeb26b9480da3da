#include "fabric/route.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/util.h"
#include "fabric/addr.h"

_Static_assert(FR_ROUTE_NAME_BYTES >= IF_NAMESIZE, "a name has room");

/* Neighbours that are asked for: the first may be this host, or nobody. */
#define ROUTE_TRIES 8u
#define ROUTE_TIMEOUT_US 200000

struct route_request {
	struct nlmsghdr head;
	struct rtmsg msg;
	uint8_t attrs[2 * RTA_SPACE(16)];
};

static void request_add(struct route_request *req, unsigned short type,
			const uint8_t *addr, unsigned bytes)
{
	struct rtattr *attr =
		(void *)((uint8_t *)req + NLMSG_ALIGN(req->head.nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = (unsigned short)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(attr), addr, bytes);
	req->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(req->head.nlmsg_len) +
					 RTA_ALIGN(attr->rta_len));
}

static void request_fill(struct route_request *req, const uint8_t from[16],
			 const uint8_t to[16])
{
	bool v4 = fr_addr_is_v4(from);
	unsigned bytes = v4 ? 4 : 16;

	memset(req, 0, sizeof(*req));
	req->head.nlmsg_len = NLMSG_LENGTH(sizeof(req->msg));
	req->head.nlmsg_type = RTM_GETROUTE;
	req->head.nlmsg_flags = NLM_F_REQUEST;
	req->msg.rtm_family = v4 ? AF_INET : AF_INET6;
	req->msg.rtm_dst_len = (uint8_t)(bytes * 8);
	req->msg.rtm_src_len = (uint8_t)(bytes * 8);
	request_add(req, RTA_DST, to + 16 - bytes, bytes);
	request_add(req, RTA_SRC, from + 16 - bytes, bytes);
}

/* The interface of a unicast route in @head; 0: it is none. */
static unsigned answer_index(struct nlmsghdr *head, size_t bytes)
{
	struct rtmsg *msg = NLMSG_DATA(head);
	struct rtattr *attr = RTM_RTA(msg);
	size_t left;

	if (!NLMSG_OK(head, bytes) || head->nlmsg_type != RTM_NEWROUTE ||
	    head->nlmsg_len < NLMSG_LENGTH(sizeof(*msg)) ||
	    msg->rtm_type != RTN_UNICAST) {
		return 0;
	}
	left = RTM_PAYLOAD(head);
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		unsigned index;

		if (attr->rta_type == RTA_OIF &&
		    RTA_PAYLOAD(attr) == sizeof(index)) {
			memcpy(&index, RTA_DATA(attr), sizeof(index));
			return index;
		}
	}
	return 0;
}

static unsigned route_ask(int fd, const uint8_t from[16], const uint8_t to[16])
{
	union {
		struct nlmsghdr head;
		uint8_t bytes[1024];
	} answer;
	struct route_request req;
	ssize_t got;

	request_fill(&req, from, to);
	if (send(fd, &req, req.head.nlmsg_len, 0) !=
	    (ssize_t)req.head.nlmsg_len) {
		return 0;
	}
	got = recv(fd, &answer, sizeof(answer), 0);
	return got <= 0 ? 0 : answer_index(&answer.head, (size_t)got);
}

static bool route_out_kernel(const uint8_t addr[16], uint8_t prefix,
			     char name[FR_ROUTE_NAME_BYTES])
{
	const struct timeval limit = {.tv_usec = ROUTE_TIMEOUT_US};
	char found[IF_NAMESIZE];
	unsigned index = 0;
	uint8_t to[16];
	int fd;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0) {
		return false;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	for (unsigned i = 1; index == 0 && i <= ROUTE_TRIES; i++) {
		if (prefix <= 120 || i < FR_BIT(128u - prefix)) {
			memcpy(to, addr, sizeof(to));
			to[15] ^= (uint8_t)i;
			index = route_ask(fd, addr, to);
		}
	}
	close(fd);
	if (index == 0 || if_indextoname(index, found) == NULL) {
		return false;
	}
	memcpy(name, found, sizeof(found));
	return true;
}

static fr_route_out_fn route_out = route_out_kernel;

void fr_route_set_out(fr_route_out_fn out)
{
	route_out = out == NULL ? route_out_kernel : out;
}

bool fr_route_out(const uint8_t addr[16], uint8_t prefix,
		  char name[FR_ROUTE_NAME_BYTES])
{
	return route_out(addr, prefix, name);
}
