// elements.cuh - elements of rows by their bits: loaded and stored, converted,
// added. It is a part of rows.cu, which has DEVICE, SELDOM and the types, and
// is compiled for a host as well.
//
// Conversions go through one wide type for each family: the bits of a double
// hold every floating point number of ours, and 64 bits every integer. Nothing
// here depends on how a device rounds, or treats subnormals.
#ifndef TARN_PLUGINS_CUDA_ELEMENTS_CUH_
#define TARN_PLUGINS_CUDA_ELEMENTS_CUH_

#define F64_DTYPE 1
#define F32_DTYPE 2
#define F16_DTYPE 3
#define BF16_DTYPE 4
#define I32_DTYPE 6
#define I16_DTYPE 7
#define I8_DTYPE 8

#define SIGN 0x8000000000000000ull
#define INFINITE 0x7ff0000000000000ull
#define QUIET (1ull << 51)

// --- loads and stores ------------------------------------------------------

// What is not aligned is rare, and stays out of the way of the rest.
SELDOM uint64_t bytes_at(const byte *from, uint32_t size) {
  uint64_t bits = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < size; i++)
    bits |= (uint64_t)from[i] << (8 * i);
  return bits;
}

SELDOM void put_bytes(byte *to, uint32_t size, uint64_t bits) {
#pragma unroll 1
  for (uint32_t i = 0; i < size; i++)
    to[i] = (byte)(bits >> (8 * i));
}

// The bits of element |k|, extended by zeros.
DEVICE uint64_t load_element(const byte *row, uint64_t k, uint32_t access) {
  if (access == 4) return ((const uint32_t *)row)[k];
  if (access == 2) return ((const uint16_t *)row)[k];
  if (access == 8) return ((const uint64_t *)row)[k];
  if (access == 1) return row[k];
  uint32_t size = access - TARN__CUDA_ROWS_BYTES;
  return bytes_at(row + k * size, size);
}

DEVICE void store_element(byte *row, uint64_t k, uint32_t access,
                          uint64_t bits) {
  if (access == 4) {
    ((uint32_t *)row)[k] = (uint32_t)bits;
  } else if (access == 2) {
    ((uint16_t *)row)[k] = (uint16_t)bits;
  } else if (access == 8) {
    ((uint64_t *)row)[k] = bits;
  } else if (access == 1) {
    row[k] = (byte)bits;
  } else {
    uint32_t size = access - TARN__CUDA_ROWS_BYTES;
    put_bytes(row + k * size, size, bits);
  }
}

// --- conversions -----------------------------------------------------------

// A type has |mantissa| bits, |bias|, and infinity in its bits without the
// sign. The double of |bits|. Subnormals are small integers of their last bit's
// size, which a float holds. |quiet| is set in a NaN.
DEVICE uint64_t widen(uint64_t bits, uint32_t width, uint32_t mantissa,
                      uint32_t bias, uint64_t quiet) {
  uint64_t sign = bits >> (width - 1) << 63;
  uint64_t rest = bits & ((1ull << (width - 1)) - 1);
  uint64_t infinity = ((1ull << (width - 1)) - 1) >> mantissa << mantissa;
  uint64_t wide = (rest << (52 - mantissa)) + ((uint64_t)(1023 - bias) << 52);
  uint64_t small = ((uint64_t)__float_as_uint((float)(uint32_t)rest) << 29) +
                   ((uint64_t)(1023 - 127 - (bias - 1 + mantissa)) << 52);
  uint64_t above = INFINITE | (rest << (52 - mantissa) & ((1ull << 52) - 1));
  wide = rest < (1ull << mantissa) ? small : wide;
  wide = rest == 0 ? 0 : wide;
  wide = rest >= infinity ? above : wide;
  wide = rest > infinity ? wide | quiet : wide;
  return sign | wide;
}

