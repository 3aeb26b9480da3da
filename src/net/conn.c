/* The connecting side. */
#include "net/conn.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "net/peer.h"
#include "net/progress.h"

#define REPEAT_NS (1 * FR_NS_PER_S)
#define NEXT_NAME_NS (3 * FR_NS_PER_S)
#define KNOCK_NS (1 * FR_NS_PER_S)
#define KNOCK_AGAIN_NS (200 * FR_NS_PER_MS)
#define REFUSALS_ARE_DEATH 2u
#define SILENCE_IS_DEATH_NS (10 * FR_NS_PER_S)
/* Of the keeper, ten a second: a process that was stopped ages by one. */
#define DROPPED_ROUNDS 300u

/* clang-format off */
static const uint8_t conn_next[] = {
	[FR_CONN_POSTING] = FR_BIT(FR_CONN_WAITING) | FR_BIT(FR_CONN_READY) | FR_BIT(FR_CONN_FAILED),
	[FR_CONN_WAITING] = FR_BIT(FR_CONN_POSTING) | FR_BIT(FR_CONN_READY) | FR_BIT(FR_CONN_FAILED),
	[FR_CONN_READY]   = FR_BIT(FR_CONN_FAILED),
	[FR_CONN_FAILED]  = 0,
};
/* clang-format on */
_Static_assert(FR_ARRAY_LEN(conn_next) == FR_CONN_STATE_CNT,
	       "a state has no row");

static void conn_set_state(struct fr_conn *conn, enum fr_conn_state to)
{
	bool legal = fr_fsm_allows(conn_next, conn->state, to);

	assert(legal);
	(void)legal;
	conn->state = to;
}

static void conn_fail(struct fr_conn *conn, int err)
{
	if (conn->state != FR_CONN_FAILED) {
		conn->err = err;
		conn_set_state(conn, FR_CONN_FAILED);
	}
}

static void conn_unaim(struct fr_conn *conn)
{
	fr_knock_stop(&conn->knock);
	fr_witness_rest(&conn->witness);
	if (conn->have_addr && conn->set->dead == 0) {
		fr_rail_peer_del(conn->rail, conn->addr);
	}
	conn->have_addr = false;
}

/* Turns to the handle's name number conn->name. */
static int conn_aim(struct fr_conn *conn, uint64_t now)
{
	const struct fr_name *name = &conn->handle.names[conn->name];
	uint8_t ip[16];
	int ret;

	conn_unaim(conn);
	conn->rail = fr_conn_rail_for(conn->set, name);
	conn->name_ns = now;
	conn->refusals = 0;
	fr_name_addr(name, ip);
	fr_peer_knock_addr(name, ip, conn->handle.knock_port,
			   &conn->knock_addr);
	memcpy(conn->knock_local.addr, fr_rail_nic(conn->rail)->addr,
	       sizeof(conn->knock_local.addr));
	fr_witness_init(&conn->witness, conn->set->quirks, &conn->knock_local,
			name);
	conn->witness.since_ns = conn->begun_ns; /* the names take turns */
	ret = fr_rail_peer_add(conn->rail, name, &conn->addr);
	conn->have_addr = ret == 0;
	return ret;
}

/* A dead first rail must not kill the connection: the names take turns. */
static bool conn_next_name(struct fr_conn *conn, uint64_t now)
{
	for (unsigned i = 0; i < conn->handle.name_cnt; i++) {
		conn->name = (conn->name + 1) % conn->handle.name_cnt;
		if (conn_aim(conn, now) == 0) {
			return true;
		}
	}
	return false;
}

/* This name leads nowhere now. It may be a path that is out of order for a
 * moment: only all of them, and for long, are the end. */
static void conn_leave_name(struct fr_conn *conn, uint64_t now, const char *why)
{
	char name[FR_PEER_TEXT];

	fr_peer_text(&conn->knock_addr, name);
	conn->silent_names |= FR_BIT(conn->name);
	if (conn->silent_names == FR_BIT(conn->handle.name_cnt) - 1 &&
	    now - conn->begun_ns >= SILENCE_IS_DEATH_NS) {
		fr_error("connect: no address of the listener can be reached, "
			 "last tried %s: %s",
			 name, why);
		conn_fail(conn, -ECONNRESET);
		return;
	}
	(void)conn_next_name(conn, now);
}

static void slot_home(struct fr_op *op, struct fr_rail *rail, int err,
		      size_t bytes)
{
	struct fr_slot *slot = FR_CONTAINER_OF(op, struct fr_slot, op);

	(void)rail;
	(void)err; /* an unanswered request is repeated anyway */
	(void)bytes;
	slot->in_flight = false;
	if (slot->settled) {
		fr_slot_put(slot);
	}
}

