// Dirty lines, in the order of their keys: a heap keeps the lowest that a pass
// has met, and then they are taken one by one, if they are still dirty.
#include <assert.h>

#include "cache/sieve_shard.h"

enum { WAYS = TARN__SIEVE_WAYS };

// Inside the lock.
static uint64_t key_in(const tarn__cache_sieve *sieve, uint32_t line) {
  uint32_t word = sieve->words[line / WAYS][line % WAYS];
  return tarn__sieve_key_at(&sieve->keys, line / WAYS, word);
}

bool tarn__sieve_key(tarn__cache_sieve *sieve, uint32_t line,
                     uint64_t *out_key) {
  tarn__cache_sieve_shard *shard = tarn__sieve_shard_of(sieve, line / WAYS);
  tarn__short_lock_enter(&shard->lock);
  bool has = sieve->words[line / WAYS][line % WAYS] != TARN__SIEVE_NO_KEY;
  if (has) *out_key = key_in(sieve, line);
  tarn__short_lock_leave(&shard->lock);
  return has;
}

// --- a heap whose first is the highest -------------------------------------

static void sink(tarn__cache_sieve_line *heap, size_t count, size_t at,
                 tarn__cache_sieve_line item) {
  for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && heap[child + 1].key > heap[child].key) child++;
    if (heap[child].key <= item.key) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = item;
}

static void rise(tarn__cache_sieve_line *heap, size_t at,
                 tarn__cache_sieve_line item) {
  for (; at > 0 && heap[(at - 1) / 2].key < item.key; at = (at - 1) / 2)
    heap[at] = heap[(at - 1) / 2];
  heap[at] = item;
}

// A heap becomes ascending.
static void sort(tarn__cache_sieve_line *heap, size_t count) {
  while (count-- > 1) {
    tarn__cache_sieve_line last = heap[count];
    heap[count] = heap[0];
    sink(heap, count, 0, last);
  }
}

// --- the pass --------------------------------------------------------------

typedef struct lowest {
  uint64_t from;
  tarn__cache_sieve_line *heap;
  size_t count;
  size_t most;
} lowest;

static void offer(lowest *l, tarn__cache_sieve_line item) {
  if (item.key < l->from) return;
  if (l->count < l->most) {
    rise(l->heap, l->count++, item);
  } else if (item.key < l->heap[0].key) {
    sink(l->heap, l->count, 0, item);
  }
}

static bool is_to_write(const tarn__cache_sieve *sieve, uint32_t line) {
  uint32_t state = sieve->states[line / WAYS][line % WAYS];
  return (state & TARN__SIEVE_UNWRITTEN) == TARN__SIEVE_DIRTY;
}

static void offer_shard(const tarn__cache_sieve *sieve, size_t shard,
                        lowest *l) {
  size_t first = shard << sieve->shift;
  size_t end = (shard + 1) << sieve->shift;
  if (end > sieve->sets) end = sieve->sets;
  for (size_t line = first * WAYS; line < end * WAYS; line++) {
    uint32_t number = (uint32_t)line;
    if (!is_to_write(sieve, number)) continue;
    offer(l, (tarn__cache_sieve_line){key_in(sieve, number), number});
  }
}

// A shard that has no dirty line, which is most often so, is passed over.
static void offer_all(tarn__cache_sieve *sieve, lowest *l) {
  for (size_t i = 0; i < sieve->shard_count; i++) {
    tarn__cache_sieve_shard *shard = &sieve->shards[i];
    tarn__short_lock_enter(&shard->lock);
    if (shard->dirty > 0) offer_shard(sieve, i, l);
    tarn__short_lock_leave(&shard->lock);
  }
}

// Inside the lock.
static void take_line(tarn__cache_sieve *sieve, uint32_t line) {
  sieve->states[line / WAYS][line % WAYS] +=
      TARN__SIEVE_WRITING - TARN__SIEVE_DIRTY + TARN__SIEVE_PIN;
}

// False: it is another key's by now, or clean.
static bool take(tarn__cache_sieve *sieve, tarn__cache_sieve_line item) {
  tarn__cache_sieve_shard *shard =
      tarn__sieve_shard_of(sieve, item.line / WAYS);
  tarn__short_lock_enter(&shard->lock);
  bool still =
      is_to_write(sieve, item.line) && key_in(sieve, item.line) == item.key;
  if (still) take_line(sieve, item.line);
  tarn__short_lock_leave(&shard->lock);
  return still;
}

bool tarn__sieve_take(tarn__cache_sieve *sieve, uint64_t key,
                      uint32_t *out_line) {
  uint32_t word = 0;
  uint32_t at = tarn__sieve_place(&sieve->keys, key, &word);
  tarn__cache_sieve_shard *shard = tarn__sieve_shard_of(sieve, at);
  tarn__short_lock_enter(&shard->lock);
  unsigned way = tarn__sieve_way_of(sieve->words[at], word, TARN__SIEVE_MARKS);
  *out_line = at * WAYS + way - 1;
  bool taken = way != 0 && is_to_write(sieve, *out_line);
  if (taken) take_line(sieve, *out_line);
  tarn__short_lock_leave(&shard->lock);
  return taken;
}

static size_t take_all(tarn__cache_sieve *sieve, tarn__cache_sieve_line *items,
                       size_t count) {
  size_t taken = 0;
  for (size_t i = 0; i < count; i++)
    if (take(sieve, items[i])) items[taken++] = items[i];
  return taken;
}

size_t tarn__sieve_take_dirty(tarn__cache_sieve *sieve, uint64_t from,
                              tarn__cache_sieve_line *out, size_t most) {
  size_t taken = 0;
  lowest l = {.from = from, .heap = out, .most = most};
  do {
    l.count = 0;
    offer_all(sieve, &l);
    sort(out, l.count);
    taken = take_all(sieve, out, l.count);
  } while (taken == 0 && l.count > 0);
  return taken;
}

void tarn__sieve_written(tarn__cache_sieve *sieve, uint32_t line, bool ok) {
  tarn__cache_sieve_set set = tarn__sieve_set_at(sieve, line / WAYS);
  tarn__cache_sieve_shard *shard = tarn__sieve_shard_of(sieve, line / WAYS);
  unsigned way = line % WAYS;
  tarn__short_lock_enter(&shard->lock);
  uint32_t state = set.states[way] & ~(uint32_t)TARN__SIEVE_WRITING;
  bool keeps = set.words[way] != TARN__SIEVE_NO_KEY;
  assert((set.states[way] & TARN__SIEVE_WRITING) != 0);
  if (!ok && keeps) state |= TARN__SIEVE_DIRTY;
  shard->written += ok;
  tarn__sieve_unpin(shard, &set, way, state);
  tarn__sieve_tell(shard);
  tarn__short_lock_leave(&shard->lock);
}
