#include "fake/fake_net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

struct fr_net {
	unsigned magic;
};
struct fr_listen {
	char unused;
};
struct fr_comm {
	char unused;
};
struct fr_net_mr {
	char unused;
};
struct fr_req {
	char unused;
};

#define NET_MAGIC 0x4e455421u

struct fake_net fake_net = {.unload_fd = -1};

static struct fr_listen the_listen;
static struct fr_comm the_send_comm, the_recv_comm;
static struct fr_net_mr the_mr;
static struct fr_req the_req;

struct fr_listen *fake_net_listen(void)
{
	return &the_listen;
}

struct fr_comm *fake_net_send_comm(void)
{
	return &the_send_comm;
}

struct fr_comm *fake_net_recv_comm(void)
{
	return &the_recv_comm;
}

struct fr_net_mr *fake_net_mr(void)
{
	return &the_mr;
}

struct fr_req *fake_net_req(void)
{
	return &the_req;
}

/* Not assert(): the fake refuses a misuse in every build. */
static void must(bool what)
{
	if (!what) {
		abort();
	}
}

void fake_net_reset(void)
{
	must(fake_net.refs == 0);
	fake_net = (struct fake_net){
		.done = true,
		.msgs = 1,
		.device_cnt = 2,
		.props =
			{
				.name = "fabrail0",
				.pci_path = "/sys/bus/pci/devices/0000:01:00.0",
				.guid = 0x1122334455667788,
				.speed_mbps = 400000,
				.max_comms = 1000,
				.max_msg_bytes = 1 << 30,
				.rail_cnt = 4,
			},
		.unload_fd = -1,
	};
}

static void saw(enum fake_net_call call, const void *object)
{
	fake_net.calls++;
	fake_net.last = call;
	fake_net.object = object;
}

int fr_net_get(struct fr_net **out)
{
	struct fr_net *net;

	saw(FAKE_NET_GET, NULL);
	if (fake_net.ret != 0) {
		return fake_net.ret;
	}
	net = fr_calloc(1, sizeof(*net));
	if (net == NULL) {
		return -ENOMEM;
	}
	net->magic = NET_MAGIC;
	fake_net.refs++;
	*out = net;
	return 0;
}

void fr_net_put(struct fr_net *net)
{
	saw(FAKE_NET_PUT, net);
	if (net == NULL) {
		return;
	}
	must(net->magic == NET_MAGIC && fake_net.refs > 0);
	net->magic = 0;
	fr_free(net);
	fake_net.refs--;
}

/* The harder case. */
bool fr_net_fabric_is_there(void)
{
	return true;
}

bool fr_net_halt(void)
{
	return !fake_net.interrupted;
}

void fr_net_unload(void)
{
	saw(FAKE_NET_UNLOAD, NULL);
	must(fake_net.refs == 0);
	fake_net.unloads++;
	if (fake_net.unload_fd >= 0) {
		must(write(fake_net.unload_fd, "u", 1) == 1);
	}
}

unsigned fr_net_device_cnt(void)
{
	return fake_net.refs != 0 ? fake_net.device_cnt : 0;
}

int fr_net_device_props(unsigned dev, struct fr_net_props *out)
{
	saw(FAKE_NET_PROPS, NULL);
	fake_net.dev = dev;
	if (dev >= fake_net.device_cnt) {
		return -EINVAL;
	}
	if (fake_net.ret == 0) {
		*out = fake_net.props;
	}
	return fake_net.ret;
}

int fr_net_listen(unsigned dev, int tclass, void *handle, size_t handle_bytes,
		  struct fr_listen **out)
{
	saw(FAKE_NET_LISTEN, NULL);
	fake_net.dev = dev;
	fake_net.tclass = tclass;
	fake_net.handle = handle;
	fake_net.handle_bytes = handle_bytes;
	if (fake_net.ret == 0) {
		memset(handle, 0x5a, handle_bytes);
		*out = &the_listen;
	}
	return fake_net.ret;
}

static bool has_to_wait(void)
{
	if (fake_net.again == 0) {
		return false;
	}
	fake_net.again--;
	return true;
}

/* Uses the part of the handle that a connect may use. */
int fr_net_connect(unsigned dev, int tclass, void *handle, struct fr_comm **out)
{
	unsigned char *state = (unsigned char *)handle + FR_HANDLE_STATE_OFFSET;

	saw(FAKE_NET_CONNECT, NULL);
	fake_net.dev = dev;
	fake_net.tclass = tclass;
	fake_net.handle = handle;
	memcpy(fake_net.handle_copy, handle, sizeof(fake_net.handle_copy));
	memset(state, 0xc3, FR_HANDLE_BYTES - FR_HANDLE_STATE_OFFSET);
	if (has_to_wait()) {
		return -EAGAIN;
	}
	if (fake_net.ret == 0) {
		*out = &the_send_comm;
	}
	return fake_net.ret;
}

