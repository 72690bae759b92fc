// Conversions of elements, against values that are computed another way: small
// floats by ldexp and by their neighbours, integers by their bytes.
#include "base/convert.h"

#include <math.h>
#include <string.h>

#include "support/run.h"

enum { NONE_BEYOND = TARN_DTYPE_BOOL + 1 };

// --- a second opinion on 16-bit floats -------------------------------------

typedef struct small {
  tarn_dtype dtype;
  int mantissa;  // bits
  int bias;
} small;

static const small SMALL[] = {{TARN_DTYPE_F16, 10, 15},
                              {TARN_DTYPE_BF16, 7, 127}};

static uint16_t infinity_of(const small *s) {
  return (uint16_t)(0x7fffu >> s->mantissa << s->mantissa);
}

// What the bits stand for; as if exponents went on above the highest.
static double value_of(const small *s, uint16_t bits) {
  int exponent = (bits & 0x7fff) >> s->mantissa;
  int rest = bits & ((1 << s->mantissa) - 1);
  if (exponent != 0) rest += 1 << s->mantissa;
  int power = (exponent != 0 ? exponent : 1) - s->bias - s->mantissa;
  double size = ldexp(rest, power);
  return bits >> 15 ? -size : size;
}

static double one_to_f64(tarn_dtype from, const void *src) {
  double value = 0;
  tarn__convert(TARN_DTYPE_F64, &value, from, src, 1);
  return value;
}

static uint16_t one_to_small(const small *to, tarn_dtype from,
                             const void *src) {
  uint16_t bits = 0;
  tarn__convert(to->dtype, &bits, from, src, 1);
  return bits;
}

// --- floats ----------------------------------------------------------------

static void require_same(const small *s, uint16_t bits, double value) {
  uint16_t infinity = infinity_of(s);
  if ((bits & 0x7fff) > infinity) {
    require(isnan(value));
  } else if ((bits & 0x7fff) == infinity) {
    require(isinf(value));
  } else {
    require(value == value_of(s, bits));
  }
  require(isnan(value) || !!signbit(value) == bits >> 15);
}

static void require_comes_back(const small *s, uint16_t bits, tarn_dtype by) {
  unsigned char wide[8];
  tarn__convert(by, wide, s->dtype, &bits, 1);
  require_same(s, bits, one_to_f64(by, wide));
  uint16_t back = one_to_small(s, by, wide);
  if ((bits & 0x7fff) > infinity_of(s)) {
    require((back & 0x7fff) > infinity_of(s));
  } else {
    require(back == bits);
  }
}

TEST_LOOP(every_small_float_comes_back, 2) {
  const small *s = &SMALL[_i];
  for (unsigned bits = 0; bits <= UINT16_MAX; bits++) {
    require_comes_back(s, (uint16_t)bits, TARN_DTYPE_F64);
    require_comes_back(s, (uint16_t)bits, TARN_DTYPE_F32);
  }
}

// What lies between two neighbours goes to the nearer one, and from the middle
// to the even one. The highest pair is the largest number and infinity.
TEST_LOOP(small_floats_are_the_nearest, 2) {
  const small *s = &SMALL[_i];
  for (uint16_t low = 0; low < infinity_of(s); low++) {
    for (uint16_t sign = 0; sign < 2; sign++) {
      uint16_t down = (uint16_t)(low | sign << 15);
      uint16_t up = (uint16_t)(down + 1);
      double middle = (value_of(s, down) + value_of(s, up)) / 2;
      double before = nextafter(middle, 0);
      double after = nextafter(middle, sign ? -INFINITY : INFINITY);
      uint16_t even = down & 1 ? up : down;
      require(one_to_small(s, TARN_DTYPE_F64, &middle) == even);
      require(one_to_small(s, TARN_DTYPE_F64, &before) == down);
      require(one_to_small(s, TARN_DTYPE_F64, &after) == up);
      float as_float = (float)middle;
      require((double)as_float == middle);
      require(one_to_small(s, TARN_DTYPE_F32, &as_float) == even);
    }
  }
}

TEST(what_is_too_large_is_infinite) {
  static const double large[] = {1e39, 1e300, 0x1p1023, INFINITY};
  for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
    double minus = -large[i];
    float f = 0;
    for (size_t k = 0; k < 2; k++) {
      uint16_t infinity = infinity_of(&SMALL[k]);
      ck_assert_uint_eq(one_to_small(&SMALL[k], TARN_DTYPE_F64, &large[i]),
                        infinity);
      ck_assert_uint_eq(one_to_small(&SMALL[k], TARN_DTYPE_F64, &minus),
                        infinity | 0x8000u);
    }
    tarn__convert(TARN_DTYPE_F32, &f, TARN_DTYPE_F64, &minus, 1);
    ck_assert(isinf(f) && signbit(f));
  }
}

