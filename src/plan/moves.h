// moves.h - lowers a plan by moving some of its items at a time.
//
// The items that end above a height a little below the plan's are taken out and
// placed again below it. If one finds no room, the items in its way are taken
// out in turn, until none is left to place. This proves nothing, needs memory
// in proportion to the plan, and goes on until it is stopped: it serves
// problems that are too large to be searched, and gives good plans before a
// search has ended.
#ifndef TARN_PLAN_MOVES_H_
#define TARN_PLAN_MOVES_H_

#include "plan/instance.h"
#include "plan/stop.h"

typedef struct tarn__plan_moves tarn__plan_moves;

typedef struct tarn__plan_moves_run {
  uint64_t target;      // units: stop at this height
  uint64_t node_limit;  // placed items; UINT64_MAX: no limit
  tarn__plan_stop *stop;
} tarn__plan_moves_run;

// |instance| and |memory|, which the runs use too, must live as long.
//
// Threads:       one at a time.
// Cost:          O(n log n); some 150 bytes for each item and section.
// TARN_FULL      there are too many pieces: the instance is too large.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_moves_create(
    const tarn__plan_instance *instance, tarn__plan_memory *memory,
    tarn__plan_moves **out_moves);

// Lowers |offsets|, one per item, a plan of |*height|, in units, until the
// height is at most |run->target| or the run is over. |*out_nodes| is how many
// items were put down.
//
// The same object with the same runs in the same order ends with the same
// plans, unless |stop| says stop.
//
// TARN_E_NOMEM  no host memory; |offsets| is the best so far, and the object
//               is of no more use.
TARN_MUST_CHECK tarn_status tarn__plan_moves_lower(
    tarn__plan_moves *moves, const tarn__plan_moves_run *run, uint64_t *offsets,
    uint64_t *height, uint64_t *out_nodes);

#endif  // TARN_PLAN_MOVES_H_
