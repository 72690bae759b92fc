// CRC-32C by two of the processor's units at a time, half of the bytes by each.
//
//   | vectors: 4 n bytes       | n      | n      | n      | n      |
//     sum ->  four of 32 bytes   0 ->     0 ->     0 ->     0 ->
//
// A vector is two polynomials of 128 bits. A step multiplies each by
// x^1024, which is modulo the CRC's polynomial one of 32 bits for each of its
// halves, and adds the 128 bytes that follow: the remainder stays what it would
// be of all bytes so far. At the end the four become one of 256 bits, whose
// remainder the instruction tells. Meanwhile the instruction adds to four
// streams. All are joined as in crc32c.c.
//
// After Gopal and others, "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction" (Intel, 2009).
//
// Copying goes in the order of the bytes, whole lines after one another: where
// lines are written past the caches, several streams of them would get into
// each other's way.
#include "base/crc32c_wide.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define WIDE __attribute__((target("avx2,sse4.2,pclmul,vpclmulqdq")))

enum {
  WORD = 8,
  VECTOR = 32,
  VECTORS = 4,
  STREAMS = 4,
  STEP = VECTORS * VECTOR + STREAMS * VECTOR,  // bytes of a turn of the loop
};

typedef struct spread {
  size_t stream;   // bytes of each stream, a multiple of 32
  uint32_t power;  // x^(8 stream - 33)
} spread;

// Three of the first are 256 KiB but for 256 bytes, and one of the second is a
// block of a disk. Streams whose distance is a multiple of 4 KiB would share
// lines of the nearest cache.
static const spread spreads[] = {
    {10912, 0x562cc096}, {512, 0xdd7e3b0c}, {64, 0x9e4addf8}};
enum { SPREADS = sizeof spreads / sizeof *spreads };

// x^(d + 31) and x^(d - 33), for the half with the higher powers and for the
// other: a product of reflected polynomials lies one bit lower than its
// factors.
static const int64_t by_1024[] = {0x6992cea2, 0x0d3b6092};
static const int64_t by_256[] = {0x3da6d0cb, 0xba4fc28e};

bool tarn__crc32c_is_wide(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("sse4.2") &&
         __builtin_cpu_supports("vpclmulqdq");
}

// --- vectors -----------------------------------------------------------------

// The |i|-th vector at |bytes|.
WIDE static inline __m256i load(const unsigned char *bytes, size_t i) {
  return _mm256_loadu_si256((const __m256i *)(const void *)bytes + i);
}

WIDE static inline __m256i twice(const int64_t *powers) {
  return _mm256_setr_epi64x(powers[0], powers[1], powers[0], powers[1]);
}

WIDE static inline __m256i fold(__m256i sum, __m256i powers, __m256i next) {
  __m256i higher = _mm256_clmulepi64_epi128(sum, powers, 0x00);
  __m256i lower = _mm256_clmulepi64_epi128(sum, powers, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(higher, lower), next);
}

WIDE static uint32_t reduce(__m256i v0, __m256i v1, __m256i v2, __m256i v3) {
  __m256i powers = twice(by_256);
  uint64_t words[VECTOR / WORD];
  uint64_t sum = 0;
  __m256i all = fold(fold(fold(v0, powers, v1), powers, v2), powers, v3);
  memcpy(words, &all, sizeof words);
  for (size_t i = 0; i < VECTOR / WORD; i++)
    sum = _mm_crc32_u64(sum, words[i]);
  return (uint32_t)sum;
}

WIDE static inline __attribute__((always_inline)) void copy_vector(
    unsigned char *to, const unsigned char *from, size_t i) {
  _mm256_stream_si256((__m256i *)(void *)to + i, load(from, i));
}

WIDE static inline __attribute__((always_inline)) void copy_step(
    unsigned char *to, const unsigned char *from) {
  copy_vector(to, from, 0);
  copy_vector(to, from, 1);
  copy_vector(to, from, 2);
  copy_vector(to, from, 3);
  copy_vector(to, from, 4);
  copy_vector(to, from, 5);
  copy_vector(to, from, 6);
  copy_vector(to, from, 7);
}

// --- all ---------------------------------------------------------------------

// The |i|-th word at |bytes|.
static inline uint64_t word_at(const unsigned char *bytes, size_t i) {
  uint64_t word = 0;
  memcpy(&word, bytes + i * WORD, sizeof word);
  return word;
}