// The nearest to the double |bits|, ties to even. A carry out of the mantissa
// is right in the exponent. A NaN stays a NaN by its highest bit.
DEVICE uint64_t narrow(uint64_t bits, uint32_t width, uint32_t mantissa,
                       uint32_t bias) {
  uint64_t sign = bits >> 63 << (width - 1);
  uint64_t rest = bits & ~SIGN;
  uint64_t infinity = ((1ull << (width - 1)) - 1) >> mantissa << mantissa;
  uint32_t shift = 52 - mantissa;
  uint32_t exponent = (uint32_t)(rest >> 52);
  uint32_t least = 1024 - bias;  // of a number that is not subnormal
  uint64_t below = (1ull << (shift - 1)) - 1;
  uint64_t normal = (rest - ((uint64_t)(1023 - bias) << 52) + below +
                     ((rest >> shift) & 1)) >>
                    shift;
  // Subnormals lose more bits; all of them at a shift of 54.
  uint32_t more = shift + (exponent < least ? least - exponent : 0);
  more = more < 54 ? more : 54;
  uint64_t digits = (rest & ((1ull << 52) - 1)) | (1ull << 52);
  uint64_t small =
      (digits + (1ull << (more - 1)) - 1 + ((digits >> more) & 1)) >> more;
  uint64_t number = exponent < least ? small : normal;
  number = number < infinity ? number : infinity;
  uint64_t payload = (rest >> shift) & ((1ull << mantissa) - 1);
  uint64_t nan = infinity | (1ull << (mantissa - 1)) | payload;
  return sign | (rest > INFINITE ? nan : number);
}

// Integers get their signs.
DEVICE uint64_t widen_element(uint64_t bits, uint32_t dtype) {
  switch (dtype) {
    case F32_DTYPE:
      return widen(bits, 32, 23, 127, QUIET);
    case F16_DTYPE:
      return widen(bits, 16, 10, 15, 0);
    case BF16_DTYPE:
      return widen(bits, 16, 7, 127, QUIET);
    case I32_DTYPE:
      return (uint64_t)(int64_t)(int32_t)bits;
    case I16_DTYPE:
      return (uint64_t)(int64_t)(int16_t)bits;
    case I8_DTYPE:
      return (uint64_t)(int64_t)(signed char)bits;
    default:
      return bits;
  }
}

// Integers lose their upper bits when they are stored.
DEVICE uint64_t narrow_element(uint64_t bits, uint32_t dtype) {
  switch (dtype) {
    case F32_DTYPE:
      return narrow(bits, 32, 23, 127);
    case F16_DTYPE:
      return narrow(bits, 16, 10, 15);
    case BF16_DTYPE:
      return narrow(bits, 16, 7, 127);
    default:
      return bits;
  }
}

DEVICE uint64_t convert(uint64_t bits, uint32_t to, uint32_t from) {
  if (to == from) return bits;
  return narrow_element(widen_element(bits, from), to);
}

// --- sums ------------------------------------------------------------------
// Devices differ in the NaN that they make, so it is made here: of two the
// first stays.

DEVICE uint32_t add_f32(const rows_args &a, uint32_t sum, uint32_t more) {
  uint32_t result =
      __float_as_uint(__fadd_rn(__uint_as_float(sum), __uint_as_float(more)));
  uint32_t nan = 0x7fc00000u;
  if ((a.flags & TARN__CUDA_ROWS_NEGATIVE) != 0) nan |= 0x80000000u;
  nan = (more & 0x7fffffffu) > 0x7f800000u ? more | 0x400000u : nan;
  nan = (sum & 0x7fffffffu) > 0x7f800000u ? sum | 0x400000u : nan;
  return (result & 0x7fffffffu) > 0x7f800000u ? nan : result;
}

DEVICE uint64_t add_f64(const rows_args &a, uint64_t sum, uint64_t more) {
  uint64_t result = (uint64_t)__double_as_longlong(
      __dadd_rn(__longlong_as_double((long long)sum),
                __longlong_as_double((long long)more)));
  uint64_t nan = INFINITE | QUIET;
  if ((a.flags & TARN__CUDA_ROWS_NEGATIVE) != 0) nan |= SIGN;
  nan = (more & ~SIGN) > INFINITE ? more | QUIET : nan;
  nan = (sum & ~SIGN) > INFINITE ? sum | QUIET : nan;
  return (result & ~SIGN) > INFINITE ? nan : result;
}

// Both are of the table's dtype. A sum of two numbers of a type that is rounded
// to the wider one, and then to the type, is as if it were rounded once.
DEVICE uint64_t add(const rows_args &a, uint64_t sum, uint64_t more) {
  uint32_t dtype = a.table_dtype;
  if (dtype > BF16_DTYPE) return sum + more;
  if (dtype == F32_DTYPE) return add_f32(a, (uint32_t)sum, (uint32_t)more);
  return narrow_element(
      add_f64(a, widen_element(sum, dtype), widen_element(more, dtype)), dtype);
}

#endif  // TARN_PLUGINS_CUDA_ELEMENTS_CUH_
