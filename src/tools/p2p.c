#include "tools/p2p.h"

#include <string.h>

#include "base/util.h"
#include "tools/p2p_msg.h"
#include "tools/verify.h"

size_t fr_p2p_stride(size_t recv_bytes)
{
	return (size_t)fr_round_up(FR_MAX(recv_bytes, 1), 4096);
}

size_t fr_p2p_memory_bytes(size_t recv_bytes, unsigned window)
{
	return fr_p2p_stride(recv_bytes) * window;
}

void *fr_p2p_slot(const struct fr_p2p *p, const struct fr_conn *conn,
		  uint64_t message)
{
	return conn->mem[FR_REGION_USER] + (message % p->window) * p->stride;
}

void fr_p2p_prepare(const struct fr_p2p *p, uint64_t message)
{
	uint64_t stamp = p->seed + message;
	char *at = fr_p2p_slot(p, p->to, message);

	if (p->whole) {
		fr_bytes_fill(at, p->bytes, stamp);
		return;
	}
	if (p->bytes >= 8) {
		memcpy(at, &stamp, 8);
	}
	if (p->bytes >= 16) {
		memcpy(at + p->bytes - 8, &stamp, 8);
	}
}

void fr_p2p_clear(const struct fr_p2p *p, uint64_t message)
{
	if (p->whole) {
		fr_pattern_poison(fr_p2p_slot(p, p->from, message),
				  p->recv_bytes);
	}
}

void fr_p2p_inspect(struct fr_p2p *p, uint64_t message, int size)
{
	const char *at = fr_p2p_slot(p, p->from, message);
	uint64_t stamp = p->seed + message;

	p->wrong += size < 0 || (size_t)size != p->bytes;
	if (p->whole) {
		p->wrong += fr_bytes_wrong(at, p->bytes, stamp);
		p->wrong += fr_poison_wrong(at + p->bytes,
					    p->recv_bytes - p->bytes);
		return;
	}
	if (p->bytes >= 8) {
		p->wrong += memcmp(at, &stamp, 8) != 0;
	}
	if (p->bytes >= 16) {
		p->wrong += memcmp(at + p->bytes - 8, &stamp, 8) != 0;
	}
}

int fr_p2p_post_send(const struct fr_p2p *p, uint64_t message, void **request)
{
	struct fr_conn *conn = p->to;
	int res;

	res = fr_plugin_isend(conn->conns->plugin, conn->comm,
			      fr_p2p_slot(p, conn, message), p->bytes,
			      (int)conn->conns->rank,
			      conn->mhandle[FR_REGION_USER], request);
	return res == FR_PLUGIN_SUCCESS ? 0 : fr_conn_fail(conn, "isend", res);
}

int fr_p2p_post_recv(const struct fr_p2p *p, uint64_t message, void **request)
{
	struct fr_conn *conn = p->from;
	void *buf = fr_p2p_slot(p, conn, message);
	int tag = (int)conn->peer, res;

	res = fr_plugin_irecv(conn->conns->plugin, conn->comm, 1, &buf,
			      &p->recv_bytes, &tag,
			      &conn->mhandle[FR_REGION_USER], request);
	return res == FR_PLUGIN_SUCCESS ? 0 : fr_conn_fail(conn, "irecv", res);
}

int fr_p2p_test(const struct fr_conn *conn, void *request, int *done, int *size)
{
	int res;

	res = fr_plugin_test(conn->conns->plugin, request, done, size);
	if (res != FR_PLUGIN_SUCCESS) {
		return fr_conn_fail(
			conn, conn->sends ? "test of isend" : "test of irecv",
			res);
	}
	if (*done != 0) {
		fr_status_tick(conn->conns->status);
	}
	return 0;
}
