/* The versions that have a context for each communicator. */
#include <check.h>
#include <stdlib.h>

#include "fake/fake_net.h"
#include "table.h"
#include "unit/run.h"

static const int with_contexts[] = {11, 12};

static const struct table *t;
static void *ctx;
static unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];

static void start(int i)
{
	t = table_of(with_contexts[i]);
	ck_assert_int_eq(t->init(host_logger, &ctx), ncclSuccess);
	ck_assert_ptr_nonnull(ctx);
	host_log_reset();
}

START_TEST(each_context_is_dropped_once)
{
	void *second, *third;

	start(_i);
	ck_assert_int_eq(t->init(host_logger, &second), ncclSuccess);
	ck_assert_int_eq(t->init(host_logger, &third), ncclSuccess);
	ck_assert_ptr_ne(ctx, second);
	ck_assert_ptr_ne(second, third);
	ck_assert_uint_eq(fake_net.refs, 3);

	ck_assert_int_eq(t->finalize(second), ncclSuccess);
	ck_assert_uint_eq(fake_net.refs, 2);
	ck_assert_int_eq(t->finalize(third), ncclSuccess);
	ck_assert_int_eq(t->finalize(ctx), ncclSuccess);
	ck_assert_uint_eq(fake_net.refs, 0);
}
END_TEST

START_TEST(finalize_refuses_what_is_no_context)
{
	int other;

	start(_i);
	ck_assert_int_eq(t->finalize(NULL), ncclSuccess);
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_WARN], 0);
	ck_assert_int_eq(t->finalize(&other), ncclInvalidArgument);
	ck_assert_uint_eq(host_log.lines[NCCL_LOG_WARN], 1);
	ck_assert_uint_eq(fake_net.refs, 1);

	ck_assert_int_eq(t->finalize(ctx), ncclSuccess);
	ck_assert_int_eq(t->finalize(ctx), ncclInvalidArgument);
	ck_assert_uint_eq(fake_net.refs, 0);
}
END_TEST

START_TEST(a_context_of_another_table_is_refused)
{
	const struct table *other = table_of(with_contexts[!_i]);
	void *others;

	start(_i);
	ck_assert_int_eq(other->init(host_logger, &others), ncclSuccess);
	ck_assert_int_eq(t->finalize(others), ncclInvalidArgument);
	ck_assert_uint_eq(fake_net.refs, 2);
	ck_assert_int_eq(other->finalize(others), ncclSuccess);
	ck_assert_int_eq(t->finalize(ctx), ncclSuccess);
}
END_TEST

START_TEST(after_the_last_finalize_only_closing_works)
{
	void *comm = handle;
	int n;

	start(_i);
	ck_assert_int_eq(t->finalize(ctx), ncclSuccess);
	ck_assert_int_eq(t->devices(&n), ncclInvalidUsage);
	ck_assert_int_eq(t->listen(ctx, 0, handle, &comm), ncclInvalidUsage);
	ck_assert_ptr_null(comm);
	ck_assert_int_eq(t->close_send(fake_net_send_comm()), ncclSuccess);
	ck_assert_int_eq(fake_net.last, FAKE_NET_CLOSE_SEND);
}
END_TEST

START_TEST(init_needs_a_place_for_the_context)
{
	start(_i);
	ck_assert_int_eq(t->init(host_logger, NULL), ncclInvalidArgument);
	ck_assert_uint_eq(fake_net.refs, 1);
}
END_TEST

START_TEST(a_null_context_does_to_listen_and_connect)
{
	void *comm;

	start(_i);
	ck_assert_int_eq(t->listen(NULL, 0, handle, &comm), ncclSuccess);
	ck_assert_ptr_eq(comm, fake_net_listen());
	ck_assert_int_eq(t->connect(NULL, 0, handle, &comm, NULL), ncclSuccess);
	ck_assert_ptr_eq(comm, fake_net_send_comm());
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("v11 and v12");

	tcase_add_checked_fixture(tcase, shells_setup, shells_teardown);
	tcase_add_loop_test(tcase, each_context_is_dropped_once, 0, 2);
	tcase_add_loop_test(tcase, finalize_refuses_what_is_no_context, 0, 2);
	tcase_add_loop_test(tcase, a_context_of_another_table_is_refused, 0, 2);
	tcase_add_loop_test(tcase, after_the_last_finalize_only_closing_works,
			    0, 2);
	tcase_add_loop_test(tcase, init_needs_a_place_for_the_context, 0, 2);
	tcase_add_loop_test(tcase, a_null_context_does_to_listen_and_connect, 0,
			    2);
	return unit_run(tcase, "plugin_contexts");
}
