/* What must hold for each table, one test a rule, run on every table. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/util.h"
#include "fake/fake_net.h"
#include "table.h"
#include "unit/run.h"

/* A pointer that stands for a host's object, and values that a host may leave
 * in an out argument before a call. */
#define SOME_PTR ((void *)0x1234)
#define STALE_PTR ((void *)0x5678)
#define HINT_PTR ((void *)0x1)

static const struct table *t;
static void *ctx;
static unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];

static void setup(void)
{
	shells_setup();
	ctx = NULL;
}

static void choose(int i)
{
	t = &tables[i];
}

static void start(int i)
{
	choose(i);
	ck_assert_int_eq(t->init(host_logger, &ctx), ncclSuccess);
	fake_net.calls = 0;
	host_log_reset();
}

/* What a host is told that may be too old for @res. */
static ncclResult_t known(ncclResult_t res)
{
	return (int)res <= t->newest ? res : ncclSystemError;
}

static void *const *members(void)
{
	return (void *const *)t->object;
}

static void expect_one_warning(void)
{
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_WARN], 1);
	host_log_reset();
}

static void expect_silence(void)
{
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_WARN], 0);
}

/* The core was not asked, and the host was told why in one line. */
static void expect_refused(ncclResult_t res)
{
	ck_assert_int_eq(res, ncclInvalidArgument);
	ck_assert_uint_eq(fake_net.calls, 0);
	expect_one_warning();
}

START_TEST(the_name_is_there_before_init)
{
	choose(_i);
	ck_assert_str_eq(members()[0], "fabrail");
	ck_assert_uint_eq(fake_net.calls, 0);
}
END_TEST

/* By position, as a host finds them: 17 to 19 device offload and merging, 21
 * hints. */
START_TEST(only_members_that_a_host_may_miss_are_null)
{
	choose(_i);
	for (unsigned i = 0; i < t->members; i++) {
		bool may_miss = (i >= 17 && i <= 19) || i == 21;

		ck_assert_int_eq(members()[i] == NULL, may_miss);
	}
}
END_TEST

START_TEST(nothing_works_before_init)
{
	char *name = SOME_PTR, *path = SOME_PTR;
	void *out = STALE_PTR, *data[1] = {handle}, *mh[1] = {NULL};
	long size = 1;
	int tag = 0, isize = 1, n = 5, done = 5;

	choose(_i);
	ck_assert_int_eq(t->devices(&n), ncclInvalidUsage);
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(t->props(0, &name, &path), ncclInvalidUsage);
	ck_assert_int_eq(t->listen(NULL, 0, handle, &out), ncclInvalidUsage);
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	ck_assert_int_eq(t->connect(NULL, 0, handle, &out, NULL),
			 ncclInvalidUsage);
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	ck_assert_int_eq(t->accept(SOME_PTR, &out, NULL), ncclInvalidUsage);
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	ck_assert_int_eq(t->reg_mr(SOME_PTR, handle, 8, NCCL_PTR_HOST, &out),
			 ncclInvalidUsage);
	ck_assert_ptr_null(out);
	ck_assert_int_eq(t->dereg_mr(SOME_PTR, SOME_PTR), ncclInvalidUsage);
	out = HINT_PTR;
	ck_assert_int_eq(t->isend(SOME_PTR, handle, 1, 0, NULL, &out),
			 ncclInvalidUsage);
	ck_assert_ptr_null(out);
	out = HINT_PTR;
	ck_assert_int_eq(t->irecv(SOME_PTR, 1, data, &size, &tag, mh, &out),
			 ncclInvalidUsage);
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	ck_assert_int_eq(t->iflush(SOME_PTR, 1, data, &isize, mh, &out),
			 ncclInvalidUsage);
	ck_assert_ptr_null(out);
	ck_assert_int_eq(t->test(SOME_PTR, &done, NULL), ncclInvalidUsage);
	ck_assert_int_eq(done, 0);
	ck_assert_int_eq(t->close_send(SOME_PTR), ncclInvalidUsage);
	ck_assert_int_eq(t->close_recv(SOME_PTR), ncclInvalidUsage);
	ck_assert_int_eq(t->close_listen(SOME_PTR), ncclInvalidUsage);
	ck_assert_uint_eq(fake_net.calls, 0);
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_WARN], 14);
}
END_TEST

