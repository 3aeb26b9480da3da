/* Messages from and to memory of GPUs. Whoever touches such memory with the CPU
 * ends the test. */
#include "unit/net/net_unit.h"

#include <unistd.h>

#include "fake/fake_clock.h"
#include "fake/fake_gpu.h"
#include "net/gpu.h"

#define LONG (400u * 1024u)

static struct net_pair *pair;
static struct net_buf from, to;

static void gpu_open(void)
{
	net_init();
	net_has_gpu = true;
	net_open();
}

/* Where the messages of a pair come from and go to: one of three ways. */
enum way { TO_GPU, FROM_GPU, BOTH_GPU, WAYS };

static void connect_with(enum way way, size_t bytes)
{
	pair = net_connect(&net_a, &net_b);
	if (way == TO_GPU) {
		net_buf_open(pair->send, bytes, &from);
	} else {
		net_gpu_open(pair->send, bytes, &from);
	}
	if (way == FROM_GPU) {
		net_buf_open(pair->recv, bytes, &to);
	} else {
		net_gpu_open(pair->recv, bytes, &to);
	}
}

/* The loop index is a shape and a way. */
static void connect_shape(int index)
{
	net_has_gpu = true;
	net_shapes[index / WAYS].setup();
	connect_with((enum way)(index % WAYS), LONG);
}

static const size_t sizes[] = {0,    1,	   64,	 1023,	 1024,	 1025,
			       8191, 8192, 8193, 131072, 131073, LONG};

static void assert_no_eager(int index, size_t bytes)
{
	if (index % WAYS != TO_GPU && bytes != 0) {
		ck_assert_uint_eq(net_wire.seen[FR_LINK_EAGER], 0);
	}
}

START_TEST(a_message_of_any_size_comes_from_or_goes_to_a_gpu)
{
	connect_shape(_i);
	for (unsigned i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		memset(&net_wire, 0, sizeof(net_wire));
		net_exchange(&from, &to, sizes[i], i);
		assert_no_eager(_i, sizes[i]);
	}
}
END_TEST

/* The sender begins. Short ones from the host go at once, and find no receive.
 */
START_TEST(a_message_that_comes_early_gets_there)
{
	struct fr_req *send = NULL, *recv;
	size_t got;

	connect_shape(_i);
	for (unsigned i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		memset(&net_wire, 0, sizeof(net_wire));
		net_fill(from.mem, sizes[i], i);
		ck_assert_int_eq(net_try_send(&from, sizes[i], &send), 0);
		net_settle();
		recv = net_irecv(&to, LONG);
		if (send == NULL) {
			send = net_isend(&from, sizes[i]);
		}
		ck_assert_int_eq(net_wait(recv, &got), 0);
		ck_assert_uint_eq(got, sizes[i]);
		ck_assert(net_is_filled(to.mem, sizes[i], i));
		ck_assert_int_eq(net_wait(send, NULL), 0);
		assert_no_eager(_i, sizes[i]);
	}
}
END_TEST

/* They are many, of changing size, and each finds its receive. */
START_TEST(early_messages_keep_their_order)
{
	enum { CNT = 40, ROOM = 8192 };
	struct fr_req *send[CNT], *recv[CNT];
	struct net_buf bufs[CNT];
	size_t got;

	net_has_gpu = true;
	net_shapes[_i].setup();
	connect_with(TO_GPU, CNT * ROOM);
	if (pair->send->link->eager_max == 0) {
		return; /* nothing is early here */
	}
	for (unsigned i = 0; i < CNT; i++) {
		size_t bytes = 1 + i * 200;

		net_fill(from.mem, bytes, i);
		send[i] = net_isend(&from, bytes);
		ck_assert_int_eq(net_wait(send[i], NULL), 0);
	}
	for (unsigned i = 0; i < CNT; i++) {
		bufs[i] = to;
		bufs[i].mem += (size_t)i * ROOM;
		recv[i] = net_irecv(&bufs[i], ROOM);
	}
	for (unsigned i = 0; i < CNT; i++) {
		ck_assert_int_eq(net_wait(recv[i], &got), 0);
		ck_assert_uint_eq(got, 1 + i * 200);
		ck_assert(net_is_filled(bufs[i].mem, got, i));
	}
	ck_assert_uint_eq(net_wire.own_writes, CNT);
	ck_assert_uint_eq(pair->recv->rx.copying, 0);
}
END_TEST

