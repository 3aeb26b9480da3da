/* What stands in for libfabric needs of struct fi_info: with all its
 * attributes, copied deep, and freed. Without memory there is no test: abort().
 */
#ifndef FR_FAKE_INFO_H
#define FR_FAKE_INFO_H

#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

static inline void *fake_info_room(size_t bytes)
{
	void *room = calloc(1, bytes);

	if (room == NULL) {
		abort();
	}
	return room;
}

static inline char *fake_info_text(const char *text)
{
	return text == NULL ? NULL : strdup(text);
}

static inline struct fi_info *fake_info_new(void)
{
	struct fi_info *info = fake_info_room(sizeof(*info));

	info->tx_attr = fake_info_room(sizeof(*info->tx_attr));
	info->rx_attr = fake_info_room(sizeof(*info->rx_attr));
	info->ep_attr = fake_info_room(sizeof(*info->ep_attr));
	info->domain_attr = fake_info_room(sizeof(*info->domain_attr));
	info->fabric_attr = fake_info_room(sizeof(*info->fabric_attr));
	return info;
}

/* NULL gives an empty one. Of one, not of the list behind it. */
static inline struct fi_info *fake_info_copy(const struct fi_info *info)
{
	struct fi_info *copy = fake_info_new();

	if (info == NULL) {
		return copy;
	}
	copy->caps = info->caps;
	copy->mode = info->mode;
	copy->addr_format = info->addr_format;
	if (info->src_addr != NULL) {
		copy->src_addr = fake_info_room(info->src_addrlen);
		memcpy(copy->src_addr, info->src_addr, info->src_addrlen);
		copy->src_addrlen = info->src_addrlen;
	}
	*copy->tx_attr = *info->tx_attr;
	*copy->rx_attr = *info->rx_attr;
	*copy->ep_attr = *info->ep_attr;
	*copy->domain_attr = *info->domain_attr;
	copy->domain_attr->name = fake_info_text(info->domain_attr->name);
	copy->fabric_attr->prov_name =
		fake_info_text(info->fabric_attr->prov_name);
	return copy;
}

/* The whole list. Return: how many there were. */
static inline unsigned fake_info_free(struct fi_info *info)
{
	unsigned cnt = 0;

	for (; info != NULL; cnt++) {
		struct fi_info *next = info->next;

		free(info->src_addr);
		free(info->domain_attr->name);
		free(info->fabric_attr->prov_name);
		free(info->tx_attr);
		free(info->rx_attr);
		free(info->ep_attr);
		free(info->domain_attr);
		free(info->fabric_attr);
		free(info);
		info = next;
	}
	return cnt;
}

#endif
