// relax.h - a problem that asks for less: undecided pairs are in nobody's way.
//
// Of each undecided pair one is needed a step less, the one in which they
// meet:
//
//        +-----+                          +----+
//        |  a  |                          | a  |
//        +---+-+-------+       becomes    +----+-------+
//            |    b    |                       |   b   |    (the larger keeps
//            +---------+                    +--+-------+     the step)
//
// A plan in which the two are merged is one of it, and so is one in which they
// are apart. So what it has no plan for, no decision has; and a plan of it in
// which nothing collides is one of the problem.
#ifndef TARN_PLAN_RELAX_H_
#define TARN_PLAN_RELAX_H_

#include "plan/pairs.h"

typedef struct tarn__plan_relaxed {
  tarn_plan_problem problem;  // with |buffers|, and the pairs as they are
  tarn_plan_buffer *buffers;
  bool *left_out;   // by buffer: also one of which nothing would be left
  uint64_t *steps;  // by buffer: in which it is needed, yet
} tarn__plan_relaxed;

// Room for relaxing |problem|.
//
// Lifetime:     tarn__plan_relaxed_free, whatever the status.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_relaxed_make(
    const tarn_plan_problem *problem, tarn__plan_relaxed *out_relaxed);

void tarn__plan_relaxed_free(tarn__plan_relaxed *relaxed);

// Fills it according to what |pairs| leaves undecided.
//
// Cost: O(n + pairs).
void tarn__plan_relax(const tarn__plan_pairs *pairs,
                      tarn__plan_relaxed *relaxed);

#endif  // TARN_PLAN_RELAX_H_