/* No time passes: what only a timer would do is not done. The receive is so
 * short that it is not announced; it is posted first, or is not yet when the
 * sender asks. */
START_TEST(a_short_message_from_a_gpu_asks_at_once_for_a_place)
{
	struct fr_req *recv = NULL, *send = NULL;

	connect_with(FROM_GPU, 4096);
	fr_fake_clock_freeze(true);
	for (unsigned i = 0; i < 10; i++) {
		net_wire.seen[FR_LINK_WANT] = 0;
		net_fill(from.mem, 100, i);
		if (_i == 0) {
			recv = net_irecv(&to, 100);
			net_settle();
		}
		ck_assert_int_eq(net_try_send(&from, 100, &send), 0);
		net_settle();
		ck_assert_int_eq(net_try_send(&from, 100, &send), 0);
		net_settle();
		if (_i == 1) {
			recv = net_irecv(&to, 100);
		}
		if (send == NULL) {
			send = net_isend(&from, 100);
		}
		ck_assert_int_eq(net_wait(send, NULL), 0);
		ck_assert_int_eq(net_wait(recv, NULL), 0);
		ck_assert(net_is_filled(to.mem, 100, i));
		ck_assert_uint_eq(net_wire.seen[FR_LINK_WANT], 1);
		ck_assert_uint_eq(net_wire.seen[FR_LINK_EAGER], 0);
	}
}
END_TEST

/* A group of three, the middle one in the host's memory; all come early. */
START_TEST(groups_mix_both_kinds_of_memory)
{
	struct net_buf part[3];
	struct fr_net_mr *mrs[3];
	struct fr_req *recv = NULL, *send;
	void *data[3];
	size_t bytes[3] = {500, 500, 500}, got[3];
	const int tags[3] = {7, 8, 9};

	connect_with(TO_GPU, 4096);
	for (unsigned i = 0; i < 3; i++) {
		net_fill(from.mem, 100 + i, 20 + i);
		send = NULL;
		ck_assert_int_eq(fr_net_isend(pair->send, from.mem, 100 + i,
					      tags[2 - i], from.mr, &send),
				 0);
		ck_assert_ptr_nonnull(send);
		ck_assert_int_eq(net_wait(send, NULL), 0);
		if (i == 1) {
			net_buf_open(pair->recv, 500, &part[i]);
		} else {
			net_gpu_open(pair->recv, 500, &part[i]);
		}
		data[i] = part[i].mem;
		mrs[i] = part[i].mr;
	}
	net_settle();
	ck_assert_int_eq(
		fr_net_irecv(pair->recv, 3, data, bytes, tags, mrs, &recv), 0);
	ck_assert_int_eq(net_wait(recv, got), 0);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(got[i], 102 - i);
		ck_assert(net_is_filled(part[i].mem, got[i], 22 - i));
	}
	ck_assert_uint_eq(net_wire.own_writes, 2);
}
END_TEST

START_TEST(a_rail_that_is_full_takes_it_later)
{
	struct fr_req *recv;
	size_t got;

	connect_with(TO_GPU, 4096);
	net_fill(from.mem, 1000, 5);
	net_wait(net_isend(&from, 1000), NULL);
	net_settle();
	fr_fake_again(FR_FAKE_WRITE, FR_FAKE_FOREVER);
	recv = net_irecv(&to, 4096);
	net_assert_pending(recv);
	ck_assert(net_is_all(to.mem, 1000, 0));
	fr_fake_fault_clear();
	ck_assert_int_eq(net_wait(recv, &got), 0);
	ck_assert_uint_eq(got, 1000);
	ck_assert(net_is_filled(to.mem, 1000, 5));
}
END_TEST

/* Those behind it, which another rail takes, get there. */
START_TEST(a_rail_that_refuses_for_good_fails_its_receive)
{
	struct fr_req *recv[4];
	size_t got;

	connect_with(TO_GPU, 4096);
	for (unsigned i = 0; i < 4; i++) {
		net_fill(from.mem, 1000, 5);
		net_wait(net_isend(&from, 1000), NULL);
	}
	net_settle();
	net_expect("cannot be written to the GPU: rail 0 takes no");
	fr_fake_fault(&(struct fr_fake_fault){.call = FR_FAKE_WRITE,
					      .err = -EAGAIN,
					      .cnt = FR_FAKE_FOREVER,
					      .rails = 1u << 0});
	for (unsigned i = 0; i < 4; i++) {
		recv[i] = net_irecv(&to, 4096);
	}
	net_tick(90);
	net_assert_pending(recv[0]);
	net_tick(20);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(net_wait(recv[i], &got), i % 2 ? 0 : -EIO);
	}
	ck_assert_uint_eq(pair->recv->rx.copying, 0);
	ck_assert(net_is_filled(to.mem, 1000, 5));
	ck_assert_uint_eq(net_logged("cannot be written to the GPU"), 2);
}
END_TEST

