/* Messages that go before their receive is known, and any mix of them with the
 * others. */
#include "net/link.h"
#include "net/xfer.h"
#include "unit/net/net_unit.h"

#define MAX_BYTES (1u << 20)
#define LONG 9000u

static struct net_pair *pair, *sister;
static struct net_buf from, to;

static void connected(void)
{
	pair = net_connect(&net_a, &net_b);
	sister = net_connect(&net_a, &net_b);
	net_buf_open(pair->send, MAX_BYTES, &from);
	net_buf_open(pair->recv, MAX_BYTES, &to);
	net_settle();
}

/* -- the model: what is sent, and what must arrive where -- */

#define MODEL_MSGS 220u
#define MODEL_SLOT 4096u /* of from and to, by number modulo MODEL_FLY */
#define MODEL_FLY 128u

static uint32_t model_state;

static uint32_t model_random(uint32_t below)
{
	model_state = model_state * 1664525u + 1013904223u;
	return (model_state >> 8) % below;
}

static size_t model_size(void)
{
	static const size_t limits[] = {2, 100, 1024, 1500, MODEL_SLOT};

	return model_random((uint32_t)limits[model_random(5)] + 1);
}

struct model {
	size_t sent_bytes[MODEL_MSGS], posted_bytes[MODEL_MSGS];
	struct fr_req *send[MODEL_MSGS], *recv[MODEL_MSGS];
	unsigned sent, posted, got; /* [got, posted) wait */
};

static bool model_holds; /* endpoints stand still for a while */

static void model_release(void)
{
	for (unsigned i = 0; i < net_a.set->rail_cnt; i++) {
		for (enum fr_rail_ep ep = FR_EP_DATA; ep <= FR_EP_CTRL; ep++) {
			fr_fake_hold(fr_rail_name(net_a.set->rail[i], ep),
				     false);
			fr_fake_hold(fr_rail_name(net_b.set->rail[i], ep),
				     false);
		}
	}
}

/* Stops, or lets go, one endpoint of either side; all when it takes long. */
static void model_hold(unsigned step)
{
	struct net_side *side = model_random(2) == 0 ? &net_a : &net_b;
	unsigned rail = model_random(side->set->rail_cnt);
	enum fr_rail_ep ep = model_random(2) == 0 ? FR_EP_DATA : FR_EP_CTRL;
	bool on = model_random(2) == 0;

	if (!model_holds || step % 50 != 0) {
		return;
	}
	if (step < NET_STEPS / 2) {
		fr_fake_hold(fr_rail_name(side->set->rail[rail], ep), on);
	} else {
		model_release();
	}
}

static void model_post(struct model *m)
{
	struct net_buf part = to;
	unsigned n = m->posted;

	if (n == MODEL_MSGS || n - m->got >= MODEL_FLY) {
		return;
	}
	part.mem += n % MODEL_FLY * (size_t)MODEL_SLOT;
	ck_assert_int_eq(net_try_recv(&part, m->posted_bytes[n], &m->recv[n]),
			 0);
	m->posted += m->recv[n] != NULL;
}

static void model_send(struct model *m)
{
	struct net_buf part = from;
	unsigned n = m->sent;

	if (n == MODEL_MSGS || n - m->got >= MODEL_FLY) {
		return;
	}
	part.mem += n % MODEL_FLY * (size_t)MODEL_SLOT;
	net_fill(part.mem, m->sent_bytes[n], n);
	ck_assert_int_eq(net_try_send(&part, m->sent_bytes[n], &m->send[n]), 0);
	m->sent += m->send[n] != NULL;
}

static void model_test(struct model *m)
{
	size_t bytes;
	bool done;

	for (unsigned i = m->got; i < m->sent; i++) {
		if (m->send[i] != NULL) {
			ck_assert_int_eq(fr_net_test(m->send[i], &done, NULL),
					 0);
			m->send[i] = done ? NULL : m->send[i];
		}
	}
	while (m->got < m->posted && m->got < m->sent &&
	       m->send[m->got] == NULL) {
		ck_assert_int_eq(fr_net_test(m->recv[m->got], &done, &bytes),
				 0);
		if (!done) {
			return;
		}
		ck_assert_uint_eq(bytes, m->sent_bytes[m->got]);
		ck_assert(net_is_filled(to.mem + m->got % MODEL_FLY *
							 (size_t)MODEL_SLOT,
					bytes, m->got));
		m->got++;
	}
}

