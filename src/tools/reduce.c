#include "tools/reduce.h"

#include <string.h>

#include "base/util.h"

const char *const fr_type_names[] = {"int8",  "uint8",	"int32", "uint32",
				     "int64", "uint64", "half",	 "bfloat16",
				     "float", "double", NULL};
const char *const fr_redop_names[] = {"sum", "prod", "max", "min", "avg", NULL};

size_t fr_type_bytes(int type)
{
	static const uint8_t bytes[] = {
		[FR_INT8] = 1,	 [FR_UINT8] = 1,    [FR_INT32] = 4,
		[FR_UINT32] = 4, [FR_INT64] = 8,    [FR_UINT64] = 8,
		[FR_HALF] = 2,	 [FR_BFLOAT16] = 2, [FR_FLOAT] = 4,
		[FR_DOUBLE] = 8,
	};

	return bytes[type];
}

bool fr_type_is_float(int type)
{
	return type == FR_HALF || type == FR_BFLOAT16 || type == FR_FLOAT ||
	       type == FR_DOUBLE;
}

bool fr_type_is_signed(int type)
{
	return type == FR_INT8 || type == FR_INT32 || type == FR_INT64 ||
	       fr_type_is_float(type);
}

int64_t fr_type_exact_max(int type)
{
	switch (type) {
	case FR_INT8:
		return 127;
	case FR_UINT8:
		return 255;
	case FR_BFLOAT16:
		return 256;
	case FR_HALF:
		return 2048;
	default:
		return 1 << 24;
	}
}

float fr_half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
	uint32_t exp = (h >> 10) & 31u, frac = h & 0x3ffu, bits;
	float f;

	if (exp == 31) {
		bits = sign | 0x7f800000u | (frac << 13);
	} else if (exp != 0) {
		bits = sign | ((exp + 112) << 23) | (frac << 13);
	} else {
		f = (float)frac * 0x1p-24f;
		return sign != 0 ? -f : f;
	}
	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* @v >> @by, to nearest, ties to even. */
static uint32_t shift_round(uint32_t v, unsigned by)
{
	uint32_t half = 1u << (by - 1), rest = v & ((1u << by) - 1);

	v >>= by;
	return v + (rest > half || (rest == half && (v & 1u) != 0));
}

uint16_t fr_float_to_half(float f)
{
	uint32_t bits, sign, frac;
	int exp;

	memcpy(&bits, &f, sizeof(bits));
	sign = (bits >> 16) & 0x8000u;
	exp = (int)((bits >> 23) & 255u) - 112;
	frac = bits & 0x7fffffu;
	if (exp == 143) { /* infinity or not a number */
		return (uint16_t)(sign | 0x7c00u | (frac != 0 ? 0x200u : 0));
	}
	if (exp >= 31) {
		return (uint16_t)(sign | 0x7c00u);
	}
	if (exp > 0) { /* a carry out of the fraction is the next exponent */
		frac = ((uint32_t)exp << 23) | frac;
		return (uint16_t)(sign | shift_round(frac, 13));
	}
	if (exp < -10) {
		return (uint16_t)sign;
	}
	frac |= 0x800000u;
	return (uint16_t)(sign | shift_round(frac, (unsigned)(14 - exp)));
}

float fr_bfloat_to_float(uint16_t b)
{
	uint32_t bits = (uint32_t)b << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

uint16_t fr_float_to_bfloat(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	if ((bits & 0x7fffffffu) > 0x7f800000u) {
		return (uint16_t)((bits >> 16) | 0x40u);
	}
	return (uint16_t)shift_round(bits, 16);
}

/* Signed sums and products wrap through the unsigned type. */
#define ADD(utype, x, y) ((utype)((utype)(x) + (utype)(y)))
#define MUL(utype, x, y) ((utype)((uint64_t)(utype)(x) * (uint64_t)(utype)(y)))
#define FADD(utype, x, y) ((x) + (y))
#define FMUL(utype, x, y) ((x) * (y))

#define LOOP(expr)                                                             \
	for (size_t i = 0; i < cnt; i++) {                                     \
		x = GET(a, i);                                                 \
		y = GET(b, i);                                                 \
		PUT(d, i, expr);                                               \
	}                                                                      \
	break

#define REDUCER(name, stored, value, utype, add, mul)                          \
	static void reduce_##name(int op, void *dst, const void *pa,           \
				  const void *pb, size_t cnt)                  \
	{                                                                      \
		const stored *a = pa, *b = pb;                                 \
		stored *d = dst;                                               \
		value x, y;                                                    \
                                                                               \
		switch (op) {                                                  \
		case FR_PROD:                                                  \
			LOOP(mul(utype, x, y));                                \
		case FR_MAX:                                                   \
			LOOP(x > y ? x : y);                                   \
		case FR_MIN:                                                   \
			LOOP(x < y ? x : y);                                   \
		default:                                                       \
			LOOP(add(utype, x, y));                                \
		}                                                              \
	}

