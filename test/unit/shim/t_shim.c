#include "unit/shim/world.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "unit/run.h"

static const char *const providers[] = {"net", "tcp", "tcp;ofi_rxm", "sockets",
					"shm"};
#define PROVIDERS ((int)FR_ARRAY_LEN(providers))

static const char *prov; /* of a loop test: here */
static struct world w;

static void setup(void)
{
	world_load();
}

/* False: this test has no provider to run over. */
static bool provider(int i)
{
	struct fi_info *infos;

	prov = providers[i];
	infos = world_infos(prov);
	world_free_infos(infos);
	if (infos == NULL) {
		printf("provider %s: not here\n", prov);
	}
	return infos != NULL;
}

static void set(const char *text)
{
	ck_assert_int_eq(shim->set(text), 0);
}

START_TEST(it_moves_bytes_as_the_real_one)
{
	char from[64] = "bytes", into[64] = "";
	struct fi_cq_data_entry entry;
	struct fid_mr *mr;
	int ctx;

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	world_connect(&w);
	ck_assert_int_eq(world_reg(&w, into, 64, FI_REMOTE_WRITE, 5, &mr), 0);
	ck_assert_int_eq(
		world_write(&w, from, 64, into, mr, 0x1234567890, &ctx), 0);
	ck_assert_int_eq(world_read_wait(&w, &w.b, &entry), 1);
	ck_assert_uint_eq(entry.data, 0x1234567890);
	ck_assert_str_eq(into, "bytes");
	ck_assert_int_eq(world_read_wait(&w, &w.a, &entry), 1);
	ck_assert_ptr_eq(entry.op_context, &ctx);
	ck_assert_int_eq(shim->calls("write"), 1);
	ck_assert_int_eq(shim->calls("landed"), 1);
	ck_assert_int_eq(shim->faults("any+read+landed+sent"), 0);
	ck_assert_int_eq(shim->calls("nobody"), -1);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	world_close(&w);
}
END_TEST

/* Each of the calls of an open fails once, and the next open works. */
START_TEST(each_call_that_opens_can_fail)
{
	unsigned k = 0;
	int ret;

	if (!provider(_i)) {
		return;
	}
	do {
		char text[32];

		snprintf(text, sizeof(text), "fail=any:%u:71", ++k);
		set(text);
		ret = world_open(&w, prov);
		ck_assert_int_eq(shim->faults("any"), ret == 0 ? 0 : 1);
		/* An info that cannot be had is no memory, a fault in the
		 * choice among none that none is there. */
		ck_assert(ret == 0 || ret == -71 || ret == -FI_ENOMEM ||
			  ret == -FI_ENODATA);
	} while (ret != 0);
	/* dupinfo getinfo dupinfo fabric domain av, twice cq ep bind enable,
	 * getname insert */
	ck_assert_uint_eq(k, 6 + 2 * 4 + 2 + 1);
	world_close(&w);
}
END_TEST

START_TEST(the_kth_post_fails_and_no_other)
{
	char mem[64];
	struct fid_mr *mr;

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	world_connect(&w);
	set("fail=recv:2:61:2;fail=reg:1:12");
	ck_assert_int_eq(world_recv(&w.b, mem, 64, mem), 0);
	ck_assert_int_eq(world_recv(&w.b, mem, 64, mem), -61);
	ck_assert_int_eq(world_recv(&w.b, mem, 64, mem), -61);
	ck_assert_int_eq(world_recv(&w.b, mem, 64, mem), 0);
	ck_assert_int_eq(world_reg(&w, mem, 64, FI_SEND, 1, &mr), -FI_ENOMEM);
	ck_assert_int_eq(world_reg(&w, mem, 64, FI_SEND, 1, &mr), 0);
	ck_assert_int_eq(shim->calls("recv"), 4);
	ck_assert_int_eq(shim->faults("recv"), 2);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	world_close(&w);
}
END_TEST

