// Stochastic rounding: a random number below the part that rounding cuts off is
// added to the magnitude before the cut.
#include <math.h>
#include <string.h>

#include "embedding/embedding.h"

// --- random numbers --------------------------------------------------------

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

uint64_t tarn__stochastic_row(uint64_t seed, uint64_t apply, uint64_t row) {
  const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
  return mix(mix(mix(seed + odd) + apply * odd) + row * odd);
}

static uint32_t random_of(uint64_t row, size_t column) {
  return (uint32_t)(mix(row + column * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

// --- one element -----------------------------------------------------------

static uint16_t to_bf16(float value, uint32_t random) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
  if (isinf(value)) return (uint16_t)(bits >> 16);
  return (uint16_t)((bits + (random & 0xffff)) >> 16);
}

enum { F16_INFINITY = 0x7c00, F16_NAN = 0x7e00 };

// The bits of a finite magnitude. Below 2^-14 they count steps of 2^-24. A
// carry goes into the exponent, as it should.
static uint32_t magnitude_to_f16(float magnitude, uint32_t random) {
  uint32_t bits = 0;
  if (magnitude < 0x1p-14f) {
    double steps = (double)magnitude * 0x1p24 + (double)random * 0x1p-32;
    return (uint32_t)steps;
  }
  memcpy(&bits, &magnitude, sizeof bits);
  bits = (bits + (random & 0x1fff)) >> 13;
  uint32_t half = bits - ((127 - 15) << 10);
  return half < F16_INFINITY ? half : F16_INFINITY;
}

static uint16_t to_f16(float value, uint32_t random) {
  uint32_t sign = signbit(value) ? 0x8000 : 0;
  if (isnan(value)) return (uint16_t)(sign | F16_NAN);
  if (isinf(value)) return (uint16_t)(sign | F16_INFINITY);
  return (uint16_t)(sign | magnitude_to_f16(fabsf(value), random));
}

// --- a row -----------------------------------------------------------------

void tarn__stochastic_round(tarn_dtype to, void *dst, const float *src,
                            size_t count, uint64_t row, size_t column) {
  uint16_t *out = dst;
  for (size_t i = 0; i < count; i++) {
    uint32_t random = random_of(row, column + i);
    out[i] = to == TARN_DTYPE_BF16 ? to_bf16(src[i], random)
                                   : to_f16(src[i], random);
  }
}
