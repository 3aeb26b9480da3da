/* The listening side. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "net/conn.h"
#include "net/peer.h"
#include "net/progress.h"

#define PENDING_MAX 1024u

static void listen_encode(const struct fr_listen *listen, void *buf,
			  size_t bytes, int *ret)
{
	struct fr_handle handle;
	const struct fr_set *set = listen->set;

	memset(&handle, 0, sizeof(handle));
	handle.version = FR_HANDLE_VERSION;
	handle.prov = set->quirks->wire_id;
	handle.cookie = listen->cookie;
	handle.knock_port = set->knock_port[0];
	for (unsigned i = 0;
	     i < set->rail_cnt && handle.name_cnt < FR_HANDLE_MAX_NAMES; i++) {
		handle.names[handle.name_cnt++] =
			*fr_rail_name(set->rail[i], FR_EP_CTRL);
	}
	*ret = fr_handle_encode(&handle, buf, bytes);
}

static int listen_open(struct fr_set *set, void *handle, size_t bytes,
		       struct fr_listen **out)
{
	struct fr_listen *listen = fr_calloc(1, sizeof(*listen));
	int ret;

	if (listen == NULL) {
		return -ENOMEM;
	}
	listen->set = set;
	listen->early = bytes == FR_HANDLE_BYTES_V4;
	fr_list_init(&listen->pending);
	ret = fr_random(&listen->cookie, sizeof(listen->cookie));
	if (ret == 0) {
		listen_encode(listen, handle, bytes, &ret);
	}
	if (ret != 0) {
		fr_error("listen: cannot make a handle: %s", strerror(-ret));
		fr_free(listen);
		return ret;
	}
	fr_lock_take(&set->lock);
	fr_list_push(&set->listeners, &listen->node);
	fr_lock_drop(&set->lock);
	*out = listen;
	return 0;
}

int fr_net_listen(unsigned dev, int tclass, void *handle, size_t handle_bytes,
		  struct fr_listen **out)
{
	struct fr_set *set;
	int ret = -EINVAL;

	if (handle == NULL) {
		return ret;
	}
	fr_lock_take(&fr_core.lock);
	if (fr_core.ready && dev < fr_core.dev_cnt) {
		ret = fr_set_get_locked(&fr_core.dev[dev], tclass, &set);
	}
	fr_lock_drop(&fr_core.lock);
	if (ret != 0) {
		return ret;
	}
	ret = listen_open(set, handle, handle_bytes, out);
	if (ret != 0) {
		fr_set_put(set);
	}
	return ret;
}

static void response_fill(const struct fr_set *set,
			  const struct fr_conn_msg *request,
			  struct fr_conn_msg *response)
{
	memset(response, 0, sizeof(*response));
	fr_set_describe(set, response);
	response->type = FR_CONN_RESPONSE;
	response->cookie = request->cookie;
	response->connect_id = request->connect_id;
}

static void refuse(struct fr_set *set, const struct fr_conn_msg *request,
		   int status, const char *text)
{
	struct fr_conn_msg response;
	struct fr_rail *rail;
	uint64_t addr;

	if (request->rail_cnt == 0 || set->dead != 0) {
		return; /* there is no name to answer to, or no rail */
	}
	rail = fr_conn_rail_for(set, &request->rails[0].ctrl);
	if (fr_rail_peer_add(rail, &request->rails[0].ctrl, &addr) != 0) {
		return;
	}
	response_fill(set, request, &response);
	response.status = status;
	snprintf(response.text, sizeof(response.text), "%s", text);
	if (fr_reply_create(set, rail, addr, NULL, &response, NULL) != 0) {
		fr_rail_peer_del(rail, addr);
	}
}

/* On the path of the comm's control messages: none of them may overtake it. */
static int respond(struct fr_comm *comm, uint64_t cookie, struct fr_reply **out)
{
	struct fr_path *path = &comm->link->path[comm->ctrl_path];
	struct fr_conn_msg request = {
		.cookie = cookie,
		.connect_id = comm->connect_id,
	};
	struct fr_conn_msg response;

	response_fill(comm->set, &request, &response);
	response.comm = comm->id;
	response.nonce = comm->nonce;
	return fr_reply_create(comm->set, path->rail, path->ctrl_addr,
			       comm->link, &response, out);
}

static struct fr_comm *find_accepted(struct fr_set *set, uint64_t connect_id)
{
	struct fr_comm *comm;
	uint32_t id = 0;