/* Refused at once, or cut on the way. */
START_TEST(a_rail_that_fails_fails_its_receive)
{
	struct fr_req *recv;

	connect_with(TO_GPU, 4096);
	net_wait(net_isend(&from, 1000), NULL);
	net_settle();
	net_expect("cannot be written to the GPU");
	fr_fake_fail_at(_i == 0 ? FR_FAKE_WRITE : FR_FAKE_WRITE_DONE, 1, -EIO);
	recv = net_irecv(&to, 4096);
	ck_assert_int_eq(net_wait(recv, NULL), -EIO);
	ck_assert_uint_eq(pair->recv->rx.copying, 0);
	ck_assert(net_is_all(to.mem, 1000, 0));
	ck_assert_uint_eq(net_logged("cannot be written to the GPU"), 1);
}
END_TEST

START_TEST(what_came_outlives_its_sender)
{
	struct fr_req *recv;
	size_t got;

	connect_with(TO_GPU, 4096);
	net_fill(from.mem, 700, 6);
	net_wait(net_isend(&from, 700), NULL);
	net_settle();
	net_expect("is lost");
	net_fail_link(pair->recv->link);
	fr_fake_again(FR_FAKE_WRITE, 3);
	recv = net_irecv(&to, 4096);
	ck_assert_int_eq(net_wait(recv, &got), 0);
	ck_assert_uint_eq(got, 700);
	ck_assert(net_is_filled(to.mem, 700, 6));
	ck_assert_int_eq(net_try_recv(&to, 100, &recv), -ECONNRESET);
}
END_TEST

START_TEST(a_message_that_is_too_long_touches_nothing)
{
	struct fr_req *recv;
	uint8_t *behind;

	connect_with(TO_GPU, 8192);
	net_fill(from.mem, 5000, 7);
	net_wait(net_isend(&from, 5000), NULL);
	net_settle();
	net_expect("the send has 5000 bytes, its receive only 4096");
	net_expect("a send has 5000 bytes");
	recv = net_irecv(&to, 4096);
	ck_assert_int_eq(net_wait(recv, NULL), -EMSGSIZE);
	behind = fake_gpu_alias(to.mem);
	ck_assert(net_is_all(behind, 8192, 0));
	net_settle();
}
END_TEST

/* While it is under way: nothing may touch the memory behind deregMr. */
START_TEST(memory_is_let_go_when_nothing_flies_there)
{
	const struct fr_name *own;
	struct fr_req *recv;
	struct net_buf freed;

	connect_with(TO_GPU, 4096);
	net_fill(from.mem, 700, 8);
	net_wait(net_isend(&from, 700), NULL);
	net_settle();
	own = fr_rail_name(net_b.set->rail[0], FR_EP_DATA);
	fr_fake_hold(own, true);
	recv = net_irecv(&to, 4096);
	net_pass();
	ck_assert_uint_eq(to.mr->flying, 1);
	freed = to;
	if (_i == 0) {
		/* It never ends: the endpoints are fenced. */
		net_expect("endpoints fenced");
		net_expect("is lost");
		ck_assert_int_eq(fr_net_dereg_mr(to.comm, to.mr), 0);
		ck_assert_int_ne(net_b.set->dead, 0);
		fr_fake_hold(own, false);
		ck_assert_int_eq(net_wait(recv, NULL), -ECONNRESET);
		ck_assert(net_is_all(freed.mem, 700, 0));
		return;
	}
	/* It ends while deregMr waits for it. */
	fr_fake_hold(own, false);
	ck_assert_int_eq(fr_net_dereg_mr(to.comm, to.mr), 0);
	ck_assert_int_eq(net_b.set->dead, 0);
	ck_assert(net_is_filled(freed.mem, 700, 8));
	ck_assert_int_eq(net_wait(recv, NULL), 0);
}
END_TEST