static void close_nothing(void)
{
	ck_assert_int_eq(t->close_send(NULL), ncclSuccess);
	ck_assert_int_eq(t->close_recv(NULL), ncclSuccess);
	ck_assert_int_eq(t->close_listen(NULL), ncclSuccess);
	ck_assert_int_eq(t->dereg_mr(NULL, NULL), ncclSuccess);
	ck_assert_int_eq(t->dereg_mr(SOME_PTR, NULL), ncclSuccess);
	ck_assert_uint_eq(fake_net.calls, 0);
	expect_silence();
}

START_TEST(closing_nothing_is_harmless)
{
	choose(_i);
	close_nothing();
	start(_i);
	close_nothing();
}
END_TEST

START_TEST(a_missing_place_for_the_answer_is_refused)
{
	void *data[1] = {handle};
	long size = 1;
	int tag = 0, isize = 1;
	void *comm = fake_net_send_comm();

	start(_i);
	expect_refused(t->devices(NULL));
	expect_refused(t->listen(ctx, 0, handle, NULL));
	expect_refused(t->connect(ctx, 0, handle, NULL, NULL));
	expect_refused(t->accept(fake_net_listen(), NULL, NULL));
	expect_refused(t->reg_mr(comm, handle, 1, NCCL_PTR_HOST, NULL));
	expect_refused(t->isend(comm, handle, 1, 0, NULL, NULL));
	expect_refused(t->irecv(comm, 1, data, &size, &tag, data, NULL));
	expect_refused(t->iflush(comm, 1, data, &isize, data, NULL));
	expect_refused(t->test(fake_net_req(), NULL, NULL));
}
END_TEST

START_TEST(a_missing_object_is_refused)
{
	void *data[1] = {handle}, *out = STALE_PTR;
	long size = 1;
	int tag = 0, isize = 1, done = 5;

	start(_i);
	expect_refused(t->listen(ctx, 0, NULL, &out));
	expect_refused(t->connect(ctx, 0, NULL, &out, NULL));
	out = STALE_PTR;
	expect_refused(t->accept(NULL, &out, NULL));
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	expect_refused(t->reg_mr(NULL, handle, 1, NCCL_PTR_HOST, &out));
	ck_assert_ptr_null(out);
	expect_refused(t->dereg_mr(NULL, fake_net_mr()));
	out = STALE_PTR;
	expect_refused(t->isend(NULL, handle, 1, 0, NULL, &out));
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	expect_refused(t->irecv(NULL, 1, data, &size, &tag, data, &out));
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	expect_refused(t->iflush(NULL, 1, data, &isize, data, &out));
	ck_assert_ptr_null(out);
	expect_refused(t->test(NULL, &done, NULL));
	ck_assert_int_eq(done, 0);
}
END_TEST

START_TEST(devices_are_counted)
{
	int n = 0;

	start(_i);
	fake_net.device_cnt = 3;
	ck_assert_int_eq(t->devices(&n), ncclSuccess);
	ck_assert_int_eq(n, 3);
}
END_TEST

START_TEST(a_device_that_is_not_there_has_no_properties)
{
	char *name = SOME_PTR, *path = SOME_PTR;

	start(_i);
	expect_refused(t->props(-1, &name, &path));
	/* The core decides about this one, and would log it. */
	ck_assert_int_eq(t->props(2, &name, &path), ncclInvalidArgument);
	ck_assert_uint_eq(fake_net.dev, 2);
	ck_assert_ptr_eq(name, SOME_PTR);
}
END_TEST

