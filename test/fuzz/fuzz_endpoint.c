/*
 * A whole endpoint under a hostile peer. The input is a little program: what
 * the peer says, writes and breaks, and what the victim does meanwhile. At the
 * end the victim's memory is whole and its other peer has noticed nothing.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "fuzz/world.h"
#include "wire/fence.h"
#include "wire/imm.h"
#include "wire/link.h"

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t take(struct input *in)
{
	if (in->left == 0) {
		return 0;
	}
	in->left--;
	return *in->at++;
}

static uint64_t take_n(struct input *in, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++) {
		v |= (uint64_t)take(in) << (8 * i);
	}
	return v;
}

/* Near 0 for most inputs, anything for some. */
static uint32_t take_offset(struct input *in)
{
	uint8_t b = take(in);

	return b == 0x80 ? (uint32_t)take_n(in, 4) : (uint32_t)(int8_t)b;
}

/* A size: a few bytes, or up to more than there is. */
static size_t take_size(struct input *in)
{
	uint8_t b = take(in);

	return b < 0x80 ? b : (size_t)(b & 0x7f) << 10;
}

/* Bytes of the input as they are; *@bytes is cut to what is there. */
static const uint8_t *take_bytes(struct input *in, size_t *bytes)
{
	const uint8_t *at = in->at;

	*bytes = FR_MIN(*bytes, in->left);
	in->at += *bytes;
	in->left -= *bytes;
	return at;
}

/* Changes a few bytes of a good message. */
static void spoil(struct input *in, uint8_t *msg, size_t bytes)
{
	for (unsigned n = take(in) & 7; n > 0 && bytes != 0; n--) {
		size_t at = (size_t)take_n(in, 2) % bytes;

		msg[at] = take(in);
	}
}

/* -- what the peer says -- */

/* A type that has a number. */
static uint8_t take_type(struct input *in)
{
	return (uint8_t)(FR_LINK_CTS +
			 take(in) % (FR_LINK_RAIL - FR_LINK_CTS + 1));
}

/* Flags that the type may have. */
static uint8_t take_flags(struct input *in, uint8_t type)
{
	uint8_t flags = take(in) & (FR_LINK_F_ACK_NOW | FR_LINK_F_AT);

	return type == FR_LINK_EAGER ? flags : flags & FR_LINK_F_ACK_NOW;
}

static void raw_message(struct input *in)
{
	size_t bytes = (size_t)take_n(in, 2) % (FR_CONN_MAX_BYTES + 1);
	const uint8_t *msg = take_bytes(in, &bytes);

	if (bytes != 0) {
		world_inject(msg, bytes);
	}
}

static void raw_payload(struct input *in)
{
	uint8_t type = take_type(in), flags = take_flags(in, type);
	size_t bytes = (size_t)take_n(in, 2) % 1500;
	const uint8_t *payload = take_bytes(in, &bytes);

	world_say(type, flags, payload, bytes);
}

/* Beside the reliable channel: numbers and ids as the input likes. */
static void raw_header(struct input *in)
{
	uint8_t msg[FR_LINK_HDR_BYTES + 256];
	struct fr_link *link = world_link();
	struct fr_link_hdr hdr = {.type = FR_LINK_PING};
	uint8_t type = take(in), flags = take(in);
	size_t bytes = take(in);
	const uint8_t *payload = take_bytes(in, &bytes);

	if (link == NULL) {
		return;
	}
	hdr.len = (uint16_t)bytes;
	hdr.seq = link->tx_next + take_offset(in);
	hdr.ack = link->rx_next + take_offset(in);
	hdr.dst_set = (uint32_t)world.victim.set->id + take_offset(in);
	hdr.src_set = world.hostile.set->id + take_offset(in);
	fr_link_hdr_encode(&hdr, msg);
	msg[0] = (uint8_t)(FR_LINK_ACK + type % 16);
	msg[1] = flags;
	spoil(in, msg, FR_LINK_HDR_BYTES);
	memcpy(msg + FR_LINK_HDR_BYTES, payload, bytes);
	world_inject(msg, FR_LINK_HDR_BYTES + bytes);
}