static int conn_encode(struct fr_conn *conn)
{
	struct fr_conn_msg msg;
	int len;

	memset(&msg, 0, sizeof(msg));
	fr_set_describe(conn->set, &msg);
	msg.type = FR_CONN_REQUEST;
	msg.comm = conn->comm->id;
	msg.nonce = conn->comm->nonce;
	msg.cookie = conn->handle.cookie;
	msg.connect_id = conn->connect_id;
	len = fr_conn_encode(&msg, conn->slot->bytes, FR_CONN_MAX_BYTES);
	if (len < 0) {
		return len;
	}
	conn->slot->len = (uint16_t)len;
	return 0;
}

static void conn_post(struct fr_conn *conn, uint64_t now)
{
	struct fr_slot *slot = conn->slot;
	int ret = -EAGAIN;

	if (!slot->in_flight) {
		slot->op.done = slot_home;
		ret = fr_rail_send(
			conn->rail, conn->addr, slot->bytes, slot->len,
			fr_mr_desc(slot->mr, fr_rail_index(conn->rail)),
			&slot->op);
	}
	if (ret == 0) {
		slot->in_flight = true;
		conn->sent_ns = now;
		conn_set_state(conn, FR_CONN_WAITING);
		return;
	}
	if (ret == -EAGAIN && now - conn->name_ns < NEXT_NAME_NS) {
		return;
	}
	if (ret == -EAGAIN) {
		(void)conn_next_name(conn, now);
	} else {
		conn_leave_name(conn, now, strerror(-ret));
	}
}

/* Whoever made the handle may be gone: ask its kernel. */
static void conn_knock(struct fr_conn *conn, uint64_t now)
{
	char name[FR_PEER_TEXT];

	if (conn->knock_addr.port == 0 || now - conn->begun_ns < KNOCK_NS) {
		return;
	}
	if (conn->knock.state == FR_KNOCK_IDLE) {
		if (now >= conn->next_knock_ns) {
			fr_knock_start(&conn->knock, &conn->knock_local,
				       &conn->knock_addr, 0, now);
			conn->next_knock_ns = now + KNOCK_NS;
		}
		return;
	}
	fr_peer_text(&conn->knock_addr, name);
	switch (fr_knock_step(&conn->knock, now)) {
	case FR_KNOCK_ALIVE:
		conn->refusals = 0;
		conn->silent_names = 0;
		fr_witness_rest(&conn->witness);
		fr_knock_stop(&conn->knock);
		break;
	case FR_KNOCK_REFUSED:
		fr_knock_stop(&conn->knock);
		conn->next_knock_ns = now + KNOCK_AGAIN_NS;
		if (++conn->refusals >= REFUSALS_ARE_DEATH) {
			fr_error("connect: the listener at %s is gone (knock "
				 "on port %u refused)",
				 name, conn->knock_addr.port);
			conn_fail(conn, -ECONNRESET);
		}
		break;
	case FR_KNOCK_SILENT:
		fr_knock_stop(&conn->knock);
		conn_leave_name(conn, now, "no answer to a knock");
		break;
	case FR_KNOCK_IDLE: /* it was cut short */
	case FR_KNOCK_OPEN:
		if (conn->knock.was_open &&
		    fr_witness_denies(&conn->witness, now)) {
			fr_error("connect: the listener at %s is gone (a "
				 "stranger has its knock port %u)",
				 name, conn->knock_addr.port);
			conn_fail(conn, -ECONNRESET);
		}
		break;
	default:
		break;
	}
}

/* What cannot be reached may be a handle that was damaged: its address tells.
 */
static void conn_time_is_up(struct fr_conn *conn)
{
	char name[FR_PEER_TEXT];

	fr_peer_text(&conn->knock_addr, name);
	fr_error("connect: no answer within OFI_NCCL_CONNECT_TIMEOUT from the "
		 "listener at %s, port %u",
		 name, fr_name_port(&conn->handle.names[conn->name]));
	conn_fail(conn, -ECONNRESET);
}