/* Not posted yet when the comm goes: it is dropped. */
START_TEST(a_comm_takes_along_what_waits_for_a_rail)
{
	connect_with(TO_GPU, 4096);
	net_wait(net_isend(&from, 700), NULL);
	net_settle();
	fr_fake_again(FR_FAKE_WRITE, FR_FAKE_FOREVER);
	ck_assert_ptr_nonnull(net_irecv(&to, 4096));
	net_pass();
	ck_assert(fr_gpu_owes(net_b.set));
	net_expect("endpoints fenced");
	net_expect("is lost");
	net_close_recv(pair);
	net_pass();
	if (net_b.set->dead == 0) {
		ck_assert(!fr_gpu_owes(net_b.set));
	}
}
END_TEST

START_TEST(host_memory_is_not_taken_for_a_gpus)
{
	static char on_host[4096];
	struct fr_net_mr *mr = NET_UNTOUCHED;

	pair = net_connect(&net_a, &net_b);
	net_expect("no memory of a GPU");
	net_expect("no descriptor");
	ck_assert_int_eq(
		fr_net_reg_mr(pair->recv, on_host, 4096, FR_MEM_GPU, &mr),
		-EINVAL);
	ck_assert_int_eq(
		fr_net_reg_dmabuf(pair->recv, on_host, 4096, 0, -1, &mr),
		-EBADF);
	ck_assert_ptr_eq(mr, NET_UNTOUCHED);
	ck_assert_int_eq(
		fr_net_reg_mr(pair->recv, on_host, 4096, FR_MEM_HOST, &mr), 0);
	ck_assert_int_eq(fr_net_dereg_mr(pair->recv, mr), 0);
	/* Of no bytes there is nothing to look at. */
	ck_assert_int_eq(fr_net_reg_mr(pair->recv, NULL, 0, FR_MEM_GPU, &mr),
			 0);
	ck_assert_int_eq(fr_net_dereg_mr(pair->recv, mr), 0);
}
END_TEST

START_TEST(a_device_without_gpus_refuses_their_memory)
{
	struct fr_net_mr *mr = NET_UNTOUCHED;
	struct fr_net_props props;
	void *mem = fake_gpu_alloc(4096, 0);
	int fd = fake_gpu_export(mem);

	net_conf.nics[1].gpu = _i == 0;
	net_conf.nics[1].gpu_dmabuf = _i == 0;
	net_conf.nics[0].gpu = _i == 1;
	net_conf.nics[0].gpu_dmabuf = _i == 2;
	net_has_gpu = false;
	net_open();
	ck_assert_int_eq(fr_net_device_props(0, &props), 0);
	ck_assert(!props.gpu && !props.gpu_dmabuf);
	pair = net_connect(&net_a, &net_b);
	net_expect("no memory of a GPU here");
	ck_assert_int_eq(fr_net_reg_mr(pair->recv, mem, 4096, FR_MEM_GPU, &mr),
			 -EOPNOTSUPP);
	ck_assert_int_eq(fr_net_reg_dmabuf(pair->recv, mem, 4096, 0, fd, &mr),
			 -EOPNOTSUPP);
	ck_assert_ptr_eq(mr, NET_UNTOUCHED);
	net_assert_works(pair);
	close(fd);
	fake_gpu_free(mem);
}
END_TEST

START_TEST(a_dmabuf_serves_like_its_address)
{
	struct fr_net_mr *mr = NULL;
	struct fr_net_props props;
	int fd;

	ck_assert_int_eq(fr_net_device_props(0, &props), 0);
	ck_assert(props.gpu && props.gpu_dmabuf);
	connect_with(TO_GPU, LONG);
	fd = fake_gpu_export(to.mem);
	ck_assert_int_eq(
		fr_net_reg_dmabuf(pair->recv, to.mem, LONG, 0, fd, &mr), 0);
	close(fd); /* as the host does it */
	ck_assert_int_eq(fr_net_dereg_mr(to.comm, to.mr), 0);
	to.mr = mr;
	net_exchange(&from, &to, LONG, 9);
	net_exchange(&from, &to, 100, 10);
}
END_TEST