START_TEST(a_burst_of_refusals_lets_the_next_one_through)
{
	char mem[64];

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	set("again=recv@0:1:3;again=recv@1:1");
	for (int i = 0; i < 8; i++) {
		ck_assert_int_eq(world_recv(&w.b, mem, 64, mem),
				 i % 4 == 3 ? 0 : -FI_EAGAIN);
	}
	ck_assert_int_eq(shim->faults("recv"), 6);
	world_close(&w);
}
END_TEST

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
	signals += sig == SIGUSR1 ? 1 : 100;
}

START_TEST(a_call_begins_with_a_signal_and_goes_on)
{
	char mem[64];

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	signals = 0;
	ck_assert(signal(SIGUSR1, count_signal) != SIG_ERR);
	set("raise=recv:3:10");
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(world_recv(&w.b, mem, 64, mem), 0);
		ck_assert_int_eq(signals, i < 2 ? 0 : i - 1);
	}
	ck_assert_int_eq(shim->faults("recv"), 0);
	world_close(&w);
}
END_TEST

START_TEST(refusals_come_as_often_as_was_said)
{
	char mem[64];
	unsigned taken = 0;

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	set("again=recv:0.9");
	for (int i = 0; i < 1000; i++) {
		taken += world_recv(&w.b, mem, 64, mem) == 0;
	}
	ck_assert_uint_ge(taken, 50);
	ck_assert_uint_le(taken, 200);
	ck_assert_int_eq(shim->faults("recv"), 1000 - (int)taken);
	world_close(&w);
}
END_TEST

START_TEST(a_rule_for_one_rail_leaves_the_others_alone)
{
	struct world second;
	char mem[64];

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	ck_assert_int_eq(world_open(&second, prov), 0);
	set("again=recv@1:1");
	ck_assert_int_eq(world_recv(&w.b, mem, 64, mem), 0);
	ck_assert_int_eq(world_recv(&second.b, mem, 64, mem), -FI_EAGAIN);
	/* The number of a domain that was closed is used again. */
	world_close(&w);
	ck_assert_int_eq(world_open(&w, prov), 0);
	ck_assert_int_eq(world_recv(&w.b, mem, 64, mem), 0);
	world_close(&second);
	world_close(&w);
}
END_TEST

