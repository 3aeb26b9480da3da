#include "unit/fabric/fabric_unit.h"

#include <rdma/fi_errno.h>

static struct fr_fabric *fabric;
static struct unit_owner owner;
static struct fr_rail *rail;
static char buf[4096];

static void open_on(const char *prov)
{
	fabric = unit_fabric(prov);
	rail = unit_rail(fabric, 0, &owner);
}

static void setup(void)
{
	unit_fake_setup();
	open_on("net");
}

static uint64_t stat(enum fr_stat which)
{
	return fr_stats_get(fr_rail_stats(rail), which);
}

static struct unit_op *sent(size_t bytes)
{
	static struct unit_op ops[1024];
	static unsigned next;
	struct unit_op *op = &ops[next++];

	*op = unit_op();
	ck_assert_int_eq(fr_rail_send(rail, 1, buf, bytes, NULL, &op->op), 0);
	return op;
}

static struct unit_op *receiving(void)
{
	static struct unit_op op;

	op = unit_op();
	ck_assert_int_eq(fr_rail_recv(rail, buf, 64, NULL, &op.op), 0);
	return &op;
}

START_TEST(an_empty_queue_is_nothing)
{
	ck_assert_int_eq(fr_rail_poll(rail), 0);
	ck_assert_uint_eq(fake_fi.reads, 1);
	unit_assert_quiet();
}
END_TEST

START_TEST(a_send_is_done_with_the_bytes_that_were_posted)
{
	struct unit_op *op = sent(1000);

	fake_fi_complete(&op->op, FI_MSG | FI_SEND, 0, 0);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_uint_eq(op->calls, 1);
	ck_assert_int_eq(op->err, 0);
	ck_assert_uint_eq(op->bytes, 0);
	ck_assert_uint_eq(fr_rail_inflight(rail), 0);
	ck_assert_uint_eq(stat(FR_STAT_TX_MSGS), 1);
	ck_assert_uint_eq(stat(FR_STAT_TX_BYTES), 1000);
}
END_TEST

START_TEST(a_read_is_done_and_counts_as_nothing_sent)
{
	struct unit_op op = unit_op();

	ck_assert_int_eq(fr_rail_read(rail, 1, buf, 8, NULL, 0, 1, &op.op), 0);
	fake_fi_complete(&op.op, FI_RMA | FI_READ, 8, 0);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_uint_eq(op.calls, 1);
	ck_assert_int_eq(op.err, 0);
	ck_assert_uint_eq(fr_rail_inflight(rail), 0);
	ck_assert_uint_eq(stat(FR_STAT_TX_MSGS), 0);
	ck_assert_uint_eq(stat(FR_STAT_TX_BYTES), 0);
	ck_assert_uint_eq(owner.writes, 0);
	ck_assert_int_eq(fr_rail_read(rail, 1, buf, 8, NULL, 0, 1, &op.op), 0);
	fake_fi_complete_error(&op.op, FI_RMA | FI_READ, FI_EIO, 3);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_int_eq(op.err, -EIO);
	ck_assert_uint_eq(fr_rail_inflight(rail), 0);
}
END_TEST

START_TEST(a_receive_is_done_with_its_length)
{
	struct unit_op *op = receiving();

	fake_fi_complete(&op->op, FI_MSG | FI_RECV, 33, 0);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_uint_eq(op->calls, 1);
	ck_assert_uint_eq(op->bytes, 33);
	ck_assert_uint_eq(stat(FR_STAT_RX_MSGS), 1);
	ck_assert_uint_eq(stat(FR_STAT_RX_BYTES), 33);
	ck_assert_uint_eq(owner.writes, 0);
}
END_TEST

/* With FI_RMA or without, with the target's flag. */
START_TEST(a_remote_write_is_known_by_its_data)
{
	const uint64_t flags[] = {FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
				  FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
				  FI_REMOTE_CQ_DATA};

	fake_fi_complete(NULL, flags[_i], 0, 0x123456789abcdefull);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_uint_eq(owner.writes, 1);
	ck_assert_uint_eq(owner.imm, 0x123456789abcdefull);
	ck_assert_uint_eq(stat(FR_STAT_RX_MSGS), 1);
	ck_assert_uint_eq(stat(FR_STAT_RX_BYTES), 0);
}
END_TEST