START_TEST(texts_outlive_what_the_core_had)
{
	char passing[] = "fabrail0";
	char *first, *path, *second;

	start(_i);
	fake_net.props.name = passing;
	fake_net.props.pci_path = NULL;
	ck_assert_int_eq(t->props(0, &first, &path), ncclSuccess);
	ck_assert_ptr_null(path);
	memset(passing, 'x', sizeof(passing) - 1);
	ck_assert_str_eq(first, "fabrail0");

	fake_net.props.name = "fabrail0";
	ck_assert_int_eq(t->props(0, &second, &path), ncclSuccess);
	ck_assert_ptr_eq(first, second);
}
END_TEST

START_TEST(properties_leak_nothing_wherever_memory_ends)
{
	char *name = NULL, *path = NULL;
	unsigned nth = 0;
	ncclResult_t res;

	start(_i);
	fake_net.props.pci_path = NULL;
	do {
		ck_assert_ptr_null(name);
		fr_fault_alloc_at(++nth);
		res = t->props(0, &name, &path);
		ck_assert(res == ncclSuccess || res == ncclSystemError);
	} while (res != ncclSuccess);
	ck_assert_uint_eq(nth, 3); /* a text is two blocks */
	ck_assert_str_eq(name, "fabrail0");
}
END_TEST

START_TEST(listen_fills_the_whole_handle)
{
	void *comm = STALE_PTR;

	start(_i);
	ck_assert_int_eq(t->listen(ctx, 1, handle, &comm), ncclSuccess);
	ck_assert_ptr_eq(comm, fake_net_listen());
	ck_assert_uint_eq(fake_net.dev, 1);
	ck_assert_ptr_eq(fake_net.handle, handle);
	ck_assert_uint_eq(fake_net.handle_bytes, t->blocks ? 64 : 128);
	ck_assert_int_eq(t->close_listen(comm), ncclSuccess);
	ck_assert_int_eq(fake_net.last, FAKE_NET_CLOSE_LISTEN);
	ck_assert_ptr_eq(fake_net.object, fake_net_listen());
}
END_TEST

START_TEST(a_failing_listen_leaves_null)
{
	void *comm = STALE_PTR;

	start(_i);
	fake_net.ret = -EMFILE;
	ck_assert_int_eq(t->listen(ctx, 0, handle, &comm), ncclSystemError);
	ck_assert_ptr_null(comm);
	expect_silence(); /* the core has logged it */
	comm = STALE_PTR;
	fake_net.calls = 0;
	expect_refused(t->listen(ctx, -1, handle, &comm));
	ck_assert_ptr_null(comm);
}
END_TEST

START_TEST(connect_gives_a_comm)
{
	ncclNetDeviceHandle_v7_t *dev_comm = STALE_PTR;
	void *comm = STALE_PTR;

	start(_i);
	ck_assert_int_eq(t->connect(ctx, 1, handle, &comm, &dev_comm),
			 ncclSuccess);
	ck_assert_ptr_eq(comm, fake_net_send_comm());
	ck_assert_uint_eq(fake_net.dev, 1);
	ck_assert_int_eq(fake_net.handle == handle, !t->blocks);
	if (t->has_dev_handle) {
		ck_assert_ptr_null(dev_comm);
	}
	ck_assert_int_eq(t->close_send(comm), ncclSuccess);
	ck_assert_int_eq(fake_net.last, FAKE_NET_CLOSE_SEND);
	ck_assert_ptr_eq(fake_net.object, fake_net_send_comm());
}
END_TEST

START_TEST(connect_says_again_by_null_alone)
{
	ncclNetDeviceHandle_v7_t *dev_comm = STALE_PTR;
	void *comm = STALE_PTR;

	start(_i);
	if (t->blocks) {
		return;
	}
	fake_net.again = 2;
	ck_assert_int_eq(t->connect(ctx, 0, handle, &comm, &dev_comm),
			 ncclSuccess);
	ck_assert_ptr_null(comm);
	if (t->has_dev_handle) {
		ck_assert_ptr_null(dev_comm);
	}
	comm = STALE_PTR;
	ck_assert_int_eq(t->connect(ctx, 0, handle, &comm, NULL), ncclSuccess);
	ck_assert_ptr_null(comm);
	expect_silence();
}
END_TEST

