// Batches of keys. A batch is hashed first, and what it needs is fetched
// meanwhile; then its keys are sorted by shard, so that each lock is taken
// once.
#include <assert.h>
#include <string.h>

#include "cache/sieve_shard.h"

enum {
  WAYS = TARN__SIEVE_WAYS,
  MOST_SHARDS = TARN__SIEVE_MOST_SHARDS,
};

// --- batches ---------------------------------------------------------------

static void place_all(const tarn__sieve *sieve, tarn__sieve_batch *batch) {
  for (size_t i = 0; i < batch->count; i++) {
    uint32_t set =
        tarn__sieve_place(&sieve->keys, batch->keys[i], &batch->words[i]);
    batch->sets[i] = set;
    __builtin_prefetch(sieve->words[set]);
    __builtin_prefetch(sieve->states[set], 1);
  }
}

// Sorts by counting, and keeps the order of keys within a shard.
static void sort_by_shard(const tarn__sieve *sieve, tarn__sieve_batch *batch) {
  uint16_t begins[MOST_SHARDS + 1] = {0};
  for (size_t i = 0; i < batch->count; i++)
    begins[(batch->sets[i] >> sieve->shift) + 1]++;
  for (size_t i = 0; i < sieve->shard_count; i++)
    begins[i + 1] = (uint16_t)(begins[i + 1] + begins[i]);
  for (size_t i = 0; i < batch->count; i++) {
    size_t shard = batch->sets[i] >> sieve->shift;
    batch->order[begins[shard]++] = (uint16_t)i;
  }
}

// The keys of |batch| from |first| on that are of the same shard, up to the
// answer.
static size_t end_of_shard(const tarn__sieve *sieve,
                           const tarn__sieve_batch *batch, size_t first) {
  size_t shard = batch->sets[batch->order[first]] >> sieve->shift;
  size_t end = first + 1;
  while (end < batch->count &&
         batch->sets[batch->order[end]] >> sieve->shift == shard)
    end++;
  return end;
}

static tarn__sieve_found take_hit(tarn__sieve_shard *shard,
                                  const tarn__sieve_set *set, unsigned way) {
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

static tarn__sieve_found take_room(tarn__sieve_shard *shard,
                                   const tarn__sieve_set *set, uint32_t word,
                                   unsigned *out_way) {
  tarn__sieve_room room = tarn__sieve_make_room(set, out_way);
  if (room == TARN__SIEVE_FULL) return TARN__SIEVE_ABSENT;
  if (room == TARN__SIEVE_DIRTY_ROOM) {
    tarn__sieve_change(shard, set, *out_way,
                       TARN__SIEVE_WRITING + TARN__SIEVE_PIN);
    return TARN__SIEVE_TO_WRITE;
  }
  shard->fills++;
  shard->evictions += room == TARN__SIEVE_CLEAN_ROOM;
  shard->used += room == TARN__SIEVE_FREE_ROOM;
  set->words[*out_way] = word;
  set->states[*out_way] = TARN__SIEVE_FILLING + TARN__SIEVE_PIN;
  return TARN__SIEVE_TO_FILL;
}

static void find_one(const tarn__sieve *sieve, tarn__sieve_shard *shard,
                     tarn__sieve_batch *batch, size_t i, uint32_t flags) {
  tarn__sieve_set set = tarn__sieve_set_at(sieve, batch->sets[i]);
  tarn__sieve_found found = TARN__SIEVE_ABSENT;
  unsigned way = tarn__sieve_way_of(set.words, batch->words[i]);
  if (way-- != 0) {
    found = take_hit(shard, &set, way);
  } else if ((flags & TARN__SIEVE_MAKE_ROOM) != 0) {
    found = take_room(shard, &set, batch->words[i], &way);
  }
  batch->found[i] = (uint8_t)found;
  batch->lines[i] =
      found == TARN__SIEVE_ABSENT ? UINT32_MAX : batch->sets[i] * WAYS + way;
  batch->tally[found]++;
}

void tarn__sieve_find(tarn__sieve *sieve, tarn__sieve_batch *batch,
                      uint32_t flags) {
  assert(batch->count <= TARN__SIEVE_BATCH);
  memset(batch->tally, 0, sizeof batch->tally);
  place_all(sieve, batch);
  sort_by_shard(sieve, batch);
  for (size_t first = 0, end = 0; first < batch->count; first = end) {
    end = end_of_shard(sieve, batch, first);
    tarn__sieve_shard *shard =
        tarn__sieve_shard_of(sieve, batch->sets[batch->order[first]]);
    tarn__short_lock_enter(&shard->lock);
    for (size_t k = first; k < end; k++)
      find_one(sieve, shard, batch, batch->order[k], flags);
    tarn__short_lock_leave(&shard->lock);
  }
}

static void leave_one(const tarn__sieve *sieve, tarn__sieve_shard *shard,
                      tarn__sieve_batch *batch, size_t i, bool dirty) {
  tarn__sieve_set set = tarn__sieve_set_at(sieve, batch->sets[i]);
  tarn__sieve_found found = (tarn__sieve_found)batch->found[i];
  unsigned way = batch->lines[i] % WAYS;
  if (found == TARN__SIEVE_ABSENT || found == TARN__SIEVE_TO_WRITE) return;
  uint32_t state = set.states[way];
  bool keeps = set.words[way] != TARN__SIEVE_NO_KEY;
  assert(found != TARN__SIEVE_TO_FILL || (state & TARN__SIEVE_FILLING) == 0);
  if (dirty && keeps) state |= TARN__SIEVE_DIRTY;
  tarn__sieve_unpin(shard, &set, way, state);
  batch->found[i] = TARN__SIEVE_ABSENT;
  batch->lines[i] = UINT32_MAX;
}

void tarn__sieve_leave(tarn__sieve *sieve, tarn__sieve_batch *batch,
                       bool dirty) {
  for (size_t first = 0, end = 0; first < batch->count; first = end) {
    end = end_of_shard(sieve, batch, first);
    tarn__sieve_shard *shard =
        tarn__sieve_shard_of(sieve, batch->sets[batch->order[first]]);
    tarn__short_lock_enter(&shard->lock);
    for (size_t k = first; k < end; k++)
      leave_one(sieve, shard, batch, batch->order[k], dirty);
    tarn__short_lock_leave(&shard->lock);
  }
}