static void conn_step(struct fr_conn *conn, uint64_t now)
{
	uint64_t limit = conn->set->conf->connect_timeout_ns;

	if (conn->state == FR_CONN_WAITING && now - conn->sent_ns > REPEAT_NS) {
		conn_set_state(conn, FR_CONN_POSTING);
	}
	if (conn->state == FR_CONN_POSTING) {
		conn_post(conn, now);
	}
	if (conn->state == FR_CONN_POSTING || conn->state == FR_CONN_WAITING) {
		conn_knock(conn, now);
	}
	if ((conn->state == FR_CONN_POSTING ||
	     conn->state == FR_CONN_WAITING) &&
	    limit != 0 && now - conn->begun_ns > limit) {
		conn_time_is_up(conn);
	}
}

/* At once when the response is here: what the peer sends next on this comm may
 * be the next thing that is read. */
static int conn_join(struct fr_conn *conn, const struct fr_conn_msg *msg)
{
	struct fr_link *link;
	const char *why;
	int ret;

	if (msg->status != 0) {
		fr_error("connect: the peer refused: %s", msg->text);
		return -EPROTO;
	}
	ret = fr_link_get(conn->set, msg, &link, &why);
	if (ret != 0) {
		fr_error("connect: cannot use the peer's response: %s", why);
		return ret;
	}
	conn->comm->connect_id = conn->connect_id;
	fr_comm_join_link(conn->comm, link, msg);
	return 0;
}

static void conn_free_parts_locked(struct fr_conn *conn)
{
	conn_unaim(conn);
	fr_list_del(&conn->set_node);
	if (conn->slot != NULL) {
		conn->slot->settled = true;
		if (!conn->slot->in_flight) {
			fr_slot_put(conn->slot);
		}
	}
}

/* Nobody will ever use it; a peer that has accepted it must know. */
static void conn_drop_comm_locked(struct fr_conn *conn)
{
	if (conn->comm->link == NULL) {
		fr_comm_destroy_locked(conn->comm);
		return;
	}
	fr_comm_set_state(conn->comm, FR_COMM_OPEN);
	fr_comm_close_locked(conn->comm);
}

/* The use of the set goes to the comm, or back when @comm_lives is false. */
static void conn_destroy(struct fr_conn *conn, bool comm_lives)
{
	struct fr_set *set = conn->set;

	fr_lock_take(&fr_core.lock);
	fr_list_del(&conn->node);
	fr_lock_drop(&fr_core.lock);
	fr_lock_take(&set->lock);
	conn_free_parts_locked(conn);
	if (!comm_lives) {
		conn_drop_comm_locked(conn);
	}
	fr_lock_drop(&set->lock);
	fr_free(conn);
	if (!comm_lives) {
		fr_set_put(set);
	}
}

static int conn_open_locked(struct fr_conn *conn, uint64_t now)
{
	struct fr_set *set = conn->set;
	int ret;

	ret = fr_comm_create_locked(set, true, &conn->comm);
	if (ret != 0) {
		return ret;
	}
	conn->slot = fr_slot_get(set, FR_CONN_MAX_BYTES);
	ret = conn->slot == NULL ? -ENOMEM : conn_encode(conn);
	if (ret == 0) {
		conn->name = fr_peer_near_name(set, &conn->handle);
		ret = conn_aim(conn, now);
		if (ret != 0 && !conn_next_name(conn, now)) {
			fr_error("connect: the handle's endpoint name is not "
				 "usable here: %s",
				 strerror(-ret));
		} else {
			ret = 0;
		}
	}
	if (ret != 0) {
		conn_free_parts_locked(conn);
		fr_comm_destroy_locked(conn->comm);
		return ret;
	}
	fr_list_push(&set->conns, &conn->set_node);
	return 0;
}

/* core.lock is held and stays held. */
static int conn_create_locked(struct fr_device *dev, int tclass,
			      const struct fr_handle *handle,
			      struct fr_conn **out)
{
	struct fr_conn *conn = fr_calloc(1, sizeof(*conn));
	int ret;

	if (conn == NULL) {
		return -ENOMEM;
	}
	conn->handle = *handle;
	conn->begun_ns = fr_now_ns();
	fr_list_init(&conn->node);
	fr_list_init(&conn->set_node);
	ret = fr_random(&conn->connect_id, sizeof(conn->connect_id));
	if (ret == 0) {
		ret = fr_random(&conn->key, sizeof(conn->key));
	}
	conn->key |= 1; /* never 0: a fresh handle's */
	if (ret == 0) {
		ret = fr_set_get_locked(dev, tclass, &conn->set);
	}
	if (ret != 0) {
		goto err_free;
	}
	fr_lock_take(&conn->set->lock);
	ret = conn_open_locked(conn, conn->begun_ns);
	fr_lock_drop(&conn->set->lock);
	if (ret != 0) {
		goto err_put_set;
	}
	fr_list_push(&fr_core.connects, &conn->node);
	*out = conn;
	return 0;

err_put_set:
	fr_lock_drop(&fr_core.lock);
	fr_set_put(conn->set);
	fr_lock_take(&fr_core.lock);
err_free:
	fr_free(conn);
	return ret;
}