START_TEST(the_first_registration_leaks_nothing_wherever_it_fails)
{
	void *mem = fake_gpu_alloc(4096, 0);
	struct fr_net_mr *mr = NET_UNTOUCHED;
	unsigned nth = 0, before;
	bool made = false;
	int ret;

	pair = net_connect(&net_a, &net_b);
	before = fr_live_allocs();
	net_expect("registration of");
	do {
		ck_assert_ptr_eq(mr, NET_UNTOUCHED);
		ck_assert_uint_eq(fr_live_allocs(), before);
		ck_assert_uint_lt(++nth, NET_FAULTS);
		if (_i == 0) {
			fr_fault_alloc_at(nth);
		} else {
			fr_fake_fault_clear();
			fr_fake_fail_at(_i == 1 ? FR_FAKE_PEER_ADD
						: FR_FAKE_MR_REG,
					nth, -EIO);
		}
		ret = fr_net_reg_mr(pair->recv, mem, 4096, FR_MEM_GPU, &mr);
		if (net_b.set->gpu != NULL && !made) {
			made = true; /* and stays */
			before = fr_live_allocs();
		}
	} while (ret != 0);
	fr_fault_alloc_at(0);
	fr_fake_fault_clear();
	ck_assert_uint_gt(nth, 2);
	ck_assert_int_eq(fr_net_dereg_mr(pair->recv, mr), 0);
	fake_gpu_free(mem);
}
END_TEST

/* A message that cannot be kept fails its link; those before it arrive. */
START_TEST(without_memory_for_an_early_message_its_link_fails)
{
	enum { CNT = 17 }; /* one more than are made at a time */
	struct fr_req *recv[CNT];
	unsigned nth = 0;
	int ret = 0;

	connect_with(TO_GPU, 4096);
	for (unsigned i = 0; i < CNT; i++) {
		net_wait(net_isend(&from, 100), NULL);
	}
	net_settle();
	fr_fake_again(FR_FAKE_WRITE, FR_FAKE_FOREVER);
	net_expect("out of memory for its early messages");
	net_expect("is lost");
	for (unsigned i = 0; i + 1 < CNT; i++) {
		recv[i] = net_irecv(&to, 4096);
	}
	do {
		ck_assert_uint_lt(nth, 20);
		fr_fault_alloc_at(++nth);
		ret = net_try_recv(&to, 4096, &recv[CNT - 1]);
		fr_fault_alloc_at(0);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret == -ENOMEM);
	fr_fake_fault_clear();
	for (unsigned i = 0; i < CNT; i++) {
		ck_assert_int_eq(net_wait(recv[i], NULL),
				 i + 1 < CNT ? 0 : -ECONNRESET);
	}
	ck_assert_uint_eq(net_logged("out of memory for its early"), 1);
}
END_TEST

int main(void)
{
	TCase *cases[] = {
		net_case("gpu", gpu_open),
		net_case("shapes", net_init),
		net_case("none", net_init),
	};
	const int all = (int)NET_SHAPES * WAYS;

	tcase_add_loop_test(cases[1],
			    a_message_of_any_size_comes_from_or_goes_to_a_gpu,
			    0, all);
	tcase_add_loop_test(cases[1], a_message_that_comes_early_gets_there, 0,
			    all);
	tcase_add_loop_test(cases[1], early_messages_keep_their_order, 0,
			    (int)NET_SHAPES);
	tcase_add_loop_test(cases[0],
			    a_short_message_from_a_gpu_asks_at_once_for_a_place,
			    0, 2);
	tcase_add_test(cases[0], groups_mix_both_kinds_of_memory);
	tcase_add_test(cases[0], a_rail_that_is_full_takes_it_later);
	tcase_add_test(cases[0],
		       a_rail_that_refuses_for_good_fails_its_receive);
	tcase_add_loop_test(cases[0], a_rail_that_fails_fails_its_receive, 0,
			    2);
	tcase_add_test(cases[0], what_came_outlives_its_sender);
	tcase_add_test(cases[0], a_message_that_is_too_long_touches_nothing);
	tcase_add_loop_test(cases[0], memory_is_let_go_when_nothing_flies_there,
			    0, 2);
	tcase_add_test(cases[0], a_comm_takes_along_what_waits_for_a_rail);
	tcase_add_test(cases[0], host_memory_is_not_taken_for_a_gpus);
	tcase_add_test(cases[0], a_dmabuf_serves_like_its_address);
	tcase_add_loop_test(
		cases[0],
		the_first_registration_leaks_nothing_wherever_it_fails, 0, 3);
	tcase_add_test(cases[0],
		       without_memory_for_an_early_message_its_link_fails);
	tcase_add_loop_test(cases[2],
			    a_device_without_gpus_refuses_their_memory, 0, 3);
	return net_main("net/gpu", cases, FR_ARRAY_LEN(cases));
}
