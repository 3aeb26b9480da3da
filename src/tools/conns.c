#include "tools/conns.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/log.h"

int fr_conn_fail(const struct fr_conn *conn, const char *what, int result)
{
	fr_error("rank %u: %s %s rank %u, channel %u: %s", conn->conns->rank,
		 what, conn->sends ? "to" : "from", conn->peer, conn->channel,
		 fr_plugin_result_text(result));
	return -EIO;
}

int fr_conns_init(struct fr_conns *c)
{
	unsigned cnt = c->channels * c->ranks;

	c->send_to = fr_calloc(c->ranks, sizeof(*c->send_to));
	c->recv_from = fr_calloc(c->ranks, sizeof(*c->recv_from));
	c->send = fr_aligned_calloc(16, cnt * sizeof(*c->send));
	c->recv = fr_aligned_calloc(16, cnt * sizeof(*c->recv));
	if (c->send_to == NULL || c->recv_from == NULL || c->send == NULL ||
	    c->recv == NULL) {
		fr_conns_fini(c);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < cnt; i++) {
		c->send[i].conns = c->recv[i].conns = c;
		c->send[i].peer = c->recv[i].peer = i % c->ranks;
		c->send[i].channel = c->recv[i].channel = i / c->ranks;
		c->send[i].sends = true;
	}
	return 0;
}

void fr_conns_fini(struct fr_conns *c)
{
	fr_free(c->send_to);
	fr_free(c->recv_from);
	fr_free(c->send);
	fr_free(c->recv);
	c->send_to = c->recv_from = NULL;
	c->send = c->recv = NULL;
}

/* Calls @fn for every used connection of @list; stops at an error. */
static int for_each(struct fr_conns *c, struct fr_conn *list, const bool *used,
		    int (*fn)(struct fr_conn *conn))
{
	int ret = 0;

	for (unsigned i = 0; i < c->channels * c->ranks && ret == 0; i++) {
		if (used[list[i].peer]) {
			ret = fn(&list[i]);
			fr_status_tick(c->status);
		}
	}
	return ret;
}

static int listen_one(struct fr_conn *conn)
{
	struct fr_conns *c = conn->conns;
	int res;

	/* Callers are not bound to clear it: the plugin has to fill it. */
	memset(conn->handle, 0x5a, sizeof(conn->handle));
	res = fr_plugin_listen(c->plugin, c->ctx, c->dev, conn->handle,
			       &conn->listen_comm);
	return res == FR_PLUGIN_SUCCESS ? 0
					: fr_conn_fail(conn, "listen for", res);
}

/* My listen handles by (channel, peer) go to all; of each peer's I keep those
 * that are for me. */
static int swap_handles(struct fr_conns *c)
{
	unsigned cnt = c->channels * c->ranks;
	size_t one = (size_t)cnt * FR_PLUGIN_HANDLE_BYTES;
	struct fr_conn *conn;
	char *mine, *all;
	int ret;

	mine = fr_calloc(1, one);
	all = fr_calloc(c->ranks, one);
	ret = mine == NULL || all == NULL ? -ENOMEM : 0;
	for (unsigned i = 0; i < cnt && ret == 0; i++) {
		memcpy(mine + (size_t)i * FR_PLUGIN_HANDLE_BYTES,
		       c->recv[i].handle, FR_PLUGIN_HANDLE_BYTES);
	}
	if (ret == 0) {
		ret = fr_oob_all_gather_wait(c->oob, mine, one, all);
	}
	for (unsigned i = 0; i < cnt && ret == 0; i++) {
		conn = &c->send[i];
		memcpy(conn->handle,
		       all + conn->peer * one +
			       (size_t)(conn->channel * c->ranks + c->rank) *
				       FR_PLUGIN_HANDLE_BYTES,
		       FR_PLUGIN_HANDLE_BYTES);
	}
	fr_free(mine);
	fr_free(all);
	return ret;
}

static int connect_step(struct fr_conn *conn, unsigned *open)
{
	struct fr_conns *c = conn->conns;
	int res;

	if (conn->comm != NULL) {
		return 0;
	}
	res = fr_plugin_connect(c->plugin, c->ctx, c->dev, conn->handle,
				&conn->comm);
	if (res != FR_PLUGIN_SUCCESS) {
		return fr_conn_fail(conn, "connect", res);
	}
	*open += conn->comm == NULL;
	return 0;
}

static int accept_step(struct fr_conn *conn, unsigned *open)
{
	struct fr_conns *c = conn->conns;
	int res;

	if (conn->comm != NULL) {
		return 0;
	}
	res = fr_plugin_accept(c->plugin, conn->listen_comm, &conn->comm);
	if (res != FR_PLUGIN_SUCCESS) {
		return fr_conn_fail(conn, "accept", res);
	}
	if (conn->comm == NULL) {
		(*open)++;
		return 0;
	}
	res = fr_plugin_close_listen(c->plugin, conn->listen_comm);
	conn->listen_comm = NULL;
	return res == FR_PLUGIN_SUCCESS
		       ? 0
		       : fr_conn_fail(conn, "closeListen for", res);
}

