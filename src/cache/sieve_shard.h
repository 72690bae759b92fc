// sieve_shard.h - the sieve within its room: shards of sets, each with a lock.
#ifndef TARN_CACHE_SIEVE_SHARD_H_
#define TARN_CACHE_SIEVE_SHARD_H_

#include "base/short_lock.h"
#include "cache/sieve_set.h"

enum { TARN__SIEVE_MOST_SHARDS = 256 };

// A cache line of its own. The lock guards the rest, and the shard's sets.
typedef struct tarn__cache_sieve_shard {
  _Alignas(64) tarn__short_lock lock;
  tarn__news news;   // a line is filled or written, or its last pin is gone
  uint32_t waiting;  // threads that want news
  size_t used;
  size_t dirty;
  uint64_t hits;
  uint64_t joined;
  uint64_t fills;
  uint64_t evictions;
  uint64_t written;
} tarn__cache_sieve_shard;

// Reads that are under way, in two halves: new ones enter that of the epoch.
// Whoever waits begins the other epoch, and waits until this half is empty.
typedef struct tarn__cache_sieve_readers {
  _Alignas(64) _Atomic uint32_t counts[2];
  _Atomic uint32_t epoch;    // its lowest bit counts
  _Atomic uint32_t waiting;  // threads that want news: a half is empty
  tarn__news news;
  tarn__short_lock lock;  // held by who waits: one at a time
} tarn__cache_sieve_readers;

struct tarn__cache_sieve {
  tarn__cache_sieve_keys keys;
  size_t sets;
  unsigned shift;  // from a set to its shard
  size_t shard_count;
  tarn__cache_sieve_readers *readers;
  tarn__cache_sieve_shard *shards;
  uint32_t (*words)[TARN__SIEVE_WAYS];
  uint32_t (*states)[TARN__SIEVE_WAYS];
  tarn__cache_sieve_queue *queues;
  size_t size;
};

static inline tarn__cache_sieve_set tarn__sieve_set_at(
    const tarn__cache_sieve *sieve, size_t set) {
  return (tarn__cache_sieve_set){sieve->words[set], sieve->states[set],
                                 &sieve->queues[set]};
}

static inline tarn__cache_sieve_shard *tarn__sieve_shard_of(
    const tarn__cache_sieve *sieve, size_t set) {
  return &sieve->shards[set >> sieve->shift];
}

// Sets the places of the batch's keys, and begins to fetch what a read needs.
void tarn__sieve_place_all(const tarn__cache_sieve *sieve,
                           tarn__cache_sieve_batch *batch);

// Sorts keys by shard: |order| and |ends|. They were placed.
void tarn__sieve_sort(const tarn__cache_sieve *sieve,
                      tarn__cache_sieve_batch *batch);

// Returns when no read that is under way can find what was removed before.
void tarn__sieve_await_readers(tarn__cache_sieve *sieve);

// Inside the lock, all below.

// Tells those who wait that there is news.
void tarn__sieve_tell(tarn__cache_sieve_shard *shard);

// Gives the line a new state; its word is as it will be.
void tarn__sieve_change(tarn__cache_sieve_shard *shard,
                        const tarn__cache_sieve_set *set, unsigned way,
                        uint32_t state);

// The same with one pin less; where that was the last one, that is news.
void tarn__sieve_unpin(tarn__cache_sieve_shard *shard,
                       const tarn__cache_sieve_set *set, unsigned way,
                       uint32_t state);

#endif  // TARN_CACHE_SIEVE_SHARD_H_
