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

static void go(tarn__sieve_readers *readers, unsigned half) {
  bool last = atomic_fetch_sub(&readers->counts[half], 1) == 1;
  if (last && atomic_load(&readers->waiting) > 0)
    tarn__news_tell(&readers->news);
}

// A reader that was counted in a half which is to run empty enters again.
static unsigned come(tarn__sieve_readers *readers) {
  for (;;) {
    unsigned half = atomic_load(&readers->epoch) & 1;
    atomic_fetch_add(&readers->counts[half], 1);
    if ((atomic_load(&readers->epoch) & 1) == half) return half;
    go(readers, half);
  }
}

static void await_empty(tarn__sieve_readers *readers, unsigned half) {
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
void tarn__sieve_await_readers(tarn__sieve *sieve) {
  tarn__sieve_readers *readers = sieve->readers;
  if (atomic_load(&readers->counts[0]) == 0 &&
      atomic_load(&readers->counts[1]) == 0)
    return;
  tarn__short_lock_enter(&readers->lock);
  await_empty(readers, atomic_fetch_add(&readers->epoch, 1) & 1);
  tarn__short_lock_leave(&readers->lock);
}

// --- reads -----------------------------------------------------------------

// Keys |k| to |end| of the order; returns how many of them are there.
static size_t look_up(const tarn__sieve *sieve, tarn__sieve_batch *batch,
                      size_t k, size_t end) {
  uint32_t(*const all)[WAYS] = sieve->words;
  size_t hits = 0;
  for (; k < end; k++) {
    size_t i = batch->order[k];
    uint32_t set = batch->sets[i];
    uint32_t *words = all[set];
    unsigned way =
        tarn__sieve_way_of(words, batch->words[i], TARN__SIEVE_VISITED);
    uint32_t line = UINT32_MAX;
    if (way != 0) {
      line = set * WAYS + way - 1;
      hits++;
      // A write would make it another core's to fetch again.
      if ((words[way - 1] & TARN__SIEVE_VISITED) == 0)
        words[way - 1] |= TARN__SIEVE_VISITED;
    }
    batch->lines[i] = line;
  }
  return hits;
}

unsigned tarn__sieve_read(tarn__sieve *sieve, tarn__sieve_batch *batch) {
  unsigned reading = come(sieve->readers);
  size_t all = 0;
  tarn__sieve_place_all(sieve, batch);
  for (size_t s = 0, k = 0; k < batch->count; s++) {
    size_t end = batch->ends[s];
    if (end == k) continue;
    tarn__sieve_shard *shard = &sieve->shards[s];
    tarn__short_lock_enter(&shard->lock);
    size_t hits = look_up(sieve, batch, k, end);
    shard->hits += hits;
    tarn__short_lock_leave(&shard->lock);
    all += hits;
    k = end;
  }
  memset(batch->tally, 0, sizeof batch->tally);
  batch->tally[TARN__SIEVE_ABSENT] = batch->count - all;
  batch->tally[TARN__SIEVE_THERE] = all;
  return reading;
}

void tarn__sieve_read_end(tarn__sieve *sieve, unsigned reading) {
  go(sieve->readers, reading);
}