static void model_run(uint32_t seed)
{
	static struct model m;

	memset(&m, 0, sizeof(m));
	model_state = seed;
	fr_fake_seed(seed);
	for (unsigned i = 0; i < MODEL_MSGS; i++) {
		m.posted_bytes[i] = model_size();
		m.sent_bytes[i] =
			model_random(3) == 0
				? m.posted_bytes[i]
				: model_random((uint32_t)m.posted_bytes[i] + 1);
	}
	for (unsigned step = 0; m.got < MODEL_MSGS; step++) {
		ck_assert_msg(step < NET_STEPS, "seed %u: %u sent, %u got",
			      seed, m.sent, m.got);
		model_hold(step);
		/* Now the one side is ahead, now the other. */
		switch (model_random(8)) {
		case 0:
		case 1:
			if (step / 64 % 3 != 0 || model_random(8) == 0) {
				model_post(&m);
			}
			break;
		case 2:
		case 3:
			if (step / 64 % 3 != 1 || model_random(8) == 0) {
				model_send(&m);
			}
			break;
		case 4:
			net_pass_of(&net_a);
			break;
		case 5:
			net_pass_of(&net_b);
			break;
		case 6:
			model_test(&m);
			break;
		default:
			if (model_random(40) == 0) {
				net_tick(1);
			}
			break;
		}
	}
	model_release();
}

static void unruly(void)
{
	model_holds = true;
	fr_fake_shuffle(true);
	fr_fake_unordered(true);
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_SEND,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .percent = 20});
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_WRITE,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .percent = 20});
}

START_TEST(any_mix_of_messages_meets_its_receives)
{
	connected();
	for (unsigned seed = 1; seed < 4; seed++) {
		model_run(1000u * (unsigned)_i + seed);
	}
	unruly();
	for (unsigned seed = 4; seed < 9; seed++) {
		model_run(1000u * (unsigned)_i + seed);
	}
}
END_TEST

/* Groups: of each tag the n-th message meets the n-th receive. */
#define TAGS 4u
#define ROUNDS 60u
#define GROUP_FLY 8u /* groups */

struct groups {
	struct fr_req *group[ROUNDS];
	struct fr_req *send[ROUNDS][TAGS];
	size_t bytes[ROUNDS][TAGS];
	unsigned posted, got, sent[TAGS];
};

static uint8_t *group_place(const struct net_buf *buf, unsigned round,
			    unsigned tag)
{
	return buf->mem + (round % GROUP_FLY * TAGS + tag) * (size_t)MODEL_SLOT;
}

static void groups_post(struct groups *g)
{
	unsigned n = g->posted;
	struct fr_net_mr *mrs[TAGS];
	size_t bytes[TAGS];
	void *data[TAGS];
	int tags[TAGS];

	if (n == ROUNDS || n - g->got >= GROUP_FLY) {
		return;
	}
	for (unsigned t = 0; t < TAGS; t++) {
		data[t] = group_place(&to, n, t);
		bytes[t] = MODEL_SLOT;
		tags[t] = (int)t;
		mrs[t] = to.mr;
	}
	ck_assert_int_eq(fr_net_irecv(pair->recv, TAGS, data, bytes, tags, mrs,
				      &g->group[n]),
			 0);
	g->posted += g->group[n] != NULL;
}

static void groups_send(struct groups *g)
{
	unsigned t = model_random(TAGS);
	unsigned n = g->sent[t];

	if (n == ROUNDS || n - g->got >= GROUP_FLY) {
		return;
	}
	net_fill(group_place(&from, n, t), g->bytes[n][t], n * TAGS + t);
	ck_assert_int_eq(fr_net_isend(pair->send, group_place(&from, n, t),
				      g->bytes[n][t], (int)t, from.mr,
				      &g->send[n][t]),
			 0);
	g->sent[t] += g->send[n][t] != NULL;
}