static void say_cts(struct input *in)
{
	uint8_t buf[FUZZ_MAX];
	struct fr_cts m = {.comm = world.bad_out.send->id,
			   .nonce = world.bad_out.send->nonce};
	uint32_t next = world.bad_out.send->tx.known;
	int n;

	m.first32 = next + take_offset(in);
	m.prev32 = m.first32 + take_offset(in);
	m.done32 = next + take_offset(in);
	m.comm += take_offset(in);
	m.nonce += take_offset(in);
	m.entry_cnt = take(in) % (FR_CTS_MAX_ENTRIES + 1);
	m.key_cnt = m.entry_cnt == 0 ? 0 : (uint8_t)world.hostile.set->rail_cnt;
	for (unsigned i = 0; i < m.entry_cnt; i++) {
		m.entries[i].tag = (int8_t)take(in);
		m.entries[i].group = take(in);
		m.entries[i].index = take(in);
		m.entries[i].len = take_size(in);
		m.entries[i].addr = take_n(in, 2);
		for (unsigned k = 0; k < m.key_cnt; k++) {
			m.entries[i].keys[k] = take(in);
		}
	}
	n = fr_cts_encode(&m, buf, sizeof(buf));
	if (n > 0) {
		spoil(in, buf, (size_t)n);
		world_say(FR_LINK_CTS, take_flags(in, FR_LINK_CTS), buf,
			  (size_t)n);
	}
}

static void say_eager(struct input *in)
{
	uint8_t buf[FR_EAGER_HDR_BYTES + 8192] = {0};
	struct fr_comm *recv = world.bad_in.recv;
	struct fr_eager m = {0};
	uint8_t flags;

	flags = take_flags(in, FR_LINK_EAGER);
	m.comm = (recv->id + take_offset(in)) & (FR_IMM_COMM_CNT - 1);
	m.nonce = recv->nonce + take_offset(in);
	m.base32 = recv->rx.win.win.base + take_offset(in);
	m.index = recv->rx.eager_next + take_offset(in);
	m.tag = (int8_t)take(in);
	m.len = (uint32_t)FR_MIN(take_size(in), (size_t)8192);
	fr_eager_hdr_encode(&m, buf);
	spoil(in, buf, FR_EAGER_HDR_BYTES);
	world_say(FR_LINK_EAGER, flags, buf, FR_EAGER_HDR_BYTES + m.len);
}

static void say_note(struct input *in)
{
	static const uint8_t types[] = {
		FR_LINK_WANT,	FR_LINK_NACK, FR_LINK_LENGTH, FR_LINK_CLOSE,
		FR_LINK_CLOSED, FR_LINK_PING, FR_LINK_PONG,
	};
	uint8_t buf[64];
	uint8_t type = types[take(in) % FR_ARRAY_LEN(types)];
	const struct fr_comm *comm =
		take(in) & 1 ? world.bad_out.send : world.bad_in.recv;
	struct fr_link_note m = {0};
	int n;

	m.comm = comm->id + take_offset(in);
	m.nonce = comm->nonce + take_offset(in);
	m.seq = comm->is_send ? comm->tx.ordinal : comm->rx.win.win.base;
	m.seq += take_offset(in);
	m.flags = take(in) & 3;
	m.a = take_size(in);
	m.b = take_size(in);
	n = fr_link_note_encode(type, &m, buf, sizeof(buf));
	if (n > 0) {
		spoil(in, buf, (size_t)n);
		world_say(type, take_flags(in, type), buf, (size_t)n);
	}
}

/* Of the peer's writes that are out, or of what became of ours. */
static void say_fence(struct input *in)
{
	static const uint8_t types[] = {FR_LINK_FENCE, FR_LINK_FENCED,
					FR_LINK_RAIL};
	const struct fr_link *link = world.bad_out.send->link;
	uint8_t type = types[take(in) % FR_ARRAY_LEN(types)];
	struct fr_fence m = {.type = type};
	uint8_t buf[FUZZ_MAX];
	int n;

	m.rail = (take(in) & 7) % (uint8_t)world.victim.set->rail_cnt;
	m.inc = type == FR_LINK_FENCE ? world.victim.set->inc[m.rail]
				      : link->path[0].repair.inc;
	m.inc += take_offset(in);
	m.new_inc = m.inc + 1 + take_offset(in);
	m.data = *fr_rail_name(world.hostile.set->rail[0], FR_EP_DATA);
	m.ctrl = *fr_rail_name(world.hostile.set->rail[0], FR_EP_CTRL);
	m.item_cnt = take(in) % 9;
	for (unsigned i = 0; i < m.item_cnt; i++) {
		const struct fr_comm *comm = type == FR_LINK_FENCE
						     ? world.bad_in.recv
						     : world.bad_out.recv;

		m.items[i].comm =
			(comm->id + take_offset(in)) & (FR_IMM_COMM_CNT - 1);
		m.items[i].seq = type == FR_LINK_FENCE
					 ? comm->rx.win.win.base
					 : world.bad_out.send->tx.ordinal;
		m.items[i].seq += take_offset(in);
		m.items[i].value = take_offset(in);
	}
	n = fr_fence_encode(&m, buf, sizeof(buf));
	if (n > 0) {
		spoil(in, buf, (size_t)n);
		world_say(type, take_flags(in, type), buf, (size_t)n);
	}
}

