// SIEVE within a set (Zhang and others, "SIEVE is Simpler than LRU", 2024),
// with lines that cannot go now: pinned ones are passed over. While one is
// being written the hand stays there, since it is that line's turn to go.
#include "cache/sieve_set.h"

enum { WAYS = TARN__SIEVE_WAYS };

static unsigned way_at(uint64_t order, unsigned position) {
  return order >> 4 * position & 0xf;
}

// Makes the line at |position| the newest.
static void renew(tarn__cache_sieve_queue *queue, unsigned position) {
  uint64_t way = way_at(queue->order, position);
  uint64_t older = (UINT64_C(1) << 4 * position) - 1;
  queue->order = (queue->order & older) | (queue->order >> 4 & ~older);
  queue->order &= ~UINT64_C(0) >> 4;
  queue->order |= way << 4 * (WAYS - 1);
  if (queue->hand > position) queue->hand--;
}

// The position of a line without a key; WAYS: there is none.
static unsigned find_free(const tarn__cache_sieve_set *set) {
  unsigned position = 0;
  for (; position < WAYS; position++) {
    unsigned way = way_at(set->queue->order, position);
    if (set->words[way] == TARN__SIEVE_NO_KEY &&
        !tarn__sieve_is_pinned(set->states[way]))
      break;
  }
  return position;
}

// The position of the line that is next to go; WAYS: there is none. After one
// round no line is visited, so two are enough.
static unsigned find_next(const tarn__cache_sieve_set *set) {
  bool held = false;
  unsigned position = set->queue->hand;
  for (unsigned i = 0; i < 2 * WAYS; i++, position = (position + 1) % WAYS) {
    unsigned way = way_at(set->queue->order, position);
    bool pinned = tarn__sieve_is_pinned(set->states[way]);
    bool visited = (set->words[way] & TARN__SIEVE_VISITED) != 0;
    bool writing = (set->states[way] & TARN__SIEVE_WRITING) != 0;
    if (!held && (writing || !pinned)) set->queue->hand = position;
    if (writing) held = true;
    if (pinned) continue;
    if (!visited) return position;
    set->words[way] &= ~(uint32_t)TARN__SIEVE_VISITED;
  }
  return WAYS;
}

static void go_past(tarn__cache_sieve_queue *queue, unsigned position) {
  bool newest = position == WAYS - 1;
  bool here = queue->hand == position;
  renew(queue, position);
  if (here && newest) queue->hand = 0;
}

tarn__cache_sieve_room tarn__sieve_make_room(const tarn__cache_sieve_set *set,
                                             bool free, unsigned *out_way) {
  tarn__cache_sieve_room room = TARN__SIEVE_FREE;
  unsigned position = find_free(set);
  if (position == WAYS && !free) {
    room = TARN__SIEVE_CLEAN;
    position = find_next(set);
  }
  if (position == WAYS) return TARN__SIEVE_FULL;
  *out_way = way_at(set->queue->order, position);
  if ((set->states[*out_way] & TARN__SIEVE_DIRTY) != 0) return TARN__SIEVE_HELD;
  go_past(set->queue, position);
  return room;
}
