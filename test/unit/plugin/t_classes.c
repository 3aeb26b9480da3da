/* The traffic class, on its way from the host to the core. */
#include <check.h>
#include <stdlib.h>

#include "base/util.h"
#include "fake/fake_net.h"
#include "plugin/tables.h"
#include "table.h"
#include "unit/run.h"

#define NONE FR_NET_TCLASS_UNSET
#define NOBODYS 77 /* in the fake before a call */

static unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];

static void expect_listen(const struct table *t, void *ctx, int tclass)
{
	void *comm;

	fake_net.tclass = NOBODYS;
	ck_assert_int_eq(t->listen(ctx, 0, handle, &comm), ncclSuccess);
	ck_assert_int_eq(fake_net.tclass, tclass);
}

static void expect_connect(const struct table *t, void *ctx, int tclass)
{
	void *comm;

	fake_net.tclass = NOBODYS;
	ck_assert_int_eq(t->connect(ctx, 0, handle, &comm, NULL), ncclSuccess);
	ck_assert_int_eq(fake_net.tclass, tclass);
}

START_TEST(a_host_that_gives_none_has_none)
{
	const struct table *t = &tables[_i];
	void *ctx;

	ck_assert_int_eq(t->init(host_logger, &ctx), ncclSuccess);
	expect_listen(t, ctx, NONE);
	expect_connect(t, ctx, NONE);
}
END_TEST

START_TEST(each_connect_of_v10_has_its_own)
{
	static const int classes[] = {0, 96, 255, 256, -1};
	void *comm;

	ck_assert_int_eq(ncclNetPlugin_v10.init(host_logger, NULL),
			 ncclSuccess);
	for (size_t i = 0; i < FR_ARRAY_LEN(classes); i++) {
		ncclNetCommConfig_v10_t config = {.trafficClass = classes[i]};

		ck_assert_int_eq(ncclNetPlugin_v10.connect(0, &config, handle,
							   &comm, NULL),
				 ncclSuccess);
		ck_assert_int_eq(fake_net.tclass, classes[i]);
	}
	ck_assert_int_eq(
		ncclNetPlugin_v10.connect(0, NULL, handle, &comm, NULL),
		ncclSuccess);
	ck_assert_int_eq(fake_net.tclass, NONE);
}
END_TEST

static void *ctx_of_class(int abi, int tclass)
{
	ncclNetCommConfig_v10_t config = {.trafficClass = tclass};
	void *ctx = NULL;

	if (abi == 11) {
		ck_assert_int_eq(ncclNetPlugin_v11.init(&ctx, 1, &config,
							host_logger, NULL),
				 ncclSuccess);
	} else {
		ck_assert_int_eq(ncclNetPlugin_v12.init(&ctx, 1, &config,
							host_logger, NULL),
				 ncclSuccess);
	}
	return ctx;
}

START_TEST(each_context_has_its_own)
{
	static const int classes[] = {96, -1, 0, 184, 96};
	const struct table *t = table_of(_i);
	void *ctx[FR_ARRAY_LEN(classes)];

	for (size_t i = 0; i < FR_ARRAY_LEN(classes); i++) {
		ctx[i] = ctx_of_class(_i, classes[i]);
	}
	for (size_t i = 0; i < FR_ARRAY_LEN(classes); i++) {
		expect_listen(t, ctx[i], classes[i]);
		expect_connect(t, ctx[i], classes[i]);
	}
	ck_assert_int_eq(t->finalize(ctx[0]), ncclSuccess);
	expect_connect(t, ctx[4], 96);
}
END_TEST

START_TEST(what_is_no_context_has_none)
{
	const struct table *t = table_of(_i);
	void *live = ctx_of_class(_i, 96), *gone = ctx_of_class(_i, 96);
	int other;

	ck_assert_int_eq(t->finalize(gone), ncclSuccess);
	expect_connect(t, NULL, NONE);
	expect_connect(t, &other, NONE);
	expect_listen(t, gone, NONE);
	expect_listen(t, live, 96);
}
END_TEST

START_TEST(a_context_without_a_configuration_has_none)
{
	void *ctx;

	ck_assert_int_eq(
		ncclNetPlugin_v11.init(&ctx, 1, NULL, host_logger, NULL),
		ncclSuccess);
	expect_connect(table_of(11), ctx, NONE);
	ck_assert_int_eq(
		ncclNetPlugin_v12.init(&ctx, 1, NULL, host_logger, NULL),
		ncclSuccess);
	expect_connect(table_of(12), ctx, NONE);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("classes");

	tcase_add_checked_fixture(tcase, shells_setup, shells_teardown);
	tcase_add_loop_test(tcase, a_host_that_gives_none_has_none, 0,
			    TABLE_CNT);
	tcase_add_test(tcase, each_connect_of_v10_has_its_own);
	tcase_add_loop_test(tcase, each_context_has_its_own, 11, 13);
	tcase_add_loop_test(tcase, what_is_no_context_has_none, 11, 13);
	tcase_add_test(tcase, a_context_without_a_configuration_has_none);
	return unit_run(tcase, "plugin_classes");
}