START_TEST(the_length_of_a_write_is_handed_on)
{
	fr_rail_close(rail);
	fr_fabric_close(fabric);
	open_on("sockets");
	fake_fi_complete(NULL, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
			 777, 1);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_uint_eq(owner.bytes, 777);
	ck_assert_uint_eq(stat(FR_STAT_RX_BYTES), 0);
}
END_TEST

START_TEST(data_beside_our_own_write_or_receive_is_no_remote_write)
{
	struct unit_op *tx = sent(8), *rx = receiving();

	fake_fi_complete(&tx->op, FI_RMA | FI_WRITE | FI_REMOTE_CQ_DATA, 8, 5);
	fake_fi_complete(&rx->op, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA, 9, 5);
	ck_assert_int_eq(fr_rail_poll(rail), 2);
	ck_assert_uint_eq(owner.writes, 0);
	ck_assert_uint_eq(tx->calls, 1);
	ck_assert_uint_eq(rx->calls, 1);
	ck_assert_uint_eq(rx->bytes, 9);
}
END_TEST

START_TEST(an_error_of_a_post_ends_it_with_the_providers_words)
{
	struct unit_op *op = sent(8);

	fake_fi_complete_error(&op->op, FI_RMA | FI_WRITE, FI_ECANCELED, 42);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_uint_eq(op->calls, 1);
	ck_assert_int_eq(op->err, -ECANCELED);
	ck_assert_ptr_nonnull(strstr(op->text, "canceled"));
	ck_assert_ptr_nonnull(strstr(op->text, "provider error 42"));
	ck_assert_uint_eq(fr_rail_inflight(rail), 0);
	ck_assert_uint_eq(stat(FR_STAT_TX_ERRORS), 1);
	ck_assert_uint_eq(stat(FR_STAT_TX_MSGS), 0);
	unit_assert_quiet();
}
END_TEST

START_TEST(an_error_of_libfabrics_own_range_is_eio_with_its_text)
{
	struct unit_op *op = sent(8);

	fake_fi_complete_error(&op->op, 0, FI_ETRUNC, 1);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_int_eq(op->err, -EIO);
	ck_assert_ptr_nonnull(strstr(op->text, "a libfabric error"));
	op = sent(8);
	fake_fi_complete_error(&op->op, 0, 0, 1);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_int_eq(op->err, -EIO);
}
END_TEST

START_TEST(an_error_of_a_receive_buffer_is_no_failed_send)
{
	struct unit_op *op = receiving();

	fake_fi_complete_error(&op->op, 0, FI_ECANCELED, 0);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_uint_eq(op->calls, 1);
	ck_assert_int_eq(op->err, -ECANCELED);
	ck_assert_uint_eq(stat(FR_STAT_TX_ERRORS), 0);
}
END_TEST

START_TEST(an_error_that_is_no_posts_goes_to_the_owner)
{
	struct unit_op *op = sent(8);

	fake_fi_complete_error(NULL, 0, FI_ENOTCONN, 107);
	fake_fi_complete_error(&op->op, FI_REMOTE_WRITE, FI_EIO, 5);
	ck_assert_int_eq(fr_rail_poll(rail), 2);
	ck_assert_uint_eq(owner.errors, 2);
	ck_assert_int_eq(owner.err, -EIO);
	ck_assert_ptr_nonnull(strstr(owner.text, "provider error 5"));
	ck_assert_uint_eq(op->calls, 0);
	ck_assert_uint_eq(fr_rail_inflight(rail), 1);
	ck_assert_uint_eq(stat(FR_STAT_TX_ERRORS), 0);
}
END_TEST

START_TEST(errors_between_entries_keep_their_place)
{
	struct unit_op *a = sent(1), *b = sent(2), *c = sent(4);

	fake_fi_complete(&a->op, FI_SEND, 0, 0);
	fake_fi_complete_error(&b->op, FI_SEND, FI_ECONNRESET, 104);
	fake_fi_complete(&c->op, FI_SEND, 0, 0);
	/* A short read ends a poll: the error may wait for the next one. */
	while (fr_rail_poll(rail) > 0) {
	}
	ck_assert_int_eq(a->err, 0);
	ck_assert_int_eq(b->err, -ECONNRESET);
	ck_assert_int_eq(c->err, 0);
	ck_assert_uint_eq(a->calls + b->calls + c->calls, 3);
	ck_assert_uint_eq(stat(FR_STAT_TX_BYTES), 5);
}
END_TEST

