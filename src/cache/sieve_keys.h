// sieve_keys.h - which set a key belongs to, and what is left of the key there.
//
// Keys of |bits| bits are mixed by a function that has an inverse, so that no
// two become the same number. That number times |sets| has the set in its upper
// bits; of the lower ones, as many as tell its keys apart are the tag. So a tag
// of 30 bits and the set make up the key.
//
//   mixed * sets   [ set ][ tag ][ spare bits ]
//                         '---- bits bits ----'
#ifndef TARN_CACHE_SIEVE_KEYS_H_
#define TARN_CACHE_SIEVE_KEYS_H_

#include "tarn/base.h"

enum {
  TARN__SIEVE_TAG_BITS = 30,
  // Beside the tag, which is shifted by two.
  TARN__SIEVE_VISITED = 1u << 0,
  TARN__SIEVE_UNREADABLE = 1u << 1,  // it is being filled
  TARN__SIEVE_MARKS = TARN__SIEVE_VISITED | TARN__SIEVE_UNREADABLE,
};

// No tag: what stands in a line without a key, whose marks do not matter.
#define TARN__SIEVE_NO_KEY UINT32_MAX

typedef struct tarn__cache_sieve_keys {
  uint64_t mask;  // bits that a key can have
  uint64_t sets;
  unsigned bits;
  unsigned half;   // of them, rounded up
  unsigned spare;  // lower bits that tell nothing
} tarn__cache_sieve_keys;

// False: the tag or the product would not fit.
TARN_MUST_CHECK bool tarn__sieve_keys_init(tarn__cache_sieve_keys *keys,
                                           uint64_t count, uint64_t sets);

// The set of |key|, and the word that stands there: the tag, without marks.
static inline uint32_t tarn__sieve_place(const tarn__cache_sieve_keys *keys,
                                         uint64_t key, uint32_t *out_word) {
  uint64_t mixed = (key ^ key >> keys->half) * 0x9e3779b97f4a7c15u & keys->mask;
  mixed = (mixed ^ mixed >> keys->half) * 0xd6e8feb86659fd93u & keys->mask;
  uint64_t product = mixed * keys->sets;
  *out_word = (uint32_t)((product & keys->mask) >> keys->spare) << 2;
  return (uint32_t)(product >> keys->bits);
}

// The key that gave |set| and |word|.
uint64_t tarn__sieve_key_at(const tarn__cache_sieve_keys *keys, uint32_t set,
                            uint32_t word);

#endif  // TARN_CACHE_SIEVE_KEYS_H_