/* All connects and accepts in turns: none may wait for another. */
static int connect_all(struct fr_conns *c)
{
	unsigned open, before = 0;
	int ret = 0;

	do {
		open = 0;
		for (unsigned i = 0; i < c->channels * c->ranks; i++) {
			if (c->send_to[c->send[i].peer]) {
				ret = connect_step(&c->send[i], &open);
			}
			if (ret == 0 && c->recv_from[c->recv[i].peer]) {
				ret = accept_step(&c->recv[i], &open);
			}
			if (ret != 0) {
				return ret;
			}
		}
		if (open != before) {
			fr_status_tick(c->status);
			before = open;
		} else if (open != 0) {
			(void)sched_yield();
		}
	} while (open != 0);
	return 0;
}

static char *map_bytes(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static const size_t region_bytes[] = {
	[FR_REGION_SIMPLE] = FR_STAGING_BYTES, [FR_REGION_LL] = FR_LL_BYTES};

static int reg_staging(struct fr_conn *conn)
{
	struct fr_conns *c = conn->conns;
	int res;

	for (int i = 0; i < FR_REGION_USER; i++) {
		conn->mem[i] = map_bytes(region_bytes[i]);
		if (conn->mem[i] == NULL) {
			return -ENOMEM;
		}
		res = fr_plugin_reg_mr(c->plugin, conn->comm, conn->mem[i],
				       region_bytes[i], FR_PLUGIN_PTR_HOST,
				       &conn->mhandle[i]);
		if (res != FR_PLUGIN_SUCCESS) {
			return fr_conn_fail(conn, "regMr", res);
		}
	}
	return 0;
}

int fr_conns_open_svc(void *arg)
{
	struct fr_conns *c = arg;
	int ret;

	ret = for_each(c, c->recv, c->recv_from, listen_one);
	if (ret == 0) {
		ret = swap_handles(c);
	}
	if (ret == 0) {
		ret = connect_all(c);
	}
	if (ret == 0) {
		ret = for_each(c, c->send, c->send_to, reg_staging);
	}
	if (ret == 0) {
		ret = for_each(c, c->recv, c->recv_from, reg_staging);
	}
	return ret;
}

int fr_conn_reg_user(struct fr_conn *conn, void *mem, size_t bytes)
{
	int res;

	res = fr_plugin_reg_mr(conn->conns->plugin, conn->comm, mem, bytes,
			       FR_PLUGIN_PTR_HOST,
			       &conn->mhandle[FR_REGION_USER]);
	if (res != FR_PLUGIN_SUCCESS) {
		return fr_conn_fail(conn, "regMr", res);
	}
	conn->mem[FR_REGION_USER] = mem;
	return 0;
}

int fr_conn_dereg_user(struct fr_conn *conn)
{
	int res;

	res = fr_plugin_dereg_mr(conn->conns->plugin, conn->comm,
				 conn->mhandle[FR_REGION_USER]);
	conn->mhandle[FR_REGION_USER] = NULL;
	conn->mem[FR_REGION_USER] = NULL;
	return res == FR_PLUGIN_SUCCESS ? 0
					: fr_conn_fail(conn, "deregMr", res);
}

static int churn_one(struct fr_conn *conn)
{
	static char memory[3 * 4096];
	int ret;

	/* As a user's buffer may lie: not at the start of a page. */
	ret = fr_conn_reg_user(conn, memory + 1000, 8192);
	return ret != 0 ? ret : fr_conn_dereg_user(conn);
}

int fr_conns_churn_svc(void *arg)
{
	struct fr_conns *c = arg;
	int ret;

	ret = for_each(c, c->send, c->send_to, churn_one);
	return ret != 0 ? ret : for_each(c, c->recv, c->recv_from, churn_one);
}

/* The memory is gone before the close, as in NCCL. */
static int close_one(struct fr_conn *conn)
{
	struct fr_conns *c = conn->conns;
	int res;

	for (int i = 0; i < FR_REGION_USER; i++) {
		res = fr_plugin_dereg_mr(c->plugin, conn->comm,
					 conn->mhandle[i]);
		conn->mhandle[i] = NULL;
		(void)munmap(conn->mem[i], region_bytes[i]);
		conn->mem[i] = NULL;
		if (res != FR_PLUGIN_SUCCESS) {
			return fr_conn_fail(conn, "deregMr", res);
		}
	}
	res = conn->sends ? fr_plugin_close_send(c->plugin, conn->comm)
			  : fr_plugin_close_recv(c->plugin, conn->comm);
	conn->comm = NULL;
	return res == FR_PLUGIN_SUCCESS ? 0 : fr_conn_fail(conn, "close", res);
}

int fr_conns_close_svc(void *arg)
{
	struct fr_conns *c = arg;
	int ret;

	ret = for_each(c, c->send, c->send_to, close_one);
	return ret != 0 ? ret : for_each(c, c->recv, c->recv_from, close_one);
}