	do {
		comm = fr_set_next_comm(set, &id);
	} while (comm != NULL &&
		 (comm->is_send || comm->connect_id != connect_id));
	return comm;
}

static bool is_pending(const struct fr_listen *listen, uint64_t connect_id)
{
	fr_list_for_each (pos, &listen->pending) {
		if (FR_CONTAINER_OF(pos, struct fr_pending, node)
			    ->msg.connect_id == connect_id) {
			return true;
		}
	}
	return false;
}

static struct fr_listen *find_listener(const struct fr_set *set,
				       uint64_t cookie)
{
	fr_list_for_each (pos, &set->listeners) {
		struct fr_listen *listen =
			FR_CONTAINER_OF(pos, struct fr_listen, node);

		if (listen->cookie == cookie) {
			return listen;
		}
	}
	return NULL;
}

/* The next accept says so. One line until then, however often it comes. */
static void listen_refused(struct fr_listen *listen, const char *what,
			   const char *text)
{
	if (listen->refused_err == 0) {
		fr_error("accept: %s: %s", what, text);
		listen->refused_err = -EPROTO;
	}
}

void fr_conn_refused(struct fr_set *set, const struct fr_knock_refusal *r)
{
	struct fr_listen *listen = find_listener(set, r->cookie);

	if (listen != NULL) {
		listen_refused(listen, "a peer refuses to connect", r->text);
	}
}

bool fr_accept_foreign(struct fr_set *set, const struct fr_conn_msg *msg)
{
	struct fr_listen *listen = find_listener(set, msg->cookie);
	char text[96];

	if (listen == NULL) {
		return false;
	}
	snprintf(text, sizeof(text),
		 "its request has version %u, this side speaks version %u",
		 msg->version, FR_CONN_VERSION);
	listen_refused(listen, "refused a peer", text);
	return true;
}

static struct fr_pending *listen_pop(struct fr_listen *listen)
{
	struct fr_list *pos = fr_list_pop(&listen->pending);

	if (pos == NULL) {
		return NULL;
	}
	listen->pending_cnt--;
	return FR_CONTAINER_OF(pos, struct fr_pending, node);
}

static int accept_start(struct fr_listen *listen, const struct fr_conn_msg *msg)
{
	struct fr_set *set = listen->set;
	struct fr_comm *comm;
	struct fr_link *link;
	const char *why;
	int ret;

	ret = fr_comm_create_locked(set, false, &comm);
	if (ret != 0) {
		return ret;
	}
	ret = fr_link_get(set, msg, &link, &why);
	if (ret != 0) {
		fr_error("accept: refused a peer (%.15s): %s",
			 msg->rails[0].iface, why);
		refuse(set, msg, ret == -EPROTO ? EPROTO : ECONNREFUSED, why);
		goto err_destroy;
	}
	comm->connect_id = msg->connect_id;
	fr_comm_join_link(comm, link, msg);
	ret = respond(comm, msg->cookie, &listen->reply);
	if (ret != 0) {
		goto err_destroy;
	}
	listen->accepting = comm;
	return 0;

err_destroy:
	fr_comm_destroy_locked(comm);
	return ret;
}

/* Turns to the next who waits. */
static int accept_next(struct fr_listen *listen)
{
	struct fr_pending *pending = listen_pop(listen);
	int ret;

	if (pending == NULL) {
		ret = listen->refused_err;
		listen->refused_err = 0;
		return ret != 0 ? ret : -EAGAIN;
	}
	ret = accept_start(listen, &pending->msg);
	fr_free(pending);
	return ret;
}

static void accept_early(struct fr_listen *listen)
{
	int ret;

	if (!listen->early || listen->accepting != NULL ||
	    fr_list_empty(&listen->pending)) {
		return;
	}
	ret = accept_next(listen);
	if (ret != 0) {
		listen->refused_err = ret;
	}
}

