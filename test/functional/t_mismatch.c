/*
 * Peers that do not fit: another provider, another version, no rails, a
 * response that cannot be used. Both sides say why and return an error within
 * 10 s, and the listener goes on to serve peers that do fit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

#include "base/util.h"
#include "functional/forge.h"
#include "functional/pair.h"

#define LISTENS 0u
#define CONNECTS 1u
#define FITS 2u

#define DEADLINE_MS 10000
#define SMALL 64
#define COOKIE UINT64_C(0x0102030405060708)

/* -- the plugin on both sides -----------------------------------------------*/

struct mismatch {
	const char *other; /* provider of the connecting side; NULL: the same */
	const char *ipv6; /* OFI_NCCL_USE_IPV6_TCP of the listening side; of the
			     connecting side: the other */
	uint8_t version;  /* written into the handle; 0: left as it is */
	const char *says[2]; /* in both sides' line */
};

static void wait_error(struct pair_member *me, void *listen, uint8_t *handle)
{
	uint64_t end = pair_now_ms() + pair_stretch(DEADLINE_MS);
	void *comm = NULL;
	int ret = 0;

	while (ret == 0) {
		ret = listen != NULL
			      ? fr_plugin_accept(me->plugin, listen, &comm)
			      : fr_plugin_connect(me->plugin, me->ctx, 0,
						  handle, &comm);
		PAIR_CHECK(comm == NULL, "a peer that does not fit was taken");
		PAIR_CHECK(pair_now_ms() < end, "no error in 10 s");
	}
	PAIR_CHECK(ret == PAIR_REMOTE, "not a remote error but %s",
		   fr_plugin_result_text(ret));
}

static void says_why(const char *call, const char *const *says)
{
	PAIR_CHECK(pair_logged(call) == 1, "%u lines of %s", pair_logged(call),
		   call);
	for (unsigned i = 0; i < 2; i++) {
		PAIR_CHECK(says[i] == NULL || pair_logged(says[i]) == 1,
			   "no line says '%s'", says[i]);
	}
}

/* The same listener takes a peer that fits. */
static void serve(struct pair_member *me, void *listen)
{
	struct pair_buf in;
	void *comm = pair_accept_wait(me, listen);

	pair_buf_open(me, comm, SMALL, &in);
	pair_recv(me, &in, SMALL);
	pair_buf_close(me, &in);
	PAIR_CHECK(fr_plugin_close_recv(me->plugin, comm) == 0, "closeRecv");
}

static void fit(struct pair_member *me, uint8_t *handle)
{
	struct pair_buf out;
	void *comm = pair_connect_wait(me, handle);

	pair_buf_open(me, comm, SMALL, &out);
	pair_send(me, &out, SMALL);
	pair_buf_close(me, &out);
	PAIR_CHECK(fr_plugin_close_send(me->plugin, comm) == 0, "closeSend");
}

static void run_mismatch(struct pair_member *me)
{
	const struct mismatch *mis = me->arg;
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen;

	if (me->index == LISTENS) {
		pair_expect("accept: ");
		listen = pair_listen(me, handle);
		pair_put(me, CONNECTS, handle, sizeof(handle));
		pair_put(me, FITS, handle, sizeof(handle));
		wait_error(me, listen, NULL);
		says_why("fabrail: accept: ", mis->says);
		pair_tell(me, FITS);
		serve(me, listen);
		PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
			   "closeListen");
		return;
	}
	pair_get(me, LISTENS, handle, sizeof(handle));
	if (me->index == CONNECTS) {
		pair_expect("connect: ");
		handle[4] = mis->version != 0 ? mis->version : handle[4];
		wait_error(me, NULL, handle);
		says_why("fabrail: connect: ", mis->says);
	} else {
		pair_hear(me, LISTENS);
		fit(me, handle);
	}
}

static void env_mismatch(unsigned i, const void *arg)
{
	const struct mismatch *mis = arg;

	if (i == CONNECTS && mis->other != NULL) {
		setenv("OFI_NCCL_PROVIDER", mis->other, 1);
	}
	if (mis->ipv6 != NULL) {
		bool on = (*mis->ipv6 == '1') == (i != CONNECTS);

		setenv("OFI_NCCL_USE_IPV6_TCP", on ? "1" : "0", 1);
	}
}

/* -- a forger on one side ---------------------------------------------------*/

struct lie {
	const char *name;
	const char *says;
	void (*tell)(struct forge *f, struct fr_conn_msg *msg);
	uint8_t version; /* 0: as it is */
};

static void no_rails(struct forge *f, struct fr_conn_msg *msg)
{
	(void)f;
	msg->rail_cnt = 0;
}

static void other_provider(struct forge *f, struct fr_conn_msg *msg)
{
	msg->prov = (uint8_t)(forge_provider(f) + 1);
}