static void groups_test(struct groups *g)
{
	size_t sizes[TAGS];
	bool done = true;

	for (unsigned t = 0; t < TAGS; t++) {
		for (unsigned n = g->got; n < g->sent[t]; n++) {
			if (g->send[n][t] != NULL) {
				ck_assert_int_eq(
					fr_net_test(g->send[n][t], &done, NULL),
					0);
				g->send[n][t] = done ? NULL : g->send[n][t];
			}
		}
	}
	for (unsigned t = 0; t < TAGS; t++) {
		if (g->sent[t] <= g->got || g->send[g->got][t] != NULL) {
			return;
		}
	}
	if (g->got == g->posted) {
		return;
	}
	ck_assert_int_eq(fr_net_test(g->group[g->got], &done, sizes), 0);
	for (unsigned t = 0; done && t < TAGS; t++) {
		ck_assert_uint_eq(sizes[t], g->bytes[g->got][t]);
		ck_assert(net_is_filled(group_place(&to, g->got, t), sizes[t],
					g->got * TAGS + t));
	}
	g->got += done;
}

static void groups_run(uint32_t seed)
{
	static struct groups g;

	memset(&g, 0, sizeof(g));
	model_state = seed;
	fr_fake_seed(seed);
	for (unsigned i = 0; i < ROUNDS * TAGS; i++) {
		g.bytes[i / TAGS][i % TAGS] = model_size();
	}
	for (unsigned step = 0; g.got < ROUNDS; step++) {
		ck_assert_msg(step < NET_STEPS, "seed %u: %u groups got", seed,
			      g.got);
		model_hold(step);
		switch (model_random(7)) {
		case 0:
			groups_post(&g);
			break;
		case 1:
		case 2:
			groups_send(&g);
			break;
		case 3:
			net_pass_of(&net_a);
			break;
		case 4:
			net_pass_of(&net_b);
			break;
		case 5:
			groups_test(&g);
			break;
		default:
			if (model_random(40) == 0) {
				net_tick(1);
			}
			break;
		}
	}
	model_release();
}

START_TEST(any_mix_of_tags_meets_its_groups)
{
	connected();
	for (unsigned seed = 1; seed < 4; seed++) {
		groups_run(1000u * (unsigned)_i + seed);
	}
	unruly();
	for (unsigned seed = 4; seed < 9; seed++) {
		groups_run(1000u * (unsigned)_i + seed);
	}
}
END_TEST

/* -- one by one -- */

START_TEST(a_send_is_done_before_its_receive_exists)
{
	struct fr_req *send, *recv;
	bool done = false;

	connected();
	net_fill(from.mem, 8192, 4);
	send = net_isend(&from, 8192);
	ck_assert_int_eq(fr_net_test(send, &done, NULL), 0);
	ck_assert(done);
	net_settle();
	memset(from.mem, 0, 8192); /* it is the caller's again */
	recv = net_irecv(&to, LONG);
	ck_assert_int_eq(net_wait(recv, NULL), 0);
	ck_assert(net_is_filled(to.mem, 8192, 4));
	ck_assert_uint_eq(net_wire.seen[FR_LINK_EAGER], 1);
	ck_assert_uint_eq(net_wire.writes, 0);
}
END_TEST

START_TEST(sixty_four_may_be_ahead)
{
	struct fr_req *req;

	connected();
	for (unsigned i = 0; i < FR_COMM_EAGER_AHEAD; i++) {
		net_fill(from.mem, 100, i);
		ck_assert_int_eq(net_wait(net_isend(&from, 100), NULL), 0);
		net_settle();
	}
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_int_eq(net_try_send(&from, 100, &req), 0);
		ck_assert_ptr_null(req);
		net_pass();
	}
	for (unsigned i = 0; i < FR_COMM_EAGER_AHEAD; i++) {
		ck_assert_int_eq(net_wait(net_irecv(&to, 100), NULL), 0);
		ck_assert(net_is_filled(to.mem, 100, i));
	}
	net_exchange(&from, &to, 100, 77);
	ck_assert_uint_eq(pair->recv->rx.eager_held, 0);
}
END_TEST

START_TEST(held_messages_end_with_their_comm)
{
	connected();
	for (unsigned i = 0; i < 20; i++) {
		net_wait(net_isend(&from, i * 100), NULL);
	}
	net_settle();
	ck_assert_uint_eq(pair->recv->rx.eager_held, 20);
	net_hangup(pair);
	net_settle();
	net_assert_works(sister);
}
END_TEST

