/* What only the oldest table has: calls that wait, and a short handle. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "fake/fake_net.h"
#include "plugin/tables.h"
#include "table.h"
#include "unit/run.h"

#define CANARY 0xa5

/* Of 64 bytes for the host; what follows belongs to somebody else. */
static unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];

static void setup(void)
{
	shells_setup();
	memset(handle, CANARY, sizeof(handle));
	ck_assert_int_eq(ncclNetPlugin_v4.init(host_logger), ncclSuccess);
	host_log_reset();
}

static void expect_canary(void)
{
	for (size_t i = NCCL_NET_HANDLE_MAXSIZE_V4; i < sizeof(handle); i++) {
		ck_assert_uint_eq(handle[i], CANARY);
	}
}

START_TEST(listen_writes_64_bytes)
{
	void *comm;

	ck_assert_int_eq(ncclNetPlugin_v4.listen(0, handle, &comm),
			 ncclSuccess);
	ck_assert_uint_eq(fake_net.handle_bytes, 64);
	for (size_t i = 0; i < NCCL_NET_HANDLE_MAXSIZE_V4; i++) {
		ck_assert_uint_eq(handle[i], 0x5a);
	}
	expect_canary();
}
END_TEST

/* The core keeps its state behind byte 80 of what it is given. */
START_TEST(connect_reads_64_bytes_and_writes_none)
{
	unsigned char before[NCCL_NET_HANDLE_MAXSIZE];
	void *comm;

	memset(handle, 0x17, NCCL_NET_HANDLE_MAXSIZE_V4);
	memcpy(before, handle, sizeof(before));
	ck_assert_int_eq(ncclNetPlugin_v4.connect(0, handle, &comm),
			 ncclSuccess);
	ck_assert_mem_eq(fake_net.handle_copy, handle,
			 NCCL_NET_HANDLE_MAXSIZE_V4);
	for (size_t i = NCCL_NET_HANDLE_MAXSIZE_V4; i < FR_HANDLE_BYTES; i++) {
		ck_assert_uint_eq(fake_net.handle_copy[i], 0);
	}
	ck_assert_mem_eq(handle, before, sizeof(before));
}
END_TEST

START_TEST(connect_waits_until_there_is_a_comm)
{
	void *comm = NULL;

	fake_net.again = 30;
	fake_net.calls = 0;
	ck_assert_int_eq(ncclNetPlugin_v4.connect(1, handle, &comm),
			 ncclSuccess);
	ck_assert_ptr_eq(comm, fake_net_send_comm());
	ck_assert_uint_eq(fake_net.calls, 31);
	ck_assert_uint_eq(fake_net.dev, 1);
	/* The same memory at each call: what was kept there came back. */
	ck_assert_uint_eq(fake_net.handle_copy[FR_HANDLE_STATE_OFFSET], 0xc3);
	expect_canary();
}
END_TEST

START_TEST(connect_that_fails_while_it_waits_leaves_null)
{
	void *comm = handle;

	fake_net.again = 3;
	fake_net.ret = -ECONNRESET;
	ck_assert_int_eq(ncclNetPlugin_v4.connect(0, handle, &comm),
			 ncclSystemError);
	ck_assert_ptr_null(comm);
	ck_assert_uint_eq(fake_net.again, 0);
}
END_TEST

START_TEST(accept_waits_until_there_is_a_comm)
{
	void *comm = NULL;

	fake_net.again = 30;
	fake_net.calls = 0;
	ck_assert_int_eq(ncclNetPlugin_v4.accept(fake_net_listen(), &comm),
			 ncclSuccess);
	ck_assert_ptr_eq(comm, fake_net_recv_comm());
	ck_assert_uint_eq(fake_net.calls, 31);
}
END_TEST

START_TEST(accept_ends_when_the_listener_can_give_nothing)
{
	void *comm = handle;

	fake_net.again = 3;
	fake_net.ret = -ECONNRESET;
	ck_assert_int_eq(ncclNetPlugin_v4.accept(fake_net_listen(), &comm),
			 ncclSystemError);
	ck_assert_ptr_null(comm);
}
END_TEST

START_TEST(accept_ends_after_the_time_a_connect_may_take)
{
	uint64_t begun = fr_now_ns();
	void *comm = handle;

	fake_net.again = UINT_MAX;
	fake_net.connect_limit_ns = 30 * FR_NS_PER_MS;
	ck_assert_int_eq(ncclNetPlugin_v4.accept(fake_net_listen(), &comm),
			 ncclSystemError);
	ck_assert_ptr_null(comm);
	ck_assert_uint_ge(fr_now_ns() - begun, 30 * FR_NS_PER_MS);
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_WARN], 1);
	ck_assert_ptr_nonnull(
		strstr(host_log.warning, "OFI_NCCL_CONNECT_TIMEOUT"));
}
END_TEST

/* The core goes to others between two looks. */
START_TEST(who_waits_sleeps)
{
	struct rusage before, after;
	void *comm;

	fake_net.again = 40;
	ck_assert_int_eq(getrusage(RUSAGE_THREAD, &before), 0);
	ck_assert_int_eq(ncclNetPlugin_v4.connect(0, handle, &comm),
			 ncclSuccess);
	fake_net.again = 40;
	ck_assert_int_eq(ncclNetPlugin_v4.accept(fake_net_listen(), &comm),
			 ncclSuccess);
	ck_assert_int_eq(getrusage(RUSAGE_THREAD, &after), 0);
	ck_assert_int_ge(after.ru_nvcsw - before.ru_nvcsw, 60);
}
END_TEST

START_TEST(a_receive_is_one_message_without_a_tag)
{
	unsigned char byte;
	void *req;

	ck_assert_int_eq(ncclNetPlugin_v4.irecv(fake_net_recv_comm(), &byte, 9,
						fake_net_mr(), &req),
			 ncclSuccess);
	ck_assert_ptr_eq(req, fake_net_req());
	ck_assert_uint_eq(fake_net.cnt, 1);
	ck_assert_ptr_eq(fake_net.data[0], &byte);
	ck_assert_uint_eq(fake_net.bytes[0], 9);
	ck_assert_int_eq(fake_net.tags[0], 0);
	ck_assert_ptr_eq(fake_net.mrs[0], fake_net_mr());
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("v4");

	tcase_add_checked_fixture(tcase, setup, shells_teardown);
	tcase_add_test(tcase, listen_writes_64_bytes);
	tcase_add_test(tcase, connect_reads_64_bytes_and_writes_none);
	tcase_add_test(tcase, connect_waits_until_there_is_a_comm);
	tcase_add_test(tcase, connect_that_fails_while_it_waits_leaves_null);
	tcase_add_test(tcase, accept_waits_until_there_is_a_comm);
	tcase_add_test(tcase, accept_ends_when_the_listener_can_give_nothing);
	tcase_add_test(tcase, accept_ends_after_the_time_a_connect_may_take);
	tcase_add_test(tcase, who_waits_sleeps);
	tcase_add_test(tcase, a_receive_is_one_message_without_a_tag);
	return unit_run(tcase, "plugin_net_v4");
}