/* Of three messages the second one fails; all come, in their order. */
START_TEST(an_error_takes_the_place_of_a_completion)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_data_entry entry;
	char out[64], in[3][64];

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	world_connect(&w);
	set("fail=received:2:110");
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(world_recv(&w.b, in[i], 64, in[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(world_send(&w.a, out, 64, out), 0);
		ck_assert_int_eq(world_read_wait(&w, &w.a, &entry), 1);
	}
	ck_assert_int_eq(world_read_wait(&w, &w.b, &entry), 1);
	ck_assert_ptr_eq(entry.op_context, in[0]);
	ck_assert_int_eq(world_read_wait(&w, &w.b, &entry), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(w.b.cq, &err, 0), 1);
	ck_assert_ptr_eq(err.op_context, in[1]);
	ck_assert_int_eq(err.err, 110);
	ck_assert_str_eq(
		fi_cq_strerror(w.b.cq, err.prov_errno, err.err_data, NULL, 0),
		FR_SHIM_TEXT);
	ck_assert_int_eq(world_read_wait(&w, &w.b, &entry), 1);
	ck_assert_ptr_eq(entry.op_context, in[2]);
	ck_assert_int_eq(shim->faults("received"), 1);
	world_close(&w);
}
END_TEST

/* Of a peer's memory: refused, cut on its way, and then it works. */
START_TEST(a_fetch_can_be_refused_and_fail)
{
	char mem[64] = "bytes", into[64] = "";
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = {0};
	struct fid_mr *mr;
	uint64_t at;
	int ctx;

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	world_connect(&w);
	ck_assert_int_eq(world_reg(&w, mem, 64, FI_REMOTE_READ, 5, &mr), 0);
	at = world_target(&w, mem);
	set("fail=fetch:1:61;again=fetch:1:1;fail=fetched:1:110");
	for (int i = 0; i < 4; i++) {
		ssize_t ret = fi_read(w.a.ep, into, 64, NULL, w.a.peer, at,
				      fi_mr_key(mr), &ctx);

		ck_assert_int_eq(ret, i == 0   ? -61
				      : i == 1 ? -FI_EAGAIN
				      : i == 3 ? -FI_EAGAIN
					       : 0);
	}
	ck_assert_int_eq(world_read_wait(&w, &w.a, &entry), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(w.a.cq, &err, 0), 1);
	ck_assert_ptr_eq(err.op_context, &ctx);
	ck_assert_int_eq(err.err, 110);
	ck_assert_int_eq(shim->faults("fetched"), 1);
	set("");
	memset(into, 0, sizeof(into));
	ck_assert_int_eq(fi_read(w.a.ep, into, 64, NULL, w.a.peer, at,
				 fi_mr_key(mr), &ctx),
			 0);
	ck_assert_int_eq(world_read_wait(&w, &w.a, &entry), 1);
	ck_assert_ptr_eq(entry.op_context, &ctx);
	ck_assert_str_eq(into, "bytes");
	ck_assert_int_eq(shim->calls("fetch"), 1);
	ck_assert_int_eq(shim->calls("fetched"), 1);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	world_close(&w);
}
END_TEST

START_TEST(an_option_can_be_refused)
{
	bool no = false;
	size_t least = 16;
	int real;

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	real = fi_setopt(&w.a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			 &least, sizeof(least));
	set("fail=setopt:2:92:0;gpu");
	ck_assert_int_eq(
		fi_setopt(&w.a.ep->fid, FI_OPT_ENDPOINT, 10, &no, sizeof(no)),
		0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(fi_setopt(&w.a.ep->fid, FI_OPT_ENDPOINT, 10,
					   &no, sizeof(no)),
				 -FI_ENOPROTOOPT);
	}
	ck_assert_int_eq(shim->faults("setopt"), 3);
	set("");
	ck_assert_int_eq(fi_setopt(&w.a.ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &least,
				   sizeof(least)),
			 real);
	world_close(&w);
}
END_TEST

/* What only some registrations go through, and what raw transfers call. */
START_TEST(every_other_call_can_be_refused)
{
	struct fi_cq_data_entry entry;
	fi_addr_t peer;
	struct fid_mr *mr;
	char mem[64];

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	world_connect(&w);
	set("fail=reg:1:71;fail=mrbind:1:72;fail=mrenable:1:73;"
	    "fail=remove:1:74;fail=send:1:75");
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(fi_mr_reg(w.domain, mem, 64, FI_REMOTE_WRITE,
					   0, 5, 0, &mr, NULL),
				 i == 0 ? -71 : 0);
		ck_assert_int_eq(
			fi_senddata(w.a.ep, mem, 64, NULL, 1, w.a.peer, mem),
			i == 0 ? -75 : 0);
	}
	ck_assert_int_eq(fi_mr_bind(mr, &w.a.ep->fid, 0), -72);
	ck_assert_int_eq(fi_mr_enable(mr), -73);
	ck_assert_int_eq(world_read_wait(&w, &w.a, &entry), 1);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	peer = w.a.peer;
	ck_assert_int_eq(fi_av_remove(w.av, &peer, 1, 0), -74);
	ck_assert_int_eq(fi_av_remove(w.av, &peer, 1, 0), 0);
	ck_assert_int_eq(shim->faults("any+remove"), 5);
	world_close(&w);
}
END_TEST

/* A read of several with the bad one in the middle: nothing is lost. */
START_TEST(what_was_read_behind_an_error_comes_after_it)
{
	struct fi_cq_data_entry entry[8];
	struct fi_cq_err_entry err = {0};
	char out[64], in[5][64];
	unsigned got = 0, errors = 0;

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	world_connect(&w);
	set("fail=received:3:5:2");
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(world_recv(&w.b, in[i], 64, in[i]), 0);
	}
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(world_send(&w.a, out, 64, out), 0);
		ck_assert_int_eq(world_read_wait(&w, &w.a, entry), 1);
	}
	while (got < 5) {
		ssize_t ret = fi_cq_read(w.b.cq, entry, 8);

		if (ret == -FI_EAVAIL) {
			ck_assert_int_eq(fi_cq_readerr(w.b.cq, &err, 0), 1);
			ck_assert_ptr_eq(err.op_context, in[got++]);
			errors++;
		}
		for (ssize_t i = 0; i < ret; i++) {
			ck_assert_ptr_eq(entry[i].op_context, in[got++]);
		}
	}
	ck_assert_uint_eq(errors, 2);
	world_close(&w);
}
END_TEST

