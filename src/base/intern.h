// intern.h - equal byte strings once, known by a number from then on.
#ifndef TARN_BASE_INTERN_H_
#define TARN_BASE_INTERN_H_

#include "base/budget.h"

// Mixes |size| bytes into 64 bits. The seed keeps a hostile file from knowing
// which of its strings collide.
uint64_t tarn__hash(uint64_t seed, const void *bytes, size_t size);

// Both halves of the product: every bit of the result needs all of both.
static inline uint64_t tarn__hash_fold(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 uint128;
  uint128 product = (uint128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// A seed that a file's author cannot foresee; results do not depend on it.
uint64_t tarn__hash_seed(void);

typedef struct tarn__string {
  size_t first;  // byte
  uint32_t size;
  uint32_t hash;  // of the bytes, so that they are seldom looked at
} tarn__string;

// A set of byte strings, numbered 0, 1, 2 ... in order of arrival.
typedef struct tarn__intern {
  uint64_t seed;
  tarn__array bytes;  // char: all strings, one behind the other
  tarn__array spans;  // tarn__string, by number
  tarn__array slots;  // uint32_t: number + 1, 0: empty; a power of two
} tarn__intern;

void tarn__intern_init(tarn__intern *set);
void tarn__intern_deinit(tarn__intern *set, tarn__budget *budget);

// The number of a string, which is added if it is not there yet. A set whose
// strings are all arrays of one type keeps them aligned for that type.
//
// TARN_E_NOMEM        the budget or the host allocator refused.
// TARN_E_UNSUPPORTED  a string of 4 GiB or more, or 2^32 - 1 of them.
TARN_MUST_CHECK tarn_status tarn__intern_put(tarn__intern *set,
                                             tarn__budget *budget,
                                             const void *bytes, size_t size,
                                             uint32_t *out_number);

// Whether a string is there, and its number.
bool tarn__intern_find(const tarn__intern *set, const void *bytes, size_t size,
                       uint32_t *out_number);

// The bytes of the string of that number, until another one is put.
static inline const char *tarn__intern_text(const tarn__intern *set,
                                            uint32_t number) {
  const tarn__string *span = (const tarn__string *)set->spans.items + number;
  return (const char *)set->bytes.items + span->first;
}

#endif  // TARN_BASE_INTERN_H_
