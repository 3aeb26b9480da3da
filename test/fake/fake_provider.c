/* Made-up interfaces, and what else the fabric floor knows of a provider. */
#include "fake/fake_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

void fr_fake_nic_default(struct fr_nic *nic, unsigned i, bool ipv6)
{
	unsigned host_at = 15;

	memset(nic, 0, sizeof(*nic));
	snprintf(nic->name, sizeof(nic->name), "fake%u", i);
	if (ipv6) {
		snprintf(nic->addr_text, sizeof(nic->addr_text),
			 "fd00:77:%x::1", i);
		inet_pton(AF_INET6, nic->addr_text, nic->addr);
		nic->prefix = 64;
	} else {
		char text[80];

		snprintf(nic->addr_text, sizeof(nic->addr_text), "127.77.%u.1",
			 i & 0xff);
		snprintf(text, sizeof(text), "::ffff:%s", nic->addr_text);
		inet_pton(AF_INET6, text, nic->addr);
		nic->prefix = 96 + 24;
	}
	memcpy(nic->subnet, nic->addr, sizeof(nic->subnet));
	nic->subnet[host_at] = 0;
	nic->speed_mbps = 10000;
	nic->numa = -1;
	nic->guid = 0xfa4e000000000000ull + i;
}

void fr_fake_conf_default(struct fr_fake_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->nic_cnt = 2;
	for (unsigned i = 0; i < FR_FAKE_MAX_NICS; i++) {
		fr_fake_nic_default(&conf->nics[i], i, false);
	}
	conf->quirks = (struct fr_quirks){
		.name = "fake",
		.wire_id = FR_WIRE_PROV_NET,
		.by_default = true,
		.split_ep = true,
		.delivery_per_call = true,
		.mr_excludes_poll = true,
		.has_write_len = false,
		.fence = FR_FENCE_EP,
		.tx_cap = 256,
		.inline_max_bytes = 1024,
	};
	conf->cq_data_bytes = 8;
	conf->max_msg_bytes = UINT64_MAX;
	conf->queue_max = 64;
}

void fr_fake_conf_gpu(struct fr_fake_conf *conf)
{
	for (unsigned i = 0; i < FR_FAKE_MAX_NICS; i++) {
		conf->nics[i].gpu = true;
		conf->nics[i].gpu_dmabuf = true;
	}
}

int fr_fabric_open(const struct fr_conf *conf, struct fr_fabric **out)
{
	struct fr_fabric *fabric;
	int err;

	(void)conf; /* the test chose */
	fabric = fr_calloc(1, sizeof(*fabric));
	if (fabric == NULL) {
		return -ENOMEM;
	}
	fake_lock();
	err = fake_call_locked(NULL, FR_FAKE_FABRIC_OPEN);
	fabric->conf = fake_world.conf;
	fake_unlock();
	if (err != 0) {
		fr_error("no usable interface: %s", strerror(-err));
		fr_free(fabric);
		return err;
	}
	snprintf(fabric->text, sizeof(fabric->text), "%s, in memory",
		 fabric->conf.quirks.name);
	*out = fabric;
	return 0;
}

bool fr_fabric_is_there(void)
{
	return true;
}

void fr_fabric_close(struct fr_fabric *fabric)
{
	fr_free(fabric);
}

const struct fr_quirks *fr_fabric_quirks(const struct fr_fabric *fabric)
{
	return &fabric->conf.quirks;
}

unsigned fr_fabric_nic_cnt(const struct fr_fabric *fabric)
{
	return fabric->conf.nic_cnt;
}

const struct fr_nic *fr_fabric_nic(const struct fr_fabric *fabric, unsigned i)
{
	return &fabric->conf.nics[i];
}

const char *fr_fabric_text(const struct fr_fabric *fabric)
{
	return fabric->text;
}

const char *fr_fabric_gpu_why(const struct fr_fabric *fabric)
{
	(void)fabric;
	return "the test chose";
}

unsigned fr_fabric_cq_data_bytes(const struct fr_fabric *fabric)
{
	return fabric->conf.cq_data_bytes;
}

uint64_t fr_fabric_max_msg_bytes(const struct fr_fabric *fabric)
{
	return fabric->conf.max_msg_bytes;
}
