/* What the rails in memory do with a GPU's memory, and reads. */
#include "unit/base/unit.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "fake/fake_gpu.h"
#include "fake/fake_rail.h"

#define BYTES 8192u
#define BOTH (FR_MR_REMOTE_WRITE | FR_MR_REMOTE_READ)

static struct fr_fabric *fabric;
static struct fr_rail *rail;
static struct fr_mr_cache *cache;
static uint64_t self; /* the rail's own D */
static char *gpu, *gpu_bytes;
static struct fr_mr *gpu_mr;
static char host[BYTES];
static struct fr_mr *host_mr;
static uint64_t seen_imm;

static struct {
	struct fr_op op;
	unsigned calls;
	int err;
} ended;

static void on_write(void *owner, struct fr_rail *r, uint64_t imm, size_t bytes)
{
	(void)owner;
	(void)r;
	(void)bytes;
	seen_imm = imm;
}

static void on_error(void *owner, struct fr_rail *r, int err)
{
	(void)owner;
	(void)r;
	(void)err;
}

static void on_done(struct fr_op *op, struct fr_rail *r, int err, size_t bytes)
{
	(void)op;
	(void)r;
	(void)bytes;
	ended.calls++;
	ended.err = err;
}

static void open_rail(bool lags)
{
	static const struct fr_rail_ops ops = {on_write, on_error};
	struct fr_fake_conf conf;
	struct fr_conf any = {.provider = NULL};
	struct fr_rail_attr attr = {
		.cq_size = 64, .cq_read_cnt = 4, .ops = &ops};

	unit_log_setup();
	ck_assert_uint_eq(fr_fake_reset(), 0);
	fr_fake_conf_default(&conf);
	fr_fake_conf_gpu(&conf);
	conf.gpu_lags = lags;
	fr_fake_set_conf(&conf);
	ck_assert_int_eq(fr_fabric_open(&any, &fabric), 0);
	attr.fabric = fabric;
	ck_assert_int_eq(fr_rail_open(&attr, &rail), 0);
	ck_assert_int_eq(fr_mr_cache_create(&rail, 1, true, &cache), 0);
	ck_assert_int_eq(
		fr_rail_peer_add(rail, fr_rail_name(rail, FR_EP_DATA), &self),
		0);
	gpu = fake_gpu_alloc(BYTES, 0);
	gpu_bytes = fake_gpu_alias(gpu);
	ck_assert_int_eq(fr_mr_get_gpu(cache, gpu, BYTES, BOTH, NULL, &gpu_mr),
			 0);
	ck_assert_int_eq(fr_mr_get(cache, host, BYTES, FR_MR_LOCAL | FR_MR_READ,
				   &host_mr),
			 0);
	ended.op.done = on_done;
	ended.calls = 0;
	seen_imm = 0;
}

static void setup(void)
{
	open_rail(false);
}

static void teardown(void)
{
	struct fr_fake_counts counts;

	fr_fake_counts(NULL, &counts);
	ck_assert_uint_eq(counts.violations, 0);
	fr_mr_put(cache, gpu_mr);
	fr_mr_put(cache, host_mr);
	fr_mr_cache_destroy(cache);
	fr_rail_close(rail);
	fr_fabric_close(fabric);
	fake_gpu_free(gpu);
	ck_assert_uint_eq(fr_fake_reset(), 0);
	ck_assert_uint_eq(fr_live_allocs(), 0);
	ck_assert_uint_eq(fake_gpu_live(), 0);
}

static void write_in(const char *text, size_t at, uint64_t imm)
{
	snprintf(host, BYTES, "%s", text);
	ck_assert_int_eq(fr_rail_write(rail, self, host, strlen(text),
				       fr_mr_desc(host_mr, 0),
				       fr_mr_remote_addr(gpu_mr, gpu + at),
				       fr_mr_key(gpu_mr, 0), imm, true,
				       &ended.op),
			 0);
	ck_assert_int_gt(fr_rail_poll(rail), 0);
}

static int read_back(size_t at, size_t bytes, uint64_t key)
{
	int ret = fr_rail_read(rail, self, host, bytes, fr_mr_desc(host_mr, 0),
			       fr_mr_remote_addr(gpu_mr, gpu + at), key,
			       &ended.op);

	if (ret == 0) {
		ck_assert_int_gt(fr_rail_poll(rail), 0);
	}
	return ret;
}

START_TEST(the_cpu_cannot_touch_what_a_rail_can)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(write(ends[1], gpu, 1), -1);
	ck_assert_int_eq(errno, EFAULT);
	close(ends[0]);
	close(ends[1]);
	write_in("through the rail", 100, 77);
	ck_assert_uint_eq(ended.calls, 1);
	ck_assert_int_eq(ended.err, 0);
	ck_assert_uint_eq(seen_imm, 77);
	ck_assert_mem_eq(gpu_bytes + 100, "through the rail", 16);
	/* As a source as well. */
	ck_assert_int_eq(
		fr_rail_write(rail, self, gpu + 100, 7, fr_mr_desc(gpu_mr, 0),
			      fr_mr_remote_addr(gpu_mr, gpu),
			      fr_mr_key(gpu_mr, 0), 78, true, &ended.op),
		0);
	ck_assert_int_gt(fr_rail_poll(rail), 0);
	ck_assert_int_eq(ended.err, 0);
	ck_assert_mem_eq(gpu_bytes, "through", 7);
}
END_TEST