static void other_cq_data(struct forge *f, struct fr_conn_msg *msg)
{
	msg->cq_data_bytes = forge_imm_bytes(f) == 8 ? 4 : 8;
}

static void no_set(struct forge *f, struct fr_conn_msg *msg)
{
	(void)f;
	msg->set_id = 0;
}

static void no_name(struct forge *f, struct fr_conn_msg *msg)
{
	(void)f;
	msg->rails[0].ctrl.bytes[0] ^= 0x40;
	msg->rails[0].data = msg->rails[0].ctrl;
}

static void as_it_is(struct forge *f, struct fr_conn_msg *msg)
{
	(void)f;
	(void)msg;
}

static void refusal(struct forge *f, struct fr_conn_msg *msg)
{
	(void)f;
	if (msg->type == FR_CONN_RESPONSE) {
		msg->status = EPROTO;
		(void)snprintf(msg->text, sizeof(msg->text),
			       "your rails\ndo not please me");
	} else {
		msg->rail_cnt = 0;
	}
}

static const struct lie lies[] = {
	{"no rails", "the peer has 0 rails", no_rails, 0},
	{"another provider", "the peer uses another provider", other_provider,
	 0},
	{"other completion data", "another size of remote CQ data",
	 other_cq_data, 0},
	{"no set id", "set id is 0", no_set, 0},
	{"a name of nothing", "endpoint name is not usable", no_name, 0},
	{"another version", "version 7, this side speaks version 1", as_it_is,
	 7},
	{"a refusal", NULL, refusal, 0},
};

static void push_lie(struct forge *f, uint64_t addr, const struct lie *lie,
		     struct fr_conn_msg *msg)
{
	uint8_t buf[FR_CONN_MAX_BYTES];
	int len;

	lie->tell(f, msg);
	len = fr_conn_encode(msg, buf, sizeof(buf));
	PAIR_CHECK(len > 0, "%s: cannot be encoded: %d", lie->name, len);
	if (lie->version != 0) {
		buf[0] = (uint8_t)(lie->version << 4 | msg->type);
	}
	forge_push(f, addr, buf, (size_t)len);
}

static void forge_asks(struct pair_member *me, struct forge *f,
		       const uint8_t *handle, const struct lie *lie)
{
	uint64_t to = forge_find(f, handle);
	struct fr_conn_msg msg, answer;
	struct fr_handle h;
	const char *why;

	(void)fr_handle_decode(&h, handle, FR_HANDLE_BYTES, &why);
	forge_describe(f, FR_CONN_REQUEST, &msg);
	msg.cookie = h.cookie;
	push_lie(f, to, lie, &msg);
	if (msg.rail_cnt != 0 && lie->version == 0 && lie->tell != no_name) {
		PAIR_CHECK(forge_wait_conn(f, FR_CONN_RESPONSE, &answer,
					   DEADLINE_MS),
			   "%s: the forger is not told", lie->name);
		PAIR_CHECK(answer.status == EPROTO &&
				   (lie->says == NULL ||
				    strstr(answer.text, lie->says) != NULL),
			   "%s: the forger is told %d, '%s'", lie->name,
			   answer.status, answer.text);
	}
	pair_hear(me, LISTENS);
}

static void forge_answers(struct pair_member *me, struct forge *f,
			  const struct lie *lie)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct fr_conn_msg request, msg;

	forge_handle(f, COOKIE, handle);
	pair_put(me, LISTENS, handle, sizeof(handle));
	PAIR_CHECK(forge_wait_conn(f, FR_CONN_REQUEST, &request, DEADLINE_MS),
		   "no request");
	forge_describe(f, FR_CONN_RESPONSE, &msg);
	msg.cookie = COOKIE;
	msg.connect_id = request.connect_id;
	push_lie(f, forge_find_name(f, &request.rails[0].ctrl), lie, &msg);
	while (!pair_told(me, LISTENS)) {
		forge_poll(f, 1);
	}
	pair_hear(me, LISTENS);
}

static void run_forger(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES];
	struct forge *f = forge_open();

	pair_get(me, LISTENS, handle, sizeof(handle));
	for (size_t i = 0; i < FR_ARRAY_LEN(lies); i++) {
		pair_at(me, lies[i].name);
		forge_asks(me, f, handle, &lies[i]);
		forge_answers(me, f, &lies[i]);
	}
	forge_close(f);
}

static void check_said(const char *name, const char *call, const char *says,
		       unsigned more)
{
	PAIR_CHECK(pair_logged(call) == more + 1, "%s: %u lines of '%s'", name,
		   pair_logged(call) - more, call);
	PAIR_CHECK(says == NULL || pair_logged(says) >= 1,
		   "%s: no line says '%s'", name, says);
}

