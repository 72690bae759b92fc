// call.h - one call of tarn_plan_solve: its limits, the best plan so far, and
// the progress that it reports.
//
// A call solves many instances: one for each choice of merged pairs and for
// each arena, relaxed ones for proofs, and parts of a problem that does not
// fit. All share the limits of the call, and progress is reported for the call.
//
// Shares are counted in nodes, not in seconds, so that the plan does not depend
// on the machine unless the time limit ends the call.
#ifndef TARN_PLAN_CALL_H_
#define TARN_PLAN_CALL_H_

#include "base/status.h"
#include "plan/instance.h"
#include "plan/stop.h"

typedef struct tarn__plan_call {
  tarn_plan_options options;
  uint64_t began_ns;
  uint64_t deadline_ns;
  atomic_bool asked;     // as in tarn__plan_stop
  uint64_t nodes;        // of instances that are done
  uint64_t height;       // bytes: of the best whole plan; UINT64_MAX: none
  uint64_t bound;        // bytes: no whole plan is lower
  uint64_t told_height;  // last reported, and when
  uint64_t told_ns;
  bool cancelled;
} tarn__plan_call;

// One instance's share of the call.
typedef struct tarn__plan_share {
  uint64_t capacity;    // units; UINT64_MAX: no limit
  bool minimise;        // go on below a capacity that is kept
  uint64_t node_limit;  // 0: all that the call has left
  bool is_plan;         // a plan of it is one of the whole problem
  bool is_bound;        // its bound is one of the whole problem
} tarn__plan_share;

typedef struct tarn__plan_found {
  tarn_plan_answer answer;
  uint64_t height;  // units; UINT64_MAX: no plan
  uint64_t bound;   // units, proved
  uint64_t nodes;
} tarn__plan_found;

// Whether the lowest plan is asked for, rather than any that fits.
static inline bool tarn__plan_wants_lowest(const tarn__plan_share *share) {
  return share->minimise || share->capacity == UINT64_MAX;
}

// The height at which nothing more is asked for.
static inline uint64_t tarn__plan_goal(const tarn__plan_share *share,
                                       const tarn__plan_found *found) {
  return tarn__plan_wants_lowest(share) ? found->bound : share->capacity;
}

static inline bool tarn__plan_is_done(const tarn__plan_share *share,
                                      const tarn__plan_found *found) {
  return found->height <= tarn__plan_goal(share, found) ||
         found->bound > share->capacity;
}

// The greatest height of a plan that is better than the best so far.
static inline uint64_t tarn__plan_below_best(const tarn__plan_share *share,
                                             const tarn__plan_found *found) {
  return tarn__lesser(found->height - 1, share->capacity);
}

// The nodes that are left up to |end| (0: no limit) after |spent|, at least 1,
// and no more than |limit| (0: all of them); 0: no limit.
static inline uint64_t tarn__plan_nodes_left(uint64_t end, uint64_t spent,
                                             uint64_t limit) {
  if (end == 0) return limit;
  uint64_t left = spent < end ? end - spent : 1;
  return limit == 0 || left < limit ? left : limit;
}

static inline tarn_plan_answer tarn__plan_answer_of(
    const tarn__plan_share *share, const tarn__plan_found *found) {
  if (found->bound > share->capacity) return TARN_PLAN_INFEASIBLE;
  if (found->height <= found->bound) return TARN_PLAN_OPTIMAL;
  bool fits = found->height != UINT64_MAX && found->height <= share->capacity;
  return fits ? TARN_PLAN_FEASIBLE : TARN_PLAN_OUT_OF_TIME;
}

static inline bool tarn__plan_fits(tarn_plan_answer answer) {
  return answer == TARN_PLAN_OPTIMAL || answer == TARN_PLAN_FEASIBLE;
}

// Starts the clock. |options| are complete.
void tarn__plan_call_begin(tarn__plan_call *call,
                           const tarn_plan_options *options);

double tarn__plan_call_seconds(const tarn__plan_call *call);

// Whether the time is over, or the caller has cancelled.
bool tarn__plan_call_late(tarn__plan_call *call);

// Whether to return with the best plan so far: late, or all nodes are spent.
bool tarn__plan_call_over(tarn__plan_call *call);

// Reports |found|, in |unit| bytes, and |nodes| more: a better plan at once,
// all else about ten times a second. False: stop.
bool tarn__plan_call_tell(tarn__plan_call *call, const tarn__plan_share *share,
                          uint64_t unit, const tarn__plan_found *found,
                          uint64_t nodes);