START_TEST(a_read_brings_the_bytes_and_is_no_message)
{
	struct fr_fake_counts counts;

	memcpy(gpu_bytes + 500, "what is there", 13);
	ck_assert_int_eq(read_back(500, 13, fr_mr_key(gpu_mr, 0)), 0);
	ck_assert_uint_eq(ended.calls, 1);
	ck_assert_int_eq(ended.err, 0);
	ck_assert_mem_eq(host, "what is there", 13);
	ck_assert_uint_eq(fr_rail_inflight(rail), 0);
	ck_assert_uint_eq(fr_stats_get(fr_rail_stats(rail), FR_STAT_TX_MSGS),
			  0);
	fr_fake_counts(rail, &counts);
	ck_assert_uint_eq(counts.calls[FR_FAKE_READ], 1);
	ck_assert_uint_eq(counts.read_bytes, 13);
}
END_TEST

START_TEST(a_read_fails_when_it_must)
{
	struct fr_fake_counts counts;

	ck_assert_int_eq(read_back(0, 8, 12345), 0);
	ck_assert_int_eq(ended.err, -ECANCELED);
	/* Not for reading. */
	ck_assert_int_eq(read_back(0, 8, fr_mr_key(host_mr, 0)), 0);
	ck_assert_int_eq(ended.err, -ECANCELED);
	fr_fake_counts(rail, &counts);
	ck_assert_uint_eq(counts.refused, 2);
	fr_fake_again(FR_FAKE_READ, 1);
	ck_assert_int_eq(read_back(0, 8, fr_mr_key(gpu_mr, 0)), -EAGAIN);
	fr_fake_fail_at(FR_FAKE_READ_DONE, 1, -EIO);
	ck_assert_int_eq(read_back(0, 8, fr_mr_key(gpu_mr, 0)), 0);
	ck_assert_int_eq(ended.err, -EIO);
	ck_assert_int_eq(read_back(0, 8, fr_mr_key(gpu_mr, 0)), 0);
	ck_assert_int_eq(ended.err, 0);
}
END_TEST

START_TEST(where_a_gpu_lags_a_read_shows_it_what_was_written)
{
	teardown();
	open_rail(true);
	write_in("late", 0, 1);
	write_in("later", 4096, 2);
	ck_assert_uint_eq(seen_imm, 2);
	ck_assert_int_eq(gpu_bytes[0], 0);
	ck_assert_int_eq(gpu_bytes[4096], 0);
	ck_assert_int_eq(read_back(0, 4, fr_mr_key(gpu_mr, 0)), 0);
	ck_assert_mem_eq(host, "late", 4);
	ck_assert_mem_eq(gpu_bytes, "late", 4);
	ck_assert_mem_eq(gpu_bytes + 4096, "later", 5);
	write_in("never", 0, 3);
}
END_TEST

START_TEST(registrations_of_a_gpu_are_told_apart)
{
	struct fr_mr_dmabuf dmabuf = {fake_gpu_export(gpu), 0};
	struct fr_mr *a = NULL, *b = NULL;

	ck_assert_int_eq(fr_mr_get_gpu(cache, gpu + 10, 10, BOTH, NULL, &a), 0);
	ck_assert_ptr_eq(a, gpu_mr);
	fr_mr_put(cache, a);
	ck_assert_int_eq(fr_mr_get_gpu(cache, gpu, BYTES, BOTH, &dmabuf, &a),
			 0);
	ck_assert_int_eq(fr_mr_get_gpu(cache, gpu, BYTES, BOTH, &dmabuf, &b),
			 0);
	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_ne(a, gpu_mr);
	fr_mr_put(cache, a);
	fr_mr_put(cache, b);
	ck_assert_int_eq(fr_mr_get_gpu(cache, host, 10, BOTH, NULL, &a),
			 -EINVAL);
	close(dmabuf.fd);
	ck_assert_int_eq(fr_mr_get_gpu(cache, gpu, BYTES, BOTH, &dmabuf, &a),
			 -EBADF);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("fake_gpu");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, the_cpu_cannot_touch_what_a_rail_can);
	tcase_add_test(t, a_read_brings_the_bytes_and_is_no_message);
	tcase_add_test(t, a_read_fails_when_it_must);
	tcase_add_test(t, where_a_gpu_lags_a_read_shows_it_what_was_written);
	tcase_add_test(t, registrations_of_a_gpu_are_told_apart);
	return unit_run(t, "fabric/fake_gpu");
}