static void say_conn(struct input *in)
{
	uint8_t buf[FR_CONN_MAX_BYTES];
	struct fr_conn_msg msg;
	int n;

	world_describe(take(in) & 1 ? FR_CONN_RESPONSE : FR_CONN_REQUEST, &msg);
	msg.connect_id += take_offset(in);
	msg.comm += take_offset(in) & 0xff;
	n = fr_conn_encode(&msg, buf, sizeof(buf));
	fuzz_check(n > 0);
	spoil(in, buf, (size_t)n);
	world_inject(buf, (size_t)n);
}

/* -- what the peer writes -- */

static uint64_t take_imm(struct input *in)
{
	unsigned bytes = world.victim.set->imm_bytes;
	const struct fr_comm *recv = world.bad_in.recv;
	struct fr_imm imm;
	uint32_t seq;

	if (take(in) == 0xff) {
		return take_n(in, bytes);
	}
	seq = recv->rx.win.win.base + take_offset(in);
	imm = (struct fr_imm){
		.comm = (recv->id + take_offset(in)) & (FR_IMM_COMM_CNT - 1),
		.seq = seq & 0x3ffu,
		.nseg = (uint8_t)(1 + (take(in) & 7)),
		.rkey = fr_imm_grant(world.cts.entries[0].keys[0], seq),
		.len = (uint32_t)FR_MIN(take_size(in), (size_t)FR_IMM_LEN_MAX),
	};
	if (take(in) & 1) {
		imm.len = FR_IMM_LEN_FULL - (take(in) & 1);
	}
	if (bytes == 4) {
		imm.rkey = 0;
		imm.len = FR_IMM_LEN_FULL;
	}
	return fr_imm_pack(&imm, bytes);
}

static void write_imm(struct input *in)
{
	uint64_t imm = take_imm(in);

	(void)fr_fake_inject_imm(
		fr_rail_name(world.victim.set->rail[0], FR_EP_DATA), imm,
		take_size(in));
}

static void write_data(struct input *in)
{
	static const uint8_t junk[128 << 10];
	const struct fr_cts_entry *to =
		&world.cts.entries[take(in) % FR_CTS_MAX_ENTRIES];
	uint64_t imm = take_imm(in);
	uint64_t addr = to->addr + take_offset(in);
	uint64_t key = to->keys[0] + take_offset(in);

	(void)fr_fake_inject_write(
		fr_rail_name(world.victim.set->rail[0], FR_EP_DATA), addr, key,
		junk, FR_MIN(take_size(in), sizeof(junk)), imm);
}

static void break_rail(struct input *in)
{
	uint8_t how = take(in);
	const struct fr_name *name = fr_rail_name(
		world.hostile.set->rail[0], how & 1 ? FR_EP_DATA : FR_EP_CTRL);

	if (how & 2) {
		(void)fr_fake_inject_error(
			fr_rail_name(world.victim.set->rail[0], FR_EP_DATA),
			-ECONNRESET);
	} else {
		fr_fake_break(name);
	}
}

/* -- what the victim and an honest program at the peer do -- */

static void victim_recv(struct input *in)
{
	struct world_pair *pair = &world.bad_in;
	void *data[FR_NET_MAX_GROUP];
	size_t bytes[FR_NET_MAX_GROUP];
	int tags[FR_NET_MAX_GROUP];
	struct fr_net_mr *mrs[FR_NET_MAX_GROUP];
	uint8_t how = take(in);
	bool gpu = world.has_gpu && (how & 0x08) != 0;
	unsigned cnt = 1 + (how & 7);
	struct fr_req *req;

	if (world.req_cnt == WORLD_REQS) {
		return;
	}
	for (unsigned i = 0; i < cnt; i++) {
		bytes[i] = FR_MIN(take_size(in), (size_t)8192);
		data[i] = (gpu ? pair->gpu_dst : pair->dst) + i * 8192;
		tags[i] = (int)i;
		mrs[i] = gpu ? pair->gpu_dst_mr : pair->dst_mr;
	}
	if (fr_net_irecv(pair->recv, cnt, data, bytes, tags, mrs, &req) == 0) {
		world_keep(req);
	}
}