START_TEST(garbage_spares_context_flags_and_remote_data)
{
	struct fi_cq_data_entry plain, noisy;
	char out[64], in[64];
	struct fid_mr *mr;
	int ctx;

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	world_connect(&w);
	ck_assert_int_eq(world_reg(&w, in, 64, FI_REMOTE_WRITE, 5, &mr), 0);
	ck_assert_int_eq(world_write(&w, out, 64, in, mr, 77, &ctx), 0);
	ck_assert_int_eq(world_read_wait(&w, &w.b, &plain), 1);
	ck_assert_int_eq(world_read_wait(&w, &w.a, &noisy), 1);
	set("garbage");
	ck_assert_int_eq(world_write(&w, out, 64, in, mr, 77, &ctx), 0);
	ck_assert_int_eq(world_read_wait(&w, &w.b, &noisy), 1);
	ck_assert_uint_eq(noisy.flags, plain.flags);
	ck_assert_uint_eq(noisy.data, 77);
	ck_assert_uint_gt(noisy.len, 64);
	ck_assert_ptr_nonnull(noisy.buf);
	ck_assert_int_eq(world_read_wait(&w, &w.a, &noisy), 1);
	ck_assert_ptr_eq(noisy.op_context, &ctx);

	ck_assert_int_eq(world_recv(&w.b, in, 64, &ctx), 0);
	ck_assert_int_eq(world_send(&w.a, out, 40, out), 0);
	ck_assert_int_eq(world_read_wait(&w, &w.b, &noisy), 1);
	ck_assert_ptr_eq(noisy.op_context, &ctx);
	ck_assert_uint_eq(noisy.len, 40);
	ck_assert_ptr_ne(noisy.buf, in);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	world_close(&w);
}
END_TEST

START_TEST(keys_are_forced_and_given_back)
{
	const uint64_t big = 4294967301u, last = 18446744073709551614u;
	char mem[4][64];
	struct fid_mr *mr[4], *local;

	if (!provider(_i)) {
		return;
	}
	set("keys=0,4294967301,18446744073709551614");
	ck_assert_int_eq(world_open(&w, prov), 0);
	ck_assert_int_eq(world_reg(&w, mem[0], 64, FI_SEND, 90, &local), 0);
	ck_assert_uint_eq(fi_mr_key(local), 90);
	for (uint64_t i = 0; i < 4; i++) {
		ck_assert_int_eq(world_reg(&w, mem[i], 64, FI_REMOTE_WRITE,
					   91 + i, &mr[i]),
				 0);
	}
	ck_assert_uint_eq(fi_mr_key(mr[0]), 0);
	ck_assert_uint_eq(fi_mr_key(mr[1]), big);
	ck_assert_uint_eq(fi_mr_key(mr[2]), last);
	ck_assert_uint_eq(fi_mr_key(mr[3]), 94);
	ck_assert_int_eq(fi_close(&mr[1]->fid), 0);
	ck_assert_int_eq(world_reg(&w, mem[1], 64, FI_REMOTE_WRITE, 92, &mr[1]),
			 0);
	ck_assert_uint_eq(fi_mr_key(mr[1]), big);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(fi_close(&mr[i]->fid), 0);
	}
	ck_assert_int_eq(fi_close(&local->fid), 0);
	world_close(&w);
}
END_TEST