#define GET(p, i) ((p)[i])
#define PUT(p, i, v) ((p)[i] = (v))
REDUCER(int8, int8_t, int8_t, uint8_t, ADD, MUL)
REDUCER(uint8, uint8_t, uint8_t, uint8_t, ADD, MUL)
REDUCER(int32, int32_t, int32_t, uint32_t, ADD, MUL)
REDUCER(uint32, uint32_t, uint32_t, uint32_t, ADD, MUL)
REDUCER(int64, int64_t, int64_t, uint64_t, ADD, MUL)
REDUCER(uint64, uint64_t, uint64_t, uint64_t, ADD, MUL)
REDUCER(float, float, float, float, FADD, FMUL)
REDUCER(double, double, double, double, FADD, FMUL)
#undef GET
#undef PUT
#define GET(p, i) fr_half_to_float((p)[i])
#define PUT(p, i, v) ((p)[i] = fr_float_to_half(v))
REDUCER(half, uint16_t, float, float, FADD, FMUL)
#undef GET
#undef PUT
#define GET(p, i) fr_bfloat_to_float((p)[i])
#define PUT(p, i, v) ((p)[i] = fr_float_to_bfloat(v))
REDUCER(bfloat16, uint16_t, float, float, FADD, FMUL)

void fr_reduce(int type, int op, void *dst, const void *a, const void *b,
	       size_t cnt)
{
	static void (*const fns[])(int, void *, const void *, const void *,
				   size_t) = {
		[FR_INT8] = reduce_int8,   [FR_UINT8] = reduce_uint8,
		[FR_INT32] = reduce_int32, [FR_UINT32] = reduce_uint32,
		[FR_INT64] = reduce_int64, [FR_UINT64] = reduce_uint64,
		[FR_HALF] = reduce_half,   [FR_BFLOAT16] = reduce_bfloat16,
		[FR_FLOAT] = reduce_float, [FR_DOUBLE] = reduce_double,
	};
	_Static_assert(FR_ARRAY_LEN(fns) == FR_TYPE_CNT, "a type is missing");

	fns[type](op, dst, a, b, cnt);
}

#define DIVIDE(vtype, n)                                                       \
	do {                                                                   \
		vtype *v_ = data;                                              \
		for (size_t i = 0; i < cnt; i++) {                             \
			v_[i] = (vtype)(v_[i] / (vtype)(n));                   \
		}                                                              \
	} while (0)

void fr_reduce_finish(int type, int op, void *data, size_t cnt, unsigned ranks)
{
	uint16_t *h = data;

	if (op != FR_AVG) {
		return;
	}
	switch (type) {
	case FR_INT8:
		DIVIDE(int8_t, ranks);
		break;
	case FR_UINT8:
		DIVIDE(uint8_t, ranks);
		break;
	case FR_INT32:
		DIVIDE(int32_t, ranks);
		break;
	case FR_UINT32:
		DIVIDE(uint32_t, ranks);
		break;
	case FR_INT64:
		DIVIDE(int64_t, ranks);
		break;
	case FR_UINT64:
		DIVIDE(uint64_t, ranks);
		break;
	case FR_FLOAT:
		DIVIDE(float, ranks);
		break;
	case FR_DOUBLE:
		DIVIDE(double, ranks);
		break;
	case FR_HALF:
		for (size_t i = 0; i < cnt; i++) {
			h[i] = fr_float_to_half(fr_half_to_float(h[i]) /
						(float)ranks);
		}
		break;
	default:
		for (size_t i = 0; i < cnt; i++) {
			h[i] = fr_float_to_bfloat(fr_bfloat_to_float(h[i]) /
						  (float)ranks);
		}
		break;
	}
}

void fr_type_store(int type, void *dst, int64_t v, unsigned den)
{
	float f = (float)v / (float)den;
	double d = (double)v / (double)den;
	uint64_t whole = (uint64_t)(v / (int64_t)den);
	uint16_t h;

	switch (type) {
	case FR_HALF:
		h = fr_float_to_half(f);
		memcpy(dst, &h, sizeof(h));
		break;
	case FR_BFLOAT16:
		h = fr_float_to_bfloat(f);
		memcpy(dst, &h, sizeof(h));
		break;
	case FR_FLOAT:
		memcpy(dst, &f, sizeof(f));
		break;
	case FR_DOUBLE:
		memcpy(dst, &d, sizeof(d));
		break;
	default: /* little endian: the low bytes are the narrow integer */
		memcpy(dst, &whole, fr_type_bytes(type));
		break;
	}
}
