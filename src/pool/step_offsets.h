// layout.h - where the blocks of a step can lie when all of them are known.
//
// A step is a row of events that comes again and again. A block is there from
// one event to another; one that is freed before the place at which it was
// taken is there across the end of the step. Two that are there at the same
// time must not share a byte.
#ifndef TARN_POOL_STEP_OFFSETS_H_
#define TARN_POOL_STEP_OFFSETS_H_

#include "tarn/base.h"

typedef struct tarn__pool_lifetime {
  size_t size;
  size_t align;   // a power of two
  uint32_t from;  // the event that takes it
  uint32_t to;    // the event that frees it; another than |from|
  size_t offset;  // the answer
} tarn__pool_lifetime;

// Chooses the offsets of |count| spans so that the end of the highest,
// |*out_size|, is as low as the planner's quick ways make it (plan/quick.h):
// the pool's lock is held meanwhile, so nothing is searched for.
//
// Cost: of tarn__plan_quick in time, O(count) in host memory.
// TARN_E_NOMEM  no host memory.
// TARN_FULL     they need more than can be addressed.
TARN_MUST_CHECK tarn_status tarn__step_offsets(tarn__pool_lifetime *spans,
                                               size_t count, size_t *out_size);

#endif  // TARN_POOL_STEP_OFFSETS_H_
