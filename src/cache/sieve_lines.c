// What becomes of lines that were found: pins, filling, waiting, dropping.
#include <assert.h>

#include "cache/sieve_shard.h"

enum { WAYS = TARN__SIEVE_WAYS };

// --- states of lines -------------------------------------------------------

void tarn__sieve_change(tarn__cache_sieve_shard *shard,
                        const tarn__cache_sieve_set *set, unsigned way,
                        uint32_t state) {
  bool was = (set->states[way] & TARN__SIEVE_UNWRITTEN) != 0;
  bool is = (state & TARN__SIEVE_UNWRITTEN) != 0;
  shard->dirty += (size_t)is - (size_t)was;
  set->states[way] = state;
}

void tarn__sieve_tell(tarn__cache_sieve_shard *shard) {
  if (shard->waiting > 0) tarn__news_tell(&shard->news);
}

void tarn__sieve_unpin(tarn__cache_sieve_shard *shard,
                       const tarn__cache_sieve_set *set, unsigned way,
                       uint32_t state) {
  state -= TARN__SIEVE_PIN;
  bool last = !tarn__sieve_is_pinned(state);
  if (last && set->words[way] == TARN__SIEVE_NO_KEY) state = 0;
  tarn__sieve_change(shard, set, way, state);
  if (last) tarn__sieve_tell(shard);
}

// Until the next news; leaves the lock meanwhile.
static void wait_inside(tarn__cache_sieve_shard *shard) {
  uint32_t number = tarn__news_number(&shard->news);
  shard->waiting++;
  tarn__short_lock_leave(&shard->lock);
  tarn__news_await(&shard->news, number);
  tarn__short_lock_enter(&shard->lock);
  shard->waiting--;
}

// --- filling ---------------------------------------------------------------

static void fill_one(tarn__cache_sieve_shard *shard,
                     const tarn__cache_sieve_set *set, unsigned way, bool ok) {
  assert((set->states[way] & TARN__SIEVE_FILLING) != 0);
  bool keeps = set->words[way] != TARN__SIEVE_NO_KEY;
  set->states[way] &= ~(uint32_t)TARN__SIEVE_FILLING;
  if (!ok) {
    shard->used -= keeps;
    set->words[way] = TARN__SIEVE_NO_KEY;
    set->states[way] |= TARN__SIEVE_GIVEN_UP;
  } else if (keeps) {
    set->words[way] &= ~(uint32_t)TARN__SIEVE_UNREADABLE;
  }
  tarn__sieve_tell(shard);
}

void tarn__sieve_filled(tarn__cache_sieve *sieve, const uint32_t *lines,
                        size_t count, bool ok) {
  for (size_t i = 0; i < count; i++) {
    tarn__cache_sieve_set set = tarn__sieve_set_at(sieve, lines[i] / WAYS);
    tarn__cache_sieve_shard *shard =
        tarn__sieve_shard_of(sieve, lines[i] / WAYS);
    tarn__short_lock_enter(&shard->lock);
    fill_one(shard, &set, lines[i] % WAYS, ok);
    tarn__short_lock_leave(&shard->lock);
  }
}

bool tarn__sieve_await(tarn__cache_sieve *sieve, uint32_t line) {
  tarn__cache_sieve_set set = tarn__sieve_set_at(sieve, line / WAYS);
  tarn__cache_sieve_shard *shard = tarn__sieve_shard_of(sieve, line / WAYS);
  const uint32_t *state = &set.states[line % WAYS];
  tarn__short_lock_enter(&shard->lock);
  while ((*state & TARN__SIEVE_FILLING) != 0)
    wait_inside(shard);
  bool ok = (*state & TARN__SIEVE_GIVEN_UP) == 0;
  tarn__short_lock_leave(&shard->lock);
  return ok;
}

void tarn__sieve_await_written(tarn__cache_sieve *sieve, uint32_t line) {
  tarn__cache_sieve_set set = tarn__sieve_set_at(sieve, line / WAYS);
  tarn__cache_sieve_shard *shard = tarn__sieve_shard_of(sieve, line / WAYS);
  tarn__short_lock_enter(&shard->lock);
  while ((set.states[line % WAYS] & TARN__SIEVE_WRITING) != 0)
    wait_inside(shard);
  tarn__short_lock_leave(&shard->lock);
}

static bool is_full(const tarn__cache_sieve_set *set) {
  for (unsigned way = 0; way < WAYS; way++)
    if (!tarn__sieve_is_pinned(set->states[way])) return false;
  return true;
}

void tarn__sieve_await_room(tarn__cache_sieve *sieve, uint64_t key) {
  uint32_t word = 0;
  uint32_t at = tarn__sieve_place(&sieve->keys, key, &word);
  tarn__cache_sieve_set set = tarn__sieve_set_at(sieve, at);
  tarn__cache_sieve_shard *shard = tarn__sieve_shard_of(sieve, at);
  tarn__short_lock_enter(&shard->lock);
  while (is_full(&set))
    wait_inside(shard);
  tarn__short_lock_leave(&shard->lock);
}

// --- dropping --------------------------------------------------------------

static void drop_one(tarn__cache_sieve_shard *shard,
                     const tarn__cache_sieve_set *set, unsigned way) {
  uint32_t state = set->states[way] & ~(uint32_t)TARN__SIEVE_DIRTY;
  set->words[way] = TARN__SIEVE_NO_KEY;
  shard->used--;
  tarn__sieve_change(shard, set, way, state);
}

void tarn__sieve_drop(tarn__cache_sieve *sieve, uint64_t key) {
  uint32_t word = 0;
  uint32_t at = tarn__sieve_place(&sieve->keys, key, &word);
  tarn__cache_sieve_set set = tarn__sieve_set_at(sieve, at);
  tarn__cache_sieve_shard *shard = tarn__sieve_shard_of(sieve, at);
  tarn__short_lock_enter(&shard->lock);
  unsigned way = tarn__sieve_way_of(set.words, word, TARN__SIEVE_MARKS);
  if (way-- != 0) drop_one(shard, &set, way);
  tarn__short_lock_leave(&shard->lock);
}

void tarn__sieve_drop_all(tarn__cache_sieve *sieve) {
  for (size_t i = 0; i < sieve->sets; i++) {
    tarn__cache_sieve_set set = tarn__sieve_set_at(sieve, i);
    tarn__cache_sieve_shard *shard = tarn__sieve_shard_of(sieve, i);
    tarn__short_lock_enter(&shard->lock);
    for (unsigned way = 0; way < WAYS; way++)
      if (set.words[way] != TARN__SIEVE_NO_KEY) drop_one(shard, &set, way);
    tarn__short_lock_leave(&shard->lock);
  }
}
