/* Hostile connect messages, and peers that answer a request with lies. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "functional/forge.h"
#include "functional/hostile.h"

#define FLIPS 2000u
#define FLOOD 1000u
#define BAD_NAMES 200u
#define OURS UINT64_C(0x1122334455667788)

static uint64_t dice = 7;

static uint64_t roll(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice;
}

static void decode_handle(const uint8_t *handle, struct fr_handle *out)
{
	const char *why;

	PAIR_CHECK(fr_handle_decode(out, handle, FR_HANDLE_BYTES, &why) == 0,
		   "the victim's handle");
}

static size_t good_request(struct forge *f, uint64_t cookie, uint8_t *buf)
{
	struct fr_conn_msg msg;
	int len;

	forge_describe(f, FR_CONN_REQUEST, &msg);
	msg.cookie = cookie;
	len = fr_conn_encode(&msg, buf, FR_CONN_MAX_BYTES);
	PAIR_CHECK(len > 0, "a good request");
	return (size_t)len;
}

/* To a listener that exists: none of them may get that far. */
static void cut_requests(struct forge *f, const uint8_t *handle)
{
	uint8_t buf[FR_CONN_MAX_BYTES];
	uint64_t to = forge_find(f, handle);
	struct fr_handle h;
	size_t len;

	decode_handle(handle, &h);
	len = good_request(f, h.cookie, buf);
	for (size_t cut = 1; cut < len; cut++) {
		forge_push(f, to, buf, cut);
	}
	for (unsigned type = 0; type < 16; type++) {
		if (type != FR_CONN_REQUEST) {
			buf[0] = (uint8_t)(FR_CONN_VERSION << 4 | type);
			forge_push(f, to, buf, len);
		}
	}
	buf[0] = FR_CONN_VERSION << 4 | FR_CONN_REQUEST;
	buf[1] = 0x99; /* rails */
	forge_push(f, to, buf, len);
}

/* To a listener that nobody accepts from: what passes for a request is refused
 * when that closes. Ports stay those of the forger: a flipped one could be
 * anybody's. */
static void flipped_requests(struct pair_member *me, struct forge *f)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	uint8_t good[FR_CONN_MAX_BYTES], buf[FR_CONN_MAX_BYTES];
	uint32_t listener = hostile_listen(me, handle);
	uint64_t to = forge_find(f, handle);
	struct fr_handle h;

	decode_handle(handle, &h);
	for (unsigned k = 0; k < FLIPS; k++) {
		size_t len = good_request(f, h.cookie, good);

		memcpy(buf, good, len);
		for (unsigned n = 0; n <= k % 4; n++) {
			size_t at = n % 2 == 0 ? FR_CONN_FIXED_BYTES
					       : 1 + 15 * (roll() & 1);

			at += roll() % (len - at);
			buf[at] ^= (uint8_t)(1 + roll() % 255);
		}
		memcpy(buf + 8, good + 8, 8 + 8);
		memcpy(buf + 272, good + 272, 8);
		forge_push(f, to, buf, len);
	}
	(void)hostile_ask(me, HOSTILE_UNLISTEN, listener);
	forge_poll(f, 100);
}

/* Asks for a listener that is none, under names that lead nowhere: each is to
 * be refused, and cannot be. */
static void unreachable_requests(struct forge *f, const uint8_t *handle)
{
	uint64_t to = forge_find(f, handle);

	for (unsigned k = 0; k < BAD_NAMES; k++) {
		struct fr_conn_msg msg;
		uint8_t *name;

		forge_describe(f, FR_CONN_REQUEST, &msg);
		msg.cookie = roll();
		name = msg.rails[0].ctrl.bytes;
		switch (k % 4) {
		case 0: /* another family */
			name[0] ^= 0x40;
			break;
		case 1: /* no port */
			name[2] = 0;
			name[3] = 0;
			break;
		case 2: /* nobody's port */
			name[2] = 0;
			name[3] = 1;
			break;
		default: /* another length */
			msg.rails[0].ctrl.len = 8;
			break;
		}
		msg.rails[0].data = msg.rails[0].ctrl;
		PAIR_CHECK(forge_push_conn(f, to, &msg) == 0, "bad names");
	}
}

static void wrong_cookie(struct forge *f, const uint8_t *handle)
{
	uint64_t to = forge_find(f, handle);
	struct fr_conn_msg msg, answer;

	forge_describe(f, FR_CONN_REQUEST, &msg);
	msg.cookie = roll();
	PAIR_CHECK(forge_push_conn(f, to, &msg) == 0, "wrong cookie");
	do {
		PAIR_CHECK(forge_wait_conn(f, FR_CONN_RESPONSE, &answer, 5000),
			   "a wrong cookie is not refused");
	} while (answer.connect_id != msg.connect_id);
	PAIR_CHECK(answer.status == ECONNREFUSED && answer.text[0] != '\0',
		   "a wrong cookie: status %d", answer.status);
}