// The sums of all streams. Written out, as are the vectors: a compiler that
// leaves loops as they are would keep them in memory.
typedef struct sums {
  uint64_t a, b, c, d;
} sums;

WIDE static inline __attribute__((always_inline)) void add_words(
    sums *s, const unsigned char *words, size_t stream, size_t i) {
  s->a = _mm_crc32_u64(s->a, word_at(words, i));
  s->b = _mm_crc32_u64(s->b, word_at(words + stream, i));
  s->c = _mm_crc32_u64(s->c, word_at(words + 2 * stream, i));
  s->d = _mm_crc32_u64(s->d, word_at(words + 3 * stream, i));
}

WIDE static inline __attribute__((always_inline)) void add_step(
    sums *s, const unsigned char *words, size_t stream) {
  add_words(s, words, stream, 0);
  add_words(s, words, stream, 1);
  add_words(s, words, stream, 2);
  add_words(s, words, stream, 3);
}

// |sum| times x^33 |power|, modulo the CRC's polynomial: the product of two
// reflected polynomials lies one bit lower than its factors, and the
// instruction multiplies by x^32.
WIDE static inline uint32_t multiply(uint32_t sum, uint32_t power) {
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)sum),
                                         _mm_cvtsi32_si128((int)power), 0x00);
  return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

WIDE static uint32_t join(uint32_t sum, const sums *s, uint32_t power) {
  sum = multiply(sum, power) ^ (uint32_t)s->a;
  sum = multiply(sum, power) ^ (uint32_t)s->b;
  sum = multiply(sum, power) ^ (uint32_t)s->c;
  return multiply(sum, power) ^ (uint32_t)s->d;
}

// STEP * |stream| / VECTOR bytes.
WIDE static inline __attribute__((always_inline)) uint32_t add(
    uint32_t sum, unsigned char *to, const unsigned char *from,
    const spread *of) {
  __m256i powers = twice(by_1024);
  const size_t stream = of->stream;
  const unsigned char *ahead = from;
  const unsigned char *words = from + VECTORS * stream;
  const unsigned char *end = words + stream;
  sums s = {0, 0, 0, 0};
  __m256i v0 = _mm256_xor_si256(
      load(from, 0), _mm256_setr_epi32((int)sum, 0, 0, 0, 0, 0, 0, 0));
  __m256i v1 = load(from, 1);
  __m256i v2 = load(from, 2);
  __m256i v3 = load(from, 3);
  for (;;) {
    add_step(&s, words, stream);
    if (to != NULL) copy_step(to, ahead);
    if (to != NULL) to += STEP;
    ahead += STEP;
    words += VECTOR;
    if (words == end) break;
    from += (size_t)VECTORS * VECTOR;
    v0 = fold(v0, powers, load(from, 0));
    v1 = fold(v1, powers, load(from, 1));
    v2 = fold(v2, powers, load(from, 2));
    v3 = fold(v3, powers, load(from, 3));
  }
  return join(reduce(v0, v1, v2, v3), &s, of->power);
}

WIDE static uint32_t sum_only(uint32_t sum, const unsigned char *from,
                              const spread *s) {
  return add(sum, NULL, from, s);
}

WIDE static uint32_t sum_and_copy(uint32_t sum, unsigned char *to,
                                  const unsigned char *from, const spread *s) {
  return add(sum, to, from, s);
}

uint32_t tarn__crc32c_wide(uint32_t sum, unsigned char **io_to,
                           const unsigned char **io_from, size_t *io_size) {
  for (size_t i = 0; i < SPREADS; i++) {
    const spread *s = &spreads[i];
    size_t all = (VECTORS + STREAMS) * s->stream;
    for (; *io_size >= all; *io_size -= all, *io_from += all) {
      if (io_to == NULL) {
        sum = sum_only(sum, *io_from, s);
      } else {
        sum = sum_and_copy(sum, *io_to, *io_from, s);
        *io_to += all;
      }
    }
  }
  if (io_to != NULL) _mm_sfence();  // before what tells others of the bytes
  return sum;
}

#else

bool tarn__crc32c_is_wide(void) {
  return false;
}

uint32_t tarn__crc32c_wide(uint32_t sum, unsigned char **io_to,
                           const unsigned char **io_from, size_t *io_size) {
  (void)io_to;
  (void)io_from;
  (void)io_size;
  return sum;
}

#endif
