// Elements of one dtype to another, through one wide type for each family:
// double holds every floating point number of ours exactly, and a 64-bit
// pattern every integer, so that n dtypes need n readers and n writers and not
// n * n functions.
//
//   f16 --read--> double[64] --write--> bf16        64 elements at a time
//
// f64 goes to the small types directly: by way of f32 it would be rounded
// twice. The sum of two numbers of a type is rounded to double and then to the
// type, which is harmless there: 53 bits are more than twice those of f32 and
// two over, and in the subnormal range sums are exact.
#include "base/convert.h"

#include <string.h>

enum { BLOCK = 64 };

typedef enum family {
  FAMILY_NONE,
  FAMILY_FLOAT,
  FAMILY_INTEGER,
  FAMILY_BOOL,
} family;

// --- 16 bits of floating point ---------------------------------------------

// How one is laid out, and where in double its ranges begin: what is below
// |normal| is subnormal there, and adding |magic| puts its last bit at the last
// bit of the sum; from |infinite| on, half a step above the largest, it is out
// of range.
typedef struct layout {
  int mantissa;  // bits
  uint16_t infinity;
  uint64_t rebias;  // difference of the exponents' zeros, as a double has it
  double normal;
  double magic;
  double infinite;
} layout;

static const layout F16 = {
    .mantissa = 10,
    .infinity = 0x7c00,
    .rebias = (uint64_t)(1023 - 15) << 52,
    .normal = 0x1p-14,
    .magic = 0x1p28,  // the last bit is 2^-24
    .infinite = 65520,
};

static const layout BF16 = {
    .mantissa = 7,
    .infinity = 0x7f80,
    .rebias = (uint64_t)(1023 - 127) << 52,
    .normal = 0x1p-126,
    .magic = 0x1p-81,  // the last bit is 2^-133
    .infinite = 0x1.ffp127,
};