void fr_accept_request(struct fr_set *set, const struct fr_conn_msg *msg)
{
	struct fr_comm *comm = find_accepted(set, msg->connect_id);
	struct fr_listen *listen;
	struct fr_pending *pending;

	if (comm != NULL) { /* a repeat: our response was late or lost */
		if (comm->link != NULL && comm->link->err == 0) {
			(void)respond(comm, msg->cookie, NULL);
		}
		return;
	}
	listen = find_listener(set, msg->cookie);
	if (listen == NULL) {
		fr_log_limited(&set->strange, FR_LOG_INFO,
			       "a peer (%.15s) asks for a listener that is "
			       "closed",
			       msg->rails[0].iface);
		refuse(set, msg, ECONNREFUSED, "the listener is closed");
		return;
	}
	if (is_pending(listen, msg->connect_id) ||
	    listen->pending_cnt >= PENDING_MAX) {
		return;
	}
	pending = fr_malloc(sizeof(*pending));
	if (pending == NULL) {
		return; /* it will be repeated */
	}
	pending->msg = *msg;
	fr_list_push(&listen->pending, &pending->node);
	listen->pending_cnt++;
	accept_early(listen);
}

static int accept_finish(struct fr_listen *listen, struct fr_comm **out)
{
	struct fr_comm *comm = listen->accepting;
	int ret = comm->link->err;

	if (ret == 0 && !listen->reply->sent) {
		return -EAGAIN;
	}
	if (ret == 0 && listen->reply->err != 0) {
		fr_error("accept: cannot answer %s: %s", comm->link->peer_text,
			 strerror(-listen->reply->err));
		ret = -ECONNRESET;
	}
	fr_reply_disown(listen->reply);
	listen->reply = NULL;
	listen->accepting = NULL;
	if (ret != 0) {
		fr_comm_destroy_locked(comm);
		return ret;
	}
	fr_comm_set_state(comm, FR_COMM_OPEN);
	*out = comm;
	return 0;
}

static int accept_step(struct fr_listen *listen, struct fr_comm **out)
{
	int ret;

	if (listen->set->dead != 0) {
		return listen->set->dead;
	}
	if (listen->accepting == NULL) {
		ret = accept_next(listen);
		if (ret != 0) {
			return ret;
		}
		fr_conn_flush(listen->set);
	}
	ret = accept_finish(listen, out);
	accept_early(listen);
	return ret;
}

int fr_net_accept(struct fr_listen *listen, struct fr_comm **out)
{
	struct fr_set *set;
	bool yield;
	int ret;

	if (listen == NULL) {
		return -EINVAL;
	}
	set = listen->set;
	fr_lock_take(&set->lock);
	yield = fr_progress_locked(set);
	ret = accept_step(listen, out);
	fr_lock_drop(&set->lock);
	if (ret == 0) {
		fr_set_hold(set);
	} else if (ret == -EAGAIN && yield) {
		fr_yield();
	}
	return ret;
}

/* The peer may believe, now or later, that it is connected. */
static void accept_abandon(struct fr_listen *listen)
{
	struct fr_comm *comm = listen->accepting;

	if (!listen->reply->sent) {
		listen->reply->closing = comm;
		return;
	}
	fr_comm_set_state(comm, FR_COMM_OPEN);
	fr_comm_close_locked(comm);
}

/* Forgets the listener and who waits at it. */
static void listen_drop_locked(struct fr_listen *listen)
{
	struct fr_pending *pending;

	while ((pending = listen_pop(listen)) != NULL) {
		refuse(listen->set, &pending->msg, ECONNREFUSED,
		       "the listener was closed");
		fr_free(pending);
	}
	if (listen->accepting != NULL) {
		accept_abandon(listen);
	}
	fr_reply_disown(listen->reply);
	fr_list_del(&listen->node);
	fr_free(listen);
}

void fr_net_close_listen(struct fr_listen *listen)
{
	struct fr_set *set;

	if (listen == NULL) {
		return;
	}
	set = listen->set;
	fr_lock_take(&set->lock);
	listen_drop_locked(listen);
	fr_lock_drop(&set->lock);
	fr_set_put(set);
}

void fr_listen_drop_all_locked(struct fr_set *set)
{
	while (!fr_list_empty(&set->listeners)) {
		listen_drop_locked(FR_CONTAINER_OF(set->listeners.next,
						   struct fr_listen, node));
	}
}

static void close_comm(struct fr_comm *comm)
{
	struct fr_set *set = comm->set;

	fr_lock_take(&set->lock);
	fr_comm_close_locked(comm);
	fr_lock_drop(&set->lock);
	fr_set_put(set);
}

void fr_net_close_send(struct fr_comm *comm)
{
	if (comm != NULL) {
		close_comm(comm);
	}
}

void fr_net_close_recv(struct fr_comm *comm)
{
	if (comm != NULL) {
		close_comm(comm);
	}
}
