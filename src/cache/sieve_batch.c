// Keys of a batch: where each belongs, and in which order they are looked up.
// Sorted by shard, so that each lock is taken once.
#include <assert.h>
#include <string.h>

#include "cache/sieve_shard.h"

// What does not change is in variables of its own, since the compiler cannot
// know that.
void tarn__sieve_place_all(const tarn__cache_sieve *sieve,
                           tarn__cache_sieve_batch *batch) {
  const tarn__cache_sieve_keys keys = sieve->keys;
  const uint32_t(*words)[TARN__SIEVE_WAYS] =
      (const uint32_t(*)[TARN__SIEVE_WAYS])sieve->words;
  const size_t count = batch->count;
  assert(count <= TARN__SIEVE_BATCH);
  for (size_t i = 0; i < count; i++) {
    uint32_t word = 0;
    uint32_t set = tarn__sieve_place(&keys, batch->keys[i], &word);
    __builtin_prefetch(words[set]);
    batch->sets[i] = set;
    batch->words[i] = word;
  }
}

// Sorts by counting, and keeps the order of keys within a shard. An end is the
// beginning first, and goes up with each key.
void tarn__sieve_sort(const tarn__cache_sieve *sieve,
                      tarn__cache_sieve_batch *batch) {
  const unsigned shift = sieve->shift;
  const size_t count = batch->count;
  uint16_t *ends = batch->ends;
  uint16_t begin = 0;
  memset(ends, 0, sieve->shard_count * sizeof *ends);
  for (size_t i = 0; i < count; i++)
    ends[batch->sets[i] >> shift]++;
  for (size_t s = 0; s < sieve->shard_count; s++) {
    uint16_t keys = ends[s];
    ends[s] = begin;
    begin = (uint16_t)(begin + keys);
  }
  for (size_t i = 0; i < count; i++)
    batch->order[ends[batch->sets[i] >> shift]++] = (uint16_t)i;
}