static uint64_t bits_of(double value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double double_of(uint64_t bits) {
  double value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds to nearest, ties to even: a carry out of the mantissa is right in the
// exponent. A NaN stays a NaN by its highest bit.
static inline uint16_t narrow(double value, const layout *to) {
  uint64_t bits = bits_of(value);
  uint16_t sign = (uint16_t)(bits >> 63 << 15);
  uint64_t rest = bits & ~(UINT64_C(1) << 63);
  double size = double_of(rest);
  int shift = 52 - to->mantissa;
  if (size < to->normal) {
    return sign | (uint16_t)bits_of(size + to->magic);
  }
  if (size < to->infinite) {
    uint64_t even = (rest >> shift) & 1;
    uint64_t half = (UINT64_C(1) << (shift - 1)) - 1;
    return sign | (uint16_t)((rest - to->rebias + half + even) >> shift);
  }
  if (value == value) return sign | to->infinity;
  unsigned quiet = 1u << (to->mantissa - 1);
  unsigned payload = (unsigned)(rest >> shift) & (quiet - 1);
  return sign | to->infinity | (uint16_t)(quiet | payload);
}

static inline double widen_f16(uint16_t half) {
  uint64_t sign = (uint64_t)(half >> 15) << 63;
  uint64_t rest = half & 0x7fffu;
  if (rest < 0x400) {
    double size = (double)rest * 0x1p-24;
    return sign != 0 ? -size : size;
  }
  uint64_t exponents = rest < 0x7c00 ? F16.rebias : F16.rebias * 2;
  return double_of(sign | ((rest << 42) + exponents));
}

static inline double widen_bf16(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// --- readers and writers ---------------------------------------------------

// A block of either family.
typedef union wide {
  double f[BLOCK];
  uint64_t i[BLOCK];
} wide;

// memcpy, because addresses have any alignment.
#define READER(name, type, field, expression)                                  \
  static void read_##name(wide *to, const unsigned char *from, size_t count) { \
    for (size_t k = 0; k < count; k++) {                                       \
      type value;                                                              \
      memcpy(&value, from + k * sizeof value, sizeof value);                   \
      to->field[k] = (expression);                                             \
    }                                                                          \
  }

#define WRITER(name, type, field, expression)                   \
  static void write_##name(unsigned char *to, const wide *from, \
                           size_t count) {                      \
    for (size_t k = 0; k < count; k++) {                        \
      type value = (type)(expression);                          \
      memcpy(to + k * sizeof value, &value, sizeof value);      \
    }                                                           \
  }

READER(f64, double, f, value)
READER(f32, float, f, value)
READER(f16, uint16_t, f, widen_f16(value))
READER(bf16, uint16_t, f, widen_bf16(value))
READER(i64, int64_t, i, (uint64_t)value)
READER(i32, int32_t, i, (uint64_t)value)
READER(i16, int16_t, i, (uint64_t)value)
READER(i8, int8_t, i, (uint64_t)value)
READER(u64, uint64_t, i, value)
READER(u32, uint32_t, i, value)
READER(u16, uint16_t, i, value)
READER(u8, uint8_t, i, value)

WRITER(f64, double, f, from->f[k])
WRITER(f32, float, f, from->f[k])
WRITER(f16, uint16_t, f, narrow(from->f[k], &F16))
WRITER(bf16, uint16_t, f, narrow(from->f[k], &BF16))
WRITER(64, uint64_t, i, from->i[k])
WRITER(32, uint32_t, i, from->i[k])
WRITER(16, uint16_t, i, from->i[k])
WRITER(8, uint8_t, i, from->i[k])

static const struct kind {
  family family;
  void (*read)(wide *to, const unsigned char *from, size_t count);
  void (*write)(unsigned char *to, const wide *from, size_t count);
} kinds[] = {
    [TARN_DTYPE_F64] = {FAMILY_FLOAT, read_f64, write_f64},
    [TARN_DTYPE_F32] = {FAMILY_FLOAT, read_f32, write_f32},
    [TARN_DTYPE_F16] = {FAMILY_FLOAT, read_f16, write_f16},
    [TARN_DTYPE_BF16] = {FAMILY_FLOAT, read_bf16, write_bf16},
    [TARN_DTYPE_I64] = {FAMILY_INTEGER, read_i64, write_64},
    [TARN_DTYPE_I32] = {FAMILY_INTEGER, read_i32, write_32},
    [TARN_DTYPE_I16] = {FAMILY_INTEGER, read_i16, write_16},
    [TARN_DTYPE_I8] = {FAMILY_INTEGER, read_i8, write_8},
    [TARN_DTYPE_U64] = {FAMILY_INTEGER, read_u64, write_64},
    [TARN_DTYPE_U32] = {FAMILY_INTEGER, read_u32, write_32},
    [TARN_DTYPE_U16] = {FAMILY_INTEGER, read_u16, write_16},
    [TARN_DTYPE_U8] = {FAMILY_INTEGER, read_u8, write_8},
    [TARN_DTYPE_BOOL] = {FAMILY_BOOL, NULL, NULL},
};

static family family_of(tarn_dtype dtype) {
  return tarn_dtype_size(dtype) != 0 ? kinds[dtype].family : FAMILY_NONE;
}

bool tarn__convert_is_possible(tarn_dtype to, tarn_dtype from) {
  return family_of(to) != FAMILY_NONE && family_of(to) == family_of(from);
}

bool tarn__convert_can_add(tarn_dtype dtype) {
  return family_of(dtype) == FAMILY_FLOAT || family_of(dtype) == FAMILY_INTEGER;
}

// --- blocks ----------------------------------------------------------------

static size_t block_of(size_t left) {
  return left < BLOCK ? left : BLOCK;
}

void tarn__convert(tarn_dtype to, void *dst, tarn_dtype from, const void *src,
                   size_t count) {
  size_t to_size = tarn_dtype_size(to);
  size_t from_size = tarn_dtype_size(from);
  if (to == from) {
    memcpy(dst, src, count * to_size);
    return;
  }
  unsigned char *out = dst;
  const unsigned char *in = src;
  wide block;
  while (count != 0) {
    size_t now = block_of(count);
    kinds[from].read(&block, in, now);
    kinds[to].write(out, &block, now);
    in += now * from_size;
    out += now * to_size;
    count -= now;
  }
}

static void add_wide(family kin, wide *sum, const wide *more, size_t count) {
  if (kin == FAMILY_FLOAT) {
    for (size_t k = 0; k < count; k++)
      sum->f[k] += more->f[k];
  } else {
    for (size_t k = 0; k < count; k++)
      sum->i[k] += more->i[k];
  }
}

// One block; addends are first rounded to |to|, as a copy would be.
static void add_block(tarn_dtype to, unsigned char *dst, tarn_dtype from,
                      const unsigned char *src, size_t count) {
  unsigned char rounded[BLOCK * sizeof(uint64_t)];
  wide sum;
  wide more;
  tarn__convert(to, rounded, from, src, count);
  kinds[to].read(&more, rounded, count);
  kinds[to].read(&sum, dst, count);
  add_wide(kinds[to].family, &sum, &more, count);
  kinds[to].write(dst, &sum, count);
}

// The sums that most programs want: the same bits, without the way through
// doubles.
static void add_f32(unsigned char *restrict to,
                    const unsigned char *restrict from, size_t count) {
  for (size_t i = 0; i < count; i++) {
    float sum = 0;
    float more = 0;
    memcpy(&sum, to + i * sizeof sum, sizeof sum);
    memcpy(&more, from + i * sizeof more, sizeof more);
    sum += more;
    memcpy(to + i * sizeof sum, &sum, sizeof sum);
  }
}

void tarn__convert_add(tarn_dtype to, void *dst, tarn_dtype from,
                       const void *src, size_t count) {
  unsigned char *out = dst;
  const unsigned char *in = src;
  if (to == TARN_DTYPE_F32 && from == TARN_DTYPE_F32) {
    add_f32(out, in, count);
    return;
  }
  while (count != 0) {
    size_t now = block_of(count);
    add_block(to, out, from, in, now);
    in += now * tarn_dtype_size(from);
    out += now * tarn_dtype_size(to);
    count -= now;
  }
}