START_TEST(a_failing_connect_leaves_null)
{
	void *comm = STALE_PTR;

	start(_i);
	fake_net.ret = -ECONNRESET;
	ck_assert_int_eq(t->connect(ctx, 0, handle, &comm, NULL),
			 known(ncclRemoteError));
	ck_assert_ptr_null(comm);
	expect_silence();
	comm = STALE_PTR;
	fake_net.calls = 0;
	expect_refused(t->connect(ctx, -1, handle, &comm, NULL));
	ck_assert_ptr_null(comm);
}
END_TEST

START_TEST(accept_gives_a_comm)
{
	ncclNetDeviceHandle_v7_t *dev_comm = STALE_PTR;
	void *comm = STALE_PTR;

	start(_i);
	ck_assert_int_eq(t->accept(fake_net_listen(), &comm, &dev_comm),
			 ncclSuccess);
	ck_assert_ptr_eq(comm, fake_net_recv_comm());
	ck_assert_ptr_eq(fake_net.object, fake_net_listen());
	if (t->has_dev_handle) {
		ck_assert_ptr_null(dev_comm);
	}
	ck_assert_int_eq(t->close_recv(comm), ncclSuccess);
	ck_assert_int_eq(fake_net.last, FAKE_NET_CLOSE_RECV);
	ck_assert_ptr_eq(fake_net.object, fake_net_recv_comm());
}
END_TEST

START_TEST(accept_says_again_by_null_alone)
{
	void *comm = STALE_PTR;

	start(_i);
	if (t->blocks) {
		return;
	}
	fake_net.again = 1;
	ck_assert_int_eq(t->accept(fake_net_listen(), &comm, NULL),
			 ncclSuccess);
	ck_assert_ptr_null(comm);
	expect_silence();
}
END_TEST

START_TEST(a_failing_accept_leaves_null)
{
	void *comm = STALE_PTR;

	start(_i);
	fake_net.ret = -EPROTO;
	ck_assert_int_eq(t->accept(fake_net_listen(), &comm, NULL),
			 known(ncclRemoteError));
	ck_assert_ptr_null(comm);
	expect_silence();
}
END_TEST

START_TEST(host_memory_is_registered)
{
	void *mh = STALE_PTR, *comm = fake_net_send_comm();

	start(_i);
	ck_assert_int_eq(t->reg_mr(comm, handle, 77, NCCL_PTR_HOST, &mh),
			 ncclSuccess);
	ck_assert_ptr_eq(mh, fake_net_mr());
	ck_assert_ptr_eq(fake_net.object, comm);
	ck_assert_ptr_eq(fake_net.data[0], handle);
	ck_assert_uint_eq(fake_net.bytes[0], 77);
	ck_assert_int_eq(fake_net.kind, FR_MEM_HOST);
	ck_assert_int_eq(t->reg_mr(comm, NULL, 0, NCCL_PTR_HOST, &mh),
			 ncclSuccess);
	ck_assert_uint_eq(fake_net.bytes[0], 0);
	ck_assert_int_eq(t->dereg_mr(comm, mh), ncclSuccess);
	ck_assert_int_eq(fake_net.last, FAKE_NET_DEREG_MR);
	ck_assert_ptr_eq(fake_net.object, comm);
	ck_assert_ptr_eq(fake_net.mrs[0], mh);
}
END_TEST

