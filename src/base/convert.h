// convert.h - elements of one dtype to another, one after the other.
#ifndef TARN_BASE_CONVERT_H_
#define TARN_BASE_CONVERT_H_

#include "tarn/base.h"

// Whether elements of |from| can become elements of |to|: both floating point,
// both integer, or the same.
bool tarn__convert_is_possible(tarn_dtype to, tarn_dtype from);

// Whether elements of |dtype| can be added: not bool.
bool tarn__convert_can_add(tarn_dtype dtype);

// |count| elements, at addresses of any alignment, which must not overlap.
// Floats go to the nearest, ties to even; integers modulo the range of |to|.
// Possible, as above.
void tarn__convert(tarn_dtype to, void *dst, tarn_dtype from, const void *src,
                   size_t count);

// dst[i] += src[i], each sum rounded to |to|; integers wrap. Possible, both as
// above.
void tarn__convert_add(tarn_dtype to, void *dst, tarn_dtype from,
                       const void *src, size_t count);

#endif  // TARN_BASE_CONVERT_H_
