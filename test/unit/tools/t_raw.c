/* Bare libfabric against itself on loopback: the peer is a thread. */
#include "unit/base/unit.h"

#include <errno.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/conf.h"
#include "fabric/raw.h"

#define BYTES (256u << 10)

struct side {
	struct fr_raw *raw;
	char name[FR_RAW_NAME_BYTES];
	size_t name_bytes;
	struct side *peer;
	bool first;
	double half_ns[20];
	uint64_t ns[2];
};

static struct fr_conf conf;
static struct fr_fabric *fabric;

static void setup(void)
{
	setenv("OFI_NCCL_TCP_IF", "=lo", 1);
	ck_assert_int_eq(
		fr_param_load(fr_conf_table, FR_CONF_PREFIX, NULL, &conf, NULL),
		0);
	ck_assert_int_eq(fr_fabric_open(&conf, &fabric), 0);
}

static void teardown(void)
{
	fr_fabric_close(fabric);
	fr_param_unload(fr_conf_table, &conf);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}

static void open_side(struct side *s, unsigned rails, bool deliver)
{
	s->name_bytes = sizeof(s->name);
	ck_assert_int_eq(fr_raw_open(fabric, rails, BYTES, 4, deliver, &s->raw),
			 0);
	ck_assert_int_eq(fr_raw_name(s->raw, s->name, &s->name_bytes), 0);
}

static int run(struct side *s)
{
	int ret;

	ret = fr_raw_connect_wait(s->raw, s->peer->name, s->peer->name_bytes);
	if (ret == 0) {
		ret = fr_raw_pingpong_wait(s->raw, s->first, 1000, 5, 20,
					   s->half_ns);
	}
	if (ret == 0) {
		ret = fr_raw_stream_wait(s->raw, s->first, false, BYTES, 8, 30,
					 &s->ns[0]);
	}
	if (ret == 0) {
		ret = fr_raw_stream_wait(s->raw, !s->first, true, 100, 0, 50,
					 &s->ns[1]);
	}
	return ret;
}

static void *run_thread(void *arg)
{
	return (void *)(intptr_t)run(arg);
}

/* The loop index: rails, and completion in its lowest bit. */
START_TEST(both_sides_measure_what_they_should)
{
	struct side a = {.first = true}, b = {.first = false};
	unsigned rails = (unsigned)_i / 2 + 1;
	pthread_t thread;
	void *ret;

	open_side(&a, rails, (_i & 1) != 0);
	open_side(&b, rails, (_i & 1) != 0);
	a.peer = &b;
	b.peer = &a;
	ck_assert_int_eq(pthread_create(&thread, NULL, run_thread, &b), 0);
	ck_assert_int_eq(run(&a), 0);
	ck_assert_int_eq(pthread_join(thread, &ret), 0);
	ck_assert_int_eq((int)(intptr_t)ret, 0);
	for (int i = 0; i < 20; i++) {
		ck_assert(a.half_ns[i] > 0 && b.half_ns[i] == 0);
	}
	ck_assert(a.ns[0] == 0 && b.ns[0] > 0);
	ck_assert(a.ns[1] > 0 && b.ns[1] == 0);
	fr_raw_close(a.raw);
	fr_raw_close(b.raw);
}
END_TEST

START_TEST(a_peer_with_other_rails_is_refused)
{
	struct side a = {0}, b = {0};

	open_side(&a, 1, false);
	open_side(&b, 2, false);
	unit_log_setup();
	ck_assert_int_eq(fr_raw_connect_wait(a.raw, b.name, b.name_bytes),
			 -EBADMSG);
	unit_assert_logged("another number of rails");
	fr_log_set_sink(NULL);
	fr_raw_close(a.raw);
	fr_raw_close(b.raw);
	fr_raw_close(NULL);
}
END_TEST

START_TEST(open_leaks_nothing_wherever_it_fails)
{
	struct fr_raw *const untouched = (struct fr_raw *)0x1;
	struct fr_raw *raw = untouched;
	size_t before = fr_live_allocs();
	unsigned nth = 0;
	int ret;

	do {
		ck_assert_uint_eq(fr_live_allocs(), before);
		ck_assert_ptr_eq(raw, untouched);
		fr_fault_alloc_at(++nth);
		ret = fr_raw_open(fabric, 2, 100, 2, false, &raw);
		ck_assert(ret == 0 || ret == -ENOMEM);
	} while (ret != 0);
	fr_fault_alloc_at(0);
	ck_assert_uint_eq(nth, 3); /* the object, its requests */
	fr_raw_close(raw);
	ck_assert_uint_eq(fr_live_allocs(), before);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("raw");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, both_sides_measure_what_they_should, 0, 4);
	tcase_add_test(t, a_peer_with_other_rails_is_refused);
	tcase_add_test(t, open_leaks_nothing_wherever_it_fails);
	return unit_run(t, "tools/raw");
}