START_TEST(other_memory_is_not_registered)
{
	static const int types[] = {0, NCCL_PTR_DMABUF, NCCL_PTR_DMABUF << 1,
				    NCCL_PTR_HOST | NCCL_PTR_CUDA, -1};
	void *comm = fake_net_recv_comm();

	start(_i);
	for (size_t i = 0; i < FR_ARRAY_LEN(types); i++) {
		void *mh = STALE_PTR;

		expect_refused(t->reg_mr(comm, handle, 8, types[i], &mh));
		ck_assert_ptr_null(mh);
	}
}
END_TEST

START_TEST(a_failing_registration_leaves_null)
{
	void *mh = STALE_PTR, *comm = fake_net_recv_comm();

	start(_i);
	fake_net.ret = -ENOMEM;
	ck_assert_int_eq(t->reg_mr(comm, handle, 8, NCCL_PTR_HOST, &mh),
			 ncclSystemError);
	ck_assert_ptr_null(mh);
	/* There is no "again" for it: a NULL registration would look valid. */
	mh = STALE_PTR;
	fake_net.ret = -EAGAIN;
	ck_assert_int_eq(t->reg_mr(comm, handle, 8, NCCL_PTR_HOST, &mh),
			 ncclInternalError);
	ck_assert_ptr_null(mh);
}
END_TEST

START_TEST(negative_sizes_are_refused)
{
	void *data[1] = {handle}, *mh[1] = {NULL}, *out = STALE_PTR;
	void *comm = fake_net_recv_comm();
	long size = -1;
	int tag = 0, isize = -1;

	start(_i);
	expect_refused(t->reg_mr(comm, handle, size, NCCL_PTR_HOST, &out));
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	expect_refused(t->isend(comm, handle, size, 0, NULL, &out));
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	expect_refused(t->isend(comm, handle, INT_MIN, 0, NULL, &out));
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	expect_refused(t->irecv(comm, 1, data, &size, &tag, mh, &out));
	ck_assert_ptr_null(out);
	out = STALE_PTR;
	expect_refused(t->iflush(comm, 1, data, &isize, mh, &out));
	ck_assert_ptr_null(out);
}
END_TEST

/* More than the int of older versions can say. */
START_TEST(sizes_beyond_int_reach_the_core_whole)
{
	const long big = 5l << 30;
	void *data[1] = {handle}, *mh[1] = {NULL}, *out;
	int tag = 0;

	start(_i);
	if (t->wide_reg) {
		ck_assert_int_eq(t->reg_mr(fake_net_send_comm(), handle, big,
					   NCCL_PTR_HOST, &out),
				 ncclSuccess);
		ck_assert_uint_eq(fake_net.bytes[0], (size_t)big);
	}
	if (t->wide_data) {
		fake_net.bytes[0] = 0;
		ck_assert_int_eq(t->isend(fake_net_send_comm(), handle, big, 0,
					  NULL, &out),
				 ncclSuccess);
		ck_assert_uint_eq(fake_net.bytes[0], (size_t)big);
		fake_net.bytes[0] = 0;
		ck_assert_int_eq(t->irecv(fake_net_recv_comm(), 1, data, &big,
					  &tag, mh, &out),
				 ncclSuccess);
		ck_assert_uint_eq(fake_net.bytes[0], (size_t)big);
	}
}
END_TEST

START_TEST(isend_hands_everything_on)
{
	void *req = STALE_PTR, *comm = fake_net_send_comm();

	start(_i);
	ck_assert_int_eq(
		t->isend(comm, handle, INT_MAX, -3, fake_net_mr(), &req),
		ncclSuccess);
	ck_assert_ptr_eq(req, fake_net_req());
	ck_assert_ptr_eq(fake_net.object, comm);
	ck_assert_ptr_eq(fake_net.data[0], handle);
	ck_assert_uint_eq(fake_net.bytes[0], INT_MAX);
	ck_assert_int_eq(fake_net.tags[0], t->has_groups ? -3 : 0);
	ck_assert_ptr_eq(fake_net.mrs[0], fake_net_mr());
	ck_assert_int_eq(t->isend(comm, NULL, 0, 0, NULL, &req), ncclSuccess);
	ck_assert_uint_eq(fake_net.bytes[0], 0);
	ck_assert_ptr_null(fake_net.mrs[0]);
}
END_TEST

