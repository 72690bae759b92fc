// Keys out of sets and tags.
#include "cache/sieve_keys.h"

static unsigned bits_of(uint64_t number) {
  return number == 0 ? 0 : 64 - (unsigned)__builtin_clzll(number);
}

bool tarn__sieve_keys_init(tarn__cache_sieve_keys *keys, uint64_t count,
                           uint64_t sets) {
  unsigned least = bits_of(sets);  // so that no set is without keys
  unsigned bits = bits_of(count - 1);
  if (bits < least) bits = least;
  if (sets == 0 || bits + bits_of(sets) > 64) return false;
  *keys = (tarn__cache_sieve_keys){.mask = (UINT64_C(1) << bits) - 1,
                                   .sets = sets,
                                   .bits = bits,
                                   .half = (bits + 1) / 2,
                                   .spare = bits_of(sets) - 1};
  // One tag less than there could be: that of a line without a key.
  return bits - keys->spare < TARN__SIEVE_TAG_BITS;
}

// The inverses of the multipliers, modulo any power of two.
static uint64_t unmix(const tarn__cache_sieve_keys *keys, uint64_t mixed) {
  uint64_t key = mixed * 0xcfee444d8b59a89bu & keys->mask;
  key = (key ^ key >> keys->half) * 0xf1de83e19937733du & keys->mask;
  return key ^ key >> keys->half;
}

uint64_t tarn__sieve_key_at(const tarn__cache_sieve_keys *keys, uint32_t set,
                            uint32_t word) {
  uint64_t tag = word >> 2;
  uint64_t least = (uint64_t)set << keys->bits | tag << keys->spare;
  return unmix(keys, least / keys->sets + (least % keys->sets != 0));
}
