// Stochastic rounding: one of the two numbers around, the nearer one more
// often, and what has a number stays it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "embedding/embedding.h"
#include "support/effort.h"
#include "support/run.h"

enum { DRAWS = EFFORT(200000, 20000) };

static const tarn_dtype dtypes[] = {TARN_DTYPE_BF16, TARN_DTYPE_F16};

static float back(tarn_dtype dtype, uint16_t bits) {
  float value = 0;
  tarn__convert(TARN_DTYPE_F32, &value, dtype, &bits, 1);
  return value;
}

static float draw(tarn_dtype dtype, float value, uint64_t apply) {
  uint16_t bits = 0;
  tarn__stochastic_round(dtype, &bits, &value, 1,
                         tarn__stochastic_row(5, apply, 17), 3);
  return back(dtype, bits);
}

static const float between[] = {1.00123f, -3.14159f, 1e-3f,    -2e-5f,
                                3e-7f,    60000.5f,  -1e-8f,   0.1f,
                                6.1e-5f,  1000.7f,   -0.3333f, 5.9e-8f};
enum { BETWEEN = sizeof between / sizeof between[0] };

// The mean of many is the value, within 5 standard deviations of what a fair
// draw between the two numbers would give.
TEST_LOOP(the_mean_is_right, 2 * BETWEEN) {
  tarn_dtype dtype = dtypes[_i % 2];
  float value = between[_i / 2];
  double sum = 0;
  float low = INFINITY;
  float high = -INFINITY;
  for (uint64_t i = 0; i < DRAWS; i++) {
    float got = draw(dtype, value, i);
    sum += (double)got;
    low = fminf(low, got);
    high = fmaxf(high, got);
  }
  double step = (double)high - (double)low;
  ck_assert(low <= value && value <= high);
  double allowed = 5 * step / 2 / sqrt(DRAWS);
  ck_assert_double_le(fabs(sum / DRAWS - (double)value), allowed);
  uint16_t bits[2] = {0, 0};
  tarn__convert(dtype, &bits[0], TARN_DTYPE_F32, &low, 1);
  tarn__convert(dtype, &bits[1], TARN_DTYPE_F32, &high, 1);
  ck_assert_int_le(abs((int)bits[0] - (int)bits[1]), 1);
}

// Every finite number of the dtype, infinities, and no number.
TEST_LOOP(numbers_stay, 2) {
  for (uint32_t i = 0; i < 1u << 16; i++) {
    uint16_t bits = (uint16_t)i;
    uint16_t got = 0;
    float value = back(dtypes[_i], bits);
    tarn__stochastic_round(dtypes[_i], &got, &value, 1, i, 0);
    if (isnan(value)) {
      require(isnan(back(dtypes[_i], got)));
    } else {
      require(got == bits);
    }
  }
}

TEST(too_large_becomes_infinite) {
  ck_assert(isinf(draw(TARN_DTYPE_F16, 70000.0f, 1)));
  ck_assert(isinf(draw(TARN_DTYPE_F16, -1e30f, 1)));
}

// Other rows, columns, applies and seeds have other numbers.
TEST(numbers_are_of_their_own) {
  enum { COLUMNS = 64 };
  float value[COLUMNS];
  uint16_t bits[5][COLUMNS];
  for (size_t i = 0; i < COLUMNS; i++)
    value[i] = 1.00123f;
  const uint64_t rows[5] = {
      tarn__stochastic_row(5, 1, 17), tarn__stochastic_row(5, 1, 18),
      tarn__stochastic_row(5, 2, 17), tarn__stochastic_row(6, 1, 17),
      tarn__stochastic_row(5, 1, 17)};
  for (size_t i = 0; i < 5; i++)
    tarn__stochastic_round(TARN_DTYPE_BF16, bits[i], value, COLUMNS, rows[i],
                           0);
  for (size_t i = 0; i < 4; i++)
    for (size_t k = 0; k < i; k++)
      ck_assert(memcmp(bits[i], bits[k], sizeof bits[i]) != 0);
  ck_assert(memcmp(bits[0], bits[4], sizeof bits[0]) == 0);
}

int main(void) {
  return run_tests();
}

SECONDS(20);
