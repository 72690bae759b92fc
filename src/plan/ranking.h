// ranking.h - which of several items a search puts down first.
#ifndef TARN_PLAN_RANKING_H_
#define TARN_PLAN_RANKING_H_

#include "plan/search.h"

typedef struct tarn__plan_rank_key {
  double by[3];  // larger ones first
  uint32_t item;
} tarn__plan_rank_key;

// Numbers |items|, which are free, by the |order| and |seed| of a run: fills
// |ranks|, by item, with 0, 1, ... |totals| is the live sum of |items| by
// section; |keys| has room for |count|.
//
// Cost: O(n log n + sections of |items|).
void tarn__plan_rank(const tarn__plan_instance *instance,
                     const tarn__plan_run *run, const uint64_t *totals,
                     const uint32_t *items, size_t count,
                     tarn__plan_rank_key *keys, uint32_t *ranks);

#endif  // TARN_PLAN_RANKING_H_
