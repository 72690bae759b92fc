// Finds and leaves lines, a batch of keys at a time, shard by shard.
#include <assert.h>
#include <string.h>

#include "cache/sieve_shard.h"

enum { WAYS = TARN__SIEVE_WAYS };

static tarn__cache_sieve_found take_hit(tarn__cache_sieve_shard *shard,
                                        const tarn__cache_sieve_set *set,
                                        unsigned way) {
  uint32_t word = set->words[way];
  uint32_t state = set->states[way];
  // A write would make the line another core's to fetch again.
  if ((word & TARN__SIEVE_VISITED) == 0)
    set->words[way] = word | TARN__SIEVE_VISITED;
  set->states[way] = state + TARN__SIEVE_PIN;
  if ((state & TARN__SIEVE_FILLING) != 0) {
    shard->joined++;
    return TARN__SIEVE_AWAITED;
  }
  shard->hits++;
  return TARN__SIEVE_THERE;
}

static tarn__cache_sieve_found take_room(tarn__cache_sieve_shard *shard,
                                         const tarn__cache_sieve_set *set,
                                         uint32_t word, bool free,
                                         unsigned *out_way) {
  tarn__cache_sieve_room room = tarn__sieve_make_room(set, free, out_way);
  if (room == TARN__SIEVE_FULL) return TARN__SIEVE_ABSENT;
  if (room == TARN__SIEVE_HELD) {
    tarn__sieve_change(shard, set, *out_way,
                       TARN__SIEVE_WRITING + TARN__SIEVE_PIN);
    return TARN__SIEVE_TO_WRITE;
  }
  shard->fills++;
  shard->evictions += room == TARN__SIEVE_CLEAN;
  shard->used += room == TARN__SIEVE_FREE;
  set->words[*out_way] = word | TARN__SIEVE_UNREADABLE;
  set->states[*out_way] = TARN__SIEVE_FILLING + TARN__SIEVE_PIN;
  return TARN__SIEVE_TO_FILL;
}

static void find_one(const tarn__cache_sieve *sieve,
                     tarn__cache_sieve_shard *shard,
                     tarn__cache_sieve_batch *batch, size_t i, uint32_t flags) {
  tarn__cache_sieve_set set = tarn__sieve_set_at(sieve, batch->sets[i]);
  tarn__cache_sieve_found found = TARN__SIEVE_ABSENT;
  unsigned way =
      tarn__sieve_way_of(set.words, batch->words[i], TARN__SIEVE_MARKS);
  if (way-- != 0) {
    found = take_hit(shard, &set, way);
  } else if (flags != 0) {
    bool free = (flags & TARN__SIEVE_FREE_ROOM) != 0;
    found = take_room(shard, &set, batch->words[i], free, &way);
  }
  batch->found[i] = (uint8_t)found;
  batch->lines[i] =
      found == TARN__SIEVE_ABSENT ? UINT32_MAX : batch->sets[i] * WAYS + way;
  batch->tally[found]++;
}

void tarn__sieve_find(tarn__cache_sieve *sieve, tarn__cache_sieve_batch *batch,
                      uint32_t flags) {
  assert(batch->count <= TARN__SIEVE_BATCH);
  memset(batch->tally, 0, sizeof batch->tally);
  tarn__sieve_place_all(sieve, batch);
  tarn__sieve_sort(sieve, batch);
  for (size_t s = 0, k = 0; k < batch->count; s++) {
    if (batch->ends[s] == k) continue;
    tarn__cache_sieve_shard *shard = &sieve->shards[s];
    tarn__short_lock_enter(&shard->lock);
    for (; k < batch->ends[s]; k++)
      find_one(sieve, shard, batch, batch->order[k], flags);
    tarn__short_lock_leave(&shard->lock);
  }
  if (batch->tally[TARN__SIEVE_TO_FILL] > 0) tarn__sieve_await_readers(sieve);
}

static void leave_line(tarn__cache_sieve_shard *shard,
                       const tarn__cache_sieve_set *set, unsigned way,
                       bool dirty) {
  uint32_t state = set->states[way];
  bool keeps = set->words[way] != TARN__SIEVE_NO_KEY;
  if (dirty && keeps) state |= TARN__SIEVE_DIRTY;
  tarn__sieve_unpin(shard, set, way, state);
}

static void leave_one(const tarn__cache_sieve *sieve,
                      tarn__cache_sieve_shard *shard,
                      tarn__cache_sieve_batch *batch, size_t i, bool dirty) {
  tarn__cache_sieve_set set = tarn__sieve_set_at(sieve, batch->sets[i]);
  tarn__cache_sieve_found found = (tarn__cache_sieve_found)batch->found[i];
  unsigned way = batch->lines[i] % WAYS;
  if (found == TARN__SIEVE_ABSENT || found == TARN__SIEVE_TO_WRITE) return;
  assert(found != TARN__SIEVE_TO_FILL ||
         (set.states[way] & TARN__SIEVE_FILLING) == 0);
  leave_line(shard, &set, way, dirty);
  batch->found[i] = TARN__SIEVE_ABSENT;
  batch->lines[i] = UINT32_MAX;
}

void tarn__sieve_let_go(tarn__cache_sieve *sieve, uint32_t line, bool dirty) {
  tarn__cache_sieve_set set = tarn__sieve_set_at(sieve, line / WAYS);
  tarn__cache_sieve_shard *shard = tarn__sieve_shard_of(sieve, line / WAYS);
  tarn__short_lock_enter(&shard->lock);
  leave_line(shard, &set, line % WAYS, dirty);
  tarn__short_lock_leave(&shard->lock);
}

void tarn__sieve_leave(tarn__cache_sieve *sieve, tarn__cache_sieve_batch *batch,
                       bool dirty) {
  for (size_t s = 0, k = 0; k < batch->count; s++) {
    if (batch->ends[s] == k) continue;
    tarn__cache_sieve_shard *shard = &sieve->shards[s];
    tarn__short_lock_enter(&shard->lock);
    for (; k < batch->ends[s]; k++)
      leave_one(sieve, shard, batch, batch->order[k], dirty);
    tarn__short_lock_leave(&shard->lock);
  }
}