START_TEST(a_known_receive_is_named)
{
	struct fr_req *recv[2];
	struct fr_link_hdr hdr;
	const uint8_t *msg;
	const char *why;
	size_t bytes;

	connected();
	recv[0] = net_irecv(&to, LONG);
	recv[1] = net_irecv(&to, LONG);
	NET_UNTIL(pair->send->tx.known == 2);
	for (unsigned i = 0; i < 2; i++) {
		struct fr_eager eager;
		const uint8_t *payload;

		ck_assert_int_eq(net_wait(net_isend(&from, 10), NULL), 0);
		msg = net_last(FR_LINK_EAGER, &bytes);
		ck_assert_int_eq(fr_link_hdr_decode(&hdr, msg, bytes, &why), 0);
		ck_assert_uint_eq(hdr.flags & FR_LINK_F_AT, FR_LINK_F_AT);
		ck_assert_int_eq(fr_eager_decode(&eager,
						 msg + FR_LINK_HDR_BYTES,
						 hdr.len, &payload, &why),
				 0);
		ck_assert_uint_eq(eager.base32, i);
		ck_assert_int_eq(net_wait(recv[i], NULL), 0);
	}
	ck_assert_uint_eq(pair->send->tx.eager_next, 0);
}
END_TEST

START_TEST(a_message_that_comes_twice_is_delivered_once)
{
	connected();
	net_wire.twice[FR_LINK_EAGER] = 1000;
	net_wire.twice[FR_LINK_CTS] = 1000;
	for (unsigned i = 0; i < 20; i++) {
		net_exchange(&from, &to, 10 + i, i);
		net_exchange(&from, &to, LONG, i);
	}
	ck_assert_uint_eq(pair->recv->rx.completed, 40);
}
END_TEST

START_TEST(no_more_than_a_part_of_the_link_is_early_messages)
{
	struct fr_req *req = NULL;
	const struct fr_name *ctrl =
		fr_rail_name(net_b.set->rail[0], FR_EP_CTRL);
	struct fr_link *link;

	connected();
	link = pair->send->link;
	fr_fake_hold(ctrl, true);
	fr_fake_hold(fr_rail_name(net_b.set->rail[1], FR_EP_CTRL), true);
	for (unsigned i = 0; i < FR_LINK_EAGER_MAX; i++) {
		ck_assert_int_eq(net_try_send(&from, 10, &req), 0);
		ck_assert_ptr_nonnull(req);
		ck_assert_int_eq(net_wait(req, NULL), 0);
	}
	ck_assert_int_eq(net_try_send(&from, 10, &req), 0);
	ck_assert_ptr_null(req);
	ck_assert(fr_link_has_room(link, FR_LINK_WINDOW));
	fr_fake_hold(ctrl, false);
	fr_fake_hold(fr_rail_name(net_b.set->rail[1], FR_EP_CTRL), false);
	net_settle();
	ck_assert_int_eq(net_try_send(&from, 10, &req), 0);
	ck_assert_ptr_nonnull(req);
	ck_assert_int_eq(net_wait(req, NULL), 0);
	for (unsigned i = 0; i <= FR_LINK_EAGER_MAX; i++) {
		ck_assert_int_eq(net_wait(net_irecv(&to, 10), NULL), 0);
	}
}
END_TEST

/* -- strange ones -- */

static struct fr_eager right_eager(void)
{
	struct fr_eager eager = {
		.comm = pair->recv->id,
		.nonce = pair->recv->nonce,
		.len = 4,
	};

	return eager;
}

static void say_eager(const struct fr_eager *eager, uint8_t flags)
{
	uint8_t buf[FR_EAGER_HDR_BYTES + 64] = {0};

	fr_eager_hdr_encode(eager, buf);
	memcpy(buf + FR_EAGER_HDR_BYTES, "evil", 4);
	net_say(pair->send->link, FR_LINK_EAGER, flags, buf,
		FR_EAGER_HDR_BYTES + 4);
	NET_UNTIL_IN_TIME(net_is_quiet() || pair->recv->link->err != 0);
}