uint64_t fr_net_connect_limit_ns(void)
{
	return fake_net.connect_limit_ns;
}

int fr_net_accept(struct fr_listen *listen, struct fr_comm **out)
{
	saw(FAKE_NET_ACCEPT, listen);
	if (has_to_wait()) {
		return -EAGAIN;
	}
	if (fake_net.ret == 0) {
		*out = &the_recv_comm;
	}
	return fake_net.ret;
}

void fr_net_close_listen(struct fr_listen *listen)
{
	saw(FAKE_NET_CLOSE_LISTEN, listen);
}

void fr_net_close_send(struct fr_comm *comm)
{
	saw(FAKE_NET_CLOSE_SEND, comm);
}

void fr_net_close_recv(struct fr_comm *comm)
{
	saw(FAKE_NET_CLOSE_RECV, comm);
}

int fr_net_reg_mr(struct fr_comm *comm, void *addr, size_t bytes,
		  enum fr_mem_kind kind, struct fr_net_mr **out)
{
	saw(FAKE_NET_REG_MR, comm);
	fake_net.data[0] = addr;
	fake_net.bytes[0] = bytes;
	fake_net.kind = kind;
	if (fake_net.ret == 0) {
		*out = &the_mr;
	}
	return fake_net.ret;
}

int fr_net_reg_dmabuf(struct fr_comm *comm, void *addr, size_t bytes,
		      uint64_t offset, int fd, struct fr_net_mr **out)
{
	saw(FAKE_NET_REG_DMABUF, comm);
	fake_net.data[0] = addr;
	fake_net.bytes[0] = bytes;
	fake_net.offset = offset;
	fake_net.fd = fd;
	if (fake_net.ret == 0) {
		*out = &the_mr;
	}
	return fake_net.ret;
}

int fr_net_dereg_mr(struct fr_comm *comm, struct fr_net_mr *mr)
{
	saw(FAKE_NET_DEREG_MR, comm);
	fake_net.mrs[0] = mr;
	return fake_net.ret;
}

static int give_request(struct fr_req **out)
{
	*out = fake_net.ret != 0 || fake_net.no_request ? NULL : &the_req;
	return fake_net.ret;
}

int fr_net_isend(struct fr_comm *comm, const void *data, size_t bytes, int tag,
		 struct fr_net_mr *mr, struct fr_req **out)
{
	saw(FAKE_NET_ISEND, comm);
	fake_net.cnt = 1;
	fake_net.data[0] = data;
	fake_net.bytes[0] = bytes;
	fake_net.tags[0] = tag;
	fake_net.mrs[0] = mr;
	return give_request(out);
}

int fr_net_irecv(struct fr_comm *comm, unsigned cnt, void *const *data,
		 const size_t *bytes, const int *tags,
		 struct fr_net_mr *const *mrs, struct fr_req **out)
{
	saw(FAKE_NET_IRECV, comm);
	must(cnt >= 1 && cnt <= FR_NET_MAX_GROUP);
	fake_net.cnt = cnt;
	for (unsigned i = 0; i < cnt; i++) {
		fake_net.data[i] = data[i];
		fake_net.bytes[i] = bytes[i];
		fake_net.tags[i] = tags[i];
		fake_net.mrs[i] = mrs[i];
	}
	return give_request(out);
}

int fr_net_iflush(struct fr_comm *comm, unsigned cnt, void *const *data,
		  const int *bytes, struct fr_net_mr *const *mrs,
		  struct fr_req **out)
{
	saw(FAKE_NET_IFLUSH, comm);
	must(cnt >= 1 && cnt <= FR_NET_MAX_GROUP);
	fake_net.cnt = cnt;
	for (unsigned i = 0; i < cnt; i++) {
		fake_net.data[i] = data[i];
		fake_net.bytes[i] = (size_t)bytes[i];
		fake_net.mrs[i] = mrs[i];
	}
	*out = NULL;
	return fake_net.ret;
}

int fr_net_test(struct fr_req *req, bool *done, size_t *sizes)
{
	saw(FAKE_NET_TEST, req);
	fake_net.wants_sizes = sizes != NULL;
	*done = fake_net.ret == 0 && fake_net.done;
	for (unsigned i = 0; *done && sizes != NULL && i < fake_net.msgs; i++) {
		sizes[i] = fake_net.sizes[i];
	}
	return fake_net.ret;
}
