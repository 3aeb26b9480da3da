#include "tools/verify.h"

#include <string.h>

#include "base/util.h"

#define POISON 0xdb
#define BLOCK 1024u /* elements that are checked at a time */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ (x >> 33);
}

static uint64_t noise(const struct fr_pattern *p, unsigned rank, size_t i)
{
	return mix(p->seed * 0x9e3779b97f4a7c15ull + ((uint64_t)rank << 48) +
		   i);
}

/*
 * Element @i of @rank's input, a whole number. Sums of all ranks stay exact in
 * the type; of a product at most one factor is not 1 or -1.
 */
static int64_t input_value(const struct fr_pattern *p, unsigned ranks,
			   unsigned rank, size_t i)
{
	uint64_t z = noise(p, rank, i);
	int64_t most = fr_type_exact_max(p->type) / (int64_t)ranks;
	bool is_signed = fr_type_is_signed(p->type);

	switch (p->op) {
	case FR_PROD:
		z = (z >> 1) % 4 * 2 + (z & 1);
		most = i % ranks == rank ? (int64_t)(z >> 1) + 1 : 1;
		return is_signed && (z & 1) != 0 ? -most : most;
	case FR_MAX:
	case FR_MIN:
		return (int64_t)(z % 127) - (is_signed ? 63 : 0);
	default:
		return (int64_t)(z % (uint64_t)(FR_MAX(most, 1) + 1));
	}
}

static int64_t reduced_value(const struct fr_pattern *p, unsigned ranks,
			     size_t i)
{
	int64_t acc = input_value(p, ranks, 0, i), v;

	for (unsigned r = 1; r < ranks; r++) {
		v = input_value(p, ranks, r, i);
		switch (p->op) {
		case FR_PROD:
			acc *= v;
			break;
		case FR_MAX:
			acc = FR_MAX(acc, v);
			break;
		case FR_MIN:
			acc = FR_MIN(acc, v);
			break;
		default:
			acc += v;
			break;
		}
	}
	return acc;
}

/* Any bits will do where nothing is computed. */
static void plain_element(const struct fr_pattern *p, unsigned rank, size_t i,
			  char *to, size_t elem)
{
	uint64_t z = noise(p, rank, i);

	memcpy(to, &z, elem);
}

void fr_pattern_fill(const struct fr_pattern *p, const struct fr_shape *s,
		     void *in)
{
	size_t elem = fr_type_bytes(p->type), cnt = fr_shape_in_cnt(s);
	bool op = fr_perf_cmd_has_op(s->cmd);
	char *to = in;

	for (size_t i = 0; i < cnt; i++, to += elem) {
		if (op) {
			fr_type_store(p->type, to,
				      input_value(p, s->ranks, s->rank, i), 1);
		} else {
			plain_element(p, s->rank, i, to, elem);
		}
	}
}

void fr_pattern_poison(void *out, size_t bytes)
{
	memset(out, POISON, bytes);
}

uint64_t fr_poison_wrong(const void *buf, size_t bytes)
{
	const unsigned char *at = buf;
	uint64_t wrong = 0;

	for (size_t i = 0; i < bytes; i++) {
		wrong += at[i] != POISON;
	}
	return wrong;
}

/* Output element @i of the shape's rank. */
static void expected_element(const struct fr_pattern *p,
			     const struct fr_shape *s, size_t i, char *to,
			     size_t elem)
{
	unsigned den = p->op == FR_AVG ? s->ranks : 1;

	switch (s->cmd) {
	case FR_PERF_REDUCE:
	case FR_PERF_ALL_REDUCE:
		if (s->cmd == FR_PERF_REDUCE && s->rank != s->root) {
			memset(to, POISON, elem);
			break;
		}
		fr_type_store(p->type, to, reduced_value(p, s->ranks, i), den);
		break;
	case FR_PERF_REDUCE_SCATTER:
		fr_type_store(p->type, to,
			      reduced_value(p, s->ranks, s->rank * s->cnt + i),
			      den);
		break;
	case FR_PERF_ALL_GATHER:
		plain_element(p, (unsigned)(i / s->cnt), i % s->cnt, to, elem);
		break;
	case FR_PERF_ALLTOALL:
		plain_element(p, (unsigned)(i / s->cnt),
			      s->rank * s->cnt + i % s->cnt, to, elem);
		break;
	case FR_PERF_BROADCAST:
		plain_element(p, s->root, i, to, elem);
		break;
	default: /* sendrecv: from the rank before */
		plain_element(p, (s->rank + s->ranks - 1) % s->ranks, i, to,
			      elem);
		break;
	}
}

static uint64_t count_wrong(const char *got, const char *want, size_t cnt,
			    size_t elem)
{
	uint64_t wrong = 0;

	if (memcmp(got, want, cnt * elem) == 0) {
		return 0;
	}
	for (size_t i = 0; i < cnt; i++) {
		wrong += memcmp(got + i * elem, want + i * elem, elem) != 0;
	}
	return wrong;
}

uint64_t fr_pattern_wrong(const struct fr_pattern *p, const struct fr_shape *s,
			  const void *out)
{
	size_t elem = fr_type_bytes(p->type), cnt = fr_shape_out_cnt(s), n;
	char want[BLOCK * 8];
	uint64_t wrong = 0;

	for (size_t at = 0; at < cnt; at += n) {
		n = FR_MIN(BLOCK, cnt - at);
		for (size_t i = 0; i < n; i++) {
			expected_element(p, s, at + i, want + i * elem, elem);
		}
		wrong += count_wrong((const char *)out + at * elem, want, n,
				     elem);
	}
	return wrong;
}

static uint64_t word_at(uint64_t seed, size_t i)
{
	return mix((seed << 32) + i + 1);
}

void fr_bytes_fill(void *buf, size_t bytes, uint64_t seed)
{
	char *to = buf;
	uint64_t word;

	for (size_t at = 0; at < bytes; at += sizeof(word)) {
		word = word_at(seed, at / sizeof(word));
		memcpy(to + at, &word, FR_MIN(sizeof(word), bytes - at));
	}
}

uint64_t fr_bytes_wrong(const void *buf, size_t bytes, uint64_t seed)
{
	const char *from = buf;
	uint64_t word, wrong = 0;
	size_t n;

	for (size_t at = 0; at < bytes; at += n) {
		word = word_at(seed, at / sizeof(word));
		n = FR_MIN(sizeof(word), bytes - at);
		if (memcmp(from + at, &word, n) != 0) {
			wrong += count_wrong(from + at, (const char *)&word, n,
					     1);
		}
	}
	return wrong;
}