/* Whatever lies in the request before the call, it does not survive. */
START_TEST(the_request_is_always_written)
{
	void *before[] = {NULL, HINT_PTR, STALE_PTR};
	void *data[1] = {handle}, *mh[1] = {NULL}, *req;
	void *comm = fake_net_recv_comm();
	long size = 8;
	int tag = 0, isize = 8;

	start(_i);
	for (size_t i = 0; i < FR_ARRAY_LEN(before); i++) {
		fake_net.ret = 0;
		fake_net.no_request = true;
		req = before[i];
		ck_assert_int_eq(t->isend(comm, handle, 8, 0, NULL, &req),
				 ncclSuccess);
		ck_assert_ptr_null(req);
		req = before[i];
		ck_assert_int_eq(t->irecv(comm, 1, data, &size, &tag, mh, &req),
				 ncclSuccess);
		ck_assert_ptr_null(req);
		req = before[i];
		ck_assert_int_eq(t->iflush(comm, 1, data, &isize, mh, &req),
				 ncclSuccess);
		ck_assert_ptr_null(req);

		fake_net.ret = -ECONNRESET;
		req = before[i];
		ck_assert_int_eq(t->isend(comm, handle, 8, 0, NULL, &req),
				 known(ncclRemoteError));
		ck_assert_ptr_null(req);
		req = before[i];
		ck_assert_int_eq(t->irecv(comm, 1, data, &size, &tag, mh, &req),
				 known(ncclRemoteError));
		ck_assert_ptr_null(req);
	}
	expect_silence();
}
END_TEST

START_TEST(irecv_hands_every_member_of_the_group_on)
{
	void *data[8], *mh[8], *req, *comm = fake_net_recv_comm();
	unsigned char bytes[8];
	long sizes[8];
	int tags[8];

	start(_i);
	for (int i = 0; i < 8; i++) {
		data[i] = &bytes[i];
		sizes[i] = i == 0 ? 0 : INT_MAX - i;
		tags[i] = 10 * i - 20;
		mh[i] = i % 2 ? fake_net_mr() : NULL;
	}
	for (int n = 1; n <= t->max_recvs; n++) {
		req = HINT_PTR;
		ck_assert_int_eq(t->irecv(comm, n, data, sizes, tags, mh, &req),
				 ncclSuccess);
		ck_assert_ptr_eq(req, fake_net_req());
		ck_assert_ptr_eq(fake_net.object, comm);
		ck_assert_int_eq(fake_net.cnt, n);
		for (int i = 0; i < n; i++) {
			ck_assert_ptr_eq(fake_net.data[i], data[i]);
			ck_assert_uint_eq(fake_net.bytes[i], (size_t)sizes[i]);
			ck_assert_int_eq(fake_net.tags[i],
					 t->has_groups ? tags[i] : 0);
			ck_assert_ptr_eq(fake_net.mrs[i], mh[i]);
		}
	}
}
END_TEST

START_TEST(a_group_of_a_wrong_size_is_refused)
{
	const int wrong[] = {-1, 0, tables[_i].max_recvs + 1, INT_MAX};
	void *data[16] = {NULL}, *mh[16] = {NULL};
	void *comm = fake_net_recv_comm();
	int tags[16] = {0}, isizes[16] = {0};
	long sizes[16] = {0};

	start(_i);
	if (!t->has_groups) {
		return;
	}
	for (size_t i = 0; i < FR_ARRAY_LEN(wrong); i++) {
		void *req = STALE_PTR;

		expect_refused(
			t->irecv(comm, wrong[i], data, sizes, tags, mh, &req));
		ck_assert_ptr_null(req);
		req = STALE_PTR;
		expect_refused(
			t->iflush(comm, wrong[i], data, isizes, mh, &req));
		ck_assert_ptr_null(req);
	}
}
END_TEST