TEST(what_is_too_small_is_zero) {
  static const double tiny[] = {0x1p-1074, 1e-60, 0x1p-134};
  for (size_t i = 0; i < sizeof tiny / sizeof tiny[0]; i++) {
    double minus = -tiny[i];
    for (size_t k = 0; k < 2; k++) {
      ck_assert_uint_eq(one_to_small(&SMALL[k], TARN_DTYPE_F64, &tiny[i]), 0);
      ck_assert_uint_eq(one_to_small(&SMALL[k], TARN_DTYPE_F64, &minus),
                        0x8000);
    }
  }
}

// By way of f32 this would become a tie, and go down.
TEST(nothing_is_rounded_twice) {
  double value = 1 + 0x1p-11 + 0x1p-40;
  ck_assert_uint_eq(one_to_small(&SMALL[0], TARN_DTYPE_F64, &value), 0x3c01);
  value = 1 + 0x1p-8 + 0x1p-40;
  ck_assert_uint_eq(one_to_small(&SMALL[1], TARN_DTYPE_F64, &value), 0x3f81);
}

TEST(f32_and_f64) {
  static const double in[] = {1.5,      -0.0,       1 + 0x1p-24, 1 + 0x1.8p-23,
                              0x1p-149, 0x1.8p-150, NAN};
  static const float expected[] = {1.5f,      -0.0f,     1,  1 + 0x1p-22f,
                                   0x1p-149f, 0x1p-149f, NAN};
  enum { COUNT = sizeof in / sizeof in[0] };
  float out[COUNT];
  double back[COUNT];
  tarn__convert(TARN_DTYPE_F32, out, TARN_DTYPE_F64, in, COUNT);
  ck_assert_mem_eq(out, expected, (COUNT - 1) * sizeof(float));
  ck_assert(isnan(out[COUNT - 1]));
  tarn__convert(TARN_DTYPE_F64, back, TARN_DTYPE_F32, out, COUNT);
  for (size_t i = 0; i + 1 < COUNT; i++)
    ck_assert_double_eq(back[i], (double)expected[i]);
  ck_assert(isnan(back[COUNT - 1]));
}

// --- integers --------------------------------------------------------------

static const tarn_dtype INTEGERS[] = {
    TARN_DTYPE_I64, TARN_DTYPE_I32, TARN_DTYPE_I16, TARN_DTYPE_I8,
    TARN_DTYPE_U64, TARN_DTYPE_U32, TARN_DTYPE_U16, TARN_DTYPE_U8};
enum { INTEGER_COUNT = sizeof INTEGERS / sizeof INTEGERS[0] };

static const uint64_t PATTERNS[] = {0,
                                    1,
                                    0x7f,
                                    0x80,
                                    0xff,
                                    0x7fff,
                                    0x8000,
                                    0x12345678,
                                    0x7fffffff,
                                    0x80000000,
                                    0xfedcba9876543210,
                                    INT64_MAX,
                                    (uint64_t)INT64_MIN,
                                    UINT64_MAX};
enum { PATTERN_COUNT = sizeof PATTERNS / sizeof PATTERNS[0] };

static bool is_signed(tarn_dtype dtype) {
  return tarn_dtype_name(dtype)[0] == 'i';
}

// The bytes of the machine hold the lowest first.
static void expect_integer(tarn_dtype to, tarn_dtype from, uint64_t pattern) {
  unsigned char in[16];
  unsigned char out[8];
  bool minus =
      is_signed(from) && (pattern >> (tarn_dtype_size(from) * 8 - 1) & 1) != 0;
  memcpy(in, &pattern, 8);
  tarn__convert(to, out, from, in, 1);
  memset(in + tarn_dtype_size(from), minus ? 0xff : 0,
         sizeof in - tarn_dtype_size(from));
  require(memcmp(out, in, tarn_dtype_size(to)) == 0);
}

TEST(integers_wrap) {
  for (size_t i = 0; i < INTEGER_COUNT; i++) {
    for (size_t k = 0; k < INTEGER_COUNT; k++) {
      for (size_t p = 0; p < PATTERN_COUNT; p++) {
        expect_integer(INTEGERS[i], INTEGERS[k], PATTERNS[p]);
      }
    }
  }
}

// --- pairs, counts, addresses ----------------------------------------------

static int family(int dtype) {
  if (dtype >= TARN_DTYPE_F64 && dtype <= TARN_DTYPE_BF16) return 1;
  if (dtype >= TARN_DTYPE_I64 && dtype <= TARN_DTYPE_U8) return 2;
  return dtype == TARN_DTYPE_BOOL ? 3 : 0;
}

