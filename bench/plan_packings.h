// plan_packings.h - problems whose lowest plan is known, because they are made
// from it: a rectangle of time and offset is cut up, and each part becomes a
// buffer. No byte of it is free in any step, so that no plan is lower, and few
// plans are as low.
//
//   offset
//     ^   +-----+-----------+
//     |   |     |           |       each cut goes through a whole part, at
//     |   |     +-------+---+       random in time or in offset; a large part
//     |   +-----+       |   |       is cut sooner than a small one
//     |   |     |       |   |
//     |   +-----+-------+---+
//     +------------------------> time
#ifndef TARN_BENCH_PLAN_PACKINGS_H_
#define TARN_BENCH_PLAN_PACKINGS_H_

#include <stdbool.h>

#include "tarn/plan.h"

enum {
  PLAN_PACKING_NAME = 32,
  // Narrow ones, of fewer steps than this, are harder: more is live at once.
  PLAN_PACKING_WIDE = 100,
};

// All heights, in bytes; all sizes are multiples of 1024.
#define PLAN_PACKING_HEIGHT (UINT64_C(1) << 20)

// The same everywhere for the same three numbers.
typedef struct plan_packing_spec {
  size_t count;    // buffers, at least 1
  uint64_t steps;  // of time, at least 1
  uint64_t seed;
} plan_packing_spec;

typedef struct plan_packing {
  tarn_plan_buffer *buffers;  // in an order that tells nothing
  uint64_t *offsets;          // of a plan of PLAN_PACKING_HEIGHT
  size_t count;               // fewer than asked for if that is too many
} plan_packing;

// The measured problems: 60 to 400 buffers in 20 to 1000 steps, wide ones
// first. |round| counts from 0: each has other seeds.
enum { PLAN_PACKINGS = 36 };
plan_packing_spec plan_packing_at(size_t index, uint64_t round);

static inline bool plan_packing_is_wide(plan_packing_spec spec) {
  return spec.steps >= PLAN_PACKING_WIDE;
}

// "400x1000.1": buffers, steps, seed. Into |out|, PLAN_PACKING_NAME bytes,
// which it returns.
char *plan_packing_name(plan_packing_spec spec, char *out);

// Free it with plan_packing_free. Cost: O(count^2).
plan_packing plan_packing_make(plan_packing_spec spec);
void plan_packing_free(plan_packing *packing);

#endif  // TARN_BENCH_PLAN_PACKINGS_H_
