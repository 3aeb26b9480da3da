/*
 * Properties, at the offsets that the hosts of each version were compiled with:
 * no struct of ours is used to read them.
 */
#include <check.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fake/fake_net.h"
#include "table.h"
#include "unit/run.h"

#define BYTES_MAX 128
#define BEHIND 16

enum kind { PTR_NAME, PTR_PATH, U64, INT, I16, FLOAT };

/* One property in all versions: where it lies, 0 where it is not, and what it
 * has over the fake core. */
struct row {
	const char *name;
	enum kind kind;
	int64_t value;
	/* v4, v5 and v6, v7, v8, v9 and v10, v11, v12 */
	uint8_t at[7];
};

#define SPEED_ROW 5
#define COMMS_ROW 8
#define P2P_ROW 20
#define COLL_ROW 21

/* clang-format off */
static const struct row rows[] = {
	{"name",             PTR_NAME, 0,                  {0, 0, 0, 0, 0, 0, 0}},
	{"pciPath",          PTR_PATH, 0,                  {8, 8, 8, 8, 8, 8, 8}},
	{"guid",             U64, 0x1122334455667788,      {16, 16, 16, 16, 16, 16, 16}},
	{"ptrSupport",       INT, NCCL_PTR_HOST,           {24, 24, 24, 24, 24, 24, 24}},
	{"regIsGlobal",      INT, 0,                       {0, 0, 0, 28, 28, 28, 28}},
	{"speed",            INT, 400000,                  {28, 28, 28, 32, 36, 36, 36}},
	{"port",             INT, 1,                       {32, 32, 32, 36, 40, 40, 40}},
	{"latency",          FLOAT, 0,                     {0, 36, 36, 40, 44, 44, 44}},
	{"maxComms",         INT, 1000,                    {36, 40, 40, 44, 48, 48, 48}},
	{"maxRecvs, 1",      INT, 1,                       {0, 44, 44, 48, 0, 0, 0}},
	{"maxRecvs, 8",      INT, 8,                       {0, 0, 0, 0, 52, 52, 52}},
	{"forceFlush",       INT, 0,                       {0, 0, 0, 0, 32, 32, 32}},
	{"netDeviceType",    INT, 0,                       {0, 0, 48, 52, 56, 56, 56}},
	{"netDeviceVersion", INT, 0,                       {0, 0, 52, 56, 60, 60, 60}},
	{"vProps.ndevs",     INT, 1,                       {0, 0, 0, 0, 64, 64, 64}},
	{"vProps.devs[0]",   INT, 1,                       {0, 0, 0, 0, 68, 68, 68}},
	{"vProps.devs[1]",   INT, 0,                       {0, 0, 0, 0, 72, 72, 72}},
	{"vProps.devs[2]",   INT, 0,                       {0, 0, 0, 0, 76, 76, 76}},
	{"vProps.devs[3]",   INT, 0,                       {0, 0, 0, 0, 80, 80, 80}},
	{"vProps.devs[7]",   INT, 0,                       {0, 0, 0, 0, 0, 0, 96}},
	{"maxP2pBytes",      U64, 1 << 30,                 {0, 0, 0, 0, 88, 88, 104}},
	{"maxCollBytes",     U64, 1 << 30,                 {0, 0, 0, 0, 96, 96, 112}},
	{"maxMultiRequestSize", INT, 1,                    {0, 0, 0, 0, 0, 104, 120}},
	{"railId",           I16, NCCL_NET_ID_UNDEF,       {0, 0, 0, 0, 0, 0, 124}},
	{"planeId",          I16, NCCL_NET_ID_UNDEF,       {0, 0, 0, 0, 0, 0, 126}},
};
/* clang-format on */

static const uint8_t column_of[] = {0, 1, 1, 2, 3, 4, 4, 5, 6};
static const size_t bytes_of[] = {40, 48, 56, 64, 104, 112, 128};
static const size_t padding_of[] = {0, 0, 0, 4, 4, 8, 4};

static const struct table *t;
static unsigned column;
static _Alignas(16) unsigned char props[BYTES_MAX + BEHIND];

static void start(int i)
{
	void *ctx;

	t = &tables[i];
	column = column_of[i];
	ck_assert_int_eq(t->init(host_logger, &ctx), ncclSuccess);
}

/* With each byte preset; what follows the struct belongs to the host. */
static void ask(int dev, unsigned char preset)
{
	memset(props, preset, sizeof(props));
	ck_assert_int_eq(t->props_at(dev, props), ncclSuccess);
	for (size_t i = bytes_of[column]; i < sizeof(props); i++) {
		ck_assert_uint_eq(props[i], preset);
	}
}

static void *ptr_at(size_t offset)
{
	void *v;

	memcpy(&v, props + offset, sizeof(v));
	return v;
}

