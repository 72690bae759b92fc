// crc32c_wide.h - CRC-32C by carry-less multiplications of vectors, beside the
// processor's instruction for it, and copying meanwhile.
#ifndef TARN_BASE_CRC32C_WIDE_H_
#define TARN_BASE_CRC32C_WIDE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether the processor can.
bool tarn__crc32c_is_wide(void);

// Adds as many of |*io_size| bytes at |*io_from| as are whole steps to |sum|,
// which is inverted, and moves both behind them. |io_to| not NULL: copies them
// to |*io_to|, a multiple of 32, past the caches, and moves that too.
uint32_t tarn__crc32c_wide(uint32_t sum, unsigned char **io_to,
                           const unsigned char **io_from, size_t *io_size);

// The product of two polynomials modulo the CRC's.
static inline uint32_t tarn__crc32c_multiply(uint32_t a, uint32_t b) {
  const uint32_t polynomial = 0x82f63b78;
  uint32_t product = 0;
  for (int bit = 31; bit >= 0; bit--) {
    product ^= b & -(a >> bit & 1);
    b = b >> 1 ^ (polynomial & -(b & 1));
  }
  return product;
}

#endif  // TARN_BASE_CRC32C_WIDE_H_