// Solves one instance: greedy plans first, then the searches. |offsets|, one
// per item, holds the plan if there is one, in units. An instance without items
// has a plan of height 0.
//
// The answer is OPTIMAL if height and bound have met; INFEASIBLE if the bound
// is above the capacity or fixed items collide; FEASIBLE if the height is
// within the capacity; else OUT_OF_TIME, and the height is that of a plan that
// is too high.
//
// TARN_E_NOMEM  no host memory, and no plan.
TARN_MUST_CHECK tarn_status tarn__plan_solve(
    tarn__plan_call *call, const tarn__plan_instance *instance,
    const tarn__plan_share *share, uint64_t *offsets, tarn__plan_found *found);

// --- a plan while it is made -------------------------------------------------

struct tarn_plan {
  tarn_plan_info info;
  size_t arena_count;
  bool has_offsets;
  uint64_t *offsets;  // by buffer
  uint32_t *arenas;   // by buffer
  uint64_t *heights;  // by arena
  size_t *conflict;   // info.conflict_count, room for info.count
  tarn__plan_memory memory;
};

// An empty plan for |problem|. tarn_plan_destroy frees it, also after a
// failure.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_make(const tarn_plan_problem *problem,
                                            tarn_plan **out_plan);

// Exchanges two plans of the same problem.
void tarn__plan_swap(tarn_plan *plan, tarn_plan *other);

// Completes a plan that has offsets and arenas: heights, answer and |bound|.
// |left_out|: by buffer; NULL: all are in.
void tarn__plan_complete(const tarn_plan_problem *problem, const bool *left_out,
                         uint64_t bound, tarn_plan *plan);

// --- a problem or a part of it -----------------------------------------------

typedef struct tarn__plan_fill {
  const tarn_plan_problem *problem;
  const bool *left_out;  // by buffer; NULL: all are in
  uint64_t capacity;     // bytes; 0: no limit
  bool minimise;         // go on below a capacity that is kept
  bool is_whole;         // it is what the caller asked for
  uint64_t node_limit;   // 0: all that the call has left
} tarn__plan_fill;

// Solves |set| in one arena of |set->capacity|, over all choices of what merges
// in place; |out| is in bytes. |offsets|, by buffer, in bytes, holds the plan
// if there is one; the offsets of buffers that are left out are unchanged.
// OPTIMAL and INFEASIBLE are proved over all choices; INFEASIBLE without a
// capacity means fixed offsets that collide. Answers are as in
// tarn__plan_solve.
//
// TARN_E_INVALID  as in tarn__plan_instance_make.
// TARN_E_NOMEM    no host memory, and no plan.
TARN_MUST_CHECK tarn_status tarn__plan_set_solve(tarn__plan_call *call,
                                                 const tarn__plan_fill *set,
                                                 uint64_t *offsets,
                                                 tarn__plan_found *out);

// Solves |fill| in the arenas of its problem; |fill->capacity| further limits
// the only one. Sets answer, height, lower bound, offsets and arenas; those of
// buffers that are left out mean nothing.
//
// In several arenas the answer is INFEASIBLE if a buffer is larger than each
// arena that it may lie in, if the buffers bound to an arena do not fit there,
// or if more is live than all arenas have together. It is OPTIMAL only if all
// buffers lie in the first arena.
//
// TARN_E_INVALID  as in tarn__plan_instance_make.
// TARN_E_NOMEM    no host memory, and no plan.
TARN_MUST_CHECK tarn_status tarn__plan_fill_in(tarn__plan_call *call,
                                               const tarn__plan_fill *fill,
                                               tarn_plan *plan);

// --- plans from other plans, and reasons -------------------------------------

// Makes a plan for |problem| from |call->options.previous|, which may be wrong
// in any way. If all of its offsets are still a plan, they are the answer. Else
// buffers that do not collide keep their offsets, and the others are placed
// around them, no higher than a new plan; if that fails, the new plan is the
// answer.
//
// TARN_E_INVALID  as in tarn__plan_instance_make.
// TARN_E_NOMEM    no host memory, and no plan.
TARN_MUST_CHECK tarn_status tarn__plan_from_previous(
    tarn__plan_call *call, const tarn_plan_problem *problem, tarn_plan *plan);

// Fills |plan->conflict| of an INFEASIBLE plan: by sizes and offsets alone if
// they suffice, else by leaving out buffers that the proof does not need, as
// long as the call's limits allow: the longer, the smaller the set.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_find_conflict(
    tarn__plan_call *call, const tarn_plan_problem *problem, tarn_plan *plan);

#endif  // TARN_PLAN_CALL_H_