START_TEST(an_early_message_for_a_foreign_comm_is_ignored)
{
	struct fr_eager eager;

	connected();
	eager = right_eager();
	eager.nonce ^= 4;
	say_eager(&eager, 0);
	eager = right_eager();
	eager.comm = 5000;
	say_eager(&eager, 0);
	ck_assert_uint_eq(pair->recv->rx.eager_next, 0);
	net_assert_works(pair);
	net_assert_works(sister);
}
END_TEST

/* The loop index: what is wrong with it. */
START_TEST(an_early_message_that_cannot_be_ends_its_link_and_no_other)
{
	struct fr_eager eager;
	struct net_pair *other;
	struct fr_req *req;
	uint8_t flags = 0;

	connected();
	net_side_open(&net_c);
	other = net_connect(&net_c, &net_b);
	net_wait(net_isend(&from, 4), NULL);
	net_settle();
	net_expect("is lost: it sent");
	eager = right_eager();
	switch (_i) {
	case 0: /* a number that came before */
		break;
	case 1:
		eager.index = FR_COMM_EAGER_AHEAD;
		break;
	case 2: /* a receive that nobody posted */
		flags = FR_LINK_F_AT;
		eager.base32 = 9;
		break;
	default:
		eager.len = 5;
		eager.index = 1;
		break;
	}
	say_eager(&eager, flags);
	ck_assert_int_eq(pair->recv->link->err, -EPROTO);
	ck_assert_int_eq(net_try_recv(&to, 10, &req), 0);
	ck_assert_int_eq(net_wait(req, NULL), 0); /* what was right before */
	ck_assert_int_eq(net_try_recv(&to, 10, &req), -EPROTO);
	net_assert_works(other);
	net_forsake(&net_a);
}
END_TEST

START_TEST(a_receiver_without_memory_for_early_messages_gives_up_its_link)
{
	struct fr_req *req;

	connected();
	net_expect("out of memory for its early messages");
	net_wait(net_isend(&from, 100), NULL);
	fr_fault_alloc_at(1);
	net_pass_of(&net_b);
	fr_fault_alloc_at(0);
	ck_assert_int_eq(net_try_recv(&to, 100, &req), -ECONNRESET);
	net_forsake(&net_a);
}
END_TEST

static void empty_only(void)
{
	net_init();
	setenv("OFI_NCCL_EAGER_MAX_SIZE", "0", 1);
	net_open();
}

START_TEST(with_a_limit_of_0_no_byte_goes_early)
{
	struct fr_req *req;

	connected();
	ck_assert_int_eq(net_try_send(&from, 1, &req), 0);
	ck_assert_ptr_null(req);
	net_exchange(&from, &to, 1, 2);
	net_exchange(&from, &to, 0, 2);
	ck_assert_uint_eq(net_wire.writes, 2);
}
END_TEST

int main(void)
{
	TCase *cases[NET_SHAPES + 2];
	unsigned cnt = 0;
	TCase *tc;

	for (; cnt < NET_SHAPES; cnt++) {
		tc = net_case(net_shapes[cnt].name, net_shapes[cnt].setup);
		tcase_add_loop_test(tc, any_mix_of_messages_meets_its_receives,
				    0, 2);
		tcase_add_loop_test(tc, any_mix_of_tags_meets_its_groups, 0, 2);
		cases[cnt] = tc;
	}
	tc = net_case("eager", net_setup);
	tcase_add_test(tc, a_send_is_done_before_its_receive_exists);
	tcase_add_test(tc, sixty_four_may_be_ahead);
	tcase_add_test(tc, held_messages_end_with_their_comm);
	tcase_add_test(tc, a_known_receive_is_named);
	tcase_add_test(tc, a_message_that_comes_twice_is_delivered_once);
	tcase_add_test(tc, no_more_than_a_part_of_the_link_is_early_messages);
	tcase_add_test(tc, an_early_message_for_a_foreign_comm_is_ignored);
	tcase_add_loop_test(
		tc, an_early_message_that_cannot_be_ends_its_link_and_no_other,
		0, 4);
	tcase_add_test(
		tc,
		a_receiver_without_memory_for_early_messages_gives_up_its_link);
	cases[cnt++] = tc;
	tc = net_case("limit 0", empty_only);
	tcase_add_test(tc, with_a_limit_of_0_no_byte_goes_early);
	cases[cnt++] = tc;
	return net_main("eager", cases, cnt);
}
