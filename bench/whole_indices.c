// Random numbers, and numbers that follow from a position.
#include "whole_indices.h"

#include <math.h>

// The splitmix generator: the same on all machines.
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

// A prime that |rows| is no multiple of: times it, modulo |rows|, puts all
// numbers below |rows| in another order. Products stay below 2^64 for any table
// that a machine can hold, and none of those is a multiple of both.
static uint64_t scatter_of(size_t rows) {
  return rows % 1000003 != 0 ? 1000003 : 1000033;
}

static int64_t place_of(uint64_t number, size_t rows) {
  return (int64_t)(number % rows * scatter_of(rows) % rows);
}

void whole_draw_uniform(int64_t *out, size_t count, size_t rows,
                        uint64_t seed) {
  for (size_t i = 0; i < count; i++)
    out[i] = (int64_t)(next_random(&seed) % rows);
}

// The distribution whose density is 1 / x from 1 to rows + 1: its logarithm is
// uniform.
void whole_draw_zipf(int64_t *out, size_t count, size_t rows, uint64_t seed) {
  double all = log((double)rows + 1);
  for (size_t i = 0; i < count; i++) {
    double u = (double)(next_random(&seed) >> 11) * 0x1p-53;
    uint64_t rank = (uint64_t)(exp(u * all) - 1);
    out[i] = place_of(rank < rows ? rank : rows - 1, rows);
  }
}

// The distribution whose density is 1 / x^exponent there: a power of it is
// uniform.
void whole_draw_power(int64_t *out, size_t count, size_t rows, double exponent,
                      uint64_t seed) {
  double power = 1 - exponent;
  double all = pow((double)rows + 1, power) - 1;
  for (size_t i = 0; i < count; i++) {
    double u = (double)(next_random(&seed) >> 11) * 0x1p-53;
    uint64_t rank = (uint64_t)(pow(1 + u * all, 1 / power) - 1);
    out[i] = place_of(rank < rows ? rank : rows - 1, rows);
  }
}

void whole_draw_different(int64_t *out, size_t count, size_t rows,
                          uint64_t seed) {
  uint64_t first = next_random(&seed) % rows;
  for (size_t i = 0; i < count; i++)
    out[i] = place_of(first + i, rows);
}

// ---------------------------------------------------------------------------
// Elements
// ---------------------------------------------------------------------------

static inline float element(uint64_t position) {
  uint32_t low = (uint32_t)position * UINT32_C(2654435761);
  uint32_t high = (uint32_t)(position >> 32) * UINT32_C(40503);
  return (float)(int32_t)((low ^ high) >> 10);
}

void whole_fill(float *out, size_t count, uint64_t first) {
  for (size_t i = 0; i < count; i++)
    out[i] = element(first + i);
}

void whole_rows_fill(float *out, const int64_t *indices, size_t count,
                     size_t width, float more) {
  for (size_t i = 0; i < count; i++) {
    uint64_t first = (uint64_t)indices[i] * width;
    for (size_t j = 0; j < width; j++)
      out[i * width + j] = element(first + j) + more;
  }
}

// Whole numbers are the same or they are not.
static bool row_right(const float *row, uint64_t first, size_t width,
                      float more) {
  bool right = true;
  for (size_t j = 0; j < width; j++) {
    float off = row[j] - element(first + j) - more;
    right &= off >= 0 && off <= 0;
  }
  return right;
}

bool whole_rows_right(const float *dense, const int64_t *indices, size_t count,
                      size_t width, float more) {
  for (size_t i = 0; i < count; i++) {
    uint64_t first = (uint64_t)indices[i] * width;
    if (!row_right(dense + i * width, first, width, more)) return false;
  }
  return true;
}
