// plan_fit.h - what to change about buffers that do not fit.
//
// Both answers are verified: a plan was made of what is left, and checked.
// Neither is proved to be the least that would do.
#ifndef TARN_TOOL_PLAN_FIT_H_
#define TARN_TOOL_PLAN_FIT_H_

#include <tarn/tarn.h>

// Buffers that have to lie elsewhere, so that the others fit.
typedef struct plan_moves {
  bool known;     // false: no set was found
  size_t *items;  // indices, the largest first
  size_t count;
  uint64_t bytes;
  uint64_t height;  // of a plan of the others
} plan_moves;

// A small set of the buffers that take most room at the moments at which there
// is too little. |problem| has capacities. |seconds|: about the time that it
// may take.
//
// Cost: O(n log n) for each of up to some hundred buffers, and a few plans.
plan_moves plan_fit_moves(const tarn_plan_problem *problem, double seconds);
void plan_moves_deinit(plan_moves *moves);

// The offsets of a plan that knows no capacities, as low as is found in time,
// and its height; NULL and 0: there is none. free() it.
uint64_t *plan_fit_unlimited(const tarn_plan_problem *problem, double seconds,
                             uint64_t *out_height);

// Some buffers of a problem as a problem of its own, with new numbers, and the
// pairs of which both buffers are among them.
typedef struct plan_part {
  tarn_plan_problem problem;
  tarn_plan_buffer *buffers;
  tarn_plan_pair *pairs;
  size_t *whose;  // by buffer: its number in the whole problem
} plan_part;

// Of the buffers that |left_out| does not mark. Borrows |problem|'s gaps and
// capacities.
plan_part plan_part_make(const tarn_plan_problem *problem,
                         const bool *left_out);
void plan_part_deinit(plan_part *part);

// How much smaller sizes would have to be: the factor, cut to four digits, at
// which a plan fits; 0: none was found, or none can be. |kept|, by buffer, NULL
// for none: those whose sizes stay. |height| is that of a plan of the sizes as
// they are, or about that.
double plan_fit_factor(const tarn_plan_problem *problem, const bool *kept,
                       uint64_t height, double seconds);

// The capacities of all arenas together; 0: no limit.
uint64_t plan_fit_capacity(const tarn_plan_problem *problem);

#endif  // TARN_TOOL_PLAN_FIT_H_
