/* Element types and reductions, on host memory. */
#ifndef FR_TOOLS_REDUCE_H
#define FR_TOOLS_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fr_type {
	FR_INT8,
	FR_UINT8,
	FR_INT32,
	FR_UINT32,
	FR_INT64,
	FR_UINT64,
	FR_HALF,
	FR_BFLOAT16,
	FR_FLOAT,
	FR_DOUBLE,
	FR_TYPE_CNT
};

enum fr_redop { FR_SUM, FR_PROD, FR_MAX, FR_MIN, FR_AVG, FR_REDOP_CNT };

extern const char *const fr_type_names[];  /* ends with NULL */
extern const char *const fr_redop_names[]; /* likewise */

size_t fr_type_bytes(int type);
bool fr_type_is_signed(int type);
bool fr_type_is_float(int type);
/* Largest whole number up to which all whole numbers are exact; capped. */
int64_t fr_type_exact_max(int type);

float fr_half_to_float(uint16_t h);
uint16_t fr_float_to_half(float f); /* to nearest, ties to even */
float fr_bfloat_to_float(uint16_t b);
uint16_t fr_float_to_bfloat(float f); /* likewise */

/* @dst[i] = @a[i] op @b[i]; @dst may be one of them. AVG sums. Integers wrap.
 */
void fr_reduce(int type, int op, void *dst, const void *a, const void *b,
	       size_t cnt);
/* The last step of AVG: divides by @ranks. Nothing for other operations. */
void fr_reduce_finish(int type, int op, void *data, size_t cnt, unsigned ranks);
/* Stores @v, converted; @den 1, or the divisor of an average. */
void fr_type_store(int type, void *dst, int64_t v, unsigned den);

#endif
