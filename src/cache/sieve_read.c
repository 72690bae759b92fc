// Reads: the cheap way to lines that are there. Nothing is pinned; readers are
// counted instead, in two halves, so that who waits for those that are here
// does not wait for those that come later.
//
//   epoch even   new readers enter half 0
//   wait         the epoch becomes odd; half 0 runs empty; half 1 is in use
#include <string.h>

#include "cache/sieve_shard.h"

enum { WAYS = TARN__SIEVE_WAYS };

// --- readers ---------------------------------------------------------------

static void go(tarn__cache_sieve_readers *readers, unsigned half) {
  bool last = atomic_fetch_sub(&readers->counts[half], 1) == 1;
  if (last && atomic_load(&readers->waiting) > 0)
    tarn__news_tell(&readers->news);
}

// A reader that was counted in a half which is to run empty enters again.
static unsigned come(tarn__cache_sieve_readers *readers) {
  for (;;) {
    unsigned half = atomic_load(&readers->epoch) & 1;
    atomic_fetch_add(&readers->counts[half], 1);
    if ((atomic_load(&readers->epoch) & 1) == half) return half;
    go(readers, half);
  }
}

static void await_empty(tarn__cache_sieve_readers *readers, unsigned half) {
  atomic_fetch_add(&readers->waiting, 1);
  for (;;) {
    uint32_t number = tarn__news_number(&readers->news);
    if (atomic_load(&readers->counts[half]) == 0) break;
    tarn__news_await(&readers->news, number);
  }
  atomic_fetch_sub(&readers->waiting, 1);
}

// What was removed was so inside the lock of a shard. A reader that is not
// counted yet enters that lock later, and does not find it.
void tarn__sieve_await_readers(tarn__cache_sieve *sieve) {
  tarn__cache_sieve_readers *readers = sieve->readers;
  if (atomic_load(&readers->counts[0]) == 0 &&
      atomic_load(&readers->counts[1]) == 0)
    return;
  tarn__short_lock_enter(&readers->lock);
  await_empty(readers, atomic_fetch_add(&readers->epoch, 1) & 1);
  tarn__short_lock_leave(&readers->lock);
}

// --- reads -----------------------------------------------------------------

// The line of key |i|, or UINT32_MAX.
static inline uint32_t look_up(uint32_t (*all)[WAYS],
                               const tarn__cache_sieve_batch *batch, size_t i) {
  uint32_t set = batch->sets[i];
  uint32_t *words = all[set];
  unsigned way =
      tarn__sieve_way_of(words, batch->words[i], TARN__SIEVE_VISITED);
  if (way == 0) return UINT32_MAX;
  // A write would make it another core's to fetch again.
  if ((words[way - 1] & TARN__SIEVE_VISITED) == 0)
    words[way - 1] |= TARN__SIEVE_VISITED;
  return set * WAYS + way - 1;
}

// Enters all locks if no other thread is in one of them.
static bool try_all(tarn__cache_sieve *sieve) {
  size_t count = 0;
  while (count < sieve->shard_count &&
         tarn__short_lock_try(&sieve->shards[count].lock))
    count++;
  if (count == sieve->shard_count) return true;
  while (count-- > 0)
    tarn__short_lock_leave(&sieve->shards[count].lock);
  return false;
}

// A thread that is alone needs no order.
static size_t read_at_once(tarn__cache_sieve *sieve,
                           tarn__cache_sieve_batch *batch) {
  uint32_t(*const all)[WAYS] = sieve->words;
  const size_t count = batch->count;
  size_t hits = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t line = look_up(all, batch, i);
    batch->lines[i] = line;
    hits += line != UINT32_MAX;
  }
  sieve->shards[0].hits += hits;
  for (size_t s = 0; s < sieve->shard_count; s++)
    tarn__short_lock_leave(&sieve->shards[s].lock);
  return hits;
}

static size_t read_shard(tarn__cache_sieve *sieve,
                         tarn__cache_sieve_batch *batch, size_t k, size_t s) {
  tarn__cache_sieve_shard *shard = &sieve->shards[s];
  size_t hits = 0;
  tarn__short_lock_enter(&shard->lock);
  for (; k < batch->ends[s]; k++) {
    uint32_t line = look_up(sieve->words, batch, batch->order[k]);
    batch->lines[batch->order[k]] = line;
    hits += line != UINT32_MAX;
  }
  shard->hits += hits;
  tarn__short_lock_leave(&shard->lock);
  return hits;
}

static size_t read_by_shard(tarn__cache_sieve *sieve,
                            tarn__cache_sieve_batch *batch) {
  size_t hits = 0;
  tarn__sieve_sort(sieve, batch);
  for (size_t s = 0, k = 0; k < batch->count; s++) {
    if (batch->ends[s] == k) continue;
    hits += read_shard(sieve, batch, k, s);
    k = batch->ends[s];
  }
  return hits;
}

unsigned tarn__sieve_read(tarn__cache_sieve *sieve,
                          tarn__cache_sieve_batch *batch) {
  unsigned reading = come(sieve->readers);
  tarn__sieve_place_all(sieve, batch);
  size_t hits =
      try_all(sieve) ? read_at_once(sieve, batch) : read_by_shard(sieve, batch);
  memset(batch->tally, 0, sizeof batch->tally);
  batch->tally[TARN__SIEVE_ABSENT] = batch->count - hits;
  batch->tally[TARN__SIEVE_THERE] = hits;
  return reading;
}

void tarn__sieve_read_end(tarn__cache_sieve *sieve, unsigned reading) {
  go(sieve->readers, reading);
}