static int64_t number_at(enum kind kind, size_t offset)
{
	uint64_t u64;
	int16_t i16;
	float f;
	int i;

	switch (kind) {
	case U64:
		memcpy(&u64, props + offset, sizeof(u64));
		return (int64_t)u64;
	case INT:
		memcpy(&i, props + offset, sizeof(i));
		return i;
	case I16:
		memcpy(&i16, props + offset, sizeof(i16));
		return i16;
	default:
		memcpy(&f, props + offset, sizeof(f));
		return (int64_t)(f * 1000);
	}
}

static int64_t row_value(unsigned row)
{
	return number_at(rows[row].kind, rows[row].at[column]);
}

static void check_row(const struct row *row)
{
	size_t at = row->at[column];

	if (row->kind == PTR_NAME) {
		ck_assert_str_eq(ptr_at(at), "fabrail0");
	} else if (row->kind == PTR_PATH) {
		ck_assert_str_eq(ptr_at(at),
				 "/sys/bus/pci/devices/0000:01:00.0");
	} else if (at != 0) {
		ck_assert_msg(number_at(row->kind, at) == row->value,
			      "v%d: %s at %zu is %lld, not %lld", t->abi,
			      row->name, at,
			      (long long)number_at(row->kind, at),
			      (long long)row->value);
	}
}

/* Whatever lay there before. */
START_TEST(every_property_lies_where_the_host_looks)
{
	start(_i);
	for (int preset = 0; preset <= 0xff; preset += 0x55) {
		ask(1, (unsigned char)preset);
		for (size_t i = 0; i < FR_ARRAY_LEN(rows); i++) {
			check_row(&rows[i]);
		}
	}
}
END_TEST

/* Every byte of the struct but padding belongs to one row. */
START_TEST(no_property_is_left_out)
{
	static const uint8_t width[] = {8, 8, 8, 4, 2, 4};
	size_t covered = 0, vdevs;

	start(_i);
	for (size_t i = 0; i < FR_ARRAY_LEN(rows); i++) {
		if (rows[i].at[column] != 0 || rows[i].kind == PTR_NAME) {
			covered += width[rows[i].kind];
		}
	}
	vdevs = t->abi == 12 ? 3 * sizeof(int) : 0; /* devs[4] to [6] */
	ck_assert_uint_eq(covered + vdevs + padding_of[column],
			  bytes_of[column]);
}
END_TEST

START_TEST(a_path_may_be_missing)
{
	start(_i);
	fake_net.props.pci_path = NULL;
	ask(0, 0xa5);
	ck_assert_ptr_null(ptr_at(8));
}
END_TEST

START_TEST(numbers_beyond_int_become_the_largest)
{
	start(_i);
	fake_net.props.speed_mbps = UINT32_MAX;
	fake_net.props.max_comms = UINT32_MAX;
	ask(0, 0xa5);
	ck_assert_int_eq(row_value(SPEED_ROW), INT_MAX);
	ck_assert_int_eq(row_value(COMMS_ROW), INT_MAX);
}
END_TEST

START_TEST(the_largest_message_is_between_1_byte_and_1_tib)
{
	static const struct {
		uint64_t core;
		int64_t host;
	} sizes[] = {
		{0, 1},
		{1, 1},
		{4096, 4096},
		{1ull << 40, 1ll << 40},
		{(1ull << 40) + 1, 1ll << 40},
		{UINT64_MAX, 1ll << 40},
	};

	start(_i);
	if (t->abi < 9) {
		return;
	}
	for (size_t i = 0; i < FR_ARRAY_LEN(sizes); i++) {
		fake_net.props.max_msg_bytes = sizes[i].core;
		ask(0, 0xa5);
		ck_assert_int_eq(row_value(P2P_ROW), sizes[i].host);
		ck_assert_int_eq(row_value(COLL_ROW), sizes[i].host);
	}
}
END_TEST

START_TEST(a_missing_place_for_the_properties_is_refused)
{
	start(_i);
	ck_assert_int_eq(t->props_at(0, NULL), ncclInvalidArgument);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("every table");

	tcase_add_checked_fixture(tcase, shells_setup, shells_teardown);
	tcase_add_loop_test(tcase, every_property_lies_where_the_host_looks, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase, no_property_is_left_out, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, a_path_may_be_missing, 0, TABLE_CNT);
	tcase_add_loop_test(tcase, numbers_beyond_int_become_the_largest, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase,
			    the_largest_message_is_between_1_byte_and_1_tib, 0,
			    TABLE_CNT);
	tcase_add_loop_test(tcase,
			    a_missing_place_for_the_properties_is_refused, 0,
			    TABLE_CNT);
	return unit_run(tcase, "plugin_props");
}