static void victim_send(struct input *in)
{
	struct world_pair *pair = &world.bad_out;
	size_t bytes = FR_MIN(take_size(in), (size_t)WORLD_BUF_BYTES);
	uint8_t how = take(in);
	bool gpu = world.has_gpu && (how & 0x08) != 0;
	struct fr_req *req;

	if (world.req_cnt < WORLD_REQS &&
	    fr_net_isend(pair->send, gpu ? pair->gpu_src : pair->src, bytes,
			 how & 7, gpu ? pair->gpu_src_mr : pair->src_mr,
			 &req) == 0) {
		world_keep(req);
	}
}

static void victim_accept(void)
{
	struct fr_comm *comm;

	if (world.taken_cnt < WORLD_COMMS &&
	    fr_net_accept(world.victim.listen, &comm) == 0) {
		world.taken[world.taken_cnt++] = comm;
	} else if (world.taken_cnt == WORLD_COMMS) {
		fr_net_close_recv(world.taken[--world.taken_cnt]);
	}
}

static void victim_connect(void)
{
	int ret;

	if (world.made != NULL) {
		return;
	}
	world.victim.set->thread = pthread_self();
	ret = fr_net_connect(0, FR_NET_TCLASS_UNSET, world.state, &world.made);
	world.victim.set->thread = 0;
	if (ret != 0 && ret != -EAGAIN) {
		memcpy(world.state, world.hostile.handle, sizeof(world.state));
	}
}

static void move(uint8_t how)
{
	if ((how & 0x08) != 0) {
		world_flush((size_t)1 << (how >> 4));
	}
	world_pass(1 + (how & 7));
	world_test_all();
}

static void step(struct input *in)
{
	switch (take(in) % 16) {
	case 0:
		raw_message(in);
		break;
	case 1:
		raw_payload(in);
		break;
	case 2:
		raw_header(in);
		break;
	case 3:
		say_cts(in);
		break;
	case 4:
		say_eager(in);
		break;
	case 5:
		if (take(in) & 1) {
			say_fence(in);
		} else {
			say_note(in);
		}
		break;
	case 6:
		say_conn(in);
		break;
	case 7:
		write_imm(in);
		break;
	case 8:
		write_data(in);
		break;
	case 9:
		break_rail(in);
		break;
	case 10:
		victim_recv(in);
		break;
	case 11:
		victim_send(in);
		break;
	case 12:
		victim_accept();
		break;
	case 13:
		victim_connect();
		break;
	case 14:
		move(take(in));
		break;
	default:
		world_tick(1 + (take(in) & 15));
		world_test_all();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct input in = {data, bytes};

	world_open(take(&in));
	for (unsigned i = 0; in.left != 0 && i < 200; i++) {
		step(&in);
	}
	world_close();
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	/* clang-format off */
	static const uint8_t program[] = {
		0xa0, /* two rails, GPUs */
		/* to a GPU, early; a flush; from a GPU */
		10, 8, 100, 4, 0, 0, 0, 0, 0, 0, 50, 0, 14, 3,
		14, 0x6b, 11, 64, 9, 14, 2,
		/* receives */
		10, 0, 100, 10, 1, 0x88, 5, 14, 3,
		3, 0, 0, 0, 0, 0, 2, 1, 1, 0, 64, 0, 0, 9, 9,
		2, 1, 0, 0x84, 0, 0, 9, 9, 0, 0, 14, 2, 11, 64, 1,
		/* sends */
		14, 2,
		4, 0, 0, 0, 0, 0, 0, 50, 0, 14, 3, 5, 1, 1, 0,
		0, 0, 0, 0, 0, 0, 0, 14, 3, 6, 0, 0, 0, 0, 12,
		14, 2, 12, 7, 0, 0, 0, 0, 9, 0, 9, 14, 2, 8, 0,
		0, 0, 0, 0, 9, 0, 0, 0, 9, 14, 2, 13, 14, 1, 6,
		1, 0, 0, 0, 14, 2, 13, 15, 3, 9, 0, 15, 9,
	};
	/* clang-format on */

	memcpy(buf, program, sizeof(program));
	return sizeof(program);
}
