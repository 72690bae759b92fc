// sharing.h - who comes into an arena, by what is live there.
//
// A buffer in which a pair ends or begins needs less in the step that it
// shares with a mate that is in as well: so much is hoped for, and whether it
// comes true is for the solver to say.
#ifndef TARN_PLAN_SHARING_H_
#define TARN_PLAN_SHARING_H_

#include "plan/pairs.h"
#include "plan/sums.h"

#define TARN__PLAN_NOWHERE UINT32_MAX

typedef struct tarn__plan_sharing {
  const tarn_plan_problem *problem;
  uint32_t *order;       // buffers, the first to choose first
  uint32_t *rank;        // by buffer
  uint32_t *arenas;      // by buffer: where it is; NOWHERE: nowhere yet
  const bool *left_out;  // by buffer; NULL: nobody
  tarn__plan_sums sums;  // of the arena in question
  tarn__plan_pairs pairs;
  uint32_t *giver_mate;  // by buffer: a mate of which it is the giver, + 1
  uint32_t *taker_mate;  // by buffer: the taker
  bool *gives;           // by buffer: in the arena in question
  bool *takes;
} tarn__plan_sharing;

// |arenas|, one per buffer, is where they come to.
//
// Lifetime:     tarn__plan_sharing_free, whatever the status.
// Cost:         O(n log n).
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_sharing_make(const tarn_plan_problem *problem, const bool *left_out,
                        uint32_t *arenas, tarn__plan_sharing *out_sharing);

void tarn__plan_sharing_free(tarn__plan_sharing *sharing);

// Puts those into |arena| that must lie there, and then, in order, those that
// are nowhere yet and have room beside those that came before.
//
// Cost: O(n log n).
void tarn__plan_sharing_choose(tarn__plan_sharing *sharing, size_t arena);

static inline bool tarn__plan_sharing_has(const tarn__plan_sharing *sharing,
                                          size_t buffer) {
  return sharing->left_out == NULL || !sharing->left_out[buffer];
}

#endif  // TARN_PLAN_SHARING_H_