TEST(families_keep_to_themselves) {
  for (int to = -1; to <= NONE_BEYOND; to++) {
    for (int from = -1; from <= NONE_BEYOND; from++) {
      bool expected = family(to) != 0 && family(to) == family(from);
      require(tarn__convert_is_possible((tarn_dtype)to, (tarn_dtype)from) ==
              expected);
    }
    bool can_add = family(to) == 1 || family(to) == 2;
    require(tarn__convert_can_add((tarn_dtype)to) == can_add);
  }
}

// Many at once, at odd addresses, are the same as one by one.
static void expect_many(tarn_dtype to, tarn_dtype from, size_t count) {
  enum { MOST = 200 };
  unsigned char in[MOST * 8 + 1];
  unsigned char out[MOST * 8 + 2];
  size_t step = tarn_dtype_size(from);
  size_t to_step = tarn_dtype_size(to);
  for (size_t i = 0; i < sizeof in; i++)
    in[i] =
        (unsigned char)(i * 37 % 251 & (from == TARN_DTYPE_BOOL ? 1 : 0x7b));
  memset(out, 0xa5, sizeof out);
  tarn__convert(to, out + 1, from, in + 1, count);
  for (size_t i = 0; i < count; i++) {
    unsigned char one[8];
    tarn__convert(to, one, from, in + 1 + i * step, 1);
    require(memcmp(one, out + 1 + i * to_step, to_step) == 0);
  }
  require(out[0] == 0xa5 && out[1 + count * to_step] == 0xa5);
}

TEST(every_pair_converts_many) {
  static const size_t counts[] = {0, 1, 63, 64, 65, 200};
  for (int to = 1; to < NONE_BEYOND; to++) {
    for (int from = 1; from < NONE_BEYOND; from++) {
      if (family(to) != family(from)) continue;
      for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        expect_many((tarn_dtype)to, (tarn_dtype)from, counts[i]);
      }
    }
  }
}

// --- sums ------------------------------------------------------------------

static uint16_t add_small(const small *s, uint16_t a, uint16_t b) {
  tarn__convert_add(s->dtype, &a, s->dtype, &b, 1);
  return a;
}

// Sums of two f16 are exact in double; what is next to ties is in between.
TEST(small_sums_are_the_nearest) {
  const small *s = &SMALL[0];
  uint32_t random = 1;
  for (int i = 0; i < 200000; i++) {
    random = random * 1664525u + 1013904223u;
    uint16_t a = (uint16_t)(random >> 16);
    random = random * 1664525u + 1013904223u;
    uint16_t b = (uint16_t)(random >> 16);
    double sum = one_to_f64(s->dtype, &a) + one_to_f64(s->dtype, &b);
    uint16_t expected = one_to_small(s, TARN_DTYPE_F64, &sum);
    if (isnan(sum)) continue;
    require(add_small(s, a, b) == expected);
  }
}

TEST(sums_of_large_floats) {
  float f[2] = {0x1p24f, 0.1f};
  const float f_more[2] = {1, 0.2f};
  double d[2] = {1, 0.1};
  const double d_more[2] = {0x1p-60, 0.2};
  tarn__convert_add(TARN_DTYPE_F32, f, TARN_DTYPE_F32, f_more, 2);
  tarn__convert_add(TARN_DTYPE_F64, d, TARN_DTYPE_F64, d_more, 2);
  ck_assert(f[0] == 0x1p24f && f[1] == 0.1f + 0.2f);
  ck_assert(d[0] == 1 && d[1] == 0.1 + 0.2);
}

// What is added is first an element of the table's dtype.
TEST(sums_round_what_is_added) {
  uint16_t half = 0x3c00;           // 1
  double more = 0x1p-11 + 0x1p-40;  // to f16: 2^-11, so a tie, so 1
  tarn__convert_add(TARN_DTYPE_F16, &half, TARN_DTYPE_F64, &more, 1);
  ck_assert_uint_eq(half, 0x3c00);
}

TEST(sums_of_integers_wrap) {
  int8_t small_ones[100];
  int32_t more[100];
  for (int i = 0; i < 100; i++) {
    small_ones[i] = (int8_t)i;
    more[i] = i * 1000;
  }
  tarn__convert_add(TARN_DTYPE_I8, small_ones, TARN_DTYPE_I32, more, 100);
  for (int i = 0; i < 100; i++)
    require((uint8_t)small_ones[i] == (i + i * 1000) % 256);
  uint64_t large = UINT64_MAX;
  const uint8_t one = 1;
  tarn__convert_add(TARN_DTYPE_U64, &large, TARN_DTYPE_U8, &one, 1);
  ck_assert_uint_eq(large, 0);
}
