// allowed.h - which offsets items may have, whatever else is put down.
//
// An item lies at a multiple of its alignment, and clear of what is fixed in
// its sections: by the problem, or held for one run.
#ifndef TARN_PLAN_ALLOWED_H_
#define TARN_PLAN_ALLOWED_H_

#include "plan/neighbours.h"

// Offsets [from, below) that an item cannot have.
typedef struct tarn__plan_blocked {
  uint64_t from;
  uint64_t below;
} tarn__plan_blocked;

typedef struct tarn__plan_allowed {
  const tarn__plan_neighbours *near;
  bool all;        // any offset is allowed: nothing is aligned or fixed
  bool any_fixed;  // else nothing is read but alignments
  bool *fixed;     // by item
  uint64_t *at;    // by item: where it is fixed
  // By item, in order, beginning where its neighbours do.
  tarn__plan_blocked *blocked;
  uint32_t *blocked_count;
} tarn__plan_allowed;

// |near| must live as long.
//
// Lifetime:     tarn__plan_allowed_free.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_allowed_make(
    const tarn__plan_neighbours *near, tarn__plan_allowed *out_allowed);

// One that is zero-filled is allowed.
void tarn__plan_allowed_free(tarn__plan_allowed *allowed);

// Begins anew; |held| as in tarn__plan_run.
//
// Cost:         O(n); where something is fixed, that of all neighbours.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_allowed_begin(tarn__plan_allowed *allowed, const uint64_t *held);

// Whether what is fixed is clear of all else that is.
bool tarn__plan_allowed_clear(const tarn__plan_allowed *allowed);

// The least offset, not below |from|, that |item| may have.
uint64_t tarn__plan_settle_among(const tarn__plan_allowed *allowed,
                                 uint32_t item, uint64_t from);

static inline uint64_t tarn__plan_settle(const tarn__plan_allowed *allowed,
                                         uint32_t item, uint64_t from) {
  if (allowed->all) return from;
  return tarn__plan_settle_among(allowed, item, from);
}

// Sizes of what is fixed in |section|, as far as it lies above |floor|.
uint64_t tarn__plan_fixed_above(const tarn__plan_allowed *allowed,
                                uint32_t section, uint64_t floor);

#endif  // TARN_PLAN_ALLOWED_H_
