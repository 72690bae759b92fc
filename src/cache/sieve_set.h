// sieve_set.h - a set of lines: its words, the states of its lines, and the
// queue of a SIEVE. The shard's lock guards all of it.
//
//   words    16 x 4 bytes: tag and visited bit, a line of the processor's cache
//   states   16 x 4 bytes: what is being done to a line, and its pins
//   queue    16 x 4 bits: lines from the oldest to the newest
//                                           ^ hand
// The hand goes from the oldest line to the newest, and on from the oldest. It
// takes the visited bit of those that have it, and stops at the first that has
// none, which is the next to go.
#ifndef TARN_CACHE_SIEVE_SET_H_
#define TARN_CACHE_SIEVE_SET_H_

#include <string.h>

#include "cache/sieve.h"
#include "cache/sieve_keys.h"

// The state of a line.
enum {
  TARN__SIEVE_FILLING = 1u << 0,
  TARN__SIEVE_GIVEN_UP = 1u << 1,  // it was not filled; goes with the last pin
  TARN__SIEVE_DIRTY = 1u << 2,
  TARN__SIEVE_WRITING = 1u << 3,
  TARN__SIEVE_PIN = 1u << 4,  // what one pin adds
  TARN__SIEVE_UNWRITTEN = TARN__SIEVE_DIRTY | TARN__SIEVE_WRITING,
};

typedef struct tarn__cache_sieve_queue {
  uint64_t order;  // 4 bits for each line, the oldest in the lowest
  uint32_t hand;   // a position in it
  uint32_t unused;
} tarn__cache_sieve_queue;

typedef struct tarn__cache_sieve_set {
  uint32_t *words;
  uint32_t *states;
  tarn__cache_sieve_queue *queue;
} tarn__cache_sieve_set;

#define TARN__SIEVE_FIRST_ORDER UINT64_C(0xfedcba9876543210)

static inline bool tarn__sieve_is_pinned(uint32_t state) {
  return state >= TARN__SIEVE_PIN;
}

// Four words, compared at once.
typedef uint32_t tarn__sieve_four __attribute__((vector_size(16)));
typedef uint64_t tarn__sieve_two __attribute__((vector_size(16)));

// Of the four words from |first| on: the number of the line, counted from 1,
// where the word is |wanted|, and else 0.
static inline tarn__sieve_four tarn__sieve_match(const uint32_t *words,
                                                 uint32_t first,
                                                 tarn__sieve_four wanted,
                                                 uint32_t ignored) {
  const tarn__sieve_four lines = (tarn__sieve_four){1, 2, 3, 4} + first;
  tarn__sieve_four some;
  memcpy(&some, &words[first], sizeof some);
  return (tarn__sieve_four)((some | ignored) == wanted) & lines;
}

// The line of the set that has |word|, whatever its marks of |ignored|, counted
// from 1; 0: none. No step depends on a jump.
static inline unsigned tarn__sieve_way_of(const uint32_t *words, uint32_t word,
                                          uint32_t ignored) {
  const tarn__sieve_four wanted = (word | ignored) - (tarn__sieve_four){0};
  tarn__sieve_two found =
      (tarn__sieve_two)(tarn__sieve_match(words, 0, wanted, ignored) |
                        tarn__sieve_match(words, 4, wanted, ignored) |
                        tarn__sieve_match(words, 8, wanted, ignored) |
                        tarn__sieve_match(words, 12, wanted, ignored));
  uint64_t both = found[0] | found[1];
  return (unsigned)(both | both >> 32);
}

typedef enum tarn__cache_sieve_room {
  TARN__SIEVE_FULL,  // each line is pinned, or none is free and must be
  TARN__SIEVE_FREE,  // the line has no key
  TARN__SIEVE_CLEAN,
  TARN__SIEVE_HELD,  // the hand stays there
} tarn__cache_sieve_room;

// Finds the line that the next key gets. But for a dirty one it is the newest
// of the queue now; words and states have not changed.
// |free|: no other than one without a key.
tarn__cache_sieve_room tarn__sieve_make_room(const tarn__cache_sieve_set *set,
                                             bool free, unsigned *out_way);

#endif  // TARN_CACHE_SIEVE_SET_H_