/* One request many times over, before and after it is accepted. */
static void repeated_requests(struct pair_member *me, struct forge *f,
			      const uint8_t *handle)
{
	const struct hostile_word word = {HOSTILE_ACCEPT, 0};
	uint64_t to = forge_find(f, handle);
	struct hostile_answer answer;
	struct fr_conn_msg msg;
	struct fr_handle h;

	decode_handle(handle, &h);
	forge_describe(f, FR_CONN_REQUEST, &msg);
	msg.cookie = h.cookie;
	for (unsigned k = 0; k < FLOOD; k++) {
		PAIR_CHECK(forge_push_conn(f, to, &msg) == 0, "a repeat");
	}
	pair_put(me, VICTIM, &word, sizeof(word));
	PAIR_CHECK(forge_wait_conn(f, FR_CONN_RESPONSE, &msg, 5000),
		   "no response to the first of many");
	pair_get(me, VICTIM, &answer, sizeof(answer));
	PAIR_CHECK(answer.result == 0, "accept");
	for (unsigned k = 0; k < FLOOD; k++) {
		struct fr_conn_msg repeat;

		forge_describe(f, FR_CONN_REQUEST, &repeat);
		repeat.cookie = h.cookie;
		repeat.connect_id = msg.connect_id;
		PAIR_CHECK(forge_push_conn(f, to, &repeat) == 0, "a repeat");
	}
	forge_poll(f, 50);
	(void)hostile_ask(me, HOSTILE_DROP, 0);
}

/* -- the victim connects to a liar ------------------------------------------*/

static void offer(struct pair_member *me, struct forge *f,
		  struct fr_conn_msg *request)
{
	const struct hostile_word word = {HOSTILE_CONNECT, 0};
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};

	forge_handle(f, OURS, handle);
	pair_put(me, VICTIM, &word, sizeof(word));
	pair_put(me, VICTIM, handle, sizeof(handle));
	PAIR_CHECK(forge_wait_conn(f, FR_CONN_REQUEST, request, 5000),
		   "the victim asks for nothing");
}

static void send_cts(struct forge *f, struct forge_peer *peer, unsigned lie)
{
	struct fr_cts cts = {
		.comm = peer->msg.comm,
		.nonce = peer->msg.nonce,
		.entry_cnt = 1,
		.key_cnt = lie == 1 ? 2 : 1,
		.entries = {{.group = 1, .len = HOSTILE_BIG}},
	};
	uint8_t buf[512];
	int len;

	cts.prev32 = lie == 2 ? 1 : lie == 3 ? 0x80000000 : 0;
	cts.first32 = lie == 3 ? 0x80000000 : lie == 4 ? 300 : 0;
	cts.entries[0].keys[0] = roll();
	len = fr_cts_encode(&cts, buf, sizeof(buf));
	peer->seq = 1; /* a repeat, should the first one be lost */
	forge_link(f, peer, FR_LINK_CTS, 0, buf, (size_t)len);
}

/* Memory that is not there, and receives that cannot be. */
static void lying_receivers(struct pair_member *me, struct forge *f)
{
	for (unsigned lie = 0; lie < 5; lie++) {
		const struct hostile_word word = {HOSTILE_SEND, HOSTILE_BIG};
		struct hostile_answer answer;
		struct fr_conn_msg request;
		struct forge_peer peer;
		uint32_t lines;

		offer(me, f, &request);
		forge_accept(f, &request, &peer);
		pair_get(me, VICTIM, &answer, sizeof(answer));
		PAIR_CHECK(answer.result == 0, "connect to a liar");
		lines = answer.lines;
		pair_put(me, VICTIM, &word, sizeof(word));
		while (!pair_told(me, VICTIM)) {
			send_cts(f, &peer, lie);
			forge_poll(f, 50);
		}
		pair_get(me, VICTIM, &answer, sizeof(answer));
		PAIR_CHECK(answer.result == PAIR_REMOTE,
			   "lie %u of a receiver: the send ended with %d", lie,
			   answer.result);
		PAIR_CHECK(answer.lines <= lines + 1, "lie %u: %u lines", lie,
			   answer.lines - lines);
		(void)hostile_ask(me, HOSTILE_DROP, 0);
		forge_leave(f, &peer);
	}
}

void hostile_conn_attack(struct pair_member *me)
{
	uint8_t handle[FR_PLUGIN_HANDLE_BYTES] = {0};
	struct hostile_answer begin, end;
	struct forge *f = forge_open();

	(void)hostile_listen(me, handle);
	begin = hostile_ask(me, HOSTILE_LOOK, 0);
	pair_at(me, "requests that are cut");
	cut_requests(f, handle);
	pair_at(me, "requests with flipped bytes");
	flipped_requests(me, f);
	pair_at(me, "requests from nowhere");
	unreachable_requests(f, handle);
	pair_at(me, "a request with a wrong cookie");
	wrong_cookie(f, handle);
	pair_at(me, "repeated requests");
	repeated_requests(me, f, handle);
	end = hostile_ask(me, HOSTILE_LOOK, 0);
	PAIR_CHECK(end.lines - begin.lines <= 40, "%u lines",
		   end.lines - begin.lines);
	pair_at(me, "receivers that lie");
	lying_receivers(me, f);
	forge_close(f);
}