static void run_lied_to(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	void *listen;

	pair_open(me);
	pair_expect("accept: ");
	pair_expect("connect: ");
	pair_expect("endpoint name of");
	listen = pair_listen(me, handle);
	pair_put(me, CONNECTS, handle, sizeof(handle));
	pair_put(me, FITS, handle, sizeof(handle));
	for (unsigned i = 0; i < FR_ARRAY_LEN(lies); i++) {
		uint8_t theirs[FR_PLUGIN_HANDLE_BYTES];

		pair_at(me, lies[i].name);
		wait_error(me, listen, NULL);
		check_said(lies[i].name, "fabrail: accept: ", lies[i].says, i);
		pair_tell(me, CONNECTS);
		pair_get(me, CONNECTS, theirs, sizeof(theirs));
		wait_error(me, NULL, theirs);
		check_said(lies[i].name, "fabrail: connect: ", lies[i].says, i);
		pair_tell(me, FITS);
		serve(me, listen);
		pair_tell(me, CONNECTS);
	}
	PAIR_CHECK(pair_logged("your rails?do not please me") == 1,
		   "the text of a refusal");
	PAIR_CHECK(fr_plugin_close_listen(me->plugin, listen) == 0,
		   "closeListen");
	pair_close(me);
}

static void run_lies(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES], copy[FR_PLUGIN_HANDLE_BYTES];

	if (me->index == LISTENS) {
		run_lied_to(me);
	} else if (me->index == CONNECTS) {
		run_forger(me);
	} else {
		pair_open(me);
		pair_get(me, LISTENS, handle, sizeof(handle));
		for (size_t i = 0; i < FR_ARRAY_LEN(lies); i++) {
			pair_hear(me, LISTENS);
			memcpy(copy, handle, sizeof(copy));
			fit(me, copy);
		}
		pair_close(me);
	}
}

static void run_pair(const char *name, const char *provider, unsigned rails,
		     const struct mismatch *mis)
{
	struct pair_case pc = {
		.name = name,
		.provider = provider,
		.rails = rails,
		.members = 3,
		.limit_s = 20,
		.run = run_mismatch,
		.env = env_mismatch,
		.arg = mis,
	};

	pair_run(&pc);
}

/* Loopback has addresses of both versions, unless IPv6 is off. */
static bool has_ipv6(void)
{
	const struct sockaddr_in6 addr = {.sin6_family = AF_INET6,
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && bind(fd, (const void *)&addr, sizeof(addr)) == 0;

	if (fd >= 0) {
		close(fd);
	}
	return ok;
}

static void run_ip_versions(const char *provider)
{
	struct mismatch version = {
		.says = {"OFI_NCCL_USE_IPV6_TCP alike",
			 "rails of fabrail0 on the connecting side IPv"},
	};

	if (!has_ipv6()) {
		pair_say("  no IPv6 on loopback: no peer of the other version");
		return;
	}
	version.ipv6 = "1";
	run_pair("an IPv6 listener", provider, 1, &version);
	version.ipv6 = "0";
	run_pair("an IPv6 connector", provider, 2, &version);
}

static void run_forged(const char *provider, unsigned rails)
{
	struct pair_case pc = {
		.name = "forged messages",
		.provider = provider,
		.rails = rails,
		.members = 3,
		.limit_s = 30,
		.run = run_lies,
		.plugin_late = true,
	};

	pair_run(&pc);
}

int main(int argc, char **argv)
{
	const struct mismatch version = {
		.version = 2,
		.says = {"handle has version 2", "speaks version 1"},
	};
	struct mismatch provider = {
		.says = {"OFI_NCCL_PROVIDER alike on both",
			 "libfabric provider number"},
	};
	const char *net, *rxm, *shm;

	pair_main(argc, argv, "t_mismatch", 20);
	net = pair_provider("net");
	rxm = pair_provider("tcp;ofi_rxm");
	shm = pair_provider("shm");
	if (net != NULL) {
		run_pair("a handle of another version", net, 1, &version);
		run_pair("a handle of another version", net, 4, &version);
		run_ip_versions(net);
		run_forged(net, 1);
	}
	if (net != NULL && rxm != NULL) {
		provider.other = rxm;
		run_pair("connects with tcp;ofi_rxm", net, 2, &provider);
		provider.other = net;
		run_pair("listens with tcp;ofi_rxm", rxm, 1, &provider);
	}
	if (rxm != NULL) {
		run_forged(rxm, 1);
	}
	if (shm != NULL) {
		run_pair("a handle of another version", shm, 1, &version);
		run_forged(shm, 1);
	}
	if (net != NULL && shm != NULL) {
		provider.other = shm;
		run_pair("connects with shm", net, 1, &provider);
		provider.other = net;
		run_pair("listens with shm", shm, 1, &provider);
	}
	return pair_end();
}
