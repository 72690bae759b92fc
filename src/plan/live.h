// live.h - a set of small numbers with queries for neighbours.
//
// One bit for each number, and above each 64 words a word whose bits tell which
// of them are not zero, up to a single word:
//
//   level 2                 1...
//   level 1      1...1.1.   ....   ...
//   level 0   .11.  ....  1...   ....
//
// So a neighbour of a number is found with one word of each level: six at most.
#ifndef TARN_PLAN_LIVE_H_
#define TARN_PLAN_LIVE_H_

#include "tarn/base.h"

enum { TARN__PLAN_LIVE_LEVELS = 6 };

#define TARN__PLAN_LIVE_NONE UINT32_MAX

typedef struct tarn__plan_live {
  uint64_t *words;
  uint64_t *levels[TARN__PLAN_LIVE_LEVELS];  // within |words|, the bits first
  size_t word_count;
  size_t level_count;
} tarn__plan_live;

// An empty set for the numbers below |count|, which is below 2^32.
//
// Lifetime:     tarn__plan_live_free.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_live_make(tarn__plan_live *live,
                                                 size_t count);

// Frees and zero-fills |live|. A zero-filled one is allowed.
void tarn__plan_live_free(tarn__plan_live *live);

void tarn__plan_live_add(tarn__plan_live *live, uint32_t number);
void tarn__plan_live_remove(tarn__plan_live *live, uint32_t number);

// The greatest member below |number|, and the least above it; or
// TARN__PLAN_LIVE_NONE. |number| need not be a member.
uint32_t tarn__plan_live_below(const tarn__plan_live *live, uint32_t number);
uint32_t tarn__plan_live_above(const tarn__plan_live *live, uint32_t number);

#endif  // TARN_PLAN_LIVE_H_