/* The order of a list by the domain and address of its members. */
static void order_of(struct fi_info *list, char *text, size_t bytes)
{
	size_t len = 0;

	text[0] = '\0';
	for (; list != NULL && len + 64 < bytes; list = list->next) {
		const unsigned char *addr = list->src_addr;

		len += (size_t)snprintf(text + len, bytes - len, "%s/%u/%u ",
					list->domain_attr->name,
					list->addr_format,
					addr == NULL ? 0 : addr[4]);
	}
}

START_TEST(a_list_has_another_order_each_time_and_the_same_for_a_seed)
{
	char first[4096], again[4096], other[4096];
	struct fi_info *list;
	unsigned same = 0;

	if (!provider(_i)) {
		return;
	}
	for (unsigned seed = 0; seed < 20; seed++) {
		char text[32];

		snprintf(text, sizeof(text), "shuffle;seed=%u", seed);
		for (int round = 0; round < 2; round++) {
			set(text);
			list = world_infos(prov);
			ck_assert_ptr_nonnull(list);
			order_of(list, round == 0 ? first : again,
				 sizeof(first));
			world_free_infos(list);
		}
		ck_assert_str_eq(first, again);
		list = world_infos(prov);
		order_of(list, other, sizeof(other));
		world_free_infos(list);
		ck_assert_uint_eq(strlen(other), strlen(first));
		same += strcmp(first, other) == 0;
	}
	/* A list of one cannot be in another order. */
	ck_assert(same < 20 || strchr(first, ' ')[1] == '\0' ||
		  strcmp(prov, "shm") == 0);
}
END_TEST

static unsigned lines_with(const char *path, const char *part)
{
	char line[256];
	unsigned cnt = 0;
	FILE *file = fopen(path, "r");

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		cnt += strstr(line, part) != NULL;
	}
	fclose(file);
	return cnt;
}

