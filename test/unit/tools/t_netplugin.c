#include "unit/base/unit.h"

#include <errno.h>
#include <sched.h>

#include "base/alloc.h"
#include "base/util.h"
#include "tools/netplugin.h"

static const unsigned abis[] = {4, 5, 6, 7, 8, 9, 10, 11, 12};
static char path[512];
static unsigned infos;

static void logger(int level, unsigned long flags, const char *file, int line,
		   const char *fmt, ...)
{
	(void)flags;
	(void)file;
	(void)line;
	(void)fmt;
	infos += level == FR_PLUGIN_LOG_INFO;
}

static void setup(void)
{
	const char *dir = getenv("FR_BUILDDIR");

	snprintf(path, sizeof(path), "%s/.libs/tcp_plugin.so",
		 dir != NULL ? dir : ".");
	unit_log_setup();
	infos = 0;
}

static struct fr_plugin *open_plugin(unsigned abi, void **ctx)
{
	struct fr_plugin *p;

	ck_assert_msg(fr_plugin_open(path, abi, logger, &p) == 0, "%s",
		      unit_log.text);
	ck_assert_int_eq(fr_plugin_init(p, 1, -1, ctx), 0);
	return p;
}

START_TEST(the_newest_table_is_taken_unless_one_is_asked_for)
{
	struct fr_plugin *p;

	ck_assert_int_eq(fr_plugin_open(path, 0, logger, &p), 0);
	ck_assert_uint_eq(fr_plugin_abi(p), 12);
	ck_assert_str_eq(fr_plugin_name(p), "tcp-test");
	ck_assert_ptr_nonnull(fr_plugin_table(p));
	fr_plugin_close(p);
	ck_assert_int_eq(fr_plugin_open(path, 9, logger, &p), 0);
	ck_assert_uint_eq(fr_plugin_abi(p), 9);
	fr_plugin_close(p);
	fr_plugin_close(NULL);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(what_cannot_be_opened_is_named)
{
	struct fr_plugin *const untouched = (struct fr_plugin *)0x1;
	struct fr_plugin *p = untouched;

	ck_assert_int_eq(fr_plugin_open("nowhere", 0, logger, &p), -ENOENT);
	unit_assert_logged("libnccl-net-nowhere.so");
	ck_assert_int_eq(fr_plugin_open("/no/where.so", 0, logger, &p),
			 -ENOENT);
	unit_assert_logged("/no/where.so");
	ck_assert_int_eq(fr_plugin_open(path, 13, logger, &p), -ENOSYS);
	unit_assert_logged("ncclNetPlugin_v13");
	ck_assert_uint_eq(unit_log.cnt[FR_LOG_ERROR], 3);
	ck_assert_int_eq(fr_plugin_open("libc.so.6", 0, logger, &p), -ENOSYS);
	fr_fault_alloc_at(1);
	ck_assert_int_eq(fr_plugin_open(path, 0, logger, &p), -ENOMEM);
	ck_assert_ptr_eq(p, untouched);
	ck_assert_uint_eq(fr_live_allocs(), 0);
}
END_TEST

START_TEST(properties_of_each_version_become_the_same)
{
	struct fr_plugin_props props;
	struct fr_plugin *p;
	void *ctx;
	int cnt = 0;

	p = open_plugin(abis[_i], &ctx);
	ck_assert_uint_eq(infos, 1);
	ck_assert_int_eq(fr_plugin_devices(p, &cnt), 0);
	ck_assert_int_eq(cnt, 1);
	ck_assert_int_eq(fr_plugin_props(p, 0, &props), 0);
	ck_assert_str_eq(props.name, "tcp0");
	ck_assert_ptr_null(props.pci_path);
	ck_assert_uint_eq(props.guid, 77);
	ck_assert_int_eq(props.ptr_support, FR_PLUGIN_PTR_HOST);
	ck_assert_int_eq(props.reg_is_global, abis[_i] >= 8);
	ck_assert_int_eq(props.speed_mbps, 10000);
	ck_assert_int_eq(props.port, 1);
	ck_assert(props.latency_us == (abis[_i] >= 5 ? 2.5f : 0));
	ck_assert_int_eq(props.max_comms, 65536);
	ck_assert_int_eq(props.max_recvs, 1);
	ck_assert_int_eq(props.vdev_cnt, 1);
	ck_assert_int_eq(props.vdevs[0], 0);
	ck_assert_int_eq(props.vdevs[1], -1);
	ck_assert_uint_eq(props.max_p2p_bytes, 1u << 30);
	ck_assert_uint_eq(props.max_coll_bytes, 1u << 29);
	ck_assert_int_eq(props.max_multi_request, 1);
	ck_assert_int_eq(props.rail_id, abis[_i] >= 12 ? 3 : -1);
	ck_assert_int_eq(props.plane_id, -1);
	ck_assert_int_ne(fr_plugin_props(p, 5, &props), 0);
	ck_assert_int_eq(fr_plugin_finalize(p, ctx), 0);
	fr_plugin_close(p);
}
END_TEST

static void *get_send(struct fr_plugin *p, void *comm, void *data, size_t n)
{
	void *rq = (void *)0x10;

	do {
		ck_assert_int_eq(
			fr_plugin_isend(p, comm, data, n, 3, data, &rq), 0);
	} while (rq == NULL);
	return rq;
}

static void *get_recv(struct fr_plugin *p, void *comm, void *data, size_t n)
{
	void *rq = FR_PLUGIN_OPTIONAL_RECV;
	int tag = 3;

	do {
		ck_assert_int_eq(fr_plugin_irecv(p, comm, 1, &data, &n, &tag,
						 &data, &rq),
				 0);
	} while (rq == NULL);
	return rq;
}

static int finish(struct fr_plugin *p, void *rq)
{
	int done = 0, size = -1;

	while (done == 0) {
		ck_assert_int_eq(fr_plugin_test(p, rq, &done, &size), 0);
		sched_yield();
	}
	return size;
}

START_TEST(a_message_passes_through_each_version)
{
	_Alignas(16) char handle[FR_PLUGIN_HANDLE_BYTES];
	void *ctx, *lc, *sc = NULL, *rc = NULL, *smh, *rmh, *rq;
	char out[100], in[200];
	struct fr_plugin *p;
	int none = 0;

	p = open_plugin(abis[_i], &ctx);
	ck_assert_int_eq(fr_plugin_listen(p, ctx, 0, handle, &lc), 0);
	while (sc == NULL || rc == NULL) {
		if (sc == NULL) {
			ck_assert_int_eq(
				fr_plugin_connect(p, ctx, 0, handle, &sc), 0);
		}
		if (rc == NULL) {
			ck_assert_int_eq(fr_plugin_accept(p, lc, &rc), 0);
		}
	}
	ck_assert_int_eq(fr_plugin_close_listen(p, lc), 0);
	ck_assert_int_eq(fr_plugin_reg_mr(p, sc, out, sizeof(out),
					  FR_PLUGIN_PTR_HOST, &smh),
			 0);
	ck_assert_int_eq(fr_plugin_reg_mr(p, rc, in, sizeof(in),
					  FR_PLUGIN_PTR_HOST, &rmh),
			 0);
	memset(out, 'x', sizeof(out));
	rq = get_recv(p, rc, in, sizeof(in));
	ck_assert_int_eq(finish(p, get_send(p, sc, out, sizeof(out))), 100);
	ck_assert_int_eq(finish(p, rq), 100);
	ck_assert_mem_eq(in, out, sizeof(out));
	rq = (void *)0x20;
	ck_assert_int_eq(
		fr_plugin_iflush(p, rc, 1, (void **)&rmh, &none, &rmh, &rq), 0);
	ck_assert_ptr_null(rq);
	ck_assert_int_eq(fr_plugin_irecv(p, rc, 9, NULL, NULL, NULL, NULL, &rq),
			 FR_PLUGIN_INVALID_ARGUMENT);
	ck_assert_int_eq(fr_plugin_dereg_mr(p, sc, smh), 0);
	ck_assert_int_eq(fr_plugin_dereg_mr(p, rc, rmh), 0);
	ck_assert_int_eq(fr_plugin_close_send(p, sc), 0);
	ck_assert_int_eq(fr_plugin_close_recv(p, rc), 0);
	ck_assert_int_eq(fr_plugin_finalize(p, ctx), 0);
	fr_plugin_close(p);
}
END_TEST

START_TEST(results_have_words)
{
	ck_assert_str_eq(fr_plugin_result_text(FR_PLUGIN_REMOTE_ERROR),
			 "remote error (6)");
	ck_assert_str_eq(fr_plugin_result_text(FR_PLUGIN_TIMEOUT),
			 "timeout (8)");
	ck_assert_str_eq(fr_plugin_result_text(99), "unknown result");
	ck_assert_str_eq(fr_plugin_result_text(-1), "unknown result");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("netplugin");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, the_newest_table_is_taken_unless_one_is_asked_for);
	tcase_add_test(t, what_cannot_be_opened_is_named);
	tcase_add_loop_test(t, properties_of_each_version_become_the_same, 0,
			    (int)FR_ARRAY_LEN(abis));
	tcase_add_loop_test(t, a_message_passes_through_each_version, 0,
			    (int)FR_ARRAY_LEN(abis));
	tcase_add_test(t, results_have_words);
	return unit_run(t, "tools/netplugin");
}