START_TEST(no_list_of_registrations_means_none)
{
	void *data[1] = {handle}, *req, *comm = fake_net_recv_comm();
	long size = 8;
	int tag = 0;

	start(_i);
	if (!t->has_groups) {
		return;
	}
	fake_net.mrs[0] = STALE_PTR;
	ck_assert_int_eq(t->irecv(comm, 1, data, &size, &tag, NULL, &req),
			 ncclSuccess);
	ck_assert_ptr_null(fake_net.mrs[0]);
}
END_TEST

START_TEST(iflush_hands_everything_on)
{
	void *data[1] = {handle}, *mh[1] = {fake_net_mr()};
	void *req = STALE_PTR, *comm = fake_net_recv_comm();
	int size = 99;

	start(_i);
	ck_assert_int_eq(t->iflush(comm, 1, data, &size, mh, &req),
			 ncclSuccess);
	ck_assert_ptr_null(req);
	ck_assert_int_eq(fake_net.last, FAKE_NET_IFLUSH);
	ck_assert_ptr_eq(fake_net.object, comm);
	ck_assert_ptr_eq(fake_net.data[0], handle);
	ck_assert_uint_eq(fake_net.bytes[0], 99);
	ck_assert_ptr_eq(fake_net.mrs[0], fake_net_mr());
}
END_TEST

/* For n from 1 to 8: exactly n sizes, the rest of the host's array is not ours.
 */
START_TEST(test_writes_as_many_sizes_as_there_are_messages)
{
	int sizes[9], done;

	start(_i);
	for (int i = 0; i < 8; i++) {
		fake_net.sizes[i] = (size_t)(i * 1000);
	}
	for (unsigned n = 1; n <= 8; n++) {
		fake_net.msgs = n;
		memset(sizes, 0xee, sizeof(sizes));
		done = 0;
		ck_assert_int_eq(t->test(fake_net_req(), &done, sizes),
				 ncclSuccess);
		ck_assert_int_eq(done, 1);
		ck_assert_ptr_eq(fake_net.object, fake_net_req());
		for (unsigned i = 0; i < 9; i++) {
			ck_assert_int_eq(sizes[i], i < n ? (int)i * 1000
							 : (int)0xeeeeeeee);
		}
	}
}
END_TEST

START_TEST(test_can_do_without_sizes)
{
	int done = 0;

	start(_i);
	ck_assert_int_eq(t->test(fake_net_req(), &done, NULL), ncclSuccess);
	ck_assert_int_eq(done, 1);
	ck_assert(!fake_net.wants_sizes);
	fake_net.done = false;
	ck_assert_int_eq(t->test(fake_net_req(), &done, NULL), ncclSuccess);
	ck_assert_int_eq(done, 0);
}
END_TEST

START_TEST(test_that_is_not_done_writes_no_size)
{
	int done = 5, size = 42;

	start(_i);
	fake_net.done = false;
	ck_assert_int_eq(t->test(fake_net_req(), &done, &size), ncclSuccess);
	ck_assert_int_eq(done, 0);
	ck_assert_int_eq(size, 42);

	done = 5;
	fake_net.done = true;
	fake_net.ret = -EMSGSIZE;
	ck_assert_int_eq(t->test(fake_net_req(), &done, &size),
			 ncclInvalidUsage);
	ck_assert_int_eq(done, 0);
	ck_assert_int_eq(size, 42);
	done = 5;
	ck_assert_int_eq(t->test(fake_net_req(), &done, NULL),
			 ncclInvalidUsage);
	ck_assert_int_eq(done, 0);
	expect_silence();
}
END_TEST