START_TEST(the_log_tells_of_objects_posts_and_faults)
{
	char path[] = "t_shim.log.XXXXXX", text[64], from[64], into[64];
	struct fi_cq_data_entry entry;
	struct fid_mr *mr;
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	close(fd);
	if (!provider(_i)) {
		unlink(path);
		return;
	}
	snprintf(text, sizeof(text), "log=%s;posts;fail=recv:3:61", path);
	set(text);
	ck_assert_int_eq(world_open(&w, prov), 0);
	world_connect(&w);
	ck_assert_int_eq(world_reg(&w, into, 64, FI_REMOTE_WRITE, 5, &mr), 0);
	ck_assert_int_eq(world_write(&w, from, 64, into, mr, 0xabc, from), 0);
	ck_assert_int_eq(world_read_wait(&w, &w.b, &entry), 1);
	ck_assert_int_eq(world_read_wait(&w, &w.a, &entry), 1);
	ck_assert_int_eq(world_recv(&w.b, into, 64, into), 0);
	ck_assert_int_eq(world_recv(&w.b, into, 64, into), -61);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	world_close(&w);
	ck_assert_uint_eq(lines_with(path, " open ep "), 2);
	ck_assert_uint_eq(lines_with(path, " bind ep "), 4);
	ck_assert_uint_eq(lines_with(path, " close ep "), 2);
	ck_assert_uint_eq(lines_with(path, " close cq "), 2);
	ck_assert_uint_eq(lines_with(path, " close mr "), 1);
	ck_assert_uint_eq(lines_with(path, " close av "), 1);
	ck_assert_uint_eq(lines_with(path, " close domain "), 1);
	ck_assert_uint_eq(lines_with(path, " close fabric "), 1);
	ck_assert_uint_eq(lines_with(path, " post write 0 64 abc\n"), 1);
	ck_assert_uint_eq(lines_with(path, " land 0 abc\n"), 1);
	ck_assert_uint_eq(lines_with(path, " fault recv 0 61\n"), 1);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(remote_data_can_be_narrowed)
{
	struct fi_info *list;

	if (!provider(_i)) {
		return;
	}
	set("cqdata=4");
	list = world_infos(prov);
	for (struct fi_info *pos = list; pos != NULL; pos = pos->next) {
		ck_assert_uint_eq(pos->domain_attr->cq_data_size, 4);
	}
	world_free_infos(list);
}
END_TEST

/* Sends @out, which arrives in @in. */
static void send_one(uint8_t *out, size_t bytes, uint8_t *in)
{
	struct fi_cq_data_entry entry;

	memset(in, 0, 64);
	ck_assert_int_eq(world_recv(&w.b, in, 64, in), 0);
	ck_assert_int_eq(world_send(&w.a, out, bytes, out), 0);
	ck_assert_int_eq(world_read_wait(&w, &w.b, &entry), 1);
	ck_assert_int_eq(world_read_wait(&w, &w.a, &entry), 1);
}

START_TEST(a_message_is_spoiled_and_others_are_not)
{
	uint8_t out[24] = {7, 0, 0, 0, 0, 0, 0, 0, 255}, in[64];

	if (!provider(_i)) {
		return;
	}
	ck_assert_int_eq(world_open(&w, prov), 0);
	world_connect(&w);
	set("spoil=7:8:513;again=send:1:1");
	ck_assert_int_eq(world_send(&w.a, out, sizeof(out), out), -FI_EAGAIN);
	ck_assert_uint_eq(out[8], 255);
	send_one(out, sizeof(out), in);
	ck_assert_uint_eq(in[0], 7);
	ck_assert_uint_eq(in[8], 0);
	ck_assert_uint_eq(in[9], 3);
	set("spoil=7:8:513");
	out[9] = 0;
	send_one(out, 15, in);
	ck_assert_uint_eq(in[9], 0);
	out[0] = 8;
	send_one(out, sizeof(out), in);
	ck_assert_uint_eq(in[9], 0);
	world_close(&w);
}
END_TEST

START_TEST(a_wrong_text_changes_nothing)
{
	set("fail=getinfo:1");
	ck_assert_int_eq(shim->set("fail=getinfo"), -EINVAL);
	ck_assert_ptr_null(world_infos("net"));
	ck_assert_int_eq(shim->faults("getinfo"), 1);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("shim");

	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, it_moves_bytes_as_the_real_one, 0, PROVIDERS);
	tcase_add_loop_test(t, each_call_that_opens_can_fail, 0, PROVIDERS);
	tcase_add_loop_test(t, the_kth_post_fails_and_no_other, 0, PROVIDERS);
	tcase_add_loop_test(t, a_burst_of_refusals_lets_the_next_one_through, 0,
			    PROVIDERS);
	tcase_add_loop_test(t, a_call_begins_with_a_signal_and_goes_on, 0,
			    PROVIDERS);
	tcase_add_loop_test(t, refusals_come_as_often_as_was_said, 0,
			    PROVIDERS);
	tcase_add_loop_test(t, a_rule_for_one_rail_leaves_the_others_alone, 0,
			    PROVIDERS);
	tcase_add_loop_test(t, an_error_takes_the_place_of_a_completion, 0,
			    PROVIDERS);
	tcase_add_loop_test(t, a_fetch_can_be_refused_and_fail, 0, PROVIDERS);
	tcase_add_loop_test(t, an_option_can_be_refused, 0, PROVIDERS);
	tcase_add_loop_test(t, every_other_call_can_be_refused, 0, PROVIDERS);
	tcase_add_loop_test(t, what_was_read_behind_an_error_comes_after_it, 0,
			    PROVIDERS);
	tcase_add_loop_test(t, garbage_spares_context_flags_and_remote_data, 0,
			    PROVIDERS);
	tcase_add_loop_test(t, keys_are_forced_and_given_back, 0, PROVIDERS);
	tcase_add_loop_test(
		t, a_list_has_another_order_each_time_and_the_same_for_a_seed,
		0, PROVIDERS);
	tcase_add_loop_test(t, the_log_tells_of_objects_posts_and_faults, 0,
			    PROVIDERS);
	tcase_add_loop_test(t, a_message_is_spoiled_and_others_are_not, 0,
			    PROVIDERS);
	tcase_add_loop_test(t, remote_data_can_be_narrowed, 0, PROVIDERS);
	tcase_add_test(t, a_wrong_text_changes_nothing);
	return unit_run(t, "shim");
}
