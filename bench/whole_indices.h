// whole_indices.h - which rows a benchmark asks for, and what stands in them.
// No library is needed: the program that runs under MPI has the same.
//
// Every element of a table is a float, a whole number below 2^22 that follows
// from its position alone: adding 1 to it, a few times, is exact.
#ifndef TARN_BENCH_WHOLE_INDICES_H_
#define TARN_BENCH_WHOLE_INDICES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Fills |out| with |count| numbers below |rows|, each as likely as the others.
void whole_draw_uniform(int64_t *out, size_t count, size_t rows, uint64_t seed);

// The same, the k-th most wanted row coming about 1 / k as often as the first:
// Zipf's law with exponent 1. Where in the table the wanted rows lie has no
// order.
void whole_draw_zipf(int64_t *out, size_t count, size_t rows, uint64_t seed);

// The same with another exponent, which is not 1.
void whole_draw_power(int64_t *out, size_t count, size_t rows, double exponent,
                      uint64_t seed);

// |count| different numbers, all below |rows|, which must be as many at least.
void whole_draw_different(int64_t *out, size_t count, size_t rows,
                          uint64_t seed);

// Fills |out| with elements |first| to |first| + |count| - 1 of a table.
void whole_fill(float *out, size_t count, uint64_t first);

// Rows |indices| of a table whose rows have |width| elements, with |more| added
// to each element, one after the other: fills |out| with them, or sees whether
// they stand in |dense|.
void whole_rows_fill(float *out, const int64_t *indices, size_t count,
                     size_t width, float more);
bool whole_rows_right(const float *dense, const int64_t *indices, size_t count,
                      size_t width, float more);

#endif  // TARN_BENCH_WHOLE_INDICES_H_
