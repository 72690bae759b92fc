// crc32c.h - a checksum that finds damage of data on its way.
#ifndef TARN_BASE_CRC32C_H_
#define TARN_BASE_CRC32C_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The CRC-32C (Castagnoli) of |size| bytes at |data|, behind data whose sum is
// |crc|; 0 at the begin.
//
// Cost: by the processor's instruction (x86-64 with SSE 4.2, aarch64 with
//       CRC32), measured on an AMD EPYC: 9 bytes per nanosecond, from 3 KiB on
//       14, from 256 KiB on 26, as far as memory gives them; by vectors beside
//       it (VPCLMULQDQ) from 128 KiB on 30 to 35. By the table 0.4.
uint32_t tarn__crc32c(uint32_t crc, const void *data, size_t size);

// Whether the next function hardly takes longer than a copy past the caches
// would: the processor is x86-64 with VPCLMULQDQ and AVX2, and |to| is a
// multiple of 32.
bool tarn__crc32c_copies(const void *to);

// The same sum, and copies the bytes to |to| meanwhile, past the caches where
// it can. They must not overlap.
//
// Cost: measured there, of 256 KiB that are in the second cache: 20 bytes per
//       nanosecond, which is what storing them takes.
uint32_t tarn__crc32c_copy(uint32_t crc, void *to, const void *from,
                           size_t size);

// By the table alone, which every processor can.
uint32_t tarn__crc32c_by_table(uint32_t crc, const void *data, size_t size);

// The sum of data in two parts, out of the sums of both and the size of the
// second.
//
// Cost: some microseconds.
uint32_t tarn__crc32c_combine(uint32_t first, uint32_t second,
                              size_t second_size);

#endif  // TARN_BASE_CRC32C_H_