static uint64_t handle_key(const uint8_t *handle)
{
	uint64_t key;

	memcpy(&key, handle + FR_HANDLE_STATE_OFFSET, sizeof(key));
	return key;
}

static void handle_set_key(uint8_t *handle, uint64_t key)
{
	memcpy(handle + FR_HANDLE_STATE_OFFSET, &key, sizeof(key));
}

/* @text: why, when it is -EPROTO; the listener that @decoded names should read
 * it as well. */
static int conn_find_locked(unsigned dev, int tclass, uint8_t *handle,
			    struct fr_handle *decoded, char *text, size_t bytes,
			    struct fr_conn **out)
{
	uint64_t key = handle_key(handle);
	int ret;

	fr_lock_assert(&fr_core.lock);
	if (!fr_core.ready || dev >= fr_core.dev_cnt) {
		return -EINVAL;
	}
	fr_list_for_each (pos, &fr_core.connects) {
		struct fr_conn *conn =
			FR_CONTAINER_OF(pos, struct fr_conn, node);

		if (key != 0 && conn->key == key) {
			*out = conn;
			return 0;
		}
	}
	ret = fr_peer_check_handle(&fr_core.dev[dev], handle, decoded, text,
				   bytes);
	if (ret != 0) {
		return ret;
	}
	ret = conn_create_locked(&fr_core.dev[dev], tclass, decoded, out);
	if (ret == 0) {
		handle_set_key(handle, (*out)->key);
	}
	return ret;
}

/* Return: 0: the comm is open; -EAGAIN; -errno, final. */
static int conn_call(struct fr_conn *conn, bool *yield)
{
	int ret = -EAGAIN;

	fr_lock_take(&conn->set->lock);
	*yield = fr_progress_locked(conn->set);
	if (conn->set->dead == 0) {
		conn_step(conn, fr_now_ns());
	} else if (conn->state != FR_CONN_FAILED) {
		conn_fail(conn, conn->set->dead);
	}
	if (conn->state == FR_CONN_READY) {
		fr_comm_set_state(conn->comm, FR_COMM_OPEN);
		ret = 0;
	} else if (conn->state == FR_CONN_FAILED) {
		ret = conn->err;
	}
	fr_lock_drop(&conn->set->lock);
	return ret;
}

/* From here on it is whoever's that looks. */
static void conn_leave(struct fr_conn *conn)
{
	fr_lock_take(&fr_core.lock);
	conn->called = false;
	fr_lock_drop(&fr_core.lock);
}

int fr_net_connect(unsigned dev, int tclass, void *handle, struct fr_comm **out)
{
	char text[FR_KNOCK_TEXT_MAX] = "";
	struct fr_handle decoded;
	struct fr_conn *conn = NULL;
	bool yield;
	int ret;

	if (handle == NULL) {
		return -EINVAL;
	}
	fr_lock_take(&fr_core.lock);
	ret = conn_find_locked(dev, tclass, handle, &decoded, text,
			       sizeof(text), &conn);
	if (ret == 0) {
		conn->idle_rounds = 0;
		conn->called = true;
	}
	fr_lock_drop(&fr_core.lock);
	if (text[0] != '\0') {
		fr_error("connect: %s", text);
		fr_peer_refuse_wait(&decoded, text);
	}
	if (ret != 0) {
		return ret;
	}
	ret = conn_call(conn, &yield);
	if (ret == -EAGAIN) {
		conn_leave(conn);
		if (yield) {
			fr_yield();
		}
		return ret;
	}
	if (ret == 0) {
		*out = conn->comm;
	}
	handle_set_key(handle, 0);
	conn_destroy(conn, ret == 0);
	return ret;
}

static void conn_response(struct fr_set *set, const struct fr_conn_msg *msg)
{
	int ret;

	fr_list_for_each (pos, &set->conns) {
		struct fr_conn *conn =
			FR_CONTAINER_OF(pos, struct fr_conn, set_node);

		if (conn->connect_id != msg->connect_id ||
		    conn->handle.cookie != msg->cookie ||
		    (conn->state != FR_CONN_POSTING &&
		     conn->state != FR_CONN_WAITING)) {
			continue;
		}
		ret = conn_join(conn, msg);
		if (ret != 0) {
			conn_fail(conn, ret);
			return;
		}
		conn_set_state(conn, FR_CONN_READY);
		return;
	}
}