START_TEST(a_size_beyond_int_is_reported_as_the_largest)
{
	int done, size;

	start(_i);
	fake_net.sizes[0] = (size_t)INT_MAX + 1;
	ck_assert_int_eq(t->test(fake_net_req(), &done, &size), ncclSuccess);
	ck_assert_int_eq(size, INT_MAX);
}
END_TEST

START_TEST(each_error_has_its_result)
{
	static const struct {
		int ret;
		ncclResult_t res;
	} rows[] = {
		{0, ncclSuccess},
		{-EINVAL, ncclInvalidArgument},
		{-EMSGSIZE, ncclInvalidUsage},
		{-ECONNRESET, ncclRemoteError},
		{-EPROTO, ncclRemoteError},
		{-ENOMEM, ncclSystemError},
		{-ENOENT, ncclSystemError},
		{-EIO, ncclSystemError},
		{-EAGAIN, ncclInternalError},
		{1, ncclInternalError},
	};

	start(_i);
	for (size_t i = 0; i < FR_ARRAY_LEN(rows); i++) {
		fake_net.ret = rows[i].ret;
		ck_assert_int_eq(
			t->dereg_mr(fake_net_recv_comm(), fake_net_mr()),
			known(rows[i].res));
		/* The core says what the others are about. */
		ck_assert_uint_eq(host_log.lines[NCCL_LOG_WARN],
				  rows[i].ret == -ENOMEM);
		host_log_reset();
	}
}
END_TEST

/* InProgress would be taken for success; Timeout is younger than most hosts. */
START_TEST(no_result_is_newer_than_the_oldest_host)
{
	start(_i);
	for (int ret = -4096; ret <= 4096; ret++) {
		ncclResult_t res;

		fake_net.ret = ret;
		res = t->dereg_mr(fake_net_recv_comm(), fake_net_mr());
		ck_assert_int_eq(res == ncclSuccess, ret == 0);
		ck_assert_int_le(res, ncclRemoteError);
		ck_assert_int_le(res, (ncclResult_t)t->newest);
	}
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("every table");

	tcase_add_checked_fixture(tcase, setup, shells_teardown);
	tcase_add_loop_test(tcase, the_name_is_there_before_init, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, only_members_that_a_host_may_miss_are_null,
			    0, TABLE_CNT);
	tcase_add_loop_test(tcase, nothing_works_before_init, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, closing_nothing_is_harmless, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, a_missing_place_for_the_answer_is_refused, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, a_missing_object_is_refused, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, devices_are_counted, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, a_device_that_is_not_there_has_no_properties,
			    0, TABLE_CNT);
	tcase_add_loop_test(tcase, texts_outlive_what_the_core_had, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, properties_leak_nothing_wherever_memory_ends,
			    0, TABLE_CNT);
	tcase_add_loop_test(tcase, listen_fills_the_whole_handle, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, a_failing_listen_leaves_null, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, connect_gives_a_comm, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, connect_says_again_by_null_alone, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, a_failing_connect_leaves_null, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, accept_gives_a_comm, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, accept_says_again_by_null_alone, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, a_failing_accept_leaves_null, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, host_memory_is_registered, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, other_memory_is_not_registered, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, a_failing_registration_leaves_null, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, negative_sizes_are_refused, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, sizes_beyond_int_reach_the_core_whole, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, isend_hands_everything_on, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, the_request_is_always_written, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, irecv_hands_every_member_of_the_group_on, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, a_group_of_a_wrong_size_is_refused, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, no_list_of_registrations_means_none, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, iflush_hands_everything_on, 0, TABLE_CNT);
	tcase_add_loop_test(tcase,
			    test_writes_as_many_sizes_as_there_are_messages, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, test_can_do_without_sizes, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, test_that_is_not_done_writes_no_size, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, a_size_beyond_int_is_reported_as_the_largest,
			    0, TABLE_CNT);
	tcase_add_loop_test(tcase, each_error_has_its_result, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, no_result_is_newer_than_the_oldest_host, 0,
			    TABLE_CNT);
	return unit_run(tcase, "plugin_common");
}