START_TEST(a_poll_is_bounded)
{
	struct unit_op *op[100];

	for (size_t i = 0; i < FR_ARRAY_LEN(op); i++) {
		op[i] = sent(1);
		fake_fi_complete(&op[i]->op, FI_SEND, 0, 0);
	}
	ck_assert_int_eq(fr_rail_poll(rail), 16 * 4);
	ck_assert_int_eq(fr_rail_poll(rail), 36);
	ck_assert_int_eq(fr_rail_poll(rail), 0);
	for (size_t i = 0; i < FR_ARRAY_LEN(op); i++) {
		ck_assert_uint_eq(op[i]->calls, 1);
	}
}
END_TEST

START_TEST(a_broken_queue_is_an_error_that_is_logged)
{
	fake_fi.cq_ret = -EIO;
	ck_assert_int_eq(fr_rail_poll(rail), -EIO);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
	unit_assert_said(FR_LOG_ERROR, "cannot read its completion queue");
	fake_fi.cq_ret = 0;
	ck_assert_int_eq(fr_rail_poll(rail), 0);
}
END_TEST

/* Whose completions were lost it does not say. */
START_TEST(an_overrun_breaks_the_queue)
{
	struct unit_op *op = sent(8);

	fake_fi_complete_error(NULL, 0, FI_EOVERRUN, 0);
	ck_assert_int_eq(fr_rail_poll(rail), -EIO);
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 1);
	unit_assert_said(FR_LOG_ERROR, "cannot read its completion queue");
	ck_assert_uint_eq(owner.errors, 0);
	ck_assert_uint_eq(op->calls, 0);
}
END_TEST

/* A done function may post at once: its operation is free again. */
static void repost(struct fr_op *op, struct fr_rail *on, int err, size_t bytes)
{
	(void)err;
	(void)bytes;
	ck_assert_int_eq(fr_rail_send(on, 1, buf, 3, NULL, op), 0);
}

START_TEST(a_done_function_may_post_its_operation_again)
{
	struct fr_op op = {.done = repost};

	ck_assert_int_eq(fr_rail_send(rail, 1, buf, 5, NULL, &op), 0);
	fake_fi_complete(&op, FI_SEND, 0, 0);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_uint_eq(fr_rail_inflight(rail), 1);
	ck_assert_uint_eq(stat(FR_STAT_TX_BYTES), 5);
	fake_fi_complete(&op, FI_SEND, 0, 0);
	ck_assert_int_eq(fr_rail_poll(rail), 1);
	ck_assert_uint_eq(stat(FR_STAT_TX_BYTES), 8);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("poll");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, an_empty_queue_is_nothing);
	tcase_add_test(t, a_send_is_done_with_the_bytes_that_were_posted);
	tcase_add_test(t, a_read_is_done_and_counts_as_nothing_sent);
	tcase_add_test(t, a_receive_is_done_with_its_length);
	tcase_add_loop_test(t, a_remote_write_is_known_by_its_data, 0, 3);
	tcase_add_test(t, the_length_of_a_write_is_handed_on);
	tcase_add_test(t,
		       data_beside_our_own_write_or_receive_is_no_remote_write);
	tcase_add_test(t, an_error_of_a_post_ends_it_with_the_providers_words);
	tcase_add_test(t,
		       an_error_of_libfabrics_own_range_is_eio_with_its_text);
	tcase_add_test(t, an_error_of_a_receive_buffer_is_no_failed_send);
	tcase_add_test(t, an_error_that_is_no_posts_goes_to_the_owner);
	tcase_add_test(t, errors_between_entries_keep_their_place);
	tcase_add_test(t, a_poll_is_bounded);
	tcase_add_test(t, a_broken_queue_is_an_error_that_is_logged);
	tcase_add_test(t, an_overrun_breaks_the_queue);
	tcase_add_test(t, a_done_function_may_post_its_operation_again);
	return unit_run(t, "fabric/poll");
}