/* A response of another version: of ours only if its cookie is. */
static bool conn_foreign(struct fr_set *set, const struct fr_conn_msg *msg)
{
	bool found = false;

	fr_list_for_each (pos, &set->conns) {
		struct fr_conn *conn =
			FR_CONTAINER_OF(pos, struct fr_conn, set_node);

		if (conn->handle.cookie != msg->cookie ||
		    (conn->state != FR_CONN_POSTING &&
		     conn->state != FR_CONN_WAITING)) {
			continue;
		}
		fr_error("connect: the peer's response has version %u, this "
			 "side speaks version %u",
			 msg->version, FR_CONN_VERSION);
		conn_fail(conn, -EPROTO);
		found = true;
	}
	return found;
}

/* Somebody waits for it and is told, or it is a stranger's. */
static bool conn_other_version(struct fr_set *set,
			       const struct fr_conn_msg *msg)
{
	return msg->type == FR_CONN_REQUEST ? fr_accept_foreign(set, msg)
					    : conn_foreign(set, msg);
}

void fr_conn_arrived(struct fr_set *set, const uint8_t *buf, size_t bytes)
{
	struct fr_conn_msg msg;
	const char *why = "";
	int ret;

	ret = fr_conn_decode(&msg, buf, bytes, &why);
	if (ret == -EPROTONOSUPPORT && conn_other_version(set, &msg)) {
		return;
	}
	if (ret != 0) {
		fr_log_limited(&set->strange, FR_LOG_WARN,
			       "dropped a connect message of %zu bytes: %s",
			       bytes, why);
		return;
	}
	fr_peer_fill_names(&msg);
	if (msg.type == FR_CONN_REQUEST) {
		fr_accept_request(set, &msg);
	} else {
		conn_response(set, &msg);
	}
}

void fr_conn_tick_locked(struct fr_set *set, uint64_t now_ns)
{
	fr_reply_tick(set, now_ns);
	fr_list_for_each (pos, &set->listeners) {
		const struct fr_listen *listen =
			FR_CONTAINER_OF(pos, struct fr_listen, node);

		/* A response cannot be sent to one who has died meanwhile. */
		if (listen->accepting != NULL) {
			listen->accepting->link->wanted = true;
		}
	}
}

/* Its set has other users: dropping this use closes nothing. */
static void conn_reclaim_locked(struct fr_conn *conn)
{
	struct fr_set *set = conn->set;

	fr_list_del(&conn->node);
	fr_lock_take(&set->lock);
	conn_free_parts_locked(conn);
	conn_drop_comm_locked(conn);
	fr_lock_drop(&set->lock);
	set->users--;
	fr_free(conn);
	fr_info("reclaimed a connect that nobody called for 30 s");
}

void fr_conn_reap_locked(void)
{
	fr_lock_assert(&fr_core.lock);
	fr_list_for_each_safe (pos, &fr_core.connects) {
		struct fr_conn *conn =
			FR_CONTAINER_OF(pos, struct fr_conn, node);

		if (++conn->idle_rounds > DROPPED_ROUNDS && !conn->called &&
		    conn->set->users > 1) {
			conn_reclaim_locked(conn);
		}
	}
}

/* At the end a thread may have been interrupted with the set's lock, for ever;
 * its set has other users then, and would stay anyhow. */
static bool conn_can_drop_locked(const struct fr_conn *conn)
{
	struct fr_lock *lock = &conn->set->lock;

	fr_lock_assert(&fr_core.lock);
	if (conn->called) {
		return false;
	}
	if (!fr_core.ending) {
		return true;
	}
	if (!fr_lock_try(lock)) {
		return false;
	}
	fr_lock_drop(lock);
	return true;
}

/* Off the list, so that nobody finds it; NULL when none is left. */
static struct fr_conn *conn_take_dropped(void)
{
	struct fr_conn *found = NULL;

	fr_lock_take(&fr_core.lock);
	fr_list_for_each (pos, &fr_core.connects) {
		struct fr_conn *conn =
			FR_CONTAINER_OF(pos, struct fr_conn, node);

		if (conn_can_drop_locked(conn)) {
			fr_list_del(&conn->node);
			found = conn;
			break;
		}
	}
	fr_lock_drop(&fr_core.lock);
	return found;
}

void fr_conn_drop_all(void)
{
	struct fr_conn *conn;

	while ((conn = conn_take_dropped()) != NULL) {
		conn_destroy(conn, false);
	}
}
